//! The NameNode's own disks: what is free there, and names made durable.

use std::path::Path;

/// Makes names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// Bytes that can be written; none where nobody can look.
pub(crate) fn free_len(dir: &Path) -> u64 {
    match rustix::fs::statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => {
            tracing::warn!(dir = %dir.display(), %error, "free space is not known");
            0
        }
    }
}
