//! The DataNode shell: volumes, data transfer, reports.
//!
//! Keeps replicas on disk in Hadoop's layout and moves their bytes. What a replica may do is decided in
//! `cairn-replica`; where blocks belong is the NameNode's affair. A start in reading order: [`DataNode::start`],
//! `server`, `ops/write_block`, `dataset/writer`, `actor`. Knows no files, leases or policies.
//!
//! A file imports files below it only. From the bottom up: errors, settings and system calls; `volume`; `dataset`; `node`,
//! which has what all parts share; those parts (`cache`, `scanner`, `ops`, `protocol`, `recovery`); `server` and `actor`.

mod actor;
mod block_tokens;
mod budget;
mod cache;
mod callers;
mod config;
mod dataset;
mod disks;
mod domain_socket;
mod error;
mod lazy_writer;
mod marks;
mod members;
mod memory;
mod messages;
mod metrics;
mod node;
mod ops;
mod outliers;
mod page_cache;
mod pages;
mod peers;
mod protocol;
mod recovery;
mod run;
mod scanner;
pub mod security;
mod server;
mod short_circuit;
mod slow_io;
mod sys;
mod tunables;
mod volume;
mod workers;

pub use config::{DataDir, DataNodeConfig, Durability, medium};
pub use dataset::RamDiskStats;
pub use error::DataNodeError;
pub use node::scans::VolumeScan;
pub use page_cache::PageCacheStats;
pub use run::{DataNode, RunningDataNode};
