//! One volume: a folder in Hadoop's layout, its identity, its lock and its room.
//!
//! Knows files and bytes, not what a replica may do. Space counts here are estimates that only steer
//! placement and reports. Layout: `docs/on-disk.md`. Tested in `volume/tests.rs`.

pub(crate) mod check;
mod health;
pub(crate) mod latency;
pub(crate) mod layout;
pub(crate) mod room_ahead;
pub(crate) mod scan;
#[cfg(test)]
mod tests;

use crate::config::DataDir;
use crate::error::{Context, DataNodeError, Result};
use crate::sys::{self, DiskSpace};
use cairn_codec::crc::ChecksumKind;
use cairn_net::durations::Durations;
use cairn_process::held::held;
use cairn_process::storage_dir;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp, StorageType};
use cairn_wire::meta_file::{self, MetaHeader};
use health::Health;
use latency::{DiskWork, Latencies, Sampling};
use layout::{NodeVersion, PoolDirs, PoolVersion};
use room_ahead::RoomAhead;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// The paths of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaFiles {
    pub(crate) data: PathBuf,
    pub(crate) meta: PathBuf,
}

impl ReplicaFiles {
    /// The files of `block` in `dir`.
    pub(crate) fn in_dir(dir: &Path, block: BlockId, gs: GenerationStamp) -> ReplicaFiles {
        ReplicaFiles {
            data: dir.join(layout::block_name(block)),
            meta: dir.join(layout::meta_name(block, gs)),
        }
    }

    /// Bytes of both; what is not there has none.
    pub(crate) fn size(&self) -> u64 {
        [&self.data, &self.meta].iter().map(|path| fs::metadata(path).map_or(0, |m| m.len())).sum()
    }

    /// What the first bytes of the meta file say. A header that cannot be is not as it was written.
    pub(crate) fn header(&self, head: &[u8]) -> Result<MetaHeader> {
        MetaHeader::decode(head)
            .map_err(|error| DataNodeError::Checksum(format!("{}: {error}", self.meta.display())))
    }

    /// Whether the block file has as many bytes as there are CRCs for.
    pub(crate) fn fit(&self) -> Result<bool> {
        let len = fs::metadata(&self.data).at(&self.data)?.len();
        let mut meta = File::open(&self.meta).at(&self.meta)?;
        let mut head = [0; meta_file::HEADER_LEN];
        match meta.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read.at(&self.meta)?,
        }
        let Ok(header) = self.header(&head) else { return Ok(false) };
        let Some(kind) = ChecksumKind::from_id(header.checksum as u8) else { return Ok(false) };
        let crcs = len.div_ceil(u64::from(header.bytes_per_checksum)) * kind.len() as u64;
        Ok(meta.metadata().at(&self.meta)?.len() == meta_file::HEADER_LEN as u64 + crcs)
    }

    /// Renames both so that no start takes them for a replica. The bytes stay, for whoever can use them.
    pub(crate) fn set_aside(&self) -> Result<()> {
        for path in [&self.data, &self.meta] {
            let mut aside = path.clone().into_os_string();
            aside.push(layout::UNSYNCED);
            match fs::rename(path, aside) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).at(path),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Room on a volume, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) capacity: u64,
    pub(crate) used: u64,
    pub(crate) remaining: u64,
    pub(crate) non_dfs_used: u64,
}

impl Usage {
    /// Room on a volume of a disk, of which `reserved` bytes are left to others and at most `most` may be used,
    /// when replicas have `used` bytes and `promised` ones are to come.
    ///
    /// Source: Hadoop 3.5.0 `FsVolumeImpl#getCapacity`, `#getAvailable`, `#getNonDfsUsed`.
    fn of(disk: DiskSpace, (reserved, most): (u64, u64), used: u64, promised: u64) -> Usage {
        let capacity = disk.total.saturating_sub(reserved).min(most);
        let of_others = disk.total.saturating_sub(disk.free).saturating_sub(used);
        let still_reserved = reserved.saturating_sub(of_others);
        let remaining = capacity
            .saturating_sub(used)
            .min(disk.available.saturating_sub(still_reserved))
            .saturating_sub(promised);
        Usage { capacity, used, remaining, non_dfs_used: of_others.saturating_sub(reserved) }
    }
}

