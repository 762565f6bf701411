//! Access control lists: entries beyond owner, group and other.
//!
//! As in Hadoop an inode keeps only what its mode cannot say: the named entries and the owning group's of
//! the access list, and all of the default list. While there is an access list, the mode's group bits are
//! its mask.
//!
//! Source: Hadoop 3.5.0 `AclEntry`, `AclStorage`, `AclUtil`.

pub(crate) mod change;
pub(crate) mod entry;

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::error::{NamespaceError, Result};
use crate::inode::Inode;
use crate::inode::record::STICKY;
use entry::defaults;

pub(crate) use entry::access;
pub use entry::{AclEntry, AclKind, AclScope};

/// Owner, owning group and other, and nothing else.
fn is_minimal(entries: &[AclEntry]) -> bool {
    entries.len() == 3
}

fn triple(mode: u16, middle: AclKind) -> [AclEntry; 3] {
    let entry = |kind, shift: u16| AclEntry::unnamed(AclScope::Access, kind, mode >> shift);
    [entry(AclKind::User, 6), entry(middle, 3), entry(AclKind::Other, 0)]
}

/// The whole list of an inode, with the entries that its mode stands for.
///
/// Source: Hadoop 3.5.0 `AclStorage#readINodeLogicalAcl`.
pub(crate) fn whole(inode: &Inode) -> Vec<AclEntry> {
    let named = access(&inode.acl);
    let middle = if named.is_empty() { AclKind::Group } else { AclKind::Mask };
    let [owner, middle, other] = triple(inode.mode, middle);
    let mut entries = vec![owner];
    entries.extend_from_slice(named);
    entries.extend([middle, other]);
    entries.extend_from_slice(defaults(&inode.acl));
    entries
}

/// What an inode with this list keeps beside its mode, and the mode's nine bits. The access list begins
/// with the owner's entry and ends with mask or owning group and other.
fn split(entries: &[AclEntry]) -> (Vec<AclEntry>, u16) {
    let access = access(entries);
    let bits = |index: usize| access.get(index).map_or(0, |entry| entry.permission);
    let count = access.len();
    let mode = bits(0) << 6 | bits(count.saturating_sub(2)) << 3 | bits(count.saturating_sub(1));
    let mut kept = Vec::new();
    if !is_minimal(access) && count > 3 {
        kept.extend_from_slice(&access[1..count - 2]);
    }
    kept.extend_from_slice(defaults(entries));
    (kept, mode)
}

/// Gives an inode a valid list. `path` is for the message.
///
/// Source: Hadoop 3.5.0 `AclStorage#updateINodeAcl`.
pub(crate) fn replace(inode: &mut Inode, entries: &[AclEntry], path: &str) -> Result<()> {
    if !defaults(entries).is_empty() && !inode.is_directory() {
        return Err(NamespaceError::Acl(format!(
            "Invalid ACL: only directories may have a default ACL. Path: {path}"
        )));
    }
    let (kept, mode) = split(entries);
    inode.acl = kept;
    inode.mode = inode.mode & STICKY | mode;
    Ok(())
}

/// Leaves an inode nothing but its mode, which gets the owning group's rights back.
///
/// Source: Hadoop 3.5.0 `FSDirAclOp#unprotectedRemoveAcl`.
pub(crate) fn remove(inode: &mut Inode) {
    let is_group = |entry: &&AclEntry| entry.kind == AclKind::Group && entry.name.is_none();
    if let Some(group) = access(&inode.acl).iter().find(is_group) {
        inode.mode = inode.mode & !0o070 | group.permission << 3;
    }
    inode.acl.clear();
}

/// The bits of a mode that an inode keeps.
const MODE_MASK: u16 = 0o777 | STICKY;

/// The mode that a new file or directory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateMode {
    /// Permission bits, the client's umask applied.
    pub masked: u16,
    /// Permission bits without the umask, from clients that send them.
    pub unmasked: Option<u16>,
}

impl From<u16> for CreateMode {
    fn from(masked: u16) -> CreateMode {
        CreateMode { masked, unmasked: None }
    }
}

// One number: without the second mode it is the first.
impl Encode for CreateMode {
    fn encode(&self, out: &mut Encoder) {
        let unmasked = self.unmasked.map_or(0, |mode| u64::from(mode) + 1);
        out.unsigned(unmasked << 16 | u64::from(self.masked));
    }
}

impl Decode for CreateMode {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let value = input.unsigned()?;
        let unmasked = match value >> 16 {
            0 => None,
            plus_one => Some(
                u16::try_from(plus_one - 1)
                    .map_err(|_| DecodeError::Invalid { what: "mode", value })?,
            ),
        };
        Ok(CreateMode { masked: value as u16, unmasked })
    }
}

/// Gives a new child its mode and what it inherits from the default list of its parent.
///
/// Source: Hadoop 3.5.0 `FSDirectory#copyINodeDefaultAcl`, `AclStorage#copyINodeDefaultAcl`.
pub(crate) fn inherit(parent: &Inode, child: &mut Inode, mode: CreateMode, posix: bool) {
    child.mode = mode.masked & MODE_MASK;
    let given = defaults(&parent.acl);
    if given.is_empty() {
        return;
    }
    let mode = mode.unmasked.filter(|_| posix).unwrap_or(mode.masked);
    let group_is_masked = is_minimal(given);
    let mut entries = Vec::with_capacity(2 * given.len());
    entries.extend(given.iter().map(|entry| {
        let allowed = match (entry.kind, &entry.name) {
            (AclKind::User, None) => mode >> 6,
            (AclKind::Group, _) if group_is_masked => mode >> 3,
            (AclKind::Mask, _) => mode >> 3,
            (AclKind::Other, _) => mode,
            _ => 7,
        };
        let permission = entry.permission & allowed;
        AclEntry { scope: AclScope::Access, permission, ..entry.clone() }
    }));
    if child.is_directory() {
        entries.extend_from_slice(given);
    }
    let (kept, bits) = split(&entries);
    child.acl = kept;
    child.mode = mode & STICKY | bits;
}
