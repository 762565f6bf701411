//! Hadoop RPC, version 9: the preamble, frames, headers.
//!
//! A connection is a seven-byte preamble and then frames, each a big-endian `u32` length and that
//! many bytes: a request frame holds `RpcRequestHeaderProto`, `RequestHeaderProto` and the request
//! message, a response frame `RpcResponseHeaderProto` and the response message; each message is
//! preceded by its length as a varint. Which bytes go where is drawn in `docs/wire.md`.

use std::ops::Range;

use bytes::{Buf, Bytes};
use prost::Message;

use crate::WireError;
use crate::proto::common::{
    RequestHeaderProto, RpcKindProto, RpcRequestHeaderProto, RpcRequestHeaderProtoOperationProto,
    RpcResponseHeaderProto, RpcResponseHeaderProtoRpcErrorCodeProto,
    RpcResponseHeaderProtoRpcStatusProto,
};

/// First four bytes of every connection. Source: Hadoop 3.5.0 `RpcConstants#HEADER`.
pub const MAGIC: [u8; 4] = *b"hrpc";
/// The protocol version spoken. Source: Hadoop 3.5.0 `RpcConstants#CURRENT_VERSION`.
pub const VERSION: u8 = 9;
/// Bytes of the preamble: magic, version, service class, authentication protocol.
pub const PREAMBLE_LEN: usize = 7;
/// Call id of a response to a peer that was refused before its first call.
pub const CALL_ID_UNAUTHORIZED: i32 = -1;
/// Call id of the frame that carries `IpcConnectionContextProto`.
pub const CALL_ID_CONNECTION_CONTEXT: i32 = -3;
/// Call id of a ping: a header and nothing else, never answered.
pub const CALL_ID_PING: i32 = -4;
/// Call id of SASL frames, in both directions; also [`AuthProtocol::Sasl`]'s byte.
pub const CALL_ID_SASL: i32 = -33;
/// Retry count of calls that are not retries of anything.
pub const RETRY_COUNT_NONE: i32 = -1;
/// Default of `ipc.maximum.data.length`: the longest frame taken, in bytes.
pub const MAX_FRAME_LEN: u32 = 128 << 20;

/// How a peer wants to prove who it is; last byte of the preamble.
///
/// Source: Hadoop 3.5.0 `Server.AuthProtocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProtocol {
    /// Byte 0: the connection context names the user, nothing is proven.
    None,
    /// Byte -33: SASL frames come before the connection context.
    Sasl,
}

impl AuthProtocol {
    /// The protocol of a preamble byte, `None` when there is none.
    pub fn from_byte(byte: u8) -> Option<AuthProtocol> {
        match byte as i8 as i32 {
            0 => Some(AuthProtocol::None),
            CALL_ID_SASL => Some(AuthProtocol::Sasl),
            _ => None,
        }
    }

    /// The preamble byte.
    pub fn byte(self) -> u8 {
        match self {
            AuthProtocol::None => 0,
            AuthProtocol::Sasl => CALL_ID_SASL as u8,
        }
    }
}

/// The preamble as received: nothing is judged yet, since a server answers each fault differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Should be [`MAGIC`].
    pub magic: [u8; 4],
    /// Should be [`VERSION`]; a signed byte in Hadoop.
    pub version: i8,
    /// Free for quality of service, ignored.
    pub service_class: u8,
    /// See [`AuthProtocol::from_byte`].
    pub auth: u8,
}

impl Preamble {
    /// What a client sends that claims its user's name without proof.
    pub fn simple() -> Preamble {
        let auth = AuthProtocol::None.byte();
        Preamble { magic: MAGIC, version: VERSION as i8, service_class: 0, auth }
    }

    /// The seven bytes, in their order on the wire.
    pub fn encode(&self) -> [u8; PREAMBLE_LEN] {
        let [a, b, c, d] = self.magic;
        [a, b, c, d, self.version as u8, self.service_class, self.auth]
    }

    /// The preamble of seven received bytes.
    pub fn decode(bytes: [u8; PREAMBLE_LEN]) -> Preamble {
        let [a, b, c, d, version, service_class, auth] = bytes;
        Preamble { magic: [a, b, c, d], version: version as i8, service_class, auth }
    }
}

