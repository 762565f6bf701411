//! What a client does with a file: a future that has the world do one thing at each of the client's steps.
//!
//! Between two steps anything can happen. A client that dies drops its future, wherever it is.

use super::block::block_ref;
use crate::name_node::{CallError, Target};
use crate::world::{Job, World};
use cairn_namespace::InodeId;
use cairn_stripe::GenerationStamp;
use cairn_writer::Block;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Times that a call is tried again.
pub(super) const TRIES: u32 = 40;

/// Has the world do something; whether that is done, or to be tried again.
type Work = Box<dyn for<'w> FnMut(&mut World<'w>, usize) -> bool>;
/// Lets the world know of something.
type News = Box<dyn for<'w> FnOnce(&mut World<'w>)>;

/// What a client waits for.
struct Question {
    name: &'static str,
    work: Work,
}

/// How a program reaches the world.
#[derive(Clone)]
pub(super) struct Hand {
    /// The client's name.
    pub(super) holder: Rc<str>,
    question: Rc<RefCell<Option<Question>>>,
    news: Rc<RefCell<Vec<News>>>,
}

/// Why a file is given up.
#[derive(Debug)]
pub(super) enum Why {
    /// The NameNode said no.
    Refused,
    /// A DataNode failed, or none was found.
    Failed,
}

impl Hand {
    /// The hand of the client with that name.
    pub(super) fn of(holder: &str) -> Hand {
        Hand { holder: holder.into(), question: Rc::default(), news: Rc::default() }
    }

    /// Has the client with the number that `work` gets do something, at its next step and, while there is no
    /// answer, at those after it.
    pub(super) async fn ask<T: 'static>(
        &self,
        name: &'static str,
        mut work: impl FnMut(&mut World<'_>, usize) -> Option<T> + 'static,
    ) -> T {
        let answer: Rc<Cell<Option<T>>> = Rc::default();
        let given = answer.clone();
        let work = Box::new(move |world: &mut World<'_>, at: usize| {
            let answer = work(world, at);
            let is_done = answer.is_some();
            given.set(answer);
            is_done
        });
        let before = self.question.replace(Some(Question { name, work }));
        assert!(before.is_none(), "a client asks one question at a time");
        std::future::poll_fn(move |_| answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Calls the NameNode, until it answers.
    pub(super) async fn call<T: 'static>(
        &self,
        name: &'static str,
        mut call: impl FnMut(&mut World<'_>, &str) -> Result<T, CallError> + 'static,
    ) -> Result<T, Why> {
        let by_number = move |world: &mut World<'_>, at: usize| {
            let holder = world.clients[at].holder();
            call(world, &holder)
        };
        self.call_as(name, by_number).await
    }

    /// The same, by the client's number.
    async fn call_as<T: 'static>(
        &self,
        name: &'static str,
        mut call: impl FnMut(&mut World<'_>, usize) -> Result<T, CallError> + 'static,
    ) -> Result<T, Why> {
        let work = move |world: &mut World<'_>, at: usize| {
            let answer = match world.unlucky(30) {
                true => Err(CallError::Lost),
                false => call(world, at),
            };
            // The answer may be lost on its way.
            let answer = if world.unlucky(30) { Err(CallError::Lost) } else { answer };
            match answer {
                Ok(answer) => Some(Ok(answer)),
                Err(CallError::Lost | CallError::NotNow) => None,
                Err(error) => {
                    let holder = world.clients[at].holder();
                    world.refused(&holder, name, &error);
                    Some(Err(Why::Refused))
                }
            }
        };
        self.ask(name, work).await
    }

    /// Asks for a new generation stamp.
    pub(super) async fn new_stamp(&self, block: Block) -> Result<GenerationStamp, Why> {
        let call = move |world: &mut World<'_>, holder: &str| {
            world.call_new_stamp(holder, block_ref(block))
        };
        self.call("updateBlockForPipeline", call).await
    }

    /// Tells the NameNode who has the new stamp of a block.
    pub(super) async fn update_pipeline(
        &self,
        old: Block,
        new: Block,
        places: Vec<Option<Target>>,
    ) -> Result<(), Why> {
        let mut id = None;
        let work = move |world: &mut World<'_>, at: usize| {
            // One call, however often it has to come.
            let id = *id.get_or_insert_with(|| world.clients[at].next_call());
            let (old, new, holder) = (block_ref(old), block_ref(new), world.clients[at].holder());
            world.call_update_pipeline(id, &holder, old, new, &places)
        };
        self.call_as("updatePipeline", work).await
    }

    /// Closes the file, once its last block is on enough DataNodes.
    pub(super) async fn complete(&self, file: InodeId, last: Option<Block>) -> Result<(), Why> {
        let call = move |world: &mut World<'_>, holder: &str| match world.call_complete(
            file,
            holder,
            last.map(block_ref),
        )? {
            true => Ok(()),
            false => Err(CallError::NotNow),
        };
        self.call("complete", call).await
    }

    /// Lets the world know something, before anything else happens.
    pub(super) fn tell(&self, news: impl FnOnce(&mut World<'_>) + 'static) {
        self.news.borrow_mut().push(Box::new(news));
    }
}

/// See the module.
pub(super) struct Program {
    hand: Hand,
    file: InodeId,
    /// Whether the file was written to its end.
    future: Pin<Box<dyn Future<Output = bool>>>,
    tries: u32,
}

impl Program {
    pub(super) fn new(
        hand: Hand,
        file: InodeId,
        future: impl Future<Output = bool> + 'static,
    ) -> Program {
        Program { hand, file, future: Box::pin(future), tries: 0 }
    }
}

impl Job for Program {
    fn step(self: Box<Self>, world: &mut World<'_>, client: usize) {
        world.program_step(client, self);
    }

    fn waits_for(&self) -> Option<&'static str> {
        Some(self.hand.question.borrow().as_ref().map_or("", |question| question.name))
    }
}

impl World<'_> {
    /// Answers a client's question, and has it go on to the next.
    fn program_step(&mut self, at: usize, mut program: Box<Program>) {
        let asked = program.hand.question.take();
        if let Some(mut question) = asked
            && !(question.work)(self, at)
        {
            program.tries += 1;
            program.hand.question.replace(Some(question));
            match program.tries < TRIES {
                true => self.clients[at].job = Some(program),
                false => self.gives_up(at, program.file),
            }
            return;
        }
        program.tries = 0;
        let done = program.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        program.hand.news.take().into_iter().for_each(|news| news(self));
        match done {
            Poll::Pending => self.clients[at].job = Some(program),
            Poll::Ready(true) => {
                self.clients[at].writes.remove(&program.file);
                self.count("files written");
            }
            Poll::Ready(false) => self.gives_up(at, program.file),
        }
    }

    fn gives_up(&mut self, at: usize, file: InodeId) {
        let holder = self.clients[at].holder();
        self.clients[at].writes.remove(&file);
        self.note(|| format!("{holder} gives its file up"));
        self.count("writers break");
    }
}
