//! What must be true: every file with the bytes that were written and how many of them were
//! acknowledged, and which nodes have failed each block.

use crate::bytes::Bytes;
use cairn_namespace::query;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Command, InodeId, Outcome};
use cairn_redundancy::BlockRef;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A replica or unit, by its node.
pub(crate) type Part = (usize, UnitIndex);

/// The bytes of each unit of a group of some length.
pub(crate) type Units = BTreeMap<(BlockId, u64), Rc<Vec<Bytes>>>;

/// A file as its writers know it.
#[derive(Clone, Debug)]
pub(crate) struct FileModel {
    pub(crate) path: String,
    pub(crate) is_striped: bool,
    /// The client that has opened it last.
    pub(crate) writer: String,
    /// All that was sent; the file is a part of it from its start on.
    pub(crate) written: Vec<u8>,
    /// Bytes that must not be lost, unless the power fails everywhere.
    pub(crate) acked: u64,
    /// Bytes of these that must never be lost: they were synced.
    pub(crate) durable: u64,
    /// Bytes that a writer was told are safe, whatever the power has taken since: what is left of them must not be dropped.
    pub(crate) told: u64,
    pub(crate) is_open: bool,
}

/// What a block can bear.
#[derive(Clone, Debug)]
pub(crate) struct BlockModel {
    /// Parts that may fail before it is whole again.
    pub(crate) tolerance: usize,
    /// Parts that have failed since it was whole.
    pub(crate) exposed: BTreeSet<Part>,
    /// Parts, with their stamps, of which a power cut has taken what it could not bear to lose: until its writer has mended
    /// it, nothing more of it is acknowledged than what was synced.
    pub(crate) torn: BTreeSet<(Part, GenerationStamp)>,
}

impl BlockModel {
    /// A block that bears so many failures, of which those parts have failed.
    pub(crate) fn new(tolerance: usize, exposed: BTreeSet<Part>) -> BlockModel {
        BlockModel { tolerance, exposed, torn: BTreeSet::new() }
    }
}

/// A contiguous group, or an attempt to make one.
#[derive(Clone, Debug)]
pub(crate) struct GroupModel {
    /// The members with their bytes, by slot.
    pub(crate) members: Vec<Option<(BlockId, Vec<u8>)>>,
    /// The bytes of all units by slot, once it is formed; empty slots have none.
    pub(crate) units: Vec<Bytes>,
}

/// A replica that was read whole where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    pub(crate) gs: GenerationStamp,
    /// The registration of its DataNode then.
    pub(crate) registration: u64,
    /// Its node has the disks of an image since, on which it is not so.
    pub(crate) is_lost: bool,
}

impl Proof {
    /// Of a replica that has just been read.
    pub(crate) fn new(gs: GenerationStamp, registration: u64) -> Proof {
        Proof { gs, registration, is_lost: false }
    }
}

/// A NameNode that was restored from a backup, and what is compared then.
pub(crate) struct Restored {
    pub(crate) since_ms: u64,
    /// What must be read in the end.
    pub(crate) expected: Vec<(BlockRef, Vec<u8>)>,
    /// An operator has ended its safe mode.
    pub(crate) has_left: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) files: BTreeMap<InodeId, FileModel>,
    /// Blocks, and contiguous groups by their handles.
    pub(crate) blocks: BTreeMap<BlockId, BlockModel>,
    /// By node.
    pub(crate) proofs: BTreeMap<(usize, BlockId), Proof>,
    pub(crate) groups: BTreeMap<BlockId, Rc<GroupModel>>,
    /// What pipelines have finalized may be in memory only.
    pub(crate) is_lazy: bool,
    /// The names of the snapshots of the second directory.
    pub(crate) snapshots: Vec<String>,
    /// All handles that were given out, with the life of the NameNode that did.
    pub(crate) handles: BTreeMap<BlockId, u64>,
    pub(crate) abandoned: BTreeSet<BlockId>,
    /// The bytes of containers that were sealed.
    pub(crate) containers: BTreeMap<BlockId, Vec<u8>>,
    /// CRC32C of the bytes that an id and stamp have had.
    pub(crate) bytes: BTreeMap<(BlockId, GenerationStamp), u32>,
    /// Good replicas that the NameNode was told are bad, which they are not where they are now, by machine.
    pub(crate) called_bad: BTreeSet<(usize, BlockId)>,
    /// Deletions of members that nodes were told, until they have told of them: the registration that they are for, and
    /// until when they may be obeyed.
    pub(crate) told: BTreeMap<(usize, BlockId), (u64, u64)>,
}

impl Model {
    fn id_of(&self, path: &str) -> Option<InodeId> {
        self.files.iter().find(|(_, file)| file.path == path).map(|(id, _)| *id)
    }

