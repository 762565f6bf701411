//! How a client writes blocks: which calls to the NameNode and to DataNodes follow each other, what a failure
//! leads to, and what is acknowledged when.
//!
//! Each sequence is a plain `async fn`, whose questions a trait asks of those outside: the client's sockets or
//! the simulation, where anything can happen between two of them. No I/O, no clock, no randomness and no
//! runtime. Which units of a group live is decided by `cairn_stripe::write::GroupWrite`.

pub mod pipeline;

pub use pipeline::{Pipeline, PipelineError, ReplaceDataNode};

use cairn_stripe::{BlockId, GenerationStamp};

/// A block or block group while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Of a group, that of unit 0.
    pub id: BlockId,
    /// The stamp that its replicas have.
    pub stamp: GenerationStamp,
    /// Bytes, of data for a group.
    pub len: u64,
}
