//! A namespace in memory with short forms of the common commands.

use crate::keeper::Keeper;
use cairn_namespace::encoding::{Decode, Decoder, Encode, Encoder};
use cairn_namespace::inode::{Inode, InodeId, InodeRef};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::ec::{EnableEcPolicy, SetEcPolicy};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::query::{self, Entry, FileStatus, Listing, Page};
use cairn_namespace::store::StoreRead;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{
    Applied, Block, BlockRef, CallId, Caller, Command, Done, Effect, NamespaceError, Outcome,
    Retries, Settings, evaluate,
};
use cairn_stripe::{BlockId, GenerationStamp};

pub const MIB: u64 = 1 << 20;

/// The NameNode's own user.
pub fn root() -> Caller {
    Caller {
        user: "root".into(),
        groups: vec!["supergroup".into()],
        superuser: true,
        ..Caller::default()
    }
}

/// An ordinary user, in the group of the same name.
pub fn user(name: &str) -> Caller {
    Caller { user: name.into(), groups: vec![name.into()], ..Caller::default() }
}

pub struct Fs {
    pub store: MemoryStore,
    pub retries: Retries,
    pub now_ms: u64,
    /// How far wall time is ahead of elapsed time.
    pub ahead_ms: i64,
    pub log: Vec<cairn_namespace::Entry>,
    /// Of the last entry: none if it was refused, or answered with what was kept.
    pub effects: Vec<Effect>,
    /// Blocks that the last entry removed, as they were.
    pub removed: Vec<Block>,
    keeper: Keeper,
}

/// A block whose recovery an entry ordered, as the store has it, and the stamp that its replicas are to get.
#[derive(Clone, Debug)]
pub struct Ordered {
    pub block: Block,
    pub recovery_gs: GenerationStamp,
}

/// What an entry has done as it is found in the log.
fn logged(done: &Done) -> Done {
    let mut out = Encoder::new();
    done.encode(&mut out);
    let bytes = out.into_bytes();
    let mut input = Decoder::new(&bytes);
    let found = Decode::decode(&mut input).unwrap();
    input.finish().unwrap();
    found
}

impl Fs {
    pub fn new() -> Fs {
        Fs::with(Settings { block_size_min: 0, ..Settings::default() })
    }

    pub fn with(settings: Settings) -> Fs {
        let mut fs = Fs {
            store: MemoryStore::new(),
            retries: Retries::default(),
            now_ms: 1_000_000,
            ahead_ms: 0,
            log: Vec::new(),
            effects: Vec::new(),
            removed: Vec::new(),
            keeper: Keeper::default(),
        };
        fs.ok(Configure { settings: settings.into() });
        fs
    }

    pub fn submit(
        &mut self,
        caller: Caller,
        call: Option<CallId>,
        command: Command,
    ) -> Result<Outcome, NamespaceError> {
        self.now_ms += 1;
        let entry = cairn_namespace::Entry {
            now_ms: self.now_ms.wrapping_add_signed(self.ahead_ms),
            elapsed_ms: self.now_ms,
            caller,
            call,
            command,
        };
        self.effects.clear();
        self.removed.clear();
        if let Some(outcome) = self.retries.find(&entry).unwrap() {
            return Ok(outcome);
        }
        let before = self.store.clone();
        match evaluate(&self.store, &entry) {
            Ok(Applied { answer, effects, changes }) => {
                let done = Done { answer, changes };
                let logged = logged(&done);
                assert_eq!(logged, done);
                let Done { answer: outcome, changes } = done;
                changes.write_to(&mut self.store).unwrap();
                let mut written = before.clone();
                logged.changes.write_to(&mut written).unwrap();
                assert!(written == self.store, "what is logged writes another store");
                let settings = self.store.settings().unwrap();
                self.retries.remember(&entry, &settings, &outcome).unwrap();
                self.log.push(entry);
                self.take_effects(&before, effects);
                Ok(outcome)
            }
            // It would stop the NameNode.
            Err(NamespaceError::Store(error)) => panic!("{error}"),
            Err(error) => {
                assert!(self.store == before, "a refused command changed the store");
                Err(error)
            }
        }
    }

    fn take_effects(&mut self, before: &MemoryStore, effects: Vec<Effect>) {
        for effect in &effects {
            if let Effect::Removed { id, gs } = effect {
                let was = query::get_block(before, *id).unwrap().unwrap().block;
                assert_eq!((was.id, was.gs), (*id, *gs));
                assert_eq!(query::get_block(&self.store, *id).unwrap(), None);
                self.removed.push(was);
            }
        }
        self.keeper.take(&self.store, &effects);
        // What many blocks have come to is looked at now and then.
        if self.keeper.len() < 100 || self.log.len().is_multiple_of(64) {
            self.keeper.check(&self.store, &effects);
            let wrong = &mut |wrong: String| panic!("{wrong}");
            cairn_namespace::check::check(&self.store, wrong).unwrap();
        }
        self.effects = effects;
    }

    /// The recovery that the last entry ordered, if it did.
    pub fn ordered(&self) -> Option<Ordered> {
        let mut found = None;
        for effect in &self.effects {
            if let Effect::RecoveryOrdered { id, new_gs } = effect {
                let block = query::get_block(&self.store, *id).unwrap().unwrap().block;
                assert_eq!(block.recovery().map(|(gs, _)| gs), Some(*new_gs));
                assert!(found.is_none(), "more than one recovery: {:?}", self.effects);
                found = Some(Ordered { block, recovery_gs: *new_gs });
            }
        }
        found
    }

    pub fn removed_ids(&self) -> Vec<BlockId> {
        self.removed.iter().map(|block| block.id).collect()
    }

