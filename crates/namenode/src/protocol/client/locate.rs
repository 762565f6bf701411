//! Blocks of the namespace joined with their places in the cluster: `LocatedBlockProto` and kin.
//!
//! Source: Hadoop 3.5.0 `BlockManager#createLocatedBlocks`, `BlockManager#createLocatedBlock`,
//! `PBHelperClient#convertLocatedBlock`.

use std::collections::BTreeSet;

use cairn_master::facts::facts_as;
use cairn_namespace::query::{FileBlocks, FileStatus, SmallFile};
use cairn_namespace::{Block, BlockState, Inode, block};
use cairn_redundancy::block::Location;
use cairn_redundancy::{AdminState, Cluster, Layout, Now, Reader, StorageHandle, StorageState};
use cairn_stripe::{BlockId, GenerationStamp, PolicyLayout, Redundancy, UnitIndex};
use cairn_wire::proto::hdfs as pb;

use super::super::convert;
use super::encode::{Located, LocatedFile, Signed};
use super::places::Places;
use super::told::Told;
use crate::dice::dice;
use crate::journal::Namesystem;
use crate::node::NameNode;

/// What every located block needs besides the block.
pub struct Locator<'a> {
    /// Where blocks are.
    pub cluster: &'a Cluster,
    /// The file system's block pool.
    pub block_pool: &'a str,
    /// Who will read.
    pub reader: Reader<'a>,
    /// The time, for what is stale.
    pub now: Now,
    /// Whether the reader could not read from the places that it was told before.
    pub after_failure: bool,
    /// The file system, for containers.
    pub ns: &'a Namesystem,
    /// What tells where blocks are in the place of the cluster, which knows nodes only.
    pub told: Option<Told<'a>>,
}

impl<'a> Locator<'a> {
    /// For those who write.
    pub fn for_writers(node: &'a NameNode, cluster: &'a Cluster) -> Locator<'a> {
        let block_pool = node.ns.identity().block_pool_id.as_str();
        let reader = Reader::default();
        let (now, after_failure, ns) = (node.now(), false, &node.ns);
        Locator { cluster, block_pool, reader, now, after_failure, ns, told: None }
    }
}

