//! What changes a file or directory and moves no bytes: made, cut off, kept in more copies, joined, tested.

use super::shell::Shell;
use crate::time;
use anyhow::{Context, Result, bail};
use cairn_client::{CreateOptions, FileStatus, FileSystem};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a change that DataNodes carry out is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// `cairn fs mkdir`.
#[derive(Debug, clap::Args)]
pub struct Mkdir {
    /// And their parents; existing ones are fine
    #[arg(short, long)]
    parents: bool,
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Mkdir {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        for path in &self.paths {
            let made = async {
                let path = shell.at(path)?;
                if self.parents {
                    shell.fs.mkdirs(&path, 0o777).await?;
                } else if shell.fs.file_info(&path).await?.is_some() {
                    bail!("{path}: File exists");
                } else {
                    shell.fs.mkdir(&path, 0o777).await?;
                }
                Ok(())
            };
            shell.keep(made.await);
        }
        Ok(())
    }
}

/// `cairn fs touch`.
#[derive(Debug, clap::Args)]
pub struct Touch {
    /// Only the time of the last read
    #[arg(short, long)]
    access: bool,
    /// Only the time of the last change
    #[arg(short, long)]
    modification: bool,
    /// This time in UTC, not now
    #[arg(short, long, value_name = "YYYYMMDD:HHMMSS")]
    time: Option<String>,
    /// Make no file
    #[arg(short = 'c', long)]
    no_create: bool,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Touch {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = match &self.time {
            Some(text) => time::compact(text)
                .with_context(|| format!("'{text}' is no time such as 20260131:235959"))?,
            None => now.as_millis() as u64,
        };
        // Without either option, both.
        let modification = (self.modification || !self.access).then_some(moment);
        let access = (self.access || !self.modification).then_some(moment);
        for path in &self.paths {
            let touched = async {
                let path = shell.at(path)?;
                if shell.fs.file_info(&path).await?.is_none() {
                    if self.no_create {
                        return Ok(());
                    }
                    make_empty(&shell.fs, &path).await?;
                }
                Ok(shell.fs.set_times(&path, modification, access).await?)
            };
            shell.keep(touched.await);
        }
        Ok(())
    }
}

/// `cairn fs touchz`.
#[derive(Debug, clap::Args)]
pub struct Touchz {
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Touchz {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        for path in &self.paths {
            let made = async {
                let path = shell.at(path)?;
                match shell.fs.file_info(&path).await? {
                    Some(status) if status.is_dir() => bail!("{path}: Is a directory"),
                    Some(status) if status.len > 0 => bail!("{path}: Not a zero-length file"),
                    _ => make_empty(&shell.fs, &path).await,
                }
            };
            shell.keep(made.await);
        }
        Ok(())
    }
}

/// Makes a file without bytes, also in the place of one.
async fn make_empty(fs: &FileSystem, path: &str) -> Result<()> {
    let options = CreateOptions { overwrite: true, ..CreateOptions::default() };
    Ok(fs.create(path, &options).await?.close().await?)
}

/// `cairn fs truncate`.
#[derive(Debug, clap::Args)]
pub struct Truncate {
    /// Until it is done, and the file can be written again
    #[arg(short, long)]
    wait: bool,
    /// Bytes that stay
    length: u64,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Truncate {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let (mut waiting, len) = (Vec::new(), self.length);
        for status in shell.find_all(&self.paths).await {
            let path = &status.path;
            let cut = async {
                if status.is_dir() {
                    bail!("{path}: Is a directory");
                }
                if len > status.len {
                    bail!("{path}: has {} bytes, which is less than {len}", status.len);
                }
                Ok(shell.fs.truncate(path, len).await?)
            };
            match shell.keep(cut.await) {
                Some(true) => crate::say!("Truncated {path} to length: {len}"),
                Some(false) if self.wait => waiting.push(status),
                Some(false) => crate::say!(
                    "Truncating {path} to length: {len}. Wait for block recovery to complete before further updating this file."
                ),
                None => {}
            }
        }
        for status in waiting {
            crate::say!("Waiting for {} ...", status.path);
            while !shell.fs.is_closed(&status.path).await? {
                tokio::time::sleep(LOOK).await;
            }
            crate::say!("Truncated {} to length: {len}", status.path);
        }
        Ok(())
    }
}

