//! What a storage has, in the order of ids: a list, and what has happened since it was made.

use crate::replica::ReportedReplica;
use cairn_stripe::BlockId;
use std::collections::BTreeMap;

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

    /// All.
    pub fn into_list(mut self) -> Vec<ReportedReplica> {
        self.merge();
        self.listed
    }
}
