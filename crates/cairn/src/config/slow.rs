//! Keys about slow DataNodes and disks, some of which both roles read.

use super::Configuration;
use anyhow::Result;
use cairn_datanode::DataNodeConfig;
use cairn_namenode::config::SlowConfig;
use std::num::NonZeroU64;
use std::time::Duration;

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

/// What a DataNode measures of others and of its disks.
pub fn of_datanode(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    let positive = |text: &str| Ok(text.parse::<NonZeroU64>()?.get());
    conf.boolean("dfs.datanode.peer.stats.enabled", &mut c.peer_stats)?;
    let nodes = "dfs.datanode.min.outlier.detection.nodes";
    conf.read(nodes, positive, &mut c.outlier_min_nodes)?;
    let samples = "dfs.datanode.peer.metrics.min.outlier.detection.samples";
    conf.read(samples, positive, &mut c.outlier_min_samples)?;
    conf.read("dfs.datanode.slowpeer.low.threshold.ms", positive, &mut c.slow_peer_low_ms)?;
    conf.millis("dfs.datanode.outliers.report.interval", &mut c.outliers_report_interval)?;
    let percentage = |text: &str| Ok(text.parse::<i32>()?.clamp(0, 100).unsigned_abs());
    conf.read(SAMPLING, percentage, &mut c.disk_sampling_percentage)?;
    let disks = "dfs.datanode.min.outlier.detection.disks";
    conf.read(disks, positive, &mut c.outlier_min_disks)?;
    conf.read("dfs.datanode.slowdisk.low.threshold.ms", positive, &mut c.slow_disk_low_ms)?;
    conf.number("dfs.datanode.max.slowdisks.to.exclude", &mut c.max_slow_disks_avoided)?;
    let millis = |text: &str| Ok(Duration::from_millis(positive(text)?));
    conf.read("dfs.datanode.slow.io.warning.threshold.ms", millis, &mut c.slow_io_threshold)?;
    conf.boolean("dfs.pipeline.slownode", &mut c.tells_slow)?;
    conf.boolean("dfs.pipeline.ecn", &mut c.tells_congestion)?;
    let ratio = |text: &str| match text.parse::<f64>()? {
        ratio if ratio > 0.0 => Ok(ratio),
        // As Hadoop takes it.
        _ => Ok(DataNodeConfig::default().congestion_ratio),
    };
    conf.read("dfs.pipeline.congestion.ratio", ratio, &mut c.congestion_ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn keys_of_datanodes_reach_their_settings() {
        let mut conf = Configuration::default();
        for (key, value) in [
            ("dfs.datanode.peer.stats.enabled", "true"),
            ("dfs.datanode.min.outlier.detection.nodes", "2"),
            ("dfs.datanode.peer.metrics.min.outlier.detection.samples", "3"),
            ("dfs.datanode.slowpeer.low.threshold.ms", "4"),
            ("dfs.datanode.outliers.report.interval", "5s"),
            ("dfs.datanode.fileio.profiling.sampling.percentage", "6"),
            ("dfs.datanode.min.outlier.detection.disks", "7"),
            ("dfs.datanode.slowdisk.low.threshold.ms", "8"),
            ("dfs.datanode.max.slowdisks.to.exclude", "9"),
            ("dfs.datanode.slow.io.warning.threshold.ms", "10"),
            ("dfs.pipeline.slownode", "true"),
            ("dfs.pipeline.ecn", "true"),
            ("dfs.pipeline.congestion.ratio", "0.5"),
        ] {
            conf.set(key, value);
        }
        let mut c = DataNodeConfig::default();
        of_datanode(&conf, &mut c).unwrap();
        let bounds = (c.outlier_min_nodes, c.outlier_min_samples, c.slow_peer_low_ms);
        assert_eq!((c.peer_stats, bounds), (true, (2, 3, 4)));
        assert_eq!(c.outliers_report_interval, Duration::from_secs(5));
        let disks = (c.outlier_min_disks, c.slow_disk_low_ms, c.max_slow_disks_avoided);
        assert_eq!((c.disk_sampling_percentage, disks), (6, (7, 8, 9)));
        assert_eq!(c.slow_io_threshold, Duration::from_millis(10));
        assert_eq!((c.tells_slow, c.tells_congestion, c.congestion_ratio), (true, true, 0.5));
        conf.set("dfs.pipeline.congestion.ratio", "0");
        of_datanode(&conf, &mut c).unwrap();
        assert_eq!(c.congestion_ratio, 1.5, "as Hadoop takes it");
        conf.set("dfs.datanode.slowpeer.low.threshold.ms", "0");
        assert!(of_datanode(&conf, &mut c).is_err(), "Hadoop refuses it with -reconfig");
    }
}
