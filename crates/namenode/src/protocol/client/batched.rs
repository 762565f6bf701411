//! Listings of several paths in one call.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem#getBatchedListing`.

use cairn_net::rpc_server::Call;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use prost::Message;

use super::read::listing;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What a client sends back to go on: it must ask for the same paths.
fn checksum(paths: &[String]) -> Vec<u8> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in paths.iter().flat_map(|path| path.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash.to_be_bytes().to_vec()
}

fn illegal(message: String) -> Refusal {
    Refusal::new(class::ILLEGAL_ARGUMENT, message)
}

/// Where a listing goes on: at which path, behind which name in it.
fn resume(request: &pb::GetBatchedListingRequestProto) -> Result<(usize, Vec<u8>), Refusal> {
    if request.start_after.is_empty() {
        return Ok((0, Vec::new()));
    }
    let key = pb::BatchedListingKeyProto::decode(request.start_after.as_slice())
        .map_err(|error| Refusal::io(error.to_string()))?;
    if key.checksum != checksum(&request.paths) {
        return Err(illegal(String::new()));
    }
    let index = key.path_index as usize;
    // Without a name the last that was listed was a file: it is not listed again.
    Ok(if key.start_after.is_empty() { (index + 1, Vec::new()) } else { (index, key.start_after) })
}

/// Whether an exception is one of Java's `IOException` that says something of a path.
fn is_of_path(of: &str) -> bool {
    const OTHERS: [&str; 3] =
        [class::HADOOP_ILLEGAL_ARGUMENT, class::INVALID_PATH, class::OBSERVER_RETRY_ON_ACTIVE];
    !of.starts_with("java.lang.") && !OTHERS.contains(&of)
}

/// A page of the directories at each of several paths, as many as fit into one listing.
pub async fn get_batched_listing(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetBatchedListingRequestProto = call.decode()?;
    let paths = &request.paths;
    let max = node.config.batched_listing_limit;
    if paths.len() > max {
        return Err(illegal(format!("Too many source paths ({} > {max})", paths.len())));
    }
    let (mut index, mut after) = resume(&request)?;
    let caller = node.caller(call).await;
    let mut response = pb::GetBatchedListingResponseProto::default();
    let (mut count, mut last) = (0, None);
    while let Some(path) = paths.get(index) {
        let found = listing(node, call, &caller, path, &after, request.need_location);
        let found = found.and_then(|found| {
            let missing = || format!("Path {path} does not exist");
            found.ok_or_else(|| Refusal::new(class::FILE_NOT_FOUND, missing()))
        });
        let mut entry = pb::BatchedDirectoryListingProto {
            parent_idx: index as u32,
            ..pb::BatchedDirectoryListingProto::default()
        };
        last = match found {
            Ok(page) => {
                count += page.partial_listing.len();
                let name = page.partial_listing.last().map(|entry| entry.path.clone());
                entry.partial_listing = page.partial_listing;
                Some((name.unwrap_or_default(), page.remaining_entries > 0))
            }
            // What is no IOException in Java is none of one path only, nor is what the leader can tell.
            Err(refusal) if !is_of_path(&refusal.0.class) => return Err(refusal),
            Err(refusal) => {
                entry.exception = Some(pb::RemoteExceptionProto {
                    class_name: refusal.0.class.clone(),
                    message: Some(refusal.0.message),
                });
                None
            }
        };
        response.listings.push(entry);
        after.clear();
        if count >= node.config.listing_limit.max(1) {
            break;
        }
        index += 1;
    }
    let is_last_done = index + 1 == paths.len() && last.as_ref().is_some_and(|(_, more)| !more);
    if index < paths.len() && !is_last_done {
        response.has_more = true;
        response.start_after = pb::BatchedListingKeyProto {
            checksum: checksum(paths),
            path_index: index as u32,
            start_after: last.map_or(Vec::new(), |(name, _)| name),
        }
        .encode_to_vec();
    }
    answer(&response)
}
