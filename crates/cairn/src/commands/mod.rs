//! One file per command.

pub mod admin;
pub mod advise;
pub mod balance;
pub mod bench;
pub mod cache;
pub mod cluster;
pub mod completion;
pub mod crypto;
pub mod datanode;
pub mod debug;
pub mod doctor;
pub mod ec;
pub mod fs;
pub mod fsck;
pub mod gateway;
pub mod groups;
pub mod keys;
pub mod namenode;
pub mod pages;
pub mod quickstart;
pub mod report;
pub mod scrub;
pub mod snapshot;
pub mod storage_policies;
pub mod token;
pub mod top;
