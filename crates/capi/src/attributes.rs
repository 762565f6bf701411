//! Owners, permissions, times, replication; the sizes of the file system.

use crate::boundary::Text;
use crate::builder::{Fs, connection};
use crate::failure::{Failure, call, status};
use libc::{c_int, c_short, time_t};

/// A number for C, at most the greatest that it has.
pub fn offset(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Changes owner, group or both; null leaves one as it is.
#[unsafe(no_mangle)]
extern "C" fn hdfsChown(fs: Option<&Fs>, path: Text, owner: Text, group: Text) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let (owner, group) = (owner.get()?, group.get()?);
        if owner.is_none() && group.is_none() {
            return Ok(());
        }
        let path = fs.path(&path)?;
        fs.wait(fs.client.set_owner(&path, owner, group))
    })
}

/// Sets the permission bits.
#[unsafe(no_mangle)]
extern "C" fn hdfsChmod(fs: Option<&Fs>, path: Text, mode: c_short) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        // Hadoop's permissions have a sticky bit, and no others above the nine.
        fs.wait(fs.client.set_permission(&path, mode as u16 & 0o1777))
    })
}

/// Sets the times in seconds since 1970; -1 leaves one as it is.
#[unsafe(no_mangle)]
extern "C" fn hdfsUtime(fs: Option<&Fs>, path: Text, modified: time_t, read: time_t) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let millis = |seconds: time_t| match seconds {
            -1 => Ok(None),
            _ => {
                let wrong = || Failure::argument(format!("{seconds} is no time"));
                let seconds = u64::try_from(seconds).map_err(|_| wrong())?;
                seconds.checked_mul(1000).map(Some).ok_or_else(wrong)
            }
        };
        let (modified, read) = (millis(modified)?, millis(read)?);
        fs.wait(fs.client.set_times(&path, modified, read))
    })
}

/// Sets how many copies a replicated file has; `ENOENT` when the path is no file.
#[unsafe(no_mangle)]
extern "C" fn hdfsSetReplication(fs: Option<&Fs>, path: Text, replication: i16) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let wrong = |_| Failure::argument(format!("a replication of {replication}"));
        let replication = u16::try_from(replication).map_err(wrong)?;
        match fs.wait(fs.client.set_replication(&path, replication))? {
            true => Ok(()),
            false => Err(Failure::io("no such file").with_errno(libc::ENOENT)),
        }
    })
}

/// Bytes of a block of new files.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetDefaultBlockSize(fs: Option<&Fs>) -> i64 {
    call(-1, || Ok(offset(connection(fs)?.client.config().block_size)))
}

/// The same; it does not depend on the path.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetDefaultBlockSizeAtPath(fs: Option<&Fs>, path: Text) -> i64 {
    call(-1, || {
        let fs = connection(fs)?;
        fs.path(&path)?;
        Ok(offset(fs.client.config().block_size))
    })
}

/// Bytes of all volumes.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetCapacity(fs: Option<&Fs>) -> i64 {
    call(-1, || {
        let fs = connection(fs)?;
        Ok(offset(fs.wait(fs.client.stats())?.capacity))
    })
}

/// Bytes of the volumes that blocks take.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetUsed(fs: Option<&Fs>) -> i64 {
    call(-1, || {
        let fs = connection(fs)?;
        Ok(offset(fs.wait(fs.client.stats())?.used))
    })
}
