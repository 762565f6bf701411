//! Encrypted keys that are kept ready, so that creating a file waits for no other server.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::{EncryptedKey, Kms, KmsError};

/// Keys of which something is kept; the one unused for longest gives way.
const MAX_NAMES: usize = 1_000;

/// Those who ask the server for a key of one name at a time, because none is ready.
const TURNS: usize = 4;

/// How much is kept ready. `Default` is Hadoop's.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOptions {
    /// `hadoop.security.kms.client.encrypted.key.cache.size`: encrypted keys kept of each key.
    pub size: usize,
    /// `hadoop.security.kms.client.encrypted.key.cache.low-watermark`: the part of `size` below
    /// which more are fetched.
    pub low_watermark: f32,
    /// `hadoop.security.kms.client.encrypted.key.cache.expiry`: what is kept of a key goes when
    /// nobody has asked for so long.
    pub expiry: Duration,
}

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        let expiry = Duration::from_secs(12 * 60 * 60);
        QueueOptions { size: 500, low_watermark: 0.3, expiry }
    }
}

/// Ready encrypted keys by the name of the key that encrypts them.
///
/// Each is given out once. More are fetched in the background, by one task for each name. What is
/// kept of all names is `QueueOptions::size` times 1,000 at most.
///
/// Source: Hadoop 3.5.0 `ValueQueue`. Deviation: the first ask fetches one and not a third of all.
#[derive(Debug)]
pub struct EncryptedKeys {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kms: Arc<Kms>,
    options: QueueOptions,
    queues: Mutex<HashMap<String, Queue>>,
}

#[derive(Debug)]
struct Queue {
    ready: VecDeque<EncryptedKey>,
    used: Instant,
    /// Whether a task fetches more.
    filling: bool,
    /// How often it was drained: what was asked for before is not kept.
    drained: u64,
    /// For those who find it empty and ask the server.
    turns: Arc<Semaphore>,
}

impl EncryptedKeys {
    /// Keeps nothing yet.
    pub fn new(kms: Arc<Kms>, options: QueueOptions) -> EncryptedKeys {
        EncryptedKeys { shared: Arc::new(Shared { kms, options, queues: Mutex::default() }) }
    }

    /// An encrypted key of key `name`: a ready one, or one that the server makes now. Called within
    /// a runtime, where a task may fetch more.
    ///
    /// Fails as [`Kms::generate`] does, when none is ready.
    pub async fn next(&self, name: &str) -> Result<EncryptedKey, KmsError> {
        if let Some(ready) = self.shared.take(name) {
            return Ok(ready);
        }
        // Not all who find nothing need to ask for themselves: what one has asked for is there for the others.
        let turns = self.shared.queue(name, |queue| Arc::clone(&queue.turns));
        let _turn = turns.acquire().await;
        if let Some(ready) = self.shared.take(name) {
            return Ok(ready);
        }
        let made = self.shared.kms.generate(name, 1).await?;
        // Only now, for a key that does not exist would be asked for twice.
        self.shared.fill_in_background(name);
        made.into_iter().next().ok_or_else(|| KmsError::NotFound { name: name.to_string() })
    }

    /// Has some encrypted keys ready for each of `names`, as many as the low watermark says; those
    /// that have any are left alone. The first failure is returned, after all were tried.
    pub async fn warm_up(&self, names: &[String]) -> Result<(), KmsError> {
        let mut outcome = Ok(());
        for name in names {
            let empty = self.shared.queue(name, |queue| queue.ready.is_empty());
            if empty {
                let filled = self.shared.fetch(name, self.shared.low_watermark().max(1)).await;
                outcome = outcome.and(filled);
            }
        }
        outcome
    }

    /// Throws away what is ready for `name`, and what is being fetched: its key has a new version.
    pub fn drain(&self, name: &str) {
        if let Some(queue) = self.shared.lock().get_mut(name) {
            queue.ready.clear();
            queue.drained += 1;
        }
    }

    /// How many are ready for `name`.
    pub fn ready(&self, name: &str) -> usize {
        self.shared.lock().get(name).map_or(0, |queue| queue.ready.len())
    }
}

/// A queue is being filled, until this is dropped.
struct Filling<'a> {
    shared: &'a Shared,
    name: &'a str,
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.shared.lock().get_mut(self.name) {
            queue.filling = false;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn low_watermark(&self) -> usize {
        (self.options.size as f32 * self.options.low_watermark) as usize
    }

    /// Does something with the queue of `name`, which there is after that.
    fn queue<T>(&self, name: &str, work: impl FnOnce(&mut Queue) -> T) -> T {
        let now = Instant::now();
        let mut queues = self.lock();
        if !queues.contains_key(name) {
            queues.retain(|_, queue| now.duration_since(queue.used) < self.options.expiry);
            if queues.len() >= MAX_NAMES {
                let oldest = queues.iter().min_by_key(|(_, queue)| queue.used);
                if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                    queues.remove(&oldest);
                }
            }
        }
        let fresh = || Queue {
            ready: VecDeque::new(),
            used: now,
            filling: false,
            drained: 0,
            turns: Arc::new(Semaphore::new(TURNS)),
        };
        let queue = queues.entry(name.to_string()).or_insert_with(fresh);
        if now.duration_since(queue.used) >= self.options.expiry {
            queue.ready.clear();
        }
        queue.used = now;
        work(queue)
    }

    fn take(self: &Arc<Shared>, name: &str) -> Option<EncryptedKey> {
        let low = self.low_watermark();
        let (taken, wanting) = self.queue(name, |queue| {
            let taken = queue.ready.pop_front();
            (taken, queue.ready.len() < low)
        });
        if taken.is_some() && wanting {
            self.fill_in_background(name);
        }
        taken
    }

    /// Starts a task that fills the queue of `name`, unless one is at work.
    fn fill_in_background(self: &Arc<Shared>, name: &str) {
        let size = self.options.size;
        let wanted = self.queue(name, |queue| {
            let wanted = size.saturating_sub(queue.ready.len());
            let start = wanted > 0 && !queue.filling;
            queue.filling |= start;
            start.then_some(wanted)
        });
        let Some(wanted) = wanted else { return };
        let (shared, name) = (Arc::clone(self), name.to_string());
        tokio::spawn(async move {
            let _filling = Filling { shared: &shared, name: &name };
            let fetched = shared.fetch(&name, wanted).await;
            if let Err(error) = fetched {
                tracing::warn!(key = name, %error, "no encrypted keys could be fetched");
            }
        });
    }

    /// Fetches `count` encrypted keys and has them ready, as far as there is room.
    async fn fetch(&self, name: &str, count: usize) -> Result<(), KmsError> {
        let drained = self.queue(name, |queue| queue.drained);
        let fetched = self.kms.generate(name, count).await?;
        if let Some(queue) = self.lock().get_mut(name).filter(|queue| queue.drained == drained) {
            let room = self.options.size.saturating_sub(queue.ready.len());
            queue.ready.extend(fetched.into_iter().take(room));
        }
        Ok(())
    }
}
