//! Simulated clients: each writes, reads, appends, renames and deletes files, one step at a time.
//!
//! Between two steps anything can happen, and a client can die at any of them; then its files must be
//! closed without it. What follows what while a file is written is decided by `cairn_writer`.

mod block;
mod program;
mod read;
mod replicated;
mod striped;

use crate::model::{DIRECTORIES, FileModel};
use crate::name_node::{CallError, LocatedBlock, POLICIES, policy_name};
use crate::world::{Event, Job, World};
use block::BLOCK_LEN;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::lease::RenewLease;
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::snapshot::{CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{BlockRef, CallId, Command, InodeId, Outcome};
use cairn_redundancy::StorageType;
use cairn_stripe::{BlockId, Policy};
use program::{Hand, Program, TRIES};

/// A holder renews its lease when it is this old.
const RENEW_MS: u64 = 8000;
/// Questions in the middle of mending what has failed.
const IS_DELICATE: [&str; 3] = ["updateBlockForPipeline", "open", "updatePipeline"];

/// A call that may have to be repeated.
#[derive(Clone, Debug)]
struct Repeated {
    call: CallId,
    command: Command,
    goal: Goal,
    tries: u32,
}

/// What follows a call.
#[derive(Clone, Debug)]
enum Goal {
    Nothing,
    /// Write so many bytes.
    Fill {
        policy: Option<Policy>,
        copies: u16,
        len: u64,
    },
}

impl Job for Repeated {
    fn step(self: Box<Self>, world: &mut World<'_>, client: usize) {
        world.call_step(client, self);
    }

    fn waits_for(&self) -> Option<&'static str> {
        None
    }
}

