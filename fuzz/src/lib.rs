//! Fuzz targets: decoders of outside bytes by themselves, and whole servers.

pub mod changed;
pub mod corpus;
pub mod decoders;
pub mod edits;
pub mod servers;
pub mod strangers;
