//! A DataNode's settings from Hadoop's keys.

use super::memory::available;
use super::namenode::service_policy;
use super::{Configuration, NameNodes, groups, https, security, unsupported, webhdfs};
use anyhow::Result;
use cairn_access::groups::process_user;
use cairn_datanode::{DataDir, DataNodeConfig};
use cairn_net::transfer_stream::PacketMemory;

/// Reads every key that a DataNode knows; what no key names keeps Hadoop's default.
pub fn read(conf: &Configuration) -> Result<DataNodeConfig> {
    unsupported::refuse(conf)?;
    let mut c = DataNodeConfig { properties: conf.properties(), ..DataNodeConfig::default() };
    conf.fill(DataNodeConfig::KEYS, &mut c)?;
    c.groups = groups::read(conf)?;
    if let Some(found) = NameNodes::of_datanodes(conf)? {
        c.name_nodes = found.service;
    }
    // As in Hadoop, keys without a suffix say nothing of a nameservice with several.
    if let [only] = &mut c.name_nodes[..] {
        for key in ["dfs.namenode.rpc-address", "dfs.namenode.servicerpc-address"] {
            conf.read(key, |text| Ok(text.to_string()), only)?;
        }
    }
    let web = https::read(conf, ("dfs.datanode.https.address", "0.0.0.0:9865"))?;
    c.http_addr = c.http_addr.filter(|_| web.is_plain);
    c.https = web.secure;
    c.web = webhdfs::of_datanode(conf, &c.name_nodes[0])?;
    // USER says nothing: services are started without it.
    if let Some(user) = std::env::var("HADOOP_USER_NAME").ok().or_else(process_user) {
        c.user = user;
    }
    security::of_datanode(conf, &mut c)?;
    let proxy_users = conf.iter().filter(|(key, _)| key.starts_with("hadoop.proxyuser."));
    c.proxy_users = proxy_users.map(|(k, v)| (k.to_string(), v.to_string())).collect();
    c.service_policy = service_policy(conf)?;
    if conf.get("cairn.datanode.packet-memory").is_none() {
        c.packet_memory = packet_memory(available(), c.max_connections);
    }
    bound_capacity(conf, &mut c.data_dirs)?;
    Ok(c)
}

/// The default: an eighth of the memory, but no more than two of Cairn's packets for each connection.
fn packet_memory(memory: u64, connections: usize) -> u64 {
    (memory / 8).min(connections as u64 * (512 << 10)).max(PacketMemory::LEAST)
}

