//! Rebuilding lost units of a group: members as they were written, parities by encoding again. Nothing becomes a
//! replica unless it is what is recorded.

use super::super::source::Wanted;
use super::super::target::Destination;
use super::encode::PARITY_CHECKSUM;
use super::order::{Place, RebuildWork};
use super::sinks::Sinks;
use super::units::{SLICE, Units, Unread};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_codec::crc;
use cairn_stripe::group::Part;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Why a unit has not become a replica.
pub(super) struct Lost {
    /// It is the fault of its target.
    pub(super) by_target: bool,
    pub(super) error: Arc<DataNodeError>,
}

/// What became of a target.
pub(super) type Ended = std::result::Result<(), Lost>;

/// Why an attempt has made nothing.
enum Failure {
    /// A source could not be read.
    Unread(Unread),
    /// What was rebuilt is not what is recorded: one of the sources is wrong.
    Unproven(String),
    Failed(DataNodeError),
}

impl From<DataNodeError> for Failure {
    fn from(error: DataNodeError) -> Failure {
        Failure::Failed(error)
    }
}

/// Rebuilds all targets in one pass, with other sources after each attempt that fails.
pub(super) async fn rebuild(node: &Arc<Node>, work: &RebuildWork) -> Result<Vec<Ended>> {
    let mut sources = work.sources.clone();
    // Sources that were left out once, when which one is wrong is not known.
    let mut tried: Vec<usize> = Vec::new();
    let mut aside: Option<Place> = None;
    loop {
        let slots: Vec<usize> = sources.iter().map(|source| source.slot).collect();
        let chosen = work.group.layout.sources(&slots);
        let chosen = chosen.map_err(|error| DataNodeError::peer(error.to_string()))?;
        match attempt(node, work, &sources, &chosen).await {
            Ok(ended) => return Ok(ended),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::Unread(Unread { slot, error })) => {
                let group = work.group.record.handle;
                tracing::warn!(%group, slot, %error, "a source cannot be read, trying without it");
                let before = sources.len();
                sources.retain(|source| source.slot != slot);
                if sources.len() == before {
                    return Err(error);
                }
            }
            Err(Failure::Unproven(why)) => {
                let group = work.group.record.handle;
                tracing::error!(%group, why, "dropped what was rebuilt");
                sources.extend(aside.take());
                let next = chosen.iter().copied().find(|slot| !tried.contains(slot));
                let next = next.and_then(|slot| sources.iter().position(|s| s.slot == slot));
                let Some(next) = next else {
                    return Err(DataNodeError::peer(format!(
                        "{why}, and no other sources are left"
                    )));
                };
                let left_out = sources.remove(next);
                tried.push(left_out.slot);
                aside = Some(left_out);
            }
        }
    }
}

async fn attempt(
    node: &Arc<Node>,
    work: &RebuildWork,
    sources: &[Place],
    chosen: &[usize],
) -> Result<Vec<Ended>, Failure> {
    let (group, layout) = (&work.group, &work.group.layout);
    let k = layout.k();
    let has_parities = work.targets.iter().any(|target| target.slot >= k);
    // To encode, all members must be known.
    let mut lost: Vec<usize> = work.targets.iter().map(|target| target.slot).collect();
    if has_parities {
        lost.extend(layout.members().filter(|slot| !chosen.contains(slot)));
        lost.sort_unstable();
        lost.dedup();
    }
    let holders = |slot: usize| {
        let nodes = sources.iter().filter(|source| source.slot == slot);
        nodes.map(|source| source.node.clone()).collect()
    };
    let wanted = chosen.iter().map(|slot| Wanted {
        until: layout.len(*slot, Part::Data),
        is_urgent: work.is_urgent,
        ..Wanted::new(group.block(*slot), holders(*slot))
    });
    let mut units = Units::start(node, chosen.to_vec(), wanted.collect());
    let mut sinks = Sinks::start(node, destinations(work));
    let mut chunk_crcs = vec![Vec::new(); k];
    let made = async {
        let mut start = 0;
        while start < layout.data_len() {
            let range = start..(start + step_len(group.checksum.chunk_len)).min(layout.data_len());
            let read = units.step(layout, Part::Data, &range).await.map_err(Failure::Unread)?;
            node.metrics.rebuilding.bytes_read.add(chosen.len() as u64 * (range.end - range.start));
            let rebuilt = decode(work, &read, &lost)?;
            for (target, bytes) in outputs(work, &lost, &rebuilt) {
                let slot = work.targets[target].slot;
                let own = layout.range(slot, Part::Data, &range);
                sinks.write(target, &bytes[..(own.end - own.start) as usize]).await;
            }
            if has_parities {
                let decoded = lost.iter().zip(&rebuilt).map(|(slot, bytes)| (*slot, &bytes[..]));
                let own = read.iter().enumerate();
                let own = own.filter_map(|(slot, bytes)| Some((slot, bytes.as_deref()?)));
                sum(work, &range, own.chain(decoded), &mut chunk_crcs);
            }
            start = range.end;
            if (0..work.targets.len()).all(|at| !sinks.is_open(at)) {
                // They tell why.
                return Ok(());
            }
        }
        if has_parities {
            write_ends(work, &mut sinks, chunk_crcs).await?;
        }
        sinks.end().await;
        prove(work, &sinks, &units)
    };
    match made.await {
        Ok(()) => {}
        Err(failure) => {
            sinks.discard().await;
            return Err(failure);
        }
    }
    let lost = |error| Lost { by_target: true, error: Arc::new(error) };
    Ok(sinks.commit().await.into_iter().map(|done| done.map_err(lost)).collect())
}

