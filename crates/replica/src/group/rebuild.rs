//! Rebuilding lost units: members as they were written, parities by encoding again. Nothing is to become a replica unless
//! it is what is recorded.

use super::{Formed, Unbelieved};
use cairn_codec::crc;
use cairn_stripe::group::Part;
use std::ops::{Deref, Range};

/// One attempt to rebuild some units from some others.
pub struct Rebuilder<'a> {
    group: &'a Formed,
    targets: Vec<usize>,
    /// Units that are decoded: for a parity all members must be known.
    lost: Vec<usize>,
    /// Of each member, the CRCs of its chunks, where a parity is rebuilt.
    chunk_crcs: Vec<Vec<u8>>,
}

impl<'a> Rebuilder<'a> {
    /// The units in the slots `targets`, from those in the slots `chosen`.
    pub fn new(group: &'a Formed, targets: Vec<usize>, chosen: &[usize]) -> Rebuilder<'a> {
        let layout = &group.layout;
        let mut lost = targets.clone();
        if targets.iter().any(|slot| *slot >= layout.k()) {
            lost.extend(layout.members().filter(|slot| !chosen.contains(slot)));
            lost.sort_unstable();
            lost.dedup();
        }
        Rebuilder { group, targets, lost, chunk_crcs: vec![Vec::new(); layout.k()] }
    }

    /// Whether one of the units is a parity.
    pub fn has_parities(&self) -> bool {
        self.targets.iter().any(|slot| *slot >= self.group.layout.k())
    }

    /// What the targets have in a range of the data, in their order; `read` has the units, padded, by slot. The range
    /// begins with a chunk, and follows the last one.
    pub fn slice(
        &mut self,
        range: &Range<u64>,
        read: &[Option<impl Deref<Target = [u8]>>],
    ) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let views: Vec<Option<&[u8]>> = read.iter().map(|unit| unit.as_deref()).collect();
        let len = views.iter().flatten().next().map_or(0, |unit| unit.len());
        let mut out = vec![vec![0; len]; self.lost.len()];
        let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        self.group.codec.decode(&views, &self.lost, &mut slices)?;
        if self.has_parities() {
            let decoded = self.lost.iter().zip(&out).map(|(slot, bytes)| (*slot, &bytes[..]));
            let own = views.iter().enumerate();
            let own = own.filter_map(|(slot, bytes)| Some((slot, (*bytes)?)));
            let all: Vec<(usize, &[u8])> = own.chain(decoded).collect();
            all.into_iter().for_each(|(slot, bytes)| self.sum(slot, range, bytes));
        }
        let layout = &self.group.layout;
        let of_target = |slot: &usize| {
            let at = self.lost.iter().position(|lost| lost == slot);
            let mut bytes = at.map_or_else(Vec::new, |at| std::mem::take(&mut out[at]));
            let own = layout.range(*slot, Part::Data, range);
            bytes.truncate((own.end - own.start) as usize);
            bytes
        };
        Ok(self.targets.iter().map(of_target).collect())
    }

    /// Adds the CRCs of a member's chunks.
    fn sum(&mut self, slot: usize, range: &Range<u64>, bytes: &[u8]) {
        let Some(all) = self.chunk_crcs.get_mut(slot) else { return };
        let checksum = self.group.checksum;
        let own = self.group.layout.range(slot, Part::Data, range);
        let bytes = &bytes[..(own.end - own.start) as usize];
        let mut crcs = vec![0; checksum.kind.total_len(checksum.chunk_len, bytes.len())];
        crc::chunk_crcs(checksum.kind, checksum.chunk_len, bytes, &mut crcs);
        all.append(&mut crcs);
    }

    /// What the targets have behind the data when all slices are done, in their order: parities the code of the members'
    /// CRCs and the record, members nothing. Fails if the CRCs of a member are not those that are recorded.
    pub fn ends(&self) -> Result<Vec<Vec<u8>>, Unbelieved> {
        if !self.has_parities() {
            return Ok(vec![Vec::new(); self.targets.len()]);
        }
        let Formed { record, layout, codec, .. } = self.group;
        let len = layout.part_len(Part::Sums) as usize;
        let mut padded = self.chunk_crcs.clone();
        for (slot, (crcs, member)) in padded.iter_mut().zip(&record.members).enumerate() {
            if member.is_some_and(|member| crc::crc32c(0, crcs) != member.sums_crc32c) {
                return Err(Unbelieved::Sums(slot));
            }
            crcs.resize(len, 0);
        }
        let data: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
        let mut parities = vec![vec![0; len]; layout.m()];
        let mut out: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
        codec.encode(&data, &mut out)?;
        let tail = record.to_tail(|bytes| crc::crc32c(0, bytes));
        let end = |slot: &usize| match slot.checked_sub(layout.k()) {
            Some(parity) => [&parities[parity][..], &tail].concat(),
            None => Vec::new(),
        };
        Ok(self.targets.iter().map(end).collect())
    }

    /// Fails unless a source, of which all was read, is what is recorded. Of a parity the end is not read.
    pub fn check_source(&self, slot: usize, crc32c: Option<u32>) -> Result<(), Unbelieved> {
        match slot >= self.group.layout.k() || crc32c == self.group.recorded(slot) {
            true => Ok(()),
            false => Err(self.other(slot)),
        }
    }

    /// Fails unless what was rebuilt for the target `at` is what is recorded.
    pub fn check_result(&self, at: usize, len: u64, crc32c: Option<u32>) -> Result<(), Unbelieved> {
        let slot = self.targets[at];
        let (_, _, recorded) = self.group.unit(slot);
        let known = self.group.recorded(slot);
        match len == recorded && known.is_none_or(|known| crc32c == Some(known)) {
            true => Ok(()),
            false => Err(self.other(slot)),
        }
    }

    fn other(&self, slot: usize) -> Unbelieved {
        let (id, ..) = self.group.unit(slot);
        Unbelieved::NotAsRecorded { id, slot }
    }
}
