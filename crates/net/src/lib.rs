//! Hadoop RPC and data-transfer sockets, and a small HTTP server, once for all shells.
//!
//! Knows connections, frames, limits and timeouts; knows nothing of roles, files or blocks. What
//! the bytes mean is in `cairn-wire`. Every peer is taken for hostile: memory grows with the bytes
//! that arrive, never with a length that is announced, and a bad frame costs its own connection.

pub mod file_read;
mod frame;
pub mod groups;
pub mod http;
pub mod proxy_users;
pub mod reconfiguration;
pub mod rpc_client;
pub mod rpc_server;
pub mod transfer_stream;
