//! Carries operations of the NameNode, one poll at a time.
//!
//! While an operation is polled it has the NameNode's state lent; what it awaits is left in its slot, and the answer is
//! put there when it has come.

use super::core::Core;
use cairn_master::{Look, Op, OpError, Submission};
use cairn_namespace::Outcome;
use cairn_redundancy::Ticket;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What an operation waits for.
#[derive(Debug)]
pub(super) enum Asked {
    /// That a command is logged and in force.
    Submit(Box<Submission>),
    /// A change, until some time.
    Wait { ticket: Ticket, until_ms: u64 },
}

/// What has come of it.
#[derive(Debug)]
pub(super) enum Reply {
    Submitted(Result<Outcome, OpError>),
    Woken(bool),
}

#[derive(Default)]
struct Slot {
    lent: Option<Box<Core>>,
    asked: Option<Asked>,
    reply: Option<Reply>,
}

/// What operations are carried by here.
#[derive(Clone, Default)]
pub(crate) struct Carrier(Rc<RefCell<Slot>>);

impl Carrier {
    async fn ask(&self, asked: Asked) -> Reply {
        self.0.borrow_mut().asked = Some(asked);
        poll_fn(|_| match self.0.borrow_mut().reply.take() {
            Some(reply) => Poll::Ready(reply),
            None => Poll::Pending,
        })
        .await
    }
}

impl Op for Carrier {
    fn look<R>(&self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        let mut slot = self.0.borrow_mut();
        let core = slot.lent.as_mut().expect("an operation looks while it is polled");
        core.look(look)
    }

    async fn submit(&self, submission: Submission) -> Result<Outcome, OpError> {
        match self.ask(Asked::Submit(Box::new(submission))).await {
            Reply::Submitted(answer) => answer,
            Reply::Woken(_) => unreachable!("it has asked for something else"),
        }
    }

    async fn wait(&self, ticket: Ticket, until_ms: u64) -> bool {
        match self.ask(Asked::Wait { ticket, until_ms }).await {
            Reply::Woken(is_woken) => is_woken,
            Reply::Submitted(_) => unreachable!("it has asked for something else"),
        }
    }

    fn rack_of(&self, _: &str) -> Option<String> {
        None
    }

    fn committed_allowed(&self) -> usize {
        0
    }
}

/// The answer of an operation, once there is one.
pub(crate) type Answer<T> = Rc<RefCell<Option<Result<T, OpError>>>>;

/// An operation under way.
pub(super) struct Running {
    carrier: Carrier,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// How far a poll has come.
pub(super) enum Polled {
    /// It is done.
    Done,
    /// It waits for that.
    Asked(Asked),
}

impl Running {
    /// An operation whose answer comes to what is returned beside it.
    pub(super) fn begin<T: 'static, F: Future<Output = Result<T, OpError>> + 'static>(
        operation: impl FnOnce(Carrier) -> F,
    ) -> (Running, Answer<T>) {
        let carrier = Carrier::default();
        let answer = Rc::new(RefCell::new(None));
        let (operation, told) = (operation(carrier.clone()), answer.clone());
        let future = Box::pin(async move {
            let done = operation.await;
            *told.borrow_mut() = Some(done);
        });
        (Running { carrier, future }, answer)
    }

    /// Gives it what it waits for.
    pub(super) fn reply(&mut self, reply: Reply) {
        self.carrier.0.borrow_mut().reply = Some(reply);
    }

    /// Lets it go on as far as it can.
    pub(super) fn poll(&mut self, core: Box<Core>) -> (Box<Core>, Polled) {
        self.carrier.0.borrow_mut().lent = Some(core);
        let mut context = Context::from_waker(Waker::noop());
        let is_done = self.future.as_mut().poll(&mut context).is_ready();
        let mut slot = self.carrier.0.borrow_mut();
        let core = slot.lent.take().expect("it was lent for this poll");
        let polled = match slot.asked.take() {
            _ if is_done => Polled::Done,
            Some(asked) => Polled::Asked(asked),
            None => unreachable!("an operation awaits nothing else"),
        };
        (core, polled)
    }
}
