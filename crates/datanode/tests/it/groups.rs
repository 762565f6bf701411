//! Contiguous groups over real DataNodes: parities are encoded from the disks where members stay and prove what they
//! are over; any units that may be lost are rebuilt as they were, files and CRCs; mistakes are caught.

use crate::cluster::*;
use cairn_codec::crc::crc32c;
use cairn_codec::{Codec, CodecKind};
use cairn_stripe::group::GroupRecord;
use cairn_wire::proto::datanode::ReceivedDeletedBlockInfoProtoBlockStatus::Received;
use cairn_wire::proto::datanode::{
    EncodeOrderProto, EncodedGroupProto, GroupMemberProto, GroupParityProto,
    GroupRebuildOrderProto, GroupRecordProto, GroupUnitProto,
};
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, BlockProto, ChecksumTypeProto, ECSchemaProto, ErasureCodingPolicyProto,
    OpReadBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::path::PathBuf;

pub const GS: u64 = 1001;
const GROUP_GS: u64 = 2001;
const K: usize = 3;
const M: usize = 2;

/// A group of RS(3, 2) whose unit `i` is on DataNode `i`.
pub struct Grouped {
    number: i64,
    /// Bytes of the members, by slot; an empty one is none.
    pub members: Vec<Vec<u8>>,
    pub parities: Vec<Vec<u8>>,
    pub record: GroupRecordProto,
}

pub fn policy() -> ErasureCodingPolicyProto {
    ErasureCodingPolicyProto {
        schema: Some(ECSchemaProto {
            codec_name: "rs".into(),
            data_units: K as u32,
            parity_units: M as u32,
            options: Vec::new(),
        }),
        cell_size: Some(1 << 20),
        id: 34,
        ..Default::default()
    }
}

fn handle(number: i64) -> i64 {
    1 << 61 | number << 4
}

pub fn member_id(number: i64, slot: usize) -> i64 {
    (1 << 30) + number * 16 + slot as i64
}

/// Members of several slices, of less than one, and none; their bytes differ.
pub fn members(number: usize, lens: [usize; K]) -> Vec<Vec<u8>> {
    let member = |(slot, len): (usize, usize)| {
        let salt = (number * K + slot) as u32;
        (0..len as u32)
            .map(move |i| (i.wrapping_add(salt)).wrapping_mul(2_654_435_761).to_be_bytes()[1])
    };
    lens.into_iter().enumerate().map(|unit| member(unit).collect()).collect()
}

fn storage(cluster: &Cluster, node: usize) -> String {
    let uuid = cluster.uuid(node);
    cluster.name_node.record.lock().unwrap().storage[&uuid].storage_uuid.clone()
}

/// A unit of a group on a DataNode.
pub fn unit(
    cluster: &Cluster,
    slot: usize,
    block: cairn_wire::proto::hdfs::ExtendedBlockProto,
    node: usize,
) -> GroupUnitProto {
    GroupUnitProto {
        slot: slot as u32,
        block,
        datanode: cluster.info(node),
        storage_uuid: storage(cluster, node),
        storage_type: Some(1),
        crc32c: None,
    }
}

fn order(cluster: &Cluster, number: i64, members: &[Vec<u8>]) -> EncodeOrderProto {
    let is_there = |(_, member): &(usize, &Vec<u8>)| !member.is_empty();
    let member = |(slot, member): (usize, &Vec<u8>)| {
        let block = block(member_id(number, slot), GS, member.len() as u64);
        GroupUnitProto { crc32c: Some(crc32c(0, member)), ..unit(cluster, slot, block, slot) }
    };
    let target = |slot: usize| unit(cluster, slot, block(handle(number), GROUP_GS, 0), slot);
    EncodeOrderProto {
        group: block(handle(number), GROUP_GS, 0),
        ec_policy: policy(),
        members: members.iter().enumerate().filter(is_there).map(member).collect(),
        targets: (K..K + M).map(target).collect(),
    }
}

async fn write_members(cluster: &Cluster, number: i64, members: &[Vec<u8>]) {
    for (slot, member) in members.iter().enumerate().filter(|(_, member)| !member.is_empty()) {
        write_block(cluster, &[slot], member_id(number, slot), GS, member).await;
    }
}

