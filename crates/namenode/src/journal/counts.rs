//! How much there is in a namespace that is taken over or handed over.

use cairn_namespace::inode::{Inode, Kind};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{InodeId, Result, export};

/// Inodes that are read at a time.
const STEP: usize = 1000;

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
    /// Snapshots.
    pub snapshots: u64,
}

impl Counts {
    /// Counts a file or directory, but for its blocks.
    pub(super) fn add(&mut self, inode: &Inode) {
        match &inode.kind {
            Kind::Directory(_) => self.directories += 1,
            Kind::File(file) => {
                self.files += 1;
                self.open += u64::from(file.writer.is_some());
            }
        }
    }

    /// What there is in a store. Files and directories that only snapshots have are not among it, their blocks are.
    pub(super) fn of(store: &dyn StoreRead) -> Result<Counts> {
        let (blocks, snapshots) =
            (export::last(store)?.numbers.blocks, export::snapshots(store)?.0);
        let mut counts = Counts { blocks, snapshots, ..Counts::default() };
        let mut after = InodeId::NONE;
        loop {
            let inodes = export::inodes_after(store, after, STEP)?;
            let Some(last) = inodes.last() else { return Ok(counts) };
            after = last.id;
            inodes.iter().for_each(|inode| counts.add(inode));
        }
    }
}
