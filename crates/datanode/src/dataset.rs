//! The replicas of this DataNode: the map from block to replica and volume, and what is done with them.
//!
//! Asks the replica core what an operation may do, then does it to the files. Knows no sockets.
//! Invariants: at most one [`ReplicaWriter`] per replica; state and file names change together, by whoever has the
//! block's turn (`dataset/turns.rs`); nobody waits for a disk with the map's lock in hand.
//!
//! Operations of writers are in `dataset/write.rs`, of recovery in `dataset/recover.rs`, of scanners in
//! `dataset/inspect.rs`, reads past the page cache in `dataset/from_disk.rs`, deletions in `dataset/delete.rs`, volumes that come and go in `dataset/volumes.rs`, replicas in
//! memory in `dataset/ram.rs`, the open files of a replica in `dataset/{reader,writer}.rs`, those that stay open in
//! `dataset/kept.rs`, what becomes of closed ones in `dataset/files.rs`. Tested in `tests/it`.

mod block;
mod delete;
mod files;
mod from_disk;
mod given;
mod inspect;
mod kept;
mod kept_files;
mod memory;
mod ram;
mod read_view;
mod reader;
mod recover;
mod relocate;
mod slot;
mod turns;
mod volume_list;
mod volumes;
mod write;
mod writer;

pub(crate) use block::Block;
pub(crate) use cairn_replica::Checksum;
pub(crate) use delete::Deletion;
pub(crate) use from_disk::DiskReader;
pub(crate) use given::Given;
pub use memory::RamDiskStats;
pub(crate) use read_view::ReadView;
pub(crate) use relocate::Relocation;
pub(crate) use volumes::Removed;
pub(crate) use write::{StorageWish, WriteKind};
pub(crate) use writer::{AckNotes, Finalized, ReplicaWriter, blocking};

use crate::config::{DataNodeConfig, Durability};
use crate::error::{DataNodeError, Result};
use crate::memory::LockedMemory;
use crate::page_cache::PageCache;
use crate::slow_io::SlowIo;
use crate::sys;
use crate::volume::latency::Sampling;
use crate::volume::layout::{self, NodeVersion, PoolVersion};
use crate::volume::{ReplicaFiles, Volume, scan};
use cairn_process::descriptors;
use cairn_process::held::held;
use cairn_replica::report::ReportedReplica;
use cairn_replica::{Absent, Replica, ReplicaError};
use cairn_stripe::{BlockId, StorageType};
use slot::WriterSlot;
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use turns::{Turn, Turns};
use volume_list::Volumes;

/// A replica with its place and its writer.
#[derive(Debug)]
struct Entry {
    replica: Replica,
    volume: Home,
    /// CRC of the last chunk while that chunk may still grow.
    last_crc: Option<u32>,
    writer: Option<Arc<WriterSlot>>,
    /// Its memory, if its volume is a RAM_DISK.
    ram: Option<memory::Hold>,
    /// Files that an earlier read has left open.
    kept: Option<kept_files::Kept>,
}

impl Entry {
    /// A replica that nobody writes.
    fn at_rest(replica: Replica, volume: Arc<Volume>, ram: Option<memory::Hold>) -> Entry {
        let volume = Home::on(volume);
        Entry { replica, volume, last_crc: None, writer: None, ram, kept: None }
    }

    fn is_on(&self, volume: &Volume) -> bool {
        self.volume.storage_id() == volume.storage_id()
    }
}

/// The volume of a replica, which counts it for as long as it is there.
#[derive(Debug)]
struct Home(Arc<Volume>);

impl Home {
    fn on(volume: Arc<Volume>) -> Home {
        volume.add_replica();
        Home(volume)
    }
}

impl Deref for Home {
    type Target = Arc<Volume>;

    fn deref(&self) -> &Arc<Volume> {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.0.remove_replica();
    }
}

/// How long a DataNode that ends waits for changes of files that are under way.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(10);

/// A replica and where it is, at one moment.
#[derive(Clone, Debug)]
struct Placed {
    replica: Replica,
    volume: Arc<Volume>,
}

impl Placed {
    fn of(entry: &Entry) -> Placed {
        Placed { replica: entry.replica.clone(), volume: entry.volume.clone() }
    }

    fn files(&self) -> Result<ReplicaFiles> {
        self.volume.files(self.replica.id(), self.replica.gs(), self.replica.place())
    }

    fn is_on(&self, volume: &Volume) -> bool {
        self.volume.storage_id() == volume.storage_id()
    }
}

