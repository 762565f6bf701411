//! Writing replicated blocks: the pipeline that ships, over simulated DataNodes.

use super::block::{BLOCK_LEN, block_ref, writer_block};
use super::program::{Hand, Why};
use crate::model::Part;
use crate::name_node::{CallError, LocatedBlock, Target};
use crate::world::World;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::{BlockRef as FileBlock, InodeId};
use cairn_redundancy::BlockRef;
use cairn_stripe::{GenerationStamp, UnitIndex};
use cairn_writer::pipeline::{Event, Failure, Header, Opening, Peers, Rules, Stage};
use cairn_writer::{Block, Pipeline, PipelineError, ReplaceDataNode};
use std::collections::VecDeque;

/// Packets that are sent before an acknowledgement is waited for.
const IN_FLIGHT: usize = 4;

/// An open file.
pub(super) struct File {
    pub(super) id: InodeId,
    pub(super) copies: u16,
    /// Bytes that it has, and those that it is to have.
    pub(super) len: u64,
    pub(super) wanted: u64,
}

/// What pipelines ask.
struct Cluster {
    hand: Hand,
    file: InodeId,
    copies: u16,
    /// Nodes that have failed it.
    excluded: Vec<usize>,
    /// The pipeline that was opened last.
    places: Vec<Target>,
    /// The block being written, with the stamp that its replicas have.
    block: Option<BlockRef>,
    /// What the pipeline is about to say.
    events: VecDeque<Event<Why>>,
    /// Packets arrive.
    is_open: bool,
}

/// What a writer does next.
enum Next {
    Send { bytes: Vec<u8>, is_sync: bool },
    Flush { durable: bool },
    Listen,
}

/// Writes a new file, or one behind `previous`, to its end.
pub(super) async fn write(hand: Hand, file: File, previous: Option<FileBlock>) -> bool {
    let rules = hand.ask("rules", rules(file.copies)).await;
    let cluster = Cluster::new(&hand, &file);
    let pipeline = Pipeline::behind(cluster, rules, previous.map(writer_block));
    fill(hand, file, pipeline, 0).await.is_ok()
}

/// Writes a file on whose last block has room.
pub(super) async fn append(hand: Hand, file: File, last: LocatedBlock) -> bool {
    let rules = hand.ask("rules", rules(file.copies)).await;
    let places = last.places.into_iter().map(|(target, _)| target).collect();
    let block = writer_block(last.block.reference());
    let pipeline = Pipeline::append(Cluster::new(&hand, &file), rules, block, places).await;
    match pipeline {
        Ok(pipeline) => fill(hand, file, pipeline, block.len).await.is_ok(),
        Err(_) => false,
    }
}

/// The block, as its DataNodes know it.
fn part(block: Block) -> BlockRef {
    BlockRef { id: block.id, gs: block.stamp, len: block.len }
}

/// Any of those that an operator can choose.
fn rules(copies: u16) -> impl FnMut(&mut World<'_>, usize) -> Option<Rules> {
    move |world, _| {
        let policies = [ReplaceDataNode::Default, ReplaceDataNode::Always, ReplaceDataNode::Never];
        let replace = policies[world.rng.index(policies.len())];
        let replace_best_effort = !world.rng.one_in(4);
        let replication = copies.into();
        let (open_retries, recovery_retries) = (10, 5);
        Some(Rules { replication, open_retries, recovery_retries, replace, replace_best_effort })
    }
}

async fn fill(
    hand: Hand,
    file: File,
    mut pipeline: Pipeline<Cluster>,
    mut block_len: u64,
) -> Result<(), PipelineError<Why>> {
    let (id, wanted, mut at) = (file.id, file.wanted, file.len);
    while at < wanted {
        let (room, in_flight) = ((BLOCK_LEN - block_len).min(wanted - at), pipeline.in_flight());
        let holder = hand.holder.clone();
        let next =
            move |world: &mut World<'_>, _| Some(world.next_of(id, &holder, at, room, in_flight));
        match hand.ask("more", next).await {
            Next::Send { bytes, is_sync } => {
                let len = bytes.len() as u64;
                pipeline.send(bytes, block_len, len, is_sync).await?;
                (at, block_len) = (at + len, block_len + len);
                if block_len == BLOCK_LEN {
                    pipeline.end_block().await?;
                    block_len = 0;
                }
            }
            Next::Flush { durable } => {
                pipeline.flush(durable).await?;
                let block = pipeline.peers.block;
                // Of a block that has ended nothing more is synced.
                let durable = durable && pipeline.peers.is_open;
                let holder = hand.holder.clone();
                hand.tell(move |world| world.flushed((id, &holder), at, durable, block));
            }
            Next::Listen => {
                let event = pipeline.peers.event().await;
                pipeline.on_event(event).await?;
            }
        }
    }
    pipeline.close().await
}

