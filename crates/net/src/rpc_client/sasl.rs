//! A client shows who it is, before anything else is said on a connection.

use std::io;

use cairn_security::client::{ClientHandshake, ClientStep, Credentials};
use cairn_security::digest_md5::NONCE_LEN;
use cairn_security::sasl::Layer;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    RpcResponseHeaderProto, RpcResponseHeaderProtoRpcStatusProto as Status, RpcSaslProto,
};
use cairn_wire::rpc;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::options::RpcClientOptions;
use crate::channel::Channel;
use crate::frame::FrameReader;
use cairn_process::disk_work::may_wait;

/// Bytes of the longest message that is taken before both sides know each other.
const MESSAGE_MAX: u32 = 64 << 10;

/// How a client is known to the server.
pub(super) enum Known {
    /// By its word.
    Simple,
    /// By a ticket of Kerberos.
    Kerberos(Option<Layer>),
    /// By a token.
    Token(Option<Layer>),
}

/// Speaks with the server until it knows the client. The preamble has been sent.
///
/// Source: Hadoop 3.5.0 `SaslRpcClient#saslConnect`.
pub(super) async fn authenticate(
    reader: &mut FrameReader<Channel<OwnedReadHalf>>,
    sink: &mut OwnedWriteHalf,
    credentials: &dyn Credentials,
    options: &RpcClientOptions,
) -> io::Result<Known> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    let (mut handshake, first) = ClientHandshake::begin(nonce);
    let denied = |error: String| io::Error::new(io::ErrorKind::PermissionDenied, error);
    let mut next = first;
    loop {
        let header = rpc::request_header(rpc::CALL_ID_SASL, rpc::RETRY_COUNT_NONE, &[]);
        sink.write_all(&rpc::encode_frame(&header, Some(&next))).await?;
        let frame = reader.read_frame(MESSAGE_MAX, options.connect_timeout).await;
        let frame = frame.map_err(|error| io::Error::other(error.to_string()))?;
        let mut frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?;
        let header: RpcResponseHeaderProto =
            rpc::take_delimited(&mut frame, "RpcResponseHeaderProto")
                .map_err(|error| denied(error.to_string()))?;
        if header.status() != Status::Success {
            let message = header.error_msg.unwrap_or_default();
            let name = header.exception_class_name.unwrap_or_default();
            // Who is not the active one, or is just beginning, does not judge.
            return Err(match name == class::STANDBY || name == class::RETRIABLE {
                true => io::Error::other(format!("{name}: {message}")),
                false => denied(format!("{name}: {message}")),
            });
        }
        if header.call_id as i32 != rpc::CALL_ID_SASL {
            return Err(denied("Non-SASL response during negotiation".into()));
        }
        let message: RpcSaslProto = rpc::take_delimited(&mut frame, "RpcSaslProto")
            .map_err(|error| denied(error.to_string()))?;
        // The Kerberos library asks key distribution centres.
        let step = may_wait(|| handshake.take(message, credentials));
        match step.map_err(|error| denied(error.0))? {
            ClientStep::Send(message) => next = message,
            ClientStep::Simple => return Ok(Known::Simple),
            ClientStep::Done(layer) if handshake.is_kerberos() => {
                return Ok(Known::Kerberos(layer));
            }
            ClientStep::Done(layer) => return Ok(Known::Token(layer)),
        }
    }
}
