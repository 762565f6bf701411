//! A NameNode's settings from Hadoop's keys.

use super::{
    Configuration, NameNodes, encryption, https, memory, quorum, security, slow, unsupported,
    value, webhdfs,
};
use crate::salvage::ClientSalvager;
use anyhow::{Context, Result, bail};
use cairn_namenode::config::{
    AuditConfig, ChecksumType, Durability, HostsFormat, NameNodeConfig, RackSource, SatisfierMode,
};
use cairn_net::groups::GroupsConfig;
use cairn_stripe::StoragePolicy;
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Reads every key that a NameNode knows; what no key names keeps Hadoop's default.
pub fn read(conf: &Configuration) -> Result<NameNodeConfig> {
    unsupported::refuse(conf)?;
    let mut c = NameNodeConfig::default();
    addresses(conf, &mut c)?;
    durability(conf, &mut c.durability)?;
    files(conf, &mut c)?;
    users(conf, &mut c)?;
    redundancy(conf, &mut c)?;
    c.racks = racks(conf)?;
    conf.read("dfs.namenode.ec.system.default.policy", text, &mut c.ec_default_policy)?;
    conf.number("dfs.namenode.ec.policies.max.cellsize", &mut c.ec_max_cell_len)?;
    conf.boolean("dfs.namenode.ec.userdefined.policy.allowed", &mut c.ec_user_policies)?;
    conf.seconds("cairn.ec.contiguous.quiet-time", &mut c.group_quiet)?;
    conf.seconds("cairn.ec.contiguous.short-quiet-time", &mut c.group_short_quiet)?;
    conf.bytes("cairn.ec.contiguous.min-length", &mut c.group_len_min)?;
    conf.boolean("cairn.ec.packing.enabled", &mut c.packs)?;
    conf.bytes("cairn.ec.packing.container-size", &mut c.container_len)?;
    conf.seconds("cairn.ec.packing.patience", &mut c.pack_patience)?;
    conf.read("cairn.ec.packing.dead-share", positive_ratio, &mut c.pack_dead_share)?;
    conf.read("cairn.ec.contiguous.pays", positive_ratio, &mut c.group_pays)?;
    conf.read("cairn.ec.contiguous.dead-share", positive_ratio, &mut c.group_dead_share)?;
    conf.seconds("cairn.ec.convert.keep-old", &mut c.keep_converted)?;
    conf.seconds("cairn.namenode.lease.soft-limit", &mut c.lease_soft_limit)?;
    conf.seconds("cairn.namenode.scrub.period", &mut c.scrub_period)?;
    conf.bytes("cairn.namenode.scrub.bytes-per-second", &mut c.scrub_bytes_per_second)?;
    conf.seconds("dfs.namenode.lease-hard-limit-sec", &mut c.lease_hard_limit)?;
    conf.millis("dfs.namenode.lease-recheck-interval-ms", &mut c.lease_recheck_interval)?;
    let lazy = "dfs.namenode.lazypersist.file.scrub.interval.sec";
    conf.seconds(lazy, &mut c.lazy_persist_scrub_interval)?;
    let mode = |text: &str| match text.to_ascii_uppercase().as_str() {
        "NONE" => Ok(SatisfierMode::None),
        "EXTERNAL" => Ok(SatisfierMode::External),
        _ => bail!("it takes none or external"),
    };
    conf.boolean("dfs.storage.policy.enabled", &mut c.storage_policies_enabled)?;
    let only = "dfs.storage.policy.permissions.superuser-only";
    conf.boolean(only, &mut c.storage_policies_superuser_only)?;
    let policy = |text: &str| {
        let found = StoragePolicy::ALL.into_iter().find(|policy| policy.name == text);
        found.context("it takes the name of a storage policy, in capitals")
    };
    conf.read("dfs.storage.default.policy", policy, &mut c.default_storage_policy)?;
    conf.read("dfs.storage.policy.satisfier.mode", mode, &mut c.satisfier_mode)?;
    let limit = "dfs.storage.policy.satisfier.max.outstanding.paths";
    conf.number(limit, &mut c.satisfier_queue_limit)?;
    conf.millis("dfs.namenode.retrycache.expirytime.millis", &mut c.retry_cache_expiry)?;
    conf.number("cairn.namenode.retrycache.max-entries", &mut c.retry_cache_max)?;
    c.service_policy = service_policy(conf)?;
    c.encryption = encryption::read(conf)?;
    audit(conf, &mut c.audit)?;
    conf.millis("hadoop.http.idle_timeout.ms", &mut c.http_idle_timeout)?;
    let web = https::read(conf, ("dfs.namenode.https-address", "0.0.0.0:9871"))?;
    c.http_addr = c.http_addr.filter(|_| web.is_plain);
    c.https = web.secure;
    c.web = webhdfs::of_namenode(conf)?;
    c.block_tokens = security::block_tokens(conf)?;
    c.encrypts_data = security::encrypts_data(conf, c.block_tokens.is_some())?;
    security::of_namenode(conf, &mut c)?;
    c.salvager = Some(Arc::new(ClientSalvager(conf.clone())));
    c.properties = conf.properties();
    Ok(c)
}

