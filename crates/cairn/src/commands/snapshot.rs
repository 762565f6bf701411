//! `cairn snapshot`: snapshots, the directories that may have some, and what changed between two.
//!
//! Source: Hadoop 3.5.0 `LsSnapshottableDir`, `LsSnapshot`, `SnapshotDiff`.

use super::fs::{absolute, permission_text};
use crate::{Settings, config};
use anyhow::Result;
use cairn_client::{FileStatus, FileSystem};
use cairn_net::date::Moment;
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;

/// Flags of `cairn snapshot`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// List the snapshots of a directory
    List {
        /// The directory
        path: String,
    },
    /// List the directories that may have snapshots and are yours; for a superuser, all
    Directories,
    /// Show what differs between two snapshots of a directory: + made, - deleted, M changed, R moved
    Diff {
        /// The directory, or one below it
        path: String,
        /// The earlier snapshot; . for what is there now
        from: String,
        /// The later one; . for what is there now
        to: String,
    },
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let json = settings.json;
    match args.command {
        SnapshotCommand::List { path } => list(&fs, &absolute(&path, fs.config())?, json).await?,
        SnapshotCommand::Directories => directories(&fs, json).await?,
        SnapshotCommand::Diff { path, from, to } => {
            diff(&fs, &absolute(&path, fs.config())?, [&from, &to], json).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What both lists begin a row with.
fn row(status: &FileStatus) -> String {
    let time = Moment::of_ms(status.modification_time_ms).to_the_minute();
    let permission = permission_text(status.permission);
    format!("d{permission} 0 {} {} {} {time}", status.owner, status.group, status.len)
}

async fn list(fs: &FileSystem, path: &str, json: bool) -> Result<()> {
    for snapshot in fs.snapshots(path).await? {
        let (status, id) = (&snapshot.status, snapshot.id);
        let state = if snapshot.is_deleted { "DELETED" } else { "ACTIVE" };
        if json {
            let time = status.modification_time_ms;
            let value = json!({"path": status.path, "name": status.name(), "id": id, "state": state,
                               "modification_time_ms": time});
            crate::say!("{value}");
        } else {
            crate::say!("{} {id} {state} {}", row(status), status.path);
        }
    }
    Ok(())
}

async fn directories(fs: &FileSystem, json: bool) -> Result<()> {
    for directory in fs.snapshottable_directories().await? {
        let (status, count, quota) =
            (&directory.status, directory.snapshots, directory.snapshot_quota);
        if json {
            let value = json!({"path": status.path, "snapshots": count, "snapshot_quota": quota,
                               "owner": status.owner, "group": status.group});
            crate::say!("{value}");
        } else {
            crate::say!("{} {count} {quota} {}", row(status), status.path);
        }
    }
    Ok(())
}

async fn diff(fs: &FileSystem, path: &str, names: [&str; 2], json: bool) -> Result<()> {
    // What there is now has no name; a snapshot may be written as the path that leads to it.
    let name = |word: &str| match word {
        "." => String::new(),
        word => word.rsplit_once(".snapshot/").map_or(word, |(_, name)| name).to_string(),
    };
    let [from, to] = names.map(name);
    let changes = fs.snapshot_diff(path, &from, &to).await?;
    let told = |name: &str| match name {
        "" => "current directory".to_string(),
        name => format!("snapshot {name}"),
    };
    if !json {
        let (from, to) = (told(&from), told(&to));
        crate::say!("Difference between {from} and {to} under directory {path}:");
    }
    for change in changes {
        let label = change.kind.label();
        if json {
            crate::say!("{}", json!({"kind": label, "path": change.path, "target": change.target}));
            continue;
        }
        let below =
            |path: &str| if path.is_empty() { ".".to_string() } else { format!("./{path}") };
        match &change.target {
            Some(target) => crate::say!("{label}\t{} -> {}", below(&change.path), below(target)),
            None => crate::say!("{label}\t{}", below(&change.path)),
        }
    }
    Ok(())
}
