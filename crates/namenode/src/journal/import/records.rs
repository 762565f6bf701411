//! Records of an image turned into those of a namespace.

use super::error::{ImportError, OLDEST};
use super::known::{Described, Known, policy};
use super::out::Out;
use super::past::{Past, Why};
use super::replay::Replay;
use super::turned::turned;
use crate::journal::counts::Counts;
use cairn_fsimage::{
    self as fsimage, Cache, Counters, Image, ImageError, OpenFile, Snapshots, Tree, sections,
};
use cairn_namespace::Settings;
use cairn_namespace::cache::{self, CacheDirective, CachePool};
use cairn_namespace::import::{self, Numbers};
use cairn_namespace::inode::{InodeId, Kind};
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The stamp of Hadoop 1's blocks when there are none.
///
/// Source: Hadoop 3.5.0 `GenerationStamp#LAST_RESERVED_STAMP`.
const NO_LEGACY_STAMP: u64 = 1000;

/// Reads an image.
pub(super) struct Reader<'a> {
    path: &'a Path,
    image: &'a mut Image<fs::File>,
    counters: &'a Counters,
    /// What cannot be taken over, and how often it is there.
    unknown: BTreeMap<String, u64>,
}

impl<'a> Reader<'a> {
    pub fn new(
        path: &'a Path,
        image: &'a mut Image<fs::File>,
        counters: &'a Counters,
    ) -> Reader<'a> {
        Reader { path, image, counters, unknown: BTreeMap::new() }
    }

    fn failed(&self, source: ImageError) -> ImportError {
        ImportError::Image { path: self.path.to_owned(), source }
    }

    fn refuse(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.unknown.entry(what.into()).or_default() += count;
        }
    }

    /// Fails if anything was found that cannot be taken over.
    fn check(&mut self) -> Result<(), ImportError> {
        if self.unknown.is_empty() {
            return Ok(());
        }
        let told = std::mem::take(&mut self.unknown).into_iter();
        let told = told.map(|(what, count)| match count {
            1 => what,
            count => format!("{what} ({count} times)"),
        });
        Err(ImportError::Refused(told.collect()))
    }

    /// Looks at all but the inodes for what cannot be taken over, before anything is written.
    pub fn look_for_what_is_not_known(&mut self) -> Result<(), ImportError> {
        let layout = self.image.layout();
        if layout > OLDEST {
            self.refuse(format!("layout version {layout}, of Hadoop 2: upgrade to 3 first"), 1);
        }
        let names: Vec<String> = self.image.sections().iter().map(|of| of.name.clone()).collect();
        for name in names {
            let is_part = name.ends_with("_SUB");
            if !is_part && !sections::ALL.contains(&name.as_str()) {
                self.refuse(format!("a section {name}"), 1);
            }
        }
        if self.counters.rolling_upgrade {
            self.refuse("a rolling upgrade that is not finalized", 1);
        }
        if self.counters.legacy_stamp != NO_LEGACY_STAMP {
            self.refuse("blocks of Hadoop 1", 1);
        }
        self.check()
    }

    /// Whether there are delegation tokens, which are not taken over.
    pub fn has_tokens(&self) -> bool {
        self.image.sections().iter().any(|of| of.name == sections::SECRET_MANAGER)
    }

    /// Writes everything.
    pub fn read(&mut self, out: &mut Out<'_>) -> Result<Counts, ImportError> {
        let mut known = self.known()?;
        let mut past = self.past(&mut known)?;
        import::begin(out.records()?, &Settings::default())?;
        for (policy, state) in &known.policies {
            import::policy(out.records()?, policy.clone(), *state)?;
        }
        let (mut counts, quotas, last) = self.inodes(&known, &mut past, out)?;
        self.check()?;
        let (snapshottable, snapshot) = self.snapshottable()?;
        for directory in snapshottable {
            import::allow_snapshots(out.records()?, InodeId(directory))?;
        }
        if !past.is_empty() {
            counts.snapshots = past.taken.len() as u64;
            counts.blocks += past.blocks_of_then();
            let oldest = past.go_back().map_err(|what| ImportError::Refused(vec![what]))?;
            out.write_out()?;
            Replay::new(&past, oldest, last).run(out)?;
        }
        for open in self.leases()? {
            // The holder is in the inode; what is open without one cannot be closed by anybody.
            if !self.has_writer(out, open.inode)? {
                self.refuse("leases of files that nobody writes", 1);
            }
        }
        let cache_directive = self.cache(out)?;
        self.check()?;
        // All that counts must be readable first.
        out.write_out()?;
        for directory in quotas {
            if import::place(out.records()?, directory)?.is_some() {
                import::count_quota(out.records()?, directory)?;
            }
        }
        if !past.is_empty() {
            import::count_held(out.records()?)?;
        }
        let numbers = Numbers {
            inode: InodeId(last),
            block: BlockId(self.counters.last_block as i64),
            group: self.counters.last_group.map_or(BlockId::FIRST_GROUP_BASE, BlockId),
            stamp: GenerationStamp(self.counters.stamp),
            inodes: counts.files + counts.directories,
            blocks: counts.blocks,
            cache_directive,
            snapshot,
        };
        import::end(out.records()?, &numbers)?;
        Ok(counts)
    }

    /// Writes pools and directives of the cache. Returns the last number of a directive.
    fn cache(&mut self, out: &mut Out<'_>) -> Result<u64, ImportError> {
        let section = self.image.section(sections::CACHE_MANAGER);
        let cache = section.and_then(Cache::read).map_err(|error| self.failed(error))?;
        for pool in &cache.pools {
            match cache_pool(pool) {
                Some(pool) => import::cache_pool(out.records()?, &pool)?,
                None => self.refuse("cache pools with too many copies", 1),
            }
        }
        let has_pool = |name: &str| cache.pools.iter().any(|pool| pool.name == name);
        for of in &cache.directives {
            match cache_directive(of).filter(|of| has_pool(&of.pool)) {
                Some(directive) => import::cache_directive(out.records()?, &directive)?,
                None => self.refuse("cache directives without a pool", 1),
            }
        }
        let last = cache.directives.iter().map(|of| of.id).max().unwrap_or(0);
        Ok(cache.next_directive.saturating_sub(1).max(last))
    }

    fn has_writer(&self, out: &mut Out<'_>, id: u64) -> Result<bool, ImportError> {
        let inode = cairn_namespace::inode::get(out.records()?, InodeId(id))?;
        Ok(inode.is_some_and(|inode| inode.file().is_some_and(|file| file.writer.is_some())))
    }

    /// Reads what was different in snapshots.
    fn past(&mut self, known: &mut Known) -> Result<Past, ImportError> {
        match Past::read(self.image, known) {
            Ok(past) => Ok(past),
            Err(Why::Image(error)) => Err(self.failed(error)),
            Err(Why::Refused(what)) => Err(ImportError::Refused(vec![what])),
        }
    }

    /// Snapshottable directories, and the number of the next snapshot.
    fn snapshottable(&mut self) -> Result<(Vec<u64>, u64), ImportError> {
        let read = |image: &mut Image<fs::File>| match image.section(sections::SNAPSHOT)? {
            Some(section) => {
                let read = Snapshots::read(section)?;
                Ok((read.snapshottable, u64::from(read.counter)))
            }
            None => Ok((Vec::new(), 0)),
        };
        read(self.image).map_err(|error| self.failed(error))
    }

    fn leases(&mut self) -> Result<Vec<OpenFile>, ImportError> {
        let section = self.image.section(sections::FILES_UNDERCONSTRUCTION);
        section
            .and_then(OpenFile::read)
            .map_err(|error| ImportError::Image { path: self.path.to_owned(), source: error })
    }

    /// Names, policies and the tree.
    fn known(&mut self) -> Result<Known, ImportError> {
        let Described { names, policies: described, parents, children } =
            Described::read(self.image).map_err(|error| self.failed(error))?;
        let mut policies = Vec::new();
        for of in described {
            match policy(&of) {
                Some(policy) => policies.push(policy),
                None => self.refuse(format!("erasure coding policy {} {}", of.id, of.name), 1),
            }
        }
        self.check()?;
        Ok(Known { names, policies, parents, children })
    }

    /// Writes inodes with their blocks and attributes. Returns the directories that have quotas, and the last number.
    fn inodes(
        &mut self,
        known: &Known,
        past: &mut Past,
        out: &mut Out<'_>,
    ) -> Result<(Counts, Vec<InodeId>, u64), ImportError> {
        let path: PathBuf = self.path.to_owned();
        let failed = |source| ImportError::Image { path: path.clone(), source };
        let section = self.image.required(sections::INODE).map_err(failed)?;
        let mut tree = Tree::read(section).map_err(failed)?;
        let (mut counts, mut quotas, last) = (Counts::default(), Vec::new(), tree.last_id);
        let unknown = &mut self.unknown;
        while let Some(inode) = tree.inode().map_err(failed)? {
            let mut refuse = |what: &str| *unknown.entry(what.to_string()).or_default() += 1;
            let turned = match turned(known, &inode) {
                Ok(turned) => turned,
                Err(what) => {
                    refuse(&what);
                    continue;
                }
            };
            past.note(inode.id, &turned.inode.name);
            let is_kept = past.is_kept(inode.id);
            match past.has_children_of(turned.inode.parent.0) {
                _ if is_kept => {}
                true => import::inode_alone(out.records()?, &turned.inode)?,
                false => import::inode(out.records()?, &turned.inode)?,
            }
            if !is_kept {
                for (name, value) in &turned.attributes {
                    import::attribute(out.records()?, turned.inode.id, (name.0, &name.1), value)?;
                }
            }
            if turned.is_zone && !is_kept {
                import::encryption_zone(out.records()?, turned.inode.id)?;
            }
            counts.add(&turned.inode);
            match &turned.inode.kind {
                Kind::Directory(directory) => {
                    quotas.extend(directory.quota.as_ref().map(|_| turned.inode.id));
                }
                Kind::File(file) => {
                    counts.blocks += file.block_count;
                    let mut offset = 0;
                    for block in turned.blocks.iter().filter(|_| !is_kept) {
                        import::block(out.records()?, block, offset)?;
                        offset += block.len;
                    }
                    if let Some(writer) = &file.writer {
                        import::open_file(out.records()?, &writer.holder, turned.inode.id)?;
                    }
                }
            }
            if is_kept {
                past.now.insert(inode.id, turned);
            }
        }
        Ok((counts, quotas, last))
    }
}

/// A pool as the namespace has it; none if it has more copies than there can be.
fn cache_pool(of: &fsimage::CachePool) -> Option<CachePool> {
    Some(CachePool {
        name: of.name.clone(),
        owner: of.owner.clone(),
        group: of.group.clone(),
        mode: of.mode,
        limit: of.limit.unwrap_or(cache::UNLIMITED),
        replication: u16::try_from(of.replication).ok()?,
        ttl_max_ms: of.ttl_max_ms.unwrap_or(cache::TTL_MAX_MS),
    })
}

fn cache_directive(of: &fsimage::CacheDirective) -> Option<CacheDirective> {
    Some(CacheDirective {
        id: of.id,
        path: of.path.clone(),
        replication: u16::try_from(of.replication).ok()?,
        pool: of.pool.clone(),
        expires_ms: of.expires_ms,
    })
}
