//! Writing a replicated file: bytes to packets. The pipeline's task sends them and mends what breaks.
//!
//! Source: Hadoop 3.5.0 `DFSOutputStream`.

use crate::encryption::FileCipher;
use crate::error::{ClientError, Result};
use crate::packet::{Filling, PacketPool};
use crate::pipeline::{self, Command};
use crate::protocol::convert::Located;
use crate::write::open_file::OpenFile;
use cairn_trace::carried;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Packets whose memory is kept while fewer are on their way.
const KEPT_PACKETS: usize = 8;
/// Most bytes that are sent and not acknowledged, unless that is less than [`MIN_IN_FLIGHT`] packets.
const MAX_IN_FLIGHT: usize = 8 << 20;
/// Packets in flight that keep a pipeline of three busy.
const MIN_IN_FLIGHT: usize = 4;

/// The writer of one replicated file.
pub(crate) struct ReplicatedWriter {
    path: String,
    pool: Arc<PacketPool>,
    packet_len: u64,
    chunk_len: u64,
    block_size: u64,
    commands: mpsc::Sender<Command>,
    /// Ends with the reason when the file can't be written any more.
    task: Option<JoinHandle<Result<()>>>,
    broken: Option<String>,
    filling: Option<Filling>,
    /// Bytes at the start of `filling` that were sent before: the part of a chunk that a flush cut.
    resent: u64,
    /// Bytes of the current block in packets that were handed over.
    block_len: u64,
    position: u64,
    /// Of an encrypted file.
    cipher: Option<FileCipher>,
}

impl ReplicatedWriter {
    /// A writer behind the end of `last`, the file's last block if it has room, or of a new file.
    pub(crate) fn new(file: OpenFile, last: Option<Located>) -> Result<ReplicatedWriter> {
        let last_len = last.as_ref().map_or(0, |last| last.block.block.len);
        let position = last.as_ref().map_or(file.status.len, |l| l.block.offset_in_file + last_len);
        // Without locations the last block is left as it is, and a new one begun behind it.
        let goes_on = last.as_ref().is_some_and(|last| !last.infos.is_empty());
        let block_len = if goes_on { last_len } else { 0 };
        // What waits for acknowledgement, what waits to be sent, and what is being filled.
        let in_flight = file.session.config.packets_in_flight.min(MAX_IN_FLIGHT / file.packet_len);
        let count = in_flight.max(MIN_IN_FLIGHT) + 2;
        let pool = PacketPool::new(file.packet_len, count, KEPT_PACKETS.min(count), file.checksums);
        let (commands, queue) = mpsc::channel(count);
        let path = file.path.clone();
        let packet_len = file.packet_len as u64;
        let chunk_len = file.checksums.chunk_len as u64;
        let block_size = file.status.block_size;
        let task = Some(tokio::spawn(carried(pipeline::run(file, last, queue))));
        Ok(ReplicatedWriter {
            path,
            pool,
            packet_len,
            chunk_len,
            block_size,
            commands,
            task,
            broken: None,
            filling: None,
            resent: 0,
            block_len,
            position,
            cipher: None,
        })
    }

    /// Has all that is written from now on encrypted.
    pub(crate) fn encrypt(&mut self, cipher: FileCipher) {
        self.cipher = Some(cipher);
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn buffered_len(&self) -> usize {
        self.pool.held()
    }

    pub(crate) async fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let mut filling = match self.filling.take() {
                Some(filling) => filling,
                None => {
                    let room = self.packet_room();
                    self.pool.take(room).await
                }
            };
            let taken = filling.put(data);
            if let Some(cipher) = &self.cipher {
                cipher.apply(self.position, filling.last_mut(taken));
            }
            data = &data[taken..];
            self.position += taken as u64;
            match filling.is_full() {
                true => self.hand_over(filling, false).await?,
                false => self.filling = Some(filling),
            }
        }
        Ok(())
    }

    /// Bytes of the next packet: up to a whole number of chunks, and not past the block. Behind a
    /// part of a chunk that the block already has, only the rest of that chunk.
    fn packet_room(&self) -> usize {
        let cut = self.block_len % self.chunk_len;
        let room = if cut > 0 { self.chunk_len - cut } else { self.packet_len };
        room.min(self.block_size.saturating_sub(self.block_len)) as usize
    }

    async fn hand_over(&mut self, filling: Filling, sync: bool) -> Result<()> {
        let packet = filling.seal();
        let offset = self.block_len - self.resent;
        self.block_len = offset + packet.data.len() as u64;
        self.resent = 0;
        self.command(Command::Packet { packet, offset, sync }).await?;
        if self.block_len >= self.block_size {
            self.block_len = 0;
            self.command(Command::EndBlock).await?;
        }
        Ok(())
    }

    pub(crate) async fn flush(&mut self, durable: bool) -> Result<()> {
        self.hand_over_fresh(durable).await?;
        let (done, answer) = oneshot::channel();
        self.command(Command::Flush { durable, done }).await?;
        if answer.await.is_err() {
            return Err(self.failure().await);
        }
        Ok(())
    }

    /// Hands over what is buffered. The chunk that this cuts is kept, to be sent again whole with
    /// what follows.
    async fn hand_over_fresh(&mut self, sync: bool) -> Result<()> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let fresh = filling.data().len() as u64 > self.resent;
        if !fresh {
            self.filling = Some(filling);
            return Ok(());
        }
        let start = self.block_len - self.resent;
        let end = start + filling.data().len() as u64;
        let cut = (end % self.chunk_len).min(filling.data().len() as u64);
        let tail = filling.data()[filling.data().len() - cut as usize..].to_vec();
        // An appended block's first packet starts within a chunk and can't be sent whole again.
        let aligned = (end - cut).is_multiple_of(self.chunk_len);
        self.hand_over(filling, sync).await?;
        if cut > 0 && aligned && self.block_len > 0 {
            let room = (self.packet_len).min(self.block_size - (self.block_len - cut));
            let mut filling = self.pool.take(room as usize).await;
            filling.put(&tail);
            self.filling = Some(filling);
            self.resent = cut;
        }
        Ok(())
    }

    pub(crate) async fn close(mut self) -> Result<()> {
        self.hand_over_fresh(false).await?;
        self.command(Command::Close).await?;
        match self.task.take() {
            Some(task) => task.await.unwrap_or_else(|panic| Err(self.gone(panic.to_string()))),
            None => Err(self.gone(String::new())),
        }
    }

    async fn command(&mut self, command: Command) -> Result<()> {
        if self.commands.send(command).await.is_err() {
            return Err(self.failure().await);
        }
        Ok(())
    }

    /// Why the pipeline's task has ended.
    async fn failure(&mut self) -> ClientError {
        if let Some(task) = self.task.take() {
            let error = match task.await {
                Ok(Ok(())) => self.gone("the file is closed".to_string()),
                Ok(Err(error)) => error,
                Err(panic) => self.gone(panic.to_string()),
            };
            self.broken = Some(error.to_string());
            return error;
        }
        self.gone(self.broken.clone().unwrap_or_default())
    }

    fn gone(&self, reason: String) -> ClientError {
        ClientError::Broken { path: self.path.clone(), reason }
    }
}

impl Drop for ReplicatedWriter {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