impl World<'_> {
    pub(crate) fn client_step(&mut self, at: usize) {
        if self.is_quiet {
            return;
        }
        let waits_for = self.clients[at].job.as_ref().and_then(|job| job.waits_for());
        let is_quick = waits_for.is_some() && !self.rng.one_in(4);
        let delay = if self.unlucky(40) { 20_000 } else { 1200 };
        let delay = self.rng.range(1, if is_quick { 50 } else { delay });
        self.after(delay, Event::Client { client: at });
        // Others must bring to an end what it has begun to mend.
        let is_delicate = waits_for.is_some_and(|question| IS_DELICATE.contains(&question));
        let times = if is_delicate { 20 } else { 150 };
        if self.faults.clients && self.unlucky(times) {
            let holder = self.clients[at].holder();
            self.note(|| format!("{holder} dies"));
            self.count("clients die");
            self.clients[at].die();
            return;
        }
        if self.grouping.is_some() && self.rng.one_in(10) {
            self.read_as_located();
        }
        self.renew(at);
        match self.clients[at].job.take() {
            Some(job) => job.step(self, at),
            None => self.begin(at),
        }
    }

    fn renew(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let is_open = client.job.as_ref().is_some_and(|job| job.waits_for().is_some());
        if is_open && self.now_ms - client.renewed_ms > RENEW_MS {
            client.renewed_ms = self.now_ms;
            let holder = client.holder();
            _ = self.call(None, RenewLease { holder });
        }
    }

    /// Whether short blocks are packed.
    fn packs(&self) -> bool {
        self.grouping.is_some_and(|grouping| grouping.pack.is_some())
    }

    /// Makes a snapshot, or deletes one.
    fn begin_snapshot(&mut self, at: usize) {
        let path = DIRECTORIES[1].to_string();
        let command = match self.rng.pick(&self.model.snapshots).cloned() {
            Some(name) if self.model.snapshots.len() > 2 || self.rng.one_in(2) => {
                Command::from(DeleteSnapshot { path, name })
            }
            _ => {
                let name = format!("s{}", self.clients[at].next_call().call_id);
                CreateSnapshot { path, name }.into()
            }
        };
        self.begin_call(at, command, Goal::Nothing);
    }

    /// Chooses something to do.
    fn begin(&mut self, at: usize) {
        if self.grouping.is_some() && self.rng.one_in(25) {
            return self.begin_snapshot(at);
        }
        if self.options.is_contended && self.rng.one_in(3) {
            return self.recover_lease(at);
        }
        let closed: Vec<(InodeId, String)> = self
            .model
            .files
            .iter()
            .filter(|(_, file)| !file.is_open)
            .map(|(id, file)| (*id, file.path.clone()))
            .collect();
        let chosen = self.rng.pick(&closed).cloned();
        let dice = self.rng.range(0, 100);
        // Containers are packed anew only when much of them is dead, and enough for others is left.
        if self.packs() && self.rng.one_in(3) {
            return self.begin_create(at);
        }
        if let (true, Some((_, path))) = (self.packs() && self.rng.one_in(5), &chosen) {
            let delete = Delete { path: path.clone(), recursive: false };
            return self.begin_call(at, delete.into(), Goal::Nothing);
        }
        match (dice, chosen) {
            (0..=44, _) | (_, None) => self.begin_create(at),
            (45..=66, Some((id, _))) => _ = self.read_file(id),
            (67..=69, _) => self.recover_lease(at),
            (70..=79, Some((id, path))) => self.begin_append(at, id, path),
            (80..=86, Some((_, path))) => {
                self.begin_call(at, Delete { path, recursive: false }.into(), Goal::Nothing);
            }
            (87..=91, Some((_, src))) => {
                let dst = self.new_path(at);
                self.begin_call(at, Rename { src, dst }.into(), Goal::Nothing);
            }
            (92..=95, Some((id, target))) => {
                let others = closed.iter().filter(|(other, _)| *other != id);
                let others: Vec<String> = others.map(|(_, path)| path.clone()).collect();
                if let Some(source) = self.rng.pick(&others).cloned() {
                    let sources = vec![source];
                    self.begin_call(at, Concat { target, sources }.into(), Goal::Nothing);
                }
            }
            (_, Some((id, path))) => {
                let new_len = self.cut_at(id);
                let holder = self.clients[at].holder();
                let client_machine = String::new();
                let truncate = Truncate { path, new_len, holder, client_machine };
                self.begin_call(at, truncate.into(), Goal::Nothing);
            }
        }
    }

    /// Has a file closed that somebody writes, as those do who wait for it; several may do so at a time.
    fn recover_lease(&mut self, at: usize) {
        let open = self.model.files.values().filter(|file| file.is_open);
        let open: Vec<String> = open.map(|file| file.path.clone()).collect();
        let Some(path) = self.rng.pick(&open).cloned() else { return };
        let holder = self.clients[at].holder();
        let closed = self.call_recover_lease(&path, &holder);
        self.count("leases recovered");
        self.note(|| format!("{holder} wants {path} closed: {closed:?}"));
    }

    /// Where a file is to be cut off.
    fn cut_at(&mut self, file: InodeId) -> u64 {
        if self.grouping.is_none() {
            let len = self.model.files.get(&file).map_or(0, |file| file.written.len() as u64);
            return match self.rng.one_in(2) {
                true => self.rng.range(0, len + 1),
                false => self.rng.range(0, 3) * BLOCK_LEN,
            };
        }
        let at = self.rng.range(0, 3);
        let found = cairn_namespace::query::file_blocks(&self.name_node.store, file);
        let found = crate::name_node::sure(found).map_or_else(Vec::new, |found| found.blocks);
        let Some((offset, block)) = found.get(at as usize) else { return 0 };
        match block.packed.is_some() && self.rng.one_in(2) {
            true => offset + self.rng.range(0, block.len),
            false => *offset,
        }
    }

    fn new_path(&mut self, at: usize) -> String {
        let call = self.clients[at].next_call();
        let directory = DIRECTORIES[usize::from(self.grouping.is_some() && !self.rng.one_in(3))];
        format!("{directory}/{}-{}", self.clients[at].holder(), call.call_id)
    }

    fn begin_create(&mut self, at: usize) {
        let fitting: Vec<(&str, u32, u32)> = POLICIES
            .into_iter()
            .filter(|(_, k, m)| (k + m) as usize <= self.node_count())
            .collect();
        let path = self.new_path(at);
        let is_grouped = path.starts_with(DIRECTORIES[1]);
        let named = self.rng.pick(&fitting).copied();
        let named = named.filter(|_| !self.rng.one_in(3) && !is_grouped);
        let copies = self.rng.range(2, 4) as u16;
        let name = named.map(|(codec, k, m)| policy_name(codec, k, m));
        let known = crate::name_node::sure(cairn_namespace::query::policies(&self.name_node.store));
        let mut known = known.into_iter().map(|info| info.policy);
        let policy = name.as_ref().and_then(|name| known.find(|policy| policy.name == *name));
        let most = policy.as_ref().map_or(3 * BLOCK_LEN, |policy| 2 * policy.stripe_len() * 4);
        // Many of them are to be in one container.
        let is_small = self.packs() && !self.rng.one_in(4);
        let len = self.rng.range(0, if is_small { BLOCK_LEN / 4 } else { most + 1 });
        let width = named.map_or(usize::from(copies), |(_, k, m)| (k + m) as usize);
        let storage_policy = self.any_storage_policy(width);
        let create = Create {
            path,
            mode: 0o644.into(),
            holder: self.clients[at].holder(),
            client_machine: String::new(),
            create: true,
            overwrite: false,
            should_replicate: false,
            create_parent: false,
            replication: copies,
            block_size: BLOCK_LEN,
            ec_policy: name,
            storage_policy,
        };
        self.begin_call(at, create.into(), Goal::Fill { policy, copies, len });
    }

    /// A storage policy that there are storages for, where storages differ.
    fn any_storage_policy(&mut self, width: usize) -> Option<String> {
        if !self.has_kinds || self.rng.one_in(2) {
            return None;
        }
        let standing = self.nodes.iter().filter(|node| self.stands(node.number));
        let archives = standing.filter(|node| node.has_kind(StorageType::Archive));
        let fitting = if archives.count() > width { 5 } else { 4 };
        let name = ["HOT", "ALL_SSD", "ONE_SSD", "WARM", "COLD"][self.rng.index(fitting)];
        Some(name.to_string())
    }

    fn begin_call(&mut self, at: usize, command: Command, goal: Goal) {
        let call = self.clients[at].next_call();
        let repeated = Repeated { call, command, goal, tries: 0 };
        self.clients[at].job = Some(Box::new(repeated));
    }

    fn call_step(&mut self, at: usize, mut repeated: Box<Repeated>) {
        let (call, command) = (repeated.call, repeated.command.clone());
        let answer = match self.unlucky(30) {
            true => Err(CallError::Lost),
            false => self.call(Some(call), command),
        };
        // The answer may be lost on its way.
        let answer = if self.unlucky(30) { Err(CallError::Lost) } else { answer };
        match answer {
            Ok(outcome) => self.answered(at, outcome, repeated.goal),
            Err(CallError::Lost | CallError::NotNow) if repeated.tries < TRIES => {
                repeated.tries += 1;
                self.clients[at].job = Some(repeated);
            }
            Err(error) => {
                let holder = self.clients[at].holder();
                self.refused(&holder, repeated.command.name(), &error);
            }
        }
    }

    fn answered(&mut self, at: usize, outcome: Outcome, goal: Goal) {
        self.count("calls");
        if let (Outcome::Created { status, .. }, Goal::Fill { policy, copies, len }) =
            (outcome, goal)
        {
            let id = status.inode.id;
            match policy {
                Some(policy) => {
                    self.begin_write(at, id, |hand| striped::write(hand, id, policy, len));
                }
                None => {
                    let file = replicated::File { id, copies, len: 0, wanted: len };
                    self.begin_write(at, id, |hand| replicated::write(hand, file, None));
                }
            }
        }
    }

    /// Begins to write a file that is open.
    fn begin_write<F: Future<Output = bool> + 'static>(
        &mut self,
        at: usize,
        file: InodeId,
        program: impl FnOnce(Hand) -> F,
    ) {
        self.clients[at].writes.insert(file);
        let hand = Hand::of(&self.clients[at].holder());
        self.clients[at].renewed_ms = self.now_ms;
        self.clients[at].job = Some(Box::new(Program::new(hand.clone(), file, program(hand))));
    }

    fn begin_append(&mut self, at: usize, file: InodeId, path: String) {
        let call = self.clients[at].next_call();
        let holder = self.clients[at].holder();
        // Both would have one name, and a file without blocks has nothing by which they could be told apart.
        let is_written_by_it = self.clients[at].writes.contains(&file);
        if is_written_by_it || self.model.files.get(&file).is_none_or(|known| known.is_striped) {
            return;
        }
        let new_block = self.rng.one_in(3);
        match self.call_append(call, &path, &holder, new_block) {
            Ok(last) => {
                self.count("appends");
                // Others may have made it longer until it was this one's.
                let len = self.model.files.get(&file).map_or(0, |f| f.written.len() as u64);
                let more = self.rng.range(1, 2 * BLOCK_LEN);
                let status = cairn_namespace::query::get_inode_info(&self.name_node.store, file);
                let copies = crate::name_node::sure(status).map_or(2, |(_, s)| s.replication());
                let file = replicated::File { id: file, copies, len, wanted: len + more };
                if let Some(located) = last {
                    self.begin_write(at, file.id, |hand| replicated::append(hand, file, located));
                    return;
                }
                let found = cairn_namespace::query::file_blocks(&self.name_node.store, file.id);
                let last = crate::name_node::sure(found).and_then(|found| found.last);
                let previous = last.map(|(_, block)| block.reference()).filter(|_| new_block);
                self.begin_write(at, file.id, move |hand| replicated::write(hand, file, previous));
            }
            Err(error) => self.refused(&holder, "append", &error),
        }
    }

    /// Gets places for the next block. When there are too few, those that failed may be chosen again.
    fn allocate(
        &mut self,
        file: InodeId,
        holder: &str,
        previous: Option<BlockRef>,
        excluded: &mut Vec<usize>,
    ) -> Result<LocatedBlock, CallError> {
        let located = self.call_add_block(file, holder, previous, excluded);
        match &located {
            Ok(located) => {
                let (id, places) = (located.block.id, &located.places);
                self.note(|| format!("{holder} gets {id:?} at {places:?}"));
            }
            Err(CallError::NotNow) => excluded.clear(),
            Err(_) => {}
        }
        located
    }

    /// A file that a client writes; `None` where another one has it by now, or nobody.
    fn written_by(&mut self, file: InodeId, holder: &str) -> Option<&mut FileModel> {
        let file = self.model.files.get_mut(&file)?;
        (file.is_open && file.writer == holder).then_some(file)
    }

    /// The next bytes of a file: as many as it has already sent beyond `from`, or new ones.
    fn next_bytes(&mut self, file: InodeId, holder: &str, from: u64, len: u64) -> Vec<u8> {
        let fresh = self.rng.bytes(len as usize);
        let Some(file) = self.written_by(file, holder) else { return fresh };
        // What was sent before and not taken may be sent anew with other bytes, if nobody has it.
        file.written.truncate(from as usize);
        file.written.extend(&fresh);
        fresh
    }

    /// Bytes of the file up to `end`, which are in `block`, must not be lost from now on.
    fn acknowledged(&mut self, file: InodeId, holder: &str, end: u64, block: BlockId) {
        // The answer may come after a power cut.
        let is_torn = self.model.blocks.get(&block).is_some_and(|block| !block.torn.is_empty());
        let Some(file) = self.written_by(file, holder) else { return };
        file.told = file.told.max(end);
        if !is_torn {
            file.acked = file.acked.max(end);
        }
    }

    /// What is before `offset` is in blocks that are complete.
    fn left_behind(&mut self, file: InodeId, holder: &str, offset: u64) {
        match self.model.is_lazy {
            true => {
                if let Some(file) = self.written_by(file, holder) {
                    file.acked = file.acked.max(offset);
                    file.told = file.told.max(offset);
                }
            }
            false => self.synced(file, holder, offset),
        }
    }

    /// Bytes of the file up to `end` were synced.
    fn synced(&mut self, file: InodeId, holder: &str, end: u64) {
        if let Some(file) = self.written_by(file, holder) {
            file.durable = file.durable.max(end);
            file.acked = file.acked.max(end);
            file.told = file.told.max(end);
        }
    }

    /// Whether a write to a node reaches it.
    fn reaches_for_write(&mut self, node: usize) -> bool {
        let reaches = self.answers(node) && !self.unlucky(60);
        if !reaches {
            self.note(|| format!("a write to dn-{node} fails"));
        }
        reaches
    }
}
