//! From a command to its answer: entries are applied, logged and shown in groups, as [`Groups`] says, and at any moment
//! between two of these steps the NameNode may fall.

use super::NameNode;
use super::core::Core;
use super::entries::{Done, Happening, Request};
use super::names::{CallError, Fall, sure};
use super::op::{Answer, Asked, Polled, Reply, Running};
use cairn_master::effects::{self, EntryEffects};
use cairn_master::group::{Step, Waiting};
use cairn_master::{FollowUp, OpError, Submission, follow_up};
use cairn_namespace::{Applied, Entry, NamespaceError, Times, evaluate};
use cairn_redundancy::Now;
use std::future::Future;

impl NameNode {
    /// Begins an operation.
    pub(crate) fn begin<T: 'static, F: Future<Output = Result<T, OpError>> + 'static>(
        &mut self,
        operation: impl FnOnce(super::op::Carrier) -> F,
    ) -> Answer<T> {
        let (running, answer) = Running::begin(operation);
        self.operations += 1;
        self.running.insert(self.operations, running);
        self.ready.push_back(self.operations);
        self.pump();
        answer
    }

    /// Has what follows from reports submitted, by an operation of its own.
    pub(crate) fn follow(&mut self, due: FollowUp) {
        if !due.is_empty() {
            self.begin(|op| async move { follow_up::submit(&op, due).await });
        }
    }

    /// Does all that can be done now.
    pub(crate) fn pump(&mut self) {
        while self.up {
            self.wake();
            if let Some(operation) = self.ready.pop_front() {
                self.poll(operation);
                continue;
            }
            let waiting = Waiting { entries: self.backlog.len(), ..Waiting::default() };
            match self.groups.next(waiting, self.core().now_ms) {
                Step::Apply => self.apply(),
                Step::Seal => self.seal(),
                Step::Listen => self.groups.heard(),
                Step::Wait { .. } => {
                    self.groups.heard();
                    return;
                }
                step => unreachable!("{step:?} was not asked for"),
            }
        }
    }

