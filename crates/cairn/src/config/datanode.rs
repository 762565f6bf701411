//! A DataNode's settings from Hadoop's keys.

use super::memory::available;
use super::namenode::{address, folder, service_policy};
use super::{Configuration, NameNodes, groups, slow, unsupported, value, webhdfs};
use anyhow::{Context, Result, bail};
use cairn_datanode::{DataDir, DataNodeConfig, Durability};
use cairn_net::groups::process_user;
use cairn_net::transfer_stream::PacketMemory;
use cairn_stripe::StorageType;
use std::time::Duration;

/// Reads every key that a DataNode knows; what no key names keeps Hadoop's default.
pub fn read(conf: &Configuration) -> Result<DataNodeConfig> {
    unsupported::refuse(conf)?;
    let mut c = DataNodeConfig { properties: conf.properties(), ..DataNodeConfig::default() };
    conf.read("dfs.datanode.data.dir.perm", value::mode, &mut c.data_dir_mode)?;
    for word in conf.list("dfs.datanode.data.dir") {
        c.data_dirs.push(volume(&word)?);
    }
    if let Some(uri) = conf.default_fs().filter(|uri| uri.starts_with("hdfs://")) {
        c.name_node = NameNodes::of(conf, &uri)?.only("a DataNode of Cairn reports to")?;
    }
    for key in ["dfs.namenode.rpc-address", "dfs.namenode.servicerpc-address"] {
        conf.read(key, |text| Ok(text.to_string()), &mut c.name_node)?;
    }
    conf.read("dfs.datanode.address", address, &mut c.xfer_addr)?;
    let path = |text: &str| Ok(Some(text.to_string()).filter(|path| !path.is_empty()));
    conf.read("dfs.domain.socket.path", path, &mut c.domain_socket)?;
    conf.boolean("dfs.client.read.shortcircuit", &mut c.short_circuit)?;
    conf.read("dfs.datanode.ipc.address", address, &mut c.ipc_addr)?;
    conf.read("dfs.datanode.http.address", |text| Ok(Some(address(text)?)), &mut c.http_addr)?;
    conf.millis("hadoop.http.idle_timeout.ms", &mut c.http_idle_timeout)?;
    c.web = webhdfs::of_datanode(conf, &c.name_node)?;
    conf.read("dfs.datanode.hostname", |text| Ok(Some(text.to_string())), &mut c.hostname)?;
    conf.boolean("dfs.datanode.use.datanode.hostname", &mut c.connect_via_hostname)?;
    // USER says nothing: services are started without it.
    if let Some(user) = std::env::var("HADOOP_USER_NAME").ok().or_else(process_user) {
        c.user = user;
    }
    conf.boolean("dfs.permissions.enabled", &mut c.permissions_enabled)?;
    let text = |text: &str| Ok(text.to_string());
    conf.read("dfs.permissions.superusergroup", text, &mut c.supergroup)?;
    groups::read(conf, &mut c.groups)?;
    let proxy_users = conf.iter().filter(|(key, _)| key.starts_with("hadoop.proxyuser."));
    c.proxy_users = proxy_users.map(|(k, v)| (k.to_string(), v.to_string())).collect();
    c.service_policy = service_policy(conf)?;
    let durability = |text: &str| match text {
        "stable" => Ok(Durability::Stable),
        "page-cache" => Ok(Durability::PageCache),
        _ => bail!("it takes stable or page-cache"),
    };
    conf.read("cairn.durability", durability, &mut c.durability)?;
    conf.bytes("dfs.datanode.du.reserved", &mut c.reserved_bytes)?;
    let tolerated = |text: &str| match text {
        "-1" => Ok(None),
        text => Ok(Some(text.parse().context("it takes a number of volumes, or -1")?)),
    };
    conf.read("dfs.datanode.failed.volumes.tolerated", tolerated, &mut c.failed_volumes_tolerated)?;
    let above_zero = |text: &str| match value::duration(text, Duration::from_millis(1))? {
        // Source: Hadoop 3.5.0 `DatasetVolumeChecker`.
        Duration::ZERO => bail!("it takes a time above 0"),
        time => Ok(time),
    };
    conf.read("dfs.datanode.disk.check.timeout", above_zero, &mut c.disk_check_timeout)?;
    conf.bytes("dfs.blocksize", &mut c.block_len_estimate)?;
    conf.number("dfs.datanode.max.transfer.threads", &mut c.max_connections)?;
    conf.number("dfs.datanode.balance.max.concurrent.moves", &mut c.max_moves)?;
    conf.bytes("dfs.datanode.balance.bandwidthPerSec", &mut c.balance_bandwidth)?;
    conf.bytes("dfs.datanode.data.transfer.bandwidthPerSec", &mut c.transfer_bandwidth)?;
    conf.bytes("dfs.datanode.data.read.bandwidthPerSec", &mut c.read_bandwidth)?;
    conf.bytes("dfs.datanode.data.write.bandwidthPerSec", &mut c.write_bandwidth)?;
    conf.number("cairn.datanode.kept-replicas", &mut c.kept_replicas)?;
    c.packet_memory = packet_memory(available(), c.max_connections);
    conf.bytes("cairn.datanode.packet-memory", &mut c.packet_memory)?;
    page_cache(conf, &mut c)?;
    data_connections(conf, &mut c)?;
    memory(conf, &mut c)?;
    bound_capacity(conf, &mut c.data_dirs)?;
    reconstruction(conf, &mut c)?;
    scanners(conf, &mut c)?;
    timing(conf, &mut c)?;
    slow::of_datanode(conf, &mut c)?;
    Ok(c)
}

/// The default: an eighth of the memory, but no more than two of Cairn's packets for each connection.
fn packet_memory(memory: u64, connections: usize) -> u64 {
    (memory / 8).min(connections as u64 * (512 << 10)).max(PacketMemory::LEAST)
}

