//! Machines, who agrees between them, and what must be.

use super::machine::{Machine, Runs, founded};
use crate::disk::power::{Dice, Lie};
use crate::journal::agree::{self, Agree, Agreement, NotAgreed};
use crate::journal::follower::FollowError;
use crate::journal::frame::FrameBuilder;
use crate::journal::offline::check_folder;
use crate::journal::record::{self, Record};
use crate::journal::tests::entry;
use crate::journal::{OpenError, SubmitError};
use cairn_namespace::store::StoreTxn;
use cairn_namespace::store::conformance::{Records, dump};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{CallId, Entry, Outcome, Times, apply};
use cairn_process::held::held;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// What is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Who loses the lead keeps the answers of what was not agreed on.
    KeepsAnswers,
    /// What an entry has done is not what its command does, as where two builds differ.
    OtherCommand,
    /// What an entry has done is something else at one member.
    OtherChanges,
    /// A snapshot counts before its files are synced.
    HalfSnapshot,
    /// Who leads goes by its own clock, wherever the one before it was.
    ClockGoesBack,
}

const MACHINES: usize = 3;
const BEGIN_MS: u64 = 4_000_000_000_000;

/// What becomes of the next group.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Agreed,
    /// The lead is lost, and it with that.
    Dropped,
    /// The lead is lost as it is agreed on, and nobody is told.
    AgreedAndLost,
}

/// Those who agree.
#[derive(Default)]
struct Quorum {
    groups: Mutex<Vec<Vec<u8>>>,
    next: Mutex<Next>,
}

impl Agree for Quorum {
    fn agree(&self, group: Vec<u8>) -> Result<(), NotAgreed> {
        let next = std::mem::take(&mut *held(&self.next));
        if !matches!(next, Next::Dropped) {
            held(&self.groups).push(group);
        }
        if matches!(next, Next::Agreed) { Ok(()) } else { Err(NotAgreed("it is lost".to_string())) }
    }

    fn shown(&self, _: u64) {}

    fn logged(&self, _last: u64) {}

    fn stored(&self, _last: u64) {}
}

/// The state that commands alone come to, after each entry.
struct Model {
    store: MemoryStore,
    last: u64,
    states: BTreeMap<u64, Records>,
    calls: BTreeSet<i32>,
    times: Times,
}

impl Model {
    fn new(last: u64, records: Records) -> Model {
        let mut store = MemoryStore::new();
        for (table, key, value) in &records {
            store.put(*table, key, value).unwrap();
        }
        let (states, times) = (BTreeMap::from([(last, records)]), Times::default());
        Model { store, last, states, calls: BTreeSet::new(), times }
    }

    fn take(&mut self, entry: &Entry) -> Result<Outcome, String> {
        let times = entry.times();
        if self.times.max(times) != times {
            return Err(format!("time goes back from {:?} to {times:?}", self.times));
        }
        self.times = times;
        self.last += 1;
        let applied = apply(&mut self.store, entry);
        let (answer, _) = applied.map_err(|error| format!("entry {}: {error}", self.last))?;
        self.states.insert(self.last, dump(&self.store));
        if let Some(call) = entry.once()
            && !self.calls.insert(call.call_id)
        {
            return Err(format!("call {} is in two entries", call.call_id));
        }
        Ok(answer)
    }

    fn check(&self, who: &str, last: u64, state: &Records) -> Result<(), String> {
        match self.states.get(&last) {
            Some(wanted) if wanted == state => Ok(()),
            Some(wanted) => {
                let other = wanted.iter().filter(|record| !state.contains(record));
                let found = state.iter().filter(|record| !wanted.contains(record));
                let (other, found) = (other.collect::<Vec<_>>(), found.collect::<Vec<_>>());
                Err(format!(
                    "{who} has something else than the commands say at entry {last}: {found:?} for {other:?}"
                ))
            }
            None => Err(format!("{who} has entry {last}, and {} was the last", self.last)),
        }
    }
}

