//! Local files that are stored: `put`, `append`, and those that are moved.

use super::paths::below;
use super::shell::{Ended, Shell, until_told_to_stop};
use super::transfer;
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::CreateOptions;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The number and name of the policy for files that may be in memory only.
const LAZY_PERSIST: &str = "LAZY_PERSIST";

/// `cairn fs put`.
#[derive(Debug, clap::Args)]
pub struct Put {
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Keep times, owner, group and mode
    #[arg(short = 'p', long)]
    preserve: bool,
    /// Write under the final name at once, not under another until the file is whole
    #[arg(short = 'd', long)]
    direct: bool,
    /// One copy, which may stay in memory for a while
    #[arg(short = 'l', long)]
    lazy_persist: bool,
    /// Policy of the new files (default: the directory's)
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Keep this many copies instead of erasure coding
    #[arg(long, value_name = "COPIES", conflicts_with = "policy")]
    replication: Option<u16>,
    /// What to store (- for standard input), then where
    #[arg(required = true, num_args = 2.., value_name = "LOCAL... PATH")]
    paths: Vec<String>,
}

impl Put {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        let mut jobs = Jobs::default();
        let done = until_told_to_stop(self.all(shell, &mut jobs, false)).await;
        jobs.clean_up(shell).await;
        done
    }

    async fn all(&self, shell: &Shell, jobs: &mut Jobs, remove_local: bool) -> Result<()> {
        let (target, sources) = self.paths.split_last().context("nothing to store")?;
        let target = shell.at(target)?;
        let into = shell.fs.file_info(&target).await?.is_some_and(|status| status.is_dir());
        if sources.len() > 1 && !into {
            bail!("{target}: No such directory");
        }
        let options = CreateOptions {
            overwrite: self.force,
            // Hadoop's put makes no folders.
            create_parents: !shell.is_hadoop,
            policy: self.policy.clone(),
            replication: if self.lazy_persist { Some(1) } else { self.replication },
            should_replicate: self.replication.is_some(),
            ..CreateOptions::default()
        };
        for source in sources {
            let source = Path::new(source);
            let path = match source.file_name() {
                Some(name) if into => below(&target, utf8(name, source)?),
                _ => target.clone(),
            };
            let stored = self.tree(shell, source, &path, &options, jobs).await;
            if shell.keep(stored).is_some() && remove_local {
                let removed = if source.is_dir() && !source.is_symlink() {
                    std::fs::remove_dir_all(source)
                } else {
                    std::fs::remove_file(source)
                };
                shell.keep(removed.with_context(|| format!("cannot remove {}", source.display())));
            }
        }
        Ok(())
    }

    async fn tree(
        &self,
        shell: &Shell,
        local: &Path,
        path: &str,
        options: &CreateOptions,
        jobs: &mut Jobs,
    ) -> Result<()> {
        if local == Path::new("-") {
            let file = std::fs::File::open("/dev/stdin").context("cannot read standard input")?;
            let bar = output::byte_bar(0, path);
            jobs.store(shell, file, path, options, &bar, self.direct).await?;
            bar.finish_and_clear();
            return self.finish(shell, None, path).await;
        }
        let mut waiting = vec![(local.to_path_buf(), path.to_string())];
        let mut directories = Vec::new();
        while let Some((local, path)) = waiting.pop() {
            let about = || format!("cannot store {}", local.display());
            let metadata = std::fs::metadata(&local).with_context(about)?;
            if metadata.is_dir() {
                shell.fs.mkdirs(&path, 0o755).await?;
                for entry in std::fs::read_dir(&local).with_context(about)? {
                    let entry = entry.with_context(about)?;
                    let name = entry.file_name();
                    waiting.push((entry.path(), below(&path, utf8(&name, &entry.path())?)));
                }
                directories.push((local, path));
                continue;
            }
            let bar = output::byte_bar(metadata.len(), &path);
            let stored = async {
                let file = tokio::fs::File::open(&local).await?.into_std().await;
                jobs.store(shell, file, &path, options, &bar, self.direct).await
            };
            stored.await.with_context(about)?;
            bar.finish_and_clear();
            self.finish(shell, Some(&local), &path).await?;
        }
        // The times of a directory change with what comes into it.
        if self.preserve {
            for (local, path) in directories.into_iter().rev() {
                self.finish(shell, Some(&local), &path).await?;
            }
        }
        Ok(())
    }

    /// Gives a file that is stored what the local one has.
    async fn finish(&self, shell: &Shell, local: Option<&Path>, path: &str) -> Result<()> {
        let fs = &shell.fs;
        if self.lazy_persist {
            fs.set_storage_policy(path, LAZY_PERSIST).await?;
        }
        let Some(local) = local.filter(|_| self.preserve) else { return Ok(()) };
        let about = || format!("cannot look at {}", local.display());
        let metadata = std::fs::metadata(local).with_context(about)?;
        let ms = |seconds: i64, nanos: i64| {
            u64::try_from(seconds * 1000 + nanos / 1_000_000).unwrap_or(0)
        };
        fs.set_permission(path, (metadata.mode() & 0o1777) as u16).await?;
        let (owner, group) = (name_of(metadata.uid(), "passwd"), name_of(metadata.gid(), "group"));
        if owner.is_some() || group.is_some() {
            fs.set_owner(path, owner.as_deref(), group.as_deref()).await?;
        }
        let modified = ms(metadata.mtime(), metadata.mtime_nsec());
        let accessed = ms(metadata.atime(), metadata.atime_nsec());
        Ok(fs.set_times(path, Some(modified), Some(accessed)).await?)
    }
}

