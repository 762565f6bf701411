//! The file tree as a deterministic state machine over a log of commands.
//!
//! [`apply::apply`] takes an [`Entry`] (a [`Command`] with its time, caller and call id) and changes a
//! [`store::StoreTxn`]; [`query`] answers from a [`store::StoreRead`]. Nothing here reads a clock, draws
//! a random number, or knows the wire, sockets, files, threads, or where replicas are.
//!
//! A file imports files below it only. From the bottom up: [`encoding`] and [`error`]; what is recorded, in the `record.rs`
//! of each noun; the [`store`], whose states read records; what finds and writes them, as [`inode`], [`block`], [`lease`]
//! and [`snapshot`]; the inodes along a [`path`], who may follow it ([`perm`]), what counts in quotas ([`usage`]); what
//! clients are told and what comes of commands; changes of the tree; [`ops`], one to a file, and the [`command`]s they
//! are; `apply`, [`query`] and [`events`].
//!
//! Invariants: the same entries give the same store; an entry that fails changes nothing; a file costs
//! store space, not memory. Tested in `tests/it` against a model.

pub mod acl;
pub mod apply;
pub mod block;
pub mod cache;
mod caller;
pub mod check;
pub mod clock;
pub mod command;
pub mod container;
mod counter;
pub mod effects;
pub mod encoding;
pub mod encryption;
pub mod error;
pub mod events;
pub mod export;
pub mod group;
pub mod guard;
pub mod holds;
pub mod import;
pub mod inode;
pub mod lease;
pub mod obeyed;
pub mod ops;
pub mod orders;
mod outcome;
pub mod path;
pub mod perm;
pub mod policy_admin;
mod protected;
pub mod query;
pub mod retry;
pub mod settings;
pub mod snapshot;
mod status;
mod storage_policy;
pub mod store;
pub mod token;
mod tree;
pub mod unpacking;
pub mod usage;
pub mod waiting;
pub mod watching;
mod xattr;

pub use apply::{Applied, Done, apply, evaluate};
pub use block::{Block, BlockRef, BlockState, Membership, PackedIn};
pub use caller::{Caller, Judge, Rights, Verdict};
pub use clock::{Clock, Times};
pub use command::{CallId, Command, Entry};
pub use effects::Effect;
pub use error::{NamespaceError, Result};
pub use group::{Group, GroupState};
pub use guard::Guard;
pub use inode::{FileRedundancy, Inode, InodeId};
pub use outcome::{Conversion, Outcome};
pub use retry::Retries;
pub use settings::Settings;
