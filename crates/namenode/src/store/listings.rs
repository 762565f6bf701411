//! Pages of directories as they were encoded for clients, within a bound of bytes.
//!
//! As with [`super::runs`], all states of the store's file share them, and each has the number of the state that it was
//! made of. A page is right as long as nothing was changed among the names of its directory and the inodes on it; what
//! it depends on besides is in its key.

use super::layer::Layer;
use cairn_namespace::InodeId;
use cairn_namespace::store::Table;
use cairn_process::held::{held_read, held_write};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

/// What a page takes besides its bytes and its key's.
const OVERHEAD: usize = 160;

struct Page {
    state: u64,
    directory: InodeId,
    /// Those on it are among these.
    inodes: RangeInclusive<InodeId>,
    bytes: Arc<[u8]>,
    /// Nobody has asked for it since it came, or since pages were last dropped.
    is_idle: AtomicBool,
}

impl Page {
    /// Whether anything that the page shows may be different with `layer`.
    fn is_touched_by(&self, layer: &Layer) -> bool {
        let end = InodeId(self.directory.0.saturating_add(1)).key();
        let (first, last) = (self.inodes.start().key(), self.inodes.end().key());
        layer.has_any(Table::Child, &self.directory.key()[..]..=&end[..])
            || layer.has_any(Table::Inode, &first[..]..=&last[..])
            || layer.has_some(Table::SnapshotRoot)
            || layer.has_some(Table::Policy)
    }
}

#[derive(Default)]
struct Pages {
    /// The newest state, to which pages are added.
    state: u64,
    pages: HashMap<Vec<u8>, Page>,
    /// Bytes of all of them.
    len: usize,
}

fn len_of(key: &[u8], page: &Page) -> usize {
    OVERHEAD + key.len() + page.bytes.len()
}

impl Pages {
    fn retain(&mut self, mut stays: impl FnMut(&Page) -> bool) {
        self.pages.retain(|_, page| stays(page));
        self.len = self.pages.iter().map(|(key, page)| len_of(key, page)).sum();
    }
}

/// The pages of a store.
pub(super) struct Listings {
    pages: RwLock<Pages>,
    max: usize,
}

impl Listings {
    pub(super) fn new(max: usize) -> Listings {
        Listings { pages: RwLock::default(), max }
    }

    /// The page of that key that `state` has, unless a layer over it has changed it.
    pub(super) fn page<'a>(
        &self,
        state: u64,
        mut layers: impl Iterator<Item = &'a Layer>,
        key: &[u8],
    ) -> Option<Arc<[u8]>> {
        let pages = held_read(&self.pages);
        let page = pages.pages.get(key).filter(|page| page.state <= state)?;
        if layers.any(|layer| page.is_touched_by(layer)) {
            return None;
        }
        page.is_idle.store(false, Ordering::Relaxed);
        Some(Arc::clone(&page.bytes))
    }

    /// Keeps a page that was made of `state`, if the layers over that have no part in it.
    pub(super) fn keep<'a>(
        &self,
        state: u64,
        mut layers: impl Iterator<Item = &'a Layer>,
        key: Vec<u8>,
        (directory, inodes): (InodeId, RangeInclusive<InodeId>),
        bytes: &[u8],
    ) {
        let is_idle = AtomicBool::new(true);
        let page = Page { state, directory, inodes, bytes: bytes.into(), is_idle };
        let len = len_of(&key, &page);
        if len > self.max / 16 || layers.any(|layer| page.is_touched_by(layer)) {
            return;
        }
        let mut pages = held_write(&self.pages);
        if pages.state != state || pages.pages.contains_key(&key) {
            return;
        }
        pages.pages.insert(key, page);
        pages.len += len;
        if pages.len <= self.max {
            return;
        }
        pages.retain(|page| !page.is_idle.swap(true, Ordering::Relaxed));
        if pages.len > self.max / 4 * 3 {
            let mut stays = false;
            pages.retain(|_| {
                stays = !stays;
                stays
            });
        }
    }

    /// Forgets what is not in `state` as it was: what `layer` has changed, which the file now has too. Nobody reads
    /// `state` yet.
    pub(super) fn advance(&self, state: u64, layer: &Layer) {
        let mut pages = held_write(&self.pages);
        pages.state = state;
        pages.retain(|page| !page.is_touched_by(layer));
    }
}
