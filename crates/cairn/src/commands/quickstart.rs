//! `cairn quickstart`: a cluster in this process, put to the test with the user's own files.
//!
//! Stores files striped, in contiguous groups and three-fold replicated, stops three DataNodes without warning, reads
//! every file back and compares it byte for byte, and prints what that cost.

mod files;
mod summary;

use crate::cluster::{Cluster, Options};
use crate::commands::fs::upload;
use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_client::{CreateOptions, FileSystem};
use files::{LocalFile, bytes_below};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::{Measured, Summary};
use tokio::io::AsyncReadExt;

const DATANODES: usize = 12;
const RACKS: usize = 4;
/// One in each of three racks: the default placement keeps two racks a block, so one replica stays.
const STOPPED: [usize; 3] = [0, 1, 2];
/// The ways of storing, by the name of a directory and the policy of what is in it.
const WAYS: [(&str, &str); 3] = [
    ("erasure-coded", "RS-6-3-1024k"),
    ("contiguous", "RS-6-3-contiguous"),
    ("replicated", "REPLICATION"),
];
/// Blocks of what goes into groups: so small that a file of some megabytes has as many as a group takes, as a large file has
/// in a real cluster. Small files, of other lengths each, save too little to be grouped.
const GROUPED_BLOCK: u64 = 4 << 20;
/// How long nothing must have been grouped until all is taken to be that can be, and how long to wait for that at most.
const QUIET: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(120));
const ROOT: &str = "/quickstart";
const STEP_LEN: usize = 8 << 20;

/// The directories of one run, one for each way of storing.
fn directories(run: usize) -> [String; WAYS.len()] {
    WAYS.map(|(name, _)| format!("{ROOT}/run-{run}/{name}"))
}

/// Flags of `cairn quickstart`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and folders to store (default: this checkout and this program)
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Leave the cluster running at the end
    #[arg(long)]
    keep: bool,
    /// Keep the data in this folder; a later start on it serves the same files
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The NameNode's RPC port (0: a free one)
    #[arg(long, default_value_t = 0)]
    rpc_port: u16,
}

