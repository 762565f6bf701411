//! Reading a packed block from its container, wherever that is.

use super::super::source::{Wanted, What};
use super::decode::Decoder;
use super::units::Units;
use crate::dataset::{Block, Checksum};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_codec::crc::{CRC_LEN, crc32c, verify_chunks, without_zeros};
use cairn_stripe::group::{Layout, Part, SUM_LEN};
use cairn_stripe::pack::{MAX_PACKED_LEN, padded_len};
use cairn_wire::proto::hdfs::DatanodeInfoProto;
use std::ops::Range;
use std::sync::Arc;

/// Where a packed block is in its container, checked.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(crate) container: Block,
    pub(crate) checksum: Checksum,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) crc32c: u32,
}

/// A packed block's bytes, which are those that are recorded, and the CRCs of their chunks as its writer's client has
/// computed them.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) bytes: Vec<u8>,
    pub(crate) crcs: Vec<u8>,
}

impl Packed {
    /// Fails for a place that cannot be in the container.
    pub(crate) fn check(self) -> Result<Packed> {
        let chunk = self.checksum.chunk_len as u64;
        let is_one = self.container.id.is_container()
            && self.checksum.kind.len() == CRC_LEN
            && chunk > 0
            && self.len > 0
            && self.len <= MAX_PACKED_LEN
            && self.offset.is_multiple_of(chunk)
            && self.chunks().end <= self.container.len;
        match is_one {
            true => Ok(self),
            false => Err(DataNodeError::peer("no block can be packed there")),
        }
    }

    /// Its chunks in the container, the zeros behind it among them.
    pub(crate) fn chunks(&self) -> Range<u64> {
        let padded = padded_len(self.len, self.checksum.chunk_len as u32);
        self.offset..self.offset.saturating_add(padded)
    }

    /// Where the container's `.meta` has the CRCs of chunks, from its first one on.
    fn sums(&self, chunks: &Range<u64>) -> Range<u64> {
        let chunk = self.checksum.chunk_len as u64;
        chunks.start / chunk * SUM_LEN..chunks.end / chunk * SUM_LEN
    }

    /// Whether both are in one container, and this one comes first.
    pub(crate) fn is_before(&self, next: &Packed) -> bool {
        let is_in_one = self.container == next.container && self.checksum == next.checksum;
        is_in_one && self.chunks().end <= next.chunks().start
    }

    /// Reads a run of them from a replica of their container at one go. Each is judged by itself.
    pub(crate) async fn read(
        run: &[&Packed],
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
    ) -> Result<Vec<Result<Unpacked>>> {
        let Some(all) = Packed::around(run) else { return Ok(Vec::new()) };
        let bytes = run[0].part(node, holder, Part::Data, all.clone()).await?;
        let crcs = run[0].part(node, holder, Part::Sums, run[0].sums(&all)).await?;
        Ok(run.iter().map(|packed| packed.judge_part(all.start, &bytes, &crcs)).collect())
    }

    /// The chunks of a run and what lies between.
    fn around(run: &[&Packed]) -> Option<Range<u64>> {
        let (first, last) = (run.first()?, run.last()?);
        Some(first.chunks().start..last.chunks().end)
    }

    async fn part(
        &self,
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        part: Part,
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        let (len, chunk) = (self.container.len, self.checksum.chunk_len as u64);
        let layout = Layout::new(1, vec![len], len, chunk);
        let layout = layout.map_err(|error| DataNodeError::peer(error.to_string()))?;
        let what = if part == Part::Sums { What::Sums } else { What::Bytes };
        let wanted = Wanted::new(self.container.clone(), vec![holder.clone()]);
        let wanted = Wanted { what, until: range.end, ..wanted };
        let mut units = Units::start(node, vec![0], vec![wanted]);
        let read = units.step(&layout, part, &range).await.map_err(|unread| unread.error)?;
        if units.checksum() != Some(self.checksum) {
            return Err(DataNodeError::peer("the container is summed otherwise"));
        }
        let read = read.into_iter().next().flatten().ok_or(DataNodeError::Stopped)?;
        Ok(read.to_vec())
    }

    /// The same where no replica of the container can be read; `sums` are the CRCs of all its chunks.
    pub(crate) async fn decode(
        run: &[&Packed],
        decoder: &mut Decoder,
        sums: &[u8],
    ) -> Result<Vec<Result<Unpacked>>> {
        let Some(all) = Packed::around(run) else { return Ok(Vec::new()) };
        let of_sums = run[0].sums(&all);
        let bytes = decoder.bytes(all.clone(), all.end, sums).await?;
        let crcs = sums.get(of_sums.start as usize..of_sums.end as usize);
        let crcs = crcs.ok_or_else(|| DataNodeError::peer("too few CRCs"))?;
        Ok(run.iter().map(|packed| packed.judge_part(all.start, &bytes, crcs)).collect())
    }

    /// Its part of what was read of the container, from a chunk on.
    fn judge_part(&self, from: u64, bytes: &[u8], crcs: &[u8]) -> Result<Unpacked> {
        let part = |range: Range<u64>, from: u64, of: &[u8]| {
            let at = |offset: u64| usize::try_from(offset.checked_sub(from)?).ok();
            of.get(at(range.start)?..at(range.end)?).map(<[u8]>::to_vec)
        };
        let chunks = self.chunks();
        let crcs = part(self.sums(&chunks), self.sums(&(from..from)).start, crcs);
        match (part(chunks, from, bytes), crcs) {
            (Some(bytes), Some(crcs)) => self.judge(bytes, crcs),
            _ => Err(DataNodeError::peer("its container is shorter")),
        }
    }

