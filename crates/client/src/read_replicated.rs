//! Reading replicated blocks: the nearest replica first, another when it fails.
//!
//! Source: Hadoop 3.5.0 `DFSInputStream`.

use crate::datanode::pace::Expected;
use crate::datanode::read_block::{BlockReader, read_whole};
use crate::datanode::read_range::ReadRange;
use crate::error::{ClientError, Result};
use crate::protocol::convert::Located;
use crate::read::{OpenedFile, REFRESHES};
use bytes::Bytes;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Sends the bytes of a range of the file in order.
pub(crate) async fn stream(
    file: &OpenedFile,
    range: Range<u64>,
    sink: &mpsc::Sender<Result<Bytes>>,
) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        let block = file.block_at(at)?.block;
        let end = (block.offset_in_file + block.block.len).min(range.end);
        let mut source = Source::new(file, at..end);
        while let Some(chunk) = source.next().await? {
            at += chunk.len() as u64;
            if sink.send(Ok(chunk)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Fills `buf` with the bytes from `offset` on, which lie in one block.
pub(crate) async fn read_at(file: &OpenedFile, offset: u64, buf: &mut [u8]) -> Result<()> {
    let mut refreshes = 0;
    loop {
        match race(file, offset, buf.len() as u64).await {
            Ok(bytes) => {
                buf.copy_from_slice(&bytes);
                return Ok(());
            }
            Err(error) if refreshes == REFRESHES => return Err(error),
            Err(_) => file.refresh(offset).await?,
        }
        refreshes += 1;
    }
}

/// Bytes of one block from one replica; when its answer is late, the next one is asked as well, and
/// the first to answer serves.
async fn race(file: &OpenedFile, offset: u64, len: u64) -> Result<Vec<u8>> {
    let located = file.block_at(offset)?;
    let block = &located.block.block;
    let inner = &file.fs.inner;
    let longest = inner.config.hedge_after;
    let mut untried = candidates(file, &located).into_iter();
    let mut next = untried.next();
    let mut reads = JoinSet::new();
    let mut out: Vec<usize> = Vec::new();
    let mut last = "no location".to_string();
    loop {
        if let Some(index) = next.take() {
            let range = ReadRange {
                block: block.clone(),
                token: located.token(index),
                offset: offset - located.block.offset_in_file,
                len,
            };
            let addr = located.block.locations[index].addr.clone();
            let read = read_whole(inner.clone(), addr, range);
            reads.spawn(async move {
                let start = Instant::now();
                let answer = read.await;
                (index, start.elapsed(), answer)
            });
            out.push(index);
        }
        let bound = if untried.len() > 0 { inner.paces.bound(longest) } else { Duration::MAX };
        match tokio::time::timeout(bound, reads.join_next()).await {
            Ok(Some(Ok((index, wait, Ok(bytes))))) => {
                inner.paces.answered(&located.block.locations[index].addr, wait, longest);
                return Ok(bytes);
            }
            Ok(Some(Ok((index, _, Err(error))))) => {
                file.mark_bad(&located, index, &error);
                out.retain(|asked| *asked != index);
                last = error.to_string();
                next = untried.next();
            }
            Ok(Some(Err(panic))) => return Err(ClientError::Protocol(panic.to_string())),
            Ok(None) => return Err(ClientError::NoReplica { block: block.to_string(), last }),
            Err(_) => {
                let now = Instant::now();
                out.iter().for_each(|index| {
                    inner.paces.overran(&located.block.locations[*index].addr, now);
                });
                next = untried.next();
            }
        }
    }
}

/// The replicas that are not known to be bad, the nearest first, those that may not answer last.
fn candidates(file: &OpenedFile, located: &Located) -> Vec<usize> {
    let (inner, now) = (&file.fs.inner, Instant::now());
    let locations = &located.block.locations;
    let is_bad = |index: &usize| file.is_bad(located.block.block.id, &locations[*index].addr);
    let mut order: Vec<usize> = (0..locations.len()).filter(|index| !is_bad(index)).collect();
    order.sort_by_key(|index| {
        let addr = &locations[*index].addr;
        (inner.silent.is_avoided(addr), inner.paces.expect(addr, now) == Expected::Slow)
    });
    order
}

/// A range of one block, read from one replica after the other until it is whole.
struct Source<'a> {
    file: &'a OpenedFile,
    /// What is still to be read, as offsets in the file.
    range: Range<u64>,
    reader: Option<(BlockReader, Located, usize)>,
    refreshes: u32,
}

impl<'a> Source<'a> {
    fn new(file: &'a OpenedFile, range: Range<u64>) -> Source<'a> {
        Source { file, range, reader: None, refreshes: 0 }
    }

    async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.range.start < self.range.end {
            let (mut reader, located, index) = match self.reader.take() {
                Some(reader) => reader,
                None => self.open().await?,
            };
            let error = match reader.next().await {
                Ok(Some(chunk)) => {
                    self.range.start += chunk.len() as u64;
                    self.reader = Some((reader, located, index));
                    return Ok(Some(chunk));
                }
                Ok(None) => ClientError::Protocol("the replica is too short".to_string()),
                Err(error) => error,
            };
            self.file.mark_bad(&located, index, &error);
        }
        if let Some((reader, ..)) = self.reader.take() {
            reader.finish().await;
        }
        Ok(None)
    }

    /// Opens the first replica that answers; asks for new locations when none does.
    async fn open(&mut self) -> Result<(BlockReader, Located, usize)> {
        let mut last = "no location".to_string();
        loop {
            let located = self.file.block_at(self.range.start)?;
            let block = &located.block.block;
            for index in candidates(self.file, &located) {
                let location = &located.block.locations[index];
                let range = ReadRange {
                    block: block.clone(),
                    token: located.token(index),
                    offset: self.range.start - located.block.offset_in_file,
                    len: self.range.end - self.range.start,
                };
                let fs = self.file.fs.inner.clone();
                match BlockReader::open(fs, location.addr.clone(), &range).await {
                    Ok(reader) => return Ok((reader, located, index)),
                    Err(error) => {
                        self.file.mark_bad(&located, index, &error);
                        last = error.to_string();
                    }
                }
            }
            if self.refreshes == REFRESHES {
                return Err(ClientError::NoReplica { block: block.to_string(), last });
            }
            self.refreshes += 1;
            self.file.refresh(self.range.start).await?;
        }
    }
}
