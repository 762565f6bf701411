//! Clients that make and remove files, look for them, and repeat what they had no answer to at whatever member; and a model
//! of what they may be told. Members that follow answer looks too, if they have what the client has seen.

use super::{Mistake, TURN, World};
use crate::world::names::{self, Names};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::{CallId, Caller, Command, Outcome};
use cairn_quorum::{Entry, Payload, Role};
use std::collections::BTreeMap;

const CLIENTS: usize = 3;
const FILES: u64 = 4;

/// How long each of them stays with a member before it asks another one.
const STAYS: [u64; CLIENTS] = [3, 30, 300];

pub fn root() -> Caller {
    Caller { user: "root".to_string(), ..Caller::system() }
}

/// What is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Create,
    Delete,
    /// The answer is that of the leader.
    Look,
    /// The answer may be that of anybody who has what the client has seen.
    LookAnywhere,
    /// How far the leader is.
    Sync,
}

/// A call without an answer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub client: usize,
    pub number: i32,
    wish: Wish,
    file: u64,
    /// Up to where somebody had been told something when it began.
    began: u64,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Created,
    Removed(bool),
    Refused,
    Is(bool),
    Synced,
    /// What it would have been told before.
    Repeated(Box<Answer>),
}

impl Answer {
    pub fn of(outcome: &Outcome) -> Answer {
        match outcome {
            Outcome::Created { .. } => Answer::Created,
            Outcome::Removed { done, .. } => Answer::Removed(*done),
            other => panic!("nobody has called for {other:?}"),
        }
    }
}

fn path(file: u64) -> String {
    format!("/{file}")
}

impl Call {
    pub fn id(&self) -> CallId {
        CallId { client_id: [self.client as u8; 16], call_id: self.number }
    }

    fn command(&self) -> Option<Command> {
        let path = path(self.file);
        match self.wish {
            Wish::Look | Wish::LookAnywhere | Wish::Sync => None,
            Wish::Delete => Some(Delete { path, recursive: false }.into()),
            Wish::Create => {
                let create = Create {
                    path,
                    mode: 0o644.into(),
                    holder: format!("client {}", self.client),
                    client_machine: "host".to_string(),
                    create: true,
                    overwrite: false,
                    should_replicate: false,
                    create_parent: false,
                    replication: 1,
                    block_size: 1 << 20,
                    ec_policy: None,
                    storage_policy: None,
                };
                Some(create.into())
            }
        }
    }
}

/// The clients, and what is so of their files.
#[derive(Default)]
pub struct Callers {
    calls: [Option<Call>; CLIENTS],
    /// The member that each asked last.
    at: [usize; CLIENTS],
    numbers: [i32; CLIENTS],
    /// The last entry that each has seen.
    seen: [u64; CLIENTS],
    /// A bit for each file that is there after an entry.
    files: BTreeMap<u64, u8>,
    /// Which entry has carried out a call, and what its caller is to be told.
    done: BTreeMap<CallId, (u64, Answer)>,
    pub answered: u64,
    pub refused: u64,
    pub repeated: u64,
    /// Looks that were answered by members that follow, and those of them that did not see everything.
    pub followed: u64,
    pub behind: u64,
}

impl Callers {
    /// An entry was agreed on: it may be there, and does what a file can have done to it.
    pub fn agreed(&mut self, entry: &Entry) -> Result<(), String> {
        let before = self.files.range(..entry.index).next_back().map_or(0, |(_, files)| *files);
        self.files.insert(entry.index, before);
        let Payload::Data(data) = &entry.payload else { return Ok(()) };
        if data.is_empty() {
            return Ok(());
        }
        let (logged, done) = names::read(data)?;
        let (path, is_made) = match &logged.command {
            Command::Create(create) => (&create.path, true),
            Command::Delete(delete) => (&delete.path, false),
            other => return Err(format!("nobody has called for {other:?}")),
        };
        let file: u64 = path[1..].parse().map_err(|_| format!("nobody has asked for {path}"))?;
        let (answer, bit) = (Answer::of(&done.answer), 1 << file);
        let is_there = before & bit != 0;
        let may_be = match answer {
            Answer::Created => is_made && !is_there,
            Answer::Removed(was_there) => !is_made && was_there == is_there,
            _ => false,
        };
        if !may_be {
            return Err(format!("{path} is there: {is_there}, and {answer:?} at {}", entry.index));
        }
        self.files.insert(entry.index, if is_made { before | bit } else { before & !bit });
        let id = logged.call.ok_or("a call without a number")?;
        match self.done.insert(id, (entry.index, answer)) {
            Some((first, _)) => {
                Err(format!("{id:?} was carried out at {first} and at {}", entry.index))
            }
            None => Ok(()),
        }
    }