/// The replicas of this DataNode.
#[derive(Debug)]
pub(crate) struct Dataset {
    volumes: Volumes,
    /// Which work on disks is measured.
    sampling: Arc<Sampling>,
    uuid: String,
    durability: Durability,
    block_len_estimate: u64,
    writer_stop_timeout: Duration,
    /// How many volumes may be lost in all; `None`: all but one.
    failed_volumes_tolerated: Option<usize>,
    pool_id: OnceLock<String>,
    closed: AtomicBool,
    /// Why there is no use in going on: too few volumes are left, or nobody wants what is here.
    gave_up: watch::Sender<Option<String>>,
    map: Mutex<HashMap<BlockId, Entry>>,
    /// Taken before the map is locked.
    turns: Turns,
    /// Replicas that are forgotten, and whose files are being deleted. Locked after the map.
    deleting: Mutex<HashSet<BlockId>>,
    /// Blocks that a recovery was told are not here. Locked after the map.
    absent: Mutex<Absent>,
    /// The blocks of which somebody makes a copy on another volume.
    copying: Turns,
    /// How often the NameNode was asked for a registration.
    registrations: AtomicU64,
    ram: memory::Ram,
    page_cache: PageCache,
    /// Bytes of a growing replica that are allocated at once.
    preallocation: u64,
    slow_io: SlowIo,
    kept_files: kept_files::KeptFiles,
}

impl Dataset {
    /// Opens the volumes; bad ones are left out as far as the configuration tolerates. A block pool that was
    /// here before is opened at once, so that readers are served before the NameNode answers.
    pub(crate) fn open(config: &DataNodeConfig) -> Result<Dataset> {
        let configured = config.data_dirs.len();
        if let Some(tolerated) =
            config.failed_volumes_tolerated.filter(|most| *most > 0 && *most >= configured)
        {
            return Err(DataNodeError::peer(format!(
                "dfs.datanode.failed.volumes.tolerated is {tolerated}, and there are {configured} volumes: fewer than all \
                 may fail (-1: all but one)"
            )));
        }
        let sampling = Arc::new(Sampling::new(config.disk_sampling_percentage));
        let (mut volumes, mut known) = (Vec::new(), Vec::new());
        let (mut failures, mut unusable) = (Vec::new(), HashSet::new());
        for dir in &config.data_dirs {
            match Volume::open(dir, config.reserved_bytes, config.data_dir_mode) {
                Ok((volume, version)) => {
                    known.extend(version);
                    volumes.push(Arc::new(volume.sampled_by(&sampling)));
                }
                Err(error) => {
                    tracing::error!(dir = %dir.path.display(), %error, "volume is not usable");
                    failures.push(error);
                    unusable.insert(dir.path.clone());
                }
            }
        }
        let tolerated = config.failed_volumes_tolerated.unwrap_or(usize::MAX);
        if volumes.is_empty() || failures.len() > tolerated {
            return Err(failures
                .pop()
                .unwrap_or_else(|| DataNodeError::peer("no volume is configured")));
        }
        let uuid = match known.first() {
            Some(version) => version.datanode_uuid.clone(),
            None => layout::random_uuid()?,
        };
        let dataset = Dataset {
            volumes: Volumes::new(volumes, unusable),
            sampling,
            uuid,
            durability: config.durability,
            block_len_estimate: config.block_len_estimate,
            writer_stop_timeout: config.writer_stop_timeout,
            failed_volumes_tolerated: config.failed_volumes_tolerated,
            pool_id: OnceLock::new(),
            closed: AtomicBool::new(false),
            gave_up: watch::channel(None).0,
            map: Mutex::default(),
            turns: Turns::default(),
            deleting: Mutex::default(),
            absent: Mutex::default(),
            copying: Turns::default(),
            registrations: AtomicU64::new(0),
            ram: memory::Ram::new(LockedMemory::new(config.max_locked_memory, sys::page_len())),
            page_cache: PageCache::new(config),
            preallocation: config.preallocation_bytes,
            slow_io: SlowIo::new(config.slow_io_threshold),
            kept_files: kept_files::KeptFiles::new(
                config.kept_replicas.min(descriptors::limit() / 8),
            ),
        };
        if let (Some(version), Some(pool)) = (known.first(), dataset.known_pool()) {
            dataset.open_pool(&version.cluster_id, &pool)?;
        }
        Ok(dataset)
    }

    /// The DataNode's UUID, the same on all volumes.
    pub(crate) fn uuid(&self) -> &str {
        &self.uuid
    }

    /// What has taken long when replicas were written.
    pub(crate) fn slow_io(&self) -> &SlowIo {
        &self.slow_io
    }

    /// The block pool, once it is known.
    pub(crate) fn pool_id(&self) -> Option<&str> {
        self.pool_id.get().map(String::as_str)
    }

