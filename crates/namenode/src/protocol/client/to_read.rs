//! A page of a directory for a client that reads its short files: with the blocks of those, as if it had opened each.

use cairn_namespace::{Caller, query};
use cairn_net::rpc_server::Call;
use cairn_stripe::Redundancy;
use cairn_wire::proto::hdfs as pb;

use super::read::{self, find, ids_of, issuer, touch};
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`.
pub fn get_listing(node: &NameNode, call: &Call, caller: &Caller) -> Answer {
    let request: pb::GetListingRequestProto = call.decode()?;
    let (path, after) = (&request.src, &request.start_after);
    let is_reserved = node.ns.read(|store| query::is_reserved_root(store, caller, path))?;
    let read_up_to = request.read_up_to.filter(|_| !request.need_location && !is_reserved);
    if let Some(read_up_to) = read_up_to {
        let dir_list = listing(node, call, caller, (path, after), read_up_to)?;
        return answer(&pb::GetListingResponseProto { dir_list });
    }
    if !request.need_location && !is_reserved {
        return super::listing::encoded(node, caller, path, after);
    }
    let dir_list = read::listing(node, call, caller, path, after, request.need_location)?;
    answer(&pb::GetListingResponseProto { dir_list })
}

/// As [`read::listing`], with the blocks and tokens of files with at most `read_up_to` bytes. Not of those that the caller
/// may not read, that are open or striped, or that have more than a block or none that can be read: who opens one of these
/// hears why.
fn listing(
    node: &NameNode,
    call: &Call,
    caller: &Caller,
    (path, start_after): (&str, &[u8]),
    read_up_to: u64,
) -> Result<Option<pb::DirectoryListingProto>, Refusal> {
    let mut page = read::listing(node, call, caller, path, start_after, false)?;
    let is_file = |entry: &pb::HdfsFileStatusProto| {
        entry.file_type == pb::HdfsFileStatusProtoFileType::IsFile as i32
    };
    let entries = page.iter_mut().flat_map(|page| &mut page.partial_listing);
    for entry in entries.filter(|entry| is_file(entry) && entry.length <= read_up_to) {
        let name = String::from_utf8_lossy(&entry.path);
        // A file lists itself without a name.
        let below = if name.is_empty() { "" } else { "/" };
        entry.locations = blocks(node, call, caller, &format!("{path}{below}{name}"))?;
    }
    Ok(page)
}

fn blocks(
    node: &NameNode,
    call: &Call,
    caller: &Caller,
    path: &str,
) -> Result<Option<pb::LocatedBlocksProto>, Refusal> {
    let now_ms = node.now().wall_ms;
    let found = node.ns.read(|store| query::get_blocks(store, caller, path, 0, u64::MAX, now_ms));
    let is_plain = |found: &query::FileBlocks| {
        let is_whole = found.blocks.len() <= 1 && !found.status.is_under_construction();
        is_whole && matches!(found.redundancy, Redundancy::Replicated(_))
    };
    let Some(found) = found.ok().filter(is_plain) else { return Ok(None) };
    let ids = || ids_of(&found);
    let mut located = find(node, call, ids, false, |locator| locator.located_blocks(&found))?;
    if located.blocks.iter().any(|block| block.corrupt || block.locs.is_empty()) {
        return Ok(None);
    }
    // It is the only one.
    located.last_block = None;
    issuer(node, call).sign_file(&mut located);
    if found.touch {
        touch(node, found.status.inode.id)?;
    }
    Ok(Some(located))
}
