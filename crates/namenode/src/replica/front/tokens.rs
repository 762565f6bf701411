//! What knows of tokens while a member follows.

use crate::node::NameNode;
use std::sync::{Arc, RwLock};
use tokio::sync::Semaphore;

/// Connections that wait for tokens at a time.
const WAITS_MAX: usize = 256;

/// See the module.
pub(super) struct Tokens {
    /// Reads what is agreed on; none while it is not known.
    pub following: RwLock<Option<Arc<NameNode>>>,
    /// Who waits has one.
    pub waits: Semaphore,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { following: RwLock::default(), waits: Semaphore::new(WAITS_MAX) }
    }
}
