//! `ReconfigurationProtocol`: settings that change while the NameNode runs
//! (`hdfs dfsadmin -reconfig namenode HOST:PORT start`).
//!
//! Source: Hadoop 3.5.0 `NameNode#reconfigurePropertyImpl`. Deviation: the interval between rounds of
//! mending, and how much is scrubbed, can be changed as well.

use std::sync::Arc;

use cairn_master::Submission;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::{Settings, query};
use cairn_net::reconfiguration::Property;
use cairn_net::rpc_server::Call;

use crate::config::NameNodeConfig;
use crate::config::parts::cluster_config;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal};
use crate::satisfier;

const HEARTBEAT: &str = "dfs.heartbeat.interval";
const RECHECK: &str = "dfs.namenode.heartbeat.recheck-interval";
const STREAMS: &str = "dfs.namenode.replication.max-streams";
const STREAMS_HARD: &str = "dfs.namenode.replication.max-streams-hard-limit";
const MULTIPLIER: &str = "dfs.namenode.replication.work.multiplier.per.iteration";
const INVALIDATE: &str = "dfs.block.invalidate.limit";
const PENDING: &str = "dfs.namenode.reconstruction.pending.timeout-sec";
const INTERVAL: &str = "dfs.namenode.redundancy.interval.seconds";
const PLACEMENT: &str = "dfs.block.replicator.classname";
const DIRECTORY_ITEMS: &str = "dfs.namenode.fs-limits.max-directory-items";
const ROOM: &str = "dfs.namenode.block-placement.min-blocks-for.write";
const PROTECTED: &str = "fs.protected.directories";
const CALLER_CONTEXT: &str = "hadoop.caller.context.enabled";
const SLOW_CALLS: &str = "ipc.server.log.slow.rpc";
const SLOW_CALL_THRESHOLD: &str = "ipc.server.log.slow.rpc.threshold.ms";
const SATISFIER: &str = "dfs.storage.policy.satisfier.mode";
const PEER_STATS: &str = "dfs.datanode.peer.stats.enabled";
const SLOW_SHOWN: &str = "dfs.datanode.max.nodes.to.report";
const SLOW_AVOIDED: &str = "dfs.namenode.max.slowpeer.collect.nodes";
const SLOW_COLLECT: &str = "dfs.namenode.slowpeer.collect.interval";
const SLOW_READ: &str = "dfs.namenode.avoid.read.slow.datanode";
const SLOW_WRITE: &str = "dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled";
const SCRUB_PERIOD: &str = "cairn.namenode.scrub.period";
const SCRUB_RATE: &str = "cairn.namenode.scrub.bytes-per-second";

/// The properties that can change.
pub const PROPERTIES: &[Property] = &[
    (HEARTBEAT, "3"),
    (RECHECK, "300000"),
    (STREAMS, "2"),
    (STREAMS_HARD, "4"),
    (MULTIPLIER, "2"),
    (INVALIDATE, "1000"),
    (PENDING, "300"),
    (INTERVAL, "3s"),
    (PLACEMENT, "org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault"),
    (DIRECTORY_ITEMS, "1048576"),
    (ROOM, "1"),
    (PROTECTED, ""),
    (CALLER_CONTEXT, "false"),
    (SLOW_CALLS, "false"),
    (SLOW_CALL_THRESHOLD, "0"),
    (SATISFIER, "none"),
    (PEER_STATS, "false"),
    (SLOW_SHOWN, "5"),
    (SLOW_AVOIDED, "5"),
    (SLOW_COLLECT, "30m"),
    (SLOW_READ, "false"),
    (SLOW_WRITE, "false"),
    (SCRUB_PERIOD, "504h"),
    (SCRUB_RATE, "4m"),
];

/// Handles a call of this protocol.
pub async fn handle(node: &Arc<NameNode>, call: &Call) -> Answer {
    node.check_superuser(call).await?;
    let (worker, call) = (Arc::clone(node), call.clone());
    // Files are read, and the log is waited for.
    let done = tokio::task::spawn_blocking(move || {
        worker.reconfiguration.call(&call, |name, new| apply(&worker, name, new))
    });
    Ok(done.await.map_err(|_| Refusal::io("the reconfiguration was interrupted"))??)
}

