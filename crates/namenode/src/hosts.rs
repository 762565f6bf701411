//! Which DataNodes may serve, and what is to become of each: two lists, or one file with all of it.
//!
//! What operators say of DataNodes by name (`cairn admin decommission`) is in the log, and goes before. Earlier versions
//! have kept it in a file of the NameNode's own folder, in the form of that one file, which counts while it is there.
//!
//! An entry names a host by its address or name, and may name the port of data transfer, so that
//! DataNodes of one host can be told apart. A name fits a DataNode that tells that name, or whose address
//! the name has.
//!
//! Source: Hadoop 3.5.0 `HostFileManager`, `HostsFileReader`, `CombinedHostFileManager`,
//! `CombinedHostsFileReader`.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use cairn_master::reports::Listed;
use cairn_namespace::orders::{NodeIntent, NodeName, NodeOrder};
use cairn_redundancy::{AdminIntent, NodeAddress};
use serde_json::Value;
use tracing::warn;

use crate::config::{HostsFormat, NameNodeConfig};
use crate::host_files::{TopologyError, read_text};

pub(crate) mod own;
#[cfg(test)]
mod tests;

/// What operators have said by name, in the NameNode's folder, to an earlier version.
const OWN_FILE: &str = "datanodes.json";
/// The port of a DataNode that was never seen and whose entry names none (`dfs.datanode.address`).
const DEFAULT_XFER_PORT: u16 = 9866;
/// `dfs.datanode.http.address`.
const DEFAULT_INFO_PORT: u16 = 9864;
/// `dfs.datanode.ipc.address`.
const DEFAULT_IPC_PORT: u16 = 9867;

/// Why a line or entry cannot be read.
type Reason = String;

/// One entry: a host, and the port if only one DataNode of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    /// 0 for any.
    port: u16,
    /// What the name resolves to.
    addresses: Vec<String>,
}

impl Host {
    fn new(name: &str, port: u16) -> Host {
        let addresses = match name.parse::<IpAddr>() {
            Ok(address) => vec![address.to_canonical().to_string()],
            Err(_) => match (name, port).to_socket_addrs() {
                Ok(found) => found.map(|a| a.ip().to_canonical().to_string()).collect(),
                Err(error) => {
                    warn!(name, %error, "a host of a list has no address; only its name counts");
                    Vec::new()
                }
            },
        };
        Host { name: name.to_string(), port, addresses }
    }

    /// `host`, `host:port`, `[address]:port`.
    fn parse(word: &str) -> Host {
        let split = word.rsplit_once(':').and_then(|(name, port)| {
            let bracketed = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            let name = bracketed.unwrap_or(name);
            // More colons without brackets are an address of version 6.
            let plain = bracketed.is_some() || !name.contains(':');
            plain.then_some((name, port.parse::<u16>().ok()?))
        });
        match split {
            Some((name, port)) => Host::new(name, port),
            None => Host::new(word, 0),
        }
    }

    /// As an operator has told it.
    fn told(&self) -> NodeName {
        NodeName { host: self.name.clone(), port: self.port }
    }

    fn fits(&self, address: &NodeAddress) -> bool {
        let named = self.name == address.ip || self.name == address.host;
        let port = self.port == 0 || self.port == address.xfer_port;
        port && (named || self.addresses.contains(&address.ip))
    }
}

/// An entry with what is wanted of it.
#[derive(Clone, Debug)]
struct Entry {
    host: Host,
    intent: AdminIntent,
    upgrade_domain: Option<String>,
}

impl Entry {
    /// The entry of an operator's order.
    fn of(order: &NodeOrder) -> Entry {
        let intent = match order.intent {
            NodeIntent::Leave => AdminIntent::Decommission,
            NodeIntent::Away { until_ms } => AdminIntent::Maintenance { until_ms },
        };
        let host = Host::new(&order.name.host, order.name.port);
        Entry { host, intent, upgrade_domain: None }
    }

