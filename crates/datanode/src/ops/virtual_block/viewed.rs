//! The plain view of a block group: its data as one plain block, for clients that know no erasure coding.
//!
//! The bytes come from the DataNodes that have the units, are proven by the CRCs of these, and get CRCs of their own for
//! the reader.

use super::super::reconstruct::{View, ViewReader};
use super::super::send::Packets;
use super::answers::{STEP, check_summed, success, summed, wanted};
use super::relay::Unserved;
use crate::dataset::{Block, Checksum};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_codec::crc::{ChecksumKind, chunk_crcs};
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::datanode::ViewedGroupProto;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, OpBlockChecksumResponseProto, OpReadBlockProto,
};
use std::sync::Arc;

/// How views are checked, whatever their units have.
const CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };

/// The group that the NameNode says is to be seen as `block`.
pub(super) fn view(block: &Block, viewed: &ViewedGroupProto) -> Result<View> {
    let group = messages::block(&viewed.group);
    let named = (group.pool.as_str(), Some(group.id), group.gs);
    if named != (block.pool.as_str(), block.id.viewed_group(), block.gs) {
        return Err(DataNodeError::peer("it is the view of another group"));
    }
    View::decode(group, &viewed.ec_policy, &viewed.units, CHECKSUM.chunk_len)
}

/// Answers a read.
pub(super) async fn send(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    view: &View,
) -> std::result::Result<(), Unserved> {
    let chunk = CHECKSUM.chunk_len as u64;
    let wanted = wanted(request, view.len())?;
    let from = wanted.start - wanted.start % chunk;
    let to = wanted.end.next_multiple_of(chunk).min(view.len());
    let mut reader = ViewReader::start(node, view, from..to);
    // The first bytes are there before anything is promised.
    let mut next = reader.next().await.transpose()?;
    stream.writer.hold_message(&success(CHECKSUM, from));
    let flow = &node.metrics.read_by_clients;
    let mut packets = Packets::new(&mut stream.writer, from);
    let sent = async {
        while let Some(piece) = next {
            for bytes in piece.chunks(STEP as usize) {
                packets.send(bytes, &crcs(bytes)).await?;
                flow.bytes.add(bytes.len() as u64);
            }
            next = reader.next().await.transpose()?;
        }
        packets.send(&[], &[]).await
    };
    sent.await.map_err(Unserved::Begun)?;
    flow.blocks.add(1);
    Ok(())
}

/// The checksum of the first `len` bytes, all of which are read for it.
pub(super) async fn checksum(
    node: &Arc<Node>,
    len: u64,
    options: Option<BlockChecksumOptionsProto>,
    view: &View,
) -> Result<OpBlockChecksumResponseProto> {
    let whole = view.len();
    check_summed(len, whole)?;
    let permit = node.virtuals.permit();
    let _permit = permit.ok_or_else(|| DataNodeError::peer("too much is being decoded"))?;
    let mut reader = ViewReader::start(node, view, 0..len);
    let mut sums = Vec::new();
    while let Some(piece) = reader.next().await {
        sums.extend(crcs(&piece?));
    }
    let sums_per_block = whole.div_ceil(CHECKSUM.chunk_len as u64);
    summed(&sums, len, CHECKSUM, sums_per_block, options)
}

/// The CRCs of the chunks of bytes that begin with one.
fn crcs(bytes: &[u8]) -> Vec<u8> {
    let Checksum { kind, chunk_len } = CHECKSUM;
    let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
    chunk_crcs(kind, chunk_len, bytes, &mut crcs);
    crcs
}
