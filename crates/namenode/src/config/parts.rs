//! From a NameNode's settings to those of its parts.

use std::time::Duration;

use cairn_namespace::Settings;
use cairn_net::rpc_server::RpcServerOptions;
use cairn_process::descriptors;
use cairn_redundancy::Config;

use crate::config::NameNodeConfig;

/// A block's recovery is ordered again when it has taken as long as these.
const BLOCK_RECOVERY_HEARTBEATS: u32 = 30;

/// The settings that commands obey.
pub(crate) fn settings(config: &NameNodeConfig) -> Settings {
    let ms = |duration: Duration| duration.as_millis() as u64;
    Settings {
        permissions_enabled: config.permissions_enabled,
        superuser_group: config.supergroup.clone(),
        component_len_max: config.max_component_len as u64,
        directory_items_max: config.max_directory_items,
        block_size_min: config.min_block_len,
        blocks_per_file_max: config.max_blocks_per_file,
        replication_min: config.min_replication,
        replication_max: config.max_replication,
        access_time_precision_ms: ms(config.access_time_precision),
        retry_expiry_ms: ms(config.retry_cache_expiry),
        retry_entries_max: config.retry_cache_max,
        lease_soft_limit_ms: ms(config.lease_soft_limit),
        lease_hard_limit_ms: ms(config.lease_hard_limit),
        block_recovery_timeout_ms: ms(BLOCK_RECOVERY_HEARTBEATS * config.heartbeat_interval),
        default_policy: config.ec_default_policy.clone(),
        cell_len_max: config.ec_max_cell_len,
        user_policies_allowed: config.ec_user_policies,
        group_quiet_ms: ms(config.group_quiet),
        group_short_quiet_ms: ms(config.group_short_quiet),
        group_len_min: config.group_len_min,
        packs: config.packs,
        xattrs_per_inode_max: config.max_xattrs_per_inode,
        xattr_len_max: config.max_xattr_len,
        xattrs_enabled: config.xattrs_enabled,
        acls_enabled: config.acls_enabled,
        posix_acl_inheritance: config.posix_acl_inheritance,
        type_quotas_enabled: config.type_quotas_enabled,
        summaries_check_first: config.summaries_check_first,
        owners_set_quotas: config.owners_set_quotas,
        default_storage_policy: config.default_storage_policy.id,
        protects_subdirectories: config.protects_subdirectories,
        objects_max: config.max_objects,
        snapshots_deleted_in_order: config.snapshots_deleted_in_order,
        snapshot_trash_roots: config.snapshot_trash_roots,
        rules: cairn_namespace::settings::RULES,
        protected_directories: config.protected_directories.clone(),
    }
}

/// The settings of the cluster state.
pub(crate) fn cluster_config(config: &NameNodeConfig) -> Config {
    Config {
        heartbeat_interval: config.heartbeat_interval,
        recheck_interval: config.heartbeat_recheck_interval,
        stale_interval: config.stale_interval,
        avoid_stale_for_read: config.avoid_stale_for_read,
        avoid_stale_for_write: config.avoid_stale_for_write,
        stale_write_ratio: config.stale_write_ratio,
        tolerated_heartbeats: config.tolerated_heartbeats,
        replication_min: config.min_replication,
        safe_mode_threshold: config.safe_mode_threshold,
        safe_mode_replication_min: config.safe_mode_min_replication,
        queue_threshold: config.queue_threshold,
        safe_mode_min_nodes: config.safe_mode_min_datanodes,
        safe_mode_extension: config.safe_mode_extension,
        invalidate_limit: config.invalidate_limit,
        deletion_delay: config.deletion_delay,
        blocks_of_room: config.blocks_of_room,
        max_streams: config.max_streams as usize,
        max_streams_hard: config.max_streams_hard as usize,
        work_multiplier: config.work_multiplier as usize,
        redundancy_interval: config.redundancy_interval,
        pending_timeout: config.pending_timeout,
        consider_load: config.consider_load,
        load_factor: config.load_factor,
        replication: config.replication,
        maintenance_replication_min: config.maintenance_min_replication,
        decommission_interval: config.decommission_interval,
        max_tracked_nodes: config.max_tracked_nodes,
        upgrade_domain_factor: config.upgrade_domain_factor,
        scrub_period: config.scrub_period,
        scrub_bytes_per_second: config.scrub_bytes_per_second,
        cache_retry: config.cache_retry_interval,
        copies_in_memory: config.copies_in_memory,
        slow: config.slow.clone(),
        ..Config::default()
    }
}

/// Where RPC has two addresses, what bounds all connections together is split: `quarters` of it go to this one.
pub(crate) fn rpc_options(config: &NameNodeConfig, quarters: u32) -> RpcServerOptions {
    let max_connections = descriptors::limit() / 16 * 3 * quarters as usize;
    RpcServerOptions {
        max_frame_len: u32::try_from(config.rpc_max_request_len).unwrap_or(u32::MAX),
        max_request_memory: config.request_memory / 4 * u64::from(quarters),
        max_connections: max_connections.min(RpcServerOptions::default().max_connections),
        idle_timeout: config.rpc_idle_timeout,
        reach: config.reach.clone(),
        ..RpcServerOptions::default()
    }
}
