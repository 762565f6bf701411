//! What is ordered of a contiguous group, checked: no slot, length or place is guessed.

use super::super::plan::{self, Target};
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use cairn_codec::Codec;
use cairn_replica::group::{self, Formed};
use cairn_stripe::group::{GroupRecord, Member};
use cairn_stripe::{BlockId, CodecName, GenerationStamp, PolicyId, Schema, UnitIndex};
use cairn_wire::proto::datanode::{
    EncodeOrderProto, GroupRebuildOrderProto, GroupRecordProto, GroupUnitProto,
};
use cairn_wire::proto::hdfs::{
    BlockProto, ChecksumProto, DatanodeInfoProto, ErasureCodingPolicyProto,
};
use std::ops::Deref;

/// A unit of a group on a DataNode.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) slot: usize,
    pub(crate) node: DatanodeInfoProto,
    pub(crate) storage: String,
    storage_type: Option<i32>,
}

impl Place {
    fn decode(unit: &GroupUnitProto, units: usize) -> Result<Place> {
        Ok(Place {
            slot: slot(unit.slot, units)?,
            node: unit.datanode.clone(),
            storage: unit.storage_uuid.clone(),
            storage_type: unit.storage_type,
        })
    }

    /// As a target.
    pub(super) fn target(&self) -> Target {
        Target {
            unit: UnitIndex(self.slot as u8),
            node: self.node.clone(),
            storage_type: self.storage_type,
            storage_id: Some(self.storage.clone()),
        }
    }
}

/// A group that has been formed, as it is recorded.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) pool: String,
    formed: Formed,
}

impl Deref for Group {
    type Target = Formed;

    fn deref(&self) -> &Formed {
        &self.formed
    }
}

impl Group {
    /// Fails if it is incomplete or contradicts itself.
    pub(crate) fn decode(pool: &str, proto: &GroupRecordProto) -> Result<Group> {
        let (policy, schema, _) = policy(&proto.ec_policy)?;
        let handle = BlockId(proto.group.block_id as i64);
        if !handle.is_parity() || handle != handle.group() {
            return refuse(format!("{handle} is no contiguous group"));
        }
        let checksum = messages::checksum(&ChecksumProto {
            r#type: proto.checksum_type,
            bytes_per_checksum: proto.bytes_per_checksum,
        })?;
        let mut members = vec![None; schema.data_units()];
        for member in &proto.members {
            let at = slot(member.slot, members.len())?;
            let sums_crc32c = member.sums_crc32c.ok_or_else(|| {
                DataNodeError::peer(format!("no CRC of the sums of slot {at} is recorded"))
            })?;
            let recorded = Member {
                id: BlockId(member.block.block_id as i64),
                gs: GenerationStamp(member.block.gen_stamp),
                len: member.block.num_bytes.unwrap_or(0),
                crc32c: member.crc32c,
                sums_crc32c,
            };
            if members[at].replace(recorded).is_some() || recorded.len == 0 {
                return refuse(format!("slot {at} has two members, or an empty one"));
            }
        }
        let record = GroupRecord {
            handle,
            gs: GenerationStamp(proto.group.gen_stamp),
            policy,
            schema,
            checksum_type: checksum.kind.id(),
            chunk_len: proto.bytes_per_checksum,
            data_len: proto.data_len,
            members,
        };
        let mut parities = vec![None; schema.parity_units()];
        for parity in &proto.parities {
            let at = slot(parity.slot, schema.units())?.checked_sub(schema.data_units());
            let at = at.ok_or_else(|| DataNodeError::peer("a parity in a member's slot"))?;
            if parities[at].replace((parity.len, parity.crc32c)).is_some() {
                return refuse(format!("two records of parity {at}"));
            }
        }
        let parities: Option<Vec<_>> = parities.into_iter().collect();
        let parities = parities.ok_or_else(|| DataNodeError::peer("a parity is not recorded"))?;
        let formed = Formed::new(record, checksum, parities)?;
        Ok(Group { pool: pool.into(), formed })
    }

    /// The unit in `slot`; one without bytes for a slot that is empty.
    pub(crate) fn block(&self, slot: usize) -> Block {
        let (id, gs, len) = self.unit(slot);
        Block { pool: self.pool.clone(), id, gs, len }
    }

    /// Places of its units. Fails if one has no slot in it.
    pub(crate) fn places(&self, units: &[GroupUnitProto]) -> Result<Vec<Place>> {
        units.iter().map(|unit| Place::decode(unit, self.layout.units())).collect()
    }
}

/// A group to encode.
pub(super) struct EncodeWork {
    /// Handle and stamp.
    pub(super) group: Block,
    pub(super) policy: PolicyId,
    pub(super) schema: Schema,
    pub(super) codec: Codec,
    /// By slot; each with what it must turn out to be.
    pub(super) members: Vec<Option<Chosen>>,
    /// One for each parity, in their order.
    pub(super) targets: Vec<Place>,
}

/// The replica of a member that is to stay.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) block: Block,
    pub(super) crc32c: u32,
    pub(super) place: Place,
}

