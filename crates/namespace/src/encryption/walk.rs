//! Which files of a zone still have keys of an older version of the zone's key.

use super::attributes::{FileKey, file_key};
use crate::error::Result;
use crate::inode::{self, InodeId};
use crate::store::StoreRead;

/// Children looked at in one step, so that a state of the tree is not held for long.
const PAGE: usize = 1000;

/// A walk over the files of a zone, in steps that may each see a later state of the tree. Nothing is moved within a
/// zone meanwhile, and new files have new keys.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Directories to go on in, each after a name.
    open: Vec<(InodeId, Option<Vec<u8>>)>,
}

impl Walk {
    /// Over the zone of that root, without zones in it.
    pub fn over(root: InodeId) -> Walk {
        Walk { open: vec![(root, None)] }
    }

    /// Whether nothing is left to look at.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Looks at some more inodes, and adds the files among them whose keys are not of `key_version`.
    pub fn step(
        &mut self,
        store: &dyn StoreRead,
        key_version: &str,
        found: &mut Vec<(InodeId, FileKey)>,
    ) -> Result<()> {
        let Some((directory, after)) = self.open.pop() else { return Ok(()) };
        let ids = inode::children(store, directory, after.as_deref(), PAGE)?;
        let is_full = ids.len() == PAGE;
        let (mut last, mut below) = (None, Vec::new());
        for id in ids {
            let child = inode::expect(store, id)?;
            match child.directory() {
                Some(inner) if inner.is_zone => {}
                Some(_) => below.push((id, None)),
                None => found.extend(
                    file_key(store, id)?
                        .filter(|key| key.key_version != key_version)
                        .map(|key| (id, key)),
                ),
            }
            last = Some(child.name.into_bytes());
        }
        if is_full {
            self.open.push((directory, last));
        }
        below.reverse();
        self.open.extend(below);
        Ok(())
    }
}
