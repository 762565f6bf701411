//! Opening replicas for reading.

use super::read_view::{ReadView, read_header};
use super::{Block, Dataset, not_found};
use crate::error::{Context, Result};
use crate::volume::latency::DiskWork;
use cairn_replica::ReplicaState;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a reader waits for bytes that are on their way, and how often it looks.
///
/// Source: Hadoop 3.5.0 `BlockSender` (`waitForMinLength`).
const WAIT_FOR_BYTES: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often a reader looks where the files are, which may be moved each time.
const TRIES: usize = 3;

impl Dataset {
    /// Opens a replica for reading bytes below `min_end`, for which a reader of an open file waits a little.
    ///
    /// Source: Hadoop 3.5.0 `BlockSender`.
    pub(crate) async fn open_read(&self, block: &Block, min_end: u64) -> Result<ReadView> {
        self.check_pool(&block.pool)?;
        let deadline = Instant::now() + WAIT_FOR_BYTES;
        loop {
            let mut tries = TRIES;
            let volume = self.placed(block.id).map(|placed| placed.volume);
            if let Some(volume) = volume {
                volume.turn().await?;
            }
            let view = loop {
                match self.try_open_read(block) {
                    // Finalized meanwhile: the files are being moved, or have.
                    Err(error) if error.is_missing_file() && tries > 1 => {
                        drop(self.turns.take(block.id).await);
                        self.serve_saved_if_vanished(block.id);
                        tries -= 1;
                    }
                    tried => break tried?,
                }
            };
            let may_grow =
                || self.get(block.id).is_some_and(|replica| replica.state() == ReplicaState::Rbw);
            if view.end >= min_end || !may_grow() || Instant::now() >= deadline {
                return Ok(view);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Opens a replica as it is now.
    pub(super) fn try_open_read(&self, block: &Block) -> Result<ReadView> {
        let (files, gs, end, visible, last_crc, is_finalized, volume) = {
            let map = self.lock();
            let entry = map.get(&block.id).ok_or_else(|| not_found(block))?;
            let replica = &entry.replica;
            let visible = replica.check_readable(block.gs)?;
            let files = entry.volume.files(replica.id(), replica.gs(), replica.place())?;
            let is_finalized = replica.state() == ReplicaState::Finalized;
            let (gs, end, volume) = (replica.gs(), replica.on_disk_len(), entry.volume.clone());
            (files, gs, end, visible, entry.last_crc, is_finalized, volume)
        };
        volume.clone().quick(|| {
            let open = |path: &Path| volume.timed(DiskWork::Metadata, || File::open(path).at(path));
            let (data, meta) = (Arc::new(open(&files.data)?), open(&files.meta)?);
            let checksum = read_header(&meta, &files)?;
            let mut view = ReadView {
                data,
                meta,
                checksum,
                gs,
                end,
                visible,
                last_crc,
                is_finalized,
                volume,
                files,
            };
            view.keep_last_crc()?;
            Ok(view)
        })
    }
}
