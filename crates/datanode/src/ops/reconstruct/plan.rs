//! What a reconstruction command asks for, checked. No index is guessed: a command whose indices do not
//! fit its DataNodes is refused.
//!
//! Source: Hadoop 3.5.0 `StripedReconstructionInfo`, `StripedReconstructor`, `StripedWriter`.

use crate::dataset::{Block, StorageWish};
use crate::error::{DataNodeError, Result};
use crate::messages;
use cairn_codec::{Codec, CodecKind};
use cairn_stripe::rebuild::Rebuild;
use cairn_stripe::{CodecName, Geometry, Policy, StorageType, UnitIndex};
use cairn_wire::proto::hdfs::{
    BlockECReconstructionInfoProto, DatanodeInfoProto, ErasureCodingPolicyProto,
    OpBlockGroupChecksumProto,
};

/// Lost units of one group, who has the others, and where the rebuilt ones go.
pub(super) struct Plan {
    /// The group; its length is that of the data.
    pub(super) group: Block,
    pub(super) geometry: Geometry,
    pub(super) codec: Codec,
    /// The DataNodes that have each unit.
    pub(super) holders: Vec<Vec<DatanodeInfoProto>>,
    /// At least one, each of a unit of its own that has bytes.
    pub(super) targets: Vec<Target>,
    /// CRC32C of each unit as first written, where the NameNode knows it.
    pub(super) recorded: Vec<Option<u32>>,
    /// Units in the order in which the NameNode names their sources; Cairn's has the best first.
    pub(super) named: Vec<UnitIndex>,
    pub(super) is_ours: bool,
    /// Another loss would cost data: it does not wait for others.
    pub(super) is_urgent: bool,
}

/// Where a rebuilt unit goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    pub(super) unit: UnitIndex,
    pub(super) node: DatanodeInfoProto,
    /// As the message has it.
    pub(super) storage_type: Option<i32>,
    pub(super) storage_id: Option<String>,
}

impl Target {
    /// The storage that the NameNode chose.
    pub(super) fn wish(&self) -> StorageWish {
        StorageWish {
            storage_type: StorageType::by_number(self.storage_type.unwrap_or_default()),
            storage_id: self.storage_id.clone().unwrap_or_default(),
            ..StorageWish::default()
        }
    }
}

impl Plan {
    /// Checks a command. Fails if it contradicts itself, or names fewer units than decoding needs.
    pub(super) fn decode(info: BlockECReconstructionInfoProto) -> Result<Plan> {
        let group = messages::block(&info.block);
        if !group.id.is_striped() || group.id != group.id.group() {
            return refuse(format!("{} is not a block group", group.id));
        }
        let geometry = messages::geometry(&info.ec_policy)?;
        let codec = Codec::new(codec_kind(&info.ec_policy)?, geometry.k(), geometry.m())
            .map_err(|error| DataNodeError::peer(error.to_string()))?;
        let holders =
            holders(&geometry, &info.live_block_indices, &info.source_dn_infos.datanodes)?;
        let targets = targets(&geometry, group.len, &info)?;
        let recorded = recorded(&geometry, &info)?;
        let named = indices(&geometry, &info.live_block_indices)?;
        let (is_ours, is_urgent) = (info.target_block_indices.is_some(), info.is_urgent());
        let plan =
            Plan { group, geometry, codec, holders, targets, recorded, named, is_ours, is_urgent };
        let rebuild = plan.any_sources();
        if !rebuild.is_possible() {
            let (named, needed) = (&plan.named, rebuild.needed());
            return refuse(format!("units {named:?} are named where {needed} are needed"));
        }
        Ok(plan)
    }

    /// What a group's checksum needs to decode units: nothing is written.
    pub(super) fn for_checksum(request: &OpBlockGroupChecksumProto) -> Result<Plan> {
        let group = messages::block(&request.header.block);
        let geometry = messages::geometry(&request.ec_policy)?;
        let codec = Codec::new(codec_kind(&request.ec_policy)?, geometry.k(), geometry.m())
            .map_err(|error| DataNodeError::peer(error.to_string()))?;
        let units: Vec<u8> = request
            .block_indices
            .iter()
            .map(|unit| u8::try_from(*unit).unwrap_or(u8::MAX))
            .collect();
        let holders = holders(&geometry, &units, &request.datanodes.datanodes)?;
        let recorded = vec![None; geometry.units()];
        Ok(Plan {
            group,
            geometry,
            codec,
            holders,
            targets: Vec::new(),
            recorded,
            named: Vec::new(),
            is_ours: false,
            is_urgent: false,
        })
    }

