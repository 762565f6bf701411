//! The volumes of a DataNode: which there are, which one takes a replica, and what becomes of one that fails or leaves.

use super::{Dataset, StorageWish};
use crate::config::{DataDir, DataNodeConfig};
use crate::error::{DataNodeError, Result};
use crate::volume::latency::Sampling;
use crate::volume::layout::{NodeVersion, PoolVersion};
use crate::volume::{Volume, scan};
use cairn_process::disk_work::may_wait;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A volume that has left, and the replicas that went with it.
pub(crate) struct Removed {
    pub(crate) volume: Arc<Volume>,
    pub(crate) replicas: Vec<(BlockId, GenerationStamp)>,
}

impl Dataset {
    /// The volumes as they are now, also failed ones.
    pub(crate) fn volumes(&self) -> Arc<[Arc<Volume>]> {
        self.volumes.get()
    }

    /// Which work on disks is measured.
    pub(crate) fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Folders that could not be opened.
    pub(crate) fn unusable_dirs(&self) -> HashSet<PathBuf> {
        self.volumes.unusable().clone()
    }

    /// Folders of volumes that are lost: they could not be opened, or have failed since.
    pub(crate) fn failed_dirs(&self) -> Vec<PathBuf> {
        let volumes = self.volumes();
        let failed = volumes.iter().filter(|volume| volume.is_failed());
        let mut dirs: Vec<PathBuf> = failed.map(|volume| volume.root().into()).collect();
        dirs.extend(self.unusable_dirs());
        dirs.sort();
        dirs
    }

    /// How many volumes have failed since the start; also those that were replaced meanwhile.
    pub(crate) fn volume_failures(&self) -> u64 {
        self.volumes.failures.load(Ordering::Relaxed)
    }

    /// Takes a volume out of use that has failed; `false` if it was already.
    pub(super) fn mark_failed(&self, volume: &Volume) -> bool {
        let is_news = volume.fail();
        self.volumes.failures.fetch_add(is_news.into(), Ordering::Relaxed);
        is_news
    }

    /// Takes a volume into use, with the replicas that it has. If it was here and has failed, it takes the place of the
    /// failed one. Blocking.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#addVolume`.
    pub(crate) fn add_volume(&self, dir: &DataDir, config: &DataNodeConfig) -> Result<Arc<Volume>> {
        if let Some(failed) = self.volumes().iter().find(|volume| volume.root() == dir.path) {
            failed.unlock();
        }
        let (volume, _) = Volume::open(dir, config.reserved_bytes, config.data_dir_mode)?;
        let volume = Arc::new(volume.sampled_by(&self.sampling));
        let replicas = match self.identity()? {
            Some((node, pool)) => {
                volume.open_pool(&node, &pool)?;
                scan::scan(&volume, self.is_stable())?
            }
            // The pool is opened on all volumes at once.
            None => Vec::new(),
        };
        self.volumes.change(|volumes| {
            volumes.retain(|other| other.root() != volume.root());
            volumes.push(Arc::clone(&volume));
        });
        self.volumes.unusable().remove(volume.root());
        self.take_in(&volume, replicas);
        Ok(volume)
    }

    /// What a volume must say of itself to belong here, once the block pool is open.
    fn identity(&self) -> Result<Option<(NodeVersion, PoolVersion)>> {
        let Some(open) = self.pool_id() else { return Ok(None) };
        let volumes = self.volumes();
        let no_volume = || DataNodeError::peer("no volume is left to take the identity from");
        let healthy = volumes.iter().find(|v| !v.is_failed()).ok_or_else(no_volume)?;
        let node = NodeVersion::read(healthy.root())?.ok_or_else(no_volume)?;
        let mut pools = PoolVersion::list(healthy.root())?;
        pools.retain(|pool| pool.block_pool_id == open);
        Ok(Some((node, pools.pop().ok_or_else(no_volume)?)))
    }

    /// Takes the volume in `root` out of use, with its writers and replicas; the files stay. `None` if there is none.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#removeVolumes`.
    pub(crate) fn remove_volume(&self, root: &Path) -> Option<Removed> {
        self.volumes.unusable().remove(root);
        let volume = self.volumes().iter().find(|volume| volume.root() == root)?.clone();
        self.volumes.change(|volumes| volumes.retain(|other| !Arc::ptr_eq(other, &volume)));
        // For whoever has chosen it or looks at it.
        let replicas = if volume.fail() { self.forget_replicas(&volume) } else { Vec::new() };
        volume.unlock();
        Some(Removed { volume, replicas })
    }

