//! Writing replicated blocks through pipelines that break and are mended.
//!
//! Follows `crates/client/src/pipeline.rs` and `pipeline/recovery.rs`.

use super::{BLOCK_LEN, OpenBlock, Step, TRIES, Writer};
use crate::name_node::{CallError, LocatedBlock, Target};
use crate::ration::Part;
use crate::world::World;
use cairn_redundancy::BlockRef;
use cairn_stripe::{GenerationStamp, UnitIndex};

/// How a mended pipeline is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Streaming,
    Append,
    AppendRecovery,
    Close,
}

impl World<'_> {
    pub(super) fn write_replicated(&mut self, at: usize, writer: &mut Writer) -> Step {
        let sent = match (&writer.block, self.model.files.get(&writer.file)) {
            (_, None) => return Step::Broken,
            (Some(block), _) => block.offset + block.len,
            (None, Some(file)) => file.written.len() as u64,
        };
        let Some(block) = &writer.block else {
            if sent >= writer.len {
                return self.close(at, writer);
            }
            return self.open_block(at, writer);
        };
        if sent >= writer.len || block.len >= BLOCK_LEN {
            return self.end_block(at, writer);
        }
        if self.rng.one_in(4) {
            return self.flush(at, writer);
        }
        self.send_packet(at, writer)
    }

    fn open_block(&mut self, at: usize, writer: &mut Writer) -> Step {
        let block = match self.add_block(at, writer, usize::from(writer.copies)) {
            Ok(Some(block)) => block,
            Ok(None) => return Step::On,
            Err(step) => return step,
        };
        let mut block = block;
        block.targets.retain(Option::is_some);
        for target in block.targets.clone().into_iter().flatten() {
            let opened = self.answers(target.node)
                && !self.unlucky(60)
                && self.nodes[target.node].create(block.id, block.gs, &target.storage).is_ok();
            if !opened {
                let holder = self.clients[at].holder();
                self.note(|| format!("{holder} cannot open {} at {target:?}", block.id));
                writer.excluded.push(target.node);
                _ = self.call_abandon(writer.file, &holder, block.with_len(0));
                return Step::On;
            }
        }
        writer.tries = 0;
        writer.block = Some(block);
        Step::On
    }

    fn send_packet(&mut self, at: usize, writer: &mut Writer) -> Step {
        let Some(block) = &mut writer.block else { return Step::On };
        let from = block.offset + block.len;
        let most = (BLOCK_LEN - block.len).min(writer.len - from);
        let len = self.rng.range(1, most + 1);
        let bytes = self.next_bytes(writer.file, from, len);
        let offset = block.len;
        block.len += len;
        self.transmit(at, writer, offset, &bytes)
    }

    /// Sends bytes down the pipeline; a node that does not take them is left out from now on.
    fn transmit(&mut self, at: usize, writer: &mut Writer, offset: u64, bytes: &[u8]) -> Step {
        let Some(block) = writer.block.clone() else { return Step::On };
        for (place, target) in block.targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let written = self.reaches_for_write(block.id, target.node)
                && self.nodes[target.node].write(block.id, block.gs, offset, bytes).is_ok();
            if !written {
                return self.mend_pipeline(at, writer, place, Stage::Streaming);
            }
        }
        self.pipeline_has(writer, offset + bytes.len() as u64);
        Step::On
    }

    /// All of the pipeline has the block up to `end`.
    fn pipeline_has(&mut self, writer: &mut Writer, end: u64) {
        let Some(block) = &mut writer.block else { return };
        block.acked = block.acked.max(end);
        for target in block.targets.iter().flatten() {
            self.nodes[target.node].acknowledge(block.id, block.gs, end);
        }
    }

    fn flush(&mut self, at: usize, writer: &mut Writer) -> Step {
        let Some(block) = writer.block.clone() else { return Step::On };
        let durable = self.rng.one_in(2);
        let holder = self.clients[at].holder();
        let file = Some(writer.file);
        let last_len = durable.then_some(block.acked);
        let fsync = cairn_namespace::ops::fsync::Fsync {
            path: String::new(),
            file,
            holder: holder.clone(),
            last_len,
        };
        match self.call(None, fsync) {
            Ok(_) => {}
            Err(CallError::Lost | CallError::NotNow) => return Step::On,
            Err(error) => {
                self.refused(&holder, "fsync", &error);
                return Step::Broken;
            }
        }
        for (place, target) in block.targets.iter().enumerate() {
            let Some(target) = target else { continue };
            if !self.reaches_for_write(block.id, target.node) {
                return self.mend_pipeline(at, writer, place, Stage::Streaming);
            }
            let stored = self.nodes[target.node].replicas.get(&block.id);
            let is_ours = stored.is_some_and(|s| s.replica.gs() == block.gs);
            if !is_ours {
                return self.mend_pipeline(at, writer, place, Stage::Streaming);
            }
            if durable {
                self.nodes[target.node].sync(block.id, block.gs);
            }
        }
        self.note(|| format!("{holder} has flushed {} up to {}", block.id, block.acked));
        self.acknowledged(writer.file, block.offset + block.acked);
        self.check_block(block.id);
        Step::On
    }

    fn end_block(&mut self, at: usize, writer: &mut Writer) -> Step {
        let Some(block) = writer.block.clone() else { return Step::On };
        let mut failed = None;
        for (place, target) in block.targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let done = self.reaches_for_write(block.id, target.node)
                && self.nodes[target.node].finalize(block.id, block.gs).is_ok();
            if done {
                self.tell_soon(target.node);
            } else {
                failed.get_or_insert(place);
                break;
            }
        }
        if let Some(place) = failed {
            return self.mend_pipeline(at, writer, place, Stage::Close);
        }
        self.block_ended(writer);
        Step::On
    }

    fn block_ended(&mut self, writer: &mut Writer) {
        if let Some(block) = writer.block.take() {
            writer.previous = Some(block_ref(&block, block.len));
            writer.tries = 0;
        }
    }

    /// Goes on without the node at `bad`, maybe with another, under a new stamp.
    fn mend_pipeline(
        &mut self,
        at: usize,
        writer: &mut Writer,
        mut bad: usize,
        stage: Stage,
    ) -> Step {
        let holder = self.clients[at].holder();
        loop {
            let Some(block) = &mut writer.block else { return Step::Broken };
            let (id, failed) = (block.id, block.targets.remove(bad));
            if let Some(failed) = failed {
                self.note(|| format!("{holder} goes on with {id} without {failed:?}"));
                self.expose(id, failed.node);
                writer.excluded.push(failed.node);
            }
            self.count("pipelines mended");
            let Some(block) = &writer.block else { return Step::Broken };
            if block.targets.is_empty() {
                return Step::Broken;
            }
            if stage == Stage::Streaming && self.rng.one_in(2) {
                self.add_node(writer);
            }
            if self.faults.clients && self.unlucky(40) {
                self.note(|| format!("{holder} dies while it mends a pipeline"));
                return Step::Broken;
            }
            match self.resume(at, writer, stage) {
                Ok(step) => return step,
                Err(place) => bad = place,
            }
        }
    }

    /// Adds a node to the pipeline, with what all of it have.
    fn add_node(&mut self, writer: &mut Writer) {
        let Some(block) = &mut writer.block else { return };
        let excluded = writer.excluded.clone();
        let Some(new) = self.name_node.additional_node(block.id, &block.targets, &excluded) else {
            return;
        };
        let Some(source) = block.targets.iter().flatten().next().cloned() else { return };
        if !self.name_node.up || !self.answers(source.node) || !self.answers(new.node) {
            return;
        }
        let node = &self.nodes[source.node];
        let Some(visible) = node.replicas.get(&block.id).and_then(|s| s.replica.visible_len())
        else {
            return;
        };
        let Ok(data) = node.read(block.id, block.gs, 0..visible) else { return };
        let part = BlockRef { id: block.id, gs: block.gs, len: visible };
        if self.nodes[new.node].take_visible(part, data, &new.storage).is_ok() {
            block.targets.push(Some(new.clone()));
            let id = block.id;
            self.note(|| format!("{new:?} joins the pipeline of {id}"));
        }
    }

    /// Opens the pipeline under a new stamp, tells the NameNode, and sends again what some have
    /// missed. Fails with the place of a node that does not go along.
    fn resume(&mut self, at: usize, writer: &mut Writer, stage: Stage) -> Result<Step, usize> {
        let holder = self.clients[at].holder();
        let Some(block) = writer.block.clone() else { return Ok(Step::Broken) };
        let new_gs = match self.call_new_stamp(&holder, block.with_len(block.acked)) {
            Ok(gs) => gs,
            Err(error) => {
                self.refused(&holder, "updateBlockForPipeline", &error);
                return Ok(Step::Broken);
            }
        };
        for (place, target) in block.targets.iter().enumerate() {
            let Some(target) = target else { continue };
            if !self.open_again(&block, target, new_gs, stage) {
                return Err(place);
            }
        }
        if self.faults.clients && self.unlucky(60) {
            self.note(|| format!("{holder} dies before it tells of its new pipeline"));
            return Ok(Step::Broken);
        }
        let call = self.clients[at].next_call();
        let old = block.with_len(block.acked);
        let new = cairn_namespace::BlockRef { gs: new_gs, ..old };
        let told = self.call_update_pipeline(call, &holder, old, new, &block.targets);
        if let Err(error) = told {
            self.refused(&holder, "updatePipeline", &error);
            return Ok(Step::Broken);
        }
        let Some(open) = &mut writer.block else { return Ok(Step::Broken) };
        open.gs = new_gs;
        if stage == Stage::Close {
            for target in block.targets.iter().flatten() {
                self.tell_soon(target.node);
            }
            self.block_ended(writer);
            return Ok(Step::On);
        }
        let Some(file) = self.model.files.get(&writer.file) else { return Ok(Step::Broken) };
        let (from, to) = (block.offset + block.acked, block.offset + block.len);
        let missed = file.written[from as usize..to as usize].to_vec();
        if missed.is_empty() {
            return Ok(Step::On);
        }
        Ok(self.transmit(at, writer, block.acked, &missed))
    }

    fn open_again(
        &mut self,
        block: &OpenBlock,
        target: &Target,
        new_gs: GenerationStamp,
        stage: Stage,
    ) -> bool {
        if !self.reaches_for_write(block.id, target.node) {
            return false;
        }
        let node = &mut self.nodes[target.node];
        let acked = block_ref(block, block.acked);
        let acked = BlockRef { id: acked.id, gs: acked.gs, len: acked.len };
        let opened = match stage {
            Stage::Streaming => node.recover_rbw(acked, new_gs, (block.acked, block.len)),
            Stage::Append => node.append(acked, new_gs),
            Stage::AppendRecovery => node.recover_append(acked, new_gs),
            Stage::Close => node.recover_close(acked, new_gs),
        };
        self.note(|| format!("{target:?} opens {:?} as {new_gs} ({stage:?}): {opened:?}", acked));
        opened.is_ok()
    }

    /// Opens the last block of a file for appending.
    pub(super) fn reopen(&mut self, at: usize, writer: &mut Writer, located: LocatedBlock) {
        let targets: Vec<Option<Target>> =
            located.places.into_iter().map(|(target, _)| Some(target)).collect();
        let block = located.block;
        // Nodes that are not in the pipeline get none of the new bytes.
        let parts: Vec<Part> =
            targets.iter().flatten().map(|target| (target.node, UnitIndex(0))).collect();
        let whole = usize::from(writer.copies).saturating_sub(1);
        let needed = parts.len().saturating_sub(whole).max(1);
        self.begin_with((block.id, block.gs), &parts, needed);
        let is_empty = targets.is_empty();
        writer.block = Some(OpenBlock {
            id: block.id,
            gs: block.gs,
            offset: located.offset,
            len: block.len,
            acked: block.len,
            targets,
            plan: None,
        });
        let step = match is_empty {
            true => Step::Broken,
            false => match self.resume(at, writer, Stage::Append) {
                Ok(step) => step,
                Err(place) => self.mend_pipeline(at, writer, place, Stage::AppendRecovery),
            },
        };
        if matches!(step, Step::Broken) {
            writer.tries = TRIES;
        }
    }
}

fn block_ref(block: &OpenBlock, len: u64) -> cairn_namespace::BlockRef {
    block.with_len(len)
}