/// Takes one of the settings that commands obey to its new value.
fn configure(node: &NameNode, change: impl FnOnce(&mut Settings)) -> Result<(), String> {
    let settings = node.ns.read(|store| query::settings(store));
    let mut settings = settings.map_err(|error| error.to_string())?;
    change(&mut settings);
    let submission = Submission::own(Configure { settings: settings.into() });
    node.ns.submit_blocking(submission).map(drop).map_err(|error| error.to_string())
}

/// Called outside of the runtime's threads.
fn apply(node: &NameNode, name: &str, new: &NameNodeConfig) -> Result<(), String> {
    match name {
        DIRECTORY_ITEMS => {
            configure(node, |settings| settings.directory_items_max = new.max_directory_items)
        }
        PROTECTED => {
            let directories = new.protected_directories.clone();
            configure(node, |settings| settings.protected_directories = directories)
        }
        CALLER_CONTEXT => {
            if let Some(audit) = &node.audit {
                audit.tell_context(new.audit.caller_context);
            }
            Ok(())
        }
        SLOW_CALLS => {
            node.rpc_metrics.log_slow_calls(new.logs_slow_calls);
            Ok(())
        }
        SLOW_CALL_THRESHOLD => {
            node.rpc_metrics.set_slow_threshold(new.slow_call_threshold);
            Ok(())
        }
        SATISFIER => {
            satisfier::change_mode(node, new.satisfier_mode);
            Ok(())
        }
        _ => change_cluster(node, name, new),
    }
}

