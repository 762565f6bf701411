//! Records of an image turned into those of a namespace.

use super::error::{ImportError, OLDEST};
use super::out::Out;
use cairn_fsimage::{
    self as fsimage, AclEntries, Child, Counters, EcPolicy, Image, ImageError, InodeKind, Names,
    OpenFile, Permission, ROOT, Reference, Snapshots, Tree, XAttrs, cached, sections,
};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::import::{self, Numbers};
use cairn_namespace::inode::{Directory, File, InodeId, Kind, Quota, Writer};
use cairn_namespace::ops::xattr::XAttrSpace;
use cairn_namespace::{Block, BlockState, FileRedundancy, Inode, Settings};
use cairn_stripe::{
    BlockId, CodecName, GenerationStamp, Policy, PolicyId, PolicyLayout, PolicyState, Schema,
    StorageType,
};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The stamp of Hadoop 1's blocks when there are none.
///
/// Source: Hadoop 3.5.0 `GenerationStamp#LAST_RESERVED_STAMP`.
const NO_LEGACY_STAMP: u64 = 1000;
/// Attributes in which a directory has its policies. Source: Hadoop 3.5.0 `HdfsServerConstants`.
const EC_POLICY: &str = "hdfs.erasurecoding.policy";
const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";
/// The policy that is called so keeps copies. Source: Hadoop 3.5.0 `ErasureCodeConstants`.
const REPLICATION: &str = "replication";
/// The bits of a mode that an inode keeps.
const MODE_MASK: u16 = 0o1777;

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files.
    pub files: u64,
    /// Directories, the root among them.
    pub directories: u64,
    /// Blocks and block groups.
    pub blocks: u64,
    /// Files that are open.
    pub open: u64,
}

/// Reads an image.
pub(super) struct Reader<'a> {
    path: &'a Path,
    image: &'a mut Image<fs::File>,
    counters: &'a Counters,
    /// What cannot be taken over, and how often it is there.
    unknown: BTreeMap<String, u64>,
}

/// What records refer to.
struct Known {
    names: Names,
    policies: Vec<(Policy, PolicyState)>,
    /// Each inode with its directory, by the inode.
    parents: Vec<(u64, u64)>,
    /// Children of each directory.
    children: HashMap<u64, u64>,
}

/// As the image has it.
struct Described {
    names: Names,
    policies: Vec<EcPolicy>,
    parents: Vec<(u64, u64)>,
    children: HashMap<u64, u64>,
}

impl Described {
    fn read(image: &mut Image<fs::File>) -> Result<Described, ImageError> {
        let names = Names::read(image.required(sections::STRING_TABLE)?)?;
        let policies = EcPolicy::read(image.section(sections::ERASURE_CODING)?)?;
        let (mut parents, mut children) = (Vec::new(), HashMap::new());
        if let Some(mut section) = image.section(sections::INODE_DIR)? {
            while let Some(entry) = section.children()? {
                let mut count = 0;
                entry.each(|child| {
                    count += 1;
                    // There are no references, or nothing would be imported.
                    if let Child::Inode(id) = child {
                        parents.push((id, entry.parent));
                    }
                })?;
                *children.entry(entry.parent).or_default() += count;
            }
        }
        parents.sort_unstable();
        Ok(Described { names, policies, parents, children })
    }
}

impl Known {
    fn parent(&self, id: u64) -> Option<u64> {
        let at = self.parents.partition_point(|(child, _)| *child < id);
        self.parents.get(at).filter(|(child, _)| *child == id).map(|(_, parent)| *parent)
    }