fn page_cache(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    conf.boolean("dfs.datanode.drop.cache.behind.reads", &mut c.drop_behind_reads)?;
    conf.boolean("dfs.datanode.drop.cache.behind.writes", &mut c.drop_behind_writes)?;
    conf.boolean("dfs.datanode.sync.behind.writes", &mut c.sync_behind_writes)?;
    conf.bytes("dfs.datanode.readahead.bytes", &mut c.readahead_bytes)?;
    conf.bytes("cairn.datanode.preallocation", &mut c.preallocation_bytes)
}

fn data_connections(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    conf.boolean("dfs.datanode.transferTo.allowed", &mut c.transfer_to_allowed)?;
    conf.bytes("dfs.datanode.transfer.socket.send.buffer.size", &mut c.send_buffer)?;
    conf.bytes("dfs.datanode.transfer.socket.recv.buffer.size", &mut c.recv_buffer)
}

fn reconstruction(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    const EC: &str = "dfs.datanode.ec.reconstruction";
    conf.number(&format!("{EC}.threads"), &mut c.reconstruction_threads)?;
    conf.number(&format!("{EC}.xmits.weight"), &mut c.reconstruction_xmits_weight)?;
    let timeout = format!("{EC}.stripedread.timeout.millis");
    conf.patience(&timeout, &mut c.reconstruction_read_timeout)?;
    let buffer = format!("{EC}.stripedread.buffer.size");
    conf.bytes(&buffer, &mut c.reconstruction_buffer_len)?;
    for (way, bandwidth) in [
        ("read", &mut c.reconstruction_read_bandwidth),
        ("write", &mut c.reconstruction_write_bandwidth),
    ] {
        conf.bytes(&format!("dfs.datanode.ec.reconstruct.{way}.bandwidthPerSec"), bandwidth)?;
    }
    Ok(())
}

fn memory(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    conf.bytes("dfs.datanode.max.locked.memory", &mut c.max_locked_memory)?;
    conf.millis("dfs.cachereport.intervalMsec", &mut c.cache_report_interval)?;
    conf.seconds("dfs.datanode.lazywriter.interval.sec", &mut c.lazy_writer_interval)?;
    conf.boolean("dfs.datanode.non.local.lazy.persist", &mut c.non_local_lazy_persist)
}

fn scanners(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    const RATE: &str = "dfs.block.scanner.volume.bytes.per.second";
    conf.bytes(RATE, &mut c.scan_bytes_per_second)?;
    let period = |text: &str| match text.parse::<i64>()? {
        0 => Ok(DataNodeConfig::default().scan_period),
        hours => Ok(Duration::from_secs(u64::try_from(hours).unwrap_or(0).saturating_mul(3600))),
    };
    conf.read("dfs.datanode.scan.period.hours", period, &mut c.scan_period)?;
    let save = "dfs.block.scanner.cursor.save.interval.ms";
    conf.millis(save, &mut c.scan_cursor_save_interval)?;
    let skip = "dfs.block.scanner.skip.recent.accessed";
    conf.boolean(skip, &mut c.scan_skip_recently_accessed)?;
    let interval = |text: &str| match text.starts_with('-') {
        true => Ok(Duration::ZERO),
        false => value::duration(text, Duration::from_secs(1)),
    };
    conf.read("dfs.datanode.directoryscan.interval", interval, &mut c.directory_scan_interval)
}

fn timing(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    conf.seconds("dfs.heartbeat.interval", &mut c.heartbeat_interval)?;
    conf.millis("dfs.blockreport.intervalMsec", &mut c.block_report_interval)?;
    conf.number("dfs.blockreport.split.threshold", &mut c.block_report_split_threshold)?;
    conf.patience("dfs.client.socket-timeout", &mut c.read_timeout)?;
    conf.patience("dfs.datanode.socket.write.timeout", &mut c.write_timeout)?;
    conf.millis("dfs.datanode.socket.reuse.keepalive", &mut c.keepalive)?;
    conf.millis("dfs.datanode.xceiver.stop.timeout.millis", &mut c.writer_stop_timeout)
}

/// The medium in brackets before a volume's folder: `[SSD]file:///data/1`.
fn storage_type(text: &str) -> Result<StorageType> {
    match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => medium(name),
        None => Ok(StorageType::Disk),
    }
}

/// A storage type that a DataNode can have, by its name.
pub fn medium(name: &str) -> Result<StorageType> {
    let known = StorageType::by_name(name).filter(|kind| *kind != StorageType::Provided);
    known.with_context(|| format!("{name} is no storage type that a DataNode can have"))
}

/// A volume as `dfs.datanode.data.dir` names it: a folder, perhaps behind its medium in brackets.
pub fn volume(text: &str) -> Result<DataDir> {
    let storage_type = storage_type(text)?;
    Ok(DataDir { path: folder(text), storage_type, capacity: None })
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
        let for_ever = cairn_conf::FOR_EVER;
        assert_eq!((c.read_timeout, c.write_timeout), (for_ever, for_ever), "as Hadoop takes 0");
        assert!(c.scan_period.is_zero());
        assert_eq!(c.disk_check_timeout, Duration::from_secs(120));
        assert_eq!((c.scan_bytes_per_second, c.directory_scan_interval.as_secs()), (2 << 20, 3600));
        assert_eq!(c.reconstruction_read_timeout.as_secs(), 7);
        assert_eq!(c.reconstruction_write_bandwidth, 10 << 20);
        assert_eq!((c.max_locked_memory, c.lazy_writer_interval.as_secs()), (64 << 20, 1));
        assert!(c.non_local_lazy_persist);
        assert_eq!(c.name_node, "nn:9000");
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
}