impl Locator<'_> {
    /// Whether something that was asked for is for the leader to tell.
    pub fn leaves_something(&self) -> bool {
        self.told.as_ref().is_some_and(Told::is_left)
    }

    /// The block as clients name it.
    pub fn extended(&self, id: BlockId, gs: GenerationStamp, len: u64) -> pb::ExtendedBlockProto {
        extended_block(self.block_pool, id, gs, len)
    }

    /// A block with its places. `striped` says whether the places' units are sent.
    pub fn located(
        &self,
        block: pb::ExtendedBlockProto,
        offset: u64,
        places: &Places,
        striped: bool,
    ) -> pb::LocatedBlockProto {
        let storages = || places.storages.iter().map(|(handle, _)| self.cluster.storage(*handle));
        let node_of = |storage: &cairn_redundancy::Storage| self.cluster.node(storage.node);
        let indices = || places.storages.iter().map(|(_, unit)| unit.0).collect::<Vec<u8>>();
        let tokens = if striped { places.storages.len() } else { 0 };
        pb::LocatedBlockProto {
            is_cached: places.cached(self.cluster, BlockId(block.block_id as i64)).collect(),
            b: block,
            offset,
            locs: storages().map(|storage| convert::datanode_info(node_of(storage), 0)).collect(),
            corrupt: places.corrupt,
            block_token: convert::no_token(),
            storage_types: storages().map(|s| s.storage_type.number()).collect(),
            storage_i_ds: storages().map(|storage| storage.uuid.clone()).collect(),
            block_indices: striped.then(indices),
            block_tokens: vec![convert::no_token(); tokens],
            ..Default::default()
        }
    }

    /// A file's block where readers and writers find it.
    pub fn locate(
        &self,
        offset: u64,
        block: &Block,
        redundancy: &Redundancy,
    ) -> pb::LocatedBlockProto {
        let places = self.places(block, &Layout::from(redundancy));
        let extended = self.extended(block.id, block.gs, block.len);
        self.located(extended, offset, &places, matches!(redundancy, Redundancy::Striped(_)))
    }

    /// Where readers and writers find a file's block.
    pub fn places(&self, block: &Block, layout: &Layout) -> Places {
        if let Some(told) = &self.told {
            let storages = if self.after_failure { None } else { self.find(told, block, layout) };
            return told.or_left(storages);
        }
        if block.state == BlockState::Complete {
            let places = self.complete_places(block, layout);
            if let Some(at) = block.packed {
                return self.with_container(places, at.container);
            }
            match block.group {
                Some(of) => self.with_decoders(places, of.handle),
                None => places,
            }
        } else {
            self.incomplete_places(block)
        }
    }

    /// The writer's pipeline; after a restart, what has been reported.
    pub fn incomplete_places(&self, block: &Block) -> Places {
        let mut storages = self.cluster.pipeline(block.id);
        if storages.is_empty() {
            let found = self.cluster.locations(block.id).into_iter();
            storages = found.filter(|at| !at.corrupt).map(|at| (at.storage, at.unit)).collect();
        }
        Places { storages, corrupt: false }
    }

    /// Good places only, or all if too few of them are good; nearest first, groups by unit.
    fn complete_places(&self, block: &Block, layout: &Layout) -> Places {
        let facts = facts_as(block, *layout);
        let mut found = self.cluster.locations(block.id);
        let bad = found.iter().filter(|at| at.corrupt).count();
        let corrupt = match layout {
            Layout::Striped { .. } => {
                bad > 0 && self.cluster.good_units(block.id, &facts) < facts.data_units()
            }
            Layout::Replicated { .. } | Layout::Parity { .. } => bad > 0 && bad == found.len(),
        };
        found.retain(|at| corrupt || !at.corrupt);
        let mut storages = self.for_reader(found);
        // Until enough DataNodes have reported it, readers need those to which it was written.
        if storages.len() < facts.data_units() {
            let written = self.cluster.unreported(block.id).chain(self.cluster.pipeline(block.id));
            for place in written {
                if !storages.contains(&place) {
                    storages.push(place);
                }
            }
            storages.sort_by_key(|(_, unit)| *unit);
        }
        Places { storages, corrupt }
    }

    /// Where a block can be read, itself or its container, as far as that was told.
    fn find(
        &self,
        told: &Told<'_>,
        block: &Block,
        layout: &Layout,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let found = self.enough(told, block, layout);
        let Some(at) = block.packed.filter(|_| found.is_none()) else { return found };
        let container = self.ns.read(|store| block::get(store, at.container)).ok()??;
        self.enough(told, &container, &Layout::Replicated { copies: 1 })
    }

    /// Places of a block, if they are enough to read it: of a member of a group one that is heard of, as it would be decoded
    /// else.
    fn enough(
        &self,
        told: &Told<'_>,
        block: &Block,
        layout: &Layout,
    ) -> Option<Vec<(StorageHandle, UnitIndex)>> {
        let storages = self.for_reader(told.locations(self.cluster, block, layout));
        let units: BTreeSet<UnitIndex> = storages.iter().map(|(_, unit)| *unit).collect();
        let needed = facts_as(block, *layout).data_units().max(1);
        let is_heard_of =
            block.group.is_none() || self.cluster.is_any_heard_of(&storages, self.now);
        (units.len() >= needed && is_heard_of).then_some(storages)
    }

    /// Those of the places that can be read, nearest first, groups by unit.
    pub fn for_reader(&self, mut found: Vec<Location>) -> Vec<(StorageHandle, UnitIndex)> {
        found.retain(|at| {
            let node = self.cluster.node(at.node);
            let away = node.admin == AdminState::InMaintenance
                || (node.admin == AdminState::EnteringMaintenance && !node.alive);
            let failed = self.cluster.storage(at.storage).state == StorageState::Failed;
            !failed && !away
        });
        self.cluster.sort_for_reader(&mut found, &self.reader, self.now, &mut dice);
        // Of two places with one unit clients take the first.
        found.sort_by_key(|at| at.unit);
        found.into_iter().map(|at| (at.storage, at.unit)).collect()
    }

    /// The DataNodes that serve the plain view of a block group, nearest first. All that is left of it may be `corrupt`.
    pub fn viewers(&self, group: BlockId, corrupt: bool) -> Places {
        let mut able = self.cluster.decoders(group, self.now);
        let mut found = self.cluster.locations(group);
        found.retain(|at| able.contains(&at.storage));
        self.cluster.sort_for_reader(&mut found, &self.reader, self.now, &mut dice);
        if !found.is_empty() {
            able = found.into_iter().map(|at| at.storage).collect();
        }
        let mut known = BTreeSet::new();
        able.retain(|storage| known.insert(self.cluster.storage(*storage).node));
        let storages = able.into_iter().map(|storage| (storage, UnitIndex(0))).collect();
        Places { storages, corrupt }
    }

    /// The places of a packed block: those of plain replicas that are left, else those of its container, behind which
    /// those who decode it may stand.
    fn with_container(&self, plain: Places, container: BlockId) -> Places {
        if !plain.corrupt && !plain.storages.is_empty() && !self.after_failure {
            return plain;
        }
        let found = self.ns.read(|store| block::get(store, container));
        let Ok(Some(container)) = found else { return plain };
        let mut places = self.complete_places(&container, &Layout::Replicated { copies: 1 });
        if places.corrupt {
            places.storages.clear();
            places.corrupt = false;
        }
        if let Some(of) = container.group {
            places = self.with_decoders(places, of.handle);
        }
        if !plain.corrupt {
            let known = places.storages.clone();
            places.storages.extend(plain.storages.into_iter().filter(|at| !known.contains(at)));
        }
        places
    }

    /// The places of a member of a contiguous group: where none of them can be read from a node that is heard of, or the
    /// reader says so, those who decode it stand behind them.
    fn with_decoders(&self, mut places: Places, handle: BlockId) -> Places {
        let named = if places.corrupt { &[] } else { &places.storages[..] };
        let decoders = self.cluster.readers_of_member(handle, named, self.after_failure, self.now);
        if places.corrupt && !decoders.is_empty() {
            return Places { storages: decoders, corrupt: false };
        }
        places.storages.extend(decoders);
        places
    }

    /// The answer to `getBlockLocations` for a file of one block at most; none if its block has no place, which is not
    /// told in safe mode.
    pub fn small_file(&self, found: &SmallFile<'_>, signed: &Signed) -> Option<Vec<u8>> {
        let policy = found.entry.policy.filter(|policy| policy.layout == PolicyLayout::Striped);
        let layout = match (policy, found.file.redundancy.copies()) {
            (Some(policy), _) => Layout::from(policy),
            (None, Some(copies)) => Layout::Replicated { copies },
            // A group without its policy is nothing.
            (None, None) => return None,
        };
        let places = found.block.map(|block| self.places(block, &layout));
        if places.as_ref().is_some_and(|places| places.storages.is_empty()) {
            return None;
        }
        let located = found.block.zip(places.as_ref()).map(|(block, places)| Located {
            cluster: self.cluster,
            block_pool: self.block_pool,
            id: block.id,
            gs: block.gs,
            len: block.len,
            offset: 0,
            places,
            striped: policy.is_some(),
            signed,
        });
        let is_complete = found.block.is_some_and(|block| block.state == BlockState::Complete);
        let open_len = found.block.filter(|_| !is_complete).map_or(0, |block| block.len);
        let file = LocatedFile {
            len: found.file.len.saturating_sub(open_len),
            is_under_construction: found.file.writer.is_some(),
            is_last_block_complete: is_complete,
            encryption: found.entry.encryption.file(),
            policy,
        };
        Some(file.locations(located.as_ref(), found.is_in_range))
    }

    /// A file's blocks as `getBlockLocations` sends them. To the length of an open file its readers add what DataNodes
    /// have of the last block; that of a file in a snapshot is told whole.
    ///
    /// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getBlockLocations`, `BlockManager#createLocatedBlocks`.
    pub fn located_blocks(&self, found: &FileBlocks) -> pb::LocatedBlocksProto {
        let locate =
            |(offset, block): &(u64, Block)| self.locate(*offset, block, &found.redundancy);
        let is_settled = |last: &Block| found.in_snapshot || last.state == BlockState::Complete;
        let last_is_complete = found.last.as_ref().is_some_and(|(_, last)| is_settled(last));
        let open_len = found.last.as_ref().filter(|_| !last_is_complete).map_or(0, |(_, b)| b.len);
        pb::LocatedBlocksProto {
            file_length: found.status.len().saturating_sub(open_len),
            blocks: found.blocks.iter().map(locate).collect(),
            under_construction: found.status.is_under_construction(),
            last_block: found.last.as_ref().map(locate),
            is_last_block_complete: last_is_complete,
            file_encryption_info: found.status.encryption.file().map(convert::file_encryption),
            // A reader of a contiguous file reads plain blocks, and must not know of a policy.
            ec_policy: match &found.redundancy {
                Redundancy::Replicated(_) => None,
                Redundancy::Striped(policy) => Some(convert::policy(policy, None)),
            },
        }
    }
}

