//! A container of small blocks that a DataNode is writing.

use crate::name_node::Target;
use cairn_redundancy::BlockRef;

/// An order to write a container, with the names that travel with it.
#[derive(Clone, Debug)]
pub(crate) struct NamedPack {
    pub(crate) container: BlockRef,
    pub(crate) target: Target,
    pub(crate) blocks: Vec<ToPack>,
}

/// A block that is to be packed.
#[derive(Clone, Debug)]
pub(crate) struct ToPack {
    pub(crate) slot: u32,
    pub(crate) block: BlockRef,
    pub(crate) crc32c: u32,
    /// Who has replicas of it; nobody if it is to be read from the container that it is in.
    pub(crate) holders: Vec<usize>,
}

/// The work on one.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pub(crate) named: NamedPack,
    /// Blocks that were looked at so far.
    pub(crate) next: usize,
    /// Those that were read, by their place in the order, with their bytes.
    pub(crate) read: Vec<(usize, Vec<u8>)>,
    /// Whether it is written.
    pub(crate) is_written: bool,
}

impl Packing {
    pub(crate) fn new(named: NamedPack) -> Packing {
        Packing { named, next: 0, read: Vec::new(), is_written: false }
    }
}
