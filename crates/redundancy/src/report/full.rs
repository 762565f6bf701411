//! Full reports, taken a step at a time: one of a million replicas must not hold up everybody else.
//!
//! A report is walked along in the order of ids, side by side with what is known of its storage. What
//! happens on the storage meanwhile is newer than the report, which says nothing of those blocks then.

use crate::block::BlockLookup;
use crate::clock::Now;
use crate::cluster::Cluster;
use crate::error::RedundancyError;
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::own_id;
use crate::replica::{Changes, ReportedReplica};
use crate::storage::StorageState;
use cairn_stripe::{BlockId, StorageType};

/// Replicas that one step looks at, and open blocks.
pub(super) const STEP: usize = 1000;

/// A call with which a DataNode tells all that it has. It counts until its node's next such call, registration or
/// death: then its lists are of an earlier time.
#[derive(Clone, Copy, Debug)]
pub struct ReportCall {
    node: NodeHandle,
    number: u64,
    lease_id: u64,
}

/// A full report of one storage on its way into what is known.
#[derive(Clone, Debug)]
pub struct FullReport {
    /// In the order of ids.
    replicas: Vec<ReportedReplica>,
    /// How many of these are taken.
    taken: usize,
    /// The last id that was looked at.
    after: Option<BlockId>,
    /// The last open block that was looked at.
    after_open: Option<BlockId>,
    /// The storage, and the number of the report, once it has begun.
    begun: Option<(StorageHandle, u64)>,
    /// Its node had heard who leads when it made the report.
    proves: bool,
}

impl FullReport {
    /// A report of those replicas. Sorts them, which needs no lock.
    pub fn new(mut replicas: Vec<ReportedReplica>) -> FullReport {
        replicas.sort_by_key(|replica| replica.block.id);
        FullReport { replicas, taken: 0, after: None, after_open: None, begun: None, proves: false }
    }

    /// The blocks and groups that the next step may ask for, in the order of their ids.
    pub fn next_blocks(&self) -> Vec<BlockId> {
        let mut blocks: Vec<BlockId> =
            self.next_replicas().iter().map(|replica| replica.block.id.group()).collect();
        blocks.dedup();
        blocks
    }

    /// The replicas that the next step takes.
    pub fn next_replicas(&self) -> &[ReportedReplica] {
        let end = self.replicas.len().min(self.taken + STEP);
        &self.replicas[self.taken..end]
    }

    /// How many replicas it names.
    pub fn replica_count(&self) -> usize {
        self.replicas.len()
    }
}

impl Cluster {
    /// Begins to take what a node tells with one call, if its lease allows for that. What it has told with an
    /// earlier one, and is not taken yet, is not taken any more.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#checkBlockReportLease`.
    pub fn begin_report_call(
        &mut self,
        node: NodeHandle,
        lease_id: u64,
        now: Now,
    ) -> Result<ReportCall, RedundancyError> {
        let uuid = || self.node(node).uuid.clone();
        if !self.node(node).alive {
            return Err(RedundancyError::UnregisteredNode { uuid: uuid() });
        }
        if !self.nodes.leases().is_valid(node, lease_id, now) {
            return Err(RedundancyError::InvalidReportLease { uuid: uuid(), lease_id });
        }
        let number = self.outdate_reports(node);
        Ok(ReportCall { node, number, lease_id })
    }

    /// All that a call has told is taken, and its lease used up if it was the last of its report. Fails if something
    /// newer came before that: then the rest was left out.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#removeBRLeaseIfNeeded`.
    pub fn end_report_call(
        &mut self,
        call: ReportCall,
        is_last: bool,
    ) -> Result<(), RedundancyError> {
        self.check_report_call(call)?;
        if is_last {
            self.nodes.leases_mut().use_up(call.node, call.lease_id);
        }
        Ok(())
    }

    fn check_report_call(&self, call: ReportCall) -> Result<(), RedundancyError> {
        let node = self.node(call.node);
        if node.report_call == call.number {
            return Ok(());
        }
        Err(RedundancyError::ReportOvertaken { uuid: node.uuid.clone() })
    }

    /// Something newer is known of a node than what it reports now. Returns the number of that.
    pub(crate) fn outdate_reports(&mut self, node: NodeHandle) -> u64 {
        let number = self.reports.next_number();
        let node = self.nodes.node_mut(node);
        node.report_call = number;
        for storage in &node.storages {
            self.reports.end(*storage);
        }
        number
    }

