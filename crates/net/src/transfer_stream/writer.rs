//! What goes to the peer: operations, messages, packets.

use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use cairn_security::cipher::StreamCipher;
use cairn_security::sasl::Seal;
use cairn_wire::rpc;
use cairn_wire::transfer::{Op, PacketHeader, encode_op};
use prost::Message;
use rustix::net::SendFlags;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::time::timeout;

use super::options::{TransferError, TransferOptions};
use super::packet_memory::{SMALL_PACKET, Share};
use super::socket::Socket;
use crate::file_read;
use cairn_process::disk_work::quick;

/// The sending direction of a connection. Nothing is held back: what a method was given has been
/// handed to the kernel when it returns, except by [`TransferWriter::hold_op`] and [`TransferWriter::hold_message`].
///
/// A future that is dropped half-way leaves a torn message behind: give the connection up then.
pub struct TransferWriter {
    stream: Arc<Socket>,
    write_timeout: Duration,
    /// Packets of longer reads than this go by `sendfile`.
    send_file_above: Option<u64>,
    /// What was last read from a file to be sent.
    buffer: Vec<u8>,
    /// Its part of the memory that it shares with other connections, if it does.
    share: Share,
    sent: SentFromFiles,
    /// What goes in front of what is sent next.
    held: Vec<u8>,
    around: Around,
    /// What was last enclosed or encrypted.
    sealed: Vec<u8>,
}

/// What is around what is sent.
enum Around {
    Nothing,
    Cipher(StreamCipher),
    /// Pieces with their lengths before them. Source: Hadoop 3.5.0 `SaslOutputStream`.
    Pieces(Box<dyn Seal>),
}

/// How data get from a file to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSend {
    /// Read into this process's memory first.
    Copy,
    /// By `sendfile`, within the kernel.
    SendFile,
}

/// Bytes of files that were sent, by how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentFromFiles {
    /// By [`FileSend::Copy`].
    pub copied: u64,
    /// By [`FileSend::SendFile`].
    pub by_sendfile: u64,
}

/// Who wants to know how long a file takes.
pub trait FileWatch: Sync {
    /// Does `work`, which reads from the file or has the kernel send from it, and returns what it does.
    fn watch(
        &self,
        how: FileSend,
        work: &mut dyn FnMut() -> io::Result<usize>,
    ) -> io::Result<usize>;

    /// Does `work`, a part of a read that may have to wait for the disk.
    fn wait(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        work()
    }
}

/// Where the data of a packet are.
#[derive(Clone, Copy)]
pub struct FilePart<'a> {
    /// The file.
    pub file: &'a File,
    /// Where in it they begin.
    pub offset: u64,
    /// Bytes of the whole read that the packet belongs to.
    pub read_len: u64,
    /// Who is told of work at the file; `None` for nobody.
    pub watch: Option<&'a dyn FileWatch>,
}

impl FilePart<'_> {
    fn watched(
        &self,
        how: FileSend,
        mut work: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self.watch {
            Some(watch) => watch.watch(how, &mut work),
            None => work(),
        }
    }
}

impl TransferWriter {
    pub(super) fn new(
        stream: Arc<Socket>,
        send_file_above: Option<u64>,
        options: &TransferOptions,
    ) -> TransferWriter {
        let write_timeout = options.write_timeout;
        TransferWriter {
            stream,
            write_timeout,
            send_file_above,
            buffer: Vec::new(),
            share: Share::of(options.packet_memory.clone()),
            sent: SentFromFiles::default(),
            held: Vec::new(),
            around: Around::Nothing,
            sealed: Vec::new(),
        }
    }

    /// From now on everything is sent in enclosed pieces, and nothing from a file but through this process.
    pub(super) fn enclose(&mut self, seal: Box<dyn Seal>) {
        (self.around, self.send_file_above) = (Around::Pieces(seal), None);
    }

    /// From now on everything is sent encrypted, likewise.
    pub(super) fn encrypt(&mut self, cipher: StreamCipher) {
        (self.around, self.send_file_above) = (Around::Cipher(cipher), None);
    }

    /// What was sent from files since this was last asked.
    pub fn take_sent(&mut self) -> SentFromFiles {
        std::mem::take(&mut self.sent)
    }

    /// Changes how long a write waits for room.
    pub fn set_timeout(&mut self, write_timeout: Duration) {
        self.write_timeout = write_timeout;
    }

    /// The peer's address, for the log.
    pub fn peer_name(&self) -> String {
        self.stream.peer_addr().map_or_else(|error| error.to_string(), |addr| addr.to_string())
    }

    /// Sends an operation.
    pub async fn send_op(&mut self, op: Op, message: &impl Message) -> Result<(), TransferError> {
        self.send(&encode_op(op, message)).await
    }

