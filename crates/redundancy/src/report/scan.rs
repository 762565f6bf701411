//! What block scanners have summed: replicas whose bytes are not those first written, though their chunk CRCs fit.

use super::judge::{Verdict, is_altered, judge};
use crate::Changes;
use crate::ReplicaState;
use crate::ReportedReplica;
use crate::block::{BlockLookup, BlockRef, BlockState};
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::places::bad::Bad;

impl Cluster {
    /// Takes what DataNodes have summed of finalized replicas that were there all along: one whose bytes are not
    /// those first written is marked bad, though its own chunk CRCs fit. Says nothing of a replica without a
    /// record, and records nothing: what is there now is not known to be what was written.
    pub fn scan_report(
        &mut self,
        lookup: &dyn BlockLookup,
        node: NodeHandle,
        storage_uuid: &str,
        sums: &[(BlockRef, u32)],
    ) -> Changes {
        let mut changes = Changes::default();
        for (block, crc32c) in sums.iter().copied() {
            let id = block.id.group();
            let replica =
                ReportedReplica { block, state: ReplicaState::Finalized, crc32c: Some(crc32c) };
            let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
            let is_good = matches!(judge(facts.as_ref(), &replica), Verdict::Good);
            let place = self.blocks.of(id).find(|place| {
                let storage = self.storage(place.storage);
                let is_here = storage.node == node && storage.uuid == storage_uuid;
                is_here && place.unit == block.id.unit() && !place.corrupt
            });
            let Some(storage) = place.map(|place| place.storage) else { continue };
            if is_good && is_altered(lookup, &replica) {
                changes.altered.push(block);
                self.mark_bad(lookup, storage, Bad { block, stale: false, crc32c: Some(crc32c) });
            }
        }
        changes
    }
}
