//! Which DataNode a client by HTTP is sent to.

use std::net::IpAddr;

use cairn_redundancy::{AdminState, DataNode, KeptNode, NodeAddress, ReportKind};

use crate::dice::dice;
use crate::node::NameNode;
use crate::web::HttpDataNode;

/// A DataNode that takes work.
pub(crate) struct Candidate {
    address: NodeAddress,
    xceivers: u32,
}

impl Candidate {
    /// One that a member hears of while it follows.
    pub fn kept(node: &KeptNode) -> Candidate {
        let xceivers = node.heartbeat.as_ref().map_or(0, |heartbeat| heartbeat.xceivers);
        Candidate { address: node.registration.address.clone(), xceivers }
    }
}

/// One on the client's machine, or one of the least busy ones, of the cluster of `node`.
///
/// Source: Hadoop 3.5.0 `BlockManager#chooseTarget4WebHDFS`.
pub(crate) fn choose(
    node: &NameNode,
    client: IpAddr,
    excluded: &[String],
    by_tls: bool,
) -> Option<HttpDataNode> {
    let now = node.now();
    let cluster = node.cluster();
    let serves = |node: &&DataNode| {
        node.alive && node.admin == AdminState::InService && !cluster.is_stale(node, now)
    };
    let live = cluster.datanode_report(ReportKind::Live).into_iter().filter(serves);
    let candidate =
        |node: &DataNode| Candidate { address: node.address.clone(), xceivers: node.xceivers };
    let candidates: Vec<Candidate> = live.map(candidate).collect();
    drop(cluster);
    choose_among(&candidates, client, excluded, by_tls)
}

/// The same of those that are given.
pub(crate) fn choose_among(
    candidates: &[Candidate],
    client: IpAddr,
    excluded: &[String],
    by_tls: bool,
) -> Option<HttpDataNode> {
    let port = |address: &NodeAddress| match by_tls {
        true => address.info_secure_port,
        false => address.info_port,
    };
    let serves = |node: &&Candidate| {
        let address = &node.address;
        let is_excluded = |name: &str| {
            let with_port = format!("{name}:{}", address.xfer_port);
            excluded.iter().any(|host| host == name || *host == with_port)
        };
        port(address) != 0 && !is_excluded(&address.ip) && !is_excluded(&address.host)
    };
    let nodes: Vec<&Candidate> = candidates.iter().filter(serves).collect();
    let client = client.to_string();
    let near = nodes.iter().filter(|node| node.address.ip == client);
    let here: Vec<&Candidate> = near.copied().collect();
    let among = if here.is_empty() { nodes } else { here };
    let least = among.iter().map(|node| node.xceivers).min()?;
    let idle: Vec<&Candidate> = among.into_iter().filter(|node| node.xceivers == least).collect();
    let chosen = idle.get(usize::try_from(dice() % idle.len() as u64).ok()?)?;
    Some(HttpDataNode {
        host_name: chosen.address.host.clone(),
        ip: chosen.address.ip.clone(),
        port: port(&chosen.address),
    })
}
