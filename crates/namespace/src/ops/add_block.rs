//! Adding a block to an open file.

use crate::block::{self, Block, BlockRef, BlockState, Position};
use crate::caller::Caller;
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::Resolved;
use crate::policy_admin;
use crate::settings::Settings;
use crate::storage_policy;
use crate::store::StoreRead;
use crate::usage::{self, Usage};
use crate::waiting;
use cairn_stripe::Redundancy;

/// Commits the previous block and adds the next one. Placement is the caller's.
///
/// Answer: `Outcome::BlockAdded`.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#validateAddBlock`, `#analyzeFileState`, `#storeAllocatedBlock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddBlock {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// The block the client has just finished, with its length.
    pub previous: Option<BlockRef>,
    /// CRC32C of the previous block's units, as far as reported.
    pub previous_crcs: Vec<Option<u32>>,
    /// Whether the previous block has its minimum of replicas.
    pub previous_min_replicated: bool,
}

encode_struct!(AddBlock { path, file, holder, previous, previous_crcs, previous_min_replicated });

/// What `addBlock` will do, for choosing targets before the command is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddBlockPlan {
    /// An earlier call added the block already: the answer is this one, with its offset.
    Retry {
        /// Where it begins in the file.
        offset: u64,
        /// The block.
        block: Block,
    },
    /// A block is to be placed.
    New {
        /// The file.
        file: InodeId,
        /// Bytes of a whole block.
        block_size: u64,
        /// Replicas or policy.
        redundancy: Redundancy,
        /// Storage policy in force; 0 for the default.
        storage_policy: u8,
        /// The client's host.
        client_machine: String,
        /// The block before the previous one, which must have its minimum of replicas or the
        /// call fails with `NotReplicatedYet`.
        penultimate: Option<Block>,
    },
}

impl AddBlock {
    pub(crate) fn plan(
        &self,
        store: &dyn StoreRead,
        settings: &Settings,
        caller: &Caller,
    ) -> Result<AddBlockPlan> {
        ops::check_object_limit(store, settings)?;
        let by = (caller, "AddBlock");
        let at = ops::open_file(store, by, &self.path, self.file, &self.holder)?;
        let inode = at.existing()?;
        if let Some((offset, block)) = self.find_retry(store, inode)? {
            return Ok(AddBlockPlan::Retry { offset, block });
        }
        let Some(file) = inode.file() else { return Err(not_a_file(&at)) };
        if file.block_count >= settings.blocks_per_file_max {
            return Err(NamespaceError::Io(format!(
                "File has reached the limit on maximum number of blocks \
                 (dfs.namenode.fs-limits.max-blocks-per-file): {} >= {}",
                file.block_count, settings.blocks_per_file_max
            )));
        }
        let redundancy = policy_admin::redundancy(store, file.redundancy)?;
        Ok(AddBlockPlan::New {
            file: inode.id,
            block_size: file.block_size,
            redundancy,
            storage_policy: storage_policy::effective(&at.chain),
            client_machine: file
                .writer
                .as_ref()
                .map_or(String::new(), |w| w.client_machine.clone()),
            penultimate: block::penultimate(store, inode)?,
        })
    }

    /// Whether the quotas above allow a block of the file's whole size, and what the previous one has grown by.
    fn verify_quota(&self, store: &dyn StoreRead, at: &Resolved) -> Result<()> {
        let inode = at.existing()?;
        let Some(file) = inode.file() else { return Err(not_a_file(at)) };
        let whole_len = ops::whole_block_len(store, file)?;
        let policy = storage_policy::set_above(&at.chain);
        let of = |len| usage::of_bytes(store, file.redundancy, policy, len);
        let grown = match (self.previous, block::last(store, inode)?) {
            (Some(previous), Some(last)) if !last.is_final() => {
                of(previous.len)?.minus(of(last.len)?)
            }
            _ => Usage::default(),
        };
        usage::verify(store, &at.chain, of(whole_len)?.plus(grown))
    }

