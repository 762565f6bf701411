//! One connection to a DataNode for one operation, and what it is asked.

pub(crate) mod checksum;
pub(crate) mod hedges;
pub(crate) mod local;
pub(crate) mod pace;
pub(crate) mod pool;
pub(crate) mod read_block;
pub(crate) mod read_into;
pub(crate) mod read_many;
pub(crate) mod read_range;
pub(crate) mod reads;
pub(crate) mod scratch;
pub(crate) mod secure;
pub(crate) mod silent;
mod verify;
pub(crate) mod write_block;

use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::protocol::convert::{self, Located, Token};
use crate::protocol::namenode::remote_error;
use crate::types::DataNodeAddr;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError, SharedCredentials};
use cairn_net::transfer_stream::{TransferError, TransferOptions, TransferStream};
use cairn_security::client::ShownToken;
use cairn_security::digest_md5::Secret;
use cairn_security::transfer::Unknown;
use cairn_wire::proto::hdfs::*;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The protocol that clients speak to DataNodes.
const CLIENT_DATANODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";

/// What each further DataNode of a pipeline adds to the time limits.
///
/// Source: Hadoop 3.5.0 `HdfsConstants#READ_TIMEOUT_EXTENSION`.
const PER_NODE: Duration = Duration::from_secs(5);

/// Opens a connection to a DataNode that writes through `nodes` of them, for an operation with a token.
pub(crate) async fn connect(
    config: &ClientConfig,
    addr: &DataNodeAddr,
    nodes: usize,
    token: &Token,
) -> Result<TransferStream> {
    let xfer = addr.xfer_addr();
    let failed = |source| ClientError::DataNode { addr: xfer.clone(), source };
    let found = tokio::net::lookup_host((addr.ip.as_str(), addr.xfer_port)).await;
    let socket = found.map_err(failed)?.next();
    let socket = socket.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let read_timeout = read_timeout(config, nodes);
    let options = TransferOptions {
        connect_timeout: config.socket_timeout,
        read_timeout,
        write_timeout: read_timeout,
        ..TransferOptions::default()
    };
    let failed = |error| failure(addr, error);
    let mut is_again = false;
    loop {
        let mut stream = TransferStream::connect(socket, &options).await.map_err(failed)?;
        let Some((policy, shown)) = config.data_security.shown(token).await? else {
            return Ok(stream);
        };
        match stream.introduce(&policy, &shown).await {
            Ok(()) => return Ok(stream),
            // There are others since the DataNode or the NameNode has started anew.
            Err(TransferError::Unknown(Unknown::Key(_))) if !is_again => {
                config.data_security.forget_key().await;
                is_again = true;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// How long to wait for a word of the first of so many DataNodes.
fn read_timeout(config: &ClientConfig, nodes: usize) -> Duration {
    config.socket_timeout + PER_NODE * nodes as u32
}

/// A failure of the connection to a DataNode.
pub(crate) fn failure(addr: &DataNodeAddr, error: TransferError) -> ClientError {
    let source = match error {
        TransferError::Unknown(Unknown::Token(error)) => {
            return ClientError::Refused {
                addr: addr.xfer_addr(),
                status: Status::ErrorAccessToken as i32,
                message: error.to_string(),
                first_bad_link: String::new(),
            };
        }
        TransferError::Unknown(error) => {
            io::Error::new(io::ErrorKind::PermissionDenied, error.to_string())
        }
        TransferError::Io(source) | TransferError::File(source) => source,
        timeout @ TransferError::Timeout { .. } => {
            io::Error::new(io::ErrorKind::TimedOut, timeout.to_string())
        }
        wire => io::Error::new(io::ErrorKind::InvalidData, wire.to_string()),
    };
    ClientError::DataNode { addr: addr.xfer_addr(), source }
}

/// Reads the answer to an operation; anything but success is an error.
pub(crate) async fn response(
    stream: &mut TransferStream,
    addr: &DataNodeAddr,
) -> Result<BlockOpResponseProto> {
    let answer = stream.reader.read_message("BlockOpResponseProto").await;
    checked(answer.map_err(|error| failure(addr, error))?, addr)
}

/// The answer to an operation; anything but success is an error.
fn checked(response: BlockOpResponseProto, addr: &DataNodeAddr) -> Result<BlockOpResponseProto> {
    if response.status == Status::Success as i32 {
        return Ok(response);
    }
    Err(ClientError::Refused {
        addr: addr.xfer_addr(),
        status: response.status,
        message: response.message.unwrap_or_default(),
        first_bad_link: response.first_bad_link.unwrap_or_default(),
    })
}

/// A block token that is shown to a DataNode's RPC port; nothing where there are none.
fn shown(token: &Token) -> Option<SharedCredentials> {
    let Token { identifier, password, .. } = token.clone();
    let secret = Secret { identifier, password };
    let is_token = !secret.identifier.is_empty();
    is_token.then(|| SharedCredentials(Arc::new(ShownToken(secret))))
}

/// How many bytes of a block that is being written a reader may see.
///
/// Source: Hadoop 3.5.0 `ClientDatanodeProtocol#getReplicaVisibleLength`.
pub(crate) async fn visible_len(
    config: &ClientConfig,
    addr: &DataNodeAddr,
    located: &Located,
) -> Result<u64> {
    let block = &located.block.block;
    let ipc = format!("{}:{}", addr.ip, addr.ipc_port);
    let options = RpcClientOptions {
        call_timeout: config.socket_timeout,
        credentials: shown(&located.whole),
        ..RpcClientOptions::default()
    };
    let rpc = RpcClient::new(&ipc, CLIENT_DATANODE_PROTOCOL, config.user.as_str(), options);
    let request = GetReplicaVisibleLengthRequestProto { block: convert::block_proto(block) };
    let answer = rpc.call("getReplicaVisibleLength", &request).await;
    let response: GetReplicaVisibleLengthResponseProto = answer.map_err(|error| match error {
        RpcError::Remote(remote) => remote_error(remote),
        other => ClientError::DataNode { addr: ipc, source: io::Error::other(other) },
    })?;
    // Hadoop's DataNodes say -1 of a replica that waits to be recovered.
    if i64::try_from(response.length).is_err() {
        let what = format!("{} of {block}: its length is not known", addr.xfer_addr());
        return Err(ClientError::Protocol(what));
    }
    Ok(response.length)
}
