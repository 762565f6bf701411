//! Keys about slow DataNodes and disks, some of which both roles read.

use super::Configuration;
use anyhow::Result;
use cairn_namenode::config::SlowConfig;

const SAMPLING: &str = "dfs.datanode.fileio.profiling.sampling.percentage";

/// What a NameNode does with what DataNodes tell.
pub fn of_namenode(conf: &Configuration, c: &mut SlowConfig) -> Result<()> {
    conf.boolean("dfs.datanode.peer.stats.enabled", &mut c.takes_peers)?;
    let mut percentage = 0_i32;
    conf.number(SAMPLING, &mut percentage)?;
    c.takes_disks = percentage > 0;
    conf.millis("dfs.datanode.outliers.report.interval", &mut c.report_interval)?;
    conf.number("dfs.datanode.max.nodes.to.report", &mut c.nodes_shown)?;
    conf.number("dfs.datanode.max.disks.to.report", &mut c.disks_shown)?;
    conf.number("dfs.namenode.max.slowpeer.collect.nodes", &mut c.nodes_avoided)?;
    conf.millis("dfs.namenode.slowpeer.collect.interval", &mut c.collect_interval)?;
    conf.boolean("dfs.namenode.avoid.read.slow.datanode", &mut c.avoid_for_read)?;
    let exclude = "dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled";
    conf.boolean(exclude, &mut c.avoid_for_write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn keys_reach_their_settings() {
        let mut conf = Configuration::default();
        let mut c = SlowConfig::default();
        of_namenode(&conf, &mut c).unwrap();
        assert_eq!(c, SlowConfig::default());
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
        of_namenode(&conf, &mut c).unwrap();
        assert!(c.takes_peers && c.takes_disks && c.avoid_for_read && c.avoid_for_write);
        assert_eq!((c.nodes_shown, c.disks_shown, c.nodes_avoided), (3, 4, 6));
        let times = (c.report_interval, c.collect_interval);
        assert_eq!(times, (Duration::from_secs(120), Duration::from_secs(7)));
    }
}
