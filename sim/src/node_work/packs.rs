//! A DataNode at work on containers of small blocks: it writes them, reads them back by their index, serves what is packed
//! in them, and writes plain replicas of that.
//!
//! Follows `crates/datanode/src/ops/reconstruct/groups`: `pack.rs` and `unpack.rs`.

use crate::data_node::{CHECKSUM, CHUNK_LEN, NodeError};
use crate::encoding::{formed, shape};
use crate::name_node::{Located, Target};
use crate::packing::{Packing, ToPack};
use crate::tasks::Task;
use crate::world::World;
use cairn_codec::crc::{CRC_LEN, crc32c, verify_chunks, without_zeros};
use cairn_master::contiguous::elsewhere::PackedAt;
use cairn_master::contiguous::pack::{PackedContainer, WrittenContainer};
use cairn_redundancy::BlockRef;
use cairn_stripe::pack::{PackIndex, padded_len};
use std::ops::Range;

impl World<'_> {
    /// Goes on with a container; what came of it is told with the next heartbeat.
    pub(super) fn go_on_packing(&mut self, node: usize, mut work: Box<Packing>) {
        let outcome = match self.pack_step(node, &mut work) {
            Ok(None) => return self.next_step(node, Task::Pack(work)),
            Ok(Some(written)) => Ok(written),
            Err(why) => Err(why),
        };
        self.done_transfer(node);
        let BlockRef { id, gs, .. } = work.named.container;
        self.note(|| format!("dn-{node} has packed {id}: {outcome:?}"));
        self.count(if outcome.is_ok() { "containers written" } else { "containers not written" });
        self.nodes[node].packed.push(PackedContainer { id, gs, outcome });
    }

    fn pack_step(
        &mut self,
        node: usize,
        work: &mut Packing,
    ) -> Result<Option<WrittenContainer>, String> {
        if let Some(of) = work.named.blocks.get(work.next).cloned() {
            if let Some(bytes) = self.read_to_pack(node, &of) {
                work.read.push((work.next, bytes));
            }
            work.next += 1;
            return Ok(None);
        }
        if !work.is_written {
            self.write_container(node, work)?;
            work.is_written = true;
            return Ok(None);
        }
        self.read_container_back(node, work).map(Some)
    }

    /// All bytes of a block, if they are what is recorded of it.
    fn read_to_pack(&mut self, node: usize, of: &ToPack) -> Option<Vec<u8>> {
        let BlockRef { id, gs, len } = of.block;
        let read = match of.holders.is_empty() {
            true => self.read_elsewhere(node, of.block),
            false => of.holders.iter().find_map(|holder| self.read_unit(*holder, id, gs, len)),
        };
        read.filter(|bytes| crc32c(0, bytes) == of.crc32c)
    }

    fn index_of(&self, work: &Packing) -> Result<PackIndex, String> {
        let BlockRef { id, gs, .. } = work.named.container;
        let shape = shape();
        let index = PackIndex::new((id, gs), shape.kind, shape.bytes_per_checksum);
        let mut index = index.map_err(|error| error.to_string())?;
        for (at, bytes) in &work.read {
            let ToPack { slot, block, crc32c, .. } = &work.named.blocks[*at];
            let what = (bytes.len() as u32, *crc32c);
            let pushed = index.push(*slot, (block.id, block.gs), what);
            pushed.map_err(|error| error.to_string())?;
        }
        Ok(index)
    }

    fn write_container(&mut self, node: usize, work: &Packing) -> Result<(), String> {
        let index = self.index_of(work)?;
        if index.packed().is_empty() {
            return Err("none of its blocks could be read".to_string());
        }
        let mut parts: Vec<Vec<u8>> = work.read.iter().map(|(_, bytes)| bytes.clone()).collect();
        parts.iter_mut().for_each(|bytes| bytes.resize(padded(bytes.len() as u64) as usize, 0));
        self.parts.packed_bytes(&mut parts);
        parts.push(index.to_tail(|bytes| crc32c(0, bytes)));
        let data = parts.concat();
        let BlockRef { id, gs, .. } = work.named.container;
        let block = BlockRef { id, gs, len: data.len() as u64 };
        let storage = work.named.target.storage.clone();
        let taken = self.nodes[node].take_copy(block, data.clone(), &storage, None);
        self.note(|| format!("dn-{node} writes {block:?}: {taken:?}"));
        taken.map_err(|error| format!("{error:?}"))?;
        self.note_bytes(id, gs, &data);
        self.tell_soon(node);
        Ok(())
    }

    fn read_container_back(
        &mut self,
        node: usize,
        work: &Packing,
    ) -> Result<WrittenContainer, String> {
        let index = self.index_of(work)?;
        let BlockRef { id, gs, .. } = work.named.container;
        let len = index.container_len();
        let bytes = self.nodes[node].read(id, gs, 0..len).map_err(|error| format!("{error:?}"))?;
        let found = PackIndex::from_tail(&bytes, |bytes| crc32c(0, bytes));
        let found = found.map_err(|error| error.to_string())?;
        if found != index {
            return Err(format!("{id} has another index"));
        }
        let at = |of: &cairn_stripe::pack::Packed| {
            let Range { start, end } = of.range();
            crc32c(0, &bytes[start as usize..end as usize])
        };
        let recorded: Vec<u32> = index.packed().iter().map(|of| of.crc32c).collect();
        let crcs = self.parts.read_back(&recorded, found.packed().iter().map(at).collect());
        let is_in = |of: &&ToPack| !index.packed().iter().any(|packed| packed.slot == of.slot);
        let left_out = work.named.blocks.iter().filter(is_in).map(|of| of.slot).collect();
        let storage = self.nodes[node].volume_of(id).unwrap_or_default().to_string();
        let crc32c = crc32c(0, &bytes);
        Ok(WrittenContainer { len, crc32c, storage, left_out, crcs, checksum: shape() })
    }

    /// Writes a plain replica of a packed block.
    pub(super) fn unpack_here(&mut self, node: usize, block: BlockRef, storage: &str) {
        let Some(bytes) = self.read_elsewhere(node, block) else { return };
        let taken = self.nodes[node].take_copy(block, bytes.clone(), storage, None);
        self.note(|| format!("dn-{node} unpacks {block:?}: {taken:?}"));
        if taken.is_ok() {
            self.note_bytes(block.id, block.gs, &bytes);
            self.count("replicas of packed blocks written");
            self.tell_soon(node);
            self.touch(block.id);
        }
    }

    /// A packed block from its container, wherever that is.
    pub(super) fn read_packed(&mut self, located: &Located, at: PackedAt) -> Option<Vec<u8>> {
        // Who has it may be too slow for its reader.
        let is_slow = located.group.is_some() && self.rng.one_in(4);
        for relay in located.relays.iter().filter(|_| !is_slow) {
            if let Some(bytes) = self.read_in_container(relay, at) {
                self.count("packed blocks read");
                return Some(bytes);
            }
        }
        let (group, slot, sources) = located.group.as_ref()?;
        let policy = self.name_node.policy_of(group);
        let group = formed(group, &policy).ok()?;
        let container = self.decode_member(&group, *slot, sources)?;
        let bytes = container.get(at.offset as usize..(at.offset + at.len) as usize)?.to_vec();
        self.count("packed blocks decoded");
        (crc32c(0, &bytes) == at.crc32c).then_some(bytes)
    }

    /// The bytes of a packed block from a replica of its container; what its reader gets are the CRCs that its writer
    /// has computed.
    fn read_in_container(&mut self, holder: &Target, at: PackedAt) -> Option<Vec<u8>> {
        let BlockRef { id, gs, .. } = at.container;
        if !self.answers(holder.node) || self.unlucky(12) {
            return None;
        }
        let len = at.len as usize;
        let chunks = at.offset..at.offset + padded(at.len);
        let node = &self.nodes[holder.node];
        let mut bytes = match node.read(id, gs, chunks.clone()) {
            Ok(bytes) => bytes,
            Err(NodeError::Damaged) => {
                self.report_bad(holder.node, holder.node, at.container);
                return None;
            }
            Err(_) => return None,
        };
        let crcs = node.chunk_crcs(id, gs).ok()?;
        let chunk = |at: u64| (at / CHUNK_LEN) as usize * CRC_LEN;
        let mut crcs = crcs.get(chunk(chunks.start)..chunk(chunks.end))?.to_vec();
        let zeros = bytes.len() as u64 - at.len;
        bytes.truncate(len);
        if crc32c(0, &bytes) != at.crc32c {
            return None;
        }
        let last = crcs.last_chunk_mut::<CRC_LEN>()?;
        *last = without_zeros(CHECKSUM.kind, u32::from_be_bytes(*last), zeros).to_be_bytes();
        if verify_chunks(CHECKSUM.kind, CHECKSUM.chunk_len, &bytes, &crcs).is_err() {
            self.violate(format!("a reader gets other CRCs than are of what is packed in {id}"));
        }
        Some(bytes)
    }

    /// A reader whose memory is bad says that it got bad bytes of a packed block.
    pub(crate) fn cry_wolf(&mut self, holder: &Target, block: BlockRef) {
        let Some(at) = self.name_node.block(block.id).and_then(|info| info.block.packed) else {
            return;
        };
        let Some(container) = self.name_node.block(at.container) else { return };
        let container = &container.block;
        let whole = BlockRef { id: container.id, gs: container.gs, len: container.len };
        self.note(|| format!("a reader says that {holder:?} has a bad {block:?}"));
        self.count("packed blocks reported bad");
        let is_bad = |world: &World<'_>| {
            let places = world.name_node.cluster.locations(whole.id).into_iter();
            let mut here = places.filter(|place| {
                place.corrupt && world.name_node.target(place.storage).node == holder.node
            });
            here.next().is_some()
        };
        let was_bad = is_bad(self);
        match self.parts.blames_containers() {
            true => self.name_node.report_bad(holder, whole),
            false => self.name_node.report_bad(holder, block),
        }
        let stored = self.nodes[holder.node].replicas.get(&whole.id);
        let is_good = stored.is_some_and(|stored| stored.damaged.is_empty() && !stored.is_torn);
        if is_good && !was_bad && is_bad(self) {
            self.violate(format!("{} counts as bad on the word of a reader", whole.id));
        }
    }
}

/// Bytes that a packed block takes.
fn padded(len: u64) -> u64 {
    padded_len(u32::try_from(len).unwrap_or(u32::MAX), CHUNK_LEN as u32)
}
