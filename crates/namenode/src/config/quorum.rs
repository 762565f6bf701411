//! Where the NameNodes of a file system are that agree on one log.

use cairn_net::tls::TlsFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The shortest time that an election may be waited for: heartbeats go five times as often.
pub const ELECTION_TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// A quorum of NameNodes, the same on each but for `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumConfig {
    /// Which of them this one is. Key `dfs.ha.namenode.id`.
    pub id: String,
    /// All of them, by their ids. Key `dfs.ha.namenodes.NAMESERVICE`.
    pub members: BTreeMap<String, MemberConfig>,
    /// A file with what all members have and nobody else. Key `cairn.quorum.key-file`.
    pub key_file: PathBuf,
    /// By which certificates members know each other, and encrypt what they say, if they do. Key `cairn.quorum.tls`.
    pub tls: Option<QuorumTls>,
    /// Where this one keeps what it has promised, and the log that is being agreed on. Key `cairn.quorum.dir`.
    pub dir: PathBuf,
    /// The shortest time without a word of the leader after which another one may stand; it is twice as long at most. Key
    /// `cairn.quorum.election-timeout`.
    pub election_timeout: Duration,
    /// Whether a member that follows hands clients' calls to the one that leads, rather than telling them to go there. Key
    /// `cairn.namenode.followers.forward`.
    pub forwards: bool,
}

/// By which certificates members know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumTls {
    /// That of this one. Keys `cairn.https.certificate`, `cairn.https.key`.
    pub files: TlsFiles,
    /// A PEM file of those who vouch for members. Key `cairn.https.authority`.
    pub authority: PathBuf,
}

/// Where a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// `host:port` of its RPC. Key `dfs.namenode.rpc-address.NAMESERVICE.ID`.
    pub rpc: String,
    /// `host:port` where the other members speak to it. Key `cairn.quorum.address.NAMESERVICE.ID`.
    pub quorum: String,
}
