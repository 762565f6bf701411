//! `cairn balance` and `cairn mover`: even out DataNodes, and follow storage policies.

use crate::{Settings, config, output};
use anyhow::{Result, bail};
use cairn_client::{BalanceOptions, ClientError, FileSystem, MoveEnd, MoveProgress};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// What `-5` and `-4` are as exit codes.
const ILLEGAL_ARGUMENTS: u8 = 251;
const IO_ERROR: u8 = 252;

/// Flags of `cairn balance`.
#[derive(Debug, clap::Args)]
pub struct BalanceArgs {
    /// Percentage points that a DataNode may be off the mean use
    #[arg(long, default_value_t = 10.0, value_name = "PCT")]
    threshold: f64,
    /// Balance all that DataNodes hold, or only what is of this block pool
    #[arg(long, default_value = "datanode", value_parser = ["datanode", "blockpool"])]
    policy: String,
    /// Only these DataNodes: host, address or address:port, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NODES")]
    include: Vec<String>,
    /// Not these DataNodes
    #[arg(long, value_delimiter = ',', value_name = "NODES")]
    exclude: Vec<String>,
    /// Begin also while a rolling upgrade lasts, when nothing is deleted where it was moved away
    #[arg(long)]
    run_during_upgrade: bool,
}

/// Flags of `cairn mover`.
#[derive(Debug, clap::Args)]
pub struct MoverArgs {
    /// Files and folders (default: all)
    #[arg(value_name = "PATH", default_value = "/")]
    paths: Vec<String>,
}

/// Runs until DataNodes are balanced or nothing more can be done.
pub async fn balance(settings: &Settings, args: BalanceArgs) -> Result<ExitCode> {
    if !(1.0..=100.0).contains(&args.threshold) {
        crate::complain!("cairn: --threshold takes a number from 1 to 100");
        return Ok(ExitCode::from(ILLEGAL_ARGUMENTS));
    }
    let conf = settings.configuration()?;
    let mut min_block_len = 10 << 20;
    conf.bytes("dfs.balancer.getBlocks.min-block-size", &mut min_block_len)?;
    let options = BalanceOptions {
        threshold: args.threshold,
        by_pool: args.policy == "blockpool",
        include: args.include,
        exclude: args.exclude,
        min_block_len,
        settle: settle_time(&conf)?,
        run_during_upgrade: args.run_during_upgrade,
    };
    let client = config::client::read(&conf)?;
    let bar = output::byte_bar(0, "balancing");
    let run = async {
        let fs = FileSystem::connect(client).await?;
        fs.balance(&options, stopped(), &|progress| show(&bar, progress)).await
    };
    let told = run.await;
    bar.finish_and_clear();
    Ok(report(settings, "balance", told))
}

/// Runs until every replica is on a type of storage that its policy wants.
pub async fn mover(settings: &Settings, args: MoverArgs) -> Result<ExitCode> {
    if let Some(path) = args.paths.iter().find(|path| !path.starts_with('/')) {
        bail!("{path} is not an absolute path");
    }
    let conf = settings.configuration()?;
    let settle = settle_time(&conf)?;
    let client = config::client::read(&conf)?;
    let bar = output::byte_bar(0, "moving");
    let run = async {
        let fs = FileSystem::connect(client).await?;
        for path in &args.paths {
            fs.require(path).await?;
        }
        let told = |progress| show(&bar, progress);
        fs.settle_storage_types(&args.paths, settle, stopped(), &told).await
    };
    let told = run.await;
    bar.finish_and_clear();
    Ok(report(settings, "mover", told))
}

/// Completes when the process is told to stop.
async fn stopped() {
    if let Err(error) = output::told_to_stop().await {
        tracing::warn!(%error, "signals cannot be waited for");
        std::future::pending().await
    }
}

/// Two heartbeats and a round of the NameNode's redundancy work.
///
/// Source: Hadoop 3.5.0 `Balancer#doBalance`.
fn settle_time(conf: &config::Configuration) -> Result<Duration> {
    let (mut heartbeat, mut round) = (Duration::from_secs(3), Duration::from_secs(3));
    conf.seconds("dfs.heartbeat.interval", &mut heartbeat)?;
    conf.seconds("dfs.namenode.redundancy.interval.seconds", &mut round)?;
    Ok(2 * heartbeat + round)
}

fn show(bar: &indicatif::ProgressBar, progress: MoveProgress) {
    bar.set_length(progress.bytes + progress.left);
    bar.set_position(progress.bytes);
}

fn report(
    settings: &Settings,
    what: &str,
    told: Result<(MoveEnd, MoveProgress), ClientError>,
) -> ExitCode {
    let (end, progress) = match told {
        Ok(told) => told,
        Err(error) => {
            crate::complain!("cairn: {error}");
            return ExitCode::from(IO_ERROR);
        }
    };
    let words = match end {
        MoveEnd::Done => "done",
        MoveEnd::AlreadyRunning => "another one is running",
        MoveEnd::NoMoveBlock => "something should be moved, and nothing can be",
        MoveEnd::NoMoveProgress => "moves fail again and again",
        MoveEnd::Interrupted => "interrupted",
        MoveEnd::UnfinalizedUpgrade => "a rolling upgrade is not finalized",
    };
    let MoveProgress { moved, bytes, failed, .. } = progress;
    if settings.json {
        let end = format!("{end:?}");
        crate::say!("{}", json!({"end": end, "moved": moved, "bytes": bytes, "failed": failed}));
    } else {
        let size = output::size(bytes);
        crate::say!(
            "{what}: {words}; {moved} replicas and units moved, {size}, {failed} moves failed"
        );
    }
    ExitCode::from((end as i8) as u8)
}
