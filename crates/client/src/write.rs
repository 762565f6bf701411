//! Writing a file as programs see it, to whichever kind of blocks it has.

pub(crate) mod open_file;

use crate::encryption::FileCipher;
use crate::error::{ClientError, Result};
use crate::lease::Lease;
use crate::protocol::convert::Located;
use crate::session::Session;
use crate::types::FileStatus;
use crate::write_replicated::ReplicatedWriter;
use crate::write_striped::StripedWriter;
use cairn_net::Boxed;
use open_file::OpenFile;
use std::sync::Arc;

/// A file being written. Close it: what was not closed may be lost, and its lease stays until it
/// expires.
pub struct FileWriter {
    kind: Kind,
    /// A call has begun and not come back. When its future was dropped, bytes may be missing.
    busy: bool,
}

enum Kind {
    Replicated(Box<ReplicatedWriter>),
    Striped(Box<StripedWriter>),
}

impl FileWriter {
    pub(crate) fn new(
        session: Arc<Session>,
        path: String,
        status: FileStatus,
        lease: Arc<Lease>,
    ) -> Result<FileWriter> {
        let policy = status.policy.clone();
        let file = OpenFile::new(session, path, status, lease)?;
        let kind = match policy {
            Some(policy) => Kind::Striped(Box::new(StripedWriter::new(file, policy)?)),
            None => Kind::Replicated(Box::new(ReplicatedWriter::new(file, None)?)),
        };
        Ok(FileWriter { kind, busy: false })
    }

    pub(crate) fn append(
        session: Arc<Session>,
        path: String,
        status: FileStatus,
        last: Option<Located>,
        lease: Arc<Lease>,
    ) -> Result<FileWriter> {
        if status.policy.is_some() {
            return Err(ClientError::InvalidPath {
                path,
                reason: "Cannot append to an erasure coded file",
            });
        }
        let file = OpenFile::new(session, path, status, lease)?;
        let kind = Kind::Replicated(Box::new(ReplicatedWriter::new(file, last)?));
        Ok(FileWriter { kind, busy: false })
    }

    /// The same, with all that is written from now on encrypted.
    pub(crate) fn encrypting(mut self, cipher: FileCipher) -> FileWriter {
        match &mut self.kind {
            Kind::Replicated(writer) => writer.encrypt(cipher),
            Kind::Striped(writer) => writer.encrypt(cipher),
        }
        self
    }

    /// Fails when the future of an earlier call was dropped before its end.
    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.busy, true) {
            return Ok(());
        }
        let path = match &self.kind {
            Kind::Replicated(writer) => writer.path(),
            Kind::Striped(writer) => writer.path(),
        };
        let reason = "a write was dropped before its end".to_string();
        Err(ClientError::Broken { path: path.to_string(), reason })
    }

    /// Writes all of `data` behind what was written before. Returns when it is in the stream's
    /// buffers, which are bounded: waits while they are full. After an error, or when the future was
    /// dropped before its end, the file can't be written any more.
    pub async fn write(&mut self, data: &[u8]) -> Result<()> {
        self.begin()?;
        let done = match &mut self.kind {
            Kind::Replicated(writer) => writer.write(data).await,
            Kind::Striped(writer) => writer.write(data).await,
        };
        self.busy = false;
        done
    }

    /// Returns when what was written is in the memory of every DataNode of the pipeline, and new
    /// readers see it. Fails for erasure coded files, where Hadoop does nothing and says nothing.
    pub async fn hflush(&mut self) -> Result<()> {
        self.sync(false).await
    }

    /// As [`FileWriter::hflush`], and the bytes are on stable storage of every DataNode.
    pub async fn hsync(&mut self) -> Result<()> {
        self.sync(true).await
    }

    async fn sync(&mut self, durable: bool) -> Result<()> {
        self.begin()?;
        let done = match &mut self.kind {
            Kind::Replicated(writer) => writer.flush(durable).await,
            Kind::Striped(writer) => Err(ClientError::InvalidPath {
                path: writer.path().to_string(),
                reason: "hflush and hsync are not supported on erasure coded files",
            }),
        };
        self.busy = false;
        done
    }

    /// Bytes of the file so far, buffered ones included.
    pub fn position(&self) -> u64 {
        match &self.kind {
            Kind::Replicated(writer) => writer.position(),
            Kind::Striped(writer) => writer.position(),
        }
    }

    /// Bytes of memory that the stream has for packets now, used or kept for the next ones. At most
    /// `stream_buffer_len` and two stripes, whichever is more, with the packets' checksums; for replicated
    /// files `packets_in_flight` packets and two.
    pub fn buffered_len(&self) -> usize {
        match &self.kind {
            Kind::Replicated(writer) => writer.buffered_len(),
            Kind::Striped(writer) => writer.buffered_len(),
        }
    }

    /// Writes what is buffered and ends the file. Acknowledged means that enough DataNodes have it
    /// to survive what the policy promises.
    pub fn close(mut self) -> Boxed<'static, Result<()>> {
        Box::pin(async move {
            self.begin()?;
            match self.kind {
                Kind::Replicated(writer) => writer.close().await,
                Kind::Striped(writer) => writer.close().await,
            }
        })
    }
}
