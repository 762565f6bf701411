//! What is believed of the decoded bytes of a member: the CRCs of its chunks if they are those that are recorded, then each
//! chunk that fits its CRC.

use super::{Formed, Unbelieved};
use cairn_codec::crc;
use cairn_stripe::group::{Part, Sources};
use std::ops::{Deref, Range};

/// A member of a group that is decoded, range by range.
#[derive(Clone, Debug)]
pub struct Decoded {
    slot: usize,
    /// Units that serve.
    pub sources: Sources,
}

impl Decoded {
    /// The member in `slot`, from units of other slots, the best first.
    pub fn new(slot: usize, best_first: impl IntoIterator<Item = usize>) -> Decoded {
        let sources = Sources::new(best_first.into_iter().filter(|source| *source != slot));
        Decoded { slot, sources }
    }

    /// Bytes of the CRCs of all chunks.
    pub fn sums_len(&self, group: &Formed) -> u64 {
        group.layout.len(self.slot, Part::Sums)
    }

    /// What the member has where the other units have `units`, which are as long, of either part.
    pub fn decode(
        &self,
        group: &Formed,
        units: &[Option<impl Deref<Target = [u8]>>],
    ) -> Result<Vec<u8>, Unbelieved> {
        let views: Vec<Option<&[u8]>> = units.iter().map(|unit| unit.as_deref()).collect();
        let mut out = vec![0; views.iter().flatten().next().map_or(0, |unit| unit.len())];
        group.codec.decode(&views, &[self.slot], &mut [&mut out])?;
        Ok(out)
    }

    /// Fails unless those are the CRCs of all chunks of the member.
    pub fn check_sums(&self, group: &Formed, sums: &[u8]) -> Result<(), Unbelieved> {
        let recorded = group.record.members[self.slot].map(|member| member.sums_crc32c);
        match Some(crc::crc32c(0, sums)) == recorded {
            true => Ok(()),
            false => Err(Unbelieved::Sums(self.slot)),
        }
    }

    /// Fails unless each chunk of the bytes `range` fits its CRC in `sums`, which have been checked. The range begins and
    /// ends with a chunk.
    pub fn check_bytes(
        &self,
        group: &Formed,
        range: &Range<u64>,
        bytes: &[u8],
        sums: &[u8],
    ) -> Result<(), Unbelieved> {
        let (id, ..) = group.unit(self.slot);
        let wrong = Unbelieved::NotAsRecorded { id, slot: self.slot };
        let (_, of_sums) = group.layout.chunks(self.slot, range);
        let crcs = sums.get(of_sums.start as usize..of_sums.end as usize);
        let (Some(crcs), checksum) = (crcs, group.checksum) else { return Err(wrong) };
        crc::verify_chunks(checksum.kind, checksum.chunk_len, bytes, crcs).map_err(|_| wrong)
    }
}
