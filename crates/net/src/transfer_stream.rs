//! Data-transfer connections: operations, their answers, packets, acknowledgements.
//!
//! A [`TransferReader`] reads a packet with one system call where its length was guessed right,
//! into memory that is used again once the packet is dropped. A [`TransferWriter`] gathers head,
//! checksums and data into one system call without copying them, or lets the kernel send from a
//! file ([`SendFile`] says when). Tests: `transfer_stream/tests.rs`.

mod congestion;
mod low_water;
mod packet_memory;
mod reader;
mod socket;
mod writer;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_wire::{WireError, transfer};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;

pub use congestion::prepare_listener;
pub use packet_memory::{PacketMemory, SMALL_PACKET};
pub use reader::{Packet, PlacedPacket, TransferReader};
use socket::Socket;
pub use writer::{FilePart, FileSend, FileWatch, SentFromFiles, TransferWriter};

/// Why a transfer failed. The connection is of no more use, except after [`TransferError::Wire`].
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The socket failed, or ended within a message or packet (`UnexpectedEof`).
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file that was to be sent cannot be read, or ends too early (`UnexpectedEof`).
    #[error("the file that is sent: {0}")]
    File(#[source] io::Error),
    /// The peer sent what the protocol does not allow.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Nothing could be read or written for this long.
    #[error("{what}: no progress for {after:?}")]
    Timeout {
        /// What was being done.
        what: &'static str,
        /// The limit that passed.
        after: Duration,
    },
}

/// When packets go from a file to the socket without passing through this process (`sendfile`).
///
/// `dfs.datanode.transferTo.allowed` false is [`SendFile::Never`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendFile {
    /// To other machines all of them, within this machine those of reads that are longer than [`SEND_FILE_ABOVE`],
    /// over UNIX domain sockets none.
    #[default]
    WherePays,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Bytes of the longest read within a machine that is copied through this process.
///
/// A copy that was just made is in the receiver's processor's cache, pages of a file may not be: a short read takes
/// longer out of pages, while a long one costs the sender a third of the time. Figures: `docs/performance.md`.
pub const SEND_FILE_ABOVE: u64 = 256 << 10;

/// Timeouts and limits of a transfer connection.
#[derive(Clone, Debug)]
pub struct TransferOptions {
    /// How long [`TransferStream::connect`] may take.
    pub connect_timeout: Duration,
    /// `dfs.client.socket-timeout`: how long to wait for bytes.
    pub read_timeout: Duration,
    /// `dfs.datanode.socket.write.timeout`: how long to wait for room to write.
    pub write_timeout: Duration,
    /// `dfs.data.transfer.max.packet.size`: bytes of the longest packet taken.
    pub max_packet_len: u32,
    /// Bytes of the longest message (operation, answer, acknowledgement) taken.
    pub max_message_len: u32,
    /// `dfs.datanode.transfer.socket.send.buffer.size`: bytes, 0 leaves it to the kernel.
    pub send_buffer: usize,
    /// `dfs.datanode.transfer.socket.recv.buffer.size`: bytes, 0 leaves it to the kernel.
    pub recv_buffer: usize,
    /// How [`TransferWriter::send_packet_from_file`] works.
    pub send_file: SendFile,
    /// What the connection shares with others for its packets; `None`: nobody counts. Not for who waits for several
    /// connections at once.
    pub packet_memory: Option<Arc<PacketMemory>>,
}

impl Default for TransferOptions {
    fn default() -> TransferOptions {
        TransferOptions {
            connect_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(480),
            max_packet_len: transfer::MAX_PACKET_LEN,
            max_message_len: 1 << 20,
            send_buffer: 0,
            recv_buffer: 0,
            send_file: SendFile::default(),
            packet_memory: None,
        }
    }
}

/// Both directions of a connection; the fields may be taken apart and used by different tasks.
/// The socket is closed when both are dropped.
pub struct TransferStream {
    /// What the peer sends.
    pub reader: TransferReader,
    /// What goes to the peer.
    pub writer: TransferWriter,
}

