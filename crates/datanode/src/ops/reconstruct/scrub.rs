//! Reading whole groups and all replicas of blocks, as the NameNode asks, to see whether they agree.
//!
//! Orders come with heartbeats and are done one after the other, at the rate that they name and within the bandwidth
//! of reconstructions. What was seen goes back with the next heartbeat in its turn, so that small blocks do not make
//! many: the CRC of each place that could be read, and which units could be left out so that the others agree. What
//! it means the NameNode decides. A chunk with a wrong CRC is reported as any reader does. A group whose units
//! disagree is read once more before it is told.
//!
//! The fields are Cairn's own (`HeartbeatResponseProto` 1000): Hadoop has no such check.

use super::buffers::Buffers;
use super::plan::Plan;
use super::readers::Readers;
use super::source::{Piece, Wanted};
use super::traced::{begun, part_of};
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_codec::agree::Agreement;
use cairn_stripe::UnitIndex;
use cairn_wire::proto::datanode::{ScrubOrderProto, ScrubbedBlockProto, ScrubbedPlaceProto};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes of each place that are read and compared at once: a multiple of every usual chunk length.
const SLICE: u64 = 256 << 10;
/// Places that an order may name: units of the widest group, and as many replicas.
const MAX_PLACES: usize = cairn_stripe::id::MAX_UNITS_PER_GROUP;
/// Obeys orders in the background, after those before.
pub(crate) fn start(node: &Arc<Node>, orders: Vec<ScrubOrderProto>) {
    if orders.is_empty() {
        return;
    }
    let owner = node.clone();
    node.tasks.spawn(async move {
        let _turn = owner.scrubs.turn.lock().await;
        for order in orders {
            let span = begun("Scrub/block", order.block.block_id as i64);
            part_of(span, scrub(&owner, order)).await;
        }
    });
}

async fn scrub(node: &Arc<Node>, order: ScrubOrderProto) {
    let id = order.block.block_id as i64;
    match obey(node, order).await {
        Ok(result) => node.scrubs.results.add(result),
        Err(error) => tracing::warn!(block = id, %error, "refused to scrub a block"),
    }
}

async fn obey(node: &Arc<Node>, order: ScrubOrderProto) -> Result<ScrubbedBlockProto> {
    node.dataset.check_pool(&order.block.pool_id)?;
    node.scrubs.budget.set(order.bytes_per_second);
    let work = Work::decode(order)?;
    let mut seen = work.read(node).await?;
    if seen.agree == Some(false) {
        tracing::warn!(block = %work.block.id, "units disagree, reading them again");
        seen = work.read(node).await?;
    }
    let place = |(place, crc32c): (&Place, &Option<u32>)| ScrubbedPlaceProto {
        storage_uuid: place.storage_uuid.clone(),
        unit: place.unit.0.into(),
        crc32c: *crc32c,
    };
    let Block { id, gs, len, .. } = work.block;
    tracing::info!(block = %id, agree = seen.agree, suspects = ?seen.suspects, "scrubbed");
    Ok(ScrubbedBlockProto {
        block: messages::local_block(id, gs, len),
        places: work.places.iter().zip(&seen.crcs).map(place).collect(),
        agree: seen.agree,
        suspects: (seen.agree == Some(false)).then_some(seen.suspects),
    })
}

/// One place to read.
struct Place {
    unit: UnitIndex,
    block: Block,
    node: cairn_wire::proto::hdfs::DatanodeInfoProto,
    storage_uuid: String,
}

/// An order, checked.
struct Work {
    block: Block,
    /// For a group: how its units depend on each other.
    group: Option<Plan>,
    places: Vec<Place>,
}

/// What reading has shown.
struct Seen {
    /// Of each place that could be read to its end.
    crcs: Vec<Option<u32>>,
    /// Of a group of which enough could be read.
    agree: Option<bool>,
    suspects: Vec<u8>,
}

impl Work {
    fn decode(order: ScrubOrderProto) -> Result<Work> {
        let block = messages::block(&order.block);
        let (nodes, uuids) = (order.datanodes.datanodes, order.storage_uuids.storage_uuids);
        if nodes.is_empty() || nodes.len() > MAX_PLACES || nodes.len() != uuids.len() {
            let what = format!("{} DataNodes and {} storages to scrub", nodes.len(), uuids.len());
            return Err(DataNodeError::Peer(what));
        }
        let group = match (&order.ec_policy, &order.unit_indices) {
            (Some(policy), Some(units)) => {
                Some(Plan::for_scrub(block.clone(), policy, units, &nodes)?)
            }
            (None, None) if !block.id.is_striped() => None,
            _ => return Err(DataNodeError::peer("a group to scrub without policy or units")),
        };
        let units = order.unit_indices.unwrap_or_else(|| vec![0; nodes.len()]);
        if group.is_some() && (1..units.len()).any(|at| units[..at].contains(&units[at])) {
            return Err(DataNodeError::peer("a unit is to be scrubbed twice"));
        }
        let places = units.into_iter().zip(nodes).zip(uuids).map(|((unit, node), storage_uuid)| {
            let unit = UnitIndex(unit);
            let block = group.as_ref().map_or(block.clone(), |group| group.block(unit));
            Place { unit, block, node, storage_uuid }
        });
        let places = places.collect();
        Ok(Work { block, group, places })
    }