/// When an answer means that the bytes are on stable storage: `cairn.durability`.
pub fn durability(conf: &Configuration, slot: &mut Durability) -> Result<()> {
    let parse = |text: &str| match text {
        "stable" => Ok(Durability::Stable),
        "page-cache" => Ok(Durability::PageCache),
        _ => bail!("it takes stable or page-cache"),
    };
    conf.read("cairn.durability", parse, slot)
}

fn positive(text: &str) -> Result<usize> {
    Ok(text.parse::<NonZeroUsize>()?.get())
}

fn text(text: &str) -> Result<String> {
    Ok(text.to_string())
}

fn addresses(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    let dirs = conf.list("dfs.namenode.name.dir");
    if let Some(first) = dirs.first() {
        c.name_dir = value::folder(first);
    }
    if dirs.len() > 1 {
        let used = c.name_dir.display();
        tracing::warn!(%used, "of dfs.namenode.name.dir only the first folder is used: keep it on storage that is redundant");
    }
    conf.read(
        "dfs.namenode.storage.dir.perm",
        |text| Ok(value::mode(text)?),
        &mut c.name_dir_mode,
    )?;
    let member = quorum::read(conf, &c.name_dir)?;
    if let Some((_, of)) = &member {
        c.rpc_addr = value::address(&of.members[&of.id].rpc)?;
        // After a start all DataNodes are to come; after a failover they are there.
        c.safe_mode_extension = Duration::ZERO;
    } else if let Some(uri) = conf.default_fs().filter(|uri| uri.starts_with("hdfs://")) {
        c.rpc_addr = value::address(&NameNodes::of(conf, &uri)?.only("Cairn has")?)?;
    }
    if member.is_none() {
        conf.read("dfs.namenode.rpc-address", |text| Ok(value::address(text)?), &mut c.rpc_addr)?;
    }
    if let Some(host) = conf.get("dfs.namenode.rpc-bind-host") {
        let ip = match host.parse() {
            Ok(ip) => ip,
            Err(_) => {
                value::address(&format!("{host}:0")).context("dfs.namenode.rpc-bind-host")?.ip()
            }
        };
        c.rpc_addr.set_ip(ip);
    }
    conf.read(
        "cairn.namenode.plain.rpc-address",
        |text| Ok(Some(value::address(text)?)),
        &mut c.plain_rpc_addr,
    )?;
    let http = "dfs.namenode.http-address";
    let own = member.as_ref().map(|(service, of)| format!("{http}.{service}.{}", of.id));
    for key in [Some(http.to_string()), own].into_iter().flatten() {
        conf.read(&key, |text| Ok(Some(value::address(text)?)), &mut c.http_addr)?;
    }
    c.quorum = member.map(|(_, of)| of);
    let mut bytes = c.rpc_max_request_len as u64;
    conf.bytes("ipc.maximum.data.length", &mut bytes)?;
    c.rpc_max_request_len = usize::try_from(bytes)?;
    c.request_memory = request_memory(memory::available());
    conf.bytes("cairn.namenode.request-memory", &mut c.request_memory)?;
    conf.boolean("ipc.server.log.slow.rpc", &mut c.logs_slow_calls)?;
    conf.millis("ipc.server.log.slow.rpc.threshold.ms", &mut c.slow_call_threshold)?;
    let mut cache = store_cache_len(memory::available());
    conf.bytes("cairn.namenode.store.cache", &mut cache)?;
    c.store_cache_len = usize::try_from(cache)?;
    Ok(())
}

/// The default: a sixteenth of the memory, so that large namespaces have room on large machines, and small machines
/// have room for others.
fn store_cache_len(memory: u64) -> u64 {
    (memory / 16).clamp(256 << 20, 1 << 30)
}

