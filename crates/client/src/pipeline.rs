//! The pipeline of a replicated file: sends packets through the DataNodes of a block, keeps them until
//! they are acknowledged, and mends the pipeline when a DataNode fails.
//!
//! ```text
//! no block --packet--> addBlock, open --packets--> last packet acknowledged --> no block
//!                        |  fails: abandon, exclude, again      | a DataNode fails:
//!                        \--------------------------------------/ new stamp, reopen, resend
//! ```
//! Source: Hadoop 3.5.0 `DataStreamer`.

mod connection;
mod recovery;

use crate::datanode::write_block::{Stage, Target, WriteOp, keep, open_write, targets};
use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::protocol::convert::{Located, Token};
use crate::types::Block;
use crate::write::open_file::OpenFile;
use cairn_stripe::GenerationStamp;
use cairn_wire::transfer::PacketHeader;
use connection::{AckEvent, Connection};
use std::collections::VecDeque;
use tokio::sync::{mpsc, oneshot};

/// The policy LAZY_PERSIST. Source: Hadoop 3.5.0 `HdfsConstants.MEMORY_STORAGE_POLICY_ID`.
const LAZY_PERSIST: u32 = 15;

/// What the writer wants.
pub(crate) enum Command {
    /// Send these bytes of the current block, or of a new one.
    Packet { packet: Packet, offset: u64, sync: bool },
    /// The current block is full.
    EndBlock,
    /// Answer when everything is acknowledged; with `durable` from stable storage.
    Flush { durable: bool, done: oneshot::Sender<()> },
    /// End the file.
    Close,
}

/// The task that writes the blocks of one file.
pub(crate) struct Pipeline {
    file: OpenFile,
    block: Option<OpenBlock>,
    previous: Option<Block>,
}

/// A packet that is not acknowledged.
struct Unacked {
    header: PacketHeader,
    packet: Packet,
}

/// The block being written.
struct OpenBlock {
    /// With the stamp that its replicas have; the length is what is acknowledged.
    block: Block,
    token: Token,
    targets: Vec<Target>,
    connection: Option<Connection>,
    unacked: VecDeque<Unacked>,
    next_seqno: i64,
    /// Bytes of the block that were ever sent.
    sent_len: u64,
    failed: Vec<Target>,
    /// Recoveries since the last acknowledgement.
    recoveries: u32,
    appended: bool,
    flushed: bool,
    /// The NameNode was told of the block on a flush.
    persisted: bool,
}

enum Event {
    Command(Option<Command>),
    Ack(AckEvent),
    Idle,
}

impl Pipeline {
    /// A pipeline that goes on with `last`, or with a new block.
    pub(crate) fn new(file: OpenFile, last: Option<Located>) -> Pipeline {
        let block = last.map(|located| OpenBlock {
            appended: true,
            sent_len: located.block.block.len,
            ..OpenBlock::new(&located)
        });
        Pipeline { file, block, previous: None }
    }

