//! Writing block groups: the sequence that ships, over simulated units, of which each is as far as it pleases.

use super::block::{BLOCK_LEN, block_ref, writer_block};
use super::program::{Hand, Why};
use crate::model::Part;
use crate::name_node::Target;
use crate::world::World;
use cairn_namespace::InodeId;
use cairn_redundancy::BlockRef;
use cairn_stripe::{BlockId, GenerationStamp, Geometry, Policy, UnitIndex};
use cairn_writer::Block;
use cairn_writer::group::{GroupError, Groups, Peers, Rules};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Cells that a unit may have to be sent before others wait for it.
const LAG: usize = 3;

/// What groups ask.
struct Streams {
    hand: Hand,
    file: InodeId,
    geometry: Geometry,
    /// The stamp that units are being given.
    stamp: GenerationStamp,
    group: Rc<RefCell<Group>>,
    /// Nodes that have failed it.
    excluded: Vec<usize>,
}

/// The units of the group at hand; none between two.
#[derive(Default)]
struct Group {
    id: Option<BlockId>,
    /// Where it begins in the file.
    offset: u64,
    /// Data bytes handed to its units.
    len: u64,
    units: Vec<Unit>,
}

/// A unit being written.
struct Unit {
    target: Option<Target>,
    gs: GenerationStamp,
    /// What it is still to be sent.
    queue: VecDeque<Cell>,
    acked: u64,
    has_failed: bool,
    /// It has failed, and the NameNode knows that the others have a newer stamp.
    is_fenced: bool,
}

/// What a unit is sent at once.
struct Cell {
    bytes: Vec<u8>,
    /// The internal block ends with it.
    is_last: bool,
}

/// Writes a new file to its end.
pub(super) async fn write(hand: Hand, file: InodeId, policy: Policy, wanted: u64) -> bool {
    fill(hand, file, policy, wanted).await.is_ok()
}

async fn fill(
    hand: Hand,
    file: InodeId,
    policy: Policy,
    wanted: u64,
) -> Result<(), GroupError<Why>> {
    let geometry = Geometry::from(&policy);
    let margin = move |world: &mut World<'_>, _| Some(world.rng.index(geometry.m() + 1));
    let margin = hand.ask("rules", margin).await;
    let rules = Rules { geometry, block_size: BLOCK_LEN, tolerated: geometry.m(), margin };
    let group = Rc::new(RefCell::new(Group::default()));
    let (stamp, excluded) = (GenerationStamp(0), Vec::new());
    let streams =
        Streams { hand: hand.clone(), file, geometry, stamp, group: group.clone(), excluded };
    let mut groups = Groups::new(streams, rules);
    let mut at = 0;
    while at < wanted {
        let len = geometry.stripe_len().min(wanted - at);
        // What begins and ends a group goes to each unit at once.
        let is_short = len < geometry.stripe_len();
        groups.begin(is_short && !groups.is_open()).await?;
        let (live, _) = groups.live();
        let (policy, group, is_whole) = (policy.clone(), group.clone(), groups.is_whole());
        let holder = hand.holder.clone();
        let send = move |world: &mut World<'_>, _| {
            let cells = world.stripe((file, &holder), at, len, &policy);
            let group = &mut *group.borrow_mut();
            group.len += len;
            for unit in &live {
                if let Some(bytes) = cells[unit.as_usize()].clone() {
                    let cell = Cell { bytes, is_last: is_whole };
                    group.units[unit.as_usize()].queue.push_back(cell);
                }
            }
            world.deliver_cells((file, &holder), group, &geometry);
            Some(())
        };
        hand.ask("stripe", send).await;
        groups.sent(len);
        at += len;
        if !is_short {
            groups.end_band().await?;
        }
    }
    groups.close().await
}

impl Peers for Streams {
    type Error = Why;

