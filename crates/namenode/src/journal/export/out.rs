//! Bytes on their way to a file, whose MD5 is made meanwhile.

use md5::{Digest, Md5};
use std::fmt;
use std::io::{self, Write};

/// Passes bytes on.
pub(super) struct Digested<W> {
    out: W,
    digest: Md5,
}

impl<W: Write> Digested<W> {
    pub fn new(out: W) -> Digested<W> {
        Digested { out, digest: Md5::new() }
    }

    /// What the bytes went to, and their MD5 as Hadoop writes it.
    pub fn end(self) -> (W, String) {
        let digest = self.digest.finalize();
        (self.out, digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl<W> fmt::Debug for Digested<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digested")
    }
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.digest.update(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
