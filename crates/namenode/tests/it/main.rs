//! The NameNode as its clients and DataNodes meet it: over sockets, in this process.

mod acls;
mod bad_input;
mod balancer;
mod caching;
mod cluster;
mod committed;
mod encryption;
mod every_command;
mod fsck;
mod journal;
mod key_server;
mod lazy_files;
mod leaving;
mod lifecycle;
mod mending;
mod reads;
mod refusals;
mod registration;
mod repeated;
mod resources;
mod safety;
mod satisfier;
mod snapshots;
mod storage_policies;
mod upgrade;
mod writing;
