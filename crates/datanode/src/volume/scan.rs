//! Finds the replicas of a volume at the start.
//!
//! Finalized replicas are taken at their file's length. A replica that was being written is cut
//! to the bytes that its CRCs vouch for and becomes RWR. Folders are read in parallel.
//!
//! Source: Hadoop 3.5.0 `BlockPoolSlice#getVolumeMap`, `#validateIntegrityAndSetLength`.

use super::layout::{self, FileName, PoolDirs, parse_name};
use super::{ReplicaFiles, Volume};
use crate::error::{Context, DataNodeError, Result};
use crate::sys;
use cairn_codec::crc::ChecksumKind;
use cairn_process::held::held;
use cairn_replica::{Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::{self, MetaHeader};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A block file, with its stamp and length.
type Found = (BlockId, GenerationStamp, u64);

/// A meta file without a block file, by its block and stamp.
pub(crate) type LoneMeta = (BlockId, GenerationStamp);

/// What is in a folder of replicas.
struct Folder {
    blocks: Vec<Found>,
    lone_metas: Vec<LoneMeta>,
    /// Of the files of these blocks.
    bytes: u64,
}

/// A block file among the finalized ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnDisk {
    pub(crate) id: BlockId,
    /// Of the newest meta file; 0 without one.
    pub(crate) gs: GenerationStamp,
    pub(crate) len: u64,
}

/// The block files among the finalized ones, while they may come and go, and the newest meta file of each block that
/// has no block file beside it.
pub(crate) fn finalized_files(volume: &Volume) -> Result<(Vec<OnDisk>, Vec<LoneMeta>)> {
    let (mut all, mut lone) = (Vec::new(), Vec::new());
    for dir in leaf_dirs(&volume.pool()?.finalized)? {
        let found = scan_dir(&dir)?;
        all.extend(found.blocks.into_iter().map(|(id, gs, len)| OnDisk { id, gs, len }));
        lone.extend(found.lone_metas);
    }
    Ok((all, lone))
}

/// Threads that read folders of one volume.
const SCAN_THREADS: usize = 4;

