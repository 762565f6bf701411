//! Directories of the store's file as they are decoded, and the way to them; settings and policies.
//!
//! Each path leads through some directories, so that they are asked for all the time. What is kept belongs to one state
//! of the file and is never wrong; the next state takes over what has not changed.

use super::key::Key;
use super::layer::Layer;
use cairn_namespace::store::Table;
use cairn_namespace::{Inode, InodeId, Settings};
use cairn_process::held::{held_read, held_write};
use cairn_stripe::{Policy, PolicyId};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

/// Parts with a lock of their own.
const PARTS: usize = 16;
/// Directories of a part; one that is full is emptied.
const PART_MAX: usize = 2048;

#[derive(Debug, Default)]
struct Part {
    inodes: HashMap<InodeId, Arc<Inode>>,
    /// By their keys in the table.
    children: HashMap<Key, InodeId>,
}

/// What is kept of one state of the file.
#[derive(Debug, Default)]
pub(super) struct Kept {
    parts: [RwLock<Part>; PARTS],
    settings: OnceLock<Arc<Settings>>,
    policies: RwLock<HashMap<PolicyId, Arc<Policy>>>,
}

impl Kept {
    fn part(&self, id: InodeId) -> &RwLock<Part> {
        &self.parts[id.0 as usize % PARTS]
    }

    /// What is still right when `layer` has been written to the file.
    pub(super) fn after(&self, layer: &Layer) -> Kept {
        let kept = Kept::default();
        for (old, new) in self.parts.iter().zip(&kept.parts) {
            let old = held_read(old);
            let mut new = held_write(new);
            let inodes = old.inodes.iter().filter(|(id, _)| !layer.has(Table::Inode, &id.key()));
            new.inodes = inodes.map(|(id, inode)| (*id, Arc::clone(inode))).collect();
            let is_linked = |key: &Key| !layer.has(Table::Child, key.as_slice());
            let children = old.children.iter().filter(|(key, _)| is_linked(key));
            new.children = children.map(|(key, id)| (key.clone(), *id)).collect();
        }
        kept
    }

    pub(super) fn inode(&self, id: InodeId) -> Option<Arc<Inode>> {
        let part = held_read(self.part(id));
        part.inodes.get(&id).cloned()
    }

    /// Keeps it if it is a directory.
    pub(super) fn add_inode(&self, inode: &Arc<Inode>) {
        if !inode.is_directory() {
            return;
        }
        let mut part = held_write(self.part(inode.id));
        if part.inodes.len() >= PART_MAX {
            part.inodes.clear();
        }
        part.inodes.insert(inode.id, Arc::clone(inode));
    }

    /// The child at `key`, which begins with the parent's id.
    pub(super) fn child(&self, parent: InodeId, key: &[u8]) -> Option<InodeId> {
        let part = held_read(self.part(parent));
        part.children.get(key).copied()
    }

    /// Keeps the way to a directory.
    pub(super) fn add_child(&self, parent: InodeId, key: &[u8], child: InodeId) {
        let mut part = held_write(self.part(parent));
        if part.children.len() >= PART_MAX {
            part.children.clear();
        }
        part.children.insert(Key::from(key), child);
    }

    pub(super) fn policy(&self, id: PolicyId) -> Option<Arc<Policy>> {
        held_read(&self.policies).get(&id).cloned()
    }

    pub(super) fn add_policy(&self, policy: &Arc<Policy>) {
        let mut policies = held_write(&self.policies);
        policies.insert(policy.id, Arc::clone(policy));
    }

    pub(super) fn settings(&self) -> Option<Arc<Settings>> {
        self.settings.get().cloned()
    }

    pub(super) fn add_settings(&self, settings: &Arc<Settings>) {
        // Another reader may have come first, with the same.
        let _ = self.settings.set(Arc::clone(settings));
    }
}
