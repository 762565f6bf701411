//! What clients ask: files, blocks, pipelines, leases.

use super::NameNode;
use super::names::{CallError, LocatedBlock, Named, Target, machine_at, sure};
use cairn_master::lease;
use cairn_master::pipeline::{self, Additional};
use cairn_namespace::query;
use cairn_namespace::{Block, BlockState as Written, Caller, InodeId};
use cairn_redundancy::{StorageHandle, StoragePolicy};
use cairn_stripe::{BlockId, Redundancy, UnitIndex};

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

    /// All blocks of the file at a path.
    pub(crate) fn blocks_at(&self, path: &str) -> Vec<BlockId> {
        let found = sure(query::file_blocks_at(&self.store, path));
        found.map_or_else(Vec::new, |found| found.blocks.iter().map(|(_, b)| b.id).collect())
    }

    pub(crate) fn target(&self, storage: StorageHandle) -> Target {
        let node = self.machine_of(storage);
        Target { node, storage: self.cluster.storage(storage).uuid.clone() }
    }

    /// The machine that has a storage.
    pub(crate) fn machine_of(&self, storage: StorageHandle) -> usize {
        let node = self.cluster.storage(storage).node;
        machine_at(&self.cluster.node(node).address)
    }

    /// The storage policy of the file that has the block.
    pub(crate) fn storage_policy(&self, block: BlockId) -> StoragePolicy {
        self.store.storage_policy(block)
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
            if places.is_empty() && block.packed.is_some() {
                places = self.places_in_container(&block);
            }
            if let Some(of) = block.group {
                let now = self.now();
                let decoders = self.cluster.readers_of_member(of.handle, &places, false, now);
                places.extend(decoders);
            }
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
        let file = self.block(block)?.block.file;
        let writer = sure(query::get_inode_info(&self.store, file))?.1;
        let holder = writer.inode.file()?.writer.as_ref()?.holder.clone();
        let targets: Vec<&Target> = existing.iter().flatten().collect();
        let nodes: Vec<usize> = targets.iter().map(|target| target.node).collect();
        let uuids = |nodes: &[usize]| nodes.iter().map(|node| self.uuid_of(*node)).collect();
        let (existing, excluded): (Vec<String>, Vec<String>) = (uuids(&nodes), uuids(excluded));
        let named: Vec<Named> = nodes.iter().map(|node| self.named(*node)).collect();
        let storages = targets.iter().map(|target| target.storage.as_str());
        let wanted = Additional {
            path: "",
            file: Some(file),
            holder: &holder,
            count: 1,
            storages: named.iter().map(Named::claim).zip(storages).collect(),
            existing: &existing,
            excluded: &excluded,
        };
        let found = self
            .core_mut()
            .look(|look| pipeline::additional(look, &|_| None, &Caller::system(), &wanted));
        let chosen = found.ok()?.get(nodes.len()).copied();
        chosen.map(|storage| self.target(storage))
    }

    /// Closes files of holders beyond the hard limit, or begins the recovery that must come first.
    pub(crate) fn check_leases(&mut self) {
        if self.check_safe_mode().is_err() {
            return;
        }
        let elapsed_ms = self.now().elapsed_ms;
        for lease in sure(query::expired_leases(&self.store, elapsed_ms, None, ROUND)) {
            self.begin(|op| async move { lease::release(&op, lease.file).await });
        }
    }
}