/// The paths as the NameNode knows them, sorted; what is no absolute path or reserved is left out.
///
/// Source: Hadoop 3.5.0 `FSDirectory#normalizePaths`.
fn protected(listed: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    for path in listed {
        // What follows two slashes is a host.
        let is_absolute = path.starts_with('/') && !path.starts_with("//");
        if !is_absolute || path == "/.reserved" || path.starts_with("/.reserved/") {
            tracing::error!(path, "fs.protected.directories names what cannot be protected");
            continue;
        }
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        paths.push(format!("/{}", names.join("/")));
    }
    paths.sort();
    paths.dedup();
    paths
}

fn files(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    conf.bytes("dfs.blocksize", &mut c.block_len)?;
    conf.bytes("dfs.namenode.fs-limits.min-block-size", &mut c.min_block_len)?;
    conf.number("dfs.bytes-per-checksum", &mut c.bytes_per_checksum)?;
    conf.number("dfs.client-write-packet-size", &mut c.write_packet_len)?;
    conf.number("io.file.buffer.size", &mut c.file_buffer_len)?;
    conf.number("fs.trash.interval", &mut c.trash_interval_minutes)?;
    conf.number("fs.trash.checkpoint.interval", &mut c.trash_checkpoint_minutes)?;
    conf.boolean("fs.trash.clean.trashroot.enable", &mut c.trash_cleans_others)?;
    conf.read("dfs.user.home.dir.prefix", text, &mut c.homes)?;
    conf.number("dfs.replication", &mut c.replication)?;
    conf.number("dfs.namenode.file.close.num-committed-allowed", &mut c.committed_allowed)?;
    conf.number("dfs.namenode.fs-limits.max-component-length", &mut c.max_component_len)?;
    limits(conf, c)?;
    conf.number("dfs.namenode.max.objects", &mut c.max_objects)?;
    c.protected_directories = protected(&conf.list("fs.protected.directories"));
    conf.boolean("dfs.protected.subdirectories.enable", &mut c.protects_subdirectories)?;
    conf.number("dfs.namenode.fs-limits.max-blocks-per-file", &mut c.max_blocks_per_file)?;
    conf.number("dfs.namenode.fs-limits.max-xattrs-per-inode", &mut c.max_xattrs_per_inode)?;
    conf.boolean("dfs.namenode.xattrs.enabled", &mut c.xattrs_enabled)?;
    conf.boolean("dfs.namenode.acls.enabled", &mut c.acls_enabled)?;
    conf.boolean("dfs.quota.by.storage.type.enabled", &mut c.type_quotas_enabled)?;
    conf.boolean("dfs.permissions.allow.owner.set.quota", &mut c.owners_set_quotas)?;
    conf.boolean("dfs.namenode.posix.acl.inheritance.enabled", &mut c.posix_acl_inheritance)?;
    let open_files = "dfs.namenode.list.openfiles.num.responses";
    conf.read(open_files, positive, &mut c.open_files_page)?;
    conf.number("dfs.batched.ls.limit", &mut c.batched_listing_limit)?;
    let snapshots = &mut c.snapshots;
    conf.number("dfs.namenode.snapshot.max.limit", &mut snapshots.per_directory_max)?;
    conf.number("dfs.namenode.snapshot.filesystem.limit", &mut snapshots.total_max)?;
    conf.boolean("dfs.namenode.snapshot.capture.openfiles", &mut snapshots.capture_open_files)?;
    conf.boolean(
        "dfs.namenode.snapshot.skip.capture.accesstime-only-change",
        &mut snapshots.skip_access_time,
    )?;
    conf.boolean(
        "dfs.namenode.snapshotdiff.allow.snap-root-descendant",
        &mut snapshots.diff_below_root,
    )?;
    conf.number("dfs.namenode.snapshotdiff.listing.limit", &mut snapshots.diff_page)?;
    let ordered = "dfs.namenode.snapshot.deletion.ordered";
    conf.boolean(ordered, &mut c.snapshots_deleted_in_order)?;
    conf.millis(&format!("{ordered}.gc.period.ms"), &mut c.snapshot_collection_period)?;
    conf.boolean("dfs.namenode.snapshot.trashroot.enabled", &mut c.snapshot_trash_roots)?;
    conf.number("dfs.ls.limit", &mut c.listing_limit)?;
    let corrupt = "dfs.namenode.max-corrupt-file-blocks-returned";
    conf.number(corrupt, &mut c.corrupt_files_page)?;
    conf.millis(
        "dfs.namenode.path.based.cache.refresh.interval.ms",
        &mut c.cache_refresh_interval,
    )?;
    let retry = "dfs.namenode.path.based.cache.retry.interval.ms";
    conf.millis(retry, &mut c.cache_retry_interval)?;
    conf.boolean("dfs.namenode.caching.enabled", &mut c.caching_enabled)?;
    conf.number("dfs.namenode.list.cache.pools.num.responses", &mut c.cache_pools_page)?;
    conf.number("dfs.namenode.list.cache.directives.num.responses", &mut c.cache_directives_page)?;
    conf.number("dfs.namenode.inotify.max.events.per.rpc", &mut c.inotify_events_page)?;
    conf.bytes("cairn.namenode.inotify.history", &mut c.inotify_history_len)?;
    conf.bytes("cairn.namenode.log.keep", &mut c.kept_log_len)?;
    conf.millis("dfs.namenode.accesstime.precision", &mut c.access_time_precision)?;
    let checksum = |text: &str| match text.to_ascii_uppercase().as_str() {
        "NULL" => Ok(ChecksumType::Null),
        "CRC32" => Ok(ChecksumType::Crc32),
        "CRC32C" => Ok(ChecksumType::Crc32c),
        _ => bail!("it takes NULL, CRC32 or CRC32C"),
    };
    conf.read("dfs.checksum.type", checksum, &mut c.checksum_type)
}

