//! What operations are made of: Java's numbers and Hadoop's texts.
//!
//! Source: Hadoop 3.5.0 `FSImageSerialization`, `WritableUtils`, `UTF8`, `Text`.

use crate::error::Malformed;
use crate::inode::Block;

/// Most blocks of a file. Source: Hadoop 3.5.0 `FSEditLogOp.AddCloseOp#MAX_BLOCKS`.
const BLOCKS_MAX: usize = 64 << 20;
/// What a block takes at least, in the compact form.
const BLOCK_MIN: usize = 10;

/// Fields that are still to be read.
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn of(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Fails if anything is left.
    pub fn end(&self) -> Result<(), Malformed> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Malformed("it has more than is known of it")),
        }
    }

    /// Leaves what follows unread.
    pub fn rest(&mut self) {
        self.rest = &[];
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let cut = self.rest.split_at_checked(len);
        let (bytes, rest) = cut.ok_or(Malformed("a field ends early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let cut = self.rest.split_first_chunk();
        let (bytes, rest) = cut.ok_or(Malformed("a field ends early"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.byte()? != 0)
    }

    pub fn short(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn int(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn long(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A number that is never negative.
    pub fn count(&mut self) -> Result<u64, Malformed> {
        u64::try_from(self.long()?).map_err(|_| Malformed("a number is negative"))
    }

    /// How many of something follow, each of which takes `min` bytes at least.
    pub fn len(&mut self, min: usize) -> Result<usize, Malformed> {
        let len = self.int()? as usize;
        self.fits(len, min)
    }

    fn fits(&self, len: usize, min: usize) -> Result<usize, Malformed> {
        let bytes = len.checked_mul(min).filter(|bytes| *bytes <= self.rest.len());
        bytes.map(|_| len).ok_or(Malformed("a list ends early"))
    }

    /// A number of which small ones take one byte.
    ///
    /// Source: Hadoop 3.5.0 `WritableUtils#readVLong`.
    fn short_long(&mut self) -> Result<i64, Malformed> {
        let first = self.byte()? as i8;
        let (len, is_negative) = match first {
            -112.. => return Ok(i64::from(first)),
            -120..=-113 => (-112 - i32::from(first), false),
            _ => (-120 - i32::from(first), true),
        };
        let bytes = self.bytes(len as usize)?;
        let value = bytes.iter().fold(0, |value, byte| value << 8 | i64::from(*byte));
        Ok(if is_negative { !value } else { value })
    }

    /// A text behind its length in two bytes. Java's characters stand there one by one, so that one beyond sixteen bits is
    /// two of three bytes each.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let len = usize::from(self.short()?);
        let bytes = self.bytes(len)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => characters(bytes),
        }
    }

    /// Bytes behind their length in two bytes.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::from(self.short()?);
        self.bytes(len)
    }

    /// A text in UTF-8 behind its length, which may take one byte.
    pub fn utf8(&mut self) -> Result<String, Malformed> {
        let len = usize::try_from(self.short_long()?);
        let bytes = self.bytes(len.map_err(|_| Malformed("a length is negative"))?)?;
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))?;
        Ok(text.to_string())
    }

    /// A message of protobuf behind its length.
    pub fn message(&mut self) -> Result<&'a [u8], Malformed> {
        let len = crate::fields::number(&mut self.rest)?;
        self.bytes(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// Blocks with all of their numbers.
    pub fn blocks(&mut self) -> Result<Vec<Block>, Malformed> {
        let len = self.len(24)?;
        check_blocks(len)?;
        (0..len)
            .map(|_| {
                let (id, len, stamp) = (self.long()?, self.count()?, self.count()?);
                Ok(Block { id, stamp, len })
            })
            .collect()
    }

    /// Blocks whose lengths and stamps are told by how they differ from those before.
    ///
    /// Source: Hadoop 3.5.0 `FSImageSerialization#readCompactBlockArray`.
    pub fn compact_blocks(&mut self) -> Result<Vec<Block>, Malformed> {
        let len = usize::try_from(self.short_long()?);
        let len = self.fits(len.map_err(|_| Malformed("a length is negative"))?, BLOCK_MIN)?;
        check_blocks(len)?;
        let (mut all, mut bytes, mut stamp) = (Vec::with_capacity(len), 0_i64, 0_i64);
        for _ in 0..len {
            let id = self.long()?;
            bytes = bytes.wrapping_add(self.short_long()?);
            stamp = stamp.wrapping_add(self.short_long()?);
            let number =
                |of: i64| u64::try_from(of).map_err(|_| Malformed("a block has a negative number"));
            all.push(Block { id, stamp: number(stamp)?, len: number(bytes)? });
        }
        Ok(all)
    }
}

fn check_blocks(len: usize) -> Result<(), Malformed> {
    match len <= BLOCKS_MAX {
        true => Ok(()),
        false => Err(Malformed("it has more blocks than a file can have")),
    }
}

/// A text of Java's characters, each in one to three bytes.
fn characters(bytes: &[u8]) -> Result<String, Malformed> {
    let wrong = Malformed("a text is not UTF-8");
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().map(|byte| u16::from(*byte));
    let more = |rest: &mut dyn Iterator<Item = u16>| {
        rest.next().filter(|byte| byte & 0xc0 == 0x80).map(|byte| byte & 0x3f).ok_or(wrong)
    };
    while let Some(first) = rest.next() {
        units.push(match first {
            0..0x80 => first,
            0xc0..0xe0 => (first & 0x1f) << 6 | more(&mut rest)?,
            0xe0..0xf0 => (first & 0x0f) << 12 | more(&mut rest)? << 6 | more(&mut rest)?,
            _ => return Err(wrong),
        });
    }
    String::from_utf16(&units).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_java_writes_them() {
        let cases: [(&[u8], i64); 8] = [
            (&[0], 0),
            (&[0x7f], 127),
            (&[0x90], -112),
            (&[0x8f, 0x80], 128),
            (&[0x8e, 0x04, 0x00], 1024),
            (&[0x87, 0x80], -129),
            (&[0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MAX),
            (&[0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MIN),
        ];
        for (bytes, value) in cases {
            assert_eq!(Input::of(bytes).short_long(), Ok(value), "{bytes:x?}");
        }
    }

    #[test]
    fn texts_are_as_java_writes_them() {
        let cases: [(&[u8], Option<&str>); 5] = [
            (b"\x00\x02hi", Some("hi")),
            ("\u{0}\u{5}\u{fc}\u{6587}".as_bytes(), Some("\u{fc}\u{6587}")),
            (b"\x00\x06\xed\xa0\xbd\xed\xb8\x80", Some("\u{1f600}")),
            (b"\x00\x03\xed\xa0\xbd", None),
            (b"\x00\x03hi", None),
        ];
        for (bytes, text) in cases {
            assert_eq!(Input::of(bytes).text().ok().as_deref(), text, "{bytes:x?}");
        }
    }
}
