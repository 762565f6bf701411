//! The data transfer operations, one file each.

pub(crate) mod answer;
pub(crate) mod balance;
pub(crate) mod checksum;
pub(crate) mod group_checksum;
mod peer_checksum;
pub(crate) mod read_block;
mod read_error;
pub(crate) mod read_many;
pub(crate) mod reconstruct;
pub(crate) mod send;
pub(crate) mod short_circuit;
pub(crate) mod transfer;
pub(crate) mod virtual_block;
pub(crate) mod write_block;
