//! A unit's cells, read ahead by a task; and the memory that cells are read into.
//!
//! Short cells are read several at once, a packet of a DataNode or more: its bytes come straight to where they stay, and
//! one message of the task brings all of them.

use crate::datanode::read_block::{BlockReader, LONGEST_PACKET, Piece};
use crate::datanode::read_range::ReadRange;
use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::types::DataNodeAddr;
use bytes::{Buf, Bytes};
use cairn_trace::carried;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Bytes of a unit that are read at once at most, where its cells are no longer: those of a DataNode's longest packet.
const RUN_LEN: u64 = LONGEST_PACKET as u64;

/// How the cells of a unit are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// Bytes of a cell.
    pub cell_len: u64,
    /// Bytes that are read at once at most: whole cells.
    pub run_len: u64,
    /// How many times as much is read ahead of the caller.
    pub ahead: usize,
}

impl Reading {
    /// How cells of `cell_len` bytes are read `ahead` cells ahead of the caller.
    pub(super) fn new(cell_len: u64, ahead: usize) -> Reading {
        let cells = (RUN_LEN / cell_len).clamp(1, ahead.max(1) as u64);
        Reading { cell_len, run_len: cells * cell_len, ahead: ahead.div_ceil(cells as usize) }
    }
}

/// Memory of cells, or of runs of them, that is used again.
pub(super) struct CellPool {
    free: Mutex<Vec<Vec<u8>>>,
    keep: usize,
    /// Bytes of memory of all cells of the stream, used or kept.
    held: Arc<AtomicUsize>,
}

/// Memory of one of them, which goes back to its pool when dropped.
pub(super) struct PooledCell {
    bytes: Vec<u8>,
    pool: Arc<CellPool>,
}

impl CellPool {
    /// Keeps the memory of up to `keep` of them, and counts in `held` what all have.
    pub(super) fn new(keep: usize, held: Arc<AtomicUsize>) -> Arc<CellPool> {
        Arc::new(CellPool { free: Mutex::default(), keep, held })
    }

    /// Memory with any content, `len` bytes.
    pub(super) fn take(self: &Arc<Self>, len: usize) -> PooledCell {
        let free = self.free.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let mut bytes = free.unwrap_or_default();
        let before = bytes.capacity();
        bytes.resize(len, 0);
        self.held.fetch_add(bytes.capacity() - before, Ordering::Relaxed);
        PooledCell { bytes, pool: self.clone() }
    }
}

impl PooledCell {
    /// Shares memory; it comes back when nobody holds it.
    pub(super) fn share(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for CellPool {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(|poison| poison.into_inner());
        let kept = free.iter().map(Vec::capacity).sum();
        self.held.fetch_sub(kept, Ordering::Relaxed);
    }
}

impl Deref for PooledCell {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for PooledCell {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for PooledCell {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledCell {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(|poison| poison.into_inner());
        if free.len() < self.pool.keep {
            free.push(std::mem::take(&mut self.bytes));
        } else {
            self.pool.held.fetch_sub(self.bytes.capacity(), Ordering::Relaxed);
        }
    }
}

/// The cells of one unit from some stripe on, in order.
pub(super) struct CellStream {
    /// Location in the group's list.
    pub location: usize,
    /// Stripe of the cell that comes next.
    pub next_stripe: u64,
    /// Stripe behind that of the last cell.
    end_stripe: u64,
    /// Whether a cell has come.
    pub has_delivered: bool,
    cell_len: usize,
    /// What has come and was not handed out.
    cells: Bytes,
    runs: mpsc::Receiver<Result<Bytes>>,
    task: AbortHandle,
    answered: Arc<AtomicBool>,
}

impl CellStream {
    /// Reads `range`, which starts with a cell.
    pub(super) fn start(
        session: Arc<Session>,
        addr: DataNodeAddr,
        range: ReadRange,
        reading: Reading,
        location: usize,
        pool: Arc<CellPool>,
    ) -> CellStream {
        let cell_len = reading.cell_len;
        let (sink, runs) = mpsc::channel(reading.ahead);
        let next_stripe = range.offset / cell_len;
        let end_stripe = (range.offset + range.len).div_ceil(cell_len);
        let answered = Arc::new(AtomicBool::new(false));
        let has_answered = answered.clone();
        let task = tokio::spawn(carried(async move {
            let read = async {
                let reader = BlockReader::open(session, addr, &range).await?;
                has_answered.store(true, Ordering::Relaxed);
                read_runs(reader, range.len, &reading, &sink, &pool).await
            };
            if let Err(error) = read.await {
                // The reader may have gone.
                let _ = sink.send(Err(error)).await;
            }
        }));
        let task = task.abort_handle();
        CellStream {
            location,
            next_stripe,
            end_stripe,
            has_delivered: false,
            cell_len: cell_len as usize,
            cells: Bytes::new(),
            runs,
            task,
            answered,
        }
    }

    /// Whether the next cell is that of `stripe`.
    pub(super) fn is_at(&self, stripe: u64) -> bool {
        self.next_stripe == stripe && stripe < self.end_stripe
    }

    /// Whether the DataNode has answered at all.
    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The next cell when it is there. A stream that ends early fails.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes>> {
        if self.cells.is_empty() {
            let ended = || Err(ClientError::Protocol("the unit is too short".to_string()));
            match ready!(self.runs.poll_recv(context)).unwrap_or_else(ended) {
                Ok(cells) => self.cells = cells,
                Err(error) => return Poll::Ready(Err(error)),
            }
            self.has_delivered = true;
        }
        let len = self.cells.len().min(self.cell_len);
        Poll::Ready(Ok(self.cells.split_to(len)))
    }
}

impl Drop for CellStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_runs(
    mut reader: BlockReader,
    mut left: u64,
    reading: &Reading,
    sink: &mpsc::Sender<Result<Bytes>>,
    pool: &Arc<CellPool>,
) -> Result<()> {
    let cell_len = reading.cell_len as usize;
    let mut packet = Bytes::new();
    while left > 0 {
        let len = left.min(reading.run_len) as usize;
        let mut run = pool.take(len);
        let mut filled = 0;
        // Whole cells that are there do not wait for the next packet.
        while filled == 0 || filled < len && !filled.is_multiple_of(cell_len) {
            if packet.is_empty() {
                match reader.next_into(&mut run[filled..]).await? {
                    Some(Piece::Placed(count)) => {
                        filled += count;
                        continue;
                    }
                    Some(Piece::Apart(bytes)) => packet = bytes,
                    None => return Err(ClientError::Protocol("the unit is too short".to_string())),
                }
            }
            let count = packet.len().min(len - filled);
            packet.copy_to_slice(&mut run[filled..filled + count]);
            filled += count;
        }
        left -= filled as u64;
        if sink.send(Ok(run.share().slice(..filled))).await.is_err() {
            return Ok(());
        }
    }
    reader.finish().await;
    Ok(())
}
