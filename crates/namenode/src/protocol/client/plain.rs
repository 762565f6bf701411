//! The plain view, for clients that know no erasure coding: behind an address of its own, striped files are told as plain
//! ones, each block group as one block that DataNodes put together, and new files are never striped.
//!
//! What is told elsewhere is turned, so that no other handler knows of views.

use cairn_namespace::query;
use cairn_net::rpc_server::Call;
use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyLayout};
use cairn_wire::proto::hdfs as pb;
use prost::Message;

use super::locate::Locator;
use super::read::{issuer, with_locator};
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Handles a call of this protocol for who knows no erasure coding.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    let made;
    let call = match call.method.as_str() {
        "create" => {
            made = create(node, call).await?;
            &made
        }
        _ => call,
    };
    view(node, call, super::handle(node, call).await?)
}

/// The call that makes a file which is not striped, whatever its directory asks for.
async fn create(node: &NameNode, call: &Call) -> Result<Call, Refusal> {
    let mut request: pb::CreateRequestProto = call.decode()?;
    let is_striped = |policy: &Policy| policy.layout == PolicyLayout::Striped;
    match request.ec_policy_name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => {
            let known = node.ns.read(|store| query::policies(store))?;
            if known.iter().any(|known| known.policy.name == name && is_striped(&known.policy)) {
                return Err(Refusal::io(format!(
                    "no file is written with {name} by this address, which is for clients that know no erasure coding: \
                     name a contiguous policy, or use the ordinary address"
                )));
            }
        }
        None => {
            let path = &request.src;
            let asked =
                node.query(call, |store, caller| query::inherited_ec_policy(store, caller, path));
            // What is wrong with the path, creating it says.
            if asked.await.is_ok_and(|policy| policy.as_ref().is_some_and(is_striped)) {
                request.create_flag |= pb::CreateFlagProto::ShouldReplicate as u32;
            }
        }
    }
    Ok(Call { body: request.encode_to_vec().into(), ..call.clone() })
}

/// An answer as who knows no erasure coding understands it.
fn view(node: &NameNode, call: &Call, told: Vec<u8>) -> Answer {
    let blocks = |file: &mut pb::LocatedBlocksProto| plain_blocks(node, call, file);
    let statuses = |statuses: &mut [pb::HdfsFileStatusProto]| {
        for status in statuses {
            plain_status(status);
            status.locations.iter_mut().for_each(blocks);
        }
    };
    let status = |status: &mut Option<pb::HdfsFileStatusProto>| statuses(status.as_mut_slice());
    match call.method.as_str() {
        "getFileInfo" => turned(&told, |it: &mut pb::GetFileInfoResponseProto| status(&mut it.fs)),
        "getFileLinkInfo" => {
            turned(&told, |it: &mut pb::GetFileLinkInfoResponseProto| status(&mut it.fs))
        }
        "getLocatedFileInfo" => {
            turned(&told, |it: &mut pb::GetLocatedFileInfoResponseProto| status(&mut it.fs))
        }
        "create" => turned(&told, |it: &mut pb::CreateResponseProto| status(&mut it.fs)),
        "append" => turned(&told, |it: &mut pb::AppendResponseProto| status(&mut it.stat)),
        "getListing" => turned(&told, |it: &mut pb::GetListingResponseProto| {
            it.dir_list.iter_mut().for_each(|page| statuses(&mut page.partial_listing));
        }),
        "getBatchedListing" => turned(&told, |it: &mut pb::GetBatchedListingResponseProto| {
            it.listings.iter_mut().for_each(|page| statuses(&mut page.partial_listing));
        }),
        "getBlockLocations" => turned(&told, |it: &mut pb::GetBlockLocationsResponseProto| {
            it.locations.iter_mut().for_each(blocks);
        }),
        _ => Ok(told),
    }
}

fn turned<M: Message + Default>(told: &[u8], turn: impl FnOnce(&mut M)) -> Answer {
    let mut message = M::decode(told).map_err(|error| Refusal::io(error.to_string()))?;
    turn(&mut message);
    answer(&message)
}

/// Of a directory the policy is told: it is what files made by others get.
fn plain_status(status: &mut pb::HdfsFileStatusProto) {
    if status.file_type == pb::HdfsFileStatusProtoFileType::IsFile as i32 {
        status.ec_policy = None;
        let has_ec = pb::HdfsFileStatusProtoFlags::HasEc as u32;
        status.flags = status.flags.map(|flags| flags & !has_ec);
    }
}

/// A group that is still being written is not told: readers see what is before it.
fn plain_blocks(node: &NameNode, call: &Call, file: &mut pb::LocatedBlocksProto) {
    if file.ec_policy.take().is_none() {
        return;
    }
    if !file.is_last_block_complete
        && let Some(open) = file.last_block.take()
    {
        file.blocks.retain(|block| block.b.block_id != open.b.block_id);
        file.is_last_block_complete = true;
    }
    let mut all = file.blocks.iter().chain(&file.last_block);
    let is_signed = all.any(|block| !block.block_token.identifier.is_empty());
    let blocks = file.blocks.iter().chain(&file.last_block);
    let ids: Vec<BlockId> = blocks.map(|block| BlockId(block.b.block_id as i64)).collect();
    with_locator(
        node,
        call,
        || ids,
        false,
        |locator| {
            file.blocks
                .iter_mut()
                .chain(&mut file.last_block)
                .for_each(|block| plain(locator, block));
        },
    );
    if is_signed {
        issuer(node, call).sign_file(file);
    }
}

fn plain(locator: &Locator<'_>, block: &mut pb::LocatedBlockProto) {
    let group = BlockId(block.b.block_id as i64);
    if let Some(view) = group.plain_view() {
        let gs = GenerationStamp(block.b.generation_stamp);
        let extended = locator.extended(view, gs, block.b.num_bytes());
        let places = locator.viewers(group, block.corrupt);
        *block = locator.located(extended, block.offset, &places, false);
    }
}
