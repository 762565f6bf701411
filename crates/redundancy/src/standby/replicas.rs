//! What a storage has, in the order of ids: a list, and what has happened since it was made.

use crate::replica::ReportedReplica;
use cairn_stripe::BlockId;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Changes that are kept beside a short list.
const CHANGES: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    listed: Vec<ReportedReplica>,
    /// What is there instead; nothing where something is gone.
    since: BTreeMap<BlockId, Option<ReportedReplica>>,
}

impl Replicas {
    /// Those, as a full report names them.
    pub fn listing(mut listed: Vec<ReportedReplica>) -> Replicas {
        listed.sort_by_key(|replica| replica.block.id);
        listed.dedup_by_key(|replica| replica.block.id);
        Replicas { listed, since: BTreeMap::new() }
    }

    /// What the last full report has named.
    pub fn listed(&self) -> &[ReportedReplica] {
        &self.listed
    }

    pub fn get(&self, id: BlockId) -> Option<&ReportedReplica> {
        match self.since.get(&id) {
            Some(changed) => changed.as_ref(),
            None => {
                let at = self.listed.binary_search_by_key(&id, |replica| replica.block.id).ok()?;
                self.listed.get(at)
            }
        }
    }

    /// What is there now.
    pub fn set(&mut self, id: BlockId, is: Option<ReportedReplica>) {
        self.since.insert(id, is);
        if self.since.len() > CHANGES + self.listed.len() / 8 {
            self.merge();
        }
    }

    /// No fewer than there are.
    pub fn len_max(&self) -> usize {
        self.listed.len() + self.since.len()
    }

    fn merge(&mut self) {
        let since = std::mem::take(&mut self.since);
        if since.is_empty() {
            return;
        }
        self.listed.retain(|replica| !since.contains_key(&replica.block.id));
        self.listed.extend(since.into_values().flatten());
        // Two runs in order, which this sort merges.
        self.listed.sort_by_key(|replica| replica.block.id);
    }

    /// The first so many behind one, or of all.
    pub fn after(&self, after: Option<BlockId>, most: usize) -> Vec<ReportedReplica> {
        let first = after
            .map_or(0, |after| self.listed.partition_point(|replica| replica.block.id <= after));
        let mut listed = self.listed[first..].iter().copied().peekable();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut since = self.since.range((behind, Bound::Unbounded)).peekable();
        let mut found = Vec::with_capacity(most.min(self.len_max()));
        while found.len() < most {
            let next = listed.peek().map(|replica| replica.block.id);
            let changed = since.peek().map(|(id, _)| **id);
            match (next, changed) {
                (None, None) => break,
                (Some(next), changed) if changed.is_none_or(|changed| next < changed) => {
                    found.extend(listed.next());
                }
                (next, changed) => {
                    if next == changed {
                        listed.next();
                    }
                    found.extend(since.next().and_then(|(_, is)| *is));
                }
            }
        }
        found
    }
}
