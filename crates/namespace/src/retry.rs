//! Outcomes of calls that a client may send again after it lost the answer.
//!
//! Table `retry`: client id, call id -> time and outcome. Table `retry-age`: time, client id, call id. They are kept
//! for a while, and so many at most; which of them go follows from the log alone.
//! Only calls that succeeded are kept: one that failed changed nothing and can be tried anew.
//!
//! Source: Hadoop 3.5.0 `RetryCache`, `LightWeightCache`.

use crate::apply::Outcome;
use crate::command::CallId;
use crate::encoding::{encode_struct, from_record, to_record};
use crate::error::Result;
use crate::ops::counter::{self, Counter};
use crate::settings::Settings;
use crate::store::{StoreRead, StoreTxn, Table};
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// Outcomes that one new one removes at most, so that the cache shrinks without a pause.
const REMOVED_PER_ENTRY: usize = 4;

/// Marks in `retry-age` what is counted; older stores have some that are not.
const COUNTED: &[u8] = &[1];

struct Kept {
    expires_ms: u64,
    outcome: Outcome,
}

encode_struct!(Kept { expires_ms, outcome });

fn key(call: CallId) -> Vec<u8> {
    [&call.client_id[..], &call.call_id.to_be_bytes()].concat()
}

/// The outcome of the same call, if it is still kept at `now_ms`.
pub(crate) fn find(store: &dyn StoreRead, call: CallId, now_ms: u64) -> Result<Option<Outcome>> {
    let mut found = None;
    store.peek(Table::Retry, &key(call), &mut |bytes| found = Some(from_record(VERSION, bytes)))?;
    let Some(kept): Option<Kept> = found.transpose()? else { return Ok(None) };
    Ok((now_ms < kept.expires_ms).then_some(kept.outcome))
}

/// Keeps the outcome of a call, and drops some that have expired, or the oldest where there are too many.
pub(crate) fn remember(
    store: &mut dyn StoreTxn,
    call: CallId,
    now_ms: u64,
    settings: &Settings,
    outcome: &Outcome,
) -> Result<()> {
    let count = counter::get(store, Counter::Retries)?;
    let most = match settings.retry_entries_max {
        0 => u64::MAX,
        most => most,
    };
    let mut surplus = (count + 1).saturating_sub(most);
    let mut gone = Vec::new();
    store.scan(Table::RetryAge, &[], &[], &mut |age, mark| {
        let is_expired = age < &now_ms.to_be_bytes()[..];
        if gone.len() == REMOVED_PER_ENTRY || !is_expired && surplus == 0 {
            return ControlFlow::Break(());
        }
        let is_counted = mark == COUNTED;
        surplus = surplus.saturating_sub(u64::from(is_counted));
        gone.push((age.to_vec(), is_counted));
        ControlFlow::Continue(())
    })?;
    let mut change = 1;
    for (age, is_counted) in gone {
        store.delete(Table::Retry, age.get(8..).unwrap_or_default())?;
        store.delete(Table::RetryAge, &age)?;
        change -= i64::from(is_counted);
    }
    if change != 0 {
        counter::add(store, Counter::Retries, change)?;
    }
    let expires_ms = now_ms.saturating_add(settings.retry_expiry_ms);
    let kept = Kept { expires_ms, outcome: outcome.clone().for_retry() };
    let age = [&kept.expires_ms.to_be_bytes()[..], &key(call)].concat();
    store.put(Table::Retry, &key(call), &to_record(VERSION, &kept))?;
    Ok(store.put(Table::RetryAge, &age, COUNTED)?)
}
