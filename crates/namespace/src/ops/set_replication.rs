//! Changing the number of copies.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::ops::pack::COPIES_MAX;
use crate::ops::{Context, unpack};
use crate::outcome::Outcome;
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::settings::Settings;
use crate::{storage_policy, usage};

/// Changes the number of copies.
///
/// Answer: `Outcome::ReplicationSet`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setReplication`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetReplication {
    /// The file.
    pub path: String,
    /// Copies.
    pub replication: u16,
}

encode_struct!(SetReplication { path, replication });

impl SetReplication {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        verify(cx.settings, &self.path, self.replication, None)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let old = at.target().and_then(Inode::file).map(|file| file.redundancy);
        let old = old.and_then(FileRedundancy::copies);
        let (Some(target), Some(old)) = (at.target(), old) else {
            let file = at.target().map_or(InodeId::NONE, |inode| inode.id);
            return Ok(Outcome::ReplicationSet { done: false, file, old: 0, new: 0 });
        };
        let mut inode = target.clone();
        let above = &at.chain[..at.chain.len() - 1];
        let policy = storage_policy::in_force(above, &inode);
        let before = usage::of_blocks(cx.store, &inode, policy)?;
        if let Some(file) = inode.file_mut() {
            file.redundancy = file.redundancy.with_copies(self.replication);
        }
        let more = usage::of_blocks(cx.store, &inode, policy)?.minus(before);
        usage::verify(cx.store, above, more)?;
        usage::charge(cx.store, above, more)?;
        inode::put(cx.store, &inode)?;
        cx.other_copies.push(inode.id);
        // So many are asked for of what is read often: that is not to be packed.
        if self.replication > COPIES_MAX
            && inode.file().is_some_and(|of| of.redundancy.is_contiguous())
        {
            unpack::ask_of_file(cx.store, inode.id, None)?;
        }
        Ok(Outcome::ReplicationSet { done: true, file: inode.id, old, new: self.replication })
    }
}

/// Fails if a file may not have that many copies.
///
/// Source: Hadoop 3.5.0 `BlockManager#verifyReplication`.
pub(crate) fn verify(
    settings: &Settings,
    path: &str,
    replication: u16,
    client: Option<&str>,
) -> Result<()> {
    let (min, max) = (settings.replication_min, settings.replication_max);
    if (min..=max).contains(&replication) {
        return Ok(());
    }
    // Java's short.
    let replication = replication as i16;
    let problem = match i32::from(replication) > i32::from(max) {
        true => format!(" exceeds maximum of {max}"),
        false => format!(" is less than the required minimum of {min}"),
    };
    let client = client.map_or(String::new(), |name| format!(", clientName={name}"));
    Err(NamespaceError::Io(format!(
        "Requested replication factor of {replication}{problem} for {path}{client}"
    )))
}
