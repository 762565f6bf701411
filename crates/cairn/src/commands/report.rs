//! `cairn report`: the state and the space of the cluster.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{
    DataNodeFilter, DataNodeInfo, FileSystem, FsStats, LeavingStatus, SafeModeAction,
};
use cairn_stripe::BlockId;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Flags of `cairn report`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints totals and one row a DataNode.
pub async fn run(settings: &Settings, _: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let stats = fs.stats().await?;
    let safe_mode = fs.safe_mode(SafeModeAction::Get).await?;
    let live = fs.datanodes(DataNodeFilter::Live).await?;
    let dead = fs.datanodes(DataNodeFilter::Dead).await?;
    if settings.json {
        crate::say!("{}", as_json(&stats, safe_mode, &live, &dead));
    } else {
        output::print(format_args!("{}", as_text(&stats, safe_mode, &live, &dead)));
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(
    stats: &FsStats,
    safe_mode: bool,
    live: &[DataNodeInfo],
    dead: &[DataNodeInfo],
) -> Value {
    let nodes = |nodes: &[DataNodeInfo]| -> Vec<Value> { nodes.iter().map(node_json).collect() };
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

fn node_json(node: &DataNodeInfo) -> Value {
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
        "upgrade_domain": node.upgrade_domain,
        "leaving": node.leaving.as_ref().map(leaving_json),
    })
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
    live: &[DataNodeInfo],
    dead: &[DataNodeInfo],
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
    let head = ["DataNode", "rack", "state", "used", "remaining", "blocks"];
    let mut nodes = vec![head.map(str::to_string).to_vec()];
    nodes.extend(live.iter().map(|node| node_row(node, &format!("{:?}", node.admin_state))));
    nodes.extend(dead.iter().map(|node| node_row(node, "Dead")));
    let leaving = leaving_text(live.iter().chain(dead));
    format!("{}\n{}{leaving}", output::table(&totals), output::table(&nodes))
}

fn node_row(node: &DataNodeInfo, state: &str) -> Vec<String> {
    vec![
        format!("{} ({})", node.addr.xfer_addr(), node.addr.host),
        node.rack.clone(),
        state.to_lowercase(),
        output::size(node.used),
        output::size(node.remaining),
        node.block_count.to_string(),
    ]
}
