//! Reads frames from a socket into memory that grows only as bytes arrive.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use cairn_security::sasl::Open;
use cairn_wire::{WireError, rpc};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::channel::{Channel, Side};

/// What is reserved for a read when little is known of what comes.
const READ_CHUNK: usize = 8 << 10;
/// Frames up to this are copied out of the read buffer.
const COPY_MAX: usize = 1 << 10;
/// A read buffer above this is given back once its frame is handed out.
const KEEP_BUFFER: usize = 256 << 10;

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The socket failed, or ended within a frame (`UnexpectedEof`).
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer announced a frame that is not taken.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// No byte came for as long as the caller wanted to wait.
    #[error("no data for {0:?}")]
    Idle(Duration),
}

/// Reads a byte stream by pieces of known length. Every method may be cancelled and called again:
/// what has been read stays in the buffer.
pub(crate) struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    idle: IdleTimer,
    /// Bytes that have come since they were asked for last.
    received: u64,
}

/// One timer for all waits of a connection: each only says when it should end, and a timer that comes too early is
/// set anew. Almost none of them ever ends.
#[derive(Default)]
struct IdleTimer(Option<Pin<Box<Sleep>>>);

impl IdleTimer {
    /// Ready once `due` has passed.
    fn poll(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() > due {
            timer.as_mut().reset(due);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}

impl<R> FrameReader<Channel<R>> {
    /// See [`Channel::enclose`]: what has been read already is the first of it.
    pub(crate) fn enclose(&mut self, open: Box<dyn Open>, side: Side, limit: u32) {
        let raw = std::mem::take(&mut self.buffer);
        self.source.enclose(open, side, raw, limit);
    }
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(source: R) -> FrameReader<R> {
        FrameReader { source, buffer: BytesMut::new(), idle: IdleTimer::default(), received: 0 }
    }

    /// How many bytes have come since this was asked last.
    pub(crate) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// True when part of a frame (or preamble) has been read.
    pub(crate) fn is_within_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next `N` bytes, `None` when the stream ended before the first of them.
    pub(crate) async fn read_array<const N: usize>(
        &mut self,
        idle: Duration,
    ) -> Result<Option<[u8; N]>, FrameError> {
        if !self.fill(N, idle).await? {
            return Ok(None);
        }
        let mut array = [0; N];
        array.copy_from_slice(&self.buffer.split_to(N));
        Ok(Some(array))
    }

    /// The next frame of at most `limit` bytes without its length, `None` when the stream ended
    /// before it.
    pub(crate) async fn read_frame(
        &mut self,
        limit: u32,
        idle: Duration,
    ) -> Result<Option<Bytes>, FrameError> {
        let Some(total) = self.begin_frame(limit, idle).await? else { return Ok(None) };
        Ok(Some(self.end_frame(total, idle).await?))
    }

    /// Bytes of the next frame of at most `limit`, its length counted; the frame is to be read with
    /// [`FrameReader::end_frame`]. `None` when the stream ended before it.
    pub(crate) async fn begin_frame(
        &mut self,
        limit: u32,
        idle: Duration,
    ) -> Result<Option<usize>, FrameError> {
        if !self.fill(4, idle).await? {
            return Ok(None);
        }
        let mut prefix = [0; 4];
        prefix.copy_from_slice(&self.buffer[..4]);
        Ok(Some(4 + rpc::frame_len(prefix, limit)?))
    }

    /// The frame that takes the next `total` bytes.
    pub(crate) async fn end_frame(
        &mut self,
        total: usize,
        idle: Duration,
    ) -> Result<Bytes, FrameError> {
        self.fill(total, idle).await?;
        Ok(self.take(total))
    }

    /// Reads until so many bytes of a frame that has begun are buffered.
    pub(crate) async fn read_until(
        &mut self,
        wanted: usize,
        idle: Duration,
    ) -> Result<(), FrameError> {
        while !self.read_some(wanted, idle).await? {}
        Ok(())
    }

    /// Reads once towards `wanted` bytes of a frame that has begun, and nothing behind them. Returns whether they are
    /// buffered.
    pub(crate) async fn read_some(
        &mut self,
        wanted: usize,
        idle: Duration,
    ) -> Result<bool, FrameError> {
        if self.buffer.len() < wanted {
            self.read_once(wanted, wanted, idle).await?;
        }
        Ok(self.buffer.len() >= wanted)
    }

    /// As [`FrameReader::read_frame`], if all of the frame has been read already and it is no longer than `most` bytes
    /// with its length.
    pub(crate) fn buffered_frame(
        &mut self,
        limit: u32,
        most: usize,
    ) -> Result<Option<Bytes>, FrameError> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let total = 4 + rpc::frame_len(*prefix, limit)?;
        Ok((total <= most && self.buffer.len() >= total).then(|| self.take(total)))
    }

    /// Takes a frame of `total` bytes, its length counted, out of the buffer.
    fn take(&mut self, total: usize) -> Bytes {
        if total <= COPY_MAX {
            // The buffer can be read into again while somebody still holds the frame.
            let frame = Bytes::copy_from_slice(&self.buffer[4..total]);
            self.buffer.advance(total);
            return frame;
        }
        let frame = self.buffer.split_to(total).freeze().slice(4..);
        if self.buffer.is_empty() && total > KEEP_BUFFER {
            self.buffer = BytesMut::new();
        }
        frame
    }

    /// Reads until `wanted` bytes are buffered; false when the stream ended with none buffered.
    async fn fill(&mut self, wanted: usize, idle: Duration) -> Result<bool, FrameError> {
        while self.buffer.len() < wanted {
            if !self.read_once(wanted, usize::MAX, idle).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once, for `wanted` bytes in the buffer and `most` at most; false when the stream ended with none
    /// buffered.
    async fn read_once(
        &mut self,
        wanted: usize,
        most: usize,
        idle: Duration,
    ) -> Result<bool, FrameError> {
        let have = self.buffer.len();
        self.buffer.reserve(wanted.saturating_sub(have).min(have).max(READ_CHUNK));
        let due = Instant::now().checked_add(idle);
        let FrameReader { source, buffer, idle: timer, .. } = self;
        let mut room = buffer.limit(most - have);
        let mut reading = std::pin::pin!(source.read_buf(&mut room));
        let read = poll_fn(|cx| match (reading.as_mut().poll(cx), due) {
            (Poll::Ready(read), _) => Poll::Ready(Ok(read)),
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(due)) => timer.poll(due, cx).map(|()| Err(FrameError::Idle(idle))),
        });
        match read.await?? {
            0 if have == 0 => Ok(false),
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            len => {
                self.received += len as u64;
                Ok(true)
            }
        }
    }

    /// Throws away what the peer still sends, until it closes, or `patience` is over.
    ///
    /// Closing a socket with unread bytes resets it, and the peer may lose the last answer.
    pub(crate) async fn drain(&mut self, patience: Duration) {
        let discard = async {
            loop {
                self.buffer.clear();
                self.buffer.reserve(READ_CHUNK);
                match self.source.read_buf(&mut self.buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        };
        // Being out of patience is as good an end as any.
        let _ = timeout(patience, discard).await;
    }
}
