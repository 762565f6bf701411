//! Changing times.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, InodeId};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::Purpose;
use crate::perm::{self, Access};

/// Sets the times.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setTimes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTimes {
    /// What.
    pub path: String,
    /// Modification time, ms.
    pub mtime: Option<u64>,
    /// Access time, ms.
    pub atime: Option<u64>,
}

encode_struct!(SetTimes { path, mtime, atime });

impl SetTimes {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let Some(target) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!(
                "File/Directory {} does not exist.",
                at.path
            )));
        };
        let mut inode = target.clone();
        inode.mtime = self.mtime.unwrap_or(inode.mtime);
        inode.atime = self.atime.unwrap_or(inode.atime);
        ops::save(cx, &inode)
    }
}

/// A file was read; see `query::FileBlocks::touch`.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getBlockLocations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchAccessTime {
    /// The file.
    pub file: InodeId,
}

encode_struct!(TouchAccessTime { file });

impl TouchAccessTime {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        match inode::get(cx.store, self.file)? {
            Some(mut inode) if !inode.is_directory() && inode.atime < cx.times.wall_ms => {
                inode.atime = cx.times.wall_ms;
                ops::save(cx, &inode)
            }
            _ => Ok(Outcome::Done),
        }
    }
}
