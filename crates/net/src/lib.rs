//! Hadoop RPC and data-transfer sockets, a small HTTP server with its pages for people and monitors, and TLS.
//!
//! Knows connections, frames, limits and timeouts; knows nothing of roles, files or blocks. What
//! the bytes mean is in `cairn-wire`. Every peer is taken for hostile: memory grows with the bytes
//! that arrive, never with a length that is announced, and a bad frame costs its own connection.

use std::pin::Pin;

mod channel;
pub mod date;
pub mod durations;
pub mod events;
pub mod file_read;
mod frame;
pub mod http;
pub mod monitoring;
pub mod page;
pub mod reach;
pub mod rpc_client;
pub mod rpc_server;
pub mod tls;
pub mod transfer_stream;

/// A future of any kind, whose code is compiled where it is written. That of an `async fn` is compiled anew, with all
/// that it awaits, in every program and test that awaits it; the roots of large trees are boxed to save that.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