    /// Something that was to happen does.
    pub(crate) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Synced => self.synced(),
            Happening::Shown => self.show(),
            Happening::TimeOver { operation, ticket } => {
                if self.waits.remove(&ticket).is_some() {
                    self.core_mut().cluster.forget_wait(ticket);
                    self.reply(operation, Reply::Woken(false));
                }
            }
        }
        self.pump();
    }

    fn reply(&mut self, operation: u64, reply: Reply) {
        // What has begun before a fall gets no answer.
        if let Some(running) = self.running.get_mut(&operation) {
            running.reply(reply);
            self.ready.push_back(operation);
        }
    }

    fn wake(&mut self) {
        for ticket in self.core_mut().cluster.take_woken() {
            if let Some(operation) = self.waits.remove(&ticket) {
                self.reply(operation, Reply::Woken(true));
            }
        }
    }

    fn poll(&mut self, operation: u64) {
        let Some(mut running) = self.running.remove(&operation) else { return };
        let core = self.core.take().expect("it is lent to one operation at a time");
        let (core, polled): (Box<Core>, _) = running.poll(core);
        let now_ms = core.now_ms;
        self.core = Some(core);
        match polled {
            Polled::Done => return,
            Polled::Asked(Asked::Submit(submission)) => {
                self.backlog.push_back(Request { operation, submission: *submission });
            }
            Polled::Asked(Asked::Wait { ticket, until_ms }) => {
                self.waits.insert(ticket, operation);
                let delay_ms = until_ms.saturating_sub(now_ms);
                self.happenings.push((delay_ms, Happening::TimeOver { operation, ticket }));
            }
        }
        self.running.insert(operation, running);
    }

    /// Applies the next command to what will be in force.
    fn apply(&mut self) {
        let Some(Request { operation, submission }) = self.backlog.pop_front() else { return };
        let Submission { command, caller, call, guard, targets } = submission;
        let Times { wall_ms, elapsed_ms } = self.times();
        let entry = Entry { now_ms: wall_ms, elapsed_ms, caller, call, command };
        let known = sure(self.retries.find(&entry));
        let has_moved = !self.bugs.ignores_guards && !sure(guard.holds(&self.ahead));
        let mut done = Done {
            operation,
            answer: Err(OpError::Moved),
            logged: None,
            effects: EntryEffects::default(),
        };
        match known {
            Some(answer) => done.answer = Ok(answer),
            None if has_moved => {}
            None => match evaluate(self.seen_by(&entry.command), &entry) {
                Ok(Applied { answer, effects, changes }) => {
                    if !changes.is_empty() || entry.once().is_some() {
                        sure(changes.clone().write_to(&mut self.ahead).map_err(Into::into));
                        let mut ahead = std::mem::take(&mut self.ahead);
                        self.forget_handle(&mut ahead, &entry.command);
                        self.note_begun(&ahead, &answer);
                        self.note_containers(&ahead, &entry.command);
                        self.ahead = ahead;
                        let limits = sure(cairn_namespace::settings::get(&self.ahead));
                        sure(self.retries.remember(&entry, &limits, &answer));
                        done.logged = Some((entry, changes));
                        done.effects = EntryEffects { effects, targets };
                    }
                    done.answer = Ok(answer);
                }
                Err(refused) => done.answer = Err(refused.into()),
            },
        }
        match &mut self.fall {
            Some((0, fall)) => self.open.fall = Some(*fall),
            Some((left, _)) => *left -= 1,
            None => {}
        }
        let sequence = done.logged.is_some().then(|| self.groups.last_applied() + 1);
        self.groups.applied(sequence, 0, done.effects.effects.len());
        self.open.entries.push(done);
    }

    /// The times of the next entry.
    fn times(&mut self) -> Times {
        let Now { wall_ms, elapsed_ms, .. } = self.core().now();
        let mut times = Times { wall_ms, elapsed_ms };
        if self.bugs.follows_wall_clock {
            let wall_ms = self.reading().wall.as_millis() as u64;
            times = Times { wall_ms, elapsed_ms: wall_ms };
        }
        assert_eq!(self.last_times.max(times), times, "the clock of the log goes back");
        self.last_times = times;
        times
    }

    /// Has the open group written to the log.
    fn seal(&mut self) {
        let group = std::mem::take(&mut self.open);
        for (entry, _) in group.entries.iter().filter_map(|done| done.logged.as_ref()) {
            self.log.append(entry);
        }
        self.groups.sealed();
        if group.fall == Some(Fall::Unsynced) {
            return self.crash();
        }
        self.logging = Some(group);
        let delay_ms = self.delay(3);
        self.happenings.push((delay_ms, Happening::Synced));
    }

    fn synced(&mut self) {
        let Some(group) = self.logging.take() else { return };
        if self.bugs.syncs_before_answer || group.fall.is_some() {
            self.log.sync();
        }
        if group.fall.is_some() {
            return self.crash();
        }
        self.groups.durable();
        self.unshown.push_back(group);
        let delay_ms = self.delay(2);
        self.happenings.push((delay_ms, Happening::Shown));
    }

    /// Has the oldest durable group come into force: for readers and for the cluster in one moment, and then answers.
    fn show(&mut self) {
        let Some(group) = self.unshown.pop_front() else { return };
        if group.entries.iter().any(|done| done.logged.is_some()) {
            self.version += 1;
        }
        let mut answers = Vec::new();
        let mut all = Vec::new();
        for Done { operation, answer, logged, effects } in group.entries {
            if let Some((entry, changes)) = logged {
                let store = &mut self.core_mut().store;
                sure(changes.write_to(store).map_err(Into::into));
                let mut store = std::mem::take(&mut self.core_mut().store);
                self.forget_handle(&mut store, &entry.command);
                self.core_mut().store = store;
                self.logged += 1;
                if let Ok(answer) = &answer {
                    self.done.push((entry.command, answer.clone(), self.life));
                }
            }
            if self.bugs.fails_what_is_durable && self.core_mut().rng.one_in(10) {
                let text = "the state could not be read after the entry".to_string();
                answers.push((operation, Err(OpError::Refused(NamespaceError::Io(text)))));
                continue;
            }
            all.push(effects);
            answers.push((operation, answer));
        }
        self.spoil(&mut all);
        let mut due = FollowUp::default();
        for entry in &all {
            due.append(self.with_cluster(|cluster, lookup, now, _| {
                effects::apply(cluster, lookup, now, entry)
            }));
        }
        self.groups.shown();
        for (operation, answer) in answers {
            self.reply(operation, Reply::Submitted(answer));
        }
        self.follow(due);
    }

    /// Puts known mistakes back.
    fn spoil(&mut self, all: &mut Vec<EntryEffects>) {
        for entry in all.iter_mut() {
            if self.bugs.drops_effects && self.core_mut().rng.one_in(10) {
                entry.effects.pop();
            }
        }
        if self.bugs.reorders_effects {
            let late = std::mem::take(&mut self.late_effects);
            if self.core_mut().rng.one_in(3) {
                self.late_effects = std::mem::take(all);
            }
            all.extend(late);
        }
    }

    /// What a step of the log or of its groups takes, in ms.
    fn delay(&mut self, most: u64) -> u64 {
        let is_slow = self.is_contended;
        let rng = &mut self.core_mut().rng;
        if rng.one_in(50) | is_slow { rng.range(10, 400) } else { rng.range(0, most) }
    }
}

impl From<OpError> for CallError {
    fn from(error: OpError) -> CallError {
        match error {
            OpError::NoPlace(_)
            | OpError::Refused(
                NamespaceError::NotReplicatedYet(_)
                | NamespaceError::RecoveryInProgress(_)
                | NamespaceError::LastBlockNotReplicated(_)
                | NamespaceError::Retriable(_),
            ) => CallError::NotNow,
            OpError::Refused(error) => CallError::Refused(error.to_string()),
            OpError::Moved | OpError::Stopped(_) => CallError::Lost,
        }
    }
}
