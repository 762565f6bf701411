//! The first way through a namespace: what there is, and what Hadoop has no form for.

use super::error::ExportError;
use super::past::{Past, view};
use crate::journal::counts::Counts;
use cairn_fsimage::ROOT;
use cairn_namespace::export::{self, Last};
use cairn_namespace::inode::{self, Directory, File, Kind};
use cairn_namespace::policy_admin::{self, PolicyInfo};
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{Block, BlockState, FileRedundancy, Inode, InodeId};
use cairn_stripe::{PolicyId, PolicyLayout, PolicyState};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

/// Inodes that are read at a time.
pub(super) const STEP: usize = 1000;
/// Most copies, the longest block, and the highest storage policy that Hadoop has bits for.
///
/// Source: Hadoop 3.5.0 `INodeFile.HeaderFormat`.
const COPIES_MAX: u16 = (1 << 11) - 1;
const BLOCK_LEN_MAX: u64 = (1 << 48) - 1;
const STORAGE_POLICY_MAX: u8 = 15;
/// Hadoop's own policies.
const LAST_OWN_POLICY: PolicyId = PolicyId(5);

/// What is to be written.
#[derive(Debug)]
pub(super) struct Plan {
    pub counts: Counts,
    /// What snapshots have.
    pub past: Past,
    pub last: Last,
    /// Inodes that are deleted and not yet gone, which no image has.
    pub detached: HashSet<InodeId>,
    /// Files that are open.
    pub open: Vec<InodeId>,
    /// Policies for Hadoop.
    pub policies: Vec<PolicyInfo>,
    /// What is written in another form.
    pub changed: Vec<String>,
    pub left_out: Vec<String>,
}

impl Plan {
    /// Looks at everything. Fails if there is anything that an image can't have.
    pub fn of(store: &dyn StoreRead) -> Result<Plan, ExportError> {
        let mut seen = Seen::default();
        seen.look_for_snapshots(store)?;
        let past = Past::of(store)?;
        let detached = export::detached(store)?;
        let mut after = InodeId::NONE;
        loop {
            let inodes = export::inodes_after(store, after, STEP)?;
            let Some(last) = inodes.last() else { break };
            after = last.id;
            for inode in inodes.iter().filter(|inode| !detached.contains(&inode.id)) {
                seen.inode(store, inode)?;
            }
        }
        seen.past(store, &past)?;
        if !seen.refused.is_empty() {
            return Err(ExportError::Refused(told(&seen.refused)));
        }
        let tokens = "delegation tokens and their keys: clients get new ones";
        let has_tokens = !is_empty(store, Table::DelegationToken)?;
        Ok(Plan {
            policies: policies(store, &seen.policies)?,
            counts: seen.counts,
            past,
            last: export::last(store)?,
            detached,
            open: seen.open,
            changed: told(&seen.changed),
            left_out: has_tokens.then(|| tokens.to_string()).into_iter().collect(),
        })
    }
}

fn told(all: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let one = |(what, count): (&&str, &u64)| match count {
        1 => (*what).to_string(),
        count => format!("{what} ({count} times)"),
    };
    all.iter().map(one).collect()
}

fn is_empty(store: &dyn StoreRead, table: Table) -> Result<bool, ExportError> {
    let mut is_empty = true;
    store.scan(table, &[], &[], &mut |_, _| {
        is_empty = false;
        ControlFlow::Break(())
    })?;
    Ok(is_empty)
}