/// The length of a frame from the four bytes before it, `0..=limit`.
///
/// Fails on a negative length (Java reads a signed int) or one above `limit`.
///
/// Source: Hadoop 3.5.0 `Server.Connection#checkDataLength`.
pub fn frame_len(bytes: [u8; 4], limit: u32) -> Result<usize, WireError> {
    let len = i32::from_be_bytes(bytes);
    if len < 0 || len as u32 > limit {
        return Err(WireError::Length { what: "rpc frame", len: len.into(), limit: limit.into() });
    }
    Ok(len as usize)
}

/// Bytes that `message` takes with its varint length before it.
pub fn delimited_len(message: &impl Message) -> usize {
    let len = message.encoded_len();
    prost::length_delimiter_len(len) + len
}

/// Appends `message` with its length as a varint before it.
pub fn put_delimited(message: &impl Message, out: &mut Vec<u8>) {
    out.reserve(delimited_len(message));
    put_varint(message.encoded_len() as u64, out);
    message.encode_raw(out);
}

/// Takes the bytes of one length-delimited message off the front of `bytes`, without copying.
///
/// `what` names the message in errors.
pub fn take_delimited_bytes(bytes: &mut Bytes, what: &'static str) -> Result<Bytes, WireError> {
    let body = delimited(bytes, what)?;
    bytes.advance(body.start);
    Ok(bytes.split_to(body.len()))
}

/// Takes one length-delimited message off the front of `bytes`.
///
/// `what` names the message in errors.
pub fn take_delimited<M: Message + Default>(
    bytes: &mut Bytes,
    what: &'static str,
) -> Result<M, WireError> {
    let body = delimited(bytes, what)?;
    let message = M::decode(&bytes[body.clone()]);
    bytes.advance(body.end);
    message.map_err(|source| WireError::Proto { what, source })
}

/// Where in `bytes` the length-delimited message at their front lies.
fn delimited(bytes: &[u8], what: &'static str) -> Result<Range<usize>, WireError> {
    let (len, used) = match varint(bytes, what)? {
        Some(found) => found,
        None => {
            return Err(WireError::Truncated { what, needed: bytes.len() + 1, have: bytes.len() });
        }
    };
    let have = bytes.len() - used;
    if len > have as u64 {
        return Err(WireError::Length { what, len: len as i64, limit: have as u64 });
    }
    Ok(used..used + len as usize)
}

/// The varint at the front of `bytes` and how many bytes it takes; `None` when it is cut off.
///
/// Fails when it does not end within five bytes or exceeds 32 bits: it is always a length here.
pub fn varint(bytes: &[u8], what: &'static str) -> Result<Option<(u64, usize)>, WireError> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            if value > u64::from(u32::MAX) {
                return Err(WireError::Varint { what });
            }
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 5 { Err(WireError::Varint { what }) } else { Ok(None) }
}

/// As [`varint`], of 64 bits; `None` also where it is none.
fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A header for call `call_id` (or one of the negative special ids) of protocol-buffer kind.
///
/// Source: Hadoop 3.5.0 `ProtoUtil#makeRpcRequestHeader`.
pub fn request_header(call_id: i32, retry_count: i32, client_id: &[u8]) -> RpcRequestHeaderProto {
    RpcRequestHeaderProto {
        rpc_kind: Some(RpcKindProto::RpcProtocolBuffer as i32),
        rpc_op: Some(RpcRequestHeaderProtoOperationProto::RpcFinalPacket as i32),
        call_id,
        client_id: client_id.to_vec(),
        retry_count: Some(retry_count),
        ..Default::default()
    }
}

/// One whole frame with its length: `header`, then `message` if there is one.
pub fn encode_frame(header: &impl Message, message: Option<&impl Message>) -> Vec<u8> {
    let len = delimited_len(header) + message.map_or(0, delimited_len);
    let mut out = Vec::with_capacity(4 + len);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    put_delimited(header, &mut out);
    if let Some(message) = message {
        put_delimited(message, &mut out);
    }
    out
}

/// One whole request frame: the two headers and the request.
pub fn encode_request(
    header: &RpcRequestHeaderProto,
    request_header: &RequestHeaderProto,
    request: &impl Message,
) -> Vec<u8> {
    let len = delimited_len(header) + delimited_len(request_header) + delimited_len(request);
    let mut out = Vec::with_capacity(4 + len);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    put_delimited(header, &mut out);
    put_delimited(request_header, &mut out);
    put_delimited(request, &mut out);
    out
}

/// A request frame's content, decoded as far as the RPC layer needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Who calls, which call, which try.
    pub header: RpcRequestHeaderProto,
    /// What follows the header: for a call, see [`Request::split_call`].
    pub rest: Bytes,
}

