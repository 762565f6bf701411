//! Contiguous groups: orders to encode and rebuild them, what encoders tell, and how a DataNode can have a block that it
//! lacks (`locateUnits`). All of it is between Cairn's own servers.

use cairn_codec::crc::crc32c;
use cairn_master::Lookup;
use cairn_master::contiguous::elsewhere::{self, Elsewhere, Viewed};
use cairn_master::contiguous::{EncodedGroup, Made, MadeMember};
use cairn_namespace::group::{ChecksumShape, Group, ParityRecord};
use cairn_namespace::ops::group::MemberSum;
use cairn_namespace::{Result, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::groups::prove::Proved;
use cairn_redundancy::{
    BlockRef, Cluster, Command, EncodeOrder, GroupRebuild, NodeClaim, ProveOrder, StorageHandle,
};
use cairn_stripe::group::GroupRecord;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_wire::proto::datanode as dn;
use cairn_wire::proto::hdfs as pb;
use cairn_wire::transfer::MAX_ALSO;
use std::collections::BTreeSet;
use tracing::warn;

use super::encoder::{Encoder, block};
use super::register::{claim, unregistered, verify};
use crate::node::NameNode;
use crate::protocol::convert;
use crate::refusal::{Answer, Refusal, answer};

/// Orders about groups for a DataNode's heartbeat.
#[derive(Default)]
pub(super) struct Orders {
    pub encodes: Vec<dn::EncodeOrderProto>,
    pub rebuilds: Vec<dn::GroupRebuildOrderProto>,
    pub proves: Vec<dn::ProveOrderProto>,
    pub retired: Vec<pb::BlockProto>,
    pub packs: Vec<dn::PackOrderProto>,
    pub unpacks: Vec<dn::UnpackOrderProto>,
}

/// Those among the commands for a DataNode's heartbeat. `pool` is the block pool's id.
pub(super) fn orders(
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    pool: &str,
    commands: &[Command],
) -> Result<Orders> {
    let encoder = Encoder { cluster, lookup, pool };
    let mut orders = Orders::default();
    for command in commands {
        match command {
            Command::Encode(works) => {
                for work in works {
                    orders.encodes.extend(encoder.encode(work)?);
                }
            }
            Command::Rebuild(works) => {
                for work in works {
                    orders.rebuilds.extend(encoder.rebuild(work)?);
                }
            }
            Command::Prove(works) => {
                let prove = |work: &ProveOrder| dn::ProveOrderProto {
                    block: encoder.extended(&work.block),
                    storage_uuid: cluster.storage(work.storage).uuid.clone(),
                    wants_index: work.wants_index.then_some(true),
                };
                orders.proves.extend(works.iter().map(prove));
            }
            Command::Pack(works) => {
                for work in works {
                    orders.packs.extend(encoder.pack(work)?);
                }
            }
            Command::Unpack(works) => {
                orders.unpacks.extend(works.iter().map(|work| encoder.unpack(work)));
            }
            Command::Retire(blocks) => orders.retired.extend(blocks.iter().map(block)),
            _ => {}
        }
    }
    Ok(orders)
}

impl Encoder<'_> {
    /// An order to encode; none if the group is no more.
    fn encode(&self, order: &EncodeOrder) -> Result<Option<dn::EncodeOrderProto>> {
        let Some(group) = query::group(self.lookup.store, order.group.id)? else {
            return Ok(None);
        };
        let member = |member: &cairn_redundancy::EncodeMember| dn::GroupUnitProto {
            crc32c: Some(member.crc32c),
            ..self.unit(member.slot, &member.block, member.storage)
        };
        let target = |(storage, slot): &(StorageHandle, UnitIndex)| {
            self.unit(*slot, &block_at(&group, *slot), *storage)
        };
        Ok(Some(dn::EncodeOrderProto {
            group: self.extended(&order.group),
            ec_policy: self.policy_numbered(group.policy)?,
            members: order.members.iter().map(member).collect(),
            targets: order.targets.iter().map(target).collect(),
        }))
    }

    /// An order to rebuild; none if the group is no more.
    fn rebuild(&self, work: &GroupRebuild) -> Result<Option<dn::GroupRebuildOrderProto>> {
        let Some(group) = query::group(self.lookup.store, work.group.id)? else {
            return Ok(None);
        };
        let Some(record) = self.record(&group)? else { return Ok(None) };
        Ok(Some(dn::GroupRebuildOrderProto {
            record,
            sources: self.units(&group, &work.sources),
            targets: self.units(&group, &work.targets),
            is_urgent: Some(work.is_urgent),
        }))
    }

    /// What is recorded of a formed group.
    fn record(&self, group: &Group) -> Result<Option<dn::GroupRecordProto>> {
        let Some(ChecksumShape { kind, bytes_per_checksum }) = group.checksum else {
            return Ok(None);
        };
        let member = |(slot, member): (u8, &cairn_namespace::group::Member)| dn::GroupMemberProto {
            slot: slot.into(),
            block: block(&BlockRef { id: member.id, gs: member.gs, len: member.len }),
            crc32c: member.crc32c,
            sums_crc32c: member.sums_crc32c,
            storage_uuid: None,
        };
        let parity = |(slot, parity): (u8, &ParityRecord)| dn::GroupParityProto {
            slot: slot.into(),
            len: parity.len,
            crc32c: parity.crc32c,
        };
        Ok(Some(dn::GroupRecordProto {
            group: block(&BlockRef { id: group.handle, gs: group.gs, len: 0 }),
            ec_policy: self.policy_numbered(group.policy)?,
            members: group.members().map(member).collect(),
            data_len: group.data_len,
            parities: (group.k..).zip(&group.parities).map(parity).collect(),
            checksum_type: kind.into(),
            bytes_per_checksum,
        }))
    }

    /// A block group that is served as one plain block.
    fn viewed(&self, Viewed { group, policy, units }: &Viewed) -> dn::ViewedGroupProto {
        let block = |id| BlockRef { id, gs: group.gs, len: group.len };
        let unit = |(storage, slot): &(StorageHandle, UnitIndex)| {
            self.unit(*slot, &block(group.id.internal(*slot)), *storage)
        };
        dn::ViewedGroupProto {
            group: self.extended(&block(group.id)),
            ec_policy: convert::policy(policy, None),
            units: units.iter().map(unit).collect(),
        }
    }

    fn units(
        &self,
        group: &Group,
        places: &[(StorageHandle, UnitIndex)],
    ) -> Vec<dn::GroupUnitProto> {
        let unit = |(storage, slot): &(StorageHandle, UnitIndex)| {
            self.unit(*slot, &block_at(group, *slot), *storage)
        };
        places.iter().map(unit).collect()
    }

    fn unit(
        &self,
        slot: UnitIndex,
        block: &BlockRef,
        storage: StorageHandle,
    ) -> dn::GroupUnitProto {
        let storage = self.cluster.storage(storage);
        dn::GroupUnitProto {
            slot: slot.0.into(),
            block: self.extended(block),
            datanode: convert::datanode_info(self.cluster.node(storage.node), 0),
            storage_uuid: storage.uuid.clone(),
            storage_type: Some(storage.storage_type as i32),
            crc32c: None,
        }
    }
}

