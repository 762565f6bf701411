//! The pipeline of a replicated file: sends packets through the DataNodes of a block, keeps them until they
//! are acknowledged, and mends the pipeline when a DataNode fails.
//!
//! ```text
//! no block --packet--> addBlock, open --packets--> last packet acknowledged --> no block
//!                        |  fails: abandon, exclude, again      | a DataNode fails:
//!                        \--------------------------------------/ new stamp, reopen, tell, resend
//! ```
//! Source: Hadoop 3.5.0 `DataStreamer`. Tested in `pipeline/tests.rs`, and by the simulation.

mod recovery;
mod replace;
#[cfg(test)]
mod tests;

pub use replace::ReplaceDataNode;

use crate::Block;
use cairn_stripe::GenerationStamp;
use std::collections::VecDeque;
use std::future::Future;

/// What a pipeline asks of the NameNode and the DataNodes, one question after the other.
pub trait Peers {
    /// A DataNode's storage.
    type Place: Clone;
    /// A packet's bytes, by default none.
    type Packet: Default;
    /// Why a question has no good answer.
    type Error;

    /// Asks for the next block, after `previous` with its final length: the block and its places.
    fn add_block(
        &mut self,
        previous: Option<Block>,
    ) -> impl Future<Output = Result<(Block, Vec<Self::Place>), Self::Error>>;

    /// Gives a block back that no pipeline could be opened for.
    fn abandon_block(&mut self, block: Block) -> impl Future<Output = Result<(), Self::Error>>;

    /// Asks for a new generation stamp: `updateBlockForPipeline`.
    fn new_stamp(
        &mut self,
        block: Block,
    ) -> impl Future<Output = Result<GenerationStamp, Self::Error>>;

    /// Tells the NameNode that `places` have the block with the stamp of `new`: `updatePipeline`.
    fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        places: &[Self::Place],
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Asks for one more place beside `places`, at none of `left_out`: `getAdditionalDatanode`.
    fn additional_place(
        &mut self,
        block: Block,
        places: &[Self::Place],
        left_out: &[Self::Place],
    ) -> impl Future<Output = Result<Self::Place, Self::Error>>;

    /// Has the NameNode keep the blocks allocated so far.
    fn fsync(&mut self) -> impl Future<Output = Result<(), Self::Error>>;

    /// Ends the file, once its last block is on enough DataNodes.
    fn complete(&mut self, last: Option<Block>) -> impl Future<Output = Result<(), Self::Error>>;

    /// Connects to the first place, which connects to the next, and so on; the one before is closed.
    fn open(
        &mut self,
        opening: Opening<'_, Self::Place>,
    ) -> impl Future<Output = Result<(), Failure<Self::Error>>>;

    /// Has `from` copy to `to` what it has of the block.
    fn copy(
        &mut self,
        block: Block,
        from: &Self::Place,
        to: &Self::Place,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Sends a packet down the pipeline.
    fn send(
        &mut self,
        header: Header,
        packet: &Self::Packet,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Waits for what the pipeline says next.
    fn event(&mut self) -> impl Future<Output = Event<Self::Error>>;

    /// What the pipeline has said already.
    fn arrived(&mut self) -> Option<Event<Self::Error>>;

    /// Closes the connection to the first place. `whole`: all is acknowledged and nothing follows.
    fn close(&mut self, whole: bool) -> impl Future<Output = ()>;

    /// A place has failed, and is left out of blocks to come.
    fn leave_out(&mut self, place: &Self::Place, cause: &Self::Error);

    /// A pipeline goes on with fewer places, because none can be added.
    fn not_replaced(&mut self, cause: Self::Error);
}

/// A pipeline to open.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a, Place> {
    /// With the stamp that its replicas have; the length is what is acknowledged.
    pub block: Block,
    /// Bytes of the block that were ever sent.
    pub sent_len: u64,
    /// The stamp that the replicas are to have.
    pub stamp: GenerationStamp,
    /// What the pipeline is opened for.
    pub stage: Stage,
    /// Its DataNodes, in order.
    pub places: &'a [Place],
}

/// What a pipeline is opened for.
///
/// Source: Hadoop 3.5.0 `BlockConstructionStage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A new block.
    Create,
    /// A finalized block that is appended to.
    Append,
    /// The same, after one of its DataNodes failed before a packet was sent.
    AppendRecovery,
    /// Going on with a block that is being written.
    StreamingRecovery,
    /// Finalizing a block of which only the end is not acknowledged.
    CloseRecovery,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its number in the block.
    pub seqno: i64,
    /// Where its bytes begin in the block.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// It is to be on stable storage, with all before it, when it is acknowledged.
    pub is_sync: bool,
    /// It ends the block, and has no bytes.
    pub is_last: bool,
}

