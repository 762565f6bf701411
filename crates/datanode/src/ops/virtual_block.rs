//! Blocks that clients ask for here and that are not here: relayed from a replica elsewhere, decoded, the plain view of a
//! block group, or packed in a container.
//!
//! The NameNode says how a block can be had, and nothing of what clients may not read: parities, and members of groups
//! whose files are gone. A replica elsewhere comes first, at once the bytes that are read; only what has none is
//! decoded, range by range, and each chunk is proven before it is sent. Servers that read for themselves mark that, and
//! are never answered so. What is only decoded becomes no replica.

mod answers;
mod decodable;
mod packed;
mod relay;
mod viewed;

use super::answer::answer_error;
use super::peer_checksum::peer_checksum;
use super::reconstruct::{Decoder, Unpacked, View};
use super::send::{Packets, hear_verdict};
use crate::dataset::{Block, Checksum, not_found};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::node::virtuals::Located;
use answers::{STEP, check_summed, success, summed, wanted};
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::BlockId;
use cairn_stripe::group::{Part, SUM_LEN};
use cairn_wire::proto::datanode::{LocateUnitsRequestProto, LocateUnitsResponseProto};
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockOpResponseProto, DatanodeInfoProto,
    OpBlockChecksumResponseProto, OpReadBlockProto, Status,
};
use cairn_wire::transfer::Op;
use decodable::Decodable;
use relay::Unserved;
use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// How long a reader waits for the NameNode: it has other DataNodes to go to.
const PATIENCE: Duration = Duration::from_secs(5);
/// Replicas that the NameNode may name.
const MAX_RELAYS: usize = 64;

/// How a block can be had, checked.
struct Found {
    len: u64,
    relays: Vec<DatanodeInfoProto>,
    how: Option<How>,
}

/// How a block can be had without a replica.
enum How {
    /// A member of a group, decoded from other units.
    Decoded(Decodable),
    /// The data of a block group.
    Viewed(View),
    /// A block that is packed in a container.
    Packed(Box<packed::Place>),
}

/// Whether a client's question for this block is to be put to the NameNode: it is not here, and is of a kind that
/// clients may read.
pub(crate) fn may_be_elsewhere(node: &Node, block: &Block) -> bool {
    !block.id.is_striped() && !is_of_no_file(block.id) && node.dataset.get(block.id).is_none()
}

/// Whether Cairn's NameNode gives the id to what no file has as its block.
fn is_of_no_file(id: BlockId) -> bool {
    id.is_parity() || id.is_container()
}

/// Fails for what clients never read: ids that Cairn's NameNode gives to parities, and to nothing of a file's, and blocks
/// of which it has said that no file has them any more. Another NameNode may give such ids to blocks.
pub(crate) fn check_unfenced(node: &Node, block: &Block) -> Result<()> {
    let is_fenced = is_of_no_file(block.id) && node.name_nodes.are_ours();
    match is_fenced || node.retired.has(block.id) {
        true => Err(DataNodeError::Peer(format!("{} is of no file", block.id))),
        false => Ok(()),
    }
}

/// How a block can be had that is not here. Fails if it cannot, or the NameNode does not know of such things.
async fn find(node: &Arc<Node>, block: &Block) -> Result<Found> {
    node.dataset.check_pool(&block.pool)?;
    let (key, now) = ((block.id, block.gs), Instant::now());
    let known = match node.virtuals.known(key, now) {
        Some(known) => known,
        None => {
            let located = ask(node, block).await?;
            node.virtuals.keep(key, located.clone(), now);
            located
        }
    };
    let found = known.map(|located| found(node, block, &located)).transpose();
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(block = %block.id, %error, "a block cannot be had as the NameNode says");
        None
    });
    found.flatten().ok_or_else(|| not_found(block))
}

/// What the NameNode says. `None` if it cannot be asked in time.
async fn ask(node: &Arc<Node>, block: &Block) -> Result<Option<Arc<Located>>> {
    let answer = ask_for(node, block, &[]).await?;
    Ok(answer.map(|answer| Arc::new(Located { answer, sums: OnceCell::new() })))
}

