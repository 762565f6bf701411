//! The data of a block group put together from its units, for readers who know no erasure coding.
//!
//! Each stripe is read as a whole, so that no unit is read twice where others are decoded from it. What is read is proven
//! by the CRCs of its unit's chunks; nothing of it becomes a replica.

use super::buffers::{Buffer, Buffers};
use super::gather::Gather;
use super::plan::Plan;
use super::rebuild;
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_process::disk_work::movable;
use cairn_wire::proto::datanode::GroupUnitProto;
use cairn_wire::proto::hdfs::{DatanodeInfoProto, ErasureCodingPolicyProto};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Places of units that the NameNode may name.
const MAX_PLACES: usize = 64;

/// A block group as it can be read.
pub(crate) struct View(Arc<Plan>);

impl View {
    /// A group whose cells are `chunk_len` bytes or a multiple of that. Fails if what the NameNode says makes no sense, or
    /// names fewer units than it takes.
    pub(crate) fn decode(
        group: Block,
        policy: &ErasureCodingPolicyProto,
        units: &[GroupUnitProto],
        chunk_len: usize,
    ) -> Result<View> {
        let units = &units[..units.len().min(MAX_PLACES)];
        let slot = |unit: &GroupUnitProto| u8::try_from(unit.slot).unwrap_or(u8::MAX);
        let slots: Vec<u8> = units.iter().map(slot).collect();
        let nodes: Vec<DatanodeInfoProto> =
            units.iter().map(|unit| unit.datanode.clone()).collect();
        let plan = Plan::for_scrub(group, policy, &slots, &nodes)?;
        if !plan.geometry.cell_len().is_multiple_of(chunk_len as u64) {
            return Err(DataNodeError::peer("its cells are no whole chunks"));
        }
        if !plan.any_sources().is_possible() {
            return Err(DataNodeError::peer("too few of its units are on DataNodes that answer"));
        }
        Ok(View(Arc::new(plan)))
    }

    /// Bytes of data.
    pub(crate) fn len(&self) -> u64 {
        self.0.group.len
    }
}

/// Reads a range of the data in order, a step ahead of who takes it. Dropping it ends all reads.
pub(crate) struct ViewReader {
    pieces: mpsc::Receiver<Result<Buffer>>,
    _task: JoinSet<()>,
}

impl ViewReader {
    /// `range` lies within the group.
    pub(crate) fn start(node: &Arc<Node>, view: &View, range: Range<u64>) -> ViewReader {
        let (sender, pieces) = mpsc::channel(1);
        let mut task = JoinSet::new();
        let (node, plan) = (node.clone(), view.0.clone());
        task.spawn(movable(async move {
            if let Err(error) = read(&node, &plan, range, &sender).await {
                // Who has gone needs no error.
                let _ = sender.send(Err(error)).await;
            }
        }));
        ViewReader { pieces, _task: task }
    }

    /// The next bytes, whole chunks of them but at the end of the range; `None` behind it.
    pub(crate) async fn next(&mut self) -> Option<Result<Buffer>> {
        self.pieces.recv().await
    }
}

async fn read(
    node: &Arc<Node>,
    plan: &Plan,
    range: Range<u64>,
    to: &mpsc::Sender<Result<Buffer>>,
) -> Result<()> {
    let mut sources = plan.any_sources();
    let steps = plan.geometry.steps(range);
    let until = steps.iter().map(|step| step.range_in_block.end).max().unwrap_or(0);
    let mut gather = Gather::new(node, plan, &mut sources).until(until);
    let buffers = Buffers::new(plan.geometry.units());
    for step in steps {
        let began = gather.begin_units(step.range_in_block, &step.units)?;
        let mut gathered = gather.finish(began).await?;
        let began = Instant::now();
        let decoded = rebuild::decode(plan, &gathered, &buffers)?;
        if !decoded.is_empty() {
            node.metrics.decodes.add(began.elapsed());
            node.metrics.decoded_bytes.add(decoded.iter().map(|bytes| bytes.len() as u64).sum());
        }
        let lost = gathered.decode.lost.clone();
        let mut decoded = lost.into_iter().zip(decoded).collect::<Vec<_>>();
        for unit in step.units {
            let at = decoded.iter().position(|(lost, _)| *lost == unit);
            let piece = match at {
                Some(at) => Some(decoded.swap_remove(at).1),
                None => gathered.pieces[unit.as_usize()].take().map(|piece| piece.data),
            };
            let piece = piece.ok_or(DataNodeError::Stopped)?;
            if to.send(Ok(piece)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