    /// The identity of the block pool on disk, if there is exactly one.
    fn known_pool(&self) -> Option<PoolVersion> {
        let mut pools = Vec::new();
        for volume in self.volumes().iter() {
            // What is wrong with a volume shows when its pool is opened.
            pools.extend(PoolVersion::list(volume.root()).unwrap_or_default());
        }
        pools.dedup_by(|a, b| a.block_pool_id == b.block_pool_id);
        if pools.len() == 1 { pools.pop() } else { None }
    }

    /// Opens the block pool of a NameNode on every volume and finds the replicas; volumes where that fails are
    /// left out as far as the configuration tolerates. Does nothing if it is open; fails if another one is.
    pub(crate) fn open_pool(&self, cluster_id: &str, pool: &PoolVersion) -> Result<()> {
        if let Some(open) = self.pool_id() {
            return self.check_same_pool(open, cluster_id, pool);
        }
        let node = NodeVersion {
            storage_id: String::new(),
            cluster_id: cluster_id.into(),
            datanode_uuid: self.uuid.clone(),
        };
        // A try that failed may have left some: nothing is served before all is well.
        self.lock().clear();
        let (volumes, mut failures) = (self.volumes(), Vec::new());
        for volume in volumes.iter() {
            match volume.open_pool(&node, pool).and_then(|()| scan::scan(volume, self.is_stable()))
            {
                Ok(replicas) => self.take_in(volume, replicas),
                Err(error) => {
                    tracing::error!(dir = %volume.root().display(), %error, "volume is not usable");
                    failures.push((volume, error));
                }
            }
        }
        let lost = self.volumes.unusable_count() + failures.len();
        let tolerated = self.failed_volumes_tolerated.unwrap_or(usize::MAX);
        let is_too_much = lost > tolerated || failures.len() == volumes.len();
        if is_too_much && let Some((_, error)) = failures.pop() {
            return Err(error);
        }
        failures.iter().for_each(|(volume, _)| _ = self.mark_failed(volume));
        // Nobody else sets it: the DataNode opens one pool, from one task.
        let _ = self.pool_id.set(pool.block_pool_id.clone());
        Ok(())
    }

    fn check_same_pool(&self, open: &str, cluster_id: &str, pool: &PoolVersion) -> Result<()> {
        if open != pool.block_pool_id {
            let ours =
                format!("this DataNode serves {open}, the NameNode has {}", pool.block_pool_id);
            return Err(DataNodeError::peer(ours));
        }
        let volumes = self.volumes();
        let healthy = volumes.iter().find(|volume| !volume.is_failed());
        let found = healthy.map_or(Ok(None), |volume| NodeVersion::read(volume.root()))?;
        match found {
            Some(version) if version.cluster_id != cluster_id => Err(DataNodeError::peer(format!(
                "Incompatible clusterIDs: namenode clusterID = {cluster_id}; datanode clusterID = {}",
                version.cluster_id
            ))),
            _ => Ok(()),
        }
    }

    fn take_in(&self, volume: &Arc<Volume>, replicas: Vec<Replica>) {
        tracing::info!(dir = %volume.root().display(), replicas = replicas.len(), "volume is open");
        let others: Vec<Entry> = {
            let mut map = self.lock();
            let keep = |replica| self.keep_better(&mut map, replica, volume);
            replicas.into_iter().filter_map(keep).collect()
        };
        others.iter().for_each(|other| self.drop_spare(other));
    }

    /// Of two replicas of a block, found on two volumes, the newer and longer one counts, and of two like ones that
    /// on a disk. Returns the other one.
    ///
    /// Source: Hadoop 3.5.0 `BlockPoolSlice#selectReplicaToDelete`.
    fn keep_better(
        &self,
        map: &mut HashMap<BlockId, Entry>,
        replica: Replica,
        volume: &Arc<Volume>,
    ) -> Option<Entry> {
        let rank = |r: &Replica, volume: &Volume| {
            (r.gs(), r.on_disk_len(), std::cmp::Reverse(r.state()), !volume.is_ram())
        };
        let (id, ram) = (replica.id(), self.ram.found(&replica, volume));
        let new = Entry::at_rest(replica, volume.clone(), ram);
        let known = map.get(&id);
        let is_known =
            known.is_some_and(|old| rank(&old.replica, &old.volume) >= rank(&new.replica, volume));
        if is_known { Some(new) } else { map.insert(id, new) }
    }

    /// Forgets all replicas, so that work that outlives the DataNode changes no file any more, and takes the
    /// folders' locks away. Blocking, while a file is changed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.lock().clear();
        self.turns.wait_for_all(CHANGES_TIMEOUT);
        self.volumes().iter().for_each(|volume| volume.unlock());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BlockId, Entry>> {
        held(&self.map)
    }

