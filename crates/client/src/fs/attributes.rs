//! Access control lists and extended attributes.

use super::FileSystem;
use crate::error::{ClientError, Result};
use crate::types::*;
use cairn_wire::proto::hdfs::*;
use cairn_wire::xattr;

/// `XATTR_CREATE` and `XATTR_REPLACE`: set it, whether or not it is there.
const CREATE_OR_REPLACE: u32 = 3;

impl FileSystem {
    /// The access control list of a path.
    pub async fn acl(&self, path: &str) -> Result<AclStatus> {
        let request = GetAclStatusRequestProto { src: path.to_string() };
        let response: GetAclStatusResponseProto =
            self.session.namenode.call("getAclStatus", &request).await?;
        let AclStatusProto { owner, group, sticky, entries, permission } = response.result;
        let entries = entries.into_iter().map(acl_entry).collect::<Result<_>>()?;
        let permission = permission.map(|permission| (permission.perm & 0o7777) as u16);
        Ok(AclStatus { owner, group, is_sticky: sticky, entries, permission })
    }

    /// Adds entries to a list, or changes them.
    pub async fn modify_acl(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request =
            ModifyAclEntriesRequestProto { src: path.to_string(), acl_spec: acl_spec(entries) };
        let _: ModifyAclEntriesResponseProto =
            self.session.namenode.call("modifyAclEntries", &request).await?;
        Ok(())
    }

    /// Removes entries of a list, whatever their permissions are.
    pub async fn remove_acl_entries(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request =
            RemoveAclEntriesRequestProto { src: path.to_string(), acl_spec: acl_spec(entries) };
        let _: RemoveAclEntriesResponseProto =
            self.session.namenode.call("removeAclEntries", &request).await?;
        Ok(())
    }

    /// Removes what a directory gives to what is made in it.
    pub async fn remove_default_acl(&self, path: &str) -> Result<()> {
        let request = RemoveDefaultAclRequestProto { src: path.to_string() };
        let _: RemoveDefaultAclResponseProto =
            self.session.namenode.call("removeDefaultAcl", &request).await?;
        Ok(())
    }

    /// Removes all but the entries of the permission bits.
    pub async fn remove_acl(&self, path: &str) -> Result<()> {
        let request = RemoveAclRequestProto { src: path.to_string() };
        let _: RemoveAclResponseProto = self.session.namenode.call("removeAcl", &request).await?;
        Ok(())
    }

    /// Puts a list in the place of the one that there is.
    pub async fn set_acl(&self, path: &str, entries: &[AclEntry]) -> Result<()> {
        let request = SetAclRequestProto { src: path.to_string(), acl_spec: acl_spec(entries) };
        let _: SetAclResponseProto = self.session.namenode.call("setAcl", &request).await?;
        Ok(())
    }

    /// Extended attributes of a path: those of these names, or all that the user may see when none is named.
    pub async fn xattrs(&self, path: &str, names: &[String]) -> Result<Vec<XAttr>> {
        let x_attrs = names.iter().map(|name| xattr(name, None)).collect::<Result<_>>()?;
        let request = GetXAttrsRequestProto { src: path.to_string(), x_attrs };
        let response: GetXAttrsResponseProto =
            self.session.namenode.call("getXAttrs", &request).await?;
        let told = |proto: XAttrProto| XAttr {
            name: xattr::xattr_name(&proto),
            value: proto.value.unwrap_or_default(),
        };
        Ok(response.x_attrs.into_iter().map(told).collect())
    }

    /// Sets an extended attribute, whether or not it is there.
    pub async fn set_xattr(&self, path: &str, name: &str, value: &[u8]) -> Result<()> {
        let request = SetXAttrRequestProto {
            src: path.to_string(),
            x_attr: Some(xattr(name, Some(value.to_vec()))?),
            flag: Some(CREATE_OR_REPLACE),
        };
        let _: SetXAttrResponseProto = self.session.namenode.call("setXAttr", &request).await?;
        Ok(())
    }

    /// Removes an extended attribute.
    pub async fn remove_xattr(&self, path: &str, name: &str) -> Result<()> {
        let request =
            RemoveXAttrRequestProto { src: path.to_string(), x_attr: Some(xattr(name, None)?) };
        let _: RemoveXAttrResponseProto =
            self.session.namenode.call("removeXAttr", &request).await?;
        Ok(())
    }
}

fn acl_spec(entries: &[AclEntry]) -> Vec<AclEntryProto> {
    use AclEntryProtoAclEntryScopeProto as Scope;
    use AclEntryProtoAclEntryTypeProto as Type;
    let proto = |entry: &AclEntry| {
        let kind = match entry.kind {
            AclKind::User => Type::User,
            AclKind::Group => Type::Group,
            AclKind::Mask => Type::Mask,
            AclKind::Other => Type::Other,
        };
        let scope = if entry.is_default { Scope::Default } else { Scope::Access };
        AclEntryProto {
            r#type: kind as i32,
            scope: scope as i32,
            permissions: i32::from(entry.permissions),
            name: entry.name.clone(),
        }
    };
    entries.iter().map(proto).collect()
}

fn acl_entry(proto: AclEntryProto) -> Result<AclEntry> {
    use AclEntryProtoAclEntryScopeProto as Scope;
    use AclEntryProtoAclEntryTypeProto as Type;
    let kind = match Type::try_from(proto.r#type) {
        Ok(Type::User) => AclKind::User,
        Ok(Type::Group) => AclKind::Group,
        Ok(Type::Mask) => AclKind::Mask,
        Ok(Type::Other) => AclKind::Other,
        Err(_) => return Err(ClientError::Protocol(format!("kind of entry {}", proto.r#type))),
    };
    Ok(AclEntry {
        is_default: proto.scope == Scope::Default as i32,
        kind,
        name: proto.name.filter(|name| !name.is_empty()),
        permissions: (proto.permissions & 7) as u8,
    })
}

/// The attribute of a prefixed name.
fn xattr(name: &str, value: Option<Vec<u8>>) -> Result<XAttrProto> {
    xattr::xattr(name, value).map_err(|told| ClientError::Argument(told.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_without_a_namespace_are_refused() {
        for name in ["a", "us.a", "user.", "other.a", ".a"] {
            assert!(matches!(xattr(name, None), Err(ClientError::Argument(_))), "{name}");
        }
    }
}
