//! What an operation may do, whoever carries it.
//!
//! An operation is a plain `async fn` over an [`Op`]. The order of its lines is the order of events. Between two of its
//! awaits anything may happen: other operations, reports of DataNodes, the end of the process. So it holds nothing that
//! it has seen across an await, and each command says in its [`Guard`] what it rests on; if that has changed when the
//! command's turn comes the answer is [`OpError::Moved`], and the operation looks again.

use crate::facts::Lookup;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{CallId, Caller, Command, Guard, NamespaceError, Outcome};
use cairn_redundancy::{Cluster, Now, StorageHandle, Ticket};

/// How often an operation looks again because what it had seen has changed meanwhile.
const LOOKS_MAX: usize = 100;

/// Both states at one moment: the namespace is the one that the cluster has been told of.
pub struct Look<'a> {
    /// The namespace.
    pub store: &'a dyn StoreRead,
    /// The cluster, which the caller has for itself.
    pub cluster: &'a mut Cluster,
    /// The time.
    pub now: Now,
    /// Numbers by chance.
    pub dice: &'a mut dyn FnMut() -> u64,
}

impl<'a> Look<'a> {
    /// The namespace as the cluster asks it.
    pub fn lookup(&self) -> Lookup<'a> {
        Lookup::new(self.store)
    }
}

/// Storages that belong to an entry and are not in the log: those that a new block is written to, or those that a block
/// has after its pipeline was mended or its replicas were recovered. Unit `i` of a group is at place `i`.
pub type Targets = Vec<Option<StorageHandle>>;

/// A command on its way into the log.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What to do.
    pub command: Command,
    /// Who wants it.
    pub caller: Caller,
    /// The call that it decides, which gets the same answer when it is repeated.
    pub call: Option<CallId>,
    /// What it rests on.
    pub guard: Guard,
    /// What goes with it to the cluster.
    pub targets: Targets,
}

impl Submission {
    /// A command of a client that rests on nothing but what it checks itself.
    pub fn of(caller: Caller, call: Option<CallId>, command: impl Into<Command>) -> Submission {
        let (guard, targets) = (Guard::NONE, Targets::new());
        Submission { command: command.into(), caller, call, guard, targets }
    }

    /// The same of a command of the NameNode's own.
    pub fn own(command: impl Into<Command>) -> Submission {
        Submission::of(Caller::system(), None, command)
    }

    /// The same, resting on that.
    pub fn resting_on(self, guard: Guard) -> Submission {
        Submission { guard, ..self }
    }

    /// The same, with storages.
    pub fn with_targets(self, targets: Targets) -> Submission {
        Submission { targets, ..self }
    }
}

/// Why an operation has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// It was refused, and has changed nothing.
    #[error(transparent)]
    Refused(#[from] NamespaceError),
    /// What a command rested on has changed.
    #[error("the state of the file or of its blocks has changed meanwhile")]
    Moved,
    /// There are too few DataNodes for a block.
    #[error("{0}")]
    NoPlace(String),
    /// The log takes no entries any more: whether the last one came into force is not known.
    #[error("{0}")]
    Stopped(String),
}

/// Carries operations.
#[allow(
    async_fn_in_trait,
    reason = "who carries an operation knows whether it moves between threads"
)]
pub trait Op {
    /// Looks at both states, and may change soft state.
    fn look<R>(&self, look: impl FnOnce(&mut Look<'_>) -> R) -> R;

    /// Has a command logged; answers when it is durable, and the cluster has been told what it did.
    async fn submit(&self, submission: Submission) -> Result<Outcome, OpError>;

    /// Waits for a change that [`Cluster::await_change`] was asked for, until that time of the monotonic clock. Says
    /// whether it came.
    async fn wait(&self, ticket: Ticket, until_ms: u64) -> bool;

    /// The rack that a client's host is known to be in.
    fn rack_of(&self, client: &str) -> Option<String>;

    /// Blocks at the end of a file that may lack their minimum of replicas when it goes on or is closed
    /// (`dfs.namenode.file.close.num-committed-allowed`).
    fn committed_allowed(&self) -> usize;
}

/// Takes a step of an operation, and takes it again as long as what it had seen has changed before its command's turn came.
pub(crate) async fn looking_again<R, F: Future<Output = Result<R, OpError>>>(
    mut step: impl FnMut() -> F,
) -> Result<R, OpError> {
    for _ in 0..LOOKS_MAX {
        match step().await {
            Err(OpError::Moved) => {}
            done => return done,
        }
    }
    Err(OpError::Refused(NamespaceError::Retriable(
        "the file is being changed by others all the time; try again".to_string(),
    )))
}
