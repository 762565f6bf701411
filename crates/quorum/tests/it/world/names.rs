//! What a member has of a namespace: what was agreed on, and, if it leads, what is evaluated ahead of that.

use super::callers::{Answer, Call, root};
use cairn_namespace::encoding::{Decode, Decoder, Encode, Encoder};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreRead, StoreTxn, Table};
use cairn_namespace::{
    Applied, Command, Done, Entry, NamespaceError, Outcome, Retries, Settings, apply, evaluate,
    query,
};
use cairn_quorum::Quorum;

/// An answer that waits until everything is agreed on that it rests on.
pub struct Waiting {
    pub client: usize,
    pub number: i32,
    pub answer: Answer,
    /// The term and place of its own entry.
    pub entry: Option<(u64, u64)>,
    /// What it rests on besides.
    pub after: u64,
}

/// What comes after what was agreed on.
struct Ahead {
    term: u64,
    store: MemoryStore,
    kept: Retries,
    /// The last entry in it.
    last: u64,
}

pub struct Names {
    store: MemoryStore,
    kept: Retries,
    ahead: Option<Ahead>,
    last_ms: u64,
    pub waiting: Vec<Waiting>,
}

/// Before the first entry.
pub fn founded() -> MemoryStore {
    let mut store = MemoryStore::new();
    let settings = Settings { block_size_min: 0, ..Settings::default() };
    let command = Configure { settings: settings.into() }.into();
    let entry = Entry { now_ms: 1, elapsed_ms: 1, caller: root(), call: None, command };
    apply(&mut store, &entry).expect("a namespace can be configured");
    store
}

/// As it is proposed.
fn logged(entry: &Entry, done: &Done) -> Vec<u8> {
    let mut out = Encoder::new();
    out.bytes(&entry.to_bytes());
    done.encode(&mut out);
    out.into_bytes()
}

/// What was proposed, if it was that.
pub fn read(data: &[u8]) -> Result<(Entry, Done), String> {
    let mut input = Decoder::new(data);
    let malformed = |error| format!("what was agreed on can't be read: {error}");
    let entry = Entry::from_bytes(input.bytes().map_err(malformed)?).map_err(malformed)?;
    let done = Decode::decode(&mut input).map_err(malformed)?;
    input.finish().map_err(malformed)?;
    Ok((entry, done))
}

fn remember(store: &MemoryStore, kept: &mut Retries, entry: &Entry, answer: &Outcome) {
    let settings = store.settings().expect("it is configured");
    kept.remember(entry, &settings, answer).expect("what is in memory can be read");
}

/// Has the store have what is kept of outcomes.
fn save(store: &mut MemoryStore, kept: &mut Retries) {
    for (key, value) in kept.save() {
        match value {
            Some(value) => store.put(Table::Outcome, &key, &value),
            None => store.delete(Table::Outcome, &key),
        }
        .expect("memory can be written");
    }
}

fn load(store: &MemoryStore) -> Retries {
    Retries::load(store).expect("it was saved")
}

/// Has the store of a snapshot go on.
pub fn advance<'a>(store: &mut MemoryStore, agreed: impl Iterator<Item = &'a [u8]>) {
    let mut names = Names::open(store);
    for data in agreed {
        names.take(data).expect("it was taken before");
    }
    save(&mut names.store, &mut names.kept);
    *store = names.store;
}

impl Names {
    pub fn open(store: &MemoryStore) -> Names {
        let (store, kept) = (store.clone(), load(store));
        Names { store, kept, ahead: None, last_ms: 1, waiting: Vec::new() }
    }

    /// Something was agreed on: it is written, and nothing is decided.
    pub fn take(&mut self, data: &[u8]) -> Result<(), String> {
        let (entry, done) = read(data)?;
        done.changes.write_to(&mut self.store).map_err(|error| error.to_string())?;
        remember(&self.store, &mut self.kept, &entry, &done.answer);
        self.last_ms = self.last_ms.max(entry.elapsed_ms);
        Ok(())
    }

    /// It does not lead any more: what is ahead of what was agreed on is dropped whole, but for outcomes if `keeps` them.
    pub fn lose_lead(&mut self, keeps: bool) {
        self.waiting.clear();
        if let Some(ahead) = self.ahead.take().filter(|_| keeps) {
            self.kept = ahead.kept;
        }
    }

    /// It leads in that term, and has everything that was agreed on up to `last`.
    pub fn lead(&mut self, term: u64, last: u64) {
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.term == term) {
            // Not all entries are of names.
            ahead.last = ahead.last.max(last);
            return;
        }
        self.lose_lead(false);
        save(&mut self.store, &mut self.kept);
        let (store, kept) = (self.store.clone(), load(&self.store));
        self.ahead = Some(Ahead { term, store, kept, last });
    }

    /// Whether a file is there, by what was agreed on.
    pub fn has(&self, path: &str) -> bool {
        query::get_file_info(&self.store, &root(), path).expect("it can be read").is_some()
    }

    /// A call of whoever takes it for the leader, which it is. The answer waits; a repeated call waits for that of its twin.
    pub fn call(&mut self, quorum: &mut Quorum, call: &Call, command: Command, now_ms: u64) {
        let Some(ahead) = &mut self.ahead else { return };
        let is_twin = |other: &Waiting| (other.client, other.number) == (call.client, call.number);
        if self.waiting.iter().any(is_twin) {
            return;
        }
        let now_ms = now_ms.max(self.last_ms);
        let (caller, id) = (root(), Some(call.id()));
        let entry = Entry { now_ms, elapsed_ms: now_ms, caller, call: id, command };
        let known = ahead.kept.find(&entry).expect("what is in memory can be read");
        let (mut place, after) = (None, ahead.last);
        let answer = match known {
            Some(outcome) => Answer::Repeated(Box::new(Answer::of(&outcome))),
            None => match evaluate(&ahead.store, &entry) {
                Ok(Applied { answer, changes, .. }) => {
                    let done = Done { answer, changes };
                    place = quorum.propose(logged(&entry, &done)).ok();
                    let Some((_, last)) = place else { return };
                    (self.last_ms, ahead.last) = (now_ms, last);
                    remember(&ahead.store, &mut ahead.kept, &entry, &done.answer);
                    let Done { answer, changes } = done;
                    changes.write_to(&mut ahead.store).expect("memory can be written");
                    Answer::of(&answer)
                }
                Err(NamespaceError::Store(error)) => panic!("{error}"),
                Err(_) => Answer::Refused,
            },
        };
        let after = place.map_or(after, |(_, index)| index);
        let (client, number) = (call.client, call.number);
        self.waiting.push(Waiting { client, number, answer, entry: place, after });
    }

    /// Answers that rest on nothing that is not agreed on; whether their own entries are is for others to say.
    pub fn due(&mut self, agreed: u64) -> Vec<Waiting> {
        let is_due = |waiting: &mut Waiting| waiting.after <= agreed;
        self.waiting.extract_if(.., is_due).collect()
    }
}
