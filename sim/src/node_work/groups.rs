//! A DataNode at work on contiguous groups: it encodes them, rebuilds their units, and serves blocks that it lacks.
//!
//! What is computed and believed is decided by `cairn_replica::group`, which unit is read next by
//! `cairn_stripe::group::Sources`. An encode takes a step for each replica that is read and each parity that is written or
//! read back.

use crate::data_node::{CHECKSUM, CHUNK_LEN, NodeError};
use crate::encoding::{Encoding, formed, shape};
use crate::model::Proof;
use crate::name_node::{Located, NamedRebuild, Target};
use crate::tasks::Task;
use crate::world::World;
use cairn_codec::crc::crc32c;
use cairn_master::contiguous::{EncodedGroup, Made, MadeMember};
use cairn_namespace::group::ParityRecord;
use cairn_namespace::ops::group::MemberSum;
use cairn_redundancy::groups::prove::Proved;
use cairn_redundancy::{BlockRef, EncodeOrder};
use cairn_replica::group::encode::{MemberSums, Ordered, check_read_back};
use cairn_replica::group::{Decoded, Encoder, Formed, Rebuilder, Unbelieved};
use cairn_stripe::group::{GroupRecord, Member, Part, Sources};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp};

/// Bytes of a slice that is computed at once.
const SLICE: u64 = 2 * CHUNK_LEN;
/// How long an answer about a block that is not here holds, in ms.
const FRESH_MS: u64 = 3000;

/// Why an attempt to rebuild has made nothing.
enum Failure {
    Unread(usize),
    Unbelieved(Unbelieved),
}

impl From<Unbelieved> for Failure {
    fn from(why: Unbelieved) -> Failure {
        Failure::Unbelieved(why)
    }
}

