//! Names of extended attributes as people write them: a namespace, a dot, the name in it.

use crate::proto::hdfs::{XAttrProto, XAttrProtoXAttrNamespaceProto as Namespace};

const NAMESPACES: [(&str, Namespace); 5] = [
    ("user", Namespace::User),
    ("trusted", Namespace::Trusted),
    ("security", Namespace::Security),
    ("system", Namespace::System),
    ("raw", Namespace::Raw),
];

/// The attribute of a prefixed name, or what Hadoop says of one that is none.
///
/// Source: Hadoop 3.5.0 `XAttrHelper#buildXAttr`.
pub fn xattr(name: &str, value: Option<Vec<u8>>) -> Result<XAttrProto, &'static str> {
    const UNPREFIXED: &str =
        "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a '.'";
    let (prefix, rest) = name.split_once('.').ok_or(UNPREFIXED)?;
    if rest.is_empty() && prefix.len() >= 3 {
        return Err("XAttr name cannot be empty.");
    }
    let found = NAMESPACES.iter().find(|(name, _)| name.eq_ignore_ascii_case(prefix));
    let (_, namespace) = found.ok_or(UNPREFIXED)?;
    Ok(XAttrProto { namespace: *namespace as i32, name: rest.to_string(), value })
}

/// The prefixed name of an attribute.
pub fn xattr_name(attribute: &XAttrProto) -> String {
    let found = NAMESPACES.iter().find(|(_, namespace)| *namespace as i32 == attribute.namespace);
    format!("{}.{}", found.map_or("", |(name, _)| name), attribute.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_named_with_their_namespace() {
        let attribute = xattr("User.a.b", None).unwrap();
        assert_eq!(xattr_name(&attribute), "user.a.b");
        for name in ["a", "us.a", "user.", "other.a", ".a"] {
            assert!(xattr(name, None).is_err(), "{name}");
        }
    }
}
