//! Changing the settings.

use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::inode::{self, Directory, Inode, InodeId, Kind};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::settings::{self, Settings};
use crate::{perm, policy_admin};

/// Puts settings in force. The NameNode sends it when its configuration differs from the store.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    /// All of them; boxed, for they are larger than what any other command has.
    pub settings: Box<Settings>,
}

encode_struct!(Configure { settings });

impl Configure {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        if inode::get(cx.store, InodeId::ROOT)?.is_none() {
            self.make_root(cx)?;
        }
        settings::put(cx.store, &self.settings)?;
        policy_admin::initialize(cx.store, &self.settings)?;
        Ok(Outcome::Done)
    }

    /// Source: Hadoop 3.5.0 `FSDirectory#createRoot`.
    fn make_root(&self, cx: &mut Context<'_, '_>) -> Result<()> {
        let root = Inode {
            id: InodeId::ROOT,
            parent: InodeId::NONE,
            name: String::new(),
            owner: cx.caller.user.clone(),
            group: self.settings.superuser_group.clone(),
            mode: 0o755,
            acl: Vec::new(),
            mtime: cx.times.wall_ms,
            atime: 0,
            storage_policy: 0,
            kind: Kind::Directory(Directory::default()),
        };
        inode::put(cx.store, &root)?;
        counter::add(cx.store, Counter::Inodes, 1)
    }
}
