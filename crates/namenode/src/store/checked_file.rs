//! The store's file, with a CRC32C in memory of each of its blocks: what the disk gives back otherwise than it
//! was written is an error and never an answer.
//!
//! redb has checksums in its pages, but looks at them only when all of a file is checked. The CRCs outlive the
//! process in a [`CrcTable`]; without one the whole file is to be read once, through here, so that from then on every
//! block is known. Costs 4 bytes for 4 KiB, in memory and on disk.

use super::crc_table::CrcTable;
use crate::disk::Folders;
use cairn_codec::crc::crc32c;
use cairn_process::held::held;
use redb::StorageBackend;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Bytes that a CRC covers: redb's page.
const BLOCK: usize = 4096;

/// The CRC of a block that is not known. One in four billion has it and goes unchecked.
const UNKNOWN: u32 = 0;

/// A file whose blocks are compared with what was written, or first read.
#[derive(Debug)]
pub(crate) struct CheckedFile {
    path: PathBuf,
    file: Box<dyn StorageBackend>,
    crcs: Mutex<Crcs>,
    table: Mutex<CrcTable>,
}

#[derive(Debug)]
struct Crcs {
    known: Vec<u32>,
    /// Some are not in the table as they are.
    is_changed: bool,
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
    /// Opens or creates the file, in a folder that is locked. Returns whether its CRCs are known; if not, all that
    /// counts in it must be read.
    pub(super) fn open(
        disk: &dyn Folders,
        path: &Path,
    ) -> Result<(CheckedFile, bool), redb::DatabaseError> {
        let file = disk.open_database(path)?;
        let (table, known) = CrcTable::open(disk, path)?;
        // What was kept of a file that is not there any more says nothing, nor what was kept of its former end.
        let blocks = (file.len()? / BLOCK as u64) as usize;
        let mut known = known.filter(|_| blocks > 0);
        known.iter_mut().for_each(|known| known.truncate(blocks));
        let is_known = known.is_some();
        let crcs = Mutex::new(Crcs { known: known.unwrap_or_default(), is_changed: !is_known });
        let (path, table) = (path.to_path_buf(), Mutex::new(table));
        Ok((CheckedFile { path, file, crcs, table }, is_known))
    }

