//! Data transfer, version 28: operations, packets, acknowledgements.
//!
//! An operation is a big-endian `u16` version, a `u8` code and one length-delimited message; the
//! answers are length-delimited messages. Data moves in packets: see [`PacketHeader`].
//! Which bytes go where is drawn in `docs/wire.md`.

use prost::Message;

use crate::WireError;
use crate::proto::hdfs::{PacketHeaderProto, PipelineAckProto, Status};

/// The protocol version. Source: Hadoop 3.5.0 `DataTransferProtocol#DATA_TRANSFER_VERSION`.
pub const DATA_TRANSFER_VERSION: i16 = 28;
/// Bytes before an operation's message: version and code.
pub const OP_HEAD_LEN: usize = 3;
/// Bytes of a packet's two lengths.
pub const PACKET_LENGTHS_LEN: usize = 6;
/// Most bytes of lengths and header that Cairn writes.
pub const MAX_PACKET_HEAD_LEN: usize = PACKET_LENGTHS_LEN + 27;
/// Default of `dfs.data.transfer.max.packet.size`: most bytes of a packet after its lengths.
pub const MAX_PACKET_LEN: u32 = 16 << 20;
/// Most blocks that a request to read names beside its own.
pub const MAX_ALSO: usize = 255;
/// Sequence number of a packet that only keeps the connection alive.
///
/// Source: Hadoop 3.5.0 `DFSPacket#HEART_BEAT_SEQNO`.
pub const HEARTBEAT_SEQNO: i64 = -1;
/// Sequence number of an acknowledgement out of band.
///
/// Source: Hadoop 3.5.0 `PipelineAck#UNKOWN_SEQNO`.
pub const UNKNOWN_SEQNO: i64 = -2;

/// What a client or DataNode asks of a DataNode.
///
/// Source: Hadoop 3.5.0 `Op`. `CUSTOM` (127) is left out: no Hadoop server serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `OpWriteBlockProto`.
    WriteBlock = 80,
    /// `OpReadBlockProto`.
    ReadBlock = 81,
    /// Has no message in Hadoop 3.5, and is not served.
    ReadMetadata = 82,
    /// `OpReplaceBlockProto`.
    ReplaceBlock = 83,
    /// `OpCopyBlockProto`.
    CopyBlock = 84,
    /// `OpBlockChecksumProto`.
    BlockChecksum = 85,
    /// `OpTransferBlockProto`.
    TransferBlock = 86,
    /// `OpRequestShortCircuitAccessProto`.
    RequestShortCircuitFds = 87,
    /// `ReleaseShortCircuitAccessRequestProto`.
    ReleaseShortCircuitFds = 88,
    /// `ShortCircuitShmRequestProto`.
    RequestShortCircuitShm = 89,
    /// `OpBlockGroupChecksumProto`.
    BlockGroupChecksum = 90,
}

impl Op {
    /// The operation of a code, `None` when there is none.
    pub fn from_code(code: u8) -> Option<Op> {
        Some(match code {
            80 => Op::WriteBlock,
            81 => Op::ReadBlock,
            82 => Op::ReadMetadata,
            83 => Op::ReplaceBlock,
            84 => Op::CopyBlock,
            85 => Op::BlockChecksum,
            86 => Op::TransferBlock,
            87 => Op::RequestShortCircuitFds,
            88 => Op::ReleaseShortCircuitFds,
            89 => Op::RequestShortCircuitShm,
            90 => Op::BlockGroupChecksum,
            _ => return None,
        })
    }

    /// The code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// The operation of the three bytes that start one.
///
/// Fails on another version and on an unknown code.
pub fn decode_op_head(bytes: [u8; OP_HEAD_LEN]) -> Result<Op, WireError> {
    let [v0, v1, code] = bytes;
    let received = i16::from_be_bytes([v0, v1]);
    if received != DATA_TRANSFER_VERSION {
        return Err(WireError::Version { expected: DATA_TRANSFER_VERSION, received });
    }
    Op::from_code(code).ok_or(WireError::Value { what: "operation", value: code.into() })
}

/// A whole operation: head, length, message.
pub fn encode_op(op: Op, message: &impl Message) -> Vec<u8> {
    let mut out = Vec::with_capacity(OP_HEAD_LEN + crate::rpc::delimited_len(message));
    out.extend_from_slice(&DATA_TRANSFER_VERSION.to_be_bytes());
    out.push(op.code());
    crate::rpc::put_delimited(message, &mut out);
    out
}

/// What a packet says of itself.
///
/// On the wire: `u32` of 4 + checksums + data, `u16` of the header, the header
/// (`PacketHeaderProto`), the checksums, the data.
///
/// Source: Hadoop 3.5.0 `PacketHeader`, `PacketReceiver#doRead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Offset in the (internal) block of the first data byte.
    pub offset_in_block: i64,
    /// Counts up from 0 in one transfer; [`HEARTBEAT_SEQNO`] otherwise.
    pub seqno: i64,
    /// True for the empty packet that ends a block.
    pub last_packet: bool,
    /// Bytes of data.
    pub data_len: u32,
    /// The block is to be on stable storage before this packet is acknowledged.
    pub sync_block: bool,
}

