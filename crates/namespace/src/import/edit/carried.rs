//! How what another NameNode has done is carried out here.

use crate::apply::evaluate_under;
use crate::caller::Caller;
use crate::command::{Command, Entry};
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::import::change;
use crate::inode::{self, Inode};
use crate::outcome::Outcome;
use crate::path;
use crate::settings::Settings;
use crate::store::{StoreRead, StoreTxn};
use cairn_stripe::GenerationStamp;

/// Limits of commands that were carried out elsewhere: none.
fn unlimited() -> Settings {
    Settings {
        permissions_enabled: false,
        component_len_max: 0,
        directory_items_max: u64::MAX,
        block_size_min: 0,
        blocks_per_file_max: u64::MAX,
        replication_min: 0,
        replication_max: u16::MAX,
        cell_len_max: u32::MAX,
        xattrs_per_inode_max: u64::MAX,
        xattr_len_max: u64::MAX,
        ..Settings::default()
    }
}

/// Carries a command out as at `now_ms`.
pub fn command(
    store: &mut dyn StoreTxn,
    now_ms: u64,
    command: impl Into<Command>,
) -> Result<Outcome> {
    let entry = Entry {
        now_ms,
        elapsed_ms: 0,
        caller: Caller::system(),
        call: None,
        command: command.into(),
    };
    let done = evaluate_under(&*store, &unlimited(), &entry)?;
    done.changes.write_to(store)?;
    Ok(done.answer)
}

/// What is at a path.
pub(super) fn existing(store: &dyn StoreRead, path: &str) -> Result<Inode> {
    Ok(path::follow(store, path)?.existing()?.clone())
}

/// The file at a path.
pub(super) fn file_at(store: &dyn StoreRead, path: &str) -> Result<Inode> {
    let inode = existing(store, path)?;
    match inode.file() {
        Some(_) => Ok(inode),
        None => Err(NamespaceError::FileNotFound(format!("Path is not a file: {path}"))),
    }
}

/// Changes what is at a path.
pub(super) fn change_at(
    store: &mut dyn StoreTxn,
    path: &str,
    with: &mut dyn FnMut(&mut dyn StoreTxn, &mut Inode) -> Result<()>,
) -> Result<()> {
    change(store, &mut |store| {
        let mut inode = existing(store, path)?;
        with(store, &mut inode)?;
        inode::put(store, &inode)
    })
}

/// A stamp was given out.
pub fn stamp_given(store: &mut dyn StoreTxn, stamp: GenerationStamp) -> Result<()> {
    raise(store, Counter::GenerationStamp, stamp.0)
}

/// A number was given out that is at least this.
pub(super) fn raise(store: &mut dyn StoreTxn, counter: Counter, value: u64) -> Result<()> {
    match counter::get(store, counter)? < value {
        true => counter::set(store, counter, value),
        false => Ok(()),
    }
}
