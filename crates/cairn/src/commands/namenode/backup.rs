//! `cairn namenode backup` and `restore`: the namespace kept elsewhere, and made anew of that.

use crate::commands::pages::{self, PageServer, Pages, Refused, encoded};
use crate::output::{self, size};
use crate::{Settings, config, time};
use anyhow::{Context, Result, bail};
use cairn_client::FileSystem;
use cairn_namenode::journal::backup::file::{BackupFile, Header, Kind};
use cairn_namenode::journal::backup::restore::{self, Until};
use cairn_net::date::Moment;
use cairn_process::storage_dir;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The log does not go back to what the backups have.
const GONE: u16 = 410;

/// Flags of `cairn namenode backup`.
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The folder of the backups
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Have everything, also where changes since the last backup would do
    #[arg(long)]
    full: bool,
}

impl Backup {
    /// Gets everything where that is wanted, then what has changed since the newest backup in the folder: up to there if
    /// everything was wanted, so that the changes lead past it without a gap. Where the log does not go back so far,
    /// everything.
    pub async fn run(&self, settings: &Settings) -> Result<ExitCode> {
        let conf = settings.configuration()?;
        let fs = FileSystem::connect(config::client::read(&conf)?).await?;
        let server = Pages::of(&conf, &fs)?.of_namenode(&fs).await?;
        storage_dir::create(&self.to)?;
        let (mut backups, damaged) = restore::list(&self.to)?;
        damaged.iter().for_each(|error| crate::complain!("{error}"));
        let before = backups.pop().map(|found| found.header);
        let from = Source { server: &server, user: &fs.config().user };
        let mut kept = Vec::new();
        if self.full || before.is_none() {
            kept.push(from.keep(&self.to, None, None).await?);
        }
        let until = kept.first().map(|whole| whole.header.last);
        if let Some(before) = before {
            match from.keep(&self.to, Some(&before), until).await {
                Err(error) if error.downcast_ref::<Refused>().is_some_and(|it| it.code == GONE) => {
                    crate::complain!("{error}");
                    if kept.is_empty() {
                        kept.push(from.keep(&self.to, None, None).await?);
                    }
                }
                changes => kept.push(changes?),
            }
        }
        for Kept { path, len, header } in kept {
            let path = path.map(|path| path.display().to_string());
            match (path, header.kind) {
                (path, _) if settings.json => {
                    let line = json!({"path": path, "bytes": len, "last_entry": header.last});
                    crate::say!("{line}");
                }
                (None, _) => crate::say!("Nothing has changed since entry {}", header.last),
                (Some(path), Kind::Snapshot) => {
                    crate::say!("{path}: everything up to entry {}, {}", header.last, size(len));
                }
                (Some(path), Kind::Changes) => {
                    let Header { first, last, .. } = header;
                    crate::say!("{path}: entries {first} to {last}, {}", size(len));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A backup that was received.
struct Kept {
    /// None if there was nothing to keep.
    path: Option<PathBuf>,
    len: u64,
    header: Header,
}

/// A NameNode that is backed up.
struct Source<'a> {
    server: &'a PageServer,
    user: &'a str,
}

impl Source<'_> {
    /// Gets a backup into a folder: what has changed since `before`, up to the entry `until` if that is given, or
    /// everything.
    async fn keep(
        &self,
        folder: &Path,
        before: Option<&Header>,
        until: Option<u64>,
    ) -> Result<Kept> {
        let part = folder.join(".receiving");
        let header = self.receive(before, until, &part).await?;
        if let Some(before) = before
            && before.identity != header.identity
        {
            let (here, there) = (&header.identity.block_pool_id, &before.identity.block_pool_id);
            fs::remove_file(&part)?;
            bail!("{} has backups of {there}; this is {here}", folder.display());
        }
        if header.kind == Kind::Changes && header.first > header.last {
            fs::remove_file(&part)?;
            return Ok(Kept { path: None, len: 0, header });
        }
        let (path, len) = (folder.join(header.file_name()), part.metadata()?.len());
        fs::rename(&part, &path)?;
        File::open(folder)?.sync_all()?;
        Ok(Kept { path: Some(path), len, header })
    }

    /// Gets a backup into the file `part`, durably, and checks that it is whole.
    async fn receive(
        &self,
        before: Option<&Header>,
        until: Option<u64>,
        part: &Path,
    ) -> Result<Header> {
        let until = until.map(|until| format!("&until={until}")).unwrap_or_default();
        let after =
            |header: &Header| format!("&after={}&timeline={}{until}", header.last, header.timeline);
        let after = before.map(after).unwrap_or_default();
        let target = format!("/backup?user.name={}{after}", encoded(self.user));
        let mut body = pages::bytes(self.server, &target).await?;
        let mut file = tokio::fs::File::create(part).await?;
        let (bar, mut piece) = (output::byte_bar(0, "backup"), vec![0; 1 << 20]);
        loop {
            let len = body.read(&mut piece).await.context("receiving the backup")?;
            if len == 0 {
                break;
            }
            file.write_all(&piece[..len]).await?;
            bar.inc(len as u64);
        }
        bar.finish_and_clear();
        file.sync_all().await?;
        let part = part.to_owned();
        let checked = tokio::task::spawn_blocking(move || BackupFile::open(&part)?.check()).await?;
        Ok(checked?)
    }
}

/// Flags of `cairn namenode restore`.
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// The folder of the backups
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// An empty or missing folder for the namespace (default: dfs.namenode.name.dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Go back to this moment, as 2026-01-31 23:59:59 in UTC (default: all that the backups have)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<u64>,
    /// Go back to what was there after this entry of the log
    #[arg(long, value_name = "NUMBER", conflicts_with = "until")]
    until_entry: Option<u64>,
}

fn moment(text: &str) -> Result<u64> {
    time::spoken(text).context("it takes a time like 2026-01-31 23:59:59, in UTC")
}

impl Restore {
    /// Makes the namespace; no NameNode may have the folder.
    pub async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let node = config::namenode::read(&settings.configuration()?)?;
        let dir = self.data.unwrap_or(node.name_dir);
        let until = match (self.until, self.until_entry) {
            (Some(ms), _) => Until::Time(ms),
            (None, Some(entry)) => Until::Entry(entry),
            (None, None) => Until::End,
        };
        let (from, made) = (self.from, dir.clone());
        let restore = move || restore::restore(&from, &made, until, node.store_cache_len);
        let done = tokio::task::spawn_blocking(restore).await??;
        let (entry, ms) = (done.restored.sequence, done.restored.entry_ms);
        if settings.json {
            crate::say!(
                "{}",
                json!({"data": dir.display().to_string(), "entry": entry, "entry_ms": ms,
                       "records": done.records, "replayed": done.entries})
            );
            return Ok(ExitCode::SUCCESS);
        }
        crate::say!(
            "{} is as after entry {entry} of {}: {} records and {} changes",
            dir.display(),
            Moment::of_ms(ms),
            done.records,
            done.entries
        );
        crate::say!(
            "Start the NameNode on it. It has no replica deleted until `cairn admin restored --accept`."
        );
        Ok(ExitCode::SUCCESS)
    }
}
