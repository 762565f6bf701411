//! Changing permission bits.

use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose};
use crate::perm;

/// Changes the permission bits.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setPermission`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPermission {
    /// What.
    pub path: String,
    /// Permission bits.
    pub mode: u16,
}

encode_struct!(SetPermission { path, mode });

impl SetPermission {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        path::check_not_reserved(&self.path)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_owner(cx.settings, cx.caller, &at)?;
        let mut inode = at.existing()?.clone();
        inode.mode = self.mode & 0o1777;
        ops::save(cx, &inode)
    }
}
