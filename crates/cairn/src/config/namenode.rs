//! A NameNode's settings from Hadoop's keys.

use super::{
    Configuration, NameNodes, encryption, groups, https, memory, quorum, ranger, security,
    unsupported, value, webhdfs,
};
use crate::salvage::ClientSalvager;
use anyhow::{Context, Result, bail};
use cairn_namenode::config::{AuditConfig, NameNodeConfig, RackSource};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Reads every key that a NameNode knows; what no key names keeps Hadoop's default.
pub fn read(conf: &Configuration) -> Result<NameNodeConfig> {
    unsupported::refuse(conf)?;
    let mut c = NameNodeConfig { properties: conf.properties(), ..NameNodeConfig::default() };
    let member = folder_and_quorum(conf, &mut c)?;
    conf.fill(NameNodeConfig::KEYS, &mut c)?;
    conf.fill(AuditConfig::KEYS, &mut c.audit)?;
    c.groups = groups::read(conf)?;
    c.ranger = ranger::read(conf)?;
    addresses(conf, member, &mut c)?;
    limits(conf, &mut c)?;
    memory(conf, &mut c)?;
    placement(conf, &mut c)?;
    c.racks = racks(conf);
    c.service_policy = service_policy(conf)?;
    c.encryption = encryption::read(conf)?;
    let web = https::read(conf, ("dfs.namenode.https-address", "0.0.0.0:9871"))?;
    c.http_addr = c.http_addr.filter(|_| web.is_plain);
    c.https = web.secure;
    c.web = webhdfs::of_namenode(conf)?;
    c.block_tokens = security::block_tokens(conf)?;
    c.encrypts_data = security::encrypts_data(conf, c.block_tokens.is_some())?;
    security::of_namenode(conf, &mut c)?;
    c.salvager = Some(Arc::new(ClientSalvager(conf.clone())));
    Ok(c)
}

/// Where the log and the store are, and of which quorum of which nameservice the NameNode is. Goes before the keys of
/// the table.
fn folder_and_quorum(conf: &Configuration, c: &mut NameNodeConfig) -> Result<Option<String>> {
    let dirs = conf.list("dfs.namenode.name.dir");
    if let Some(first) = dirs.first() {
        c.name_dir = value::folder(first);
    }
    if dirs.len() > 1 {
        let used = c.name_dir.display();
        tracing::warn!(%used, "of dfs.namenode.name.dir only the first folder is used: keep it on storage that is redundant");
    }
    let Some((service, quorum)) = quorum::read(conf, &c.name_dir)? else { return Ok(None) };
    // After a start all DataNodes are to come; after a failover they are there.
    c.safe_mode_extension = Duration::ZERO;
    c.quorum = Some(quorum);
    Ok(Some(service))
}