impl Request {
    /// Decodes the header of a frame (given without its length).
    pub fn decode(mut frame: Bytes) -> Result<Request, WireError> {
        let header = take_delimited(&mut frame, "RpcRequestHeaderProto")?;
        Ok(Request { header, rest: frame })
    }

    /// The second header of a call and the undecoded request message.
    pub fn split_call(mut self) -> Result<(RequestHeaderProto, Bytes), WireError> {
        let header = take_delimited(&mut self.rest, "RequestHeaderProto")?;
        // A request without a field may come without a length as well.
        if self.rest.is_empty() {
            return Ok((header, Bytes::new()));
        }
        let body = take_delimited_bytes(&mut self.rest, "request message")?;
        Ok((header, body))
    }
}

/// The headers of a call as nearly all clients send them, read where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsualCall {
    /// The call's number, 0 or more.
    pub call_id: i32,
    /// How often it was sent before.
    pub retry_count: i32,
    /// The client's identity.
    pub client_id: [u8; 16],
    /// The last entry that it has seen, if it tells.
    pub state_id: Option<i64>,
    /// Where `RequestHeaderProto` lies in the frame.
    pub method: Range<usize>,
    /// Where the request message lies.
    pub body: Range<usize>,
}

impl UsualCall {
    /// Reads a frame (given without its length) that is a call of protocol-buffer kind, of a client with an identity
    /// of 16 bytes, and that has no more than that and a state id in its first header. Any other is for
    /// [`Request::decode`].
    pub fn read(frame: &[u8]) -> Option<UsualCall> {
        let header = delimited(frame, "").ok()?;
        let (mut call_id, mut retry_count, mut client_id) = (None, RETRY_COUNT_NONE, None);
        let (mut kind, mut op, mut state_id) = (None, None, None);
        let mut rest = &frame[header.clone()];
        while let [key, tail @ ..] = rest {
            if *key == 0x22 {
                let (len, tail) = tail.split_first()?;
                client_id = Some(*tail.first_chunk().filter(|_| *len == 16)?);
                rest = &tail[16..];
                continue;
            }
            if *key == 0x40 {
                let (value, used) = long_varint(tail)?;
                (state_id, rest) = (Some(value as i64), &tail[used..]);
                continue;
            }
            let (value, used) = varint(tail, "").ok()??;
            rest = &tail[used..];
            // Signed numbers are in zigzag.
            let signed = (value >> 1) as i32 ^ -((value & 1) as i32);
            match *key {
                0x08 => kind = Some(value),
                0x10 => op = Some(value),
                0x18 => call_id = Some(signed),
                0x28 => retry_count = signed,
                _ => return None,
            }
        }
        let is_call = kind == Some(RpcKindProto::RpcProtocolBuffer as u64)
            && op == Some(RpcRequestHeaderProtoOperationProto::RpcFinalPacket as u64);
        let call_id = call_id.filter(|id| is_call && *id >= 0)?;
        let after = |end: usize| {
            let part = delimited(&frame[end..], "").ok()?;
            Some(end + part.start..end + part.end)
        };
        let method = after(header.end)?;
        let body = after(method.end)?;
        let client_id = client_id?;
        Some(UsualCall { call_id, retry_count, client_id, state_id, method, body })
    }
}

/// Appends a response frame of status SUCCESS up to the message of `message_len` bytes, which is to follow. `state_id` is
/// the last entry that shows in it, for a client that wants to know.
///
/// `None`, and nothing appended, when it would not fit a Java client's signed length. Source: Hadoop 3.5.0
/// `Server#setupResponse`.
pub fn put_success_head(
    call_id: i32,
    retry_count: i32,
    client_id: &[u8],
    state_id: Option<i64>,
    message_len: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let zigzag = ((retry_count << 1) ^ (retry_count >> 31)) as u32;
    let varint_len = |value: u64| prost::length_delimiter_len(value as usize);
    let header_len = 1
        + varint_len(u64::from(call_id as u32))
        + 4
        + (1 + prost::length_delimiter_len(client_id.len()) + client_id.len())
        + (1 + varint_len(zigzag.into()))
        + state_id.map_or(0, |state_id| 1 + varint_len(state_id as u64));
    let len = prost::length_delimiter_len(header_len)
        + header_len
        + prost::length_delimiter_len(message_len)
        + message_len;
    let len = i32::try_from(len).ok()?;
    out.extend_from_slice(&len.to_be_bytes());
    put_varint(header_len as u64, out);
    out.push(0x08);
    put_varint(u64::from(call_id as u32), out);
    let status = RpcResponseHeaderProtoRpcStatusProto::Success as u8;
    out.extend_from_slice(&[0x10, status, 0x18, VERSION, 0x3a]);
    put_varint(client_id.len() as u64, out);
    out.extend_from_slice(client_id);
    out.push(0x40);
    put_varint(zigzag.into(), out);
    if let Some(state_id) = state_id {
        out.push(0x48);
        put_varint(state_id as u64, out);
    }
    put_varint(message_len as u64, out);
    Some(())
}

