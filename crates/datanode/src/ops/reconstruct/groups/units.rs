//! Reading units of a group side by side, with zeros where they have ended.

use super::super::buffers::{Buffer, Buffers};
use super::super::readers::Readers;
use super::super::source::{Piece, Wanted};
use crate::dataset::Checksum;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_stripe::group::{Layout, Part};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of each unit that are read and computed with at once: a multiple of every usual chunk length.
pub(super) const SLICE: u64 = 1 << 20;

/// The units that are read.
pub(super) struct Units {
    slots: Vec<usize>,
    /// Where each is, so that this can be told.
    storages: Vec<Option<Arc<str>>>,
    checksums: Vec<Option<Checksum>>,
    crcs: Vec<Option<u32>>,
    readers: Readers,
    buffers: Arc<Buffers>,
}

/// Why a step has not been read.
pub(super) struct Unread {
    pub(super) slot: usize,
    pub(super) error: DataNodeError,
}

impl Units {
    /// Reads the units in `slots` as `wanted`.
    pub(super) fn start(node: &Arc<Node>, slots: Vec<usize>, wanted: Vec<Wanted>) -> Units {
        let count = slots.len();
        let buffers = Buffers::new(2 * cairn_stripe::id::MAX_UNITS_PER_GROUP);
        Units {
            readers: Readers::start(node, wanted, &buffers),
            slots,
            storages: vec![None; count],
            checksums: vec![None; count],
            crcs: vec![Some(0); count],
            buffers,
        }
    }

    /// The units' bytes in `range` of a part, by slot, each of the range's length; zeros for empty slots, `None` for units
    /// that are not read. `at` is where the part begins in a parity.
    pub(super) async fn step(
        &mut self,
        layout: &Layout,
        part: Part,
        range: &Range<u64>,
    ) -> Result<Vec<Option<Buffer>>, Unread> {
        let k = layout.k();
        // Parities have both parts in one file.
        let ahead =
            |slot: usize| if slot >= k && part == Part::Sums { layout.data_len() } else { 0 };
        let ranges = self.slots.iter().map(|slot| {
            let Range { start, end } = layout.range(*slot, part, range);
            start + ahead(*slot)..end + ahead(*slot)
        });
        let ranges: Vec<Range<u64>> = ranges.collect();
        let stopped = |error| Unread { slot: usize::MAX, error };
        let pieces = self.readers.step(ranges.into_iter()).await.map_err(stopped)?;
        let len = (range.end - range.start) as usize;
        let zeros = || self.buffers.lend(vec![0; len]);
        let mut units: Vec<Option<Buffer>> =
            (0..layout.units()).map(|slot| layout.is_empty(slot).then(zeros)).collect();
        for (at, piece) in pieces.into_iter().enumerate() {
            let slot = self.slots[at];
            let mut data = match piece {
                Some(Ok(Piece { data, checksum, crc32c, storage })) => {
                    self.checksums[at] = Some(checksum);
                    self.crcs[at] = crc32c;
                    if let Some(storage) = storage {
                        self.storages[at] = Some(storage);
                    }
                    data
                }
                Some(Err(error)) => return Err(Unread { slot, error }),
                // It has ended.
                None => self.buffers.lend(Vec::new()),
            };
            data.pad(len);
            units[slot] = Some(data);
        }
        Ok(units)
    }

    /// How the units are checked that have been read, if all alike.
    pub(super) fn checksum(&self) -> Option<Checksum> {
        let mut known = self.checksums.iter().copied();
        let first = known.next()??;
        known.all(|other| other == Some(first)).then_some(first)
    }

    /// The storage that each unit was read from, where its DataNode has said so.
    pub(super) fn storages(&self) -> impl Iterator<Item = (usize, Option<&str>)> {
        self.slots.iter().copied().zip(self.storages.iter().map(|name| name.as_deref()))
    }

    /// CRC32C of all that was read of a unit.
    pub(super) fn crcs(&self) -> impl Iterator<Item = (usize, Option<u32>)> {
        self.slots.iter().copied().zip(self.crcs.iter().copied())
    }
}
