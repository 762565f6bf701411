//! The second way through a namespace: its records turned into those of an image.

use super::differences::{differences_to, snapshots_to};
use super::error::ExportError;
use super::past::{Child, Past, view};
use super::plan::{Plan, STEP};
use super::turned::inode_to;
use cairn_fsimage::write::{self as image, ImageWriter, compare_names};
use cairn_fsimage::{self as fsimage, Counters, EcPolicy, OpenFile, sections};
use cairn_namespace::export::{self, Entry};
use cairn_namespace::inode::{self, path_of};
use cairn_namespace::policy_admin::PolicyInfo;
use cairn_namespace::snapshot::{self, SnapshotId};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{InodeId, cache};
use cairn_stripe::PolicyState;
use std::io::Write;

/// The stamp of Hadoop 1's blocks when there are none. Source: Hadoop 3.5.0 `GenerationStamp#LAST_RESERVED_STAMP`.
const NO_LEGACY_STAMP: u64 = 1000;
/// Writes an image.
pub(super) struct Records<'a, W> {
    store: &'a dyn StoreRead,
    plan: &'a Plan,
    image: ImageWriter<W>,
}

impl<'a, W: Write> Records<'a, W> {
    pub fn new(store: &'a dyn StoreRead, plan: &'a Plan, image: ImageWriter<W>) -> Records<'a, W> {
        Records { store, plan, image }
    }

    /// Writes all sections but what ends an image.
    pub fn write(
        mut self,
        namespace_id: u32,
        transaction: u64,
    ) -> Result<ImageWriter<W>, ExportError> {
        let numbers = &self.plan.last.numbers;
        let counters = Counters {
            namespace_id,
            stamp: numbers.stamp.0,
            legacy_stamp: NO_LEGACY_STAMP,
            last_block: numbers.block.0.cast_unsigned(),
            last_group: Some(numbers.group.0),
            transaction,
            rolling_upgrade: false,
        };
        self.image.section(sections::NS_INFO, |to| to.counters(&counters))?;
        let policies: Vec<EcPolicy> = self.plan.policies.iter().map(policy).collect();
        self.image.section(sections::ERASURE_CODING, |to| to.policies(&policies))?;
        self.inodes()?;
        self.children()?;
        self.open_files()?;
        self.snapshottable()?;
        self.image.section(sections::SECRET_MANAGER, |to| to.no_tokens())?;
        self.cache()?;
        Ok(self.image)
    }

    fn inodes(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        let count = plan.counts.files + plan.counts.directories;
        self.image.section(sections::INODE, |to| {
            to.inode_head(plan.last.numbers.inode.0, count)?;
            let mut after = InodeId::NONE;
            loop {
                let inodes = export::inodes_after(store, after, STEP)?;
                let Some(last) = inodes.last() else { break };
                after = last.id;
                for inode in inodes.iter().filter(|inode| !plan.detached.contains(&inode.id)) {
                    inode_to(store, inode, to)?;
                }
            }
            // What only snapshots have, as the last one that has it.
            for (id, seen) in plan.past.kept() {
                let seen = view(store, seen);
                let mut was = inode::expect(&seen, id)?;
                if let Some(file) = was.file_mut() {
                    file.writer = None;
                }
                inode_to(&seen, &was, to)?;
            }
            Ok(())
        })
    }

    fn children(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        self.image.section(sections::INODE_DIR, |to| {
            let mut of_one: Vec<Entry> = Vec::new();
            let mut after = None;
            loop {
                let entries = export::entries_after(store, after.as_ref(), STEP)?;
                after = entries.last().cloned();
                let is_end = after.is_none();
                for entry in entries {
                    if of_one.first().is_some_and(|first| first.parent != entry.parent) {
                        children_to(&plan.past, None, &mut of_one, to)?;
                    }
                    if !plan.detached.contains(&entry.parent) {
                        of_one.push(entry);
                    }
                }
                if is_end {
                    children_to(&plan.past, None, &mut of_one, to)?;
                    break;
                }
            }
            for (parent, seen) in plan.past.kept() {
                let children = plan.past.children_at_the_end(store, parent, seen)?.into_iter();
                let entry = |(name, child)| Entry { parent, name, child };
                children_to(&plan.past, Some(seen.id), &mut children.map(entry).collect(), to)?;
            }
            Ok(())
        })
    }

    fn open_files(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        self.image.section(sections::FILES_UNDERCONSTRUCTION, |to| {
            for id in &plan.open {
                let path = path_of(store, *id)?.unwrap_or_default();
                to.open_file(&OpenFile { inode: id.0, path })?;
            }
            Ok(())
        })
    }

    fn snapshottable(&mut self) -> Result<(), ExportError> {
        let roots = snapshot::roots(self.store)?.into_iter();
        let gone = &self.plan.detached;
        let roots: Vec<u64> =
            roots.map(|(id, _)| id).filter(|id| !gone.contains(id)).map(|id| id.0).collect();
        // Numbers of snapshots have 28 bits.
        let counter = self.plan.last.numbers.snapshot as u32;
        if self.plan.past.is_empty() {
            return Ok(self
                .image
                .section(sections::SNAPSHOT, |to| to.no_snapshots(counter, &roots))?);
        }
        let (store, past) = (self.store, &self.plan.past);
        self.image.section(sections::SNAPSHOT, |to| {
            to.snapshots_head(counter, &roots, self.plan.counts.snapshots)?;
            snapshots_to(store, past, to)
        })?;
        self.image.section(sections::SNAPSHOT_DIFF, |to| differences_to(store, past, to))?;
        self.image.section(sections::INODE_REFERENCE, |to| {
            past.references.iter().try_for_each(|of| Ok(to.reference(of)?))
        })
    }

    fn cache(&mut self) -> Result<(), ExportError> {
        let pools = cache::pools_after(self.store, "", usize::MAX)?.into_iter();
        let directives = cache::directives_from(self.store, 0, usize::MAX)?.into_iter();
        let cache = fsimage::Cache {
            next_directive: self.plan.last.numbers.cache_directive + 1,
            pools: pools.map(cache_pool).collect(),
            directives: directives.map(cache_directive).collect(),
        };
        Ok(self.image.section(sections::CACHE_MANAGER, |to| to.cache(&cache))?)
    }
}