    /// Takes a full report of one storage as a whole.
    pub fn full_report(
        &mut self,
        lookup: &dyn BlockLookup,
        call: ReportCall,
        storage: (&str, StorageType),
        replicas: &[ReportedReplica],
        now: Now,
    ) -> Changes {
        let mut changes = Changes::default();
        let mut report = FullReport::new(replicas.to_vec());
        if let Err(refused) = self.begin_full_report(call, storage, &mut report) {
            changes.refused = Some(refused);
            return changes;
        }
        while self.full_report_step(lookup, &mut report, now, &mut changes) {}
        changes
    }

    /// Begins to take a full report of one storage: what it holds that was not known is added, what was
    /// known and is not in the report is gone. An earlier report that is still being taken ends. Fails if
    /// there can be no such storage, or something newer than the call is known of the node.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#processReport`, `#reportDiff`.
    pub fn begin_full_report(
        &mut self,
        call: ReportCall,
        (uuid, storage_type): (&str, StorageType),
        report: &mut FullReport,
    ) -> Result<(), RedundancyError> {
        self.check_report_call(call)?;
        let storage = self.storage_of(call.node, uuid, storage_type)?;
        let number = self.reports.next_number();
        report.begun = Some((storage, number));
        report.proves = self.nodes.leases().is_proof(call.lease_id);
        let entry = self.nodes.storage_mut(storage);
        if entry.state == StorageState::Failed && call.number > entry.lost_after {
            // A volume that is put back is reported before the next heartbeat names it.
            entry.state = StorageState::Normal;
            self.blocks.note_change_on(storage);
        }
        if self.nodes.storage(storage).state != StorageState::Failed {
            self.reports.begin(storage, number);
        }
        Ok(())
    }

    /// Takes the next step, and adds what follows from it to `changes`. Returns whether another is to
    /// follow. A report is at its end as well when its storage fails, or its node calls anew, dies or registers.
    pub fn full_report_step(
        &mut self,
        lookup: &dyn BlockLookup,
        report: &mut FullReport,
        now: Now,
        changes: &mut Changes,
    ) -> bool {
        let Some((storage, number)) = report.begun else { return false };
        if self.take_kept_of(lookup, storage, changes) {
            return true;
        }
        for _ in 0..STEP {
            if !self.reports.is_ongoing(storage, number) {
                return false;
            }
            let known = self.blocks.map().next_on(storage, report.after);
            let told = report.replicas.get(report.taken).copied();
            let gone = known.filter(|known| told.is_none_or(|told| *known < told.block.id));
            match (gone, told) {
                (Some(gone), _) => {
                    report.after = Some(gone);
                    if !self.reports.is_newer(storage, gone) {
                        self.remove_place(lookup, storage, gone);
                    }
                }
                (None, Some(told)) => {
                    report.after = Some(told.block.id);
                    report.taken += 1;
                    if !self.reports.is_newer(storage, told.block.id) {
                        self.take_replica(lookup, storage, told, None, changes);
                    }
                }
                (None, None) => {
                    if self.miss_open(storage, report) {
                        return true;
                    }
                    self.end_full_report(storage, report.proves, now);
                    return false;
                }
            }
        }
        true
    }

    /// Looks at some open blocks for what a storage had told of and does not name any more: it may be in no list of
    /// what the storage holds. Returns whether there are others.
    fn miss_open(&mut self, storage: StorageHandle, report: &mut FullReport) -> bool {
        let next: Vec<BlockId> =
            self.blocks.under_construction_after(report.after_open).take(STEP).collect();
        for id in &next {
            let told = self.blocks.construction(*id).map(|c| c.told_on(storage));
            for unit in told.unwrap_or_default() {
                let own_id = own_id(*id, unit);
                let named = report.replicas.binary_search_by_key(&own_id, |r| r.block.id);
                if named.is_err()
                    && !self.reports.is_newer(storage, own_id)
                    && let Some(construction) = self.blocks.construction_mut(*id)
                {
                    construction.miss(storage, unit);
                }
            }
        }
        report.after_open = next.last().copied();
        next.len() == STEP
    }

    fn end_full_report(&mut self, storage: StorageHandle, proves: bool, now: Now) {
        self.reports.end(storage);
        let entry = self.nodes.storage_mut(storage);
        let owner = entry.node;
        let first = proves && !std::mem::replace(&mut entry.reported, true);
        let node = self.nodes.node_mut(owner);
        node.last_report_mono_ms = now.mono_ms;
        node.last_report_wall_ms = now.wall_ms;
        if first {
            self.walks.recheck().repeat();
            self.blocks.note_change_on(storage);
        }
    }

    /// Something has happened to a block on a storage: a report that is being taken was made before.
    pub(crate) fn note_newer(&mut self, storage: StorageHandle, id: BlockId) {
        self.reports.note_newer(storage, id);
    }
}
