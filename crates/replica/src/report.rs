//! What the NameNode is told of replicas: all of them, and what has happened to them since.
//!
//! Source: Hadoop 3.5.0 `IncrementalBlockReportManager`, `FsDatasetImpl#getBlockReports`.

use crate::state::{Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One line of a full report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedReplica {
    /// The block.
    pub id: BlockId,
    /// Its bytes on disk.
    pub len: u64,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its state; one under recovery is what it was before.
    pub state: ReplicaState,
}

impl Replica {
    /// What a full report tells of it; nothing of a copy that is not whole yet.
    pub fn report(&self) -> Option<ReportedReplica> {
        let state = self.place();
        (state != ReplicaState::Temporary).then(|| ReportedReplica {
            id: self.id(),
            len: self.on_disk_len(),
            gs: self.gs(),
            state,
        })
    }
}

/// What has happened to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A writer has opened it.
    Receiving,
    /// It is complete.
    Received {
        /// CRC32C of its bytes, if known.
        crc32c: Option<u32>,
        /// The DataNode that shall lose its replica in exchange.
        delete_hint: Option<String>,
    },
    /// It is gone.
    Deleted,
}

/// An event with the replica it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaEvent {
    /// The stamp.
    pub gs: GenerationStamp,
    /// Bytes then.
    pub len: u64,
    /// What has happened.
    pub event: Event,
}

impl ReplicaEvent {
    fn is_arrival(&self) -> bool {
        self.event != Event::Deleted
    }
}

/// What happened to the replicas of each storage since the NameNode was last told; the latest event of each replica
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untold(BTreeMap<String, BTreeMap<BlockId, ReplicaEvent>>);

impl Untold {
    /// Notes an event. A replica that has come whole to a storage is on no other: what waits to be told of it there
    /// is void, for the NameNode takes storages in any order.
    pub fn note(&mut self, storage: &str, id: BlockId, event: ReplicaEvent) {
        if matches!(event.event, Event::Received { .. }) {
            for (other, events) in &mut self.0 {
                if other != storage && events.get(&id).is_some_and(ReplicaEvent::is_arrival) {
                    events.remove(&id);
                }
            }
        }
        match self.0.get_mut(storage) {
            Some(events) => events.insert(id, event),
            None => self.0.entry(storage.into()).or_default().insert(id, event),
        };
    }

    /// How many events of a storage wait.
    pub fn count_on(&self, storage: &str) -> usize {
        self.0.get(storage).map_or(0, BTreeMap::len)
    }

    /// How many events wait.
    pub fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Puts back what could not be told, unless something newer has happened.
    pub fn put_back(&mut self, untold: Untold) {
        let came = self.0.values().flatten().filter(|(_, event)| event.is_arrival());
        let moved: BTreeSet<BlockId> = came.map(|(id, _)| *id).collect();
        for (storage, events) in untold.0 {
            let known = self.0.entry(storage).or_default();
            for (id, event) in events {
                if !(event.is_arrival() && moved.contains(&id)) {
                    known.entry(id).or_insert(event);
                }
            }
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeMap::is_empty)
    }

    /// The events of each storage.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeMap<BlockId, ReplicaEvent>)> {
        self.0.iter().map(|(storage, events)| (storage.as_str(), events))
    }
}

/// How long an order to delete a replica holds on its DataNode, less than a NameNode waits until it counts on the replica
/// again (`dfs.namenode.reconstruction.pending.timeout-sec`, 300 by default): a disk may hang for any time.
///
/// Deviation: Hadoop obeys it whenever it can.
pub const DELETION_LASTS: Duration = Duration::from_secs(200);

/// What becomes of an order to delete a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is to be deleted.
    Due,
    /// The order is older than the last registration, or has waited for too long: a report since then may have named the
    /// replica, and another one may be deleted on its account.
    Void,
    /// There is none: the NameNode is told of none on any storage, or it would go on ordering.
    Absent,
    /// There is one with another stamp, which the NameNode did not mean.
    Other,
}

impl Deletion {
    /// Of what is `here`, when the replica with stamp `gs` is to be deleted.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#invalidate`. Deviation: Hadoop tells of no replica that is not there
    /// before the next full report.
    pub fn of(here: Option<&Replica>, gs: GenerationStamp, is_current: bool) -> Deletion {
        match here {
            _ if !is_current => Deletion::Void,
            None => Deletion::Absent,
            Some(replica) if replica.gs() != gs => Deletion::Other,
            Some(_) => Deletion::Due,
        }
    }
}

impl Replica {
    /// What the NameNode is told of it when it has ordered to delete one with another stamp; the next full report
    /// tells of others.
    pub fn told_when_kept(&self) -> Option<ReplicaEvent> {
        let event = match self.place() {
            ReplicaState::Finalized => Event::Received { crc32c: None, delete_hint: None },
            ReplicaState::Rbw => Event::Receiving,
            ReplicaState::Rwr | ReplicaState::Rur | ReplicaState::Temporary => return None,
        };
        Some(ReplicaEvent { gs: self.gs(), len: self.on_disk_len(), event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId(5);
    const GS: GenerationStamp = GenerationStamp(9);

    fn event(event: Event) -> ReplicaEvent {
        ReplicaEvent { gs: GS, len: 3, event }
    }

    fn received() -> ReplicaEvent {
        event(Event::Received { crc32c: None, delete_hint: None })
    }

    #[test]
    fn the_latest_event_counts_also_after_a_failed_report() {
        let mut untold = Untold::default();
        untold.note("DS-1", ID, event(Event::Receiving));
        let taken = std::mem::take(&mut untold);
        untold.note("DS-1", ID, event(Event::Deleted));
        untold.put_back(taken);
        let all: Vec<_> = untold.iter().collect();
        assert_eq!(all, [("DS-1", &BTreeMap::from([(ID, event(Event::Deleted))]))]);
    }

    #[test]
    fn a_replica_that_has_moved_is_told_of_in_one_place() {
        let mut untold = Untold::default();
        untold.note("DS-RAM", ID, received());
        let taken = std::mem::take(&mut untold);
        untold.note("DS-RAM", ID, received());
        untold.note("DS-DISK", ID, received());
        untold.put_back(taken);
        assert_eq!((untold.count_on("DS-RAM"), untold.count_on("DS-DISK")), (0, 1));
    }

    #[test]
    fn only_the_replica_that_was_meant_is_deleted() {
        let here = Replica::new(ID, GS, ReplicaState::Finalized, 3);
        assert_eq!(Deletion::of(Some(&here), GS, true), Deletion::Due);
        assert_eq!(Deletion::of(Some(&here), GS, false), Deletion::Void);
        assert_eq!(Deletion::of(Some(&here), GS.next(), true), Deletion::Other);
        assert_eq!(Deletion::of(None, GS, true), Deletion::Absent);
        assert_eq!(Deletion::of(None, GS, false), Deletion::Void);
    }

    #[test]
    fn what_is_told_of_a_replica_is_what_it_was_before_a_recovery() {
        let mut replica = Replica::new(ID, GS, ReplicaState::Rwr, 3);
        replica.init_recovery(GS, GS.next()).unwrap();
        let told = ReportedReplica { id: ID, len: 3, gs: GS, state: ReplicaState::Rwr };
        assert_eq!((replica.report(), replica.told_when_kept()), (Some(told), None));
        assert_eq!(Replica::new(ID, GS, ReplicaState::Temporary, 3).report(), None);
        let whole = Replica::new(ID, GS, ReplicaState::Finalized, 3);
        assert_eq!(whole.told_when_kept(), Some(received()));
    }
}