/// Limits with bounds beyond which Hadoop's NameNode does not start.
///
/// Source: Hadoop 3.5.0 `FSDirectory#FSDirectory`, `BlockManager#initMinReplication`, `#initMaxReplication`.
fn limits(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    const ITEMS: &str = "dfs.namenode.fs-limits.max-directory-items";
    const ITEMS_MAX: i64 = 6_400_000;
    let mut items = c.max_directory_items as i64;
    conf.number(ITEMS, &mut items)?;
    if !(1..=ITEMS_MAX).contains(&items) {
        bail!("Cannot set {ITEMS} to a value less than 1 or greater than {ITEMS_MAX}");
    }
    c.max_directory_items = items as u64;

    const ATTRIBUTE: &str = "dfs.namenode.fs-limits.max-xattr-size";
    const ATTRIBUTE_MAX: u64 = 32_768;
    conf.bytes(ATTRIBUTE, &mut c.max_xattr_len)?;
    match c.max_xattr_len {
        0 => bail!("The maximum size of an xattr should be > 0: ({ATTRIBUTE})."),
        1..=ATTRIBUTE_MAX => {}
        _ => bail!(
            "The maximum size of an xattr should be <= maximum size hard limit {ATTRIBUTE_MAX}: \
             ({ATTRIBUTE})."
        ),
    }

    const MIN: &str = "dfs.namenode.replication.min";
    const MAX: &str = "dfs.replication.max";
    let (mut min, mut max) = (i64::from(c.min_replication), i64::from(c.max_replication));
    conf.number(MIN, &mut min)?;
    conf.number(MAX, &mut max)?;
    if min <= 0 {
        bail!("Unexpected configuration parameters: {MIN} = {min} <= 0");
    }
    if max > i64::from(i16::MAX) {
        bail!("Unexpected configuration parameters: {MAX} = {max} > {}", i16::MAX);
    }
    if min > max {
        bail!("Unexpected configuration parameters: {MIN} = {min} > {MAX} = {max}");
    }
    (c.min_replication, c.max_replication) = (u16::try_from(min)?, u16::try_from(max)?);
    Ok(())
}

fn users(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    conf.boolean("dfs.permissions.enabled", &mut c.permissions_enabled)?;
    conf.boolean("dfs.permissions.ContentSummary.subAccess", &mut c.summaries_check_first)?;
    conf.read("dfs.permissions.superusergroup", text, &mut c.supergroup)?;
    conf.read("cairn.namenode.superuser", |text| Ok(Some(text.to_string())), &mut c.superuser)?;
    conf.fill(GroupsConfig::KEYS, &mut c.groups)
}

/// The keys that say who may use which protocol, where they are to be obeyed.
pub fn service_policy(conf: &Configuration) -> Result<Option<Vec<(String, String)>>> {
    let mut is_on = false;
    conf.boolean("hadoop.security.authorization", &mut is_on)?;
    is_on.then(|| conf.service_policy()).transpose()
}

