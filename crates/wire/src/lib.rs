//! The messages, framing and exceptions of Hadoop 3.5.
//!
//! Bytes in, values out: nothing here does I/O. Every length that comes from outside is checked
//! against a limit before anything is allocated for it. Sockets are in `cairn-net`.

pub mod converted;
pub mod error;
pub mod exception;
pub mod meta_file;
#[allow(missing_docs)]
pub mod proto;
pub mod reads;
pub mod rpc;
pub mod transfer;
pub mod xattr;

pub use error::WireError;
pub use exception::RemoteException;
