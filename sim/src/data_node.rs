//! A simulated DataNode: volumes with replicas of real bytes, whose life the replica core decides.
//!
//! Follows `crates/datanode/src/dataset`, without files: a replica's bytes are in memory, with the
//! length that a power cut leaves and the chunks whose CRCs no longer fit.

mod stored;

use crate::name_node::Located;
use crate::rng::Rng;
use cairn_master::contiguous::EncodedGroup;
use cairn_master::contiguous::pack::PackedContainer;
use cairn_redundancy::groups::prove::Proved;
use cairn_redundancy::{
    BlockRef, Heartbeat, ReportedReplica, StorageReport, StorageState, StorageType, StorageUsage,
};
use cairn_replica::report::{Deletion, Event, ReplicaEvent, Untold};
use cairn_replica::{Absent, RecoveryInfo, Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
pub(crate) use stored::{CHECKSUM, CHUNK_LEN, NodeError, Stored};

/// Bytes of a volume: more than any simulation writes.
const VOLUME_LEN: u64 = 1 << 30;
/// Last deletions that a power cut may undo.
const UNSYNCED_DELETIONS: usize = 8;

/// All replicas, by storage and its type.
pub(crate) type FullReport = Vec<(String, StorageType, Vec<ReportedReplica>)>;

/// What the operator's lists say of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Serve,
    /// For good.
    Leave,
    /// Until a simulated time.
    Away {
        until_ms: u64,
    },
}

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) uuid: String,
    pub(crate) kind: StorageType,
    pub(crate) is_failed: bool,
    pub(crate) is_full: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct DataNode {
    pub(crate) number: usize,
    pub(crate) rack: String,
    pub(crate) up: bool,
    /// Counts its starts: what was begun before a crash is not ended after it.
    pub(crate) life: u64,
    /// How often it has registered.
    pub(crate) registrations: u64,
    /// What pipelines have finalized is durable only when the system has written it, or somebody asks.
    pub(crate) is_lazy: bool,
    /// Cut off from everybody.
    pub(crate) is_isolated: bool,
    /// Answers nobody before this time.
    pub(crate) stalled_until_ms: u64,
    pub(crate) is_registered: bool,
    pub(crate) intent: Intent,
    /// Switched off for good, or until the operator thinks again.
    pub(crate) is_gone: bool,
    /// Gone for good, and its disks too: another machine is the same DataNode.
    pub(crate) is_removed: bool,
    pub(crate) next_report_ms: u64,
    /// The NameNode knows what its last start has found.
    pub(crate) has_reported: bool,
    /// Reports of it that came late.
    pub(crate) late_reports: u64,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) replicas: BTreeMap<BlockId, Stored>,
    /// Replicas whose deletion a power cut may undo.
    deleted: Vec<Stored>,
    /// What an image of its disks had, which may be what it is restored from.
    image: Option<BTreeMap<BlockId, Stored>>,
    /// What is still to be told; the latest event of a replica counts.
    events: Untold,
    /// What came of encoding groups, to be told with a heartbeat.
    pub(crate) encoded: Vec<EncodedGroup>,
    /// What came of writing containers, to be told with a heartbeat.
    pub(crate) packed: Vec<PackedContainer>,
    /// Replicas that it has read as its disks have them, to be told with a heartbeat.
    pub(crate) proved: Vec<Proved>,
    /// Blocks that clients are not served.
    retired: BTreeSet<BlockId>,
    /// Blocks that a recovery was told are not here.
    absent: Absent,
    /// How blocks can be had that are not here, and until when that holds.
    pub(crate) virtuals: BTreeMap<(BlockId, GenerationStamp), (u64, Option<Located>)>,
    pub(crate) transfers: u32,
    /// The replica that the scanner looked at last.
    pub(crate) scanned: BlockId,
}

impl DataNode {
    pub(crate) fn new(number: usize, rack: String, kinds: &[StorageType]) -> DataNode {
        let mut node = DataNode {
            number,
            rack,
            up: true,
            life: 0,
            registrations: 0,
            is_lazy: false,
            is_isolated: false,
            stalled_until_ms: 0,
            is_registered: false,
            intent: Intent::Serve,
            is_gone: false,
            is_removed: false,
            next_report_ms: 0,
            has_reported: false,
            late_reports: 0,
            volumes: Vec::new(),
            replicas: BTreeMap::new(),
            deleted: Vec::new(),
            image: None,
            events: Untold::default(),
            encoded: Vec::new(),
            packed: Vec::new(),
            proved: Vec::new(),
            retired: BTreeSet::new(),
            absent: Absent::default(),
            virtuals: BTreeMap::new(),
            transfers: 0,
            scanned: BlockId(i64::MIN),
        };
        kinds.iter().for_each(|kind| node.add_volume(*kind));
        node
    }