fn audit(conf: &Configuration, c: &mut AuditConfig) -> Result<()> {
    let path = |text: &str| Ok((!text.is_empty()).then(|| PathBuf::from(text)));
    conf.read("cairn.namenode.audit-log", path, &mut c.file)?;
    c.silent_commands = conf.list("dfs.namenode.audit.log.debug.cmdlist");
    conf.boolean("hadoop.caller.context.enabled", &mut c.caller_context)?;
    conf.number("hadoop.caller.context.max.size", &mut c.caller_context_max)?;
    conf.number("hadoop.caller.context.signature.max.size", &mut c.signature_max)?;
    let separator = |text: &str| match text {
        // Source: Hadoop 3.5.0 `CallerContext.Builder#checkFieldSeparator`.
        "\t" | "\n" | "=" => bail!("Illegal field separator: {text}"),
        _ => Ok(text.to_string()),
    };
    conf.read("hadoop.caller.context.separator", separator, &mut c.separator)?;
    conf.boolean("dfs.namenode.audit.log.with.remote.port", &mut c.tells_ports)
}

/// A number above 0; infinity for always.
fn positive_ratio(text: &str) -> Result<f64> {
    let number: f64 = text.parse()?;
    if number.is_nan() || number <= 0.0 {
        bail!("{number} is not above 0");
    }
    Ok(number)
}

/// Source: Hadoop 3.5.0 `DatanodeManager#DatanodeManager`.
fn stale_ratio(text: &str) -> Result<f64> {
    let ratio: f64 = text.parse()?;
    if !(ratio > 0.0 && ratio <= 1.0) {
        bail!("{ratio} is not above 0 and at most 1");
    }
    Ok(ratio)
}

fn redundancy(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    conf.seconds("dfs.heartbeat.interval", &mut c.heartbeat_interval)?;
    let recheck = "dfs.namenode.heartbeat.recheck-interval";
    conf.millis(recheck, &mut c.heartbeat_recheck_interval)?;
    conf.millis("dfs.namenode.stale.datanode.interval", &mut c.stale_interval)?;
    conf.boolean("dfs.namenode.avoid.read.stale.datanode", &mut c.avoid_stale_for_read)?;
    conf.boolean("dfs.namenode.avoid.write.stale.datanode", &mut c.avoid_stale_for_write)?;
    conf.read("dfs.namenode.write.stale.datanode.ratio", stale_ratio, &mut c.stale_write_ratio)?;
    let multiplier = "dfs.namenode.tolerate.heartbeat.multiplier";
    conf.number(multiplier, &mut c.tolerated_heartbeats)?;
    conf.seconds("dfs.namenode.redundancy.interval.seconds", &mut c.redundancy_interval)?;
    conf.seconds("cairn.namenode.order-hold", &mut c.order_hold)?;
    conf.seconds("dfs.namenode.reconstruction.pending.timeout-sec", &mut c.pending_timeout)?;
    let multiplier = "dfs.namenode.replication.work.multiplier.per.iteration";
    conf.number(multiplier, &mut c.work_multiplier)?;
    conf.number("dfs.namenode.replication.max-streams", &mut c.max_streams)?;
    conf.number("dfs.namenode.replication.max-streams-hard-limit", &mut c.max_streams_hard)?;
    conf.number("dfs.block.invalidate.limit", &mut c.invalidate_limit)?;
    let room = |text: &str| Ok(text.parse::<NonZeroU64>()?.get());
    let blocks = "dfs.namenode.block-placement.min-blocks-for.write";
    conf.read(blocks, room, &mut c.blocks_of_room)?;
    conf.seconds("dfs.namenode.startup.delay.block.deletion.sec", &mut c.deletion_delay)?;
    conf.boolean("dfs.namenode.redundancy.considerLoad", &mut c.consider_load)?;
    conf.number("dfs.namenode.redundancy.considerLoad.factor", &mut c.load_factor)?;
    let path = |text: &str| Ok(Some(PathBuf::from(text)));
    conf.read("dfs.hosts", path, &mut c.hosts_file)?;
    conf.read("dfs.hosts.exclude", path, &mut c.hosts_exclude_file)?;
    let unknown = "dfs.namenode.reject-unresolved-dn-topology-mapping";
    conf.boolean(unknown, &mut c.refuses_unknown_racks)?;
    let mut checks_names = c.name_check.is_some();
    let named = "dfs.namenode.datanode.registration.ip-hostname-check";
    conf.boolean(named, &mut checks_names)?;
    c.name_check = c.name_check.filter(|_| checks_names);
    slow::of_namenode(conf, &mut c.slow)?;
    leaving(conf, c)?;
    conf.number("dfs.namenode.safemode.threshold-pct", &mut c.safe_mode_threshold)?;
    let positive = |text: &str| Ok(Some(text.parse::<NonZeroU16>()?.get()));
    conf.read("dfs.namenode.safemode.replication.min", positive, &mut c.safe_mode_min_replication)?;
    let part = |text: &str| Ok(Some(text.parse()?));
    conf.read("dfs.namenode.replqueue.threshold-pct", part, &mut c.queue_threshold)?;
    conf.number("dfs.namenode.safemode.min.datanodes", &mut c.safe_mode_min_datanodes)?;
    conf.millis("dfs.namenode.safemode.extension", &mut c.safe_mode_extension)?;
    conf.bytes("dfs.namenode.resource.du.reserved", &mut c.reserved_len)?;
    let dirs = conf.list("dfs.namenode.resource.checked.volumes");
    c.checked_dirs = dirs.iter().map(|dir| value::folder(dir)).collect();
    conf.millis("dfs.namenode.resource.check.interval", &mut c.resource_check_interval)
}

