//! `cairn cluster`: a NameNode and DataNodes in this process, for scripts and tests.
//!
//! Prints one JSON line when it serves. Lines on standard input (`kill-datanode I`,
//! `start-datanode I`, `corrupt-datanode I`, `status`, `stop`) are each answered by one JSON line.

use super::debug::inject;
use crate::cluster::{Cluster, Options, Volumes};
use crate::{Settings, output};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Flags of `cairn cluster`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many DataNodes
    #[arg(long, default_value_t = 12)]
    datanodes: usize,
    /// In how many racks
    #[arg(long, default_value_t = 4)]
    racks: usize,
    /// Folder for everything the cluster keeps
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The NameNode's RPC port (0: a free one)
    #[arg(long, default_value_t = 0)]
    rpc_port: u16,
    /// The NameNode's HTTP port (0: a free one)
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
        datanodes: args.datanodes,
        racks: args.racks,
        data: args.data,
        rpc_port: args.rpc_port,
        http_port: args.http_port,
        storage: args.storage,
        conf: settings.configuration()?,
    };
    let mut cluster = Cluster::start(options).await?;
    crate::say!("{}", cluster.describe());
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
        ["status"] => return (cluster.describe(), false),
        ["stop"] => return (json!({"ok": true}), true),
        _ => Err(anyhow::anyhow!("unknown line: {line}")),
    };
    match outcome {
        Ok(()) => (json!({"ok": true}), false),
        Err(error) => (json!({"ok": false, "error": format!("{error:#}")}), false),
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

fn parse(index: &str) -> Result<usize> {
    match index.parse() {
        Ok(index) => Ok(index),
        Err(_) => bail!("{index} is no DataNode's index"),
    }
}
