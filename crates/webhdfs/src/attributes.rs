//! Access control lists and extended attributes as parameters write them.
//!
//! Source: Hadoop 3.5.0 `AclEntry#parseAclSpec`, `XAttrHelper`, `XAttrCodec`.

use cairn_client::{AclEntry, AclKind, XAttrEncoding};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use cairn_wire::xattr::{self, xattr_name};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The entries of `aclspec`; those to be removed have no permissions.
pub(crate) fn acl(spec: &str, with_permissions: bool) -> Result<Vec<AclEntryProto>, Failure> {
    let entries = AclEntry::parse_all(spec, with_permissions);
    let entries = entries.map_err(|told| Failure::new(class::HADOOP_ILLEGAL_ARGUMENT, told))?;
    Ok(entries.into_iter().map(acl_entry).collect())
}

fn acl_entry(entry: AclEntry) -> AclEntryProto {
    use AclEntryProtoAclEntryTypeProto as Type;
    let kind = match entry.kind {
        AclKind::User => Type::User,
        AclKind::Group => Type::Group,
        AclKind::Mask => Type::Mask,
        AclKind::Other => Type::Other,
    };
    let scope = match entry.is_default {
        true => AclEntryProtoAclEntryScopeProto::Default,
        false => AclEntryProtoAclEntryScopeProto::Access,
    };
    AclEntryProto {
        r#type: kind as i32,
        scope: scope as i32,
        permissions: entry.permissions.into(),
        name: entry.name,
    }
}

/// The attribute of a prefixed name.
pub(crate) fn xattr(name: &str, value: Option<Vec<u8>>) -> Result<XAttrProto, Failure> {
    xattr::xattr(name, value).map_err(|told| Failure::new(class::HADOOP_ILLEGAL_ARGUMENT, told))
}

/// The bytes of `0x...`, `0s...`, `"..."` or a plain text.
pub(crate) fn xattr_value(text: &str) -> Result<Vec<u8>, Failure> {
    XAttrEncoding::decode(text).map_err(Failure::io)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names of `XAttrCodec`.
pub(crate) const ENCODINGS: [&str; 3] = ["TEXT", "HEX", "BASE64"];

/// Attributes with their values, encoded as `encoding` says.
pub(crate) fn xattrs(attributes: &[XAttrProto], encoding: &str) -> Value {
    let encoding = match encoding {
        "HEX" => XAttrEncoding::Hex,
        "BASE64" => XAttrEncoding::Base64,
        _ => XAttrEncoding::Text,
    };
    let each = attributes.iter().map(|attribute| {
        let value = attribute.value.as_deref().map(|value| encoding.encode(value));
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
    fn attributes_are_named_and_coded() {
        let attribute = xattr("User.a.b", Some(vec![1, 2])).unwrap();
        assert_eq!(xattr_name(&attribute), "user.a.b");
        for name in ["a", "us.a", "user.", "other.a", ".a"] {
            assert!(xattr(name, None).is_err(), "{name}");
        }
        let told = xattrs(&[attribute], "BASE64");
        assert_eq!(told.to_string(), r#"{"XAttrs":[{"name":"user.a.b","value":"0sAQI="}]}"#);
    }
}
