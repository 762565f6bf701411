//! `cairn debug inject`: faults of one server on this machine, from outside of it, to see what the others make of it.
//!
//! A server is named by its folder: whoever holds that folder's lock (`in_use.lock`) is the process, Cairn's or Hadoop's.
//! Nothing in a server knows of this; what it sees are signals, other bytes on its disk, and a disk that is full. Only
//! cut networks are the server's own doing ([`partition`]). It is refused unless [`allowed::KEY`] is true where this command reads
//! its configuration: a guard against mistakes, not against people who may send signals anyway. What is stopped goes on,
//! what was filled is free again, and networks are whole, when the command ends in order.

mod allowed;
pub mod partition;

use crate::config::value;
use crate::{Settings, output};
pub use allowed::{check_allowed, reach};
use anyhow::{Context, Result, bail};
use cairn_keys::WrongValue;
use cairn_net::reach::Rule;
use clap::Subcommand;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The file that a server locks, as Hadoop's do.
const LOCK: &str = "in_use.lock";
/// What takes the room of a disk.
const FILL: &str = "cairn-debug-fill";
/// One turn of a server that is slowed: it runs for a part of it.
const TURN: Duration = Duration::from_millis(100);
/// Bytes of disk that are taken at once.
const FILL_STEP: u64 = 64 << 20;

/// Flags of `cairn debug inject`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    fault: Fault,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kill the server that has a folder, as a power cut of its process
    Kill(Server),
    /// Stop it for a while: its connections stay, and nothing answers
    Hang(Hang),
    /// Let it run only a part of the time
    Slow(Slow),
    /// Change one bit of each of some finalized replicas of a DataNode
    Corrupt(Corrupt),
    /// Take the room of its disk for a while
    Fill(Fill),
    /// End its connections with some peers, or all, and let it make and take none for a while
    Partition(Partition),
}

#[derive(Debug, clap::Args)]
struct Server {
    /// The server's folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Hang {
    #[command(flatten)]
    server: Server,
    /// How long: 30s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    length: Duration,
}

#[derive(Debug, clap::Args)]
struct Slow {
    #[command(flatten)]
    hang: Hang,
    /// The part of the time in which it runs
    #[arg(long, value_name = "PART", default_value_t = 0.1)]
    share: f64,
}

#[derive(Debug, clap::Args)]
struct Corrupt {
    #[command(flatten)]
    server: Server,
    /// How many replicas
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    count: usize,
    /// Chooses the replicas and the bits; without it, chance does
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct Fill {
    #[command(flatten)]
    hang: Hang,
    /// Bytes to leave
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = value::bytes)]
    leave: u64,
}

#[derive(Debug, clap::Args)]
struct Partition {
    #[command(flatten)]
    hang: Hang,
    /// Whom it neither hears nor answers: HOST, or HOST:PORT for what it connects to there; may be repeated (default:
    /// everybody)
    #[arg(long, value_name = "PEER")]
    peer: Vec<String>,
    /// Only connections that it makes, or only those that it takes from others
    #[arg(long, value_name = "WAY")]
    only: Option<Way>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    Made,
    Taken,
}

fn seconds(text: &str) -> Result<Duration, WrongValue> {
    value::duration(text, Duration::from_secs(1))
}

