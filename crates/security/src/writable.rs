//! Hadoop's older way to write numbers and texts, as far as tokens need it.
//!
//! Source: Hadoop 3.5.0 `WritableUtils#writeVLong`, `WritableUtils#writeString`, `Text#write`.

use cairn_wire::WireError;

/// Appends a number.
pub(crate) fn put_long(value: i64, out: &mut Vec<u8>) {
    if (-112..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    let (size, sign) = if value < 0 { (!value as u64, -120i8) } else { (value as u64, -112i8) };
    let len = 8 - size.leading_zeros() as usize / 8;
    out.push((sign - len as i8) as u8);
    out.extend_from_slice(&size.to_be_bytes()[8 - len..]);
}

/// Appends a text, its length before it.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_long(text.len() as i64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text that may be none, its length in four bytes before it.
pub(crate) fn put_string(text: Option<&str>, out: &mut Vec<u8>) {
    let len = text.map_or(-1, |text| text.len() as i32);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Takes values off the front of bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// `what` names the value in errors.
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { rest: bytes, what }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (what, have) = (self.what, self.rest.len());
        let taken =
            self.rest.split_at_checked(len).ok_or(WireError::Truncated { what, needed: len, have });
        let (taken, rest) = taken?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn long(&mut self) -> Result<i64, WireError> {
        let first = self.byte()? as i8;
        if first >= -112 {
            return Ok(first.into());
        }
        let is_negative = first < -120;
        let len = if is_negative { -120 - i32::from(first) } else { -112 - i32::from(first) };
        let mut bytes = [0; 8];
        bytes[8 - len as usize..].copy_from_slice(self.take(len as usize)?);
        let value = i64::from_be_bytes(bytes);
        Ok(if is_negative { !value } else { value })
    }

    pub(crate) fn int(&mut self) -> Result<i32, WireError> {
        let value = self.long()?;
        value.try_into().map_err(|_| WireError::Value { what: self.what, value })
    }

    /// A text of at most `limit` bytes.
    pub(crate) fn text(&mut self, limit: usize) -> Result<String, WireError> {
        let bytes = self.bytes(limit)?;
        self.checked(bytes)
    }

    /// A text of at most `limit` bytes that may be none.
    pub(crate) fn string(&mut self, limit: usize) -> Result<Option<String>, WireError> {
        let mut len = [0; 4];
        len.copy_from_slice(self.take(4)?);
        let len = i32::from_be_bytes(len);
        if len == -1 {
            return Ok(None);
        }
        let bytes = self.limited(len, limit)?;
        self.checked(bytes).map(Some)
    }

    /// Java would put another character in the place of what is no text.
    fn checked(&self, bytes: &[u8]) -> Result<String, WireError> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| WireError::Value { what: self.what, value: -1 })?;
        Ok(text.to_owned())
    }

    /// A number from 0 to `limit`.
    pub(crate) fn count(&mut self, limit: i32) -> Result<i32, WireError> {
        let (count, what) = (self.int()?, self.what);
        let wrong = WireError::Length { what, len: count.into(), limit: limit as u64 };
        (0..=limit).contains(&count).then_some(count).ok_or(wrong)
    }

    /// Bytes, at most `limit`, with their number before them.
    pub(crate) fn bytes(&mut self, limit: usize) -> Result<&'a [u8], WireError> {
        let len = self.int()?;
        self.limited(len, limit)
    }

    fn limited(&mut self, len: i32, limit: usize) -> Result<&'a [u8], WireError> {
        let what = self.what;
        let fits = usize::try_from(len).ok().filter(|len| *len <= limit);
        let wrong = WireError::Length { what, len: len.into(), limit: limit as u64 };
        self.take(fits.ok_or(wrong)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_hadoops() {
        for (value, bytes) in [
            (0, vec![0]),
            (127, vec![127]),
            (-112, vec![0x90]),
            (128, vec![0x8f, 0x80]),
            (-113, vec![0x87, 0x70]),
            (0x1234, vec![0x8e, 0x12, 0x34]),
            (i64::MAX, vec![0x88, 0x7f, 255, 255, 255, 255, 255, 255, 255]),
            (i64::MIN, vec![0x80, 0x7f, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            put_long(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: i64, text: String) {
            let mut out = Vec::new();
            put_long(value, &mut out);
            put_text(&text, &mut out);
            let mut reader = Reader::new(&out, "test");
            prop_assert_eq!(reader.long().unwrap(), value);
            prop_assert_eq!(reader.text(usize::MAX).unwrap(), text);
            prop_assert!(reader.rest.is_empty());
        }
    }
}
