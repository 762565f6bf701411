//! What a DataNode answers by RPC, one file for each protocol.

pub(crate) mod client;
pub(crate) mod inter;
pub(crate) mod reconfigure;
mod superuser;
