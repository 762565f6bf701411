//! Files that are fetched: `get`, `getmerge`, and those that are moved here.

use super::shell::{Ended, Shell, until_told_to_stop};
use super::transfer::{self, Source};
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::FileStatus;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::{AsyncWriteExt, BufWriter};

/// `cairn fs get`.
#[derive(Debug, clap::Args)]
pub struct Get {
    /// Replace local files that exist
    #[arg(short, long)]
    force: bool,
    /// Keep the time of the last change, and the mode
    #[arg(short = 'p', long)]
    preserve: bool,
    /// What to fetch, then where to (default: here, under the same name; - for standard output)
    #[arg(required = true, value_name = "PATH... LOCAL")]
    paths: Vec<String>,
}

impl Get {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        until_told_to_stop(async { self.all(shell).await.map(drop) }).await
    }

    /// Returns what was fetched as a whole.
    async fn all(&self, shell: &Shell) -> Result<Vec<FileStatus>> {
        let (sources, local) = match &self.paths[..] {
            [source] => (std::slice::from_ref(source), "."),
            [sources @ .., local] => (sources, local.as_str()),
            [] => bail!("nothing to fetch"),
        };
        let mut found = Vec::new();
        for source in sources {
            found.extend(shell.keep(shell.find(source).await).unwrap_or_default());
        }
        let local = PathBuf::from(local);
        if local == Path::new("-") {
            let mut out = tokio::io::stdout();
            for status in &found {
                transfer::read_into(&shell.fs, &status.path, &mut out, |_| {}).await?;
            }
            out.flush().await?;
            return Ok(found);
        }
        if (sources.len() > 1 || found.len() > 1) && !local.is_dir() {
            bail!("{}: No such directory", local.display());
        }
        let mut fetched = Vec::new();
        for status in found {
            let place = if local.is_dir() { local.join(status.name()) } else { local.clone() };
            if shell.keep(self.tree(shell, &status, place).await).is_some() {
                fetched.push(status);
            }
        }
        Ok(fetched)
    }

    async fn tree(&self, shell: &Shell, root: &FileStatus, local: PathBuf) -> Result<()> {
        let mut waiting = vec![(root.clone(), local)];
        let mut directories = Vec::new();
        while let Some((status, local)) = waiting.pop() {
            if status.is_dir() {
                let about = || format!("cannot make {}", local.display());
                std::fs::create_dir_all(&local).with_context(about)?;
                let mut children = shell.fs.read_directory(&status.path);
                while let Some((child, bytes)) = children.next().await? {
                    let place = local.join(child.name());
                    match bytes {
                        Some(bytes) => {
                            self.fetch(&child, &place, Source::Bytes(&bytes)).await?;
                        }
                        None => waiting.push((child, place)),
                    }
                }
                directories.push((status, local));
                continue;
            }
            self.fetch(&status, &local, Source::Path(&shell.fs, &status.path)).await?;
        }
        for (status, local) in directories.into_iter().rev() {
            self.finish(&status, &local)?;
        }
        Ok(())
    }

    async fn fetch(&self, status: &FileStatus, local: &Path, source: Source<'_>) -> Result<()> {
        let place = transfer::place(local, self.force)?;
        let bar = output::byte_bar(status.len, &status.path);
        let about = || format!("cannot fetch {}", status.path);
        transfer::download(source, &place, &bar).await.with_context(about)?;
        bar.finish_and_clear();
        self.finish(status, local)
    }

    fn finish(&self, status: &FileStatus, local: &Path) -> Result<()> {
        if !self.preserve {
            return Ok(());
        }
        let about = || format!("cannot change {}", local.display());
        let mode = std::fs::Permissions::from_mode(u32::from(status.permission));
        let time = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let times = std::fs::FileTimes::new()
            .set_modified(time(status.modification_time_ms))
            .set_accessed(time(status.access_time_ms));
        let set = || {
            std::fs::File::open(local)?.set_times(times)?;
            std::fs::set_permissions(local, mode)
        };
        set().with_context(about)
    }
}

/// `cairn fs move-to-local`.
#[derive(Debug, clap::Args)]
pub struct MoveToLocal {
    #[command(flatten)]
    get: Get,
}

impl MoveToLocal {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        let moved = async {
            for status in self.get.all(shell).await? {
                shell.fs.delete(&status.path, true).await?;
            }
            Ok(())
        };
        until_told_to_stop(moved).await
    }
}

/// `cairn fs getmerge`.
#[derive(Debug, clap::Args)]
pub struct Getmerge {
    /// A new line behind each file
    #[arg(long)]
    nl: bool,
    /// No new line behind files without bytes
    #[arg(long)]
    skip_empty_file: bool,
    /// Files, and directories for the files in them, then the local file that gets their bytes
    #[arg(required = true, num_args = 2.., value_name = "PATH... LOCAL")]
    paths: Vec<String>,
}

impl Getmerge {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        until_told_to_stop(self.all(shell)).await
    }

    async fn all(&self, shell: &Shell) -> Result<()> {
        let (local, sources) = self.paths.split_last().context("nothing to fetch")?;
        let found = shell.find_all(sources).await;
        let about = || format!("cannot write {local}");
        let file = tokio::fs::File::create(local).await.with_context(about)?;
        let mut out = tokio::io::BufWriter::new(file);
        for status in found {
            if !status.is_dir() {
                self.add(shell, &status, None, &mut out).await?;
                continue;
            }
            let mut children = shell.fs.read_directory(&status.path);
            while let Some((child, bytes)) = children.next().await? {
                if !child.is_dir() {
                    self.add(shell, &child, bytes.as_deref(), &mut out).await?;
                }
            }
        }
        out.flush().await.with_context(about)?;
        out.into_inner().into_std().await.flush().with_context(about)
    }

    /// Writes a file, whose bytes may be here, behind the others.
    async fn add(
        &self,
        shell: &Shell,
        status: &FileStatus,
        bytes: Option<&[u8]>,
        out: &mut BufWriter<tokio::fs::File>,
    ) -> Result<()> {
        let bar = output::byte_bar(status.len, &status.path);
        match bytes {
            Some(bytes) => out.write_all(bytes).await?,
            None => transfer::read_into(&shell.fs, &status.path, out, |len| bar.inc(len)).await?,
        }
        bar.finish_and_clear();
        if self.nl && !(self.skip_empty_file && status.len == 0) {
            out.write_all(b"\n").await?;
        }
        Ok(())
    }
}
