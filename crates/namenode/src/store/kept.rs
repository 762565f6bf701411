//! Directories of the store's file as they are decoded, and the way to them; and the files that were asked for last.
//!
//! Each path leads through some directories, so that they are asked for all the time. Who asks for a file's status
//! often asks next where its blocks are. What is kept belongs to one state of the file and is never wrong; the next
//! state takes over what has not changed.

use super::key::Key;
use super::layer::Layer;
use cairn_namespace::store::Table;
use cairn_namespace::{Inode, InodeId, Settings};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Parts with a lock of their own.
const PARTS: usize = 16;
/// Directories of a part, and as many files; one that is full is emptied.
const PART_MAX: usize = 2048;

#[derive(Debug, Default)]
struct Part {
    inodes: HashMap<InodeId, Arc<Inode>>,
    /// By their keys in the table.
    children: HashMap<Key, InodeId>,
    /// Likewise.
    files: HashMap<Key, Arc<Inode>>,
}

/// What is kept of one state of the file.
#[derive(Debug, Default)]
pub(super) struct Kept {
    parts: [RwLock<Part>; PARTS],
    settings: OnceLock<Arc<Settings>>,
}

impl Kept {
    fn part(&self, id: InodeId) -> &RwLock<Part> {
        &self.parts[id.0 as usize % PARTS]
    }

    /// What is still right when `layer` has been written to the file.
    pub(super) fn after(&self, layer: &Layer) -> Kept {
        let kept = Kept::default();
        for (old, new) in self.parts.iter().zip(&kept.parts) {
            let old = old.read().unwrap_or_else(PoisonError::into_inner);
            let mut new = new.write().unwrap_or_else(PoisonError::into_inner);
            let inodes = old.inodes.iter().filter(|(id, _)| !layer.has(Table::Inode, &id.key()));
            new.inodes = inodes.map(|(id, inode)| (*id, Arc::clone(inode))).collect();
            let is_linked = |key: &Key| !layer.has(Table::Child, key.as_slice());
            let children = old.children.iter().filter(|(key, _)| is_linked(key));
            new.children = children.map(|(key, id)| (key.clone(), *id)).collect();
            let is_same = |file: &Inode| !layer.has(Table::Inode, &file.id.key());
            let files = old.files.iter().filter(|(key, file)| is_linked(key) && is_same(file));
            new.files = files.map(|(key, file)| (key.clone(), Arc::clone(file))).collect();
        }
        kept
    }

    pub(super) fn inode(&self, id: InodeId) -> Option<Arc<Inode>> {
        let part = self.part(id).read().unwrap_or_else(PoisonError::into_inner);
        part.inodes.get(&id).cloned()
    }

    /// Keeps it if it is a directory.
    pub(super) fn add_inode(&self, inode: &Arc<Inode>) {
        if !inode.is_directory() {
            return;
        }
        let mut part = self.part(inode.id).write().unwrap_or_else(PoisonError::into_inner);
        if part.inodes.len() >= PART_MAX {
            part.inodes.clear();
        }
        part.inodes.insert(inode.id, Arc::clone(inode));
    }

    /// The child at `key`, which begins with the parent's id.
    pub(super) fn child(&self, parent: InodeId, key: &[u8]) -> Option<InodeId> {
        let part = self.part(parent).read().unwrap_or_else(PoisonError::into_inner);
        part.children.get(key).copied()
    }

    /// Keeps the way to a directory.
    pub(super) fn add_child(&self, parent: InodeId, key: &[u8], child: InodeId) {
        let mut part = self.part(parent).write().unwrap_or_else(PoisonError::into_inner);
        if part.children.len() >= PART_MAX {
            part.children.clear();
        }
        part.children.insert(Key::from(key), child);
    }

    /// The file at `key`, which begins with the parent's id.
    pub(super) fn file(&self, parent: InodeId, key: &[u8]) -> Option<Arc<Inode>> {
        let part = self.part(parent).read().unwrap_or_else(PoisonError::into_inner);
        part.files.get(key).cloned()
    }

    /// Keeps a file, which must be as the store's file has it.
    pub(super) fn add_file(&self, parent: InodeId, key: &[u8], file: &Arc<Inode>) {
        let mut part = self.part(parent).write().unwrap_or_else(PoisonError::into_inner);
        if part.files.len() >= PART_MAX {
            part.files.clear();
        }
        part.files.insert(Key::from(key), Arc::clone(file));
    }

    pub(super) fn settings(&self) -> Option<Arc<Settings>> {
        self.settings.get().cloned()
    }

    pub(super) fn add_settings(&self, settings: &Arc<Settings>) {
        // Another reader may have come first, with the same.
        let _ = self.settings.set(Arc::clone(settings));
    }
}