/// Runs the whole demonstration; fails when a byte differs.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let local = files::find(&args.paths, args.data.as_deref())?;
    // Dropped, and with it the folder removed, at the end of this function.
    let temporary = match &args.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("cannot make a temporary folder")?),
    };
    let data = match (&args.data, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_path_buf(),
        (None, None) => bail!("no folder for the data"),
    };
    say(
        settings,
        &format!(
            "Starting a NameNode and {DATANODES} DataNodes in {RACKS} racks on {}",
            data.display()
        ),
    );
    let mut conf = settings.configuration()?;
    // So short a silence counts as death that the report is true when this command ends.
    conf.set_default("dfs.heartbeat.interval", "1");
    conf.set_default("dfs.namenode.heartbeat.recheck-interval", "2000");
    // Nobody waits an hour here: files are grouped as soon as they are closed, small ones too.
    for key in ["quiet-time", "short-quiet-time"] {
        conf.set_default(&format!("cairn.ec.contiguous.{key}"), "0");
    }
    conf.set_default("cairn.ec.contiguous.min-length", "1");
    let options = Options {
        namenodes: 1,
        datanodes: DATANODES,
        racks: RACKS,
        data,
        rpc_port: args.rpc_port,
        http_port: 0,
        storage: Vec::new(),
        conf,
    };
    let mut cluster = Cluster::start(options).await?;
    // Told to stop or not, nothing of it is to be left.
    let outcome = tokio::select! {
        shown = show(settings, &mut cluster, &local, args.keep) => shown.map(|()| None),
        told = output::told_to_stop() => told.map(Some),
    };
    if args.keep && matches!(outcome, Ok(None)) {
        output::told_to_stop().await?;
    }
    cluster.shutdown().await;
    outcome.map(|told| told.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// The demonstration, and what comes up again after it if it is to be kept.
async fn show(
    settings: &Settings,
    cluster: &mut Cluster,
    local: &[LocalFile],
    keep: bool,
) -> Result<()> {
    let fs = FileSystem::connect(config::client::read(cluster.configuration())?).await?;
    demonstrate(settings, cluster, &fs, local).await?;
    if keep {
        for index in STOPPED {
            cluster.start_datanode(index).await?;
        }
        output::print(format_args!("{}", summary::how_to_connect(cluster)));
    }
    Ok(())
}

fn say(settings: &Settings, line: &str) {
    if !settings.json {
        crate::say!("{line}");
    }
}

async fn demonstrate(
    settings: &Settings,
    cluster: &mut Cluster,
    fs: &FileSystem,
    local: &[LocalFile],
) -> Result<()> {
    let runs = earlier_runs(settings, fs).await?;
    let directories = directories(runs + 1);
    let total: u64 = local.iter().map(|file| file.len).sum();
    say(settings, &format!("Storing {} files, {}", local.len(), output::size(total)));
    prepare(fs, &directories).await?;
    let mut ways = [Measured::default(); WAYS.len()];
    let mut used = disk_usage(cluster)?;
    for ((way, directory), (_, policy)) in ways.iter_mut().zip(&directories).zip(WAYS) {
        let is_contiguous = policy.ends_with("-contiguous");
        let block_size = is_contiguous.then_some(GROUPED_BLOCK);
        way.write = store(fs, local, directory, block_size).await?;
        if is_contiguous {
            say(settings, "Waiting until the servers have put them into groups");
            await_groups(fs).await?;
        }
        let now = disk_usage(cluster)?;
        way.disk = now.saturating_sub(used);
        used = now;
    }
    say(settings, "Reading everything back");
    for (way, directory) in ways.iter_mut().zip(&directories) {
        way.read = compare(fs, local, directory, "reading").await?;
    }
    say(
        settings,
        &format!("Stopping {} DataNodes without warning, and reading again", STOPPED.len()),
    );
    for index in STOPPED {
        cluster.kill_datanode(index)?;
    }
    for (way, directory) in ways.iter_mut().zip(&directories) {
        let title = format!("reading, {} DataNodes gone", STOPPED.len());
        way.degraded = compare(fs, local, directory, &title).await?;
    }
    let [coded, contiguous, copied] = ways;
    let (files, stopped) = (local.len(), STOPPED.len());
    let summary = Summary { files, bytes: total, coded, contiguous, copied, stopped };
    if settings.json {
        crate::say!("{}", summary.as_json());
    } else {
        output::print(format_args!("\n{}", summary.as_text()));
    }
    Ok(())
}

/// On the data of earlier starts: reads what they left, both copies of each file, and compares them.
/// Returns how many runs there were.
async fn earlier_runs(settings: &Settings, fs: &FileSystem) -> Result<usize> {
    let mut runs = 0;
    let (mut count, mut bytes) = (0, 0);
    loop {
        let [coded, .., copied] = directories(runs + 1);
        if fs.file_info(&coded).await?.is_none() {
            break;
        }
        runs += 1;
        let mut waiting = vec![coded.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in fs.list(&directory).collect().await? {
                if entry.is_dir() {
                    waiting.push(entry.path);
                    continue;
                }
                let twin = entry.path.replacen(&coded, &copied, 1);
                if fs.file_info(&twin).await?.is_some() {
                    same_file(fs, &entry.path, &twin).await?;
                    count += 1;
                    bytes += entry.len;
                }
            }
        }
    }
    if runs > 0 {
        let sizes = output::size(bytes);
        say(settings, &format!("The {count} files of earlier starts, {sizes}, are here and whole"));
    }
    Ok(runs)
}

async fn same_file(fs: &FileSystem, one: &str, other: &str) -> Result<()> {
    let (mut a, mut b) = (fs.open(one).await?, fs.open(other).await?);
    let (mut left, mut right) = (vec![0; STEP_LEN], vec![0; STEP_LEN]);
    let mut offset = 0;
    loop {
        let len = a.read(&mut left).await?;
        let mut filled = 0;
        while filled < len {
            match b.read(&mut right[filled..len]).await? {
                0 => break,
                more => filled += more,
            }
        }
        if filled < len || left[..len] != right[..len] {
            bail!("{one} and {other} differ behind byte {offset}");
        }
        if len == 0 {
            return Ok(());
        }
        offset += len;
    }
}

/// Makes the directories, each with its way of storing.
async fn prepare(fs: &FileSystem, directories: &[String]) -> Result<()> {
    for (directory, (_, policy)) in directories.iter().zip(WAYS) {
        if policy != "REPLICATION" {
            fs.enable_policy(policy).await?;
        }
        fs.mkdirs(directory, 0o755).await?;
        fs.set_policy(directory, Some(policy)).await?;
    }
    Ok(())
}

/// Waits until nothing is put into groups any more, and what groups do not need is deleted.
async fn await_groups(fs: &FileSystem) -> Result<()> {
    let began = Instant::now();
    let (mut formed, mut since) = (0, Instant::now());
    while began.elapsed() < QUIET.1 {
        let status = fs.group_status().await?;
        let is_busy = status.attempts > 0 || status.with_surplus > 0;
        if is_busy || status.formed != formed {
            (formed, since) = (status.formed, Instant::now());
        }
        if since.elapsed() >= QUIET.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn store(
    fs: &FileSystem,
    local: &[LocalFile],
    directory: &str,
    block_size: Option<u64>,
) -> Result<Duration> {
    let total = local.iter().map(|file| file.len).sum();
    let bar = output::byte_bar(total, &format!("storing in {directory}"));
    let options = CreateOptions { create_parents: true, block_size, ..CreateOptions::default() };
    let start = Instant::now();
    for file in local {
        let path = format!("{directory}/{}", file.name);
        let about = || format!("cannot store {}", file.path.display());
        upload(fs, &file.path, &path, &options, &bar).await.with_context(about)?;
    }
    let time = start.elapsed();
    bar.finish_and_clear();
    Ok(time)
}

/// Reads every file and compares it with the local one; the time is that of all of it.
async fn compare(
    fs: &FileSystem,
    local: &[LocalFile],
    directory: &str,
    title: &str,
) -> Result<Duration> {
    let bar = output::byte_bar(local.iter().map(|file| file.len).sum(), title);
    let start = Instant::now();
    for file in local {
        let path = format!("{directory}/{}", file.name);
        compare_one(fs, &path, &file.path, &bar)
            .await
            .with_context(|| format!("cannot read {path}"))?;
    }
    let time = start.elapsed();
    bar.finish_and_clear();
    Ok(time)
}

async fn compare_one(
    fs: &FileSystem,
    path: &str,
    local: &Path,
    bar: &indicatif::ProgressBar,
) -> Result<()> {
    let mut reader = fs.open(path).await?;
    let mut file = tokio::fs::File::open(local).await?;
    file.set_max_buf_size(STEP_LEN);
    let (mut stored, mut original) = (vec![0; STEP_LEN], vec![0; STEP_LEN]);
    let mut offset = 0;
    loop {
        let len = reader.read(&mut stored).await?;
        if len == 0 {
            break;
        }
        file.read_exact(&mut original[..len]).await.context("it is longer than the original")?;
        if stored[..len] != original[..len] {
            bail!("it differs from {} behind byte {offset}", local.display());
        }
        offset += len;
        bar.inc(len as u64);
    }
    if file.read(&mut original[..1]).await? != 0 {
        bail!("it ends at byte {offset}, before the original");
    }
    Ok(())
}

/// Bytes of all files in the DataNodes' folders.
fn disk_usage(cluster: &Cluster) -> Result<u64> {
    cluster.block_folders().map(|folder| bytes_below(&folder)).sum()
}
