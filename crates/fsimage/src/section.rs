//! The messages of a section, one after the other, out of a buffer that grows with the longest of them only.

use crate::error::{ImageError, Malformed};
use crate::fields::number;
use flate2::bufread::{GzDecoder, ZlibDecoder};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::ops::Range;

/// Longest message: a directory of ten million names, or a file of four million blocks.
const MESSAGE_MAX: u64 = 128 << 20;
/// What is read at a time.
const READ_LEN: usize = 256 << 10;
/// Longest form of a length.
const LENGTH_LEN: usize = 10;

/// How sections are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Zlib,
    Gzip,
}

impl Codec {
    /// The codec of Hadoop's class.
    pub fn of(class: &str) -> Option<Codec> {
        match class {
            "" => Some(Codec::None),
            "org.apache.hadoop.io.compress.DefaultCodec"
            | "org.apache.hadoop.io.compress.DeflateCodec" => Some(Codec::Zlib),
            "org.apache.hadoop.io.compress.GzipCodec" => Some(Codec::Gzip),
            _ => None,
        }
    }
}

type Raw<'a> = BufReader<Take<&'a mut dyn Read>>;

/// The bytes of a section. Each of its parts is compressed by itself, so streams stand one behind the other.
enum Source<'a> {
    Plain(Raw<'a>),
    Zlib(ZlibDecoder<Raw<'a>>),
    Gzip(GzDecoder<Raw<'a>>),
    End,
}

impl<'a> Source<'a> {
    fn of(codec: Codec, mut raw: Raw<'a>) -> io::Result<Source<'a>> {
        Ok(match codec {
            _ if raw.fill_buf()?.is_empty() => Source::End,
            Codec::None => Source::Plain(raw),
            Codec::Zlib => Source::Zlib(ZlibDecoder::new(raw)),
            Codec::Gzip => Source::Gzip(GzDecoder::new(raw)),
        })
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = match self {
                Source::Plain(raw) => return raw.read(out),
                Source::Zlib(raw) => raw.read(out)?,
                Source::Gzip(raw) => raw.read(out)?,
                Source::End => return Ok(0),
            };
            if len > 0 {
                return Ok(len);
            }
            *self = match std::mem::replace(self, Source::End) {
                Source::Zlib(ended) => Source::of(Codec::Zlib, ended.into_inner())?,
                Source::Gzip(ended) => Source::of(Codec::Gzip, ended.into_inner())?,
                other => other,
            };
        }
    }
}

/// The messages of a section.
pub struct Section<'a> {
    name: String,
    source: Source<'a>,
    buffer: Vec<u8>,
    /// Where the next message begins, and how far the buffer is filled.
    at: usize,
    filled: usize,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        name: String,
        codec: Codec,
        file: &'a mut dyn Read,
        len: u64,
    ) -> Result<Section<'a>, ImageError> {
        let raw = BufReader::with_capacity(READ_LEN, file.take(len));
        let source = Source::of(codec, raw)?;
        Ok(Section { name, source, buffer: vec![0; READ_LEN], at: 0, filled: 0 })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next message; none at the end.
    pub fn message(&mut self) -> Result<Option<&[u8]>, ImageError> {
        self.record(Ok)
    }

    /// What the next message says; none at the end.
    pub(crate) fn record<'s, T>(
        &'s mut self,
        decode: impl FnOnce(&'s [u8]) -> Result<T, Malformed>,
    ) -> Result<Option<T>, ImageError> {
        let Some(message) = self.advance()? else { return Ok(None) };
        let this: &'s Section<'a> = self;
        decode(&this.buffer[message]).map(Some).map_err(|why| this.damaged(why))
    }

    /// What the next message says, which must be there.
    pub(crate) fn required<'s, T>(
        &'s mut self,
        decode: impl FnOnce(&'s [u8]) -> Result<T, Malformed>,
    ) -> Result<T, ImageError> {
        let missing = Malformed("a record is missing");
        let missing = self.damaged(missing);
        self.record(decode)?.ok_or(missing)
    }

    /// Where the next message is in the buffer.
    fn advance(&mut self) -> Result<Option<Range<usize>>, ImageError> {
        if self.filled - self.at < LENGTH_LEN {
            self.fill(LENGTH_LEN)?;
        }
        if self.filled == self.at {
            return Ok(None);
        }
        let mut rest = &self.buffer[self.at..self.filled];
        let before = rest.len();
        let len = number(&mut rest).map_err(|why| self.damaged(why))?;
        self.at += before - rest.len();
        if len > MESSAGE_MAX {
            return Err(ImageError::TooLong { section: self.name.clone(), len, max: MESSAGE_MAX });
        }
        let len = len as usize;
        if self.filled - self.at < len {
            self.fill(len)?;
        }
        let message = self.at..self.at + len;
        if message.end > self.filled {
            return Err(self.damaged(Malformed("it ends within a record")));
        }
        self.at = message.end;
        Ok(Some(message))
    }

    /// Reads until `wanted` bytes are there, or to the end. The buffer grows by what has come, never by what was promised.
    fn fill(&mut self, wanted: usize) -> Result<(), ImageError> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        while self.filled < wanted {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
            let len = self.source.read(&mut self.buffer[self.filled..])?;
            if len == 0 {
                break;
            }
            self.filled += len;
        }
        Ok(())
    }

    pub(crate) fn damaged(&self, why: Malformed) -> ImageError {
        ImageError::Damaged { section: self.name.clone(), what: why.0 }
    }
}

#[cfg(test)]
mod tests;
