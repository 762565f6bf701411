//! A world with three members, by a seed.

mod callers;
mod names;
mod nodes;

use cairn_namespace::store::memory::MemoryStore;
use cairn_quorum::{Ballot, Base, Entry, MemberId, Payload, Quorum, Reach, Ready, Role, Saved};
use callers::Callers;
use names::Names;
use nodes::Nodes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Time between two turns of a member, at least.
const TURN: Duration = Duration::from_millis(50);

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Known mistakes of whoever carries a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// What was written counts before it is on the disk.
    AnswerBeforeSync,
    /// Votes are not written.
    VoteForgotten,
    /// An emptied folder goes on under the number that it had.
    VoteAfterEmptied,
    /// The torn end of a log is cut off, and nobody is told.
    TornInSilence,
    /// What was torn counts as whole.
    TornApplied,
    /// The clock of leases counts turns.
    LeaseByTurns,
    /// Who has told another one to stand answers on by the lease that it had.
    LeaseAfterHandover,
    /// What was answered ahead is kept when what it was answered for is dropped.
    AnswerOfDropped,
    /// Who takes itself for the leader answers what needs no entry: refusals, repeated calls, reads.
    AnswerWithoutLease,
    /// DataNodes are told the last entry that was appended, and no term.
    ClaimByAppended,
    /// Who follows answers reads by what it has, whatever the client has seen.
    ReadUnseen,
    /// Others are told what is agreed on before the leader shows it.
    ShownElsewhere,
}

/// Numbers by a seed (splitmix64).
pub struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A write that is not on the disk yet.
struct Write {
    number: u64,
    ballot: Option<Ballot>,
    entries: Vec<Entry>,
    send_later: Vec<(MemberId, Vec<u8>)>,
}

struct Process {
    quorum: Quorum,
    writes: VecDeque<Write>,
    next_turn: Duration,
    /// It stands still until then.
    stopped_until: Duration,
    /// What it was told to have been agreed on: the place of the last, and how many values.
    agreed: u64,
    values: u64,
    turns: u32,
    /// The last lease that it has had, with its term.
    lease: Option<(u64, Duration)>,
    /// What clients wait for: term, place.
    waiting: Vec<(u64, u64)>,
    names: Names,
}

struct Place {
    id: MemberId,
    disk: Saved,
    /// Values up to the base of the disk.
    base_values: u64,
    /// The namespace there.
    names: MemoryStore,
    process: Option<Process>,
    starts_at: Duration,
    clock: Duration,
}

pub struct World {
    dice: Dice,
    mistake: Option<Mistake>,
    now: Duration,
    places: Vec<Place>,
    messages: Vec<(Duration, MemberId, Vec<u8>)>,
    /// Who is cut off from another, or from all others.
    cut_off: Option<(usize, Option<usize>, Duration)>,
    /// Everything agreed on, by place.
    agreed: BTreeMap<u64, Entry>,
    /// How many values are agreed on up to a place.
    values: BTreeMap<u64, u64>,
    /// The last place that a client was told of.
    told: u64,
    next_value: u64,
    next_id: u64,
    has_faults: bool,
    /// Who was cut off while it led, and is to lead again when it is back.
    comes_back: Option<(usize, Duration)>,
    /// Operators have others lead.
    pub hands_over: bool,
    /// Operators shut members out. No disk forgets anything then: with two that vote that would be lost for good.
    pub shuts_out: bool,
    /// Everybody has been a voter and has had all since a disk has last forgotten anything: only then may another one.
    is_whole: bool,
    /// Whether clients have files made, and DataNodes hear of it.
    pub has_names: bool,
    pub callers: Callers,
    pub nodes: Nodes,
    pub acknowledged: u64,
    pub reads: u64,
    pub torn: u64,
    pub emptied: u64,
    pub handed_over: u64,
    pub shut_out: u64,
}

