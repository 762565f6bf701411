//! Names: what is there, making, moving and deleting it, and the working directory.

use crate::boundary::{Text, fill};
use crate::builder::{Fs, connection};
use crate::failure::{Failure, Result, call, status};
use libc::{c_char, c_int};
use std::ptr;

/// Permission bits of new directories, before the umask.
const DIRECTORY: u16 = 0o777;

/// Answers that are false where libhdfs has no exception.
fn succeeded(done: bool, errno: c_int, what: &str) -> Result<()> {
    if done { Ok(()) } else { Err(Failure::io(what).with_errno(errno)) }
}

/// 0 when the path is there; else -1, with `ENOENT` when it is not.
#[unsafe(no_mangle)]
extern "C" fn hdfsExists(fs: Option<&Fs>, path: Text) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let found = fs.wait(fs.client.file_info(&path))?;
        succeeded(found.is_some(), libc::ENOENT, "no such path")
    })
}

/// Makes a directory and all that are missing above it.
#[unsafe(no_mangle)]
extern "C" fn hdfsCreateDirectory(fs: Option<&Fs>, path: Text) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let done = fs.wait(fs.client.mkdirs(&path, DIRECTORY))?;
        succeeded(done, libc::EIO, "the directory was not made")
    })
}

/// Deletes a file, or a directory; one with entries only if `recursive` is not 0.
#[unsafe(no_mangle)]
extern "C" fn hdfsDelete(fs: Option<&Fs>, path: Text, recursive: c_int) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let done = fs.wait(fs.client.delete(&path, recursive != 0))?;
        succeeded(done, libc::EIO, "nothing was deleted")
    })
}

/// Moves a file or directory; into `to` when that is a directory.
#[unsafe(no_mangle)]
extern "C" fn hdfsRename(fs: Option<&Fs>, from: Text, to: Text) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        let (from, to) = (fs.path(&from)?, fs.path(&to)?);
        let done = fs.wait(fs.client.rename(&from, &to))?;
        succeeded(done, libc::EIO, "nothing was renamed")
    })
}

/// Cuts a file to `len` bytes: 1 when that is done, 0 when its last block is still being cut.
#[unsafe(no_mangle)]
extern "C" fn hdfsTruncateFile(fs: Option<&Fs>, path: Text, len: i64) -> c_int {
    call(-1, || {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let negative =
            |_| Failure::argument(format!("Cannot truncate to a negative file size: {len}."));
        let len = u64::try_from(len).map_err(negative)?;
        Ok(c_int::from(fs.wait(fs.client.truncate(&path, len))?))
    })
}

/// Writes the URI of the working directory into a buffer, and answers the buffer.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetWorkingDirectory(
    fs: Option<&Fs>,
    buffer: *mut c_char,
    len: usize,
) -> *mut c_char {
    call(ptr::null_mut(), || {
        let fs = connection(fs)?;
        if buffer.is_null() {
            return Err(crate::boundary::null());
        }
        let uri = format!("{}{}", fs.uri, fs.working_directory());
        let too_long =
            || Failure::argument("the buffer is too short").with_errno(libc::ENAMETOOLONG);
        fill(buffer, len, &uri).then_some(buffer).ok_or_else(too_long)
    })
}

/// Makes relative paths belong to another directory. It need not be there.
#[unsafe(no_mangle)]
extern "C" fn hdfsSetWorkingDirectory(fs: Option<&Fs>, path: Text) -> c_int {
    status(|| {
        let fs = connection(fs)?;
        fs.set_working_directory(fs.path(&path)?);
        Ok(())
    })
}
