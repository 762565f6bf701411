//! What is between frames and a socket: nothing, or what SASL encloses everything in once both sides know each other.
//!
//! Source: Hadoop 3.5.0 `Server.Connection#unwrapPacketAndProcessRpcs`, `Server#wrapWithSasl`,
//! `SaslRpcClient.WrappedInputStream`.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use cairn_security::SaslError;
use cairn_security::sasl::{Open, Seal};
use cairn_wire::proto::common::{
    RpcRequestHeaderProto, RpcResponseHeaderProto, RpcSaslProto, RpcSaslProtoSaslState as State,
};
use cairn_wire::rpc;
use prost::Message;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read at a time.
const READ: usize = 32 << 10;
/// What a frame has beside the message that it encloses.
const AROUND: u32 = 4 << 10;

/// Which side of a connection one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The bytes of a connection in the order in which the peer has written them, opened if they come enclosed.
pub(crate) struct Channel<R> {
    source: R,
    enclosed: Option<Box<Enclosed>>,
}

struct Enclosed {
    open: Box<dyn Open>,
    side: Side,
    limit: u32,
    /// What has come and was not opened yet.
    raw: BytesMut,
    /// What was opened and not read yet.
    plain: Bytes,
    piece: Vec<u8>,
}

impl<R> Channel<R> {
    /// As it comes.
    pub(crate) fn new(source: R) -> Channel<R> {
        Channel { source, enclosed: None }
    }

    /// From now on everything comes enclosed in frames, of which those with messages of up to `limit` bytes are taken. `raw`
    /// has been read already.
    pub(crate) fn enclose(&mut self, open: Box<dyn Open>, side: Side, raw: BytesMut, limit: u32) {
        let limit = limit.saturating_add(AROUND);
        let (plain, piece) = (Bytes::new(), vec![0; READ]);
        self.enclosed = Some(Box::new(Enclosed { open, side, limit, raw, plain, piece }));
    }
}

impl Enclosed {
    /// Opens the next frame, if all of it has come.
    fn open_next(&mut self) -> io::Result<bool> {
        let Some(prefix) = self.raw.first_chunk::<4>() else { return Ok(false) };
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
        let len =
            rpc::frame_len(*prefix, self.limit).map_err(|error| invalid(error.to_string()))?;
        if self.raw.len() < 4 + len {
            return Ok(false);
        }
        self.raw.advance(4);
        let mut frame = self.raw.split_to(len).freeze();
        let call_id = match self.side {
            Side::Server => {
                call_id_of::<RpcRequestHeaderProto>(&mut frame, |header| header.call_id)
            }
            Side::Client => {
                call_id_of::<RpcResponseHeaderProto>(&mut frame, |header| header.call_id as i32)
            }
        };
        let message = match call_id {
            Some(rpc::CALL_ID_SASL) => {
                rpc::take_delimited::<RpcSaslProto>(&mut frame, "RpcSaslProto").ok()
            }
            _ => None,
        };
        match message {
            Some(message) if message.state() == State::Wrap => {
                let opened = self.open.open(&message.token.unwrap_or_default());
                self.plain = opened.map_err(|error| invalid(error.to_string()))?.into();
                Ok(true)
            }
            _ => Err(invalid("the peer has sent something that is not enclosed".into())),
        }
    }
}

fn call_id_of<M: Message + Default>(frame: &mut Bytes, id: impl Fn(M) -> i32) -> Option<i32> {
    rpc::take_delimited::<M>(frame, "header").ok().map(id)
}

impl<R: AsyncRead + Unpin> AsyncRead for Channel<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Channel { source, enclosed } = self.get_mut();
        let Some(enclosed) = enclosed else { return Pin::new(source).poll_read(cx, into) };
        loop {
            if !enclosed.plain.is_empty() {
                let len = enclosed.plain.len().min(into.remaining());
                into.put_slice(&enclosed.plain.split_to(len));
                return Poll::Ready(Ok(()));
            }
            if enclosed.open_next()? {
                continue;
            }
            let mut piece = ReadBuf::new(&mut enclosed.piece);
            ready!(Pin::new(&mut *source).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(match enclosed.raw.is_empty() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                });
            }
            enclosed.raw.extend_from_slice(piece.filled());
        }
    }
}

/// The frames in which bytes are enclosed for the other side.
pub(crate) fn sealed(
    seal: &mut dyn Seal,
    side: Side,
    bytes: &[u8],
    out: &mut VecDeque<Vec<u8>>,
) -> Result<(), SaslError> {
    for part in bytes.chunks(seal.plain_max().max(1)) {
        let token = Some(seal.seal(part)?);
        let message = RpcSaslProto { state: State::Wrap as i32, token, ..RpcSaslProto::default() };
        let (id, count) = (rpc::CALL_ID_SASL, rpc::RETRY_COUNT_NONE);
        out.push_back(match side {
            Side::Server => rpc::encode_frame(&rpc::success_header(id, count, &[]), Some(&message)),
            Side::Client => rpc::encode_frame(&rpc::request_header(id, count, &[]), Some(&message)),
        });
    }
    Ok(())
}
