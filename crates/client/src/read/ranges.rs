//! Many ranges of files at once: near ones are read as one, several at a time.

use super::{FileReader, OpenedFile};
use crate::error::{ClientError, Result};
use bytes::Bytes;
use cairn_trace::carried;
use std::ops::Range;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Ranges are not joined to longer ones than this: what is longer comes as quickly by itself.
const LONGEST_JOINED: u64 = 1 << 20;

/// How [`read_ranges`] reads.
#[derive(Clone, Copy, Debug)]
pub struct RangeOptions {
    /// Ranges with at most so many bytes between them are read as one.
    pub max_gap: u64,
    /// Reads that are under way at the same time; at least one is.
    pub at_once: usize,
}

impl Default for RangeOptions {
    fn default() -> RangeOptions {
        RangeOptions { max_gap: 32 << 10, at_once: 32 }
    }
}

/// What is read at once: bytes of a file, and which of the ranges lie in them.
struct Span {
    file: Arc<OpenedFile>,
    bytes: Range<u64>,
    parts: Vec<(usize, Range<u64>)>,
}

impl FileReader {
    /// Reads ranges of the file as [`read_ranges`] does.
    pub async fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        options: &RangeOptions,
    ) -> Vec<Result<Bytes>> {
        let wanted: Vec<_> = ranges.iter().map(|range| (self, range.clone())).collect();
        read_ranges(&wanted, options).await
    }
}

/// Reads ranges of files, in any order; each gets its bytes or its own error. They may be empty and overlap; what lies
/// behind the end of a file is not there, and no error. Ranges that were read as one share memory.
///
/// Hadoop 3.5.0 `PositionedReadable#readVectored` refuses ranges that overlap or go past the end.
pub async fn read_ranges(
    wanted: &[(&FileReader, Range<u64>)],
    options: &RangeOptions,
) -> Vec<Result<Bytes>> {
    let mut answers: Vec<Option<Result<Bytes>>> = Vec::new();
    answers.resize_with(wanted.len(), || None);
    let mut spans = spans(wanted, options.max_gap).into_iter();
    let mut reads = JoinSet::new();
    loop {
        let room = options.at_once.max(1).saturating_sub(reads.len());
        for span in spans.by_ref().take(room) {
            reads.spawn(carried(read_span(span)));
        }
        match reads.join_next().await {
            Some(Ok(found)) => {
                found.into_iter().for_each(|(index, answer)| answers[index] = Some(answer));
            }
            Some(Err(error)) => tracing::warn!(%error, "a read of ranges"),
            None => break,
        }
    }
    let failed = || Err(ClientError::Protocol("the read of a range has ended".to_string()));
    answers.into_iter().map(|answer| answer.unwrap_or_else(failed)).collect()
}

/// Joins what is near each other.
fn spans(wanted: &[(&FileReader, Range<u64>)], max_gap: u64) -> Vec<Span> {
    let within = |(index, (reader, range)): (usize, &(&FileReader, Range<u64>))| {
        let end = range.end.min(reader.file.len);
        (index, reader.file.clone(), range.start.min(end)..end)
    };
    let mut parts: Vec<_> = wanted.iter().enumerate().map(within).collect();
    parts.sort_by_key(|(_, file, range)| (Arc::as_ptr(file), range.start));
    let mut spans: Vec<Span> = Vec::new();
    for (index, file, range) in parts {
        let joins = |span: &&mut Span| {
            Arc::ptr_eq(&span.file, &file)
                && range.start <= span.bytes.end.saturating_add(max_gap)
                && range.end.max(span.bytes.end) - span.bytes.start <= LONGEST_JOINED
        };
        match spans.last_mut().filter(joins) {
            Some(span) => {
                span.bytes.end = span.bytes.end.max(range.end);
                span.parts.push((index, range));
            }
            None => spans.push(Span { file, bytes: range.clone(), parts: vec![(index, range)] }),
        }
    }
    spans
}

async fn read_span(span: Span) -> Vec<(usize, Result<Bytes>)> {
    let Span { file, bytes, parts } = span;
    let begin = bytes.start;
    let error = match read(&file, bytes).await {
        Ok(all) => {
            let at = |place: u64| all.len().min((place - begin) as usize);
            let part = |range: Range<u64>| all.slice(at(range.start)..at(range.end));
            return parts.into_iter().map(|(index, range)| (index, Ok(part(range)))).collect();
        }
        Err(error) => error,
    };
    if let [(index, _)] = parts[..] {
        return vec![(index, Err(error))];
    }
    // The others need not suffer from the bytes of one.
    let mut answers = Vec::new();
    for (index, range) in parts {
        answers.push((index, read(&file, range).await));
    }
    answers
}

async fn read(file: &Arc<OpenedFile>, range: Range<u64>) -> Result<Bytes> {
    let too_long = |_| ClientError::Argument(format!("{}: too long a range", file.path));
    let mut bytes = vec![0; usize::try_from(range.end - range.start).map_err(too_long)?];
    let filled = file.read_plain_at(range.start, &mut bytes).await?;
    bytes.truncate(filled);
    Ok(bytes.into())
}
