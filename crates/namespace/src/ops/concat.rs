//! Joining files.

use crate::apply::Outcome;
use crate::block::{self, Position};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode};
use crate::ops::{self, Context};
use crate::path::{Purpose, Resolved};
use crate::perm::{self, Access};
use crate::snapshot::capture;
use crate::tree;

/// Moves the blocks of files to the end of another.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirConcatOp#concat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concat {
    /// The file that grows.
    pub target: String,
    /// The files that go, in this order.
    pub sources: Vec<String>,
}

encode_struct!(Concat { target, sources });

impl Concat {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.target, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let mut target = closed_file(&at)?.clone();
        if self.sources.is_empty() {
            return Err(NamespaceError::HadoopIllegalArgument(
                "Empty srcs list passed to concat".to_string(),
            ));
        }
        for (place, source) in self.sources.iter().enumerate() {
            if self.sources[..place].contains(source) {
                return Err(NamespaceError::HadoopIllegalArgument(
                    "concat: at least two of the source files are the same".to_string(),
                ));
            }
            let from = cx.resolve(source, Purpose::Use)?;
            perm::check_parent(cx.settings, cx.caller, &from, Access::WRITE)?;
            perm::check_access(cx.settings, cx.caller, &from, Access::READ)?;
            let moved = closed_file(&from)?.clone();
            let pair = target.id != moved.id && target.parent == moved.parent;
            if pair && capture::is_held(cx.store, moved.id)? {
                return Err(NamespaceError::Snapshot(format!(
                    "Concat: the source file {source} is in snapshot"
                )));
            }
            check_pair(&at, &target, &from, &moved)?;
            take_blocks(cx, &mut target, moved)?;
            tree::discard(cx.store, &from, cx.now_ms)?;
            if let Some(id) = from.target().map(|inode| inode.id) {
                tree::purge(cx.store, Some(id), 1)?;
            }
        }
        target.mtime = cx.now_ms;
        ops::save(cx, &target)
    }
}

/// Source: Hadoop 3.5.0 `FSDirConcatOp#verifyTargetFile`, `#verifySrcFiles`.
fn closed_file(at: &Resolved) -> Result<&Inode> {
    let inode = ops::existing_file(at)?;
    match inode.file() {
        Some(file) if file.writer.is_some() => Err(NamespaceError::HadoopIllegalArgument(format!(
            "concat: file {} is under construction",
            at.path
        ))),
        _ => Ok(inode),
    }
}

fn check_pair(at: &Resolved, target: &Inode, from: &Resolved, moved: &Inode) -> Result<()> {
    let refuse = |text: String| Err(NamespaceError::HadoopIllegalArgument(text));
    let (Some(to), Some(file)) = (target.file(), moved.file()) else { return Ok(()) };
    if target.id == moved.id {
        return refuse(format!(
            "concat: the src file {} is the same with the target file",
            from.path
        ));
    }
    if target.parent != moved.parent {
        return refuse(format!(
            "Source file {} is not in the same directory with the target {}",
            from.path, at.path
        ));
    }
    if file.block_count == 0 {
        return refuse(format!("concat: source file {} is empty", from.path));
    }
    if file.block_size > to.block_size {
        return refuse(format!(
            "concat: source file {} has preferred block size {} which is greater than the target \
             file's preferred block size {}",
            from.path, file.block_size, to.block_size
        ));
    }
    if file.redundancy != to.redundancy {
        return refuse(format!(
            "Source file {} and target file {} have different erasure coding policy or replication",
            from.path, at.path
        ));
    }
    Ok(())
}

/// Moves the blocks of `moved`, in order, to the end of `target`.
fn take_blocks(cx: &mut Context<'_, '_>, target: &mut Inode, mut moved: Inode) -> Result<()> {
    let (id, from) = (target.id, moved.id);
    let (Some(to), Some(file)) = (target.file_mut(), moved.file_mut()) else { return Ok(()) };
    for index in 0..file.block_count as u32 {
        let (_, mut block) = block::at(cx.store, from, index)?;
        block::delete_position(cx.store, from, index)?;
        block.file = id;
        block.index = to.block_count as u32;
        block::put(cx.store, &block)?;
        let position = Position { offset: to.len, id: block.id };
        block::put_position(cx.store, id, block.index, position)?;
        to.block_count += 1;
        to.len = to.len.saturating_add(block.len);
    }
    (file.block_count, file.len) = (0, 0);
    inode::put(cx.store, &moved)
}
