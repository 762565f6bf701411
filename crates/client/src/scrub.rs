//! Scrubbing: reads every replica and every unit of a file, and names those that are not what they should be.
//!
//! Each is checked chunk by chunk, against the CRC recorded when it was written, and against the others: parity must
//! be what encoding the data gives, replicas must be equal. `scrub/group.rs` compares units and has
//! [`cairn_codec::agree`] find the one that does not fit the others, `scrub/copies.rs` compares replicas. Nothing is
//! changed here but that bad ones are reported, for the NameNode to have them rebuilt. All is read through DataNodes,
//! never through descriptors: what each of them has now is the question. Where one does not give what it should have,
//! the NameNode is asked again: a replica that was moved or deleted meanwhile is no fault.
//!
//! Not covered: a file's last block while it is being written; of two places of one unit, the second.

mod copies;
mod group;

use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert::{Located, LocatedWithCrcs};
use crate::read::opened::report_bad;
use crate::types::{Block, BlockLocation};
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{BlockId, Policy, UnitIndex};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often to look whether what was reported is whole again.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often a block is looked at that moves from under the look.
const LOOKS_MAX: usize = 3;

/// How a scrub is to be done.
#[derive(Clone, Debug, Default)]
pub struct ScrubOptions {
    /// Bytes per second that are read at most; 0 for any.
    pub bytes_per_second: u64,
    /// Whether bad replicas and units are reported to the NameNode, which has them rebuilt.
    pub report: bool,
}

/// What is wrong with a replica or unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No DataNode is known to have a good one.
    Missing,
    /// Its DataNode does not give it.
    Unreadable(String),
    /// A chunk does not have its CRC. From this byte on it was not compared with others.
    BadChunk {
        /// The chunk's offset in the replica or unit.
        offset: u64,
    },
    /// Its bytes are not those that were recorded when it was written.
    NotAsWritten {
        /// CRC32C recorded.
        recorded: u32,
        /// CRC32C of what is there.
        found: u32,
    },
    /// All others agree, without it.
    OddOneOut,
    /// It and the others disagree, and which one is wrong is not known.
    Disagrees,
}

/// A replica or unit, or a group as a whole, that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubFault {
    /// The block or group.
    pub block: Block,
    /// The unit; `None` for a replica, or if it is not known which.
    pub unit: Option<UnitIndex>,
    /// Where it is, if that is known.
    pub location: Option<BlockLocation>,
    /// What is wrong.
    pub kind: FaultKind,
    /// Whether the NameNode was told that it is bad.
    pub reported: bool,
}

/// What came of scrubbing a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileScrub {
    /// Blocks and groups that were read.
    pub blocks: u64,
    /// Bytes read of replicas and units.
    pub bytes: u64,
    /// Replicas and units whose CRC was compared with the recorded one.
    pub compared_with_record: u64,
    /// Groups whose parity was compared with their data at every byte.
    pub parity_checked: u64,
    /// What is wrong.
    pub faults: Vec<ScrubFault>,
}

/// A file that is being scrubbed.
struct Scrub<'a> {
    fs: &'a FileSystem,
    path: &'a str,
    options: &'a ScrubOptions,
    progress: &'a (dyn Fn(u64) + Sync),
    started: Instant,
    result: FileScrub,
}

/// A fault found, before it is reported: index of the location, unit, kind.
type Found = (Option<usize>, Option<UnitIndex>, FaultKind);