fn cache_pool(of: cache::CachePool) -> fsimage::CachePool {
    fsimage::CachePool {
        name: of.name,
        owner: of.owner,
        group: of.group,
        mode: of.mode,
        limit: Some(of.limit),
        ttl_max_ms: Some(of.ttl_max_ms),
        replication: of.replication.into(),
    }
}

fn cache_directive(of: cache::CacheDirective) -> fsimage::CacheDirective {
    fsimage::CacheDirective {
        id: of.id,
        path: of.path,
        replication: of.replication.into(),
        pool: of.pool,
        expires_ms: of.expires_ms,
    }
}

/// Writes the children of one directory, as it is or as a snapshot sees it, and forgets them.
fn children_to<W: Write>(
    past: &Past,
    at: Option<SnapshotId>,
    entries: &mut Vec<Entry>,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let Some(parent) = entries.first().map(|first| first.parent) else { return Ok(()) };
    entries.sort_by(|one, other| compare_names(&one.name, &other.name));
    let (mut children, mut references) = (Vec::new(), Vec::new());
    for entry in entries.drain(..) {
        match past.child(entry.child, at) {
            Child::Inode(id) => children.push(id),
            Child::Reference(number) => references.push(number),
        }
    }
    Ok(to.children_and_references(parent.0, &children, &references)?)
}

fn policy(of: &PolicyInfo) -> EcPolicy {
    let schema = &of.policy.schema;
    EcPolicy {
        id: of.policy.id.0.into(),
        name: of.policy.name.clone(),
        codec: schema.codec.as_str().to_string(),
        data_units: schema.k.into(),
        parity_units: schema.m.into(),
        cell_len: of.policy.cell_len,
        state: match of.state {
            PolicyState::Disabled => fsimage::PolicyState::Disabled,
            PolicyState::Enabled => fsimage::PolicyState::Enabled,
            PolicyState::Removed => fsimage::PolicyState::Removed,
        },
    }
}
