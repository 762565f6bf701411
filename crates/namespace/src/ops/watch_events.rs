//! Somebody watches the tree.

use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::{perm, watching};

/// What entries do from the next one on is to be kept. The NameNode sends it when somebody asks for events, and again
/// when that one still does an hour later.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEvents {}

encode_struct!(WatchEvents {});

impl WatchEvents {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        watching::put(cx.store, cx.times.wall_ms)?;
        Ok(Outcome::Done)
    }
}
