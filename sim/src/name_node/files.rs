//! What clients ask: files, blocks, pipelines, leases.
//!
//! Follows `crates/namenode/src/protocol/client/{write,pipeline,locate}.rs` and `leases.rs`.

use super::{CallError, NameNode, facts, sure, with_cluster};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::lease::{LastBlocks, ReleaseLease};
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::query::{self, AddBlockPlan};
use cairn_namespace::{
    Block, BlockRef, BlockState as Written, CallId, Caller, Command, InodeId, Outcome,
};
use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockState, PlacementRequest, StorageHandle, StoragePolicy,
};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};

/// A storage as clients know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The number of its DataNode.
    pub(crate) node: usize,
    /// Its UUID.
    pub(crate) storage: String,
}

/// A block with the places where clients find its units.
#[derive(Clone, Debug)]
pub(crate) struct LocatedBlock {
    pub(crate) offset: u64,
    pub(crate) block: Block,
    pub(crate) redundancy: Redundancy,
    pub(crate) places: Vec<(Target, UnitIndex)>,
}

/// Expired holders, and files of each, that one round looks at.
const ROUND: usize = 256;

impl NameNode {
    pub(crate) fn check_safe_mode(&self) -> Result<(), CallError> {
        match (self.up, self.is_safe_mode()) {
            (false, _) => Err(CallError::Lost),
            (true, true) => Err(CallError::NotNow),
            (true, false) => Ok(()),
        }
    }

    /// Submits a command of a client that concerns no block's places.
    pub(crate) fn change(
        &mut self,
        call: Option<CallId>,
        command: impl Into<Command>,
    ) -> Result<Outcome, CallError> {
        self.check_safe_mode()?;
        let command = command.into();
        let outcome = self.submit(call, command.clone())?;
        match (&command, &outcome) {
            (Command::Truncate(_), Outcome::Recovery { work: Some(work), .. }) => {
                // It was complete until now.
                let id = work.block.id;
                if let Some(facts) = self.facts_of(id) {
                    let before = BlockFacts { state: BlockState::Complete, ..facts };
                    self.cluster.block_reopened(id, &before);
                }
                self.begin_recovery(&outcome);
            }
            (Command::Concat(concat), _) => {
                // Blocks that came may want another number of copies now.
                for id in self.blocks_at(&concat.target) {
                    with_cluster!(self, |cluster, lookup| cluster.block_changed(lookup, id));
                }
            }
            _ => self.settle(&outcome),
        }
        Ok(outcome)
    }

    /// All blocks of the file at a path.
    pub(crate) fn blocks_at(&self, path: &str) -> Vec<BlockId> {
        let found = sure(query::file_blocks_at(&self.store, path));
        found.map_or_else(Vec::new, |found| found.blocks.iter().map(|(_, b)| b.id).collect())
    }

    pub(crate) fn target(&self, storage: StorageHandle) -> Target {
        let storage = self.cluster.storage(storage);
        let uuid = &self.cluster.node(storage.node).uuid;
        Target { node: super::number_of(uuid), storage: storage.uuid.clone() }
    }

    pub(super) fn storages(&self, targets: &[Option<Target>]) -> Vec<Option<StorageHandle>> {
        let named = targets.iter().map(|target| {
            let target = target.as_ref()?;
            let named = super::Named::of(target.node);
            let pair = [(named.claim(), target.storage.as_str())];
            self.cluster.storages_named(pair).into_iter().next().flatten()
        });
        named.collect()
    }

    fn handles(&self, nodes: &[usize]) -> Vec<cairn_redundancy::NodeHandle> {
        let found = nodes.iter().filter_map(|n| self.cluster.node_by_uuid(&format!("dn-{n}")));
        found.map(|node| node.handle).collect()
    }