    pub(crate) fn add_volume(&mut self, kind: StorageType) {
        let uuid = format!("DS-{}-{}", self.number, self.volumes.len());
        self.volumes.push(Volume { uuid, kind, is_failed: false, is_full: false });
    }

    /// Whether it is meant to serve.
    pub(crate) fn is_serving(&self, now_ms: u64) -> bool {
        match self.intent {
            Intent::Serve => true,
            Intent::Leave => false,
            Intent::Away { until_ms } => now_ms >= until_ms,
        }
    }

    /// The type of a storage.
    pub(crate) fn kind_of(&self, uuid: &str) -> StorageType {
        self.volumes.iter().find(|v| v.uuid == uuid).map_or(StorageType::Disk, |v| v.kind)
    }

    /// Whether it has a volume of that type that works.
    pub(crate) fn has_kind(&self, kind: StorageType) -> bool {
        self.volumes.iter().any(|volume| volume.kind == kind && !volume.is_failed)
    }

    /// Whether it has a whole replica of that stamp.
    pub(crate) fn holds(&self, id: BlockId, gs: GenerationStamp) -> bool {
        self.replicas.get(&id).is_some_and(|stored| {
            stored.replica.state() == ReplicaState::Finalized && stored.replica.gs() == gs
        })
    }

    /// Whether the NameNode may still take a replica for whole of which a power cut has taken the end.
    pub(crate) fn is_torn_untold(&self, stored: &Stored) -> bool {
        stored.is_torn && !self.has_reported
    }

    /// Whether it is about to tell of a replica that it has no more.
    pub(crate) fn will_tell_in_vain(&self, id: BlockId) -> bool {
        let mut of_it = self.events.iter().filter_map(|(_, events)| events.get(&id));
        !self.replicas.contains_key(&id) && of_it.any(|told| told.event != Event::Deleted)
    }

    /// Whether it answers.
    pub(crate) fn answers(&self, now_ms: u64) -> bool {
        self.up && !self.is_isolated && now_ms >= self.stalled_until_ms
    }

    /// Keeps an image of its disks.
    pub(crate) fn take_image(&mut self) {
        self.image = Some(self.replicas.clone());
    }

    /// Has its disks as they were when their image was taken; `false` if there is none.
    pub(crate) fn restore_image(&mut self) -> bool {
        let Some(image) = self.image.take() else { return false };
        self.replicas = image;
        let usable: Vec<bool> = self.volumes.iter().map(|volume| !volume.is_failed).collect();
        self.replicas.retain(|_, stored| usable[stored.volume]);
        self.drop_damaged();
        true
    }

    /// What a machine finds that starts with an image of its disks is on these.
    pub(crate) fn has_all_on_disk(&mut self) {
        for stored in self.replicas.values_mut() {
            stored.synced = stored.data.len() as u64;
        }
    }

    /// What it has read before was not ordered by the NameNode that it registers with.
    pub(crate) fn begin_registration(&mut self) {
        (self.is_registered, self.registrations) = (true, self.registrations + 1);
        self.proved.clear();
    }

    /// Has no replicas any more that were bad when its disks were read last: they have been told of.
    pub(crate) fn drop_damaged(&mut self) {
        self.replicas.retain(|_, stored| stored.damaged.is_empty());
    }

    /// A machine that starts with a copy of its disks, which were in use.
    pub(crate) fn cloned(&self, number: usize, rack: String, rng: &mut Rng) -> DataNode {
        let mut copy = DataNode { number, rack, life: 0, registrations: 0, ..self.clone() };
        (copy.is_isolated, copy.stalled_until_ms, copy.image) = (false, 0, None);
        let power_cut = rng.one_in(2);
        copy.crash(power_cut, rng);
        copy
    }

    /// Is taken away with all that it has.
    pub(crate) fn remove(&mut self) {
        (self.up, self.is_gone, self.is_removed) = (false, true, true);
        self.replicas.clear();
    }

