//! `cairn cluster`: a NameNode, or several, and DataNodes in this process, for scripts and tests.
//!
//! Prints one JSON line when it serves, and sentences on a terminal. Lines on standard input (`kill-datanode I`,
//! `start-datanode I`, `corrupt-datanode I`, `partition-datanode I [J]`, `heal-datanode I`, of several NameNodes
//! `kill-namenode I`, `start-namenode I`, `partition-namenode I`, `heal-namenode I` and `failover [I]`, `status`, `stop`)
//! are each answered by one JSON line.

use super::debug::inject;
use crate::cluster::{Cluster, Options, Volumes};
use crate::{Settings, output};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Flags of `cairn cluster`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many NameNodes: 1, or 3 and more, which agree on what is acknowledged and go on without one of them
    #[arg(long, default_value_t = 1)]
    namenodes: usize,
    /// How many DataNodes
    #[arg(long, default_value_t = 12)]
    datanodes: usize,
    /// In how many racks
    #[arg(long, default_value_t = 4)]
    racks: usize,
    /// Folder for everything the cluster keeps
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The first NameNode's RPC port (0: a free one)
    #[arg(long, default_value_t = 0)]
    rpc_port: u16,
    /// The first NameNode's HTTP port (0: a free one)
    #[arg(long, default_value_t = 0)]
    http_port: u16,
    /// Storage types of a DataNode's volumes: DISK,SSD or DISK,[RAM_DISK]/dev/shm/DIR; if given N times,
    /// DataNode I has the list I mod N
    #[arg(long, value_name = "TYPES")]
    storage: Vec<Volumes>,
}

/// Runs the cluster until SIGTERM or `stop`.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let options = Options {
        namenodes: args.namenodes,
        datanodes: args.datanodes,
        racks: args.racks,
        data: args.data,
        rpc_port: args.rpc_port,
        http_port: args.http_port,
        storage: args.storage,
        conf: settings.configuration()?,
    };
    let mut cluster = Cluster::start(options).await?;
    let described = cluster.describe();
    match std::io::stdout().is_terminal() && !settings.json {
        true => crate::say!("{}", for_people(&described)),
        false => crate::say!("{described}"),
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut listening = true;
    let mut failure = None;
    loop {
        tokio::select! {
            stopped = output::told_to_stop() => {
                stopped?;
                break;
            }
            why = cluster.namenode_stopped() => {
                failure = Some(why);
                break;
            }
            line = lines.next_line(), if listening => match line {
                Ok(Some(line)) => {
                    let (answer, stop) = obey(&mut cluster, &line).await;
                    crate::say!("{answer}");
                    if stop {
                        break;
                    }
                }
                // Standard input may be closed from the start; the cluster serves on.
                Ok(None) | Err(_) => listening = false,
            },
        }
    }
    cluster.shutdown().await;
    match failure {
        Some(why) => bail!("the NameNode has stopped: {why}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The same on a terminal: where it serves, and what can be done.
fn for_people(described: &Value) -> String {
    let text = |key: &str| described[key].as_str().unwrap_or_default().to_string();
    let datanodes = described["datanodes"].as_array().map_or(0, Vec::len);
    format!(
        "{} serves, with {datanodes} DataNodes; its pages are at {}\n\
         In another terminal: export HADOOP_CONF_DIR={}\n\
         Here: kill-datanode I, start-datanode I, status, stop, each with Enter",
        text("fs"),
        text("http"),
        text("conf")
    )
}

/// Carries out one line; the answer, and whether to stop.
async fn obey(cluster: &mut Cluster, line: &str) -> (Value, bool) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let outcome = match words.as_slice() {
        ["kill-datanode", index] => match parse(index) {
            Ok(index) => cluster.kill_datanode(index),
            Err(error) => Err(error),
        },
        ["start-datanode", index] => match parse(index) {
            Ok(index) => cluster.start_datanode(index).await,
            Err(error) => Err(error),
        },
        ["corrupt-datanode", index] => match parse(index) {
            Ok(index) => corrupt(cluster, index),
            Err(error) => Err(error),
        },
        ["partition-datanode", index, from @ ..] if from.len() < 2 => {
            partition_datanode(cluster, index, from.first())
        }
        ["heal-datanode", index] => parse(index).and_then(|index| cluster.heal_datanode(index)),
        ["partition-namenode", index] => inject::check_allowed(cluster.configuration())
            .and_then(|()| cluster.partition_namenode(parse(index)?, true)),
        ["heal-namenode", index] => {
            parse(index).and_then(|index| cluster.partition_namenode(index, false))
        }
        ["kill-namenode", index] => match parse(index) {
            Ok(index) => cluster.kill_namenode(index),
            Err(error) => Err(error),
        },
        ["start-namenode", index] => match parse(index) {
            Ok(index) => cluster.start_namenode(index).await,
            Err(error) => Err(error),
        },
        ["failover", index @ ..] if index.len() < 2 => {
            return (fail_over(cluster, index.first()).await, false);
        }
        ["status"] => return (cluster.describe(), false),
        ["stop"] => return (json!({"ok": true}), true),
        _ => Err(anyhow::anyhow!("unknown line: {line}")),
    };
    match outcome {
        Ok(()) => (json!({"ok": true}), false),
        Err(error) => (json!({"ok": false, "error": format!("{error:#}")}), false),
    }
}

/// Has another NameNode lead, and tells how long that took.
async fn fail_over(cluster: &mut Cluster, to: Option<&&str>) -> Value {
    let begun = Instant::now();
    let to = to.map(|index| parse(index)).transpose();
    let done = match to {
        Ok(to) => cluster.hand_over(to).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(name) => json!({"ok": true, "leader": name, "ms": begun.elapsed().as_millis() as u64}),
        Err(error) => json!({"ok": false, "error": format!("{error:#}")}),
    }
}

/// Changes a bit of one of a DataNode's replicas, where the configuration allows faults.
fn corrupt(cluster: &Cluster, index: usize) -> Result<()> {
    inject::check_allowed(cluster.configuration())?;
    let mut error = None;
    for folder in cluster.volumes_of(index)? {
        match inject::corrupt(&folder, 1, inject::any_seed()?) {
            Ok(_) => return Ok(()),
            Err(why) => error = Some(why),
        }
    }
    Err(error.unwrap_or_else(|| anyhow::anyhow!("DataNode {index} has no volume")))
}

/// Keeps a DataNode from all others, or from one, where the configuration allows faults.
fn partition_datanode(cluster: &mut Cluster, index: &str, from: Option<&&str>) -> Result<()> {
    inject::check_allowed(cluster.configuration())?;
    let from = from.map(|from| parse(from)).transpose()?;
    cluster.partition_datanode(parse(index)?, from)
}

fn parse(index: &str) -> Result<usize> {
    match index.parse() {
        Ok(index) => Ok(index),
        Err(_) => bail!("{index} is no index"),
    }
}
