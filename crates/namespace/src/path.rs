//! From path strings to inodes.
//!
//! What a path says is in `path/name.rs`, what is there in `path/resolved.rs`; here it is followed for a caller, who must
//! have the right to.
//!
//! Source: Hadoop 3.5.0 `FSDirectory#resolvePath`.

pub(crate) mod name;
pub(crate) mod resolved;

use crate::caller::Caller;
use crate::error::{NamespaceError, Result};
use crate::inode::Inode;
use crate::perm;
use crate::settings::Settings;
use crate::snapshot::DOT_SNAPSHOT;
use crate::store::StoreRead;
use name::is_raw_names;

pub(crate) use name::{RESERVED, split};
pub use name::{check_absolute, is_below, is_inode_path, is_raw, is_reserved, is_valid, join};
pub use resolved::{InSnapshot, Resolved, of_inode, walk};
pub(crate) use resolved::{directory, follow, real_names};

/// What a path is resolved for; decides which exception a bad ancestor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To make something there: the name must be one that a file may have.
    Create,
    /// Anything else.
    Use,
    /// As `Use`, but a file on the way is told as such, and reserved names are names like others (Hadoop
    /// 3.5.0 `FSDirectory#getINodesInPath`).
    Plain,
}

/// Longest path in characters and deepest in names that something may be made at.
/// Source: Hadoop 3.5.0 `HdfsServerConstants#MAX_PATH_LENGTH`, `#MAX_PATH_DEPTH`.
const PATH_LEN_MAX: usize = 8000;
const PATH_DEPTH_MAX: usize = 1000;

/// Follows `path` and checks that the caller may pass the directories on the way.
pub fn resolve(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
) -> Result<Resolved> {
    resolve_for(store, settings, caller, path, purpose, None)
}

/// As [`resolve`], for a caller who means to change something there by a command.
pub(crate) fn resolve_to_change(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
    command: &str,
) -> Result<Resolved> {
    let at = resolve_for(store, settings, caller, path, purpose, Some(command))?;
    if at.snapshot.is_some() {
        return Err(NamespaceError::SnapshotAccessControl(
            "Modification on a read-only snapshot is disallowed".to_string(),
        ));
    }
    Ok(at)
}

fn resolve_for(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &str,
    purpose: Purpose,
    change: Option<&str>,
) -> Result<Resolved> {
    if purpose == Purpose::Create && !is_valid(path) {
        return Err(NamespaceError::InvalidPath(format!(
            "Invalid path name Invalid file name: {path}"
        )));
    }
    let names = match purpose {
        Purpose::Plain => split(path)?,
        Purpose::Create | Purpose::Use => real_names(store, path)?,
    };
    let is_long = path.chars().count() > PATH_LEN_MAX || names.len() > PATH_DEPTH_MAX;
    if purpose == Purpose::Create && is_long {
        return Err(NamespaceError::Io(format!(
            "Pathname too long.  Limit {PATH_LEN_MAX} characters, {PATH_DEPTH_MAX} levels."
        )));
    }
    let mut resolved = walk(store, names)?;
    resolved.raw = purpose != Purpose::Plain && is_raw_names(path);
    if let Some(command) = change.filter(|_| resolved.raw) {
        perm::check_superuser(settings, caller).map_err(|error| {
            let operation = method_of(command);
            NamespaceError::AccessControl(format!("{error} for operation {operation}"))
        })?;
    }
    perm::check_traverse(settings, caller, &resolved).map_err(|error| match error {
        NamespaceError::ParentNotDirectory(text) if purpose == Purpose::Use => {
            NamespaceError::AccessControl(text)
        }
        error => error,
    })?;
    Ok(resolved)
}

/// What Hadoop calls the operation of a command.
fn method_of(command: &str) -> String {
    match command {
        "AddBlock" => "getAdditionalBlock".to_string(),
        "Complete" => "completeFile".to_string(),
        "RenameTo" => "rename".to_string(),
        "SetEcPolicy" => "setErasureCodingPolicy".to_string(),
        "UnsetEcPolicy" => "unsetErasureCodingPolicy".to_string(),
        // The others have the names of Hadoop's methods.
        name => format!("{}{}", name[..1].to_lowercase(), &name[1..]),
    }
}

/// Fails for the folder of reserved names, which has no attributes to change.
pub(crate) fn check_not_reserved(path: &str) -> Result<()> {
    if path == "/.reserved" {
        return Err(NamespaceError::InvalidPath(format!("Invalid path name {path}")));
    }
    Ok(())
}

/// Fails if the parent is missing or a file.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyParentDir`.
pub fn check_parent_directory(at: &Resolved) -> Result<()> {
    if at.names.len() < 2 {
        return Ok(());
    }
    match at.parent() {
        None => Err(NamespaceError::FileNotFound(format!(
            "Parent directory doesn't exist: {}",
            at.parent_path()
        ))),
        Some(parent) if !parent.is_directory() => Err(NamespaceError::ParentNotDirectory(format!(
            "Parent path is not a directory: {}",
            at.parent_path()
        ))),
        Some(_) => Ok(()),
    }
}

/// Fails if a name is too long or reserved, or its directory full.
pub fn check_limits(
    settings: &Settings,
    parent: &Inode,
    parent_path: &str,
    name: &str,
) -> Result<()> {
    check_room(settings, parent, parent_path, name)?;
    check_reserved_name(name)
}

/// Fails if a name is too long or its directory full.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyMaxComponentLength`, `#verifyMaxDirItems`.
pub(crate) fn check_room(
    settings: &Settings,
    parent: &Inode,
    parent_path: &str,
    name: &str,
) -> Result<()> {
    check_name_len(settings, name, parent_path)?;
    let items = parent.directory().map_or(0, |directory| directory.children);
    let max = settings.directory_items_max;
    if items >= max {
        return Err(NamespaceError::MaxDirectoryItems(format!(
            "The directory item limit of {parent_path} is exceeded: limit={max} items={items}"
        )));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirectory#verifyMaxComponentLength`.
pub(crate) fn check_name_len(settings: &Settings, name: &str, parent_path: &str) -> Result<()> {
    let max = settings.component_len_max;
    if max > 0 && name.len() as u64 > max {
        return Err(NamespaceError::PathComponentTooLong(format!(
            "The maximum path component name limit of {name} in directory {parent_path} is \
             exceeded: limit={max} length={}",
            name.len()
        )));
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSDirectory#verifyINodeName`.
pub(crate) fn check_reserved_name(name: &str) -> Result<()> {
    if name == DOT_SNAPSHOT {
        return Err(NamespaceError::HadoopIllegalArgument(format!(
            "\"{DOT_SNAPSHOT}\" is a reserved name."
        )));
    }
    Ok(())
}
