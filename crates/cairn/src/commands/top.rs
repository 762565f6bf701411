//! `cairn top`: what a cluster does, again and again on a terminal.
//!
//! Rates come from the servers' own counters (`/prom`), states from the NameNode's answers.

use super::admin::members::Seen;
use super::pages::{self, PageServer, Pages};
use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{DataNodeFilter, DataNodeInfo, FileSystem, FsStats, RedundancyStats};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a server's page may take; one that takes longer counts as silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Rows of methods and of DataNodes that are shown.
const ROWS: usize = 15;
/// Moves the cursor to the corner, and clears what is below it.
const HOME: &str = "\x1b[H\x1b[J";

/// Flags of `cairn top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// End after so many looks (default: when interrupted; on a pipe, after one)
    #[arg(short = 'n', long, value_name = "LOOKS")]
    count: Option<u64>,
}

/// Counters by name, each a sum over its labels, but calls by their method.
type Counters = BTreeMap<String, u64>;

/// What was seen at one time.
struct Look {
    at: Instant,
    namenode: Counters,
    /// By `ip:port` of data transfer; `None` for those that do not answer.
    datanodes: BTreeMap<String, Option<Counters>>,
}

/// Shows the cluster until told to stop.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let conf = settings.configuration()?;
    let fs = FileSystem::connect(config::client::read(&conf)?).await?;
    let pages = Pages::of(&conf, &fs)?;
    let is_terminal = std::io::stdout().is_terminal();
    let count = args.count.or((!is_terminal).then_some(1));
    tokio::select! {
        done = show(settings, &fs, &pages, Duration::from_secs(args.interval), count) => done,
        stopped = output::told_to_stop() => Ok(ExitCode::from(stopped?)),
    }
}

