//! `cairn workers`: the background work of servers, and how it is held back.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{DataNodeFilter, FileSystem, Server, Worker};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = "\
Without a role and an address the NameNode that clients use is asked. A pause takes hold before the next round of a
worker, and lasts until it is resumed or the server ends. Contiguous groups and packing are paused by `cairn ec pause`,
which lasts longer.";

/// Flags of `cairn workers`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// The role of the server
    #[arg(value_parser = ["namenode", "datanode"], requires = "server")]
    role: Option<String>,
    /// HOST:PORT of its RPC; livenodes for all DataNodes that live
    #[arg(value_name = "HOST:PORT|livenodes")]
    server: Option<String>,
    /// Have this work rest from its next round on; may be given again
    #[arg(long, value_name = "WORKER")]
    pause: Vec<String>,
    /// Have it go on; may be given again
    #[arg(long, value_name = "WORKER")]
    resume: Vec<String>,
}

/// Pauses and resumes what is named, then lists all.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    // Connects at the first call: what asks a DataNode by its address needs no NameNode.
    let fs = FileSystem::new(config::client::read(&settings.configuration()?)?)?;
    let mut code = ExitCode::SUCCESS;
    for server in servers(&fs, &args).await? {
        match ask(&server, &args).await {
            Ok(workers) if settings.json => {
                workers.iter().for_each(|worker| crate::say!("{}", json_of(server.addr(), worker)));
            }
            Ok(workers) => crate::output::print(format_args!("{}", text(server.addr(), &workers))),
            Err(error) => {
                crate::complain!("cairn: {}", output::sentence(&error));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

async fn servers(fs: &FileSystem, args: &Args) -> Result<Vec<Server>> {
    let config = fs.config();
    let (Some(role), Some(addr)) = (&args.role, &args.server) else {
        return Ok(vec![fs.namenode()]);
    };
    if role == "namenode" {
        return Ok(vec![Server::new(config, addr)]);
    }
    if addr != "livenodes" {
        return Ok(vec![Server::datanode(config, addr)]);
    }
    let nodes = fs.datanodes(DataNodeFilter::Live).await?;
    let address = |addr: cairn_client::DataNodeAddr| format!("{}:{}", addr.ip, addr.ipc_port);
    Ok(nodes.into_iter().map(|node| Server::datanode(config, &address(node.addr))).collect())
}

async fn ask(server: &Server, args: &Args) -> Result<Vec<Worker>> {
    if !args.pause.is_empty() {
        server.pause_workers(&args.pause, true).await?;
    }
    if !args.resume.is_empty() {
        server.pause_workers(&args.resume, false).await?;
    }
    Ok(server.workers().await?)
}

fn text(addr: &str, workers: &[Worker]) -> String {
    let heads = ["WORKER", "STATE", "FOR", "ROUNDS", "BUSY", "FAILED", "PROGRESS"];
    let mut rows = vec![heads.map(str::to_string).to_vec()];
    for worker in workers {
        let name = match worker.of.as_str() {
            "" => worker.name.clone(),
            of => format!("{} {of}", worker.name),
        };
        let state = match worker.is_paused && worker.state == "working" {
            true => "working, then paused".to_string(),
            false => worker.state.clone(),
        };
        let mut progress = worker.progress.as_ref().map_or(String::new(), |progress| {
            let of = progress.of.map_or(String::new(), |of| format!(" of {of}"));
            format!("{}{of} {}", progress.done, progress.what)
        });
        if let Some(most) = worker.bytes_per_second {
            let gap = if progress.is_empty() { "" } else { ", " };
            progress.push_str(&format!("{gap}{}/s at most", output::size(most)));
        }
        rows.push(vec![
            name,
            state,
            format!("{:.0}s", worker.since.as_secs_f64()),
            worker.rounds.to_string(),
            format!("{:.1}s", worker.busy.as_secs_f64()),
            worker.failures.to_string(),
            progress,
        ]);
    }
    let mut text = format!("{addr}:\n{}", output::table(&rows));
    for worker in workers {
        if let Some(why) = &worker.last_failure {
            text.push_str(&format!("{} failed last: {why}\n", worker.name));
        }
    }
    text
}

fn json_of(addr: &str, worker: &Worker) -> Value {
    let progress = worker
        .progress
        .as_ref()
        .map(|progress| json!({"done": progress.done, "of": progress.of, "what": progress.what}));
    json!({
        "server": addr, "worker": worker.name, "of": worker.of, "does": worker.does,
        "state": worker.state, "since_ms": worker.since.as_millis() as u64,
        "paused": worker.is_paused, "pausable": worker.may_be_paused, "rounds": worker.rounds,
        "busy_ms": worker.busy.as_millis() as u64, "progress": progress,
        "bytes_per_second": worker.bytes_per_second, "failures": worker.failures,
        "last_failure": worker.last_failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::WorkerProgress;
    use std::time::Duration;

    #[test]
    fn what_a_worker_does_is_told() {
        let worker = Worker {
            name: "block-scanner".into(),
            of: "/d/1".into(),
            does: "Reads.".into(),
            state: "working".into(),
            since: Duration::from_secs(3),
            is_paused: true,
            may_be_paused: true,
            rounds: 5,
            busy: Duration::from_millis(1500),
            progress: Some(WorkerProgress { done: 5, of: Some(9), what: "replicas".into() }),
            bytes_per_second: Some(1 << 20),
            failures: 1,
            last_failure: Some("no disk".into()),
        };
        let told = text("dn:1", std::slice::from_ref(&worker));
        for part in [
            "dn:1:\n",
            "block-scanner /d/1",
            "working, then paused",
            "5 of 9 replicas",
            "/s at most",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(told.ends_with("block-scanner failed last: no disk\n"), "{told}");
        let json = json_of("dn:1", &worker);
        assert_eq!((&json["progress"]["of"], &json["since_ms"]), (&9.into(), &3000.into()));
    }
}