/// Machines that agree.
pub struct World {
    dice: Dice,
    mistake: Option<Mistake>,
    now_ms: u64,
    machines: Vec<Machine>,
    /// What each has said that its store's file has.
    stored: [u64; MACHINES],
    quorum: Arc<Quorum>,
    /// Groups that the model has.
    modelled: usize,
    /// Entries up to there are in snapshots only.
    base: u64,
    model: Model,
    number: u64,
    /// Calls without an answer.
    open: Vec<u64>,
    files: TempDir,
    pub answered: u64,
    pub dropped: u64,
    pub installed: u64,
    pub led: u64,
}

impl World {
    pub fn new(seed: u64, mistake: Option<Mistake>) -> World {
        let mut dice = Dice::new(seed);
        let (files, path, last, records) = founded();
        let machines: Vec<Machine> =
            (0..MACHINES).map(|_| Machine::new(&path, &mut dice)).collect();
        if mistake == Some(Mistake::HalfSnapshot) {
            machines.iter().for_each(|machine| machine.disk.lie(Lie::Files("snapshot.tmp")));
        }
        World {
            dice,
            mistake,
            now_ms: BEGIN_MS,
            machines,
            stored: [last; MACHINES],
            quorum: Arc::default(),
            modelled: 0,
            base: last,
            model: Model::new(last, records),
            number: 0,
            open: Vec::new(),
            files,
            answered: 0,
            dropped: 0,
            installed: 0,
            led: 0,
        }
    }

    pub fn cuts(&self) -> u64 {
        self.machines.iter().map(|machine| machine.disk.cuts()).sum()
    }

    fn leader(&self) -> Option<usize> {
        self.machines.iter().position(|machine| matches!(machine.runs, Runs::Leads(_)))
    }

    pub fn step(&mut self) -> Result<(), String> {
        self.now_ms += self.dice.below(5000);
        if self.dice.once_in(8) {
            let (at, steps) = (self.dice.below(3) as usize, self.dice.below(60));
            self.machines[at].disk.fail_after(steps);
        }
        if self.dice.once_in(20) {
            let at = self.dice.below(3) as usize;
            self.machines[at].wall_ahead_ms = self.dice.below(1 << 28) as i64 - (1 << 27);
        }
        for at in 0..MACHINES {
            if self.dice.once_in(3) {
                self.machine_goes_on(at)?;
            }
        }
        match self.leader() {
            Some(leader) if self.dice.once_in(12) => {
                // Somebody else may lead next.
                self.machines[leader].stop(false);
            }
            Some(leader) => self.lead_goes_on(leader)?,
            None => self.somebody_leads()?,
        }
        Ok(())
    }

    /// A machine starts, or takes what was agreed on.
    fn machine_goes_on(&mut self, at: usize) -> Result<(), String> {
        match &mut self.machines[at].runs {
            Runs::Leads(_) => Ok(()),
            Runs::Nothing => {
                if self.machines[at].disk.is_off() {
                    self.machines[at].disk.come_back(&mut self.dice);
                }
                let followed = self.machines[at].follow();
                self.went(at, followed)?;
                self.check(at)?;
                let has = self.machines[at].state().map(|(last, _)| last);
                if has.is_some_and(|last| last < self.stored[at]) {
                    return Err(format!("machine {at} has lost what its store had: {has:?}"));
                }
                Ok(())
            }
            Runs::Follows(_) => self.follower_goes_on(at),
        }
    }