/// Where RPC and HTTP listen; those of a member of a quorum have keys of their own.
fn addresses(conf: &Configuration, service: Option<String>, c: &mut NameNodeConfig) -> Result<()> {
    let parse = |text: &str| Ok(value::address(text)?);
    if let (Some(service), Some(of)) = (&service, &c.quorum) {
        c.rpc_addr = value::address(&of.members[&of.id].rpc)?;
        let own = format!("dfs.namenode.http-address.{service}.{}", of.id);
        conf.read(&own, |text| Ok(Some(value::address(text)?)), &mut c.http_addr)?;
    } else {
        if let Some(uri) = conf.default_fs().filter(|uri| uri.starts_with("hdfs://")) {
            c.rpc_addr = value::address(&NameNodes::of(conf, &uri)?.only("Cairn has")?)?;
        }
        conf.read("dfs.namenode.rpc-address", parse, &mut c.rpc_addr)?;
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
    Ok(())
}

/// Defaults that depend on the machine's memory.
fn memory(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    let memory = memory::available();
    if conf.get("cairn.namenode.request-memory").is_none() {
        c.request_memory = request_memory(memory);
    }
    if conf.get("cairn.namenode.store.cache").is_none() {
        c.store_cache_len = usize::try_from(store_cache_len(memory))?;
    }
    Ok(())
}

/// The default: a sixteenth of the memory, so that large namespaces have room on large machines, and small machines
/// have room for others.
fn store_cache_len(memory: u64) -> u64 {
    (memory / 16).clamp(256 << 20, 1 << 30)
}

/// The default: an eighth of the memory, and room for two of Hadoop's longest requests at least.
fn request_memory(memory: u64) -> u64 {
    (memory / 8).max(512 << 20)
}

/// Limits with bounds beyond which Hadoop's NameNode does not start.
///
/// Source: Hadoop 3.5.0 `FSDirectory#FSDirectory`, `BlockManager#initMinReplication`, `#initMaxReplication`.
fn limits(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    const ITEMS: &str = "dfs.namenode.fs-limits.max-directory-items";
    const ITEMS_MAX: u64 = 6_400_000;
    if !(1..=ITEMS_MAX).contains(&c.max_directory_items) {
        bail!("Cannot set {ITEMS} to a value less than 1 or greater than {ITEMS_MAX}");
    }

    const ATTRIBUTE: &str = "dfs.namenode.fs-limits.max-xattr-size";
    const ATTRIBUTE_MAX: u64 = 32_768;
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
    if c.maintenance_min_replication > c.replication {
        bail!("dfs.namenode.maintenance.replication.min is greater than dfs.replication");
    }
    Ok(())
}

/// The keys that say who may use which protocol, where they are to be obeyed.
pub fn service_policy(conf: &Configuration) -> Result<Option<Vec<(String, String)>>> {
    let mut is_on = false;
    conf.boolean("hadoop.security.authorization", &mut is_on)?;
    is_on.then(|| conf.service_policy()).transpose()
}

/// Whether upgrade domains count.
fn placement(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    let policy = conf.get("dfs.block.replicator.classname").unwrap_or_default();
    // A class name of Hadoop's.
    if policy.rsplit(['.', '$']).next() == Some("BlockPlacementPolicyWithUpgradeDomain") {
        let mut factor = 3;
        conf.number("dfs.namenode.upgrade.domain.factor", &mut factor)?;
        c.upgrade_domain_factor = Some(factor);
    }
    Ok(())
}

fn racks(conf: &Configuration) -> RackSource {
    let file = |key: &str| conf.get(key).map(PathBuf::from);
    match (file("net.topology.table.file.name"), file("net.topology.script.file.name")) {
        (Some(table), _) => RackSource::Table(table),
        (None, Some(script)) => RackSource::Script(script),
        (None, None) => RackSource::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namenode::config::{Durability, HostsFormat};

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
            ("dfs.namenode.audit.log.token.tracking.id", "true"),
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
        assert!(c.audit.tells_tokens);
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
    fn keys_about_slow_peers_and_disks_reach_their_settings() {
        let mut conf = Configuration::default();
        for (key, value) in [
            ("dfs.datanode.peer.stats.enabled", "true"),
            ("dfs.datanode.fileio.profiling.sampling.percentage", "1"),
            ("dfs.datanode.outliers.report.interval", "2m"),
            ("dfs.datanode.max.nodes.to.report", "3"),
            ("dfs.datanode.max.disks.to.report", "4"),
            ("dfs.namenode.max.slowpeer.collect.nodes", "6"),
            ("dfs.namenode.slowpeer.collect.interval", "7000"),
            ("dfs.namenode.avoid.read.slow.datanode", "true"),
            ("dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled", "true"),
        ] {
            conf.set(key, value);
        }
        let c = read(&conf).unwrap().slow;
        assert!(c.takes_peers && c.takes_disks && c.avoid_for_read && c.avoid_for_write);
        assert_eq!((c.nodes_shown, c.disks_shown, c.nodes_avoided), (3, 4, 6));
        let times = (c.report_interval, c.collect_interval);
        assert_eq!(times, (Duration::from_secs(120), Duration::from_secs(7)));
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
    fn requests_take_an_eighth_of_the_memory_unless_told_otherwise() {
        assert_eq!(request_memory(1 << 30), 512 << 20);
        assert_eq!(request_memory(64 << 30), 8 << 30);
        let mut conf = Configuration::default();
        conf.set("cairn.namenode.request-memory", "300m");
        assert_eq!(read(&conf).unwrap().request_memory, 300 << 20);
    }
}
