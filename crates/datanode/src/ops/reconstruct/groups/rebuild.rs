//! Rebuilding lost units of a group: members as they were written, parities by encoding again. Nothing becomes a
//! replica unless it is what is recorded.

use super::super::source::Wanted;
use super::super::target::Destination;
use super::order::{Place, RebuildWork};
use super::sinks::Sinks;
use super::units::{SLICE, Units, Unread};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_replica::group::encode::PARITY_CHECKSUM;
use cairn_replica::group::{Rebuilder, Unbelieved};
use cairn_stripe::group::{Part, Sources};
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
    Unproven(Unbelieved),
    Failed(DataNodeError),
}

impl From<DataNodeError> for Failure {
    fn from(error: DataNodeError) -> Failure {
        Failure::Failed(error)
    }
}

impl From<Unbelieved> for Failure {
    fn from(error: Unbelieved) -> Failure {
        match error.is_about_bytes() {
            true => Failure::Unproven(error),
            false => Failure::Failed(error.into()),
        }
    }
}

/// Rebuilds all targets in one pass, with other sources after each attempt that fails.
pub(super) async fn rebuild(node: &Arc<Node>, work: &RebuildWork) -> Result<Vec<Ended>> {
    let mut sources = Sources::new(work.sources.iter().map(|source| source.slot));
    let group = work.group.record.handle;
    loop {
        let chosen = sources.chosen(&work.group.layout);
        let chosen = chosen.map_err(|error| DataNodeError::peer(error.to_string()))?;
        match attempt(node, work, &chosen).await {
            Ok(ended) => return Ok(ended),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::Unread(Unread { slot, error })) => {
                tracing::warn!(%group, slot, %error, "a source cannot be read, trying without it");
                if !sources.lost(slot) {
                    return Err(error);
                }
            }
            Err(Failure::Unproven(why)) => {
                tracing::error!(%group, %why, "dropped what was rebuilt");
                if !sources.unbelieved(why.slot(), &chosen) {
                    return Err(DataNodeError::peer(format!(
                        "{why}, and no other sources are left"
                    )));
                }
            }
        }
    }
}

async fn attempt(
    node: &Arc<Node>,
    work: &RebuildWork,
    chosen: &[usize],
) -> Result<Vec<Ended>, Failure> {
    let (group, layout) = (&work.group, &work.group.layout);
    let targets = work.targets.iter().map(|target| target.slot).collect();
    let mut rebuilder = Rebuilder::new(group, targets, chosen);
    let holders = |slot: usize| {
        let nodes = work.sources.iter().filter(|source| source.slot == slot);
        nodes.map(|source| source.node.clone()).collect()
    };
    let wanted = chosen.iter().map(|slot| Wanted {
        until: layout.len(*slot, Part::Data),
        is_urgent: work.is_urgent,
        ..Wanted::new(group.block(*slot), holders(*slot))
    });
    let mut units = Units::start(node, chosen.to_vec(), wanted.collect());
    let mut sinks = Sinks::start(node, destinations(work));
    let made = async {
        let mut start = 0;
        while start < layout.data_len() {
            let range = start..(start + step_len(group.checksum.chunk_len)).min(layout.data_len());
            let read = units.step(layout, Part::Data, &range).await.map_err(Failure::Unread)?;
            node.metrics.rebuilding.bytes_read.add(chosen.len() as u64 * (range.end - range.start));
            write(&mut sinks, rebuilder.slice(&range, &read)?).await;
            start = range.end;
            if (0..work.targets.len()).all(|at| !sinks.is_open(at)) {
                // They tell why.
                return Ok(());
            }
        }
        write(&mut sinks, rebuilder.ends()?).await;
        sinks.end().await;
        for (slot, crc) in units.crcs() {
            rebuilder.check_source(slot, crc)?;
        }
        for at in (0..work.targets.len()).filter(|at| sinks.is_open(*at)) {
            let (len, crc) = sinks.written(at);
            rebuilder.check_result(at, len, crc)?;
        }
        Ok::<(), Failure>(())
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

async fn write(sinks: &mut Sinks, of_targets: Vec<Vec<u8>>) {
    for (at, bytes) in of_targets.iter().enumerate() {
        sinks.write(at, bytes).await;
    }
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