    fn crcs(&self) -> MutexGuard<'_, Crcs> {
        held(&self.crcs)
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
            let mut guard = self.crcs();
            let Crcs { known: crcs, is_changed } = &mut *guard;
            if crcs.len() <= block {
                crcs.resize(block + 1, UNKNOWN);
            }
            if crcs[block] == UNKNOWN {
                crcs[block] = crc;
                *is_changed = true;
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
        self.crcs().known.truncate((len / BLOCK as u64) as usize);
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut table = held(&self.table);
        let changed = {
            let mut crcs = self.crcs();
            std::mem::take(&mut crcs.is_changed).then(|| crcs.known.clone())
        };
        if let Some(crcs) = changed {
            table.save(&crcs)?;
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (first, last) =
            (offset / BLOCK as u64, (offset + data.len() as u64).div_ceil(BLOCK as u64));
        {
            let mut crcs = self.crcs();
            let end = crcs.known.len().min(last as usize);
            let written = (first as usize).min(end)..end;
            // Neither the old bytes nor the new ones until the write is done.
            crcs.known[written].fill(UNKNOWN);
        }
        self.file.write(offset, data)?;
        let blocks = whole(offset, data.len());
        let new: Vec<u32> =
            blocks.clone().map(|block| crc32c(0, part(data, offset, block))).collect();
        let mut crcs = self.crcs();
        if crcs.known.len() < blocks.end {
            crcs.known.resize(blocks.end, UNKNOWN);
        }
        if !blocks.is_empty() {
            crcs.known[blocks].copy_from_slice(&new);
            crcs.is_changed = true;
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
    use crate::disk::Disk;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_reads_back_otherwise_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let (file, is_known) = CheckedFile::open(&Disk, &path).unwrap();
        assert!(!is_known);
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
        // Another process knows what this one has synced.
        file.write(BLOCK as u64, &[8; 2 * BLOCK]).unwrap();
        file.sync_data().unwrap();
        drop(file);
        let (file, is_known) = CheckedFile::open(&Disk, &path).unwrap();
        assert!(is_known);
        file.read(0, &mut all).unwrap();
        disk.write_all_at(&[7], 2 * BLOCK as u64).unwrap();
        let error = file.read(0, &mut all).unwrap_err().to_string();
        assert!(error.contains("the 4096 bytes at 8192 are not"), "{error}");
    }

    /// The files of a store and its CRCs at one moment.
    type Image = Vec<(&'static str, Vec<u8>)>;

    fn image(dir: &Path) -> Image {
        let read = |name| (name, std::fs::read(dir.join(name)).unwrap());
        ["db", "db.crc-0", "db.crc-1"].map(read).to_vec()
    }

    /// Keeps what a crash would leave: before each write, and with each length of a table that is being written.
    #[derive(Debug)]
    struct Crashing {
        file: CheckedFile,
        dir: PathBuf,
        images: std::sync::Arc<Mutex<Vec<Image>>>,
    }

    impl Crashing {
        fn keep(&self, image: Image) {
            self.images.lock().unwrap().push(image);
        }
    }

    impl StorageBackend for Crashing {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.file.set_len(len)
        }
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.keep(image(&self.dir));
            self.file.write(offset, data)
        }
        fn sync_data(&self) -> io::Result<()> {
            let before = image(&self.dir);
            self.file.sync_data()?;
            let after = image(&self.dir);
            for at in 1..3 {
                let table = &after[at].1;
                if before[at].1 == *table {
                    continue;
                }
                for len in [0, 1, 31, 32, 33, table.len() / 2, table.len() - 4, table.len() - 1] {
                    let mut cut = before.clone();
                    cut[at].1 = table[..len.min(table.len())].to_vec();
                    self.keep(cut);
                }
            }
            self.keep(after);
            Ok(())
        }
        fn close(&self) -> io::Result<()> {
            self.file.close()
        }
    }

    #[test]
    fn a_crash_at_any_write_leaves_a_store_that_need_not_be_read_from_end_to_end() {
        use crate::store::Store;
        use crate::store::layer::Layer;
        use crate::store::tables::write_file;
        use cairn_namespace::store::{StoreRead, Table};
        use std::ops::ControlFlow;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        drop(Store::open(&path, 1 << 20).unwrap());
        let (file, is_known) = CheckedFile::open(&Disk, &path).unwrap();
        assert!(is_known);
        let images = std::sync::Arc::default();
        let (kept, at) = (std::sync::Arc::clone(&images), dir.path().to_path_buf());
        let backend = Crashing { file, dir: at, images: kept };
        let database = redb::Database::builder().create_with_backend(backend).unwrap();
        // So that old pages are used again.
        for round in 1..6_u64 {
            let layer = Layer::default();
            for number in 0..50_u64 {
                let key = (number * round).to_be_bytes();
                layer.put(Table::Inode, &key, Some(&[round as u8; 40]), round);
            }
            write_file(&database, Some(round.into()), &layer).unwrap();
        }
        drop(database);
        let images = std::mem::take(&mut *images.lock().unwrap());
        assert!(images.len() > 100, "{}", images.len());
        let mut last = 0;
        for image in images {
            let dir = tempfile::tempdir().unwrap();
            for (name, bytes) in image {
                std::fs::write(dir.path().join(name), bytes).unwrap();
            }
            let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
            assert!(store.is_unread(), "it was read from end to end");
            assert!(store.applied() >= last, "{} after {last}", store.applied());
            last = store.applied();
            let mut newest = 0;
            let mut see = |_: &[u8], value: &[u8]| {
                newest = newest.max(value[0]);
                ControlFlow::Continue(())
            };
            store.snapshot().scan(Table::Inode, &[], &[], &mut see).unwrap();
            assert_eq!(u64::from(newest), last);
        }
        assert_eq!(last, 5);
    }
}
