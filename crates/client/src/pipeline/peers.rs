//! What a pipeline asks of the NameNode and the DataNodes, over their sockets.

use super::connection::{Ack, Connection};
use crate::datanode::write_block::{self, Target, WriteOp, keep, open_write, targets, transfer};
use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::protocol::convert::{Located, Token, no_token};
use crate::types;
use crate::write::open_file::{OpenFile, bare, in_pool};
use cairn_stripe::GenerationStamp;
use cairn_wire::transfer::PacketHeader;
use cairn_writer::Block;
use cairn_writer::pipeline::{Event, Failure, Header, Opening, Peers, Stage};

/// The policy LAZY_PERSIST. Source: Hadoop 3.5.0 `HdfsConstants.MEMORY_STORAGE_POLICY_ID`.
const LAZY_PERSIST: u32 = 15;

/// See the module.
pub(super) struct PipelinePeers {
    pub(super) file: OpenFile,
    /// The block pool of the file's blocks; empty before the first of them.
    pub(super) pool: String,
    /// Of the block with its newest stamp.
    token: Token,
    /// For a copy to the place that was added last.
    copy_token: Token,
    connection: Option<Connection>,
}

/// A located block, with its pool and the places to write it to.
pub(super) fn places(located: &Located) -> (String, Block, Vec<Target>) {
    let block = &located.block.block;
    (block.pool.clone(), bare(block), targets(located))
}

impl PipelinePeers {
    pub(super) fn new(file: OpenFile, pool: String) -> PipelinePeers {
        let (token, copy_token) = (no_token(), no_token());
        PipelinePeers { file, pool, token, copy_token, connection: None }
    }

    fn named(&self, block: Block) -> types::Block {
        in_pool(&self.pool, block)
    }

    /// What the pipeline says next; never comes while none is open. May be dropped at any time.
    pub(super) async fn heard(&mut self) -> Event<ClientError> {
        match &mut self.connection {
            Some(connection) => event(connection.ack().await),
            None => std::future::pending().await,
        }
    }

    /// Tells the pipeline that the writer lives.
    pub(super) async fn send_heartbeat(&mut self) -> Result<()> {
        match &mut self.connection {
            // Behind its end the DataNode would take it for the start of another operation.
            Some(connection) if !connection.is_ended() => {
                connection.send(&PacketHeader::heartbeat(), &Packet::empty()).await
            }
            _ => Ok(()),
        }
    }
}

impl Peers for PipelinePeers {
    type Place = Target;
    type Packet = Packet;
    type Error = ClientError;

    async fn add_block(&mut self, previous: Option<Block>) -> Result<(Block, Vec<Target>)> {
        let previous = previous.map(|block| self.named(block));
        let located = self.file.add_block(previous.as_ref()).await?;
        self.token = located.token(0);
        let (pool, block, places) = places(&located);
        self.pool = pool;
        Ok((block, places))
    }

