//! Reading erasure coded groups: which units to ask is decided by `cairn_stripe::read`, done here.
//!
//! Sequential reads keep one stream of whole cells for each unit that is needed, so a lost unit costs
//! nothing but its decoding. Positional reads ask for exactly the bytes that the plan names.
//! Source: Hadoop 3.5.0 `DFSStripedInputStream`, `StripeReader`.

mod cells;
mod positional;
mod sequential;

pub(crate) use positional::read_at;
pub(crate) use sequential::{ahead_len, chunks_ahead, stream};

use crate::datanode::pace::{Expected, Paces};
use crate::datanode::read_range::ReadRange;
use crate::error::{ClientError, LostUnit};
use crate::read::opened::{LocatedRef, OpenedFile};
use crate::types::{Block, DataNodeAddr};
use cairn_codec::Codec;
use cairn_stripe::read::{NotEnoughUnits, UnitHealth};
use cairn_stripe::{Geometry, Policy, UnitIndex};
use std::sync::Arc;
use std::time::Instant;

/// One block group of an open file.
struct Group<'a> {
    file: &'a OpenedFile,
    located: LocatedRef,
    geometry: Geometry,
    codec: Arc<Codec>,
}

impl<'a> Group<'a> {
    /// The group that holds a byte of the file.
    fn at(file: &'a OpenedFile, policy: &Policy, offset: u64) -> crate::Result<Group<'a>> {
        let located = file.block_at(offset)?;
        if !located.block.block.id.is_striped() {
            let what = format!("{} is not a block group", located.block.block);
            return Err(ClientError::Protocol(what));
        }
        let codec = file.session.codec(policy)?;
        Ok(Group { file, located, geometry: Geometry::from(policy), codec })
    }

    /// Data bytes of the group.
    fn len(&self) -> u64 {
        self.located.block.block.len
    }

    /// The location to read a unit from: the first that is not known to be bad.
    fn location(&self, unit: UnitIndex) -> Option<(usize, &DataNodeAddr)> {
        let locations = self.located.block.locations.iter().enumerate();
        locations
            .filter(|(_, location)| location.unit == unit)
            .map(|(index, location)| (index, &location.addr))
            .find(|(_, addr)| !self.file.is_bad(self.located.block.block.id.internal(unit), addr))
    }

    /// What is known of each unit now.
    fn health(&self, paces: &Paces, now: Instant) -> Vec<UnitHealth> {
        let session = &self.file.session;
        let is_all_timely = session.is_all_timely(paces);
        let is_slow = |addr| !is_all_timely && session.expect(paces, addr, now) == Expected::Slow;
        let health = |unit| match self.location(unit) {
            None => UnitHealth::Lost,
            Some((_, addr)) if is_slow(addr) => UnitHealth::Slow,
            Some(_) => UnitHealth::Good,
        };
        (0..self.geometry.units() as u8).map(UnitIndex).map(health).collect()
    }

    /// The internal block of a unit, with its own length.
    fn internal(&self, unit: UnitIndex) -> Block {
        let group = &self.located.block.block;
        let len = self.geometry.internal_block_len(group.len, unit);
        Block { id: group.id.internal(unit), len, ..group.clone() }
    }

    fn read_range(&self, unit: UnitIndex, index: usize, offset: u64, len: u64) -> ReadRange {
        let token = self.located.token(index);
        ReadRange { block: self.internal(unit), token, offset, len, long_packets: false }
    }

    fn not_enough(&self, error: &NotEnoughUnits) -> ClientError {
        let group = self.located.block.block.id;
        let units = (0..self.geometry.units() as u8).map(UnitIndex);
        let lost = units
            .filter(|unit| self.location(*unit).is_none())
            .map(|unit| LostUnit { unit, errors: self.file.errors_of(group.internal(unit)) })
            .collect();
        ClientError::TooManyLost {
            block: self.located.block.block.to_string(),
            left: error.left,
            needed: error.needed,
            lost,
        }
    }
}