    fn policy(&self, id: u32) -> Option<PolicyId> {
        let known = self.policies.iter().map(|(policy, _)| policy.id);
        known.into_iter().find(|of| u32::from(of.0) == id)
    }
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
        let (snapshots, references, cache) = self.counted().map_err(|error| self.failed(error))?;
        self.refuse("snapshots: delete them first", u64::from(snapshots));
        self.refuse("files that snapshots have under other names", references);
        self.refuse("cache pools: remove them first", u64::from(cache.0));
        self.refuse("cache directives: remove them first", u64::from(cache.1));
        self.check()
    }

    fn counted(&mut self) -> Result<(u32, u64, (u32, u32)), ImageError> {
        let snapshots = match self.image.section(sections::SNAPSHOT)? {
            Some(section) => Snapshots::read(section)?.count,
            None => 0,
        };
        let references = Reference::read(self.image.section(sections::INODE_REFERENCE)?)?;
        let cache = cached(self.image.section(sections::CACHE_MANAGER)?)?;
        Ok((snapshots, references.len() as u64, cache))
    }

    /// What is not taken over, and need not be.
    pub fn left_out(&self) -> Vec<String> {
        let has_tokens = self.image.sections().iter().any(|of| of.name == sections::SECRET_MANAGER);
        let tokens = "delegation tokens and their keys: clients get new ones";
        has_tokens.then(|| tokens.to_string()).into_iter().collect()
    }

    /// Writes everything.
    pub fn read(&mut self, out: &mut Out<'_>) -> Result<Counts, ImportError> {
        let known = self.known()?;
        import::begin(out.records()?, &Settings::default())?;
        for (policy, state) in &known.policies {
            import::policy(out.records()?, policy.clone(), *state)?;
        }
        let (counts, quotas, last) = self.inodes(&known, out)?;
        self.check()?;
        for directory in self.snapshottable()? {
            import::allow_snapshots(out.records()?, InodeId(directory))?;
        }
        for open in self.leases()? {
            // The holder is in the inode; what is open without one cannot be closed by anybody.
            if !self.has_writer(out, open.inode)? {
                self.refuse("leases of files that nobody writes", 1);
            }
        }
        self.check()?;
        // All that counts must be readable first.
        out.write_out()?;
        for directory in quotas {
            import::count_quota(out.records()?, directory)?;
        }
        let numbers = Numbers {
            inode: InodeId(last),
            block: BlockId(self.counters.last_block as i64),
            group: self.counters.last_group.map_or(BlockId::FIRST_GROUP_BASE, BlockId),
            stamp: GenerationStamp(self.counters.stamp),
            inodes: counts.files + counts.directories,
            blocks: counts.blocks,
        };
        import::end(out.records()?, &numbers)?;
        Ok(counts)
    }

    fn has_writer(&self, out: &mut Out<'_>, id: u64) -> Result<bool, ImportError> {
        let inode = cairn_namespace::inode::get(out.records()?, InodeId(id))?;
        Ok(inode.is_some_and(|inode| inode.file().is_some_and(|file| file.writer.is_some())))
    }

    fn snapshottable(&mut self) -> Result<Vec<u64>, ImportError> {
        let read = |image: &mut Image<fs::File>| match image.section(sections::SNAPSHOT)? {
            Some(section) => Ok(Snapshots::read(section)?.snapshottable),
            None => Ok(Vec::new()),
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
            import::inode(out.records()?, &turned.inode)?;
            for (name, value) in &turned.attributes {
                import::attribute(out.records()?, turned.inode.id, (name.0, &name.1), value)?;
            }
            match &turned.inode.kind {
                Kind::Directory(directory) => {
                    counts.directories += 1;
                    quotas.extend(directory.quota.as_ref().map(|_| turned.inode.id));
                }
                Kind::File(file) => {
                    counts.files += 1;
                    counts.blocks += file.block_count;
                    let mut offset = 0;
                    for block in &turned.blocks {
                        import::block(out.records()?, block, offset)?;
                        offset += block.len;
                    }
                    if let Some(writer) = &file.writer {
                        counts.open += 1;
                        import::open_file(out.records()?, &writer.holder, turned.inode.id)?;
                    }
                }
            }
        }
        Ok((counts, quotas, last))
    }
}

/// A policy of an image with its state; none if its code is not known, or it is not what is called so.
fn policy(of: &EcPolicy) -> Option<(Policy, PolicyState)> {
    let state = match of.state {
        fsimage::PolicyState::Disabled => PolicyState::Disabled,
        fsimage::PolicyState::Enabled => PolicyState::Enabled,
        fsimage::PolicyState::Removed => PolicyState::Removed,
    };
    let id = PolicyId(u8::try_from(of.id).ok()?);
    if id < PolicyId::FIRST_USER_DEFINED {
        // Hadoop's own ones are known by their numbers; what else has such a number went from here to Hadoop.
        let own = Policy::built_in().into_iter().find(|own| own.id == id)?;
        let is_own = id.0 <= 5 || own.layout == PolicyLayout::Striped && own.name == of.name;
        return is_own.then_some((own, state));
    }
    let codec = CodecName::parse(&of.codec)?;
    let (k, m) = (u8::try_from(of.data_units).ok()?, u8::try_from(of.parity_units).ok()?);
    let policy = Policy::new(id, Schema { codec, k, m }, of.cell_len).ok()?;
    Some((Policy { name: of.name.clone(), ..policy }, state))
}

