//! Access control lists, and how people write their entries.

use std::fmt;

/// Whom an entry of an access control list is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AclKind {
    /// A user; the owner when the entry has no name.
    User,
    /// A group; the file's own when the entry has no name.
    Group,
    /// What all but the owner and others have at most.
    Mask,
    /// Everybody else.
    Other,
}

/// An entry of an access control list.
///
/// Source: Hadoop 3.5.0 `AclEntry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// Whether a directory gives it to what is made in it, rather than having it itself.
    pub is_default: bool,
    /// Whom it is about.
    pub kind: AclKind,
    /// The user's or the group's name.
    pub name: Option<String>,
    /// Permission bits, 0 to 7; 0 in an entry that is to be removed.
    pub permissions: u8,
}

/// The access control list of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclStatus {
    /// Owner.
    pub owner: String,
    /// Group.
    pub group: String,
    /// Whether the sticky bit is set.
    pub is_sticky: bool,
    /// The entries besides those of the permission bits.
    pub entries: Vec<AclEntry>,
    /// The permission bits, when told.
    pub permission: Option<u16>,
}

impl AclEntry {
    /// The entries of a list as `setfacl` takes it, such as `user:ann:rw-,default:group::r-x`; those that are to be
    /// removed have no permissions. Fails with a sentence for people.
    ///
    /// Source: Hadoop 3.5.0 `AclEntry#parseAclSpec`.
    pub fn parse_all(spec: &str, with_permissions: bool) -> Result<Vec<AclEntry>, String> {
        let entries = spec.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(|entry| AclEntry::parse(entry, with_permissions)).collect()
    }

    fn parse(text: &str, with_permissions: bool) -> Result<AclEntry, String> {
        let wrong = |what: &str| Err(format!("{what}{text}"));
        // As Java splits: nothing empty at the end.
        let mut parts = text.trim_end_matches(':').split(':').peekable();
        let is_default = parts.next_if_eq(&"default").is_some();
        let kind = match parts.next().map(str::to_ascii_lowercase).as_deref() {
            Some("user") => AclKind::User,
            Some("group") => AclKind::Group,
            Some("mask") => AclKind::Mask,
            Some("other") => AclKind::Other,
            Some(_) => return wrong("Invalid type of acl in <aclSpec> :"),
            None => return wrong("Invalid <aclSpec> : "),
        };
        let name = parts.next().filter(|name| !name.is_empty()).map(str::to_string);
        let mut permissions = 0;
        if with_permissions {
            let Some(symbols) = parts.next() else { return wrong("Invalid <aclSpec> : ") };
            match permission_bits(symbols) {
                Some(bits) => permissions = bits,
                None => return wrong("Invalid permission in <aclSpec> : "),
            }
        }
        if parts.next().is_some() {
            return wrong("Invalid <aclSpec> : ");
        }
        Ok(AclEntry { is_default, kind, name, permissions })
    }
}

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = if self.is_default { "default:" } else { "" };
        let kind = match self.kind {
            AclKind::User => "user",
            AclKind::Group => "group",
            AclKind::Mask => "mask",
            AclKind::Other => "other",
        };
        let name = self.name.as_deref().unwrap_or_default();
        write!(f, "{scope}{kind}:{name}:{}", permission_symbols(self.permissions))
    }
}

/// The bits of `r-x` and its like.
pub fn permission_bits(symbols: &str) -> Option<u8> {
    let bytes: [u8; 3] = symbols.as_bytes().try_into().ok()?;
    let bits = bytes.iter().zip([(b'r', 4), (b'w', 2), (b'x', 1)]);
    bits.map(|(byte, (symbol, bit))| match *byte {
        b'-' => Some(0),
        byte if byte == symbol => Some(bit),
        _ => None,
    })
    .sum()
}

/// `r-x` for 5, and its like.
pub fn permission_symbols(bits: u8) -> String {
    let symbol = |(symbol, bit)| if bits & bit != 0 { symbol } else { '-' };
    [('r', 4), ('w', 2), ('x', 1)].map(symbol).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_lists_are_read_and_written() {
        let text = "user::rwx,default:group:staff:r-x,mask::---,other::--x";
        let entries = AclEntry::parse_all(text, true).unwrap();
        let read: Vec<_> = entries
            .iter()
            .map(|e| (e.kind, e.is_default, e.permissions, e.name.as_deref()))
            .collect();
        assert_eq!(
            read,
            [
                (AclKind::User, false, 7, None),
                (AclKind::Group, true, 5, Some("staff")),
                (AclKind::Mask, false, 0, None),
                (AclKind::Other, false, 1, None),
            ]
        );
        let written: Vec<String> = entries.iter().map(AclEntry::to_string).collect();
        assert_eq!(written.join(","), text);
        let removed = AclEntry::parse_all("user:ann:,default:user:bob", false).unwrap();
        assert_eq!(removed[0].name.as_deref(), Some("ann"));
        assert_eq!((removed[1].is_default, removed[1].name.as_deref()), (true, Some("bob")));
        for (spec, told) in [
            ("user:ann:", "Invalid <aclSpec> : user:ann:"),
            ("user:ann:xwr", "Invalid permission in <aclSpec> : user:ann:xwr"),
            ("users:ann:rwx", "Invalid type of acl in <aclSpec> :users:ann:rwx"),
            ("user:ann:rwx:more", "Invalid <aclSpec> : user:ann:rwx:more"),
        ] {
            assert_eq!(AclEntry::parse_all(spec, true).unwrap_err(), told);
        }
    }
}
