//! Directories that operators have protected: while they are not empty nobody deletes or renames them, or what they
//! are in.
//!
//! Source: Hadoop 3.5.0 `DFSUtil#checkProtectedDescendants`.

use crate::error::{NamespaceError, Result};
use crate::inode::Inode;
use crate::path::{self, Resolved};
use crate::settings::Settings;
use crate::store::StoreRead;

/// Refuses to take away what is at `at` if that is protected, or has something protected in it.
pub(crate) fn check(store: &dyn StoreRead, settings: &Settings, at: &Resolved) -> Result<()> {
    let protected = &settings.protected_directories;
    if protected.is_empty() || !at.target().is_some_and(is_full) {
        return Ok(());
    }
    if protected.contains(&at.path) {
        let path = &at.path;
        return refuse(format!("Cannot delete/rename non-empty protected directory {path}"));
    }
    let below = format!("{}/", at.path);
    for inner in protected.iter().filter(|inner| inner.starts_with(&below)) {
        let names = inner.split('/').skip(1).map(str::to_string).collect();
        if path::walk(store, names)?.target().is_some_and(is_full) {
            return refuse(format!(
                "Cannot delete/rename non-empty protected subdirectory {inner}"
            ));
        }
    }
    let mut above = if settings.protects_subdirectories { at.path.as_str() } else { "" };
    while let Some((parent, _)) = above.rsplit_once('/') {
        if protected.iter().any(|outer| outer == parent) {
            return refuse(format!(
                "Cannot delete/rename subdirectory under protected subdirectory {parent}"
            ));
        }
        above = parent;
    }
    Ok(())
}

fn is_full(inode: &Inode) -> bool {
    inode.directory().is_some_and(|directory| directory.children > 0)
}

fn refuse(message: String) -> Result<()> {
    Err(NamespaceError::AccessControl(message))
}