/// An inode as the namespace has it.
struct Turned {
    inode: Inode,
    attributes: Vec<((XAttrSpace, String), Vec<u8>)>,
    blocks: Vec<Block>,
}

/// Turns an inode; what cannot be taken over is the error.
fn turned(known: &Known, inode: &fsimage::Inode<'_>) -> Result<Turned, String> {
    let name = std::str::from_utf8(inode.name).map_err(|_| "names that are not UTF-8")?;
    let is_root = inode.id == ROOT;
    let parent = match (is_root, known.parent(inode.id)) {
        (true, _) => InodeId::NONE,
        (false, Some(parent)) => InodeId(parent),
        (false, None) => return Err("inodes that no directory has".to_string()),
    };
    if !is_root && (name.is_empty() || name.contains('/')) {
        return Err("names that no path can have".to_string());
    }
    let id = InodeId(inode.id);
    match &inode.kind {
        InodeKind::Symlink(_) => Err("symbolic links".to_string()),
        InodeKind::File(file) => {
            let attributes = attributes(known, file.xattrs)?;
            let (redundancy, blocks) = blocks(known, id, file)?;
            let writer = file.writer.map(|of| Writer {
                holder: of.client.to_string(),
                client_machine: of.machine.to_string(),
                began_after: None,
            });
            let kind = Kind::File(File {
                redundancy,
                block_size: file.block_len,
                block_count: blocks.len() as u64,
                len: file.len(),
                writer,
                short_appends: 0,
            });
            let storage_policy = storage_policy(file.storage_policy)?;
            let mut inode = of(known, (id, parent, name), file.permission, file.acl, kind)?;
            (inode.mtime, inode.atime) = (file.modified_ms, file.accessed_ms);
            inode.storage_policy = storage_policy;
            Ok(Turned { inode, attributes: attributes.kept, blocks })
        }
        InodeKind::Directory(directory) => {
            let attributes = attributes(known, directory.xattrs)?;
            let kind = Kind::Directory(Directory {
                children: known.children.get(&inode.id).copied().unwrap_or(0),
                policy: attributes.policy,
                quota: quota(directory, is_root)?,
                is_zone: false,
            });
            let (permission, acl) = (directory.permission, directory.acl);
            let mut inode = of(known, (id, parent, name), permission, acl, kind)?;
            inode.mtime = directory.modified_ms;
            inode.storage_policy = attributes.storage_policy;
            Ok(Turned { inode, attributes: attributes.kept, blocks: Vec::new() })
        }
    }
}

/// What files and directories have alike.
fn of(
    known: &Known,
    (id, parent, name): (InodeId, InodeId, &str),
    permission: Permission,
    acl: Option<AclEntries<'_>>,
    kind: Kind,
) -> Result<Inode, String> {
    let (owner, group) = (permission.owner(&known.names), permission.group(&known.names));
    let (Some(owner), Some(group)) = (owner, group) else {
        return Err("inodes without owner or group".to_string());
    };
    let acl = acl.unwrap_or_default().iter().map(|entry| AclEntry {
        scope: if entry.is_default() { AclScope::Default } else { AclScope::Access },
        kind: match entry.kind() {
            fsimage::AclKind::User => AclKind::User,
            fsimage::AclKind::Group => AclKind::Group,
            fsimage::AclKind::Mask => AclKind::Mask,
            fsimage::AclKind::Other => AclKind::Other,
        },
        name: entry.name(&known.names).map(str::to_string),
        permission: u16::from(entry.permission()),
    });
    Ok(Inode {
        id,
        parent,
        name: name.to_string(),
        owner: owner.to_string(),
        group: group.to_string(),
        mode: permission.mode() & MODE_MASK,
        acl: acl.collect(),
        mtime: 0,
        atime: 0,
        storage_policy: 0,
        kind,
    })
}

