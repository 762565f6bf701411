//! `ReconfigurationProtocol`: settings that change while the NameNode runs
//! (`hdfs dfsadmin -reconfig namenode HOST:PORT start`).
//!
//! Source: Hadoop 3.5.0 `NameNode#reconfigurePropertyImpl`. Deviation: the interval between rounds of
//! mending, and how much is scrubbed, can be changed as well.

use cairn_net::reconfiguration::Property;
use cairn_net::rpc_server::Call;

use super::refusal::Answer;
use crate::NameNode;
use crate::config::NameNodeConfig;
use crate::run::cluster_config;

const HEARTBEAT: &str = "dfs.heartbeat.interval";
const RECHECK: &str = "dfs.namenode.heartbeat.recheck-interval";
const STREAMS: &str = "dfs.namenode.replication.max-streams";
const STREAMS_HARD: &str = "dfs.namenode.replication.max-streams-hard-limit";
const MULTIPLIER: &str = "dfs.namenode.replication.work.multiplier.per.iteration";
const INVALIDATE: &str = "dfs.block.invalidate.limit";
const PENDING: &str = "dfs.namenode.reconstruction.pending.timeout-sec";
const INTERVAL: &str = "dfs.namenode.redundancy.interval.seconds";
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
    (SCRUB_PERIOD, "504h"),
    (SCRUB_RATE, "4m"),
];

/// Handles a call of this protocol.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    node.check_superuser(call).await?;
    Ok(node.reconfiguration.call(call, |name, new| apply(node, name, new))?)
}

fn apply(node: &NameNode, name: &str, new: &NameNodeConfig) -> Result<(), String> {
    let new = cluster_config(new);
    let mut cluster = node.cluster();
    let mut config = cluster.config().clone();
    match name {
        HEARTBEAT => config.heartbeat_interval = new.heartbeat_interval,
        RECHECK => config.recheck_interval = new.recheck_interval,
        STREAMS => config.max_streams = new.max_streams,
        STREAMS_HARD => config.max_streams_hard = new.max_streams_hard,
        MULTIPLIER => config.work_multiplier = new.work_multiplier,
        INVALIDATE => config.invalidate_limit = new.invalidate_limit,
        PENDING => config.pending_timeout = new.pending_timeout,
        INTERVAL => config.redundancy_interval = new.redundancy_interval,
        SCRUB_PERIOD => config.scrub_period = new.scrub_period,
        SCRUB_RATE => config.scrub_bytes_per_second = new.scrub_bytes_per_second,
        _ => return Err(format!("Property {name} is not reconfigurable")),
    }
    cluster.set_config(config);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
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
                settings.pending_timeout = Duration::from_secs(99);
                values.insert(STREAMS.to_string(), text);
            }
            Ok((settings, values))
        });
        let config = NameNodeConfig {
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

        std::fs::write(dir.path().join("streams"), "17").unwrap();
        let _: pb::StartReconfigurationResponseProto =
            client.call("startReconfiguration", &start).await.unwrap();
        let status: pb::GetReconfigurationStatusResponseProto = client
            .call("getReconfigurationStatus", &pb::GetReconfigurationStatusRequestProto {})
            .await
            .unwrap();
        let changes: Vec<_> = status.changes.iter().map(|c| (&c.name[..], c.new_value())).collect();
        assert_eq!(changes, [(STREAMS, "17")]);
        let now = running.node().cluster().config().clone();
        assert_eq!(now.max_streams, 17);
        assert_eq!(now.pending_timeout, Duration::from_secs(300), "its property is as before");
    }
}
