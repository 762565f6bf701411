//! A file's blocks become a contiguous group, lose the replicas that are not needed, then the node of one: what
//! DataNodes, readers and operators are told at each step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish, page, replicas};

const LEN: u64 = 1 << 20;
const PARITY_LEN: u64 = LEN + 9000;
/// Of parities; `finish` tells 7 of blocks.
const PARITY_CRC: u32 = 11;

/// A NameNode that groups blocks at once, with eight DataNodes that take groups.
struct Cluster {
    node: RunningNameNode,
    client: Client,
    datanodes: Vec<FakeDataNode>,
    /// What nodes were told to delete.
    deleted: Vec<(String, u64)>,
    /// What DataNodes have, by their UUIDs.
    held: RefCell<BTreeMap<String, Vec<pb::BlockProto>>>,
    rebuilds: Vec<dn::GroupRebuildOrderProto>,
}

fn settings(dir: &Path) -> NameNodeConfig {
    NameNodeConfig {
        group_quiet: Duration::ZERO,
        group_short_quiet: Duration::ZERO,
        group_len_min: 1,
        heartbeat_interval: Duration::from_millis(100),
        redundancy_interval: Duration::from_millis(50),
        ..config(dir)
    }
}

impl Cluster {
    async fn start(dir: &Path) -> Cluster {
        let node = NameNode::start(settings(dir)).await.unwrap();
        let client = Client::new(&node, CLIENT, SUPERUSER);
        let mut datanodes = Vec::new();
        for number in 0..8 {
            datanodes.push(FakeDataNode::start(&node, number, &[]).await);
        }
        let enable = pb::EnableErasureCodingPolicyRequestProto {
            ec_policy_name: "RS-3-2-contiguous".to_string(),
        };
        let _: pb::EnableErasureCodingPolicyResponseProto =
            client.call("enableErasureCodingPolicy", &enable).await.unwrap();
        client.mkdirs("/d").await;
        client.set_policy("/d", "RS-3-2-contiguous").await;
        Cluster {
            node,
            client,
            datanodes,
            deleted: Vec::new(),
            held: RefCell::default(),
            rebuilds: Vec::new(),
        }
    }

    /// The NameNode starts again, and DataNodes tell it what they have.
    async fn restart(self, dir: &Path) -> Cluster {
        self.node.shutdown().await;
        let node = NameNode::start(settings(dir)).await.unwrap();
        let client = Client::new(&node, CLIENT, SUPERUSER);
        let held = self.held.borrow().clone();
        let mut datanodes = Vec::new();
        for (number, datanode) in (0..).zip(&self.datanodes) {
            let blocks = held.get(datanode.uuid()).map_or(&[][..], Vec::as_slice);
            datanodes.push(FakeDataNode::start(&node, number, blocks).await);
        }
        Cluster { node, client, datanodes, deleted: Vec::new(), ..self }
    }

    fn datanode(&self, uuid: &str) -> &FakeDataNode {
        self.datanodes.iter().find(|datanode| datanode.uuid() == uuid).unwrap()
    }