impl EncodeWork {
    pub(super) fn decode(order: EncodeOrderProto) -> Result<EncodeWork> {
        let (policy, schema, codec) = policy(&order.ec_policy)?;
        let group = Block { len: 0, ..messages::block(&order.group) };
        if !group.id.is_parity() || group.id != group.id.group() {
            return refuse(format!("{} is no contiguous group", group.id));
        }
        let mut members: Vec<Option<Chosen>> = vec![None; schema.data_units()];
        for unit in &order.members {
            let place = Place::decode(unit, members.len())?;
            let (at, block) = (place.slot, messages::block(&unit.block));
            let crc32c = unit.crc32c.ok_or_else(|| {
                DataNodeError::peer(format!("no CRC of {} is recorded", block.id))
            })?;
            let is_twice = members.iter().flatten().any(|other| other.block.id == block.id);
            if members[at].is_some() || is_twice || block.len == 0 || block.pool != group.pool {
                return refuse(format!("{} cannot be the member in slot {at}", block.id));
            }
            members[at] = Some(Chosen { block, crc32c, place });
        }
        let units = schema.units();
        let mut targets = Vec::new();
        for (parity, unit) in order.targets.iter().enumerate() {
            let place = Place::decode(unit, units)?;
            if place.slot != schema.data_units() + parity {
                return refuse(format!("slot {} where a parity's was due", place.slot));
            }
            targets.push(place);
        }
        if targets.len() != schema.parity_units() || order.members.is_empty() {
            let (members, targets) = (order.members.len(), targets.len());
            return refuse(format!("{members} members and {targets} targets for parities"));
        }
        Ok(EncodeWork { group, policy, schema, codec, members, targets })
    }

    /// Bytes of the longest member.
    pub(super) fn data_len(&self) -> u64 {
        self.members.iter().flatten().map(|member| member.block.len).max().unwrap_or(0)
    }

    pub(super) fn units(&self) -> usize {
        self.schema.units()
    }

    pub(super) fn parity_ids(&self) -> Vec<BlockId> {
        self.targets.iter().map(|target| self.parity_id(target.slot)).collect()
    }

    pub(super) fn parity_id(&self, slot: usize) -> BlockId {
        self.group.id.internal(UnitIndex(slot as u8))
    }

    pub(super) fn handle(&self) -> BlockProto {
        messages::local_block(self.group.id, self.group.gs, self.data_len())
    }
}

/// Lost units of a group, and where they go.
pub(super) struct RebuildWork {
    pub(super) group: Group,
    /// The best first.
    pub(super) sources: Vec<Place>,
    pub(super) targets: Vec<Place>,
    pub(super) is_urgent: bool,
}

impl RebuildWork {
    pub(super) fn decode(order: GroupRebuildOrderProto) -> Result<RebuildWork> {
        let first = order.targets.first();
        let first = first.ok_or_else(|| DataNodeError::peer("nothing is to be rebuilt"))?;
        let group = Group::decode(&first.block.pool_id, &order.record)?;
        let sources = group.places(&order.sources)?;
        let targets = group.places(&order.targets)?;
        for (at, target) in targets.iter().enumerate() {
            let slot = target.slot;
            let is_there = sources.iter().any(|source| source.slot == slot);
            let is_twice = targets[..at].iter().any(|other| other.slot == slot);
            if group.layout.is_empty(slot) || is_there || is_twice {
                return refuse(format!("slot {slot} is empty, there, or to be rebuilt twice"));
            }
            let named = messages::block(&order.targets[at].block);
            let block = group.block(slot);
            if (named.id, named.gs) != (block.id, block.gs) {
                return refuse(format!("{} is not the unit in slot {slot}", named.id));
            }
        }
        if targets.len() > group.layout.m() {
            return refuse(format!("{} lost units are too many", targets.len()));
        }
        Ok(RebuildWork { group, sources, targets, is_urgent: order.is_urgent() })
    }

    pub(super) fn target_ids(&self) -> Vec<BlockId> {
        self.targets.iter().map(|target| self.group.block(target.slot).id).collect()
    }
}

/// The unit that a target is for, and its DataNode.
pub(super) fn named(target: &GroupUnitProto) -> ((BlockId, GenerationStamp), String) {
    let block = messages::block(&target.block);
    ((block.id, block.gs), target.datanode.id.datanode_uuid.clone())
}

fn policy(proto: &ErasureCodingPolicyProto) -> Result<(PolicyId, Schema, Codec)> {
    let kind = plan::codec_kind(proto)?;
    let geometry = messages::geometry(proto)?;
    let name = match kind {
        cairn_codec::CodecKind::Rs => CodecName::Rs,
        cairn_codec::CodecKind::RsLegacy => CodecName::RsLegacy,
        cairn_codec::CodecKind::Xor => CodecName::Xor,
    };
    let id = u8::try_from(proto.id).map_err(|_| DataNodeError::peer("unknown policy"))?;
    let schema = Schema { codec: name, k: geometry.k() as u8, m: geometry.m() as u8 };
    let codec = group::codec(&schema).map_err(|error| DataNodeError::peer(error.to_string()))?;
    Ok((PolicyId(id), schema, codec))
}

fn slot(slot: u32, units: usize) -> Result<usize> {
    match usize::try_from(slot).ok().filter(|slot| *slot < units) {
        Some(slot) => Ok(slot),
        None => refuse(format!("slot {slot} where there are {units}")),
    }
}

fn refuse<T>(why: String) -> Result<T> {
    Err(DataNodeError::Peer(why))
}
