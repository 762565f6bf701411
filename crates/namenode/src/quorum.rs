//! A member of a quorum on this machine: its file, its port and its thread around the core `cairn-quorum`.
//!
//! [`disk`] keeps what it has promised and its log, which [`writer`] writes; [`link`] lets only those in who have the key of
//! the quorum, by [`socket`]s with or without TLS, [`callers`] bounds who has not shown it yet, [`port`] carries messages, [`hello`] tells who is believed, and [`carrier`] drives the core. What is agreed on
//! comes out in order, once ([`Member`]). What a new member begins with, or one that lacks too much goes on from, comes as a
//! snapshot ([`incoming`]); what is in one is not known here.
//!
//! Tested in `tests/it/quorum.rs`, over real sockets and files.

mod callers;
mod carrier;
mod disk;
mod force;
mod hello;
mod incoming;
mod link;
mod link_error;
mod member;
mod port;
mod socket;
mod writer;

pub use carrier::{NotAgreed, Place, StartError, Status};
pub use disk::{Disk, DiskError};
pub use force::{Left, begin_anew, left};
pub use incoming::Snapshot;
pub use link::{Credentials, Key};
pub use link_error::LinkError;
pub use member::{Member, Options, found, found_anew};
pub use port::SendError;
