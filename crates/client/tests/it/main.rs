//! The client against a NameNode and DataNodes in this process.

mod cluster;
mod integrity;
mod leaving;
mod local;
mod lost_units;
mod mending;
mod ops;
mod roundtrip;
mod write_failures;
