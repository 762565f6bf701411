//! Which replicas and units to move where: pure, of what the NameNode told.
//!
//! Source: Hadoop 3.5.0 `Balancer#chooseStorageGroups`, `Dispatcher#isGoodBlockCandidate`,
//! `Mover.Processor`. Unlike there, a place is one value with its unit, so that leaving some out shifts
//! no other (HDFS-16333).

use cairn_stripe::geometry::Geometry;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The number of a storage type on the wire (`StorageTypeProto`).
pub(super) type Kind = i32;

/// Memory that forgets: DataNodes fill and empty it themselves.
pub(super) const RAM_DISK: Kind = 4;

/// All storages of one type on one DataNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shelf {
    /// Index of the DataNode.
    pub node: usize,
    pub kind: Kind,
    pub capacity: u64,
    pub used: u64,
    pub remaining: u64,
}

/// Bytes that should go from one shelf to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
}

/// Where one replica or unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the DataNode.
    pub node: usize,
    pub kind: Kind,
    pub unit: UnitIndex,
}

/// A block or group that may be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub id: BlockId,
    pub gs: GenerationStamp,
    /// Bytes of file data in it.
    pub len: u64,
    /// Data units and bytes of a cell, for a group.
    pub stripes: Option<(usize, u64)>,
    pub places: Vec<Place>,
}

/// One replica or unit to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    /// The replica's or internal block's own id.
    pub id: BlockId,
    pub gs: GenerationStamp,
    pub len: u64,
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
}

impl Piece {
    fn bytes(&self, unit: UnitIndex) -> u64 {
        match self.stripes {
            None => self.len,
            // All parity units are as long as the first.
            Some((k, cell)) => {
                let unit = UnitIndex(unit.0.min(u8::try_from(k).unwrap_or(u8::MAX)));
                Geometry::new(k, 1, cell).internal_block_len(self.len, unit)
            }
        }
    }

    fn move_of(&self, place: Place, to: usize, kind: Kind) -> Move {
        let id = if self.stripes.is_some() { self.id.internal(place.unit) } else { self.id };
        Move { id, gs: self.gs, len: self.bytes(place.unit), from: place.node, to, kind }
    }

    /// Whether the place may go to that node: no other has it there, and no rack is lost by it.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#isMovable`.
    fn can_go(&self, place: Place, to: usize, racks: &[String]) -> bool {
        if self.places.iter().any(|other| other.node == to && to != place.node) {
            return false;
        }
        let spread = |moved: Option<usize>| {
            let node = |other: &Place| match moved {
                Some(to) if *other == place => to,
                _ => other.node,
            };
            self.places.iter().map(|other| &racks[node(other)]).collect::<BTreeSet<_>>().len()
        };
        spread(Some(to)) >= spread(None)
    }
}

/// Utilization of a shelf in percent.
fn utilization(shelf: &Shelf) -> f64 {
    shelf.used as f64 * 100.0 / shelf.capacity.max(1) as f64
}

/// Mean utilization of each storage type, in percent.
fn means(shelves: &[Shelf]) -> BTreeMap<Kind, f64> {
    let mut sums: BTreeMap<Kind, (f64, f64)> = BTreeMap::new();
    for shelf in shelves {
        let sum = sums.entry(shelf.kind).or_default();
        *sum = (sum.0 + shelf.used as f64, sum.1 + shelf.capacity as f64);
    }
    sums.into_iter().map(|(kind, (used, all))| (kind, used * 100.0 / all.max(1.0))).collect()
}

/// Whether every shelf is within `threshold` points of its type's mean.
pub(super) fn is_balanced(shelves: &[Shelf], threshold: f64) -> bool {
    let means = means(shelves);
    shelves.iter().all(|shelf| (utilization(shelf) - means[&shelf.kind]).abs() <= threshold)
}

