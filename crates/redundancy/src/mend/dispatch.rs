//! What a node is told with its heartbeat. Work is looked at once more when it is handed out: since it
//! was queued, the unit may have come back, a source may have gone bad, a target may have died.
//!
//! Source: Hadoop 3.5.0 `DatanodeManager#handleHeartbeat`. Deviation: Hadoop hands out what was right
//! when it was queued; urgent work has streams of its own, which other copies do not use up.

use super::schedule::{Targets, left_alone};
use crate::block::{BlockFacts, BlockLookup, BlockRef, BlockState};
use crate::clock::Now;
use crate::cluster::Cluster;
use crate::command::Order;
use crate::command::{Command, GroupRebuild, Reconstruction, Transfer};
use crate::handle::{NodeHandle, StorageHandle};
use crate::places::map::Place;
use crate::slots::Slots;
use crate::work::outbox::{Outbox, Waiting};
use crate::work::pending::Task;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;

/// Streams that a node has left for work.
#[derive(Clone, Copy)]
struct Room {
    ordinary: usize,
    urgent: usize,
}

impl Room {
    /// Takes a stream, if there is one for such work. Urgent work does not wait for ordinary work, but
    /// ordinary work waits for both.
    fn take(&mut self, is_urgent: bool) -> bool {
        let taken = self.ordinary > 0 || is_urgent && self.urgent > 0;
        self.ordinary = self.ordinary.saturating_sub(1);
        self.urgent = self.urgent.saturating_sub(usize::from(is_urgent));
        taken
    }
}

/// A heartbeat that is answered.
#[derive(Clone, Copy)]
struct Beat<'a> {
    lookup: &'a dyn BlockLookup,
    worker: NodeHandle,
    now: Now,
}

/// Where units or replicas do not go any more.
type Dropped = Vec<(BlockId, Vec<(StorageHandle, UnitIndex)>)>;

impl Cluster {
    /// The recoveries that a node is to lead, but for those that would give another stamp to what a group needs as it is.
    fn take_recoveries(&mut self, handle: NodeHandle) -> Option<Command> {
        let mut outbox = self.work.take_outbox(handle)?;
        let (held, due): (Vec<_>, Vec<_>) = std::mem::take(&mut outbox.recoveries)
            .into_iter()
            .partition(|recovery| self.groups.is_any_lent(recovery.block.id));
        outbox.recoveries = held;
        self.work.put_back(handle, outbox);
        (!due.is_empty()).then_some(Command::Recover(due))
    }

