//! Settings of the roles from Hadoop's keys ([`namenode`], [`datanode`], [`client`]).

pub mod datanode;
mod encryption;
mod groups;
mod memory;
pub mod namenode;
mod slow;
mod unsupported;
pub mod webhdfs;

pub use cairn_conf::nameservice::NameNodes;
pub use cairn_conf::{Configuration, client, folder_from_environment, value, xml};
