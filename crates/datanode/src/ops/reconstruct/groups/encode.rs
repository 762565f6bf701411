//! Encoding a group: members from the disks where they are to stay, parities to theirs.

use super::super::source::{Wanted, What};
use super::super::target::Destination;
use super::order::{Chosen, EncodeWork, Place};
use super::sinks::Sinks;
use super::units::{SLICE, Units};
use crate::dataset::{Block, Checksum};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::checksum;
use crate::ops::peer_checksum::peer_checksum;
use cairn_codec::crc;
use cairn_replica::group::check_chunks;
use cairn_replica::group::encode::{
    Encoder, MemberSums, Ordered, PARITY_CHECKSUM, check_read_back,
};
use cairn_stripe::group::{GroupRecord, Layout, Member, Part};
use cairn_wire::proto::datanode::{EncodedGroupProto, GroupMemberProto, GroupParityProto};
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, OpBlockChecksumResponseProto,
};
use std::sync::Arc;

/// Computes and writes the parities, and proves them. On a failure nothing is left but, if it was the last step,
/// replicas that the NameNode does not want.
pub(super) async fn encode(node: &Arc<Node>, work: &EncodeWork) -> Result<EncodedGroupProto> {
    let mut units = read(node, work);
    let data_len = work.data_len();
    // The members' chunks are known when the first of them is read.
    let first = layout(work, 1)?;
    let mut range = 0..SLICE.min(data_len);
    let unread = |unread: super::units::Unread| {
        DataNodeError::Peer(format!("slot {}: {}", unread.slot, unread.error))
    };
    let mut slices = units.step(&first, Part::Data, &range).await.map_err(unread)?;
    let checksum =
        units.checksum().ok_or_else(|| DataNodeError::peer("the members are not checked alike"))?;
    check_chunks(checksum)?;
    if !SLICE.is_multiple_of(checksum.chunk_len as u64) {
        return Err(DataNodeError::Peer(format!("chunks of {} bytes", checksum.chunk_len)));
    }
    let layout = layout(work, checksum.chunk_len as u64)?;
    let mut encoder = Encoder::new(&work.codec, &layout, checksum, work.group.gs.0);
    let mut sinks = Sinks::start(node, destinations(work));
    let written = async {
        loop {
            let members: Vec<_> = slices.drain(..).take(layout.k()).flatten().collect();
            if members.len() != layout.k() {
                return Err(DataNodeError::Stopped);
            }
            write(&mut sinks, encoder.slice(&range, &members)?).await?;
            if range.end == data_len {
                break;
            }
            range = range.end..(range.end + SLICE).min(data_len);
            slices = units.step(&layout, Part::Data, &range).await.map_err(unread)?;
        }
        write(&mut sinks, encoder.sums_part()?).await?;
        let members = members(work, &encoder, &units)?;
        let tail = record(work, checksum, &members).to_tail(|bytes| crc::crc32c(0, bytes));
        write(&mut sinks, vec![tail; layout.m()]).await?;
        sinks.end().await;
        Ok::<_, DataNodeError>(members)
    };
    let members = match written.await {
        Ok(members) => members,
        Err(error) => {
            sinks.discard().await;
            return Err(error);
        }
    };
    let sums: Vec<_> = (0..layout.m()).map(|at| sinks.written(at)).collect();
    let mut parities = Vec::new();
    for ((place, done), (len, sum)) in work.targets.iter().zip(sinks.commit().await).zip(sums) {
        done?;
        let id = work.parity_id(place.slot);
        let block = Block { id, len, ..work.group.clone() };
        let found = read_back(node, &block, place).await?;
        let crc32c = check_read_back(id, sum, found)?;
        parities.push(GroupParityProto { slot: place.slot as u32, len, crc32c });
    }
    Ok(EncodedGroupProto {
        group: work.handle(),
        error: None,
        members,
        parities,
        checksum_type: Some(messages::checksum_type(checksum.kind)),
        bytes_per_checksum: Some(checksum.chunk_len as u32),
    })
}

fn layout(work: &EncodeWork, chunk_len: u64) -> Result<Layout> {
    let lens = work.members.iter().map(|m| m.as_ref().map_or(0, |m| m.block.len)).collect();
    Layout::new(work.schema.parity_units(), lens, work.data_len(), chunk_len)
        .map_err(|error| DataNodeError::peer(error.to_string()))
}

fn read(node: &Arc<Node>, work: &EncodeWork) -> Units {
    let chosen = work.members.iter().flatten();
    let slots = chosen.clone().map(|member| member.place.slot).collect();
    let wanted = chosen.map(|Chosen { block, place, .. }| {
        let what = What::BytesOnDisk;
        Wanted { what, ..Wanted::new(block.clone(), vec![place.node.clone()]) }
    });
    Units::start(node, slots, wanted.collect())
}