/// Injects one fault, and takes it back where that can be.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    check_allowed(&settings.configuration()?)?;
    match args.fault {
        Fault::Kill(server) => {
            let pid = holder(&server.data)?;
            signal(pid, Signal::KILL)?;
            say(settings, "kill", json!({"pid": pid.as_raw_nonzero().get()}));
        }
        Fault::Hang(hang) => {
            let stopped = Stopped::new(holder(&hang.server.data)?)?;
            say(settings, "hang", json!({"pid": stopped.0.as_raw_nonzero().get()}));
            until(hang.length).await?;
        }
        Fault::Slow(Slow { hang, share }) => {
            if !(share > 0.0 && share < 1.0) {
                bail!("--share {share} should be between 0 and 1");
            }
            let pid = holder(&hang.server.data)?;
            say(settings, "slow", json!({"pid": pid.as_raw_nonzero().get(), "share": share}));
            slow(pid, hang.length, share).await?;
        }
        Fault::Corrupt(Corrupt { server, count, seed }) => {
            let seed = match seed {
                Some(seed) => seed,
                None => any_seed()?,
            };
            let changed = corrupt(&server.data, count, seed)?;
            let changed: Vec<_> = changed
                .iter()
                .map(|(file, bit)| json!({"file": file.display().to_string(), "bit": bit}))
                .collect();
            say(settings, "corrupt", json!({"seed": seed, "changed": changed}));
        }
        Fault::Fill(Fill { hang, leave }) => {
            let filled = Filled::new(&hang.server.data, leave)?;
            say(settings, "fill", json!({"file": filled.0.display().to_string()}));
            until(hang.length).await?;
        }
        Fault::Partition(Partition { hang, peer, only }) => {
            let mut peers = Vec::new();
            for name in &peer {
                peers.extend(partition::peers(name).await?);
            }
            let (made, taken) = (only != Some(Way::Taken), only != Some(Way::Made));
            let rule = Rule { peers, made, taken, ports: Vec::new() };
            let wanted = partition::Wanted { rule, length: hang.length };
            let mut cut = partition::Partition::begin(&hang.server.data, &wanted).await?;
            say(settings, "partition", json!({"peers": peer, "made": made, "taken": taken}));
            tokio::select! {
                () = cut.ended() => {}
                stopped = output::told_to_stop() => { stopped?; }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A seed by chance.
pub fn any_seed() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn say(settings: &Settings, fault: &str, what: serde_json::Value) {
    match settings.json {
        true => crate::say!("{}", json!({"fault": fault, "of": what})),
        false => crate::say!("{fault}: {what}"),
    }
}

/// Waits for so long, or until this command is told to end.
async fn until(length: Duration) -> Result<()> {
    tokio::select! {
        () = tokio::time::sleep(length) => Ok(()),
        stopped = output::told_to_stop() => stopped.map(|_| ()),
    }
}

/// The process that holds a server's folder.
///
/// Source: Hadoop 3.5.0 `Storage.StorageDirectory#tryLock`, whose lock is a POSIX record lock as well.
fn holder(folder: &Path) -> Result<Pid> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("{}: is this a server's folder?", path.display()))?;
    let found = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))?;
    match found.and_then(|lock| lock.pid) {
        Some(pid) => Ok(pid),
        None => bail!("{}: no server of this machine holds it", folder.display()),
    }
}

fn signal(pid: Pid, signal: Signal) -> Result<()> {
    kill_process(pid, signal)
        .with_context(|| format!("no signal to process {}", pid.as_raw_nonzero()))
}

/// A process that is stopped until this goes.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: Pid) -> Result<Stopped> {
        signal(pid, Signal::STOP)?;
        Ok(Stopped(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(error) = signal(self.0, Signal::CONT) {
            crate::complain!("{error:#}");
        }
    }
}

/// Stops a process for the rest of each turn, for so long.
async fn slow(pid: Pid, length: Duration, share: f64) -> Result<()> {
    tokio::select! {
        ended = turns(pid, share) => ended,
        done = until(length) => done,
    }
}

async fn turns(pid: Pid, share: f64) -> Result<()> {
    loop {
        tokio::time::sleep(TURN.mul_f64(share)).await;
        let _stopped = Stopped::new(pid)?;
        tokio::time::sleep(TURN.mul_f64(1.0 - share)).await;
    }
}

/// Changes one bit of each of `count` finalized replicas below a folder; which, and which bit of it.
pub fn corrupt(folder: &Path, count: usize, seed: u64) -> Result<Vec<(PathBuf, u64)>> {
    let mut replicas = Vec::new();
    find(&folder.join("current"), &mut replicas)?;
    replicas.sort_unstable();
    if replicas.len() < count {
        bail!("{} has {} finalized replicas and not {count}", folder.display(), replicas.len());
    }
    let mut x = seed;
    let mut next = |below: u64| {
        // Knuth's multiplier and an odd summand; the upper bits are the good ones.
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((u128::from(x) * u128::from(below)) >> 64) as u64
    };
    let mut changed = Vec::with_capacity(count);
    for _ in 0..count {
        let path = replicas.swap_remove(next(replicas.len() as u64) as usize);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let bit = next(file.metadata()?.len().saturating_mul(8));
        let mut byte = [0];
        file.read_exact_at(&mut byte, bit / 8)?;
        byte[0] ^= 1 << (bit % 8);
        file.write_all_at(&byte, bit / 8)?;
        file.sync_data()?;
        changed.push((path, bit));
    }
    Ok(changed)
}

