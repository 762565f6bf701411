//! A packed block: from its container, which is here or elsewhere, or is decoded.
//!
//! It is read whole, as it is small, and compared with what is recorded of it each time.

use super::super::reconstruct::{Packed, Unpacked};
use super::super::send::Packets;
use super::answers::{STEP, check_summed, success, summed, wanted};
use super::decodable::Decodable;
use super::relay::Unserved;
use crate::dataset::{Block, Checksum};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::node::virtuals::Located;
use cairn_codec::crc::CRC_LEN;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::datanode::PackedBlockProto;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, ChecksumProto, DatanodeInfoProto, OpBlockChecksumResponseProto,
    OpReadBlockProto,
};
use std::sync::Arc;

/// Replicas of a container that are tried.
const MAX_HOLDERS: usize = 16;

/// How a packed block can be had.
pub(super) struct Place {
    packed: Packed,
    holders: Vec<DatanodeInfoProto>,
    decodable: Option<Decodable>,
}

impl Place {
    /// What the NameNode says, checked.
    pub(super) fn decode(
        block: &Block,
        proto: &PackedBlockProto,
        located: &Arc<Located>,
    ) -> Result<Place> {
        let container = messages::block(&proto.container);
        let checksum = messages::checksum(&ChecksumProto {
            r#type: proto.checksum_type,
            bytes_per_checksum: proto.bytes_per_checksum,
        })?;
        let len = u32::try_from(proto.len).map_err(|_| DataNodeError::peer("it is too long"))?;
        let (offset, crc32c) = (proto.offset, proto.crc32c);
        let packed = Packed { container, checksum, offset, len, crc32c }.check()?;
        if packed.container.pool != block.pool {
            return Err(DataNodeError::peer("its container is of another block pool"));
        }
        let relays = located.answer.relays.iter().take(MAX_HOLDERS);
        let holders = relays.map(|relay| relay.datanode.clone()).collect();
        let decodable = Decodable::found(&packed.container, located)?;
        Ok(Place { packed, holders, decodable })
    }

    /// Bytes of the block.
    pub(super) fn len(&self) -> u64 {
        self.packed.len.into()
    }

    /// How it is summed.
    pub(super) fn checksum(&self) -> Checksum {
        self.packed.checksum
    }

    /// Its bytes and CRCs.
    pub(super) async fn read(&self, node: &Arc<Node>) -> Result<Unpacked> {
        let mut last = DataNodeError::peer("its container is on no DataNode that answers");
        for holder in &self.holders {
            match self.packed.read(node, holder).await {
                Ok(read) => return Ok(read),
                Err(error) => {
                    let (id, source) = (self.packed.container.id, messages::xfer_name(holder));
                    tracing::info!(container = %id, source, %error, "cannot read a packed block");
                    last = error;
                }
            }
        }
        let Some(decodable) = &self.decodable else { return Err(last) };
        let permit = node.virtuals.permit();
        let _permit = permit.ok_or_else(|| DataNodeError::peer("too much is being decoded"))?;
        let mut decoder = decodable.decoder(node);
        let sums = decodable.sums(&mut decoder).await?;
        self.packed.decode(&mut decoder, &sums).await
    }
}

/// Answers a read.
pub(super) async fn send(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    place: &Place,
) -> std::result::Result<(), Unserved> {
    let checksum = place.packed.checksum;
    let chunk = checksum.chunk_len;
    let asked = wanted(request, place.len())?;
    let Unpacked { bytes, crcs } = place.read(node).await?;
    let from = asked.start as usize / chunk * chunk;
    let to = (asked.end as usize).next_multiple_of(chunk).min(bytes.len());
    stream.writer.hold_message(&success(checksum, from as u64));
    let flow = &node.metrics.read_by_clients;
    let chunks = (STEP as usize / chunk).max(1);
    let crcs = crcs.get(from / chunk * CRC_LEN..).unwrap_or_default();
    let mut packets = Packets::new(&mut stream.writer, from as u64);
    let sent = async {
        let pieces = bytes[from.min(to)..to].chunks(chunks * chunk);
        for (bytes, crcs) in pieces.zip(crcs.chunks(chunks * CRC_LEN)) {
            packets.send(bytes, &crcs[..bytes.len().div_ceil(chunk) * CRC_LEN]).await?;
            flow.bytes.add(bytes.len() as u64);
        }
        packets.send(&[], &[]).await
    };
    sent.await.map_err(Unserved::Begun)?;
    flow.blocks.add(1);
    Ok(())
}

/// The checksum of the first `len` bytes.
pub(super) async fn checksum(
    node: &Arc<Node>,
    len: u64,
    options: Option<BlockChecksumOptionsProto>,
    place: &Place,
) -> Result<OpBlockChecksumResponseProto> {
    let whole = place.len();
    check_summed(len, whole)?;
    let read = place.read(node).await?;
    let Checksum { kind, chunk_len } = place.packed.checksum;
    let end = len as usize;
    let full = if len == whole { end.div_ceil(chunk_len) } else { end / chunk_len };
    let mut crcs = read.crcs[..full * CRC_LEN].to_vec();
    if len < whole && !end.is_multiple_of(chunk_len) {
        crcs.extend(kind.update(0, &read.bytes[full * chunk_len..end]).to_be_bytes());
    }
    let sums_per_block = whole.div_ceil(chunk_len as u64);
    summed(&crcs, len, place.packed.checksum, sums_per_block, options)
}
