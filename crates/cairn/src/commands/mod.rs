//! One file per command.

pub mod balance;
pub mod cluster;
pub mod crypto;
pub mod datanode;
pub mod ec;
pub mod fs;
pub mod fsck;
pub mod gateway;
pub mod namenode;
pub mod quickstart;
pub mod report;
pub mod scrub;