    /// Stops it; with `power_cut`, what was not synced is torn off, and deletions may be undone. What it holds after
    /// is what its next start finds.
    pub(crate) fn crash(&mut self, power_cut: bool, rng: &mut Rng) {
        self.up = false;
        self.life += 1;
        self.is_registered = false;
        self.has_reported = false;
        self.events = Untold::default();
        self.encoded.clear();
        self.proved.clear();
        self.retired.clear();
        self.absent = Absent::default();
        self.virtuals.clear();
        self.transfers = 0;
        let mut undone = BTreeSet::new();
        for stored in std::mem::take(&mut self.deleted) {
            let is_usable = !self.volumes[stored.volume].is_failed && stored.damaged.is_empty();
            let id = stored.replica.id();
            if power_cut && is_usable && rng.one_in(2) && !self.replicas.contains_key(&id) {
                undone.insert(id);
                self.replicas.insert(id, stored);
            }
        }
        self.replicas.retain(|_, stored| stored.replica.place() != ReplicaState::Temporary);
        for stored in self.replicas.values_mut() {
            let replica = &stored.replica;
            let (id, gs, place) = (replica.id(), replica.gs(), replica.place());
            let state = match place {
                ReplicaState::Finalized => ReplicaState::Finalized,
                _ => ReplicaState::Rwr,
            };
            if power_cut && stored.synced < stored.data.len() as u64 {
                let len = stored.data.len() as u64;
                stored.cut(rng.range(stored.synced.min(len), len + 1));
                // Until its next report nobody knows that it is there, and how much of it.
                stored.is_torn |= undone.contains(&id) && (stored.data.len() as u64) < len;
            }
            let len = stored.data.len() as u64;
            stored.replica = match state {
                ReplicaState::Finalized if self.is_lazy => Replica::unsynced(id, gs, len),
                state => Replica::new(id, gs, state, len),
            };
        }
    }

    pub(crate) fn heartbeat(&self, wants_report_lease: bool) -> Heartbeat {
        let mut used_of = vec![0; self.volumes.len()];
        for stored in self.replicas.values() {
            used_of[stored.volume] += stored.data.len() as u64;
        }
        let report = |(at, volume): (usize, &Volume)| {
            let used = used_of[at];
            let (state, capacity) = match volume.is_failed {
                true => (StorageState::Failed, 0),
                false => (StorageState::Normal, VOLUME_LEN),
            };
            let free = if volume.is_full { 0 } else { capacity.saturating_sub(used) };
            let usage = StorageUsage {
                capacity,
                dfs_used: used,
                remaining: free,
                block_pool_used: used,
                non_dfs_used: 0,
            };
            let storage_type = volume.kind;
            StorageReport { uuid: volume.uuid.clone(), storage_type, state, usage }
        };
        Heartbeat {
            storages: self.volumes.iter().enumerate().map(report).collect(),
            xmits: self.transfers,
            xceivers: 1,
            failed_volumes: self.volumes.iter().filter(|volume| volume.is_failed).count() as u32,
            wants_report_lease,
            takes_groups: true,
            ..Heartbeat::default()
        }
    }

    /// All replicas but temporary ones, by storage.
    pub(crate) fn report(&self) -> FullReport {
        let healthy = self.volumes.iter().enumerate().filter(|(_, volume)| !volume.is_failed);
        let of_volume = |(at, volume): (usize, &Volume)| {
            let on_it = self.replicas.values().filter(|stored| stored.volume == at);
            let told = on_it.filter_map(|stored| stored.replica.report());
            (volume.uuid.clone(), volume.kind, told.map(stored::reported).collect())
        };
        healthy.map(of_volume).collect()
    }

    fn note(&mut self, id: BlockId, event: Event) {
        let Some(stored) = self.replicas.get(&id) else { return };
        let (gs, len) = (stored.replica.gs(), stored.replica.on_disk_len());
        let uuid = &self.volumes[stored.volume].uuid;
        self.events.note(uuid, id, ReplicaEvent { gs, len, event });
    }

    fn note_received(&mut self, id: BlockId, delete_hint: Option<String>) {
        let crc32c = self.replicas.get(&id).map(Stored::stored_crc);
        self.note(id, Event::Received { crc32c, delete_hint });
    }

    pub(crate) fn take_events(&mut self) -> Untold {
        std::mem::take(&mut self.events)
    }

    /// Puts back what could not be told, unless something newer has happened.
    pub(crate) fn put_back(&mut self, untold: Untold) {
        self.events.put_back(untold);
    }

    pub(crate) fn volume_of(&self, id: BlockId) -> Option<&str> {
        let stored = self.replicas.get(&id)?;
        Some(&self.volumes[stored.volume].uuid)
    }

