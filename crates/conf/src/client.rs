//! A client's settings from Hadoop's keys.

use crate::nameservice::NameNodes;
use crate::{Configuration, kms, login, value};
use anyhow::{Context, Result, bail};
use cairn_client::{ChecksumKind, ChecksumMode, ClientConfig, ReplaceDataNode};
use std::time::Duration;

/// How long another NameNode may take to become the active one: the old one may have to be fenced off first.
const FAILOVER: Duration = Duration::from_secs(180);

/// Reads every key that a client knows. The file system must be named.
pub fn read(conf: &Configuration) -> Result<ClientConfig> {
    let mut c = ClientConfig::default();
    let found = namenodes(conf)?;
    if found.rpc.len() > 1 {
        c.retry_for = FAILOVER;
    }
    login::read(conf, &found, |name| std::env::var_os(name), &mut c)?;
    (c.namenode, c.namenode_addresses) = (found.authority, found.rpc);
    conf.read("dfs.user.home.dir.prefix", |text| Ok(text.to_string()), &mut c.homes)?;
    conf.number("dfs.replication", &mut c.replication)?;
    conf.bytes("dfs.blocksize", &mut c.block_size)?;
    conf.number("dfs.bytes-per-checksum", &mut c.bytes_per_checksum)?;
    conf.number("dfs.client-write-packet-size", &mut c.packet_len)?;
    conf.number("dfs.client.write.max-packets-in-flight", &mut c.packets_in_flight)?;
    let checksum = |text: &str| match text.to_ascii_uppercase().as_str() {
        "NULL" => Ok(ChecksumKind::Null),
        "CRC32" => Ok(ChecksumKind::Crc32),
        "CRC32C" => Ok(ChecksumKind::Crc32c),
        _ => bail!("it takes NULL, CRC32 or CRC32C"),
    };
    conf.read("dfs.checksum.type", checksum, &mut c.checksum)?;
    let mode = |text: &str| match text.to_ascii_uppercase().as_str() {
        "MD5MD5CRC" => Ok(ChecksumMode::Md5Md5Crc),
        "COMPOSITE_CRC" => Ok(ChecksumMode::CompositeCrc),
        _ => bail!("it takes MD5MD5CRC or COMPOSITE_CRC"),
    };
    conf.read("dfs.checksum.combine.mode", mode, &mut c.checksum_mode)?;
    timing(conf, &mut c)?;
    failures(conf, &mut c)?;
    conf.number("dfs.client.socketcache.capacity", &mut c.idle_connections)?;
    conf.millis("dfs.client.socketcache.expiryMsec", &mut c.idle_connection_expiry)?;
    local(conf, &mut c)?;
    caching(conf, &mut c)?;
    c.key_provider = conf.get("hadoop.security.key.provider.path");
    let ignore = "dfs.client.ignore.namenode.default.kms.uri";
    conf.boolean(ignore, &mut c.ignore_server_key_provider)?;
    c.kms = kms::options(conf)?;
    conf.read("fs.permissions.umask-mode", |text| Ok(value::mode(text)? as u16), &mut c.umask)?;
    Ok(c)
}

/// The NameNodes of the file system, which must be named.
pub fn namenodes(conf: &Configuration) -> Result<NameNodes> {
    let uri = conf.default_fs();
    NameNodes::of(conf, &uri.context("no file system: give --fs hdfs://HOST:PORT or --conf DIR")?)
}

fn local(conf: &Configuration, c: &mut ClientConfig) -> Result<()> {
    let path = |text: &str| Ok(Some(text.to_string()).filter(|path| !path.is_empty()));
    conf.read("dfs.domain.socket.path", path, &mut c.domain_socket)?;
    const READ: &str = "dfs.client.read.shortcircuit";
    conf.boolean(READ, &mut c.short_circuit)?;
    conf.number(&format!("{READ}.streams.cache.size"), &mut c.short_circuit_replicas)?;
    conf.millis(&format!("{READ}.streams.cache.expiry.ms"), &mut c.short_circuit_expiry)?;
    conf.boolean("dfs.client.domain.socket.data.traffic", &mut c.domain_socket_traffic)
}

fn caching(conf: &Configuration, c: &mut ClientConfig) -> Result<()> {
    const CACHE: &str = "dfs.client.cache";
    let bytes = |text: &str| Ok(Some(value::bytes(text)?));
    conf.read(&format!("{CACHE}.readahead"), bytes, &mut c.cache_readahead)?;
    let boolean = |text: &str| Ok(Some(value::boolean(text)?));
    conf.read(&format!("{CACHE}.drop.behind.reads"), boolean, &mut c.drop_behind_reads)?;
    conf.read(&format!("{CACHE}.drop.behind.writes"), boolean, &mut c.drop_behind_writes)
}

fn timing(conf: &Configuration, c: &mut ClientConfig) -> Result<()> {
    conf.patience("dfs.client.socket-timeout", &mut c.socket_timeout)?;
    let rpc = &mut c.rpc_timeout;
    let mut timeout = Duration::ZERO;
    conf.millis("ipc.client.rpc-timeout.ms", &mut timeout)?;
    if !timeout.is_zero() {
        *rpc = timeout;
    }
    let retries = "dfs.client.block.write.locateFollowingBlock.retries";
    conf.number(retries, &mut c.add_block_retries)?;
    let delay = "dfs.client.block.write.locateFollowingBlock.initial.delay.ms";
    conf.millis(delay, &mut c.add_block_delay)?;
    let hedged = "dfs.client.hedged.read";
    conf.number(&format!("{hedged}.threadpool.size"), &mut c.hedged_reads)?;
    conf.millis(&format!("{hedged}.threshold.millis"), &mut c.hedge_after)?;
    conf.millis("cairn.client.hedge-after", &mut c.hedge_after)
}

