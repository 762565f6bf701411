//! Reading replicated blocks: the nearest replica first, another when it fails.
//!
//! Source: Hadoop 3.5.0 `DFSInputStream`.

use crate::datanode::hedges::Hedge;
use crate::datanode::pace::Expected;
use crate::datanode::read_block::BlockReader;
use crate::datanode::read_into::read_into;
use crate::datanode::read_range::ReadRange;
use crate::datanode::reads::{Place, Reads};
use crate::datanode::silent::is_closed;
use crate::error::{ClientError, Result};
use crate::protocol::convert::Located;
use crate::read::opened::{LocatedRef, OpenedFile, REFRESHES};
use bytes::Bytes;
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Sends the bytes of a range of the file in order.
pub(crate) async fn stream(
    file: &OpenedFile,
    range: Range<u64>,
    sink: &mpsc::Sender<Result<Bytes>>,
) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        let located = file.block_at(at)?;
        let block = &located.block;
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
        match race(file, offset, buf).await {
            Ok(None) => return Ok(()),
            Ok(Some(bytes)) => {
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
/// the first to answer serves. Returns the bytes if they could not be put into `buf`, because the late one had it.
async fn race(file: &OpenedFile, offset: u64, buf: &mut [u8]) -> Result<Option<Vec<u8>>> {
    let located = file.block_at(offset)?;
    let block = &located.block.block;
    let session = &file.session;
    let (began, longest) = (Instant::now(), session.config.hedge_after);
    let mut untried = candidates(file, &located).into_iter();
    let mut next = untried.next();
    let len = buf.len();
    let mut memory = Some(buf);
    let mut reads = Reads::new();
    let mut out: Vec<usize> = Vec::new();
    let mut hedge: Option<Hedge<'_>> = None;
    let mut last = "no location".to_string();
    let mut is_doubtful = next.is_some_and(|index| {
        let addr = &located.block.locations[index].addr;
        session.expect(&session.paces, addr, began) == Expected::Uncertain
    });
    loop {
        while let Some(index) = next.take() {
            let range = ReadRange {
                block: block.clone(),
                token: located.token(index),
                offset: offset - located.block.offset_in_file,
                len: len as u64,
                long_packets: false,
            };
            let addr = &located.block.locations[index].addr;
            let apart = || Place::Apart(session.scratch.take(len));
            let mut place = memory.take().map_or_else(apart, Place::Caller);
            reads.push(async move {
                let start = Instant::now();
                let answer = read_into(session, addr, &range, &file.shape, place.bytes_mut()).await;
                (index, start.elapsed(), place, answer)
            });
            out.push(index);
            // Nobody knows whether it is quick again: the next one is asked beside it.
            if std::mem::take(&mut is_doubtful) {
                hedge = session.hedges.begin(session.config.hedged_reads);
                next = hedge.as_ref().and_then(|_| untried.next());
            }
        }
        let bound = if untried.len() > 0 { session.paces.bound(longest) } else { Duration::MAX };
        match tokio::time::timeout(bound, reads.next()).await {
            Ok(Some((index, wait, place, Ok(())))) => {
                let addr = &located.block.locations[index].addr;
                session.paces.answered(addr, wait, longest);
                session.silent.answered(addr);
                file.report_corrupt(&located);
                if let (Some(hedge), Some(late)) = (hedge, out.first().filter(|i| **i != index)) {
                    let late = &located.block.locations[*late].addr;
                    session.paces.overran(late, began, Instant::now());
                    hedge.won();
                }
                return Ok(match place {
                    Place::Caller(_) => None,
                    Place::Apart(bytes) => Some(bytes),
                });
            }
            Ok(Some((index, _, place, Err(error)))) => {
                file.mark_bad(&located, index, &error);
                if let Place::Caller(given_back) = place {
                    memory = Some(given_back);
                }
                out.retain(|asked| *asked != index);
                last = error.to_string();
                next = untried.next();
            }
            Ok(None) => {
                file.report_corrupt(&located);
                return Err(ClientError::NoReplica { block: block.to_string(), last });
            }
            Err(_) => {
                if hedge.is_none() {
                    hedge = session.hedges.begin(session.config.hedged_reads);
                }
                next = hedge.as_ref().and_then(|_| untried.next());
            }
        }
    }
}

/// The replicas that are not known to be bad, the nearest first, those that may not answer last.
fn candidates(file: &OpenedFile, located: &Located) -> Vec<usize> {
    let (session, now) = (&file.session, Instant::now());
    let locations = &located.block.locations;
    let is_bad = |index: &usize| file.is_bad(located.block.block.id, &locations[*index].addr);
    let mut order: Vec<usize> = (0..locations.len()).filter(|index| !is_bad(index)).collect();
    order.sort_by_key(|index| {
        let addr = &locations[*index].addr;
        let is_silent = session.silent.expect(addr) != Expected::Timely;
        (is_silent, session.paces.expect(addr, now) == Expected::Slow)
    });
    order
}

/// A range of one block, read from one replica after the other until it is whole.
struct Source<'a> {
    file: &'a OpenedFile,
    /// What is still to be read, as offsets in the file.
    range: Range<u64>,
    reader: Option<(BlockReader, LocatedRef, usize)>,
    /// Whether bytes came from `reader`.
    has_delivered: bool,
    /// Since bytes came.
    refreshes: u32,
}

impl<'a> Source<'a> {
    fn new(file: &'a OpenedFile, range: Range<u64>) -> Source<'a> {
        Source { file, range, reader: None, has_delivered: false, refreshes: 0 }
    }

    async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.range.start < self.range.end {
            let (mut reader, located, index) = match self.reader.take() {
                Some(reader) => reader,
                None => self.open().await?,
            };
            let error = match reader.next().await {
                Ok(Some(chunk)) => {
                    if !self.has_delivered {
                        self.file.report_corrupt(&located);
                    }
                    self.range.start += chunk.len() as u64;
                    self.reader = Some((reader, located, index));
                    (self.has_delivered, self.refreshes) = (true, 0);
                    return Ok(Some(chunk));
                }
                Ok(None) => ClientError::Protocol("the replica is too short".to_string()),
                Err(error) => error,
            };
            // One that went on until its DataNode closed it can be opened anew there.
            if !(std::mem::take(&mut self.has_delivered) && is_closed(&error)) {
                self.file.mark_bad(&located, index, &error);
            }
        }
        if let Some((reader, ..)) = self.reader.take() {
            reader.finish().await;
        }
        Ok(None)
    }

    /// Opens the first replica that answers; asks for new locations when none does.
    async fn open(&mut self) -> Result<(BlockReader, LocatedRef, usize)> {
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
                    long_packets: false,
                };
                let session = self.file.session.clone();
                match BlockReader::open(session, location.addr.clone(), &range).await {
                    Ok(reader) => return Ok((reader, located, index)),
                    Err(error) => {
                        self.file.mark_bad(&located, index, &error);
                        last = error.to_string();
                    }
                }
            }
            self.file.report_corrupt(&located);
            if self.refreshes == REFRESHES {
                return Err(ClientError::NoReplica { block: block.to_string(), last });
            }
            self.refreshes += 1;
            self.file.refresh(self.range.start).await?;
        }
    }
}
