//! How a connection behaves, and why it fails.

use super::packet_memory::PacketMemory;
use crate::reach::Reach;
use cairn_security::transfer::Unknown;
use cairn_wire::{WireError, transfer};
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
    /// The peer is not who it should be, or does not take us for who we should be.
    #[error("{0}")]
    Unknown(Unknown),
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
/// longer out of pages, while a long one costs the sender a third of the time. Figures: `bench/results/2026-11-findings.md`.
pub const SEND_FILE_ABOVE: u64 = 256 << 10;

/// Timeouts and limits of a transfer connection.
#[derive(Clone, Debug)]
pub struct TransferOptions {
    /// How long [`TransferStream::connect`](super::TransferStream::connect) may take.
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
    /// How [`TransferWriter::send_packet_from_file`](super::TransferWriter::send_packet_from_file) works.
    pub send_file: SendFile,
    /// What the connection shares with others for its packets; `None`: nobody counts. Not for who waits for several
    /// connections at once.
    pub packet_memory: Option<Arc<PacketMemory>>,
    /// To whom connections are made.
    pub reach: Reach,
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
            reach: Reach::default(),
        }
    }
}