    fn insert(&mut self, replica: Replica, data: Vec<u8>, wish: &str) -> Result<(), NodeError> {
        let volume = self.volume_for(wish).ok_or(NodeError::NoRoom)?;
        let id = replica.id();
        let (damaged, is_torn) = (BTreeMap::new(), false);
        let data = data.into();
        let stored = Stored { replica, data, synced: 0, damaged, is_torn, volume };
        self.replicas.insert(id, stored);
        Ok(())
    }

    /// The volume that was wished for, or another of its type.
    fn volume_for(&self, wish: &str) -> Option<usize> {
        let named = self.volumes.iter().find(|volume| volume.uuid == wish);
        let usable = |v: &Volume| {
            !v.is_failed && !v.is_full && named.is_none_or(|named| named.kind == v.kind)
        };
        let wished = self.volumes.iter().position(|v| v.uuid == wish && usable(v));
        wished.or_else(|| self.volumes.iter().position(usable))
    }

    fn room(&self, wish: &str) -> Result<(), NodeError> {
        self.volume_for(wish).map(|_| ()).ok_or(NodeError::NoRoom)
    }

    /// Makes an empty replica for a writer.
    pub(crate) fn create(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        wish: &str,
    ) -> Result<(), NodeError> {
        self.room(wish)?;
        let old = self.replicas.get(&id).map(|stored| &stored.replica);
        self.absent.check_open(id, gs)?;
        Replica::check_create(old, gs)?;
        self.insert(Replica::new(id, gs, ReplicaState::Rbw, 0), Vec::new(), wish)?;
        self.note(id, Event::Receiving);
        Ok(())
    }

    /// Takes a whole copy or a rebuilt unit from another DataNode.
    pub(crate) fn take_copy(
        &mut self,
        block: BlockRef,
        data: Vec<u8>,
        wish: &str,
        hint: Option<String>,
    ) -> Result<(), NodeError> {
        self.room(wish)?;
        let old = self.replicas.get(&block.id).map(|stored| &stored.replica);
        Replica::check_create_temporary(old, block.gs, false, false)?;
        let mut replica = Replica::new(block.id, block.gs, ReplicaState::Temporary, 0);
        replica.note_received(data.len() as u64);
        replica.note_on_disk(data.len() as u64);
        replica.finalize(block.gs)?;
        self.insert(replica, data, wish)?;
        self.finalized(block.id)?;
        if hint.is_some() {
            self.note_received(block.id, hint);
        }
        Ok(())
    }

    /// Moves a finalized replica to another of its volumes.
    pub(crate) fn relocate(&mut self, block: BlockRef, to: &str) -> Result<(), NodeError> {
        let volume = self.volume_for(to).ok_or(NodeError::NoRoom)?;
        let is_whole = |stored: &Stored| {
            stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == block.gs
                && stored.data.len() as u64 == block.len
        };
        let stored = self.existing(block.id)?;
        if !is_whole(stored) || stored.volume == volume {
            return Err(NodeError::NotFound);
        }
        stored.volume = volume;
        self.finalized(block.id)
    }

    /// Takes the start of a replica that is being written, to join its pipeline.
    pub(crate) fn take_visible(
        &mut self,
        block: BlockRef,
        data: Vec<u8>,
        wish: &str,
    ) -> Result<(), NodeError> {
        self.room(wish)?;
        let old = self.replicas.get(&block.id).map(|stored| &stored.replica);
        self.absent.check_open(block.id, block.gs)?;
        Replica::check_create_temporary(old, block.gs, true, true)?;
        let mut replica = Replica::new(block.id, block.gs, ReplicaState::Temporary, 0);
        replica.note_received(data.len() as u64);
        replica.note_on_disk(data.len() as u64);
        replica.convert_temporary(block.gs, data.len() as u64)?;
        self.insert(replica, data, wish)?;
        // A part of it may have been synced where it comes from.
        self.sync(block.id, block.gs);
        Ok(())
    }

    /// The replica at which a writer with stamp `gs` is at work.
    fn writable(&mut self, id: BlockId, gs: GenerationStamp) -> Result<&mut Stored, NodeError> {
        let found = self.replicas.get_mut(&id).filter(|stored| {
            stored.replica.state() == ReplicaState::Rbw && stored.replica.gs() == gs
        });
        found.ok_or(NodeError::NotFound)
    }

