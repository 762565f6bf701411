//! Data-transfer connections: operations, their answers, packets, acknowledgements.
//!
//! A [`TransferReader`] reads a packet with one system call where its length was guessed right,
//! into memory that is used again once the packet is dropped. A [`TransferWriter`] gathers head,
//! checksums and data into one system call without copying them, or lets the kernel send from a
//! file ([`SendFile`] says when). Tests: `transfer_stream/tests.rs`.

mod congestion;
mod inlet;
mod low_water;
mod options;
mod packet_memory;
mod reader;
mod secure;
mod socket;
mod writer;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;

use cairn_wire::proto::hdfs::DataTransferTraceInfoProto;

pub use congestion::prepare_listener;
pub use options::{SEND_FILE_ABOVE, SendFile, TransferError, TransferOptions};
pub use packet_memory::{PacketMemory, SMALL_PACKET};
pub use reader::{Packet, PlacedPacket, TransferReader};
use socket::Socket;
pub use writer::{FilePart, FileSend, FileWatch, SentFromFiles, TransferWriter};

/// What an operation says of the span that it is asked for; `None` if nothing is recorded.
///
/// Source: Hadoop 3.5.0 `DataTransferProtoUtil#buildBaseHeader`. Deviation: Hadoop's own tracer is empty, and ignores it.
pub fn trace_info() -> Option<DataTransferTraceInfoProto> {
    let span_context = cairn_trace::here()?.into_bytes();
    Some(DataTransferTraceInfoProto { span_context: Some(span_context), ..Default::default() })
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
        let connecting = timeout(after, options.reach.make(addr, socket.connect(addr)));
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
