//! What an operator asks of the NameNode itself.

use super::operator::Operator;
use anyhow::{Result, bail};
use cairn_client::{AdminState, DataNodeFilter, SafeModeAction};
use cairn_conf::value;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// How often the end of safe mode is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// What `--before-shutdown` asks for: a checkpoint if the last is older, or so many entries behind.
///
/// Source: Hadoop 3.5.0 `DFSAdmin#saveNamespace`, `dfs.namenode.checkpoint.period` and `.txns`.
const WINDOW: Duration = Duration::from_secs(10_800);
const GAP: u64 = 3_000_000;

/// Directories.
#[derive(Debug, clap::Args)]
pub struct Paths {
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Paths {
    pub async fn allow_snapshot(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        for path in &self.paths {
            let path = operator.at(path)?;
            operator.fs.allow_snapshot(&path).await?;
            crate::say!("Allowing snapshot on {path} succeeded");
        }
        Ok(ExitCode::SUCCESS)
    }

    pub async fn disallow_snapshot(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        for path in &self.paths {
            let path = operator.at(path)?;
            operator.fs.disallow_snapshot(&path).await?;
            crate::say!("Disallowing snapshot on {path} succeeded");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin metasave`.
#[derive(Debug, clap::Args)]
pub struct Metasave {
    /// The end of the file's name; it begins with metasave-
    file: String,
}

impl Metasave {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        operator.fs.metasave(&self.file).await?;
        let addr = operator.fs.namenode().addr().to_string();
        crate::say!(
            "Created metasave file {} in the log directory of namenode hdfs://{addr}",
            self.file
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin open-files`.
#[derive(Debug, clap::Args)]
pub struct OpenFiles {
    /// Only those that keep DataNodes from leaving
    #[arg(long)]
    blocking_decommission: bool,
    /// Only those below this path
    #[arg(long, value_name = "PATH", default_value = "/")]
    path: String,
}

impl OpenFiles {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let path = operator.at(&self.path)?;
        let files = operator.fs.open_files(&path, self.blocking_decommission).await?;
        if !operator.json {
            crate::say!("{:<20}\t{:<20}\t{}", "Client Host", "Client Name", "Open File Path");
        }
        for file in files {
            if operator.json {
                let value = json!({"path": file.path, "client": file.client, "machine": file.machine,
                                   "file_id": file.id});
                crate::say!("{value}");
            } else {
                crate::say!("{:<20}\t{:<20}\t{}", file.machine, file.client, file.path);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin provision-snapshot-trash`.
#[derive(Debug, clap::Args)]
pub struct ProvisionTrash {
    /// Of all snapshottable directories
    #[arg(long, conflicts_with = "path")]
    all: bool,
    /// Of this one
    #[arg(required_unless_present = "all")]
    path: Option<String>,
}

impl ProvisionTrash {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let directories = operator.fs.snapshottable_directories().await?;
        let known: Vec<String> =
            directories.into_iter().map(|directory| directory.status.path).collect();
        let wanted = match &self.path {
            None => known,
            Some(path) => {
                let path = operator.at(path)?;
                operator.fs.require(&path).await?;
                if !known.contains(&path) {
                    bail!("{path} is not a snapshottable directory");
                }
                vec![path]
            }
        };
        for path in wanted {
            let trash = operator.fs.provision_snapshot_trash(&path).await?;
            crate::say!("Successfully provisioned snapshot trash at {trash}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub async fn refresh_nodes(operator: &Operator<'_>) -> Result<ExitCode> {
    operator.fs.refresh_nodes().await?;
    crate::say!("Refresh nodes successful");
    Ok(ExitCode::SUCCESS)
}

/// `cairn admin restore-failed-storage`.
#[derive(Debug, clap::Args)]
pub struct RestoreFailedStorage {
    /// Take them back, do not, or tell only
    #[arg(value_parser = ["true", "false", "check"])]
    what: String,
}

impl RestoreFailedStorage {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let is_on = operator.fs.restore_failed_storage(&self.what).await?;
        crate::say!("restoreFailedStorage is set to {is_on}");
        Ok(ExitCode::SUCCESS)
    }
}

pub async fn roll_edits(operator: &Operator<'_>) -> Result<ExitCode> {
    let first = operator.fs.roll_edits().await?;
    crate::say!("Successfully rolled edit logs.");
    crate::say!("New segment starts at txid {first}");
    Ok(ExitCode::SUCCESS)
}

/// `cairn admin safemode`.
#[derive(Debug, clap::Args)]
pub struct SafeMode {
    /// What to do
    #[arg(value_enum)]
    what: SafeModeWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SafeModeWord {
    /// Begin it: nothing is changed, mended or deleted
    Enter,
    /// End it
    Leave,
    /// Tell whether it is on
    Get,
    /// Wait until it is off
    Wait,
    /// End it even though DataNodes have told of blocks of the future
    #[value(alias = "forceExit")]
    ForceExit,
}

impl SafeMode {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let action = match self.what {
            SafeModeWord::Enter => SafeModeAction::Enter,
            SafeModeWord::Leave => SafeModeAction::Leave,
            SafeModeWord::Get | SafeModeWord::Wait => SafeModeAction::Get,
            SafeModeWord::ForceExit => SafeModeAction::ForceExit,
        };
        let mut is_on = operator.fs.safe_mode(action).await?;
        while is_on && self.what == SafeModeWord::Wait {
            tokio::time::sleep(LOOK).await;
            is_on = operator.fs.safe_mode(action).await?;
        }
        if operator.json {
            crate::say!("{}", json!({"safe_mode": is_on}));
        } else {
            crate::say!("Safe mode is {}", if is_on { "ON" } else { "OFF" });
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin save-namespace`.
#[derive(Debug, clap::Args)]
pub struct SaveNamespace {
    /// Only if the last time is long ago, or much has been changed since
    #[arg(long)]
    before_shutdown: bool,
}

impl SaveNamespace {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let (window, gap) = if self.before_shutdown { (WINDOW, GAP) } else { (Duration::ZERO, 0) };
        let saved = operator.fs.save_namespace(window.as_millis() as u64, gap).await?;
        let told =
            if saved { "Save namespace successful" } else { "No extra checkpoint has been made" };
        crate::say!("{told}");
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin set-balancer-bandwidth`.
#[derive(Debug, clap::Args)]
pub struct SetBandwidth {
    /// Bytes a second: a number, or one with a unit such as 10m
    bandwidth: String,
}

impl SetBandwidth {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let bandwidth = value::bytes(&self.bandwidth)?;
        operator.fs.set_balancer_bandwidth(i64::try_from(bandwidth)?).await?;
        crate::say!("Balancer bandwidth is set to {bandwidth}");
        Ok(ExitCode::SUCCESS)
    }
}

/// The racks, and in each its DataNodes.
///
/// Source: Hadoop 3.5.0 `DFSAdmin#printTopology`.
pub async fn topology(operator: &Operator<'_>) -> Result<ExitCode> {
    let mut racks: BTreeMap<String, Vec<(String, String, AdminState)>> = BTreeMap::new();
    for node in operator.fs.datanodes(DataNodeFilter::All).await? {
        let row = (node.addr.xfer_addr(), node.addr.host, node.admin_state);
        racks.entry(node.rack).or_default().push(row);
    }
    for (rack, mut nodes) in racks {
        nodes.sort_by(|a, b| a.0.cmp(&b.0));
        if operator.json {
            let nodes = nodes.iter().map(|(address, host, state)| {
                json!({"address": address, "host": host, "state": format!("{state:?}")})
            });
            crate::say!("{}", json!({"rack": rack, "datanodes": nodes.collect::<Vec<_>>()}));
            continue;
        }
        crate::say!("Rack: {rack}");
        for (address, host, state) in nodes {
            crate::say!("  {address} ({host}) {}", state_text(state));
        }
        crate::say!("");
    }
    Ok(ExitCode::SUCCESS)
}

/// Source: Hadoop 3.5.0 `DatanodeInfo.AdminStates`.
fn state_text(state: AdminState) -> &'static str {
    match state {
        AdminState::Normal => "In Service",
        AdminState::Decommissioning => "Decommission In Progress",
        AdminState::Decommissioned => "Decommissioned",
        AdminState::EnteringMaintenance => "Entering Maintenance",
        AdminState::InMaintenance => "In Maintenance",
    }
}