    /// Takes the zeros off, and compares what is left with what is recorded of the block: a container that has other
    /// bytes there gives nothing to anybody.
    fn judge(&self, mut bytes: Vec<u8>, mut crcs: Vec<u8>) -> Result<Unpacked> {
        let len = self.len as usize;
        let Checksum { kind, chunk_len } = self.checksum;
        let zeros = bytes.len().saturating_sub(len) as u64;
        bytes.truncate(len);
        if bytes.len() < len || crc32c(0, &bytes) != self.crc32c {
            let (id, offset) = (self.container.id, self.offset);
            let what = format!("{id} has other bytes at {offset} than are recorded");
            return Err(DataNodeError::Peer(what));
        }
        if zeros > 0 {
            let last = crcs.last_chunk_mut::<CRC_LEN>().ok_or(DataNodeError::Stopped)?;
            *last = without_zeros(kind, u32::from_be_bytes(*last), zeros).to_be_bytes();
        }
        let checked = verify_chunks(kind, chunk_len, &bytes, &crcs);
        checked.map_err(|error| DataNodeError::Peer(error.to_string()))?;
        Ok(Unpacked { bytes, crcs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_codec::crc::{ChecksumKind, chunk_crcs};
    use cairn_stripe::{BlockId, GenerationStamp};

    fn packed(bytes: &[u8], kind: ChecksumKind) -> (Packed, Vec<u8>, Vec<u8>) {
        let checksum = Checksum { kind, chunk_len: 512 };
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(512), 0);
        let mut crcs = vec![0; kind.total_len(512, padded.len())];
        chunk_crcs(kind, 512, &padded, &mut crcs);
        let container = Block {
            pool: "pool".into(),
            id: BlockId(1 << 60 | 1),
            gs: GenerationStamp(2),
            len: 1 << 20,
        };
        let (len, crc32c) = (bytes.len() as u32, crc32c(0, bytes));
        (Packed { container, checksum, offset: 1024, len, crc32c }, padded, crcs)
    }

    #[test]
    fn readers_get_the_crcs_that_the_writer_computed() {
        let bytes: Vec<u8> = (0..1600u32).map(|n| ((n * n) >> 3) as u8).collect();
        for kind in [ChecksumKind::Crc32, ChecksumKind::Crc32c] {
            for len in (1..1600).step_by(37).chain([511, 512, 513, 1024]) {
                let (packed, padded, crcs) = packed(&bytes[..len], kind);
                let read = packed.judge(padded, crcs).unwrap();
                let mut own = vec![0; kind.total_len(512, len)];
                chunk_crcs(kind, 512, &bytes[..len], &mut own);
                assert_eq!((&read.bytes[..], read.crcs), (&bytes[..len], own), "{kind}, {len}");
            }
        }
    }

    #[test]
    fn blocks_are_taken_out_of_what_was_read_for_many() {
        let bytes: Vec<u8> = (0..2000u32).map(|n| (n * 13) as u8).collect();
        let (mut offset, mut run, mut all, mut sums) = (1024, Vec::new(), Vec::new(), Vec::new());
        for len in [600, 512, 1, 1300] {
            let (one, padded, crcs) = packed(&bytes[..len], ChecksumKind::Crc32c);
            run.push(Packed { offset, ..one });
            offset += padded.len() as u64;
            all.extend(padded);
            sums.extend(crcs);
        }
        assert!(run.windows(2).all(|pair| pair[0].is_before(&pair[1])));
        assert!(!run[1].is_before(&run[0]));
        for of in &run {
            let read = of.judge_part(1024, &all, &sums).unwrap();
            assert_eq!(read.bytes, bytes[..of.len as usize]);
        }
        let (from, short) = (1536, &all[512..all.len() - 512]);
        assert!(run[0].judge_part(from, short, &sums[4..]).is_err(), "it begins before");
        assert!(run[1].judge_part(from, short, &sums[4..]).is_ok());
        assert!(run[3].judge_part(from, short, &sums[4..]).is_err(), "it ends behind");
    }

    /// Another block's bytes with good CRCs, bytes that changed, and CRCs that are of other bytes.
    #[test]
    fn nothing_is_given_out_but_what_is_recorded() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7) as u8).collect();
        let other: Vec<u8> = (0..1000u32).map(|n| (n * 11) as u8).collect();
        let (wanted, padded, crcs) = packed(&bytes, ChecksumKind::Crc32c);
        let (_, of_other, crcs_of_other) = packed(&other, ChecksumKind::Crc32c);
        assert!(wanted.judge(of_other, crcs_of_other.clone()).is_err());
        assert!(wanted.judge(padded.clone(), crcs_of_other).is_err());
        let mut flipped = padded.clone();
        flipped[700] ^= 1;
        assert!(wanted.judge(flipped, crcs.clone()).is_err());
        assert!(wanted.judge(padded[..512].to_vec(), crcs.clone()).is_err());
        assert!(wanted.judge(padded, crcs).is_ok());
    }

    #[test]
    fn a_place_that_cannot_be_is_refused() {
        let (good, ..) = packed(&[1; 100], ChecksumKind::Crc32c);
        assert!(good.clone().check().is_ok());
        for bad in [
            Packed { offset: 100, ..good.clone() },
            Packed { offset: 1 << 20, ..good.clone() },
            Packed { offset: u64::MAX - 511, ..good.clone() },
            Packed { len: 0, ..good.clone() },
            Packed { len: MAX_PACKED_LEN + 1, ..good.clone() },
            Packed {
                container: Block { id: BlockId(5), ..good.container.clone() },
                ..good.clone()
            },
            Packed { checksum: Checksum { kind: ChecksumKind::Null, chunk_len: 512 }, ..good },
        ] {
            assert!(bad.check().is_err());
        }
    }
}
