//! Fuzz targets: decoders of outside bytes by themselves, and whole servers.

pub mod decoders;
pub mod servers;
pub mod strangers;
