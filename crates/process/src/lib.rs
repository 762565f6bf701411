//! What a server makes of its process: work that lasts and must not panic, locks at which a panic ends everything, disks
//! that may hang, the limit of open files, the lock of a folder.
//!
//! Knows no sockets, no protocols and no roles.

pub mod descriptors;
pub mod disk_work;
pub mod held;
pub mod lasting;
pub mod storage_dir;