/// Every replica on the volume; counts the space they use. Finalized ones were synced when they became so if the DataNode is
/// `is_stable`.
pub(crate) fn scan(volume: &Volume, is_stable: bool) -> Result<Vec<Replica>> {
    let pool = volume.pool()?;
    take_saved(pool)?;
    rejoin(pool)?;
    let dirs = leaf_dirs(&pool.finalized)?;
    let next = AtomicUsize::new(0);
    let found = Mutex::new((Vec::new(), 0u64));
    let finalized = |(id, gs, len)| match is_stable {
        true => Replica::new(id, gs, ReplicaState::Finalized, len),
        false => Replica::unsynced(id, gs, len),
    };
    let worker = || -> Result<()> {
        while let Some(dir) = dirs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let folder = scan_dir(dir)?;
            let mut found = held(&found);
            found.0.extend(folder.blocks.into_iter().map(finalized));
            found.1 += folder.bytes;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..SCAN_THREADS).map(|_| scope.spawn(worker)).collect();
        handles
            .into_iter()
            .try_for_each(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let (mut replicas, mut bytes) = std::mem::take(&mut *held(&found));
    for (id, gs, _) in scan_dir(&pool.rbw)?.blocks {
        replicas.push(validated(&ReplicaFiles::in_dir(&pool.rbw, id, gs), id, gs));
    }
    // They may have been cut.
    bytes += scan_dir(&pool.rbw)?.bytes;
    volume.set_used(bytes);
    Ok(replicas)
}

/// Brings the saved copies of replicas that were in memory among the finalized ones: memory may have been lost. A
/// copy that a stop has left half moved is moved on.
///
/// Source: Hadoop 3.5.0 `BlockPoolSlice#moveLazyPersistReplicasToFinalized`.
fn take_saved(pool: &PoolDirs) -> Result<()> {
    if !pool.saved.is_dir() {
        return Ok(());
    }
    let mut taken = 0;
    for dir in leaf_dirs(&pool.saved)? {
        let mut files = Vec::new();
        for entry in fs::read_dir(&dir).at(&dir)? {
            let name = entry.at(&dir)?.file_name().to_string_lossy().into_owned();
            match parse_name(&name) {
                FileName::Meta(id, _) => files.push((0, id, name)),
                FileName::Block(id) => files.push((1, id, name)),
                FileName::Other => {}
            }
        }
        // A block file never stands without its CRCs.
        files.sort_unstable();
        for (_, id, name) in files {
            let (from, to) = (dir.join(&name), pool.finalized_dir(id));
            let block = layout::block_name(id);
            if !dir.join(&block).exists() && !to.join(&block).exists() {
                continue;
            }
            fs::create_dir_all(&to).at(&to)?;
            fs::rename(&from, to.join(&name)).at(&from)?;
            // It may be new, and the folder above it.
            for dir in to.ancestors().take(3) {
                sys::sync_dir(dir)?;
            }
            taken += usize::from(name == block);
        }
    }
    tracing::info!(replicas = taken, dir = %pool.saved.display(), "took saved replicas over");
    Ok(())
}

/// Lets block files follow their CRCs where a stop came between the two renames that finalize a replica or open it
/// again.
fn rejoin(pool: &PoolDirs) -> Result<()> {
    let (open, metas) = parts(&pool.rbw)?;
    for id in open.iter().filter(|id| !metas.contains_key(*id)) {
        follow(*id, &pool.rbw, &pool.finalized_dir(*id))?;
    }
    for id in metas.keys().filter(|id| !open.contains(*id)) {
        follow(*id, &pool.finalized_dir(*id), &pool.rbw)?;
    }
    Ok(())
}

/// Moves a block file without CRCs to those that are in `to`, if they are as many as its bytes need.
fn follow(id: BlockId, from: &Path, to: &Path) -> Result<()> {
    let ((blocks, metas), (blocks_there, metas_there)) = (parts(from)?, parts(to)?);
    let is_parted = blocks.contains(&id) && !metas.contains_key(&id) && !blocks_there.contains(&id);
    let Some(gs) = metas_there.get(&id).filter(|_| is_parted) else { return Ok(()) };
    let files = ReplicaFiles {
        data: ReplicaFiles::in_dir(from, id, *gs).data,
        ..ReplicaFiles::in_dir(to, id, *gs)
    };
    match files.fit() {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) => {
            tracing::warn!(block = %id, %error, "cannot compare a block file with CRCs that were moved");
            return Ok(());
        }
    }
    tracing::warn!(block = %id, to = %to.display(), "a block file follows its CRCs, which a stop had parted from it");
    let data = to.join(layout::block_name(id));
    fs::rename(&files.data, &data).at(&files.data)?;
    sys::sync_dir(to)
}

/// The block files in a folder, and the newest stamps of meta files; none if there is no folder.
fn parts(dir: &Path) -> Result<(HashSet<BlockId>, HashMap<BlockId, GenerationStamp>)> {
    let (mut blocks, mut stamps) = (HashSet::new(), HashMap::new());
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((blocks, stamps)),
        other => other.at(dir)?,
    };
    for entry in entries {
        match parse_name(&entry.at(dir)?.file_name().to_string_lossy()) {
            FileName::Block(id) => _ = blocks.insert(id),
            FileName::Meta(id, gs) => note_stamp(&mut stamps, id, gs),
            FileName::Other => {}
        }
    }
    Ok((blocks, stamps))
}

fn note_stamp(stamps: &mut HashMap<BlockId, GenerationStamp>, id: BlockId, gs: GenerationStamp) {
    let newest = stamps.entry(id).or_insert(gs);
    *newest = gs.max(*newest);
}

fn leaf_dirs(finalized: &Path) -> Result<Vec<PathBuf>> {
    let mut leaves = Vec::new();
    for first in sub_dirs(finalized)? {
        leaves.extend(sub_dirs(&first)?);
    }
    Ok(leaves)
}

fn sub_dirs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(dir).at(dir)? {
        let entry = entry.at(dir)?;
        if entry.file_name().to_string_lossy().starts_with("subdir") {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}

/// Blocks with stamp (0 without a meta file, as Hadoop) and length, and what else is there.
fn scan_dir(dir: &Path) -> Result<Folder> {
    let mut found = Vec::new();
    let mut metas: HashMap<BlockId, (GenerationStamp, u64)> = HashMap::new();
    for entry in fs::read_dir(dir).at(dir)? {
        let entry = entry.at(dir)?;
        let len = match entry.metadata() {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).at(&entry.path()),
        };
        match parse_name(&entry.file_name().to_string_lossy()) {
            FileName::Block(id) => found.push((id, len)),
            FileName::Meta(id, gs) => {
                let (newest, bytes) = metas.entry(id).or_insert((gs, 0));
                (*newest, *bytes) = (gs.max(*newest), *bytes + len);
            }
            FileName::Other => {}
        }
    }
    let (mut blocks, mut bytes) = (Vec::new(), 0);
    for (id, len) in found {
        let (gs, meta_len) = metas.remove(&id).unwrap_or((GenerationStamp(0), 0));
        blocks.push((id, gs, len));
        bytes += len + meta_len;
    }
    let lone_metas = metas.into_iter().map(|(id, (gs, _))| (id, gs)).collect();
    Ok(Folder { blocks, lone_metas, bytes })
}

