//! Which DataNode a client by HTTP is sent to.

use std::net::IpAddr;

use cairn_redundancy::{AdminState, DataNode, NodeAddress, ReportKind};

use crate::dice::dice;
use crate::node::NameNode;
use crate::web::HttpDataNode;

/// One on the client's machine, or one of the least busy ones.
///
/// Source: Hadoop 3.5.0 `BlockManager#chooseTarget4WebHDFS`.
pub(crate) fn choose(
    node: &NameNode,
    client: IpAddr,
    excluded: &[String],
    by_tls: bool,
) -> Option<HttpDataNode> {
    let port = |address: &NodeAddress| match by_tls {
        true => address.info_secure_port,
        false => address.info_port,
    };
    let now = node.now();
    let cluster = node.cluster();
    let serves = |node: &&DataNode| {
        let address = &node.address;
        let is_excluded = |name: &str| {
            let with_port = format!("{name}:{}", address.xfer_port);
            excluded.iter().any(|host| host == name || *host == with_port)
        };
        node.alive
            && node.admin == AdminState::InService
            && !cluster.is_stale(node, now)
            && port(address) != 0
            && !is_excluded(&address.ip)
            && !is_excluded(&address.host)
    };
    let nodes: Vec<&DataNode> =
        cluster.datanode_report(ReportKind::Live).into_iter().filter(serves).collect();
    let client = client.to_string();
    let near = nodes.iter().filter(|node| node.address.ip == client);
    let here: Vec<&DataNode> = near.copied().collect();
    let among = if here.is_empty() { nodes } else { here };
    let least = among.iter().map(|node| node.xceivers).min()?;
    let idle: Vec<&DataNode> = among.into_iter().filter(|node| node.xceivers == least).collect();
    let chosen = idle.get(usize::try_from(dice() % idle.len() as u64).ok()?)?;
    Some(HttpDataNode {
        host_name: chosen.address.host.clone(),
        ip: chosen.address.ip.clone(),
        port: port(&chosen.address),
    })
}