async fn encode(cluster: &Cluster, node: usize, order: EncodeOrderProto) -> EncodedGroupProto {
    let (id, uuid) = (order.group.block_id, cluster.uuid(node));
    cluster.name_node.record.lock().unwrap().encodes.entry(uuid).or_default().push(order);
    let mut encoded = None;
    cluster
        .wait("the group to be encoded", |record| {
            let found = record.encoded.iter().position(|encoded| encoded.group.block_id == id);
            encoded = found.map(|at| record.encoded.remove(at));
            encoded.is_some()
        })
        .await;
    encoded.unwrap()
}

fn order_rebuild(cluster: &Cluster, node: usize, order: GroupRebuildOrderProto) {
    let uuid = cluster.uuid(node);
    cluster.name_node.record.lock().unwrap().rebuilds.entry(uuid).or_default().push(order);
}

/// All bytes of a replica, as a server reads them.
pub async fn read_marked(
    cluster: &Cluster,
    node: usize,
    id: i64,
    gs: u64,
    len: u64,
    more: OpReadBlockProto,
) -> Result<(Vec<u8>, Option<String>), String> {
    let mut header = header(block(id, gs, len));
    header.client_name.clear();
    let request = OpReadBlockProto { header, offset: 0, from_server: Some(true), ..more };
    let mut stream = cluster.connect(node).await;
    stream.writer.send_op(Op::ReadBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    if answer.status != Status::Success as i32 {
        return Err(answer.message.unwrap_or_default());
    }
    let mut got = Vec::new();
    loop {
        let packet = stream.reader.read_packet().await.unwrap();
        if packet.header.last_packet {
            return Ok((got, answer.storage_uuid));
        }
        assert_eq!(packet.checksums, crcs(&packet.data));
        got.extend_from_slice(&packet.data);
    }
}

impl Grouped {
    /// Writes the members and has the parities encoded by DataNode `encoder`.
    pub async fn form(
        cluster: &Cluster,
        number: i64,
        members: Vec<Vec<u8>>,
        encoder: usize,
    ) -> Grouped {
        write_members(cluster, number, &members).await;
        let order = order(cluster, number, &members);
        let encoded = encode(cluster, encoder, order.clone()).await;
        assert_eq!(encoded.error, None);
        let there = members.iter().enumerate().filter(|(_, member)| !member.is_empty());
        let expected = there.map(|(slot, member)| GroupMemberProto {
            slot: slot as u32,
            block: BlockProto {
                block_id: member_id(number, slot) as u64,
                gen_stamp: GS,
                num_bytes: Some(member.len() as u64),
            },
            crc32c: crc32c(0, member),
            sums_crc32c: Some(crc32c(0, &crcs(member))),
            storage_uuid: Some(storage(cluster, slot)),
        });
        assert_eq!(encoded.members, expected.collect::<Vec<_>>());
        assert_eq!(encoded.checksum_type, Some(ChecksumTypeProto::ChecksumCrc32c as i32));
        assert_eq!(encoded.bytes_per_checksum, Some(CHUNK as u32));
        let data_len = members.iter().map(Vec::len).max().unwrap() as u64;
        let mut parities = Vec::new();
        for (at, parity) in encoded.parities.iter().enumerate() {
            let (slot, id) = (K + at, handle(number) | (K + at) as i64);
            assert_eq!(parity.slot as usize, slot);
            let event = cluster.wait_event(slot, id, Received).await;
            assert_eq!(event.block.num_bytes, Some(parity.len));
            assert_eq!((event.crc32c, event.block.gen_stamp), (Some(parity.crc32c), GROUP_GS));
            let more = OpReadBlockProto { len: parity.len, ..Default::default() };
            let read = read_marked(cluster, slot, id, GROUP_GS, parity.len, more).await;
            let (bytes, storage_uuid) = read.unwrap();
            assert_eq!(storage_uuid, Some(storage(cluster, slot)));
            assert_eq!(crc32c(0, &bytes), parity.crc32c);
            parities.push(bytes);
        }
        let record = GroupRecordProto {
            group: encoded.group,
            ec_policy: policy(),
            members: encoded.members,
            data_len,
            parities: encoded.parities,
            checksum_type: encoded.checksum_type.unwrap(),
            bytes_per_checksum: encoded.bytes_per_checksum.unwrap(),
        };
        Grouped { number, members, parities, record }
    }

    /// Slots that have a unit.
    pub fn slots(&self) -> Vec<usize> {
        (0..K + M).filter(|slot| *slot >= K || !self.members[*slot].is_empty()).collect()
    }

    pub fn bytes(&self, slot: usize) -> &[u8] {
        self.members.get(slot).unwrap_or_else(|| &self.parities[slot - K])
    }

    pub fn block(&self, slot: usize) -> cairn_wire::proto::hdfs::ExtendedBlockProto {
        let len = self.bytes(slot).len() as u64;
        match slot < K {
            true => block(member_id(self.number, slot), GS, len),
            false => block(handle(self.number) | slot as i64, GROUP_GS, len),
        }
    }

    pub fn unit(&self, cluster: &Cluster, slot: usize, node: usize) -> GroupUnitProto {
        unit(cluster, slot, self.block(slot), node)
    }

    /// The order to rebuild `lost`, in order, on `targets`.
    fn rebuild(
        &self,
        cluster: &Cluster,
        lost: &[usize],
        targets: &[usize],
    ) -> GroupRebuildOrderProto {
        let sources = self.slots().into_iter().filter(|slot| !lost.contains(slot));
        let targets = lost.iter().zip(targets);
        GroupRebuildOrderProto {
            record: self.record.clone(),
            sources: sources.map(|slot| self.unit(cluster, slot, slot)).collect(),
            targets: targets.map(|(slot, node)| self.unit(cluster, *slot, *node)).collect(),
            is_urgent: None,
        }
    }

    /// The replica of a unit on a DataNode is the same as the first one, files and CRCs.
    async fn check(&self, cluster: &Cluster, slot: usize, node: usize) {
        let block = self.block(slot);
        let (id, gs) = (block.block_id as i64, block.generation_stamp);
        let event = cluster.wait_event(node, id, Received).await;
        assert_eq!(event.crc32c, Some(crc32c(0, self.bytes(slot))), "slot {slot}");
        let files = |node: usize| {
            let paths = cluster.files(node, id);
            let read = |path: &PathBuf| std::fs::read(cluster.dir(node).join(path)).unwrap();
            paths.iter().map(read).collect::<Vec<_>>()
        };
        assert!(files(node) == files(slot), "slot {slot} with stamp {gs}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parities_are_the_code_of_the_members_of_their_crcs_and_the_record() {
    let cluster = Cluster::start(6).await;
    // One in several slices, one short, one slot empty; then a chunk and less; then equal ones.
    let shapes = [[2_500_001, 700_000, 0], [512, 1, 511], [1 << 20, 1 << 20, 1 << 20]];
    for (number, lens) in shapes.into_iter().enumerate() {
        // Once by a DataNode with a member, once by one with a parity, once by another.
        let encoder = [0, 3, 5][number];
        let group =
            Grouped::form(&cluster, number as i64 + 1, members(number, lens), encoder).await;
        let data_len = *lens.iter().max().unwrap();
        let sums_len = data_len.div_ceil(CHUNK) * 4;
        let codec = Codec::new(CodecKind::Rs, K, M).unwrap();
        let pad = |mut bytes: Vec<u8>, len: usize| {
            bytes.resize(len, 0);
            bytes
        };
        let data = group.members.iter().map(|member| pad(member.clone(), data_len));
        let sums = group.members.iter().map(|member| pad(crcs(member), sums_len));
        for (part, range) in [
            (data.collect::<Vec<_>>(), 0..data_len),
            (sums.collect::<Vec<_>>(), data_len..data_len + sums_len),
        ] {
            let mut parities = vec![vec![0; range.len()]; M];
            let part: Vec<&[u8]> = part.iter().map(Vec::as_slice).collect();
            let mut out: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
            codec.encode(&part, &mut out).unwrap();
            for (made, expected) in group.parities.iter().zip(parities) {
                assert!(made[range.clone()] == expected);
            }
        }
        for parity in &group.parities {
            let tail = &parity[data_len + sums_len..];
            let record = GroupRecord::from_tail(tail, |bytes| crc32c(0, bytes)).unwrap();
            assert_eq!(record.handle.0, handle(number as i64 + 1));
            assert_eq!(record.data_len, data_len as u64);
            let member = record.members[0].unwrap();
            assert_eq!(member.crc32c, crc32c(0, &group.members[0]));
            assert_eq!(record.to_tail(|bytes| crc32c(0, bytes)), tail);
        }
    }
}

/// What `error` an encode ends with, and that it leaves no parity behind that was reported.
async fn refused(cluster: &Cluster, order: EncodeOrderProto) -> String {
    let encoded = encode(cluster, 5, order).await;
    assert!(encoded.parities.is_empty() && encoded.members.is_empty());
    encoded.error.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_not_as_ordered_ends_the_encode() {
    let cluster = Cluster::start(6).await;
    let members = members(9, [600_000, 500_000, 400_000]);
    write_members(&cluster, 7, &members).await;
    let good = order(&cluster, 7, &members);

    let mut other = good.clone();
    other.members[1].crc32c = Some(1);
    assert!(refused(&cluster, other).await.contains("is not what was recorded"));

    // Each is there, in the other's slot.
    let mut swapped = good.clone();
    swapped.members[0].slot = 1;
    swapped.members[1].slot = 0;
    (swapped.members[0].crc32c, swapped.members[1].crc32c) =
        (good.members[1].crc32c, good.members[0].crc32c);
    assert!(refused(&cluster, swapped).await.contains("is not what was recorded"));

    let mut elsewhere = good.clone();
    elsewhere.members[2].storage_uuid = "DS-other".into();
    assert!(refused(&cluster, elsewhere).await.contains("and not on DS-other"));

    let mut longer = good.clone();
    longer.members[2].block.num_bytes = Some(400_001);
    assert!(refused(&cluster, longer).await.contains("slot 2"));

    let mut older = good.clone();
    older.members[0].block.generation_stamp = GS - 1;
    assert!(refused(&cluster, older).await.contains("is here with stamp"));

    let mut absent = good.clone();
    absent.members[0].datanode = cluster.info(1);
    assert!(refused(&cluster, absent).await.contains("slot 0"), "an encoder is never relayed to");

    // The disk has lost a bit since.
    let id = member_id(7, 1);
    let file = cluster.files(1, id).into_iter().find(|path| path.extension().is_none()).unwrap();
    let file = cluster.dir(1).join(file);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[300_000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(refused(&cluster, good).await.contains("slot 1"));
    cluster.wait("the bad replica to be reported", |r| r.bad.contains(&(id, r_uuid(r, id)))).await;
}

/// Whoever reported the replica.
fn r_uuid(record: &Record, id: i64) -> String {
    record.bad.iter().find(|(bad, _)| *bad == id).map(|(_, uuid)| uuid.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_contradict_themselves_are_refused_and_answered() {
    let cluster = Cluster::start(6).await;
    let members = members(1, [1000, 1000, 1000]);
    write_members(&cluster, 3, &members).await;
    let good = order(&cluster, 3, &members);
    type Change = fn(&mut EncodeOrderProto);
    let changes: [Change; 9] = [
        |order| order.members[0].slot = 1,
        |order| order.members[0].slot = 3,
        |order| order.members[0].crc32c = None,
        |order| order.members[0].block.num_bytes = Some(0),
        |order| order.members[0].block = order.members[1].block.clone(),
        |order| order.targets.truncate(1),
        |order| order.targets.swap(0, 1),
        |order| order.group.block_id |= 1,
        |order| order.members.clear(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut order = good.clone();
        change(&mut order);
        let id = order.group.block_id;
        let encoded = encode(&cluster, 5, order).await;
        assert!(encoded.error.is_some() && encoded.group.block_id == id, "change {at}");
    }
    assert_eq!(encode(&cluster, 5, good).await.error, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_loss_is_rebuilt_as_it_was() {
    let cluster = Cluster::start(8).await;
    for (number, lens) in
        [[1_500_001, 1_100_000, 300], [700_000, 0, 900_000]].into_iter().enumerate()
    {
        let number = number as i64;
        let patterns = (1u32..1 << (K + M)).filter(|mask| mask.count_ones() <= M as u32);
        for mask in patterns {
            let number = 100 + 100 * number + i64::from(mask);
            let group = Grouped::form(&cluster, number, members(mask as usize, lens), 5).await;
            let lost: Vec<usize> =
                group.slots().into_iter().filter(|slot| mask >> slot & 1 == 1).collect();
            if lost.is_empty() {
                continue;
            }
            // The first target rebuilds.
            let order = group.rebuild(&cluster, &lost, &[6, 7]);
            order_rebuild(&cluster, 6, order);
            for (slot, node) in lost.iter().zip([6, 7]) {
                group.check(&cluster, *slot, node).await;
            }
        }
    }
}

/// Replaces a replica by bytes of the same length with CRCs of their own.
pub fn falsify(cluster: &Cluster, node: usize, id: i64) {
    for path in cluster.files(node, id) {
        let path = cluster.dir(node).join(path);
        let is_meta = path.extension().is_some_and(|extension| extension == "meta");
        let mut bytes = std::fs::read(&path).unwrap();
        if !is_meta {
            bytes[4000] ^= 0x55;
            let meta = crcs(&bytes);
            std::fs::write(&path, &bytes).unwrap();
            let metas = cluster.files(node, id).into_iter();
            let meta_path = metas.map(|path| cluster.dir(node).join(path));
            let is_meta = |path: &PathBuf| path.extension().is_some_and(|e| e == "meta");
            let meta_path = meta_path.into_iter().find(is_meta).unwrap();
            let mut whole = std::fs::read(&meta_path).unwrap();
            whole.truncate(7);
            whole.extend(meta);
            std::fs::write(&meta_path, whole).unwrap();
        }
        bytes.clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_lies_is_found_and_passed_over() {
    let cluster = Cluster::start(8).await;
    for (number, (liar, lost)) in [(0, 1), (3, 0), (1, 4)].into_iter().enumerate() {
        let number = 50 + number as i64;
        let lens = [20_000, 18_000, 9_000];
        let group = Grouped::form(&cluster, number, members(number as usize, lens), 5).await;
        falsify(&cluster, liar, group.block(liar).block_id as i64);
        let mut order = group.rebuild(&cluster, &[lost], &[6]);
        // It would be among those that are read first.
        order.sources.sort_by_key(|source| source.slot as usize != liar);
        order_rebuild(&cluster, 7, order);
        group.check(&cluster, lost, 6).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_proven_becomes_no_replica() {
    let cluster = Cluster::start(8).await;
    let group = Grouped::form(&cluster, 70, members(3, [20_000, 18_000, 9_000]), 5).await;
    let mut order = group.rebuild(&cluster, &[1, 3], &[6, 7]);
    // As it would be if another block had been written.
    order.record.members[1].crc32c ^= 1;
    order_rebuild(&cluster, 6, order);
    let (member, parity) = (group.block(1).block_id as i64, group.block(3).block_id as i64);
    cluster
        .wait("both failures", |record| {
            [member, parity].iter().all(|id| record.failed.iter().any(|failed| failed.0 == *id))
        })
        .await;
    assert!(cluster.files(6, member).is_empty() && cluster.files(7, parity).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_read_from_the_disk_that_they_name_or_get_an_error() {
    let cluster = Cluster::start(2).await;
    let data = bytes(1_300_007);
    write_block(&cluster, &[0], 5, GS, &data).await;
    let len = data.len() as u64;
    let from_disk = OpReadBlockProto { len, from_disk: Some(true), ..Default::default() };
    let read = read_marked(&cluster, 0, 5, GS, len, from_disk.clone()).await.unwrap();
    assert!(read.0 == data);
    assert_eq!(read.1, Some(storage(&cluster, 0)));
    let sums = crcs(&data);
    let more = OpReadBlockProto { len: sums.len() as u64, sums: Some(true), ..Default::default() };
    assert!(read_marked(&cluster, 0, 5, GS, len, more).await.unwrap().0 == sums);
    let too_many =
        OpReadBlockProto { len: sums.len() as u64 + 1, sums: Some(true), ..Default::default() };
    assert!(read_marked(&cluster, 0, 5, GS, len, too_many).await.is_err());
    assert!(read_marked(&cluster, 1, 5, GS, len, from_disk).await.is_err(), "it is not here");
    assert_eq!(cluster.name_node.record.lock().unwrap().locates, 0, "and nobody is asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rebuilds_that_contradict_the_record_are_refused_and_told() {
    let cluster = Cluster::start(8).await;
    let group = Grouped::form(&cluster, 80, members(4, [20_000, 18_000, 0]), 5).await;
    type Change = fn(&mut GroupRebuildOrderProto);
    let changes: [Change; 6] = [
        |order| order.targets[0].slot = 0,
        |order| order.targets[0].slot = 2,
        |order| order.targets[0].block.generation_stamp += 1,
        |order| order.record.parities.truncate(1),
        |order| order.record.data_len = 19_999,
        |order| order.record.parities[0] = GroupParityProto::default(),
    ];
    let id = group.block(1).block_id as i64;
    for (at, change) in changes.into_iter().enumerate() {
        let mut order = group.rebuild(&cluster, &[1], &[6]);
        change(&mut order);
        cluster.name_node.record.lock().unwrap().failed.clear();
        order_rebuild(&cluster, 6, order);
        let told = |r: &mut Record| r.failed.iter().any(|failed| failed.0 == id);
        cluster.wait(&format!("refusal {at}"), told).await;
        assert!(cluster.files(6, id).is_empty());
    }
}
