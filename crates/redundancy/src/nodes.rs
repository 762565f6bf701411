//! The DataNodes and their storages: who is known, where each is, and how many serve.

use crate::handle::{NodeHandle, StorageHandle};
use crate::lease::ReportLeases;
use crate::node::DataNode;
use crate::places::map::STORAGES_MAX;
use crate::storage::Storage;
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use std::collections::{BTreeMap, BTreeSet};

/// See the module. A handle is the place in a list, and never given to another.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: Vec<DataNode>,
    by_uuid: BTreeMap<String, NodeHandle>,
    by_xfer: BTreeMap<(String, u16), NodeHandle>,
    storages: Vec<Storage>,
    storage_by_uuid: BTreeMap<String, StorageHandle>,
    /// Storages that there can be, those that are gone counted.
    storages_max: usize,
    width: Width,
    /// Leave to report in full.
    leases: ReportLeases,
}

/// How wide the cluster is: counted when a node comes or goes, asked for with every replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Width {
    /// Racks with live nodes in service.
    pub racks: usize,
    /// Live nodes in service.
    pub serving: usize,
    /// Upgrade domains of these, where they count.
    pub domains: usize,
    /// By how many units a group has: how many of them one rack has at least to take, where they are spread as evenly as
    /// racks and their nodes allow.
    pub shares: Shares,
}

/// See [`Width::shares`].
pub(crate) type Shares = [u8; MAX_UNITS_PER_GROUP + 1];

/// The shares on racks with so many nodes. Where there are fewer nodes than units, some nodes take several.
fn shares(racks: &[usize]) -> Shares {
    if racks.is_empty() {
        return Shares::default();
    }
    let mut of_size = [0; MAX_UNITS_PER_GROUP + 1];
    racks.iter().for_each(|nodes| of_size[(*nodes).min(MAX_UNITS_PER_GROUP)] += 1);
    let room = |most: usize| -> usize {
        let sizes = of_size.iter().enumerate();
        sizes.map(|(nodes, count): (usize, &usize)| nodes.min(most) * count).sum()
    };
    std::array::from_fn(|units| {
        let least = (0..=units).find(|most| room(*most) >= units);
        least.unwrap_or(units.div_ceil(racks.len())) as u8
    })
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes {
            nodes: Vec::new(),
            by_uuid: BTreeMap::new(),
            by_xfer: BTreeMap::new(),
            storages: Vec::new(),
            storage_by_uuid: BTreeMap::new(),
            storages_max: STORAGES_MAX,
            width: Width::default(),
            leases: ReportLeases::default(),
        }
    }
}