impl World {
    pub fn new(seed: u64, mistake: Option<Mistake>) -> World {
        let mut dice = Dice(seed);
        let mut places: Vec<Place> = (0..3)
            .map(|at| Place {
                id: MemberId(at + 1),
                disk: Saved::default(),
                base_values: 0,
                names: names::founded(),
                process: None,
                starts_at: Duration::ZERO,
                clock: Duration::from_millis(dice.below(1 << 40)),
            })
            .collect();
        places[0].disk.base = Base::founded(MemberId(1), NAMES[0]);
        World {
            dice,
            mistake,
            now: Duration::from_secs(1),
            places,
            messages: Vec::new(),
            cut_off: None,
            agreed: BTreeMap::new(),
            values: [(1, 0)].into(),
            told: 0,
            next_value: 0,
            next_id: 3,
            has_faults: true,
            comes_back: None,
            hands_over: true,
            shuts_out: false,
            is_whole: false,
            has_names: false,
            callers: Callers::default(),
            nodes: Nodes::default(),
            acknowledged: 0,
            reads: 0,
            torn: 0,
            emptied: 0,
            handed_over: 0,
            shut_out: 0,
        }
    }

    fn clock(&self, at: usize) -> Duration {
        let place = &self.places[at];
        match (self.mistake, &place.process) {
            (Some(Mistake::LeaseByTurns), Some(process)) => TURN * process.turns,
            _ => self.now + place.clock,
        }
    }

    pub fn step(&mut self) -> Result<(), String> {
        self.now += Duration::from_micros(200 + self.dice.below(12_000));
        if self.has_faults {
            self.fault()?;
        }
        for at in 0..3 {
            self.start(at)?;
            self.turn(at);
            self.sync(at)?;
        }
        self.deliver()?;
        for at in 0..3 {
            self.work(at)?;
        }
        self.client()?;
        if self.has_names {
            let begins = self.dice.one_in(300);
            self.come_back(begins);
            self.call()?;
            self.heartbeat()?;
        }
        for at in 0..3 {
            self.work(at)?;
        }
        Ok(())
    }

    fn fault(&mut self) -> Result<(), String> {
        let at = self.dice.below(3) as usize;
        let until = self.now + Duration::from_millis(self.dice.below(3000));
        if self.dice.one_in(300) {
            let soon = self.now + Duration::from_millis(20);
            let until = if self.dice.one_in(2) { soon } else { until };
            self.kill(at, until);
        } else if self.dice.one_in(300) {
            if let Some(process) = &mut self.places[at].process {
                process.stopped_until = until;
            }
        } else if self.dice.one_in(300) {
            let other = (at + 1 + self.dice.below(2) as usize) % 3;
            let other = Some(other).filter(|_| self.dice.one_in(2));
            self.cut_off = Some((at, other, until));
        } else if self.dice.one_in(1500) {
            // All lose their power at once.
            (0..3).for_each(|at| self.kill(at, self.now));
        } else if self.hands_over && self.dice.one_in(100) {
            self.hand_over(at)?;
        } else if self.shuts_out && self.dice.one_in(60) {
            self.shut_out(at);
        } else if self.is_sound() && self.dice.one_in(300) {
            self.empty(at, until);
        } else if self.is_sound() && self.dice.one_in(300) {
            self.rot(at, until);
        }
        Ok(())
    }

    /// An operator has somebody else lead. Now and then who has led hears nothing of what comes of that.
    fn hand_over(&mut self, at: usize) -> Result<(), String> {
        if !self.is_running(at) {
            return Ok(());
        }
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        self.handed_over += u64::from(match process.quorum.role() {
            Role::Leader { .. } => process.quorum.hand_over(|_| true).is_some(),
            Role::Follower => process.quorum.ask_for_lead(),
        });
        self.work(at)?;
        if self.dice.one_in(3) {
            self.cut_off = Some((at, None, self.now + 10 * TURN));
        }
        Ok(())
    }

