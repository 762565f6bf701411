//! Decoding ranges of a member that nobody has, each chunk proven by the CRC that its writer computed.
//!
//! The member's CRCs are decoded whole first, and must be those whose CRC32C is recorded: a parity that is wrong, or
//! of another group, gives no byte to anybody.

use super::super::source::{Wanted, What};
use super::order::{Group, Place};
use super::units::Units;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_codec::crc;
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
    /// The best first; those that have failed are taken out.
    sources: Vec<Place>,
    open: Option<Open>,
}

/// Units being read in order.
struct Open {
    units: Units,
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
        let sources = sources.iter().filter(|place| place.slot != slot).cloned().collect();
        Decoder { node: node.clone(), group: group.clone(), slot, sources, open: None }
    }

    /// The CRCs of all the member's chunks. Fails if they are not those that are recorded.
    pub(crate) async fn sums(&mut self) -> Result<Vec<u8>> {
        let recorded = self.group.record.members[self.slot].map(|member| member.sums_crc32c);
        let len = self.group.layout.len(self.slot, Part::Sums);
        let mut left_out = 0;
        loop {
            let mut sums = Vec::new();
            while (sums.len() as u64) < len {
                let start = sums.len() as u64;
                let range = start..(start + SUMS_SLICE).min(len);
                sums.extend(self.read(Part::Sums, range, len).await?);
            }
            if Some(crc::crc32c(0, &sums)) == recorded {
                return Ok(sums);
            }
            let (group, slot) = (self.group.record.handle, self.slot);
            tracing::error!(%group, slot, "decoded CRCs are not those that are recorded");
            self.pass_over(&mut left_out)?;
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
        let checksum = self.group.checksum;
        let (_, of_sums) = self.group.layout.chunks(self.slot, &range);
        let crcs = sums.get(of_sums.start as usize..of_sums.end as usize);
        let crcs = crcs.ok_or_else(|| DataNodeError::peer("a range beyond the block"))?;
        let mut left_out = 0;
        loop {
            let bytes = self.read(Part::Data, range.clone(), until).await?;
            match crc::verify_chunks(checksum.kind, checksum.chunk_len, &bytes, crcs) {
                Ok(()) => return Ok(bytes),
                Err(bad) => {
                    let (group, slot) = (self.group.record.handle, self.slot);
                    tracing::error!(%group, slot, at = range.start, %bad, "decoded wrong bytes");
                    self.pass_over(&mut left_out)?;
                }
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
                    self.open = Some(open).filter(|open| open.at < open.until);
                    let views: Vec<Option<&[u8]>> = units.iter().map(|u| u.as_deref()).collect();
                    let mut out = vec![0; (range.end - range.start) as usize];
                    let decoded = group.codec.decode(&views, &[self.slot], &mut [&mut out]);
                    decoded.map_err(|error| DataNodeError::peer(error.to_string()))?;
                    return Ok(out);
                }
                Err(unread) => {
                    let before = self.sources.len();
                    self.sources.retain(|place| place.slot != unread.slot);
                    if self.sources.len() == before {
                        return Err(unread.error);
                    }
                }
            }
        }
    }

    fn open(&self, part: Part, at: u64, until: u64) -> Result<Open> {
        let (group, layout) = (&self.group, &self.group.layout);
        let listed: Vec<usize> = self.sources.iter().map(|place| place.slot).collect();
        let slots = layout.sources(&listed);
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
        Ok(Open { units, part, at, until })
    }

    /// Goes on with other sources, when which of those that are used is wrong is not known: the first are asked last.
    fn pass_over(&mut self, left_out: &mut usize) -> Result<()> {
        self.open = None;
        *left_out += 1;
        if *left_out > self.sources.len() || self.sources.is_empty() {
            return Err(DataNodeError::peer(
                "the units that are left do not agree with the record",
            ));
        }
        self.sources.rotate_left(1);
        Ok(())
    }
}