/// The member or parity in a slot of a group.
fn block_at(group: &Group, slot: UnitIndex) -> BlockRef {
    let member = group.members.get(slot.as_usize()).and_then(Option::as_ref);
    if let Some(member) = member {
        return BlockRef { id: member.id, gs: member.gs, len: member.len };
    }
    let parity = slot.as_usize().checked_sub(usize::from(group.k));
    let parity = parity.and_then(|at| group.parities.get(at));
    let len = parity.map_or(0, |parity| parity.len);
    BlockRef { id: group.handle.internal(slot), gs: group.gs, len }
}

/// What a DataNode says of a group that it was to encode.
pub(super) fn encoded(proto: dn::EncodedGroupProto) -> EncodedGroup {
    let handle = BlockId(proto.group.block_id as i64);
    let gs = GenerationStamp(proto.group.gen_stamp);
    let outcome = match proto.error.clone() {
        Some(why) => Err(why),
        None => made(proto).ok_or_else(|| "what it says makes no sense".to_string()),
    };
    EncodedGroup { handle, gs, outcome }
}

/// What a DataNode has read of a replica.
pub(super) fn proved(proto: dn::ProvedReplicaProto) -> Proved {
    let block = BlockRef {
        id: BlockId(proto.block.block_id as i64),
        gs: GenerationStamp(proto.block.gen_stamp),
        len: proto.block.num_bytes(),
    };
    let (mut record, mut index) = (None, None);
    if let Some(end) = proto.record {
        let sum = |bytes: &[u8]| crc32c(0, bytes);
        if block.id.is_container() {
            index = PackIndex::from_tail(&end, sum)
                .inspect_err(|error| warn!(block = %block.id, %error, "a container has no index"))
                .ok();
        } else {
            record = GroupRecord::from_tail(&end, sum)
                .inspect_err(|error| warn!(block = %block.id, %error, "a parity has no record"))
                .ok();
        }
    }
    Proved { block, storage: proto.storage_uuid, crc32c: proto.crc32c, record, index }
}