    /// An operator shuts somebody out, or lets somebody in again.
    fn shut_out(&mut self, at: usize) {
        let whom = NAMES[self.dice.below(3) as usize];
        let is_in = self.dice.one_in(2);
        if !self.is_running(at) {
            return;
        }
        if let Some(process) = &mut self.places[at].process {
            let changed = match is_in {
                true => process.quorum.let_in(whom),
                false => process.quorum.shut_out(whom),
            };
            self.shut_out += u64::from(changed.is_ok());
        }
    }

    /// Without faults everybody is let in again.
    fn let_in(&mut self) {
        for process in self.places.iter_mut().filter_map(|place| place.process.as_mut()) {
            for name in NAMES {
                // Nobody but a leader can, and most are in.
                let _ = process.quorum.let_in(name);
            }
        }
    }

    /// Whether a disk may forget something: what two forget nobody may have any more, and then nothing is agreed on again
    /// without an operator.
    fn is_sound(&self) -> bool {
        self.is_whole
            && !self.shuts_out
            && self.places.iter().all(|place| place.disk.ballot.lost.is_none())
    }

    /// Ends a process and cuts its power: of what was not synced some is there, and the next piece is torn.
    fn kill(&mut self, at: usize, until: Duration) {
        let place = &mut self.places[at];
        let Some(process) = place.process.take() else { return };
        let mut writes = process.writes;
        let mut kept = self.dice.below(writes.len() as u64 + 1);
        while kept > 0 {
            kept -= 1;
            if let Some(write) = writes.pop_front() {
                put(&mut place.disk, &write, self.mistake);
            }
        }
        let may_tear = self.is_whole && !self.shuts_out;
        let is_torn = |write: &&Write| may_tear && !write.entries.is_empty();
        if let Some(torn) = writes.front().filter(is_torn) {
            let last = torn.entries.last().map(reach);
            let first = torn.entries[0].index;
            let keeps = self.dice.below(torn.entries.len() as u64);
            let mut entries = torn.entries[..keeps as usize].to_vec();
            if self.mistake == Some(Mistake::TornApplied) {
                entries.extend(torn.entries.get(keeps as usize).map(half));
            }
            // What was there before is not touched by a log that only grows.
            if first == place.disk.base.index + place.disk.entries.len() as u64 + 1 {
                place.disk.entries.extend(entries);
                let is_told = [Mistake::TornInSilence, Mistake::TornApplied];
                if self.mistake.is_none_or(|mistake| !is_told.contains(&mistake)) {
                    place.disk.ballot.lost = last.map(|last| last.or(place.disk.ballot.lost));
                }
                self.torn += 1;
            }
        }
        place.starts_at = until;
    }

    /// Bits of the last entries rot, which is found at the next start: they may have been acknowledged.
    fn rot(&mut self, at: usize, until: Duration) {
        self.kill(at, until);
        let place = &mut self.places[at];
        if place.disk.entries.len() < 2 {
            return;
        }
        let last = place.disk.entries.last().map(reach);
        let gone = 1 + self.dice.below(2) as usize;
        place.disk.entries.truncate(place.disk.entries.len() - gone);
        if self.mistake != Some(Mistake::TornInSilence) {
            place.disk.ballot.lost = last.map(|last| last.or(place.disk.ballot.lost));
        }
        self.torn += 1;
        self.is_whole = false;
    }

    fn empty(&mut self, at: usize, until: Duration) {
        self.kill(at, until);
        let place = &mut self.places[at];
        let base = Base { members: place.disk.base.members.clone(), ..Base::default() };
        place.disk = Saved::default();
        place.base_values = 0;
        place.names = names::founded();
        if self.mistake == Some(Mistake::VoteAfterEmptied) {
            place.disk.base = base;
        } else {
            self.next_id += 1;
            place.id = MemberId(self.next_id);
        }
        self.emptied += 1;
        self.is_whole = false;
    }

