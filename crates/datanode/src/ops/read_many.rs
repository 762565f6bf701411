//! READ_BLOCK of many blocks, each of them whole: what Cairn's client asks for where it reads the short files of a directory.
//!
//! Each block has an answer that says which one it is about, and its packets if that is a success. What is here comes first,
//! then what is packed, by its place: a range of a container is read for many. What cannot be had so is refused by itself;
//! its reader asks for it as for any other.

use super::read_block::{self, send_here};
use super::send::hear_verdict;
use super::virtual_block;
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::{BlockOpResponseProto, OpReadBlockProto, Status};
use cairn_wire::transfer::MAX_ALSO;
use std::sync::Arc;

/// Serves a request, of one block or of many.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReadBlockProto,
) -> Result<bool> {
    let is_client = !request.header.client_name.is_empty();
    if !is_client || request.from_server() || request.also.is_empty() {
        return read_block::serve(node, stream, request).await;
    }
    let first = messages::block(&request.header.base_header.block);
    serve_many(node, stream, &request, &first).await
}

/// Sends all that can be had, then reads the client's verdict. `first` is the block that the request names, for which its
/// token was looked at.
async fn serve_many(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    first: &Block,
) -> Result<bool> {
    if request.also.len() > MAX_ALSO {
        let count = request.also.len();
        return Err(DataNodeError::Peer(format!("{count} more blocks in one request")));
    }
    let (mut here, mut elsewhere, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut sort = |number: u32, block: Block| match virtual_block::check_unfenced(node, &block) {
        Err(error) => refused.push((number, Status::Error, error.to_string())),
        Ok(()) if virtual_block::may_be_elsewhere(node, &block) => elsewhere.push((number, block)),
        Ok(()) => here.push((number, block)),
    };
    sort(0, first.clone());
    let mut forbidden = Vec::new();
    for (number, also) in (1..).zip(&request.also) {
        match node.block_tokens.check_read(&also.block, &also.token) {
            Ok(()) => sort(number, messages::block(&also.block)),
            Err(error) => forbidden.push((number, Status::ErrorAccessToken, error.to_string())),
        }
    }
    for (number, block) in here {
        if let Err(error) = send_here(node, stream, request, &block, Some(number)).await? {
            refused.push((number, Status::Error, error.to_string()));
        }
    }
    for (number, error) in virtual_block::send_packed(node, stream, elsewhere).await? {
        refused.push((number, Status::Error, error.to_string()));
    }
    for (number, status, message) in refused.into_iter().chain(forbidden) {
        let answer = BlockOpResponseProto {
            status: status as i32,
            message: Some(message),
            answered: Some(number),
            ..Default::default()
        };
        stream.writer.send_message(&answer).await?;
    }
    hear_verdict(node, stream, first).await
}
