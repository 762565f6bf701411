//! What is not there yet, refused as Hadoop refuses a feature that is switched off, and the questions
//! about such features that have a true answer: there are none.

use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;

use super::paths::check_path_len;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What Hadoop throws for services of a NameNode that do not run.
pub(super) const UNSUPPORTED_ACTION: &str =
    "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException";

/// Refuses a method that Hadoop has and Cairn has not yet.
pub async fn refuse(call: &Call) -> Answer {
    Err(match call.method.as_str() {
        "createSymlink" => {
            let request: pb::CreateSymlinkRequestProto = call.decode()?;
            check_path_len("createSymlink", &request.link)?;
            Refusal::unsupported("Symlinks not supported")
        }
        method => Refusal::unsupported(format!("{method} is not supported")),
    })
}

/// A key for all data; none where data transfer is not encrypted.
///
/// Source: Hadoop 3.5.0 `BlockManager#generateDataEncryptionKey`.
pub async fn get_data_encryption_key(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetDataEncryptionKeyRequestProto = call.decode()?;
    let key = match node.config.encrypts_data {
        true => node.block_tokens.data_key(&node.ns.identity().block_pool_id),
        false => Ok(None),
    };
    let data_encryption_key =
        key.map_err(|error| Refusal::io(format!("no random numbers: {error}")))?;
    answer(&pb::GetDataEncryptionKeyResponseProto { data_encryption_key })
}
