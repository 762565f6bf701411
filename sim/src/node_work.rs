//! What DataNodes tell the NameNode, and how they obey it: copies, reconstructions, recoveries.
//!
//! Work takes several steps, between which anything can happen; what was begun before a crash is not ended after it.
//! What is rebuilt from what, and believed when, is decided by `cairn_stripe::rebuild`.

mod groups;
mod packs;
mod recovery;
mod tell;

use crate::data_node::NodeError;
use crate::encoding::Encoding;
use crate::name_node::Target;
use crate::packing::Packing;
use crate::tasks::{LateReport, Lost, Task};
use crate::world::{Event, World};
use cairn_codec::Codec;
use cairn_codec::crc::crc32c;
use cairn_master::reports::Told;
use cairn_redundancy::{
    BlockRecovery, BlockRef, Command, EncodeOrder, GroupRebuild, Layout, ProveOrder,
    Reconstruction, StorageHandle,
};
use cairn_replica::report::Deletion;
use cairn_stripe::read::{Progress, UnitHealth};
use cairn_stripe::rebuild::{Rebuild, Test};
use cairn_stripe::{BlockId, Geometry, UnitIndex};
use std::ops::Bound::{Excluded, Unbounded};

/// How long an order to delete holds: less than the NameNode waits for it.
pub(crate) const DELETION_LASTS_MS: u64 = 30_000;