fn destinations(work: &RebuildWork) -> Vec<Destination> {
    let destination = |place: &Place| Destination {
        block: work.group.block(place.slot),
        target: place.target(),
        checksum: match place.slot < work.group.layout.k() {
            true => work.group.checksum,
            false => PARITY_CHECKSUM,
        },
        is_urgent: work.is_urgent,
        is_synced: true,
    };
    work.targets.iter().map(destination).collect()
}

/// Bytes of a step: whole chunks.
fn step_len(chunk_len: usize) -> u64 {
    let chunk = chunk_len as u64;
    (SLICE / chunk).max(1) * chunk
}

/// The `lost` units' bytes.
fn decode(
    work: &RebuildWork,
    read: &[Option<impl Deref<Target = [u8]>>],
    lost: &[usize],
) -> Result<Vec<Vec<u8>>> {
    let views: Vec<Option<&[u8]>> = read.iter().map(|unit| unit.as_deref()).collect();
    let len = views.iter().flatten().next().map_or(0, |unit| unit.len());
    let mut out = vec![vec![0; len]; lost.len()];
    let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    let decoded = work.group.codec.decode(&views, lost, &mut slices);
    decoded.map_err(|error| DataNodeError::peer(error.to_string()))?;
    Ok(out)
}

/// What of `rebuilt` is for which target.
fn outputs<'a>(
    work: &'a RebuildWork,
    lost: &'a [usize],
    rebuilt: &'a [Vec<u8>],
) -> impl Iterator<Item = (usize, &'a [u8])> {
    work.targets.iter().enumerate().filter_map(|(at, target)| {
        let found = lost.iter().position(|slot| *slot == target.slot)?;
        Some((at, &rebuilt[found][..]))
    })
}

/// Adds the CRCs of the members' chunks in `range`.
fn sum<'a>(
    work: &RebuildWork,
    range: &Range<u64>,
    units: impl Iterator<Item = (usize, &'a [u8])>,
    chunk_crcs: &mut [Vec<u8>],
) {
    let checksum = work.group.checksum;
    let k = chunk_crcs.len();
    for (slot, bytes) in units.filter(|(slot, _)| *slot < k) {
        let own = work.group.layout.range(slot, Part::Data, range);
        let bytes = &bytes[..(own.end - own.start) as usize];
        let mut crcs = vec![0; checksum.kind.total_len(checksum.chunk_len, bytes.len())];
        crc::chunk_crcs(checksum.kind, checksum.chunk_len, bytes, &mut crcs);
        chunk_crcs[slot].append(&mut crcs);
    }
}

/// Writes the second and third part of the parities among the targets.
async fn write_ends(
    work: &RebuildWork,
    sinks: &mut Sinks,
    mut chunk_crcs: Vec<Vec<u8>>,
) -> Result<(), Failure> {
    let (group, layout) = (&work.group, &work.group.layout);
    let len = layout.part_len(Part::Sums) as usize;
    for (slot, member) in group.record.members.iter().enumerate() {
        let crcs = &mut chunk_crcs[slot];
        if member.is_some_and(|member| crc::crc32c(0, crcs) != member.sums_crc32c) {
            return Err(Failure::Unproven(format!("the CRCs of slot {slot} are others")));
        }
        crcs.resize(len, 0);
    }
    let data: Vec<&[u8]> = chunk_crcs.iter().map(Vec::as_slice).collect();
    let mut parities = vec![vec![0; len]; layout.m()];
    let mut out: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
    group.codec.encode(&data, &mut out).map_err(|error| DataNodeError::peer(error.to_string()))?;
    let tail = group.record.to_tail(|bytes| crc::crc32c(0, bytes));
    for (at, target) in work.targets.iter().enumerate() {
        if let Some(parity) = target.slot.checked_sub(layout.k()) {
            sinks.write(at, &parities[parity]).await;
            sinks.write(at, &tail).await;
        }
    }
    Ok(())
}

/// Compares what was read and rebuilt with what is recorded.
fn prove(work: &RebuildWork, sinks: &Sinks, units: &Units) -> Result<(), Failure> {
    let group = &work.group;
    for (slot, crc) in units.crcs().filter(|(slot, _)| *slot < group.layout.k()) {
        if crc != group.recorded(slot) {
            let id = group.block(slot).id;
            return Err(Failure::Unproven(format!("{id}, a source, is not what is recorded")));
        }
    }
    for (at, target) in work.targets.iter().enumerate().filter(|(at, _)| sinks.is_open(*at)) {
        let block = group.block(target.slot);
        let (len, crc) = sinks.written(at);
        if len != block.len || crc != group.recorded(target.slot) {
            let id = block.id;
            return Err(Failure::Unproven(format!("{id} was rebuilt otherwise than recorded")));
        }
    }
    Ok(())
}
