//! Reads a byte range of one block from one DataNode, with checksums.
//!
//! Source: Hadoop 3.5.0 `BlockReaderRemote`.

use super::local::LocalReplica;
use super::read_range::{MAX_CHUNK_LEN, ReadRange};
use super::{connect, failure, response};
use crate::error::{ClientError, Result};
use crate::protocol::convert::{self, Token};
use crate::session::Session;
use crate::types::DataNodeAddr;
use bytes::Bytes;
use cairn_codec::crc::{ChecksumKind, verify_chunks};
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::{Op, PacketHeader};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes that are read at once on this machine.
const LOCAL_STEP: u64 = 1 << 20;

/// Data bytes of a long packet at most. Hadoop's DataNodes know no such wish.
pub(crate) const LONGEST_PACKET: u32 = 1 << 20;

/// A read that is under way.
pub(crate) enum BlockReader {
    /// Through a DataNode.
    Remote(Box<RemoteReader>),
    /// Through descriptors.
    Local(Box<LocalReader>),
}

/// What came next of a block.
pub(crate) enum Piece {
    /// So many bytes, where the caller wants them.
    Placed(usize),
    /// Bytes apart from there.
    Apart(Bytes),
}

/// A read of a replica's own files, which goes on through the DataNode when it fails.
pub(crate) struct LocalReader {
    session: Arc<Session>,
    addr: DataNodeAddr,
    replica: Arc<LocalReplica>,
    /// What is still to be read.
    rest: ReadRange,
}

/// A read through a DataNode.
pub(crate) struct RemoteReader {
    session: Arc<Session>,
    addr: DataNodeAddr,
    /// Under which the connection is kept.
    peer: String,
    block: String,
    stream: TransferStream,
    checksum: ChecksumKind,
    chunk_len: usize,
    /// Offset in the block of the next packet.
    next_packet: u64,
    next_seqno: i64,
    /// Data bytes of the last packet.
    last_len: usize,
    /// Offset in the block of the next byte for the caller.
    at: u64,
    end: u64,
}

impl BlockReader {
    /// Opens a replica on this machine, or asks its DataNode for a range of it.
    pub(crate) async fn open(
        session: Arc<Session>,
        addr: DataNodeAddr,
        range: &ReadRange,
    ) -> Result<BlockReader> {
        let Session { config, connections, local, .. } = &*session;
        if let Some(replica) = local.open(config, connections, &addr, range).await {
            let rest = range.clone();
            return Ok(BlockReader::Local(Box::new(LocalReader { session, addr, replica, rest })));
        }
        RemoteReader::open(session, addr, range)
            .await
            .map(|reader| BlockReader::Remote(Box::new(reader)))
    }

    /// The next bytes of the range, checked; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        if let BlockReader::Local(local) = self {
            let mut bytes = vec![0; local.rest.len.min(LOCAL_STEP) as usize];
            if local.fill(&mut bytes) {
                return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()).map(Bytes::from));
            }
        }
        self.remote().await?.next().await
    }

    /// The next bytes of the range, checked; at the start of `into` where nobody has to copy them there: those of a
    /// replica's own files, and whole packets of a DataNode that fit.
    pub(crate) async fn next_into(&mut self, into: &mut [u8]) -> Result<Option<Piece>> {
        if let BlockReader::Local(local) = self {
            let len = local.rest.len.min(LOCAL_STEP).min(into.len() as u64) as usize;
            if local.fill(&mut into[..len]) {
                return Ok(Some(Piece::Placed(len)).filter(|_| len > 0));
            }
        }
        self.remote().await?.next_piece(into).await
    }

    /// The way through the DataNode, on from what was read.
    async fn remote(&mut self) -> Result<&mut RemoteReader> {
        if let BlockReader::Local(local) = self {
            let (session, addr) = (local.session.clone(), local.addr.clone());
            let reader = RemoteReader::open(session, addr, &local.rest).await?;
            *self = BlockReader::Remote(Box::new(reader));
        }
        match self {
            BlockReader::Remote(reader) => Ok(reader),
            BlockReader::Local(_) => Err(ClientError::Protocol("no way to a replica".to_string())),
        }
    }

    /// Ends a read whose range was read whole, so that the connection can be used again.
    pub(crate) async fn finish(self) {
        if let BlockReader::Remote(reader) = self {
            reader.finish().await;
        }
    }
}

impl LocalReader {
    /// Fills `into` with the next bytes; false when the replica's files cannot be read.
    fn fill(&mut self, into: &mut [u8]) -> bool {
        let LocalReader { session, replica, rest, .. } = self;
        if into.is_empty() {
            return true;
        }
        match replica.read_into(rest.offset, into, rest.block.len) {
            Ok(()) => {
                let len = into.len() as u64;
                (rest.offset, rest.len) = (rest.offset + len, rest.len - len);
                true
            }
            Err(error) => {
                tracing::debug!(block = %rest.block, %error, "read on through its DataNode");
                session.local.forget(replica);
                false
            }
        }
    }
}

