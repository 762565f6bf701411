//! The `cairn` command, as processes: a cluster, and what is asked of it.

mod cluster;
mod descriptors;
mod fs;
mod quickstart;
mod unwritable;