    /// Has an operation sent with what is sent next, in the same system call.
    pub fn hold_op(&mut self, op: Op, message: &impl Message) {
        self.held.extend_from_slice(&encode_op(op, message));
    }

    /// Sends a length-delimited message: an operation's answer, an acknowledgement.
    pub async fn send_message(&mut self, message: &impl Message) -> Result<(), TransferError> {
        let mut bytes = Vec::new();
        rpc::put_delimited(message, &mut bytes);
        self.send(&bytes).await
    }

    /// Has a length-delimited message sent with what is sent next, in the same system call. For what the
    /// peer need not know before.
    pub fn hold_message(&mut self, message: &impl Message) {
        rpc::put_delimited(message, &mut self.held);
    }

    /// Has bytes sent with what is sent next.
    pub(super) fn hold_bytes(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Sends bytes that are already encoded, such as [`super::Packet::raw`].
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), TransferError> {
        self.send_parts([bytes, &[], &[], &[]]).await
    }

    /// Sends a packet. Panics when `data` is not as long as the header says (caller's bug).
    pub async fn send_packet(
        &mut self,
        header: &PacketHeader,
        checksums: &[u8],
        data: &[u8],
    ) -> Result<(), TransferError> {
        self.send_packet_and_end(header, checksums, data, None).await
    }

    /// The same, and right behind it the packet without data and checksums that `end` describes, if there is one.
    pub async fn send_packet_and_end(
        &mut self,
        header: &PacketHeader,
        checksums: &[u8],
        data: &[u8],
        end: Option<&PacketHeader>,
    ) -> Result<(), TransferError> {
        assert_eq!(header.data_len as usize, data.len(), "the packet's data");
        let head = header.encode(checksums.len());
        let end = end.map(|end| end.encode(0));
        let end = end.as_ref().map_or(&[][..], |end| end.as_ref());
        self.send_parts([head.as_ref(), checksums, data, end]).await
    }

    /// Sends a packet whose data are the `header.data_len` bytes at `part`, by `sendfile` or by reading them, as
    /// [`super::SendFile`] says; and right behind it the packet without data and checksums that `end` describes, if
    /// there is one.
    ///
    /// Fails with `UnexpectedEof` when the file ends before; the packet is torn then.
    pub async fn send_packet_from_file(
        &mut self,
        header: &PacketHeader,
        checksums: &[u8],
        part: FilePart<'_>,
        end: Option<&PacketHeader>,
    ) -> Result<(), TransferError> {
        let len = header.data_len as usize;
        let head = header.encode(checksums.len());
        let end = end.map(|end| end.encode(0));
        let end = end.as_ref().map_or(&[][..], |end| end.as_ref());
        // The kernel would wait for the disk on this thread; what is read ahead shows at the end.
        let is_cold = || len > 0 && file_read::is_cold(part.file, part.offset + len as u64 - 1);
        if self.send_file_above.is_none_or(|above| part.read_len <= above) || is_cold() {
            return self.send_copied([head.as_ref(), checksums], part, len, end).await;
        }
        let mut start = std::mem::take(&mut self.held);
        start.extend_from_slice(head.as_ref());
        start.extend_from_slice(checksums);
        // The kernel is told that more follows, or the head would travel in a segment of its own.
        let more = if len == 0 { SendFlags::empty() } else { SendFlags::MORE };
        self.send_flagged(&start, SendFlags::NOSIGNAL | more).await?;
        self.send_file(part, len).await?;
        self.sent.by_sendfile += len as u64;
        self.send(end).await
    }

    /// Sends `front`, the `len` bytes at `part`, which are read first, and `end`. At once where there is memory for
    /// that.
    async fn send_copied(
        &mut self,
        front: [&[u8]; 2],
        part: FilePart<'_>,
        len: usize,
        end: &[u8],
    ) -> Result<(), TransferError> {
        if self.share.is_wanted() {
            self.release_memory();
        }
        let piece = if self.share.try_grow_politely(len) { len } else { SMALL_PACKET };
        let ([mut head, mut checksums], mut sent) = (front, 0);
        loop {
            let count = piece.min(len - sent);
            let mut buffer = std::mem::take(&mut self.buffer);
            // It never shrinks: memory that is given up would be cleared when it is needed again.
            buffer.resize(buffer.len().max(count), 0);
            let data = &mut buffer[..count];
            let offset = part.offset + sent as u64;
            let read = part.watched(FileSend::Copy, || {
                let waits = |work: &mut dyn FnMut() -> io::Result<()>| match part.watch {
                    Some(watch) => watch.wait(work),
                    None => work(),
                };
                file_read::read_exact_at_by(part.file, data, offset, waits).map(|()| count)
            });
            sent += read.map_err(TransferError::File)?;
            let end = if sent == len { end } else { &[] };
            let done = self.send_parts([head, checksums, &buffer[..count], end]).await;
            self.buffer = buffer;
            done?;
            self.sent.copied += count as u64;
            if sent == len {
                return Ok(());
            }
            (head, checksums) = (&[], &[]);
        }
    }