impl RemoteReader {
    /// Asks a DataNode for a range of a block, over a kept connection if there is one that works.
    pub(crate) async fn open(
        session: Arc<Session>,
        addr: DataNodeAddr,
        range: &ReadRange,
    ) -> Result<RemoteReader> {
        let mut dial = Dial::new(&session, &addr, &range.token);
        loop {
            let (stream, peer, is_kept) = dial.next().await?;
            match RemoteReader::start(&session, &addr, range, stream, peer).await {
                Err(ClientError::DataNode { .. }) if is_kept => {} // closed meanwhile
                done => return done,
            }
        }
    }

    async fn start(
        session: &Arc<Session>,
        addr: &DataNodeAddr,
        range: &ReadRange,
        mut stream: TransferStream,
        peer: String,
    ) -> Result<RemoteReader> {
        request(session, addr, range, &[], &mut stream).await?;
        let answer = response(&mut stream, addr).await?;
        let form = checksum_info(answer, range)?;
        Ok(RemoteReader::new(session.clone(), addr.clone(), range, stream, peer, form))
    }

    /// A reader of packets that follow a good answer: how they are checked, bytes of a chunk, and where the first
    /// packet starts.
    pub(super) fn new(
        session: Arc<Session>,
        addr: DataNodeAddr,
        range: &ReadRange,
        stream: TransferStream,
        peer: String,
        (checksum, chunk_len, first): (ChecksumKind, usize, u64),
    ) -> RemoteReader {
        RemoteReader {
            session,
            addr,
            peer,
            block: range.block.to_string(),
            stream,
            checksum,
            chunk_len,
            next_packet: first,
            next_seqno: 0,
            last_len: 0,
            at: range.offset,
            end: range.offset + range.len,
        }
    }

    /// Data bytes of the last packet.
    pub(super) fn last_len(&self) -> usize {
        self.last_len
    }

    /// The next bytes of the range, checked; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.at < self.end {
            let packet = self.stream.reader.read_packet().await;
            let packet = packet.map_err(|error| failure(&self.addr, error))?;
            let taken = self.take(packet.header, &packet.data, &packet.checksums)?;
            if !taken.is_empty() {
                return Ok(Some(packet.data.slice(taken)));
            }
        }
        Ok(None)
    }

    /// The next bytes of the range, checked; at the start of `into` if a whole packet fits there; `None` at its end.
    pub(super) async fn next_piece(&mut self, into: &mut [u8]) -> Result<Option<Piece>> {
        match self.place(into) {
            Some(into) => self.next_into(into).await.map(Some),
            None => Ok(self.next().await?.map(Piece::Apart)),
        }
    }

    /// The part of `into` that the next packet may be read to; `None` where it would not be whole there.
    fn place<'a>(&self, into: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let wanted = into.len().min((self.end - self.at) as usize);
        let fits = self.at == self.next_packet && wanted > 0 && wanted >= self.last_len;
        fits.then_some(into)?.get_mut(..wanted)
    }

    async fn next_into(&mut self, into: &mut [u8]) -> Result<Piece> {
        let packet = self.stream.reader.read_packet_into(into).await;
        let packet = packet.map_err(|error| failure(&self.addr, error))?;
        match packet.apart {
            Some(data) => {
                let taken = self.take(packet.header, &data, &packet.checksums)?;
                Ok(Piece::Apart(data.slice(taken)))
            }
            None => {
                let data = &into[..packet.header.data_len as usize];
                Ok(Piece::Placed(self.take(packet.header, data, &packet.checksums)?.len()))
            }
        }
    }

    /// Checks the packet that came; returns which of its bytes are wanted.
    fn take(
        &mut self,
        header: PacketHeader,
        data: &[u8],
        checksums: &[u8],
    ) -> Result<Range<usize>> {
        let in_order = header.seqno == self.next_seqno
            && u64::try_from(header.offset_in_block).is_ok_and(|at| at == self.next_packet);
        if !in_order || data.is_empty() {
            return Err(self.protocol_error(format!(
                "packet {} of {} bytes at {} where {} at {} was due",
                header.seqno,
                header.data_len,
                header.offset_in_block,
                self.next_seqno,
                self.next_packet
            )));
        }
        self.verify(data, checksums)?;
        let start = self.next_packet;
        self.next_packet += data.len() as u64;
        self.next_seqno += 1;
        self.last_len = data.len();
        if self.next_packet <= self.at {
            return Ok(0..0);
        }
        let from = (self.at - start) as usize;
        let to = (self.end.min(self.next_packet) - start) as usize;
        self.at = start + to as u64;
        Ok(from..to)
    }

    /// Ends a read whose range was read whole, so that the connection can be used again. Failures
    /// are of no interest: the bytes are there.
    pub(crate) async fn finish(self) {
        let (session, peer) = (self.session.clone(), self.peer.clone());
        if let Some(stream) = self.end().await {
            keep(&session, stream, peer);
        }
    }

    /// Reads what ends the range, if all of it was read; none where that is not what comes.
    pub(super) async fn end(mut self) -> Option<TransferStream> {
        if self.at < self.end {
            return None;
        }
        let last = self.stream.reader.read_packet().await.ok()?;
        let is_end = last.header.last_packet && last.data.is_empty();
        drop(last);
        is_end.then_some(self.stream)
    }

    fn verify(&self, data: &[u8], checksums: &[u8]) -> Result<()> {
        if checksums.len() != self.checksum.total_len(self.chunk_len, data.len()) {
            return Err(self.protocol_error("a packet with too few checksums".to_string()));
        }
        verify_chunks(self.checksum, self.chunk_len, data, checksums).map_err(|mismatch| {
            ClientError::Checksum {
                block: self.block.clone(),
                addr: self.addr.xfer_addr(),
                offset: self.next_packet + (mismatch.chunk * self.chunk_len) as u64,
            }
        })
    }

    fn protocol_error(&self, what: String) -> ClientError {
        ClientError::Protocol(format!("{} from {}: {what}", self.block, self.addr))
    }
}

