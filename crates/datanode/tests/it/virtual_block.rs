//! Blocks that clients ask for where they are not: relayed, decoded and proven, or refused.

use crate::cluster::*;
use crate::groups::{Grouped, member_id, members, unit};
use crate::reconstruct::{CELL, GS, Group};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::datanode::{GroupUnitProto, LocateUnitsResponseProto, ViewedGroupProto};
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockOpResponseProto,
    GetReplicaVisibleLengthRequestProto, GetReplicaVisibleLengthResponseProto,
    OpBlockChecksumProto, Status,
};
use cairn_wire::transfer::Op;

const LENS: [usize; 3] = [1_400_003, 900_000, 300];

/// A group, how its member in `slot` can be decoded, and a DataNode (5) that has no unit.
async fn decodable(number: i64, slot: usize) -> (Cluster, Grouped) {
    let cluster = Cluster::start(6).await;
    let group = decodable_in(&cluster, number, slot).await;
    (cluster, group)
}

/// The same in a cluster that is there.
pub async fn decodable_in(cluster: &Cluster, number: i64, slot: usize) -> Grouped {
    let group = Grouped::form(cluster, number, members(number as usize, LENS), 5).await;
    let sources = group.slots().into_iter().filter(|other| *other != slot);
    let located = LocateUnitsResponseProto {
        relays: Vec::new(),
        record: Some(group.record.clone()),
        sources: sources.map(|other| group.unit(cluster, other, other)).collect(),
        viewed: None,
        packed: None,
        also: Vec::new(),
    };
    let mut record = cluster.name_node.record.lock().unwrap();
    record.located.insert(member_id(number, slot), located);
    record.orders = Some(0);
    group
}