    /// The commands for a node's heartbeat.
    pub(crate) fn take_commands(
        &mut self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        now: Now,
    ) -> Vec<Command> {
        if self.safe_mode.holds_work() {
            // Without the groups that parities tell of it may never end.
            let proves = self.take_questions(handle);
            let is_any = !proves.is_empty();
            let questions = is_any.then_some(Command::Prove(proves));
            // What is still written is settled: who waits for that to be recovered does not wait for the rest.
            let is_served = !self.safe_mode.is_on();
            let recoveries = is_served.then(|| self.take_recoveries(handle)).flatten();
            return questions.into_iter().chain(recoveries).collect();
        }
        let beat = Beat { lookup, worker: handle, now };
        self.work.forget_reads(handle);
        let mut commands: Vec<Command> = self.take_recoveries(handle).into_iter().collect();
        if let Some(mut outbox) = self.work.take_outbox(handle) {
            let mut dropped = Vec::new();
            let mut room = self.room(handle, &mut outbox);
            let Outbox { transfers, reconstructions, rebuilds, urgent, .. } = &mut outbox;
            let transfers =
                self.take_work(transfers, urgent, (&mut room, &mut dropped), |work: &Transfer| {
                    self.still_to_copy(beat, work)
                });
            let decodes = self.take_work(
                reconstructions,
                urgent,
                (&mut room, &mut dropped),
                |work: &Reconstruction| self.still_to_decode(beat, work),
            );
            let rebuilt = self.take_work(
                rebuilds,
                urgent,
                (&mut room, &mut dropped),
                |work: &GroupRebuild| self.still_to_rebuild(beat, work),
            );
            self.note_reads(lookup, &decodes);
            for (id, targets) in transfers
                .iter()
                .map(|work| (work.group(), work.arrivals()))
                .chain(decodes.iter().map(|work| (work.group(), work.arrivals())))
                .chain(rebuilt.iter().map(|work| (work.group(), work.arrivals())))
            {
                self.work.sent(id, &targets, now);
            }
            if !transfers.is_empty() {
                commands.push(Command::Transfer(transfers));
            }
            if !decodes.is_empty() {
                commands.push(Command::Reconstruct(decodes));
            }
            if !rebuilt.is_empty() {
                commands.push(Command::Rebuild(rebuilt));
            }
            let encodes = self.still_to_encode(handle, std::mem::take(&mut outbox.encodes));
            if !encodes.is_empty() {
                commands.push(Command::Encode(encodes));
            }
            let packs = self.still_to_pack(handle, std::mem::take(&mut outbox.packs));
            if !packs.is_empty() {
                commands.push(Command::Pack(packs));
            }
            let unpacks = self.still_to_unpack(lookup, std::mem::take(&mut outbox.unpacks));
            if !unpacks.is_empty() {
                commands.push(Command::Unpack(unpacks));
            }
            let proves = self.still_to_prove(std::mem::take(&mut outbox.proves));
            if !proves.is_empty() {
                commands.push(Command::Prove(proves));
            }
            let retired = std::mem::take(&mut outbox.retired);
            if !retired.is_empty() {
                commands.push(Command::Retire(retired));
            }
            commands.extend(outbox.bandwidth.take().map(Command::BalancerBandwidth));
            self.work.put_back(handle, outbox);
            for (id, targets) in dropped {
                self.work.give_up(id, |task| {
                    !task.is_sent && targets.contains(&(task.storage, task.unit))
                });
                self.check_redundancy(lookup, id);
            }
        }
        self.revoke_surplus(lookup, handle, now);
        self.keep_of_packed(lookup, handle, now);
        let invalid = self.take_invalidations(handle, now);
        if !invalid.is_empty() {
            commands.push(Command::Invalidate(invalid));
        }
        commands.extend(self.take_cache_orders(handle, now));
        commands
    }

    fn room(&self, handle: NodeHandle, outbox: &mut Outbox) -> Room {
        let node = self.node(handle);
        let hard = self.config.max_streams_hard;
        let streams = if node.is_leaving() { hard } else { self.config.max_streams };
        let is_running = |id: &BlockId| {
            let tasks = self.work.coming(*id);
            tasks.iter().any(|task| task.worker == Some(handle) && task.is_sent)
        };
        outbox.urgent.retain(is_running);
        Room {
            ordinary: streams.saturating_sub(usize::try_from(node.xmits).unwrap_or(usize::MAX)),
            urgent: hard.saturating_sub(outbox.urgent.len()),
        }
    }

    /// Counts the reads that reconstructions will do, so that the next ones read elsewhere.
    fn note_reads(&mut self, lookup: &dyn BlockLookup, works: &[Reconstruction]) {
        for work in works {
            let read = lookup.block(work.group.id).map_or(0, |facts| facts.data_units());
            for (storage, _) in work.sources.iter().take(read) {
                self.work.add_read(self.storage(*storage).node);
            }
        }
    }

    /// Hands out the work of one kind that `still` finds to be right, as it is by now.
    fn take_work<W: Order>(
        &self,
        queue: &mut Vec<Waiting<W>>,
        urgent: &mut BTreeSet<BlockId>,
        (room, dropped): (&mut Room, &mut Dropped),
        still: impl Fn(&W) -> Option<W>,
    ) -> Vec<W> {
        let mut taken = Vec::new();
        take_waiting(queue, room, |waiting| {
            let id = waiting.work.group();
            let work = still(&waiting.work);
            let awaited = work.as_ref().map_or_else(Vec::new, Order::arrivals);
            let mut lost = waiting.work.arrivals();
            lost.retain(|target| !awaited.contains(target));
            if !lost.is_empty() {
                dropped.push((id, lost));
            }
            let Some(work) = work else { return false };
            if waiting.is_urgent {
                urgent.insert(id);
            }
            taken.push(work);
            true
        });
        taken
    }