impl Nodes {
    pub(crate) fn node(&self, handle: NodeHandle) -> &DataNode {
        &self.nodes[handle.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, handle: NodeHandle) -> &mut DataNode {
        &mut self.nodes[handle.0 as usize]
    }

    pub(crate) fn storage(&self, handle: StorageHandle) -> &Storage {
        &self.storages[handle.0 as usize]
    }

    pub(crate) fn storage_mut(&mut self, handle: StorageHandle) -> &mut Storage {
        &mut self.storages[handle.0 as usize]
    }

    /// The node that a storage belongs to.
    pub(crate) fn node_of(&self, storage: StorageHandle) -> NodeHandle {
        self.storage(storage).node
    }

    /// Every node that has registered, those in whose place others are as well.
    pub(crate) fn all(&self) -> &[DataNode] {
        &self.nodes
    }

    /// The node with that UUID, dead or alive.
    pub(crate) fn by_uuid(&self, uuid: &str) -> Option<NodeHandle> {
        self.by_uuid.get(uuid).copied()
    }

    /// The node at an address and data transfer port.
    pub(crate) fn by_xfer(&self, ip: &str, xfer_port: u16) -> Option<NodeHandle> {
        self.by_xfer.get(&(ip.to_string(), xfer_port)).copied()
    }

    /// The storage with that UUID that was seen last.
    pub(crate) fn storage_by_uuid(&self, uuid: &str) -> Option<StorageHandle> {
        self.storage_by_uuid.get(uuid).copied()
    }

    /// The handle that the next new node gets.
    pub(crate) fn next_handle(&self) -> NodeHandle {
        NodeHandle(u32::try_from(self.nodes.len()).expect("fewer than 2^32 DataNodes"))
    }

    /// Takes in a node with the next handle.
    pub(crate) fn add(&mut self, node: DataNode) {
        assert_eq!(node.handle, self.next_handle(), "the handle of a node is its place");
        self.by_uuid.insert(node.uuid.clone(), node.handle);
        self.nodes.push(node);
    }

    /// A node that is at its address no longer, or is about to be found at another one.
    pub(crate) fn leave_address(&mut self, handle: NodeHandle) {
        let address = &self.nodes[handle.0 as usize].address;
        let xfer = (address.ip.clone(), address.xfer_port);
        if self.by_xfer.get(&xfer) == Some(&handle) {
            self.by_xfer.remove(&xfer);
        }
    }

    /// A node is found at the address that it has now.
    pub(crate) fn take_address(&mut self, handle: NodeHandle) {
        let address = &self.nodes[handle.0 as usize].address;
        self.by_xfer.insert((address.ip.clone(), address.xfer_port), handle);
    }

    /// Another node is in the place of one: nothing must know it any more.
    pub(crate) fn forget(&mut self, handle: NodeHandle) {
        self.leave_address(handle);
        let node = &mut self.nodes[handle.0 as usize];
        node.forgotten = true;
        self.by_uuid.remove(&node.uuid);
    }

    /// The handle that the next new storage gets, or how many there can be.
    pub(crate) fn next_storage(&self) -> Result<StorageHandle, usize> {
        let number = u32::try_from(self.storages.len()).ok();
        let number = number.filter(|_| self.storages.len() < self.storages_max);
        number.map(StorageHandle).ok_or(self.storages_max)
    }

    /// Takes in a storage with the next handle.
    pub(crate) fn add_storage(&mut self, storage: Storage) {
        assert_eq!(Ok(storage.handle), self.next_storage(), "the handle of a storage is its place");
        self.nodes[storage.node.0 as usize].storages.push(storage.handle);
        self.storage_by_uuid.insert(storage.uuid.clone(), storage.handle);
        self.storages.push(storage);
    }

    /// Has only so many storages be known.
    #[cfg(test)]
    pub(crate) fn limit_storages(&mut self, max: usize) {
        self.storages_max = max;
    }

    /// How many storages are known.
    #[cfg(test)]
    pub(crate) fn storage_count(&self) -> usize {
        self.storages.len()
    }

    /// How wide the cluster is.
    pub(crate) fn width(&self) -> Width {
        self.width
    }

    /// Counts anew how wide it is, upgrade domains where they are `domains_count`.
    pub(crate) fn count_width(&mut self, domains_count: bool) {
        self.width = self.counted(domains_count);
    }

    fn counted(&self, domains_count: bool) -> Width {
        let is_serving = |node: &&DataNode| !node.forgotten && node.alive && !node.is_leaving();
        let serving = || self.nodes.iter().filter(is_serving);
        let domains: BTreeSet<String> = match domains_count {
            true => serving().map(DataNode::upgrade_domain).collect(),
            false => BTreeSet::new(),
        };
        let mut racks: BTreeMap<&str, usize> = BTreeMap::new();
        serving().for_each(|node| *racks.entry(node.rack.as_str()).or_default() += 1);
        let racks: Vec<usize> = racks.into_values().collect();
        Width {
            racks: racks.len(),
            serving: racks.iter().sum(),
            domains: domains.len(),
            shares: shares(&racks),
        }
    }

    /// Leave to report in full.
    pub(crate) fn leases(&self) -> &ReportLeases {
        &self.leases
    }

    /// The same, to change.
    pub(crate) fn leases_mut(&mut self) -> &mut ReportLeases {
        &mut self.leases
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.width.racks += 1;
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self, domains_count: bool) {
        self.check_some(0, usize::MAX);
        assert_eq!(self.width, self.counted(domains_count), "how wide the cluster is");
        for ((ip, port), handle) in &self.by_xfer {
            let address = &self.node(*handle).address;
            assert_eq!((&address.ip, address.xfer_port), (ip, *port), "where {handle:?} is");
        }
        for (uuid, storage) in &self.storage_by_uuid {
            assert_eq!(&self.storage(*storage).uuid, uuid);
        }
    }

    /// The same of so many nodes from one on, by themselves. Returns the next, if there is one.
    pub(crate) fn check_some(&self, first: usize, count: usize) -> Option<usize> {
        let end = first.saturating_add(count).min(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate().take(end).skip(first) {
            assert_eq!(node.handle.0 as usize, at);
            let found = self.by_uuid.get(&node.uuid);
            assert!(node.forgotten || found == Some(&node.handle), "{} is not found", node.uuid);
            for storage in &node.storages {
                assert_eq!(self.storage(*storage).node, node.handle, "whose {storage:?} is");
            }
        }
        (end < self.nodes.len()).then_some(end)
    }
}
