//! Containers of small blocks: orders to write them, what is told of that, and where a packed block is.

use std::collections::BTreeMap;

use cairn_master::contiguous::elsewhere::PackedAt;
use cairn_master::contiguous::pack::{PackedContainer, WrittenContainer};
use cairn_namespace::group::ChecksumShape;
use cairn_namespace::ops::pack::PACKED_MAX;
use cairn_namespace::{Result, query};
use cairn_redundancy::{BlockRef, NodeHandle, PackOrder, UnpackOrder};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode as dn;

use super::encoder::{Encoder, block};
use crate::protocol::convert;

impl Encoder<'_> {
    /// An order to write a container; none if it is no more.
    pub(super) fn pack(&self, order: &PackOrder) -> Result<Option<dn::PackOrderProto>> {
        let rows = query::pack_slots(self.lookup.store, order.container.id, 0, PACKED_MAX)?;
        let mut known: BTreeMap<NodeHandle, u32> = BTreeMap::new();
        let mut datanodes = Vec::new();
        let mut blocks = Vec::with_capacity(rows.len());
        for (slot, of) in rows {
            let mut places = Vec::new();
            for storage in self.cluster.readable_places(of.id) {
                let node = self.cluster.storage(storage).node;
                let at = *known.entry(node).or_insert_with(|| {
                    datanodes.push(convert::datanode_info(self.cluster.node(node), 0));
                    datanodes.len() as u32 - 1
                });
                places.push(at);
            }
            blocks.push(dn::BlockToPackProto {
                slot,
                block: block(&BlockRef { id: of.id, gs: of.gs, len: of.len }),
                crc32c: of.crc32c,
                datanodes: places,
            });
        }
        let storage = self.cluster.storage(order.storage);
        Ok((!blocks.is_empty()).then(|| dn::PackOrderProto {
            container: self.extended(&order.container),
            storage_uuid: storage.uuid.clone(),
            storage_type: Some(storage.storage_type as i32),
            datanodes,
            blocks,
        }))
    }

    /// An order to write a packed block as a plain replica.
    pub(super) fn unpack(&self, order: &UnpackOrder) -> dn::UnpackOrderProto {
        let storage = self.cluster.storage(order.storage);
        dn::UnpackOrderProto {
            block: self.extended(&order.block),
            storage_uuid: storage.uuid.clone(),
            storage_type: Some(storage.storage_type as i32),
        }
    }

    pub(super) fn packed_block(&self, at: &PackedAt) -> dn::PackedBlockProto {
        dn::PackedBlockProto {
            container: self.extended(&at.container),
            offset: at.offset,
            len: at.len,
            crc32c: at.crc32c,
            checksum_type: at.checksum.kind.into(),
            bytes_per_checksum: at.checksum.bytes_per_checksum,
        }
    }
}

/// What a DataNode says of a container that it was to write.
pub(super) fn packed(proto: dn::PackedContainerProto) -> PackedContainer {
    let id = BlockId(proto.container.block_id as i64);
    let gs = GenerationStamp(proto.container.gen_stamp);
    let outcome = match proto.error.clone() {
        Some(why) => Err(why),
        None => written(proto).ok_or_else(|| "what it says makes no sense".to_string()),
    };
    PackedContainer { id, gs, outcome }
}

fn written(proto: dn::PackedContainerProto) -> Option<WrittenContainer> {
    let kind = u8::try_from(proto.checksum_type?).ok()?;
    let is_bounded = proto.left_out.len() <= PACKED_MAX && proto.crcs.len() <= PACKED_MAX;
    Some(WrittenContainer {
        len: proto.container.num_bytes(),
        crc32c: proto.crc32c?,
        storage: proto.storage_uuid?,
        left_out: proto.left_out,
        crcs: proto.crcs,
        checksum: ChecksumShape { kind, bytes_per_checksum: proto.bytes_per_checksum? },
    })
    .filter(|_| is_bounded)
}
