//! The NameNode shell: sockets, log, store and clock around the cores `cairn-namespace` (the tree)
//! and `cairn-redundancy` (where replicas are).
//!
//! It decides nothing itself: `protocol` turns each RPC into a command or query, `run` turns time
//! into events. Start with [`NameNode::start`] and [`NameNodeConfig`].

mod access;
mod audit;
pub mod caching;
pub mod config;
mod diff_listings;
mod disk;
pub mod fsck;
pub mod host_names;
pub mod hosts;
pub mod journal;
mod key_provider;
mod lazy_files;
mod leases;
pub mod lookup;
pub mod memory;
pub mod node;
mod pages;
pub mod protocol;
mod reencryption;
mod resources;
pub mod run;
mod satisfier;
mod snapshots;
mod store;
pub mod topology;
mod trash;

pub use config::NameNodeConfig;
pub use node::NameNode;
pub use run::{RunningNameNode, StartError};