    fn follower_goes_on(&mut self, at: usize) -> Result<(), String> {
        let Runs::Follows(follower) = &mut self.machines[at].runs else { return Ok(()) };
        let last = follower.last();
        if last < self.base {
            return self.fetch_snapshot(at);
        }
        let groups = held(&self.quorum.groups).clone();
        let mut wanted: Vec<Vec<u8>> =
            groups.into_iter().filter(|group| agree::last_entry(group) > Some(last)).collect();
        wanted.truncate(1 + self.dice.below(4) as usize);
        if self.mistake == Some(Mistake::OtherChanges) && at == 1 && self.dice.once_in(4) {
            let other = |group: &Vec<u8>| changed(group, Mistake::OtherChanges);
            wanted = wanted.iter().map(other).collect();
        }
        let mut went = wanted.iter().try_for_each(|group| follower.take(group));
        if went.is_ok() {
            went = follower.store_if_due().map(|last| self.stored[at] = last);
        }
        let went = went.map_err(|error| match error {
            FollowError::Open(OpenError::OtherHistory { sequence }) => {
                format!("machine {at} has entry {sequence} of another history")
            }
            error => error.to_string(),
        });
        self.went(at, went)?;
        self.check(at)
    }

    fn fetch_snapshot(&mut self, at: usize) -> Result<(), String> {
        let Some(leader) = self.leader() else { return Ok(()) };
        let file = self.files.path().join("snapshot-file");
        let made = self.machines[leader].snapshot(&file);
        made.map_err(|error| error.to_string())?;
        let installed = self.machines[at].install(&file);
        let is_installed = installed.is_ok();
        self.went(at, installed)?;
        if is_installed {
            self.installed += 1;
            if self.dice.once_in(2) {
                let steps = self.dice.below(6);
                self.machines[at].disk.fail_after(steps);
            }
            let followed = self.machines[at].follow();
            self.went(at, followed)?;
        }
        self.check(at)
    }

    /// An error is that of the power, or one of ours.
    fn went(&mut self, at: usize, done: Result<(), String>) -> Result<(), String> {
        let is_off = self.machines[at].disk.is_off();
        if is_off {
            self.machines[at].stop(false);
            return Ok(());
        }
        done.map_err(|why| format!("machine {at}: {why}"))
    }

    fn check(&mut self, at: usize) -> Result<(), String> {
        self.model_agreed()?;
        match self.machines[at].state() {
            Some((last, state)) => self.model.check(&format!("machine {at}"), last, &state),
            None => Ok(()),
        }
    }

    /// Has the model take what was agreed on.
    fn model_agreed(&mut self) -> Result<(), String> {
        let groups: Vec<Vec<u8>> = held(&self.quorum.groups)[self.modelled..].to_vec();
        for group in groups {
            self.modelled += 1;
            for entry in entries(&group) {
                self.model.take(&entry)?;
            }
        }
        Ok(())
    }

    fn somebody_leads(&mut self) -> Result<(), String> {
        let at = self.dice.below(3) as usize;
        let Runs::Follows(_) = &self.machines[at].runs else { return Ok(()) };
        while self.machines[at].state().is_some_and(|(last, _)| last < self.model.last) {
            self.follower_goes_on(at)?;
            if self.machines[at].state().is_none_or(|(last, _)| last < self.base) {
                return Ok(());
            }
        }
        if self.machines[at].state().is_none() {
            return Ok(());
        }
        let agreement = Some(Agreement(Arc::clone(&self.quorum) as Arc<dyn Agree>));
        let forgets = self.mistake == Some(Mistake::ClockGoesBack);
        let led = self.machines[at].lead(agreement, self.now_ms, forgets);
        self.led += u64::from(led.is_ok());
        self.went(at, led)?;
        self.check(at)
    }