    async fn add_block(&mut self, previous: Option<Block>) -> Result<(Block, Vec<bool>), Why> {
        let (file, width) = (self.file, self.geometry.units());
        let mut excluded = self.excluded.clone();
        let group = self.group.clone();
        let call = move |world: &mut World<'_>, holder: &str| {
            let located = world.allocate(file, holder, previous.map(block_ref), &mut excluded)?;
            let block = located.block.reference();
            let mut targets: Vec<Option<Target>> = vec![None; width];
            for (target, unit) in &located.places {
                targets[unit.as_usize()] = Some(target.clone());
            }
            world.block_allocated(block.id, &located.redundancy, &targets);
            world.left_behind(file, holder, located.offset);
            let placed = targets.iter().map(Option::is_some).collect();
            let unit = |target| Unit {
                target,
                gs: block.gs,
                queue: VecDeque::new(),
                acked: 0,
                has_failed: false,
                is_fenced: false,
            };
            let units = targets.into_iter().map(unit).collect();
            *group.borrow_mut() =
                Group { id: Some(block.id), offset: located.offset, len: 0, units };
            Ok((writer_block(block), placed))
        };
        self.hand.call("addBlock", call).await
    }

    fn lacks_places(&self, _: &Why) -> bool {
        // It is asked until there are enough.
        false
    }

    fn forget_left_out(&mut self) -> bool {
        !std::mem::take(&mut self.excluded).is_empty()
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp, Why> {
        self.hand.new_stamp(block).await
    }

    async fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        units: &[UnitIndex],
    ) -> Result<(), Why> {
        let place = |(at, unit): (usize, &Unit)| {
            unit.target.clone().filter(|_| units.contains(&UnitIndex(at as u8)))
        };
        let places = self.group.borrow().units.iter().enumerate().map(place).collect();
        self.hand.update_pipeline(old, new, places).await?;
        for unit in &mut self.group.borrow_mut().units {
            unit.is_fenced = unit.has_failed;
        }
        self.hand.tell(|world| world.count("groups mended"));
        Ok(())
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<(), Why> {
        self.hand.complete(self.file, last).await
    }

    async fn flush(&mut self, _: &[UnitIndex], _: usize) {
        let (file, group) = (self.file, self.group.clone());
        let (geometry, holder) = (self.geometry, self.hand.holder.clone());
        let flush = move |world: &mut World<'_>, _| {
            let group = &mut *group.borrow_mut();
            world.deliver_cells((file, &holder), group, &geometry);
            group.units.iter().all(|unit| unit.queue.is_empty()).then_some(())
        };
        self.hand.ask("flush", flush).await;
    }

    fn has_failed(&self, unit: UnitIndex) -> bool {
        self.group.borrow().units[unit.as_usize()].has_failed
    }

    fn acked_len(&self, unit: UnitIndex) -> u64 {
        self.group.borrow().units[unit.as_usize()].acked
    }

    async fn reopen(&mut self, units: &[UnitIndex], stamp: GenerationStamp) {
        self.stamp = stamp;
        let group = self.group.borrow();
        let node = |unit: &UnitIndex| Some(group.units[unit.as_usize()].target.as_ref()?.node);
        let parts = units.iter().filter_map(|unit| Some((node(unit)?, *unit))).collect();
        if let Some(id) = group.id {
            // The others count no more from the first one on that takes it.
            self.hand.tell(move |world| _ = world.pipelines.insert((id, stamp), parts));
        }
    }

    async fn reopened(&mut self, unit: UnitIndex, _: bool) -> bool {
        let (group, stamp) = (self.group.clone(), self.stamp);
        let reopen = move |world: &mut World<'_>, _| {
            Some(world.reopen_unit(&mut group.borrow_mut(), unit, stamp))
        };
        self.hand.ask("open", reopen).await
    }

    async fn send_last(&mut self, units: &[UnitIndex]) {
        let group = &mut *self.group.borrow_mut();
        for unit in units {
            let end = Cell { bytes: Vec::new(), is_last: true };
            group.units[unit.as_usize()].queue.push_back(end);
        }
    }

    fn leave_out(&mut self, unit: UnitIndex) {
        let unit = &mut self.group.borrow_mut().units[unit.as_usize()];
        unit.has_failed = true;
        unit.queue.clear();
        self.excluded.extend(unit.target.iter().map(|target| target.node));
    }

    fn ends_early(&mut self, _: Block) {
        self.hand.tell(|world| world.count("groups end early"));
    }

    fn end(&mut self) {
        let Group { id, units, .. } = self.group.take();
        let (Some(id), Some(gs)) = (id, units.iter().map(|unit| unit.gs).max()) else { return };
        // What has failed since the last stamp is left out when the NameNode knows how long the group is.
        let live = |(at, unit): (usize, &Unit)| {
            let target = unit.target.as_ref().filter(|_| !unit.has_failed)?;
            Some((target.node, UnitIndex(at as u8)))
        };
        let parts: Vec<Part> = units.iter().enumerate().filter_map(live).collect();
        self.hand.tell(move |world| _ = world.pipelines.insert((id, gs), parts));
    }
}

