//! The NameNode's RPCs in the client's own types. Messages of the wire stay in this folder and in
//! `datanode/`.

pub(crate) mod convert;
pub(crate) mod encryption;
mod followers;
pub(crate) mod namenode;
mod watch;