    /// Places for the next block or group; fewer than wanted if there are no more.
    fn choose_targets(
        &mut self,
        redundancy: &Redundancy,
        (block_size, policy): (u64, StoragePolicy),
        excluded: &[usize],
    ) -> Result<Vec<StorageHandle>, CallError> {
        let excluded = self.handles(excluded);
        let request = PlacementRequest {
            count: redundancy.width(),
            block_len: block_size,
            excluded: &excluded,
            storage_policy: policy,
            is_new: true,
            ..PlacementRequest::default()
        };
        let (now, mut rng) = (self.now(), self.rng.clone());
        let mut dice = || rng.any();
        let (chosen, min) = match redundancy {
            Redundancy::Replicated(_) => {
                (self.cluster.choose_replicated(&request, now, &mut dice), 1)
            }
            Redundancy::Striped(policy) => {
                let chosen = self.cluster.choose_striped(&request, now, &mut dice);
                (chosen, policy.schema.data_units())
            }
        };
        self.rng = rng;
        if chosen.len() < min { Err(CallError::NotNow) } else { Ok(chosen) }
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalBlock`.
    pub(crate) fn add_block(
        &mut self,
        file: InodeId,
        holder: &str,
        previous: Option<BlockRef>,
        excluded: &[usize],
    ) -> Result<LocatedBlock, CallError> {
        self.check_safe_mode()?;
        let mut command = AddBlock {
            path: String::new(),
            file: Some(file),
            holder: holder.to_string(),
            previous,
            previous_crcs: Vec::new(),
            previous_min_replicated: false,
        };
        if let Some(previous) = previous
            && let Some(mut facts) = self.facts_of(previous.id)
        {
            (facts.gs, facts.len) = (previous.gs, previous.len);
            if !facts.is_final() {
                facts.state = BlockState::Committed;
            }
            let id = previous.id.group();
            command.previous_min_replicated = self.cluster.min_reached(id, &facts);
            command.previous_crcs = self.cluster.unit_crcs(id, &facts);
        }
        let mut closed: Vec<BlockId> = previous.iter().map(|block| block.id.group()).collect();
        let plan = query::plan_add_block(&self.store, &Caller::system(), &command)?;
        let (located, targets) = match plan {
            AddBlockPlan::Retry { offset, block } => {
                let Some(info) = self.block(block.id) else { return Err(CallError::NotNow) };
                let targets = match self.cluster.pipeline(block.id).is_empty() {
                    true => {
                        let policy = self.storage_policy(block.id);
                        self.choose_targets(&info.redundancy, (4096, policy), excluded)?
                    }
                    false => Vec::new(),
                };
                ((offset, block, info.redundancy), targets)
            }
            AddBlockPlan::New { block_size, redundancy, penultimate, storage_policy, .. } => {
                let policy = StoragePolicy::by_id(storage_policy);
                let open = penultimate.filter(|block| block.state != Written::Complete);
                let waits = open.as_ref().is_some_and(|block| {
                    !self.cluster.min_reached(block.id, &facts(block, &redundancy))
                });
                if waits {
                    return Err(CallError::NotNow);
                }
                let targets = self.choose_targets(&redundancy, (block_size, policy), excluded)?;
                closed.extend(open.map(|block| block.id));
                let outcome = self.submit(None, command)?;
                let Outcome::BlockAdded { offset, block, .. } = outcome else {
                    return Err(CallError::NotNow);
                };
                ((offset, block, redundancy), targets)
            }
        };
        self.note_completed(&closed);
        let (offset, block, redundancy) = located;
        if self.cluster.pipeline(block.id).is_empty() {
            let targets: Vec<_> = targets.into_iter().map(Some).collect();
            self.cluster.block_allocated(block.id, block.gs, &targets);
        }
        Ok(self.locate(offset, block, redundancy))
    }

    /// The storage policy of the file that has the block.
    pub(crate) fn storage_policy(&self, block: BlockId) -> StoragePolicy {
        self.lookup().storage_policy(block)
    }

    /// Where a reader or writer finds a block's units.
    pub(crate) fn locate(
        &mut self,
        offset: u64,
        block: Block,
        redundancy: Redundancy,
    ) -> LocatedBlock {
        let mut places: Vec<(StorageHandle, UnitIndex)> = Vec::new();
        if block.state != Written::Complete {
            places = self.cluster.pipeline(block.id);
        }
        if places.is_empty() {
            let mut found = self.cluster.locations(block.id);
            found.retain(|at| !at.corrupt);
            let (now, mut rng) = (self.now(), self.rng.clone());
            let reader = cairn_redundancy::Reader::default();
            self.cluster.sort_for_reader(&mut found, &reader, now, &mut || rng.any());
            self.rng = rng;
            places = found.into_iter().map(|at| (at.storage, at.unit)).collect();
        }
        let places = places.into_iter().map(|(s, unit)| (self.target(s), unit)).collect();
        LocatedBlock { offset, block, redundancy, places }
    }

    /// All blocks of a file with their places.
    pub(crate) fn locate_file(&mut self, file: InodeId) -> Result<Vec<LocatedBlock>, CallError> {
        if !self.up {
            return Err(CallError::Lost);
        }
        let Some(found) = sure(query::file_blocks(&self.store, file)) else {
            return Err(CallError::NotNow);
        };
        let blocks = found.blocks.into_iter();
        Ok(blocks.map(|(at, block)| self.locate(at, block, found.redundancy.clone())).collect())
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
    pub(crate) fn additional_node(
        &mut self,
        block: BlockId,
        existing: &[Option<Target>],
        excluded: &[usize],
    ) -> Option<Target> {
        let mut excluded = excluded.to_vec();
        excluded.extend(existing.iter().flatten().map(|target| target.node));
        let existing: Vec<_> = self.storages(existing).into_iter().flatten().collect();
        let excluded = self.handles(&excluded);
        let request = PlacementRequest {
            count: 1,
            block_len: 4096,
            excluded: &excluded,
            existing: &existing,
            storage_policy: self.storage_policy(block),
            ..PlacementRequest::default()
        };
        let mut rng = self.rng.clone();
        let chosen = self.cluster.choose_replicated(&request, self.now(), &mut || rng.any());
        self.rng = rng;
        chosen.first().map(|storage| self.target(*storage))
    }

    pub(crate) fn new_stamp(
        &mut self,
        holder: &str,
        block: BlockRef,
    ) -> Result<GenerationStamp, CallError> {
        self.check_safe_mode()?;
        let command = UpdateBlockForPipeline { holder: holder.to_string(), block };
        match self.submit(None, command)? {
            Outcome::Stamp(gs) => Ok(gs),
            _ => Err(CallError::NotNow),
        }
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`.
    pub(crate) fn update_pipeline(
        &mut self,
        call: CallId,
        holder: &str,
        old: BlockRef,
        new: BlockRef,
        targets: &[Option<Target>],
    ) -> Result<(), CallError> {
        self.check_safe_mode()?;
        self.submit(Some(call), UpdatePipeline { holder: holder.to_string(), old, new })?;
        let id = new.id.group();
        if self.facts_of(id).is_some_and(|facts| facts.gs == new.gs && !facts.is_final()) {
            let targets = self.storages(targets);
            self.cluster.pipeline_updated(id, new.gs, &targets);
        }
        Ok(())
    }

    pub(crate) fn abandon(
        &mut self,
        file: InodeId,
        holder: &str,
        block: BlockRef,
    ) -> Result<(), CallError> {
        let (path, file, holder) = (String::new(), Some(file), holder.to_string());
        self.change(None, AbandonBlock { path, file, holder, block }).map(|_| ())
    }

    /// Closes a file once its blocks have enough replicas.
    pub(crate) fn complete(
        &mut self,
        file: InodeId,
        holder: &str,
        last: Option<BlockRef>,
    ) -> Result<bool, CallError> {
        self.check_safe_mode()?;
        let (mut ready, mut last_crcs, mut open) = (true, Vec::new(), Vec::new());
        for block in sure(query::incomplete_blocks(&self.store, file)) {
            let Some(mut facts) = self.facts_of(block.id) else { continue };
            if let Some(last) = last.filter(|last| last.id == block.id) {
                (facts.gs, facts.len) = (last.gs, last.len);
                facts.state = BlockState::Committed;
                last_crcs = self.cluster.unit_crcs(block.id, &facts);
            }
            ready &= self.cluster.min_reached(block.id, &facts);
            open.push(block.id);
        }
        let (path, holder) = (String::new(), holder.to_string());
        let command =
            Complete { path, file: Some(file), holder, last, last_crcs, min_replicated: ready };
        let outcome = self.submit(None, command)?;
        for id in open {
            with_cluster!(self, |cluster, lookup| cluster.block_completed(lookup, id));
        }
        Ok(outcome == Outcome::Flag(true))
    }

    /// Opens a replicated file at its end. `None`: try again later.
    pub(crate) fn append(
        &mut self,
        call: CallId,
        (path, file): (&str, InodeId),
        holder: &str,
        new_block: bool,
    ) -> Result<Option<LocatedBlock>, CallError> {
        self.check_safe_mode()?;
        let open = self.incomplete_blocks(file);
        let command = Append {
            path: path.to_string(),
            holder: holder.to_string(),
            client_machine: String::new(),
            new_block,
            replicas: self.last_blocks(file, true),
        };
        let outcome = self.submit(Some(call), command)?;
        self.note_completed(&open);
        if matches!(outcome, Outcome::Recovery { .. }) {
            self.begin_recovery(&outcome);
            return Err(CallError::NotNow);
        }
        let Outcome::Appended { last: Some((offset, block)), .. } = outcome else {
            return Ok(None);
        };
        let Some(info) = self.block(block.id) else { return Err(CallError::NotNow) };
        if self.cluster.pipeline(block.id).is_empty() {
            let facts = facts(&block, &info.redundancy);
            let before = BlockFacts { state: BlockState::Complete, ..facts };
            self.cluster.block_reopened(block.id, &before);
        }
        Ok(Some(self.locate(offset, block, info.redundancy)))
    }

    pub(super) fn incomplete_blocks(&self, file: InodeId) -> Vec<BlockId> {
        let blocks = sure(query::incomplete_blocks(&self.store, file));
        blocks.iter().map(|block| block.id).collect()
    }

    pub(super) fn note_completed(&mut self, blocks: &[BlockId]) {
        for id in blocks {
            if self.facts_of(*id).is_some_and(|facts| facts.is_final()) {
                with_cluster!(self, |cluster, lookup| cluster.block_completed(lookup, *id));
            }
        }
    }

    fn last_blocks(&self, file: InodeId, closed_too: bool) -> LastBlocks {
        let open = sure(query::incomplete_blocks(&self.store, file));
        let reached = |block: &Block| {
            let facts = self.facts_of(block.id);
            facts.is_some_and(|facts| self.cluster.min_reached(block.id, &facts))
        };
        let last = match open.last() {
            Some(last) => Some(last.clone()),
            None if closed_too => {
                let found = sure(query::file_blocks(&self.store, file));
                found.and_then(|found| found.last).map(|(_, block)| block)
            }
            None => None,
        };
        let before_last = open.len().checked_sub(2).map(|index| &open[index]);
        LastBlocks {
            penultimate_min_replicated: before_last.is_none_or(reached),
            last_min_replicated: last.as_ref().is_some_and(reached),
            last_has_locations: last.is_some_and(|last| {
                let facts = self.facts_of(last.id);
                facts.is_some_and(|facts| self.cluster.has_recoverable_places(last.id, &facts))
            }),
            // Nothing comes between a look and a command here.
            seen: None,
        }
    }

    /// Acts on the outcome of a command that takes a file from its holder.
    fn begin_recovery(&mut self, outcome: &Outcome) {
        self.settle(outcome);
        let Outcome::Recovery { work: Some(work), .. } = outcome else { return };
        let (id, now) = (work.block.id, self.now());
        with_cluster!(self, |cluster, lookup| {
            if let Some(facts) = lookup.block(id) {
                cluster.start_block_recovery(id, &facts, work.recovery_gs, now);
            }
        });
    }

    /// Closes files of holders beyond the hard limit, or begins the recovery that must come first.
    pub(crate) fn check_leases(&mut self) {
        if self.check_safe_mode().is_err() {
            return;
        }
        for lease in sure(query::expired_leases(&self.store, self.now().wall_ms, None, ROUND)) {
            self.release(lease.file);
        }
    }

    fn release(&mut self, file: InodeId) {
        let replicas = self.last_blocks(file, false);
        let open = self.incomplete_blocks(file);
        if let Ok(outcome) = self.submit(None, ReleaseLease { file, replicas }) {
            self.begin_recovery(&outcome);
            self.note_completed(&open);
        }
    }
}
