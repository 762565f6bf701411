//! What the reconstructions of a DataNode share: turns, bandwidth, and which units are in work.

use super::paces::Paces;
use crate::budget::Budget;
use crate::config::DataNodeConfig;
use cairn_process::held::held;
use cairn_stripe::BlockId;
use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bounds on the bytes per second of reconstructions.
pub(crate) struct Budgets {
    pub(crate) read: Budget,
    pub(crate) write: Budget,
}

impl Budgets {
    fn new(config: &DataNodeConfig) -> Budgets {
        Budgets {
            read: Budget::new(config.reconstruction_read_bandwidth),
            write: Budget::new(config.reconstruction_write_bandwidth),
        }
    }
}

/// What the reconstructions of a DataNode share.
///
/// Groups that another loss would cost data have threads and bandwidth of their own, each as much as all
/// others together, so that they wait for none of these.
pub(crate) struct Reconstructions {
    pub(crate) permits: [Semaphore; 2],
    /// How many permits each of them has, or will have.
    pub(crate) threads: AtomicUsize,
    budgets: [Budgets; 2],
    /// Units being rebuilt or waiting for their turn.
    units: Mutex<HashSet<BlockId>>,
    /// How fast sources answer.
    pub(crate) paces: Paces,
}

impl Reconstructions {
    pub(crate) fn new(config: &DataNodeConfig) -> Reconstructions {
        let permits = || Semaphore::new(config.reconstruction_threads.max(1));
        Reconstructions {
            permits: [permits(), permits()],
            threads: AtomicUsize::new(config.reconstruction_threads.max(1)),
            budgets: [Budgets::new(config), Budgets::new(config)],
            units: Mutex::default(),
            paces: Paces::default(),
        }
    }

    /// The bounds for work that is urgent or not.
    pub(crate) fn budgets(&self, is_urgent: bool) -> &Budgets {
        &self.budgets[usize::from(is_urgent)]
    }

    /// Units being rebuilt or waiting for their turn.
    pub(crate) fn units_in_work(&self) -> usize {
        self.lock().len()
    }

    /// A turn for work that is urgent or not.
    pub(crate) async fn permit(&self, is_urgent: bool) -> Option<SemaphorePermit<'_>> {
        // The semaphores are never closed.
        self.permits[usize::from(is_urgent)].acquire().await.ok()
    }

    /// Units being rebuilt or waiting for their turn, or what becomes of them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashSet<BlockId>> {
        held(&self.units)
    }
}
