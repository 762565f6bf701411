//! Which rack a host is in, and which DataNodes may serve.
//!
//! Racks come from a table, from a program, or from the configuration; what the first and the last do not
//! know is in `/default-rack`. A DataNode is looked up by `address:port`, `name:port`, address, then name, so that
//! many DataNodes of one host can be in different racks. Who may serve is in [`Hosts`].
//!
//! Source: Hadoop 3.5.0 `TableMapping`, `ScriptBasedMapping`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, RwLock};

use cairn_namespace::orders::NodeOrder;
use cairn_process::held::{held_read, held_write};
use cairn_redundancy::NodeAddress;
use tracing::warn;

use crate::config::{NameNodeConfig, RackSource};
use crate::host_files::read_text;
use crate::hosts::Hosts;

pub use crate::host_files::TopologyError;

#[cfg(test)]
mod tests;

/// The rack of hosts that nothing else is known of.
pub const DEFAULT_RACK: &str = "/default-rack";

/// Longest output of a program that is read, bytes.
const MAX_OUTPUT_LEN: usize = 1 << 20;

/// Racks and the lists of DataNodes that may serve. By default nothing is known of any.
#[derive(Debug, Default)]
pub struct Topology {
    source: RackSource,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Name, address, `name:port` or `address:port` to rack: the table, or a program's answers.
    racks: BTreeMap<String, String>,
    hosts: Arc<Hosts>,
}

impl Topology {
    /// Reads what the settings name. A rack table that cannot be read is warned of and taken as
    /// empty, as Hadoop does; an unreadable list of hosts is an error. May ask for addresses of names.
    pub fn open(config: &NameNodeConfig, orders: &[NodeOrder]) -> Result<Topology, TopologyError> {
        let topology = Topology { source: config.racks.clone(), state: RwLock::default() };
        topology.refresh(Hosts::read(config, orders)?);
        Ok(topology)
    }

    /// Takes other lists of hosts, reads racks again (`refreshNodes`), and forgets a program's answers.
    pub fn refresh(&self, hosts: Hosts) {
        let state = State { racks: self.read_racks(), hosts: Arc::new(hosts) };
        *held_write(&self.state) = state;
    }

    fn read_racks(&self) -> BTreeMap<String, String> {
        match &self.source {
            RackSource::Default | RackSource::Script(_) => BTreeMap::new(),
            RackSource::Fixed(pairs) => pairs.iter().cloned().collect(),
            RackSource::Table(path) => match read_text(path) {
                Ok(text) => parse_table(&text),
                Err(error) => {
                    warn!(%error, "the rack table is not used");
                    BTreeMap::new()
                }
            },
        }
    }

    /// The rack of a DataNode; `None` if it is for a program to say, and that does not.
    pub async fn rack_of_node(&self, address: &NodeAddress) -> Option<String> {
        let port = address.xfer_port;
        let names = [
            format!("{}:{port}", address.ip),
            format!("{}:{port}", address.host),
            address.ip.clone(),
            address.host.clone(),
        ];
        if let Some(rack) = self.known_rack(&names) {
            return Some(rack);
        }
        self.ask_program(&address.ip).await
    }

    /// The rack of a client's host, without asking a program (a client must not wait for one).
    pub fn rack_of_client(&self, ip: &str) -> Option<String> {
        self.known_rack(&[ip.to_string()])
    }

    fn known_rack(&self, names: &[String]) -> Option<String> {
        let state = held_read(&self.state);
        names.iter().find_map(|name| state.racks.get(name)).map(|rack| normalize(rack))
    }

    async fn ask_program(&self, ip: &str) -> Option<String> {
        let RackSource::Script(path) = &self.source else {
            return Some(DEFAULT_RACK.to_string());
        };
        match run_program(path, ip).await {
            Ok(rack) => {
                let mut state = held_write(&self.state);
                state.racks.insert(ip.to_string(), rack.clone());
                Some(rack)
            }
            Err(error) => {
                warn!(%error, program = %path.display(), host = ip, "no rack");
                None
            }
        }
    }

    /// Which DataNodes may serve, and what is wanted of each.
    pub fn hosts(&self) -> Arc<Hosts> {
        Arc::clone(&held_read(&self.state).hosts)
    }
}

/// A path that starts with one slash and ends with none.
fn normalize(rack: &str) -> String {
    format!("/{}", rack.trim_matches('/'))
}

/// `host rack` in each line; others are left out. Source: Hadoop 3.5.0 `TableMapping`.
fn parse_table(text: &str) -> BTreeMap<String, String> {
    let mut racks = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split_whitespace().collect();
        match columns[..] {
            [host, rack] => {
                racks.insert(host.to_string(), rack.to_string());
            }
            _ => warn!(line, "a line of the rack table has not two columns"),
        }
    }
    racks
}

/// Runs `path ip` and reads the one rack that it prints.
///
/// Source: Hadoop 3.5.0 `ScriptBasedMapping.RawScriptBasedMapping#resolve`.
async fn run_program(path: &Path, ip: &str) -> io::Result<String> {
    let (path, ip) = (path.to_path_buf(), ip.to_string());
    let run = move || std::process::Command::new(path).arg(ip).output();
    let output = tokio::task::spawn_blocking(run).await.map_err(io::Error::other)??;
    if !output.status.success() {
        return Err(io::Error::other(format!("it ended with {}", output.status)));
    }
    let printed = &output.stdout[..output.stdout.len().min(MAX_OUTPUT_LEN)];
    let printed = String::from_utf8_lossy(printed);
    match printed.split_whitespace().collect::<Vec<_>>()[..] {
        [rack] => Ok(normalize(rack)),
        [] => Err(io::Error::other("it printed nothing")),
        _ => Err(io::Error::other("it printed more than one rack")),
    }
}
