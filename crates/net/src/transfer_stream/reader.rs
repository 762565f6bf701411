//! What the peer sends: operations, messages, packets.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use cairn_security::cipher::StreamCipher;
use cairn_security::sasl::Open;
use cairn_wire::transfer::{
    OP_HEAD_LEN, Op, PACKET_LENGTHS_LEN, PacketHeader, PacketLengths, decode_op_head,
};
use cairn_wire::{WireError, rpc};
use prost::Message;
use tokio::time::timeout;

use super::inlet::Inlet;
use super::low_water;
use super::options::{TransferError, TransferOptions};
use super::packet_memory::Share;
use super::socket::Socket;

/// What is read at once where the length of the next thing is unknown.
const SMALL: usize = 512;
/// Memory is reserved for at most this much beyond what has arrived, doubling from there.
const GROW: usize = 128 << 10;
/// Where it is known what comes, a reader sleeps until this much of it is there.
const MOST_AWAITED: usize = 128 << 10;
/// Less is not worth telling the kernel.
const WORTH_AWAITING: usize = 16 << 10;
/// Memory for packets that others may have goes back when none has come for so long.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// One received packet. Its parts share one allocation, which the reader uses again once every
/// part is dropped.
#[derive(Clone, Debug)]
pub struct Packet {
    /// What the packet says of itself.
    pub header: PacketHeader,
    /// The checksums of the data; empty when none were sent.
    pub checksums: Bytes,
    /// The data, `header.data_len` bytes.
    pub data: Bytes,
    /// The packet as received, for passing it on.
    pub raw: Bytes,
}

/// One received packet whose data went where the caller wants them; see
/// [`TransferReader::read_packet_into`].
#[derive(Clone, Debug)]
pub struct PlacedPacket {
    /// What the packet says of itself.
    pub header: PacketHeader,
    /// The checksums of the data; empty when none were sent.
    pub checksums: Bytes,
    /// The data if there was no room for all of them; the caller's memory has none of them then.
    pub apart: Option<Bytes>,
}

/// The receiving direction of a connection.
///
/// Futures of its methods may be dropped and the method called again: nothing read is lost, except
/// by [`TransferReader::read_packet_into`].
pub struct TransferReader {
    stream: Inlet,
    buffer: BytesMut,
    /// Length of the last packet: what the next one is guessed to need.
    last_packet_len: usize,
    /// The same of what comes before the data, where these are read apart from it.
    last_head_len: usize,
    /// Bytes that must have arrived before this is woken, and how many these may be.
    low_water: usize,
    most_awaited: usize,
    /// Its part of the memory that it shares with other connections, if it does.
    share: Share,
    read_timeout: Duration,
    max_packet_len: u32,
    max_message_len: u32,
}

impl TransferReader {
    pub(super) fn new(stream: Arc<Socket>, options: &TransferOptions) -> TransferReader {
        TransferReader {
            stream: Inlet::new(stream),
            buffer: BytesMut::new(),
            last_packet_len: 0,
            last_head_len: SMALL,
            low_water: 1,
            // What the sender may not send for want of room must not be waited for.
            most_awaited: (options.recv_buffer / 2).clamp(1, MOST_AWAITED),
            share: Share::of(options.packet_memory.clone()),
            read_timeout: options.read_timeout,
            max_packet_len: options.max_packet_len,
            max_message_len: options.max_message_len,
        }
    }

    /// From now on everything comes in enclosed pieces.
    pub(super) fn enclose(&mut self, open: Box<dyn Open>) {
        let limit = self.max_packet_len.max(self.max_message_len) as usize;
        self.stream.enclose(open, limit);
    }

    /// From now on everything comes encrypted.
    pub(super) fn encrypt(&mut self, cipher: StreamCipher) {
        self.stream.encrypt(cipher);
    }

    /// The next four bytes.
    pub(super) async fn read_number(&mut self, what: &'static str) -> Result<u32, TransferError> {
        self.fill(4, 4, what).await?;
        let number = self.buffer.first_chunk().copied().ok_or_else(eof)?;
        self.buffer.advance(4);
        Ok(u32::from_be_bytes(number))
    }

    /// Changes how long a read waits for bytes.
    pub fn set_timeout(&mut self, read_timeout: Duration) {
        self.read_timeout = read_timeout;
    }