/// Hadoop's policies, and others that are striped and anything is done with.
fn policies(
    store: &dyn StoreRead,
    used: &BTreeSet<PolicyId>,
) -> Result<Vec<PolicyInfo>, ExportError> {
    let mut all = policy_admin::all(store)?;
    all.retain(|PolicyInfo { policy, state }| {
        let is_own = policy.id <= LAST_OWN_POLICY || policy.id >= PolicyId::FIRST_USER_DEFINED;
        let is_wanted = is_own || *state == PolicyState::Enabled || used.contains(&policy.id);
        policy.layout == PolicyLayout::Striped && is_wanted
    });
    Ok(all)
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    counts: Counts,
    open: Vec<InodeId>,
    policies: BTreeSet<PolicyId>,
    refused: BTreeMap<&'static str, u64>,
    changed: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn refuse(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.refused.entry(what).or_default() += count;
        }
    }

    fn look_for_snapshots(&mut self, store: &dyn StoreRead) -> Result<(), ExportError> {
        let (count, has_left) = export::snapshots(store)?;
        let has_left = has_left || count > 0 && export::has_left(store)?;
        let cleaned =
            "what deleted trees and snapshots have left: let the NameNode run until it is gone";
        self.refuse(cleaned, has_left.into());
        Ok(())
    }

    /// Looks at what only snapshots have.
    fn past(&mut self, store: &dyn StoreRead, past: &Past) -> Result<(), ExportError> {
        for taken in past.snapshots.iter().flat_map(|(_, all)| all) {
            self.counts.snapshots += 1;
            let marked = "snapshots that go when those before them have gone";
            self.refuse(marked, taken.deleted.into());
        }
        for (id, seen) in past.kept() {
            let seen = view(store, seen);
            let mut was = inode::expect(&seen, id)?;
            if let Some(file) = was.file_mut() {
                file.writer = None;
            }
            self.inode(&seen, &was)?;
        }
        for (id, history) in &past.histories {
            let mut known: HashSet<_> = match history.is_there {
                true => export::blocks(store, *id)?.iter().map(|block| block.id).collect(),
                false => HashSet::new(),
            };
            if !history.is_there
                && let Some(last) = history.seen.last()
            {
                known.extend(export::blocks(&view(store, *last), *id)?.iter().map(|of| of.id));
            }
            for of in &history.seen {
                let seen = view(store, *of);
                for block in export::blocks(&seen, *id)? {
                    if known.insert(block.id) {
                        self.block(&block);
                    }
                }
                let was = inode::expect(&seen, *id)?;
                let policy = match &was.kind {
                    Kind::Directory(directory) => directory.policy,
                    Kind::File(file) => file.redundancy.policy(),
                };
                self.policies.extend(policy.filter(|id| *id != PolicyId::REPLICATION));
            }
        }
        Ok(())
    }

    fn inode(&mut self, store: &dyn StoreRead, inode: &Inode) -> Result<(), ExportError> {
        self.counts.add(inode);
        if inode.storage_policy > STORAGE_POLICY_MAX {
            self.refuse("storage policies that are not Hadoop's", 1);
        }
        if inode.id.0 != ROOT && inode.name.is_empty() {
            self.refuse("inodes without names", 1);
        }
        match &inode.kind {
            Kind::Directory(directory) => self.directory(store, directory),
            Kind::File(file) => {
                self.file(inode.id, file);
                let blocks = export::blocks(store, inode.id)?;
                blocks.iter().for_each(|block| self.block(block));
                Ok(())
            }
        }
    }

    fn directory(
        &mut self,
        store: &dyn StoreRead,
        directory: &Directory,
    ) -> Result<(), ExportError> {
        let Some(id) = directory.policy.filter(|id| *id != PolicyId::REPLICATION) else {
            return Ok(());
        };
        self.policies.insert(id);
        if store.policy(id)?.layout == PolicyLayout::Contiguous {
            let kept = "directories with policies of contiguous groups: new files in them are kept as copies";
            *self.changed.entry(kept).or_default() += 1;
        }
        Ok(())
    }

    fn file(&mut self, id: InodeId, file: &File) {
        if file.writer.is_some() {
            self.open.push(id);
        }
        if file.redundancy.copies().is_some_and(|copies| copies > COPIES_MAX) {
            self.refuse("files with more than 2047 copies", 1);
        }
        if file.block_size > BLOCK_LEN_MAX {
            self.refuse("files with blocks that are too long", 1);
        }
        match file.redundancy {
            FileRedundancy::Replicated(_) => {}
            FileRedundancy::Striped(policy) => _ = self.policies.insert(policy),
            FileRedundancy::Contiguous { .. } => {
                let kept = "files that were to go into contiguous groups: they stay as copies";
                *self.changed.entry(kept).or_default() += 1;
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.counts.blocks += 1;
        if block.group.is_some() {
            self.refuse("blocks in contiguous groups: make them copies first (cairn ec convert --replicate)", 1);
        }
        if block.packed.is_some() {
            self.refuse("packed blocks: make them copies first (cairn ec convert --replicate)", 1);
        }
        let is_cut = matches!(
            block.state,
            BlockState::UnderTruncation { .. } | BlockState::UnderCopy { .. }
        );
        if is_cut {
            self.refuse("files that are being cut off: let the DataNodes end that first", 1);
        }
    }
}
