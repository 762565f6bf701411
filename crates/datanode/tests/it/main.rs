//! A DataNode over real sockets and real files, with a NameNode that only records and commands.

mod admin;
mod balance;
mod bounds;
mod caching;
mod checksum;
mod cluster;
mod failed_work;
mod groups;
mod kept;
mod orders;
mod page_cache;
mod pages;
mod pipeline;
mod prove;
mod ram_disk;
mod reconfigure;
mod reconstruct;
mod recovery;
mod refusal;
mod restart;
mod scanner;
mod short_circuit;
mod slow;
mod space;
mod virtual_block;
mod wire;