    fn lead_goes_on(&mut self, at: usize) -> Result<(), String> {
        if self.dice.once_in(5) {
            let done = self.machines[at].checkpoint().map_err(|error| error.to_string());
            if done.is_ok() {
                self.stored[at] = self.model.last;
                if self.dice.once_in(3) {
                    self.base = self.stored[at];
                }
            }
            self.went(at, done)?;
            return self.check(at);
        }
        let again = self.open.len() > 3 || !self.open.is_empty() && self.dice.once_in(3);
        let number = if again {
            self.open[self.dice.below(self.open.len() as u64) as usize]
        } else {
            self.number += 1;
            self.open.push(self.number);
            self.number
        };
        let next = match self.dice.below(12) {
            0 => Next::Dropped,
            1 => Next::AgreedAndLost,
            _ => Next::Agreed,
        };
        *held(&self.quorum.next) = next;
        let before = held(&self.quorum.groups).len();
        let answer = self.machines[at].submit(call(number), self.now_ms);
        // A refused call comes to no group.
        *held(&self.quorum.next) = Next::Agreed;
        if self.mistake == Some(Mistake::OtherCommand) && self.dice.once_in(8) {
            let mut groups = held(&self.quorum.groups);
            groups[before..]
                .iter_mut()
                .for_each(|group| *group = changed(group, Mistake::OtherCommand));
        }
        self.model_agreed()?;
        match answer {
            // The answer may be lost on its way.
            Ok(_) if self.dice.once_in(6) => {}
            Ok(answer) => self.is_answered(number, answer)?,
            Err(error) => {
                let is_lost = !self.machines[at].disk.is_off();
                if is_lost && !matches!(next, Next::Dropped | Next::AgreedAndLost) {
                    return Err(format!("the leader has stopped: {error}"));
                }
                self.dropped += u64::from(is_lost && matches!(next, Next::Dropped));
                self.machines[at].stop(self.mistake == Some(Mistake::KeepsAnswers));
                return Ok(());
            }
        }
        self.check(at)
    }

    fn is_answered(
        &mut self,
        number: u64,
        answer: Result<Outcome, SubmitError>,
    ) -> Result<(), String> {
        self.open.retain(|open| *open != number);
        self.answered += 1;
        if call(number).once().is_none() {
            // It may be carried out again.
            return Ok(());
        }
        let is_there = self.model.calls.contains(&(number as i32));
        match answer {
            Ok(_) if !is_there => Err(format!("call {number} is answered and is in no entry")),
            Err(SubmitError::Refused(error)) if is_there => {
                Err(format!("call {number} is in an entry and refused: {error}"))
            }
            Ok(_) | Err(SubmitError::Refused(_)) => Ok(()),
            Err(error) => Err(format!("call {number}: {error}")),
        }
    }

    /// All have the same in the end, and it is whole.
    pub fn end(&mut self) -> Result<(), String> {
        for _ in 0..1000 {
            self.machines.iter().for_each(|machine| machine.disk.stay_on());
            for at in 0..MACHINES {
                self.machine_goes_on(at)?;
            }
            if self.leader().is_none() {
                self.somebody_leads()?;
            }
            let lasts: Vec<_> = self.machines.iter().map(|it| it.state().map(|it| it.0)).collect();
            if self.leader().is_some() && lasts.iter().all(|last| *last == Some(self.model.last)) {
                return self.machines.iter_mut().try_for_each(|machine| {
                    machine.stop(false);
                    machine.runs = Runs::Nothing;
                    is_whole(machine)
                });
            }
        }
        Err("they do not come to the same".to_string())
    }
}

/// A call: half of them make something, the others remove it, or change the root.
fn call(number: u64) -> Entry {
    let kind = [0, 3, 0, 3, 0, 2][number as usize % 6];
    let id = CallId { client_id: [1; 16], call_id: number as i32 };
    Entry { call: Some(id), ..entry(4 * number + kind) }
}