impl World<'_> {
    pub(crate) fn heartbeat(&mut self, node: usize) {
        let delay = 3000 * self.pace() + self.rng.range(0, 100);
        self.after(delay, Event::Heartbeat { node });
        if !self.reaches_name_node(node) {
            return;
        }
        if !self.nodes[node].is_registered {
            if !self.register(node) {
                return;
            }
            self.note(|| format!("dn-{node} registers"));
            self.nodes[node].begin_registration();
            self.nodes[node].next_report_ms = self.now_ms;
        }
        if self.nodes[node].is_lazy && self.rng.one_in(10) {
            self.nodes[node].write_back();
        }
        let is_report_due = self.now_ms >= self.nodes[node].next_report_ms;
        let heartbeat = self.nodes[node].heartbeat(is_report_due);
        let caller = (node, self.nodes[node].life);
        let encoded = std::mem::take(&mut self.nodes[node].encoded);
        let proved = std::mem::take(&mut self.nodes[node].proved);
        let packed = std::mem::take(&mut self.nodes[node].packed);
        let says_nothing = encoded.is_empty() && proved.is_empty() && packed.is_empty();
        if !says_nothing && self.unlucky(4) {
            // The answer is lost: it is told again.
            self.nodes[node].encoded = encoded.clone();
            self.nodes[node].proved = proved.clone();
            self.nodes[node].packed = packed.clone();
        }
        let told = Told { heartbeat, encoded, proved, packed, ..Told::default() };
        let Some((commands, lease)) = self.name_node.heartbeat(caller, told, &mut *self.parts)
        else {
            return self.refused_for_other(node);
        };
        if !commands.is_empty() {
            self.send_commands(node, commands);
        }
        self.tell_events(node);
        // As fast at a slower pace.
        (0..self.pace()).for_each(|_| self.scan(node));
        if let Some(lease) = lease.filter(|_| is_report_due && self.nodes[node].is_registered) {
            self.tell_all(node, lease);
        }
    }

    fn send_commands(&mut self, node: usize, commands: Vec<Command>) {
        self.active_ms = self.now_ms;
        for command in &commands {
            self.check_command(node, command);
        }
        self.note(|| format!("dn-{node} is told {commands:?}"));
        if self.unlucky(25) {
            self.note(|| format!("the answer to dn-{node} is lost"));
            return;
        }
        if commands.contains(&Command::Register) {
            self.nodes[node].is_registered = false;
        }
        let tasks: Vec<Task> = commands.into_iter().flat_map(|c| self.tasks(node, c)).collect();
        let (delay, life) = (self.rng.range(1, 200), self.nodes[node].life);
        self.after(delay, Event::Commands { node, life, tasks });
    }

    /// Looks at the bytes of one replica, and tells of those that are bad.
    ///
    /// Follows `crates/datanode/src/scanner`.
    fn scan(&mut self, node: usize) {
        if self.options.is_harsh && !self.is_quiet && !self.looks.one_in(20) {
            return;
        }
        let at = self.nodes[node].scanned;
        let next = self.nodes[node].replicas.range((Excluded(at), Unbounded)).next();
        let next = next.map(|(id, stored)| (*id, stored.replica.gs(), stored.data.len() as u64));
        self.nodes[node].scanned = next.map_or(BlockId(i64::MIN), |(id, ..)| id);
        if let Some((id, gs, len)) = next
            && self.nodes[node].read(id, gs, 0..len) == Err(NodeError::Damaged)
        {
            self.report_bad(node, node, BlockRef { id, gs, len });
        }
    }

    fn name(&self, storage: StorageHandle) -> Target {
        self.name_node.target(storage)
    }

    pub(crate) fn take_tasks(&mut self, node: usize, tasks: Vec<Task>) {
        let life = self.nodes[node].life;
        for task in tasks {
            // A disk may hang.
            let longest = match (self.unlucky(20), &task) {
                (true, Task::Invalidate { .. }) => 150_000,
                (true, _) => 30_000,
                _ => 300,
            };
            let delay = self.rng.range(1, longest);
            let is_transfer = matches!(
                task,
                Task::Copy { .. }
                    | Task::Rebuild(_)
                    | Task::RebuildGroup(_)
                    | Task::Encode(_)
                    | Task::Pack(_)
            );
            if is_transfer {
                self.nodes[node].transfers += 1;
            }
            if is_transfer && self.unlucky(60) {
                let (again, task) = (delay + self.rng.range(0, 20_000), task.clone());
                self.nodes[node].transfers += 1;
                self.count("orders obeyed twice");
                self.after(again, Event::Work { node, life, task });
            }
            self.after(delay, Event::Work { node, life, task });
        }
    }

    /// A command with the names that travel with it.
    fn tasks(&self, node: usize, command: Command) -> Vec<Task> {
        let registration = self.nodes[node].registrations;
        let places = |list: &[(StorageHandle, UnitIndex)]| -> Vec<(Target, UnitIndex)> {
            list.iter().map(|(storage, unit)| (self.name(*storage), *unit)).collect()
        };
        match command {
            Command::Invalidate(blocks) => {
                let since_ms = self.now_ms;
                let task = |block| Task::Invalidate { block, registration, since_ms };
                blocks.into_iter().map(task).collect()
            }
            Command::Transfer(transfers) => {
                let task = |transfer: cairn_redundancy::Transfer| Task::Copy {
                    block: transfer.block,
                    targets: transfer.targets.iter().map(|s| self.name(*s)).collect(),
                };
                transfers.into_iter().map(task).collect()
            }
            Command::Reconstruct(works) => {
                let task = |work: Reconstruction| {
                    Task::Rebuild(Box::new(Lost {
                        group: work.group,
                        layout: work.layout,
                        sources: places(&work.sources),
                        targets: places(&work.targets),
                        recorded: self.name_node.recorded_crcs(&work.group),
                    }))
                };
                works.into_iter().map(task).collect()
            }
            Command::Recover(recoveries) => {
                let task =
                    |order: BlockRecovery| Task::Ask(Box::new(self.recovery(order)), Vec::new());
                recoveries.into_iter().map(task).collect()
            }
            Command::Pack(orders) => {
                let task = |order| Task::Pack(Box::new(Packing::new(order)));
                orders.iter().map(|order| task(self.name_node.name_pack(order))).collect()
            }
            Command::Unpack(orders) => {
                let task = |order: cairn_redundancy::UnpackOrder| Task::Unpack {
                    block: order.block,
                    storage: self.name(order.storage).storage,
                };
                orders.into_iter().map(task).collect()
            }
            Command::Encode(orders) => {
                let task = |order: EncodeOrder| {
                    let group = self.name_node.group_of(order.group.id)?;
                    let policy = self.name_node.policy_of(&group);
                    let named = self.name_node.name_order(order);
                    Some(Task::Encode(Box::new(Encoding::new(named, policy))))
                };
                orders.into_iter().filter_map(task).collect()
            }
            Command::Rebuild(works) => {
                let task = |work: &GroupRebuild| {
                    Some(Task::RebuildGroup(Box::new(self.name_node.name_rebuild(work)?)))
                };
                works.iter().filter_map(task).collect()
            }
            Command::Prove(orders) => {
                let task = |ProveOrder { block, storage, wants_index }: ProveOrder| Task::Prove {
                    block,
                    storage: self.name(storage).storage,
                    wants_index,
                };
                orders.into_iter().map(task).collect()
            }
            Command::Retire(blocks) => vec![Task::Retire(blocks)],
            Command::Register
            | Command::BalancerBandwidth(_)
            | Command::Finalize
            | Command::Cache(_)
            | Command::Uncache(_) => Vec::new(),
        }
    }
}

