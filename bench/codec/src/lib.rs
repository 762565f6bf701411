//! What the codec is measured against, on which buffers.

pub mod isal;
pub mod row;
