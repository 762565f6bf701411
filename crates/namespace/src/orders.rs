//! What operators have ordered for the whole file system until they order something else, over restarts.
//!
//! One record of table `meta`. What follows from it for DataNodes is not known here. Changes are in `ops/orders.rs`.

use crate::encoding::{encode_enum, encode_struct, from_record, to_record};
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};

const VERSION: u8 = 1;
const KEY: &[u8] = b"orders";

/// Most DataNodes that are named.
pub const NODES_MAX: usize = 100_000;

/// What is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Nothing is to be changed (`dfsadmin -safemode enter`).
    pub safe_mode: bool,
    /// What each DataNode may move for balancers, bytes a second; 0 for what its own settings say
    /// (`dfsadmin -setBalancerBandwidth`).
    pub balancer_bandwidth: u64,
    /// What is to become of DataNodes, by name.
    pub nodes: Vec<NodeOrder>,
}

/// A DataNode as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    /// Name or address of its host.
    pub host: String,
    /// Its port of data transfer; 0 for all DataNodes of the host.
    pub port: u16,
}

/// What is to become of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOrder {
    /// Which.
    pub name: NodeName,
    /// What.
    pub intent: NodeIntent,
}

/// What is to become of a DataNode that does not just serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIntent {
    /// It is to be decommissioned.
    Leave,
    /// It is to be in maintenance.
    Away {
        /// Until then, wall time, ms since the epoch; `u64::MAX` for ever.
        until_ms: u64,
    },
}

encode_struct!(Orders { safe_mode, balancer_bandwidth, nodes });
encode_struct!(NodeName { host, port });
encode_struct!(NodeOrder { name, intent });
encode_enum!(NodeIntent {
    1 => Leave,
    2 => Away { until_ms },
});

/// The orders in force.
pub fn get(store: &dyn StoreRead) -> Result<Orders> {
    let mut found = None;
    store.peek(Table::Meta, KEY, &mut |record| found = Some(from_record(VERSION, record)))?;
    Ok(found.transpose()?.unwrap_or_default())
}

/// Puts others in force.
pub(crate) fn put(store: &mut dyn StoreTxn, orders: &Orders) -> Result<()> {
    Ok(store.put(Table::Meta, KEY, &to_record(VERSION, orders))?)
}
