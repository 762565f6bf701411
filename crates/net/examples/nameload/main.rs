//! Load on a NameNode, Cairn's or Hadoop's: many connections of several users, with many calls under way on each,
//! and DataNodes that are made up.
//!
//! Reads steps from standard input and answers each with a line of JSON; `bench/names` drives it:
//!
//! ```text
//! OP ROUND FILES CALLS CONNECTIONS IN_FLIGHT     calls of one kind, see `Op::parse`
//! nodes COUNT STORAGES                           registers DataNodes, which then send heartbeats
//! hold BLOCKS COPIES | hold GROUPS UNITS striped  has them hold what the example `fill` of cairn-namenode has made
//! report                                         full reports of all blocks that `write` and `fill` made
//! ```
//!
//! Usage: `nameload HOST:PORT USER [anywhere]`, the user being the NameNode's superuser. With `anywhere` a member of a quorum
//! that follows answers reads by itself.

mod connection;
mod drive;
mod nodes;
mod ops;

use connection::Load;
use drive::Outcome;
use nodes::Nodes;
use ops::Op;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Clock ticks of `/proc/self/stat` in a second, on Linux.
const TICKS: f64 = 100.0;

/// User and system time of this process so far, seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| fields.split_whitespace().nth(at).and_then(|t| t.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS
}

fn quantile(sorted: &[u32], part: f64) -> f64 {
    let at = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |us| f64::from(*us) / 1000.0)
}

fn summary(outcomes: Vec<Outcome>, wall: Duration, cpu: f64) -> String {
    let mut latencies: Vec<u32> =
        outcomes.iter().flat_map(|o| o.latencies_us.iter().copied()).collect();
    latencies.sort_unstable();
    let failed: u64 = outcomes.iter().map(|o| o.failed).sum();
    let error = outcomes.iter().find_map(|o| o.first_error.clone()).unwrap_or_default();
    let rate = latencies.len() as f64 / wall.as_secs_f64();
    let error = error.replace(['"', '\\', '\n', '\t'], " ");
    format!(
        "{{\"done\":{},\"failed\":{failed},\"seconds\":{:.3},\"rate\":{rate:.1},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\
         \"max_ms\":{:.3},\"load_cpu\":{cpu:.2},\"error\":\"{error}\"}}",
        latencies.len(),
        wall.as_secs_f64(),
        quantile(&latencies, 0.5),
        quantile(&latencies, 0.99),
        quantile(&latencies, 1.0),
    )
}

fn number(words: &[&str], at: usize) -> Result<u64, String> {
    let word = words.get(at).ok_or_else(|| format!("word {at} is missing"))?;
    word.parse().map_err(|error| format!("{word}: {error}"))
}

async fn run(load: &Load, nodes: &mut Option<Nodes>, words: &[&str]) -> Result<String, String> {
    match words {
        ["nodes", ..] => {
            let (count, storages) = (number(words, 1)? as usize, number(words, 2)? as usize);
            *nodes = Some(Nodes::register(load, count, storages).await?);
            Ok(format!("{{\"nodes\":{count}}}"))
        }
        ["hold", ..] => {
            let Some(nodes) = nodes else { return Err("there are no DataNodes".to_string()) };
            let is_striped = words.get(3) == Some(&"striped");
            nodes.hold(number(words, 1)?, number(words, 2)?, is_striped)?;
            Ok("{}".to_string())
        }
        ["report"] => {
            let Some(nodes) = nodes else { return Err("there are no DataNodes".to_string()) };
            let begin = Instant::now();
            let replicas = nodes.report(load).await?;
            Ok(format!(
                "{{\"replicas\":{replicas},\"seconds\":{:.3}}}",
                begin.elapsed().as_secs_f64()
            ))
        }
        [op, ..] => {
            let op = Op::parse(op, number(words, 1)?, number(words, 2)?)?;
            let (calls, connections) = (number(words, 3)?, number(words, 4)? as usize);
            let window = number(words, 5)? as usize;
            let next = Arc::new(AtomicU64::new(0));
            let (cpu, begin) = (cpu_seconds(), Instant::now());
            let mut tasks = Vec::new();
            for index in 0..connections.min(calls as usize).max(1) {
                let (load, op, next) = (load.clone(), op.clone(), next.clone());
                let nodes = nodes.clone();
                tasks.push(tokio::spawn(async move {
                    drive::drive(&load, index, &op, calls, &next, window, nodes).await
                }));
            }
            let mut outcomes = Vec::new();
            for task in tasks {
                outcomes.push(task.await.map_err(|error| error.to_string())??);
            }
            Ok(summary(outcomes, begin.elapsed(), cpu_seconds() - cpu))
        }
        [] => Err("an empty line".to_string()),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let (addr, user, reads_anywhere) = match args.as_slice() {
        [_, addr, user] => (addr, user, false),
        [_, addr, user, word] if word == "anywhere" => (addr, user, true),
        _ => return Err("usage: nameload HOST:PORT USER [anywhere]".into()),
    };
    // One thread: on a small machine the server is to have the others.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let load = Load { addr: addr.clone(), superuser: user.clone(), reads_anywhere };
    runtime.block_on(serve(load))?;
    Ok(())
}

async fn serve(load: Load) -> std::io::Result<()> {
    // Heartbeats go on while nothing is asked.
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    let mut nodes = None;
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = run(&load, &mut nodes, &words).await;
        let answer = answer.unwrap_or_else(|error| {
            format!("{{\"error\":\"{}\"}}", error.replace(['"', '\\', '\n', '\t'], " "))
        });
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
