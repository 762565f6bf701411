//! How messages and what is saved become bytes: numbers little endian, lengths before what they count.

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// Appends a number.
pub fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends bytes with their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what was written so.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder(bytes)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("yes or no")),
        }
    }

    /// A number.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?;
        let bytes = bytes.try_into().map_err(|_| Malformed("a number"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number that is at most `max`.
    pub fn bounded(&mut self, max: usize) -> Result<usize, Malformed> {
        usize::try_from(self.u64()?).ok().filter(|n| *n <= max).ok_or(Malformed("it is too long"))
    }

    /// Bytes, at most `max`.
    pub fn bytes(&mut self, max: usize) -> Result<&'a [u8], Malformed> {
        let len = self.bounded(max)?;
        self.take(len)
    }

    /// A text of at most `max` bytes.
    pub fn text(&mut self, max: usize) -> Result<String, Malformed> {
        let bytes = self.bytes(max)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Malformed("a text"))
    }

    /// Nothing may follow.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("something follows")) }
    }
}