/// The name of a user or group, by the file in `/etc` that has it.
fn name_of(id: u32, table: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/etc").join(table)).ok()?;
    let fits = |line: &&str| line.split(':').nth(2).is_some_and(|field| field == id.to_string());
    Some(text.lines().find(fits)?.split(':').next()?.to_string())
}

/// The name of a local file as one of the file system. With signs in place of what is not UTF-8, two could become one.
fn utf8<'a>(name: &'a OsStr, local: &Path) -> Result<&'a str> {
    name.to_str().with_context(|| format!("cannot store {local:?}: its name is not UTF-8"))
}

/// Files that are being written, which must not stay behind as they are.
#[derive(Default)]
pub struct Jobs {
    unfinished: Option<String>,
}

impl Jobs {
    async fn store(
        &mut self,
        shell: &Shell,
        file: std::fs::File,
        path: &str,
        options: &CreateOptions,
        bar: &indicatif::ProgressBar,
        direct: bool,
    ) -> Result<()> {
        let path = path.trim_end_matches('/');
        transfer::check_target(&shell.fs, path, options).await?;
        if direct {
            return transfer::write_from(file, shell.fs.create(path, options).await?, bar).await;
        }
        transfer::store(&shell.fs, file, path, options, bar, &mut self.unfinished).await
    }

    /// Deletes what is not whole.
    async fn clean_up(self, shell: &Shell) {
        if let Some(path) = self.unfinished {
            // What ended the copy is what to tell; a second signal ends this too.
            let delete = async { Ok(shell.fs.delete(&path, false).await.map(drop)?) };
            let _ = until_told_to_stop(delete).await;
        }
    }
}

/// `cairn fs move-from-local`.
#[derive(Debug, clap::Args)]
pub struct MoveFromLocal {
    #[command(flatten)]
    put: Put,
}

impl MoveFromLocal {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        let mut jobs = Jobs::default();
        let done = until_told_to_stop(self.put.all(shell, &mut jobs, true)).await;
        jobs.clean_up(shell).await;
        done
    }
}

/// `cairn fs append`.
#[derive(Debug, clap::Args)]
pub struct Append {
    /// Begin a new block
    #[arg(short, long)]
    new_block: bool,
    /// Local files (- for standard input), then the file that gets their bytes behind its own
    #[arg(required = true, num_args = 2.., value_name = "LOCAL... PATH")]
    paths: Vec<String>,
}

impl Append {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        until_told_to_stop(self.all(shell)).await
    }

    async fn all(&self, shell: &Shell) -> Result<()> {
        let (target, sources) = self.paths.split_last().context("nothing to append")?;
        let path = shell.at(target)?;
        // All are there before a byte is written.
        let open = |source: &String| {
            let local =
                if source == "-" { PathBuf::from("/dev/stdin") } else { PathBuf::from(source) };
            let file = std::fs::File::open(&local);
            let file = file.with_context(|| format!("cannot read {}", local.display()))?;
            let len = file.metadata().map_or(0, |metadata| metadata.len());
            anyhow::Ok((file, len))
        };
        let files = sources.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut writer = match shell.fs.file_info(&path).await? {
            Some(status) if status.is_dir() => bail!("{path}: Is a directory"),
            Some(_) => shell.fs.append_with(&path, self.new_block).await?,
            None => shell.fs.create(&path, &CreateOptions::default()).await?,
        };
        for (file, len) in files {
            let bar = output::byte_bar(len, &path);
            transfer::copy_from(file, &mut writer, &bar).await?;
            bar.finish_and_clear();
        }
        Ok(writer.close().await?)
    }
}
