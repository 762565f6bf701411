//! Computing the parities of a group, and proving them.
//!
//! Of each slice the parities are computed first, *then* the members are summed, from the same buffers: had one of
//! them changed in between, its sum would not be the recorded one. What is behind a member's end must be zeros still. Then from each parity one member is decoded and
//! compared. In the end members' sums are compared with what was recorded when they were written, so that the parities are
//! over these bytes, in these slots, by the code that decodes them.

use super::Unbelieved;
use crate::checksum::Checksum;
use crate::sum::UnitSum;
use cairn_codec::Codec;
use cairn_codec::crc;
use cairn_stripe::BlockId;
use cairn_stripe::group::{Layout, Part};
use std::ops::{Deref, Range};

/// How parities are checked, whatever their members are checked by.
pub const PARITY_CHECKSUM: Checksum = Checksum { kind: crc::ChecksumKind::Crc32c, chunk_len: 512 };

/// What a member is to turn out to be.
#[derive(Clone, Copy, Debug)]
pub struct Ordered<'a> {
    /// The member.
    pub id: BlockId,
    /// CRC32C of its bytes as first written.
    pub crc32c: u32,
    /// The storage whose replica stays.
    pub storage: &'a str,
}

/// CRC32C of a member's bytes, and of the CRCs of its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSums {
    /// Of the bytes.
    pub crc32c: u32,
    /// Of the CRCs.
    pub sums_crc32c: u32,
}

/// The members' sums so far.
pub struct Encoder<'a> {
    codec: &'a Codec,
    layout: &'a Layout,
    checksum: Checksum,
    /// What draws the members that prove.
    attempt: u64,
    sums: Vec<UnitSum>,
    /// Of each member, the CRCs of its chunks.
    chunk_crcs: Vec<Vec<u8>>,
}

