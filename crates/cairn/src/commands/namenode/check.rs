//! `cairn namenode check`: whether a NameNode's folder is whole, or a folder of backups.

use crate::output::table;
use crate::{Settings, config};
use anyhow::Result;
use cairn_namenode::journal::backup::file::{BackupFile, Kind};
use cairn_namenode::journal::backup::restore;
use cairn_namenode::journal::offline::{Folder, check_folder};
use cairn_net::date::Moment;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of `cairn namenode check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The NameNode's folder (default: dfs.namenode.name.dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Look at this folder of backups instead
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    backups: Option<PathBuf>,
}

impl Check {
    /// Prints what is there and what is wrong with it; exits with 1 if anything is.
    pub async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let json = settings.json;
        if let Some(folder) = self.backups {
            return tokio::task::spawn_blocking(move || check_backups(&folder, json)).await?;
        }
        let node = config::namenode::read(&settings.configuration()?)?;
        let dir = self.data.unwrap_or(node.name_dir);
        let look = move || check_folder(&dir, node.store_cache_len).map(|folder| (dir, folder));
        let (dir, folder) = tokio::task::spawn_blocking(look).await??;
        Ok(tell(&dir, &folder, json))
    }
}

fn code(is_whole: bool) -> ExitCode {
    if is_whole { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn tell(dir: &Path, folder: &Folder, json: bool) -> ExitCode {
    let Folder { identity, stored, logged, checked, problems } = folder;
    if json {
        crate::say!(
            "{}",
            json!({"data": dir.display().to_string(), "block_pool": identity.block_pool_id,
                   "stored_entry": stored, "logged_entry": logged, "inodes": checked.inodes,
                   "blocks": checked.blocks, "problems": problems})
        );
        return code(problems.is_empty());
    }
    let rows = [
        ("Folder", dir.display().to_string()),
        ("Block pool", identity.block_pool_id.clone()),
        ("Last entry in the store", stored.to_string()),
        ("Last entry in the log", logged.to_string()),
        ("Files and directories", checked.inodes.to_string()),
        ("Blocks and groups", checked.blocks.to_string()),
    ];
    let rows: Vec<_> = rows.map(|(what, value)| vec![what.to_string(), value]).to_vec();
    crate::say!("{}", table(&rows).trim_end());
    for problem in problems {
        crate::say!("{problem}");
    }
    match problems.len() {
        0 => crate::say!("Everything is whole"),
        1 => crate::say!("One thing is wrong"),
        count => crate::say!("{count} things are wrong"),
    }
    code(problems.is_empty())
}

fn check_backups(folder: &Path, json: bool) -> Result<ExitCode> {
    let (backups, damaged) = restore::list(folder)?;
    let mut problems: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    let mut rows = Vec::new();
    for found in backups {
        let checked = BackupFile::open(&found.path).and_then(BackupFile::check);
        let header = &found.header;
        let what = match header.kind {
            Kind::Snapshot => format!("everything up to entry {}", header.last),
            Kind::Changes => format!("entries {} to {}", header.first, header.last),
        };
        let state = if checked.is_ok() { "whole" } else { "damaged" };
        problems.extend(checked.err().map(|error| error.to_string()));
        let name = found.path.file_name().unwrap_or_default().display().to_string();
        rows.push((name, what, header.made_ms, state));
    }
    if json {
        let backups = rows.iter().map(|(name, what, made_ms, state)| {
            json!({"name": name, "has": what, "made_ms": made_ms, "state": state})
        });
        let backups: Vec<_> = backups.collect();
        crate::say!("{}", json!({"backups": backups, "problems": problems}));
        return Ok(code(problems.is_empty()));
    }
    let cells = rows.iter().map(|(name, what, made_ms, state)| {
        vec![name.clone(), Moment::of_ms(*made_ms).to_the_minute(), what.clone(), state.to_string()]
    });
    crate::say!("{}", table(&cells.collect::<Vec<_>>()).trim_end());
    for problem in &problems {
        crate::say!("{problem}");
    }
    Ok(code(problems.is_empty()))
}
