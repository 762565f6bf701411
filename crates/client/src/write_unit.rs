//! One internal block being written to one DataNode: a task that opens the connection with the first
//! packet, sends what it is given, and counts acknowledgements. A block that is whole in one packet goes with
//! the operation that opens the connection.
//!
//! Never recovers by itself: a failure ends it, and the group decides. Packets are dropped as soon as
//! the kernel has them, because a lost DataNode is not replaced within a group.
//! Source: Hadoop 3.5.0 `StripedDataStreamer`.

use crate::config::ClientConfig;
use crate::datanode::failure;
use crate::datanode::write_block::{Stage, Target, WHOLE_SEQNOS, WriteOp, keep, open_write};
use crate::error::{ClientError, Result};
use crate::packet::{Checksums, Packet};
use crate::protocol::convert::Token;
use crate::session::Session;
use crate::types::Block;
use crate::write_stalls::Progress;
use cairn_net::transfer_stream::{TransferReader, TransferStream, TransferWriter};
use cairn_stripe::GenerationStamp;
use cairn_trace::carried;
use cairn_wire::proto::hdfs::PipelineAckProto;
use cairn_wire::transfer::{HEARTBEAT_SEQNO, PacketHeader, ack_is_success};
use std::collections::VecDeque;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

/// What a unit is and how to reach its DataNode.
pub(crate) struct UnitSetup {
    pub session: Arc<Session>,
    pub block: Block,
    pub token: Token,
    pub target: Target,
    pub block_size: u64,
    pub checksums: Checksums,
    /// Commands that may wait: more than the stream has packets, so that no unit holds up others.
    pub queue: usize,
}

/// How far a unit is.
#[derive(Clone, Debug, Default)]
struct Status {
    /// Packets acknowledged.
    acked: u64,
    /// Bytes of the internal block acknowledged.
    acked_len: u64,
    failed: Option<Arc<str>>,
}

enum Command {
    Packet(Packet),
    /// All of the block, in place of a packet and the end.
    Whole(Packet),
    /// The empty packet that ends the block.
    Last,
    Restamp {
        stamp: GenerationStamp,
        token: Token,
        done: oneshot::Sender<()>,
    },
}

/// The group's handle of a unit. Dropping it closes the connection.
pub(crate) struct UnitWriter {
    pub target: Target,
    commands: Option<mpsc::Sender<Command>>,
    status: watch::Receiver<Status>,
    sent: u64,
    /// Something is not acknowledged, and nobody is left to say more.
    lost: bool,
    task: AbortHandle,
}

impl UnitWriter {
    pub(crate) fn start(setup: UnitSetup) -> UnitWriter {
        let (commands, queue) = mpsc::channel(setup.queue);
        let (report, status) = watch::channel(Status::default());
        let target = setup.target.clone();
        let task = Task { setup, report, connection: None, len: 0, seqno: 0 };
        let task = tokio::spawn(carried(task.run(queue))).abort_handle();
        UnitWriter { target, commands: Some(commands), status, sent: 0, lost: false, task }
    }

    /// Hands over the next bytes of the block. False when the unit has failed.
    pub(crate) async fn send(&mut self, packet: Packet) -> bool {
        self.sent += 1;
        self.command(Command::Packet(packet)).await
    }

    /// Hands over the whole block, of which nothing was sent. False when the unit has failed.
    pub(crate) async fn send_whole(&mut self, packet: Packet) -> bool {
        self.sent += WHOLE_SEQNOS.len() as u64;
        self.command(Command::Whole(packet)).await
    }

    /// Ends the block. False when the unit has failed.
    pub(crate) async fn send_last(&mut self) -> bool {
        self.sent += 1;
        self.command(Command::Last).await
    }

    /// Opens the write again with another stamp, once all that was sent is acknowledged. The answer
    /// comes when the DataNode has taken it, or is dropped when it has not.
    pub(crate) async fn restamp(
        &mut self,
        stamp: GenerationStamp,
        token: Token,
    ) -> oneshot::Receiver<()> {
        let (done, answer) = oneshot::channel();
        self.command(Command::Restamp { stamp, token, done }).await;
        answer
    }

    /// Waits until all that was sent is acknowledged. False when the unit has failed.
    pub(crate) async fn acknowledged(&mut self) -> bool {
        let sent = self.sent;
        match self.status.wait_for(|status| status.failed.is_some() || status.acked == sent).await {
            Ok(status) => status.failed.is_none(),
            Err(_) => {
                self.lost = true;
                false
            }
        }
    }

    /// Bytes of the block that the DataNode has acknowledged.
    pub(crate) fn acked_len(&self) -> u64 {
        self.status.borrow().acked_len
    }

