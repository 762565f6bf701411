//! `ReconfigurationProtocol`: settings that change while the NameNode runs
//! (`hdfs dfsadmin -reconfig namenode HOST:PORT start`).
//!
//! Source: Hadoop 3.5.0 `NameNode#reconfigurePropertyImpl`. Deviation: the interval between rounds of
//! mending, and how much is scrubbed, can be changed as well.

use std::sync::Arc;

use cairn_master::Submission;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::{Settings, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::Config;

use crate::config::parts::cluster_config;
use crate::config::{AuditConfig, Live, LiveAudit, NameNodeConfig};
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal};
use crate::satisfier;

/// Handles a call of this protocol.
pub async fn handle(node: &Arc<NameNode>, call: &Call) -> Answer {
    node.check_superuser(call).await?;
    if let Some(answer) = node.workers.call(call) {
        return Ok(answer?);
    }
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
    match (Live::of(name), LiveAudit::of(name)) {
        (Some(key), _) => change(node, key, new),
        (None, Some(key)) => {
            change_audit(node, key, &new.audit);
            Ok(())
        }
        (None, None) => Err(format!("Property {name} is not reconfigurable")),
    }
}

fn change_audit(node: &NameNode, key: LiveAudit, new: &AuditConfig) {
    let Some(audit) = &node.audit else { return };
    match key {
        LiveAudit::CallerContext => audit.tell_context(new.caller_context),
    }
}

fn change(node: &NameNode, key: Live, new: &NameNodeConfig) -> Result<(), String> {
    let cluster = cluster_config(new);
    let changed = |change: fn(&mut Config, Config)| {
        node.change_cluster_config(|config| {
            change(config, cluster);
            Ok(())
        })
    };
    match key {
        Live::DirectoryItems => {
            configure(node, |settings| settings.directory_items_max = new.max_directory_items)
        }
        Live::Protected => {
            let directories = new.protected_directories.clone();
            configure(node, |settings| settings.protected_directories = directories)
        }
        Live::SlowCalls => {
            node.rpc_metrics.log_slow_calls(new.logs_slow_calls);
            Ok(())
        }
        Live::SlowCallThreshold => {
            node.rpc_metrics.set_slow_threshold(new.slow_call_threshold);
            Ok(())
        }
        Live::Satisfier => {
            satisfier::change_mode(node, new.satisfier_mode);
            Ok(())
        }
        Live::Heartbeat => changed(|now, new| now.heartbeat_interval = new.heartbeat_interval),
        Live::Recheck => changed(|now, new| now.recheck_interval = new.recheck_interval),
        Live::Streams => changed(|now, new| now.max_streams = new.max_streams),
        Live::StreamsHard => changed(|now, new| now.max_streams_hard = new.max_streams_hard),
        Live::WorkMultiplier => changed(|now, new| now.work_multiplier = new.work_multiplier),
        Live::Invalidate => changed(|now, new| now.invalidate_limit = new.invalidate_limit),
        Live::Pending => changed(|now, new| now.pending_timeout = new.pending_timeout),
        Live::RedundancyInterval => {
            changed(|now, new| now.redundancy_interval = new.redundancy_interval)
        }
        Live::Placement => {
            changed(|now, new| now.upgrade_domain_factor = new.upgrade_domain_factor)
        }
        Live::Room => changed(|now, new| now.blocks_of_room = new.blocks_of_room),
        Live::PeerStats => changed(|now, new| now.slow.takes_peers = new.slow.takes_peers),
        Live::SlowShown => changed(|now, new| now.slow.nodes_shown = new.slow.nodes_shown),
        Live::SlowAvoided => changed(|now, new| now.slow.nodes_avoided = new.slow.nodes_avoided),
        Live::SlowCollect => {
            changed(|now, new| now.slow.collect_interval = new.slow.collect_interval)
        }
        Live::SlowRead => changed(|now, new| now.slow.avoid_for_read = new.slow.avoid_for_read),
        Live::SlowWrite => changed(|now, new| now.slow.avoid_for_write = new.slow.avoid_for_write),
        Live::ScrubPeriod => changed(|now, new| now.scrub_period = new.scrub_period),
        Live::ScrubRate => {
            changed(|now, new| now.scrub_bytes_per_second = new.scrub_bytes_per_second)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CLIENT;
    use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
    use cairn_operate::reconfiguration::{NAME, Reload};
    use cairn_wire::exception::class;
    use cairn_wire::proto::hdfs as pb;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const STREAMS: &str = "dfs.namenode.replication.max-streams";
    const PLACEMENT: &str = "dfs.block.replicator.classname";
    const DIRECTORY_ITEMS: &str = "dfs.namenode.fs-limits.max-directory-items";
    const ROOM: &str = "dfs.namenode.block-placement.min-blocks-for.write";
    const CALLER_CONTEXT: &str = "hadoop.caller.context.enabled";

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
            superuser: Some("hdfs".to_string()),
            reload: Some(reload),
            ..NameNodeConfig::of_test(dir.path())
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
        let expected = [
            (PLACEMENT, "WithUpgradeDomain"),
            (ROOM, "5"),
            (DIRECTORY_ITEMS, "3"),
            (STREAMS, "17"),
            (CALLER_CONTEXT, "true"),
        ];
        assert_eq!(changes, expected);
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
        let Some(key) = Live::of(name) else {
            return node.audit.as_ref().unwrap().tells_context().to_string();
        };
        match key {
            Live::SlowCalls => node.rpc_metrics.logs_slow_calls().to_string(),
            Live::SlowCallThreshold => format!("{:?}", node.rpc_metrics.slow_threshold()),
            Live::Heartbeat => format!("{:?}", config.heartbeat_interval),
            Live::Recheck => format!("{:?}", config.recheck_interval),
            Live::Streams => config.max_streams.to_string(),
            Live::StreamsHard => config.max_streams_hard.to_string(),
            Live::WorkMultiplier => config.work_multiplier.to_string(),
            Live::Invalidate => config.invalidate_limit.to_string(),
            Live::Pending => format!("{:?}", config.pending_timeout),
            Live::RedundancyInterval => format!("{:?}", config.redundancy_interval),
            Live::Placement => format!("{:?}", config.upgrade_domain_factor),
            Live::Room => config.blocks_of_room.to_string(),
            Live::DirectoryItems => limits.directory_items_max.to_string(),
            Live::Protected => format!("{:?}", limits.protected_directories),
            Live::Satisfier => node.satisfier.is_enabled().to_string(),
            Live::PeerStats => slow.takes_peers.to_string(),
            Live::SlowShown => slow.nodes_shown.to_string(),
            Live::SlowAvoided => slow.nodes_avoided.to_string(),
            Live::SlowCollect => format!("{:?}", slow.collect_interval),
            Live::SlowRead => slow.avoid_for_read.to_string(),
            Live::SlowWrite => slow.avoid_for_write.to_string(),
            Live::ScrubPeriod => format!("{:?}", config.scrub_period),
            Live::ScrubRate => config.scrub_bytes_per_second.to_string(),
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
                NameNodeConfig::live().iter().map(|(name, _)| held(node, name)).collect()
            };
            let mut expected = all(&node);
            for (at, (name, _)) in NameNodeConfig::live().iter().enumerate() {
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