/// Takes one of the cluster's settings to its new value.
fn change_cluster(node: &NameNode, name: &str, new: &NameNodeConfig) -> Result<(), String> {
    let new = cluster_config(new);
    node.change_cluster_config(|config| {
        match name {
            HEARTBEAT => config.heartbeat_interval = new.heartbeat_interval,
            RECHECK => config.recheck_interval = new.recheck_interval,
            STREAMS => config.max_streams = new.max_streams,
            STREAMS_HARD => config.max_streams_hard = new.max_streams_hard,
            MULTIPLIER => config.work_multiplier = new.work_multiplier,
            INVALIDATE => config.invalidate_limit = new.invalidate_limit,
            PENDING => config.pending_timeout = new.pending_timeout,
            INTERVAL => config.redundancy_interval = new.redundancy_interval,
            PLACEMENT => config.upgrade_domain_factor = new.upgrade_domain_factor,
            ROOM => config.blocks_of_room = new.blocks_of_room,
            PEER_STATS => config.slow.takes_peers = new.slow.takes_peers,
            SLOW_SHOWN => config.slow.nodes_shown = new.slow.nodes_shown,
            SLOW_AVOIDED => config.slow.nodes_avoided = new.slow.nodes_avoided,
            SLOW_COLLECT => config.slow.collect_interval = new.slow.collect_interval,
            SLOW_READ => config.slow.avoid_for_read = new.slow.avoid_for_read,
            SLOW_WRITE => config.slow.avoid_for_write = new.slow.avoid_for_write,
            SCRUB_PERIOD => config.scrub_period = new.scrub_period,
            SCRUB_RATE => config.scrub_bytes_per_second = new.scrub_bytes_per_second,
            _ => return Err(format!("Property {name} is not reconfigurable")),
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditConfig;
    use crate::protocol::CLIENT;
    use cairn_net::reconfiguration::{NAME, Reload};
    use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
    use cairn_wire::exception::class;
    use cairn_wire::proto::hdfs as pb;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[tokio::test]
    async fn streams_and_times_change_while_the_namenode_runs() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("streams");
        let reload = Reload::new(move || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let mut settings = NameNodeConfig::default();
            let mut values = BTreeMap::from([("dfs.replication".to_string(), text.clone())]);
            if let Ok(streams) = text.parse() {
                settings.max_streams = streams;
                settings.max_directory_items = 3;
                settings.upgrade_domain_factor = Some(2);
                settings.blocks_of_room = 5;
                settings.audit.caller_context = true;
                values.extend(
                    [(ROOM, "5"), (CALLER_CONTEXT, "true")]
                        .map(|(name, value)| (name.to_string(), value.to_string())),
                );
                values.insert(DIRECTORY_ITEMS.to_string(), "3".to_string());
                values.insert(PLACEMENT.to_string(), "WithUpgradeDomain".to_string());
                settings.pending_timeout = Duration::from_secs(99);
                values.insert(STREAMS.to_string(), text);
            }
            Ok((settings, values))
        });
        let audit_log = dir.path().join("audit");
        let config = NameNodeConfig {
            audit: AuditConfig {
                file: Some(audit_log.clone()),
                tells_ports: true,
                ..AuditConfig::default()
            },
            name_dir: dir.path().join("name"),
            format_if_empty: true,
            rpc_addr: "127.0.0.1:0".parse().unwrap(),
            http_addr: None,
            superuser: Some("hdfs".to_string()),
            reload: Some(reload),
            ..NameNodeConfig::default()
        };
        let running = NameNode::start(config).await.unwrap();
        let client =
            |user| RpcClient::new(running.rpc_addr, NAME, user, RpcClientOptions::default());
        let start = pb::StartReconfigurationRequestProto {};
        let refused = client("alice")
            .call::<_, pb::StartReconfigurationResponseProto>("startReconfiguration", &start)
            .await;
        assert!(refused.unwrap_err().is_remote(class::ACCESS_CONTROL));
        let client = client("hdfs");
        let listed: pb::ListReconfigurablePropertiesResponseProto = client
            .call("listReconfigurableProperties", &pb::ListReconfigurablePropertiesRequestProto {})
            .await
            .unwrap();
        assert!(listed.name.iter().any(|name| name == STREAMS));

        let rpc = RpcClient::new(running.rpc_addr, CLIENT, "hdfs", RpcClientOptions::default());
        let look = || async {
            let request = pb::GetFileInfoRequestProto { src: "/".to_string() };
            let _: pb::GetFileInfoResponseProto = rpc.call("getFileInfo", &request).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::fs::read_to_string(&audit_log).unwrap()
        };
        while !look().await.contains("cmd=getfileinfo") {}
        assert!(!look().await.contains("callerContext"));

        std::fs::write(dir.path().join("streams"), "17").unwrap();
        let _: pb::StartReconfigurationResponseProto =
            client.call("startReconfiguration", &start).await.unwrap();
        let status: pb::GetReconfigurationStatusResponseProto = client
            .call("getReconfigurationStatus", &pb::GetReconfigurationStatusRequestProto {})
            .await
            .unwrap();
        let changes: Vec<_> = status.changes.iter().map(|c| (&c.name[..], c.new_value())).collect();
        let domains = (PLACEMENT, "WithUpgradeDomain");
        let audited = (CALLER_CONTEXT, "true");
        let others = [(DIRECTORY_ITEMS, "3"), (ROOM, "5"), audited];
        assert_eq!(changes, [&[(STREAMS, "17"), domains][..], &others].concat());
        assert!(status.changes.iter().all(|change| change.error_message.is_none()));
        let now = running.node().see_cluster(|cluster| cluster.config().clone());
        assert_eq!((now.max_streams, now.upgrade_domain_factor), (17, Some(2)));
        assert_eq!(now.blocks_of_room, 5);
        let limits = running.node().ns.read(|store| query::settings(store)).unwrap();
        assert_eq!(limits.directory_items_max, 3);
        assert_eq!(now.pending_timeout, Duration::from_secs(300), "its property is as before");
        while !look().await.contains("callerContext=clientPort:") {}
    }

    /// What holds, as text.
    fn held(node: &NameNode, name: &str) -> String {
        let config = node.see_cluster(|cluster| cluster.config().clone());
        let limits = node.ns.read(|store| query::settings(store)).unwrap();
        let slow = &config.slow;
        match name {
            CALLER_CONTEXT => node.audit.as_ref().unwrap().tells_context().to_string(),
            SLOW_CALLS => node.rpc_metrics.logs_slow_calls().to_string(),
            SLOW_CALL_THRESHOLD => format!("{:?}", node.rpc_metrics.slow_threshold()),
            HEARTBEAT => format!("{:?}", config.heartbeat_interval),
            RECHECK => format!("{:?}", config.recheck_interval),
            STREAMS => config.max_streams.to_string(),
            STREAMS_HARD => config.max_streams_hard.to_string(),
            MULTIPLIER => config.work_multiplier.to_string(),
            INVALIDATE => config.invalidate_limit.to_string(),
            PENDING => format!("{:?}", config.pending_timeout),
            INTERVAL => format!("{:?}", config.redundancy_interval),
            PLACEMENT => format!("{:?}", config.upgrade_domain_factor),
            ROOM => config.blocks_of_room.to_string(),
            DIRECTORY_ITEMS => limits.directory_items_max.to_string(),
            PROTECTED => format!("{:?}", limits.protected_directories),
            SATISFIER => node.satisfier.is_enabled().to_string(),
            PEER_STATS => slow.takes_peers.to_string(),
            SLOW_SHOWN => slow.nodes_shown.to_string(),
            SLOW_AVOIDED => slow.nodes_avoided.to_string(),
            SLOW_COLLECT => format!("{:?}", slow.collect_interval),
            SLOW_READ => slow.avoid_for_read.to_string(),
            SLOW_WRITE => slow.avoid_for_write.to_string(),
            SCRUB_PERIOD => format!("{:?}", config.scrub_period),
            SCRUB_RATE => config.scrub_bytes_per_second.to_string(),
            _ => panic!("what is {name}?"),
        }
    }

    /// Settings that all differ from the defaults and from each other.
    fn changed() -> NameNodeConfig {
        let slow = cairn_redundancy::SlowConfig {
            takes_peers: true,
            nodes_shown: 31,
            nodes_avoided: 32,
            collect_interval: Duration::from_secs(33),
            avoid_for_read: true,
            avoid_for_write: true,
            ..Default::default()
        };
        NameNodeConfig {
            heartbeat_interval: Duration::from_secs(34),
            heartbeat_recheck_interval: Duration::from_secs(35),
            max_streams: 36,
            max_streams_hard: 37,
            work_multiplier: 38,
            invalidate_limit: 39,
            pending_timeout: Duration::from_secs(40),
            redundancy_interval: Duration::from_secs(41),
            upgrade_domain_factor: Some(42),
            max_directory_items: 43,
            blocks_of_room: 44,
            protected_directories: vec!["/45".to_string()],
            satisfier_mode: crate::config::SatisfierMode::External,
            slow,
            scrub_period: Duration::from_secs(46),
            scrub_bytes_per_second: 47,
            audit: AuditConfig { caller_context: true, ..AuditConfig::default() },
            logs_slow_calls: true,
            slow_call_threshold: Duration::from_secs(48),
            ..NameNodeConfig::default()
        }
    }

    #[tokio::test]
    async fn each_property_changes_what_it_would_at_a_start_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let start = async |name: &str, mut settings: NameNodeConfig| {
            settings.audit.file = Some(dir.path().join(format!("{name}.audit")));
            let config = NameNodeConfig {
                name_dir: dir.path().join(name),
                format_if_empty: true,
                rpc_addr: "127.0.0.1:0".parse().unwrap(),
                http_addr: None,
                ..settings
            };
            NameNode::start(config).await.unwrap()
        };
        let running = start("running", NameNodeConfig::default()).await;
        let anew = start("anew", changed()).await;
        let (node, anew) = (running.node().clone(), anew.node().clone());
        let checked = tokio::task::spawn_blocking(move || {
            let all = |node: &NameNode| -> Vec<String> {
                PROPERTIES.iter().map(|(name, _)| held(node, name)).collect()
            };
            let mut expected = all(&node);
            for (at, (name, _)) in PROPERTIES.iter().enumerate() {
                let at_start = held(&anew, name);
                assert_ne!(expected[at], at_start, "{name} is not changed here");
                apply(&node, name, &changed()).unwrap();
                expected[at] = at_start;
                assert_eq!(all(&node), expected, "{name}");
            }
            assert!(apply(&node, "dfs.namenode.rpc-address", &changed()).is_err());
        });
        checked.await.unwrap();
    }
}
