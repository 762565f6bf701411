//! The entries of access control lists.

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_enum};
use std::cmp::Ordering;
use std::fmt;

/// Whether an entry is for the inode itself or for what is made in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclScope {
    /// For the inode.
    Access,
    /// For new children of a directory.
    Default,
}

/// Whom an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclKind {
    /// The owner or, with a name, a user.
    User,
    /// The owning group or, with a name, a group.
    Group,
    /// The most that named users and all groups get.
    Mask,
    /// Everybody else.
    Other,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// Access or default.
    pub scope: AclScope,
    /// Whom it is about.
    pub kind: AclKind,
    /// A user's or group's name; never an empty one.
    pub name: Option<String>,
    /// What they may: bits `0..=7`.
    pub permission: u16,
}

encode_enum!(AclScope { 0 => Access, 1 => Default });
encode_enum!(AclKind { 0 => User, 1 => Group, 2 => Mask, 3 => Other });

impl Encode for AclEntry {
    fn encode(&self, out: &mut Encoder) {
        self.scope.encode(out);
        self.kind.encode(out);
        self.name.encode(out);
        self.permission.encode(out);
    }
}

impl Decode for AclEntry {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (scope, kind) = (AclScope::decode(input)?, AclKind::decode(input)?);
        let name = Option::<String>::decode(input)?;
        let permission = u16::decode(input)?;
        if permission > 7 || name.as_ref().is_some_and(String::is_empty) {
            return Err(DecodeError::Invalid { what: "ACL entry", value: permission.into() });
        }
        Ok(AclEntry { scope, kind, name, permission })
    }
}

impl AclEntry {
    pub(super) fn unnamed(scope: AclScope, kind: AclKind, permission: u16) -> AclEntry {
        AclEntry { scope, kind, name: None, permission: permission & 7 }
    }

    /// The order of entries in a list; entries that are equal here cannot be in one.
    ///
    /// Source: Hadoop 3.5.0 `AclTransformation#ACL_ENTRY_COMPARATOR`.
    pub(super) fn order(&self, other: &AclEntry) -> Ordering {
        (self.scope, self.kind, &self.name).cmp(&(other.scope, other.kind, &other.name))
    }
}

/// As Hadoop writes entries in messages: `default:user:bob:rwx`.
impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            AclScope::Access => "",
            AclScope::Default => "default:",
        };
        let kind = match self.kind {
            AclKind::User => "user",
            AclKind::Group => "group",
            AclKind::Mask => "mask",
            AclKind::Other => "other",
        };
        let bit = |bit: u16, letter: char| if self.permission & bit == 0 { '-' } else { letter };
        let name = self.name.as_deref().unwrap_or_default();
        write!(f, "{scope}{kind}:{name}:{}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
    }
}

/// The entries that are for the inode itself, in a list in order.
pub(crate) fn access(entries: &[AclEntry]) -> &[AclEntry] {
    &entries[..entries.partition_point(|entry| entry.scope == AclScope::Access)]
}

/// The entries for new children, in a list in order.
pub(crate) fn defaults(entries: &[AclEntry]) -> &[AclEntry] {
    &entries[entries.partition_point(|entry| entry.scope == AclScope::Access)..]
}