/// A response header of status SUCCESS for the call.
///
/// Source: Hadoop 3.5.0 `Server#setupResponse`.
pub fn success_header(call_id: i32, retry_count: i32, client_id: &[u8]) -> RpcResponseHeaderProto {
    RpcResponseHeaderProto {
        call_id: call_id as u32,
        status: RpcResponseHeaderProtoRpcStatusProto::Success as i32,
        server_ipc_version_num: Some(VERSION.into()),
        client_id: Some(client_id.to_vec()),
        retry_count: Some(retry_count),
        ..Default::default()
    }
}

/// A response header of status ERROR, or FATAL where `code` is one of the FATAL codes.
pub fn error_header(
    call_id: i32,
    retry_count: i32,
    client_id: &[u8],
    error: &crate::RemoteException,
) -> RpcResponseHeaderProto {
    RpcResponseHeaderProto {
        status: status_of(error.code) as i32,
        exception_class_name: Some(error.class.clone()),
        error_msg: Some(error.message.clone()),
        error_detail: Some(error.code as i32),
        ..success_header(call_id, retry_count, client_id)
    }
}

/// FATAL for the codes after which a server closes the connection, ERROR for the others.
pub fn status_of(
    code: RpcResponseHeaderProtoRpcErrorCodeProto,
) -> RpcResponseHeaderProtoRpcStatusProto {
    if code as i32 >= RpcResponseHeaderProtoRpcErrorCodeProto::FatalUnknown as i32 {
        RpcResponseHeaderProtoRpcStatusProto::Fatal
    } else {
        RpcResponseHeaderProtoRpcStatusProto::Error
    }
}

/// One whole response frame: `header`, and `message` (already encoded) when the call succeeded.
///
/// `None` when it would not fit a Java client's signed length.
pub fn encode_response(header: &RpcResponseHeaderProto, message: Option<&[u8]>) -> Option<Vec<u8>> {
    let body_len = message.map_or(0, |m| prost::length_delimiter_len(m.len()) + m.len());
    let len = i32::try_from(delimited_len(header) + body_len).ok()?;
    let mut out = Vec::with_capacity(4 + len as usize);
    out.extend_from_slice(&len.to_be_bytes());
    put_delimited(header, &mut out);
    if let Some(message) = message {
        put_varint(message.len() as u64, &mut out);
        out.extend_from_slice(message);
    }
    Some(out)
}

/// What a client of another version (or no RPC client at all) is told before it is closed: in
/// the format of its own version, and nothing below version 2.
///
/// Source: Hadoop 3.5.0 `Server.Connection#setupBadVersionResponse`.
pub fn version_mismatch_answer(client_version: i8) -> Vec<u8> {
    let message = format!(
        "Server IPC version {VERSION} cannot communicate with client version {client_version}"
    );
    let class = crate::exception::class::RPC_VERSION_MISMATCH;
    let mut out = Vec::new();
    match client_version {
        9.. => {
            let code = RpcResponseHeaderProtoRpcErrorCodeProto::FatalVersionMismatch;
            let error = crate::RemoteException::with_code(class, message, code);
            let header = error_header(CALL_ID_UNAUTHORIZED, RETRY_COUNT_NONE, &[], &error);
            return encode_frame(&header, None::<&RpcResponseHeaderProto>);
        }
        3..=8 => {
            out.extend_from_slice(&(-1i32).to_be_bytes()); // call id
            out.extend_from_slice(&(-1i32).to_be_bytes()); // status: fatal
        }
        2 => {
            out.extend_from_slice(&0i32.to_be_bytes()); // call id
            out.push(1); // an error follows
        }
        _ => return out,
    }
    for text in [class, &message] {
        out.extend_from_slice(&(text.len() as u32).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests;