/// A folder that holds replicas.
#[derive(Debug)]
pub(crate) struct Volume {
    root: PathBuf,
    storage_id: String,
    storage_type: StorageType,
    reserved: u64,
    most: u64,
    /// Held while the volume is in use; emptied at the end, when late tasks may still hold the volume.
    lock: Mutex<Option<File>>,
    pool: OnceLock<PoolDirs>,
    used: AtomicU64,
    promised: AtomicU64,
    /// Replicas here that are known, also those being written.
    replicas: AtomicU64,
    failed: AtomicBool,
    /// What the disk has last said of its room.
    space: Mutex<Option<DiskSpace>>,
    health: Health,
    latencies: Latencies,
    /// Files are best given room in advance, see [`room_ahead`].
    maps_each_page: bool,
    /// The disk is slow, and new replicas keep off it.
    avoided: AtomicBool,
    /// Folders of replicas whose names were made durable since it was opened.
    durable_dirs: Mutex<HashSet<PathBuf>>,
}

impl Volume {
    /// Locks and reads the volume in `dir`, or prepares an empty folder to become one, and gives it the permission bits
    /// of `mode`. Also returns the identity it was formatted with, if it was.
    pub(crate) fn open(
        dir: &DataDir,
        reserved: u64,
        mode: u32,
    ) -> Result<(Volume, Option<NodeVersion>)> {
        let root = dir.path.clone();
        storage_dir::create(&root).at(&root)?;
        let lock = storage_dir::try_lock(&root).at(&root)?;
        let lock = lock.ok_or_else(|| DataNodeError::Storage {
            dir: root.clone(),
            why: "Cannot lock storage. The directory is already locked".into(),
        })?;
        let version = NodeVersion::read(&root)?;
        storage_dir::protect(&root, mode, version.is_some());
        let storage_id = match &version {
            Some(version) => version.storage_id.clone(),
            None => format!("DS-{}", layout::random_uuid()?),
        };
        let maps_each_page = sys::is_ext4(&root);
        let volume = Volume {
            root,
            storage_id,
            storage_type: dir.storage_type,
            reserved,
            most: dir.capacity.unwrap_or(u64::MAX),
            lock: Mutex::new(Some(lock)),
            pool: OnceLock::new(),
            used: AtomicU64::new(0),
            promised: AtomicU64::new(0),
            replicas: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            space: Mutex::default(),
            health: Health::default(),
            latencies: Latencies::default(),
            maps_each_page,
            avoided: AtomicBool::new(false),
            durable_dirs: Mutex::default(),
        };
        Ok((volume, version))
    }

    /// Has work on the disk measured as `sampling` says.
    pub(crate) fn sampled_by(mut self, sampling: &Arc<Sampling>) -> Volume {
        self.latencies.sampling = sampling.clone();
        self
    }

    /// Does work on the disk, and measures it.
    pub(crate) fn timed<T>(&self, kind: DiskWork, work: impl FnOnce() -> T) -> T {
        self.latencies.time(kind, work)
    }

    /// How long work of a kind has taken since the start.
    pub(crate) fn durations(&self, kind: DiskWork) -> Durations {
        self.latencies.durations(kind)
    }

    /// Milliseconds that work of a kind takes on average, if anything was measured lately.
    pub(crate) fn mean_latency(&self, kind: DiskWork) -> Option<f64> {
        self.latencies.mean(kind)
    }

    /// How much work of a kind was measured lately.
    pub(crate) fn latency_samples(&self, kind: DiskWork) -> u64 {
        self.latencies.samples(kind)
    }

    /// Makes the bytes of a file of the volume durable, see [`sys::sync`].
    pub(crate) fn sync(&self, file: &File, path: &Path) -> Result<()> {
        self.timed(DiskWork::Sync, || self.syncing(|| sys::sync(file, path)))
    }

