//! Access control lists and extended attributes as parameters write them.
//!
//! Source: Hadoop 3.5.0 `AclEntry#parseAclSpec`, `XAttrHelper`, `XAttrCodec`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The entries of `aclspec`; those to be removed have no permissions.
pub(crate) fn acl(spec: &str, with_permissions: bool) -> Result<Vec<AclEntryProto>, Failure> {
    let entries = spec.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| acl_entry(entry, with_permissions)).collect()
}

fn acl_entry(text: &str, with_permissions: bool) -> Result<AclEntryProto, Failure> {
    use AclEntryProtoAclEntryTypeProto as Type;
    let wrong =
        |what: &str| Err(Failure::new(class::HADOOP_ILLEGAL_ARGUMENT, format!("{what}{text}")));
    // As Java splits: nothing empty at the end.
    let mut parts = text.trim_end_matches(':').split(':').peekable();
    let is_default = parts.next_if_eq(&"default").is_some();
    let kind = match parts.next().map(str::to_ascii_lowercase).as_deref() {
        Some("user") => Type::User,
        Some("group") => Type::Group,
        Some("mask") => Type::Mask,
        Some("other") => Type::Other,
        Some(_) => return wrong("Invalid type of acl in <aclSpec> :"),
        None => return wrong("Invalid <aclSpec> : "),
    };
    let name = parts.next().filter(|name| !name.is_empty());
    let mut permissions = 0;
    if with_permissions {
        let Some(symbols) = parts.next() else { return wrong("Invalid <aclSpec> : ") };
        match action(symbols) {
            Some(bits) => permissions = bits,
            None => return wrong("Invalid permission in <aclSpec> : "),
        }
    }
    if parts.next().is_some() {
        return wrong("Invalid <aclSpec> : ");
    }
    let scope = match is_default {
        true => AclEntryProtoAclEntryScopeProto::Default,
        false => AclEntryProtoAclEntryScopeProto::Access,
    };
    Ok(AclEntryProto {
        r#type: kind as i32,
        scope: scope as i32,
        permissions,
        name: name.map(str::to_string),
    })
}

/// The bits of `r-x` and its like.
pub(crate) fn action(symbols: &str) -> Option<i32> {
    let bytes: [u8; 3] = symbols.as_bytes().try_into().ok()?;
    let bits = bytes.iter().zip([(b'r', 4), (b'w', 2), (b'x', 1)]);
    bits.map(|(byte, (symbol, bit))| match *byte {
        b'-' => Some(0),
        byte if byte == symbol => Some(bit),
        _ => None,
    })
    .sum()
}

const NAMESPACES: [(&str, XAttrProtoXAttrNamespaceProto); 5] = [
    ("user", XAttrProtoXAttrNamespaceProto::User),
    ("trusted", XAttrProtoXAttrNamespaceProto::Trusted),
    ("security", XAttrProtoXAttrNamespaceProto::Security),
    ("system", XAttrProtoXAttrNamespaceProto::System),
    ("raw", XAttrProtoXAttrNamespaceProto::Raw),
];

/// The attribute of a prefixed name.
pub(crate) fn xattr(name: &str, value: Option<Vec<u8>>) -> Result<XAttrProto, Failure> {
    let wrong = |message: &str| Failure::new(class::HADOOP_ILLEGAL_ARGUMENT, message);
    let unprefixed = || {
        wrong(
            "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a '.'",
        )
    };
    let (prefix, rest) = name.split_once('.').ok_or_else(unprefixed)?;
    if rest.is_empty() && prefix.len() >= 3 {
        return Err(wrong("XAttr name cannot be empty."));
    }
    let found = NAMESPACES.iter().find(|(name, _)| name.eq_ignore_ascii_case(prefix));
    let (_, namespace) = found.ok_or_else(unprefixed)?;
    Ok(XAttrProto { namespace: *namespace as i32, name: rest.to_string(), value })
}

