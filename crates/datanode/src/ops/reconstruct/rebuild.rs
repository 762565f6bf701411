//! One attempt at rebuilding: read, decode, prove, commit.

use super::buffers::{Buffer, Buffers};
use super::gather::{Gather, Gathered};
use super::plan::Plan;
use super::target::{self, Destination, Order};
use crate::dataset::Checksum;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_codec::crc::{self, ChecksumKind};
use cairn_replica::UnitSum;
use cairn_stripe::UnitIndex;
use cairn_stripe::rebuild::{Rebuild, Test};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Steps start at multiples of this, which every usual chunk length divides.
const STEP_UNIT: u64 = 64 << 10;
/// Largest step: what is asked for of one unit at once.
const MAX_STEP: u64 = 16 << 20;
/// How units are checked whose sources have no CRCs, or chunks that do not divide a step.
const DEFAULT_CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };

/// Why an attempt ended without replicas.
pub(super) enum Failure {
    /// Sources are missing.
    Failed(DataNodeError),
    /// All targets have failed.
    NoTarget(Ended),
    /// What was decoded is not what was written.
    Unproven {
        /// What differs.
        why: String,
        /// The units it was decoded from.
        used: Vec<UnitIndex>,
    },
}

impl From<DataNodeError> for Failure {
    fn from(error: DataNodeError) -> Failure {
        Failure::Failed(error)
    }
}

/// What has become of the targets of an attempt.
pub(super) struct Ended {
    /// How many have replicas.
    pub(super) committed: usize,
    /// The others, by their place in the plan.
    pub(super) failed: Vec<(usize, DataNodeError)>,
}

/// Rebuilds all lost units in one pass; returns which have become replicas. Units that turn out to be bad
/// or slow are noted in `rebuild`. Nothing stays on the targets unless all is proven.
pub(super) async fn attempt(
    node: &Arc<Node>,
    plan: &Plan,
    rebuild: &mut Rebuild,
) -> Result<Ended, Failure> {
    let step_len = node.config.reconstruction_buffer_len.clamp(1, MAX_STEP);
    let step_len = step_len.next_multiple_of(STEP_UNIT);
    let len = plan.targets.iter().map(|target| plan.len(target.unit)).max().unwrap_or(0);
    let mut gather = Gather::new(node, plan, rebuild);
    let buffers = Buffers::new(plan.targets.len() * target::MAX_HELD);
    let mut outputs: Option<Outputs> = None;
    let mut lost: Vec<UnitIndex> = plan.targets.iter().map(|target| target.unit).collect();
    let mut start = 0;
    let mut step = gather.begin(0..step_len.min(len), &lost)?;
    let proven = loop {
        let gathered = gather.finish(step).await?;
        let read = gathered.pieces.iter().flatten().map(|piece| piece.data.len() as u64);
        node.metrics.rebuilding.bytes_read.add(read.sum());
        let end = (start + step_len).min(len);
        // The next bytes travel while these are decoded and written.
        let next = match end < len {
            true => Some(gather.begin(end..(end + step_len).min(len), &lost)?),
            false => None,
        };
        let outputs = outputs
            .get_or_insert_with(|| Outputs::start(node, plan, checksum(&gathered, step_len)));
        let rebuilt = decode(plan, &gathered, &buffers)?;
        if let Err(why) = decode_back(plan, gather.rebuild(), &gathered, &rebuilt) {
            break Err(why);
        }
        lost = outputs.write(plan, start, &gathered.decode.lost, rebuilt).await;
        if lost.is_empty() {
            break Ok(());
        }
        match next {
            Some(next) => (step, start) = (next, end),
            None => match gather.check_sources() {
                Ok(()) => break outputs.prove(plan, gather.rebuild()),
                wrong => break wrong,
            },
        }
    };
    let outputs = outputs.ok_or(DataNodeError::Stopped)?;
    match proven {
        Ok(()) => match outputs.commit(plan).await {
            ended @ Ended { committed: 0, .. } => Err(Failure::NoTarget(ended)),
            ended => Ok(ended),
        },
        Err(why) => {
            outputs.discard().await;
            Err(Failure::Unproven { why, used: gather.used() })
        }
    }
}

/// The checksum that the rebuilt units get: that of their sources.
fn checksum(gathered: &Gathered, step_len: u64) -> Checksum {
    let of_sources = gathered.pieces.iter().flatten().map(|piece| piece.checksum);
    let usable = |checksum: &Checksum| {
        checksum.kind != ChecksumKind::Null && step_len.is_multiple_of(checksum.chunk_len as u64)
    };
    of_sources.into_iter().find(usable).unwrap_or(DEFAULT_CHECKSUM)
}

/// The lost units' bytes, in the order of `gathered.decode.lost`, all of one length.
pub(super) fn decode(
    plan: &Plan,
    gathered: &Gathered,
    buffers: &Arc<Buffers>,
) -> Result<Vec<Buffer>> {
    if gathered.decode.lost.is_empty() {
        return Ok(Vec::new());
    }
    let len = gathered.decode.range_in_cell.end as usize;
    let padded = padded_sources(gathered, len);
    let units: Vec<Option<&[u8]>> = padded.iter().map(Option::as_deref).collect();
    let lost: Vec<usize> = gathered.decode.lost.iter().map(|unit| unit.as_usize()).collect();
    let mut out: Vec<Vec<u8>> = lost.iter().map(|_| buffers.take(len)).collect();
    decode_units(plan, &units, &lost, &mut out)?;
    Ok(out.into_iter().map(|bytes| buffers.lend(bytes)).collect())
}

fn decode_units(
    plan: &Plan,
    units: &[Option<&[u8]>],
    lost: &[usize],
    out: &mut [Vec<u8>],
) -> Result<()> {
    let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    plan.codec
        .decode(units, lost, &mut slices)
        .map_err(|error| DataNodeError::peer(format!("decoding {}: {error}", plan.group.id)))
}