/// What a pipeline says.
#[derive(Debug)]
pub enum Event<E> {
    /// Every DataNode has taken this packet.
    Acknowledged(i64),
    /// A DataNode has failed; nothing follows.
    Failed(Failure<E>),
}

/// A DataNode of a pipeline has failed.
#[derive(Debug)]
pub struct Failure<E> {
    /// Its place in the pipeline, if that is known.
    pub place: Option<usize>,
    /// Why.
    pub cause: E,
}

/// Why a file can't be written any more.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError<E> {
    /// A question had no good answer.
    #[error(transparent)]
    Peer(#[from] E),
    /// No DataNode was named for a new block, or none that holds the one appended to is alive.
    #[error("no DataNode was named")]
    NoPlaces(Block),
    /// The pipeline was mended too often without an acknowledgement in between.
    #[error("{recoveries} recoveries without progress; {cause}")]
    NoProgress {
        /// The block.
        block: Block,
        /// How often.
        recoveries: u32,
        /// Why once more.
        cause: E,
    },
    /// Nobody is left in the pipeline.
    #[error("all DataNodes failed; {cause}")]
    AllFailed {
        /// The block.
        block: Block,
        /// Why the last one failed.
        cause: E,
    },
    /// A packet was acknowledged out of turn.
    #[error("acknowledgement {seqno} where {due:?} was due")]
    OutOfTurn {
        /// The packet.
        seqno: i64,
        /// The one that was due.
        due: Option<i64>,
    },
}

/// What is done, or why nothing more can be.
type Done<T, E> = Result<T, PipelineError<E>>;

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Replicas that the file is to have.
    pub replication: usize,
    /// How often another block is asked for after a pipeline could not be opened.
    pub open_retries: u32,
    /// How often a pipeline is mended without an acknowledgement in between.
    pub recovery_retries: u32,
    /// When a DataNode that failed is replaced.
    pub replace: ReplaceDataNode,
    /// Go on with fewer DataNodes when none can be added.
    pub replace_best_effort: bool,
}

/// The blocks of one file while they are written.
pub struct Pipeline<P: Peers> {
    /// Who is asked.
    pub peers: P,
    rules: Rules,
    block: Option<OpenBlock<P>>,
    /// The last block that was written whole.
    previous: Option<Block>,
}

/// The block being written.
struct OpenBlock<P: Peers> {
    /// With the stamp that its replicas have; the length is what is acknowledged.
    block: Block,
    places: Vec<P::Place>,
    unacked: VecDeque<(Header, P::Packet)>,
    next_seqno: i64,
    /// Bytes of the block that were ever sent.
    sent_len: u64,
    failed: Vec<P::Place>,
    /// Recoveries since the last acknowledgement.
    recoveries: u32,
    appended: bool,
    flushed: bool,
    /// The NameNode was told of the block on a flush.
    persisted: bool,
}

impl<P: Peers> Pipeline<P> {
    /// A pipeline that begins with a new block.
    pub fn new(peers: P, rules: Rules) -> Pipeline<P> {
        Pipeline { peers, rules, block: None, previous: None }
    }

    /// A pipeline that begins with a new block behind `previous`, which is full.
    pub fn behind(peers: P, rules: Rules, previous: Option<Block>) -> Pipeline<P> {
        Pipeline { previous, ..Pipeline::new(peers, rules) }
    }

    /// A pipeline that goes on with `block`, the last one of a file that was opened for appending.
    pub async fn append(
        peers: P,
        rules: Rules,
        block: Block,
        places: Vec<P::Place>,
    ) -> Done<Pipeline<P>, P::Error> {
        if places.is_empty() {
            return Err(PipelineError::NoPlaces(block));
        }
        let block =
            OpenBlock { appended: true, sent_len: block.len, ..OpenBlock::new(block, places) };
        let mut pipeline = Pipeline { block: Some(block), ..Pipeline::new(peers, rules) };
        if let Some(failure) = pipeline.open_restamped(Stage::Append).await? {
            pipeline.recover(failure).await?;
        }
        Ok(pipeline)
    }

