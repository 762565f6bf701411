//! How a client writes blocks: which calls to the NameNode and to DataNodes follow each other, what a failure
//! leads to, and what is acknowledged when.
//!
//! Each sequence is a plain `async fn`, whose questions a trait asks of those outside: the client's sockets or
//! the simulation, where anything can happen between two of them. No I/O, no clock, no randomness and no
//! runtime. Which units of a group live is decided by `cairn_stripe::write::GroupWrite`.

pub mod group;
pub mod pipeline;

pub use group::{GroupError, Groups};
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

/// Runs what never has to wait.
#[cfg(test)]
fn now<T>(future: impl Future<Output = T>) -> T {
    use std::task::{Context, Poll, Waker};
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("nobody waits here"),
    }
}
