//! The checksum of a unit that no DataNode can give: decoded from the others, and summed without being kept.
//!
//! Source: Hadoop 3.5.0 `StripedBlockChecksumReconstructor`, `StripedBlockChecksumMd5CrcReconstructor`,
//! `StripedBlockChecksumCompositeCrcReconstructor`.

use super::buffers::Buffers;
use super::gather::Gather;
use super::plan::Plan;
use super::rebuild;
use crate::dataset::Checksum;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::UnitIndex;
use cairn_stripe::read::UnitHealth;
use cairn_wire::proto::hdfs::{
    BlockChecksumTypeProto, OpBlockChecksumResponseProto, OpBlockGroupChecksumProto,
};
use md5::{Digest, Md5};
use std::sync::Arc;

/// Bytes decoded in one step.
const STEP: u64 = 1 << 20;

/// The checksum of the first `len` bytes of `unit`, as its DataNode would give it. Neither `unit` nor the other
/// `failed` ones are read: what has just failed would fail again, or lie.
pub(crate) async fn decoded_checksum(
    node: &Arc<Node>,
    request: &OpBlockGroupChecksumProto,
    unit: UnitIndex,
    len: u64,
    failed: &[UnitIndex],
) -> Result<OpBlockChecksumResponseProto> {
    let plan = Plan::for_checksum(request)?;
    let mut rebuilding = plan.any_sources();
    failed.iter().chain([&unit]).for_each(|unit| rebuilding.note(*unit, UnitHealth::Lost));
    let mut gather = Gather::new(node, &plan, &mut rebuilding);
    let buffers = Buffers::new(1);
    let mut sums: Option<(Checksum, Sums)> = None;
    let mut start = 0;
    while start < len {
        let end = (start + STEP).min(len);
        let step = gather.begin(start..end, &[unit])?;
        let gathered = gather.finish(step).await?;
        let source = gathered.pieces.iter().flatten().map(|piece| piece.checksum).next();
        let mut decoded = rebuild::decode(&plan, &gathered, &buffers)?;
        let (Some(source), Some(mut bytes)) = (source, decoded.pop()) else {
            return Err(DataNodeError::Stopped);
        };
        bytes.truncate((end - start) as usize);
        let (_, sums) = match &mut sums {
            Some(sums) => sums,
            None => sums.insert((source, Sums::new(request, source)?)),
        };
        sums.push(&bytes);
        start = end;
    }
    let (source, sums) = sums.ok_or_else(|| DataNodeError::peer("a unit without bytes"))?;
    tracing::info!(group = %plan.group.id, %unit, "decoded a unit for its checksum");
    Ok(OpBlockChecksumResponseProto {
        bytes_per_crc: source.chunk_len as u32,
        crc_per_block: plan.len(unit).div_ceil(source.chunk_len as u64),
        block_checksum: sums.finish(),
        crc_type: Some(messages::checksum_type(source.kind)),
        block_checksum_options: None,
        from_disk: None,
    })
}

/// CRCs of stretches of equal length, joined as they are made.
struct Sums {
    kind: ChecksumKind,
    stretch: usize,
    crc: u32,
    filled: usize,
    joined: Joined,
}

enum Joined {
    /// The MD5 of the CRCs of chunks.
    Md5(Md5),
    /// The CRCs of cells.
    Cells(Vec<u8>),
}

impl Sums {
    fn new(request: &OpBlockGroupChecksumProto, source: Checksum) -> Result<Sums> {
        if source.kind == ChecksumKind::Null {
            return Err(DataNodeError::peer("a block without CRCs has no checksum"));
        }
        let options = request.block_checksum_options.as_ref();
        let (stretch, joined) = match messages::block_checksum_type(options) {
            BlockChecksumTypeProto::Md5crc => (source.chunk_len, Joined::Md5(Md5::new())),
            BlockChecksumTypeProto::CompositeCrc => {
                let cell = Plan::for_checksum(request)?.geometry.cell_len();
                (cell as usize, Joined::Cells(Vec::new()))
            }
        };
        Ok(Sums { kind: source.kind, stretch, crc: 0, filled: 0, joined })
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(self.stretch - self.filled));
            self.crc = self.kind.update(self.crc, now);
            self.filled += now.len();
            bytes = rest;
            if self.filled == self.stretch {
                self.end_stretch();
            }
        }
    }

    fn end_stretch(&mut self) {
        let crc = self.crc.to_be_bytes();
        match &mut self.joined {
            Joined::Md5(md5) => md5.update(crc),
            Joined::Cells(cells) => cells.extend_from_slice(&crc),
        }
        (self.crc, self.filled) = (0, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_stretch();
        }
        match self.joined {
            Joined::Md5(md5) => md5.finalize().to_vec(),
            Joined::Cells(cells) => cells,
        }
    }
}
