//! CRCs that came late.

use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::{block, group, perm};
use cairn_stripe::{BlockId, GenerationStamp};

/// CRCs of one block's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCrcs {
    /// The block or group.
    pub id: BlockId,
    /// The stamp of the replicas that were summed.
    pub gs: GenerationStamp,
    /// CRC32C by unit index, `None` where not known.
    pub units: Vec<Option<u32>>,
}

encode_struct!(BlockCrcs { id, gs, units });

/// Records CRCs of units that were reported after their block was committed.
///
/// Answer: `Outcome::Done`; blocks that are gone or have another stamp are passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordUnitCrcs {
    /// Blocks and their units' CRCs.
    pub blocks: Vec<BlockCrcs>,
}

encode_struct!(RecordUnitCrcs { blocks });

/// Replaces the recorded CRC of a replicated block that most of its replicas have proven wrong, or that of a unit that
/// the other units of its group have.
///
/// Answer: `Outcome::Done`; nothing happens if the block is gone, is in a contiguous group, has another stamp, or another
/// record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceCrc {
    /// The block, or the internal block by its own id.
    pub id: BlockId,
    /// The stamp of the replicas.
    pub gs: GenerationStamp,
    /// The record that is wrong.
    pub recorded: u32,
    /// CRC32C of the replicas.
    pub crc32c: u32,
}

encode_struct!(ReplaceCrc { id, gs, recorded, crc32c });

impl ReplaceCrc {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let unit = self.id.unit().as_usize();
        if let Some(mut block) = block::get(cx.store, self.id.group())?
            && block.gs == self.gs
            && block.is_final()
            // What the parities are made of was read whole, and gave its record.
            && !block.is_coded()
            && let Some(record) = block.unit_crcs.get_mut(unit)
            && *record == Some(self.recorded)
        {
            *record = Some(self.crc32c);
            block::put(cx.store, &block)?;
        }
        Ok(Outcome::Done)
    }
}

impl RecordUnitCrcs {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        for reported in &self.blocks {
            if reported.id.is_parity() {
                record_of_parities(cx, reported)?;
                continue;
            }
            let Some(mut block) = block::get(cx.store, reported.id)? else { continue };
            // While the block is open its bytes, and so their sums, can still change.
            if block.gs == reported.gs && block.is_final() {
                ops::merge_crcs(&mut block.unit_crcs, &reported.units);
                block::put(cx.store, &block)?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Records the CRCs of parities that a group was taken over without.
fn record_of_parities(cx: &mut Context<'_, '_>, reported: &BlockCrcs) -> Result<()> {
    let found = group::get(cx.store, reported.id)?;
    let Some(mut group) = found.filter(|group| group.gs == reported.gs && group.is_formed()) else {
        return Ok(());
    };
    let before = group.parities.clone();
    let told = reported.units.iter().skip(usize::from(group.k));
    for (parity, told) in group.parities.iter_mut().zip(told) {
        if let (None, Some(crc32c)) = (parity.known_crc(), told) {
            parity.crc32c = *crc32c;
        }
    }
    match group.parities == before {
        true => Ok(()),
        false => group::put(cx.store, &group),
    }
}