    /// Does what it is told until the file is closed, dropped or broken.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Command>) -> Result<()> {
        if self.block.is_some() {
            self.reopen_appended().await?;
        }
        loop {
            match self.next_event(&mut queue).await {
                Event::Command(None) => return Ok(()),
                Event::Command(Some(Command::Close)) => return self.close().await,
                Event::Command(Some(command)) => self.handle(command).await?,
                Event::Ack(event) => self.on_ack(event).await?,
                Event::Idle => self.send_heartbeat().await?,
            }
        }
    }

    async fn next_event(&mut self, queue: &mut mpsc::Receiver<Command>) -> Event {
        let config = &self.file.session.config;
        let (in_flight, heartbeat) = (config.packets_in_flight.max(1), config.heartbeat_after());
        let room = self.block.as_ref().is_none_or(|block| block.unacked.len() < in_flight);
        let acks = next_ack(&mut self.block);
        tokio::select! {
            command = queue.recv(), if room => Event::Command(command),
            event = acks => Event::Ack(event),
            () = tokio::time::sleep(heartbeat) => Event::Idle,
        }
    }

    async fn handle(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Packet { packet, offset, sync } => {
                self.ensure_block().await?;
                self.send(packet, offset, sync, false).await
            }
            Command::EndBlock => self.end_block().await,
            Command::Flush { durable, done } => {
                self.flush(durable).await?;
                // The writer may have gone.
                let _ = done.send(());
                Ok(())
            }
            Command::Close => Ok(()),
        }
    }

    async fn flush(&mut self, durable: bool) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        let (len, pending) =
            (block.sent_len, block.unacked.back().is_some_and(|p| p.header.sync_block));
        if durable && !pending && len > 0 {
            self.send(Packet::empty(), len, true, false).await?;
        }
        self.drain().await?;
        let Some(block) = &mut self.block else { return Ok(()) };
        block.flushed = true;
        if !std::mem::replace(&mut block.persisted, true) {
            self.file.fsync(None).await?;
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        self.end_block().await?;
        self.file.complete(self.previous.as_ref()).await
    }

    async fn end_block(&mut self) -> Result<()> {
        // With the last packet the DataNodes close their replicas, and a closed one cannot take again what
        // another has missed: so it waits until all of them have everything.
        self.drain().await?;
        let Some(block) = &self.block else { return Ok(()) };
        let len = block.sent_len;
        self.send(Packet::empty(), len, false, true).await?;
        self.drain().await?;
        let Some(block) = self.block.take() else { return Ok(()) };
        if let Some(connection) = block.connection
            && let Some(stream) = connection.finish().await
        {
            let session = &self.file.session;
            keep(&session.config, &session.connections, &block.targets[0].addr, stream);
        }
        self.previous = Some(Block { len, ..block.block });
        Ok(())
    }

    /// Handles acknowledgements until none is due.
    async fn drain(&mut self) -> Result<()> {
        let heartbeat = self.file.session.config.heartbeat_after();
        while self.block.as_ref().is_some_and(|block| !block.unacked.is_empty()) {
            match tokio::time::timeout(heartbeat, next_ack(&mut self.block)).await {
                Ok(event) => self.on_ack(event).await?,
                Err(_) => self.send_heartbeat().await?,
            }
        }
        Ok(())
    }

    /// Allocates a block and opens its pipeline, leaving out DataNodes that can't be reached.
    ///
    /// Source: Hadoop 3.5.0 `DataStreamer#setupPipelineForCreate`.
    async fn ensure_block(&mut self) -> Result<()> {
        if self.block.is_some() {
            return Ok(());
        }
        let mut tries_left = self.file.session.config.block_write_retries;
        loop {
            let located = self.file.add_block(self.previous.as_ref()).await?;
            let mut block = OpenBlock::new(&located);
            block.block.len = 0;
            if block.targets.is_empty() {
                let reason = "no DataNodes were named".to_string();
                return Err(ClientError::Pipeline { block: block.block.to_string(), reason });
            }
            let stamp = block.block.stamp;
            let error = match block.open(&self.file, Stage::PipelineSetupCreate, stamp).await {
                Ok(()) => {
                    self.block = Some(block);
                    return Ok(());
                }
                Err(error) => error,
            };
            tracing::warn!(block = %block.block, %error, "could not open a pipeline");
            self.file.abandon(&block.block).await?;
            let bad = block.bad_target(&error);
            self.file.exclude(block.targets.swap_remove(bad));
            if tries_left == 0 {
                return Err(error);
            }
            tries_left -= 1;
        }
    }

    /// Sends a packet and keeps it until it is acknowledged.
    async fn send(&mut self, packet: Packet, offset: u64, sync: bool, last: bool) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let header = PacketHeader {
            offset_in_block: offset as i64,
            seqno: block.next_seqno,
            last_packet: last,
            data_len: packet.data.len() as u32,
            sync_block: sync,
        };
        block.next_seqno += 1;
        block.sent_len = block.sent_len.max(offset + packet.data.len() as u64);
        block.unacked.push_back(Unacked { header, packet });
        match block.transmit_last().await {
            Ok(()) => Ok(()),
            Err(error) => self.mend(error).await,
        }
    }

    async fn send_heartbeat(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.unacked.back().is_some_and(|unacked| unacked.header.last_packet) {
            // The DataNode would take it for the start of another operation.
            return Ok(());
        }
        let Some(connection) = &mut block.connection else { return Ok(()) };
        match connection.send(&PacketHeader::heartbeat(), &Packet::empty()).await {
            Ok(()) => Ok(()),
            Err(error) => self.mend(error).await,
        }
    }

    async fn on_ack(&mut self, event: AckEvent) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        match event {
            AckEvent::Ack(seqno) => match block.unacked.pop_front() {
                Some(unacked) if unacked.header.seqno == seqno => {
                    let end =
                        unacked.header.offset_in_block as u64 + unacked.packet.data.len() as u64;
                    block.block.len = block.block.len.max(end);
                    block.recoveries = 0;
                    Ok(())
                }
                due => {
                    let due = due.map(|due| due.header.seqno);
                    let what = format!("acknowledgement {seqno} where {due:?} was due");
                    Err(ClientError::Protocol(what))
                }
            },
            AckEvent::Bad { index, reason } => {
                let block_name = block.block.to_string();
                self.recover(index, ClientError::Pipeline { block: block_name, reason }).await
            }
        }
    }

    /// Mends the pipeline after sending failed. An acknowledgement may tell which DataNode it was;
    /// else it is the first.
    async fn mend(&mut self, error: ClientError) -> Result<()> {
        let Some(block) = &mut self.block else { return Err(error) };
        let mut bad = 0;
        if let Some(connection) = &mut block.connection {
            while let Some(event) = connection.try_ack() {
                match event {
                    AckEvent::Ack(seqno) => {
                        if block.unacked.front().is_some_and(|due| due.header.seqno == seqno)
                            && let Some(unacked) = block.unacked.pop_front()
                        {
                            let header = unacked.header;
                            let end = header.offset_in_block as u64 + u64::from(header.data_len);
                            block.block.len = block.block.len.max(end);
                        }
                    }
                    AckEvent::Bad { index, .. } => bad = index,
                }
            }
        }
        self.recover(bad, error).await
    }
}

