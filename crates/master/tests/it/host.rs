//! A NameNode whose commands come into force at once, after whatever a test has come between.

use cairn_master::add_block::{self, AddBlock};
use cairn_master::effects::{self, EntryEffects};
use cairn_master::{FollowUp, Look, Lookup, Op, OpError, Submission};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::create::Create;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{
    Applied, Block, BlockRef, Caller, Command, Entry, InodeId, Outcome, Settings, evaluate, query,
};
use cairn_redundancy::{
    BlockRef as Replica, Cluster, Command as Told, Config, Heartbeat, NodeAddress, NodeClaim,
    NodeHandle, Now, Registration, ReplicaEvent, ReplicaEventKind, ReplicaState, ReportedReplica,
    StorageHandle, StorageReport, StorageType, StorageUsage, Ticket,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Elapsed time at the start.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// What happens before the next command's turn comes.
pub(crate) type Between = Box<dyn FnOnce(&Host)>;

/// A NameNode whose commands come into force at once, after whatever is to come between.
pub(crate) struct Host {
    pub(crate) state: RefCell<State>,
    pub(crate) between: RefCell<VecDeque<Between>>,
    pub(crate) submitted: RefCell<Vec<Command>>,
    pub(crate) moved: RefCell<usize>,
    /// What follows from entries, and was not submitted.
    pub(crate) due: RefCell<FollowUp>,
}

pub(crate) struct State {
    pub(crate) store: MemoryStore,
    pub(crate) cluster: Cluster,
    pub(crate) now: Now,
}

impl Op for Host {
    fn look<R>(&self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, now } = &mut *state;
        let mut dice = || 4;
        look(&mut Look { store, cluster, now: *now, dice: &mut dice })
    }

    async fn submit(&self, submission: Submission) -> Result<Outcome, OpError> {
        let between = self.between.borrow_mut().pop_front();
        if let Some(between) = between {
            between(self);
        }
        if !submission.guard.holds(&self.state.borrow().store)? {
            *self.moved.borrow_mut() += 1;
            return Err(OpError::Moved);
        }
        self.submitted.borrow_mut().push(submission.command.clone());
        self.apply(submission)
    }

    async fn wait(&self, ticket: Ticket, until_ms: u64) -> bool {
        let mut state = self.state.borrow_mut();
        if state.cluster.take_woken().contains(&ticket) {
            return true;
        }
        state.cluster.forget_wait(ticket);
        state.now.mono_ms = until_ms;
        false
    }

    fn rack_of(&self, _: &str) -> Option<String> {
        None
    }

    fn committed_allowed(&self) -> usize {
        0
    }
}

pub(crate) const HOLDER: &str = "writer";
pub(crate) const NODES: usize = 8;

impl Host {
    pub(crate) fn new() -> Host {
        let state = State {
            store: MemoryStore::new(),
            cluster: cluster(),
            now: Now { mono_ms: 1000, elapsed_ms: EPOCH_MS, wall_ms: EPOCH_MS + 7 },
        };
        let host = Host {
            state: RefCell::new(state),
            between: RefCell::default(),
            submitted: RefCell::default(),
            moved: RefCell::default(),
            due: RefCell::default(),
        };
        let settings = Settings {
            block_size_min: 0,
            permissions_enabled: false,
            group_quiet_ms: 0,
            group_short_quiet_ms: 0,
            group_len_min: 1,
            ..Settings::default()
        };
        host.force(Configure { settings: settings.into() });
        host
    }

