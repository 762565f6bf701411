//! The life of one replica on a DataNode: what each operation may do in each state.
//!
//! Decides only: which operation a replica accepts, how long it is afterwards, under which
//! generation stamp, where the bytes and CRCs of a packet belong, what is believed of the units of a contiguous
//! group, and which NameNode is obeyed. Does no I/O and reads no clock;
//! the DataNode shell carries the decisions out. Invariant: a replica's generation stamp never
//! shrinks, and bytes below its acknowledged length are never given up by an operation of a writer.

pub mod absent;
pub mod checksum;
pub mod following;
pub mod group;
pub mod ram_disk;
pub mod recovery;
pub mod report;
pub mod state;
pub mod sum;

pub use absent::Absent;
pub use checksum::{Checksum, ChunkTail, CrcFold, Placement};
pub use following::{Claim, Following, Heard};
pub use ram_disk::{RamDisk, Ticket};
pub use state::{RecoveryInfo, Replica, ReplicaError, ReplicaState};
pub use sum::UnitSum;
