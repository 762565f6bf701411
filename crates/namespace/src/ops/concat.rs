//! Joining files.

use crate::block::{self, Position};
use crate::encoding::encode_struct;
use crate::encryption;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::snapshot::capture;
use crate::storage_policy;
use crate::tree::{self, purge};
use crate::usage::{self, Usage};
use std::sync::Arc;

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
        self.check_paths()?;
        let at = cx.resolve(&self.target, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        if encryption::root_above(&at.chain).is_some() {
            let text = "concat can not be called for files in an encryption zone.";
            return refuse(text.to_string());
        }
        let mut target = file_at(&at, &self.target)?.clone();
        if target.file().is_some_and(|file| file.writer.is_some()) {
            return refuse(format!("concat: target file {} is under construction", self.target));
        }
        let mut sources = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let from = cx.resolve(source, Purpose::Use)?;
            perm::check_access(cx.settings, cx.caller, &from, Access::READ)?;
            perm::check_parent(cx.settings, cx.caller, &from, Access::WRITE)?;
            let moved = file_at(&from, source)?;
            if target.parent == moved.parent && capture::is_held(cx.store, moved.id)? {
                return Err(NamespaceError::Snapshot(format!(
                    "Concat: the source file {source} is in snapshot"
                )));
            }
            check_pair(&at, &target, source, moved)?;
            sources.push(from);
        }
        let id = |at: &Resolved| at.target().map(|inode| inode.id);
        let is_twice = |(place, from): (usize, &Resolved)| {
            sources[..place].iter().any(|other| id(other) == id(from))
        };
        if sources.iter().enumerate().any(is_twice) {
            return refuse("concat: at least two of the source files are the same".to_string());
        }
        let above = &at.chain[..at.chain.len() - 1];
        usage::verify(cx.store, above, more_than_before(cx, &target, above, &sources)?)?;
        let policy = storage_policy::in_force(above, &target);
        let redundancy = usage::counted_redundancy(cx.store, &target)?;
        for from in &sources {
            let moved = file_at(from, &from.path)?;
            let own = storage_policy::set_above(&from.chain);
            let before = usage::of_blocks(cx.store, moved, own)?;
            let Some(redundancy) = redundancy else { continue };
            let after = usage::of_blocks_as(cx.store, moved, redundancy, policy)?;
            usage::charge(cx.store, above, after.minus(before))?;
        }
        for from in &sources {
            let moved = file_at(from, &from.path)?.clone();
            let id = moved.id;
            take_blocks(cx, &mut target, moved)?;
            tree::discard(cx.store, from, cx.times.wall_ms)?;
            purge::purge_one(cx.store, id, 1)?;
        }
        target.mtime = cx.times.wall_ms;
        ops::save(cx, &target)
    }

    /// Source: Hadoop 3.5.0 `FSDirConcatOp#validatePath`.
    fn check_paths(&self) -> Result<()> {
        let bad = |text: &str| Err(NamespaceError::IllegalArgument(text.to_string()));
        if self.target.is_empty() {
            return bad("Target file name is empty");
        }
        if self.sources.is_empty() {
            return bad("No sources given");
        }
        for path in std::iter::once(&self.target).chain(&self.sources) {
            if path::is_raw(path) || path::is_inode_path(path) {
                return Err(NamespaceError::Io(format!(
                    "Concat operation doesn't support .reserved relative path : {path}"
                )));
            }
        }
        Ok(())
    }
}

/// What the sources take more when they are kept in as many copies as the target. As in Hadoop, where no storage
/// policy is set the default one says on which types.
///
/// Source: Hadoop 3.5.0 `FSDirConcatOp#computeQuotaDeltas`.
fn more_than_before(
    cx: &Context<'_, '_>,
    target: &Inode,
    above: &[Arc<Inode>],
    sources: &[Resolved],
) -> Result<Usage> {
    let (store, mut more) = (&*cx.store, Usage::default());
    let Some(wanted) = usage::counted_redundancy(store, target)? else { return Ok(more) };
    for from in sources {
        let inode = file_at(from, &from.path)?;
        let Some(now) = inode.file().map(|file| file.redundancy) else { continue };
        let policy = cx.settings.storage_policy(storage_policy::in_force(above, inode)).id;
        let after = usage::of_blocks_as(store, inode, wanted, policy)?;
        more = more.plus(after).minus(usage::of_blocks_as(store, inode, now, policy)?);
    }
    Ok(more)
}

/// Source: Hadoop 3.5.0 `INodeFile#valueOf`.
fn file_at<'a>(at: &'a Resolved, given: &str) -> Result<&'a Inode> {
    match at.target() {
        None => Err(NamespaceError::FileNotFound(format!("File does not exist: {given}"))),
        Some(inode) if inode.is_directory() => {
            Err(NamespaceError::FileNotFound(format!("Path is not a file: {given}")))
        }
        Some(inode) => Ok(inode),
    }
}

fn refuse<T>(text: String) -> Result<T> {
    Err(NamespaceError::HadoopIllegalArgument(text))
}

/// Source: Hadoop 3.5.0 `FSDirConcatOp#verifySrcFiles`.
fn check_pair(at: &Resolved, target: &Inode, source: &str, moved: &Inode) -> Result<()> {
    let (Some(to), Some(file)) = (target.file(), moved.file()) else { return Ok(()) };
    if target.parent != moved.parent {
        return refuse(format!(
            "Source file {source} is not in the same directory with the target {}",
            at.path
        ));
    }
    if target.id == moved.id {
        return refuse(format!(
            "concat: the src file {source} is the same with the target file {}",
            at.path
        ));
    }
    if file.writer.is_some() || file.block_count == 0 {
        return refuse(format!(
            "concat: source file {source} is invalid or empty or underConstruction"
        ));
    }
    if file.block_size > to.block_size {
        return refuse(format!(
            "concat: source file {source} has preferred block size {} which is greater than the \
             target file's preferred block size {}",
            file.block_size, to.block_size
        ));
    }
    let are_alike = match (file.redundancy, to.redundancy) {
        (FileRedundancy::Replicated(_), FileRedundancy::Replicated(_)) => true,
        (one, other) => one.policy() == other.policy() && one.is_striped() == other.is_striped(),
    };
    if !are_alike {
        return refuse(format!(
            "Source file {source} and target file {} have different erasure coding policy",
            at.path
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