    /// Writes a packet behind what is there.
    pub(crate) fn write(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), NodeError> {
        let stored = self.writable(id, gs)?;
        let skip = stored.data.len() as u64 - offset.min(stored.data.len() as u64);
        if offset > stored.data.len() as u64 {
            return Err(NodeError::NotFound);
        }
        stored.data.extend(bytes.get(skip as usize..).unwrap_or_default());
        let end = offset + bytes.len() as u64;
        stored.replica.note_received(end);
        stored.replica.note_on_disk(end);
        Ok(())
    }

    /// All of the pipeline has the replica's bytes up to `end`.
    pub(crate) fn acknowledge(&mut self, id: BlockId, gs: GenerationStamp, end: u64) {
        if let Ok(stored) = self.writable(id, gs) {
            stored.replica.note_acked(end);
        }
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&mut self, id: BlockId, gs: GenerationStamp) {
        if let Ok(stored) = self.writable(id, gs) {
            stored.synced = stored.data.len() as u64;
        }
    }

    /// Completes a replica, durably.
    pub(crate) fn finalize(&mut self, id: BlockId, gs: GenerationStamp) -> Result<(), NodeError> {
        let is_lazy = self.is_lazy;
        let stored = self.writable(id, gs)?;
        stored.replica.finalize(gs)?;
        let synced = stored.synced;
        self.finalized(id)?;
        if let Some(stored) = self.replicas.get_mut(&id).filter(|_| is_lazy) {
            stored.synced = synced;
        }
        Ok(())
    }

    fn finalized(&mut self, id: BlockId) -> Result<(), NodeError> {
        let stored = self.replicas.get_mut(&id).ok_or(NodeError::NotFound)?;
        stored.synced = stored.data.len() as u64;
        self.note_received(id, None);
        Ok(())
    }

    fn existing(&mut self, id: BlockId) -> Result<&mut Stored, NodeError> {
        self.replicas.get_mut(&id).ok_or(NodeError::NotFound)
    }

    /// Opens a finalized replica for appending.
    pub(crate) fn append(
        &mut self,
        block: BlockRef,
        new_gs: GenerationStamp,
    ) -> Result<(), NodeError> {
        let stored = self.existing(block.id)?;
        stored.check_last_chunk()?;
        stored.replica.append(block.gs, new_gs, block.len)?;
        self.note(block.id, Event::Receiving);
        Ok(())
    }

    /// Takes a replica over after a broken pipeline, cut back to what all of the pipeline had.
    pub(crate) fn recover_rbw(
        &mut self,
        block: BlockRef,
        new_gs: GenerationStamp,
        range: (u64, u64),
    ) -> Result<(), NodeError> {
        let stored = self.existing(block.id)?;
        let file_len = stored.data.len() as u64;
        let mut next = stored.replica.clone();
        let len = next.recover_rbw(block.gs, new_gs, range, file_len)?;
        stored.check_last_chunk()?;
        stored.cut(len);
        stored.replica = next;
        self.note(block.id, Event::Receiving);
        Ok(())
    }

    /// Takes a replica over after a failed append.
    pub(crate) fn recover_append(
        &mut self,
        block: BlockRef,
        new_gs: GenerationStamp,
    ) -> Result<(), NodeError> {
        let stored = self.existing(block.id)?;
        stored.check_last_chunk()?;
        stored.replica.recover_append(block.gs, new_gs, block.len)?;
        self.note(block.id, Event::Receiving);
        Ok(())
    }

    /// Closes a replica whose last acknowledgement was lost.
    pub(crate) fn recover_close(
        &mut self,
        block: BlockRef,
        new_gs: GenerationStamp,
    ) -> Result<(), NodeError> {
        let stored = self.existing(block.id)?;
        stored.replica.recover_close(block.gs, new_gs, block.len)?;
        self.finalized(block.id)
    }

    /// Reads a part of a replica that readers may see, checking its CRCs.
    pub(crate) fn read(
        &self,
        id: BlockId,
        gs: GenerationStamp,
        range: Range<u64>,
    ) -> Result<Vec<u8>, NodeError> {
        let stored = self.replicas.get(&id).ok_or(NodeError::NotFound)?;
        let visible = stored.replica.check_readable(gs)?;
        if range.end > visible {
            return Err(NodeError::NotFound);
        }
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let chunks = range.start / CHUNK_LEN * CHUNK_LEN..range.end.next_multiple_of(CHUNK_LEN);
        if stored.damaged.range(chunks).next().is_some() {
            return Err(NodeError::Damaged);
        }
        Ok(stored.data[range.start as usize..range.end as usize].to_vec())
    }