    /// Why the unit failed, if it did.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        let failed = self.status.borrow().failed.clone();
        failed.or_else(|| self.lost.then(|| "its acknowledgements did not come".into()))
    }

    /// Gives the unit up.
    pub(crate) fn stop(&mut self) {
        self.commands = None;
    }

    /// Gives a unit up whose DataNode hangs, with all that waits for it.
    pub(crate) fn give_up(&mut self) {
        self.stop();
        self.task.abort();
        self.lost = true;
    }

    /// How far the unit is.
    pub(crate) fn progress(&self) -> Progress {
        Progress { sent: self.sent, acked: self.status.borrow().acked }
    }

    async fn command(&mut self, command: Command) -> bool {
        let Some(commands) = &self.commands else { return false };
        let sent = commands.send(command).await.is_ok();
        if !sent {
            self.commands = None;
        }
        sent
    }
}

struct Task {
    setup: UnitSetup,
    report: watch::Sender<Status>,
    connection: Option<Connection>,
    /// Bytes of the block sent.
    len: u64,
    seqno: i64,
}

struct Connection {
    writer: TransferWriter,
    due: Due,
    acks: AckTask,
    /// The last packet was sent: the DataNode takes what follows for another operation.
    ended: bool,
}

/// The task that receives acknowledgements, which ends with this or, giving the reader back, with the last of them.
struct AckTask {
    task: JoinHandle<Option<TransferReader>>,
    in_use: Arc<AtomicBool>,
}

/// Packets sent and not acknowledged.
type Due = Arc<Mutex<VecDeque<DuePacket>>>;

#[derive(Clone, Copy, Debug)]
struct DuePacket {
    seqno: i64,
    /// Bytes of the block with it.
    len: u64,
    last: bool,
}

impl Task {
    async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        let heartbeat = self.config().heartbeat_after();
        loop {
            let done = match tokio::time::timeout(heartbeat, queue.recv()).await {
                Ok(None) => return self.finish().await,
                Ok(Some(command)) => self.handle(command).await,
                Err(_) => self.send_heartbeat().await,
            };
            if let Err(error) = done {
                report_failure(&self.report, &self.setup.block, &error);
                return;
            }
        }
    }

    /// Keeps the connection if the block was written to its end.
    async fn finish(mut self) {
        let all = self.seqno as u64;
        let Some(connection) = self.connection.take().filter(|connection| connection.ended) else {
            return;
        };
        let mut acks = connection.acks;
        // Who gives a block up does not wait for it.
        if self.report.borrow().acked == all
            && let Ok(Some(reader)) = (&mut acks.task).await
        {
            let stream = TransferStream { reader, writer: connection.writer };
            keep(self.config(), &self.setup.session.connections, &self.setup.target.addr, stream);
        }
    }

    fn config(&self) -> &ClientConfig {
        &self.setup.session.config
    }

    async fn handle(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Packet(packet) => {
                if self.connection.is_none() {
                    self.open(Stage::PipelineSetupCreate, self.setup.block.stamp, None).await?;
                }
                self.send(packet, false).await
            }
            Command::Whole(packet) => {
                self.open(Stage::PipelineSetupCreate, self.setup.block.stamp, Some(&packet)).await
            }
            Command::Last => self.send(Packet::empty(), true).await,
            Command::Restamp { stamp, token, done } => {
                self.connection = None;
                self.setup.token = token;
                self.open(Stage::PipelineSetupStreamingRecovery, stamp, None).await?;
                self.setup.block.stamp = stamp;
                // The group may have stopped waiting.
                let _ = done.send(());
                Ok(())
            }
        }
    }

    /// Opens the connection, with all of the block in `whole` if that is given.
    async fn open(
        &mut self,
        stage: Stage,
        new_stamp: GenerationStamp,
        whole: Option<&Packet>,
    ) -> Result<()> {
        let setup = &self.setup;
        let op = WriteOp {
            block: &setup.block,
            token: &setup.token,
            client_name: &setup.session.client_name,
            targets: slice::from_ref(&setup.target),
            stage,
            acked: self.len,
            sent: self.len,
            new_stamp,
            block_size: setup.block_size,
            is_lazy: false,
            checksums: setup.checksums,
        };
        let stream = open_write(self.config(), &setup.session.connections, &op, whole).await?;
        let (reader, writer) = stream.split();
        let due = Due::default();
        if let Some(packet) = whole {
            self.len = packet.data.len() as u64;
            self.seqno = WHOLE_SEQNOS.len() as i64;
            let [_, end] = WHOLE_SEQNOS;
            let sent = |seqno| DuePacket { seqno, len: self.len, last: seqno == end };
            lock(&due).extend(WHOLE_SEQNOS.map(sent));
        }
        let in_use = Arc::new(AtomicBool::new(true));
        let acks = Acks {
            reader,
            in_use: in_use.clone(),
            due: due.clone(),
            report: self.report.clone(),
            block: setup.block.clone(),
            target: setup.target.clone(),
        };
        let acks = AckTask { task: tokio::spawn(acks.run()), in_use };
        self.connection = Some(Connection { writer, due, acks, ended: whole.is_some() });
        Ok(())
    }

    async fn send(&mut self, packet: Packet, last_packet: bool) -> Result<()> {
        // A block without a packet has no connection, and nothing to end.
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let header = PacketHeader {
            offset_in_block: self.len as i64,
            seqno: self.seqno,
            last_packet,
            data_len: packet.data.len() as u32,
            sync_block: false,
        };
        self.len += packet.data.len() as u64;
        self.seqno += 1;
        connection.ended = last_packet;
        let due = DuePacket { seqno: header.seqno, len: self.len, last: last_packet };
        lock(&connection.due).push_back(due);
        let mut status = self.report.subscribe();
        let failed = status.wait_for(|status| status.failed.is_some());
        let sent = connection.writer.send_packet(&header, &packet.checksums, &packet.data);
        tokio::select! {
            sent = sent => sent.map_err(|error| failure(&self.setup.target.addr, error)),
            _ = failed => Err(ClientError::Protocol("the DataNode gave up".to_string())),
        }
    }

    /// Keeps a connection alive that has nothing to send.
    async fn send_heartbeat(&mut self) -> Result<()> {
        let Some(connection) = self.connection.as_mut().filter(|connection| !connection.ended)
        else {
            return Ok(());
        };
        let sent = connection.writer.send_packet(&PacketHeader::heartbeat(), &[], &[]).await;
        sent.map_err(|error| failure(&self.setup.target.addr, error))
    }
}

