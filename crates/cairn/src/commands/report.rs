//! `cairn report`: the state and the space of the cluster.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{
    AdminState, DataNodeFilter, DataNodeInfo, FileSystem, FsStats, LeavingStatus, SafeModeAction,
};
use cairn_stripe::BlockId;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Flags of `cairn report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only DataNodes that live
    #[arg(long)]
    live: bool,
    /// Only DataNodes that do not
    #[arg(long)]
    dead: bool,
    /// Only DataNodes that are being decommissioned
    #[arg(long)]
    decommissioning: bool,
    /// Only DataNodes that are about to be in maintenance
    #[arg(long, alias = "enteringmaintenance")]
    entering_maintenance: bool,
    /// Only DataNodes in maintenance
    #[arg(long, alias = "inmaintenance")]
    in_maintenance: bool,
    /// Only DataNodes that others call slow
    #[arg(long, alias = "slownodes")]
    slow: bool,
}

impl Args {
    /// Whether a DataNode is one of those asked for: of any kind of those named, or of all.
    fn wants(&self, node: &DataNodeInfo, is_live: bool, slow: &[DataNodeInfo]) -> bool {
        let is = |state| node.admin_state == state;
        let is_slow = || slow.iter().any(|slow| slow.addr.uuid == node.addr.uuid);
        let kinds = [
            (self.live, is_live),
            (self.dead, !is_live),
            (self.decommissioning, is(AdminState::Decommissioning)),
            (self.entering_maintenance, is(AdminState::EnteringMaintenance)),
            (self.in_maintenance, is(AdminState::InMaintenance)),
            (self.slow, self.slow && is_slow()),
        ];
        kinds.iter().all(|(wanted, _)| !wanted) || kinds.iter().any(|(wanted, is)| *wanted && *is)
    }
}

/// Prints totals and one row a DataNode.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    show(&fs, settings.json, args).await
}

/// The same, of a file system.
pub async fn show(fs: &FileSystem, json: bool, args: Args) -> Result<ExitCode> {
    let stats = fs.stats().await?;
    let safe_mode = fs.safe_mode(SafeModeAction::Get).await?;
    let slow = if args.slow { fs.slow_datanodes().await? } else { Vec::new() };
    let mut live = fs.datanodes(DataNodeFilter::Live).await?;
    live.retain(|node| args.wants(node, true, &slow));
    let mut dead = fs.datanodes(DataNodeFilter::Dead).await?;
    dead.retain(|node| args.wants(node, false, &slow));
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64);
    if json {
        crate::say!("{}", as_json(&stats, safe_mode, (&live, &dead), now_ms));
    } else {
        output::print(format_args!("{}", as_text(&stats, safe_mode, (&live, &dead), now_ms)));
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(
    stats: &FsStats,
    safe_mode: bool,
    (live, dead): (&[DataNodeInfo], &[DataNodeInfo]),
    now_ms: u64,
) -> Value {
    let nodes = |nodes: &[DataNodeInfo]| -> Vec<Value> {
        nodes.iter().map(|node| node_json(node, now_ms)).collect()
    };
    json!({
        "safe_mode": safe_mode,
        "capacity": stats.capacity,
        "used": stats.used,
        "remaining": stats.remaining,
        "under_replicated": stats.under_replicated,
        "corrupt_blocks": stats.corrupt_blocks,
        "missing_blocks": stats.missing_blocks,
        "pending_deletion_blocks": stats.pending_deletion_blocks,
        "live": nodes(live),
        "dead": nodes(dead),
    })
}

fn node_json(node: &DataNodeInfo, now_ms: u64) -> Value {
    json!({
        "address": node.addr.xfer_addr(),
        "host": node.addr.host,
        "uuid": node.addr.uuid,
        "rack": node.rack,
        "state": format!("{:?}", node.admin_state),
        "capacity": node.capacity,
        "used": node.used,
        "remaining": node.remaining,
        "blocks": node.block_count,
        "last_heartbeat_ms": node.last_heartbeat_ms,
        "last_contact_seconds": last_contact(node, now_ms),
        "failed_volumes": node.failed_volumes,
        "upgrade_domain": node.upgrade_domain,
        "leaving": node.leaving.as_ref().map(leaving_json),
    })
}

/// Seconds since the NameNode has heard of it, if it ever has; as exact as the clocks of both machines agree.
fn last_contact(node: &DataNodeInfo, now_ms: u64) -> Option<u64> {
    let heard = Some(node.last_heartbeat_ms).filter(|heard| *heard > 0)?;
    Some(now_ms.saturating_sub(heard) / 1000)
}

fn leaving_json(leaving: &LeavingStatus) -> Value {
    let blocks = leaving.blocks.iter();
    let blocks = blocks.map(|(id, why)| json!({"block": id.to_string(), "held_back": why}));
    json!({
        "counted": leaving.counted,
        "blocks_left": leaving.blocks_left,
        "bytes_left": leaving.bytes_left,
        "blocks_done": leaving.blocks_done,
        "bytes_done": leaving.bytes_done,
        "bytes_per_second": leaving.bytes_per_second,
        "seconds_left": leaving.seconds_left,
        "age_ms": leaving.age_ms,
        "held_back": leaving.held_back,
        "blocks": blocks.collect::<Vec<Value>>(),
    })
}

/// A paragraph for each DataNode that leaves: how far it is, and what holds it back.
fn leaving_text<'a>(nodes: impl Iterator<Item = &'a DataNodeInfo>) -> String {
    let mut text = String::new();
    for node in nodes {
        let Some(leaving) = &node.leaving else { continue };
        let more = if leaving.counted { "" } else { " or more" };
        let left = match leaving.seconds_left {
            Some(seconds) => format!("about {seconds} s left"),
            None => "no estimate, since nothing has moved of late".to_string(),
        };
        text.push_str(&format!(
            "\n{} ({}) leaves: {} blocks{more} ({}) left, {} ({}) done, {}/s, {left}\n",
            node.addr.xfer_addr(),
            node.addr.host,
            leaving.blocks_left,
            output::size(leaving.bytes_left),
            leaving.blocks_done,
            output::size(leaving.bytes_done),
            output::size(leaving.bytes_per_second),
        ));
        if let Some(why) = &leaving.held_back {
            text.push_str(&format!("  held back: {why}\n"));
        }
        // One line for each reason, with how many of the blocks told of it holds and one of these.
        let mut reasons: Vec<(&str, usize, &BlockId)> = Vec::new();
        for (id, why) in &leaving.blocks {
            match reasons.iter_mut().find(|(reason, ..)| reason == why) {
                Some((_, count, _)) => *count += 1,
                None => reasons.push((why.as_str(), 1, id)),
            }
        }
        for (why, count, id) in reasons {
            let of = leaving.blocks.len();
            text.push_str(&format!("  {count} of the first {of} blocks, such as {id}: {why}\n"));
        }
    }
    text
}

fn as_text(
    stats: &FsStats,
    safe_mode: bool,
    (live, dead): (&[DataNodeInfo], &[DataNodeInfo]),
    now_ms: u64,
) -> String {
    let row = |name: &str, value: String| vec![name.to_string(), value];
    let totals = [
        row("safe mode", if safe_mode { "on" } else { "off" }.into()),
        row("capacity", output::size(stats.capacity)),
        row("used", output::size(stats.used)),
        row("remaining", output::size(stats.remaining)),
        row("with too little redundancy", stats.under_replicated.to_string()),
        row("with corrupt replicas", stats.corrupt_blocks.to_string()),
        row("missing", stats.missing_blocks.to_string()),
        row("waiting for deletion", stats.pending_deletion_blocks.to_string()),
    ];
    let head = [
        "DataNode",
        "rack",
        "state",
        "used",
        "remaining",
        "blocks",
        "last contact",
        "failed volumes",
    ];
    let mut nodes = vec![head.map(str::to_string).to_vec()];
    nodes.extend(live.iter().map(|node| node_row(node, now_ms, state(node))));
    nodes.extend(dead.iter().map(|node| node_row(node, now_ms, state_of_dead(node))));
    let leaving = leaving_text(live.iter().chain(dead));
    format!("{}\n{}{leaving}", output::table(&totals), output::table(&nodes))
}

fn state(node: &DataNodeInfo) -> String {
    format!("{:?}", node.admin_state).to_lowercase()
}

/// One that may be off is no loss; the operator has seen to that.
fn state_of_dead(node: &DataNodeInfo) -> String {
    match node.admin_state {
        AdminState::InMaintenance | AdminState::Decommissioned => format!("{}, off", state(node)),
        _ => "dead".to_string(),
    }
}

fn node_row(node: &DataNodeInfo, now_ms: u64, state: String) -> Vec<String> {
    let seconds = last_contact(node, now_ms);
    vec![
        format!("{} ({})", node.addr.xfer_addr(), node.addr.host),
        node.rack.clone(),
        state,
        output::size(node.used),
        output::size(node.remaining),
        node.block_count.to_string(),
        seconds.map_or("never".to_string(), |seconds| format!("{seconds} s")),
        node.failed_volumes.map_or(String::new(), |failed| failed.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::DataNodeAddr;

    fn node(admin_state: AdminState, last_heartbeat_ms: u64) -> DataNodeInfo {
        let addr = DataNodeAddr {
            ip: "127.0.0.1".into(),
            host: "dn".into(),
            uuid: "u".into(),
            xfer_port: 9866,
            info_port: 9864,
            info_secure_port: 0,
            ipc_port: 9867,
        };
        DataNodeInfo {
            addr,
            rack: "/r".into(),
            admin_state,
            capacity: 3,
            used: 1,
            non_dfs_used: 0,
            remaining: 2,
            block_pool_used: 1,
            xceiver_count: 0,
            last_heartbeat_ms,
            last_block_report_ms: 0,
            block_count: 5,
            upgrade_domain: None,
            failed_volumes: Some(2),
            leaving: None,
        }
    }

    #[test]
    fn who_may_be_off_is_not_dead() {
        for (admin_state, want) in [
            (AdminState::InMaintenance, "inmaintenance, off"),
            (AdminState::Decommissioned, "decommissioned, off"),
            (AdminState::Decommissioning, "dead"),
            (AdminState::Normal, "dead"),
        ] {
            assert_eq!(state_of_dead(&node(admin_state, 0)), want);
        }
    }

    #[test]
    fn silence_and_lost_volumes_are_told() {
        let (heard, never) = (node(AdminState::Normal, 5_000), node(AdminState::Normal, 0));
        let row = node_row(&heard, 12_900, state(&heard));
        assert_eq!(row[2..], ["normal", "1 B", "2 B", "5", "7 s", "2"]);
        let json = node_json(&heard, 12_900);
        assert_eq!(
            (&json["last_contact_seconds"], &json["failed_volumes"]),
            (&7.into(), &2.into())
        );
        assert_eq!(last_contact(&never, 12_900), None);
        assert_eq!(last_contact(&heard, 4_000), Some(0), "clocks that differ");
    }
}
