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
    BlockChecksumOptionsProto, BlockOpResponseProto, ChecksumProto, DatanodeInfoProto,
    OpBlockChecksumResponseProto, OpReadBlockProto,
};
use std::ops::Range;
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
        let read = Place::read_run(&[self], node).await.pop();
        read.unwrap_or(Err(DataNodeError::Stopped))
    }

    /// Those of a run in one container: from the first replica of that which has them as they are recorded, or decoded.
    async fn read_run(run: &[&Place], node: &Arc<Node>) -> Vec<Result<Unpacked>> {
        let absent = || DataNodeError::peer("its container is on no DataNode that answers");
        let mut found: Vec<Result<Unpacked>> = run.iter().map(|_| Err(absent())).collect();
        let Some(first) = run.first() else { return found };
        for holder in &first.holders {
            let (left, packed) = left(run, &found);
            if left.is_empty() {
                return found;
            }
            let read = Packed::read(&packed, node, holder).await;
            let (id, source) = (first.packed.container.id, messages::xfer_name(holder));
            if let Some(error) = take(&mut found, &left, read) {
                tracing::info!(container = %id, source, %error, "cannot read a packed block");
            }
        }
        let (left, packed) = left(run, &found);
        if let Some(decodable) = first.decodable.as_ref().filter(|_| !left.is_empty()) {
            take(&mut found, &left, decode(&packed, node, decodable).await);
        }
        found
    }
}

/// Those of a run that were not read yet: which they are, and their places.
fn left<'a>(run: &[&'a Place], found: &[Result<Unpacked>]) -> (Vec<usize>, Vec<&'a Packed>) {
    let left = (0..run.len()).filter(|at| found[*at].is_err());
    left.map(|at| (at, &run[at].packed)).unzip()
}

/// Keeps what was read of them. Says why not all were, if so.
fn take(
    found: &mut [Result<Unpacked>],
    left: &[usize],
    read: Result<Vec<Result<Unpacked>>>,
) -> Option<String> {
    let mut why = None;
    match read {
        Ok(read) => {
            for (at, read) in left.iter().zip(read) {
                why = read.as_ref().err().map(ToString::to_string).or(why);
                found[*at] = read;
            }
        }
        Err(error) => {
            why = Some(error.to_string());
            left.first()
                .into_iter()
                .for_each(|at| found[*at] = Err(DataNodeError::Peer(error.to_string())));
        }
    }
    why
}

async fn decode(
    packed: &[&Packed],
    node: &Arc<Node>,
    decodable: &Decodable,
) -> Result<Vec<Result<Unpacked>>> {
    let permit = node.virtuals.permit();
    let _permit = permit.ok_or_else(|| DataNodeError::peer("too much is being decoded"))?;
    let mut decoder = decodable.decoder(node);
    let sums = decodable.sums(&mut decoder).await?;
    Packed::decode(packed, &mut decoder, &sums).await
}

/// How far from each other blocks may lie that are read at one go.
const MAX_GAP: u64 = 64 << 10;
/// Bytes of a container that are read at one go for more than one block.
const MAX_RUN: u64 = 1 << 20;

/// How many of these, by place, are read at one go.
fn run_len(places: &[(u32, Place)]) -> usize {
    let Some((_, first)) = places.first() else { return 0 };
    let goes_on = |pair: &[(u32, Place)]| {
        let (one, next) = (&pair[0].1.packed, &pair[1].1.packed);
        one.is_before(next)
            && next.chunks().start - one.chunks().end <= MAX_GAP
            && next.chunks().end - first.packed.chunks().start <= MAX_RUN
    };
    1 + places.windows(2).take_while(|pair| goes_on(pair)).count()
}

/// Answers reads of whole blocks, each with its number: those that lie near each other in a container are read at one go.
/// Returns those that cannot be had, and why.
pub(super) async fn send_many(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    mut places: Vec<(u32, Place)>,
) -> Result<Vec<(u32, DataNodeError)>> {
    places.sort_by_key(|(_, place)| (place.packed.container.id, place.packed.offset));
    let (mut rest, mut failed) = (&places[..], Vec::new());
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(run_len(rest));
        let of_run: Vec<&Place> = run.iter().map(|(_, place)| place).collect();
        let read = Place::read_run(&of_run, node).await;
        for ((number, place), read) in run.iter().zip(read) {
            match read {
                Ok(read) => {
                    let answer = success(place.packed.checksum, 0);
                    let answered = Some(*number);
                    stream.writer.hold_message(&BlockOpResponseProto { answered, ..answer });
                    send_packets(node, stream, place, &read, 0..place.len()).await?;
                }
                Err(error) => failed.push((*number, error)),
            }
        }
        rest = behind;
    }
    Ok(failed)
}

/// Answers a read.
pub(super) async fn send(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    place: &Place,
) -> std::result::Result<(), Unserved> {
    let checksum = place.packed.checksum;
    let chunk = checksum.chunk_len as u64;
    let asked = wanted(request, place.len())?;
    let read = place.read(node).await?;
    let from = asked.start / chunk * chunk;
    stream.writer.hold_message(&success(checksum, from));
    send_packets(node, stream, place, &read, from..asked.end).await.map_err(Unserved::Begun)
}

/// Sends the chunks of a range that begins with one.
async fn send_packets(
    node: &Node,
    stream: &mut TransferStream,
    place: &Place,
    Unpacked { bytes, crcs }: &Unpacked,
    range: Range<u64>,
) -> Result<()> {
    let chunk = place.packed.checksum.chunk_len;
    let from = range.start as usize;
    let to = (range.end as usize).next_multiple_of(chunk).min(bytes.len());
    let flow = &node.metrics.read_by_clients;
    let chunks = (STEP as usize / chunk).max(1);
    let crcs = crcs.get(from / chunk * CRC_LEN..).unwrap_or_default();
    let mut packets = Packets::new(&mut stream.writer, range.start);
    let pieces = bytes[from.min(to)..to].chunks(chunks * chunk);
    for (bytes, crcs) in pieces.zip(crcs.chunks(chunks * CRC_LEN)) {
        packets.send(bytes, &crcs[..bytes.len().div_ceil(chunk) * CRC_LEN]).await?;
        flow.bytes.add(bytes.len() as u64);
    }
    packets.send(&[], &[]).await?;
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