    /// The order that says as much; nothing if it is just to serve.
    fn order(&self) -> Option<NodeOrder> {
        let intent = match self.intent {
            AdminIntent::InService => return None,
            AdminIntent::Decommission => NodeIntent::Leave,
            AdminIntent::Maintenance { until_ms } => NodeIntent::Away { until_ms },
        };
        Some(NodeOrder { name: self.host.told(), intent })
    }
}

/// What the lists say.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Who may serve; everybody when `None`.
    included: Option<Vec<Host>>,
    /// What operators have said by name.
    own: Vec<Entry>,
    /// What is wanted of whom; the first that fits counts.
    entries: Vec<Entry>,
    /// Hosts that should be there, whether or not others may serve as well.
    listed: Vec<Host>,
}

impl Hosts {
    /// Reads what the settings name; `orders` is what operators have said, beside what a file has of that. May ask for the
    /// addresses of names, so it can take a while.
    pub fn read(config: &NameNodeConfig, orders: &[NodeOrder]) -> Result<Hosts, TopologyError> {
        let mut own: Vec<Entry> = orders.iter().map(Entry::of).collect();
        own.extend(read_own(&config.name_dir)?);
        Ok(Hosts { own, ..Hosts::named(config)? })
    }

    /// Reads what the settings name.
    fn named(config: &NameNodeConfig) -> Result<Hosts, TopologyError> {
        match config.hosts_format {
            HostsFormat::Lists => {
                let list = |path: &Option<PathBuf>| match path {
                    Some(path) => read_list(path),
                    None => Ok(Vec::new()),
                };
                let listed = list(&config.hosts_file)?;
                let excluded = list(&config.hosts_exclude_file)?.into_iter();
                let intent = AdminIntent::Decommission;
                let entries = excluded.map(|host| Entry { host, intent, upgrade_domain: None });
                Ok(Hosts {
                    included: (!listed.is_empty()).then(|| listed.clone()),
                    entries: entries.collect(),
                    listed,
                    own: Vec::new(),
                })
            }
            HostsFormat::Combined => match &config.hosts_file {
                Some(path) => read_combined(path),
                None => Ok(Hosts::default()),
            },
        }
    }

    /// Whether a DataNode may register.
    pub fn is_included(&self, address: &NodeAddress) -> bool {
        self.included.as_ref().is_none_or(|hosts| hosts.iter().any(|host| host.fits(address)))
    }

    /// What is wanted of a DataNode.
    pub fn intent(&self, address: &NodeAddress) -> AdminIntent {
        let own = self.own.iter().find(|entry| entry.host.fits(address));
        own.map_or_else(|| self.listed_intent(address), |entry| entry.intent)
    }

    /// What the settings' lists want of it.
    fn listed_intent(&self, address: &NodeAddress) -> AdminIntent {
        let mut fitting = self.entries.iter().filter(|entry| entry.host.fits(address));
        let special = fitting.find(|entry| entry.intent != AdminIntent::InService);
        special.map_or(AdminIntent::InService, |entry| entry.intent)
    }

    /// All that they say of a DataNode.
    pub fn listed(&self, address: &NodeAddress) -> Listed {
        Listed { intent: self.intent(address), upgrade_domain: self.upgrade_domain(address) }
    }

    /// The upgrade domain of a DataNode, if it has one.
    pub fn upgrade_domain(&self, address: &NodeAddress) -> Option<String> {
        let fitting = self.entries.iter().find(|entry| entry.host.fits(address));
        fitting.and_then(|entry| entry.upgrade_domain.clone())
    }

    /// Hosts that should be there and are none of `known`, as if they were dead DataNodes; with
    /// whether each is to be decommissioned.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#getDatanodeListForReport`.
    pub fn unseen(&self, known: &[NodeAddress]) -> Vec<(NodeAddress, bool)> {
        let missing = self.listed.iter().filter(|host| !known.iter().any(|node| host.fits(node)));
        missing
            .filter_map(|host| {
                // A name without an address is none of Hadoop's entries either.
                let ip = host.addresses.first()?.clone();
                let address = NodeAddress {
                    ip,
                    host: host.name.clone(),
                    xfer_port: if host.port == 0 { DEFAULT_XFER_PORT } else { host.port },
                    info_port: DEFAULT_INFO_PORT,
                    ipc_port: DEFAULT_IPC_PORT,
                    ..NodeAddress::default()
                };
                let gone = self.intent(&address) == AdminIntent::Decommission;
                Some((address, gone))
            })
            .collect()
    }
}

