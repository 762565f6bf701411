//! Who is asked about names: the NameNode of this process, or one elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;

use cairn_net::rpc_server::{Call, LocalService, UserInfo};
use cairn_security::token::Token;
use prost::Message;

use crate::failure::Failure;
use crate::files::FileSystems;

/// The protocol that clients speak to NameNodes.
const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

/// Who asks, and from where.
pub(crate) struct Asker {
    pub(crate) user: Arc<UserInfo>,
    /// The token that has shown it, if one has.
    pub(crate) token: Option<Token>,
    pub(crate) peer: SocketAddr,
}

/// A NameNode.
#[derive(Clone)]
pub(crate) enum Names {
    /// In this process: it is called as if by RPC, without a connection.
    Here(Arc<dyn LocalService>),
    /// Elsewhere.
    Elsewhere(Arc<FileSystems>),
}

impl Names {
    /// For whom a token speaks. A NameNode elsewhere judges it when it is used.
    pub(crate) async fn user_of_token(&self, token: &Token) -> Result<UserInfo, Failure> {
        match self {
            Names::Here(service) => Ok(service.user_of_token(token).await?),
            Names::Elsewhere(files) => files.user_of_token(token),
        }
    }

    /// Makes a call of `ClientProtocol`.
    pub(crate) async fn call<Req: Message, Resp: Message + Default>(
        &self,
        asker: &Asker,
        method: &'static str,
        request: &Req,
    ) -> Result<Resp, Failure> {
        match self {
            Names::Here(service) => {
                let call = Call {
                    protocol: CLIENT_PROTOCOL.to_string().into(),
                    method: method.to_string().into(),
                    version: 1,
                    user: Arc::clone(&asker.user),
                    // Nobody repeats it.
                    client_id: [0; 16],
                    call_id: 0,
                    retry_count: -1,
                    peer: asker.peer,
                    body: request.encode_to_vec().into(),
                    connection_protocol: CLIENT_PROTOCOL.into(),
                    caller_context: None,
                    carrier: "webhdfs",
                    state: None,
                };
                let answer = service.call_here(call).await?;
                Resp::decode(&answer[..]).map_err(|error| Failure::io(error.to_string()))
            }
            Names::Elsewhere(files) => {
                Ok(files.of(&asker.user, &asker.token)?.call(method, request).await?)
            }
        }
    }
}
