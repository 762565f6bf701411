//! What clients on this machine do with replicas whose files they were given: slots in memory that is
//! shared with them.
//!
//! A client asks for a segment, takes a slot of it for each replica that it is given, and may read
//! without a word to the DataNode while the slot is valid. `VALID` is cleared when the replica is
//! deleted. `ANCHORABLE` is set while its pages are locked in memory, whose CRCs were checked: the
//! client may then count itself in, read without checking, and out again. A segment lives as long as
//! the connection over which it was asked for. Tests: `tests/it/short_circuit.rs`.
//!
//! Source: Hadoop 3.5.0 `ShortCircuitRegistry`, `ShortCircuitShm`.

mod memory;

use crate::error::{DataNodeError, Result};
use cairn_process::held::held;
use cairn_stripe::BlockId;
use cairn_wire::proto::hdfs::{ShortCircuitShmIdProto, ShortCircuitShmSlotProto};
use memory::{SLOTS, SharedMemory};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The client may use the replica.
const VALID: u64 = 1 << 63;
/// The client may read the replica without checking its CRCs, if it counts itself in.
const ANCHORABLE: u64 = 1 << 62;
/// How many readers have counted themselves in.
const ANCHORS: u64 = 0x7fff_ffff;

/// Identity of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ShmId {
    hi: i64,
    lo: i64,
}

impl From<&ShortCircuitShmIdProto> for ShmId {
    fn from(proto: &ShortCircuitShmIdProto) -> ShmId {
        ShmId { hi: proto.hi, lo: proto.lo }
    }
}

impl std::fmt::Display for ShmId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.hi, self.lo)
    }
}

/// One client's memory.
struct Segment {
    memory: Arc<SharedMemory>,
    /// The replica of each slot that is in use.
    slots: Box<[Option<BlockId>; SLOTS]>,
}

#[derive(Default)]
struct State {
    segments: HashMap<ShmId, Segment>,
    /// The slots of each replica.
    slots: HashMap<BlockId, Vec<(ShmId, usize)>>,
}

impl State {
    /// The words of all slots of a replica.
    fn words(&self, block: BlockId) -> impl Iterator<Item = &AtomicU64> {
        let slots = self.slots.get(&block).into_iter().flatten();
        slots.filter_map(|(id, slot)| self.segments.get(id)?.memory.word(*slot))
    }

    fn forget(&mut self, block: BlockId, id: ShmId, slot: usize) {
        if let Some(slots) = self.slots.get_mut(&block) {
            slots.retain(|used| *used != (id, slot));
            if slots.is_empty() {
                self.slots.remove(&block);
            }
        }
    }
}

/// All segments and slots.
#[derive(Default)]
pub(crate) struct ShortCircuitRegistry {
    state: Mutex<State>,
}

/// A segment that is given up when this is dropped.
pub(crate) struct HeldSegment<'a> {
    registry: &'a ShortCircuitRegistry,
    id: ShmId,
    memory: Arc<SharedMemory>,
}

impl HeldSegment<'_> {
    /// Its identity.
    pub(crate) fn id(&self) -> ShortCircuitShmIdProto {
        ShortCircuitShmIdProto { hi: self.id.hi, lo: self.id.lo }
    }

    /// The descriptor to give to the client.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Drop for HeldSegment<'_> {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        let Some(segment) = state.segments.remove(&self.id) else { return };
        for (slot, block) in segment.slots.iter().enumerate() {
            let Some(block) = block else { continue };
            state.forget(*block, self.id, slot);
            if let Some(word) = segment.memory.word(slot) {
                word.fetch_and(!VALID, Ordering::SeqCst);
            }
        }
    }
}