impl World<'_> {
    /// Makes the next bytes of a file, and the cells of their stripe: `None` where a unit has none.
    fn stripe(
        &mut self,
        (file, holder): (InodeId, &str),
        at: u64,
        len: u64,
        policy: &Policy,
    ) -> Vec<Option<Vec<u8>>> {
        let geometry = Geometry::from(policy);
        let bytes = self.next_bytes(file, holder, at, len);
        let (k, m, cell_len) = (geometry.k(), geometry.m(), geometry.cell_len() as usize);
        let mut cells: Vec<Option<Vec<u8>>> =
            bytes.chunks(cell_len).map(|cell| Some(cell.to_vec())).collect();
        cells.resize(k, None);
        let longest = bytes.len().min(cell_len);
        let padded: Vec<Vec<u8>> = cells
            .iter()
            .map(|cell| {
                let mut cell = cell.clone().unwrap_or_default();
                cell.resize(longest, 0);
                cell
            })
            .collect();
        let mut parity = vec![vec![0; longest]; m];
        let sources: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
        let mut sinks: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        self.codec(policy).encode(&sources, &mut sinks).expect("all cells are as long");
        cells.extend(parity.into_iter().map(Some));
        cells
    }

    /// Some units take what they have still to be sent, and all do that lag far behind.
    fn deliver_cells(
        &mut self,
        (file, holder): (InodeId, &str),
        group: &mut Group,
        geometry: &Geometry,
    ) {
        let Some(id) = group.id else { return };
        for (at, unit) in group.units.iter_mut().enumerate() {
            if unit.queue.len() < LAG && self.rng.one_in(4) {
                continue;
            }
            while let Some(cell) = unit.queue.pop_front() {
                if !self.deliver_cell(id.internal(UnitIndex(at as u8)), unit, cell) {
                    unit.has_failed = true;
                    unit.queue.clear();
                }
            }
        }
        // All whole stripes that all units have are safe, but for units that are fenced off.
        let placed = group.units.iter().filter(|unit| unit.target.is_some() && !unit.is_fenced);
        let most = group.len / geometry.stripe_len();
        let least = placed.clone().map(|unit| unit.acked / geometry.cell_len()).min();
        if !placed.clone().any(|unit| unit.has_failed) && !self.is_excused(id) {
            let stripes = least.map_or(0, |least| least.min(most));
            self.acknowledged(file, holder, group.offset + stripes * geometry.stripe_len(), id);
            self.check_block(id);
        }
    }

    /// Writes a cell to its unit; the first one makes it.
    fn deliver_cell(&mut self, id: BlockId, unit: &mut Unit, cell: Cell) -> bool {
        let Some(target) = &unit.target else { return false };
        let mut taken = self.reaches_for_write(target.node);
        let node = &mut self.nodes[target.node];
        if unit.acked == 0 {
            taken = taken && node.create(id, unit.gs, &target.storage).is_ok();
        }
        taken = taken && node.write(id, unit.gs, unit.acked, &cell.bytes).is_ok();
        if taken {
            unit.acked += cell.bytes.len() as u64;
            node.acknowledge(id, unit.gs, unit.acked);
        }
        if taken && cell.is_last {
            taken = node.finalize(id, unit.gs).is_ok();
            self.tell_soon(target.node);
        }
        if !taken {
            self.note(|| format!("unit {id:?} has failed at {target:?}"));
        }
        taken
    }

    /// Has a unit take a new stamp.
    fn reopen_unit(&mut self, group: &mut Group, index: UnitIndex, stamp: GenerationStamp) -> bool {
        let Some(id) = group.id.map(|id| id.internal(index)) else { return false };
        let unit = &mut group.units[index.as_usize()];
        let Some(target) = &unit.target else { return false };
        let part = BlockRef { id, gs: unit.gs, len: unit.acked };
        let range = (unit.acked, unit.acked);
        let taken = self.reaches_for_write(target.node)
            && self.nodes[target.node].recover_rbw(part, stamp, range).is_ok();
        match taken {
            true => unit.gs = stamp,
            false => {
                self.note(|| format!("unit {index} does not take stamp {stamp} at {target:?}"));
            }
        }
        taken
    }
}