    /// Blocks of which the last entry may want another number of copies.
    pub fn copies_changed(&self) -> Vec<BlockId> {
        let changed = |effect: &Effect| match effect {
            Effect::CopiesChanged { id } => Some(*id),
            _ => None,
        };
        self.effects.iter().filter_map(changed).collect()
    }

    pub fn run(
        &mut self,
        caller: Caller,
        command: impl Into<Command>,
    ) -> Result<Outcome, NamespaceError> {
        self.submit(caller, None, command.into())
    }

    pub fn ok(&mut self, command: impl Into<Command>) -> Outcome {
        self.run(root(), command).unwrap()
    }

    pub fn err(&mut self, command: impl Into<Command>) -> NamespaceError {
        self.run(root(), command).unwrap_err()
    }

    pub fn mkdirs(&mut self, path: &str) {
        self.ok(Mkdirs { path: path.into(), mode: 0o755.into(), create_parent: true });
    }

    pub fn set_policy(&mut self, path: &str, policy: &str) {
        self.ok(EnableEcPolicy { name: policy.into() });
        self.ok(SetEcPolicy { path: path.into(), policy: Some(policy.into()) });
    }

    pub fn create(&mut self, path: &str) -> InodeId {
        match self.ok(create(path)) {
            Outcome::Created { status } => status.inode.id,
            other => panic!("{other:?}"),
        }
    }

    pub fn add_block(&mut self, path: &str, previous: Option<BlockRef>) -> Block {
        match self.ok(add_block(path, previous)) {
            Outcome::BlockAdded { block, .. } => block,
            other => panic!("{other:?}"),
        }
    }

    pub fn complete(&mut self, path: &str, last: Option<BlockRef>) {
        assert_eq!(self.ok(complete(path, last)), Outcome::Flag(true));
    }

    /// A closed file with blocks of these lengths.
    pub fn write(&mut self, path: &str, lens: &[u64]) -> InodeId {
        let id = self.create(path);
        let mut previous = None;
        for len in lens {
            let block = self.add_block(path, previous);
            previous = Some(BlockRef { len: *len, ..block.reference() });
        }
        self.complete(path, previous);
        id
    }

    pub fn delete(&mut self, path: &str) -> Outcome {
        self.ok(Delete { path: path.into(), recursive: true })
    }

    pub fn status(&self, path: &str) -> Option<FileStatus> {
        query::get_file_info(&self.store, &root(), path).unwrap()
    }

    pub fn names(&self, path: &str) -> Vec<String> {
        let listing = query::get_listing(&self.store, &root(), path, b"", 1000).unwrap().unwrap();
        listing.entries.into_iter().map(|entry| entry.inode.name.clone()).collect()
    }
}

/// A page of a directory, after a check that records read where they lie say the same.
pub fn page(store: &MemoryStore, path: &str, after: &[u8], limit: usize) -> Listing {
    for limit in [limit, 1000] {
        let copied = query::get_listing(store, &root(), path, after, limit).unwrap().unwrap();
        let mut seen = Vec::new();
        let visit = &mut |entry: &Entry<'_>| seen.push((entry.place, shown(entry)));
        match query::visit_listing(store, &root(), path, after, limit, visit).unwrap() {
            Page::Visited(count, remaining) => {
                seen.sort();
                let whole = copied.entries.iter().map(shown_status).enumerate().collect::<Vec<_>>();
                assert_eq!(
                    (seen, count, remaining),
                    (whole, copied.entries.len(), copied.remaining)
                );
            }
            Page::Whole(whole) => assert_eq!(whole.as_ref(), Some(&copied)),
        }
    }
    query::get_listing(store, &root(), path, after, limit).unwrap().unwrap()
}

fn shown(entry: &Entry<'_>) -> String {
    let InodeRef { id, name, owner, group, mode, has_acl, mtime, atime, kind, .. } = &entry.inode;
    let (policy, set) = (entry.policy.map(|policy| &policy.name), entry.storage_policy);
    let about = (name, owner, group, mode, has_acl, mtime, atime, kind);
    let encryption = &entry.encryption;
    format!("{id} {about:?} {policy:?} {set} {} {encryption:?}", entry.snapshottable)
}

fn shown_status(status: &FileStatus) -> String {
    let Inode { id, name, owner, group, mode, acl, mtime, atime, kind, .. } = &*status.inode;
    let (policy, set) = (status.policy.as_ref().map(|policy| &policy.name), status.storage_policy);
    let about = (name, owner, group, mode, !acl.is_empty(), mtime, atime, kind);
    let encryption = &status.encryption;
    format!("{id} {about:?} {policy:?} {set} {} {encryption:?}", status.snapshottable)
}

pub fn create(path: &str) -> Create {
    Create {
        path: path.into(),
        mode: 0o644.into(),
        holder: "client".into(),
        client_machine: "host".into(),
        create: true,
        overwrite: false,
        should_replicate: false,
        create_parent: true,
        replication: 3,
        block_size: 128 * MIB,
        ec_policy: None,
        storage_policy: None,
    }
}

pub fn add_block(path: &str, previous: Option<BlockRef>) -> AddBlock {
    AddBlock {
        path: path.into(),
        file: None,
        holder: "client".into(),
        previous,
        previous_crcs: Vec::new(),
        previous_min_replicated: true,
    }
}

pub fn complete(path: &str, last: Option<BlockRef>) -> Complete {
    Complete {
        path: path.into(),
        file: None,
        holder: "client".into(),
        last,
        last_crcs: Vec::new(),
        min_replicated: true,
    }
}

/// The exception's class without its package, and its text.
pub fn said(error: &NamespaceError) -> (String, String) {
    let class = error.exception_class().rsplit('.').next().unwrap_or_default();
    (class.to_string(), error.to_string())
}