impl Cluster {
    fn new(hand: &Hand, file: &File) -> Cluster {
        Cluster {
            hand: hand.clone(),
            file: file.id,
            copies: file.copies,
            excluded: Vec::new(),
            places: Vec::new(),
            block: None,
            events: VecDeque::new(),
            is_open: false,
        }
    }
}

impl Peers for Cluster {
    type Place = Target;
    type Packet = Vec<u8>;
    type Error = Why;

    async fn add_block(&mut self, previous: Option<Block>) -> Result<(Block, Vec<Target>), Why> {
        let (file, copies, mut excluded) = (self.file, self.copies, self.excluded.clone());
        let call = move |world: &mut World<'_>, holder: &str| {
            let located = world.allocate(file, holder, previous.map(block_ref), &mut excluded)?;
            let places = located.places.into_iter().map(|(target, _)| target);
            let places: Vec<Target> = places.take(copies.into()).collect();
            let known: Vec<_> = places.iter().cloned().map(Some).collect();
            world.block_allocated(located.block.id, &located.redundancy, &known);
            world.left_behind(file, holder, located.offset);
            Ok((writer_block(located.block.reference()), places))
        };
        let (block, places) = self.hand.call("addBlock", call).await?;
        self.block = Some(part(block));
        Ok((block, places))
    }

    async fn abandon_block(&mut self, block: Block) -> Result<(), Why> {
        let file = self.file;
        let call = move |world: &mut World<'_>, holder: &str| {
            world.call_abandon(file, holder, block_ref(block))
        };
        self.hand.call("abandonBlock", call).await
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp, Why> {
        self.block = Some(part(block));
        self.hand.new_stamp(block).await
    }

    async fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        places: &[Target],
    ) -> Result<(), Why> {
        let places: Vec<_> = places.iter().cloned().map(Some).collect();
        self.hand.update_pipeline(old, new, places).await?;
        self.hand.tell(|world| world.count("pipelines mended"));
        Ok(())
    }

    async fn additional_place(
        &mut self,
        block: Block,
        places: &[Target],
        left_out: &[Target],
    ) -> Result<Target, Why> {
        let places: Vec<_> = places.iter().cloned().map(Some).collect();
        let left_out: Vec<usize> = left_out.iter().map(|target| target.node).collect();
        let call = move |world: &mut World<'_>, _: &str| match world.name_node.up {
            true => Ok(world.name_node.additional_node(block.id, &places, &left_out)),
            false => Err(CallError::Lost),
        };
        self.hand.call("getAdditionalDatanode", call).await?.ok_or(Why::Failed)
    }

    async fn fsync(&mut self) -> Result<(), Why> {
        let file = Some(self.file);
        let call = move |world: &mut World<'_>, holder: &str| {
            let (path, holder) = (String::new(), holder.to_string());
            world.call(None, Fsync { path, file, holder, last_len: None })
        };
        self.hand.call("fsync", call).await?;
        Ok(())
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<(), Why> {
        self.hand.complete(self.file, last).await
    }

    async fn open(&mut self, opening: Opening<'_, Target>) -> Result<(), Failure<Why>> {
        let Opening { block, sent_len, stamp, stage, places } = opening;
        if stage != Stage::Create {
            // The others count no more from the first one on that takes it.
            let parts: Vec<Part> =
                places.iter().map(|target| (target.node, UnitIndex(0))).collect();
            self.hand.tell(move |world| _ = world.pipelines.insert((block.id, stamp), parts));
        }
        for (place, target) in places.iter().enumerate() {
            let target = target.clone();
            let open = move |world: &mut World<'_>, _| {
                Some(world.open_place(block, sent_len, stamp, stage, &target))
            };
            if !self.hand.ask("open", open).await {
                // Its writer takes yet another stamp, or none.
                self.hand.tell(move |world| _ = world.pipelines.remove(&(block.id, stamp)));
                return Err(Failure { place: Some(place), cause: Why::Failed });
            }
        }
        self.places = places.to_vec();
        self.block = Some(part(Block { stamp, ..block }));
        self.is_open = true;
        Ok(())
    }

    async fn copy(&mut self, block: Block, from: &Target, to: &Target) -> Result<(), Why> {
        let (from, to) = (from.clone(), to.clone());
        let copy = move |world: &mut World<'_>, _| Some(world.copy_visible(block, &from, &to));
        self.hand.ask("copy", copy).await.ok_or(Why::Failed)
    }

    async fn send(&mut self, header: Header, bytes: &Vec<u8>) -> Result<(), Why> {
        let Some(block) = self.block.filter(|_| self.is_open) else { return Err(Why::Failed) };
        let (places, bytes) = (self.places.clone(), bytes.clone());
        let deliver = move |world: &mut World<'_>, _| {
            let failed = world.deliver(block, header, &bytes, &places);
            Some((failed, world.rng.one_in(2)))
        };
        let (failed, is_known) = self.hand.ask("packet", deliver).await;
        self.is_open = failed.is_none();
        self.events.push_back(match failed {
            None => Event::Acknowledged(header.seqno),
            place => Event::Failed(Failure { place, cause: Why::Failed }),
        });
        // Who writes may notice before the acknowledgement says so.
        if !self.is_open && is_known { Err(Why::Failed) } else { Ok(()) }
    }

    async fn event(&mut self) -> Event<Why> {
        self.hand.ask("acknowledgement", |_, _| Some(())).await;
        let closed = Event::Failed(Failure { place: None, cause: Why::Failed });
        self.events.pop_front().unwrap_or(closed)
    }

    fn arrived(&mut self) -> Option<Event<Why>> {
        self.events.pop_front()
    }

    async fn close(&mut self, _: bool) {
        self.events.clear();
        self.is_open = false;
    }

    fn leave_out(&mut self, target: &Target, _: &Why) {
        self.excluded.push(target.node);
        let target = target.clone();
        self.hand.tell(move |world| {
            world.note(|| format!("a pipeline goes on without {target:?}"));
        });
    }

    fn not_replaced(&mut self, _: Why) {}
}

