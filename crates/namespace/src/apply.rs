//! Applying an entry of the log to the store.
//!
//! The same entries in the same order give the same store and the same answers, always. An entry that
//! fails changes nothing.

use crate::command::Entry;
use crate::effects::{self, Effect};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::Context;
use crate::settings::{self, Settings};
use crate::snapshot::capture;
use crate::store::{Changes, Overlay, StoreRead, StoreTxn};

pub use crate::outcome::{Outcome, PolicyAdded};

/// What an entry does.
#[derive(Debug)]
pub struct Applied {
    /// What its caller is told, and told again if the call is repeated.
    pub answer: Outcome,
    /// What has become of blocks, for those who know where these are.
    pub effects: Vec<Effect>,
    /// What to write. Nothing means that the entry need not be in the log, unless its answer is one to
    /// [remember](crate::Retries::remember).
    pub changes: Changes,
}

/// What an entry has done, as the log has it beside the entry: whoever reads it there writes, and decides nothing. What has
/// become of blocks follows from the records before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What its caller was told.
    pub answer: Outcome,
    /// What was written.
    pub changes: Changes,
}

encode_struct!(Done { answer, changes });

/// Applies `entry` and writes its changes. An error leaves `store` as it was, except for
/// [`crate::NamespaceError::Store`], after which the transaction must be dropped.
pub fn apply(store: &mut dyn StoreTxn, entry: &Entry) -> Result<(Outcome, Vec<Effect>)> {
    let Applied { answer, effects, changes } = evaluate(&*store, entry)?;
    changes.write_to(store)?;
    Ok((answer, effects))
}

/// What `entry` would do. Whether it came before is not asked here.
pub fn evaluate(store: &dyn StoreRead, entry: &Entry) -> Result<Applied> {
    evaluate_under(store, &*settings::get(store)?, entry)
}

/// As [`evaluate`], under other settings than those in force.
pub(crate) fn evaluate_under(
    store: &dyn StoreRead,
    settings: &Settings,
    entry: &Entry,
) -> Result<Applied> {
    let (mut overlay, mut other_copies) = (Overlay::new(store), Vec::new());
    let answer = entry.command.apply(&mut Context {
        store: &mut overlay,
        times: entry.times(),
        caller: &entry.caller,
        settings,
        other_copies: &mut other_copies,
        command: entry.command.name(),
    })?;
    capture::capture(store, &mut overlay, &mut other_copies)?;
    let effects = effects::of(store, &overlay, &other_copies)?;
    // An entry that is logged anyway need not be known to change anything.
    let changes = match entry.once() {
        Some(_) => overlay.into_certain_changes()?,
        None => overlay.into_changes()?,
    };
    Ok(Applied { answer, effects, changes })
}