    fn absent(&self) -> MutexGuard<'_, Absent> {
        held(&self.absent)
    }

    fn deleting(&self) -> MutexGuard<'_, HashSet<BlockId>> {
        held(&self.deleting)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Fails once nothing is to come any more.
    fn check_open(&self) -> Result<()> {
        match self.is_closed() {
            false => Ok(()),
            true => Err(DataNodeError::peer("the DataNode has stopped")),
        }
    }

    /// Fails unless `pool` is the one served here.
    pub(crate) fn check_pool(&self, pool: &str) -> Result<()> {
        match self.pool_id() {
            Some(open) if open == pool && !self.is_closed() => Ok(()),
            _ => Err(DataNodeError::UnknownPool(pool.into())),
        }
    }

    /// What the page cache is asked for.
    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// Whether what is acknowledged must survive a power cut.
    fn is_stable(&self) -> bool {
        self.durability == Durability::Stable
    }

    /// A replica and where it is.
    fn placed(&self, id: BlockId) -> Option<Placed> {
        self.lock().get(&id).map(Placed::of)
    }

    /// What is known of a replica.
    pub(crate) fn get(&self, id: BlockId) -> Option<Replica> {
        self.lock().get(&id).map(|entry| entry.replica.clone())
    }

    /// Bytes of a replica that a reader may see.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#getReplicaVisibleLength`.
    pub(crate) fn visible_len(&self, block: &Block) -> Result<u64> {
        self.check_pool(&block.pool)?;
        let map = self.lock();
        let entry = map.get(&block.id).ok_or_else(|| not_found(block))?;
        Ok(entry.replica.check_readable(block.gs)?)
    }

    /// Orders that are given from now on belong to a new registration; what is left of older ones is void.
    pub(crate) fn begin_registration(&self) {
        self.registrations.fetch_add(1, Ordering::SeqCst);
    }

    /// What orders are known by that are given now.
    pub(crate) fn given(&self) -> Given {
        Given { registration: self.registrations.load(Ordering::SeqCst), since: Instant::now() }
    }

    /// Asks every writer to stop.
    pub(crate) fn stop_all_writers(&self) {
        self.lock().values().filter_map(|entry| entry.writer.as_ref()).for_each(|slot| slot.stop());
    }

    /// All replicas but temporary ones, by storage, for a block report.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#getBlockReports`.
    pub(crate) fn report(&self) -> Vec<(Arc<Volume>, Vec<ReportedReplica>)> {
        let mut by_storage: HashMap<&str, Vec<ReportedReplica>> = HashMap::new();
        let map = self.lock();
        for entry in map.values() {
            if let Some(told) = entry.replica.report() {
                by_storage.entry(entry.volume.storage_id()).or_default().push(told);
            }
        }
        let volumes = self.volumes();
        let healthy = volumes.iter().filter(|volume| !volume.is_failed());
        healthy
            .map(|v| (v.clone(), by_storage.remove(v.storage_id()).unwrap_or_default()))
            .collect()
    }

    /// Lets [`Dataset::given_up`] complete.
    pub(crate) fn give_up(&self, why: String) {
        self.gave_up.send_replace(Some(why));
    }

    /// Why the replicas are not served any more, if so.
    pub(crate) fn why_given_up(&self) -> Option<String> {
        self.gave_up.borrow().clone()
    }

    /// Completes when there is no use in going on, and says why.
    pub(crate) async fn given_up(&self) -> String {
        let mut gave_up = self.gave_up.subscribe();
        let why = gave_up.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        // The sender lives as long as `self`.
        why.unwrap_or_default()
    }

    /// Runs syncs of a replica's files. If one fails, what was written may be lost although the next sync succeeds
    /// (the system tells of it once): the replica is set aside for good, and its volume is out of use unless it is full.
    /// The caller has no turn.
    fn sync_or_condemn(
        &self,
        id: BlockId,
        volume: &Volume,
        syncs: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        match syncs() {
            Err(error) => {
                if let DataNodeError::Unsynced { source, .. } = &error {
                    self.condemn(id, volume);
                    if !sys::is_full(source) {
                        self.fail_volume(volume, &error);
                    }
                }
                Err(error)
            }
            // Another replica's sync may have failed the volume meanwhile.
            Ok(()) => volume.check_not_failed(),
        }
    }
}

/// The refusal of a replica that is not here.
pub(crate) fn not_found(block: &Block) -> DataNodeError {
    ReplicaError::NotFound { block: block.id, gs: block.gs, reason: "Replica not found for" }.into()
}
