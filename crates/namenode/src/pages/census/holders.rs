//! Whose the bytes are: by the directories at the top of the tree, and by the owners of files.
//!
//! A file counts for one directory: the one of the first two levels that it is in. So no byte counts twice. The largest
//! of each kind are told by name, all others together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_namespace::store::StoreRead;
use cairn_namespace::{Block, InodeId};

/// Levels of directories that are told apart.
const LEVELS: u8 = 2;
/// Directories, and owners, that are told by name.
const NAMED_MAX: usize = 20;
/// Names that are counted apart, of each kind. Those that come when so many are there count with what has no name.
const COUNTED_MAX: usize = 10_000;
/// Directories whose place is remembered.
const REMEMBERED_MAX: usize = 100_000;
/// What is not told by name.
pub(in super::super) const OTHER: &str = "other";

/// Bytes by name.
#[derive(Clone, Debug, Default)]
struct Bytes {
    by_name: HashMap<Arc<str>, u64>,
    other: u64,
}

impl Bytes {
    fn add(&mut self, name: Option<&Arc<str>>, len: u64) {
        let has_room = self.by_name.len() < COUNTED_MAX;
        let sum = match name {
            Some(name) if has_room || self.by_name.contains_key(name) => {
                self.by_name.entry(Arc::clone(name)).or_default()
            }
            _ => &mut self.other,
        };
        *sum = sum.saturating_add(len);
    }

    /// The names with the most, and the rest if there is any.
    fn largest(&self) -> Vec<(Arc<str>, u64)> {
        let mut all: Vec<_> = self.by_name.iter().map(|(name, len)| (name.clone(), *len)).collect();
        all.sort_by(|(a, a_len), (b, b_len)| b_len.cmp(a_len).then(a.cmp(b)));
        let rest = all.split_off(all.len().min(NAMED_MAX));
        let rest = rest.iter().fold(self.other, |sum, (_, len)| sum.saturating_add(*len));
        all.extend((rest > 0).then(|| (OTHER.into(), rest)));
        all
    }
}

/// Where a directory is: in the first two levels itself, or in this directory of theirs.
#[derive(Clone, Debug)]
struct Top {
    path: Arc<str>,
    level: u8,
}

/// Counts whose bytes there are, block by block.
#[derive(Debug, Default)]
pub(super) struct Holders {
    directories: Bytes,
    owners: Bytes,
    /// Directories that were looked up. One that is moved while all is counted may count for its old place.
    tops: HashMap<InodeId, Top>,
    /// Owners that were met.
    names: HashSet<Arc<str>>,
}

impl Holders {
    /// Counts a block of a file. One that is only in snapshots, or is being deleted, is in no directory.
    pub(super) fn add(
        &mut self,
        store: &dyn StoreRead,
        block: &Block,
    ) -> cairn_namespace::Result<()> {
        if block.is_tombstone() {
            return Ok(());
        }
        let (mut directory, mut owner) = (None, None);
        if let Some(file) = store.inode(block.file)? {
            directory = self.top(store, file.parent)?.map(|top| top.path);
            owner = Some(self.name(&file.owner));
        }
        self.directories.add(directory.as_ref(), block.len);
        self.owners.add(owner.as_ref(), block.len);
        Ok(())
    }

    fn name(&mut self, owner: &str) -> Arc<str> {
        if let Some(known) = self.names.get(owner) {
            return Arc::clone(known);
        }
        let name: Arc<str> = owner.into();
        if self.names.len() < COUNTED_MAX {
            self.names.insert(Arc::clone(&name));
        }
        name
    }

    fn top(
        &mut self,
        store: &dyn StoreRead,
        directory: InodeId,
    ) -> cairn_namespace::Result<Option<Top>> {
        let (mut at, mut below) = (directory, Vec::new());
        let mut top = loop {
            if at == InodeId::ROOT {
                break Top { path: "/".into(), level: 0 };
            }
            if let Some(known) = self.tops.get(&at) {
                break known.clone();
            }
            let Some(found) = store.inode(at)? else { return Ok(None) };
            let parent = found.parent;
            below.push((at, found));
            at = parent;
        };
        if self.tops.len() + below.len() > REMEMBERED_MAX {
            self.tops.clear();
        }
        for (id, inode) in below.into_iter().rev() {
            if top.level < LEVELS {
                let path = format!("{}/{}", top.path.trim_end_matches('/'), inode.name);
                top = Top { path: path.into(), level: top.level + 1 };
            }
            self.tops.insert(id, top.clone());
        }
        Ok(Some(top))
    }

    /// The directories with the most bytes, and the rest.
    pub(super) fn largest_directories(&self) -> Vec<(Arc<str>, u64)> {
        self.directories.largest()
    }

    /// The owners with the most bytes, and the rest.
    pub(super) fn largest_owners(&self) -> Vec<(Arc<str>, u64)> {
        self.owners.largest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_have_names_and_the_rest_is_one_sum() {
        let mut bytes = Bytes::default();
        for number in 0..NAMED_MAX as u64 + 3 {
            bytes.add(Some(&format!("/d{number:02}").into()), 10 + number);
            bytes.add(Some(&format!("/d{number:02}").into()), 10);
        }
        bytes.add(None, 5);
        let largest = bytes.largest();
        assert_eq!(largest.len(), NAMED_MAX + 1);
        assert_eq!(largest[0], ("/d22".into(), 42));
        assert_eq!(largest[NAMED_MAX], (OTHER.into(), 5 + 20 + 21 + 22));
    }

    #[test]
    fn names_beyond_those_that_are_counted_are_one_sum() {
        let mut bytes = Bytes::default();
        for number in 0..COUNTED_MAX + 7 {
            bytes.add(Some(&number.to_string().into()), 1);
        }
        bytes.add(Some(&"0".into()), 1);
        assert_eq!((bytes.by_name.len(), bytes.other), (COUNTED_MAX, 7));
        assert_eq!(bytes.largest()[0], ("0".into(), 2));
    }
}
