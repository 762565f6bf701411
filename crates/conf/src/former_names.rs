//! Names that keys had in older versions of Hadoop, by which files still set them.

/// Former and present names of the keys that Cairn reads, in the order of the former ones.
///
/// Source: Hadoop 3.5.0 `HdfsConfiguration#addDeprecatedKeys`, `Configuration.defaultDeprecations`.
const NAMES: [(&str, &str); 31] = [
    ("dfs.access.time.precision", "dfs.namenode.accesstime.precision"),
    ("dfs.balance.bandwidthPerSec", "dfs.datanode.balance.bandwidthPerSec"),
    ("dfs.block.size", "dfs.blocksize"),
    ("dfs.data.dir", "dfs.datanode.data.dir"),
    ("dfs.datanode.max.xcievers", "dfs.datanode.max.transfer.threads"),
    ("dfs.encryption.key.provider.uri", "hadoop.security.key.provider.path"),
    ("dfs.federation.nameservices", "dfs.nameservices"),
    ("dfs.http.address", "dfs.namenode.http-address"),
    ("dfs.max-repl-streams", "dfs.namenode.replication.max-streams"),
    ("dfs.max.objects", "dfs.namenode.max.objects"),
    ("dfs.name.dir", "dfs.namenode.name.dir"),
    ("dfs.namenode.replication.considerLoad", "dfs.namenode.redundancy.considerLoad"),
    ("dfs.namenode.replication.considerLoad.factor", "dfs.namenode.redundancy.considerLoad.factor"),
    ("dfs.namenode.replication.interval", "dfs.namenode.redundancy.interval.seconds"),
    (
        "dfs.namenode.replication.pending.timeout-sec",
        "dfs.namenode.reconstruction.pending.timeout-sec",
    ),
    ("dfs.permissions", "dfs.permissions.enabled"),
    ("dfs.permissions.supergroup", "dfs.permissions.superusergroup"),
    ("dfs.replication.considerLoad", "dfs.namenode.redundancy.considerLoad"),
    ("dfs.replication.interval", "dfs.namenode.redundancy.interval.seconds"),
    ("dfs.replication.min", "dfs.namenode.replication.min"),
    ("dfs.replication.pending.timeout.sec", "dfs.namenode.reconstruction.pending.timeout-sec"),
    ("dfs.safemode.extension", "dfs.namenode.safemode.extension"),
    ("dfs.safemode.threshold.pct", "dfs.namenode.safemode.threshold-pct"),
    ("dfs.socket.timeout", "dfs.client.socket-timeout"),
    ("dfs.umaskmode", "fs.permissions.umask-mode"),
    ("dfs.write.packet.size", "dfs.client-write-packet-size"),
    ("fs.default.name", "fs.defaultFS"),
    ("heartbeat.recheck.interval", "dfs.namenode.heartbeat.recheck-interval"),
    ("io.bytes.per.checksum", "dfs.bytes-per-checksum"),
    ("slave.host.name", "dfs.datanode.hostname"),
    ("topology.script.file.name", "net.topology.script.file.name"),
];

/// What a key is called now.
pub(crate) fn present(name: &str) -> &str {
    NAMES.binary_search_by_key(&name, |(former, _)| former).map_or(name, |place| NAMES[place].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_former_name_is_found() {
        assert!(NAMES.is_sorted());
        for (former, now) in NAMES {
            assert_eq!((present(former), present(now)), (now, now));
        }
        assert_eq!(present("dfs.data.dir2"), "dfs.data.dir2");
    }
}