impl World<'_> {
    /// Goes on with an encode; what came of it is told with the next heartbeat.
    pub(super) fn go_on_encoding(&mut self, node: usize, mut work: Box<Encoding>) {
        let outcome = match self.encode_step(node, &mut work) {
            Ok(None) => return self.next_step(node, Task::Encode(work)),
            Ok(Some(made)) => Ok(made),
            Err(why) => Err(why),
        };
        self.done_transfer(node);
        let group = work.named.order.group;
        self.note(|| format!("dn-{node} has encoded {group:?}: {:?}", outcome.as_ref().err()));
        self.count(if outcome.is_ok() { "groups encoded" } else { "groups not encoded" });
        self.nodes[node].encoded.push(EncodedGroup { handle: group.id, gs: group.gs, outcome });
    }

    fn encode_step(&mut self, node: usize, work: &mut Encoding) -> Result<Option<Made>, String> {
        if work.read.len() < work.named.members.len() {
            let read = self.read_member(work)?;
            work.read.push(read);
            return Ok(None);
        }
        let Some((members, parities)) = work.made.as_ref() else {
            work.made = Some(self.compute(node, work)?);
            return Ok(None);
        };
        let EncodeOrder { group, targets, .. } = &work.named.order;
        let part = |at: usize| {
            let (id, len) = (group.id.internal(targets[at].1), parities[at].len() as u64);
            BlockRef { id, gs: group.gs, len }
        };
        if work.written < targets.len() {
            let (at, block) = (work.written, part(work.written));
            let (to, data) = (&work.named.targets[at], parities[at].clone());
            self.write_parity(to, block, data)?;
            work.written += 1;
            return Ok(None);
        }
        let at = work.read_back.len();
        if at < targets.len() {
            let (block, from) = (part(at), &work.named.targets[at]);
            let found = self.read_unit(from.node, block.id, block.gs, block.len);
            let found = crc32c(0, &found.ok_or("a parity cannot be read back")?);
            let crc32c = check_read_back(block.id, Some(crc32c(0, &parities[at])), found);
            let crc32c = crc32c.map_err(|why| why.to_string())?;
            work.read_back.push((targets[at].1, ParityRecord { len: block.len, crc32c }));
            return Ok(None);
        }
        let (members, parities) = (members.clone(), work.read_back.clone());
        Ok(Some(Made { members, parities, checksum: shape() }))
    }

    /// Reads the next member where it is to stay: that proves its replica, and syncs it.
    fn read_member(&mut self, work: &Encoding) -> Result<(Vec<u8>, String), String> {
        let at = work.read.len();
        let BlockRef { id, gs, len } = work.named.order.members[at].block;
        let holder = work.named.members[at].node;
        if !self.parts.leaves_members_unsynced() {
            self.nodes[holder].sync_finalized(id);
        }
        let bytes = self.read_unit(holder, id, gs, len);
        let bytes = bytes.ok_or_else(|| format!("{id} cannot be read"))?;
        let storage = self.nodes[holder].volume_of(id).unwrap_or_default().to_string();
        let registration = self.nodes[holder].registrations;
        self.model.proofs.insert((holder, id), Proof::new(gs, registration));
        Ok((bytes, storage))
    }

    /// Reads a replica as the disk has it, which syncs it first; what came of it is told with the next heartbeat, with what the
    /// end of a parity says, or that of a container if it is wanted.
    pub(super) fn prove(
        &mut self,
        node: usize,
        block: BlockRef,
        (storage, wants_index): (String, bool),
    ) {
        let BlockRef { id, gs, len } = block;
        self.nodes[node].sync_finalized(id);
        let is_there = self.nodes[node].volume_of(id) == Some(storage.as_str());
        let bytes = self.nodes[node].read(id, gs, 0..len);
        if bytes == Err(NodeError::Damaged) {
            self.report_bad(node, node, block);
        }
        let sum = |bytes: &[u8]| crc32c(0, bytes);
        let read = bytes.ok().filter(|_| is_there);
        let parity = read.as_deref().filter(|_| id.is_parity());
        let record = parity.and_then(|bytes| GroupRecord::from_tail(bytes, sum).ok());
        let decodes = wants_index && read.is_none();
        let decoded = if decodes { self.read_elsewhere(node, block) } else { None };
        let container = read.as_deref().or(decoded.as_deref()).filter(|_| wants_index);
        let index = container.and_then(|bytes| PackIndex::from_tail(bytes, sum).ok());
        let crc32c = read.as_deref().map(sum);
        self.note(|| format!("dn-{node} has read {block:?}: {crc32c:?}"));
        if crc32c.is_some() {
            self.count("replicas proven");
            let registration = self.nodes[node].registrations;
            self.model.proofs.insert((node, id), Proof::new(gs, registration));
        }
        self.nodes[node].proved.push(Proved { block, storage, crc32c, record, index });
    }

    /// A unit as another server reads it.
    pub(crate) fn read_unit(
        &mut self,
        holder: usize,
        id: BlockId,
        gs: GenerationStamp,
        len: u64,
    ) -> Option<Vec<u8>> {
        if !self.answers(holder) || self.unlucky(60) {
            return None;
        }
        match self.nodes[holder].read(id, gs, 0..len) {
            Ok(bytes) => Some(bytes),
            Err(NodeError::Damaged) => {
                self.report_bad(holder, holder, BlockRef { id, gs, len });
                None
            }
            Err(_) => None,
        }
    }

    fn compute(
        &mut self,
        node: usize,
        work: &Encoding,
    ) -> Result<(Vec<MadeMember>, Vec<Vec<u8>>), String> {
        let (layout, codec) = (work.layout()?, self.codec(&work.policy));
        let EncodeOrder { group, members, .. } = &work.named.order;
        let len = layout.data_len() as usize;
        let mut padded = vec![vec![0; len]; layout.k()];
        for (member, (bytes, _)) in members.iter().zip(&work.read) {
            padded[member.slot.as_usize()][..bytes.len()].copy_from_slice(bytes);
        }
        if self.faults.memory && self.unlucky(12) {
            self.note(|| format!("a bit flips in the memory of dn-{node}"));
            self.count("bits flipped in memory");
            let (slot, at) = (self.rng.index(members.len()), self.rng.index(len));
            padded[members[slot].slot.as_usize()][at] ^= 1;
        }
        let wrong = |why: Unbelieved| why.to_string();
        let mut encoder = Encoder::new(&codec, &layout, CHECKSUM, group.gs.0);
        let mut parities = vec![Vec::new(); layout.m()];
        for start in (0..layout.data_len()).step_by(SLICE as usize) {
            let range = start..(start + SLICE).min(layout.data_len());
            let (from, to) = (range.start as usize, range.end as usize);
            let slice: Vec<Vec<u8>> = padded.iter().map(|bytes| bytes[from..to].to_vec()).collect();
            let made = self.parts.encode(&mut encoder, &range, &slice).map_err(wrong)?;
            parities.iter_mut().zip(made).for_each(|(all, slice)| all.extend(slice));
        }
        let sums = encoder.sums_part().map_err(wrong)?;
        parities.iter_mut().zip(sums).for_each(|(all, sums)| all.extend(sums));
        let mut made = Vec::new();
        let mut recorded = vec![None; layout.k()];
        for ((member, target), (bytes, storage)) in
            members.iter().zip(&work.named.members).zip(&work.read)
        {
            let BlockRef { id, gs, len } = member.block;
            let ordered = Ordered { id, crc32c: member.crc32c, storage: &target.storage };
            let slot = member.slot.as_usize();
            let read = (Some(crc32c(0, bytes)), Some(storage.as_str()));
            let MemberSums { crc32c, sums_crc32c } =
                encoder.member(slot, &ordered, read).map_err(wrong)?;
            let sum = MemberSum { slot: member.slot.0, crc32c, sums_crc32c };
            made.push(MadeMember { sum, storage: storage.clone() });
            recorded[slot] = Some(Member { id, gs, len, crc32c, sums_crc32c });
        }
        let record = GroupRecord {
            handle: group.id,
            gs: group.gs,
            policy: work.policy.id,
            schema: work.policy.schema,
            checksum_type: shape().kind,
            chunk_len: shape().bytes_per_checksum,
            data_len: layout.data_len(),
            members: recorded,
        };
        let tail = record.to_tail(|bytes| crc32c(0, bytes));
        parities.iter_mut().for_each(|all| all.extend(&tail));
        Ok((made, parities))
    }

    fn write_parity(&mut self, to: &Target, block: BlockRef, data: Vec<u8>) -> Result<(), String> {
        if !self.answers(to.node) || self.unlucky(60) {
            return Err(format!("dn-{} does not take {}", to.node, block.id));
        }
        self.note_bytes(block.id, block.gs, &data);
        let taken = self.nodes[to.node].take_copy(block, data, &to.storage, None);
        self.note(|| format!("dn-{} takes {block:?}: {taken:?}", to.node));
        taken.map_err(|error| format!("{error:?}"))?;
        self.tell_soon(to.node);
        Ok(())
    }

    /// Rebuilds until the units are proven, with other sources after each result that is not.
    pub(super) fn rebuild_group(&mut self, node: usize, work: &NamedRebuild) -> Result<(), String> {
        let policy = self.name_node.policy_of(&work.group);
        let group = formed(&work.group, &policy).map_err(|why| why.to_string())?;
        let mut sources = Sources::new(work.sources.iter().map(|(slot, _)| *slot));
        loop {
            let chosen = sources.chosen(&group.layout).map_err(|why| why.to_string())?;
            match self.attempt_group(node, work, &group, &chosen) {
                Ok(units) => {
                    for ((slot, to), data) in work.targets.iter().zip(units) {
                        let (id, gs, len) = group.unit(*slot);
                        self.note_bytes(id, gs, &data);
                        self.send_replica(to.clone(), BlockRef { id, gs, len }, data);
                    }
                    self.count("units of contiguous groups rebuilt");
                    return Ok(());
                }
                Err(Failure::Unread(slot)) if sources.lost(slot) => {}
                Err(Failure::Unread(slot)) => return Err(format!("slot {slot} is not there")),
                Err(Failure::Unbelieved(why)) => {
                    self.count("rebuilds unproven");
                    if !sources.unbelieved(why.slot(), &chosen) {
                        return Err(why.to_string());
                    }
                }
            }
        }
    }

    fn attempt_group(
        &mut self,
        node: usize,
        work: &NamedRebuild,
        group: &Formed,
        chosen: &[usize],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let layout = &group.layout;
        let mut units = vec![None; layout.units()];
        let mut crcs = Vec::new();
        for slot in chosen {
            let (id, gs, _) = group.unit(*slot);
            let len = layout.len(*slot, Part::Data);
            let bytes = self.read_slot(&work.sources, *slot, (id, gs), len);
            let mut bytes = bytes.ok_or(Failure::Unread(*slot))?;
            crcs.push((*slot, crc32c(0, &bytes)));
            bytes.resize(layout.data_len() as usize, 0);
            units[*slot] = Some(bytes);
        }
        for slot in (0..layout.k()).filter(|slot| layout.is_empty(*slot)) {
            units[slot] = Some(vec![0; layout.data_len() as usize]);
        }
        let targets: Vec<usize> = work.targets.iter().map(|(slot, _)| *slot).collect();
        let mut rebuilder = Rebuilder::new(group, targets, chosen);
        let mut out = vec![Vec::new(); work.targets.len()];
        for start in (0..layout.data_len()).step_by(SLICE as usize) {
            let range = start..(start + SLICE).min(layout.data_len());
            let (from, to) = (range.start as usize, range.end as usize);
            let slice: Vec<Option<&[u8]>> =
                units.iter().map(|unit| unit.as_ref().map(|bytes| &bytes[from..to])).collect();
            let made = rebuilder.slice(&range, &slice)?;
            out.iter_mut().zip(made).for_each(|(all, bytes)| all.extend(bytes));
        }
        out.iter_mut().zip(rebuilder.ends()?).for_each(|(all, end)| all.extend(end));
        if self.faults.memory && self.unlucky(12) {
            self.note(|| format!("a bit flips in the memory of dn-{node}"));
            self.count("bits flipped in memory");
            let which = self.rng.index(out.len());
            let at = self.rng.index(out[which].len());
            out[which][at] ^= 1;
        }
        for (slot, crc) in crcs {
            rebuilder.check_source(slot, Some(crc))?;
        }
        for (at, bytes) in out.iter().enumerate() {
            rebuilder.check_result(at, bytes.len() as u64, Some(crc32c(0, bytes)))?;
        }
        Ok(out)
    }

    /// The first bytes of a unit, from one of its holders.
    fn read_slot(
        &mut self,
        sources: &[(usize, Target)],
        slot: usize,
        (id, gs): (BlockId, GenerationStamp),
        len: u64,
    ) -> Option<Vec<u8>> {
        let holders: Vec<usize> =
            sources.iter().filter(|(of, _)| *of == slot).map(|(_, at)| at.node).collect();
        holders.into_iter().find_map(|holder| self.read_unit(holder, id, gs, len))
    }

    /// What a DataNode answers to a client that asks it for a block that it lacks.
    pub(crate) fn read_elsewhere(&mut self, node: usize, block: BlockRef) -> Option<Vec<u8>> {
        let located = self.locate_units(node, block)?;
        if let Some(at) = located.packed {
            return self.read_packed(&located, at);
        }
        for relay in &located.relays {
            if let Some(bytes) = self.read_unit(relay.node, block.id, block.gs, block.len) {
                self.count("blocks relayed");
                return Some(bytes);
            }
        }
        let (group, slot, sources) = located.group.as_ref()?;
        let policy = self.name_node.policy_of(group);
        let group = formed(group, &policy).ok()?;
        let bytes = self.decode_member(&group, *slot, sources)?;
        self.count("blocks decoded for readers");
        Some(bytes)
    }

    /// What the NameNode has said lately, or says now.
    fn locate_units(&mut self, node: usize, block: BlockRef) -> Option<Located> {
        let (key, now_ms) = ((block.id, block.gs), self.now_ms);
        let known = self.nodes[node].virtuals.get(&key).filter(|(until_ms, _)| now_ms < *until_ms);
        if let Some((_, located)) = known {
            return located.clone();
        }
        if !self.nodes[node].is_registered || !self.reaches_name_node(node) {
            return None;
        }
        let mut located = self.name_node.locate_units(node, key)?;
        if self.parts.serves_tombstones() && located.is_none() {
            let places = self.name_node.cluster.readable_places(block.id).into_iter();
            let relays = places.map(|storage| self.name_node.target(storage)).collect();
            located = Some(Located { len: block.len, relays, group: None, packed: None });
        }
        let info = self.name_node.block(block.id);
        if located.is_some() && info.is_none_or(|info| info.block.is_tombstone()) {
            self.violate(format!("{}, which no file has, is served", block.id));
        }
        let located = located.filter(|located| located.len == block.len);
        self.nodes[node].virtuals.insert(key, (now_ms + FRESH_MS, located.clone()));
        located
    }

    /// A member from the units that are left, each chunk proven.
    pub(super) fn decode_member(
        &mut self,
        group: &Formed,
        slot: usize,
        sources: &[(usize, Target)],
    ) -> Option<Vec<u8>> {
        let mut decoded = Decoded::new(slot, sources.iter().map(|(slot, _)| *slot));
        let len = decoded.sums_len(group);
        let sums = loop {
            let sums = self.decode_range(group, &mut decoded, sources, Part::Sums, 0..len)?;
            match decoded.check_sums(group, &sums.0) {
                Ok(()) => break sums.0,
                Err(_) if decoded.sources.unbelieved(None, &sums.1) => {}
                Err(_) => return None,
            }
        };
        let (_, _, len) = group.unit(slot);
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < len {
            let start = bytes.len() as u64;
            let range = start..(start + SLICE).min(len);
            let read =
                self.decode_range(group, &mut decoded, sources, Part::Data, range.clone())?;
            match decoded.check_bytes(group, &range, &read.0, &sums) {
                Ok(()) => bytes.extend(read.0),
                Err(_) if decoded.sources.unbelieved(None, &read.1) => {}
                Err(_) => return None,
            }
        }
        Some(bytes)
    }

    /// A range of a part, and what it was decoded from.
    fn decode_range(
        &mut self,
        group: &Formed,
        decoded: &mut Decoded,
        sources: &[(usize, Target)],
        part: Part,
        range: std::ops::Range<u64>,
    ) -> Option<(Vec<u8>, Vec<usize>)> {
        let layout = &group.layout;
        loop {
            let chosen = decoded.sources.chosen(layout).ok()?;
            let mut units = vec![None; layout.units()];
            let mut unread = None;
            for slot in chosen.iter().copied() {
                let own = layout.range(slot, part, &range);
                match self.read_part_of(group, sources, slot, part, own) {
                    Some(mut bytes) => {
                        bytes.resize((range.end - range.start) as usize, 0);
                        units[slot] = Some(bytes);
                    }
                    None => unread = Some(slot),
                }
            }
            for slot in (0..layout.k()).filter(|slot| layout.is_empty(*slot)) {
                units[slot] = Some(vec![0; (range.end - range.start) as usize]);
            }
            match unread {
                Some(slot) if decoded.sources.lost(slot) => {}
                Some(_) => return None,
                None => return Some((decoded.decode(group, &units).ok()?, chosen)),
            }
        }
    }

    fn read_part_of(
        &mut self,
        group: &Formed,
        sources: &[(usize, Target)],
        slot: usize,
        part: Part,
        range: std::ops::Range<u64>,
    ) -> Option<Vec<u8>> {
        if range.is_empty() {
            return Some(Vec::new());
        }
        let (id, gs, _) = group.unit(slot);
        let is_member = slot < group.layout.k();
        let ahead = match part {
            Part::Sums if !is_member => group.layout.data_len(),
            _ => 0,
        };
        let holder = sources.iter().find(|(of, _)| *of == slot)?.1.node;
        if !self.answers(holder) || self.unlucky(60) {
            return None;
        }
        let holder = &self.nodes[holder];
        let read = match part {
            Part::Sums if is_member => holder.chunk_crcs(id, gs).map(|crcs| {
                let (from, to) = (range.start as usize, range.end as usize);
                crcs.get(from..to).map(<[u8]>::to_vec).unwrap_or_default()
            }),
            _ => holder.read(id, gs, range.start + ahead..range.end + ahead),
        };
        read.ok()
    }
}