    /// A client has its answer, which shows what there is up to an entry.
    fn ends(&mut self, call: &Call, upto: u64) {
        self.calls[call.client] = None;
        self.seen[call.client] = self.seen[call.client].max(upto);
        self.answered += 1;
    }

    /// Whether `call` may be told that by who has everything up to `upto`, and no more.
    fn may_be_told(&self, call: &Call, answer: &Answer, upto: u64) -> Result<(), String> {
        let files = self.files.range(..=upto).next_back().map_or(0, |(_, files)| *files);
        let is_there = files & 1 << call.file != 0;
        let done = self.done.get(&call.id());
        let has_seen = upto >= self.seen[call.client];
        let may_be = match answer {
            Answer::Is(is) if call.wish == Wish::LookAnywhere => *is == is_there && has_seen,
            Answer::Is(is) => *is == is_there && upto >= call.began && has_seen,
            Answer::Synced => upto >= call.began && has_seen,
            Answer::Refused => is_there && done.is_none() && upto >= call.began,
            Answer::Repeated(first) => {
                done.is_some_and(|(index, told)| *index <= upto && told == &**first)
            }
            told => done.is_some_and(|(index, first)| *index == upto && first == told),
        };
        if may_be {
            return Ok(());
        }
        Err(format!("{call:?} is told {answer:?} at {upto}, there: {is_there}, done: {done:?}"))
    }
}

impl World {
    /// A client calls, or repeats a call, where it thinks that it is served.
    pub(super) fn call(&mut self) -> Result<(), String> {
        let client = self.dice.below(CLIENTS as u64) as usize;
        if self.dice.one_in(STAYS[client]) {
            self.callers.at[client] = self.dice.below(3) as usize;
        }
        let at = self.callers.at[client];
        let call = match self.callers.calls[client] {
            // It waits for a while before it asks again.
            Some(_) if !self.dice.one_in(3) => return Ok(()),
            Some(call) => call,
            None => {
                self.callers.numbers[client] += 1;
                let wish = [
                    Wish::Create,
                    Wish::Create,
                    Wish::Delete,
                    Wish::Look,
                    Wish::LookAnywhere,
                    Wish::LookAnywhere,
                    Wish::Sync,
                ][self.dice.below(7) as usize];
                let (number, file) = (self.callers.numbers[client], self.dice.below(FILES));
                let call = Call { client, number, wish, file, began: self.told };
                *self.callers.calls[client].insert(call)
            }
        };
        let at = match call.wish {
            Wish::LookAnywhere => self.dice.below(3) as usize,
            _ => at,
        };
        if !self.is_running(at) {
            return Ok(());
        }
        let now_ms = self.now.as_millis() as u64;
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        if process.quorum.role() != (Role::Leader { is_ready: true }) {
            return self.look_where_it_follows(at, &call);
        }
        process.names.lead(process.quorum.term(), process.agreed);
        if let Some(command) = call.command() {
            process.names.call(&mut process.quorum, &call, command, now_ms);
            self.show_at_once(at);
            return Ok(());
        }
        let upto = process.agreed;
        let answer = match call.wish {
            Wish::Sync => Answer::Synced,
            _ => Answer::Is(process.names.has(&path(call.file))),
        };
        self.tell(at, &call, &answer, upto, false)
    }

