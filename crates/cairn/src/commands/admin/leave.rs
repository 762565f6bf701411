//! DataNodes that leave for good or for a while, and those that are taken back.
//!
//! The NameNode keeps what is wanted of each, over restarts, beside the lists of `dfs.hosts`.

use super::operator::Operator;
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::{AdminState, DataNodeFilter, DataNodeInfo, LeavingStatus, WantedState};
use cairn_conf::value;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often progress is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// DataNodes by name.
#[derive(Debug, clap::Args)]
pub struct Nodes {
    /// Name or address of a host for all DataNodes on it, or with the port of data transfer
    #[arg(required = true, value_name = "HOST[:PORT]")]
    nodes: Vec<String>,
}

/// `cairn admin decommission`.
#[derive(Debug, clap::Args)]
pub struct Decommission {
    /// Do not wait for the end
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    nodes: Nodes,
}

/// `cairn admin maintenance`.
#[derive(Debug, clap::Args)]
pub struct Maintenance {
    /// Do not wait until they may be switched off
    #[arg(long)]
    no_wait: bool,
    /// For how long, such as 2h: what they hold is rebuilt elsewhere after that (default: until they are
    /// taken back)
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    #[command(flatten)]
    nodes: Nodes,
}

/// `cairn admin recommission`.
#[derive(Debug, clap::Args)]
pub struct Recommission {
    #[command(flatten)]
    nodes: Nodes,
}

impl Decommission {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let changed = change(operator, &self.nodes, WantedState::Decommissioned).await?;
        wait(operator, changed, AdminState::Decommissioned, self.no_wait).await
    }
}

impl Maintenance {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let until_ms = match &self.time {
            None => None,
            Some(text) => {
                let time = value::duration(text, Duration::from_secs(1))
                    .context("--for takes a time such as 2h")?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some((now + time).as_millis() as u64)
            }
        };
        let changed =
            change(operator, &self.nodes, WantedState::InMaintenance { until_ms }).await?;
        wait(operator, changed, AdminState::InMaintenance, self.no_wait).await
    }
}

impl Recommission {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        for name in change(operator, &self.nodes, WantedState::Normal).await? {
            told(operator, &name, "in service");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Tells the NameNode what is wanted; returns the addresses of the DataNodes that are meant.
async fn change(operator: &Operator<'_>, nodes: &Nodes, state: WantedState) -> Result<Vec<String>> {
    let changed = operator.fs.set_datanode_state(&nodes.nodes, state).await;
    changed.map_err(|error| match error.is_unknown_method() {
        true => anyhow::anyhow!(
            "this NameNode is not of Cairn: name the DataNodes in the file of its dfs.hosts.exclude, \
             and say cairn admin refresh-nodes"
        ),
        false => error.into(),
    })
}

fn told(operator: &Operator<'_>, name: &str, state: &str) {
    if operator.json {
        crate::say!("{}", json!({"datanode": name, "state": state}));
    } else {
        crate::say!("{name}: {state}");
    }
}

async fn wait(
    operator: &Operator<'_>,
    names: Vec<String>,
    wanted: AdminState,
    no_wait: bool,
) -> Result<ExitCode> {
    if no_wait {
        names.iter().for_each(|name| told(operator, name, "begins to leave"));
        return Ok(ExitCode::SUCCESS);
    }
    tokio::select! {
        done = until(operator, names, wanted) => done,
        stopped = output::told_to_stop() => {
            crate::complain!("cairn: it goes on without being watched; cairn admin recommission ends it");
            Ok(ExitCode::from(stopped?))
        }
    }
}

/// Shows how far DataNodes are until all have left.
async fn until(
    operator: &Operator<'_>,
    mut names: Vec<String>,
    wanted: AdminState,
) -> Result<ExitCode> {
    let bar = output::byte_bar(0, "leaving");
    let mut held_back: BTreeMap<String, String> = BTreeMap::new();
    while !names.is_empty() {
        let nodes = operator.fs.datanodes(DataNodeFilter::All).await?;
        let mut waiting = Vec::new();
        let (mut left, mut done) = (0, 0);
        for name in names {
            let Some(node) = nodes.iter().find(|node| node.addr.xfer_addr() == name) else {
                bail!("{name}: the NameNode knows it no more");
            };
            if node.admin_state == wanted {
                bar.suspend(|| told(operator, &name, state(wanted)));
                continue;
            }
            if !is_on_its_way(node) {
                bail!("{name}: was taken back into service");
            }
            if let Some(leaving) = &node.leaving {
                (left, done) = (left + leaving.bytes_left, done + leaving.bytes_done);
                if let Some(why) = why(leaving)
                    && held_back.insert(name.clone(), why.clone()).as_ref() != Some(&why)
                {
                    bar.suspend(|| crate::complain!("{name}: held back: {why}"));
                }
            }
            waiting.push(name);
        }
        bar.set_length(left + done);
        bar.set_position(done);
        names = waiting;
        if !names.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    }
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

fn is_on_its_way(node: &DataNodeInfo) -> bool {
    matches!(node.admin_state, AdminState::Decommissioning | AdminState::EnteringMaintenance)
}

fn state(wanted: AdminState) -> &'static str {
    match wanted {
        AdminState::Decommissioned => "decommissioned; it may be switched off",
        _ => "in maintenance; it may be switched off",
    }
}

/// What keeps a DataNode, if something does.
fn why(leaving: &LeavingStatus) -> Option<String> {
    if let Some(why) = &leaving.held_back {
        return Some(why.clone());
    }
    // While something moves, blocks wait for their turn.
    if leaving.bytes_per_second > 0 {
        return None;
    }
    leaving.blocks.first().map(|(block, why)| format!("{block}: {why}"))
}