/// `cairn fs setrep`.
#[derive(Debug, clap::Args)]
pub struct Setrep {
    /// Until all copies are there
    #[arg(short, long)]
    wait: bool,
    /// How many copies
    #[arg(value_name = "COPIES", value_parser = clap::value_parser!(u16).range(1..))]
    copies: u16,
    /// Files, and directories for all files below them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Setrep {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let copies = self.copies;
        let waiting = std::cell::RefCell::new(Vec::new());
        let change = async |status: &FileStatus| {
            let path = &status.path;
            if status.is_dir() {
                return Ok(());
            }
            if let Some(policy) = &status.policy {
                if shell.is_hadoop {
                    crate::say!(
                        "Did not set replication for: {path}, because it's an erasure coded file."
                    );
                    return Ok(());
                }
                bail!("{path}: is erasure coded ({}), and has no copies", policy.name);
            }
            if !shell.fs.set_replication(path, copies).await? {
                bail!("{path}: could not be set");
            }
            crate::say!("Replication {copies} set: {path}");
            waiting.borrow_mut().push(path.clone());
            Ok(())
        };
        shell.each(&self.paths, true, change).await;
        if self.wait {
            for path in waiting.into_inner() {
                shell.keep(self.settle(shell, &path).await);
            }
        }
        Ok(())
    }

    /// Until each block of a file has its copies.
    async fn settle(&self, shell: &Shell, path: &str) -> Result<()> {
        let copies = usize::from(self.copies);
        while !self.is_settled(&shell.fs, path, copies).await? {
            tokio::time::sleep(LOOK).await;
        }
        crate::say!("Waiting for {path} ... done");
        Ok(())
    }

    async fn is_settled(&self, fs: &FileSystem, path: &str, copies: usize) -> Result<bool> {
        let blocks = fs.block_locations(path, 0, u64::MAX).await?.blocks;
        Ok(blocks.iter().all(|block| block.locations.len() == copies))
    }
}

/// `cairn fs concat`.
#[derive(Debug, clap::Args)]
pub struct Concat {
    /// The file that gets the bytes of the others behind its own
    target: String,
    /// The others, which are gone then
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
}

impl Concat {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let target = shell.at(&self.target)?;
        let sources = self.sources.iter().map(|path| shell.at(path)).collect::<Result<Vec<_>>>()?;
        Ok(shell.fs.concat(&target, &sources).await?)
    }
}

/// `cairn fs test`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Test {
    /// Whether it is there
    #[arg(short, long, group = "what")]
    exists: bool,
    /// Whether it is a directory
    #[arg(short, long, group = "what")]
    directory: bool,
    /// Whether it is a file
    #[arg(short, long, group = "what")]
    file: bool,
    /// Whether it has bytes
    #[arg(short = 's', long, group = "what")]
    filled: bool,
    /// Whether it has no bytes
    #[arg(short = 'z', long, group = "what")]
    empty: bool,
    /// Whether you may read it
    #[arg(short, long, group = "what")]
    readable: bool,
    /// Whether you may write it
    #[arg(short, long, group = "what")]
    writable: bool,
    /// The file or directory
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Test {
    /// Fails without a word where it is not so.
    pub async fn run(self, shell: &Shell) -> Result<()> {
        for path in &self.paths {
            let found = match super::glob::has_wildcards(path) {
                true => shell.find(path).await.ok().and_then(|found| found.into_iter().next()),
                false => shell.fs.file_info(&shell.at(path)?).await?,
            };
            let is_so = match &found {
                None => false,
                Some(status) => self.is_so(shell, status).await?,
            };
            if shell.json {
                crate::say!("{}", serde_json::json!({"path": path, "result": is_so}));
            }
            if !is_so {
                shell.fail();
            }
        }
        Ok(())
    }

    async fn is_so(&self, shell: &Shell, status: &FileStatus) -> Result<bool> {
        Ok(match self {
            Test { exists: true, .. } => true,
            Test { directory: true, .. } => status.is_dir(),
            Test { file: true, .. } => !status.is_dir(),
            Test { filled: true, .. } => status.len > 0,
            Test { empty: true, .. } => status.len == 0,
            Test { readable: true, .. } => shell.fs.may(&status.path, 4).await?,
            _ => shell.fs.may(&status.path, 2).await?,
        })
    }
}
