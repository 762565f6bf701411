//! What clients are told of files and directories.

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::encryption::Encryption;
use crate::error::Result;
use crate::inode::Inode;
use crate::path::Resolved;
use crate::store::StoreRead;
use crate::{policy_admin, snapshot, storage_policy};
use cairn_stripe::{Policy, PolicyLayout};
use std::sync::Arc;

/// What clients see of a file or directory (`HdfsFileStatusProto`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its record.
    pub inode: Arc<Inode>,
    /// A file's policy, or the one in force on a directory.
    pub policy: Option<Policy>,
    /// Storage policy in force; 0 if none is set on it or above.
    pub storage_policy: u8,
    /// Whether snapshots may be taken of it.
    pub snapshottable: bool,
    /// Whether it is in an encryption zone, and its key.
    pub encryption: Encryption,
}

/// Beside the number of a storage policy in the outcome of a call: a file's encryption follows.
const ENCRYPTED: u8 = 1 << 7;
/// The same: it is in an encryption zone and has no key.
const INSIDE: u8 = 1 << 6;

// Only files that were just opened are kept, for their retries: nothing is snapshottable there.
impl Encode for FileStatus {
    fn encode(&self, out: &mut Encoder) {
        self.inode.encode(out);
        self.policy.encode(out);
        match (&self.encryption, self.encryption.file()) {
            (_, Some(file)) => {
                (self.storage_policy | ENCRYPTED).encode(out);
                file.encode(out);
            }
            (Encryption::Inside, None) => (self.storage_policy | INSIDE).encode(out),
            (_, None) => self.storage_policy.encode(out),
        }
    }
}

impl Decode for FileStatus {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (inode, policy) = (Arc::new(Decode::decode(input)?), Decode::decode(input)?);
        let last = u8::decode(input)?;
        let encryption = match last & (ENCRYPTED | INSIDE) {
            0 => Encryption::None,
            INSIDE => Encryption::Inside,
            ENCRYPTED => Encryption::File(Box::new(Decode::decode(input)?)),
            _ => return Err(DecodeError::Invalid { what: "encryption", value: last.into() }),
        };
        let storage_policy = last & !(ENCRYPTED | INSIDE);
        Ok(FileStatus { inode, policy, storage_policy, snapshottable: false, encryption })
    }
}

impl FileStatus {
    /// What the writer of the file is told: that of a contiguous one writes plain blocks, and must not know of a policy.
    ///
    /// Source: Hadoop 3.5.0 `DFSOutputStream#newStreamForCreate`, `#newStreamForAppend`, which take a file with a policy
    /// for a striped one.
    pub(crate) fn for_writer(self) -> FileStatus {
        let policy = self.policy.filter(|policy| policy.layout == PolicyLayout::Striped);
        FileStatus { policy, ..self }
    }

    /// Bytes of a file; 0 for a directory.
    pub fn len(&self) -> u64 {
        self.inode.file().map_or(0, |file| file.len)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies as clients see them: 1 for a striped file, 0 for a directory.
    pub fn replication(&self) -> u16 {
        self.inode.file().map_or(0, |file| file.redundancy.copies().unwrap_or(1))
    }

    /// Bytes of a whole block; 0 for a directory.
    pub fn block_size(&self) -> u64 {
        self.inode.file().map_or(0, |file| file.block_size)
    }

    /// Number of children; 0 for a file.
    pub fn children(&self) -> u64 {
        self.inode.directory().map_or(0, |directory| directory.children)
    }

    /// Whether someone writes it.
    pub fn is_under_construction(&self) -> bool {
        self.inode.file().is_some_and(|file| file.writer.is_some())
    }

    pub(crate) fn of(store: &dyn StoreRead, at: &Resolved) -> Result<Option<FileStatus>> {
        let Some(inode) = at.chain.get(at.names.len()) else { return Ok(None) };
        Ok(Some(FileStatus {
            inode: Arc::clone(inode),
            policy: policy_admin::effective(store, at)?,
            storage_policy: storage_policy::effective(&at.chain),
            // The picture of a directory in its snapshot has none itself.
            snapshottable: inode.is_directory()
                && at.snapshot.is_none()
                && snapshot::is_snapshottable(store, inode.id)?,
            encryption: Encryption::of(store, &at.chain, at.raw)?,
        }))
    }
}

/// One page of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries in byte order of their names.
    pub entries: Vec<FileStatus>,
    /// How many entries are left after this page. Behind the first page it is exact where few are; else it is what the
    /// directory has but for this page, for only who counts them all would know better.
    pub remaining: u64,
}
