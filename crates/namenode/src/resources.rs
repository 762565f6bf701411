//! Space on the NameNode's own disks: before there is none left for the log, safe mode is on.
//!
//! Source: Hadoop 3.5.0 `NameNodeResourceChecker`, `FSNamesystem.NameNodeResourceMonitor`.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_operate::workers::Worker;
use cairn_process::lasting;

use crate::config::NameNodeConfig;
use crate::disk::free_len;
use crate::node::NameNode;
use crate::quorum::Member;

/// Looks again and again whether enough is free where the NameNode keeps its files.
pub(crate) async fn watch(node: Arc<NameNode>, worker: Arc<Worker>) {
    let config = &node.config;
    let mut dirs = vec![config.name_dir.clone()];
    dirs.extend_from_slice(&config.checked_dirs);
    let (dirs, reserved_len) = (Arc::new(dirs), config.reserved_len);
    loop {
        worker.pass().await;
        let looked_at = Arc::clone(&dirs);
        let low = lasting::blocking(move || lowest(&looked_at, reserved_len)).await;
        let is_change = node.change_safe_mode(|cluster| cluster.set_low_resources(low.is_some()));
        match low {
            Some((dir, free_len)) if is_change => tracing::error!(
                dir = %dir.display(),
                free_len,
                reserved_len,
                "the NameNode's disk is nearly full: safe mode is on"
            ),
            None if is_change => tracing::info!("the NameNode's disks have space again"),
            _ => {}
        }
        worker.rest(tokio::time::sleep(config.resource_check_interval)).await;
    }
}

/// Looks the same for a member of a quorum, whether it leads or not, until it ends: without space it leads only where no
/// other one is ready.
pub(crate) async fn watch_member(config: NameNodeConfig, member: Arc<Member>) {
    let mut dirs = vec![config.name_dir.clone()];
    dirs.extend(config.quorum.iter().map(|quorum| quorum.dir.clone()));
    dirs.extend_from_slice(&config.checked_dirs);
    let (dirs, reserved_len) = (Arc::new(dirs), config.reserved_len);
    loop {
        let looked_at = Arc::clone(&dirs);
        let low = lasting::blocking(move || lowest(&looked_at, reserved_len)).await;
        member.has_space(low.is_none());
        tokio::time::sleep(config.resource_check_interval).await;
    }
}

/// The first of the folders where less than that is free, and how much that is.
fn lowest(dirs: &[PathBuf], reserved_len: u64) -> Option<(PathBuf, u64)> {
    let free = dirs.iter().map(|dir| (dir, free_len(dir)));
    let low = free.into_iter().find(|(_, free_len)| *free_len < reserved_len);
    low.map(|(dir, free_len)| (dir.clone(), free_len))
}
