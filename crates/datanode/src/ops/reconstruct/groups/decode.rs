//! Decoding ranges of a member that nobody has, each chunk proven by the CRC that its writer computed.
//!
//! The member's CRCs are decoded whole first, and must be those whose CRC32C is recorded: a parity that is wrong, or
//! of another group, gives no byte to anybody.

use super::super::source::{Wanted, What};
use super::order::{Group, Place};
use super::units::Units;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_replica::group::{Decoded, Unbelieved};
use cairn_stripe::group::Part;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the CRCs that are decoded at once.
const SUMS_SLICE: u64 = 256 << 10;

/// A member that is decoded from the units that are left.
pub(crate) struct Decoder {
    node: Arc<Node>,
    group: Arc<Group>,
    slot: usize,
    sources: Vec<Place>,
    /// Which of them serve, and what is believed.
    decoded: Decoded,
    open: Option<Open>,
}

/// Units being read in order.
struct Open {
    units: Units,
    /// Which they are.
    slots: Vec<usize>,
    part: Part,
    at: u64,
    until: u64,
}

impl Decoder {
    pub(crate) fn new(
        node: &Arc<Node>,
        group: &Arc<Group>,
        slot: usize,
        sources: &[Place],
    ) -> Decoder {
        let decoded = Decoded::new(slot, sources.iter().map(|place| place.slot));
        let (node, group, sources) = (node.clone(), group.clone(), sources.to_vec());
        Decoder { node, group, slot, sources, decoded, open: None }
    }

    /// The CRCs of all the member's chunks. Fails if they are not those that are recorded.
    pub(crate) async fn sums(&mut self) -> Result<Vec<u8>> {
        let len = self.decoded.sums_len(&self.group);
        loop {
            let mut sums = Vec::new();
            while (sums.len() as u64) < len {
                let start = sums.len() as u64;
                let range = start..(start + SUMS_SLICE).min(len);
                sums.extend(self.read(Part::Sums, range, len).await?);
            }
            match self.decoded.check_sums(&self.group, &sums) {
                Ok(()) => return Ok(sums),
                Err(wrong) => self.try_others(&wrong)?,
            }
        }
    }

    /// The bytes `range`, which begins with a chunk and ends with one, of the member whose CRCs are `sums`. What is
    /// read next ends at `until` at the latest.
    pub(crate) async fn bytes(
        &mut self,
        range: Range<u64>,
        until: u64,
        sums: &[u8],
    ) -> Result<Vec<u8>> {
        loop {
            let bytes = self.read(Part::Data, range.clone(), until).await?;
            match self.decoded.check_bytes(&self.group, &range, &bytes, sums) {
                Ok(()) => return Ok(bytes),
                Err(wrong) => self.try_others(&wrong)?,
            }
        }
    }

    /// Decodes a range of a part, from other units where some fail.
    async fn read(&mut self, part: Part, range: Range<u64>, until: u64) -> Result<Vec<u8>> {
        let group = self.group.clone();
        loop {
            let mut open = match self.open.take() {
                Some(open)
                    if open.part == part && open.at == range.start && range.end <= open.until =>
                {
                    open
                }
                _ => self.open(part, range.start, until)?,
            };
            match open.units.step(&group.layout, part, &range).await {
                Ok(units) => {
                    open.at = range.end;
                    // Also when it has ended: what comes of it may have to be read from others.
                    self.open = Some(open);
                    return Ok(self.decoded.decode(&group, &units)?);
                }
                Err(unread) if self.decoded.sources.lost(unread.slot) => {}
                Err(unread) => return Err(unread.error),
            }
        }
    }

    fn open(&self, part: Part, at: u64, until: u64) -> Result<Open> {
        let (group, layout) = (&self.group, &self.group.layout);
        let slots = self.decoded.sources.chosen(layout);
        let slots = slots.map_err(|error| DataNodeError::peer(error.to_string()))?;
        let wanted = slots.iter().map(|slot| {
            let places = self.sources.iter().filter(|place| place.slot == *slot);
            let holders = places.map(|place| place.node.clone()).collect();
            let end = layout.range(*slot, part, &(0..until)).end;
            let (what, until) = match part {
                Part::Data => (What::Bytes, end),
                Part::Sums if *slot < layout.k() => (What::Sums, end),
                Part::Sums => (What::Bytes, layout.data_len() + end),
            };
            Wanted { what, until, ..Wanted::new(group.block(*slot), holders) }
        });
        let units = Units::start(&self.node, slots.clone(), wanted.collect());
        Ok(Open { units, slots, part, at, until })
    }

    /// Goes on with other sources, when which of those that are used is wrong is not known.
    fn try_others(&mut self, wrong: &Unbelieved) -> Result<()> {
        let (group, slot) = (self.group.record.handle, self.slot);
        tracing::error!(%group, slot, %wrong, "what was decoded is not believed");
        let used = self.open.take().map_or_else(Vec::new, |open| open.slots);
        match self.decoded.sources.unbelieved(None, &used) {
            true => Ok(()),
            false => {
                Err(DataNodeError::peer("the units that are left do not agree with the record"))
            }
        }
    }
}
