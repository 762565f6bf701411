//! Making files.

use crate::acl::{self, CreateMode};
use crate::encoding::encode_struct;
use crate::encryption::FileKey;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, File, FileRedundancy, Inode, InodeId, Kind, Writer};
use crate::ops::lease as lease_ops;
use crate::ops::{self, Context, mkdirs, set_replication};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::snapshot::capture;
use crate::status::FileStatus;
use crate::store::StoreRead;
use crate::usage::{self, Usage};
use crate::{counter, encryption, lease, policy_admin, storage_policy, tree};
use cairn_stripe::{PolicyId, PolicyLayout, StoragePolicy};
use std::sync::Arc;

/// The largest block that Hadoop has bits for. Source: Hadoop 3.5.0 `INodeFile.HeaderFormat`.
const BLOCK_SIZE_MAX: u64 = (1 << 48) - 1;

/// Makes a file and opens it for writing.
///
/// Answer: `Outcome::Created`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#startFile`, `FSDirWriteFileOp#startFile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// Where.
    pub path: String,
    /// Permission bits.
    pub mode: CreateMode,
    /// The client's name, which holds the lease.
    pub holder: String,
    /// The client's host.
    pub client_machine: String,
    /// `CreateFlag.CREATE`: make it if it is missing.
    pub create: bool,
    /// `CreateFlag.OVERWRITE`: replace a file that is there.
    pub overwrite: bool,
    /// `CreateFlag.SHOULD_REPLICATE`: no erasure coding, whatever the directory says.
    pub should_replicate: bool,
    /// Make missing parents.
    pub create_parent: bool,
    /// Copies, for a replicated file.
    pub replication: u16,
    /// Bytes of a block.
    pub block_size: u64,
    /// The policy asked for by name; `None` takes the directory's.
    pub ec_policy: Option<String>,
    /// The storage policy asked for by name.
    pub storage_policy: Option<String>,
}

encode_struct!(Create {
    path,
    mode,
    holder,
    client_machine,
    create,
    overwrite,
    should_replicate,
    create_parent,
    replication,
    block_size,
    ec_policy,
    storage_policy
});

/// As [`Create`], with a key for the file, should it be in an encryption zone.
///
/// Answer: `Outcome::Created`.
///
/// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#getFileEncryptionInfo(FSDirectory, INodesInPath, EncryptionKeyInfo)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateEncrypted {
    /// The file.
    pub create: Box<Create>,
    /// The name of the key that encrypts the file's: that of the zone, when it was asked for.
    pub key_name: String,
    /// The file's key.
    pub key: FileKey,
}

encode_struct!(CreateEncrypted { create, key_name, key });

impl CreateEncrypted {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        self.create.apply_with(cx, Some((&self.key_name, &self.key)))
    }
}