    /// A member that follows answers, if it has what the client has seen.
    fn look_where_it_follows(&mut self, at: usize, call: &Call) -> Result<(), String> {
        let Some(process) = &self.places[at].process else { return Ok(()) };
        let follows = process.quorum.role() == Role::Follower && process.quorum.leader().is_some();
        let has_seen = process.agreed >= self.callers.seen[call.client]
            || self.mistake == Some(Mistake::ReadUnseen);
        if call.wish != Wish::LookAnywhere || !follows || !has_seen {
            return Ok(());
        }
        let (answer, upto) = (Answer::Is(process.names.has(&path(call.file))), process.agreed);
        let told = self.callers.may_be_told(call, &answer, upto);
        told.map_err(|why| format!("by {at}, which follows: {why}"))?;
        self.callers.behind += u64::from(upto < self.told);
        // Nor may anybody who asks the leader from now on miss it.
        self.told = self.told.max(upto);
        self.callers.followed += 1;
        self.callers.ends(call, upto);
        Ok(())
    }

    /// Who leads is cut off until another one does, if `begins`. When it is back, an operator has it lead again.
    pub(super) fn come_back(&mut self, begins: bool) {
        match self.comes_back {
            Some((at, when)) if when <= self.now => {
                self.comes_back = None;
                if let Some(process) = self.places[at].process.as_mut() {
                    process.quorum.ask_for_lead();
                }
            }
            None if begins && self.has_faults => {
                let leads = |at: &usize| {
                    let process = self.places[*at].process.as_ref();
                    process.is_some_and(|process| process.quorum.role() != Role::Follower)
                };
                if let Some(at) = (0..3).find(leads) {
                    self.cut_off = Some((at, None, self.now + 30 * TURN));
                    self.comes_back = Some((at, self.now + 36 * TURN));
                }
            }
            _ => {}
        }
    }

    /// Gives the answers that waited.
    pub(super) fn answer(&mut self, at: usize) -> Result<(), String> {
        let Some(process) = &mut self.places[at].process else { return Ok(()) };
        if process.quorum.role() == Role::Follower {
            process.names.lose_lead(self.mistake == Some(Mistake::AnswerOfDropped));
            return Ok(());
        }
        for due in process.names.due(process.agreed) {
            let is_agreed = |(term, index): (u64, u64)| {
                self.agreed.get(&index).is_some_and(|entry| entry.term == term)
            };
            if due.entry.is_some_and(|entry| !is_agreed(entry)) {
                continue;
            }
            let call = self.callers.calls[due.client].filter(|call| call.number == due.number);
            if let Some(call) = call {
                self.tell(at, &call, &due.answer, due.after, due.entry.is_some())?;
            }
        }
        Ok(())
    }

    /// Tells a client what `at` answers, if it may answer.
    fn tell(
        &mut self,
        at: usize,
        call: &Call,
        answer: &Answer,
        upto: u64,
        is_entry: bool,
    ) -> Result<(), String> {
        let clock = self.clock(at);
        let Some(process) = &self.places[at].process else { return Ok(()) };
        let has_right = process.quorum.lease(clock).is_some_and(|until| until > clock);
        if !is_entry && !has_right && self.mistake != Some(Mistake::AnswerWithoutLease) {
            return Ok(());
        }
        let told = self.callers.may_be_told(call, answer, upto);
        told.map_err(|why| format!("by {at}: {why}"))?;
        self.told = self.told.max(upto);
        self.callers.ends(call, upto);
        self.callers.refused += u64::from(*answer == Answer::Refused);
        self.callers.repeated += u64::from(matches!(answer, Answer::Repeated(_)));
        Ok(())
    }

    /// Has the snapshot of `at` go on from `from` to `upto`.
    pub(super) fn advance_names(&mut self, at: usize, from: u64, upto: u64) {
        let data = self.agreed.range(from + 1..=upto).filter_map(|(_, entry)| named(entry));
        names::advance(&mut self.places[at].names, data);
    }
}

/// What an entry has of names.
pub(super) fn named(entry: &Entry) -> Option<&[u8]> {
    match &entry.payload {
        // Values have eight bytes.
        Payload::Data(data) if data.len() > 8 => Some(data),
        _ => None,
    }
}

/// A member is told of an entry.
pub(super) fn take(names: &mut Names, entry: &Entry) -> Result<(), String> {
    named(entry).map_or(Ok(()), |data| names.take(data))
}