/// The ways to a DataNode, the quickest first.
pub(super) struct Dial<'a> {
    session: &'a Arc<Session>,
    addr: &'a DataNodeAddr,
    token: Token,
    socket: Option<PathBuf>,
    /// Names under which connections may be kept.
    kept: VecDeque<String>,
}

impl<'a> Dial<'a> {
    pub(super) fn new(
        session: &'a Arc<Session>,
        addr: &'a DataNodeAddr,
        token: &Token,
    ) -> Dial<'a> {
        let socket = match session.config.domain_socket_traffic {
            true => session.local.socket(&session.config, addr),
            false => None,
        };
        let name = socket.as_ref().map(|path| path.to_string_lossy().into_owned());
        let kept = name.into_iter().chain([addr.xfer_addr()]).collect();
        Dial { session, addr, token: token.clone(), socket, kept }
    }

    /// The next connection, under which name it is kept, and whether it was.
    pub(super) async fn next(&mut self) -> Result<(TransferStream, String, bool)> {
        let Dial { session, addr, .. } = *self;
        while let Some(peer) = self.kept.pop_front() {
            if let Some(stream) = session.connections.take(&peer) {
                return Ok((stream, peer, true));
            }
        }
        if let Some(path) = &self.socket
            && let Some(stream) = session.local.connect(&session.config, path).await
        {
            return Ok((stream, path.to_string_lossy().into_owned(), false));
        }
        // Nobody is waited for besides.
        Ok((connect(&session.config, addr, 0, &self.token).await?, addr.xfer_addr(), false))
    }
}

/// Asks for a range, and for whole blocks `also`, of which only Cairn's DataNodes know.
pub(super) async fn request(
    session: &Session,
    addr: &DataNodeAddr,
    range: &ReadRange,
    also: &[ReadRange],
    stream: &mut TransferStream,
) -> Result<()> {
    let request = OpReadBlockProto {
        header: ClientOperationHeaderProto {
            base_header: BaseHeaderProto {
                block: convert::block_proto(&range.block),
                token: Some(range.token.clone()),
                trace_info: cairn_net::transfer_stream::trace_info(),
            },
            client_name: session.client_name.clone(),
        },
        offset: range.offset,
        len: range.len,
        send_checksums: Some(true),
        caching_strategy: Some(session.config.caching(session.config.drop_behind_reads)),
        longest_packet: range.long_packets.then_some(LONGEST_PACKET),
        also: also.iter().map(also_read).collect(),
        ..OpReadBlockProto::default()
    };
    let sent = stream.writer.send_op(Op::ReadBlock, &request).await;
    sent.map_err(|error| failure(addr, error))
}

fn also_read(range: &ReadRange) -> AlsoReadProto {
    AlsoReadProto { block: convert::block_proto(&range.block), token: range.token.clone() }
}

/// Keeps a connection for the next read after one that was read whole. The DataNode is told that it was good
/// with the next request: it only waits for that meanwhile, and pays for being woken.
pub(super) fn keep(session: &Session, mut stream: TransferStream, peer: String) {
    stream.release_memory();
    stream.writer.hold_message(&ClientReadStatusProto { status: Status::ChecksumOk as i32 });
    session.connections.put(peer, stream);
}

/// How the block is checked, and where the first packet starts: at a chunk, not behind the range.
pub(super) fn checksum_info(
    answer: BlockOpResponseProto,
    range: &ReadRange,
) -> Result<(ChecksumKind, usize, u64)> {
    let bad = |what: &str| ClientError::Protocol(format!("{}: {what}", range.block));
    let info = answer.read_op_checksum_info.ok_or_else(|| bad("no checksum info"))?;
    let kind = u8::try_from(info.checksum.r#type).ok().and_then(ChecksumKind::from_id);
    let kind = kind.ok_or_else(|| bad("unknown checksum type"))?;
    let chunk_len = info.checksum.bytes_per_checksum;
    if chunk_len == 0 || chunk_len > MAX_CHUNK_LEN {
        return Err(bad("bad chunk length"));
    }
    if info.chunk_offset > range.offset {
        return Err(bad("the read starts behind the range"));
    }
    Ok((kind, chunk_len as usize, info.chunk_offset))
}