fn made(proto: dn::EncodedGroupProto) -> Option<Made> {
    let member = |member: dn::GroupMemberProto| {
        let (slot, crc32c) = (u8::try_from(member.slot).ok()?, member.crc32c);
        let sum = MemberSum { slot, crc32c, sums_crc32c: member.sums_crc32c? };
        Some(MadeMember { sum, storage: member.storage_uuid? })
    };
    let parity = |parity: dn::GroupParityProto| {
        let slot = UnitIndex(u8::try_from(parity.slot).ok()?);
        Some((slot, ParityRecord { len: parity.len, crc32c: parity.crc32c }))
    };
    let members: Option<Vec<MadeMember>> = proto.members.into_iter().map(member).collect();
    let parities: Option<Vec<_>> = proto.parities.into_iter().map(parity).collect();
    let mut parities = parities?;
    parities.sort_unstable_by_key(|(slot, _)| *slot);
    let kind = u8::try_from(proto.checksum_type?).ok()?;
    let bytes_per_checksum = proto.bytes_per_checksum?;
    let checksum = ChecksumShape { kind, bytes_per_checksum };
    Some(Made { members: members?, parities, checksum })
}

/// How a block can be had that a DataNode lacks: from a replica elsewhere, or by decoding it. Of more blocks that it asks
/// for, what is beside them in a container that was told of already is left out.
pub(super) fn locate_units(node: &NameNode, call: &Call) -> Answer {
    let request: dn::LocateUnitsRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let claim = claim(&request.registration);
    let mut found = locate(node, &claim, &request.block)?;
    let container = |found: &dn::LocateUnitsResponseProto| {
        found.packed.as_ref().map(|packed| packed.container.block_id)
    };
    let mut told: BTreeSet<u64> = container(&found).into_iter().collect();
    // One after the other: others have the cluster in between.
    for block in request.also.iter().take(MAX_ALSO) {
        let mut also = locate(node, &claim, block)?;
        if container(&also).is_some_and(|id| !told.insert(id)) {
            (also.relays, also.record, also.sources) = Default::default();
        }
        found.also.push(also);
    }
    answer(&found)
}

fn locate(
    node: &NameNode,
    claim: &NodeClaim<'_>,
    block: &pb::ExtendedBlockProto,
) -> std::result::Result<dn::LocateUnitsResponseProto, Refusal> {
    let pool = &node.ns.identity().block_pool_id;
    let id = BlockId(block.block_id as i64);
    let gs = GenerationStamp(block.generation_stamp);
    let now = node.now();
    let found = node.see(|cluster, lookup| -> Result<_> {
        let reader = match cluster.registered(claim) {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(unregistered(&error))),
        };
        let mut found = dn::LocateUnitsResponseProto::default();
        if id.is_plain_view() {
            let viewed = elsewhere::viewed(cluster, lookup, (id, gs), now)?;
            let encoder = Encoder { cluster, lookup, pool };
            found.viewed = viewed.map(|viewed| encoder.viewed(&viewed));
            return Ok(Ok(found));
        }
        let Some(Elsewhere { len, relays, group, packed }) =
            elsewhere::elsewhere(cluster, lookup, (id, gs), reader, now)?
        else {
            return Ok(Ok(found));
        };
        let encoder = Encoder { cluster, lookup, pool };
        let own = packed.map_or(BlockRef { id, gs, len }, |at| at.container);
        found.packed = packed.map(|at| encoder.packed_block(&at));
        let slot = group.as_ref().map_or(UnitIndex(0), |(_, slot, _)| *slot);
        let relays = relays.into_iter();
        found.relays = relays.map(|storage| encoder.unit(slot, &own, storage)).collect();
        if let Some((group, _, sources)) = &group {
            found.record = encoder.record(group)?;
            found.sources = encoder.units(group, sources);
        }
        Ok(Ok(found))
    })?;
    found.inspect_err(|_| warn!(block = %id, "a DataNode that is not registered asks for a block"))
}