impl<'a> Encoder<'a> {
    /// Of a group of that layout, whose members are checked so. Another member proves each parity for another `attempt`.
    pub fn new(
        codec: &'a Codec,
        layout: &'a Layout,
        checksum: Checksum,
        attempt: u64,
    ) -> Encoder<'a> {
        let sums = (0..layout.k()).map(|_| UnitSum::default()).collect();
        Encoder { codec, layout, checksum, attempt, sums, chunk_crcs: vec![Vec::new(); layout.k()] }
    }

    /// The parities of a slice of the members, which begins with a chunk; `members` has those, padded, by slot.
    ///
    /// Fails if a member cannot be decoded from a parity.
    pub fn slice(
        &mut self,
        range: &Range<u64>,
        members: &[impl Deref<Target = [u8]>],
    ) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let parities = self.encode(members)?;
        self.check_padding(range, members)?;
        self.sum(range, members);
        self.prove(members, &parities)?;
        Ok(parities)
    }

    /// Fails unless there are zeros where a member has ended: no sum of a member tells, and it comes out of a parity with
    /// whatever is there.
    fn check_padding(
        &self,
        range: &Range<u64>,
        members: &[impl Deref<Target = [u8]>],
    ) -> Result<(), Unbelieved> {
        for (slot, member) in members.iter().enumerate() {
            let own = self.layout.range(slot, Part::Data, range);
            let padding = member.get((own.end - own.start) as usize..).unwrap_or_default();
            if padding.iter().any(|byte| *byte != 0) {
                return Err(Unbelieved::Padding(slot));
            }
        }
        Ok(())
    }

    /// The second part of the parities, whole, when all slices are done.
    pub fn sums_part(&self) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let len = self.layout.part_len(Part::Sums) as usize;
        let padded = self.chunk_crcs.iter().map(|crcs| {
            let mut crcs = crcs.clone();
            crcs.resize(len.max(crcs.len()), 0);
            crcs
        });
        let padded: Vec<Vec<u8>> = padded.collect();
        let parities = self.encode(&padded)?;
        self.prove(&padded, &parities)?;
        Ok(parities)
    }

    /// A member's sums, when all slices are done. Fails unless it is as ordered, and the bytes were those that were read,
    /// whose CRC32C is `read`, from the storage that was named, if one was.
    pub fn member(
        &self,
        slot: usize,
        ordered: &Ordered<'_>,
        (read, storage): (Option<u32>, Option<&str>),
    ) -> Result<MemberSums, Unbelieved> {
        let Ordered { id, crc32c, storage: wanted } = *ordered;
        let sums = self.sums_of(slot);
        let sums = sums.filter(|sums| sums.crc32c == crc32c && read == Some(crc32c));
        let sums = sums.ok_or(Unbelieved::NotAsRecorded { id, slot })?;
        match storage.filter(|storage| *storage != wanted) {
            Some(found) => {
                Err(Unbelieved::Elsewhere { id, found: found.into(), wanted: wanted.into() })
            }
            None => Ok(sums),
        }
    }

    fn sums_of(&self, slot: usize) -> Option<MemberSums> {
        let crc32c = self.sums[slot].of_first(self.layout.len(slot, Part::Data))?;
        let crcs = &self.chunk_crcs[slot];
        let is_whole = crcs.len() as u64 == self.layout.len(slot, Part::Sums);
        is_whole.then(|| MemberSums { crc32c, sums_crc32c: crc::crc32c(0, crcs) })
    }

    fn encode(&self, members: &[impl Deref<Target = [u8]>]) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let data: Vec<&[u8]> = members.iter().map(|member| &**member).collect();
        let len = data.first().map_or(0, |member| member.len());
        let mut parities = vec![vec![0; len]; self.layout.m()];
        let mut out: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
        self.codec.encode(&data, &mut out)?;
        Ok(parities)
    }

    fn sum(&mut self, range: &Range<u64>, members: &[impl Deref<Target = [u8]>]) {
        let Checksum { kind, chunk_len } = self.checksum;
        for (slot, member) in members.iter().enumerate() {
            let own = self.layout.range(slot, Part::Data, range);
            let bytes = &member[..(own.end - own.start) as usize];
            if bytes.is_empty() {
                continue;
            }
            let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
            crc::chunk_crcs(kind, chunk_len, bytes, &mut crcs);
            self.sums[slot].add_chunks(own.start, self.checksum, bytes, &crcs);
            self.chunk_crcs[slot].append(&mut crcs);
        }
    }

    /// Decodes a member from each parity and all other members, and compares.
    fn prove(
        &self,
        members: &[impl Deref<Target = [u8]>],
        parities: &[impl Deref<Target = [u8]>],
    ) -> Result<(), Unbelieved> {
        let k = self.layout.k();
        for (at, parity) in parities.iter().enumerate() {
            let Some(proving) = self.layout.proves(at, self.attempt) else { continue };
            let mut units: Vec<Option<&[u8]>> = vec![None; self.layout.units()];
            for (slot, member) in members.iter().enumerate() {
                units[slot] = Some(&**member).filter(|_| slot != proving);
            }
            units[k + at] = Some(&**parity);
            let mut back = vec![0; parity.len()];
            self.codec.decode(&units, &[proving], &mut [&mut back])?;
            if back != *members[proving] {
                return Err(Unbelieved::NotBack { parity: at, slot: proving });
            }
        }
        Ok(())
    }
}