/// The block as clients name it.
pub fn extended_block(
    block_pool: &str,
    id: BlockId,
    gs: GenerationStamp,
    len: u64,
) -> pb::ExtendedBlockProto {
    pb::ExtendedBlockProto {
        pool_id: block_pool.to_string(),
        block_id: id.0 as u64,
        generation_stamp: gs.0,
        num_bytes: Some(len),
    }
}

/// A status as clients get it. `name` is empty where the client has asked for this very path.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#createFileStatus`, `PBHelperClient#convert(HdfsFileStatus)`.
pub fn file_status(status: &FileStatus, name: &str) -> pb::HdfsFileStatusProto {
    let inode: &Inode = &status.inode;
    let file_type = if inode.is_directory() {
        pb::HdfsFileStatusProtoFileType::IsDir
    } else {
        pb::HdfsFileStatusProtoFileType::IsFile
    };
    let mut flags = 0;
    if status.policy.is_some() {
        flags |= pb::HdfsFileStatusProtoFlags::HasEc as u32;
    }
    if !inode.acl.is_empty() {
        flags |= pb::HdfsFileStatusProtoFlags::HasAcl as u32;
    }
    if status.snapshottable {
        flags |= pb::HdfsFileStatusProtoFlags::SnapshotEnabled as u32;
    }
    if status.encryption.is_inside() {
        flags |= pb::HdfsFileStatusProtoFlags::HasCrypt as u32;
    }
    let children = i32::try_from(status.children()).unwrap_or(i32::MAX);
    pb::HdfsFileStatusProto {
        file_type: file_type as i32,
        path: name.as_bytes().to_vec(),
        length: status.len(),
        permission: pb::FsPermissionProto { perm: inode.mode.into() },
        owner: inode.owner.clone(),
        group: inode.group.clone(),
        modification_time: inode.mtime,
        access_time: inode.atime,
        symlink: None,
        block_replication: Some(status.replication().into()),
        blocksize: Some(status.block_size()),
        locations: None,
        file_id: Some(inode.id.0),
        children_num: Some(children),
        file_encryption_info: status.encryption.file().map(convert::file_encryption),
        storage_policy: Some(status.storage_policy.into()),
        ec_policy: status.policy.as_ref().map(|policy| convert::policy(policy, None)),
        flags: Some(flags),
        namespace: None,
    }
}