    fn start(&mut self, at: usize) -> Result<(), String> {
        if self.places[at].process.is_some() || self.places[at].starts_at > self.now {
            return Ok(());
        }
        let clock = match self.mistake {
            Some(Mistake::LeaseByTurns) => Duration::ZERO,
            _ => self.now + self.places[at].clock,
        };
        let place = &mut self.places[at];
        let quorum =
            Quorum::open(place.id, &place.disk, TURN, clock).map_err(|error| format!("{error}"))?;
        place.process = Some(Process {
            agreed: place.disk.base.index,
            values: place.base_values,
            quorum,
            writes: VecDeque::new(),
            next_turn: self.now,
            stopped_until: Duration::ZERO,
            turns: 0,
            lease: None,
            waiting: Vec::new(),
            names: Names::open(&place.names),
        });
        Ok(())
    }

    fn is_running(&self, at: usize) -> bool {
        let process = self.places[at].process.as_ref();
        process.is_some_and(|process| process.stopped_until <= self.now)
    }

    fn turn(&mut self, at: usize) {
        if !self.is_running(at) {
            return;
        }
        let (dice, clock) = (self.dice.next() as u32, self.clock(at));
        let extra = Duration::from_micros(self.dice.below(10_000));
        let present: BTreeMap<String, MemberId> = (0..3)
            .filter(|other| self.places[*other].process.is_some())
            .map(|other| (NAMES[other].to_string(), self.places[other].id))
            .collect();
        let now = self.now;
        let Some(process) = &mut self.places[at].process else { return };
        if process.next_turn <= now {
            process.turns += 1;
            process.quorum.tick(clock, dice);
            process.next_turn = now + TURN + extra;
        }
        if let Some(change) = process.quorum.next_change(&present) {
            let _ = process.quorum.change(&change);
        }
    }

    /// The disk gets on.
    fn sync(&mut self, at: usize) -> Result<(), String> {
        if !self.is_running(at) || self.dice.one_in(3) {
            return Ok(());
        }
        let place = &mut self.places[at];
        let Some(process) = &mut place.process else { return Ok(()) };
        let Some(write) = process.writes.pop_front() else { return Ok(()) };
        put(&mut place.disk, &write, self.mistake);
        process.quorum.persisted(write.number);
        self.post(at, write.send_later);
        self.work(at)
    }

    fn post(&mut self, from: usize, messages: Vec<(MemberId, Vec<u8>)>) {
        for (to, bytes) in messages {
            let is_lost = self.has_faults && self.dice.one_in(30);
            let is_cut = self.cut_off.is_some_and(|(at, other, until)| {
                let of = |other: usize| {
                    at == from && self.places[other].id == to
                        || other == from && self.places[at].id == to
                };
                until > self.now && other.map_or_else(|| (0..3).any(of), of)
            });
            if is_lost || is_cut {
                continue;
            }
            let slow = if self.has_faults && self.dice.one_in(30) { 2_000_000 } else { 5_000 };
            let copies = if self.has_faults && self.dice.one_in(30) { 2 } else { 1 };
            for _ in 0..copies {
                let late = Duration::from_micros(self.dice.below(slow));
                self.messages.push((self.now + late, to, bytes.clone()));
            }
        }
    }

