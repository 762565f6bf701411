//! What files and directories are, what directories hold, and where blocks are.

use crate::attributes::offset;
use crate::boundary::{
    Text, array, free, items, number_behind, pointers, put, string, string_with,
};
use crate::builder::{Connection, Fs, connection};
use crate::failure::{Failure, Result, call};
use cairn_client::FileStatus;
use errno::{Errno, set_errno};
use libc::{c_char, c_int, c_short, time_t};
use std::mem::MaybeUninit;
use std::ptr;

/// The flag of a file that is encrypted, behind the string of its owner.
///
/// Source: Hadoop 3.5.0 libhdfs, `HDFS_EXTENDED_FILE_INFO_ENCRYPTED`.
const ENCRYPTED: c_int = 1;

/// What is told of a path. `hdfsFileInfo`: the layout is part of the ABI.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FileInfo {
    /// `F` or `D`.
    kind: c_int,
    /// The URI.
    name: *mut c_char,
    /// Seconds since 1970.
    modified: time_t,
    /// Bytes.
    len: i64,
    replication: c_short,
    block_size: i64,
    owner: *mut c_char,
    group: *mut c_char,
    permissions: c_short,
    /// Seconds since 1970.
    read: time_t,
}

impl FileInfo {
    /// Has strings of its own, for [`FileInfo::free`].
    fn new(fs: &Connection, status: &FileStatus) -> FileInfo {
        let seconds = |ms: u64| time_t::try_from(ms / 1000).unwrap_or(time_t::MAX);
        FileInfo {
            kind: c_int::from(if status.is_dir() { b'D' } else { b'F' }),
            name: string(&format!("{}{}", fs.uri, status.path)),
            modified: seconds(status.modification_time_ms),
            len: offset(status.len),
            replication: c_short::try_from(status.replication).unwrap_or(c_short::MAX),
            block_size: offset(status.block_size),
            owner: string_with(&status.owner, flags(status)),
            group: string(&status.group),
            permissions: status.permission as c_short,
            read: seconds(status.access_time_ms),
        }
    }

    /// Programs made of libhdfs's own structure have no place for flags but that.
    fn is_encrypted(&self) -> bool {
        number_behind(self.owner) & ENCRYPTED != 0
    }

    fn is_whole(&self) -> bool {
        ![self.name, self.owner, self.group].iter().any(|text| text.is_null())
    }

    fn free(&self) {
        [self.name, self.owner, self.group].into_iter().for_each(free);
    }
}

/// What [`FileInfo`] has no field for.
fn flags(status: &FileStatus) -> c_int {
    if status.is_encrypted { ENCRYPTED } else { 0 }
}

/// Several of them in one piece of memory.
fn infos(fs: &Connection, statuses: &[FileStatus]) -> Result<*mut FileInfo> {
    let infos: Vec<FileInfo> = statuses.iter().map(|status| FileInfo::new(fs, status)).collect();
    let start = match infos.iter().all(FileInfo::is_whole) {
        true => array(&infos),
        false => Err(Failure::out_of_memory()),
    };
    start.inspect_err(|_| infos.iter().for_each(FileInfo::free))
}

/// What a path names, for [`hdfsFreeFileInfo`].
#[unsafe(no_mangle)]
extern "C" fn hdfsGetPathInfo(fs: Option<&Fs>, path: Text) -> *mut FileInfo {
    call(ptr::null_mut(), || {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        infos(fs, &[fs.wait(fs.client.require(&path))?])
    })
}

/// The entries of a directory, for [`hdfsFreeFileInfo`]; null when there are none, with an `errno` of 0.
#[unsafe(no_mangle)]
extern "C" fn hdfsListDirectory(
    fs: Option<&Fs>,
    path: Text,
    count: Option<&mut MaybeUninit<c_int>>,
) -> *mut FileInfo {
    call(ptr::null_mut(), || {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let entries = fs.wait(fs.client.list(&path).collect())?;
        let len = c_int::try_from(entries.len());
        put(count, len.map_err(|_| Failure::argument("more entries than a number can count"))?)?;
        let list = if entries.is_empty() { ptr::null_mut() } else { infos(fs, &entries)? };
        set_errno(Errno(0));
        Ok(list)
    })
}

/// Gives back what [`hdfsGetPathInfo`] or [`hdfsListDirectory`] made.
#[unsafe(no_mangle)]
extern "C" fn hdfsFreeFileInfo(list: *mut FileInfo, count: c_int) {
    items(list, usize::try_from(count).unwrap_or(0)).iter().for_each(FileInfo::free);
    free(list);
}

/// Whether a file is encrypted.
#[unsafe(no_mangle)]
extern "C" fn hdfsFileIsEncrypted(info: Option<&FileInfo>) -> c_int {
    call(-1, || info.map(|info| info.is_encrypted().into()).ok_or_else(crate::boundary::null))
}

/// The host names of each block of a byte range, the lists and their list ended by null, for
/// [`hdfsFreeHosts`]. Of a block group, the hosts of all its units.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetHosts(
    fs: Option<&Fs>,
    path: Text,
    start: i64,
    len: i64,
) -> *mut *mut *mut c_char {
    call(ptr::null_mut(), || {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let wrong = |_| Failure::argument("Invalid start or len parameter");
        let (start, len) =
            (u64::try_from(start).map_err(wrong)?, u64::try_from(len).map_err(wrong)?);
        let found = fs.wait(fs.client.block_locations(&path, start, len))?;
        let mut lists = Vec::new();
        for block in &found.blocks {
            let mut hosts: Vec<*mut c_char> =
                block.locations.iter().map(|location| string(&location.addr.host)).collect();
            hosts.push(ptr::null_mut());
            lists.push(array(&hosts)?);
        }
        lists.push(ptr::null_mut());
        array(&lists)
    })
}

/// Gives back what [`hdfsGetHosts`] made.
#[unsafe(no_mangle)]
extern "C" fn hdfsFreeHosts(lists: *mut *mut *mut c_char) {
    for list in pointers(lists) {
        pointers(*list).iter().copied().for_each(free);
        free(*list);
    }
    free(lists);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_encrypted_whatever_the_length_of_their_owner() {
        for len in 0..20 {
            for (flags, want) in [(0, 0), (ENCRYPTED, 1)] {
                let name = "o".repeat(len);
                let info = FileInfo {
                    kind: c_int::from(b'F'),
                    name: string("hdfs://nn/f"),
                    modified: 0,
                    len: 0,
                    replication: 1,
                    block_size: 0,
                    owner: string_with(&name, flags),
                    group: string("g"),
                    permissions: 0,
                    read: 0,
                };
                // SAFETY: it was made so.
                let owner = unsafe { std::ffi::CStr::from_ptr(info.owner) };
                assert_eq!(owner.to_str(), Ok(name.as_str()));
                assert_eq!(hdfsFileIsEncrypted(Some(&info)), want, "{len}");
                info.free();
            }
        }
        assert_eq!(hdfsFileIsEncrypted(None), -1);
    }
}