impl Create {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        self.apply_with(cx, None)
    }

    fn apply_with(
        &self,
        cx: &mut Context<'_, '_>,
        key: Option<(&String, &FileKey)>,
    ) -> Result<Outcome> {
        self.check_arguments()?;
        let mut at = cx.resolve(&self.path, Purpose::Create)?;
        self.check_target(cx, &at)?;
        let redundancy = self.choose_redundancy(cx, &at)?;
        let key = match encryption::root_above(&at.chain).filter(|_| !at.raw) {
            Some(zone) => Some(key_for(cx, zone, key)?),
            None => None,
        };
        let is_held = match at.target() {
            Some(old) if cx.settings.rules >= 5 => capture::is_held_here(cx.store, old.id)?,
            _ => false,
        };
        self.replace_existing(cx, &mut at)?;
        ops::check_object_limit(cx.store, cx.settings)?;
        mkdirs::make_ancestors(cx, &mut at)?;
        let storage_policy = match self.storage_policy.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => storage_policy::id_of(name)?,
            None => 0,
        };
        let parent = inode::expect(cx.store, at.chain[at.chain.len() - 1].id)?;
        if self.block_size > BLOCK_SIZE_MAX && cx.settings.rules >= 2 {
            return Err(NamespaceError::IllegalArgument(format!(
                "Illagal value: PREFERRED_BLOCK_SIZE = {} > MAX = {BLOCK_SIZE_MAX}",
                self.block_size
            )));
        }
        path::check_limits(cx.settings, &parent, &at.parent_path(), at.name())?;
        let mut file = Inode {
            id: counter::next_inode_id(cx.store)?,
            parent: parent.id,
            name: at.name().to_string(),
            owner: cx.caller.user.clone(),
            group: parent.group.clone(),
            mode: 0,
            acl: Vec::new(),
            mtime: cx.times.wall_ms,
            atime: cx.times.wall_ms,
            storage_policy,
            kind: Kind::File(File {
                redundancy,
                block_size: self.block_size,
                block_count: 0,
                len: 0,
                writer: Some(Writer {
                    holder: self.holder.clone(),
                    client_machine: self.client_machine.clone(),
                    began_after: None,
                }),
                short_appends: 0,
            }),
        };
        acl::inherit(&parent, &mut file, self.mode, cx.settings.posix_acl_inheritance);
        // Whatever becomes of the directory's policy.
        // Source: Hadoop 3.5.0 `FSDirWriteFileOp#setNewINodeStoragePolicy`.
        let above = at.chain.len();
        let id = file.id;
        at.chain.push(Arc::new(file));
        let in_force = cx.settings.storage_policy(storage_policy::effective(&at.chain));
        if in_force == StoragePolicy::LAZY_PERSIST {
            Arc::make_mut(&mut at.chain[above]).storage_policy = StoragePolicy::LAZY_PERSIST.id;
        }
        let (above, file) = at.chain.split_at(above);
        if is_held {
            // The file that was there counts on.
            usage::verify(cx.store, above, Usage { names: 2, ..Usage::default() })?;
        }
        tree::add(cx.store, above, &file[0], cx.times.wall_ms)?;
        if let Some(key) = key {
            encryption::put_file_key(cx.store, id, key)?;
        }
        lease::add(cx.store, &self.holder, id, cx.times.elapsed_ms)?;
        let status = FileStatus::of(cx.store, &at)?
            .ok_or_else(|| NamespaceError::Io(format!("Unable to add {} to namespace", at.path)))?;
        Ok(Outcome::Created { status: Box::new(status.for_writer()) })
    }

    /// What is refused whatever there is.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#startFileInt`.
    pub fn check_arguments(&self) -> Result<()> {
        let reserved = path::is_reserved(&self.path)
            && !path::is_inode_path(&self.path)
            && !path::is_raw(&self.path);
        if !path::is_valid(&self.path) || reserved {
            return Err(NamespaceError::InvalidPath(format!("Invalid path name {}", self.path)));
        }
        if self.should_replicate && self.ec_policy.as_deref().is_some_and(|name| !name.is_empty()) {
            return Err(NamespaceError::HadoopIllegalArgument(
                "SHOULD_REPLICATE flag and ecPolicyName are exclusive parameters. Set both is not \
                 allowed!"
                    .to_string(),
            ));
        }
        Ok(())
    }

    /// Source: Hadoop 3.5.0 `FSDirWriteFileOp#resolvePathForStartFile`.
    fn check_target(&self, cx: &Context<'_, '_>, at: &Resolved) -> Result<()> {
        perm::check_ancestor(cx.settings, cx.caller, at, Access::WRITE)?;
        match at.target() {
            Some(target) if target.is_directory() => Err(NamespaceError::FileAlreadyExists(
                format!("{} already exists as a directory", at.path),
            )),
            Some(_) if self.overwrite => {
                perm::check_access(cx.settings, cx.caller, at, Access::WRITE)
            }
            Some(_) => Ok(()),
            None => {
                if !self.create_parent {
                    path::check_parent_directory(at)?;
                }
                if !self.create {
                    return Err(NamespaceError::FileNotFound(format!(
                        "Can't overwrite non-existent {}",
                        self.path
                    )));
                }
                Ok(())
            }
        }
    }

    fn choose_redundancy(&self, cx: &Context<'_, '_>, at: &Resolved) -> Result<FileRedundancy> {
        let min = cx.settings.block_size_min;
        // Java knows sizes beyond its `long` as negative ones.
        if self.block_size < min || i64::try_from(self.block_size).is_err() {
            return Err(NamespaceError::Io(format!(
                "Specified block size {} is less than configured minimum value \
                 dfs.namenode.fs-limits.min-block-size={min}",
                self.block_size as i64
            )));
        }
        let redundancy = |id: Option<PolicyId>| -> Result<FileRedundancy> {
            let Some(id) = id.filter(|id| *id != PolicyId::REPLICATION) else {
                return Ok(FileRedundancy::Replicated(self.replication));
            };
            Ok(match cx.store.policy(id)?.layout {
                PolicyLayout::Striped => FileRedundancy::Striped(id),
                PolicyLayout::Contiguous => {
                    FileRedundancy::Contiguous { copies: self.replication, policy: id }
                }
            })
        };
        let chosen = match self.ec_policy.as_deref().filter(|name| !name.is_empty()) {
            _ if self.should_replicate => redundancy(None)?,
            Some(name) => redundancy(Some(policy_admin::enabled(cx.store, name)?))?,
            None => {
                // Hadoop asks for the policy of the path while a file is there that is to be replaced.
                if let Some(file) =
                    at.target().and_then(Inode::file).filter(|_| cx.settings.rules >= 2)
                {
                    self.check_redundancy(cx, file.redundancy)?;
                    if !self.overwrite {
                        return Ok(file.redundancy);
                    }
                }
                // The policy of the directory, not of that file.
                redundancy(policy_admin::effective_id(&at.above().chain))?
            }
        };
        self.check_redundancy(cx, chosen)?;
        Ok(chosen)
    }

    /// Whether a file may be kept so with what the call asks for.
    fn check_redundancy(&self, cx: &Context<'_, '_>, redundancy: FileRedundancy) -> Result<()> {
        let FileRedundancy::Striped(id) = redundancy else {
            let client = Some(self.client_machine.as_str());
            return set_replication::verify(cx.settings, &self.path, self.replication, client);
        };
        let policy = policy_admin::by_id(cx.store, id)?;
        if self.block_size < u64::from(policy.cell_len) {
            return Err(NamespaceError::Io(format!(
                "Specified block size ({}) is less than the cell size ({}) of the erasure coding \
                 policy ({}).",
                self.block_size, policy.cell_len, policy
            )));
        }
        Ok(())
    }

    /// Discards a file that is to be overwritten; refuses if it is not to be.
    fn replace_existing(&self, cx: &mut Context<'_, '_>, at: &mut Resolved) -> Result<()> {
        if at.target().is_none() {
            return Ok(());
        }
        if !self.overwrite {
            lease_ops::refuse_if_open(cx, "CREATE_FILE", at, &self.holder, &self.client_machine)?;
            return Err(NamespaceError::FileAlreadyExists(format!(
                "{} for client {} already exists",
                at.path, self.client_machine
            )));
        }
        tree::remove_one(cx.store, at, cx.times.wall_ms)?;
        at.chain.pop();
        Ok(())
    }
}

/// The key for a new file in a zone, if it is one of that zone.
fn key_for<'a>(
    cx: &Context<'_, '_>,
    zone: InodeId,
    key: Option<(&String, &'a FileKey)>,
) -> Result<&'a FileKey> {
    let zone = encryption::zone(cx.store, zone)?;
    key.filter(|(name, _)| **name == zone.key_name).map(|(_, key)| key).ok_or_else(|| {
        NamespaceError::RetryStartFile(
            "The file is in an encryption zone and needs a key of it; try again".to_string(),
        )
    })
}
