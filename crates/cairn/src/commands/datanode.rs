//! `cairn datanode`: one DataNode, until told to stop.

use super::debug::inject::{self, partition::Door};
use crate::service::ServiceManager;
use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_datanode::DataNode;
use cairn_operate::reconfiguration::Reload;
use serde_json::json;
use std::process::ExitCode;

/// Flags of `cairn datanode`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of a volume, as [SSD]DIR where it is no plain disk; may be repeated (default:
    /// dfs.datanode.data.dir)
    #[arg(long, value_name = "DIR")]
    data: Vec<String>,
}

/// Runs the DataNode; prints one JSON line when it serves.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let mut settings = settings.clone();
    if !args.data.is_empty() {
        settings.define.push(format!("dfs.datanode.data.dir={}", args.data.join(",")));
    }
    let conf = settings.configuration()?;
    let mut node = config::datanode::read(&conf)?;
    node.reach = inject::reach(&conf)?;
    let (reach, folder) = (node.reach.clone(), node.data_dirs.first().map(|dir| dir.path.clone()));
    node.reload = Some(Reload::new(move || settings.reload(config::datanode::read)));
    let running = DataNode::start(node).await.context("the DataNode did not start")?;
    let _door = folder.map(|folder| Door::open(&folder, &reach)).transpose()?.flatten();
    let line = json!({
        "role": "datanode",
        "uuid": running.uuid(),
        "xfer": running.xfer_addr().to_string(),
        "ipc": running.ipc_addr().to_string(),
        "http": running.http_addr().map(|addr| format!("http://{addr}")),
        "https": running.https_addr().map(|addr| format!("https://{addr}")),
        "pid": std::process::id(),
    });
    crate::say!("{line}");
    let manager = ServiceManager::of_environment();
    manager.ready(&format!("serves blocks at {}", running.xfer_addr()));
    let failure = tokio::select! {
        told = output::told_to_stop() => { told?; None }
        why = running.stopped() => (!running.was_told_to_stop()).then_some(why),
        () = manager.watch(running.look()) => None,
    };
    manager.stopping();
    running.shutdown().await;
    match failure {
        Some(why) => bail!("the DataNode has stopped: {why}"),
        None => Ok(ExitCode::SUCCESS),
    }
}