/// A directory that is shown and is none.
fn shown_directory(name: &str, mode: u32, group: &str, time: u64) -> pb::HdfsFileStatusProto {
    pb::HdfsFileStatusProto {
        file_type: pb::HdfsFileStatusProtoFileType::IsDir as i32,
        path: name.as_bytes().to_vec(),
        length: 0,
        permission: pb::FsPermissionProto { perm: mode },
        owner: String::new(),
        group: group.to_string(),
        modification_time: time,
        access_time: time,
        block_replication: Some(0),
        blocksize: Some(0),
        file_id: Some(0),
        children_num: Some(0),
        storage_policy: Some(0),
        flags: Some(0),
        ..pb::HdfsFileStatusProto::default()
    }
}

/// The status of `/.reserved`. Source: Hadoop 3.5.0 `FSDirectory#DOT_RESERVED_STATUS`.
pub fn reserved_status() -> pb::HdfsFileStatusProto {
    shown_directory("", 0o1770, "", 0)
}

/// What is in `/.reserved`. Source: Hadoop 3.5.0 `FSDirectory#createReservedStatuses`.
pub fn reserved_listing(node: &NameNode) -> pb::DirectoryListingProto {
    let created = node.ns.identity().created_ms;
    let entry = |name| shown_directory(name, 0o770, &node.config.supergroup, created);
    let partial_listing = vec![entry(".inodes"), entry("raw")];
    pb::DirectoryListingProto { partial_listing, remaining_entries: 0 }
}
