//! A client's settings from Hadoop's keys.

use crate::nameservice::NameNodes;
use crate::{Configuration, login};
use anyhow::{Context, Result};
use cairn_client::{ClientConfig, ReplaceDataNode};
use std::time::Duration;

/// How long another NameNode may take to become the active one: the old one may have to be fenced off first.
const FAILOVER: Duration = Duration::from_secs(180);

/// Hadoop's ways to find a NameNode by which reads are asked of those that follow.
const OBSERVING: [&str; 2] = [
    "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider",
    "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProviderWithIPFailover",
];

/// Reads every key that a client knows. The file system must be named.
pub fn read(conf: &Configuration) -> Result<ClientConfig> {
    let mut c = ClientConfig::default();
    let found = namenodes(conf)?;
    if found.rpc.len() > 1 {
        c.retry_for = FAILOVER;
    }
    login::read(conf, &found, |name| std::env::var_os(name), &mut c)?;
    (c.namenode, c.namenode_addresses) = (found.authority, found.rpc);
    conf.fill(ClientConfig::KEYS, &mut c)?;
    let provider = conf.get(&format!("dfs.client.failover.proxy.provider.{}", c.namenode));
    c.reads_followers |= provider.is_some_and(|class| OBSERVING.contains(&class.as_str()));
    c.msync_period = msync_period(conf, &c.namenode)?;
    conf.millis("cairn.client.hedge-after", &mut c.hedge_after)?;
    let mut replaces = true;
    conf.boolean("dfs.client.block.write.replace-datanode-on-failure.enable", &mut replaces)?;
    if !replaces {
        c.replace_datanode = ReplaceDataNode::Never;
    }
    Ok(c)
}

/// How often reads ask the leader how far it is; less than 0 is never.
fn msync_period(conf: &Configuration, nameservice: &str) -> Result<Option<Duration>> {
    let key = format!("dfs.client.failover.observer.auto-msync-period.{nameservice}");
    let mut period = Duration::ZERO;
    match conf.get(&key) {
        Some(text) if !text.starts_with('-') => conf.millis(&key, &mut period)?,
        _ => return Ok(None),
    }
    Ok(Some(period))
}

/// The NameNodes of the file system, which must be named.
pub fn namenodes(conf: &Configuration) -> Result<NameNodes> {
    let uri = conf.default_fs();
    NameNodes::of(conf, &uri.context("no file system: give --fs hdfs://HOST:PORT or --conf DIR")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

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
    fn reads_at_those_who_follow_are_asked_for_by_hadoops_keys_or_our_own() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://ns");
        conf.set("dfs.ha.namenodes.ns", "a,b");
        conf.set("dfs.namenode.rpc-address.ns.a", "h:1");
        conf.set("dfs.namenode.rpc-address.ns.b", "h:2");
        let of = |conf: &Configuration| {
            let c = read(conf).unwrap();
            (c.reads_followers, c.msync_period)
        };
        assert_eq!(of(&conf), (false, None));
        let provider = "dfs.client.failover.proxy.provider.ns";
        conf.set(
            provider,
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        );
        assert_eq!(of(&conf), (false, None));
        conf.set(provider, OBSERVING[0]);
        let period = "dfs.client.failover.observer.auto-msync-period.ns";
        for (text, wanted) in
            [("0", Some(0)), ("500ms", Some(500)), ("2s", Some(2000)), ("-1", None)]
        {
            conf.set(period, text);
            assert_eq!(of(&conf), (true, wanted.map(Duration::from_millis)), "{text}");
        }
        conf.set(provider, "");
        conf.set("cairn.client.read-followers", "true");
        assert!(of(&conf).0);
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