/// A prefixed name.
pub(crate) fn xattr_name(attribute: &XAttrProto) -> String {
    let found = NAMESPACES.iter().find(|(_, namespace)| *namespace as i32 == attribute.namespace);
    format!("{}.{}", found.map_or("", |(name, _)| name), attribute.name)
}

/// The bytes of `0x...`, `0s...`, `"..."` or a plain text.
pub(crate) fn xattr_value(text: &str) -> Result<Vec<u8>, Failure> {
    match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => {
            unhex(&text[2..]).ok_or_else(|| Failure::io("Odd or bad hexadecimal digits."))
        }
        Some("0s") => STANDARD.decode(&text[2..]).map_err(|error| Failure::io(error.to_string())),
        _ => {
            let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            Ok(inner.unwrap_or(text).as_bytes().to_vec())
        }
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names of `XAttrCodec`.
pub(crate) const ENCODINGS: [&str; 3] = ["TEXT", "HEX", "BASE64"];

/// Attributes with their values, encoded as `encoding` says.
pub(crate) fn xattrs(attributes: &[XAttrProto], encoding: &str) -> Value {
    let each = attributes.iter().map(|attribute| {
        let value = attribute.value.as_deref().map(|value| match encoding {
            "HEX" => format!("0x{}", hex(value)),
            "BASE64" => format!("0s{}", STANDARD.encode(value)),
            _ => format!("\"{}\"", String::from_utf8_lossy(value)),
        });
        json!({"name": xattr_name(attribute), "value": value})
    });
    json!({"XAttrs": each.collect::<Vec<_>>()})
}

/// Names of attributes: a text with an array in it.
pub(crate) fn xattr_names(attributes: &[XAttrProto]) -> Value {
    let names: Vec<String> = attributes.iter().map(xattr_name).collect();
    json!({"XAttrNames": json!(names).to_string()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_lists_are_read() {
        let entries = acl("user::rwx,default:group:staff:r-x,mask::---", true).unwrap();
        let read: Vec<_> =
            entries.iter().map(|e| (e.r#type, e.scope, e.permissions, e.name.as_deref())).collect();
        assert_eq!(read, [(0, 0, 7, None), (1, 1, 5, Some("staff")), (2, 0, 0, None)]);
        let removed = acl("user:ann:,default:user:bob", false).unwrap();
        assert_eq!(removed[0].name.as_deref(), Some("ann"));
        assert_eq!((removed[1].scope, removed[1].name.as_deref()), (1, Some("bob")));
        for (spec, told) in [
            ("user:ann:", "Invalid <aclSpec> : user:ann:"),
            ("user:ann:xwr", "Invalid permission in <aclSpec> : user:ann:xwr"),
            ("users:ann:rwx", "Invalid type of acl in <aclSpec> :users:ann:rwx"),
            ("user:ann:rwx:more", "Invalid <aclSpec> : user:ann:rwx:more"),
        ] {
            assert!(acl(spec, true).unwrap_err().to_string().ends_with(told), "{spec}");
        }
    }

    #[test]
    fn attributes_are_named_and_coded() {
        for (text, value) in [
            ("0x0aFF", &[10, 255][..]),
            ("0sAQI=", &[1, 2]),
            ("\"0\"", b"0"),
            ("a", b"a"),
            ("", b""),
        ] {
            assert_eq!(xattr_value(text).unwrap(), value, "{text}");
        }
        assert!(xattr_value("0x1").is_err() && xattr_value("0s!").is_err());
        let attribute = xattr("User.a.b", Some(vec![1, 2])).unwrap();
        assert_eq!(xattr_name(&attribute), "user.a.b");
        for name in ["a", "us.a", "user.", "other.a", ".a"] {
            assert!(xattr(name, None).is_err(), "{name}");
        }
        let told = xattrs(&[attribute], "BASE64");
        assert_eq!(told.to_string(), r#"{"XAttrs":[{"name":"user.a.b","value":"0sAQI="}]}"#);
    }
}