/// The sources by unit, with zeros where a unit has ended.
fn padded_sources(gathered: &Gathered, len: usize) -> Vec<Option<std::borrow::Cow<'_, [u8]>>> {
    let mut padded = vec![None; gathered.pieces.len()];
    for unit in &gathered.decode.sources {
        let bytes = gathered.pieces[unit.as_usize()].as_ref().map_or(&[][..], |p| &p.data[..]);
        let whole = match bytes.len() == len {
            true => bytes.into(),
            false => {
                let mut zeros = bytes.to_vec();
                zeros.resize(len, 0);
                zeros.into()
            }
        };
        padded[unit.as_usize()] = Some(whole);
    }
    padded
}

/// Decodes a source back from the rebuilt units and the other sources, where that is to be done.
fn decode_back(
    plan: &Plan,
    rebuild: &Rebuild,
    gathered: &Gathered,
    rebuilt: &[impl Deref<Target = [u8]>],
) -> Result<(), String> {
    let tests = rebuild.tests(&gathered.decode);
    if tests.is_empty() {
        return Ok(());
    }
    let len = gathered.decode.range_in_cell.end as usize;
    let sources = padded_sources(gathered, len);
    let mut back = [vec![0; len]];
    for Test { source, rebuilt: tested, others } in tests {
        let mut units: Vec<Option<&[u8]>> = vec![None; plan.geometry.units()];
        for (unit, bytes) in gathered.decode.lost.iter().zip(rebuilt) {
            units[unit.as_usize()] = tested.contains(unit).then_some(&**bytes);
        }
        for unit in others {
            units[unit.as_usize()] = sources[unit.as_usize()].as_deref();
        }
        let checked = source.as_usize();
        decode_units(plan, &units, &[checked], &mut back).map_err(|e| e.to_string())?;
        if sources[checked].as_deref() != Some(&back[0][..]) {
            return Err(format!("unit {source} decoded back from the rebuilt units differs"));
        }
    }
    Ok(())
}

/// The targets of a reconstruction, those that have failed taken out.
struct Outputs {
    orders: Vec<Option<mpsc::Sender<Order>>>,
    checksum: Checksum,
    /// Of what was sent to each.
    sums: Vec<UnitSum>,
    tasks: JoinSet<(usize, Result<()>)>,
}

impl Outputs {
    fn start(node: &Arc<Node>, plan: &Plan, checksum: Checksum) -> Outputs {
        let mut tasks = JoinSet::new();
        let targets = 0..plan.targets.len();
        let destination = |at: usize| Destination {
            block: plan.block(plan.targets[at].unit),
            target: plan.targets[at].clone(),
            checksum,
            is_urgent: plan.is_urgent,
            is_synced: false,
        };
        let orders = targets.map(|at| Some(target::start(&mut tasks, node, at, destination(at))));
        let orders = orders.collect();
        let sums = plan.targets.iter().map(|_| UnitSum::default()).collect();
        Outputs { orders, checksum, sums, tasks }
    }

    /// Writes the rebuilt `units`' bytes from `start` on, each up to its end. Returns the units whose targets
    /// still take them. When there is none, all have told why.
    async fn write(
        &mut self,
        plan: &Plan,
        start: u64,
        units: &[UnitIndex],
        rebuilt: Vec<Buffer>,
    ) -> Vec<UnitIndex> {
        let Checksum { kind, chunk_len } = self.checksum;
        for (unit, mut bytes) in units.iter().zip(rebuilt) {
            let target = plan.targets.iter().position(|target| target.unit == *unit);
            let Some(at) = target else { continue };
            let Some(orders) = &self.orders[at] else { continue };
            let left = plan.len(*unit).saturating_sub(start);
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            if bytes.is_empty() {
                continue;
            }
            let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
            crc::chunk_crcs(kind, chunk_len, &bytes, &mut crcs);
            self.sums[at].add_chunks(start, self.checksum, &bytes, &crcs);
            if orders.send(Order::Write { data: bytes, crcs }).await.is_err() {
                self.orders[at] = None;
            }
        }
        let alive = plan.targets.iter().zip(&self.orders).filter(|(_, orders)| orders.is_some());
        alive.map(|(target, _)| target.unit).collect()
    }

    /// Compares what was written with what is recorded of it.
    fn prove(&self, plan: &Plan, rebuild: &Rebuild) -> Result<(), String> {
        let targets = plan.targets.iter().zip(&self.orders).zip(&self.sums);
        for ((target, _), sum) in targets.filter(|((_, orders), _)| orders.is_some()) {
            let crc = sum.of_first(plan.len(target.unit)).unwrap_or_default();
            rebuild.check_result(target.unit, crc).map_err(|unproven| unproven.to_string())?;
        }
        Ok(())
    }

    /// Makes replicas of the units whose targets still stand; returns of how many.
    async fn commit(mut self, plan: &Plan) -> Ended {
        for orders in self.orders.drain(..).flatten() {
            // A target that has failed says so below.
            let _ = orders.send(Order::Commit).await;
        }
        let (mut committed, mut failed) = (0, Vec::new());
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok((_, Ok(()))) => committed += 1,
                Ok((at, Err(error))) => {
                    let block = plan.block(plan.targets[at].unit).id;
                    tracing::warn!(%block, %error, "cannot write a rebuilt unit");
                    failed.push((at, error));
                }
                Err(error) => tracing::error!(%error, "a writer has ended"),
            }
        }
        Ended { committed, failed }
    }

    /// Drops what was written, and waits until the targets have.
    async fn discard(mut self) {
        self.orders.clear();
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests;