/// The next acknowledgement; never comes while no block is open.
async fn next_ack(block: &mut Option<OpenBlock>) -> AckEvent {
    match block {
        Some(OpenBlock { connection: Some(connection), .. }) => connection.ack().await,
        _ => std::future::pending().await,
    }
}

impl OpenBlock {
    fn new(located: &Located) -> OpenBlock {
        OpenBlock {
            block: located.block.block.clone(),
            token: located.token(0),
            targets: targets(located),
            connection: None,
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

    async fn open(&mut self, file: &OpenFile, stage: Stage, stamp: GenerationStamp) -> Result<()> {
        let op = WriteOp {
            block: &self.block,
            token: &self.token,
            client_name: file.client_name(),
            targets: &self.targets,
            stage,
            acked: self.block.len,
            sent: self.sent_len,
            new_stamp: stamp,
            block_size: file.status.block_size,
            is_lazy: file.status.storage_policy == LAZY_PERSIST,
            checksums: file.checksums,
        };
        let stream = open_write(&file.session.config, &file.session.connections, &op, None).await?;
        self.connection = Some(Connection::new(stream, self.targets[0].addr.clone()));
        Ok(())
    }

    /// Sends the packet that was pushed last.
    async fn transmit_last(&mut self) -> Result<()> {
        match (&mut self.connection, self.unacked.back()) {
            (Some(connection), Some(unacked)) => {
                connection.send(&unacked.header, &unacked.packet).await
            }
            _ => Err(ClientError::Protocol("the pipeline is closed".to_string())),
        }
    }

    /// Which DataNode of the pipeline an error is about: the one that was named, else the first.
    fn bad_target(&self, error: &ClientError) -> usize {
        match error {
            ClientError::Refused { first_bad_link, .. } => {
                let named = |target: &Target| target.addr.xfer_addr() == *first_bad_link;
                self.targets.iter().position(named).unwrap_or(0)
            }
            _ => 0,
        }
    }
}