    /// Stops the writers to a volume and forgets its replicas; returns those that can be read nowhere else here.
    fn forget_replicas(&self, volume: &Volume) -> Vec<(BlockId, GenerationStamp)> {
        if volume.is_ram() {
            may_wait(|| self.serve_all_saved(volume));
        }
        let mut forgotten = Vec::new();
        self.lock().retain(|id, entry| {
            let stays = self.survives(entry, volume);
            if !stays {
                forgotten.push((*id, entry.replica.gs()));
                if let Some(slot) = &entry.writer {
                    slot.stop();
                }
            }
            stays
        });
        forgotten
    }

    /// Takes a volume out of use after an I/O error, stops its writers and forgets its replicas. If too few volumes
    /// are left, [`Dataset::given_up`] completes.
    pub(crate) fn fail_volume(&self, volume: &Volume, why: &DataNodeError) {
        if self.mark_failed(volume) {
            tracing::error!(dir = %volume.root().display(), error = %why, "volume failed");
            self.forget_replicas(volume);
        }
        let volumes = self.volumes();
        let failed = volumes.iter().filter(|v| v.is_failed()).count();
        let unusable = self.volumes.unusable_count();
        let lost = unusable + failed;
        let tolerated = self.failed_volumes_tolerated;
        if tolerated.is_some_and(|most| lost > most) || failed == volumes.len() {
            let all = unusable + volumes.len();
            let most = tolerated.unwrap_or(all - 1);
            self.give_up(format!(
                "{lost} of {all} volumes have failed, {most} may \
                 (dfs.datanode.failed.volumes.tolerated); the last: {why}"
            ));
        }
    }

    /// A volume with room for `len` bytes: the wished storage if it has, else one of the wished type, else, if
    /// there is none and it may be, any; in turn.
    ///
    /// Source: Hadoop 3.5.0 `RoundRobinVolumeChoosingPolicy`, `FsVolumeList#getNextVolume`.
    pub(super) fn choose_volume(&self, wish: &StorageWish, len: u64) -> Result<Arc<Volume>> {
        let mut most = 0;
        let mut fits = |volume: &Arc<Volume>| {
            let room = volume.usage().map_or(0, |usage| usage.remaining);
            most = most.max(room);
            room >= len
        };
        // What goes to memory is chosen elsewhere.
        let volumes = self.volumes();
        let healthy: Vec<&Arc<Volume>> =
            volumes.iter().filter(|v| !v.is_failed() && !v.is_ram()).collect();
        let of_type: Vec<&Arc<Volume>> =
            healthy.iter().copied().filter(|v| v.storage_type() == wish.storage_type).collect();
        if let Some(volume) = of_type
            .iter()
            .find(|v| v.storage_id() == wish.storage_id && !v.is_avoided())
            .filter(|v| fits(v))
        {
            return Ok(Arc::clone(volume));
        }
        let mut candidates = match of_type.is_empty() && !wish.is_type_needed {
            true => healthy,
            false => of_type,
        };
        // Slow ones where nobody else has room. Deviation: Hadoop takes none of them.
        let avoided = candidates.extract_if(.., |volume| volume.is_avoided());
        let avoided: Vec<&Arc<Volume>> = avoided.collect();
        for _ in 0..candidates.len() {
            let turn = self.volumes.next.fetch_add(1, Ordering::Relaxed) % candidates.len();
            if fits(candidates[turn]) {
                return Ok(Arc::clone(candidates[turn]));
            }
        }
        if let Some(volume) = avoided.into_iter().find(|volume| fits(volume)) {
            return Ok(Arc::clone(volume));
        }
        Err(DataNodeError::NoSpace { most, needed: len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_stripe::StorageType;

    #[test]
    fn slow_volumes_get_replicas_only_where_no_other_can_take_them() {
        let dir = tempfile::tempdir().unwrap();
        let data_dirs = ["a", "b"].map(|name| dir.path().join(name).into()).to_vec();
        let config = DataNodeConfig {
            data_dirs,
            failed_volumes_tolerated: None,
            ..DataNodeConfig::default()
        };
        let dataset = Dataset::open(&config).unwrap();
        let volumes = dataset.volumes();
        let wish = StorageWish {
            storage_type: StorageType::Disk,
            storage_id: volumes[0].storage_id().to_string(),
            in_memory: false,
            is_type_needed: false,
        };
        let chosen = || dataset.choose_volume(&wish, 1).unwrap().root().to_path_buf();
        assert_eq!(chosen(), volumes[0].root());
        volumes[0].avoid(true);
        for _ in 0..3 {
            assert_eq!(chosen(), volumes[1].root());
        }
        volumes[1].fail();
        assert_eq!(chosen(), volumes[0].root());
    }
}
