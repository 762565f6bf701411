//! What settings choose among.

use std::path::PathBuf;

/// When a mutation may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// After its log record is on stable storage.
    #[default]
    Stable,
    /// After its log record is in the operating system's page cache.
    PageCache,
}

/// Where the rack of a DataNode is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum RackSource {
    /// Every DataNode is in `/default-rack`.
    #[default]
    Default,
    /// A file of `host-or-address rack` lines. Key `net.topology.table.file.name`.
    Table(PathBuf),
    /// A program that gets an address and prints its rack. Key `net.topology.script.file.name`.
    Script(PathBuf),
    /// Racks by host name, address, or `address:port` of data transfer, for an embedded cluster.
    Fixed(Vec<(String, String)>),
}

/// What `dfs.hosts` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HostsFormat {
    /// A list of those who may serve, with `dfs.hosts.exclude` for those to be decommissioned
    /// (`HostFileManager`).
    #[default]
    Lists,
    /// One JSON file with states, maintenance and upgrade domains (`CombinedHostFileManager`).
    Combined,
}

/// The type of checksums that clients are told to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChecksumType {
    /// No checksums.
    Null,
    /// The CRC of zip and Ethernet.
    Crc32,
    /// Castagnoli's.
    #[default]
    Crc32c,
}

/// Who brings replicas to where storage policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SatisfierMode {
    /// Nobody, but who runs a mover.
    #[default]
    None,
    /// A service outside of the NameNode (`hdfs sps`), which fetches what clients ask for.
    External,
}
