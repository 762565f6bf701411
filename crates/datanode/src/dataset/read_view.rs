//! The open files of a replica, as readers see them.

use crate::error::{Context, DataNodeError, Result};
use crate::volume::check::Waiting;
use crate::volume::latency::DiskWork;
use crate::volume::{ReplicaFiles, Volume};
use cairn_codec::crc::{CRC_LEN, ChecksumKind};
use cairn_net::file_read;
use cairn_net::transfer_stream::{FileSend, FileWatch};
use cairn_replica::Checksum;
use cairn_stripe::GenerationStamp;
use cairn_wire::meta_file;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The files of a replica as they were at one moment: what a writer appends later is not seen.
#[derive(Debug)]
pub(crate) struct ReadView {
    pub(crate) data: Arc<File>,
    pub(super) meta: File,
    pub(crate) checksum: Checksum,
    pub(crate) gs: GenerationStamp,
    /// Bytes with CRCs.
    pub(crate) end: u64,
    /// Bytes that a reader may ask for.
    pub(crate) visible: u64,
    /// CRC of the last chunk at that moment, where a writer may replace it in the file.
    pub(super) last_crc: Option<u32>,
    /// Whether the replica was complete.
    pub(super) is_finalized: bool,
    pub(super) volume: Arc<Volume>,
    pub(super) files: ReplicaFiles,
}

/// The checksum that a meta file's header names. One that names none although CRCs follow is not as it was
/// written: read as it says, nothing would be checked.
pub(super) fn read_header(meta: &File, files: &ReplicaFiles) -> Result<Checksum> {
    let mut head = [0; meta_file::HEADER_LEN];
    meta.read_exact_at(&mut head, 0).at(&files.meta)?;
    let header = files.header(&head)?;
    let kind = ChecksumKind::from_id(header.checksum as u8).ok_or_else(|| {
        DataNodeError::Checksum(format!("{} has an unknown type", files.meta.display()))
    })?;
    let has_crcs = meta.metadata().at(&files.meta)?.len() > meta_file::HEADER_LEN as u64;
    if kind == ChecksumKind::Null && has_crcs {
        let what = format!("{} has CRCs, but no type for them", files.meta.display());
        return Err(DataNodeError::Checksum(what));
    }
    Ok(Checksum { kind, chunk_len: header.bytes_per_checksum as usize })
}

/// As [`read_header`], of a replica that is to be changed.
pub(super) fn header_to_change(meta: &File, files: &ReplicaFiles) -> Result<Checksum> {
    read_header(meta, files).map_err(|error| match error {
        DataNodeError::Checksum(what) => DataNodeError::Corrupt(what),
        error => error,
    })
}

impl FileWatch for ReadView {
    /// Measures what is read and sent of the data file.
    fn watch(
        &self,
        how: FileSend,
        work: &mut dyn FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let kind = match how {
            FileSend::Copy => DiskWork::Read,
            FileSend::SendFile => DiskWork::Transfer,
        };
        self.volume.timed(kind, work)
    }

    fn wait(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.volume.waits(work)
    }
}

impl ReadView {
    /// Counts work that is to be done in another thread.
    pub(crate) fn waiting(&self) -> Waiting {
        self.volume.waiting()
    }

    /// Waits until the disk may be read.
    pub(crate) async fn turn(&self) -> Result<()> {
        self.volume.turn().await
    }

    /// An append that starts while this view is read replaces the CRC of a short last chunk.
    pub(super) fn keep_last_crc(&mut self) -> Result<()> {
        let (kind, chunk) = (self.checksum.kind, self.checksum.chunk_len as u64);
        if self.last_crc.is_none() && !self.end.is_multiple_of(chunk) && kind != ChecksumKind::Null
        {
            let mut crc = [0; CRC_LEN];
            let at = meta_file::HEADER_LEN as u64 + self.end / chunk * CRC_LEN as u64;
            self.meta.read_exact_at(&mut crc, at).at(&self.files.meta)?;
            self.last_crc = Some(u32::from_be_bytes(crc));
        }
        Ok(())
    }

