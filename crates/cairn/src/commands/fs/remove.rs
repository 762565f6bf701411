//! What is removed: `rm`, `rmdir`, and the trash that is emptied.

use super::shell::Shell;
use super::trash::{self, Trash};
use anyhow::{Result, bail};
use cairn_client::FileStatus;
use std::io::BufRead;

/// Files above which `--safely` asks.
const ASK_ABOVE: u64 = 100;

/// `cairn fs rm`.
#[derive(Debug, clap::Args)]
pub struct Rm {
    /// And whole directories
    #[arg(short, long, short_alias = 'R')]
    recursive: bool,
    /// Say nothing of what does not exist
    #[arg(short, long)]
    force: bool,
    /// Remove for good, not to the trash
    #[arg(long)]
    skip_trash: bool,
    /// Ask before directories with more than hadoop.shell.safely.delete.limit.num.files (100) files go
    #[arg(long)]
    safely: bool,
    /// What to remove
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    #[arg(skip)]
    ask_above: Option<u64>,
}

impl Rm {
    pub fn asking_above(mut self, files: Option<u64>) -> Rm {
        self.ask_above = files;
        self
    }

    pub async fn run(self, shell: &Shell) -> Result<()> {
        let trash = if self.skip_trash { None } else { Trash::of(&shell.fs).await? };
        for path in &self.paths {
            let found = match shell.find(path).await {
                // What a pattern does not fit is not there either.
                Err(error) if self.force && !error.is::<cairn_client::ClientError>() => continue,
                found => shell.keep(found).unwrap_or_default(),
            };
            for status in found {
                shell.keep(self.one(shell, &status, trash.as_ref()).await);
            }
        }
        Ok(())
    }

    async fn one(&self, shell: &Shell, status: &FileStatus, trash: Option<&Trash>) -> Result<()> {
        let (fs, path) = (&shell.fs, &status.path);
        if status.is_dir() && !self.recursive {
            bail!("{path}: Is a directory");
        }
        if path == "/" {
            bail!("/: is never removed");
        }
        if self.safely && status.is_dir() && !self.may_go(shell, path).await? {
            shell.tell_hadoop(format_args!("Delete aborted at user request."));
            return Ok(());
        }
        if let Some(trash) = trash
            && trash.take(fs, path).await?
        {
            return Ok(());
        }
        if !fs.delete(path, self.recursive).await? {
            bail!("{path}: could not be removed");
        }
        shell.tell_hadoop(format_args!("Deleted {path}"));
        Ok(())
    }

    /// Whether a directory has few files, or the user says that it is to go.
    async fn may_go(&self, shell: &Shell, path: &str) -> Result<bool> {
        let summary = shell.fs.content_summary(path).await?;
        let files = summary.file_count;
        if files <= self.ask_above.unwrap_or(ASK_ABOVE) {
            return Ok(true);
        }
        crate::complain!("Proceed deleting {files} files? (Y or N)");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes" | "YES"))
    }
}

/// `cairn fs rmdir`.
#[derive(Debug, clap::Args)]
pub struct Rmdir {
    /// Leave directories that are not empty, without a word
    #[arg(long)]
    ignore_fail_on_non_empty: bool,
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Rmdir {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let remove = async |status: &FileStatus| {
            let path = &status.path;
            if !status.is_dir() {
                bail!("{path}: Is not a directory");
            }
            if shell.fs.list(path).next().await?.is_some() {
                match self.ignore_fail_on_non_empty {
                    true => return Ok(()),
                    false => bail!("{path}: Directory is not empty"),
                }
            }
            shell.fs.delete(path, false).await?;
            Ok(())
        };
        shell.each(&self.paths, false, remove).await;
        Ok(())
    }
}

/// `cairn fs expunge`.
#[derive(Debug, clap::Args)]
pub struct Expunge {
    /// All that is in the trash, however old
    #[arg(long)]
    immediate: bool,
}

impl Expunge {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let told = trash::expunge(&shell.fs, self.immediate).await?;
        for path in told {
            crate::complain!("{path}");
        }
        Ok(())
    }
}