async fn show(
    settings: &Settings,
    fs: &FileSystem,
    pages: &Pages,
    interval: Duration,
    count: Option<u64>,
) -> Result<ExitCode> {
    let mut before = look(fs, pages).await?;
    let mut shown = 0;
    loop {
        tokio::time::sleep(interval).await;
        let now = look(fs, pages).await?;
        let nodes = fs.datanodes(DataNodeFilter::Live).await?;
        let slow = fs.slow_datanodes().await?;
        let (replicated, groups) = (fs.replicated_stats().await?, fs.group_stats().await?);
        let is_several = fs.config().namenode_addresses.len() > 1;
        // Several NameNodes need be no quorum.
        let members = if is_several { Seen::ask(fs).await.ok() } else { None };
        let state = State { stats: fs.stats().await?, nodes, slow, replicated, groups, members };
        if settings.json {
            crate::say!("{}", as_json(&before, &now, &state));
        } else {
            let home = if std::io::stdout().is_terminal() { HOME } else { "" };
            output::print(format_args!("{home}{}", as_text(&before, &now, &state)));
        }
        shown += 1;
        if count.is_some_and(|count| shown >= count) {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

/// What the NameNode answers.
struct State {
    stats: FsStats,
    nodes: Vec<DataNodeInfo>,
    slow: Vec<DataNodeInfo>,
    replicated: RedundancyStats,
    groups: RedundancyStats,
    /// Of NameNodes that are a quorum.
    members: Option<Seen>,
}

async fn look(fs: &FileSystem, pages: &Pages) -> Result<Look> {
    // A member of a quorum that follows tells of its own calls.
    let page = pages.of_leader(fs).await?;
    let namenode = counters(&page).await.unwrap_or_default();
    let nodes = fs.datanodes(DataNodeFilter::Live).await?;
    let mut asked = tokio::task::JoinSet::new();
    for node in nodes {
        let page = pages.of_datanode(&node.addr);
        asked.spawn(async move { (node.addr.xfer_addr(), counters(&page).await) });
    }
    let datanodes = asked.join_all().await.into_iter().collect();
    Ok(Look { at: Instant::now(), namenode, datanodes })
}

/// The counters of a server's page; `None` if it does not answer in time.
async fn counters(page: &PageServer) -> Option<Counters> {
    let mut found = Counters::new();
    let read = pages::get(page, "/prom", |line| {
        if let Some((name, value)) = counter(line) {
            *found.entry(name).or_default() += value;
        }
    });
    tokio::time::timeout(PATIENCE, read).await.ok()?.ok()?;
    Some(found)
}

/// A line of a page: the name, for calls with their method behind it, and the number.
fn counter(line: &str) -> Option<(String, u64)> {
    let (key, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let (name, labels) = key.split_once('{').unwrap_or((key, ""));
    let value = value.parse::<f64>().ok().filter(|value| *value >= 0.0)? as u64;
    let method = labels.split_once("method=\"").and_then(|(_, rest)| rest.split('"').next());
    match method.filter(|_| name.ends_with("_rpc_calls_total")) {
        Some(method) => Some((format!("{name} {method}"), value)),
        None => name.ends_with("_total").then(|| (name.to_string(), value)),
    }
}

/// How much a counter has grown in a second.
fn rate(before: &Counters, now: &Counters, name: &str, time: Duration) -> f64 {
    let grown =
        now.get(name).copied().unwrap_or(0).saturating_sub(before.get(name).copied().unwrap_or(0));
    grown as f64 / time.as_secs_f64().max(1e-9)
}

/// Calls of each method in a second, the most first.
fn calls(before: &Look, now: &Look) -> Vec<(String, f64)> {
    const CALLS: &str = "cairn_namenode_rpc_calls_total ";
    let time = now.at - before.at;
    let names = now.namenode.keys().filter_map(|name| Some((name, name.strip_prefix(CALLS)?)));
    let mut calls: Vec<(String, f64)> = names
        .map(|(name, method)| {
            (method.to_string(), rate(&before.namenode, &now.namenode, name, time))
        })
        .filter(|(_, rate)| *rate > 0.0)
        .collect();
    calls.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    calls
}

/// Bytes a second that a DataNode reads and writes; `None` if it does not answer.
fn flow(before: &Look, now: &Look, node: &str) -> Option<[f64; 2]> {
    let counters = |look: &'_ Look| look.datanodes.get(node).cloned().flatten();
    let (before_it, now_it) = (counters(before)?, counters(now)?);
    let time = now.at - before.at;
    let names = ["cairn_datanode_read_bytes_total", "cairn_datanode_written_bytes_total"];
    Some(names.map(|name| rate(&before_it, &now_it, name, time)))
}

fn as_text(before: &Look, now: &Look, state: &State) -> String {
    let mut text = String::new();
    let State { stats, nodes, slow, replicated, groups, members } = state;
    let flows: Vec<Option<[f64; 2]>> =
        nodes.iter().map(|node| flow(before, now, &node.addr.xfer_addr())).collect();
    let sum = |at: usize| flows.iter().flatten().map(|flow| flow[at]).sum::<f64>() as u64;
    let _ = writeln!(
        text,
        "{} DataNodes, {} of {} used; read {}/s, written {}/s",
        nodes.len(),
        output::size(stats.used),
        output::size(stats.capacity),
        output::size(sum(0)),
        output::size(sum(1))
    );
    let lacking = |stats: &RedundancyStats| {
        format!(
            "{} lack redundancy ({} next to loss), {} missing, {} corrupt",
            stats.low_redundancy,
            stats.highest_priority.unwrap_or(0),
            stats.missing,
            stats.corrupt
        )
    };
    if let Some(members) = members {
        let _ = writeln!(text, "{}", members.summary());
    }
    let _ = writeln!(text, "blocks: {}", lacking(replicated));
    let _ = writeln!(text, "groups: {}", lacking(groups));
    if !slow.is_empty() {
        let names: Vec<String> = slow.iter().map(|node| node.addr.xfer_addr()).collect();
        let _ = writeln!(text, "slow: {}", names.join(" "));
    }
    let calls = calls(before, now);
    let total: f64 = calls.iter().map(|(_, rate)| rate).sum();
    let mut rows = vec![vec!["calls".to_string(), format!("{total:.0}/s")]];
    let row = |(method, rate): &(String, f64)| vec![format!("  {method}"), format!("{rate:.1}/s")];
    rows.extend(calls.iter().take(ROWS).map(row));
    let _ = write!(text, "\n{}\n", output::table(&rows));
    let head = ["DataNode", "rack", "read", "written", "used", "transfers"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let busy = |at: &usize| flows[*at].map_or(0.0, |flow| flow[0] + flow[1]);
    order.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    for at in order.into_iter().take(ROWS) {
        let (node, flow) = (&nodes[at], flows[at]);
        let shown = |which: usize| match flow {
            Some(flow) => format!("{}/s", output::size(flow[which] as u64)),
            None => "silent".to_string(),
        };
        rows.push(vec![
            node.addr.xfer_addr(),
            node.rack.clone(),
            shown(0),
            shown(1),
            output::size(node.used),
            node.xceiver_count.to_string(),
        ]);
    }
    text.push_str(&output::table(&rows));
    text
}

fn as_json(before: &Look, now: &Look, state: &State) -> serde_json::Value {
    let calls: BTreeMap<String, f64> = calls(before, now).into_iter().collect();
    let node = |node: &DataNodeInfo| {
        let flow = flow(before, now, &node.addr.xfer_addr());
        json!({"address": node.addr.xfer_addr(), "rack": node.rack, "used": node.used,
               "read_bytes_per_second": flow.map(|flow| flow[0]),
               "written_bytes_per_second": flow.map(|flow| flow[1]),
               "transfers": node.xceiver_count})
    };
    let lacking = |stats: &RedundancyStats| {
        json!({"low_redundancy": stats.low_redundancy, "missing": stats.missing,
               "corrupt": stats.corrupt, "next_to_loss": stats.highest_priority})
    };
    json!({
        "used": state.stats.used, "capacity": state.stats.capacity, "calls_per_second": calls,
        "blocks": lacking(&state.replicated), "groups": lacking(&state.groups),
        "slow": state.slow.iter().map(|node| node.addr.xfer_addr()).collect::<Vec<_>>(),
        "datanodes": state.nodes.iter().map(node).collect::<Vec<_>>(),
        "members": state.members.as_ref().map(Seen::as_json),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_pages() {
        for (line, want) in [
            ("# HELP cairn_x_total What", None),
            (
                "cairn_datanode_read_bytes_total{by=\"client\"} 7",
                Some(("cairn_datanode_read_bytes_total", 7)),
            ),
            (
                "cairn_namenode_rpc_calls_total{protocol=\"P\",method=\"create\"} 3",
                Some(("cairn_namenode_rpc_calls_total create", 3)),
            ),
            ("cairn_blocks 3", None),
        ] {
            let read = counter(line);
            assert_eq!(read.as_ref().map(|(name, value)| (name.as_str(), *value)), want, "{line}");
        }
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let look = |at, count, bytes| Look {
            at,
            namenode: [("cairn_namenode_rpc_calls_total create".to_string(), count)].into(),
            datanodes: [(
                "dn:1".to_string(),
                Some([("cairn_datanode_read_bytes_total".to_string(), bytes)].into()),
            )]
            .into(),
        };
        let start = Instant::now();
        let (before, now) = (look(start, 10, 0), look(start + Duration::from_secs(2), 30, 500));
        assert_eq!(calls(&before, &now), [("create".to_string(), 10.0)]);
        assert_eq!(flow(&before, &now, "dn:1"), Some([250.0, 0.0]));
        assert_eq!(flow(&before, &now, "dn:2"), None);
        assert_eq!(
            rate(
                &now.namenode,
                &before.namenode,
                "cairn_namenode_rpc_calls_total create",
                Duration::from_secs(1)
            ),
            0.0,
            "a server that was started anew"
        );
    }
}