    /// All DataNodes call, and do as they are told: parities are written, replicas copied and deleted. What is to be
    /// rebuilt is kept.
    async fn round(&mut self) {
        let uuids: Vec<String> = self.datanodes.iter().map(|d| d.uuid().to_string()).collect();
        for uuid in uuids {
            let answer = self.datanode(&uuid).heartbeat_with_groups(Vec::new()).await;
            for command in answer.cmds.iter().filter_map(|command| command.blk_cmd.as_ref()) {
                if command.action == dn::BlockCommandProtoAction::Transfer as i32 {
                    for (block, targets) in command.blocks.iter().zip(&command.targets) {
                        for target in &targets.datanodes {
                            let target = &target.id.datanode_uuid;
                            self.hold(target, block.clone());
                            self.datanode(target).received(block.clone(), Some(7)).await;
                        }
                    }
                }
                if command.action != dn::BlockCommandProtoAction::Invalidate as i32 {
                    continue;
                }
                for block in &command.blocks {
                    self.datanode(&uuid).deleted(block.clone()).await;
                    let mut held = self.held.borrow_mut();
                    let own = held.get_mut(&uuid).unwrap();
                    own.retain(|other| other.block_id != block.block_id);
                    self.deleted.push((uuid.clone(), block.block_id));
                }
            }
            for order in &answer.encodes {
                let encoded = self.encode(order).await;
                self.datanode(&uuid).heartbeat_with_groups(vec![encoded]).await;
            }
            self.rebuilds.extend(answer.group_rebuilds);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    fn hold(&self, uuid: &str, block: pb::BlockProto) {
        self.held.borrow_mut().entry(uuid.to_string()).or_default().push(block);
    }

    async fn encode(&self, order: &dn::EncodeOrderProto) -> dn::EncodedGroupProto {
        let block = |block: &pb::ExtendedBlockProto, len| pb::BlockProto {
            block_id: block.block_id,
            gen_stamp: block.generation_stamp,
            num_bytes: Some(len),
        };
        for target in &order.targets {
            let uuid = &target.datanode.id.datanode_uuid;
            let parity = block(&target.block, PARITY_LEN);
            self.hold(uuid, parity.clone());
            self.datanode(uuid).received(parity, Some(PARITY_CRC)).await;
        }
        let member = |member: &dn::GroupUnitProto| dn::GroupMemberProto {
            slot: member.slot,
            block: block(&member.block, member.block.num_bytes()),
            crc32c: member.crc32c(),
            sums_crc32c: Some(member.slot),
            storage_uuid: Some(member.storage_uuid.clone()),
        };
        let parity = |target: &dn::GroupUnitProto| dn::GroupParityProto {
            slot: target.slot,
            len: PARITY_LEN,
            crc32c: PARITY_CRC,
        };
        dn::EncodedGroupProto {
            group: block(&order.group, 0),
            error: None,
            members: order.members.iter().map(member).collect(),
            parities: order.targets.iter().map(parity).collect(),
            checksum_type: Some(pb::ChecksumTypeProto::ChecksumCrc32c as i32),
            bytes_per_checksum: Some(512),
        }
    }

    /// Where the blocks of a file are.
    async fn places(&self, path: &str) -> Vec<(pb::ExtendedBlockProto, BTreeSet<String>)> {
        let found = self.client.locations(path).await;
        assert_eq!(found.ec_policy, None, "plain blocks");
        let uuids = |block: &pb::LocatedBlockProto| {
            block.locs.iter().map(|info| info.id.datanode_uuid.clone()).collect()
        };
        found.blocks.iter().map(|block| (block.b.clone(), uuids(block))).collect()
    }

    async fn write(&self, path: &str, blocks: usize) {
        self.client.create(path, "writer").await;
        let mut last = None;
        for _ in 0..blocks {
            let block = self.client.add_block(path, "writer", last).await;
            for (uuid, replica) in replicas(&block, LEN, None) {
                self.hold(&uuid, replica);
            }
            last = Some(finish(&self.datanodes, &block, LEN, None).await);
        }
        assert!(self.client.complete(path, "writer", last).await);
    }

    async fn locate(
        &self,
        asker: &str,
        block: &pb::ExtendedBlockProto,
    ) -> dn::LocateUnitsResponseProto {
        let asker = self.datanode(asker);
        let request = dn::LocateUnitsRequestProto {
            registration: asker.registration().clone(),
            block: block.clone(),
            also: Vec::new(),
        };
        asker.client().call("locateUnits", &request).await.unwrap()
    }
}

async fn is_healthy(node: &RunningNameNode) {
    let text = page(node, "/fsck?ugi=hdfs&path=/").await;
    assert!(text.contains("is HEALTHY"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_grouped_loses_a_node_is_found_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(dir.path()).await;
    cluster.write("/d/f", 3).await;
    let began = Instant::now();
    loop {
        cluster.round().await;
        let places = cluster.places("/d/f").await;
        // One that is to go is named no more before its DataNode is told.
        if places.iter().all(|(_, uuids)| uuids.len() == 1) && cluster.deleted.len() >= 6 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{places:?}");
    }
    assert_eq!(cluster.deleted.len(), 6);
    is_healthy(&cluster.node).await;

    // The parities are of no file, and nobody is told where they are.
    let places = cluster.places("/d/f").await;
    let nodes: BTreeSet<String> = places.iter().flat_map(|(_, uuids)| uuids.clone()).collect();
    assert_eq!(nodes.len(), 3, "each on a node of its own");
    let (lost, on) = places[1].clone();
    let gone = on.into_iter().next().unwrap();
    let asker = cluster.datanodes.iter().find(|datanode| !nodes.contains(datanode.uuid())).unwrap();
    let asker = asker.uuid().to_string();
    let found = cluster.locate(&asker, &lost).await;
    let relays: Vec<&str> =
        found.relays.iter().map(|at| at.datanode.id.datanode_uuid.as_str()).collect();
    assert_eq!(relays, [gone.as_str()]);

    // The node of one member dies.
    cluster.datanode(&gone).fail().await;
    cluster.datanodes.retain(|datanode| datanode.uuid() != gone);
    let (_, decoders) = cluster.places("/d/f").await[1].clone();
    assert_eq!(decoders.len(), 2, "those that have the parities decode");
    assert!(decoders.is_disjoint(&nodes), "{decoders:?}");
    let found = cluster.locate(&asker, &lost).await;
    assert!(found.relays.is_empty());
    let record = found.record.expect("it is in a group");
    let slots: BTreeMap<u32, u64> =
        record.members.iter().map(|member| (member.slot, member.block.block_id)).collect();
    let slot = *slots.iter().find(|(_, id)| **id == lost.block_id).unwrap().0;
    let sources: BTreeSet<u32> = found.sources.iter().map(|source| source.slot).collect();
    assert_eq!(sources, (0..5).filter(|other| *other != slot).collect());
    let parities: Vec<(u32, u64, u32)> =
        record.parities.iter().map(|parity| (parity.slot, parity.len, parity.crc32c)).collect();
    assert_eq!(parities, [(3, PARITY_LEN, PARITY_CRC), (4, PARITY_LEN, PARITY_CRC)]);
    assert_eq!((record.data_len, record.bytes_per_checksum), (LEN, 512));
    is_healthy(&cluster.node).await;
    let request = pb::ListCorruptFileBlocksRequestProto { path: "/".to_string(), cookie: None };
    let corrupt: pb::ListCorruptFileBlocksResponseProto =
        cluster.client.call("listCorruptFileBlocks", &request).await.unwrap();
    assert!(corrupt.corrupt.files.is_empty());
    let parity = found.sources.iter().find(|source| source.slot == 3).unwrap();
    let unserved = cluster.locate(&asker, &parity.block).await;
    assert_eq!(unserved, dn::LocateUnitsResponseProto::default(), "nobody is to have a parity");

    // It is rebuilt where no unit is.
    let began = Instant::now();
    while cluster.rebuilds.is_empty() {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "nobody rebuilds it");
    }
    let order = cluster.rebuilds[0].clone();
    let [target] = &order.targets[..] else { panic!("{order:?}") };
    assert_eq!((target.slot, target.block.block_id), (slot, lost.block_id));
    let uuid = &target.datanode.id.datanode_uuid;
    assert!(!nodes.contains(uuid) && !decoders.contains(uuid), "{uuid} has a unit");
    let block = pb::BlockProto {
        block_id: lost.block_id,
        gen_stamp: lost.generation_stamp,
        num_bytes: Some(LEN),
    };
    cluster.datanode(uuid).received(block, Some(7)).await;
    assert_eq!(cluster.places("/d/f").await[1].1, BTreeSet::from([uuid.clone()]));
    is_healthy(&cluster.node).await;
    cluster.node.shutdown().await;
}

/// A start abandons what was being encoded, and its parities go; groups that are formed stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_keeps_groups_and_abandons_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(dir.path()).await;
    cluster.write("/d/f", 3).await;
    let began = Instant::now();
    while cluster.deleted.len() < 6 {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", cluster.deleted);
    }
    cluster.write("/d/g", 3).await;
    // Its parities are reported, and nobody says that they are encoded.
    let mut parities = Vec::new();
    let began = Instant::now();
    while parities.is_empty() {
        for datanode in &cluster.datanodes {
            for order in datanode.heartbeat_with_groups(Vec::new()).await.encodes {
                cluster.encode(&order).await;
                parities.extend(order.targets.iter().map(|target| target.block.block_id));
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nobody is to encode the second file");
    }
    cluster = cluster.restart(dir.path()).await;
    let began = Instant::now();
    let is_gone = |cluster: &Cluster, id: &u64| cluster.deleted.iter().any(|(_, gone)| gone == id);
    while !parities.iter().all(|id| is_gone(&cluster, id)) {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", cluster.deleted);
    }
    for (block, uuids) in cluster.places("/d/f").await {
        assert_eq!(uuids.len(), 1, "{block:?}");
        assert!(!is_gone(&cluster, &block.block_id));
    }
    is_healthy(&cluster.node).await;
    cluster.node.shutdown().await;
}

async fn convert(
    cluster: &Cluster,
    path: &str,
    policy: &str,
    is_trial: bool,
) -> pb::ConvertFilesResponseProto {
    let request = pb::ConvertFilesRequestProto {
        file_ids: vec![cluster.client.file_info(path).await.unwrap().file_id()],
        ec_policy_name: policy.to_string(),
        dry_run: Some(is_trial),
    };
    cluster.client.call("convertFiles", &request).await.unwrap()
}

async fn group_status(cluster: &Cluster) -> pb::GetGroupStatusResponseProto {
    let request = pb::GetGroupStatusRequestProto {};
    cluster.client.call("getGroupStatus", &request).await.unwrap()
}

async fn pause(cluster: &Cluster, what: u32, pause: bool) -> u32 {
    let request = pb::PauseGroupsRequestProto { what, pause };
    let answer: pb::PauseGroupsResponseProto =
        cluster.client.call("pauseGroups", &request).await.unwrap();
    answer.paused
}

/// A file that was written as copies goes into a group and comes out of it again, and is the same file all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_replicated_file_is_converted_and_converted_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(dir.path()).await;
    cluster.client.mkdirs("/r").await;
    cluster.write("/r/f", 3).await;
    let before = cluster.places("/r/f").await;
    let ids = |places: &[(pb::ExtendedBlockProto, BTreeSet<String>)]| -> Vec<(u64, u64)> {
        places.iter().map(|(block, _)| (block.block_id, block.generation_stamp)).collect()
    };
    let policy = "RS-3-2-contiguous";
    let grouped_space = 3 * (LEN + LEN * 2 / 3);
    let tried = convert(&cluster, "/r/f", policy, true).await;
    assert_eq!(tried.outcomes(), [0_u8; 0]);
    let survey = (tried.survey.to_group, tried.survey.space, tried.survey.space_then);
    assert_eq!(survey, (3 * LEN, 9 * LEN, grouped_space));
    assert_eq!(convert(&cluster, "/r/f", policy, false).await.outcomes(), [0]);
    assert_eq!(convert(&cluster, "/r/f", policy, false).await.outcomes(), [1], "it is so already");
    let began = Instant::now();
    while cluster.deleted.len() < 6 {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", cluster.deleted);
    }
    let grouped = cluster.places("/r/f").await;
    assert_eq!(ids(&grouped), ids(&before));
    let survey = convert(&cluster, "/r/f", policy, true).await.survey;
    assert_eq!((survey.grouped, survey.to_group, survey.space), (3 * LEN, 0, grouped_space));
    let began = Instant::now();
    loop {
        cluster.round().await;
        let status = group_status(&cluster).await;
        if (status.groups, status.grouped_bytes, status.waiting_blocks) == (1, 3 * LEN, 0) {
            assert_eq!((status.formed, status.parity_bytes), (1, 2 * PARITY_LEN));
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{status:?}");
    }
    let jmx = page(&cluster.node, "/jmx?qry=Cairn:*").await;
    assert!(jmx.contains("\"GroupsFormed\":1"), "{jmx}");
    let figures = page(&cluster.node, "/prom").await;
    assert!(figures.contains("cairn_namenode_contiguous_groups_formed_total 1"), "{figures}");

    // Operators see the group by any of its blocks.
    let member = grouped[1].0.block_id;
    let text = page(&cluster.node, &format!("/fsck?ugi=hdfs&path=/&blockId=blk_{member}")).await;
    assert!(text.contains("Block belongs to: /r/f"), "{text}");
    assert!(
        text.contains(&format!("of {policy}, formed, 5 of 5 units readable, 3 needed")),
        "{text}"
    );
    let found = cluster.locate(cluster.datanodes[0].uuid(), &grouped[1].0).await;
    let parity = found.sources.iter().find(|unit| unit.slot == 4).unwrap().block.block_id;
    let text = page(&cluster.node, &format!("/fsck?ugi=hdfs&path=/&blockId=blk_{parity}")).await;
    assert!(text.contains("Block belongs to: no file"), "{text}");
    assert!(
        text.contains(&format!("Slot 4: blk_{parity}, {PARITY_LEN} bytes, parity, 1 live")),
        "{text}"
    );

    // And back.
    cluster.deleted.clear();
    assert_eq!(convert(&cluster, "/r/f", "REPLICATION", false).await.outcomes(), [0]);
    let began = Instant::now();
    loop {
        cluster.round().await;
        let places = cluster.places("/r/f").await;
        let is_whole = places.iter().all(|(_, uuids)| uuids.len() == 3);
        if is_whole && cluster.deleted.len() == 2 {
            assert_eq!(ids(&places), ids(&before));
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{places:?} {:?}", cluster.deleted);
    }
    let is_parity = |(_, id): &(String, u64)| id & 1 << 61 != 0;
    assert!(cluster.deleted.iter().all(is_parity), "{:?}", cluster.deleted);
    is_healthy(&cluster.node).await;
    cluster.node.shutdown().await;
}

/// What is held back is so over a restart, and is made up for.
#[tokio::test(flavor = "multi_thread")]
async fn work_on_groups_is_held_back_until_it_may_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(dir.path()).await;
    assert_eq!(pause(&cluster, 1 | 8, true).await, 9);
    cluster.write("/d/f", 3).await;
    let file_ids = vec![cluster.client.file_info("/d/f").await.unwrap().file_id()];
    let request = pb::ConvertFilesRequestProto {
        file_ids,
        ec_policy_name: "REPLICATION".to_string(),
        dry_run: None,
    };
    let (_, refused) = cluster.client.refused("convertFiles", &request).await;
    assert!(refused.contains("paused"), "{refused}");
    cluster = cluster.restart(dir.path()).await;
    for _ in 0..20 {
        cluster.round().await;
    }
    let status = group_status(&cluster).await;
    assert_eq!((status.paused(), status.attempts, status.formed), (9, 0, 0));
    // Groups are made, and keep what they do not need.
    assert_eq!(pause(&cluster, 2, true).await, 11);
    assert_eq!(pause(&cluster, 1, false).await, 10);
    let began = Instant::now();
    while group_status(&cluster).await.with_surplus == 0 {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "no group is made");
    }
    for _ in 0..20 {
        cluster.round().await;
    }
    assert_eq!(cluster.deleted, []);
    assert_eq!(pause(&cluster, 2 | 8, false).await, 0);
    let began = Instant::now();
    while cluster.deleted.len() < 6 {
        cluster.round().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", cluster.deleted);
    }
    cluster.node.shutdown().await;
}
