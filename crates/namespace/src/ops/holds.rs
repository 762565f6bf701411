//! What keeps replicas from being deleted.

use crate::encoding::encode_struct;
use crate::error::Result;
use crate::holds::{self, Holds, Upgrade};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::perm;

/// A rolling upgrade begins; one that is under way already stays. Every NameNode that has the log copies its store, to
/// go back to.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#startRollingUpgrade`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareUpgrade {
    /// When, ms since the epoch.
    pub start_ms: u64,
    /// The last entry of the log before.
    pub sequence: u64,
}

/// Replicas may be deleted again, as far as what is named here has held them: there is no way back from a rolling upgrade
/// any more, or a namespace that was restored is what is wanted.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#finalizeRollingUpgrade`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// A rolling upgrade.
    pub upgrade: bool,
    /// That it was restored.
    pub restored: bool,
}

encode_struct!(PrepareUpgrade { start_ms, sequence });
encode_struct!(Release { upgrade, restored });

/// Changes what is in force, if that is a change.
fn change(cx: &mut Context<'_, '_>, change: impl FnOnce(&mut Holds)) -> Result<Outcome> {
    perm::check_superuser(cx.settings, cx.caller)?;
    let was = holds::get(cx.store)?;
    let mut now = was;
    change(&mut now);
    if now != was {
        holds::put(cx.store, &now)?;
    }
    Ok(Outcome::Done)
}

impl PrepareUpgrade {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let upgrade = Upgrade { start_ms: self.start_ms, sequence: self.sequence };
        change(cx, |holds| holds.upgrade = holds.upgrade.or(Some(upgrade)))
    }
}

impl Release {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        change(cx, |holds| {
            holds.upgrade = holds.upgrade.filter(|_| !self.upgrade);
            holds.restored = holds.restored.filter(|_| !self.restored);
        })
    }
}
