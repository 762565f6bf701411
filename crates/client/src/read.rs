//! Reading a file as programs see it, from whichever kind of blocks it has.
//!
//! Sequential reads run ahead in a task of their own; positional reads touch only what is asked for.
//! Every byte is checked against its CRC before a program sees it.

pub(crate) mod directory;
pub(crate) mod opened;
pub(crate) mod ranges;
mod run;
mod tail;

use crate::error::{ClientError, Result};
use crate::read_replicated;
use crate::read_striped;
use crate::session::Session;
use bytes::{Buf, Bytes};
use cairn_net::Boxed;
use cairn_stripe::Policy;
use cairn_trace::carried;
use opened::OpenedFile;
use run::{MOST_AT_ONCE, MOST_KEPT, Run};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Packets of replicas that a sequential read may be ahead. Cells of groups are read ahead by unit.
const AHEAD: usize = 4;

/// Bytes of such a packet, by its usual length.
const PACKET_LEN: u64 = 256 << 10;

/// Cells shorter than this are not asked for one by one where many are wanted.
const SHORT_CELL: u64 = 512 << 10;

/// An open file. Positional reads may run at the same time as each other; a sequential read needs
/// the reader for itself.
///
/// A reader at the start of its file reads ahead as far as memory allows. After [`FileReader::seek`] it asks for little
/// more than is wanted, and for four times as much each time that a read follows, until it reads ahead again.
pub struct FileReader {
    file: Arc<OpenedFile>,
    position: u64,
    run: Run,
    /// Where the first byte of `current` is in the file; elsewhere than `position` after a seek.
    at: u64,
    /// Bytes that are there.
    current: Bytes,
    /// Bytes of memory of `current`, if no stream brought it.
    kept: usize,
    /// What comes behind `current`.
    stream: Option<Stream>,
}

struct Stream {
    chunks: mpsc::Receiver<Result<Bytes>>,
    /// Where it ends in the file.
    end: u64,
    /// Bytes that come first and that nobody wants any more.
    unwanted: u64,
    /// Bytes that are on their way before somebody wants them.
    ahead: u64,
    /// Bytes of memory of the cells of a group that are at hand or used.
    held: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FileReader {
    /// Opens a file, to be decrypted or not if it is encrypted.
    pub(crate) async fn open(
        session: Arc<Session>,
        path: &str,
        decrypt: bool,
    ) -> Result<FileReader> {
        Ok(FileReader::new(Arc::new(OpenedFile::open(session, path, decrypt).await?)))
    }

    fn new(file: Arc<OpenedFile>) -> FileReader {
        let (run, current) = (Run::of_all(), Bytes::new());
        FileReader { file, position: 0, run, at: 0, current, kept: 0, stream: None }
    }

    /// A second reader of the opened file, at its start: what it knows of the file's blocks is shared,
    /// what is read ahead is not.
    pub fn another(&self) -> FileReader {
        FileReader::new(self.file.clone())
    }

    /// Bytes of the file when it was opened, with those of a last block that is being written that
    /// its DataNode lets readers see.
    pub fn len(&self) -> u64 {
        self.file.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.file.len == 0
    }

    /// The policy, when the file is erasure coded.
    pub fn policy(&self) -> Option<&Policy> {
        self.file.policy.as_ref()
    }

    /// Where the next sequential read starts.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves the sequential read. The next read finds out what was read ahead is still worth: a short way on it is
    /// read over.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// The next bytes of the file in as large a piece as is at hand, `None` at the end. They are not
    /// copied, except those of an encrypted file.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        self.next_chunk_up_to(usize::MAX).await
    }

    /// As [`FileReader::next_chunk`], with no more than `max` bytes; `None` also when `max` is 0.
    pub async fn next_chunk_up_to(&mut self, max: usize) -> Result<Option<Bytes>> {
        if max == 0 || self.position >= self.file.len {
            return Ok(None);
        }
        self.settle();
        while !self.receive().await? {
            // How much is wanted in the end nobody says.
            let ask = self.run.next(0);
            self.begin(ask).await?;
        }
        let chunk = self.current.split_to(max.min(self.current.len()));
        let chunk = self.file.plain(self.position, chunk);
        self.took(chunk.len());
        Ok(Some(chunk))
    }

