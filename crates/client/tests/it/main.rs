//! The client against a NameNode and DataNodes in this process.

mod balancing;
mod block_tokens;
mod caching;
mod cloned;
mod cluster;
mod conversion;
mod encryption;
mod failover;
mod followers;
mod hedging;
mod integrity;
mod jumps;
mod key_server;
mod leaving;
mod local;
mod lost_units;
mod memory;
mod mending;
mod open_blocks;
mod ops;
mod packing;
mod roundtrip;
mod short_cells;
mod slow;
mod ways;
mod write_failures;
