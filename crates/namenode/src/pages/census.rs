//! How much of the data is kept in which way, and whose it is, counted now and then when somebody looks: no counter of
//! the namespace tells it. The blocks are read a page at a time without a lock, at a pace that leaves others the processor.

mod holders;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cairn_namespace::query::{self, BlockInfo};
use cairn_process::held::held;
use cairn_process::lasting;
use cairn_redundancy::Layout;
use cairn_stripe::{BlockId, Redundancy};
use tokio::sync::Notify;

use crate::clock::wall_ms;
use crate::node::NameNode;
use holders::Holders;

/// Blocks or groups that are read at a time.
const PAGE: usize = 1000;
/// Of the time, one part in so many is spent reading.
const PACE: u32 = 5;

/// What is kept in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Blocks and groups.
    pub(super) blocks: u64,
    /// Bytes of files.
    pub(super) data_len: u64,
    /// Bytes of these on DataNodes, when all is well.
    pub(super) stored_len: u64,
}

/// All of the data, by how it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// When the count ended, ms since the epoch.
    pub(super) at_ms: u64,
    /// By a name for the way.
    pub(super) shares: BTreeMap<String, Share>,
    /// Bytes of files in the directories of the first two levels that have the most.
    pub(super) directories: Vec<(Arc<str>, u64)>,
    /// Bytes of files of the users who own most.
    pub(super) owners: Vec<(Arc<str>, u64)>,
}

/// The name for what contiguous groups keep.
const CONTIGUOUS: &str = "contiguous groups";

impl Census {
    fn add(&mut self, info: &BlockInfo) {
        let block = &info.block;
        let facts = cairn_master::facts::facts_as(block, Layout::from(&info.redundancy));
        let (name, stored_len) = match &info.redundancy {
            _ if block.group.is_some() && info.redundancy == Redundancy::Replicated(1) => {
                (CONTIGUOUS.to_string(), block.len)
            }
            Redundancy::Replicated(1) => ("one copy".to_string(), block.len),
            Redundancy::Replicated(copies) => {
                (format!("{copies} copies"), block.len.saturating_mul(u64::from(*copies)))
            }
            Redundancy::Striped(policy) => {
                let units = facts.units().into_iter();
                (policy.name.clone(), sum(units.map(|unit| facts.unit_len(unit))))
            }
        };
        let share = self.shares.entry(name).or_default();
        share.blocks += 1;
        // No file has the bytes of a tombstone.
        let data_len = if block.is_tombstone() { 0 } else { block.len };
        share.data_len = share.data_len.saturating_add(data_len);
        share.stored_len = share.stored_len.saturating_add(stored_len);
    }

    fn add_parities(&mut self, len: u64) {
        let share = self.shares.entry(CONTIGUOUS.to_string()).or_default();
        share.stored_len = share.stored_len.saturating_add(len);
    }

    /// Bytes of files.
    pub(super) fn data_len(&self) -> u64 {
        sum(self.shares.values().map(|share| share.data_len))
    }

    /// Bytes that three copies of everything would take beyond what is stored; negative if it takes more.
    pub(super) fn saved(&self) -> i128 {
        let sum =
            |len: fn(&Share) -> u64| self.shares.values().map(|s| i128::from(len(s))).sum::<i128>();
        3 * sum(|share| share.data_len) - sum(|share| share.stored_len)
    }
}

/// The last count, and whether somebody wants another one.
#[derive(Debug, Default)]
pub(super) struct Censuses {
    last: Mutex<Option<Arc<Census>>>,
    wanted: Notify,
}

impl Censuses {
    /// The last count; a new one is to be made when that one is old.
    pub(super) fn look(&self) -> Option<Arc<Census>> {
        self.wanted.notify_one();
        held(&self.last).clone()
    }

    /// Waits until somebody has looked.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// There is a new count.
    pub(super) fn put(&self, census: Census) {
        *held(&self.last) = Some(Arc::new(census));
    }
}

/// Counts all there is.
pub(super) async fn take(node: &Arc<NameNode>) -> cairn_namespace::Result<Census> {
    let (mut census, mut after) = (Census::default(), None::<BlockId>);
    let mut holders = Holders::default();
    loop {
        let read = paced(node, move |node| {
            node.ns.read(|store| {
                let infos = query::blocks_after(store, after, PAGE)?;
                infos.iter().try_for_each(|info| holders.add(store, &info.block))?;
                Ok::<_, cairn_namespace::NamespaceError>((infos, holders))
            })
        });
        let infos;
        (infos, holders) = read.await?;
        infos.iter().for_each(|info| census.add(info));
        // Blocks without a file are left out of a page.
        match infos.last() {
            Some(last) => after = Some(last.block.id),
            None => break,
        }
    }
    // Groups are counted all the time.
    if let Some((groups, _)) = node.group_work.counts(node.now()) {
        census.add_parities(groups.parity);
    }
    census.directories = holders.largest_directories();
    census.owners = holders.largest_owners();
    census.at_ms = wall_ms();
    Ok(census)
}

/// A sum of lengths, which may be what a client made up.
fn sum(lens: impl Iterator<Item = u64>) -> u64 {
    lens.fold(0, u64::saturating_add)
}

/// Reads, and rests in proportion.
async fn paced<R: Send + 'static>(
    node: &Arc<NameNode>,
    read: impl FnOnce(&NameNode) -> R + Send + 'static,
) -> R {
    let (node, begun) = (Arc::clone(node), Instant::now());
    let found = lasting::blocking(move || read(&node)).await;
    tokio::time::sleep(begun.elapsed() * (PACE - 1)).await;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::InodeId;
    use cairn_namespace::block::{Block, BlockState, Membership};
    use cairn_stripe::{CodecName, GenerationStamp, Policy, PolicyId, PolicyLayout, Schema};

    fn info(len: u64, redundancy: Redundancy, group: Option<Membership>) -> BlockInfo {
        let block = Block {
            id: BlockId(7),
            gs: GenerationStamp(1),
            len,
            file: InodeId(17_000),
            index: 0,
            state: BlockState::Complete,
            unit_crcs: Vec::new(),
            group,
            packed: None,
            reopened_gs: None,
        };
        BlockInfo { block, redundancy, file_open: false }
    }

    #[test]
    fn what_is_stored_is_data_with_copies_and_parity() {
        let policy = Policy {
            id: PolicyId(1),
            name: "RS-3-2".to_string(),
            schema: Schema { codec: CodecName::Rs, k: 3, m: 2 },
            cell_len: 10,
            layout: PolicyLayout::Striped,
        };
        let mut census = Census::default();
        census.add(&info(60, Redundancy::Striped(policy.clone()), None));
        // One cell: each parity is as long as that.
        census.add(&info(4, Redundancy::Striped(policy), None));
        census.add(&info(100, Redundancy::Replicated(3), None));
        let group = Membership { handle: BlockId(-16), slot: 0 };
        census.add(&info(50, Redundancy::Replicated(1), Some(group)));
        census.add_parities(20);
        let share = |name: &str| {
            let share = &census.shares[name];
            (share.blocks, share.data_len, share.stored_len)
        };
        assert_eq!(share("RS-3-2"), (2, 64, 100 + 12));
        assert_eq!(share("3 copies"), (1, 100, 300));
        assert_eq!(share(CONTIGUOUS), (1, 50, 70));
        assert_eq!(census.saved(), 3 * 214 - 482);
    }
}