impl Drop for AckTask {
    fn drop(&mut self) {
        self.in_use.store(false, Ordering::Release);
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

fn report_failure(report: &watch::Sender<Status>, block: &Block, error: &ClientError) {
    report.send_if_modified(|status| {
        let first = status.failed.is_none();
        if first {
            tracing::warn!(%block, %error, "a unit of a block group failed");
            status.failed = Some(error.to_string().into());
        }
        first
    });
}

/// The receiving side of a connection.
struct Acks {
    reader: TransferReader,
    /// Cleared before another connection takes over, upon which the DataNode closes this one.
    in_use: Arc<AtomicBool>,
    due: Due,
    report: watch::Sender<Status>,
    block: Block,
    target: Target,
}

impl Acks {
    async fn run(mut self) -> Option<TransferReader> {
        match self.receive().await {
            Ok(()) => Some(self.reader),
            Err(error) => {
                if self.in_use.load(Ordering::Acquire) {
                    report_failure(&self.report, &self.block, &error);
                }
                None
            }
        }
    }

    async fn receive(&mut self) -> Result<()> {
        loop {
            let ack: PipelineAckProto = self
                .reader
                .read_message("PipelineAckProto")
                .await
                .map_err(|error| failure(&self.target.addr, error))?;
            if ack.seqno == HEARTBEAT_SEQNO && ack_is_success(&ack) {
                continue;
            }
            let due = lock(&self.due).pop_front();
            let due = match due {
                Some(due) if due.seqno == ack.seqno && ack_is_success(&ack) => due,
                _ => {
                    let addr = &self.target.addr;
                    let what = format!("{addr}: acknowledgement {ack:?} where {due:?} was due");
                    return Err(ClientError::Protocol(what));
                }
            };
            self.report.send_modify(|status| {
                status.acked += 1;
                status.acked_len = due.len;
            });
            if due.last {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::convert;

    #[tokio::test]
    async fn a_unit_whose_task_ends_without_a_word_has_failed() {
        let (commands, _) = mpsc::channel(1);
        let (report, status) = watch::channel(Status::default());
        let info = cairn_wire::proto::hdfs::DatanodeInfoProto::default();
        let addr = convert::addr(&info.id);
        let target = Target { info, addr, storage_id: String::new(), storage_type: 0 };
        let task = tokio::spawn(async {}).abort_handle();
        let commands = Some(commands);
        let mut unit = UnitWriter { target, commands, status, sent: 1, lost: false, task };
        assert!(unit.failure().is_none());
        drop(report);
        assert!(!unit.acknowledged().await);
        assert!(unit.failure().is_some());
    }
}