    /// Makes the names in a folder of the volume durable.
    pub(crate) fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.timed(DiskWork::Sync, || self.syncing(|| sys::sync_dir(dir)))
    }

    /// Makes the folder `dir` of finalized replicas; if `is_stable`, its name and that of the folder above it are durable
    /// then. That it is there does not say so: whoever made it may be about to sync them, or was stopped before.
    pub(crate) fn make_leaf_dir(&self, dir: &Path, is_stable: bool) -> Result<()> {
        if !dir.is_dir() {
            self.timed(DiskWork::Metadata, || fs::create_dir_all(dir)).at(dir)?;
        } else if !is_stable || self.durable_dirs().contains(dir) {
            return Ok(());
        }
        if is_stable {
            for parent in dir.ancestors().skip(1).take(2) {
                self.sync_dir(parent)?;
            }
            self.durable_dirs().insert(dir.to_path_buf());
        }
        Ok(())
    }

    fn durable_dirs(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        held(&self.durable_dirs)
    }

    /// What a new replica gets of room ahead, `step` bytes at once if that is of use here.
    pub(crate) fn room_ahead(&self, step: u64) -> RoomAhead {
        RoomAhead::new(if self.maps_each_page { step } else { 0 })
    }

    /// Gives a file of the volume another name.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.timed(DiskWork::Metadata, || fs::rename(from, to)).at(from)
    }

    /// Keeps new replicas off it, or does not any more.
    pub(crate) fn avoid(&self, avoid: bool) {
        self.avoided.store(avoid, Ordering::Relaxed);
    }

    /// Whether new replicas keep off it where another one can take them: it is slow, many wait for it, or what is to be
    /// durable on it does not become so.
    pub(crate) fn is_avoided(&self) -> bool {
        self.avoided.load(Ordering::Relaxed) || self.is_busy() || self.syncs_stand_still()
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// `DS-` and a UUID.
    pub(crate) fn storage_id(&self) -> &str {
        &self.storage_id
    }

    /// The medium.
    pub(crate) fn storage_type(&self) -> StorageType {
        self.storage_type
    }

    /// Whether what it holds is lost with the power.
    ///
    /// Source: Hadoop 3.5.0 `FsVolumeSpi#isTransientStorage`.
    pub(crate) fn is_ram(&self) -> bool {
        self.storage_type == StorageType::RamDisk
    }

    /// Bytes left to others.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes set aside for replicas that are being written.
    pub(crate) fn promised(&self) -> u64 {
        self.promised.load(Ordering::Relaxed)
    }

    /// Whether it has a folder for block pool `name`.
    pub(crate) fn has_pool(&self, name: &str) -> Result<bool> {
        let current = self.root.join(layout::CURRENT);
        for entry in fs::read_dir(&current).at(&current)? {
            if entry.at(&current)?.file_name().to_str() == Some(name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the identity of the volume and of its block pool where they are missing, makes the folders, and
    /// empties `tmp`. Fails if the volume belongs to another cluster or DataNode.
    pub(crate) fn open_pool(&self, node: &NodeVersion, pool: &PoolVersion) -> Result<()> {
        let mine = NodeVersion { storage_id: self.storage_id.clone(), ..node.clone() };
        match NodeVersion::read(&self.root)? {
            None => mine.write(&self.root)?,
            Some(found) if found == mine => {}
            Some(found) => {
                return Err(self.wrong(format!(
                    "Incompatible identity: volume has {found:?}, expected {mine:?}"
                )));
            }
        }
        let dirs = PoolDirs::new(&self.root, &pool.block_pool_id);
        match PoolVersion::read(&dirs.current)? {
            Some(found)
                if found.namespace_id != pool.namespace_id
                    || found.block_pool_id != pool.block_pool_id =>
            {
                return Err(self.wrong(format!(
                    "Incompatible namespace: volume has {found:?}, expected {pool:?}"
                )));
            }
            Some(_) => {}
            None => {
                fs::create_dir_all(&dirs.current).at(&dirs.current)?;
                pool.write(&dirs.current)?;
            }
        }
        if dirs.tmp.exists() {
            fs::remove_dir_all(&dirs.tmp).at(&dirs.tmp)?;
        }
        for dir in [&dirs.tmp, &dirs.rbw, &dirs.finalized] {
            fs::create_dir_all(dir).at(dir)?;
        }
        for dir in dirs.current.ancestors().take(3) {
            sys::sync_dir(dir)?;
        }
        // A second try finds what the first has set.
        let _ = self.pool.set(dirs);
        Ok(())
    }

    /// The folders of the block pool. Fails before it is open.
    pub(crate) fn pool(&self) -> Result<&PoolDirs> {
        self.pool.get().ok_or_else(|| self.wrong("its block pool is not open".into()))
    }

    /// The files of a replica in `state`.
    pub(crate) fn files(
        &self,
        id: BlockId,
        gs: GenerationStamp,
        state: ReplicaState,
    ) -> Result<ReplicaFiles> {
        let pool = self.pool()?;
        Ok(match state {
            ReplicaState::Finalized => ReplicaFiles::in_dir(&pool.finalized_dir(id), id, gs),
            ReplicaState::Temporary => ReplicaFiles::in_dir(&pool.tmp, id, gs),
            _ => ReplicaFiles::in_dir(&pool.rbw, id, gs),
        })
    }

    /// Bytes in use and left, asked of the file system now. Fails at once for a disk that does not answer.
    pub(crate) fn usage(&self) -> Result<Usage> {
        self.check_not_silent()?;
        // Nobody needs it that well.
        if let Some(last) = *self.space()
            && self.is_busy()
        {
            return Ok(self.usage_of(last));
        }
        let disk = self.health.ask(|| sys::disk_space(&self.root))?;
        *self.space() = Some(disk);
        Ok(self.usage_of(disk))
    }

    /// The same for who cannot wait: if the disk does not answer in `patience`, what it has last said.
    pub(crate) async fn usage_in(self: &Arc<Self>, patience: Duration) -> Result<Usage> {
        self.check_not_silent()?;
        let volume = self.clone();
        let asked = tokio::task::spawn_blocking(move || volume.usage());
        if let Ok(Ok(usage)) = tokio::time::timeout(patience, asked).await {
            return usage;
        }
        let last = *self.space();
        last.map(|disk| self.usage_of(disk)).ok_or_else(|| self.wrong("it does not answer".into()))
    }

    fn space(&self) -> MutexGuard<'_, Option<DiskSpace>> {
        held(&self.space)
    }

    fn usage_of(&self, disk: DiskSpace) -> Usage {
        let used = self.used.load(Ordering::Relaxed);
        let promised = self.promised.load(Ordering::Relaxed);
        Usage::of(disk, (self.reserved, self.most), used, promised)
    }

    /// Sets the bytes of all block and meta files.
    pub(crate) fn set_used(&self, bytes: u64) {
        self.used.store(bytes, Ordering::Relaxed);
    }

    /// Counts bytes written to block and meta files.
    pub(crate) fn add_used(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes deleted.
    pub(crate) fn sub_used(&self, bytes: u64) {
        saturating_sub(&self.used, bytes);
    }

    /// Sets room aside for a replica that is being written. Whoever does gives it back.
    pub(crate) fn promise(&self, bytes: u64) {
        self.promised.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives such room back.
    pub(crate) fn release(&self, bytes: u64) {
        saturating_sub(&self.promised, bytes);
    }

    /// Counts a replica that has come.
    pub(crate) fn add_replica(&self) {
        self.replicas.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that has gone.
    pub(crate) fn remove_replica(&self) {
        self.replicas.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many replicas are here, also those being written.
    pub(crate) fn replicas(&self) -> u64 {
        self.replicas.load(Ordering::Relaxed)
    }

    /// Whether an error has taken the volume out of use.
    pub(crate) fn is_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes the volume out of use; `false` if it was already.
    pub(crate) fn fail(&self) -> bool {
        !self.failed.swap(true, Ordering::Relaxed)
    }

    /// Fails if the volume is out of use.
    pub(crate) fn check_not_failed(&self) -> Result<()> {
        match self.is_failed() {
            true => Err(self.wrong("the volume has failed".into())),
            false => Ok(()),
        }
    }

    /// Lets another process or DataNode have the folder.
    pub(crate) fn unlock(&self) {
        held(&self.lock).take();
    }

    fn wrong(&self, why: String) -> DataNodeError {
        DataNodeError::Storage { dir: self.root.clone(), why }
    }
}

fn saturating_sub(counter: &AtomicU64, bytes: u64) {
    let subtract = |now: u64| Some(now.saturating_sub(bytes));
    // The closure always returns a value, so the update cannot fail.
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
}