    fn deliver(&mut self) -> Result<(), String> {
        let now = self.now;
        let mut due = Vec::new();
        self.messages.retain(|(when, to, bytes)| {
            if *when <= now {
                due.push((*to, bytes.clone()));
            }
            *when > now
        });
        for (to, bytes) in due {
            let Some(at) = (0..3).find(|at| self.places[*at].id == to) else { continue };
            if !self.is_running(at) {
                continue;
            }
            let clock = self.clock(at);
            if let Some(process) = &mut self.places[at].process {
                process.quorum.step(clock, &bytes).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Does what members say.
    fn work(&mut self, at: usize) -> Result<(), String> {
        if !self.is_running(at) {
            return Ok(());
        }
        loop {
            let Some(process) = &mut self.places[at].process else { return Ok(()) };
            let Some(ready) = process.quorum.ready() else { break };
            let Ready { number, send_now, ballot, entries, send_later, committed, .. } = ready;
            self.post(at, send_now);
            let write = Write { number, ballot, entries, send_later };
            let Some(process) = &mut self.places[at].process else { return Ok(()) };
            if self.mistake == Some(Mistake::AnswerBeforeSync) {
                process.quorum.persisted(number);
                let later = write.send_later.clone();
                process.writes.push_back(Write { send_later: Vec::new(), ..write });
                self.post(at, later);
            } else {
                process.writes.push_back(write);
            }
            for entry in committed {
                self.agree(at, entry)?;
            }
        }
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        if process.quorum.role() == Role::Follower {
            process.waiting.clear();
        }
        if self.has_names {
            self.answer(at)?;
        }
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        let needs_all = process.quorum.base().index == 0;
        if process.quorum.is_behind() || needs_all {
            self.fetch(at);
        }
        self.compact(at);
        Ok(())
    }

    fn show_at_once(&mut self, at: usize) {
        if self.mistake == Some(Mistake::ShownElsewhere)
            && let Some(process) = &mut self.places[at].process
        {
            process.quorum.shown(process.quorum.term(), u64::MAX);
        }
    }

    fn agree(&mut self, at: usize, entry: Entry) -> Result<(), String> {
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        if entry.index != process.agreed + 1 {
            return Err(format!("{at} was told of {} after {}", entry.index, process.agreed));
        }
        process.agreed = entry.index;
        process.values +=
            u64::from(matches!(&entry.payload, Payload::Data(data) if !data.is_empty()));
        if self.has_names {
            callers::take(&mut process.names, &entry)?;
        }
        let is_new = !self.agreed.contains_key(&entry.index);
        let known = self.agreed.entry(entry.index).or_insert_with(|| entry.clone());
        if *known != entry {
            return Err(format!("{at} was told of {entry:?}, others of {known:?}"));
        }
        if is_new && self.has_names && callers::named(&entry).is_some() {
            self.callers.agreed(&entry)?;
        }
        let values = *self.values.entry(entry.index).or_insert(process.values);
        if values != process.values {
            return Err(format!(
                "{at} has {} values at {}, not {values}",
                process.values, entry.index
            ));
        }
        let is_waited_for =
            |(term, index): &(u64, u64)| (*term, *index) == (entry.term, entry.index);
        process.quorum.shown(entry.term, entry.index);
        if process.waiting.iter().any(is_waited_for) {
            process.waiting.retain(|waiting| !is_waited_for(waiting));
            self.told = self.told.max(entry.index);
            self.acknowledged += 1;
        }
        Ok(())
    }

    /// Gets a snapshot of who leads.
    fn fetch(&mut self, at: usize) {
        let found =
            (0..3).filter(|other| *other != at && self.is_running(*other)).find_map(|other| {
                let process = self.places[other].process.as_ref()?;
                let leads = process.quorum.role() != Role::Follower;
                let base = process.quorum.base().clone();
                let place = &self.places[other];
                leads.then(|| (base, place.base_values, place.names.clone()))
            });
        let Some((base, values, names)) = found else { return };
        let place = &mut self.places[at];
        let Some(process) = &mut place.process else { return };
        // It is put in its place with nothing else on the way to the disk.
        if !process.writes.is_empty() || !process.quorum.needs(&base) {
            return;
        }
        place.disk = Saved { base, entries: Vec::new(), ballot: place.disk.ballot };
        (place.base_values, place.names) = (values, names);
        place.process = None;
        place.starts_at = self.now;
    }

    /// Forgets the front of the log now and then.
    fn compact(&mut self, at: usize) {
        if !self.dice.one_in(400) {
            return;
        }
        let place = &mut self.places[at];
        let Some(process) = &mut place.process else { return };
        let upto = process.agreed.saturating_sub(self.dice.below(20));
        let Some(values) = self.values.get(&upto).copied() else { return };
        let last = place.disk.base.index + place.disk.entries.len() as u64;
        if upto > last {
            return;
        }
        if let Some(base) = process.quorum.compact(upto) {
            let from = place.disk.base.index;
            place.disk.entries.drain(..(base.index - from) as usize);
            place.disk.base = base;
            place.base_values = values;
            self.advance_names(at, from, upto);
        }
    }

    /// Clients write and read where they think they are served.
    fn client(&mut self) -> Result<(), String> {
        let at = self.dice.below(3) as usize;
        if !self.is_running(at) {
            return Ok(());
        }
        let (clock, reads) = (self.clock(at), self.dice.one_in(2));
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        if process.quorum.role() != (Role::Leader { is_ready: true }) {
            return Ok(());
        }
        if !reads {
            self.next_value += 1;
            let value = self.next_value.to_le_bytes().to_vec();
            if let Ok(place) = process.quorum.propose(value) {
                process.waiting.push(place);
            }
            self.show_at_once(at);
            return Ok(());
        }
        let term = process.quorum.term();
        let lease = match (process.quorum.lease(clock), self.mistake) {
            (None, Some(Mistake::LeaseAfterHandover)) => {
                process.lease.filter(|(of, _)| *of == term)
            }
            (lease, _) => lease.map(|until| (term, until)),
        };
        process.lease = lease;
        if lease.is_some_and(|(_, until)| until > clock) {
            self.reads += 1;
            if process.agreed < self.told {
                return Err(format!("{at} reads at {}, {} was told of", process.agreed, self.told));
            }
        }
        self.note_whole();
        Ok(())
    }

    fn note_whole(&mut self) {
        let told = self.told;
        let has_all = |place: &Place| {
            let process = place.process.as_ref();
            process.is_some_and(|process| {
                let has_voters = process.quorum.members().voters().count() == 3;
                has_voters
                    && process.quorum.members().is_voter(place.id)
                    && !process.quorum.has_lost()
            }) && place.disk.base.index + place.disk.entries.len() as u64 >= told
        };
        self.is_whole |= self.places.iter().all(has_all);
    }

    pub fn highest_term(&self) -> u64 {
        self.agreed.values().map(|entry| entry.term).max().unwrap_or(0)
    }

    /// Without faults, all agree on something new before long.
    pub fn heal_and_agree(&mut self) -> Result<(), String> {
        self.has_faults = false;
        self.cut_off = None;
        for place in &mut self.places {
            place.starts_at = Duration::ZERO;
            if let Some(process) = &mut place.process {
                process.stopped_until = Duration::ZERO;
            }
        }
        let before = self.acknowledged;
        self.is_whole = false;
        for _ in 0..6000 {
            self.step()?;
            self.let_in();
            self.note_whole();
            let ends = self.places.iter().filter_map(|place| place.process.as_ref());
            let ends: Vec<u64> = ends.map(|process| process.agreed).collect();
            if self.is_whole
                && self.acknowledged > before + 10
                && ends.iter().all(|end| *end > self.told - 5)
            {
                return Ok(());
            }
        }
        let of = |place: &Place| {
            let quorum = &place.process.as_ref().expect("all run").quorum;
            (
                quorum.me(),
                quorum.role(),
                quorum.term(),
                quorum.last_committed(),
                quorum.has_lost(),
                quorum.members().clone(),
            )
        };
        Err(format!("they do not agree: {:?}", self.places.iter().map(of).collect::<Vec<_>>()))
    }
}

/// What is left of an entry that was torn.
fn half(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Payload::Data(data) = &mut entry.payload {
        data.truncate(data.len() / 2);
    }
    entry
}

fn reach(entry: &Entry) -> Reach {
    Reach { term: entry.term, index: entry.index }
}

fn put(disk: &mut Saved, write: &Write, mistake: Option<Mistake>) {
    if let Some(ballot) = write.ballot {
        disk.ballot = match mistake {
            Some(Mistake::VoteForgotten) => Ballot { term: disk.ballot.term, vote: None, ..ballot },
            _ => ballot,
        };
    }
    if let Some(first) = write.entries.first() {
        let kept = first.index.saturating_sub(disk.base.index + 1) as usize;
        disk.entries.truncate(kept);
        disk.entries.extend(write.entries.iter().cloned());
    }
}