    /// Sets how many DataNodes get the packets after this one, which says who may have memory for them first.
    pub fn set_behind(&mut self, behind: usize) {
        self.share.set_behind(behind);
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Whether this is a UNIX domain socket.
    pub(super) fn is_domain(&self) -> bool {
        self.stream.is_unix()
    }

    /// Our end's address.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// The next operation and its encoded message; `None` when the peer closed before it.
    ///
    /// Fails on another version, an unknown operation or a message above the limit.
    pub async fn read_op(&mut self) -> Result<Option<(Op, Bytes)>, TransferError> {
        if !self.fill(OP_HEAD_LEN, SMALL, "an operation").await? {
            return Ok(None);
        }
        let op = match self.buffer.first_chunk::<OP_HEAD_LEN>() {
            Some(head) => decode_op_head(*head)?,
            None => return Err(eof()),
        };
        let (start, len) = self.delimited(OP_HEAD_LEN, SMALL, "operation message").await?;
        self.buffer.advance(start);
        Ok(Some((op, self.buffer.split_to(len).freeze())))
    }

    /// The next length-delimited message: `BlockOpResponseProto`, `PipelineAckProto`,
    /// `ClientReadStatusProto`. `what` names it in errors.
    ///
    /// The peer's closing before it is an `UnexpectedEof`.
    pub async fn read_message<M: Message + Default>(
        &mut self,
        what: &'static str,
    ) -> Result<M, TransferError> {
        self.read_message_guessed(SMALL, what).await
    }

    /// The next length-delimited message, and no byte beyond it: descriptors may come with that.
    pub async fn read_message_before_fds<M: Message + Default>(
        &mut self,
        what: &'static str,
    ) -> Result<M, TransferError> {
        self.read_message_guessed(1, what).await
    }

    /// The next byte, and the descriptors that come with it.
    ///
    /// The peer's closing before it is an `UnexpectedEof`.
    pub async fn read_fds(
        &mut self,
        what: &'static str,
    ) -> Result<(u8, Vec<OwnedFd>), TransferError> {
        if !self.buffer.is_empty() {
            // They are lost: their byte was read like any other.
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        let after = self.read_timeout;
        let received = timeout(after, self.stream.receive_fds()).await;
        received.map_err(|_| TransferError::Timeout { what, after })??.ok_or_else(eof)
    }

    /// The same as [`TransferReader::read_message`], reading `guess` bytes at once.
    async fn read_message_guessed<M: Message + Default>(
        &mut self,
        guess: usize,
        what: &'static str,
    ) -> Result<M, TransferError> {
        let (start, len) = self.delimited(0, guess, what).await?;
        self.buffer.advance(start);
        let body = self.buffer.split_to(len);
        M::decode(body).map_err(|source| WireError::Proto { what, source }.into())
    }

    /// The next packet. Waits where there is no memory for one, see [`super::PacketMemory`]; the packet before it must be
    /// gone by then.
    ///
    /// The peer's closing before it is an `UnexpectedEof`.
    pub async fn read_packet(&mut self) -> Result<Packet, TransferError> {
        if self.share.is_wanted() {
            self.give_memory_back();
        }
        let guess = self.last_packet_len.max(SMALL);
        if !self.fill(PACKET_LENGTHS_LEN, guess, "a packet").await? {
            return Err(eof());
        }
        let Some(lengths) = self.buffer.first_chunk::<PACKET_LENGTHS_LEN>() else {
            return Err(eof());
        };
        let lengths = PacketLengths::decode(*lengths, self.max_packet_len)?;
        let total = lengths.total_len();
        if !self.share.try_grow(total) {
            self.give_memory_back();
            self.share.take(total).await;
        }
        self.fill(total, total, "a packet").await?;
        self.last_packet_len = total;
        let raw = self.buffer.split_to(total).freeze();
        let body = PACKET_LENGTHS_LEN + lengths.header_len;
        let header = PacketHeader::decode(&raw[PACKET_LENGTHS_LEN..body])?;
        let data = body + lengths.checksums_len(header.data_len)?;
        Ok(Packet { header, checksums: raw.slice(body..data), data: raw.slice(data..), raw })
    }

    /// The next packet, its data at the start of `into` if they fit there: then the kernel's copy is
    /// the only one. At least as many bytes as `into` takes must be on their way, in this packet and
    /// those after it: until some of them are there, nobody is woken.
    ///
    /// The peer's closing before it is an `UnexpectedEof`. A future that is dropped half-way loses what
    /// it has read: give the connection up then.
    pub async fn read_packet_into(
        &mut self,
        into: &mut [u8],
    ) -> Result<PlacedPacket, TransferError> {
        let what = "a packet";
        let awaited = into.len();
        if !self.fill_awaiting(PACKET_LENGTHS_LEN, self.last_head_len, awaited, what).await? {
            return Err(eof());
        }
        let Some(lengths) = self.buffer.first_chunk::<PACKET_LENGTHS_LEN>() else {
            return Err(eof());
        };
        let lengths = PacketLengths::decode(*lengths, self.max_packet_len)?;
        let body = PACKET_LENGTHS_LEN + lengths.header_len;
        self.fill_awaiting(body, self.last_head_len.min(lengths.total_len()), awaited, what)
            .await?;
        let header = PacketHeader::decode(&self.buffer[PACKET_LENGTHS_LEN..body])?;
        let head_len = body + lengths.checksums_len(header.data_len)?;
        let Some(into) = into.get_mut(..header.data_len as usize) else {
            let Packet { checksums, data, .. } = self.read_packet().await?;
            return Ok(PlacedPacket { header, checksums, apart: Some(data) });
        };
        self.fill_awaiting(head_len, head_len, awaited, what).await?;
        if !into.is_empty() {
            self.last_head_len = head_len;
        }
        let checksums = self.buffer.split_to(head_len).freeze().slice(body..);
        let early = self.buffer.len().min(into.len());
        into[..early].copy_from_slice(&self.buffer[..early]);
        self.buffer.advance(early);
        self.read_exact(&mut into[early..], what).await?;
        Ok(PlacedPacket { header, checksums, apart: None })
    }

    /// Goes on to fill the parts in order, of which the first `got` bytes are filled, until `needed` are; returns
    /// how many are then, which may be more: each system call takes what there is room for. Less come only at the
    /// end of the stream. Where the socket's buffer has a known size, nobody is woken before most of the needed bytes
    /// are there, or the peer has closed.
    ///
    /// A future that is dropped half-way loses what it has read: give the connection up then.
    pub async fn read_parts(
        &mut self,
        parts: [&mut [u8]; 3],
        mut got: usize,
        needed: usize,
        what: &'static str,
    ) -> Result<usize, TransferError> {
        let mut slices = parts.map(IoSliceMut::new);
        let mut room = &mut slices[..];
        IoSliceMut::advance_slices(&mut room, got);
        while got < needed {
            if let (Some(first), false) = (room.first_mut(), self.buffer.is_empty()) {
                let count = first.len().min(self.buffer.len());
                self.buffer.copy_to_slice(&mut first[..count]);
                IoSliceMut::advance_slices(&mut room, count);
                got += count;
                continue;
            }
            let count = match self.stream.try_read_vectored(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wake_at(needed - got)?;
                    let after = self.read_timeout;
                    let waited = timeout(after, self.stream.readable()).await;
                    waited.map_err(|_| TransferError::Timeout { what, after })??;
                    continue;
                }
                count => count?,
            };
            if count == 0 {
                break;
            }
            IoSliceMut::advance_slices(&mut room, count);
            got += count;
        }
        Ok(got)
    }

    /// Gives the memory for packets back, if nothing in it waits to be read.
    pub(super) fn release_memory(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > SMALL {
            self.give_memory_back();
        }
    }

    /// Keeps only what came and was not read yet.
    fn give_memory_back(&mut self) {
        self.buffer = BytesMut::from(&self.buffer[..]);
        self.last_packet_len = 0;
        self.share.give_back();
    }

    /// Gives back bytes that came, in front of what comes next.
    pub fn unread(&mut self, bytes: &[u8]) {
        let rest = std::mem::replace(&mut self.buffer, BytesMut::from(bytes));
        self.buffer.unsplit(rest);
    }

    /// Waits for the peer to close, discarding up to `limit` bytes it may still send; false when it
    /// sent more, or did not close in time.
    pub async fn wait_closed(&mut self, limit: usize) -> bool {
        let mut left = limit;
        loop {
            left = match left.checked_sub(self.buffer.len()) {
                Some(left) => left,
                None => return false,
            };
            self.buffer.clear();
            match self.fill(1, SMALL, "the end").await {
                Ok(true) => {}
                Ok(false) => return true,
                Err(TransferError::Timeout { .. }) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Whether more came than was asked for: the peer did not wait for an answer.
    pub fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Bytes of memory held for what is being read.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> usize {
        self.buffer.capacity()
    }

    /// Reading `guess` bytes at once, where the delimited message after `skip` buffered bytes starts, and its length,
    /// once all of it is buffered.
    async fn delimited(
        &mut self,
        skip: usize,
        guess: usize,
        what: &'static str,
    ) -> Result<(usize, usize), TransferError> {
        loop {
            let have = self.buffer.len();
            let rest = self.buffer.get(skip..).unwrap_or_default();
            if let Some((len, used)) = rpc::varint(rest, what)? {
                if len > self.max_message_len.into() {
                    let limit = self.max_message_len.into();
                    return Err(WireError::Length { what, len: len as i64, limit }.into());
                }
                let (start, len) = (skip + used, len as usize);
                self.fill(start + len, start + len, what).await?;
                return Ok((start, len));
            }
            if !self.fill(have + 1, have + guess, what).await? {
                return Err(eof());
            }
        }
    }

    /// Reads until `needed` bytes are buffered, and never beyond `wanted` (if that is more): so a
    /// packet of the guessed length is read at once, and none of the one after it.
    ///
    /// False when the stream ended with nothing buffered.
    async fn fill(
        &mut self,
        needed: usize,
        wanted: usize,
        what: &'static str,
    ) -> Result<bool, TransferError> {
        self.fill_awaiting(needed, wanted, 0, what).await
    }

    /// The same, sleeping until `awaited` bytes are there, which must be on their way.
    async fn fill_awaiting(
        &mut self,
        needed: usize,
        mut wanted: usize,
        awaited: usize,
        what: &'static str,
    ) -> Result<bool, TransferError> {
        while self.buffer.len() < needed {
            let have = self.buffer.len();
            let missing = wanted.max(needed) - have;
            // As much as has come before at once may come again.
            let room = missing.min(have.max(GROW).max(self.last_packet_len));
            self.buffer.reserve(room);
            match self.stream.try_read_buf(&mut self.buffer, room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let held_any = self.share.holds_any();
                    self.wait(awaited.max(needed - have), what).await?;
                    if held_any && !self.share.holds_any() {
                        wanted = SMALL;
                    }
                }
                Err(error) => return Err(error.into()),
                Ok(0) if have == 0 => return Ok(false),
                Ok(0) => return Err(eof()),
                Ok(_) => {}
            }
        }
        Ok(true)
    }

    /// Sets the `bytes`, or as many as may be awaited, that must have arrived before this is woken. They must be
    /// on their way.
    fn wake_at(&mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes.clamp(1, self.most_awaited);
        if bytes != self.low_water && !self.is_domain() && self.stream.is_one_to_one() {
            low_water::set(self.stream.as_fd(), bytes)?;
            self.low_water = bytes;
        }
        Ok(())
    }

    /// Waits for `bytes` that are on their way, or some of them.
    async fn wait(&mut self, bytes: usize, what: &'static str) -> Result<(), TransferError> {
        if bytes < self.low_water || bytes >= WORTH_AWAITING {
            self.wake_at(bytes)?;
        }
        let after = self.read_timeout;
        let mut patience = after;
        if self.share.holds_any() && self.buffer.is_empty() && after > IDLE_AFTER {
            if let Ok(ready) = timeout(IDLE_AFTER, self.stream.readable()).await {
                return Ok(ready?);
            }
            self.give_memory_back();
            patience -= IDLE_AFTER;
        }
        let waited = timeout(patience, self.stream.readable()).await;
        waited.map_err(|_| TransferError::Timeout { what, after })??;
        Ok(())
    }

    /// Fills `into` from the socket, past what is buffered.
    async fn read_exact(
        &mut self,
        mut into: &mut [u8],
        what: &'static str,
    ) -> Result<(), TransferError> {
        while !into.is_empty() {
            let count = match self.stream.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(into.len(), what).await?;
                    continue;
                }
                count => count?,
            };
            if count == 0 {
                return Err(eof());
            }
            into = &mut into[count..];
        }
        Ok(())
    }
}

fn eof() -> TransferError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}
