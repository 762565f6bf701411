//! Applying an entry of the log to the store.
//!
//! The same entries in the same order give the same store and the same outcomes, always. An entry that
//! fails changes nothing.

use crate::command::Entry;
use crate::error::Result;
use crate::ops::Context;
use crate::settings;
use crate::snapshot::capture;
use crate::store::{Changes, Overlay, StoreRead, StoreTxn};

pub use crate::outcome::{BlockRecovery, Outcome, PolicyAdded, RemovedBlock};

/// Applies `entry` and writes its changes. An error leaves `store` as it was, except for
/// [`crate::NamespaceError::Store`], after which the transaction must be dropped.
pub fn apply(store: &mut dyn StoreTxn, entry: &Entry) -> Result<Outcome> {
    let (outcome, changes) = evaluate(&*store, entry)?;
    changes.write_to(store)?;
    Ok(outcome)
}

/// What `entry` would do: its outcome and the changes to write. No changes mean that the entry need
/// not be in the log, unless its outcome is one to [remember](crate::Retries::remember). Whether it came before
/// is not asked here.
pub fn evaluate(store: &dyn StoreRead, entry: &Entry) -> Result<(Outcome, Changes)> {
    let settings = settings::get(store)?;
    let mut overlay = Overlay::new(store);
    let mut outcome = entry.command.apply(&mut Context {
        store: &mut overlay,
        now_ms: entry.now_ms,
        caller: &entry.caller,
        settings: &settings,
        command: entry.command.name(),
    })?;
    capture::capture(store, &mut overlay, &mut outcome)?;
    // An entry that is logged anyway need not be known to change anything.
    let changes = match entry.once() {
        Some(_) => overlay.into_certain_changes()?,
        None => overlay.into_changes()?,
    };
    Ok((outcome, changes))
}