/// What a class name of Hadoop's ends with.
fn class(text: &str) -> &str {
    text.rsplit(['.', '$']).next().unwrap_or(text)
}

fn leaving(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    let provider = |text: &str| match class(text) {
        "HostFileManager" => Ok(HostsFormat::Lists),
        "CombinedHostFileManager" => Ok(HostsFormat::Combined),
        _ => bail!("it takes HostFileManager or CombinedHostFileManager"),
    };
    conf.read("dfs.namenode.hosts.provider.classname", provider, &mut c.hosts_format)?;
    conf.seconds("dfs.namenode.decommission.interval", &mut c.decommission_interval)?;
    let tracked = "dfs.namenode.decommission.max.concurrent.tracked.nodes";
    conf.number(tracked, &mut c.max_tracked_nodes)?;
    let maintenance = "dfs.namenode.maintenance.replication.min";
    conf.number(maintenance, &mut c.maintenance_min_replication)?;
    if c.maintenance_min_replication > c.replication {
        bail!("{maintenance} is greater than dfs.replication");
    }
    let policy = conf.get("dfs.block.replicator.classname").unwrap_or_default();
    if class(&policy) == "BlockPlacementPolicyWithUpgradeDomain" {
        let mut factor = 3;
        conf.number("dfs.namenode.upgrade.domain.factor", &mut factor)?;
        c.upgrade_domain_factor = Some(factor);
    }
    Ok(())
}

fn racks(conf: &Configuration) -> Result<RackSource> {
    if let Some(table) = conf.get("net.topology.table.file.name") {
        return Ok(RackSource::Table(PathBuf::from(table)));
    }
    if let Some(script) = conf.get("net.topology.script.file.name") {
        return Ok(RackSource::Script(PathBuf::from(script)));
    }
    Ok(RackSource::Default)
}