    /// Bytes of memory that a sequential read has for what it holds now, used or kept for the next bytes: those of the
    /// cells of an erasure coded file, or of what was read after a jump.
    pub fn buffered_len(&self) -> usize {
        let held = self.stream.as_ref().map_or(0, |stream| stream.held.load(Ordering::Relaxed));
        held + self.kept
    }

    /// Gives up what was read ahead, and the connections for it.
    pub fn unbuffer(&mut self) {
        self.stream = None;
        (self.current, self.kept) = (Bytes::new(), 0);
    }

    /// Reads the next bytes into `buf`; returns how many, 0 only at the end or for an empty `buf`.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let wanted = self.file.len.saturating_sub(self.position).min(buf.len() as u64);
        if wanted == 0 {
            return Ok(0);
        }
        self.settle();
        let mut count = wanted as usize;
        while !self.receive().await? {
            let ask = self.run.next(wanted);
            if ask == Some(wanted) && wanted <= MOST_AT_ONCE {
                // All of it goes where it is wanted.
                let got = Box::pin(self.file.read_at(self.position, &mut buf[..count])).await?;
                return Ok(self.decrypted(&mut buf[..got]));
            }
            self.begin(ask).await?;
        }
        count = count.min(self.current.len());
        self.current.copy_to_slice(&mut buf[..count]);
        Ok(self.decrypted(&mut buf[..count]))
    }

    /// Hands out bytes from the place of the next read, as they are stored; returns how many.
    fn decrypted(&mut self, bytes: &mut [u8]) -> usize {
        if let Some(cipher) = &self.file.cipher {
            cipher.apply(self.position, bytes);
        }
        self.took(bytes.len());
        bytes.len()
    }

    fn took(&mut self, count: usize) {
        self.position += count as u64;
        self.at = self.position;
        self.run.took(count);
        if self.current.is_empty() {
            self.kept = 0;
        }
    }

    /// After a seek: keeps what is still of use of what was read ahead.
    fn settle(&mut self) {
        let from = std::mem::replace(&mut self.at, self.position);
        let ahead = self.position.checked_sub(from);
        let at_hand = self.current.len() as u64;
        if let Some(ahead) = ahead.filter(|ahead| *ahead <= at_hand) {
            self.current.advance(ahead as usize);
            return;
        }
        (self.current, self.kept) = (Bytes::new(), 0);
        let goes_on = match ahead {
            Some(ahead) => self.run.skips(ahead),
            None => {
                self.run.jump();
                false
            }
        };
        let over = ahead.unwrap_or_default() - at_hand.min(ahead.unwrap_or_default());
        match &mut self.stream {
            Some(stream) if goes_on && over <= stream.ahead && self.position < stream.end => {
                stream.unwanted += over;
            }
            stream => *stream = None,
        }
    }

    /// Waits for the next bytes of what was asked for; false where that has ended.
    async fn receive(&mut self) -> Result<bool> {
        while self.current.is_empty() {
            let Some(stream) = &mut self.stream else { return Ok(false) };
            match stream.chunks.recv().await {
                Some(Ok(mut chunk)) => {
                    let unwanted = stream.unwanted.min(chunk.len() as u64);
                    chunk.advance(unwanted as usize);
                    stream.unwanted -= unwanted;
                    self.current = chunk;
                }
                ended => {
                    let end = stream.end;
                    self.stream = None;
                    match ended {
                        Some(Err(error)) => return Err(error),
                        _ if self.position < end => {
                            let what = format!("{} ends at {}", self.file.path, self.position);
                            return Err(ClientError::Protocol(what));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(true)
    }

    /// Asks for the next bytes: so many, or all that are left.
    async fn begin(&mut self, ask: Option<u64>) -> Result<()> {
        let left = self.file.len - self.position;
        match ask.map(|len| len.min(left)) {
            Some(len) if len <= MOST_KEPT => {
                let mut bytes = vec![0; len as usize];
                let got = Box::pin(self.file.read_at(self.position, &mut bytes)).await?;
                bytes.truncate(got);
                (self.kept, self.current) = (bytes.capacity(), bytes.into());
            }
            len => {
                let end = self.position + len.unwrap_or(left);
                self.stream = Some(self.file.stream_range(self.position, end));
            }
        }
        Ok(())
    }

    /// Reads bytes from `offset` on into `buf`, and no others; returns how many, less than `buf` only
    /// at the end of the file.
    pub fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> Boxed<'a, Result<usize>> {
        self.file.read_plain_at(offset, buf)
    }
}

impl OpenedFile {
    /// Reads a range in order, ahead of the caller.
    fn stream_range(self: &Arc<Self>, start: u64, end: u64) -> Stream {
        let (chunks_ahead, ahead) = match &self.policy {
            Some(policy) => {
                (read_striped::chunks_ahead(policy), read_striped::ahead_len(self, policy))
            }
            None => (AHEAD, AHEAD as u64 * PACKET_LEN),
        };
        let (sink, chunks) = mpsc::channel(chunks_ahead);
        let held = Arc::<AtomicUsize>::default();
        let (file, counted) = (self.clone(), held.clone());
        let task = tokio::spawn(carried(async move {
            let done = match &file.policy {
                None => read_replicated::stream(&file, start..end, &sink).await,
                Some(policy) => {
                    read_striped::stream(&file, policy, start..end, &sink, counted).await
                }
            };
            if let Err(error) = done {
                // The reader may have gone.
                let _ = sink.send(Err(error)).await;
            }
        }));
        Stream { chunks, end, unwanted: 0, ahead, held, task: task.abort_handle() }
    }

    /// The bytes from `offset` on that were read, as they are before encryption.
    fn plain(&self, offset: u64, stored: Bytes) -> Bytes {
        match &self.cipher {
            Some(cipher) => cipher.decrypted(offset, stored),
            None => stored,
        }
    }

    /// As they are before encryption.
    fn read_plain_at<'a>(
        self: &'a Arc<Self>,
        offset: u64,
        buf: &'a mut [u8],
    ) -> Boxed<'a, Result<usize>> {
        Box::pin(async move {
            let count = self.read_at(offset, buf).await?;
            if let Some(cipher) = &self.cipher {
                cipher.apply(offset, &mut buf[..count]);
            }
            Ok(count)
        })
    }

    /// As they are stored.
    async fn read_at(self: &Arc<Self>, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let end = self.len.min(offset.saturating_add(buf.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        let buf = &mut buf[..(end - offset) as usize];
        let is_better_streamed = |policy: &Policy| {
            u64::from(policy.cell_len) < SHORT_CELL && buf.len() as u64 > 2 * policy.stripe_len()
        };
        if self.policy.as_ref().is_some_and(is_better_streamed) {
            let mut stream = self.stream_range(offset, end);
            let mut filled = 0;
            while filled < buf.len() {
                let what = || ClientError::Protocol(format!("{} is cut short", self.path));
                let chunk = stream.chunks.recv().await.ok_or_else(what)??;
                let count = chunk.len().min(buf.len() - filled);
                buf[filled..filled + count].copy_from_slice(&chunk[..count]);
                filled += count;
            }
            return Ok(filled);
        }
        let mut filled = 0;
        while filled < buf.len() {
            let at = offset + filled as u64;
            let located = self.block_at(at)?;
            let block = &located.block;
            let left = block.offset_in_file + block.block.len - at;
            let count = left.min((buf.len() - filled) as u64) as usize;
            let part = &mut buf[filled..filled + count];
            match &self.policy {
                None => read_replicated::read_at(self, at, part).await?,
                Some(policy) => read_striped::read_at(self, policy, at, part).await?,
            }
            filled += count;
        }
        Ok(filled)
    }
}
