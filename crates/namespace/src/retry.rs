//! Outcomes of calls that a client may send again after it lost the answer.
//!
//! Table `retry`: client id, call id -> time and outcome. Table `retry-age`: time, client id, call id.
//! Only calls that succeeded are kept: one that failed changed nothing and can be tried anew.
//!
//! Source: Hadoop 3.5.0 `RetryCache`.

use crate::apply::Outcome;
use crate::command::CallId;
use crate::encoding::{encode_struct, from_record, to_record};
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// Expired entries that one new entry removes at most, so that the cache shrinks without a pause.
const EXPIRED_PER_ENTRY: usize = 4;

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
    let Some(bytes) = store.get(Table::Retry, &key(call))? else { return Ok(None) };
    let kept: Kept = from_record(VERSION, &bytes)?;
    Ok((now_ms < kept.expires_ms).then_some(kept.outcome))
}

/// Keeps the outcome of a call until `expiry_ms` from now, and drops some that have expired.
pub(crate) fn remember(
    store: &mut dyn StoreTxn,
    call: CallId,
    now_ms: u64,
    expiry_ms: u64,
    outcome: &Outcome,
) -> Result<()> {
    let mut expired = Vec::new();
    store.scan(Table::RetryAge, &[], &now_ms.to_be_bytes(), &mut |age, _| {
        expired.push(age.to_vec());
        if expired.len() < EXPIRED_PER_ENTRY {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    for age in expired {
        store.delete(Table::Retry, age.get(8..).unwrap_or_default())?;
        store.delete(Table::RetryAge, &age)?;
    }
    let kept =
        Kept { expires_ms: now_ms.saturating_add(expiry_ms), outcome: outcome.clone().for_retry() };
    let age = [&kept.expires_ms.to_be_bytes()[..], &key(call)].concat();
    store.put(Table::Retry, &key(call), &to_record(VERSION, &kept))?;
    Ok(store.put(Table::RetryAge, &age, &[])?)
}
