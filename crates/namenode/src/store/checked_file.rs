//! The store's file, with a CRC32C in memory of each of its blocks: what the disk gives back otherwise than it
//! was written is an error and never an answer.
//!
//! redb has checksums in its pages, but looks at them only when a file is opened. That look passes through
//! here, so that from then on every block is known. Costs 4 bytes for 4 KiB.

use cairn_codec::crc::crc32c;
use redb::StorageBackend;
use redb::backends::FileBackend;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a CRC covers: redb's page.
const BLOCK: usize = 4096;

/// The CRC of a block that is not known. One in four billion has it and goes unchecked.
const UNKNOWN: u32 = 0;

/// A file whose blocks are compared with what was written, or first read.
#[derive(Debug)]
pub(super) struct CheckedFile {
    path: PathBuf,
    file: FileBackend,
    crcs: Mutex<Vec<u32>>,
}

/// The blocks that lie wholly in `len` bytes at `offset`.
fn whole(offset: u64, len: usize) -> Range<usize> {
    let end = (offset + len as u64) / BLOCK as u64;
    offset.div_ceil(BLOCK as u64) as usize..end as usize
}

/// The bytes of `block` in what was read or written at `offset`.
fn part(bytes: &[u8], offset: u64, block: usize) -> &[u8] {
    let start = (block as u64 * BLOCK as u64 - offset) as usize;
    &bytes[start..start + BLOCK]
}

impl CheckedFile {
    /// Opens or creates the file, and locks it.
    pub(super) fn open(path: &Path) -> Result<CheckedFile, redb::DatabaseError> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let file = FileBackend::new(file)?;
        Ok(CheckedFile { path: path.to_path_buf(), file, crcs: Mutex::default() })
    }

    fn crcs(&self) -> MutexGuard<'_, Vec<u32>> {
        self.crcs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for CheckedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)?;
        for block in whole(offset, out.len()) {
            let crc = crc32c(0, part(out, offset, block));
            let mut crcs = self.crcs();
            if crcs.len() <= block {
                crcs.resize(block + 1, UNKNOWN);
            }
            if crcs[block] == UNKNOWN {
                crcs[block] = crc;
            } else if crcs[block] != crc {
                let (path, at) = (self.path.display(), block * BLOCK);
                let what =
                    format!("{path}: the {BLOCK} bytes at {at} are not those that were written");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.crcs().truncate((len / BLOCK as u64) as usize);
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (first, last) =
            (offset / BLOCK as u64, (offset + data.len() as u64).div_ceil(BLOCK as u64));
        {
            let mut crcs = self.crcs();
            let end = crcs.len().min(last as usize);
            let known = (first as usize).min(end)..end;
            // Neither the old bytes nor the new ones until the write is done.
            crcs[known].fill(UNKNOWN);
        }
        self.file.write(offset, data)?;
        let blocks = whole(offset, data.len());
        let new: Vec<u32> =
            blocks.clone().map(|block| crc32c(0, part(data, offset, block))).collect();
        let mut crcs = self.crcs();
        if crcs.len() < blocks.end {
            crcs.resize(blocks.end, UNKNOWN);
        }
        if !blocks.is_empty() {
            crcs[blocks].copy_from_slice(&new);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_reads_back_otherwise_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = CheckedFile::open(&path).unwrap();
        file.set_len(4 * BLOCK as u64).unwrap();
        file.write(BLOCK as u64, &[7; 2 * BLOCK]).unwrap();
        let mut all = [0; 4 * BLOCK];
        file.read(0, &mut all).unwrap();
        // A part of a block: nothing is known of it until it is read.
        file.write(3 * BLOCK as u64 + 5, &[9; 10]).unwrap();
        file.read(0, &mut all).unwrap();
        let disk = std::fs::File::options().write(true).open(&path).unwrap();
        for at in [0, BLOCK, 3 * BLOCK - 1, 3 * BLOCK + 5, 4 * BLOCK - 1] {
            let good = all[at];
            disk.write_all_at(&[good ^ 4], at as u64).unwrap();
            let error = file.read(0, &mut [0; 4 * BLOCK]).unwrap_err().to_string();
            let block = at / BLOCK * BLOCK;
            assert!(error.contains(&format!("the 4096 bytes at {block} are not")), "{error}");
            disk.write_all_at(&[good], at as u64).unwrap();
        }
        file.read(0, &mut all).unwrap();
        // Shorter and longer again: zeros are what was written.
        file.set_len(BLOCK as u64).unwrap();
        file.set_len(4 * BLOCK as u64).unwrap();
        file.read(0, &mut all).unwrap();
        assert!(all[BLOCK..].iter().all(|byte| *byte == 0));
    }
}