    /// Sends one byte, and up to two descriptors with it. Only over a UNIX domain socket.
    pub async fn send_fds(
        &mut self,
        byte: u8,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), TransferError> {
        self.in_time(self.stream.send_fds(byte, fds)).await
    }

    /// Changes how many bytes the kernel keeps for the peer.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(&*self.stream).set_send_buffer_size(bytes)
    }

    pub(super) fn release_memory(&mut self) {
        (self.buffer, self.sealed) = (Vec::new(), Vec::new());
        self.share.give_back();
    }

    /// Tells the peer that nothing follows.
    pub fn shutdown(&self) -> io::Result<()> {
        SockRef::from(&*self.stream).shutdown(Shutdown::Write)
    }

    /// Ends both directions: waiting readers and writers of this connection wake up with an error
    /// or the end of the stream.
    pub fn kill(&self) {
        // Fails when the peer was faster.
        let _ = SockRef::from(&*self.stream).shutdown(Shutdown::Both);
    }

    /// Writes what was held back and all parts in order, in as few system calls as the socket allows.
    async fn send_parts(&mut self, parts: [&[u8]; 4]) -> Result<(), TransferError> {
        let mut held = std::mem::take(&mut self.held);
        let [a, b, c, d] = parts;
        let parts = [&held[..], a, b, c, d];
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        match &mut self.around {
            Around::Nothing => {}
            Around::Cipher(cipher) => {
                parts.iter().for_each(|part| sealed.extend_from_slice(part));
                cipher.apply(&mut sealed);
            }
            Around::Pieces(seal) => {
                let plain = parts.concat();
                for piece in plain.chunks(seal.plain_max().max(1)) {
                    let piece =
                        seal.seal(piece).map_err(|error| io::Error::other(error.to_string()))?;
                    sealed.extend_from_slice(&(piece.len() as u32).to_be_bytes());
                    sealed.extend_from_slice(&piece);
                }
            }
        }
        let parts = match self.around {
            Around::Nothing => parts,
            Around::Cipher(_) | Around::Pieces(_) => [&sealed[..], &[], &[], &[], &[]],
        };
        self.write_all(parts.map(IoSlice::new)).await?;
        self.sealed = sealed;
        held.clear();
        self.held = held;
        Ok(())
    }

    async fn write_all(&self, mut slices: [IoSlice<'_>; 5]) -> Result<(), TransferError> {
        let mut unsent = &mut slices[..];
        IoSlice::advance_slices(&mut unsent, 0);
        while !unsent.is_empty() {
            let sent = match self.stream.try_write_vectored(unsent) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.in_time(self.stream.writable()).await?;
                    continue;
                }
                sent => sent?,
            };
            if sent == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
            IoSlice::advance_slices(&mut unsent, sent);
        }
        Ok(())
    }

    async fn send_flagged(&self, mut bytes: &[u8], flags: SendFlags) -> Result<(), TransferError> {
        while !bytes.is_empty() {
            let sent = self.when_writable(|stream| Ok(rustix::net::send(stream, bytes, flags)?));
            bytes = &bytes[sent.await?..];
        }
        Ok(())
    }

    async fn send_file(&self, part: FilePart<'_>, mut len: usize) -> Result<(), TransferError> {
        let mut offset = part.offset;
        while len > 0 {
            let sent = self.when_writable(|stream| {
                part.watched(FileSend::SendFile, || {
                    let file = part.file.as_fd();
                    // What is not in the page cache after all is waited for here.
                    Ok(quick(|| rustix::fs::sendfile(stream, file, Some(&mut offset), len))?)
                })
            });
            match sent.await {
                Ok(0) => return Err(TransferError::File(io::ErrorKind::UnexpectedEof.into())),
                Ok(sent) => len -= sent,
                // A socket gives others.
                Err(TransferError::Io(error))
                    if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) =>
                {
                    return Err(TransferError::File(error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs a system call once the socket has room, again when it had not.
    async fn when_writable(
        &self,
        mut call: impl FnMut(&Socket) -> io::Result<usize>,
    ) -> Result<usize, TransferError> {
        let stream = &*self.stream;
        self.in_time(stream.async_io(Interest::WRITABLE, || call(stream))).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = io::Result<T>>,
    ) -> Result<T, TransferError> {
        let (what, after) = ("writing", self.write_timeout);
        Ok(timeout(after, work).await.map_err(|_| TransferError::Timeout { what, after })??)
    }
}