    /// A group that is only read: no unit is lost, none is written.
    pub(super) fn for_scrub(
        group: Block,
        policy: &ErasureCodingPolicyProto,
        units: &[u8],
        nodes: &[DatanodeInfoProto],
    ) -> Result<Plan> {
        if !group.id.is_striped() || group.id != group.id.group() {
            return refuse(format!("{} is not a block group", group.id));
        }
        let geometry = messages::geometry(policy)?;
        let codec = Codec::new(codec_kind(policy)?, geometry.k(), geometry.m())
            .map_err(|error| DataNodeError::peer(error.to_string()))?;
        let holders = holders(&geometry, units, nodes)?;
        let recorded = vec![None; geometry.units()];
        let (targets, named, is_ours, is_urgent) = (Vec::new(), Vec::new(), true, false);
        Ok(Plan { group, geometry, codec, holders, targets, recorded, named, is_ours, is_urgent })
    }

    /// The internal block of a unit.
    pub(super) fn block(&self, unit: UnitIndex) -> Block {
        Block { id: self.group.id.internal(unit), len: self.len(unit), ..self.group.clone() }
    }

    /// Bytes of a unit.
    pub(super) fn len(&self, unit: UnitIndex) -> u64 {
        self.geometry.internal_block_len(self.group.len, unit)
    }

    /// The rebuilding of what is lost. `is_slow` picks sources to ask last; Hadoop's NameNode names them in no order, so
    /// that those with less to do are taken, then those on the target's rack.
    ///
    /// Deviation: Hadoop's DataNode reads the first ones that are named.
    pub(super) fn rebuild(&self, is_slow: impl Fn(&str) -> bool) -> Rebuild {
        /// Transfers that make no difference yet.
        const FEW: u32 = 4;
        let own_rack = self.targets.first().and_then(|target| target.node.location.as_deref());
        let rank = |(at, unit): (usize, &UnitIndex)| {
            let holder = self.holders[unit.as_usize()].first();
            let slow = holder.is_some_and(|holder| is_slow(&holder.id.datanode_uuid));
            let load = holder.map_or(0, |holder| holder.xceiver_count() / FEW);
            let far = holder.is_some_and(|holder| holder.location.as_deref() != own_rack);
            let order = if self.is_ours { (0, false, at) } else { (load, far, at) };
            (slow, order, *unit)
        };
        let mut ranked: Vec<_> = self.named.iter().enumerate().map(rank).collect();
        ranked.sort_unstable();
        let mut rebuild = self.any_sources();
        rebuild.begin_with(ranked.into_iter().map(|(_, _, unit)| unit));
        rebuild
    }

    /// The same, with no source before others.
    pub(super) fn any_sources(&self) -> Rebuild {
        let units = (0u8..).map(UnitIndex).zip(&self.holders);
        let there: Vec<UnitIndex> =
            units.filter(|(_, holders)| !holders.is_empty()).map(|(unit, _)| unit).collect();
        Rebuild::new(self.geometry, self.group.len, self.recorded.clone(), &there)
    }

    /// How many transfers the NameNode should count this as.
    ///
    /// Source: Hadoop 3.5.0 `ErasureCodingWorker#processErasureCodingTasks`.
    pub(super) fn source_count(&self) -> usize {
        self.any_sources().needed().max(self.targets.len())
    }
}

fn refuse<T>(why: String) -> Result<T> {
    Err(DataNodeError::Peer(why))
}

pub(super) fn codec_kind(policy: &ErasureCodingPolicyProto) -> Result<CodecKind> {
    let name = match &policy.schema {
        Some(schema) => CodecName::parse(&schema.codec_name),
        None => {
            let known = Policy::built_in().into_iter();
            known
                .map(|p| (u32::from(p.id.0), p.schema.codec))
                .find(|p| p.0 == policy.id)
                .map(|p| p.1)
        }
    };
    match name {
        Some(CodecName::Rs) => Ok(CodecKind::Rs),
        Some(CodecName::RsLegacy) => Ok(CodecKind::RsLegacy),
        Some(CodecName::Xor) => Ok(CodecKind::Xor),
        None => refuse(format!("the code of policy {} is not known", policy.id)),
    }
}