/// Bounds the capacity of every volume, if `cairn.datanode.capacity` is set.
pub fn bound_capacity(conf: &Configuration, dirs: &mut [DataDir]) -> Result<()> {
    let mut most = 0;
    conf.bytes("cairn.datanode.capacity", &mut most)?;
    dirs.iter_mut().for_each(|dir| dir.capacity = Some(most).filter(|most| *most > 0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_stripe::StorageType;
    use std::time::Duration;

    #[test]
    fn keys_reach_their_settings() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://nn:9000");
        conf.set("dfs.datanode.data.dir", "[SSD]file:///d/1,/d/2");
        conf.set("cairn.datanode.capacity", "1g");
        conf.set("dfs.heartbeat.interval", "1");
        conf.set("dfs.datanode.ec.reconstruction.stripedread.timeout.millis", "7000");
        conf.set("dfs.datanode.ec.reconstruct.write.bandwidthPerSec", "10m");
        conf.set("dfs.datanode.scan.period.hours", "-1");
        conf.set("dfs.datanode.disk.check.timeout", "2m");
        conf.set("dfs.block.scanner.volume.bytes.per.second", "2m");
        conf.set("dfs.datanode.directoryscan.interval", "1h");
        conf.set("dfs.datanode.max.locked.memory", "64m");
        conf.set("dfs.datanode.lazywriter.interval.sec", "1");
        conf.set("dfs.datanode.non.local.lazy.persist", "true");
        conf.set("dfs.datanode.data.read.bandwidthPerSec", "3m");
        conf.set("dfs.datanode.data.write.bandwidthPerSec", "4m");
        conf.set("dfs.datanode.drop.cache.behind.reads", "true");
        conf.set("dfs.datanode.sync.behind.writes", "true");
        conf.set("dfs.datanode.readahead.bytes", "1m");
        conf.set("cairn.datanode.preallocation", "0");
        conf.set("dfs.datanode.transferTo.allowed", "false");
        conf.set("dfs.datanode.transfer.socket.send.buffer.size", "128k");
        conf.set("dfs.datanode.transfer.socket.recv.buffer.size", "0");
        conf.set("dfs.client.socket-timeout", "0");
        conf.set("dfs.datanode.socket.write.timeout", "0");
        let c = read(&conf).unwrap();
        assert_eq!((c.read_bandwidth, c.write_bandwidth), (3 << 20, 4 << 20));
        assert!(c.drop_behind_reads && !c.drop_behind_writes && c.sync_behind_writes);
        assert_eq!((c.readahead_bytes, c.preallocation_bytes), (1 << 20, 0));
        assert_eq!((c.transfer_to_allowed, c.send_buffer, c.recv_buffer), (false, 128 << 10, 0));
        let for_ever = cairn_conf::value::FOR_EVER;
        assert_eq!((c.read_timeout, c.write_timeout), (for_ever, for_ever), "as Hadoop takes 0");
        assert!(c.scan_period.is_zero());
        assert_eq!(c.disk_check_timeout, Duration::from_secs(120));
        assert_eq!((c.scan_bytes_per_second, c.directory_scan_interval.as_secs()), (2 << 20, 3600));
        assert_eq!(c.reconstruction_read_timeout.as_secs(), 7);
        assert_eq!(c.reconstruction_write_bandwidth, 10 << 20);
        assert_eq!((c.max_locked_memory, c.lazy_writer_interval.as_secs()), (64 << 20, 1));
        assert!(c.non_local_lazy_persist);
        assert_eq!(c.name_nodes, ["nn:9000"]);
        let capacity = Some(1 << 30);
        assert_eq!(
            c.data_dirs,
            [("/d/1", StorageType::Ssd), ("/d/2", StorageType::Disk)].map(
                |(path, storage_type)| { DataDir { path: path.into(), storage_type, capacity } }
            )
        );
        assert!(c.properties.contains(&("dfs.heartbeat.interval".into(), "1".into())));
        assert_eq!(c.heartbeat_interval.as_secs(), 1);
        conf.set("dfs.datanode.data.dir", "[TAPE]/d/1");
        assert!(read(&conf).is_err());
        conf.set("dfs.datanode.disk.check.timeout", "0");
        assert!(read(&conf).is_err(), "every disk would fail");
    }

    #[test]
    fn a_nameservice_may_have_several_namenodes() {
        let mut conf = Configuration::default();
        for (key, value) in [
            ("fs.defaultFS", "hdfs://ns"),
            ("dfs.nameservices", "ns"),
            ("dfs.ha.namenodes.ns", "a,b,c"),
            ("dfs.namenode.rpc-address.ns.a", "a:1"),
            ("dfs.namenode.rpc-address.ns.b", "b:2"),
            ("dfs.namenode.servicerpc-address.ns.b", "b:3"),
            ("dfs.namenode.rpc-address.ns.c", "c:4"),
            ("dfs.namenode.rpc-address", "elsewhere:5"),
        ] {
            conf.set(key, value);
        }
        assert_eq!(read(&conf).unwrap().name_nodes, ["a:1", "b:3", "c:4"]);
    }

    #[test]
    fn memory_for_packets_follows_the_memory_and_the_connections() {
        for (gib, connections, mib) in
            [(0, 4096, 128), (4, 4096, 512), (64, 4096, 2048), (1024, 256, 128), (1024, 8192, 4096)]
        {
            assert_eq!(packet_memory(gib << 30, connections), mib << 20, "{gib}, {connections}");
        }
        let mut conf = Configuration::default();
        conf.set("cairn.datanode.packet-memory", "300m");
        assert_eq!(read(&conf).unwrap().packet_memory, 300 << 20);
    }

    #[test]
    fn keys_about_slow_peers_and_disks_reach_their_settings() {
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
        let c = read(&conf).unwrap();
        let bounds = (c.outlier_min_nodes, c.outlier_min_samples, c.slow_peer_low_ms);
        assert_eq!((c.peer_stats, bounds), (true, (2, 3, 4)));
        assert_eq!(c.outliers_report_interval, Duration::from_secs(5));
        let disks = (c.outlier_min_disks, c.slow_disk_low_ms, c.max_slow_disks_avoided);
        assert_eq!((c.disk_sampling_percentage, disks), (6, (7, 8, 9)));
        assert_eq!(c.slow_io_threshold, Duration::from_millis(10));
        assert_eq!((c.tells_slow, c.tells_congestion, c.congestion_ratio), (true, true, 0.5));
        conf.set("dfs.pipeline.congestion.ratio", "0");
        let c = read(&conf).unwrap();
        assert_eq!(c.congestion_ratio, 1.5, "as Hadoop takes it");
        conf.set("dfs.datanode.slowpeer.low.threshold.ms", "0");
        assert!(read(&conf).is_err(), "Hadoop refuses it with -reconfig");
    }
}
