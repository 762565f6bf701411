//! Faults: nodes, disks and bits fail at every stage of a file's life, while readers read.
//!
//! After each: every acknowledged byte reads back, every block is fully redundant and well placed
//! again, and no wrong byte is in any replica. `CAIRN_FULL=1` (set by `./test --full`) runs the wide matrix.

mod broken_disks;
mod cluster;
mod code;
mod disks;
mod hung_disks;
mod kills;
mod mounts;
mod placement;
mod proxy;
mod readers;
mod rows;
mod streams;
mod truth;
