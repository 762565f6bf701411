//! The namespace of a member that follows, for who only reads it.

use super::Namesystem;
use super::follower::Follower;
use super::listeners::Listeners;
use crate::clock::FileSystemClock;
use cairn_namespace::Retries;
use cairn_namespace::holds::Holds;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};

impl Follower {
    /// What it has taken and takes, in `dir`, which is its folder. Nothing can be submitted. It is good for as long as the
    /// follower is there: then reads fail.
    pub fn namespace(&self, dir: &Path) -> Arc<Namesystem> {
        let clock = FileSystemClock::begin(self.store().position().times, false);
        Arc::new(Namesystem {
            dir: dir.to_owned(),
            lock: Mutex::new(None),
            point: Mutex::new(None),
            holds: Mutex::new(Holds::default()),
            is_agreed: true,
            changed_settings: Vec::new(),
            identity: self.identity().clone(),
            store: Arc::clone(self.store()),
            recent: Arc::clone(self.recent()),
            retries: Arc::new(Mutex::new(Retries::default())),
            listeners: Listeners::default(),
            inputs: Arc::default(),
            counts: Arc::default(),
            places: Semaphore::new(0),
            requests: Mutex::new(None),
            writer: Mutex::new(None),
            clock: Arc::new(clock),
            is_finalized: AtomicBool::new(true),
            checker: Mutex::new(None),
            failure: watch::channel(None).1,
        })
    }
}
