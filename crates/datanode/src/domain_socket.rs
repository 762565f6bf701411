//! The UNIX domain socket for clients on this machine.
//!
//! Source: Hadoop 3.5.0 `DomainPeerServer`, `DomainSocket#bindAndListen`.

use crate::error::{Context, DataNodeError, Result};
use crate::sys;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// The path of a DataNode whose data transfer listens on `port`.
///
/// Source: Hadoop 3.5.0 `DomainSocket#getEffectivePath`.
fn effective_path(path: &str, port: u16) -> PathBuf {
    PathBuf::from(path.replace("_PORT", &port.to_string()))
}

/// Binds the socket in the place of an older one; anybody may connect.
///
/// With `check`, fails where somebody else could put another socket in its place.
pub(crate) fn bind(path: &str, port: u16, check: bool) -> Result<UnixListener> {
    let path = effective_path(path, port);
    if check {
        check_folders(&path)?;
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).at(&path),
        _ => {}
    }
    let listener = UnixListener::bind(&path).at(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o666)).at(&path)?;
    tracing::info!(path = %path.display(), "listening on a UNIX domain socket");
    Ok(listener)
}

/// Fails unless every folder above the socket is safe from others.
///
/// Source: Hadoop 3.5.0 `DomainSocket#validateSocketPathSecurity0`.
fn check_folders(path: &Path) -> Result<()> {
    if !path.is_absolute() {
        let (dir, why) = (path.to_path_buf(), "a socket's path must be absolute".into());
        return Err(DataNodeError::Storage { dir, why });
    }
    let us = sys::effective_user();
    for folder in path.ancestors().skip(1) {
        let meta = fs::metadata(folder).at(folder)?;
        let (mode, uid, gid) = (meta.mode(), meta.uid(), meta.gid());
        let why = if mode & 0o002 != 0 {
            "it is world-writable"
        } else if mode & 0o020 != 0 && gid != 0 {
            "it is group-writable, and the group is not root"
        } else if uid != 0 && uid != us {
            "it is owned by a user who is not root and not the one that this process runs as"
        } else {
            continue;
        };
        let why = format!(
            "the path component {} has permissions {:04o}, uid {uid} and gid {gid}: it is not protected because {why}",
            folder.display(),
            mode & 0o7777
        );
        return Err(DataNodeError::Storage { dir: path.to_path_buf(), why });
    }
    Ok(())
}
