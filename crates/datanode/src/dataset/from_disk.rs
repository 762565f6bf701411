//! Reading a replica as its disk has it: what the page cache remembers proves nothing of what a power cut leaves.
//!
//! The replica is synced first, then its bytes are read past the page cache; where the file system cannot, what the
//! cache has of it is dropped before.

use super::{Block, Dataset, ReadView, blocking};
use crate::error::{Context, DataNodeError, Result};
use crate::sys;
use crate::volume::latency::DiskWork;
use cairn_replica::ReplicaState;
use rustix::fs::Advice;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;

/// What such reads are aligned to: the blocks of every usual disk and file system.
const ALIGN: usize = 4096;

/// The data file of a replica, opened to be read from the disk.
#[derive(Debug)]
pub(crate) struct DiskReader {
    file: File,
    /// With room to begin at a multiple of [`ALIGN`].
    buffer: Vec<u8>,
}

impl Dataset {
    /// Syncs a finalized replica and opens it past the page cache.
    ///
    /// Fails for one that is still written or lies in memory, or has another stamp or length than `block`.
    pub(crate) async fn read_from_disk(
        self: &Arc<Self>,
        block: &Block,
        view: &Arc<ReadView>,
    ) -> Result<DiskReader> {
        let state = self.get(block.id).map(|replica| replica.state());
        if state != Some(ReplicaState::Finalized) || !view.is_finalized || view.volume.is_ram() {
            let what = format!("{} is not complete on a disk", block.id);
            return Err(DataNodeError::Peer(what));
        }
        if (view.gs, view.end) != (block.gs, block.len) {
            let (id, gs, len) = (block.id, view.gs, view.end);
            return Err(DataNodeError::Peer(format!(
                "{id} is here with stamp {gs} and {len} bytes"
            )));
        }
        view.check_lengths()?;
        view.turn().await?;
        let (dataset, view, id) = (self.clone(), view.clone(), block.id);
        let waiting = view.waiting();
        blocking(move || {
            let _waiting = waiting;
            let (volume, files) = (&view.volume, &view.files);
            dataset.sync_or_condemn(id, volume, || {
                volume.sync(&view.data, &files.data)?;
                volume.sync(&view.meta, &files.meta)?;
                files.data.parent().map_or(Ok(()), |dir| volume.sync_dir(dir))
            })?;
            sys::advise(&view.meta, 0, 0, Advice::DontNeed);
            let open =
                || OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&files.data);
            let file = match volume.timed(DiskWork::Metadata, open) {
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    let file = File::open(&files.data);
                    file.inspect(|file| sys::advise(file, 0, 0, Advice::DontNeed))
                }
                opened => opened,
            };
            Ok(DiskReader { file: file.at(&files.data)?, buffer: Vec::new() })
        })
        .await
    }
}

impl DiskReader {
    /// The bytes `from..to` and the CRCs of their chunks; `from` is where a chunk begins, `to` where one ends.
    pub(crate) fn read_chunks(
        &mut self,
        view: &ReadView,
        from: u64,
        to: u64,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut crcs = Vec::new();
        view.crcs(from, to, &mut crcs)?;
        let bytes = view.volume.timed(DiskWork::Read, || self.read(from, to));
        Ok((bytes.at(&view.files.data)?, crcs))
    }

    fn read(&mut self, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
        let start = from - from % ALIGN as u64;
        let (skip, needed) = ((from - start) as usize, (to - start) as usize);
        let len = needed.next_multiple_of(ALIGN);
        self.buffer.resize(self.buffer.len().max(len + ALIGN), 0);
        let first = self.buffer.as_ptr().align_offset(ALIGN);
        let window = &mut self.buffer[first..first + len];
        let mut filled = 0;
        while filled < needed {
            // The file's end may leave the last read short, and no other one.
            match self.file.read_at(&mut window[filled..], start + filled as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(window[skip..needed].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn any_range_is_read_as_it_is_in_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..50_001u32).map(|i| ((i * i) >> 7) as u8).collect();
        file.write_all(&bytes).unwrap();
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(file.path());
        // A file system of memory has no such reads.
        let file = direct.or_else(|_| File::open(file.path())).unwrap();
        let mut reader = DiskReader { file, buffer: Vec::new() };
        for (from, to) in [(0, 50_001), (512, 4096), (4096, 8192), (49_664, 50_001), (1, 2), (5, 5)]
        {
            let read = reader.read(from, to).unwrap();
            assert_eq!(read, bytes[from as usize..to as usize], "{from}..{to}");
        }
        assert!(reader.read(49_999, 50_002).is_err(), "beyond the end");
    }
}