impl PacketHeader {
    /// The empty packet that a client sends while it has nothing else to send.
    pub fn heartbeat() -> PacketHeader {
        let seqno = HEARTBEAT_SEQNO;
        PacketHeader {
            offset_in_block: 0,
            seqno,
            last_packet: false,
            data_len: 0,
            sync_block: false,
        }
    }

    /// The lengths and the header, ready to be sent before `checksums_len` bytes of checksums and
    /// the data. Panics when the packet would be longer than 2 GiB.
    pub fn encode(&self, checksums_len: usize) -> PacketHead {
        let payload = 4 + checksums_len + self.data_len as usize;
        assert!(payload <= i32::MAX as usize, "packet of {payload} bytes");
        let header_len = if self.sync_block { 27u16 } else { 25 };
        let mut bytes = [0; MAX_PACKET_HEAD_LEN];
        bytes[0..4].copy_from_slice(&(payload as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&header_len.to_be_bytes());
        // The fields are of fixed width, so is the message: tag and value, little-endian.
        bytes[6] = 0x09;
        bytes[7..15].copy_from_slice(&self.offset_in_block.to_le_bytes());
        bytes[15] = 0x11;
        bytes[16..24].copy_from_slice(&self.seqno.to_le_bytes());
        bytes[24] = 0x18;
        bytes[25] = self.last_packet.into();
        bytes[26] = 0x25;
        bytes[27..31].copy_from_slice(&self.data_len.to_le_bytes());
        bytes[31] = 0x28;
        bytes[32] = 1;
        PacketHead { bytes, len: PACKET_LENGTHS_LEN + header_len as usize }
    }

    /// Decodes the header message (without the lengths).
    ///
    /// Fails on a negative data length.
    pub fn decode(bytes: &[u8]) -> Result<PacketHeader, WireError> {
        let what = "PacketHeaderProto";
        let proto =
            PacketHeaderProto::decode(bytes).map_err(|source| WireError::Proto { what, source })?;
        let data_len = u32::try_from(proto.data_len).map_err(|_| WireError::Value {
            what: "packet data length",
            value: proto.data_len.into(),
        })?;
        Ok(PacketHeader {
            offset_in_block: proto.offset_in_block,
            seqno: proto.seqno,
            last_packet: proto.last_packet_in_block,
            data_len,
            sync_block: proto.sync_block(),
        })
    }

    /// Whether the packet may follow the one numbered `last_seqno` in a read.
    ///
    /// Source: Hadoop 3.5.0 `PacketHeader#sanityCheck`.
    pub fn follows(&self, last_seqno: i64) -> bool {
        (self.data_len == 0) == self.last_packet && Some(self.seqno) == last_seqno.checked_add(1)
    }
}

/// An encoded [`PacketHeader`] with the lengths before it.
#[derive(Clone, Copy, Debug)]
pub struct PacketHead {
    bytes: [u8; MAX_PACKET_HEAD_LEN],
    len: usize,
}

impl AsRef<[u8]> for PacketHead {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The lengths at the start of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLengths {
    /// Bytes of the header message.
    pub header_len: usize,
    /// Bytes of checksums and data together.
    pub body_len: usize,
}

impl PacketLengths {
    /// Decodes the six bytes that start a packet of at most `limit` bytes after its lengths.
    ///
    /// Source: Hadoop 3.5.0 `PacketReceiver#doRead`.
    pub fn decode(bytes: [u8; PACKET_LENGTHS_LEN], limit: u32) -> Result<PacketLengths, WireError> {
        let [p0, p1, p2, p3, h0, h1] = bytes;
        let payload = i32::from_be_bytes([p0, p1, p2, p3]);
        let header = i16::from_be_bytes([h0, h1]);
        let (limit, what) = (u64::from(limit), "packet payload");
        if payload < 4 || payload as u64 > limit {
            return Err(WireError::Length { what, len: payload.into(), limit });
        }
        if header < 0 || payload as u64 + header as u64 > limit {
            return Err(WireError::Length { what: "packet header", len: header.into(), limit });
        }
        Ok(PacketLengths { header_len: header as usize, body_len: payload as usize - 4 })
    }