async fn checksum_at(
    cluster: &Cluster,
    node: usize,
    block: cairn_wire::proto::hdfs::ExtendedBlockProto,
    kind: BlockChecksumTypeProto,
) -> Result<Vec<u8>, String> {
    let request = OpBlockChecksumProto {
        header: base_header(block),
        block_checksum_options: Some(BlockChecksumOptionsProto {
            block_checksum_type: Some(kind as i32),
            stripe_length: None,
        }),
        ..Default::default()
    };
    let mut stream = cluster.connect(node).await;
    stream.writer.send_op(Op::BlockChecksum, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    let message = answer.message.unwrap_or_default();
    answer.checksum_response.map(|response| response.block_checksum).ok_or(message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_lost_is_decoded_for_clients() {
    for (number, slot) in [(11, 0), (12, 1), (13, 2)] {
        let (mut cluster, group) = decodable(number, slot).await;
        let (block, data) = (group.block(slot), group.bytes(slot).to_vec());
        let len = data.len() as u64;
        let kinds = [BlockChecksumTypeProto::Md5crc, BlockChecksumTypeProto::CompositeCrc];
        let parts = [len, len - 1, len / 2];
        let mut real = Vec::new();
        for kind in kinds {
            for part in parts {
                let block = cairn_wire::proto::hdfs::ExtendedBlockProto {
                    num_bytes: Some(part),
                    ..block.clone()
                };
                real.push((kind, block.clone(), checksum_at(&cluster, slot, block, kind).await));
            }
        }
        cluster.kill_node(slot);
        let mut stream = cluster.connect(5).await;
        assert!(read(&mut stream, block.clone(), 0, len).await.unwrap() == data, "slot {slot}");
        for (offset, count) in [(0, 1), (len - 1, 1), (len / 3, len / 2), (513.min(len - 2), 2)] {
            let got = read(&mut stream, block.clone(), offset, count).await.unwrap();
            assert!(got == data[offset as usize..(offset + count) as usize], "{offset} {count}");
        }
        let beyond = read(&mut stream, block.clone(), len - 1, 2).await.unwrap_err();
        assert!(beyond.contains("don't match block"), "{beyond}");
        for (kind, block, expected) in real {
            let made = checksum_at(&cluster, 5, block, kind).await;
            assert_eq!(made.unwrap(), expected.unwrap(), "{kind:?}");
        }
        let addr = cluster.node(5).ipc_addr();
        let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
        let client = RpcClient::new(addr, protocol, "test", RpcClientOptions::default());
        let request = GetReplicaVisibleLengthRequestProto { block: block.clone() };
        let answer: GetReplicaVisibleLengthResponseProto =
            client.call("getReplicaVisibleLength", &request).await.unwrap();
        assert_eq!(answer.length, len);
        assert!(cluster.files(5, member_id(number, slot)).is_empty(), "it became no replica");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_fail_are_replaced_while_a_client_reads() {
    let (mut cluster, group) = decodable(21, 0).await;
    let (block, data) = (group.block(0), group.bytes(0).to_vec());
    cluster.kill_node(0);
    cluster.kill_node(1);
    let mut stream = cluster.connect(5).await;
    let got = read(&mut stream, block.clone(), 0, data.len() as u64).await.unwrap();
    assert!(got == data);
    cluster.kill_node(3);
    let error = read(&mut stream, block, 0, 100).await.unwrap_err();
    assert!(error.contains("units"), "three are gone: {error}");
}

/// A parity that agrees with its own CRCs and with nothing else gives no byte to anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parity_that_is_wrong_is_not_served_from() {
    let (mut cluster, group) = decodable(31, 0).await;
    let (block, data) = (group.block(0), group.bytes(0).to_vec());
    crate::groups::falsify(&cluster, 3, group.block(3).block_id as i64);
    cluster.kill_node(0);
    let mut stream = cluster.connect(5).await;
    // The other parity is there.
    let got = read(&mut stream, block.clone(), 0, data.len() as u64).await.unwrap();
    assert!(got == data);
    cluster.kill_node(4);
    let mut stream = cluster.connect(5).await;
    let error = read(&mut stream, block, 3500, 2000).await.unwrap_err();
    assert!(error.contains("agree") || error.contains("units"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_elsewhere_is_relayed() {
    let cluster = Cluster::start(3).await;
    let data = bytes(700_001);
    write_block(&cluster, &[1], 5, 1001, &data).await;
    let len = data.len() as u64;
    let located = LocateUnitsResponseProto {
        relays: [2, 1].map(|node| unit(&cluster, 0, block(5, 1001, len), node)).to_vec(),
        ..Default::default()
    };
    cluster.name_node.record.lock().unwrap().located.insert(5, located);
    // The first of them does not have it either, and asks nobody.
    let mut stream = cluster.connect(0).await;
    assert!(read(&mut stream, block(5, 1001, len), 0, len).await.unwrap() == data);
    assert!(read(&mut stream, block(5, 1001, len), 600, 5).await.unwrap() == data[600..605]);
    for kind in [BlockChecksumTypeProto::Md5crc, BlockChecksumTypeProto::CompositeCrc] {
        let real = checksum_at(&cluster, 1, block(5, 1001, len), kind).await.unwrap();
        assert_eq!(checksum_at(&cluster, 0, block(5, 1001, len), kind).await, Ok(real));
    }
    assert_eq!(cluster.name_node.record.lock().unwrap().locates, 1, "it is known for a while");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_name_node_does_not_name_is_not_found_and_not_asked_again() {
    let cluster = Cluster::start(1).await;
    let mut stream = cluster.connect(0).await;
    for _ in 0..5 {
        let error = read(&mut stream, block(99, 1001, 10), 0, 10).await;
        assert!(error.unwrap_err().contains("Replica not found"));
        stream = cluster.connect(0).await;
    }
    assert_eq!(cluster.name_node.record.lock().unwrap().locates, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parities_are_never_served_to_clients() {
    let (cluster, group) = decodable(41, 0).await;
    let parity = group.block(3);
    let len = parity.num_bytes.unwrap();
    cluster.wait("the NameNode to be known", |record| record.awaited >= 6).await;
    let mut stream = cluster.connect(3).await;
    let error = read(&mut stream, parity.clone(), 0, len).await.unwrap_err();
    assert!(error.contains("is of no file"), "{error}");
    let kind = BlockChecksumTypeProto::CompositeCrc;
    assert!(checksum_at(&cluster, 3, parity.clone(), kind).await.is_err());
    let mut stream = cluster.connect(5).await;
    assert!(read(&mut stream, parity, 0, len).await.is_err());
    assert_eq!(cluster.name_node.record.lock().unwrap().locates, 0);
}

/// Hadoop's client goes on asking other DataNodes of the path only if the version is beside the refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_what_is_not_here_are_refused_for_that_block_alone() {
    let cluster = crate::short_circuit::cluster().await;
    let located = LocateUnitsResponseProto {
        relays: vec![unit(&cluster, 0, block(5, 1001, 10), 0)],
        ..Default::default()
    };
    let mut elsewhere = located.clone();
    elsewhere.relays[0].datanode.id.datanode_uuid = "another".into();
    cluster.name_node.record.lock().unwrap().located.insert(5, elsewhere);
    let answer = crate::short_circuit::ask_once(&cluster, 5, 1001).await;
    assert_eq!(
        (answer.status, answer.short_circuit_access_version),
        (Status::ErrorUnsupported as i32, Some(1))
    );
    let answer = crate::short_circuit::ask_once(&cluster, 6, 1001).await;
    assert_eq!(answer.status, Status::Error as i32, "nobody has it");
}

/// Has the NameNode say that a striped group is to be served as one plain block, whose units are on the DataNodes of their
/// numbers. Returns that block.
fn viewed(cluster: &Cluster, group: &Group) -> cairn_wire::proto::hdfs::ExtendedBlockProto {
    let view = group.id.plain_view().unwrap();
    let unit = |unit: usize| GroupUnitProto {
        slot: unit as u32,
        block: block(group.unit_id(unit), GS, group.units[unit].len() as u64),
        datanode: cluster.info(unit),
        storage_uuid: String::new(),
        storage_type: None,
        crc32c: None,
    };
    let located = LocateUnitsResponseProto {
        viewed: Some(ViewedGroupProto {
            group: block(group.id.0, GS, group.len),
            ec_policy: group.policy(),
            units: group.real().into_iter().map(unit).collect(),
        }),
        ..Default::default()
    };
    let mut record = cluster.name_node.record.lock().unwrap();
    record.located.insert(view.0, located);
    record.orders = Some(0);
    block(view.0, GS, group.len)
}

/// All of a group's data, which [`Group::new`] has made of the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_striped_group_is_served_as_one_plain_block() {
    let mut cluster = Cluster::start(6).await;
    // It ends in a short cell, with a stripe, within the first cell, and behind many stripes.
    let stripe = 3 * CELL;
    let lens = [stripe * 2 + CELL + 777, stripe, 300, stripe * 40 + 1];
    let mut groups = Vec::new();
    for (number, len) in (1..).zip(lens) {
        let group = Group::new(number, (3, 2), len);
        group.write(&cluster, &[]).await;
        groups.push((viewed(&cluster, &group), bytes(len as usize)));
    }
    let kinds = [BlockChecksumTypeProto::Md5crc, BlockChecksumTypeProto::CompositeCrc];
    // Node 5 has no unit; then as many are gone as may be.
    for gone in [&[][..], &[1], &[0]] {
        gone.iter().for_each(|node| cluster.kill_node(*node));
        for (block, data) in &groups {
            let len = data.len() as u64;
            let mut stream = cluster.connect(5).await;
            assert!(
                read(&mut stream, block.clone(), 0, len).await.unwrap() == *data,
                "{len} {gone:?}"
            );
            for (offset, count) in [
                (0, 1),
                (len - 1, 1),
                (len / 3, len / 2),
                (CELL.min(len) - 1, 2.min(len + 1 - CELL.min(len))),
                (513.min(len - 2), (2 * CELL).min(len - 513.min(len - 2))),
            ] {
                let got = read(&mut stream, block.clone(), offset, count).await.unwrap();
                assert!(
                    got == data[offset as usize..(offset + count) as usize],
                    "{offset} {count}"
                );
            }
            let beyond = read(&mut stream, block.clone(), len - 1, 2).await.unwrap_err();
            assert!(beyond.contains("don't match block"), "{beyond}");
            // The same as of a replica with these bytes.
            for kind in kinds {
                for part in [len, len / 2] {
                    let part_of = |id: i64| cairn_wire::proto::hdfs::ExtendedBlockProto {
                        block_id: id as u64,
                        num_bytes: Some(part),
                        ..block.clone()
                    };
                    let plain = 5000 + len as i64;
                    if gone.is_empty() && part == len && kind == BlockChecksumTypeProto::Md5crc {
                        write_block(&cluster, &[5], plain, GS, data).await;
                    }
                    let real = checksum_at(&cluster, 5, part_of(plain), kind).await;
                    let made = checksum_at(&cluster, 5, part_of(block.block_id as i64), kind).await;
                    assert_eq!(made.unwrap(), real.unwrap(), "{kind:?} {part}");
                }
            }
        }
    }
    let addr = cluster.node(5).ipc_addr();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let client = RpcClient::new(addr, protocol, "test", RpcClientOptions::default());
    let (block, data) = &groups[0];
    let request = GetReplicaVisibleLengthRequestProto { block: block.clone() };
    let answer: GetReplicaVisibleLengthResponseProto =
        client.call("getReplicaVisibleLength", &request).await.unwrap();
    assert_eq!(answer.length, data.len() as u64);
    assert!(cluster.files(5, block.block_id as i64).is_empty(), "it became no replica");
    cluster.kill_node(3);
    let mut stream = cluster.connect(5).await;
    let error = read(&mut stream, block.clone(), 0, 100).await.unwrap_err();
    assert!(error.contains("units"), "three are gone: {error}");
}

/// What the NameNode says of another group is not taken for this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_another_group_is_refused() {
    let cluster = Cluster::start(6).await;
    let group = Group::new(1, (3, 2), 3 * CELL);
    group.write(&cluster, &[]).await;
    let asked = viewed(&cluster, &group);
    let other = group.id.0 + 16;
    cluster.name_node.record.lock().unwrap().located.values_mut().for_each(|located| {
        located.viewed.as_mut().unwrap().group.block_id = other as u64;
    });
    let mut stream = cluster.connect(5).await;
    let error = read(&mut stream, asked, 0, 100).await.unwrap_err();
    assert!(error.contains("not found") || error.contains("no replica"), "{error}");
}