    /// Follows a command that the namespace has taken. Fails if its outcome cannot be.
    pub(crate) fn follow(&mut self, command: &Command, outcome: &Outcome) -> Result<(), String> {
        match (command, outcome) {
            (Command::Create(create), Outcome::Created { status, .. }) => {
                let file = FileModel {
                    path: create.path.clone(),
                    is_striped: create.ec_policy.is_some(),
                    writer: create.holder.clone(),
                    written: Vec::new(),
                    acked: 0,
                    durable: 0,
                    told: 0,
                    is_open: true,
                };
                // A repeated call gives the same file again.
                self.files.entry(status.inode.id).or_insert(file);
            }
            (Command::Append(append), Outcome::Appended { status, .. }) => {
                if let Some(file) = self.files.get_mut(&status.inode.id) {
                    // It may have been taken from another writer a moment ago.
                    if status.len() < file.acked {
                        let (path, acked) = (&file.path, file.acked);
                        return Err(format!(
                            "{path} is appended to at {} of {acked}",
                            status.len()
                        ));
                    }
                    file.written.truncate(status.len() as usize);
                    file.told = file.told.min(status.len());
                    file.writer = append.holder.clone();
                    file.is_open = true;
                }
            }
            (Command::Delete(delete), Outcome::Removed { done: true, .. }) => {
                if let Some(id) = self.id_of(&delete.path) {
                    self.files.remove(&id);
                }
            }
            (Command::Rename(rename), Outcome::Flag(true)) => {
                if let Some(id) = self.id_of(&rename.src)
                    && let Some(file) = self.files.get_mut(&id)
                {
                    file.path = rename.dst.clone();
                }
            }
            (Command::Concat(concat), Outcome::Done) => {
                for source in &concat.sources {
                    let moved = self.id_of(source).and_then(|id| self.files.remove(&id));
                    let moved = moved.ok_or(format!("concat of {source}, which is not there"))?;
                    let target = self.id_of(&concat.target);
                    let target = target.and_then(|id| self.files.get_mut(&id));
                    let target = target.ok_or("concat to a file that is not there")?;
                    target.written.extend(moved.written);
                    target.acked += moved.acked;
                    target.durable += moved.durable;
                    target.told += moved.told;
                }
            }
            (Command::Truncate(truncate), Outcome::Removed { .. } | Outcome::Recovery { .. }) => {
                let file = self.id_of(&truncate.path).and_then(|id| self.files.get_mut(&id));
                let file = file.ok_or("truncate of a file that is not there")?;
                file.written.truncate(truncate.new_len as usize);
                file.acked = file.acked.min(truncate.new_len);
                file.durable = file.durable.min(truncate.new_len);
                file.told = file.told.min(truncate.new_len);
                // Until its last block is cut off.
                file.is_open |= matches!(outcome, Outcome::Recovery { .. });
            }
            (Command::CreateSnapshot(create), Outcome::SnapshotCreated(_)) => {
                self.snapshots.push(create.name.clone());
            }
            (Command::DeleteSnapshot(delete), Outcome::Removed { done: true, .. }) => {
                self.snapshots.retain(|name| *name != delete.name);
            }
            (Command::Complete(complete), Outcome::Flag(true)) => {
                let file = complete.file.and_then(|id| self.files.get_mut(&id));
                if let Some(file) = file.filter(|file| file.is_open) {
                    file.acked = file.written.len() as u64;
                    file.told = file.acked;
                    if !self.is_lazy {
                        file.durable = file.acked;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares with the namespace. A file that was closed by a recovery has the bytes that it left.
    pub(crate) fn compare(&mut self, store: &dyn StoreRead) -> Result<(), String> {
        for (id, file) in &mut self.files {
            let found = query::get_inode_info(store, *id).map_err(|error| error.to_string())?;
            let Some((path, status)) = found else {
                return Err(format!("{} is not in the namespace", file.path));
            };
            if path != file.path {
                return Err(format!("{} is called {path}", file.path));
            }
            let (len, most) = (status.len(), file.written.len() as u64);
            if status.is_under_construction() != file.is_open && !file.is_open {
                return Err(format!("{path} is open"));
            }
            if status.is_under_construction() {
                continue;
            }
            let least = if file.is_open { file.acked } else { most };
            if file.is_open && file.is_striped && len > most && len.is_multiple_of(1024) {
                // A short last stripe, of which the units that end early are gone, looks like a full one:
                // it ends in zeros, as in Hadoop.
                file.written.resize(len as usize, 0);
            }
            let most = file.written.len() as u64;
            if len < least || len > most {
                return Err(format!("{path} has {len} bytes, acknowledged are {least} of {most}"));
            }
            file.written.truncate(len as usize);
            file.durable = if self.is_lazy { file.durable.min(len) } else { len };
            (file.acked, file.told, file.is_open) = (len, len, false);
        }
        let names = query::totals(store).map_err(|error| error.to_string())?.inodes;
        // The root, the directories of all files, and they.
        let known = 1 + DIRECTORIES.len() as u64 + self.files.len() as u64;
        // Names that only snapshots have are counted as well.
        if names < known || names > known && self.snapshots.is_empty() {
            return Err(format!("{names} names where {known} are known"));
        }
        Ok(())
    }
}

/// Where all files are: those in the second are to be in contiguous groups, in some simulations.
pub(crate) const DIRECTORIES: [&str; 2] = ["/d", "/g"];
