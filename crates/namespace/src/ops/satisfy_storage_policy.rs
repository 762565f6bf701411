//! Requests to move what there is to where its storage policy wants it.
//!
//! A request is an extended attribute, which the satisfier removes when it is done; the NameNode keeps the order in
//! which they came.

use crate::encoding::encode_struct;
use crate::error::Result;
use crate::inode::InodeId;
use crate::ops::Context;
use crate::ops::xattr as xattr_ops;
use crate::outcome::Outcome;
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::store::StoreRead;
use crate::xattr::{self, XAttrName, XAttrSpace};

/// The attribute of what is to be looked after.
///
/// Source: Hadoop 3.5.0 `HdfsServerConstants#XATTR_SATISFY_STORAGE_POLICY`.
pub fn mark() -> XAttrName {
    XAttrName { space: XAttrSpace::User, name: "hdfs.sps".to_string() }
}

/// Asks for a file, or all files below a directory.
///
/// Answer: `Outcome::ToSatisfy`.
///
/// Source: Hadoop 3.5.0 `FSDirSatisfyStoragePolicyOp#satisfyStoragePolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SatisfyStoragePolicy {
    /// What.
    pub path: String,
}

encode_struct!(SatisfyStoragePolicy { path });

impl SatisfyStoragePolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let target = xattr_ops::existing(&at)?;
        if let Some(file) = target.file()
            && (file.block_count == 0 || xattr::has(cx.store, target.id, &mark())?)
        {
            return Ok(Outcome::ToSatisfy(None));
        }
        xattr_ops::set(cx, target, &mark(), &[], (true, false))?;
        Ok(Outcome::ToSatisfy(Some(target.id)))
    }
}

/// What is marked, from inode `from` on, looking at `limit` attributes, and where to go on, if there are more.
pub fn to_satisfy(
    store: &dyn StoreRead,
    from: InodeId,
    limit: usize,
) -> Result<(Vec<InodeId>, Option<InodeId>)> {
    xattr::inodes_with(store, &mark(), from, limit)
}
