//! What operators have said of DataNodes by name: in the log, or in a file of the NameNode's folder while the log is of an
//! earlier version.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use cairn_namespace::orders::{NodeName, NodeOrder};
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

/// What changes of what operators have ordered by name.
pub(crate) struct Change {
    /// The DataNodes that are meant.
    pub meant: Vec<NodeAddress>,
    /// Names that nothing is ordered of any more.
    pub withdrawn: Vec<NodeName>,
    /// What is ordered.
    pub ordered: Vec<NodeOrder>,
    /// All that is ordered after it.
    entries: Vec<Entry>,
}

/// What it takes to have `intent` wanted of the DataNodes among `known` that `names` mean.
pub(crate) fn change(
    hosts: &Hosts,
    known: &[NodeAddress],
    names: &[String],
    intent: AdminIntent,
) -> Result<Change, StateError> {
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
    let is_meant = |entry: &&Entry| meant.iter().any(|node| entry.host.fits(node));
    let withdrawn = hosts.own.iter().filter(is_meant).map(|entry| entry.host.told()).collect();
    let mut entries: Vec<Entry> =
        hosts.own.iter().filter(|entry| !is_meant(entry)).cloned().collect();
    let mut ordered = Vec::new();
    for node in &meant {
        if intent == AdminIntent::InService && hosts.listed_intent(node) != intent {
            return Err(StateError::Listed(node.to_string()));
        }
        let host = Host { name: node.host.clone(), port: node.xfer_port, addresses: Vec::new() };
        let entry = Entry { host, intent, upgrade_domain: None };
        if let Some(order) = entry.order() {
            ordered.push(order);
            entries.push(entry);
        }
    }
    Ok(Change { meant, withdrawn, ordered, entries })
}

/// What the file says.
pub(crate) fn read_orders(name_dir: &Path) -> Result<Vec<NodeOrder>, TopologyError> {
    Ok(read_own(name_dir)?.iter().filter_map(Entry::order).collect())
}

/// Writes another file with what is ordered after a change, and puts it in the place of the one there is.
pub(crate) fn write(name_dir: &Path, change: &Change) -> io::Result<()> {
    let text = Value::from(change.entries.iter().map(entry_json).collect::<Vec<_>>()).to_string();
    let new = name_dir.join(format!("{OWN_FILE}.new"));
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, name_dir.join(OWN_FILE))?;
    fs::File::open(name_dir)?.sync_all()
}

/// The log has what the file says: it is kept under another name, which nothing reads.
pub(crate) fn put_aside(name_dir: &Path) -> io::Result<()> {
    fs::rename(name_dir.join(OWN_FILE), name_dir.join(format!("{OWN_FILE}.logged")))?;
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