/// The default: an eighth of the memory, and room for two of Hadoop's longest requests at least.
fn request_memory(memory: u64) -> u64 {
    (memory / 8).max(512 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_follows_the_memory_within_bounds() {
        for (gib, mib) in [(0, 256), (2, 256), (8, 512), (12, 768), (16, 1024), (512, 1024)] {
            assert_eq!(store_cache_len(gib << 30), mib << 20);
        }
        let mut conf = Configuration::default();
        conf.set("cairn.namenode.store.cache", "64m");
        assert_eq!(read(&conf).unwrap().store_cache_len, 64 << 20);
    }

    #[test]
    fn keys_reach_their_settings() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:9000");
        conf.set("dfs.namenode.name.dir", "file:///data/nn,/data/nn2");
        conf.set("dfs.blocksize", "1m");
        conf.set("cairn.durability", "page-cache");
        conf.set("dfs.namenode.resource.checked.volumes", "/data/nn2, file:/var");
        conf.set("hadoop.user.group.static.mapping.overrides", "dr.who=;ann=a,b");
        let c = read(&conf).unwrap();
        assert_eq!(c.rpc_addr, "127.0.0.1:9000".parse().unwrap());
        assert_eq!(c.name_dir, PathBuf::from("/data/nn"));
        assert_eq!((c.block_len, c.durability), (1 << 20, Durability::PageCache));
        assert_eq!(c.checked_dirs, ["/data/nn2", "/var"].map(PathBuf::from));
        assert_eq!(c.groups.fixed[1], ("ann".into(), vec!["a".into(), "b".into()]));
        assert!(c.name_check.is_some() && !c.refuses_unknown_racks);
        conf.set("dfs.namenode.datanode.registration.ip-hostname-check", "false");
        conf.set("dfs.namenode.reject-unresolved-dn-topology-mapping", "true");
        let c = read(&conf).unwrap();
        assert!(c.name_check.is_none() && c.refuses_unknown_racks);
        assert_eq!((c.safe_mode_min_replication, c.queue_threshold), (None, None));
        conf.set("dfs.namenode.file.close.num-committed-allowed", "1");
        assert_eq!((c.committed_allowed, read(&conf).unwrap().committed_allowed), (0, 1));
        conf.set("dfs.permissions.ContentSummary.subAccess", "true");
        assert!(!c.summaries_check_first && read(&conf).unwrap().summaries_check_first);
        conf.set("dfs.storage.default.policy", "ONE_SSD");
        assert_eq!(read(&conf).unwrap().default_storage_policy.id, 10);
        conf.set("dfs.storage.default.policy", "one_ssd");
        assert!(read(&conf).is_err(), "Hadoop knows no such constant");
        conf.set("dfs.storage.default.policy", "ONE_SSD");
        conf.set("dfs.namenode.safemode.replication.min", "2");
        conf.set("dfs.namenode.replqueue.threshold-pct", "0.5");
        let c = read(&conf).unwrap();
        assert_eq!((c.safe_mode_min_replication, c.queue_threshold), (Some(2), Some(0.5)));
        conf.set("dfs.namenode.safemode.replication.min", "0");
        assert!(read(&conf).is_err(), "no block would ever count");
        conf.set("dfs.namenode.safemode.replication.min", "2");
        let package = "org.apache.hadoop.hdfs.server.blockmanagement";
        let provider = "dfs.namenode.hosts.provider.classname";
        conf.set(provider, format!("{package}.CombinedHostFileManager"));
        let policy = format!("{package}.BlockPlacementPolicyWithUpgradeDomain");
        conf.set("dfs.block.replicator.classname", policy);
        conf.set("dfs.namenode.decommission.interval", "2");
        let c = read(&conf).unwrap();
        assert_eq!((c.hosts_format, c.upgrade_domain_factor), (HostsFormat::Combined, Some(3)));
        assert_eq!(c.decommission_interval, std::time::Duration::from_secs(2));
        for (key, value) in [
            ("dfs.namenode.max.objects", "7"),
            ("dfs.namenode.list.openfiles.num.responses", "8"),
            ("dfs.user.home.dir.prefix", "/home"),
            ("hadoop.caller.context.max.size", "10"),
            ("hadoop.caller.context.signature.max.size", "12"),
            ("hadoop.caller.context.separator", "|"),
            ("dfs.namenode.audit.log.with.remote.port", "true"),
            ("dfs.namenode.startup.delay.block.deletion.sec", "11"),
            ("dfs.namenode.block-placement.min-blocks-for.write", "13"),
            ("ipc.server.log.slow.rpc", "true"),
            ("ipc.server.log.slow.rpc.threshold.ms", "14"),
        ] {
            conf.set(key, value);
        }
        let c = read(&conf).unwrap();
        assert_eq!((c.max_objects, c.open_files_page, c.homes.as_str()), (7, 8, "/home"));
        assert_eq!((c.audit.caller_context_max, c.audit.signature_max), (10, 12));
        assert_eq!((c.audit.separator.as_str(), c.audit.tells_ports), ("|", true));
        conf.set("hadoop.caller.context.separator", "=");
        assert!(read(&conf).is_err(), "it is between a key and its value");
        conf.set("hadoop.caller.context.separator", ",");
        assert_eq!(c.deletion_delay, std::time::Duration::from_secs(11));
        assert_eq!((c.blocks_of_room, c.logs_slow_calls), (13, true));
        assert_eq!(c.slow_call_threshold, std::time::Duration::from_millis(14));
        for (key, value) in [
            ("dfs.namenode.avoid.read.stale.datanode", "false"),
            ("dfs.namenode.avoid.write.stale.datanode", "false"),
            ("dfs.namenode.write.stale.datanode.ratio", "0.75"),
        ] {
            conf.set(key, value);
        }
        let c = read(&conf).unwrap();
        assert_eq!((c.avoid_stale_for_read, c.avoid_stale_for_write), (false, false));
        assert_eq!(c.stale_write_ratio, 0.75);
        for ratio in ["0", "-1", "1.1", "NaN"] {
            conf.set("dfs.namenode.write.stale.datanode.ratio", ratio);
            assert!(read(&conf).is_err(), "{ratio}");
        }
        conf.set("dfs.namenode.write.stale.datanode.ratio", "1");
        conf.set("dfs.namenode.list.openfiles.num.responses", "0");
        assert!(read(&conf).is_err(), "no page would have anything");
        conf.set("dfs.namenode.list.openfiles.num.responses", "8");
        conf.set("dfs.namenode.maintenance.replication.min", "4");
        assert!(read(&conf).is_err(), "more than there are copies");
        conf.set("dfs.namenode.maintenance.replication.min", "1");
        conf.set("dfs.checksum.type", "MD4");
        assert!(read(&conf).is_err());
    }

    #[test]
    fn access_lists_are_read_where_they_count() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hadoop-policy.xml");
        std::fs::write(&file, "garbage").unwrap();
        let mut conf = Configuration::default();
        conf.load_folder(dir.path()).unwrap();
        let lists = |conf: &Configuration| {
            let datanode = crate::config::datanode::read(conf).map(|c| c.service_policy);
            let namenode = read(conf).map(|c| c.service_policy);
            assert_eq!(datanode.as_ref().ok(), namenode.as_ref().ok());
            namenode
        };
        assert_eq!(lists(&conf).unwrap(), None, "nobody asks for the file");
        conf.set("hadoop.security.authorization", "true");
        assert!(lists(&conf).is_err());
        let key = "security.client.protocol.acl";
        std::fs::write(&file, crate::config::xml::write([(key, " staff")])).unwrap();
        assert_eq!(lists(&conf).unwrap(), Some(vec![(key.to_string(), " staff".to_string())]));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(lists(&conf).unwrap(), Some(Vec::new()));
        conf.set("hadoop.security.authorization", "yes");
        assert!(lists(&conf).is_err());
    }

    #[test]
    fn limits_that_hadoop_does_not_start_with_are_refused_in_its_words() {
        let items = "Cannot set dfs.namenode.fs-limits.max-directory-items to a value less than 1 or \
                     greater than 6400000";
        let (min, max) = ("dfs.namenode.replication.min", "dfs.replication.max");
        let unexpected = |what: &str| format!("Unexpected configuration parameters: {what}");
        let attribute = "dfs.namenode.fs-limits.max-xattr-size";
        for (keys, want) in [
            (vec![("dfs.namenode.fs-limits.max-directory-items", "0")], items.to_string()),
            (vec![("dfs.namenode.fs-limits.max-directory-items", "6400001")], items.to_string()),
            (
                vec![(attribute, "0")],
                format!("The maximum size of an xattr should be > 0: ({attribute})."),
            ),
            (
                vec![(attribute, "32769")],
                format!(
                    "The maximum size of an xattr should be <= maximum size hard limit 32768: \
                     ({attribute})."
                ),
            ),
            (vec![(min, "0")], unexpected(&format!("{min} = 0 <= 0"))),
            (vec![(min, "-1")], unexpected(&format!("{min} = -1 <= 0"))),
            (vec![(max, "32768")], unexpected(&format!("{max} = 32768 > 32767"))),
            (vec![(min, "3"), (max, "2")], unexpected(&format!("{min} = 3 > {max} = 2"))),
        ] {
            let mut conf = Configuration::default();
            keys.iter().for_each(|(key, value)| conf.set(key, *value));
            let refused = read(&conf).map(drop).map_err(|error| format!("{error:#}"));
            assert_eq!(refused, Err(want), "{keys:?}");
        }
        let mut conf = Configuration::default();
        for (key, value) in [
            ("dfs.namenode.fs-limits.max-directory-items", "6400000"),
            (attribute, "32k"),
            (min, "2"),
            (max, "32767"),
        ] {
            conf.set(key, value);
        }
        let c = read(&conf).unwrap();
        assert_eq!((c.max_directory_items, c.max_xattr_len), (6_400_000, 32_768));
        assert_eq!((c.min_replication, c.max_replication), (2, 32_767));
    }

    #[test]
    fn protected_directories_are_absolute_paths() {
        let listed = ["/b/", "/a//c", "/b", "//h/c", "rel", "/.reserved/raw/a", "hdfs://h/x"];
        assert_eq!(protected(&listed.map(str::to_string)), ["/a/c", "/b"]);
    }

    #[test]
    fn requests_take_an_eighth_of_the_memory_unless_told_otherwise() {
        assert_eq!(request_memory(1 << 30), 512 << 20);
        assert_eq!(request_memory(64 << 30), 8 << 30);
        let mut conf = Configuration::default();
        conf.set("cairn.namenode.request-memory", "300m");
        assert_eq!(read(&conf).unwrap().request_memory, 300 << 20);
    }
}
