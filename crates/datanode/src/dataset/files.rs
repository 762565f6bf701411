//! What is done to the two files of a replica: they move together, are cut together, and go together.

use crate::error::{Context, DataNodeError, Result};
use crate::volume::{ReplicaFiles, Volume, scan};
use cairn_codec::crc::{CRC_LEN, ChecksumKind};
use cairn_wire::meta_file::HEADER_LEN;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Renames a replica's two files, the CRCs first; both or none. A start that finds only the CRCs moved lets the block
/// file follow them.
pub(super) fn move_files(volume: &Volume, from: &ReplicaFiles, to: &ReplicaFiles) -> Result<()> {
    if from == to {
        return Ok(());
    }
    volume.rename(&from.meta, &to.meta)?;
    if from.data == to.data {
        return Ok(());
    }
    volume.rename(&from.data, &to.data).inspect_err(|_| {
        if let Err(error) = volume.rename(&to.meta, &from.meta) {
            tracing::error!(path = %to.meta.display(), %error, "cannot move CRCs back to their block file");
        }
    })
}

/// Cuts a replica to `len` bytes. A chunk of which only a part stays gets a new CRC, and so must match its old
/// one; if it does not, [`DataNodeError::Corrupt`] says so, and nothing is changed. Returns the bytes freed.
///
/// Source: Hadoop 3.5.0 `LocalReplica#truncateBlock`, which makes a good CRC for bytes that are not.
pub(super) fn truncate(files: &ReplicaFiles, len: u64) -> Result<u64> {
    let data = File::options().read(true).write(true).open(&files.data).at(&files.data)?;
    let meta = File::options().read(true).write(true).open(&files.meta).at(&files.meta)?;
    let old_len = data.metadata().at(&files.data)?.len();
    if old_len < len {
        return Ok(0);
    }
    let old_meta_len = meta.metadata().at(&files.meta)?.len();
    let checksum = super::read_view::header_to_change(&meta, files)?;
    let (kind, chunk) = (checksum.kind, checksum.chunk_len as u64);
    let crcs = len.div_ceil(chunk) * kind.len() as u64;
    let part = len % chunk;
    if old_len > len && part > 0 && kind != ChecksumKind::Null {
        let start = len - part;
        let mut bytes = vec![0; chunk.min(old_len - start) as usize];
        data.read_exact_at(&mut bytes, start).at(&files.data)?;
        let at = HEADER_LEN as u64 + crcs - kind.len() as u64;
        let mut stored = [0; CRC_LEN];
        let is_there = match meta.read_exact_at(&mut stored, at) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            read => read.map(|()| true).at(&files.meta)?,
        };
        // A writer that failed may have left bytes that no CRC covers.
        let good = scan::covered(kind, &bytes, u32::from_be_bytes(stored)) as u64;
        if !is_there || good < part {
            return Err(DataNodeError::Corrupt(format!(
                "{}: the chunk at {start}, which is to be cut at {len}, does not match its CRC",
                files.data.display()
            )));
        }
        let crc = kind.update(0, &bytes[..part as usize]).to_be_bytes();
        meta.write_all_at(&crc, at).at(&files.meta)?;
    }
    data.set_len(len).at(&files.data)?;
    // Also if a try that a stop has ended has cut the data already.
    let meta_len = HEADER_LEN as u64 + crcs;
    if old_meta_len > meta_len {
        meta.set_len(meta_len).at(&files.meta)?;
    }
    Ok(old_len - len + old_meta_len.saturating_sub(meta_len))
}

pub(super) fn be_crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, byte| crc << 8 | u32::from(*byte))
}

/// Deletes files that are not needed any more.
pub(super) fn remove(files: &ReplicaFiles) {
    [&files.data, &files.meta].into_iter().for_each(|path| remove_file(path));
}

/// Deletes one of them.
pub(super) fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "cannot delete a file of a moved replica");
    }
}
