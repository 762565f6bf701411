//! What the log is told because of what DataNodes have told: blocks that are complete now, CRCs to record, records of
//! CRCs that are wrong.
//!
//! These commands rest on nothing that they do not check themselves: each names its block's stamp.

use crate::contiguous;
use crate::effects::FollowUp;
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs, ReplaceCrc};
use cairn_redundancy::{BlockLookup, DisprovedCrc, LateCrc};
use cairn_stripe::BlockId;
use std::collections::BTreeMap;

/// Submits what follows. Blocks of open files that have their minimum of replicas are complete: what they lack is
/// mended from now on, however long their file stays open.
///
/// Rests on nothing: the commands name stamps, and pass over what has another one.
pub async fn submit(op: &impl Op, follow_up: FollowUp) -> Result<(), OpError> {
    let FollowUp { ready, late_crcs, unneeded } = follow_up;
    if !ready.is_empty() {
        let blocks = op.look(|look| with_crcs(look, &ready));
        op.submit(Submission::own(CompleteBlocks { blocks })).await?;
    }
    if !late_crcs.is_empty() {
        op.submit(Submission::own(record_command(late_crcs))).await?;
    }
    contiguous::end(op, &unneeded).await
}

/// Those of the blocks that are still there, with the CRCs that are known of them.
fn with_crcs(look: &Look<'_>, ready: &[BlockId]) -> Vec<BlockCrcs> {
    let lookup = look.lookup();
    let crcs = |id: &BlockId| {
        let facts = lookup.block(*id)?;
        Some(BlockCrcs { id: *id, gs: facts.gs, units: look.cluster.unit_crcs(*id, &facts) })
    };
    ready.iter().filter_map(crcs).collect()
}

/// The command that records CRCs, block by block.
fn record_command(all: Vec<LateCrc>) -> RecordUnitCrcs {
    let mut blocks: BTreeMap<BlockId, BlockCrcs> = BTreeMap::new();
    for late in all {
        let new = || BlockCrcs { id: late.id, gs: late.gs, units: Vec::new() };
        let units = &mut blocks.entry(late.id).or_insert_with(new).units;
        if units.len() <= late.unit.as_usize() {
            units.resize(late.unit.as_usize() + 1, None);
        }
        units[late.unit.as_usize()] = Some(late.crc32c);
    }
    RecordUnitCrcs { blocks: blocks.into_values().collect() }
}

/// Replaces a record that replicas have proven wrong.
///
/// Rests on nothing: the command names the stamp and the record.
pub async fn replace_crc(op: &impl Op, disproved: DisprovedCrc) -> Result<(), OpError> {
    let DisprovedCrc { id, gs, recorded, crc32c } = disproved;
    op.submit(Submission::own(ReplaceCrc { id, gs, recorded, crc32c })).await.map(drop)
}