    fn facts_of_order(&self, lookup: &dyn BlockLookup, order: &BlockRef) -> Option<BlockFacts> {
        let facts = lookup.block(order.id.group())?;
        (facts.state == BlockState::Complete && facts.gs == order.gs).then_some(facts)
    }

    /// Whether a target still waits for it, and lives.
    fn is_awaited(
        &self,
        worker: NodeHandle,
        id: BlockId,
        target: (StorageHandle, UnitIndex),
    ) -> bool {
        let is_task = |task: &Task| {
            (task.storage, task.unit) == target && task.worker == Some(worker) && !task.is_sent
        };
        self.node(self.storage(target.0).node).alive && self.work.coming(id).iter().any(is_task)
    }

    /// The copy as it should be by now, if at all.
    fn still_to_copy(&self, beat: Beat<'_>, work: &Transfer) -> Option<Transfer> {
        let Beat { lookup, worker, .. } = beat;
        let (id, unit) = work.slot;
        let facts = self.facts_of_order(lookup, &work.block)?;
        let slots = Slots::of(lookup, id, &lookup.block(id)?);
        // A block may have come into a group, or out of one, since.
        let slots = match slots.id == id {
            true => slots,
            false if slots.is_dissolving => Slots::alone(id, &facts),
            false => return None,
        };
        let is_source = |place: Place| {
            let own = self.storage(place.storage).node == worker;
            own && place.unit == unit && !place.corrupt && !place.excess
        };
        let is_there = self.places_of(&slots).any(is_source);
        let need = self.need_of(id, &slots.facts, &self.tally_of(&slots));
        if !is_there || !need.wants_copy(unit) {
            return None;
        }
        let awaited = |s: &StorageHandle| self.is_awaited(worker, id, (*s, unit));
        let targets: Vec<StorageHandle> = work.targets.iter().copied().filter(awaited).collect();
        (!targets.is_empty()).then(|| Transfer { targets, ..work.clone() })
    }

    /// The reconstruction as it should be by now, if at all.
    fn still_to_decode(&self, beat: Beat<'_>, work: &Reconstruction) -> Option<Reconstruction> {
        let (lookup, id) = (beat.lookup, work.group.id);
        let facts = self.facts_of_order(lookup, &work.group)?;
        let (sources, targets) = self.still_to_bring(beat, &Slots::alone(id, &facts), work)?;
        Some(Reconstruction {
            excluded_units: left_alone(&facts, &sources, &targets),
            sources,
            targets,
            ..*work
        })
    }

    /// The same of units of a contiguous group.
    fn still_to_rebuild(&self, beat: Beat<'_>, work: &GroupRebuild) -> Option<GroupRebuild> {
        let facts = self.facts_of_order(beat.lookup, &work.group)?;
        let slots = Slots::of(beat.lookup, work.group.id, &facts);
        let (sources, targets) = self.still_to_bring(beat, &slots, work)?;
        Some(GroupRebuild { sources, targets, ..*work })
    }

    /// From where which units are to be decoded, and where each goes, if any is lacking still.
    fn still_to_bring(
        &self,
        beat: Beat<'_>,
        slots: &Slots,
        work: &impl Order,
    ) -> Option<(Targets, Targets)> {
        let Beat { worker, now, .. } = beat;
        let tally = self.tally_of(slots);
        let mut targets = work.arrivals();
        targets.retain(|(storage, unit)| {
            self.is_awaited(worker, slots.id, (*storage, *unit)) && !tally.is_live(*unit)
        });
        let sources = self.sources_of(slots, worker, &targets, now);
        let possible = sources.len() >= slots.facts.data_units() && !targets.is_empty();
        possible.then_some((sources, targets))
    }
}

/// Hands out what there is room for, urgent work first; `take` says whether it was still to be done.
fn take_waiting<T>(
    queue: &mut Vec<Waiting<T>>,
    room: &mut Room,
    mut take: impl FnMut(&Waiting<T>) -> bool,
) {
    queue.sort_by_key(|waiting| !waiting.is_urgent);
    queue.retain(|waiting| {
        let before = *room;
        if !room.take(waiting.is_urgent) {
            return true;
        }
        if !take(waiting) {
            *room = before;
        }
        false
    });
}
