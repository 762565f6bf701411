//! The NameNode shell: sockets, log, store and clock around the cores `cairn-namespace` (the tree)
//! and `cairn-redundancy` (where replicas are).
//!
//! It decides nothing itself: `protocol` turns each RPC into a command or query, `run` turns time
//! into events. Start with [`NameNode::start`] and [`NameNodeConfig`].
//!
//! Modules import downwards only. From the bottom: settings and what asks the system (`config`, `clock`, `disk`, ...);
//! what is kept (`store`, `journal`, `quorum`, `lead`, `ahead`, `keeper`, `kept_reports`); refusals and the parts that know nothing of the whole (`topology`,
//! `audit`, `key_provider`, `web`, `node/`); [`NameNode`] itself; what it does unasked or for several protocols (`leases`,
//! `caching`, `snapshots`, `admin`, `reports`, `http_nodes`, ...); `protocol`; `fsck`, `backups`, `images` and `pages`; `run`; `relay`; `replica`.

mod access;
mod admin;
mod ahead;
mod audit;
mod authority;
mod backups;
pub mod block_tokens;
pub mod caching;
mod carrier;
mod clock;
pub mod config;
mod contiguous;
mod converted;
mod dice;
mod diff_listings;
mod disk;
pub mod fsck;
pub mod handing_on;
mod host_files;
pub mod host_names;
pub mod hosts;
mod http_nodes;
mod images;
mod java_text;
pub mod journal;
mod keeper;
mod kept_reports;
mod key_provider;
mod last_inputs;
mod lazy_files;
mod lead;
mod leases;
mod members;
pub mod memory;
pub mod node;
mod operations;
mod pages;
pub mod protocol;
pub mod quorum;
pub mod ranger;
mod reencryption;
pub mod refusal;
mod relay;
pub mod replica;
mod reports;
mod resources;
pub mod run;
mod salvager;
mod satisfier;
pub mod security;
mod snapshots;
pub mod standing;
mod store;
mod tokens;
pub mod topology;
mod trash;
mod web;
mod workers;

pub use config::NameNodeConfig;
pub use node::NameNode;
pub use run::{RunningNameNode, StartError};
pub use web::{HttpDataNode, Parts as WebParts, Web};