impl World<'_> {
    /// Any of the things that a program may do which has `room` more bytes to write at `at`.
    fn next_of(
        &mut self,
        file: InodeId,
        holder: &str,
        at: u64,
        room: u64,
        in_flight: usize,
    ) -> Next {
        if in_flight >= IN_FLIGHT || in_flight > 0 && self.rng.one_in(2) {
            return Next::Listen;
        }
        if self.rng.one_in(4) {
            return Next::Flush { durable: self.rng.one_in(2) };
        }
        let len = self.rng.range(1, room + 1);
        Next::Send { bytes: self.next_bytes(file, holder, at, len), is_sync: self.rng.one_in(4) }
    }

    /// The file has all its bytes up to `end`, whatever happens.
    fn flushed(
        &mut self,
        (file, holder): (InodeId, &str),
        end: u64,
        durable: bool,
        block: Option<BlockRef>,
    ) {
        self.note(|| format!("{file} is flushed up to {end}, durably: {durable}"));
        if durable {
            self.synced(file, holder, end);
        }
        if let Some(block) = block {
            self.acknowledged(file, holder, end, block.id);
            self.check_block(block.id);
        }
    }

    /// Opens a replica for a pipeline.
    fn open_place(
        &mut self,
        block: Block,
        sent_len: u64,
        stamp: GenerationStamp,
        stage: Stage,
        target: &Target,
    ) -> bool {
        if !self.reaches_for_write(target.node) {
            return false;
        }
        let node = &mut self.nodes[target.node];
        let old = part(block);
        let opened = match stage {
            Stage::Create => node.create(block.id, stamp, &target.storage),
            Stage::Append => node.append(old, stamp),
            Stage::AppendRecovery => node.recover_append(old, stamp),
            Stage::StreamingRecovery => node.recover_rbw(old, stamp, (block.len, sent_len)),
            Stage::CloseRecovery => node.recover_close(old, stamp),
        };
        self.note(|| format!("{target:?} opens {old:?} as {stamp} ({stage:?}): {opened:?}"));
        if stage == Stage::CloseRecovery {
            self.tell_soon(target.node);
        }
        opened.is_ok()
    }

    /// Copies what all of a pipeline have to a node that joins it.
    fn copy_visible(&mut self, block: Block, from: &Target, to: &Target) -> Option<()> {
        if !self.answers(from.node) || !self.answers(to.node) {
            return None;
        }
        let node = &self.nodes[from.node];
        let len = node.replicas.get(&block.id)?.replica.visible_len()?;
        let data = node.read(block.id, block.stamp, 0..len).ok()?;
        let part = BlockRef { id: block.id, gs: block.stamp, len };
        self.nodes[to.node].take_visible(part, data, &to.storage).ok()?;
        self.note(|| format!("{to:?} joins the pipeline of {part:?}"));
        Some(())
    }

    /// Sends a packet down a pipeline. Tells the place of the first who does not take it.
    fn deliver(
        &mut self,
        block: BlockRef,
        header: Header,
        bytes: &[u8],
        places: &[Target],
    ) -> Option<usize> {
        let BlockRef { id, gs, .. } = block;
        for (place, target) in places.iter().enumerate() {
            let taken = self.reaches_for_write(target.node)
                && match header.is_last {
                    true => self.nodes[target.node].finalize(id, gs).is_ok(),
                    false => self.nodes[target.node].write(id, gs, header.offset, bytes).is_ok(),
                };
            if !taken {
                self.note(|| format!("{target:?} does not take {header:?} of {block:?}"));
                return Some(place);
            }
            if header.is_sync {
                self.nodes[target.node].sync(id, gs);
            }
            if header.is_last {
                self.tell_soon(target.node);
            }
        }
        for target in places {
            self.nodes[target.node].acknowledge(id, gs, header.offset + header.len);
        }
        None
    }
}
