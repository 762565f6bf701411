//! `cairn namenode`: one NameNode, alone or of a quorum, until told to stop; and what is done with its folder ([`backup`], [`check`], [`export`], [`import`]).

mod backup;
mod check;
mod export;
mod force_quorum;
mod import;

use super::debug::inject::{self, partition::Door};
use crate::service::ServiceManager;
use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_namenode::{NameNode, NameNodeConfig, replica};
use cairn_operate::reconfiguration::Reload;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Flags of `cairn namenode`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Folder of the log and the store (default: dfs.namenode.name.dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Refuse to start on an empty folder instead of formatting it
    #[arg(long)]
    no_format: bool,
    /// Make a new file system in an empty folder, and end; what is there is left as it is
    #[arg(long, conflicts_with_all = ["no_format", "rollback"])]
    format_only: bool,
    /// Begin a quorum with the file system in the folder, or with a new one, and end; once, on one of its NameNodes: the
    /// others join when they are started
    #[arg(long, conflicts_with_all = ["no_format", "format_only"])]
    found_quorum: bool,
    /// Go back to where a rolling upgrade was prepared; what was done since is gone. Of several NameNodes one does, with
    /// --found-quorum, and the others join it as new ones
    #[arg(long)]
    rollback: bool,
}

/// What is done with a namespace besides serving it.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// Keep the namespace of a running NameNode elsewhere: everything, or what has changed since the last time
    Backup(backup::Backup),
    /// Look whether log and store of a NameNode that does not run are whole, or whether backups are
    Check(check::Check),
    /// Write the namespace as Hadoop's fsimage, from which Hadoop's NameNode goes on with the same DataNodes
    Export(export::Export),
    /// Go on with this NameNode alone where a majority of its quorum is lost for good, or say what that would lose
    ForceQuorum(force_quorum::ForceQuorum),
    /// Make a namespace of Hadoop's fsimage, whose DataNodes then go on with their disks as they are
    Import(import::Import),
    /// Make a namespace of backups, as it was at any moment that they have
    Restore(backup::Restore),
}

/// Runs the NameNode, and prints one JSON line when it serves; or does something with its folder.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    match args.what {
        Some(What::Backup(backup)) => return backup.run(settings).await,
        Some(What::Check(check)) => return check.run(settings).await,
        Some(What::Export(export)) => return export.run(settings).await,
        Some(What::ForceQuorum(force)) => return force.run(settings).await,
        Some(What::Import(import)) => return import.run(settings).await,
        Some(What::Restore(restore)) => return restore.run(settings).await,
        None => {}
    }
    let conf = settings.configuration()?;
    let mut node = config::namenode::read(&conf)?;
    let again = settings.clone();
    node.reload = Some(Reload::new(move || again.reload(config::namenode::read)));
    if let Some(folder) = args.data {
        let is_told = conf.get("cairn.quorum.dir").is_some();
        if let Some(quorum) = node.quorum.as_mut().filter(|_| !is_told) {
            quorum.dir = config::quorum::default_dir(&folder);
        }
        node.name_dir = folder;
    }
    node.reach = inject::reach(&conf)?;
    node.format_if_empty = !args.no_format;
    node.roll_back = args.rollback;
    if args.format_only && node.quorum.is_some() {
        bail!(
            "members of a quorum are not formatted: one is started with --found-quorum once, the others join"
        );
    }
    if args.format_only {
        return format(node).await;
    }
    if args.found_quorum {
        return found_quorum(node).await;
    }
    if node.quorum.is_some() {
        return member(node).await;
    }
    if let Some(security) = &node.security {
        // Told now rather than to each client.
        (security.acceptor.0)().context("the NameNode did not start")?;
    }
    let (reach, folder) = (node.reach.clone(), node.name_dir.clone());
    let running = NameNode::start(node).await.context("the NameNode did not start")?;
    let _door = Door::open(&folder, &reach)?;
    let line = json!({
        "role": "namenode",
        "fs": format!("hdfs://{}", running.rpc_addr),
        "plain": running.plain_rpc_addr.map(|addr| format!("hdfs://{addr}")),
        "http": running.http_addr.map(|addr| format!("http://{addr}")),
        "https": running.https_addr.map(|addr| format!("https://{addr}")),
        "pid": std::process::id(),
    });
    crate::say!("{line}");
    let manager = ServiceManager::of_environment();
    manager.ready(&format!("serves hdfs://{}", running.rpc_addr));
    let watched = Arc::clone(running.node());
    let failure = tokio::select! {
        told = output::told_to_stop() => { told?; None }
        why = running.stopped() => Some(why),
        () = manager.watch(move || watched.see(|_, _| ())) => None,
    };
    manager.stopping();
    running.shutdown().await;
    match failure {
        Some(why) => bail!("the NameNode has stopped: {why}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs a member of a quorum, and prints one JSON line when it takes part.
async fn member(node: NameNodeConfig) -> Result<ExitCode> {
    let reach = node.reach.clone();
    let folder = node.quorum.as_ref().map(|quorum| quorum.dir.clone());
    let mut running = replica::start(node).await.context("the NameNode did not start")?;
    let _door = folder.map(|folder| Door::open(&folder, &reach)).transpose()?.flatten();
    let line = json!({
        "role": "namenode",
        "fs": format!("hdfs://{}", running.rpc_addr),
        "http": running.http_addr.map(|addr| format!("http://{addr}")),
        "https": running.https_addr.map(|addr| format!("https://{addr}")),
        "pid": std::process::id(),
    });
    crate::say!("{line}");
    let manager = ServiceManager::of_environment();
    manager.ready(&format!("is a member of a quorum, hdfs://{}", running.rpc_addr));
    let standing = running.standing();
    let failure = tokio::select! {
        told = output::told_to_stop() => { told?; None }
        why = running.stopped() => Some(why),
        () = manager.watch(move || drop(standing.borrow())) => None,
    };
    manager.stopping();
    match failure {
        Some(why) => bail!("the NameNode has stopped: {why}"),
        None => {
            running.shutdown().await;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Begins a quorum, unless there is one: who asks twice gets the first one.
async fn found_quorum(node: NameNodeConfig) -> Result<ExitCode> {
    let Some(quorum) = node.quorum.clone() else {
        bail!("no quorum is configured: cairn.quorum.address has no member");
    };
    let folder = quorum.dir.display();
    let is_new =
        replica::found(node).await.with_context(|| format!("{folder}: no quorum was begun"))?;
    let id = &quorum.id;
    if is_new {
        crate::say!("{id} has begun a quorum, in {folder}");
    } else {
        crate::say!("{id} is in a quorum already, in {folder}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a new file system, unless there is one: who asks twice gets the first one.
async fn format(node: NameNodeConfig) -> Result<ExitCode> {
    let folder = node.name_dir.display().to_string();
    if NameNode::is_formatted(&node) {
        crate::say!("{folder} holds a file system already");
        return Ok(ExitCode::SUCCESS);
    }
    NameNode::format(node).await.with_context(|| format!("{folder} was not formatted"))?;
    crate::say!("formatted {folder}");
    Ok(ExitCode::SUCCESS)
}
