//! Background work of a server, all of one kind: each worker has a name, does rounds and rests between them, and can be
//! listed, counted and, where that is safe, paused.
//!
//! A loop says when it rests, and with that all else: what it does between two rests is a round. A pause takes hold where
//! a round would begin, so none is cut off, and lasts until it is lifted or the server ends.

mod calls;
mod figures;
mod kind;
mod page;
mod worker;

pub use calls::METHODS;
pub use kind::{Kind, Pause};
pub use page::regions;
pub use worker::{Progress, State, Told, Worker};

use std::sync::{Arc, Mutex};

use cairn_process::held::held;
use worker::Shared;

/// Why work was not paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPaused {
    /// No worker has that name.
    Unknown,
    /// It is not safe.
    Unsafe,
    /// This command does it.
    By(&'static str),
}

/// The workers of a server.
#[derive(Default)]
pub struct Workers(Arc<Mutex<Vec<Arc<Shared>>>>);

impl Workers {
    /// None yet.
    pub fn new() -> Workers {
        Workers::default()
    }

    /// A worker that is about to begin; it is listed as long as it lives. `of` says what of several things its work is on.
    pub fn begin(&self, kind: &'static Kind, of: impl Into<String>) -> Worker {
        self.add(Shared::new(kind, of.into(), None))
    }

    /// The same of one that handles so many bytes in a second at most, 0 for any number; that is asked when it is told.
    pub fn begin_bounded(
        &self,
        kind: &'static Kind,
        of: impl Into<String>,
        bytes_per_second: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Worker {
        self.add(Shared::new(kind, of.into(), Some(Box::new(bytes_per_second))))
    }

    fn add(&self, shared: Shared) -> Worker {
        let shared = Arc::new(shared);
        let mut all = held(&self.0);
        // Those of one kind are paused together, and so is who joins them.
        if all.iter().any(|other| other.kind.name == shared.kind.name && other.is_paused()) {
            shared.pause(true);
        }
        all.push(Arc::clone(&shared));
        Worker::new(shared, Arc::clone(&self.0))
    }

    /// All of them, by name.
    pub fn told(&self) -> Vec<Told> {
        let mut all: Vec<Told> = held(&self.0).iter().map(|shared| shared.told()).collect();
        all.sort_by(|a, b| (a.kind.name, &a.of).cmp(&(b.kind.name, &b.of)));
        all
    }

    /// Whether those of that name can be paused.
    pub fn may_pause(&self, name: &str) -> Result<(), NotPaused> {
        let all = held(&self.0);
        let found = all.iter().find(|shared| shared.kind.name == name);
        match found.ok_or(NotPaused::Unknown)?.kind.pause {
            Pause::Safe => Ok(()),
            Pause::Never => Err(NotPaused::Unsafe),
            Pause::By(command) => Err(NotPaused::By(command)),
        }
    }

    /// Has all workers of that name rest from their next round on, or go on.
    pub fn pause(&self, name: &str, pause: bool) -> Result<(), NotPaused> {
        self.may_pause(name)?;
        let all = held(&self.0);
        let named = all.iter().filter(|shared| shared.kind.name == name);
        named.for_each(|shared| shared.pause(pause));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