    /// Has a submission come into force.
    pub(crate) fn apply(&self, submission: Submission) -> Result<Outcome, OpError> {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, now } = &mut *state;
        let Submission { command, caller, call, targets, .. } = submission;
        let entry =
            Entry { now_ms: now.wall_ms, elapsed_ms: now.elapsed_ms, caller, call, command };
        let Applied { answer, effects, changes } = evaluate(store, &entry)?;
        changes.write_to(store).map_err(cairn_namespace::NamespaceError::from)?;
        let entry = EntryEffects { effects, targets };
        let due = effects::apply(cluster, &Lookup::new(store), *now, &entry);
        self.due.borrow_mut().append(due);
        Ok(answer)
    }

    /// A command that nobody has decided on here.
    pub(crate) fn force(&self, command: impl Into<Command>) -> Outcome {
        self.apply(Submission::own(command)).unwrap()
    }

    /// What comes before the next command that is submitted.
    pub(crate) fn then(&self, between: impl FnOnce(&Host) + 'static) {
        self.between.borrow_mut().push_back(Box::new(between));
    }

    pub(crate) fn create(&self, path: &str) -> InodeId {
        let outcome = self.force(Create {
            path: path.to_string(),
            mode: 0o644.into(),
            holder: HOLDER.to_string(),
            client_machine: String::new(),
            create: true,
            overwrite: false,
            should_replicate: false,
            create_parent: true,
            replication: 2,
            block_size: 1 << 20,
            ec_policy: None,
            storage_policy: None,
        });
        match outcome {
            Outcome::Created { status } => status.inode.id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn add(&self, file: InodeId, previous: Option<BlockRef>) -> Result<Block, OpError> {
        let wanted = AddBlock {
            file: Some(file),
            holder: HOLDER.to_string(),
            previous,
            ..AddBlock::default()
        };
        run(add_block::add_block(self, &Caller::system(), None, &wanted)).map(|added| added.block)
    }

    pub(crate) fn block(&self, block: &Block) -> Option<Block> {
        query::get_block(&self.state.borrow().store, block.id).unwrap().map(|info| info.block)
    }

    pub(crate) fn pipeline_len(&self, block: &Block) -> usize {
        self.state.borrow().cluster.pipeline(block.id).len()
    }

    /// A DataNode tells that it has all of a replica.
    pub(crate) fn report(&self, node: usize, block: BlockRef) {
        self.report_sum(node, block, None);
    }

    /// The same, with the CRC of its bytes.
    pub(crate) fn report_sum(&self, node: usize, block: BlockRef, crc32c: Option<u32>) {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, .. } = &mut *state;
        let (uuid, ip) = names(node);
        let reporter = cluster.registered(&claim(&uuid, &ip)).unwrap();
        let replica = Replica { id: block.id, gs: block.gs, len: block.len };
        let kind = ReplicaEventKind::Received { delete_hint: None };
        let event = ReplicaEvent { block: replica, kind, crc32c };
        let storage = format!("DS-{node}");
        let storage = (storage.as_str(), StorageType::Disk);
        cluster.incremental_report(&Lookup::new(store), reporter, storage, &[event]);
    }

    /// A DataNode tells that it has deleted something.
    pub(crate) fn delete(&self, node: usize, block: Replica) {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, .. } = &mut *state;
        let (uuid, ip) = names(node);
        let reporter = cluster.registered(&claim(&uuid, &ip)).unwrap();
        let event = ReplicaEvent { block, kind: ReplicaEventKind::Deleted, crc32c: None };
        let storage = format!("DS-{node}");
        let storage = (storage.as_str(), StorageType::Disk);
        cluster.incremental_report(&Lookup::new(store), reporter, storage, &[event]);
    }

    /// A copy has come to a storage.
    pub(crate) fn arrive(&self, storage: StorageHandle, block: Replica) {
        self.report(self.node_of(storage), BlockRef { id: block.id, gs: block.gs, len: block.len });
    }

    /// The number of the node that a storage belongs to.
    pub(crate) fn node_of(&self, storage: StorageHandle) -> usize {
        let uuid = self.state.borrow().cluster.storage(storage).uuid.clone();
        uuid.strip_prefix("DS-").unwrap().parse().unwrap()
    }

    /// A DataNode starts anew, and tells that it has those replicas.
    pub(crate) fn register(&self, node: usize, has: &[BlockRef]) {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, now } = &mut *state;
        let lookup = Lookup::new(store);
        let handle = cluster.register(&lookup, registration(node), *now).unwrap();
        let call = cluster.begin_report_call(handle, 0, *now).unwrap();
        let replica = |block: &BlockRef| ReportedReplica {
            block: Replica { id: block.id, gs: block.gs, len: block.len },
            state: ReplicaState::Finalized,
            crc32c: None,
        };
        let has: Vec<ReportedReplica> = has.iter().map(replica).collect();
        let storage = format!("DS-{node}");
        cluster.full_report(&lookup, call, (&storage, StorageType::Disk), &has, *now);
    }

    /// Lets time pass; all DataNodes call. Returns what each is told.
    pub(crate) fn pass(&self, ms: u64) -> Vec<(usize, Told)> {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, now } = &mut *state;
        (now.mono_ms, now.elapsed_ms, now.wall_ms) =
            (now.mono_ms + ms, now.elapsed_ms + ms, now.wall_ms + ms);
        cluster.tick(&Lookup::new(store), *now, &mut || 4);
        let beat = |node| {
            let (uuid, ip) = names(node);
            let lookup = Lookup::new(store);
            let answer = cluster.heartbeat(&lookup, &claim(&uuid, &ip), heartbeat(node), *now);
            answer.unwrap().commands.into_iter().map(move |command| (node, command))
        };
        (0..NODES).flat_map(beat).collect()
    }

    pub(crate) fn handle(&self, node: usize) -> NodeHandle {
        let (uuid, _) = names(node);
        self.state.borrow().cluster.node_by_uuid(&uuid).unwrap().handle
    }

    /// The NameNode starts again: the cluster knows nothing but its DataNodes.
    pub(crate) fn restart(&self) {
        self.state.borrow_mut().cluster = cluster();
    }
}

pub(crate) fn names(node: usize) -> (String, String) {
    (format!("dn-{node}"), format!("10.0.0.{node}"))
}

pub(crate) fn claim<'a>(uuid: &'a str, ip: &'a str) -> NodeClaim<'a> {
    NodeClaim { uuid, ip, xfer_port: 9866, process: None }
}

fn registration(node: usize) -> Registration {
    let (uuid, ip) = names(node);
    let address = NodeAddress { ip, xfer_port: 9866, ..NodeAddress::default() };
    Registration { uuid, address, rack: "/rack".to_string(), ..Registration::default() }
}

fn heartbeat(node: usize) -> Heartbeat {
    let usage = StorageUsage { capacity: 1 << 40, remaining: 1 << 40, ..StorageUsage::default() };
    let storage = StorageReport { uuid: format!("DS-{node}"), usage, ..StorageReport::default() };
    Heartbeat { storages: vec![storage], takes_groups: true, ..Heartbeat::default() }
}

fn cluster() -> Cluster {
    let (mut cluster, store) = (Cluster::new(Config::default()), MemoryStore::new());
    let (lookup, now) = (Lookup::new(&store), Now { mono_ms: 1000, elapsed_ms: 0, wall_ms: 0 });
    for node in 0..NODES {
        let (uuid, ip) = names(node);
        let handle = cluster.register(&lookup, registration(node), now).unwrap();
        cluster.heartbeat(&lookup, &claim(&uuid, &ip), heartbeat(node), now).unwrap();
        let call = cluster.begin_report_call(handle, 0, now).unwrap();
        let storage = format!("DS-{node}");
        cluster.full_report(&lookup, call, (&storage, StorageType::Disk), &[], now);
    }
    cluster
}

/// Nothing here is ever awaited for long.
pub(crate) fn run<R>(operation: impl Future<Output = R>) -> R {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("an operation waits for what nobody does"),
    }
}