/// All block files with bytes in folders called `finalized` and below.
fn find(folder: &Path, replicas: &mut Vec<PathBuf>) -> Result<()> {
    let mut waiting = vec![(folder.to_path_buf(), false)];
    while let Some((folder, is_finalized)) = waiting.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            // A replica may be deleted meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                waiting.push((path, is_finalized || name == "finalized"));
            } else if is_finalized
                && metadata.len() > 0
                && name.strip_prefix("blk_").is_some_and(|id| id.parse::<i64>().is_ok())
            {
                replicas.push(path);
            }
        }
    }
    Ok(())
}

/// A file that takes the room of a disk until this goes.
struct Filled(PathBuf);

impl Filled {
    fn new(folder: &Path, leave: u64) -> Result<Filled> {
        let path = folder.join(FILL);
        let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{}: the disk is being filled already", path.display())
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let filled = Filled(path);
        filled.take(&file, folder, leave)?;
        Ok(filled)
    }

    fn take(&self, file: &File, folder: &Path, leave: u64) -> Result<()> {
        let mut len = 0;
        loop {
            let disk = statvfs(folder)?;
            let free = disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(leave);
            // What is left of a block of the disk is none.
            let step = free.min(FILL_STEP);
            if step < disk.f_frsize.max(1) {
                return Ok(());
            }
            match fallocate(file, FallocateFlags::empty(), len, step) {
                Ok(()) => len += step,
                // Others take room as well.
                Err(rustix::io::Errno::NOSPC) => return Ok(()),
                Err(error) => return Err(error).with_context(|| self.0.display().to_string()),
            }
        }
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            crate::complain!("{}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A DataNode's folder with replicas of a hundred zeros each.
    fn folder(replicas: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for replica in replicas {
            let path = folder.path().join("current/BP-1").join(replica);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, [0; 100]).unwrap();
        }
        folder
    }

    #[test]
    fn one_bit_of_each_chosen_replica_changes_and_nothing_else() {
        let finalized = "current/finalized/subdir0/subdir0";
        let names = [
            format!("{finalized}/blk_1"),
            format!("{finalized}/blk_-9223372036854775792"),
            format!("{finalized}/blk_1_1001.meta"),
            "current/rbw/blk_2".to_string(),
        ];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let folder = folder(&names);
        assert!(corrupt(folder.path(), 3, 1).is_err(), "there are two finalized replicas");
        let mut changed = corrupt(folder.path(), 2, 1).unwrap();
        changed.sort();
        let files: Vec<_> = changed.iter().map(|(file, _)| file.file_name().unwrap()).collect();
        assert_eq!(files, ["blk_-9223372036854775792", "blk_1"]);
        for (index, name) in names.iter().enumerate() {
            let bytes = fs::read(folder.path().join("current/BP-1").join(name)).unwrap();
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(ones, u32::from(index < 2), "{name}");
        }
        // The same seed gives the bits back.
        corrupt(folder.path(), 2, 1).unwrap();
        let bytes = fs::read(&changed[0].0).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_folder_that_no_server_holds_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            holder(folder.path()).unwrap_err().to_string().contains("is this a server's folder?")
        );
        fs::write(folder.path().join(LOCK), "").unwrap();
        assert!(
            holder(folder.path()).unwrap_err().to_string().contains("no server of this machine")
        );
    }

    #[test]
    fn what_is_filled_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let disk = statvfs(folder.path()).unwrap();
        // All but a little of what is free is left.
        let leave = (disk.f_bavail * disk.f_frsize).saturating_sub(1 << 20);
        let filled = Filled::new(folder.path(), leave).unwrap();
        let path = folder.path().join(FILL);
        assert!(path.exists());
        assert!(Filled::new(folder.path(), leave).is_err(), "one at a time");
        drop(filled);
        assert!(!path.exists());
    }
}