    /// CRCs (big-endian) of the bytes `from..to`; `from` is at a chunk boundary, `to` at one or at the end.
    pub(crate) fn crcs(&self, from: u64, to: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let (kind, chunk) = (self.checksum.kind, self.checksum.chunk_len as u64);
        let count = (to - from).div_ceil(chunk) as usize;
        out.resize(count * kind.len(), 0);
        if out.is_empty() {
            return Ok(());
        }
        let at = meta_file::HEADER_LEN as u64 + from / chunk * kind.len() as u64;
        self.read_exact_at(&self.meta, at, out).at(&self.files.meta)?;
        if let (Some(crc), true) = (self.last_crc, to == self.end && !to.is_multiple_of(chunk)) {
            let start = out.len() - kind.len();
            out[start..].copy_from_slice(&crc.to_be_bytes());
        }
        Ok(())
    }

    /// The data file and the meta file, for a client that reads them itself.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.data.as_fd(), self.meta.as_fd()]
    }

    /// The error of a data file that cannot be read.
    pub(crate) fn damaged(&self, source: std::io::Error) -> DataNodeError {
        DataNodeError::Disk { path: self.files.data.clone(), source }
    }

    /// Copies the meta file.
    pub(crate) fn copy_meta(&self, to: &Path) -> Result<()> {
        std::fs::copy(&self.files.meta, to).at(to).map(|_| ())
    }

    /// Reads data bytes at `offset`.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_exact_at(&self.data, offset, out).at(&self.files.data)
    }

    /// Fills `out` from one of the files. What waits for the disk holds up no other task.
    fn read_exact_at(&self, file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let waits = |read: &mut dyn FnMut() -> io::Result<()>| self.volume.waits(read);
        let read = || file_read::read_exact_at_by(file, out, offset, waits);
        self.volume.timed(DiskWork::Read, read)
    }

    /// Fails if the files of a finalized replica have other lengths than its bytes and CRCs take.
    pub(crate) fn check_lengths(&self) -> Result<()> {
        let crcs =
            self.end.div_ceil(self.checksum.chunk_len as u64) * self.checksum.kind.len() as u64;
        let want = [self.end, meta_file::HEADER_LEN as u64 + crcs];
        let files = [(&*self.data, &self.files.data), (&self.meta, &self.files.meta)];
        for ((file, path), want) in files.into_iter().zip(want) {
            let len = self.len_of(file).at(path)?;
            if len != want {
                let what = format!("{} has {len} bytes instead of {want}", path.display());
                return Err(DataNodeError::Checksum(what));
            }
        }
        Ok(())
    }

    fn len_of(&self, file: &File) -> io::Result<u64> {
        self.volume.quick(|| file.metadata()).map(|meta| meta.len())
    }

    /// CRCs in the file.
    pub(crate) fn crc_count(&self) -> Result<u64> {
        let len = self.len_of(&self.meta).at(&self.files.meta)?;
        let crcs = len.saturating_sub(meta_file::HEADER_LEN as u64);
        Ok(crcs.checked_div(self.checksum.kind.len() as u64).unwrap_or(0))
    }

    /// `len` bytes of the CRC part of the meta file from byte `at` on. Fails if the file ends before.
    pub(crate) fn sums(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; len];
        let at = meta_file::HEADER_LEN as u64 + at;
        self.read_exact_at(&self.meta, at, &mut out).at(&self.files.meta)?;
        Ok(out)
    }

    /// The storage that it is on.
    pub(crate) fn storage_id(&self) -> &str {
        self.volume.storage_id()
    }

    /// Reads the CRC part of the meta file from byte `at` of it; returns the bytes read.
    pub(crate) fn read_crc_bytes(&self, at: u64, out: &mut [u8]) -> Result<usize> {
        self.meta.read_at(out, meta_file::HEADER_LEN as u64 + at).at(&self.files.meta)
    }
}
