//! The methods that calls are counted by.

use cairn_net::rpc_server::RpcMetrics;
use cairn_operate::reconfiguration;
use cairn_operate::workers;
use cairn_wire::proto::{common, datanode, datanodelifeline, hdfs, namenode};

use super::client::groups;
use super::{
    CLIENT, DATANODE, HA, LIFELINE, NAMENODE, REFRESH_ANY, REFRESH_POLICY, REFRESH_QUEUE,
    REFRESH_USERS, USER_MAPPINGS,
};

/// What Cairn's own DataNodes call besides, answered when there is work for them.
const HELD: &str = "awaitOrders";
/// What Cairn's own commands call besides.
pub(crate) const ADMIN: [&str; 2] = ["acceptRestored", "setDatanodeState"];
/// What DataNodes ask for others that read from them.
const LOCATE: &str = "locateUnits";

/// Counts of calls of all protocols, none yet.
pub fn metrics() -> RpcMetrics {
    let served: [(&str, &[&str]); 15] = [
        (CLIENT, hdfs::CLIENT_NAMENODE_PROTOCOL_METHODS),
        (CLIENT, &groups::METHODS),
        (CLIENT, &ADMIN),
        (DATANODE, datanode::DATANODE_PROTOCOL_SERVICE_METHODS),
        (DATANODE, &[HELD, LOCATE]),
        (LIFELINE, datanodelifeline::DATANODE_LIFELINE_PROTOCOL_SERVICE_METHODS),
        (NAMENODE, namenode::NAMENODE_PROTOCOL_SERVICE_METHODS),
        (HA, common::HA_SERVICE_PROTOCOL_SERVICE_METHODS),
        (reconfiguration::NAME, hdfs::RECONFIGURATION_PROTOCOL_SERVICE_METHODS),
        (reconfiguration::NAME, &workers::METHODS),
        (USER_MAPPINGS, common::GET_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS),
        (REFRESH_USERS, common::REFRESH_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS),
        (REFRESH_POLICY, common::REFRESH_AUTHORIZATION_POLICY_PROTOCOL_SERVICE_METHODS),
        (REFRESH_QUEUE, common::REFRESH_CALL_QUEUE_PROTOCOL_SERVICE_METHODS),
        (REFRESH_ANY, common::GENERIC_REFRESH_PROTOCOL_SERVICE_METHODS),
    ];
    RpcMetrics::new(served, &[HELD])
}

#[cfg(test)]
mod tests {
    use super::super::SERVED;
    use super::*;

    #[test]
    fn calls_of_every_protocol_are_counted_by_method() {
        let methods = metrics().methods();
        for (protocol, _) in SERVED {
            assert!(methods.iter().any(|method| method.protocol == *protocol), "{protocol}");
        }
        let held: Vec<_> = methods.iter().filter(|row| row.is_held).map(|row| row.method).collect();
        assert_eq!(held, [HELD]);
    }
}
