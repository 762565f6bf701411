//! What operators have said of DataNodes by name, in the NameNode's folder.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use cairn_redundancy::{AdminIntent, NodeAddress};
use serde_json::{Value, json};

use super::{Entry, Host, Hosts, OWN_FILE, read_own};
use crate::host_files::TopologyError;

/// Why what an operator says cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// No DataNode has that name.
    #[error("no DataNode is {0}")]
    Unknown(String),
    /// The settings' lists say that it is to leave, and win against nobody.
    #[error(
        "{0} is to leave by the lists that the NameNode's settings name: take it out there, and have nodes refreshed"
    )]
    Listed(String),
    /// The lists cannot be read.
    #[error(transparent)]
    Lists(#[from] TopologyError),
    /// The file cannot be written.
    #[error("cannot write what is wanted of DataNodes: {0}")]
    Write(#[from] io::Error),
}

/// Keeps what is wanted of the DataNodes among `known` that `names` mean; returns these.
pub(crate) fn set(
    name_dir: &Path,
    hosts: &Hosts,
    known: &[NodeAddress],
    names: &[String],
    intent: AdminIntent,
) -> Result<Vec<NodeAddress>, StateError> {
    let mut meant: Vec<NodeAddress> = Vec::new();
    for name in names {
        let host = Host::parse(name);
        let before = meant.len();
        let fitting = known.iter().filter(|node| host.fits(node) || node.host == *name);
        meant.extend(fitting.cloned());
        if meant.len() == before {
            return Err(StateError::Unknown(name.clone()));
        }
    }
    meant.sort_by_key(ToString::to_string);
    meant.dedup_by_key(|node| node.to_string());
    let mut entries = read_own(name_dir)?;
    entries.retain(|entry| !meant.iter().any(|node| entry.host.fits(node)));
    for node in &meant {
        if intent == AdminIntent::InService {
            if hosts.listed_intent(node) != AdminIntent::InService {
                return Err(StateError::Listed(node.to_string()));
            }
            continue;
        }
        let host = Host { name: node.host.clone(), port: node.xfer_port, addresses: Vec::new() };
        entries.push(Entry { host, intent, upgrade_domain: None });
    }
    write(name_dir, &entries)?;
    Ok(meant)
}

/// Writes another file and puts it in the place of the one there is.
fn write(name_dir: &Path, entries: &[Entry]) -> io::Result<()> {
    let text = Value::from(entries.iter().map(entry_json).collect::<Vec<_>>()).to_string();
    let new = name_dir.join(format!("{OWN_FILE}.new"));
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, name_dir.join(OWN_FILE))?;
    fs::File::open(name_dir)?.sync_all()
}

fn entry_json(entry: &Entry) -> Value {
    let Host { name, port, .. } = &entry.host;
    match entry.intent {
        AdminIntent::InService => json!({"hostName": name, "port": port}),
        AdminIntent::Decommission => {
            json!({"hostName": name, "port": port, "adminState": "DECOMMISSIONED"})
        }
        AdminIntent::Maintenance { until_ms } => json!({
            "hostName": name, "port": port, "adminState": "IN_MAINTENANCE",
            "maintenanceExpireTimeInMS": until_ms,
        }),
    }
}
