//! Snapshots of an image, and what was different in them.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatPBSnapshot.Saver`.

use super::message::Message;
use super::names::{Numbers, TooManyNames};
use super::records::{self, Common, Directory, File};
use crate::inode::Block;
use crate::tree::Reference;

/// What a directory was in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryDiff<'a> {
    /// The snapshot.
    pub snapshot: u32,
    /// How many children it had.
    pub children: u64,
    /// It is the directory of which the snapshot was taken.
    pub is_root: bool,
    /// What it was, if that has changed since.
    pub copy: Option<(&'a Common<'a>, &'a Directory<'a>)>,
    /// How many names follow of children that were not there yet.
    pub created: u64,
    /// Children that went.
    pub deleted: &'a [u64],
    /// The same of those that have several places, by their numbers in section INODE_REFERENCE.
    pub deleted_references: &'a [u64],
}

/// What a file was in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct FileDiff<'a> {
    /// The snapshot.
    pub snapshot: u32,
    /// Its bytes.
    pub len: u64,
    /// What it was, if that has changed since.
    pub copy: Option<(&'a Common<'a>, &'a File<'a>)>,
    /// Its blocks, if they are not the first of those that it has now.
    pub blocks: &'a [Block],
}

/// What section SNAPSHOT begins with.
pub(super) fn head(counter: u32, snapshottable: &[u64], count: u64) -> Message {
    let mut message = Message::default();
    message.number(1, counter.into()).numbers(2, snapshottable).number(3, count);
    message
}

/// A snapshot, with its directory as it was.
pub(super) fn snapshot(
    names: &mut Numbers,
    id: u32,
    of: &Common<'_>,
    directory: &Directory<'_>,
) -> Result<Message, TooManyNames> {
    let root = records::directory(names, of, directory)?;
    let mut message = Message::default();
    message.number(1, id.into()).message(2, &root);
    Ok(message)
}

/// So many differences follow.
pub(super) fn differences(of: u64, is_directory: bool, count: u64) -> Message {
    let mut message = Message::default();
    message.number(1, if is_directory { 2 } else { 1 }).number(2, of).number(3, count);
    message
}

pub(super) fn directory_diff(
    names: &mut Numbers,
    diff: &DirectoryDiff<'_>,
) -> Result<Message, TooManyNames> {
    let mut message = Message::default();
    let (children, is_root) = (diff.children, diff.is_root.into());
    message.number(1, diff.snapshot.into()).number(2, children).number(3, is_root);
    if let Some((of, directory)) = diff.copy {
        let copy = records::directory_alone(names, of, directory)?;
        message.blob(4, of.name).message(5, &copy);
    }
    message.number(6, diff.created).numbers(7, diff.deleted).numbers(8, diff.deleted_references);
    Ok(message)
}

/// The name of a child that was not there yet.
pub(super) fn created(name: &[u8]) -> Message {
    let mut message = Message::default();
    message.blob(1, name);
    message
}

pub(super) fn file_diff(names: &mut Numbers, diff: &FileDiff<'_>) -> Result<Message, TooManyNames> {
    let mut message = Message::default();
    message.number(1, diff.snapshot.into()).number(2, diff.len);
    if let Some((of, file)) = diff.copy {
        let copy = records::file_alone(names, of, file, &[])?;
        message.blob(3, of.name).message(4, &copy);
    }
    diff.blocks.iter().for_each(|block| _ = message.message(5, &records::block(block)));
    Ok(message)
}

/// One of several places of an inode.
pub(super) fn reference(of: &Reference) -> Message {
    let mut message = Message::default();
    message.number(1, of.inode);
    if !of.name.is_empty() {
        message.blob(2, &of.name);
    }
    if let Some(snapshot) = of.dst_snapshot {
        message.number(3, snapshot.into());
    }
    if let Some(snapshot) = of.last_snapshot {
        message.number(4, snapshot.into());
    }
    message
}
