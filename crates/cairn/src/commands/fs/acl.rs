//! Access control lists and extended attributes.

use super::shell::Shell;
use anyhow::{Result, bail};
use cairn_client::{AclEntry, AclKind, AclStatus, FileStatus, XAttrEncoding};
use serde_json::json;

/// `cairn fs getfacl`.
#[derive(Debug, clap::Args)]
pub struct Getfacl {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Getfacl {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let show = async |status: &FileStatus| {
            let mut acl = shell.fs.acl(&status.path).await?;
            let permission = *acl.permission.get_or_insert(status.permission);
            let entries = whole(&acl, permission);
            if shell.json {
                let entries: Vec<String> = entries.iter().map(AclEntry::to_string).collect();
                crate::say!(
                    "{}",
                    json!({"path": status.path, "owner": acl.owner, "group": acl.group,
                           "sticky": acl.is_sticky, "entries": entries})
                );
                return Ok(());
            }
            crate::say!("# file: {}", status.path);
            crate::say!("# owner: {}", acl.owner);
            crate::say!("# group: {}", acl.group);
            if acl.is_sticky {
                crate::say!("# flags: --{}", if permission & 1 != 0 { 't' } else { 'T' });
            }
            for entry in &entries {
                crate::say!("{entry}{}", effective(entry, &entries));
            }
            crate::say!("");
            Ok(())
        };
        shell.each(&self.paths, self.recursive, show).await;
        Ok(())
    }
}

/// The entries with those of the permission bits.
///
/// Source: Hadoop 3.5.0 `AclUtil#getAclFromPermAndEntries`.
pub fn whole(acl: &AclStatus, permission: u16) -> Vec<AclEntry> {
    let base = |kind, shift: u16| AclEntry {
        is_default: false,
        kind,
        name: None,
        permissions: (permission >> shift & 7) as u8,
    };
    let (defaults, access): (Vec<_>, Vec<_>) =
        acl.entries.iter().cloned().partition(|entry| entry.is_default);
    let mut entries = vec![base(AclKind::User, 6)];
    match access.is_empty() {
        true => entries.push(base(AclKind::Group, 3)),
        false => {
            entries.extend(access);
            // The bits of the group are the mask then.
            entries.push(base(AclKind::Mask, 3));
        }
    }
    entries.push(base(AclKind::Other, 0));
    entries.extend(defaults);
    entries
}

/// What an entry comes to where the mask takes something of it.
fn effective(entry: &AclEntry, entries: &[AclEntry]) -> String {
    let is_masked = entry.name.is_some() || entry.kind == AclKind::Group;
    let mask = entries
        .iter()
        .find(|other| other.kind == AclKind::Mask && other.is_default == entry.is_default);
    match mask {
        Some(mask) if is_masked && entry.permissions & !mask.permissions != 0 => {
            let left = cairn_client::permission_symbols(entry.permissions & mask.permissions);
            format!("\t#effective:{left}")
        }
        _ => String::new(),
    }
}

/// `cairn fs setfacl`.
#[derive(Debug, clap::Args)]
pub struct Setfacl {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Remove all but the entries of the permission bits
    #[arg(short = 'b', long, group = "change")]
    remove_all: bool,
    /// Remove what directories give to what is made in them
    #[arg(short = 'k', long, group = "change")]
    remove_default: bool,
    /// Add or change entries, such as user:ann:rw-,default:group:staff:r-x
    #[arg(short, long, value_name = "ENTRIES", group = "change")]
    modify: Option<String>,
    /// Remove entries, such as user:ann,default:group:staff
    #[arg(short = 'x', long, value_name = "ENTRIES", group = "change")]
    remove: Option<String>,
    /// Put these entries in the place of all
    #[arg(long, value_name = "ENTRIES", group = "change")]
    set: Option<String>,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Setfacl {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let parse = |spec: &Option<String>, with_permissions| match spec {
            Some(spec) => AclEntry::parse_all(spec, with_permissions).map(Some),
            None => Ok(None),
        };
        let parsed = |result: Result<_, String>| result.map_err(anyhow::Error::msg);
        let modify = parsed(parse(&self.modify, true))?;
        let remove = parsed(parse(&self.remove, false))?;
        let set = parsed(parse(&self.set, true))?;
        if [&modify, &remove, &set].iter().all(|spec| spec.is_none())
            && !self.remove_all
            && !self.remove_default
        {
            bail!("give one of --modify, --remove, --set, --remove-all and --remove-default");
        }
        let change = async |status: &FileStatus| {
            // Files give nothing on.
            let fitting = |entries: &[AclEntry]| -> Vec<AclEntry> {
                let fits =
                    |entry: &&AclEntry| !self.recursive || status.is_dir() || !entry.is_default;
                entries.iter().filter(fits).cloned().collect()
            };
            let (fs, path) = (&shell.fs, status.path.as_str());
            if self.remove_all {
                fs.remove_acl(path).await?;
            } else if self.remove_default {
                fs.remove_default_acl(path).await?;
            } else if let Some(entries) = &set {
                fs.set_acl(path, &fitting(entries)).await?;
            } else if let Some(entries) = &modify {
                let entries = fitting(entries);
                if !entries.is_empty() {
                    fs.modify_acl(path, &entries).await?;
                }
            } else if let Some(entries) = &remove {
                let entries = fitting(entries);
                if !entries.is_empty() {
                    fs.remove_acl_entries(path, &entries).await?;
                }
            }
            Ok(())
        };
        shell.each(&self.paths, self.recursive, change).await;
        Ok(())
    }
}