/// A replica that was being written, with the bytes that its CRCs vouch for. A disk that does not answer says nothing
/// of them.
pub(crate) fn validated(files: &ReplicaFiles, id: BlockId, gs: GenerationStamp) -> Replica {
    let len = validated_len(files).or_else(|error| {
        tracing::warn!(block = %id, %error, "cannot validate a replica that was being written");
        match error {
            DataNodeError::Disk { .. } => Err(error),
            _ => Ok(0),
        }
    });
    len.map_or_else(|_| Replica::unread(id, gs), |len| Replica::new(id, gs, ReplicaState::Rwr, len))
}

/// Bytes to a CRC of a replica that has none: `dfs.bytes-per-checksum` as Hadoop has it.
const EMPTY_CHUNK_LEN: u32 = 512;

/// Bytes of a replica that its CRCs cover, the last chunk being checked; cuts the file to them.
fn validated_len(files: &ReplicaFiles) -> Result<u64> {
    let data = File::options().read(true).write(true).open(&files.data).at(&files.data)?;
    let meta = match File::options().read(true).write(true).open(&files.meta) {
        // Without its CRCs nothing is sure; the bytes stay, for whoever finds them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other.at(&files.meta)?,
    };
    let len = data.metadata().at(&files.data)?.len();
    let meta_len = meta.metadata().at(&files.meta)?.len();
    if meta_len < meta_file::HEADER_LEN as u64 {
        // The power has taken it: no byte has a CRC, and a recovery may want the replica without any.
        let header = MetaHeader::new(ChecksumKind::Crc32c.id().into(), EMPTY_CHUNK_LEN)?.encode();
        meta.write_all_at(&header, 0).at(&files.meta)?;
        return cut(&data, files, 0);
    }
    let mut head = [0; meta_file::HEADER_LEN];
    meta.read_exact_at(&mut head, 0).at(&files.meta)?;
    let header = files.header(&head)?;
    let Some(kind) =
        ChecksumKind::from_id(header.checksum as u8).filter(|kind| *kind != ChecksumKind::Null)
    else {
        return Ok(len);
    };
    let chunk = u64::from(header.bytes_per_checksum);
    let crcs = (meta_len - head.len() as u64) / kind.len() as u64;
    let Some(last) = len.div_ceil(chunk).min(crcs).checked_sub(1) else {
        return cut(&data, files, 0);
    };
    let start = last * chunk;
    let mut bytes = vec![0; chunk.min(len - start) as usize];
    data.read_exact_at(&mut bytes, start).at(&files.data)?;
    let mut stored = [0; 4];
    meta.read_exact_at(&mut stored, head.len() as u64 + last * kind.len() as u64).at(&files.meta)?;
    let len = start + covered(kind, &bytes, u32::from_be_bytes(stored)) as u64;
    let meta_end = head.len() as u64 + len.div_ceil(chunk) * kind.len() as u64;
    if meta_len > meta_end {
        meta.set_len(meta_end).at(&files.meta)?;
    }
    cut(&data, files, len)
}

/// How many bytes at the start of a chunk its CRC covers, at most. A writer that was killed between the bytes
/// and their CRC leaves more; what the CRC covers may have been acknowledged, so unlike Hadoop all of it is kept.
pub(crate) fn covered(kind: ChecksumKind, bytes: &[u8], crc: u32) -> usize {
    if kind.update(0, bytes) == crc {
        return bytes.len();
    }
    let (mut now, mut covered) = (0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        now = kind.update(now, &[*byte]);
        if now == crc {
            covered = at + 1;
        }
    }
    covered
}

fn cut(data: &File, files: &ReplicaFiles, len: u64) -> Result<u64> {
    // Also where it has that length: the writer may have set room aside behind it.
    data.set_len(len).at(&files.data)?;
    Ok(len)
}