/// The same, of more blocks as well.
async fn ask_for(
    node: &Arc<Node>,
    block: &Block,
    also: &[&Block],
) -> Result<Option<LocateUnitsResponseProto>> {
    let active = node.name_nodes.active()?;
    let request = LocateUnitsRequestProto {
        registration: active.registration()?,
        block: messages::extended_block(block),
        also: also.iter().map(|block| messages::extended_block(block)).collect(),
    };
    let asked = active.client.call("locateUnits", &request);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) => {
            tracing::debug!(block = %block.id, %error, "the NameNode does not say where a block is");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

/// Has the NameNode say where blocks are that are not here, as far as it was not asked lately.
async fn ask_for_all(node: &Arc<Node>, blocks: &[(u32, Block)]) -> Result<()> {
    let now = Instant::now();
    let is_new = |block: &&Block| node.virtuals.known((block.id, block.gs), now).is_none();
    let new: Vec<&Block> = blocks.iter().map(|(_, block)| block).filter(is_new).collect();
    let Some((first, also)) = new.split_first() else { return Ok(()) };
    let Some(mut answer) = ask_for(node, first, also).await? else { return Ok(()) };
    let others = std::mem::take(&mut answer.also);
    // What is said of a container is said once.
    let mut containers = HashMap::new();
    for (block, mut answer) in new.iter().zip(iter::once(answer).chain(others)) {
        if let Some(packed) = &answer.packed {
            let id = packed.container.block_id;
            let of_it = (answer.relays.clone(), answer.record.clone(), answer.sources.clone());
            let told = containers.entry(id).or_insert(of_it).clone();
            (answer.relays, answer.record, answer.sources) = told;
        }
        let located = Arc::new(Located { answer, sums: OnceCell::new() });
        node.virtuals.keep((block.id, block.gs), Some(located), now);
    }
    Ok(())
}

/// Sends whole blocks, each with its number, as far as they are packed. Returns those that it does not send, and why.
pub(super) async fn send_packed(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    blocks: Vec<(u32, Block)>,
) -> Result<Vec<(u32, DataNodeError)>> {
    if let Err(error) = ask_for_all(node, &blocks).await {
        tracing::debug!(%error, "the NameNode cannot be asked where blocks are");
    }
    let (mut places, mut refused) = (Vec::new(), Vec::new());
    for (number, block) in &blocks {
        let known = node.virtuals.known((block.id, block.gs), Instant::now()).flatten();
        let place = known.and_then(|located| {
            let packed = located.answer.packed.as_ref()?;
            packed::Place::decode(block, packed, &located).ok()
        });
        match place.filter(|place| place.len() == block.len) {
            Some(place) => places.push((*number, place)),
            None => refused.push((*number, not_found(block))),
        }
    }
    let failed = packed::send_many(node, stream, places).await?;
    // Who asks again has the NameNode asked again.
    let is_failed = |number: u32| failed.iter().any(|(at, _)| *at == number);
    for (_, block) in blocks.iter().filter(|(number, _)| is_failed(*number)) {
        node.virtuals.forget((block.id, block.gs));
    }
    refused.extend(failed);
    Ok(refused)
}

fn found(node: &Node, block: &Block, located: &Arc<Located>) -> Result<Option<Found>> {
    let (own, answer) = (node.dataset.uuid(), &located.answer);
    if let Some(packed) = &answer.packed {
        let place = packed::Place::decode(block, packed, located)?;
        let (len, relays) = (place.len(), Vec::new());
        return Ok(Some(Found { len, relays, how: Some(How::Packed(Box::new(place))) }));
    }
    let relays = answer.relays.iter().take(MAX_RELAYS);
    let relays: Vec<_> = relays.filter(|relay| relay.datanode.id.datanode_uuid != own).collect();
    let how = match (&answer.record, &answer.viewed) {
        (Some(_), _) => Decodable::found(block, located)?.map(How::Decoded),
        (None, Some(viewed)) => Some(How::Viewed(viewed::view(block, viewed)?)),
        (None, None) => None,
    };
    let len = match (&how, relays.first()) {
        (Some(How::Decoded(decodable)), _) => decodable.block().len,
        (Some(How::Viewed(view)), _) => view.len(),
        (Some(How::Packed(place)), _) => place.len(),
        (None, Some(relay)) => relay.block.num_bytes.unwrap_or(0),
        (None, None) => return Ok(None),
    };
    let relays = relays.into_iter().map(|relay| relay.datanode.clone()).collect();
    Ok(Some(Found { len, relays, how }))
}

/// All of a packed block, for servers that write it anew. The NameNode is asked where it is now; fails for what is not
/// packed.
pub(crate) async fn read_packed(node: &Arc<Node>, block: &Block) -> Result<(Unpacked, Checksum)> {
    node.dataset.check_pool(&block.pool)?;
    let located = ask(node, block).await?;
    let place = located.and_then(|located| {
        let packed = located.answer.packed.as_ref()?;
        Some(packed::Place::decode(block, packed, &located))
    });
    let place = place.transpose()?.ok_or_else(|| not_found(block))?;
    Ok((place.read(node).await?, place.checksum()))
}

/// At most `max` bytes of the end of a member of a group, decoded from other units, each chunk proven.
pub(crate) async fn read_end(node: &Arc<Node>, block: &Block, max: u64) -> Result<Vec<u8>> {
    node.dataset.check_pool(&block.pool)?;
    let located = ask(node, block).await?.ok_or_else(|| not_found(block))?;
    let decodable = Decodable::found(block, &located)?.ok_or_else(|| not_found(block))?;
    let permit = node.virtuals.permit();
    let _permit = permit.ok_or_else(|| DataNodeError::peer("too much is being decoded"))?;
    let len = decodable.block().len;
    let (range, _) = decodable.group.layout.chunks(decodable.slot, &(len.saturating_sub(max)..len));
    let mut decoder = decodable.decoder(node);
    let sums = decodable.sums(&mut decoder).await?;
    decoder.bytes(range, len, &sums).await
}

/// Answers a client's read of a block that is not here.
pub(super) async fn serve_read(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReadBlockProto,
    block: &Block,
) -> Result<bool> {
    let refused = match read(node, stream, &request, block).await {
        Ok(keeps) => return Ok(keeps),
        Err(Unserved::Begun(error)) => return Err(error),
        Err(Unserved::Refused(error)) => error,
    };
    answer_error(node, stream, Op::ReadBlock, "opReadBlock", &refused).await.map(|_| false)
}

async fn read(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    block: &Block,
) -> std::result::Result<bool, Unserved> {
    let found = find(node, block).await?;
    for from in &found.relays {
        match relay::read(node, stream, request, from).await {
            Ok(()) => return hear(node, stream, block).await,
            Err(Unserved::Refused(error)) => {
                let source = messages::xfer_name(from);
                tracing::info!(block = %block.id, source, %error, "cannot relay a replica");
            }
            Err(begun) => return Err(begun),
        }
    }
    let refused = || DataNodeError::peer(format!("{} is on no DataNode that answers", block.id));
    let Some(how) = &found.how else {
        node.virtuals.forget((block.id, block.gs));
        return Err(refused().into());
    };
    if let How::Packed(place) = how {
        // It may have come into another container: who asks again has the NameNode asked again.
        packed::send(node, stream, request, place).await.inspect_err(|_| {
            node.virtuals.forget((block.id, block.gs));
        })?;
        return hear(node, stream, block).await;
    }
    let permit = node.virtuals.permit();
    let _permit = permit.ok_or_else(|| DataNodeError::peer("too much is being decoded"))?;
    match how {
        How::Packed(_) => {}
        How::Decoded(decodable) => send_decoded(node, stream, request, decodable).await?,
        How::Viewed(view) => viewed::send(node, stream, request, view).await?,
    }
    hear(node, stream, block).await
}

async fn hear(
    node: &Node,
    stream: &mut TransferStream,
    block: &Block,
) -> std::result::Result<bool, Unserved> {
    hear_verdict(node, stream, block).await.map_err(Unserved::Begun)
}

async fn send_decoded(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    decodable: &Decodable,
) -> std::result::Result<(), Unserved> {
    let (group, slot) = (&decodable.group, decodable.slot);
    let block = decodable.block();
    let wanted = wanted(request, block.len)?;
    let (range, _) = group.layout.chunks(slot, &wanted);
    let mut decoder = decodable.decoder(node);
    let sums = decodable.sums(&mut decoder).await?;
    let checksum = group.checksum;
    let flow = &node.metrics.read_by_clients;
    let chunk = checksum.chunk_len as u64;
    let step = (STEP / chunk).max(1) * chunk;
    // The first bytes are there before anything is promised.
    let mut next = range.start..(range.start + step).min(range.end);
    let mut bytes = decode_step(node, &mut decoder, next.clone(), range.end, &sums).await?;
    stream.writer.hold_message(&success(checksum, range.start));
    let mut packets = Packets::new(&mut stream.writer, range.start);
    let sent = async {
        while !bytes.is_empty() {
            let (_, of_sums) = group.layout.chunks(slot, &next);
            let crcs = &sums[of_sums.start as usize..of_sums.end as usize];
            packets.send(&bytes, crcs).await?;
            flow.bytes.add(bytes.len() as u64);
            next = next.end..(next.end + step).min(range.end);
            bytes = match next.is_empty() {
                true => Vec::new(),
                false => decode_step(node, &mut decoder, next.clone(), range.end, &sums).await?,
            };
        }
        packets.send(&[], &[]).await
    };
    sent.await.map_err(Unserved::Begun)?;
    flow.blocks.add(1);
    tracing::debug!(block = %block.id, from = range.start, to = range.end, "decoded a range");
    Ok(())
}

/// Decodes what is sent at once, and counts it.
async fn decode_step(
    node: &Node,
    decoder: &mut Decoder,
    step: Range<u64>,
    until: u64,
    sums: &[u8],
) -> Result<Vec<u8>> {
    let began = Instant::now();
    let bytes = decoder.bytes(step, until, sums).await?;
    node.metrics.decodes.add(began.elapsed());
    node.metrics.decoded_bytes.add(bytes.len() as u64);
    Ok(bytes)
}

/// The checksum of the first `block.len` bytes of a block that is not here.
pub(super) async fn checksum(
    node: &Arc<Node>,
    block: &Block,
    options: Option<BlockChecksumOptionsProto>,
) -> Result<OpBlockChecksumResponseProto> {
    let found = find(node, block).await?;
    for from in &found.relays {
        match peer_checksum(node, from, block, options.clone(), false).await {
            Ok(answer) => return Ok(answer),
            Err(error) => {
                let source = messages::xfer_name(from);
                tracing::info!(block = %block.id, source, %error, "cannot relay a checksum");
            }
        }
    }
    let lost = || DataNodeError::peer(format!("{} is on no DataNode that answers", block.id));
    match found.how.as_ref().ok_or_else(lost)? {
        How::Decoded(decodable) => decoded_checksum(node, block.len, options, decodable).await,
        How::Viewed(view) => viewed::checksum(node, block.len, options, view).await,
        How::Packed(place) => packed::checksum(node, block.len, options, place).await,
    }
}

/// The same from the CRCs of its chunks; of a part of the last chunk from its bytes.
async fn decoded_checksum(
    node: &Arc<Node>,
    len: u64,
    options: Option<BlockChecksumOptionsProto>,
    decodable: &Decodable,
) -> Result<OpBlockChecksumResponseProto> {
    let (layout, whole) = (&decodable.group.layout, decodable.block().len);
    let Checksum { kind, chunk_len } = decodable.group.checksum;
    check_summed(len, whole)?;
    let mut decoder = decodable.decoder(node);
    let sums = decodable.sums(&mut decoder).await?;
    let chunk = chunk_len as u64;
    let full = if len == whole { len.div_ceil(chunk) } else { len / chunk };
    let mut crcs = sums[..(full * SUM_LEN) as usize].to_vec();
    if len < whole && !len.is_multiple_of(chunk) {
        let (range, _) = layout.chunks(decodable.slot, &(len - len % chunk..len));
        let until = range.end;
        let bytes = decoder.bytes(range, until, &sums).await?;
        crcs.extend(kind.update(0, &bytes[..(len % chunk) as usize]).to_be_bytes());
    }
    let checksum = decodable.group.checksum;
    let sums_per_block = layout.len(decodable.slot, Part::Sums) / SUM_LEN;
    summed(&crcs, len, checksum, sums_per_block, options)
}

/// The length of a block that is not here.
pub(crate) async fn visible_len(node: &Arc<Node>, block: &Block) -> Result<u64> {
    find(node, block).await.map(|found| found.len)
}

/// Tells a client that asks for files of a block that is not here to read it otherwise, and to go on asking for
/// others: with the version beside it, the status is about this block alone.
///
/// Source: Hadoop 3.5.0 `BlockReaderFactory#requestFileDescriptors`.
pub(super) async fn refuse_files(stream: &mut TransferStream, version: u32) -> Result<()> {
    let answer = BlockOpResponseProto {
        status: Status::ErrorUnsupported as i32,
        message: Some("The block is not on this DataNode, which serves it otherwise.".into()),
        short_circuit_access_version: Some(version),
        ..Default::default()
    };
    Ok(stream.writer.send_message(&answer).await?)
}