    async fn abandon_block(&mut self, block: Block) -> Result<()> {
        self.file.abandon(&self.named(block)).await
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp> {
        let located = self.file.new_stamp(&self.named(block)).await?;
        self.token = located.token(0);
        Ok(located.block.block.stamp)
    }

    async fn update_pipeline(&mut self, old: Block, new: Block, places: &[Target]) -> Result<()> {
        let places: Vec<Option<&Target>> = places.iter().map(Some).collect();
        self.file.update_pipeline(&self.named(old), &self.named(new), &places).await
    }

    async fn additional_place(
        &mut self,
        block: Block,
        places: &[Target],
        left_out: &[Target],
    ) -> Result<Target> {
        let (new, located) = self.file.additional(&self.named(block), places, left_out).await?;
        self.copy_token = located.token(0);
        Ok(new)
    }

    async fn fsync(&mut self) -> Result<()> {
        self.file.fsync(None).await
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<()> {
        let last = last.map(|block| self.named(block));
        self.file.complete(last.as_ref()).await
    }

    async fn open(
        &mut self,
        opening: Opening<'_, Target>,
    ) -> std::result::Result<(), Failure<ClientError>> {
        let (file, config) = (&self.file, &self.file.session.config);
        let op = WriteOp {
            block: &self.named(opening.block),
            token: &self.token,
            client_name: file.client_name(),
            targets: opening.places,
            stage: stage(opening.stage),
            acked: opening.block.len,
            sent: opening.sent_len,
            new_stamp: opening.stamp,
            block_size: file.status.block_size,
            is_lazy: file.status.storage_policy == LAZY_PERSIST,
            checksums: file.checksums,
        };
        match open_write(config, &file.session.connections, &op, None).await {
            Ok(stream) => {
                let addr = opening.places[0].addr.clone();
                self.connection = Some(Connection::new(stream, addr));
                Ok(())
            }
            Err(cause) => Err(Failure { place: bad_place(opening.places, &cause), cause }),
        }
    }

    async fn copy(&mut self, block: Block, from: &Target, to: &Target) -> Result<()> {
        let (config, name) = (&self.file.session.config, self.file.client_name());
        let done = transfer(config, &self.named(block), &self.copy_token, name, from, to).await;
        if let Err(error) = &done {
            tracing::warn!(?block, %error, "could not copy to a new DataNode");
        }
        done
    }

    async fn send(&mut self, header: Header, packet: &Packet) -> Result<()> {
        let Some(connection) = &mut self.connection else {
            return Err(ClientError::Protocol("the pipeline is closed".to_string()));
        };
        let header = PacketHeader {
            offset_in_block: header.offset as i64,
            seqno: header.seqno,
            last_packet: header.is_last,
            data_len: header.len as u32,
            sync_block: header.is_sync,
        };
        connection.send(&header, packet).await
    }

    async fn event(&mut self) -> Event<ClientError> {
        let heartbeat = self.file.session.config.heartbeat_after();
        loop {
            if let Ok(event) = tokio::time::timeout(heartbeat, self.heard()).await {
                return event;
            }
            if let Err(cause) = self.send_heartbeat().await {
                return Event::Failed(Failure { place: None, cause });
            }
        }
    }

    fn arrived(&mut self) -> Option<Event<ClientError>> {
        self.connection.as_mut()?.try_ack().map(event)
    }

    async fn close(&mut self, whole: bool) {
        let Some(connection) = self.connection.take().filter(|_| whole) else { return };
        if let Some((stream, addr)) = connection.finish().await {
            let session = &self.file.session;
            keep(&session.config, &session.connections, &addr, stream);
        }
    }

    fn leave_out(&mut self, place: &Target, cause: &ClientError) {
        let addr = place.addr.xfer_addr();
        tracing::warn!(path = self.file.path, addr, %cause, "a DataNode of a pipeline has failed");
        self.file.exclude(place.clone());
    }

    fn not_replaced(&mut self, error: ClientError) {
        tracing::warn!(%error, "no DataNode could be added to the pipeline; going on");
    }
}

fn event(ack: Ack) -> Event<ClientError> {
    match ack {
        Ok(seqno) => Event::Acknowledged(seqno),
        Err((place, reason)) => {
            Event::Failed(Failure { place, cause: ClientError::Protocol(reason) })
        }
    }
}

/// Which DataNode an error is about, if it was named.
fn bad_place(places: &[Target], error: &ClientError) -> Option<usize> {
    let ClientError::Refused { first_bad_link, .. } = error else { return None };
    places.iter().position(|target| target.addr.xfer_addr() == *first_bad_link)
}

fn stage(stage: Stage) -> write_block::Stage {
    match stage {
        Stage::Create => write_block::Stage::PipelineSetupCreate,
        Stage::Append => write_block::Stage::PipelineSetupAppend,
        Stage::AppendRecovery => write_block::Stage::PipelineSetupAppendRecovery,
        Stage::StreamingRecovery => write_block::Stage::PipelineSetupStreamingRecovery,
        Stage::CloseRecovery => write_block::Stage::PipelineCloseRecovery,
    }
}