    /// Bytes of the whole packet, lengths included.
    pub fn total_len(&self) -> usize {
        PACKET_LENGTHS_LEN + self.header_len + self.body_len
    }

    /// Bytes of checksums when the header says `data_len`.
    ///
    /// Fails when the data would be longer than what follows the header.
    pub fn checksums_len(&self, data_len: u32) -> Result<usize, WireError> {
        self.body_len.checked_sub(data_len as usize).ok_or(WireError::Length {
            what: "packet data",
            len: data_len.into(),
            limit: self.body_len as u64,
        })
    }
}

/// Whether a DataNode is congested: two bits of an acknowledgement's flag.
///
/// Source: Hadoop 3.5.0 `PipelineAck.ECN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ecn {
    /// The DataNode does not measure.
    Disabled = 0,
    /// It measures, and is not congested.
    Supported = 1,
    /// As [`Ecn::Supported`].
    Supported2 = 2,
    /// It is congested: the client slows down.
    Congested = 3,
}

/// Whether a DataNode is slow: two bits of an acknowledgement's flag.
///
/// Source: Hadoop 3.5.0 `PipelineAck.SLOW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Slow {
    /// The DataNode does not measure.
    Disabled = 0,
    /// It is not slow.
    Normal = 1,
    /// It is slow.
    Slow = 2,
    /// Without meaning.
    Reserved = 3,
}

/// One DataNode's part of an acknowledgement, as its `flag` field packs it: bits 0..4 the status,
/// bit 4 unused, bits 5..7 [`Ecn`], bits 7..9 [`Slow`].
///
/// Source: Hadoop 3.5.0 `PipelineAck.StatusFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFlag(pub u32);

impl AckFlag {
    /// Packs the three parts.
    pub fn new(status: Status, ecn: Ecn, slow: Slow) -> AckFlag {
        AckFlag(status as u32 | (ecn as u32) << 5 | (slow as u32) << 7)
    }

    /// The status; `ERROR` when the number means nothing.
    pub fn status(self) -> Status {
        Status::try_from((self.0 & 0xf) as i32).unwrap_or(Status::Error)
    }

    /// The congestion bits.
    pub fn ecn(self) -> Ecn {
        match self.0 >> 5 & 3 {
            0 => Ecn::Disabled,
            1 => Ecn::Supported,
            2 => Ecn::Supported2,
            _ => Ecn::Congested,
        }
    }

    /// The slowness bits.
    pub fn slow(self) -> Slow {
        match self.0 >> 7 & 3 {
            0 => Slow::Disabled,
            1 => Slow::Normal,
            2 => Slow::Slow,
            _ => Slow::Reserved,
        }
    }
}

impl From<Status> for AckFlag {
    fn from(status: Status) -> AckFlag {
        AckFlag::new(status, Ecn::Disabled, Slow::Disabled)
    }
}

/// The acknowledgement of packet `seqno` by a pipeline: first the sender's own flag, then those
/// it received from downstream.
///
/// Source: Hadoop 3.5.0 `PipelineAck`.
pub fn pipeline_ack(
    seqno: i64,
    flags: impl IntoIterator<Item = AckFlag>,
    downstream_nanos: u64,
) -> PipelineAckProto {
    let flag: Vec<u32> = flags.into_iter().map(|flag| flag.0).collect();
    PipelineAckProto {
        seqno,
        reply: flag.iter().map(|flag| AckFlag(*flag).status() as i32).collect(),
        downstream_ack_time_nanos: Some(downstream_nanos),
        flag,
    }
}

/// The flags of an acknowledgement, one for each DataNode; senders without flags send only the
/// statuses.
pub fn ack_flags(ack: &PipelineAckProto) -> Vec<AckFlag> {
    if ack.flag.is_empty() {
        let status = |reply: &i32| Status::try_from(*reply).unwrap_or(Status::Error).into();
        ack.reply.iter().map(status).collect()
    } else {
        ack.flag.iter().map(|flag| AckFlag(*flag)).collect()
    }
}

/// Whether every DataNode of the pipeline took the packet. False for an empty acknowledgement.
pub fn ack_is_success(ack: &PipelineAckProto) -> bool {
    !ack.reply.is_empty() && ack.reply.iter().all(|reply| *reply == Status::Success as i32)
}

#[cfg(test)]
mod tests;