impl ShortCircuitRegistry {
    /// Makes a segment.
    pub(crate) fn create(&self) -> io::Result<HeldSegment<'_>> {
        let memory = Arc::new(SharedMemory::create()?);
        let mut random = [[0; 8]; 2];
        let mut state = self.lock();
        let id = loop {
            getrandom::fill(random.as_flattened_mut())
                .map_err(|error| io::Error::other(error.to_string()))?;
            let [hi, lo] = random.map(i64::from_le_bytes);
            let id = ShmId { hi, lo };
            if !state.segments.contains_key(&id) {
                break id;
            }
        };
        let segment = Segment { memory: memory.clone(), slots: Box::new([None; SLOTS]) };
        state.segments.insert(id, segment);
        Ok(HeldSegment { registry: self, id, memory })
    }

    /// Takes a slot, which the client has chosen and made valid, for a replica.
    pub(crate) fn register(
        &self,
        block: BlockId,
        slot: &ShortCircuitShmSlotProto,
        is_cached: bool,
    ) -> Result<()> {
        let mut state = self.lock();
        let (id, segment) = find(&mut state, slot)?;
        let refuse =
            |what: String| Err(DataNodeError::peer(format!("RegisteredShm({id}): {what}")));
        let index = slot.slot_idx;
        if index < 0 {
            return refuse(format!("invalid negative slot index {index}"));
        }
        let place = index as usize;
        let (Some(word), Some(user)) = (segment.memory.word(place), segment.slots.get_mut(place))
        else {
            return refuse(format!("invalid slot index {index}"));
        };
        if user.is_some() {
            return refuse(format!("slot {index} is already in use."));
        }
        if word.load(Ordering::SeqCst) & VALID == 0 {
            return refuse(format!("slot {index} is not marked as valid."));
        }
        *user = Some(block);
        set_anchorable(word, is_cached);
        state.slots.entry(block).or_default().push((id, place));
        Ok(())
    }

    /// Gives a slot up.
    pub(crate) fn unregister(&self, slot: &ShortCircuitShmSlotProto) -> Result<()> {
        let mut state = self.lock();
        let (id, segment) = find(&mut state, slot)?;
        let place = usize::try_from(slot.slot_idx).ok();
        let user = place.and_then(|place| segment.slots.get_mut(place)?.take());
        let (Some(place), Some(block)) = (place, user) else {
            let what = format!("RegisteredShm({id}): slot {} does not exist.", slot.slot_idx);
            return Err(DataNodeError::peer(what));
        };
        if let Some(word) = segment.memory.word(place) {
            word.fetch_and(!VALID, Ordering::SeqCst);
        }
        state.forget(block, id, place);
        Ok(())
    }

    /// Tells clients that a replica is no more.
    pub(crate) fn invalidate(&self, block: BlockId) {
        self.lock().words(block).for_each(|word| _ = word.fetch_and(!VALID, Ordering::SeqCst));
    }

    /// Tells clients that a replica is locked in memory.
    pub(crate) fn allow_anchors(&self, block: BlockId) {
        self.lock().words(block).for_each(|word| set_anchorable(word, true));
    }

    /// Tells clients that a replica is to leave memory; false while some still count on it.
    pub(crate) fn refuse_anchors(&self, block: BlockId) -> bool {
        let state = self.lock();
        let is_anchored = |word: &AtomicU64| {
            let was = word.fetch_and(!ANCHORABLE, Ordering::SeqCst);
            was & VALID != 0 && was & ANCHORS != 0
        };
        state.words(block).filter(|word| is_anchored(word)).count() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        held(&self.state)
    }
}

fn find<'a>(
    state: &'a mut State,
    slot: &ShortCircuitShmSlotProto,
) -> Result<(ShmId, &'a mut Segment)> {
    let id = ShmId::from(&slot.shm_id);
    let segment = state.segments.get_mut(&id).ok_or_else(|| {
        let what = format!("there is no shared memory segment registered with shmId {id}");
        DataNodeError::peer(what)
    })?;
    Ok((id, segment))
}

fn set_anchorable(word: &AtomicU64, anchorable: bool) {
    match anchorable {
        true => word.fetch_or(ANCHORABLE, Ordering::SeqCst),
        false => word.fetch_and(!ANCHORABLE, Ordering::SeqCst),
    };
}
