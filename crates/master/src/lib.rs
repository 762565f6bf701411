//! Namespace and cluster kept in step: what a NameNode does, one operation after the other.
//!
//! The namespace is a log of commands, the cluster is soft state; neither knows the other. Here is what ties them:
//!
//! - [`effects`]: what an entry has done to blocks, told to the cluster in the moment in which the entry comes into
//!   force. There is no other way by which the namespace tells the cluster anything.
//! - [`op`]: what an operation may do. It looks at both, decides, and submits a command; it may wait for a change of some
//!   blocks. Nothing else is awaited, so that any driver can carry it: threads in the NameNode, one seed in the
//!   simulation.
//! - The operations, each a plain `async fn`: [`add_block`], [`complete`], [`append`], [`pipeline`], [`lease`],
//!   [`synchronize`], [`truncate`], and those of [`contiguous`] groups; and [`follow_up`], what follows when DataNodes have told something.
//! - [`reports`]: what DataNodes tell, one step at a time; [`orders`]: what the namespace adds to what they are told.
//! - [`facts`]: what blocks should be, read from a state of the namespace for the cluster.
//! - [`group`]: when entries are applied, made durable and shown.
//!
//! Nothing here does I/O, reads a clock, draws a random number or knows a runtime.

pub mod add_block;
pub mod append;
pub mod complete;
pub mod contiguous;
pub mod effects;
pub mod facts;
pub mod follow_up;
pub mod group;
pub mod lease;
pub mod op;
pub mod orders;
pub mod pipeline;
pub mod reports;
pub mod synchronize;
pub mod truncate;

pub use effects::FollowUp;
pub use facts::Lookup;
pub use op::{Look, Op, OpError, Submission};
