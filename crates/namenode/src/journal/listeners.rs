//! Who hears of entries when they come into force.

use cairn_master::effects::EntryEffects;
use std::sync::{Arc, OnceLock};

/// Hears of entries.
pub trait Listener: Send + Sync {
    /// Calls `show`, which lets readers see the entries, and takes in what these have done to blocks, in one moment:
    /// whoever looks at both sees either none of it or all.
    fn come_into_force(&self, entries: Vec<EntryEffects>, show: &mut dyn FnMut());
}

/// The one who hears, once there is one.
#[derive(Clone, Default)]
pub(super) struct Listeners(Arc<OnceLock<Arc<dyn Listener>>>);

impl Listeners {
    /// From now on `listener` hears. There can be one only.
    pub fn set(&self, listener: Arc<dyn Listener>) {
        let is_first = self.0.set(listener).is_ok();
        assert!(is_first, "one listener hears of what comes into force");
    }

    /// Has entries come into force. Without effects nobody need hear of them.
    pub fn come_into_force(&self, entries: Vec<EntryEffects>, show: &mut dyn FnMut()) {
        match self.0.get().filter(|_| !entries.is_empty()) {
            Some(listener) => listener.come_into_force(entries, show),
            None => show(),
        }
    }
}