/// Compares a parity as its disk has it with what was written.
pub fn check_read_back(id: BlockId, written: Option<u32>, found: u32) -> Result<u32, Unbelieved> {
    match written == Some(found) {
        true => Ok(found),
        false => Err(Unbelieved::ReadBack { id, written, found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_codec::CodecKind;
    use cairn_codec::crc::{ChecksumKind, crc32c};

    const CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };

    fn member(number: u32, len: usize) -> Vec<u8> {
        (0..len as u32).map(|i| (i.wrapping_mul(2 * number + 3) >> 4) as u8).collect()
    }

    struct Case {
        codec: Codec,
        layout: Layout,
        /// As they are.
        members: Vec<Vec<u8>>,
        /// With zeros.
        padded: Vec<Vec<u8>>,
    }

    fn case() -> Case {
        let members = vec![member(0, 3000), member(1, 700), Vec::new()];
        let lens = members.iter().map(|member| member.len() as u64).collect();
        let layout = Layout::new(2, lens, 3000, 512).unwrap();
        let padded = members.iter().cloned().map(|mut member| {
            member.resize(3000, 0);
            member
        });
        let padded = padded.collect();
        Case { codec: Codec::new(CodecKind::Rs, 3, 2).unwrap(), layout, members, padded }
    }

    fn slices(case: &Case, encoder: &mut Encoder<'_>) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let mut parities = vec![Vec::new(); 2];
        for start in (0..3000).step_by(1024) {
            let range = start..(start + 1024).min(3000);
            let cut = case.padded.iter().map(|m| &m[range.start as usize..range.end as usize]);
            let cut: Vec<&[u8]> = cut.collect();
            let made = encoder.slice(&range, &cut)?;
            parities.iter_mut().zip(made).for_each(|(all, slice)| all.extend(slice));
        }
        Ok(parities)
    }

    #[test]
    fn any_k_units_give_the_members_and_their_crcs() {
        let case = case();
        let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 5);
        let data = slices(&case, &mut encoder).unwrap();
        let sums = encoder.sums_part().unwrap();
        let mut crcs = Vec::new();
        for (slot, member) in case.members.iter().enumerate().take(2) {
            let mut of_chunks = vec![0; member.len().div_ceil(512) * 4];
            crc::chunk_crcs(ChecksumKind::Crc32c, 512, member, &mut of_chunks);
            let expected = (crc32c(0, member), crc32c(0, &of_chunks));
            let sums = encoder.sums_of(slot).map(|sums| (sums.crc32c, sums.sums_crc32c));
            assert_eq!(sums, Some(expected));
            crcs.push(of_chunks);
        }
        // Both members are lost: the empty slot and the parities are left.
        let zeros = [vec![0; 3000], vec![0; 24]];
        for (parities, zeros, members) in
            [(&data, &zeros[0], &case.members), (&sums, &zeros[1], &crcs)]
        {
            let units =
                [None, None, Some(&zeros[..]), Some(&parities[0][..]), Some(&parities[1][..])];
            let (mut first, mut second) = (vec![0; zeros.len()], vec![0; zeros.len()]);
            case.codec.decode(&units, &[0, 1], &mut [&mut first, &mut second]).unwrap();
            assert_eq!((&first, &second[..members[1].len()]), (&members[0], &members[1][..]));
        }
    }

    /// The mistakes that would make parities which agree with their own CRCs and with nothing else.
    #[test]
    fn a_wrong_coefficient_is_found_by_decoding_back() {
        let case = case();
        let encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
        let wrong = Codec::new(CodecKind::RsLegacy, 3, 2).unwrap();
        for attempt in 0..4 {
            let parities = Encoder::new(&wrong, &case.layout, CHECKSUM, attempt);
            let parities = parities.encode(&case.padded).unwrap();
            let right = encoder.encode(&case.padded).unwrap();
            encoder.prove(&case.padded, &right).unwrap();
            for at in 0..2 {
                let mut made = right.clone();
                made[at] = parities[at].clone();
                assert!(encoder.prove(&case.padded, &made).is_err(), "parity {at}");
            }
            let swapped = [right[1].clone(), right[0].clone()];
            assert!(encoder.prove(&case.padded, &swapped).is_err());
        }
    }

    #[test]
    fn another_member_in_a_slot_is_seen() {
        let mut case = case();
        case.padded.swap(0, 1);
        let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
        assert_eq!(slices(&case, &mut encoder), Err(Unbelieved::Padding(1)), "it is longer");
        case.padded = [member(2, 3000), case.padded[0].clone(), vec![0; 3000]].into();
        let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
        slices(&case, &mut encoder).unwrap();
        assert_ne!(encoder.sums_of(0).unwrap().crc32c, crc32c(0, &case.members[0]));
    }

    #[test]
    fn zeros_behind_a_member_that_are_none_are_seen() {
        let case = case();
        for slot in [1, 2] {
            let mut bad = case.padded.clone();
            bad[slot][2500] ^= 4;
            let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
            let made = encoder.slice(&(0..3000), &bad);
            assert_eq!(made, Err(Unbelieved::Padding(slot)));
        }
    }

    #[test]
    fn a_buffer_that_changes_before_or_after_the_encode_is_seen() {
        let case = case();
        let mut bad = case.padded.clone();
        bad[0][1500] ^= 4;
        // Before: the sum is of what was encoded.
        let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
        encoder.slice(&(0..3000), &bad).unwrap();
        assert_ne!(encoder.sums_of(0).unwrap().crc32c, crc32c(0, &case.members[0]));
        // After: the sum is wrong, though the parities are right.
        let mut encoder = Encoder::new(&case.codec, &case.layout, CHECKSUM, 0);
        let parities = encoder.encode(&case.padded).unwrap();
        encoder.sum(&(0..3000), &bad);
        assert_ne!(encoder.sums_of(0).unwrap().crc32c, crc32c(0, &case.members[0]));
        assert!(encoder.prove(&bad, &parities).is_err());
    }
}