    /// Packets that are not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.unacked.len())
    }

    /// Sends the next bytes of the block, or of a new one, and keeps them until they are acknowledged.
    /// `offset` may be before what was sent, for a chunk that a flush has cut.
    pub async fn send(
        &mut self,
        packet: P::Packet,
        offset: u64,
        len: u64,
        is_sync: bool,
    ) -> Done<(), P::Error> {
        if self.block.is_none() {
            self.open_block().await?;
        }
        self.transmit(packet, offset, len, is_sync, false).await
    }

    /// Returns when everything is acknowledged, and the NameNode knows of the block; with `durable` from
    /// stable storage.
    pub async fn flush(&mut self, durable: bool) -> Done<(), P::Error> {
        let Some(block) = &self.block else { return Ok(()) };
        let (len, pending) =
            (block.sent_len, block.unacked.back().is_some_and(|(header, _)| header.is_sync));
        if durable && !pending && len > 0 {
            self.transmit(P::Packet::default(), len, 0, true, false).await?;
        }
        self.drain().await?;
        let Some(block) = &mut self.block else { return Ok(()) };
        block.flushed = true;
        if !std::mem::replace(&mut block.persisted, true) {
            self.peers.fsync().await?;
        }
        Ok(())
    }

    /// Ends the block, if there is one.
    pub async fn end_block(&mut self) -> Done<(), P::Error> {
        // With the last packet the DataNodes close their replicas, and a closed one cannot take again what
        // another has missed: so it waits until all of them have everything.
        self.drain().await?;
        let Some(block) = &self.block else { return Ok(()) };
        let len = block.sent_len;
        self.transmit(P::Packet::default(), len, 0, false, true).await?;
        self.drain().await?;
        let Some(block) = self.block.take() else { return Ok(()) };
        self.peers.close(true).await;
        self.previous = Some(Block { len, ..block.block });
        Ok(())
    }

    /// Ends the file.
    pub async fn close(&mut self) -> Done<(), P::Error> {
        self.end_block().await?;
        Ok(self.peers.complete(self.previous).await?)
    }

    /// Takes in what the pipeline says; a failure is mended.
    pub async fn on_event(&mut self, event: Event<P::Error>) -> Done<(), P::Error> {
        match event {
            Event::Acknowledged(seqno) => self.acknowledged(seqno),
            Event::Failed(failure) => self.recover(failure).await,
        }
    }

    /// Takes in what the pipeline says until nothing is due.
    async fn drain(&mut self) -> Done<(), P::Error> {
        while self.in_flight() > 0 {
            let event = self.peers.event().await;
            self.on_event(event).await?;
        }
        Ok(())
    }

    fn acknowledged(&mut self, seqno: i64) -> Done<(), P::Error> {
        let Some(block) = &mut self.block else { return Ok(()) };
        match block.unacked.front().map(|(header, _)| *header) {
            Some(due) if due.seqno == seqno => {
                block.unacked.pop_front();
                block.block.len = block.block.len.max(due.offset + due.len);
                block.recoveries = 0;
                Ok(())
            }
            due => Err(PipelineError::OutOfTurn { seqno, due: due.map(|due| due.seqno) }),
        }
    }

    /// Allocates a block and opens its pipeline, leaving out DataNodes that can't be reached.
    ///
    /// Source: Hadoop 3.5.0 `DataStreamer#setupPipelineForCreate`.
    async fn open_block(&mut self) -> Done<(), P::Error> {
        let mut tries_left = self.rules.open_retries;
        loop {
            let (block, mut places) = self.peers.add_block(self.previous).await?;
            let block = Block { len: 0, ..block };
            if places.is_empty() {
                return Err(PipelineError::NoPlaces(block));
            }
            let (stage, stamp, sent_len) = (Stage::Create, block.stamp, 0);
            let opening = Opening { block, sent_len, stamp, stage, places: &places };
            let Err(Failure { place, cause }) = self.peers.open(opening).await else {
                self.block = Some(OpenBlock::new(block, places));
                return Ok(());
            };
            self.peers.abandon_block(block).await?;
            self.peers.leave_out(&places.swap_remove(bad(place, &places)), &cause);
            if tries_left == 0 {
                return Err(cause.into());
            }
            tries_left -= 1;
        }
    }

    async fn transmit(
        &mut self,
        packet: P::Packet,
        offset: u64,
        len: u64,
        is_sync: bool,
        is_last: bool,
    ) -> Done<(), P::Error> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let header = Header { seqno: block.next_seqno, offset, len, is_sync, is_last };
        block.next_seqno += 1;
        block.sent_len = block.sent_len.max(offset + len);
        block.unacked.push_back((header, packet));
        let Some((header, packet)) = block.unacked.back() else { return Ok(()) };
        match self.peers.send(*header, packet).await {
            Ok(()) => Ok(()),
            Err(cause) => self.recover(Failure { place: None, cause }).await,
        }
    }
}

/// Which of the places has failed: the first, where nobody knows.
fn bad<Place>(place: Option<usize>, places: &[Place]) -> usize {
    place.unwrap_or(0).min(places.len().saturating_sub(1))
}

impl<P: Peers> OpenBlock<P> {
    fn new(block: Block, places: Vec<P::Place>) -> OpenBlock<P> {
        OpenBlock {
            block,
            places,
            unacked: VecDeque::new(),
            next_seqno: 0,
            sent_len: 0,
            failed: Vec::new(),
            recoveries: 0,
            appended: false,
            flushed: false,
            persisted: false,
        }
    }
}