/// `cairn fs getfattr`.
#[derive(Debug, clap::Args)]
pub struct Getfattr {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// This attribute
    #[arg(short, long, value_name = "NAME", required_unless_present = "dump")]
    name: Option<String>,
    /// All attributes
    #[arg(short, long, conflicts_with = "name")]
    dump: bool,
    /// How to write values
    #[arg(short, long, value_name = "ENCODING", default_value = "text", ignore_case = true,
          value_parser = ["text", "hex", "base64"])]
    encoding: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Getfattr {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let encoding = match self.encoding.to_ascii_lowercase().as_str() {
            "hex" => XAttrEncoding::Hex,
            "base64" => XAttrEncoding::Base64,
            _ => XAttrEncoding::Text,
        };
        let names: Vec<String> = self.name.into_iter().collect();
        let show = async |status: &FileStatus| {
            if !shell.json {
                crate::say!("# file: {}", status.path);
            }
            for attribute in shell.fs.xattrs(&status.path, &names).await? {
                let value = encoding.encode(&attribute.value);
                if shell.json {
                    let name = &attribute.name;
                    crate::say!("{}", json!({"path": status.path, "name": name, "value": value}));
                } else if attribute.value.is_empty() {
                    crate::say!("{}", attribute.name);
                } else {
                    crate::say!("{}={value}", attribute.name);
                }
            }
            Ok(())
        };
        shell.each(&self.paths, self.recursive, show).await;
        Ok(())
    }
}

/// `cairn fs setfattr`.
#[derive(Debug, clap::Args)]
pub struct Setfattr {
    /// Set this attribute: user.NAME, or another namespace for who may
    #[arg(short, long, value_name = "NAME", required_unless_present = "remove")]
    name: Option<String>,
    /// To this value: text, "text", 0x and hexadecimal digits, or 0s and base64 (default: none)
    #[arg(short, long, value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
    /// Remove this attribute
    #[arg(short = 'x', long, value_name = "NAME", conflicts_with_all = ["name", "value"])]
    remove: Option<String>,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Setfattr {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let value = XAttrEncoding::decode(self.value.as_deref().unwrap_or_default());
        let value = value.map_err(anyhow::Error::msg)?;
        let change = async |status: &FileStatus| {
            if let Some(name) = &self.name {
                shell.fs.set_xattr(&status.path, name, &value).await?;
            } else if let Some(name) = &self.remove {
                shell.fs.remove_xattr(&status.path, name).await?;
            }
            Ok(())
        };
        shell.each(&self.paths, false, change).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_whole_and_tell_what_the_mask_takes() {
        let acl = |spec: &str| AclStatus {
            owner: "ann".into(),
            group: "crew".into(),
            is_sticky: false,
            entries: AclEntry::parse_all(spec, true).unwrap(),
            permission: None,
        };
        let told = |spec: &str, permission| {
            let entries = whole(&acl(spec), permission);
            let line = |entry: &AclEntry| format!("{entry}{}", effective(entry, &entries));
            entries.iter().map(line).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("", 0o644), "user::rw- group::r-- other::r--");
        assert_eq!(
            told("user:alice:rw-,group::r--,group:staff:r-x", 0o640),
            "user::rw- user:alice:rw-\t#effective:r-- group::r-- group:staff:r-x\t#effective:r-- \
             mask::r-- other::---"
        );
        assert_eq!(
            told("default:user:bob:rwx,default:mask::r-x", 0o755),
            "user::rwx group::r-x other::r-x default:user:bob:rwx\t#effective:r-x default:mask::r-x"
        );
    }
}