fn storage_policy(number: u32) -> Result<u8, String> {
    let number = u8::try_from(number).ok();
    number.ok_or_else(|| "storage policies that are not known".to_string())
}

/// Attributes of an inode, without those that say what its record says.
#[derive(Default)]
struct Attributes {
    kept: Vec<((XAttrSpace, String), Vec<u8>)>,
    policy: Option<PolicyId>,
    storage_policy: u8,
}

fn attributes(known: &Known, xattrs: XAttrs<'_>) -> Result<Attributes, String> {
    let mut found = Attributes::default();
    for of in xattrs.iter() {
        let name = of.name(&known.names).ok_or("attributes without names")?;
        let space = match of.namespace() {
            0 => XAttrSpace::User,
            1 => XAttrSpace::Trusted,
            2 => XAttrSpace::Security,
            3 if name == EC_POLICY => {
                found.policy = Some(named_policy(known, of.value)?);
                continue;
            }
            3 if name == STORAGE_POLICY => {
                let [number] = of.value else { return Err(format!("attribute system.{name}")) };
                found.storage_policy = *number;
                continue;
            }
            3 => return Err(format!("attribute system.{name}")),
            4 if name.starts_with("hdfs.crypto.") => return Err("encryption zones".to_string()),
            4 => XAttrSpace::Raw,
            _ => return Err("attributes of spaces that are not known".to_string()),
        };
        found.kept.push(((space, name.to_string()), of.value.to_vec()));
    }
    Ok(found)
}

/// The policy whose name an attribute has, behind its length in four bytes.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#setErasureCodingPolicyXAttr`.
fn named_policy(known: &Known, value: &[u8]) -> Result<PolicyId, String> {
    let name = value.get(4..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
    if name.eq_ignore_ascii_case(REPLICATION) {
        return Ok(PolicyId::REPLICATION);
    }
    let policy = known.policies.iter().map(|(policy, _)| policy).find(|of| of.name == name);
    policy.map(|policy| policy.id).ok_or_else(|| format!("erasure coding policy {name}"))
}

/// The limits of a directory; what is used comes later.
fn quota(directory: &fsimage::Directory<'_>, is_root: bool) -> Result<Option<Quota>, String> {
    // The root has a quota that limits nothing.
    let no_limit = |max: &u64| is_root && *max >= i64::MAX as u64;
    let mut quota = Quota {
        names_max: directory.name_quota.filter(|max| !no_limit(max)),
        space_max: directory.space_quota,
        ..Quota::default()
    };
    let mut is_limited = quota.names_max.is_some() || quota.space_max.is_some();
    for of in directory.type_quotas.iter() {
        let kind =
            StorageType::ALL.into_iter().find(|kind| kind.number() as u32 == of.storage_type);
        quota.types_max[kind.ok_or("quotas on types of storage that are not known")?] =
            Some(of.bytes);
        is_limited = true;
    }
    Ok(is_limited.then_some(quota))
}

/// How a file is kept, and its blocks.
fn blocks(
    known: &Known,
    id: InodeId,
    file: &fsimage::File<'_>,
) -> Result<(FileRedundancy, Vec<Block>), String> {
    let redundancy = match file.ec_policy {
        None => FileRedundancy::Replicated(
            u16::try_from(file.replication).map_err(|_| "numbers of copies that are too large")?,
        ),
        Some(number) => FileRedundancy::Striped(
            known
                .policy(number)
                .ok_or_else(|| format!("files of erasure coding policy {number}"))?,
        ),
    };
    let count = file.blocks.len();
    let blocks = file.blocks.iter().enumerate().map(|(index, of)| {
        let is_written = file.writer.is_some() && index + 1 == count;
        let state = match is_written {
            true => BlockState::UnderConstruction,
            false => BlockState::Complete,
        };
        Block {
            id: BlockId(of.id),
            gs: GenerationStamp(of.stamp),
            len: of.len,
            file: id,
            index: index as u32,
            state,
            unit_crcs: Vec::new(),
            group: None,
            packed: None,
        }
    });
    let blocks: Vec<Block> = blocks.collect();
    if blocks.iter().any(|block| block.id.is_striped() != redundancy.is_striped()) {
        return Err("files with blocks and block groups".to_string());
    }
    if u32::try_from(count).is_err() {
        return Err("files with too many blocks".to_string());
    }
    Ok((redundancy, blocks))
}
