//! A member of a quorum on this machine: its file, its port and its thread around the core `cairn-quorum`.
//!
//! [`disk`] keeps what it has promised and its log, [`link`] lets only those in who have the key of the quorum, [`port`]
//! carries messages, and [`carrier`] drives the core. What is agreed on comes out in order, once ([`Member`]).
//!
//! Tested in `tests/it/quorum.rs`, over real sockets and files. The NameNode does not use it yet.

mod carrier;
mod disk;
mod link;
mod port;

pub use carrier::{Member, NotAgreed, Options, Place, StartError, Status};
pub use disk::{Disk, DiskError};
pub use link::{Key, LinkError};