fn is_whole(machine: &Machine) -> Result<(), String> {
    let problems =
        check_folder(machine.dir(), 1 << 20).map_err(|error| error.to_string())?.problems;
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn entries(group: &[u8]) -> Vec<Entry> {
    let frame = agree::parse(group).expect("it is a group");
    frame.entries().map(|bytes| Record::from_bytes(bytes).expect("it is a record").entry).collect()
}

/// A group of which the commands, or what they have done, are others.
fn changed(group: &[u8], mistake: Mistake) -> Vec<u8> {
    let frame = agree::parse(group).expect("it is a group");
    let mut other = FrameBuilder::new(frame.first);
    for bytes in frame.entries() {
        let Record { entry: was, known } = Record::from_bytes(bytes).expect("it is a record");
        let known = known.expect("what it has done is there");
        let (mut wanted, mut done) = (was.clone(), known.done);
        match mistake {
            // Another command of the same call.
            Mistake::OtherCommand if was.once().is_none() => {
                wanted.command = entry(was.now_ms % 2 * 2 + 2).command;
            }
            Mistake::OtherCommand => {}
            _ => done.changes = Default::default(),
        }
        other.push(&record::to_bytes(&wanted.to_bytes(), &record::encode(&done), known.chain));
    }
    agree::to_bytes(other)
}

/// One machine, which agrees with itself.
pub struct Alone {
    dice: Dice,
    now_ms: u64,
    machine: Machine,
    model: Model,
    /// The call that was under way when the power failed.
    open: Option<Entry>,
    number: u64,
    pub answered: u64,
    _files: TempDir,
}

impl Alone {
    pub fn new(seed: u64, lie: Option<Lie>) -> Alone {
        let mut dice = Dice::new(seed);
        let (files, path, last, records) = founded();
        let machine = Machine::new(&path, &mut dice);
        if let Some(lie) = lie {
            machine.disk.lie(lie);
        }
        Alone {
            dice,
            now_ms: BEGIN_MS,
            machine,
            model: Model::new(last, records),
            open: None,
            number: 0,
            answered: 0,
            _files: files,
        }
    }

    pub fn cuts(&self) -> u64 {
        self.machine.disk.cuts()
    }

    pub fn step(&mut self) -> Result<(), String> {
        self.now_ms += self.dice.below(5000);
        if self.dice.once_in(6) {
            self.machine.disk.fail_after(self.dice.below(60));
        }
        if matches!(self.machine.runs, Runs::Nothing) {
            return self.start();
        }
        if self.dice.once_in(5) {
            let done = self.machine.checkpoint().map_err(|error| error.to_string());
            return self.went(done);
        }
        self.call()
    }

    fn went(&mut self, done: Result<(), String>) -> Result<(), String> {
        if self.machine.disk.is_off() {
            self.machine.stop(false);
            return Ok(());
        }
        done
    }

    fn start(&mut self) -> Result<(), String> {
        if self.machine.disk.is_off() {
            self.machine.disk.come_back(&mut self.dice);
        }
        let led = self.machine.lead(None, self.now_ms, false);
        self.went(led)?;
        let Some((last, state)) = self.machine.state() else { return Ok(()) };
        if last == self.model.last + 1 {
            let open = self.open.take().ok_or("there is an entry that nobody has made")?;
            self.model.take(&open)?;
        }
        self.open = None;
        if last != self.model.last {
            return Err(format!("entry {last} is the last, and {} was answered", self.model.last));
        }
        self.model.check("it", last, &state)
    }

    fn call(&mut self) -> Result<(), String> {
        self.number += 1;
        // Its times are those of the world, which do not go back.
        let wanted = Entry { now_ms: self.now_ms, elapsed_ms: self.now_ms, ..call(self.number) };
        match self.machine.submit_timed(wanted.clone()) {
            Ok(Ok(answer)) => {
                self.answered += 1;
                let (last, state) = self.machine.state().ok_or("it has stopped")?;
                // What changes nothing may be in no entry.
                if last > self.model.last && self.model.take(&wanted)? != answer {
                    return Err(format!("call {} is answered {answer:?}", self.number));
                }
                self.model.check("it", last, &state)
            }
            Ok(Err(SubmitError::Refused(_))) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => {
                self.open = Some(wanted);
                self.went(Err(error.to_string()))
            }
        }
    }

    /// It starts once more, and is whole.
    pub fn end(&mut self) -> Result<(), String> {
        self.machine.disk.stay_on();
        if matches!(self.machine.runs, Runs::Nothing) {
            self.start()?;
        }
        self.machine.stop(false);
        is_whole(&self.machine)
    }
}