impl TransferStream {
    /// Connects to a DataNode.
    pub async fn connect(
        addr: SocketAddr,
        options: &TransferOptions,
    ) -> Result<TransferStream, TransferError> {
        let after = options.connect_timeout;
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        congestion::begin(&socket);
        let connecting = timeout(after, socket.connect(addr));
        let what = "connecting";
        let stream = connecting.await.map_err(|_| TransferError::Timeout { what, after })??;
        Ok(TransferStream::from_tcp(stream, options)?)
    }

    /// Takes a connected socket, sets `TCP_NODELAY`, the buffers' sizes, and where the system paces what is sent, that
    /// it does not within this machine: see [`prepare_listener`].
    pub fn from_tcp(stream: TcpStream, options: &TransferOptions) -> io::Result<TransferStream> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        if options.send_buffer > 0 {
            socket.set_send_buffer_size(options.send_buffer)?;
        }
        if options.recv_buffer > 0 {
            socket.set_recv_buffer_size(options.recv_buffer)?;
        }
        let is_local = stream.peer_addr()?.ip() == stream.local_addr()?.ip();
        congestion::settle(&stream, is_local);
        let send_file_above = match options.send_file {
            SendFile::WherePays if is_local => Some(SEND_FILE_ABOVE),
            SendFile::WherePays | SendFile::Always => Some(0),
            SendFile::Never => None,
        };
        Ok(TransferStream::over(Socket::Tcp(stream), send_file_above, options))
    }

    /// Connects to the UNIX domain socket of a DataNode on this machine.
    pub async fn connect_domain(
        path: &Path,
        options: &TransferOptions,
    ) -> Result<TransferStream, TransferError> {
        let after = options.connect_timeout;
        let connecting = timeout(after, UnixStream::connect(path));
        let what = "connecting";
        let stream = connecting.await.map_err(|_| TransferError::Timeout { what, after })??;
        Ok(TransferStream::from_domain(stream, options)?)
    }

    /// Takes a connected UNIX domain socket and sets the buffers' sizes.
    pub fn from_domain(
        stream: UnixStream,
        options: &TransferOptions,
    ) -> io::Result<TransferStream> {
        if options.send_buffer > 0 {
            SockRef::from(&stream).set_send_buffer_size(options.send_buffer)?;
        }
        let send_file_above = (options.send_file == SendFile::Always).then_some(0);
        Ok(TransferStream::over(Socket::Unix(stream), send_file_above, options))
    }

    fn over(
        socket: Socket,
        send_file_above: Option<u64>,
        options: &TransferOptions,
    ) -> TransferStream {
        let socket = Arc::new(socket);
        TransferStream {
            reader: TransferReader::new(socket.clone(), options),
            writer: TransferWriter::new(socket, send_file_above, options),
        }
    }

    /// Reader and writer, for two tasks.
    pub fn split(self) -> (TransferReader, TransferWriter) {
        (self.reader, self.writer)
    }

    /// The peer's address. A domain socket has none, which is an `Unsupported` error.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.reader.peer_addr()
    }

    /// Gives memory back that a connection without anything to do should not hold.
    pub fn release_memory(&mut self) {
        self.reader.release_memory();
        self.writer.release_memory();
    }

    /// Whether this is a UNIX domain socket, over which descriptors can be passed.
    pub fn is_domain(&self) -> bool {
        self.reader.is_domain()
    }

    /// Whether the peer is on this machine.
    ///
    /// Source: Hadoop 3.5.0 `BasicInetPeer`, `NetUtils#isLocalAddress`.
    pub fn is_local(&self) -> bool {
        if self.is_domain() {
            return true;
        }
        let (Ok(peer), Ok(local)) = (self.reader.peer_addr(), self.reader.local_addr()) else {
            return false;
        };
        peer.ip().is_loopback() || peer.ip() == local.ip()
    }
}

#[cfg(test)]
mod tests;
