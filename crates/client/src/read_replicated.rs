//! Reading replicated blocks: the nearest replica first, another when it fails.
//!
//! Source: Hadoop 3.5.0 `DFSInputStream`.

use crate::datanode::read_block::{BlockReader, ReadRange};
use crate::error::{ClientError, Result};
use crate::protocol::convert::Located;
use crate::read::{OpenedFile, REFRESHES};
use bytes::Bytes;
use std::ops::Range;
use tokio::sync::mpsc;

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
    let mut source = Source::new(file, offset..offset + buf.len() as u64);
    let mut filled = 0;
    while let Some(chunk) = source.next().await? {
        buf[filled..filled + chunk.len()].copy_from_slice(&chunk);
        filled += chunk.len();
    }
    Ok(())
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
            let silent = &self.file.fs.inner.silent;
            let mut order: Vec<_> = located.block.locations.iter().enumerate().collect();
            order.sort_by_key(|(_, location)| silent.is_avoided(&location.addr));
            for (index, location) in order {
                if self.file.is_bad(block.id, &location.addr) {
                    continue;
                }
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