/// Words, with `#` before comments.
fn read_list(path: &Path) -> Result<Vec<Host>, TopologyError> {
    let text = read_text(path)?;
    let words = text
        .lines()
        .flat_map(|line| line.split_whitespace().take_while(|word| !word.starts_with('#')));
    Ok(words.map(Host::parse).collect())
}

/// What operators have said by name; nothing where there is no file.
fn read_own(name_dir: &Path) -> Result<Vec<Entry>, TopologyError> {
    let path = name_dir.join(OWN_FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_text(&path)?;
    parse_combined(&text).map_err(|reason| TopologyError::Hosts { path, reason })
}

/// One JSON array of objects or, as before Hadoop 3, objects one after the other. A file that is missing or
/// empty says nothing.
///
/// Deviation: one that cannot be understood is an error, and what was read before still holds; Hadoop
/// takes what came before the fault for all there is.
fn read_combined(path: &Path) -> Result<Hosts, TopologyError> {
    if !path.exists() {
        warn!(path = %path.display(), "the file of hosts is missing: every DataNode may serve");
        return Ok(Hosts::default());
    }
    let text = read_text(path)?;
    let wrong = |reason| TopologyError::Hosts { path: path.to_path_buf(), reason };
    let entries = parse_combined(&text).map_err(wrong)?;
    // Without one that serves, the file only says what others are to do.
    let serves = |entry: &Entry| entry.intent == AdminIntent::InService;
    let listed: Vec<Host> = entries.iter().map(|entry| entry.host.clone()).collect();
    let included = entries.iter().any(serves).then(|| listed.clone());
    Ok(Hosts { included, entries, listed, own: Vec::new() })
}

fn parse_combined(text: &str) -> Result<Vec<Entry>, Reason> {
    let values: Vec<Value> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        values.collect::<Result<_, _>>().map_err(|error| error.to_string())?
    };
    values.iter().map(parse_entry).collect()
}

fn parse_entry(value: &Value) -> Result<Entry, Reason> {
    let object = value.as_object().ok_or_else(|| format!("{value} is not an object"))?;
    let (mut name, mut port, mut state) = (None, 0, "NORMAL");
    let (mut until_ms, mut upgrade_domain) = (u64::MAX, None);
    for (key, value) in object {
        let wrong = || format!("{value} is no {key}");
        match key.as_str() {
            "hostName" => name = Some(value.as_str().ok_or_else(wrong)?),
            "port" => {
                let number = value.as_u64().and_then(|port| u16::try_from(port).ok());
                port = number.ok_or_else(wrong)?;
            }
            "adminState" => state = value.as_str().ok_or_else(wrong)?,
            "maintenanceExpireTimeInMS" => until_ms = value.as_u64().ok_or_else(wrong)?,
            "upgradeDomain" if value.is_null() => upgrade_domain = None,
            "upgradeDomain" => upgrade_domain = Some(value.as_str().ok_or_else(wrong)?.to_string()),
            _ => return Err(format!("{key} is no property of a host")),
        }
    }
    let intent = match state {
        "DECOMMISSIONED" => AdminIntent::Decommission,
        "IN_MAINTENANCE" => AdminIntent::Maintenance { until_ms },
        // The others name states that nobody can wish for.
        "NORMAL" | "DECOMMISSION_INPROGRESS" | "ENTERING_MAINTENANCE" => AdminIntent::InService,
        _ => return Err(format!("{state} is no adminState")),
    };
    let name = name.ok_or_else(|| format!("{value} has no hostName"))?;
    Ok(Entry { host: Host::new(name, port), intent, upgrade_domain })
}
