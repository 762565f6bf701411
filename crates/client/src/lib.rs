//! The Cairn client: files on a Cairn or HDFS cluster.
//!
//! Start at [`FileSystem::connect`]. Speaks Hadoop's protocols on both sides, so it works on HDFS
//! too. Knows nothing of how NameNodes and DataNodes keep what they keep. Wire messages are
//! translated in `protocol/` and `datanode/` and do not appear in the API, but for [`FileSystem::call`].

mod balance;
mod blocking;
mod checksum;
mod config;
mod copy;
mod datanode;
mod encryption;
mod error;
mod fs;
mod lease;
mod packet;
mod pipeline;
mod protocol;
mod read;
mod read_replicated;
mod read_striped;
mod rewrite;
mod scrub;
mod servers;
mod session;
mod types;
mod write;
mod write_replicated;
mod write_stalls;
mod write_striped;
mod write_unit;

pub use balance::{BalanceOptions, MoveEnd, MoveProgress};
pub use blocking::{Blocking, Kept};
pub use cairn_codec::crc::ChecksumKind;
pub use cairn_kms::{KmsError, KmsOptions, ProviderPathError};
pub use cairn_net::rpc_client::SharedCredentials;
pub use cairn_security::token::Token as DelegationToken;
pub use cairn_writer::ReplaceDataNode;
pub use config::ClientConfig;
pub use datanode::secure::DataSecurity;
pub use error::{ClientError, LostUnit, Result};
pub use fs::{FileSystem, Listing};
pub use read::FileReader;
pub use read::directory::DirectoryReader;
pub use read::ranges::{RangeOptions, read_ranges};
pub use scrub::{FaultKind, FileScrub, ScrubFault, ScrubOptions};
pub use servers::{Refresh, Server};
pub use types::*;
pub use write::FileWriter;
