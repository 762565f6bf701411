//! Copies and moves within the file system.

use super::paths::below;
use super::shell::{Ended, Shell, until_told_to_stop};
use super::transfer;
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::{CreateOptions, FileStatus};

/// `cairn fs cp`.
#[derive(Debug, clap::Args)]
pub struct Cp {
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Keep times, owner, group and mode
    #[arg(short = 'p')]
    preserve_most: bool,
    /// Keep these: t times, o owner and group, p mode, a access control list, x extended attributes
    #[arg(long, value_name = "WHAT")]
    preserve: Option<String>,
    /// Write under the final name at once, not under another until the file is whole
    #[arg(short = 'd', long)]
    direct: bool,
    /// What to copy, then where to
    #[arg(required = true, num_args = 2.., value_name = "FROM... TO")]
    paths: Vec<String>,
}

/// What a copy keeps.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    times: bool,
    owner: bool,
    mode: bool,
    acl: bool,
    xattrs: bool,
}

impl Kept {
    fn parse(letters: &str) -> Result<Kept> {
        let mut kept = Kept::default();
        for letter in letters.chars() {
            match letter {
                't' => kept.times = true,
                'o' => kept.owner = true,
                'p' => kept.mode = true,
                'a' => (kept.mode, kept.acl) = (true, true),
                'x' => kept.xattrs = true,
                _ => bail!("'{letter}' is nothing to keep: t, o, p, a or x"),
            }
        }
        Ok(kept)
    }
}

impl Cp {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        let letters =
            self.preserve.as_deref().unwrap_or(if self.preserve_most { "top" } else { "" });
        let kept = Kept::parse(letters)?;
        let mut unfinished = None;
        let done = until_told_to_stop(self.all(shell, kept, &mut unfinished)).await;
        if let Some(path) = unfinished {
            let delete = async { Ok(shell.fs.delete(&path, false).await.map(drop)?) };
            let _ = until_told_to_stop(delete).await;
        }
        done
    }

    async fn all(&self, shell: &Shell, kept: Kept, unfinished: &mut Option<String>) -> Result<()> {
        let (target, sources) = self.paths.split_last().context("nothing to copy")?;
        let target = Target::of(shell, target, sources.len()).await?;
        for status in shell.find_all(sources).await {
            let path = target.path_of(&status);
            let copied = async {
                check_not_into_itself(&status, &path)?;
                self.tree(shell, &status, &path, kept, unfinished).await
            };
            shell.keep(copied.await);
        }
        Ok(())
    }

    async fn tree(
        &self,
        shell: &Shell,
        root: &FileStatus,
        path: &str,
        kept: Kept,
        unfinished: &mut Option<String>,
    ) -> Result<()> {
        let mut waiting = vec![(root.clone(), path.to_string())];
        let mut directories = Vec::new();
        while let Some((status, path)) = waiting.pop() {
            if status.is_dir() {
                shell.fs.mkdirs(&path, 0o777).await?;
                for child in shell.fs.list(&status.path).collect().await? {
                    let place = below(&path, child.name());
                    waiting.push((child, place));
                }
                directories.push((status, path));
                continue;
            }
            self.file(shell, &status, &path, unfinished).await?;
            keep(shell, &status, &path, kept).await?;
        }
        for (status, path) in directories.into_iter().rev() {
            keep(shell, &status, &path, kept).await?;
        }
        Ok(())
    }

    async fn file(
        &self,
        shell: &Shell,
        status: &FileStatus,
        path: &str,
        unfinished: &mut Option<String>,
    ) -> Result<()> {
        let options = CreateOptions { overwrite: self.force, ..CreateOptions::default() };
        transfer::check_target(&shell.fs, path, &options).await?;
        if status.path == path {
            // It is what it is to become.
            return Ok(());
        }
        let bar = output::byte_bar(status.len, path);
        let mut reader = shell.fs.open(&status.path).await?;
        if self.direct {
            let mut writer = shell.fs.create(path, &options).await?;
            transfer::copy_within(&mut reader, &mut writer, &bar).await?;
            writer.close().await?;
        } else {
            let copying = transfer::begin(&shell.fs, path, &options, unfinished);
            let mut writer = copying.await?;
            transfer::copy_within(&mut reader, &mut writer, &bar).await?;
            writer.close().await?;
            transfer::finish(&shell.fs, path, &options, unfinished).await?;
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// Gives a copy what the other file has.
///
/// Source: Hadoop 3.5.0 `CommandWithDestination#preserveAttributes`.
async fn keep(shell: &Shell, status: &FileStatus, path: &str, kept: Kept) -> Result<()> {
    let fs = &shell.fs;
    if kept.times {
        let (modified, accessed) = (status.modification_time_ms, status.access_time_ms);
        fs.set_times(path, Some(modified), Some(accessed)).await?;
    }
    if kept.owner {
        fs.set_owner(path, Some(&status.owner), Some(&status.group)).await?;
    }
    if kept.mode {
        fs.set_permission(path, status.permission).await?;
    }
    if kept.acl && status.has_acl {
        let acl = fs.acl(&status.path).await?;
        let entries = super::acl::whole(&acl, acl.permission.unwrap_or(status.permission));
        fs.set_acl(path, &entries).await?;
    }
    if kept.xattrs {
        for attribute in fs.xattrs(&status.path, &[]).await? {
            fs.set_xattr(path, &attribute.name, &attribute.value).await?;
        }
    }
    Ok(())
}

/// Where copies and what is moved go.
struct Target {
    path: String,
    is_dir: bool,
}

impl Target {
    async fn of(shell: &Shell, path: &str, sources: usize) -> Result<Target> {
        let path = shell.at(path)?;
        let status = shell.fs.file_info(&path).await?;
        let is_dir = status.as_ref().is_some_and(FileStatus::is_dir);
        match status {
            _ if is_dir || sources == 1 => Ok(Target { path, is_dir }),
            Some(_) => bail!("{path}: Is not a directory"),
            None => bail!("{path}: No such file or directory"),
        }
    }

    /// Where one of them goes.
    fn path_of(&self, status: &FileStatus) -> String {
        if self.is_dir { below(&self.path, status.name()) } else { self.path.clone() }
    }
}

fn check_not_into_itself(status: &FileStatus, path: &str) -> Result<()> {
    let is_below = path.strip_prefix(status.path.trim_end_matches('/'));
    if status.is_dir() && is_below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        bail!("{} to {path}: is a subdirectory of itself", status.path);
    }
    Ok(())
}

/// `cairn fs mv`.
#[derive(Debug, clap::Args)]
pub struct Mv {
    /// What to move, then its new name or the directory that gets it
    #[arg(required = true, num_args = 2.., value_name = "FROM... TO")]
    paths: Vec<String>,
}

impl Mv {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let (target, sources) = self.paths.split_last().context("nothing to move")?;
        let target = Target::of(shell, target, sources.len()).await?;
        for status in shell.find_all(sources).await {
            let (from, path) = (&status.path, target.path_of(&status));
            let moved = async {
                // Else it would come below the directory of its own name.
                if shell.fs.file_info(&path).await?.is_some() && !(from == &path && status.is_dir())
                {
                    bail!("{path}: File exists");
                }
                check_not_into_itself(&status, &path)?;
                if !shell.fs.rename(from, &path).await? {
                    bail!("{from}: could not be moved to {path}");
                }
                Ok(())
            };
            shell.keep(moved.await);
        }
        Ok(())
    }
}
