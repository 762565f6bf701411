//! What an operator configures and commands depend on.
//!
//! They are in the store and change by a command, so that a replay of the log decides as the first
//! run did, whatever the configuration says by then.

pub(crate) mod record;

use crate::encoding::to_record;
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};
use record::VERSION;
use std::sync::Arc;

pub use record::{KEY, RULES, Settings, from_bytes};

/// The settings in force.
pub fn get(store: &dyn StoreRead) -> Result<Arc<Settings>> {
    store.settings()
}

/// Puts other settings in force.
pub fn put(store: &mut dyn StoreTxn, settings: &Settings) -> Result<()> {
    Ok(store.put(Table::Meta, KEY, &to_record(VERSION, settings))?)
}
