//! Snapshots of an image: what was otherwise in each of them, inode by inode.
//!
//! An image has the tree as it is, and of what was different in a snapshot only that. [`Past`] is all of it in memory: as much
//! as there are differences, however large the tree is. [`super::replay`] makes snapshots of it.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatPBSnapshot.Loader`, `DirectoryWithSnapshotFeature`, `FileDiffList`.

use super::known::Known;
use super::turned::{Turned, turned_in};
use cairn_fsimage::{
    self as fsimage, Child, Diff, Diffs, Image, ImageError, InodeKind, Reference, Snapshots,
    sections,
};
use cairn_namespace::InodeId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

/// A snapshot.
pub(super) struct Taken {
    pub id: u32,
    /// The directory.
    pub root: u64,
    pub name: String,
    pub modified_ms: u64,
    /// The directory as it was.
    copy: Turned,
}

/// How an inode is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Via {
    /// It was never anywhere else.
    Itself,
    /// It was moved away after that snapshot.
    Left(u32),
    /// It was moved there from a place that a snapshot has.
    Came,
}

/// What a directory had at a name.
pub(super) type Place = (u64, Via);

/// What was different in a directory from one snapshot to the next, or to what is now.
pub(super) struct DirectoryWas {
    pub snapshot: u32,
    /// The directory itself, if that has changed.
    pub copy: Option<Turned>,
    /// Names that came after the snapshot, and what came, once that is known.
    pub created: Vec<(String, Option<Place>)>,
    /// What went, by name once that is known.
    pub deleted: Vec<(Option<String>, Place)>,
}

/// What a file was in a snapshot.
pub(super) struct FileWas {
    pub snapshot: u32,
    pub len: u64,
    pub copy: Option<Turned>,
    /// Its blocks, if they are others now.
    pub blocks: Vec<fsimage::Block>,
}

/// Everything that is not as it always was.
#[derive(Default)]
pub(super) struct Past {
    /// The oldest first.
    pub taken: Vec<Taken>,
    /// The oldest first, by directory.
    pub directories: HashMap<u64, Vec<DirectoryWas>>,
    pub files: HashMap<u64, Vec<FileWas>>,
    /// Inodes that have been in several places.
    pub referred: HashSet<u64>,
    /// What directories that were different have now, without names.
    children: HashMap<u64, Vec<Place>>,
    /// Names of inodes that are spoken of.
    names: HashMap<u64, Option<String>>,
    /// As they are now: inodes that were different, or are not there any more.
    pub now: HashMap<u64, Turned>,
    /// Inodes that were deleted, but not with their directories.
    deleted: HashSet<u64>,
}

/// Why an image's snapshots cannot be taken over.
pub(super) enum Why {
    Image(ImageError),
    Refused(String),
}

impl From<ImageError> for Why {
    fn from(error: ImageError) -> Why {
        Why::Image(error)
    }
}

impl From<String> for Why {
    fn from(what: String) -> Why {
        Why::Refused(what)
    }
}

fn text(name: &[u8]) -> Result<String, String> {
    let name = std::str::from_utf8(name).map_err(|_| "names that are not UTF-8")?;
    Ok(name.to_string())
}

impl Past {
    /// Reads what an image has of snapshots, and lets `known` know the last place of what is not there any more.
    pub fn read(image: &mut Image<fs::File>, known: &mut Known) -> Result<Past, Why> {
        let mut past = Past::default();
        let Some(section) = image.section(sections::SNAPSHOT)? else { return Ok(past) };
        let mut snapshots = Snapshots::read(section)?;
        while let Some(of) = snapshots.snapshot()? {
            let InodeKind::Directory(directory) = &of.root.kind else { continue };
            let (name, modified_ms) = (text(of.root.name)?, directory.modified_ms);
            let copy = turned_in(known, InodeId::NONE, &of.root)?;
            past.taken.push(Taken { id: of.id, root: of.root.id, name, modified_ms, copy });
        }
        past.taken.sort_by_key(|taken| taken.id);
        let references = Reference::read(image.section(sections::INODE_REFERENCE)?)?;
        past.referred = references.iter().map(|of| of.inode).collect();
        past.differences(image, known, &references)?;
        past.children_now(image, &references)?;
        for (directory, all) in &past.children {
            for (id, _) in all.iter().filter(|(_, via)| *via == Via::Came) {
                known.add_parent(*id, *directory);
            }
        }
        for (directory, all) in &past.directories {
            for (_, (id, _)) in all.iter().flat_map(|was| &was.deleted) {
                past.deleted.insert(*id);
                known.add_parent(*id, *directory);
            }
        }
        known.sort_parents();
        Ok(past)
    }