fn failures(conf: &Configuration, c: &mut ClientConfig) -> Result<()> {
    conf.number("dfs.client.block.write.retries", &mut c.block_write_retries)?;
    conf.number("dfs.client.pipeline.recovery.max-retries", &mut c.pipeline_recovery_retries)?;
    let replace = "dfs.client.block.write.replace-datanode-on-failure";
    let policy = |text: &str| match text.to_ascii_uppercase().as_str() {
        "NEVER" => Ok(ReplaceDataNode::Never),
        "DEFAULT" => Ok(ReplaceDataNode::Default),
        "ALWAYS" => Ok(ReplaceDataNode::Always),
        _ => bail!("it takes NEVER, DEFAULT or ALWAYS"),
    };
    conf.read(&format!("{replace}.policy"), policy, &mut c.replace_datanode)?;
    conf.boolean(&format!("{replace}.best-effort"), &mut c.replace_datanode_best_effort)?;
    let mut enabled = true;
    conf.boolean(&format!("{replace}.enable"), &mut enabled)?;
    if !enabled {
        c.replace_datanode = ReplaceDataNode::Never;
    }
    let expiry = "dfs.client.write.exclude.nodes.cache.expiry.interval.millis";
    conf.millis(expiry, &mut c.excluded_node_expiry)?;
    let mut tolerated: i64 = -1;
    conf.number("dfs.client.ec.write.failed.blocks.tolerated", &mut tolerated)?;
    c.failed_units_tolerated = usize::try_from(tolerated).ok();
    conf.number("cairn.client.ec.write-margin", &mut c.write_margin)?;
    conf.millis("cairn.client.ec.hanging-unit-timeout", &mut c.hanging_unit_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_reach_their_settings() {
        let mut conf = Configuration::default();
        assert!(read(&conf).is_err(), "no file system is named");
        conf.set("fs.defaultFS", "hdfs://nn");
        conf.set("dfs.blocksize", "4m");
        conf.set("fs.permissions.umask-mode", "027");
        conf.set("dfs.client.block.write.replace-datanode-on-failure.enable", "false");
        conf.set("dfs.client.ec.write.failed.blocks.tolerated", "1");
        conf.set("cairn.client.ec.write-margin", "2");
        conf.set("cairn.client.ec.hanging-unit-timeout", "3s");
        conf.set("hadoop.security.key.provider.path", "jceks://only@looked/at/when/it/is/needed");
        conf.set("dfs.client.socket-timeout", "0");
        conf.set("dfs.client.ignore.namenode.default.kms.uri", "true");
        conf.set("hadoop.security.kms.client.timeout", "7");
        conf.set("dfs.user.home.dir.prefix", "/home/");
        let mut c = read(&conf).unwrap();
        c.user = "ann".to_string();
        assert_eq!(c.home(), "/home/ann");
        assert_eq!((c.write_margin, c.hanging_unit_timeout), (2, Duration::from_secs(3)));
        assert_eq!((c.namenode.as_str(), c.block_size, c.umask), ("nn:8020", 4 << 20, 0o027));
        assert_eq!(c.socket_timeout, value::FOR_EVER, "as Hadoop takes 0");
        assert_eq!(c.replace_datanode, ReplaceDataNode::Never);
        assert_eq!(c.failed_units_tolerated, Some(1));
        assert_eq!((c.key_provider.is_some(), c.ignore_server_key_provider), (true, true));
        assert_eq!(c.kms.timeout, Duration::from_secs(7));
    }

    #[test]
    fn what_the_page_cache_keeps_is_left_to_datanodes_unless_said() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://nn");
        let wishes = |conf: &Configuration| {
            let c = read(conf).unwrap();
            (c.cache_readahead, c.drop_behind_reads, c.drop_behind_writes)
        };
        assert_eq!(wishes(&conf), (None, None, None));
        conf.set("dfs.client.cache.readahead", "1m");
        conf.set("dfs.client.cache.drop.behind.reads", "true");
        conf.set("dfs.client.cache.drop.behind.writes", "false");
        assert_eq!(wishes(&conf), (Some(1 << 20), Some(true), Some(false)));
    }

    #[test]
    fn hadoops_keys_bound_hedged_reads() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://nn");
        let hedging = |conf: &Configuration| {
            let c = read(conf).unwrap();
            (c.hedged_reads, c.hedge_after)
        };
        assert_eq!(hedging(&conf), (64, Duration::from_millis(500)));
        conf.set("dfs.client.hedged.read.threadpool.size", "0");
        conf.set("dfs.client.hedged.read.threshold.millis", "20");
        assert_eq!(hedging(&conf), (0, Duration::from_millis(20)));
        conf.set("cairn.client.hedge-after", "70");
        assert_eq!(hedging(&conf).1, Duration::from_millis(70));
    }
}