/// Unit indices of a message, each below the number of units.
fn indices(geometry: &Geometry, bytes: &[u8]) -> Result<Vec<UnitIndex>> {
    match bytes.iter().find(|unit| usize::from(**unit) >= geometry.units()) {
        Some(unit) => refuse(format!("unit {unit} in a group of {} units", geometry.units())),
        None => Ok(bytes.iter().map(|unit| UnitIndex(*unit)).collect()),
    }
}

fn holders(
    geometry: &Geometry,
    units: &[u8],
    nodes: &[DatanodeInfoProto],
) -> Result<Vec<Vec<DatanodeInfoProto>>> {
    let units = indices(geometry, units)?;
    if units.len() != nodes.len() {
        return refuse(format!("{} indices for {} sources", units.len(), nodes.len()));
    }
    let mut holders = vec![Vec::new(); geometry.units()];
    for (unit, node) in units.iter().zip(nodes) {
        holders[unit.as_usize()].push(node.clone());
    }
    Ok(holders)
}

fn targets(
    geometry: &Geometry,
    group_len: u64,
    info: &BlockECReconstructionInfoProto,
) -> Result<Vec<Target>> {
    let has_bytes = |unit: &UnitIndex| geometry.internal_block_len(group_len, *unit) > 0;
    let nodes = &info.target_dn_infos.datanodes;
    let units = match &info.target_block_indices {
        Some(bytes) => explicit_units(geometry, bytes, info)?,
        None => implied_units(geometry, info)?.into_iter().filter(has_bytes).collect(),
    };
    // Hadoop's DataNode gives a target too many the index 0, and so a wrong unit's bytes.
    let exact = info.target_block_indices.is_some();
    if nodes.len() > units.len() || exact && nodes.len() != units.len() {
        return refuse(format!("{} targets for {} lost units", nodes.len(), units.len()));
    }
    if nodes.len() > geometry.m() {
        return refuse(format!("{} lost units are too many", nodes.len()));
    }
    let types = &info.target_storage_types.storage_types;
    let ids = &info.target_storage_uuids.storage_uuids;
    let target = |(at, (unit, node)): (usize, (UnitIndex, &DatanodeInfoProto))| Target {
        unit,
        node: node.clone(),
        storage_type: types.get(at).copied(),
        storage_id: ids.get(at).cloned(),
    };
    let targets = units.into_iter().zip(nodes).enumerate().map(target);
    let targets: Vec<Target> = targets.filter(|target| has_bytes(&target.unit)).collect();
    match targets.is_empty() {
        true => refuse("no unit with bytes is to be rebuilt".into()),
        false => Ok(targets),
    }
}

/// The units as Cairn's NameNode names them.
fn explicit_units(
    geometry: &Geometry,
    bytes: &[u8],
    info: &BlockECReconstructionInfoProto,
) -> Result<Vec<UnitIndex>> {
    let units = indices(geometry, bytes)?;
    for (at, unit) in units.iter().enumerate() {
        if units[..at].contains(unit) || info.live_block_indices.contains(&unit.0) {
            return refuse(format!("unit {unit} is to be rebuilt twice, or is there"));
        }
    }
    Ok(units)
}

/// The units that Hadoop's NameNode means: all that are neither there nor excluded, in order.
fn implied_units(
    geometry: &Geometry,
    info: &BlockECReconstructionInfoProto,
) -> Result<Vec<UnitIndex>> {
    let excluded = info.exclude_reconstructed_indices.as_deref().unwrap_or_default();
    indices(geometry, excluded)?;
    let is_lost = |unit: &u8| !info.live_block_indices.contains(unit) && !excluded.contains(unit);
    Ok((0..geometry.units() as u8).filter(is_lost).map(UnitIndex).collect())
}

fn recorded(
    geometry: &Geometry,
    info: &BlockECReconstructionInfoProto,
) -> Result<Vec<Option<u32>>> {
    let units = indices(geometry, info.unit_crc_indices.as_deref().unwrap_or_default())?;
    if units.len() != info.unit_crc32cs.len() {
        return refuse(format!("{} indices for {} CRCs", units.len(), info.unit_crc32cs.len()));
    }
    let mut recorded = vec![None; geometry.units()];
    for (unit, crc) in units.iter().zip(&info.unit_crc32cs) {
        recorded[unit.as_usize()] = Some(*crc);
    }
    Ok(recorded)
}

#[cfg(test)]
mod tests;