    fn differences(
        &mut self,
        image: &mut Image<fs::File>,
        known: &Known,
        references: &[Reference],
    ) -> Result<(), Why> {
        let Some(section) = image.section(sections::SNAPSHOT_DIFF)? else { return Ok(()) };
        let (mut diffs, mut of) = (Diffs::read(section), 0);
        while let Some(diff) = diffs.diff()? {
            match diff {
                Diff::Of { inode, .. } => of = inode,
                Diff::Directory(diff) => {
                    let taken = self.taken.binary_search_by_key(&diff.snapshot, |taken| taken.id);
                    let taken = taken
                        .ok()
                        .and_then(|at| self.taken.get(at))
                        .ok_or("differences of snapshots that are not there".to_string())?;
                    let copy = match diff.copy {
                        _ if diff.is_root => Some(taken.copy.clone()),
                        Some(copy) => Some(self.was(known, of, InodeKind::Directory(copy))?),
                        None => None,
                    };
                    let mut deleted: Vec<(Option<String>, Place)> =
                        diff.deleted.iter().map(|id| (None, (*id, Via::Itself))).collect();
                    for number in &diff.deleted_references {
                        let reference = references.get(*number as usize);
                        let reference =
                            reference.ok_or("references that are not there".to_string())?;
                        deleted.push(match reference.last_snapshot {
                            Some(last) => {
                                let name = Some(text(&reference.name)?);
                                (name, (reference.inode, Via::Left(last)))
                            }
                            // It was there when it was deleted, under its own name.
                            None => (None, (reference.inode, Via::Came)),
                        });
                    }
                    let (snapshot, created) = (diff.snapshot, Vec::new());
                    let was = DirectoryWas { snapshot, copy, created, deleted };
                    self.directories.entry(of).or_default().push(was);
                }
                Diff::Created(name) => {
                    let last = self.directories.get_mut(&of).and_then(|all| all.last_mut());
                    if let Some(last) = last {
                        last.created.push((text(name)?, None));
                    }
                }
                Diff::File(diff) => {
                    let copy = match diff.copy {
                        Some(copy) => Some(self.was(known, of, InodeKind::File(copy))?),
                        None => None,
                    };
                    let (snapshot, len) = (diff.snapshot, diff.len);
                    let blocks = diff.blocks.iter().collect();
                    let was = FileWas { snapshot, len, copy, blocks };
                    self.files.entry(of).or_default().push(was);
                }
            }
        }
        self.directories.values_mut().for_each(|all| all.sort_by_key(|was| was.snapshot));
        self.files.values_mut().for_each(|all| all.sort_by_key(|was| was.snapshot));
        Ok(())
    }

    /// A copy of an inode, whose name and place are those of the time that it is put in for.
    fn was(&self, known: &Known, id: u64, kind: InodeKind<'_>) -> Result<Turned, String> {
        turned_in(known, InodeId::NONE, &fsimage::Inode { id, name: b"", kind })
    }

    /// Reads what the directories have now that were different.
    fn children_now(
        &mut self,
        image: &mut Image<fs::File>,
        references: &[Reference],
    ) -> Result<(), Why> {
        let Some(mut section) = image.section(sections::INODE_DIR)? else { return Ok(()) };
        while let Some(entry) = section.children()? {
            let mut found = Vec::new();
            entry.each(|child| match child {
                Child::Inode(id) => found.push((id, Via::Itself)),
                Child::Reference(number) => {
                    found.extend(references.get(number as usize).map(|of| (of.inode, Via::Came)));
                }
            })?;
            if self.directories.contains_key(&entry.parent)
                || found.iter().any(|(_, via)| *via == Via::Came)
            {
                self.directories.entry(entry.parent).or_default();
                self.children.entry(entry.parent).or_default().extend(found);
            }
        }
        let deleted = self.directories.values().flatten().flat_map(|was| &was.deleted);
        let spoken_of = self.children.values().flatten().chain(deleted.map(|(_, place)| place));
        self.names = spoken_of.map(|(id, _)| (*id, None)).collect();
        Ok(())
    }

    /// Whether there are no snapshots.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Notes the name of an inode, if anything speaks of it.
    pub fn note(&mut self, id: u64, name: &str) {
        if let Some(of) = self.names.get_mut(&id) {
            *of = Some(name.to_string());
        }
    }

    /// Whether an inode has not always been as it is and where it is.
    pub fn is_kept(&self, id: u64) -> bool {
        self.directories.contains_key(&id)
            || self.files.contains_key(&id)
            || self.referred.contains(&id)
            || self.deleted.contains(&id)
    }

    /// Whether what a directory has is put in here.
    pub fn has_children_of(&self, directory: u64) -> bool {
        self.directories.contains_key(&directory)
    }

    /// How many blocks there are that only snapshots have, of files that are not deleted.
    pub fn blocks_of_then(&self) -> u64 {
        let mut then = HashSet::new();
        for (id, all) in &self.files {
            let now = self.now.get(id).map_or(&[][..], |now| &now.blocks[..]);
            let blocks = all.iter().flat_map(|was| &was.blocks).map(|block| block.id);
            then.extend(blocks.filter(|of| !now.iter().any(|block| block.id.0 == *of)));
        }
        then.len() as u64
    }

    /// Goes back from what is now to the oldest snapshot, and finds out what came by each name. Returns what directories had
    /// then.
    pub fn go_back(&mut self) -> Result<HashMap<u64, BTreeMap<String, Place>>, String> {
        let mut oldest = HashMap::new();
        let name_of = |names: &HashMap<u64, Option<String>>, id: u64| {
            let name = names.get(&id).cloned().flatten();
            name.ok_or_else(|| "children that are not there".to_string())
        };
        for (directory, all) in &mut self.directories {
            let mut at = BTreeMap::new();
            for place in self.children.get(directory).into_iter().flatten() {
                at.insert(name_of(&self.names, place.0)?, *place);
            }
            for was in all.iter_mut().rev() {
                for (name, place) in &mut was.created {
                    *place = at.remove(&*name);
                }
                for (name, place) in &mut was.deleted {
                    let name = match name {
                        Some(name) => name.clone(),
                        None => name.insert(name_of(&self.names, place.0)?).clone(),
                    };
                    at.insert(name, *place);
                }
            }
            oldest.insert(*directory, at);
        }
        Ok(oldest)
    }
}