    /// The CRCs of a replica's chunks, as its `.meta` file has them.
    pub(crate) fn chunk_crcs(
        &self,
        id: BlockId,
        gs: GenerationStamp,
    ) -> Result<Vec<u8>, NodeError> {
        let stored = self.replicas.get(&id).ok_or(NodeError::NotFound)?;
        stored.replica.check_readable(gs)?;
        Ok(stored.chunk_crcs())
    }

    /// Whether a power cut takes nothing of a finalized replica.
    pub(crate) fn is_durable(&self, id: BlockId) -> bool {
        let stored = self.replicas.get(&id);
        stored.is_some_and(|stored| stored.synced >= stored.data.len() as u64)
    }

    /// The system writes all that it has in memory.
    pub(crate) fn write_back(&mut self) {
        let ids: Vec<BlockId> = self.replicas.keys().copied().collect();
        ids.into_iter().for_each(|id| self.sync_finalized(id));
    }

    /// Serves those of the blocks that are here to clients no more.
    pub(crate) fn retire(&mut self, blocks: Vec<BlockRef>) {
        self.retired.extend(blocks.into_iter().map(|block| block.id));
        self.retired.retain(|id| self.replicas.contains_key(id));
    }

    /// Whether clients are not served a block.
    pub(crate) fn is_retired(&self, id: BlockId) -> bool {
        self.retired.contains(&id)
    }

    /// Makes all bytes of a finalized replica durable.
    pub(crate) fn sync_finalized(&mut self, id: BlockId) {
        let here = self.replicas.get_mut(&id);
        if let Some(stored) = here.filter(|s| s.replica.state() == ReplicaState::Finalized) {
            stored.synced = stored.data.len() as u64;
        }
    }

    /// Obeys an order to delete a replica, given by that registration, if it is not too late, and notes what is to be
    /// told of it.
    pub(crate) fn invalidate(
        &mut self,
        (id, gs): (BlockId, GenerationStamp),
        (registration, is_late): (u64, bool),
    ) -> Deletion {
        let is_current = self.registrations == registration && !is_late;
        let here = self.replicas.get(&id);
        let deletion = Deletion::of(here.map(|stored| &stored.replica), gs, is_current);
        match deletion {
            Deletion::Void => {}
            Deletion::Absent => {
                let gone = ReplicaEvent { gs, len: 0, event: Event::Deleted };
                for volume in self.volumes.iter().filter(|volume| !volume.is_failed) {
                    self.events.note(&volume.uuid, id, gone.clone());
                }
            }
            Deletion::Other => {
                let told = here.and_then(|s| Some((s.volume, s.replica.told_when_kept()?)));
                if let Some((volume, told)) = told {
                    self.events.note(&self.volumes[volume].uuid, id, told);
                }
            }
            Deletion::Due => self.delete(id),
        }
        deletion
    }

    fn delete(&mut self, id: BlockId) {
        self.note(id, Event::Deleted);
        if let Some(stored) = self.replicas.remove(&id) {
            self.deleted.push(stored);
            let surplus = self.deleted.len().saturating_sub(UNSYNCED_DELETIONS);
            self.deleted.drain(..surplus);
        }
    }

    /// Freezes a replica for a recovery. `None` if there is none.
    pub(crate) fn freeze(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        recovery: GenerationStamp,
    ) -> Result<Option<RecoveryInfo>, NodeError> {
        let Some(stored) = self.replicas.get_mut(&id) else {
            self.absent.note(id, recovery);
            return Ok(None);
        };
        Ok(Some(stored.replica.init_recovery(gs, recovery)?))
    }

    /// Ends a recovery: the replica is finalized with `new_len` bytes.
    pub(crate) fn finish_recovery(
        &mut self,
        found: &RecoveryInfo,
        recovery: GenerationStamp,
        new_len: u64,
    ) -> Result<(), NodeError> {
        let stored = self.existing(found.id)?;
        stored.replica.check_finish_recovery(recovery, found.len, new_len)?;
        stored.check_cut(new_len)?;
        stored.cut(new_len);
        stored.replica.finish_recovery(recovery, new_len);
        stored.is_torn = false;
        self.finalized(found.id)
    }

    /// Loses a disk with all that is on it.
    pub(crate) fn fail_volume(&mut self, volume: usize) {
        self.volumes[volume].is_failed = true;
        let lost = self.replicas.iter().filter(|(_, stored)| stored.volume == volume);
        for id in lost.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.note(id, Event::Deleted);
            self.replicas.remove(&id);
        }
    }
}
