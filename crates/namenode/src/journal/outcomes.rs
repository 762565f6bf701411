//! Outcomes of calls that may come again, as the store keeps them.

use crate::store::Batch;
use cairn_namespace::store::{StoreError, StoreTxn, Table};
use cairn_namespace::{NamespaceError, Retries};

/// Has the next checkpoint write what is kept of calls that may come again.
pub(super) fn save(retries: &mut Retries, batch: &mut Batch) -> Result<(), StoreError> {
    for (key, record) in retries.save() {
        match record {
            Some(record) => batch.put(Table::Outcome, &key, &record)?,
            None => batch.delete(Table::Outcome, &key)?,
        }
    }
    Ok(())
}

/// What keeps them from being read.
pub(super) fn unread(error: NamespaceError) -> StoreError {
    match error {
        NamespaceError::Store(error) => error,
        other => StoreError::Corrupt { what: "outcomes of calls", reason: other.to_string() },
    }
}
