//! What a command rests on that somebody has looked at before it was submitted.
//!
//! Between such a look and the command others come in. Whoever decides by the state of some blocks says which state
//! that was; if it is another one when the command's turn comes, nothing is done, and whoever has decided looks again.

use crate::block::{self, Block, BlockState};
use crate::error::Result;
use crate::inode::{self, InodeId};
use crate::store::StoreRead;
use cairn_stripe::{BlockId, GenerationStamp};

/// The state of some blocks, and of the ends of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    blocks: Vec<(BlockId, Option<Seen>)>,
    files: Vec<(InodeId, Option<u64>)>,
}

/// What a decision on a block may rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    gs: GenerationStamp,
    len: u64,
    state: BlockState,
    file: InodeId,
}

impl From<&Block> for Seen {
    fn from(block: &Block) -> Seen {
        Seen { gs: block.gs, len: block.len, state: block.state, file: block.file }
    }
}

impl Guard {
    /// For a command that rests on nothing but what it checks itself.
    pub const NONE: Guard = Guard { blocks: Vec::new(), files: Vec::new() };

    /// The decision rests on a block as it was found, or on that there is none of that id.
    pub fn block(&mut self, id: BlockId, found: Option<&Block>) {
        self.blocks.push((id, found.map(Seen::from)));
    }

    /// The decision rests on how many blocks a file has, or on that there is no such file.
    pub fn file(&mut self, store: &dyn StoreRead, file: InodeId) -> Result<()> {
        self.files.push((file, block_count(store, file)?));
        Ok(())
    }

    /// Whether all is as it was.
    pub fn holds(&self, store: &dyn StoreRead) -> Result<bool> {
        for (id, seen) in &self.blocks {
            if block::get(store, *id)?.as_ref().map(Seen::from) != *seen {
                return Ok(false);
            }
        }
        for (file, count) in &self.files {
            if block_count(store, *file)? != *count {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn block_count(store: &dyn StoreRead, file: InodeId) -> Result<Option<u64>> {
    Ok(inode::get(store, file)?.and_then(|inode| Some(inode.file()?.block_count)))
}