/// What has to flow until every shelf is within `threshold` points of its type's mean; nothing when
/// all are.
pub(super) fn flows(shelves: &[Shelf], threshold: f64) -> Vec<Flow> {
    let means = means(shelves);
    let off = |shelf: &Shelf| utilization(shelf) - means.get(&shelf.kind).copied().unwrap_or(0.0);
    let mut budgets: Vec<u64> = shelves
        .iter()
        .map(|shelf| {
            let bytes = (off(shelf).abs() / 100.0 * shelf.capacity as f64) as u64;
            if off(shelf) < 0.0 { bytes.min(shelf.remaining) } else { bytes }
        })
        .collect();
    let pick = |wanted: &dyn Fn(f64) -> bool| -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..shelves.len()).filter(|i| wanted(off(&shelves[*i]))).collect();
        found.sort_by(|a, b| off(&shelves[*b]).abs().total_cmp(&off(&shelves[*a]).abs()));
        found
    };
    let over = pick(&|off| off > threshold);
    let above = pick(&|off| off > 0.0 && off <= threshold);
    let below = pick(&|off| off < 0.0 && off >= -threshold);
    let under = pick(&|off| off < -threshold);
    let mut flows = Vec::new();
    for (sources, targets) in [(&over, &under), (&over, &below), (&above, &under)] {
        for from in sources {
            for to in targets {
                let bytes = budgets[*from].min(budgets[*to]);
                if shelves[*from].kind == shelves[*to].kind && bytes > 0 {
                    budgets[*from] -= bytes;
                    budgets[*to] -= bytes;
                    flows.push(Flow { from: *from, to: *to, bytes });
                }
            }
        }
    }
    flows
}

/// Moves that make up a flow, of `pieces` on its source, none of a block in `taken`, which grows.
pub(super) fn moves_for(
    flow: Flow,
    shelves: &[Shelf],
    pieces: &[Piece],
    racks: &[String],
    taken: &mut BTreeSet<BlockId>,
) -> Vec<Move> {
    let (from, to) = (&shelves[flow.from], &shelves[flow.to]);
    let mut left = flow.bytes;
    let mut moves = Vec::new();
    for piece in pieces {
        if taken.contains(&piece.id) {
            continue;
        }
        let on_source = |place: &&Place| place.node == from.node && place.kind == from.kind;
        let Some(place) = piece.places.iter().find(on_source) else { continue };
        let planned = piece.move_of(*place, to.node, to.kind);
        if planned.len == 0 || planned.len > left || !piece.can_go(*place, to.node, racks) {
            continue;
        }
        left -= planned.len;
        taken.insert(piece.id);
        moves.push(planned);
    }
    moves
}

/// The types that `copies` replicas should be on, of a policy's creation types.
///
/// Source: Hadoop 3.5.0 `BlockStoragePolicy#chooseStorageTypes`.
pub(super) fn types(policy: &[Kind], copies: usize) -> Vec<Kind> {
    let last = policy.last().copied().filter(|kind| *kind != RAM_DISK);
    let named = policy.iter().copied().filter(|kind| *kind != RAM_DISK);
    named.chain(std::iter::repeat_with(|| last).map_while(|kind| kind)).take(copies).collect()
}

/// What a mover makes of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resettled {
    pub moves: Vec<Move>,
    /// Replicas or units on a wrong type for which no place was found.
    pub stuck: usize,
}

/// Moves that bring a block's replicas or units to the types that its policy wants: within a node
/// where it has the type, else to the node with most room, which is counted down.
pub(super) fn resettle(
    piece: &Piece,
    policy: &[Kind],
    shelves: &mut [Shelf],
    racks: &[String],
) -> Resettled {
    let mut piece = piece.clone();
    let mut missing = types(policy, piece.places.len());
    let mut wrong = Vec::new();
    for (at, place) in piece.places.iter().enumerate() {
        match missing.iter().position(|kind| *kind == place.kind) {
            Some(found) => _ = missing.remove(found),
            None if place.kind != RAM_DISK => wrong.push(at),
            None => {}
        }
    }
    let mut done = Resettled::default();
    for at in wrong {
        let place = piece.places[at];
        if !shelves.iter().any(|shelf| (shelf.node, shelf.kind) == (place.node, place.kind)) {
            // Its node is leaving.
            done.stuck += 1;
            continue;
        }
        let bytes = piece.bytes(place.unit);
        let best = missing.iter().enumerate().flat_map(|(rank, kind)| {
            let fits = |shelf: &Shelf| {
                shelf.kind == *kind
                    && shelf.remaining >= bytes
                    && piece.can_go(place, shelf.node, racks)
            };
            let fitting = shelves.iter().enumerate().filter(move |(_, shelf)| fits(shelf));
            fitting
                .map(move |(index, shelf)| (shelf.node == place.node, shelf.remaining, rank, index))
        });
        let Some((_, _, rank, index)) = best.max() else {
            done.stuck += usize::from(!missing.is_empty());
            continue;
        };
        let shelf = &mut shelves[index];
        shelf.remaining -= bytes;
        done.moves.push(piece.move_of(place, shelf.node, shelf.kind));
        piece.places[at] = Place { node: shelf.node, kind: shelf.kind, ..place };
        missing.remove(rank);
    }
    done
}

#[cfg(test)]
mod tests;
