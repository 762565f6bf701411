//! The `cairn` command, as processes: a cluster, and what is asked of it.

mod admin;
mod advise;
mod backup;
mod bench;
mod clock;
mod cluster;
mod collector;
mod descriptors;
mod documents;
mod fs;
mod http;
mod log;
#[path = "../../../namenode/tests/it/ports.rs"]
mod ports;
mod quickstart;
mod quorum;
mod shell;
mod trace;
mod unwritable;