impl FileSystem {
    /// Reads all replicas or units of a file and compares them. `progress` is told of bytes as they are read.
    ///
    /// Fails when the NameNode does; what DataNodes do wrong is among the faults.
    pub async fn scrub(
        &self,
        path: &str,
        options: &ScrubOptions,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<FileScrub> {
        self.scrub_some(path, options, progress, &|_| true).await
    }

    async fn scrub_some(
        &self,
        path: &str,
        options: &ScrubOptions,
        progress: &(dyn Fn(u64) + Sync),
        is_wanted: &(dyn Fn(BlockId) -> bool + Sync),
    ) -> Result<FileScrub> {
        let LocatedWithCrcs { file, unit_crcs } = self.located_with_crcs(path).await?;
        let started = Instant::now();
        let result = FileScrub::default();
        let mut scrub = Scrub { fs: self, path, options, progress, started, result };
        let (policy, open) =
            (file.policy, (!file.last_block_complete).then_some(file.blocks.len()));
        for (at, (located, crcs)) in file.blocks.into_iter().zip(unit_crcs).enumerate() {
            let is_open = open == Some(at + 1);
            if !is_open && is_wanted(located.block.block.id) {
                scrub.block(policy.as_ref(), located, crcs).await?;
            }
        }
        Ok(scrub.result)
    }

    /// Waits until the blocks that `faults` are of have as many replicas or units as they should, and those that were
    /// reported are elsewhere or, read again, as they should be. False if that takes longer than `patience`.
    pub async fn wait_repaired(
        &self,
        path: &str,
        faults: &[ScrubFault],
        patience: Duration,
    ) -> Result<bool> {
        let copies = usize::from(self.require(path).await?.replication);
        let start = Instant::now();
        let (mut read_at, mut read_after) = (start, LOOK_EVERY);
        loop {
            let file = self.session.located(path, 0, u64::MAX).await?;
            let is_whole = |located: &Located| match &file.policy {
                Some(policy) => {
                    let (geometry, len) = (Geometry::from(policy), located.block.block.len);
                    (0..geometry.units() as u8).map(UnitIndex).all(|unit| {
                        geometry.internal_block_len(len, unit) == 0
                            || located.block.locations.iter().any(|at| at.unit == unit)
                    })
                }
                None => located.block.locations.len() >= copies,
            };
            let is_gone = |fault: &ScrubFault| {
                let Some(bad) = &fault.location else { return true };
                let block = file.blocks.iter().find(|b| b.block.block.id == fault.block.id);
                let is_it =
                    |at: &BlockLocation| at.unit == bad.unit && at.storage_id == bad.storage_id;
                !fault.reported || !block.is_some_and(|b| b.block.locations.iter().any(is_it))
            };
            let touched = |located: &&Located| {
                faults.iter().any(|fault| fault.block.id == located.block.block.id)
            };
            if file.blocks.iter().filter(touched).all(is_whole) {
                if faults.iter().all(is_gone) {
                    return Ok(true);
                }
                // It may be mended where it was.
                if read_at.elapsed() >= read_after {
                    let options = ScrubOptions::default();
                    let is_touched = |id: BlockId| faults.iter().any(|fault| fault.block.id == id);
                    let again = self.scrub_some(path, &options, &|_| (), &is_touched).await?;
                    if again.faults.is_empty() {
                        return Ok(true);
                    }
                    (read_at, read_after) = (Instant::now(), 2 * read_after);
                }
            }
            if start.elapsed() >= patience {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What the NameNode says of a block that was looked at.
enum Now {
    /// The same as before.
    Same,
    /// It is elsewhere.
    Moved(Located, Vec<Option<u32>>),
    /// The file does not have it any more.
    Gone,
}

impl Scrub<'_> {
    /// Looks at a block, again if it moves meanwhile, and keeps what is found.
    async fn block(
        &mut self,
        policy: Option<&Policy>,
        mut located: Located,
        mut crcs: Vec<Option<u32>>,
    ) -> Result<()> {
        let mut looks = 0;
        self.result.blocks += 1;
        let found = loop {
            let found = match policy {
                Some(policy) => self.group(policy, &located, &crcs).await?,
                None => self.copies(&located, crcs.first().copied().flatten()).await?,
            };
            looks += 1;
            let is_absent =
                |kind: &FaultKind| matches!(kind, FaultKind::Missing | FaultKind::Unreadable(_));
            if looks == LOOKS_MAX || !found.iter().any(|(_, _, kind)| is_absent(kind)) {
                break found;
            }
            match self.now(&located).await? {
                Now::Same => break found,
                Now::Gone => break Vec::new(),
                Now::Moved(other, with) => (located, crcs) = (other, with),
            }
        };
        self.take(&located, found).await;
        Ok(())
    }

    /// Asks the NameNode where a block is by now.
    async fn now(&self, before: &Located) -> Result<Now> {
        let LocatedWithCrcs { file, unit_crcs } = self.fs.located_with_crcs(self.path).await?;
        let id = before.block.block.id;
        let mut now = file.blocks.into_iter().zip(unit_crcs);
        let Some((located, crcs)) = now.find(|(now, _)| now.block.block.id == id) else {
            return Ok(Now::Gone);
        };
        let places = |located: &Located| -> BTreeSet<(String, String, UnitIndex)> {
            let place = |at: &BlockLocation| (at.addr.uuid.clone(), at.storage_id.clone(), at.unit);
            located.block.locations.iter().map(place).collect()
        };
        let same = places(&located) == places(before) && located.block.block == before.block.block;
        Ok(if same { Now::Same } else { Now::Moved(located, crcs) })
    }

    /// Keeps what was found, and reports those that are surely bad.
    async fn take(&mut self, located: &Located, found: Vec<Found>) {
        for (index, unit, kind) in found {
            let location = index.map(|index| located.block.locations[index].clone());
            let is_bad = !matches!(
                kind,
                FaultKind::Missing | FaultKind::Unreadable(_) | FaultKind::Disagrees
            );
            let reported = match index.filter(|_| is_bad && self.options.report) {
                Some(index) => {
                    let mut block = located.block.block.clone();
                    block.id = unit.map_or(block.id, |unit| block.id.internal(unit));
                    let told = report_bad(self.fs.session.clone(), block, located, index).await;
                    told.inspect_err(|error| tracing::warn!(%error, "cannot report a bad block"))
                        .is_ok()
                }
                None => false,
            };
            let block = located.block.block.clone();
            self.result.faults.push(ScrubFault { block, unit, location, kind, reported });
        }
    }

    /// Counts bytes that were read, and waits until more may be.
    async fn pace(&mut self, bytes: u64) {
        self.result.bytes += bytes;
        (self.progress)(bytes);
        if self.options.bytes_per_second > 0 {
            let due = self.result.bytes as f64 / self.options.bytes_per_second as f64;
            let wait = Duration::from_secs_f64(due).saturating_sub(self.started.elapsed());
            tokio::time::sleep(wait).await;
        }
    }
}

/// The fault that a failed read shows.
fn read_fault(error: ClientError) -> FaultKind {
    match error {
        ClientError::Checksum { offset, .. } => FaultKind::BadChunk { offset },
        other => FaultKind::Unreadable(other.to_string()),
    }
}
