//! Operations with others between their steps: what somebody has seen must hold when the command's turn comes.

use cairn_master::add_block::{self, AddBlock};
use cairn_master::complete::{self, Complete};
use cairn_master::effects::{self, EntryEffects};
use cairn_master::{Look, Lookup, Op, OpError, Submission, lease};
use cairn_namespace::ops::add_block::AddBlock as AddBlockCommand;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{
    Applied, Block, BlockRef, BlockState, Caller, Command, Entry, InodeId, Outcome, Settings,
    evaluate, query,
};
use cairn_redundancy::{
    BlockRef as Replica, Cluster, Config, Heartbeat, NodeAddress, NodeClaim, Now, Registration,
    ReplicaEvent, ReplicaEventKind, StorageReport, StorageType, StorageUsage, Ticket,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What happens before the next command's turn comes.
type Between = Box<dyn FnOnce(&Host)>;

/// A NameNode whose commands come into force at once, after whatever is to come between.
struct Host {
    state: RefCell<State>,
    between: RefCell<VecDeque<Between>>,
    submitted: RefCell<Vec<Command>>,
    moved: RefCell<usize>,
}

struct State {
    store: MemoryStore,
    cluster: Cluster,
    now: Now,
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

const HOLDER: &str = "writer";
const NODES: usize = 4;

impl Host {
    fn new() -> Host {
        let state = State {
            store: MemoryStore::new(),
            cluster: cluster(),
            now: Now { mono_ms: 1000, wall_ms: 1_700_000_000_000 },
        };
        let host = Host {
            state: RefCell::new(state),
            between: RefCell::default(),
            submitted: RefCell::default(),
            moved: RefCell::default(),
        };
        let settings =
            Settings { block_size_min: 0, permissions_enabled: false, ..Settings::default() };
        host.force(Configure { settings: settings.into() });
        host
    }

    /// Has a submission come into force.
    fn apply(&self, submission: Submission) -> Result<Outcome, OpError> {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, now } = &mut *state;
        let Submission { command, caller, call, targets, .. } = submission;
        let entry = Entry { now_ms: now.wall_ms, caller, call, command };
        let Applied { answer, effects, changes } = evaluate(store, &entry)?;
        changes.write_to(store).map_err(cairn_namespace::NamespaceError::from)?;
        let entry = EntryEffects { effects, targets };
        effects::apply(cluster, &Lookup::new(store), *now, &entry);
        Ok(answer)
    }

    /// A command that nobody has decided on here.
    fn force(&self, command: impl Into<Command>) -> Outcome {
        self.apply(Submission::own(command)).unwrap()
    }

    /// What comes before the next command that is submitted.
    fn then(&self, between: impl FnOnce(&Host) + 'static) {
        self.between.borrow_mut().push_back(Box::new(between));
    }

    fn create(&self, path: &str) -> InodeId {
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

    fn add(&self, file: InodeId, previous: Option<BlockRef>) -> Result<Block, OpError> {
        let wanted = AddBlock {
            file: Some(file),
            holder: HOLDER.to_string(),
            previous,
            ..AddBlock::default()
        };
        run(add_block::add_block(self, &Caller::system(), None, &wanted)).map(|added| added.block)
    }

    fn block(&self, block: &Block) -> Option<Block> {
        query::get_block(&self.state.borrow().store, block.id).unwrap().map(|info| info.block)
    }

    fn pipeline_len(&self, block: &Block) -> usize {
        self.state.borrow().cluster.pipeline(block.id).len()
    }

    /// A DataNode tells that it has all of a replica.
    fn report(&self, node: usize, block: BlockRef) {
        let mut state = self.state.borrow_mut();
        let State { store, cluster, .. } = &mut *state;
        let (uuid, ip) = names(node);
        let reporter = cluster.registered(&claim(&uuid, &ip)).unwrap();
        let replica = Replica { id: block.id, gs: block.gs, len: block.len };
        let kind = ReplicaEventKind::Received { delete_hint: None };
        let event = ReplicaEvent { block: replica, kind, crc32c: None };
        let storage = format!("DS-{node}");
        let storage = (storage.as_str(), StorageType::Disk);
        cluster.incremental_report(&Lookup::new(store), reporter, storage, &[event]);
    }

    /// The NameNode starts again: the cluster knows nothing but its DataNodes.
    fn restart(&self) {
        self.state.borrow_mut().cluster = cluster();
    }
}

fn names(node: usize) -> (String, String) {
    (format!("dn-{node}"), format!("10.0.0.{node}"))
}

fn claim<'a>(uuid: &'a str, ip: &'a str) -> NodeClaim<'a> {
    NodeClaim { uuid, ip, xfer_port: 9866, process: None }
}

fn cluster() -> Cluster {
    let (mut cluster, store) = (Cluster::new(Config::default()), MemoryStore::new());
    let (lookup, now) = (Lookup::new(&store), Now { mono_ms: 1000, wall_ms: 0 });
    for node in 0..NODES {
        let (uuid, ip) = names(node);
        let address = NodeAddress { ip: ip.clone(), xfer_port: 9866, ..NodeAddress::default() };
        let registration = Registration {
            uuid: uuid.clone(),
            address,
            rack: "/rack".to_string(),
            ..Registration::default()
        };
        cluster.register(&lookup, registration, now).unwrap();
        let usage =
            StorageUsage { capacity: 1 << 40, remaining: 1 << 40, ..StorageUsage::default() };
        let storage =
            StorageReport { uuid: format!("DS-{node}"), usage, ..StorageReport::default() };
        let heartbeat = Heartbeat { storages: vec![storage], ..Heartbeat::default() };
        cluster.heartbeat(&lookup, &claim(&uuid, &ip), heartbeat, now).unwrap();
    }
    cluster
}

/// Nothing here is ever awaited for long.
fn run<R>(operation: impl Future<Output = R>) -> R {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("an operation waits for what nobody does"),
    }
}

#[test]
fn a_block_is_not_dropped_because_nobody_had_it_before_its_writer_flushed_it() {
    let host = Host::new();
    let file = host.create("/f");
    let block = host.add(file, None).unwrap();
    // After a restart nobody is known to have it, so that a release would drop it as empty.
    host.restart();
    let flush = Fsync {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last_len: Some(700),
    };
    host.then(|host| drop(host.force(flush)));
    assert_eq!(run(lease::release(&host, file)), Ok(false), "it must be recovered first");
    assert_eq!(*host.moved.borrow(), 1);
    let kept = host.block(&block).expect("it has bytes that somebody was told are safe");
    assert!(matches!(kept.state, BlockState::UnderRecovery { .. }));
}

#[test]
fn a_file_is_not_closed_over_a_block_that_was_added_meanwhile() {
    let host = Host::new();
    let file = host.create("/f");
    let first = host.add(file, None).unwrap();
    let done = BlockRef { len: 100, ..first.reference() };
    host.report(0, done);
    let second = AddBlockCommand {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        previous: Some(done),
        previous_crcs: Vec::new(),
        previous_min_replicated: true,
    };
    host.then(|host| drop(host.force(second)));
    let wanted = Complete {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last: Some(done),
    };
    let closed = run(complete::complete(&host, &Caller::system(), None, &wanted));
    assert!(matches!(closed, Err(OpError::Refused(_))), "{closed:?}");
    assert_eq!(*host.moved.borrow(), 1);
}

#[test]
fn a_call_that_meets_its_twin_gets_the_same_block_on_the_same_storages() {
    let host = Host::new();
    let file = host.create("/f");
    let twin = std::rc::Rc::new(RefCell::new(None));
    let told = twin.clone();
    host.then(move |host| *told.borrow_mut() = Some(host.add(file, None).unwrap()));
    let block = host.add(file, None).unwrap();
    assert_eq!(Some(&block), twin.borrow().as_ref());
    assert_eq!((*host.moved.borrow(), host.pipeline_len(&block)), (1, 2));
    let added = |command: &&Command| matches!(command, Command::AddBlock(_));
    assert_eq!(host.submitted.borrow().iter().filter(added).count(), 1);
}

#[test]
fn an_id_and_stamp_never_get_other_storages() {
    let host = Host::new();
    let file = host.create("/f");
    let first = host.add(file, None).unwrap();
    assert_eq!(host.add(file, None).unwrap(), first, "repeated");
    host.restart();
    // Nobody reports anything of it in time.
    let second = host.add(file, None).unwrap();
    assert!(second.id != first.id && second.gs > first.gs);
    assert_eq!((host.block(&first), host.pipeline_len(&second)), (None, 2));
    host.restart();
    // Its writer was told after all: a DataNode has it.
    host.report(1, second.reference());
    assert_eq!(host.add(file, None).unwrap(), second);
}

#[test]
fn a_block_that_is_reported_while_a_close_waits_ends_the_wait() {
    let host = Host::new();
    let file = host.create("/f");
    let block = host.add(file, None).unwrap();
    let done = BlockRef { len: 100, ..block.reference() };
    let wanted = Complete {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last: Some(done),
    };
    let close = || run(complete::complete(&host, &Caller::system(), None, &wanted));
    assert_eq!(close(), Ok(false), "nobody has it");
    let committed = host.block(&block).unwrap();
    assert_eq!((committed.state, committed.len), (BlockState::Committed, 100));
    host.report(0, done);
    assert_eq!(close(), Ok(true));
    assert_eq!(host.block(&block).unwrap().state, BlockState::Complete);
}
