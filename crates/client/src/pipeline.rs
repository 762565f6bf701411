//! The task that writes the blocks of a replicated file: does what the writer wants and hears what the DataNodes
//! say. What follows what is in `cairn_writer::pipeline`; this is its side of the sockets.

mod connection;
mod peers;

use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::protocol::convert::Located;
use crate::write::open_file::{OpenFile, in_pool};
use cairn_writer::pipeline::{Event, Failure, Rules};
use cairn_writer::{Pipeline, PipelineError};
use peers::PipelinePeers;
use tokio::sync::{mpsc, oneshot};

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

/// What happens next.
enum Next {
    Command(Option<Command>),
    Event(Event<ClientError>),
    Idle,
}

/// Goes on with `last`, or with a new block, and does what it is told until the file is closed, dropped or
/// broken.
pub(crate) async fn run(
    file: OpenFile,
    last: Option<Located>,
    queue: mpsc::Receiver<Command>,
) -> Result<()> {
    let config = &file.session.config;
    let rules = Rules {
        replication: usize::from(file.status.replication),
        open_retries: config.block_write_retries,
        recovery_retries: config.pipeline_recovery_retries,
        replace: config.replace_datanode,
        replace_best_effort: config.replace_datanode_best_effort,
    };
    let pipeline = match last {
        None => Pipeline::new(PipelinePeers::new(file, String::new()), rules),
        Some(last) => {
            let (pool, block, places) = peers::places(&last);
            let peers = PipelinePeers::new(file, pool.clone());
            if places.is_empty() {
                // Behind a last block that is left as it is.
                return go_on(Pipeline::behind(peers, rules, Some(block)), queue).await;
            }
            let appending = Pipeline::append(peers, rules, block, places).await;
            appending.map_err(|error| broken(&pool, error))?
        }
    };
    go_on(pipeline, queue).await
}

async fn go_on(
    mut pipeline: Pipeline<PipelinePeers>,
    queue: mpsc::Receiver<Command>,
) -> Result<()> {
    let done = serve(&mut pipeline, queue).await;
    done.map_err(|error| broken(&pipeline.peers.pool, error))
}

async fn serve(
    pipeline: &mut Pipeline<PipelinePeers>,
    mut queue: mpsc::Receiver<Command>,
) -> std::result::Result<(), PipelineError<ClientError>> {
    let config = &pipeline.peers.file.session.config;
    let (most, heartbeat) = (config.packets_in_flight.max(1), config.heartbeat_after());
    loop {
        let has_room = pipeline.in_flight() < most;
        let next = tokio::select! {
            command = queue.recv(), if has_room => Next::Command(command),
            event = pipeline.peers.heard() => Next::Event(event),
            () = tokio::time::sleep(heartbeat) => Next::Idle,
        };
        match next {
            Next::Command(None) => return Ok(()),
            Next::Command(Some(Command::Packet { packet, offset, sync })) => {
                let len = packet.data.len() as u64;
                pipeline.send(packet, offset, len, sync).await?;
            }
            Next::Command(Some(Command::EndBlock)) => pipeline.end_block().await?,
            Next::Command(Some(Command::Flush { durable, done })) => {
                pipeline.flush(durable).await?;
                // The writer may have gone.
                let _ = done.send(());
            }
            Next::Command(Some(Command::Close)) => return pipeline.close().await,
            Next::Event(event) => pipeline.on_event(event).await?,
            Next::Idle => {
                if let Err(cause) = pipeline.peers.send_heartbeat().await {
                    pipeline.on_event(Event::Failed(Failure { place: None, cause })).await?;
                }
            }
        }
    }
}

/// What a program is told of a pipeline, whose blocks are of `pool`.
fn broken(pool: &str, error: PipelineError<ClientError>) -> ClientError {
    let reason = error.to_string();
    match error {
        PipelineError::Peer(error) => error,
        PipelineError::OutOfTurn { .. } => ClientError::Protocol(reason),
        PipelineError::NoPlaces(block)
        | PipelineError::NoProgress { block, .. }
        | PipelineError::AllFailed { block, .. } => {
            ClientError::Pipeline { block: in_pool(pool, block).to_string(), reason }
        }
    }
}