fn destinations(work: &EncodeWork) -> Vec<Destination> {
    let destination = |place: &Place| Destination {
        // What has to have room.
        block: Block { id: work.parity_id(place.slot), len: work.data_len(), ..work.group.clone() },
        target: place.target(),
        checksum: PARITY_CHECKSUM,
        is_urgent: false,
        is_synced: true,
    };
    work.targets.iter().map(destination).collect()
}

/// A parity that cannot be written is no reason to write the others.
async fn write(sinks: &mut Sinks, parities: Vec<Vec<u8>>) -> Result<()> {
    for (at, bytes) in parities.iter().enumerate() {
        sinks.write(at, bytes).await;
        if !sinks.is_open(at) {
            return Err(DataNodeError::peer(format!("parity {at} cannot be written")));
        }
    }
    Ok(())
}

/// What the members have turned out to be. Fails if one is not as it was ordered.
fn members(
    work: &EncodeWork,
    encoder: &Encoder<'_>,
    units: &Units,
) -> Result<Vec<GroupMemberProto>> {
    let read = units.storages().zip(units.crcs());
    let mut members = Vec::new();
    for ((slot, storage), (_, read_crc)) in read {
        let Some(Chosen { block, crc32c, place }) = work.members[slot].as_ref() else { continue };
        let ordered = Ordered { id: block.id, crc32c: *crc32c, storage: &place.storage };
        let MemberSums { crc32c, sums_crc32c } =
            encoder.member(slot, &ordered, (read_crc, storage))?;
        members.push(GroupMemberProto {
            slot: slot as u32,
            block: messages::local_block(block.id, block.gs, block.len),
            crc32c,
            sums_crc32c: Some(sums_crc32c),
            // Unnamed by a DataNode of Hadoop's, which proves nothing.
            storage_uuid: storage.map(str::to_string),
        });
    }
    Ok(members)
}

fn record(work: &EncodeWork, checksum: Checksum, read: &[GroupMemberProto]) -> GroupRecord {
    let mut members = vec![None; work.members.len()];
    for member in read {
        let Some(Chosen { block, .. }) = work.members[member.slot as usize].as_ref() else {
            continue;
        };
        members[member.slot as usize] = Some(Member {
            id: block.id,
            gs: block.gs,
            len: block.len,
            crc32c: member.crc32c,
            sums_crc32c: member.sums_crc32c.unwrap_or_default(),
        });
    }
    GroupRecord {
        handle: work.group.id,
        gs: work.group.gs,
        policy: work.policy,
        schema: work.schema,
        checksum_type: checksum.kind.id(),
        chunk_len: checksum.chunk_len as u32,
        data_len: work.data_len(),
        members,
    }
}

/// CRC32C of a parity as its disk has it: its DataNode reads it, or one of Hadoop's sends it.
async fn read_back(node: &Arc<Node>, block: &Block, place: &Place) -> Result<u32> {
    let options = BlockChecksumOptionsProto {
        block_checksum_type: Some(BlockChecksumTypeProto::CompositeCrc as i32),
        stripe_length: None,
    };
    let answer = if place.node.id.datanode_uuid == node.dataset.uuid() {
        checksum::checksum_on_disk(node, block, options).await?
    } else {
        peer_checksum(node, &place.node, block, Some(options), true).await?
    };
    match answer {
        OpBlockChecksumResponseProto { from_disk: Some(true), block_checksum, .. } => {
            let crc = block_checksum.first_chunk::<4>().filter(|_| block_checksum.len() == 4);
            let crc = crc.ok_or_else(|| DataNodeError::peer("no CRC of a parity"))?;
            Ok(u32::from_be_bytes(*crc))
        }
        _ => read_whole(node, block, place).await,
    }
}

async fn read_whole(node: &Arc<Node>, block: &Block, place: &Place) -> Result<u32> {
    let wanted = Wanted::new(block.clone(), vec![place.node.clone()]);
    let layout = Layout::new(1, vec![block.len], block.len, 1);
    let layout = layout.map_err(|error| DataNodeError::peer(error.to_string()))?;
    let mut units = Units::start(node, vec![0], vec![wanted]);
    let mut start = 0;
    while start < block.len {
        let range = start..(start + SLICE).min(block.len);
        let step = units.step(&layout, Part::Data, &range).await;
        step.map_err(|unread| unread.error)?;
        start = range.end;
    }
    let crc = units.crcs().next().and_then(|(_, crc)| crc);
    crc.ok_or_else(|| DataNodeError::peer("a parity could not be summed"))
}