impl World<'_> {
    /// Has a DataNode tell soon what has happened.
    pub(crate) fn tell_soon(&mut self, node: usize) {
        let (delay, life) = (self.rng.range(1, 30), self.nodes[node].life);
        self.after(delay, Event::Urgent { node, life });
    }

    pub(crate) fn work(&mut self, node: usize, task: Task) {
        if !self.nodes[node].up {
            return;
        }
        match task {
            Task::Invalidate { block, registration, since_ms } => {
                let is_late = self.now_ms - since_ms > DELETION_LASTS_MS;
                let given = (registration, is_late);
                let deletion = self.nodes[node].invalidate((block.id, block.gs), given);
                self.note(|| format!("dn-{node} is to delete {block:?}: {deletion:?}"));
                if deletion == Deletion::Due {
                    self.model.called_bad.remove(&(node, block.id));
                    // What may be there again is another one, or rests on nothing.
                    self.model.proofs.remove(&(node, block.id));
                }
                self.touch(block.id);
            }
            Task::Copy { block, targets } => {
                self.done_transfer(node);
                self.copy(node, block, targets);
            }
            Task::Arrive { block, data, storage } => {
                let is_elsewhere = self.nodes.iter().any(|n| n.holds(block.id, block.gs));
                let taken = self.nodes[node].take_copy(block, data, &storage, None);
                self.note(|| format!("dn-{node} takes a copy of {block:?}: {taken:?}"));
                if taken.is_ok() {
                    let is_grouped = self.name_node.handle_of(block.id).is_some();
                    if block.id.is_striped() && is_elsewhere || is_grouped {
                        self.count_apart(node, block.id);
                    }
                    self.tell_soon(node);
                    self.touch(block.id);
                }
            }
            Task::Replace(work) => self.replace(node, &work),
            Task::Rebuild(work) => {
                self.done_transfer(node);
                let rebuilt = self.rebuild(node, &work);
                self.note(|| format!("dn-{node} rebuilds {:?}: {rebuilt:?}", work.targets));
            }
            Task::Encode(work) => self.go_on_encoding(node, work),
            Task::Pack(work) => self.go_on_packing(node, work),
            Task::Unpack { block, storage } => self.unpack_here(node, block, &storage),
            Task::Prove { block, storage, wants_index } => {
                self.prove(node, block, (storage, wants_index));
            }
            Task::Retire(blocks) => self.nodes[node].retire(blocks),
            Task::RebuildGroup(work) => {
                self.done_transfer(node);
                let rebuilt = self.rebuild_group(node, &work);
                self.note(|| format!("dn-{node} rebuilds {:?}: {rebuilt:?}", work.targets));
            }
            Task::Ask(recovery, answers) => self.ask_next(node, recovery, answers),
            Task::Cut(recovery, cutting, results) => {
                self.cut_next(node, recovery, cutting, results);
            }
            Task::Commit(recovery, told) => self.commit(node, &recovery, &told),
        }
    }

    fn done_transfer(&mut self, node: usize) {
        self.nodes[node].transfers = self.nodes[node].transfers.saturating_sub(1);
    }

    /// A step that follows soon.
    fn next_step(&mut self, node: usize, task: Task) {
        let longest = if self.unlucky(20) { 20_000 } else { 200 };
        let (delay, life) = (self.rng.range(1, longest), self.nodes[node].life);
        self.after(delay, Event::Work { node, life, task });
    }

    /// Has bytes arrive at a DataNode, if both live then.
    fn send_replica(&mut self, to: Target, block: BlockRef, data: Vec<u8>) {
        if !self.answers(to.node) || self.unlucky(30) {
            return;
        }
        self.next_step(to.node, Task::Arrive { block, data, storage: to.storage });
    }

    fn copy(&mut self, node: usize, block: BlockRef, targets: Vec<Target>) {
        let Some(stored) = self.nodes[node].replicas.get(&block.id) else { return };
        let (gs, len) = (stored.replica.gs(), stored.data.len() as u64);
        if stored.replica.check_copy(gs).is_err() {
            return;
        }
        let data = self.nodes[node].read(block.id, block.gs, 0..len);
        self.note(|| format!("dn-{node} copies {block:?} to {targets:?}"));
        match data {
            Ok(data) => {
                self.count("copies");
                for to in targets {
                    self.send_replica(to, BlockRef { id: block.id, gs, len }, data.clone());
                }
            }
            Err(NodeError::Damaged) => self.report_bad(node, node, block),
            Err(_) => {}
        }
    }

    /// `from` tells the NameNode that `holder` has a bad replica.
    pub(crate) fn report_bad(&mut self, from: usize, holder: usize, block: BlockRef) {
        let storage = self.nodes[holder].volume_of(block.id).unwrap_or_default().to_string();
        let holder = Target { node: holder, storage };
        if self.unlucky(10) {
            self.arrives_late(LateReport::Bad { holder, block });
        } else if self.reaches_name_node(from) {
            self.tell_bad(&holder, block);
        }
    }

    /// The NameNode gets to know of a bad replica.
    pub(crate) fn tell_bad(&mut self, holder: &Target, block: BlockRef) {
        self.note(|| format!("{holder:?} has a bad {block:?}"));
        let unit = self.parts.reported_unit(block.id.unit());
        if !block.id.is_striped() || unit == block.id.unit() {
            self.name_node.report_bad(holder, block);
            let node = self.standing_of(self.name_node.identity(holder.node));
            return self.note_called_bad(node, [block.id]);
        }
        let places = self.name_node.cluster.locations(block.id);
        if let Some(place) = places.into_iter().find(|place| place.unit == unit) {
            let other = self.name_node.target(place.storage);
            let id = block.id.internal(unit);
            self.name_node.report_bad(&other, BlockRef { id, ..block });
        }
    }

    /// Rebuilds until the units are proven, with other sources after each result that is not.
    fn rebuild(&mut self, node: usize, work: &Lost) -> Result<(), &'static str> {
        let Layout::Striped { k, m, cell_len, .. } = work.layout else {
            return Err("not a group");
        };
        let geometry = Geometry::new(usize::from(k), usize::from(m), u64::from(cell_len));
        let mut recorded = vec![None; geometry.units()];
        work.recorded.iter().for_each(|(unit, crc)| recorded[unit.as_usize()] = Some(*crc));
        let named: Vec<UnitIndex> = work.sources.iter().map(|(_, unit)| *unit).collect();
        let mut rebuild = Rebuild::new(geometry, work.group.len, recorded, &named);
        rebuild.begin_with(named);
        loop {
            let Unproven { why, used } = match self.attempt(node, work, &geometry, &mut rebuild)? {
                Ok(units) => return self.send_rebuilt(work, units),
                Err(unproven) => unproven,
            };
            self.count("rebuilds unproven");
            if !rebuild.try_others(&used) {
                return Err(why);
            }
        }
    }

    fn send_rebuilt(&mut self, work: &Lost, units: Vec<Vec<u8>>) -> Result<(), &'static str> {
        for ((to, unit), data) in work.targets.iter().zip(units) {
            let id = work.group.id.internal(*unit);
            let block = BlockRef { id, gs: work.group.gs, len: data.len() as u64 };
            self.send_replica(to.clone(), block, data);
        }
        Ok(())
    }

    /// Reads, decodes and proves.
    fn attempt(
        &mut self,
        node: usize,
        work: &Lost,
        geometry: &Geometry,
        rebuild: &mut Rebuild,
    ) -> Result<Result<Vec<Vec<u8>>, Unproven>, &'static str> {
        let group = work.group;
        let len_of = |unit: UnitIndex| geometry.internal_block_len(group.len, unit);
        let lost: Vec<UnitIndex> = work.targets.iter().map(|(_, unit)| *unit).collect();
        let len = lost.iter().map(|unit| len_of(*unit)).max().unwrap_or(0);
        let mut read = rebuild.read(0..len, &lost);
        let mut pieces: Vec<Option<Vec<u8>>> = vec![None; geometry.units()];
        let decode = loop {
            let asks = read.next_asks().map_err(|_| "too few sources are left")?;
            let asked = !asks.is_empty();
            for ask in asks {
                match self.read_source(node, work, ask.unit, len_of(ask.unit)) {
                    Some(data) => {
                        read.arrived(ask.unit, ask.range_in_cell);
                        pieces[ask.unit.as_usize()] = Some(data);
                    }
                    None => {
                        rebuild.note(ask.unit, UnitHealth::Lost);
                        read.failed(ask.unit);
                    }
                }
            }
            match read.progress() {
                Progress::Decode(decode) => break decode,
                Progress::Ready => return Err("nothing is lost"),
                Progress::Waiting if asked => {}
                Progress::Waiting => return Err("nothing is left to ask"),
            }
        };
        let unproven = |why| Ok(Err(Unproven { why, used: decode.sources.clone() }));
        let mut are_as_written = true;
        for unit in &decode.sources {
            let Some(data) = &pieces[unit.as_usize()] else { continue };
            if !rebuild.check_source(*unit, crc32c(0, data)) {
                are_as_written = false;
                self.report_source(node, work, *unit);
            }
        }
        if !are_as_written {
            return unproven("a source is not as it was written");
        }
        let Layout::Striped { policy, .. } = work.layout else { return Err("not a group") };
        let code = self.codec_of(policy, geometry);
        let padded = |unit: &UnitIndex| {
            let mut bytes = pieces[unit.as_usize()].clone().unwrap_or_default();
            bytes.resize(len as usize, 0);
            bytes
        };
        let sources: Vec<(usize, Vec<u8>)> =
            decode.sources.iter().map(|unit| (unit.as_usize(), padded(unit))).collect();
        let mut units: Vec<Option<&[u8]>> = vec![None; geometry.units()];
        for (unit, bytes) in &sources {
            units[*unit] = Some(bytes);
        }
        let mut out = Vec::new();
        for unit in self.parts.target_units(lost.clone()) {
            let mut bytes = match units[unit.as_usize()] {
                Some(bytes) => bytes.to_vec(),
                None => vec![0; len as usize],
            };
            if units[unit.as_usize()].is_none() {
                let sink = &mut [bytes.as_mut_slice()];
                code.decode(&units, &[unit.as_usize()], sink).map_err(|_| "cannot decode")?;
            }
            out.push(bytes);
        }
        self.count("rebuilds");
        if self.faults.memory && self.unlucky(12) && len > 0 {
            self.note(|| format!("a bit flips in the memory of dn-{node}"));
            self.count("bits flipped in memory");
            let (at, which) = (self.rng.index(len as usize), self.rng.index(out.len()));
            out[which][at] ^= 1;
        }
        if self.parts.compares_crcs() {
            for test in rebuild.tests(&decode) {
                if !comes_back(&code, &test, &units, &lost, &out)? {
                    return unproven("a source does not follow from what was rebuilt");
                }
            }
        }
        for (unit, bytes) in lost.iter().zip(&mut out) {
            bytes.truncate(len_of(*unit) as usize);
            if rebuild.check_result(*unit, crc32c(0, bytes)).is_err() {
                return unproven("what was rebuilt is not what was written");
            }
        }
        Ok(Ok(out))
    }

    /// A source is bad; with two holders it is not known which one it was.
    fn report_source(&mut self, node: usize, work: &Lost, unit: UnitIndex) {
        let mut holders = work.sources.iter().filter(|(_, of)| *of == unit);
        if let (Some((holder, _)), None) = (holders.next(), holders.next()) {
            let id = work.group.id.internal(unit);
            self.report_bad(node, holder.node, BlockRef { id, ..work.group });
        }
    }

    /// The whole of a source unit, from one of its holders.
    fn read_source(
        &mut self,
        node: usize,
        work: &Lost,
        unit: UnitIndex,
        len: u64,
    ) -> Option<Vec<u8>> {
        let id = work.group.id.internal(unit);
        let holders: Vec<Target> = work
            .sources
            .iter()
            .filter(|(_, of)| *of == unit)
            .map(|(target, _)| target.clone())
            .collect();
        for holder in holders {
            if !self.answers(holder.node) {
                continue;
            }
            let read = self.nodes[holder.node].read(id, work.group.gs, 0..len);
            if self.unlucky(15) {
                // It takes too long: other bytes of it arrive when nobody waits for them.
                self.late_reads.insert(id, vec![0; len as usize]);
                continue;
            }
            match read {
                Ok(data) => {
                    let late = self.late_reads.remove(&id);
                    let data = self.parts.source_bytes(data, late.as_deref());
                    return Some(data);
                }
                Err(NodeError::Damaged) => {
                    self.report_bad(node, holder.node, BlockRef { id, ..work.group });
                }
                Err(_) => {}
            }
        }
        None
    }

    fn codec_of(
        &mut self,
        policy: cairn_stripe::PolicyId,
        geometry: &Geometry,
    ) -> cairn_codec::Codec {
        let known = crate::name_node::sure(cairn_namespace::query::policies(&self.name_node.store));
        let found = known.into_iter().map(|info| info.policy).find(|p| p.id == policy);
        match found {
            Some(policy) => self.codec(&policy),
            None => panic!("policy {policy:?} of {geometry:?} is not in the namespace"),
        }
    }
}

impl World<'_> {
    /// A block to be looked at when this event is over.
    pub(crate) fn touch(&mut self, id: BlockId) {
        self.check_block(id.group());
    }
}

/// A result that is not believed.
struct Unproven {
    why: &'static str,
    /// What it was decoded from.
    used: Vec<UnitIndex>,
}

/// Whether a source comes out again when it is decoded from what was rebuilt.
fn comes_back(
    code: &Codec,
    test: &Test,
    sources: &[Option<&[u8]>],
    lost: &[UnitIndex],
    rebuilt: &[Vec<u8>],
) -> Result<bool, &'static str> {
    let mut units: Vec<Option<&[u8]>> = vec![None; sources.len()];
    for (unit, bytes) in lost.iter().zip(rebuilt) {
        units[unit.as_usize()] = test.rebuilt.contains(unit).then_some(bytes);
    }
    for unit in &test.others {
        units[unit.as_usize()] = sources[unit.as_usize()];
    }
    let source = test.source.as_usize();
    let mut again = vec![0; sources[source].map_or(0, <[u8]>::len)];
    code.decode(&units, &[source], &mut [&mut again]).map_err(|_| "cannot decode back")?;
    Ok(sources[source] == Some(&again[..]))
}
