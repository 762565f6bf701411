//! What is not there yet, refused as Hadoop refuses a feature that is switched off, and the questions
//! about such features that have a true answer: there are none.

use cairn_net::rpc_server::Call;
use cairn_wire::proto::common;
use cairn_wire::proto::hdfs as pb;

use super::paths::check_path_len;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What Hadoop throws for services of a NameNode that do not run.
pub(super) const UNSUPPORTED_ACTION: &str =
    "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException";
/// What Hadoop throws for tokens that it has not issued.
const INVALID_TOKEN: &str = "org.apache.hadoop.security.token.SecretManager$InvalidToken";
/// What Java throws when bytes end too early; its text is its name.
const END_OF_FILE: &str = "java.io.EOFException";

/// Refuses a method that Hadoop has and Cairn has not yet.
pub async fn refuse(node: &NameNode, call: &Call) -> Answer {
    Err(match call.method.as_str() {
        "createSymlink" => {
            let request: pb::CreateSymlinkRequestProto = call.decode()?;
            check_path_len("createSymlink", &request.link)?;
            Refusal::unsupported("Symlinks not supported")
        }
        "renewDelegationToken" => {
            let request: common::RenewDelegationTokenRequestProto = call.decode()?;
            node.check_safe_mode(|| "Cannot renew delegation token".to_string())?;
            unknown_token(&request.token)
        }
        "cancelDelegationToken" => {
            let request: common::CancelDelegationTokenRequestProto = call.decode()?;
            node.check_safe_mode(|| "Cannot cancel delegation token".to_string())?;
            unknown_token(&request.token)
        }
        method => Refusal::unsupported(format!("{method} is not supported")),
    })
}

/// There is none that this NameNode has issued.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#cancelToken`.
fn unknown_token(token: &common::TokenProto) -> Refusal {
    match token.identifier.is_empty() {
        true => Refusal::new(END_OF_FILE, END_OF_FILE),
        false => Refusal::new(INVALID_TOKEN, "Token not found"),
    }
}

/// No token, as Hadoop answers without security; clients then go on without.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getDelegationToken`.
pub async fn get_delegation_token(node: &NameNode, call: &Call) -> Answer {
    let _: common::GetDelegationTokenRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot issue delegation token".to_string())?;
    answer(&common::GetDelegationTokenResponseProto { token: None })
}

/// No key: data transfer is not encrypted.
///
/// Source: Hadoop 3.5.0 `BlockManager#generateDataEncryptionKey`.
pub async fn get_data_encryption_key(_node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetDataEncryptionKeyRequestProto = call.decode()?;
    answer(&pb::GetDataEncryptionKeyResponseProto { data_encryption_key: None })
}