    /// The last block and its offset, if an earlier call has added it already; fails if `previous` is
    /// not what it should be.
    fn find_retry(&self, store: &dyn StoreRead, inode: &Inode) -> Result<Option<(u64, Block)>> {
        let writer = inode.file().and_then(|file| file.writer.as_ref());
        let began_after = writer.and_then(|writer| writer.began_after);
        let same = |block: &Option<Block>| match (block, self.previous) {
            (None, None) => true,
            (Some(block), Some(previous)) => block.id == previous.id && block.gs == previous.gs,
            // A writer that was told of no last block names none before its first one.
            (Some(block), None) => began_after == Some(block.id),
            (None, Some(_)) => false,
        };
        let last = block::last(store, inode)?;
        if same(&last) {
            return Ok(None);
        }
        let Some(last) = last else { return Err(self.mismatch("null".to_string())) };
        let block_size = inode.file().map_or(0, |file| file.block_size);
        // Older builds have not kept after which block an appending client began.
        let appends = self.previous.is_none() && last.state == BlockState::Complete;
        if appends && (last.len >= block_size || last.id.is_striped()) {
            return Ok(None);
        }
        if same(&block::penultimate(store, inode)?) {
            if last.len != 0 {
                return Err(NamespaceError::Io(format!(
                    "Request looked like a retry to allocate block {} but it already contains {} \
                     bytes",
                    last.id, last.len
                )));
            }
            let offset = block::position(store, inode.id, last.index)?.offset;
            return Ok(Some((offset, last)));
        }
        Err(self.mismatch(format!("{}_{}", last.id, last.gs)))
    }

    fn mismatch(&self, last: String) -> NamespaceError {
        let previous = self.previous.map_or("null".to_string(), |b| format!("{}_{}", b.id, b.gs));
        NamespaceError::Io(format!(
            "Cannot allocate block in {}: passed 'previous' block {previous} does not match actual \
             last block in file {last}",
            self.path
        ))
    }

    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        if let AddBlockPlan::Retry { offset, block } =
            self.plan(cx.store, cx.settings, cx.caller)?
        {
            return Ok(Outcome::BlockAdded { offset, block, retry: true });
        }
        let at =
            ops::open_file(cx.store, (cx.caller, cx.command), &self.path, self.file, &self.holder)?;
        // Not in the plan: a block that no DataNode could take is refused as that.
        self.verify_quota(cx.store, &at)?;
        let mut inode = at.existing()?.clone();
        complete_penultimate(cx, &inode)?;
        if let Some(previous) = self.previous {
            let complete = self.previous_min_replicated;
            ops::commit_last(cx, &at, &mut inode, previous, &self.previous_crcs, complete)?;
        }
        let Some(file) = inode.file_mut() else { return Err(not_a_file(&at)) };
        let striped = file.redundancy.is_striped();
        let (index, offset) = (file.block_count as u32, file.len);
        file.block_count += 1;
        let id = counter::next_block_id(cx.store, striped)?;
        let new = BlockRef { id, gs: counter::next_stamp(cx.store)?, len: 0 };
        let block = Block::new(new, (inode.id, index), BlockState::UnderConstruction);
        block::put(cx.store, &block)?;
        block::put_position(cx.store, inode.id, index, Position { offset, id: block.id })?;
        counter::add(cx.store, Counter::Blocks, 1)?;
        inode::put(cx.store, &inode)?;
        seal_before(cx, &mut inode)?;
        Ok(Outcome::BlockAdded { offset, block, retry: false })
    }
}

fn not_a_file(at: &Resolved) -> NamespaceError {
    NamespaceError::FileNotFound(format!("Path is not a file: {}", at.path))
}

/// The block that is not among the last two of a file any more may be grouped. Writes `inode` if it has changed.
fn seal_before(cx: &mut Context<'_, '_>, inode: &mut Inode) -> Result<()> {
    let id = inode.id;
    let Some(file) = inode.file_mut().filter(|file| file.redundancy.is_contiguous()) else {
        return Ok(());
    };
    let Some(index) = file.block_count.checked_sub(3) else { return Ok(()) };
    let (_, block) = block::at(cx.store, id, index as u32)?;
    waiting::left_behind(cx.store, cx.settings, file, &block, cx.times.elapsed_ms)?;
    if block.len >= file.block_size && file.short_appends > 0 {
        // It grows by whole blocks now.
        file.short_appends = 0;
        inode::put(cx.store, inode)?;
    }
    Ok(())
}

/// The caller has checked that the block before the last one has its minimum of replicas.
fn complete_penultimate(cx: &mut Context<'_, '_>, inode: &Inode) -> Result<()> {
    match block::penultimate(cx.store, inode)? {
        Some(mut block) if block.state == BlockState::Committed => {
            block.state = BlockState::Complete;
            block::put(cx.store, &block)
        }
        _ => Ok(()),
    }
}
