//! What a NameNode opens before it serves: its namespace, its ports, the lists of who may do what.

use std::net::SocketAddr;
use std::sync::Arc;

use cairn_access::access::Access;
use cairn_access::groups::process_user;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{BlockState, InodeId, block, lease, query};
use cairn_net::rpc_server::{RpcMetrics, RpcServer};

use super::error::StartError;
use crate::config::{self, NameNodeConfig, parts};
use crate::journal::agree::Agreement;
use crate::journal::{Durability, Namesystem, NamesystemOptions};
use crate::protocol;

/// Counts of calls, none yet.
pub(crate) fn rpc_metrics(config: &NameNodeConfig) -> Arc<RpcMetrics> {
    let metrics = protocol::catalogue::metrics();
    metrics.set_slow_threshold(config.slow_call_threshold);
    metrics.log_slow_calls(config.logs_slow_calls);
    Arc::new(metrics)
}

/// Who may speak which protocol.
pub(crate) async fn access(config: &NameNodeConfig) -> Result<Access, StartError> {
    let (properties, policy) = (config.properties.clone(), config.service_policy.clone());
    let read = move || Access::read(&properties, policy.as_deref());
    let access = tokio::task::spawn_blocking(read).await;
    access.map_err(|_| StartError::Interrupted)?.map_err(StartError::Policy)
}

/// A server that may take so many quarters of what all connections may.
pub(crate) async fn bind_rpc(
    addr: SocketAddr,
    config: &NameNodeConfig,
    quarters: u32,
) -> Result<RpcServer, StartError> {
    let bound = RpcServer::bind(addr, parts::rpc_options(config, quarters)).await;
    bound.map_err(|source| StartError::Bind { addr, purpose: "RPC", source })
}

/// Who may do everything: the user of the process, unless another one is named.
pub(crate) async fn superuser(config: &NameNodeConfig) -> Result<String, StartError> {
    if let Some(user) = &config.superuser {
        return Ok(user.clone());
    }
    let user = tokio::task::spawn_blocking(process_user).await;
    let user = user.map_err(|_| StartError::Interrupted)?;
    Ok(user.unwrap_or_else(|| "root".to_string()))
}

/// Opens the namespace, if it is there or may be made.
pub(crate) async fn open_namespace(
    config: &NameNodeConfig,
    superuser: &str,
    agreement: Option<Agreement>,
) -> Result<Arc<Namesystem>, StartError> {
    let path = config.name_dir.clone();
    if !config.format_if_empty && !is_formatted(config) {
        return Err(StartError::NotFormatted { path });
    }
    let options = namesystem_options(config, superuser, agreement);
    let open = tokio::task::spawn_blocking(move || Namesystem::open(&path, options));
    Ok(open.await.map_err(|_| StartError::Interrupted)??)
}

/// Whether its folder holds a file system.
pub(crate) fn is_formatted(config: &NameNodeConfig) -> bool {
    config.name_dir.join("VERSION").exists()
}

/// How a namespace is opened.
pub(crate) fn namesystem_options(
    config: &NameNodeConfig,
    superuser: &str,
    agreement: Option<Agreement>,
) -> NamesystemOptions {
    NamesystemOptions {
        settings: parts::settings(config),
        snapshots: config.snapshots,
        durability: match config.durability {
            config::Durability::Stable => Durability::Stable,
            config::Durability::PageCache => Durability::PageCache,
        },
        cache_len: config.store_cache_len,
        kept_log_len: config.kept_log_len,
        event_history_len: config.inotify_history_len,
        reserved_len: config.reserved_len,
        superuser: superuser.to_string(),
        cluster_id: config.cluster_id.clone(),
        block_pool_host: config.rpc_addr.ip().to_string(),
        roll_back: config.roll_back,
        dir_mode: config.name_dir_mode,
        agreement,
        ..NamesystemOptions::default()
    }
}

/// Complete blocks and groups, which safe mode waits for: all but the last ones of open files, and of those that were
/// removed while they were open and that snapshots have; and but for containers that may get lost.
pub(super) fn complete_blocks(store: &dyn StoreRead) -> cairn_namespace::Result<u64> {
    const PAGE: usize = 1000;
    let mut open = query::incomplete_held_blocks(store)?;
    let mut after = InodeId::NONE;
    loop {
        let files = lease::open_files(store, after, PAGE)?;
        for file in &files {
            open += query::incomplete_blocks(store, *file)?.len() as u64;
        }
        match files.last() {
            Some(last) if files.len() == PAGE => after = *last,
            _ => break,
        }
    }
    let mut after = None;
    loop {
        let containers = query::containers_after(store, after, PAGE)?;
        for container in &containers {
            if let Some(block) = block::get(store, container.id)? {
                let is_open = block.state != BlockState::Complete;
                open += u64::from(is_open || container.is_spare(&block));
            }
        }
        match containers.last() {
            Some(last) if containers.len() == PAGE => after = Some(last.id),
            _ => break,
        }
    }
    // What is packed is there with its container, for which it is waited.
    let totals = query::totals(store)?;
    Ok(totals.blocks.saturating_sub(totals.packed).saturating_sub(open))
}