    async fn read(&self, node: &Arc<Node>) -> Result<Seen> {
        let wanted = self
            .places
            .iter()
            .map(|place| Wanted::new(place.block.clone(), vec![place.node.clone()]));
        let buffers = Buffers::new(self.places.len());
        let mut readers = Readers::start(node, wanted.collect(), &buffers);
        // CRC32C so far; `None` once a place could not be read.
        let mut crcs = vec![Some(0); self.places.len()];
        let mut agreement = self.group.as_ref().map(|group| Agreement::new(&group.codec));
        let longest = self.places.iter().map(|place| place.block.len).max().unwrap_or(0);
        let mut start = 0;
        while start < longest {
            let end = (start + SLICE).min(longest);
            let len = |place: &Place| place.block.len.clamp(start, end) - start;
            node.scrubs.budget.pass(self.places.iter().map(len).sum()).await;
            let ranges = self.places.iter().map(|place| start..end.min(place.block.len).max(start));
            let outcomes = readers.step(ranges).await?;
            let pieces = outcomes.into_iter().zip(&mut crcs).map(|(outcome, crc)| {
                let piece = outcome?.ok();
                *crc = piece.as_ref().and_then(|piece| piece.crc32c);
                piece
            });
            let pieces: Vec<Option<Piece>> = pieces.collect();
            if let (Some(group), Some(agreement)) = (&self.group, &mut agreement) {
                let slices = self.slices(group, &crcs, &pieces, (end - start) as usize);
                let views: Vec<Option<&[u8]>> = slices.iter().map(Option::as_deref).collect();
                let compared = agreement.compare(&views);
                compared.map_err(|error| DataNodeError::peer(error.to_string()))?;
            }
            start = end;
        }
        let compared = agreement.filter(Agreement::is_complete);
        Ok(Seen {
            crcs: crcs.iter().map(|crc| crc.filter(|_| longest > 0)).collect(),
            agree: compared.as_ref().map(Agreement::all_agree),
            suspects: compared.iter().flat_map(Agreement::suspects).map(|u| u as u8).collect(),
        })
    }

    /// The bytes of each unit, with zeros behind its end; `None` for one that cannot be read.
    fn slices<'a>(
        &self,
        group: &Plan,
        crcs: &[Option<u32>],
        pieces: &'a [Option<Piece>],
        len: usize,
    ) -> Vec<Option<Cow<'a, [u8]>>> {
        let slice = |unit: u8| {
            let place = self.places.iter().position(|place| place.unit.0 == unit);
            let is_empty = group.len(UnitIndex(unit)) == 0;
            let bytes = match place.filter(|_| !is_empty) {
                Some(at) if crcs[at].is_none() => return None,
                Some(at) => pieces[at].as_ref().map_or(&[][..], |piece| &piece.data[..]),
                None if is_empty => &[],
                None => return None,
            };
            if bytes.len() == len {
                return Some(Cow::Borrowed(bytes));
            }
            let mut padded = bytes.to_vec();
            padded.resize(len, 0);
            Some(Cow::Owned(padded))
        };
        (0..group.geometry.units() as u8).map(slice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_wire::proto::hdfs::{
        DatanodeInfoProto, DatanodeInfosProto, ErasureCodingPolicyProto, ExtendedBlockProto,
        StorageUuidsProto,
    };

    fn order(id: i64, units: Option<&[u8]>, places: usize) -> ScrubOrderProto {
        let block = ExtendedBlockProto {
            block_id: id as u64,
            num_bytes: Some(5 << 20),
            ..ExtendedBlockProto::default()
        };
        let policy = ErasureCodingPolicyProto { id: 2, ..ErasureCodingPolicyProto::default() };
        ScrubOrderProto {
            block,
            datanodes: DatanodeInfosProto { datanodes: vec![DatanodeInfoProto::default(); places] },
            storage_uuids: StorageUuidsProto { storage_uuids: vec![String::new(); places] },
            unit_indices: units.map(<[u8]>::to_vec),
            ec_policy: units.map(|_| policy),
            bytes_per_second: 1,
        }
    }

    #[test]
    fn orders_that_contradict_themselves_are_refused() {
        const GROUP: i64 = i64::MIN + 16;
        let is_taken = |order| Work::decode(order).is_ok();
        assert!(is_taken(order(7, None, 3)) && is_taken(order(GROUP, Some(&[0, 2, 4]), 3)));
        assert!(!is_taken(order(7, None, 0)) && !is_taken(order(7, None, MAX_PLACES + 1)));
        assert!(!is_taken(order(GROUP, None, 3)), "a group without units");
        assert!(!is_taken(order(GROUP + 1, Some(&[0, 2, 4]), 3)), "a unit's id");
        assert!(!is_taken(order(7, Some(&[0, 2, 4]), 3)), "no group");
        assert!(!is_taken(order(GROUP, Some(&[0, 2]), 3)), "a place without a unit");
        assert!(!is_taken(order(GROUP, Some(&[0, 2, 2]), 3)), "a unit twice");
        assert!(!is_taken(order(GROUP, Some(&[0, 2, 5]), 3)), "no such unit");
        let no_policy = ScrubOrderProto { ec_policy: None, ..order(GROUP, Some(&[0]), 1) };
        assert!(!is_taken(no_policy));
    }
}
