//! What inodes have beside names and blocks: owner, mode, access control lists, extended attributes, quotas by type.

use crate::error::Malformed;
use crate::fields::Fields;
use crate::names::{NameKind, Names};

/// Owner, group and mode, packed.
///
/// Source: Hadoop 3.5.0 `INodeWithAdditionalFields.PermissionStatusFormat`: 16 bits of mode, 24 of group, 24 of owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission(pub u64);

impl Permission {
    /// The mode, the sticky bit included.
    pub fn mode(self) -> u16 {
        self.0 as u16
    }

    /// The owner's name; none if it has none.
    pub fn owner(self, names: &Names) -> Option<&str> {
        names.get(NameKind::User, (self.0 >> 40) as u32)
    }

    /// The group's name; none if it has none.
    pub fn group(self, names: &Names) -> Option<&str> {
        names.get(NameKind::Group, (self.0 >> 16) as u32 & 0xff_ffff)
    }
}

/// Whom an entry of an access control list is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    /// A user; without a name the owner.
    User,
    /// A group; without a name the file's.
    Group,
    /// The most that named users and groups get.
    Mask,
    /// All others.
    Other,
}

/// An entry of an access control list, packed.
///
/// Source: Hadoop 3.5.0 `AclEntryStatusFormat`: 3 bits of permission, 2 of kind, 1 of scope, 24 of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclEntry(pub u32);

impl AclEntry {
    /// Read 4, write 2, execute 1.
    pub fn permission(self) -> u8 {
        (self.0 & 7) as u8
    }

    /// Whom it is about.
    pub fn kind(self) -> AclKind {
        match self.0 >> 3 & 3 {
            0 => AclKind::User,
            1 => AclKind::Group,
            2 => AclKind::Mask,
            _ => AclKind::Other,
        }
    }

    /// Whether it is for what is made in a directory, not for the directory.
    pub fn is_default(self) -> bool {
        self.0 >> 5 & 1 == 1
    }

    /// The name; none if it has none.
    pub fn name(self, names: &Names) -> Option<&str> {
        let kind = match self.kind() {
            AclKind::User => NameKind::User,
            AclKind::Group => NameKind::Group,
            AclKind::Mask | AclKind::Other => return None,
        };
        names.get(kind, self.0 >> 6 & 0xff_ffff)
    }
}

/// Entries of an access control list, beyond the mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AclEntries<'a>(&'a [u8]);

impl<'a> AclEntries<'a> {
    /// Checks the message, so that nothing can go wrong later.
    pub(crate) fn check(message: &'a [u8]) -> Result<AclEntries<'a>, Malformed> {
        let (mut packed, mut fields) = (None, Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            if field != 2 {
                return Err(Malformed("an access control list has a field that is not known"));
            }
            let bytes = value.bytes()?;
            if !bytes.len().is_multiple_of(4) || packed.replace(bytes).is_some() {
                return Err(Malformed("an access control list is no list of entries"));
            }
        }
        Ok(AclEntries(packed.unwrap_or_default()))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = AclEntry> + 'a {
        let (entries, _) = self.0.as_chunks();
        entries.iter().map(|entry| AclEntry(u32::from_le_bytes(*entry)))
    }
}

/// An extended attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAttr<'a> {
    packed: u32,
    /// What it holds.
    pub value: &'a [u8],
}

impl<'a> XAttr<'a> {
    /// The number of its name space, as on the wire: user 0, trusted 1, security 2, system 3, raw 4.
    ///
    /// Source: Hadoop 3.5.0 `XAttrFormat`: 5 bits reserved, 1 of the name space, 24 of name, 2 more of the name space.
    pub fn namespace(self) -> u8 {
        ((self.packed >> 30) | (self.packed >> 5 & 1) << 2) as u8
    }

    /// The name behind the name space; none if it has none.
    pub fn name(self, names: &Names) -> Option<&str> {
        names.get(NameKind::XAttr, self.packed >> 6 & 0xff_ffff)
    }

    fn decode(message: &'a [u8]) -> Result<XAttr<'a>, Malformed> {
        let mut found = XAttr { packed: 0, value: &[] };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => found.packed = value.fixed32()?,
                2 => found.value = value.bytes()?,
                _ => return Err(Malformed("an attribute has a field that is not known")),
            }
        }
        Ok(found)
    }
}

/// Extended attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XAttrs<'a>(&'a [u8]);

impl<'a> XAttrs<'a> {
    /// Checks the message, so that nothing can go wrong later.
    pub(crate) fn check(message: &'a [u8]) -> Result<XAttrs<'a>, Malformed> {
        let mut fields = Fields::of(message);
        while let Some((_, value)) = fields.next()? {
            XAttr::decode(value.bytes()?)?;
        }
        Ok(XAttrs(message))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = XAttr<'a>> {
        let mut fields = Fields::of(self.0);
        std::iter::from_fn(move || {
            let (_, value) = fields.next().ok()??;
            XAttr::decode(value.bytes().ok()?).ok()
        })
    }
}

/// The most bytes that may be on one type of storage below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeQuota {
    /// The type's number on the wire: DISK 1, SSD 2, ARCHIVE 3, RAM_DISK 4, PROVIDED 5, NVDIMM 6.
    pub storage_type: u32,
    /// Bytes.
    pub bytes: u64,
}

impl TypeQuota {
    fn decode(message: &[u8]) -> Result<TypeQuota, Malformed> {
        let mut quota = TypeQuota { storage_type: 0, bytes: 0 };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => quota.storage_type = value.small()?,
                2 => quota.bytes = value.number()?,
                _ => return Err(Malformed("a quota has a field that is not known")),
            }
        }
        Ok(quota)
    }
}

/// Quotas by type of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeQuotas<'a>(&'a [u8]);

impl<'a> TypeQuotas<'a> {
    /// Checks the message, so that nothing can go wrong later.
    pub(crate) fn check(message: &'a [u8]) -> Result<TypeQuotas<'a>, Malformed> {
        let mut fields = Fields::of(message);
        while let Some((_, value)) = fields.next()? {
            TypeQuota::decode(value.bytes()?)?;
        }
        Ok(TypeQuotas(message))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = TypeQuota> + 'a {
        let mut fields = Fields::of(self.0);
        std::iter::from_fn(move || {
            let (_, value) = fields.next().ok()??;
            TypeQuota::decode(value.bytes().ok()?).ok()
        })
    }
}
