//! Questions about paths: status, listings, locations, sums.

use std::sync::Arc;

use cairn_master::Submission;
use cairn_namespace::ops::set_times::TouchAccessTime;
use cairn_namespace::query::{self, ContentSummary, FileBlocks, FileStatus, PathShown};
use cairn_namespace::{Block, BlockState, Caller, InodeId};
use cairn_net::rpc_server::Call;
use cairn_redundancy::Reader;
use cairn_stripe::{BlockId, StorageType};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::encode::{self, Signed};
use super::locate::{self, Locator};
use super::snapshot;
use super::told::Told;
use crate::block_tokens::Issuer;
use crate::config::ChecksumType;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};
use crate::store::Snapshot;

/// A quota or space that is not limited (`HdfsConstants.QUOTA_RESET` as an unsigned number).
const NO_QUOTA: u64 = u64::MAX;

/// Runs `work` with a locator for the caller of `call`, who may have failed to read where it was told before; the lock on
/// the cluster is short. `blocks` are those that are looked for.
pub(super) fn with_locator<R>(
    node: &NameNode,
    call: &Call,
    blocks: impl FnOnce() -> Vec<BlockId>,
    after_failure: bool,
    work: impl FnOnce(&Locator<'_>) -> R,
) -> R {
    with_locator_by(node, call, blocks, (after_failure, None), work)
}

fn with_locator_by<R>(
    node: &NameNode,
    call: &Call,
    blocks: impl FnOnce() -> Vec<BlockId>,
    (after_failure, told): (bool, Option<Told<'_>>),
    work: impl FnOnce(&Locator<'_>) -> R,
) -> R {
    let host = call.peer.ip().to_canonical().to_string();
    let rack = node.topology.rack_of_client(&host);
    let block_pool = node.ns.identity().block_pool_id.as_str();
    let reader = Reader { host: &host, rack: rack.as_deref() };
    let now = node.now();
    let ns = &node.ns;
    node.see_blocks(blocks, |cluster| {
        work(&Locator { cluster, block_pool, reader, now, after_failure, ns, told })
    })
}

/// The blocks of a file that are looked for.
pub(super) fn ids_of(found: &FileBlocks) -> Vec<BlockId> {
    found.blocks.iter().chain(&found.last).map(|(_, block)| block.id).collect()
}

/// As [`with_locator`], for what a member that follows may ask as well: refuses what is left to the leader.
pub(super) fn find<R>(
    node: &NameNode,
    call: &Call,
    blocks: impl FnOnce() -> Vec<BlockId>,
    after_failure: bool,
    work: impl FnOnce(&Locator<'_>) -> R,
) -> Result<R, Refusal> {
    let Some(kept) = &node.told else {
        return Ok(with_locator(node, call, blocks, after_failure, work));
    };
    let found = kept.hear(|standby, _| {
        with_locator_by(
            node,
            call,
            blocks,
            (after_failure, Some(Told::new(standby, &node.block_tokens))),
            |locator| {
                let found = work(locator);
                (!locator.leaves_something()).then_some(found)
            },
        )
    });
    found.flatten().ok_or_else(Refusal::left_to_leader)
}

/// What issues block tokens to whoever calls.
pub(super) fn issuer<'a>(node: &'a NameNode, call: &'a Call) -> Issuer<'a> {
    node.block_tokens.issuer(&node.ns.identity().block_pool_id, &call.user.effective)
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getBlockLocations`.
pub fn get_block_locations(node: &NameNode, call: &Call, caller: &Caller) -> Answer {
    let request: pb::GetBlockLocationsRequestProto = call.decode()?;
    let (path, offset, len) = (&request.src, request.offset, request.length);
    for (what, bytes) in [("offset", offset), ("length", len)] {
        if bytes > i64::MAX as u64 {
            let message = format!("Negative {what} is not supported. File: {path}");
            return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
        }
    }
    let now_ms = node.now().wall_ms;
    if !request.with_unit_crcs()
        && let Some(answer) = small_file_locations(node, call, caller, &request, now_ms)?
    {
        return Ok(answer);
    }
    let found =
        node.ns.read(|store| query::get_blocks(store, caller, path, offset, len, now_ms))?;
    // By the keys of before it is looked who has them.
    let issuer = issuer(node, call);
    let mut located = find(
        node,
        call,
        || ids_of(&found),
        request.after_failure(),
        |locator| locator.located_blocks(&found),
    )?;
    issuer.sign_file(&mut located);
    if request.with_unit_crcs() {
        for (proto, (_, block)) in located.blocks.iter_mut().zip(&found.blocks) {
            (proto.unit_crc_indices, proto.unit_crc32cs) = unit_crcs(block);
        }
    }
    if located.blocks.iter().any(|block| block.locs.is_empty()) {
        node.check_safe_mode(|| format!("Zero blocklocations for {path}"))?;
    }
    if found.touch {
        touch(node, found.status.inode.id)?;
    }
    answer(&pb::GetBlockLocationsResponseProto { locations: Some(located) })
}

/// Has the access time of a file set, which is left to the leader. A reader does not wait for that, nor fail for it.
pub(super) fn touch(node: &NameNode, file: InodeId) -> Result<(), Refusal> {
    if node.told.is_some() {
        return Err(Refusal::left_to_leader());
    }
    if node.safe_mode_tip().is_some() {
        return Ok(());
    }
    let node_ns = std::sync::Arc::clone(&node.ns);
    let submission = Submission::own(TouchAccessTime { file });
    tokio::spawn(async move {
        if let Err(error) = node_ns.submit(submission).await {
            tracing::debug!(%error, "access time not recorded");
        }
    });
    Ok(())
}

/// The answer for a file of one block at most, unless anything is unusual about it.
fn small_file_locations(
    node: &NameNode,
    call: &Call,
    caller: &Caller,
    request: &pb::GetBlockLocationsRequestProto,
    now_ms: u64,
) -> Result<Option<Vec<u8>>, Refusal> {
    let (path, range) = (&request.src, (request.offset, request.length));
    let (mut answer, mut touched) = (Ok(None), None);
    let issuer = issuer(node, call);
    node.ns.read(|store| {
        query::visit_small_file(store, caller, path, range, now_ms, &mut |found| {
            // Made before others have to wait for the cluster.
            let signed = Signed::of(found, &issuer);
            let blocks = || found.block.map(|block| block.id).into_iter().collect();
            answer = find(node, call, blocks, request.after_failure(), |locator| {
                locator.small_file(found, &signed)
            });
            touched = found.touch.then_some(found.entry.inode.id);
        })
    })?;
    let answer = answer?;
    if let (Some(_), Some(file)) = (&answer, touched) {
        touch(node, file)?;
    }
    Ok(answer)
}

/// The CRCs recorded of a complete block's units: which units, and the CRC32C of each.
fn unit_crcs(block: &Block) -> (Option<Vec<u8>>, Vec<u32>) {
    let recorded = block.unit_crcs.iter().filter(|_| block.state == BlockState::Complete);
    let known = (0u8..).zip(recorded).filter_map(|(unit, crc)| Some((unit, (*crc)?)));
    let (units, crcs) = known.unzip();
    (Some(units), crcs)
}

fn file_info(node: &NameNode, caller: &Caller, path: &str) -> Result<Option<FileStatus>, Refusal> {
    let found = node.ns.read(|store| query::get_file_info(store, caller, path));
    nothing_below_files(caller, found.map_err(Refusal::from))
}

/// What was found at a path, for who has asked: a superuser who asks below a file is told that nothing is there.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getFileInfo`.
fn nothing_below_files<T>(
    caller: &Caller,
    found: Result<Option<T>, Refusal>,
) -> Result<Option<T>, Refusal> {
    match found {
        Err(refusal) if caller.superuser && is_access_refusal(&refusal) => Ok(None),
        other => other,
    }
}

fn is_access_refusal(refusal: &Refusal) -> bool {
    refusal.0.is(class::ACCESS_CONTROL) || refusal.0.is(class::PARENT_NOT_DIRECTORY)
}

/// The status of a path as clients get it.
fn file_status(
    node: &NameNode,
    caller: &Caller,
    path: &str,
) -> Result<Option<pb::HdfsFileStatusProto>, Refusal> {
    match file_info(node, caller, path)? {
        Some(status) => Ok(Some(locate::file_status(&status, ""))),
        None => shown(node, caller, path),
    }
}

/// The status of what is shown although there is no inode: `/.reserved` and `.snapshot`.
fn shown(
    node: &NameNode,
    caller: &Caller,
    path: &str,
) -> Result<Option<pb::HdfsFileStatusProto>, Refusal> {
    let is_reserved = node.ns.read(|store| query::is_reserved_root(store, caller, path));
    match is_reserved {
        Ok(true) => Ok(Some(locate::reserved_status())),
        _ => nothing_below_files(caller, snapshot::file_info(node, caller, path)),
    }
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getFileInfo`.
pub fn get_file_info(node: &NameNode, call: &Call, caller: &Caller) -> Answer {
    let request: pb::GetFileInfoRequestProto = call.decode()?;
    let mut found = Vec::new();
    let is_found = node.ns.read(|store| {
        query::visit_file_info(store, caller, &request.src, &mut |entry| {
            found = encode::file_info(entry);
        })
    })?;
    if is_found {
        return Ok(found);
    }
    let fs = file_status(node, caller, &request.src)?;
    answer(&pb::GetFileInfoResponseProto { fs })
}

/// The same as `getFileInfo`, since there are no symbolic links.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getFileLinkInfo`.
pub fn get_file_link_info(node: &NameNode, call: &Call, caller: &Caller) -> Answer {
    let request: pb::GetFileLinkInfoRequestProto = call.decode()?;
    let fs = file_status(node, caller, &request.src)?;
    answer(&pb::GetFileLinkInfoResponseProto { fs })
}

/// The status of a path, with the locations of a file.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getLocatedFileInfo`.
pub fn get_located_file_info(node: &NameNode, call: &Call, caller: &Caller) -> Answer {
    let request: pb::GetLocatedFileInfoRequestProto = call.decode()?;
    let needs_token = request.need_block_token();
    let path = request.src.unwrap_or_default();
    let Some(status) = file_info(node, caller, &path)? else {
        let fs = shown(node, caller, &path)?;
        return answer(&pb::GetLocatedFileInfoResponseProto { fs });
    };
    let mut fs = locate::file_status(&status, "");
    if !status.inode.is_directory() {
        let issuer = issuer(node, call);
        fs.locations = locations_of(node, call, &path)?;
        if needs_token && node.config.block_tokens.is_some() {
            // A token is for who may read.
            let now_ms = node.now().wall_ms;
            node.ns.read(|store| query::get_blocks(store, caller, &path, 0, 0, now_ms))?;
            fs.locations.iter_mut().for_each(|located| issuer.sign_file(located));
        }
    }
    answer(&pb::GetLocatedFileInfoResponseProto { fs: Some(fs) })
}

fn locations_of(
    node: &NameNode,
    call: &Call,
    path: &str,
) -> Result<Option<pb::LocatedBlocksProto>, Refusal> {
    let found = snapshot::blocks_at(node, path)?;
    let locate = |found: FileBlocks| {
        find(node, call, || ids_of(&found), false, |locator| locator.located_blocks(&found))
    };
    found.map(locate).transpose()
}

/// One page of a directory, or a file by itself; `None` if nothing is there.
pub(super) fn listing(
    node: &NameNode,
    call: &Call,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    need_location: bool,
) -> Result<Option<pb::DirectoryListingProto>, Refusal> {
    if node.ns.read(|store| query::is_reserved_root(store, caller, path))? {
        return Ok(Some(locate::reserved_listing(node)));
    }
    let limit = node.config.listing_limit.max(1);
    let found =
        node.ns.read(|store| query::get_listing(store, caller, path, start_after, limit))?;
    let Some(listing) = found else { return Ok(None) };
    let mut remaining = listing.remaining;
    let mut budget = limit;
    let mut entries = Vec::with_capacity(listing.entries.len());
    for (index, status) in listing.entries.iter().enumerate() {
        let mut entry = locate::file_status(status, &status.inode.name);
        if need_location && !status.inode.is_directory() {
            // A file lists itself without a name.
            let below = if status.inode.name.is_empty() { "" } else { "/" };
            let path = format!("{path}{below}{}", status.inode.name);
            entry.locations = locations_of(node, call, &path)?;
            budget = budget.saturating_sub(location_count(&entry));
        }
        entries.push(entry);
        if budget == 0 {
            remaining += (listing.entries.len() - index - 1) as u64;
            break;
        }
    }
    let remaining_entries = u32::try_from(remaining).unwrap_or(u32::MAX);
    Ok(Some(pb::DirectoryListingProto { partial_listing: entries, remaining_entries }))
}

fn location_count(entry: &pb::HdfsFileStatusProto) -> usize {
    let blocks = entry.locations.as_ref().map_or(&[][..], |located| &located.blocks);
    blocks.iter().map(|block| block.locs.len()).sum()
}

/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#isFileClosed`.
pub async fn is_file_closed(node: &NameNode, call: &Call) -> Answer {
    let request: pb::IsFileClosedRequestProto = call.decode()?;
    let path = &request.src;
    let status = existing_file(node, call, path, PathShown::AsGiven).await?;
    answer(&pb::IsFileClosedResponseProto { result: !status.is_under_construction() })
}

/// Source: Hadoop 3.5.0 `INodeFile#valueOf`.
async fn existing_file(
    node: &NameNode,
    call: &Call,
    path: &str,
    told: PathShown,
) -> Result<FileStatus, Refusal> {
    node.query(call, |store, caller| query::get_file(store, caller, path, told)).await
}

/// Source: Hadoop 3.5.0 `FSDirAttrOp#getPreferredBlockSize`.
pub async fn get_preferred_block_size(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetPreferredBlockSizeRequestProto = call.decode()?;
    let status = existing_file(node, call, &request.filename, PathShown::AsFollowed).await?;
    answer(&pb::GetPreferredBlockSizeResponseProto { bsize: status.block_size() })
}

/// Source: Hadoop 3.5.0 `PBHelperClient#getBuilder`.
fn type_quotas(sum: &ContentSummary) -> pb::StorageTypeQuotaInfosProto {
    let counted = StorageType::ALL.into_iter().filter(|kind| kind.is_counted());
    let infos = counted.map(|kind| pb::StorageTypeQuotaInfoProto {
        r#type: Some(kind.number()),
        quota: sum.types_max[kind].unwrap_or(NO_QUOTA),
        consumed: sum.types[kind],
    });
    pb::StorageTypeQuotaInfosProto { type_quota_info: infos.collect() }
}

/// Asks what may be a walk over a large tree, where that holds up neither the calls of others nor, with many such calls,
/// what else needs threads that may wait.
async fn walk<R: Send + 'static>(
    node: &NameNode,
    call: &Call,
    ask: impl FnOnce(&Snapshot) -> cairn_namespace::Result<R> + Send + 'static,
) -> Result<R, Refusal> {
    let interrupted = || Refusal::io(format!("{} was interrupted", &*call.method));
    let turn = Arc::clone(&node.walks).acquire_owned().await.map_err(|_| interrupted())?;
    let ns = Arc::clone(&node.ns);
    let work = move || {
        // It lasts as long as the walk, also for a caller that is gone.
        let _turn = turn;
        ns.read(ask)
    };
    let walked = tokio::task::spawn_blocking(work).await;
    Ok(walked.map_err(|_| interrupted())??)
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getContentSummary`.
pub async fn get_content_summary(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetContentSummaryRequestProto = call.decode()?;
    let (caller, path) = (node.caller(call).await, request.path);
    let sum = walk(node, call, move |store| query::content_summary(store, &caller, &path)).await?;
    answer(&pb::GetContentSummaryResponseProto {
        summary: pb::ContentSummaryProto {
            length: sum.len,
            file_count: sum.files,
            directory_count: sum.directories,
            quota: sum.names_max.unwrap_or(NO_QUOTA),
            space_consumed: sum.space,
            space_quota: sum.space_max.unwrap_or(NO_QUOTA),
            type_quota_infos: Some(type_quotas(&sum)),
            snapshot_length: Some(sum.held.len),
            snapshot_file_count: Some(sum.held.files),
            snapshot_directory_count: Some(sum.held.directories),
            snapshot_space_consumed: Some(sum.held.space),
            erasure_coding_policy: Some(sum.policy),
        },
    })
}

/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getQuotaUsage`.
pub async fn get_quota_usage(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetQuotaUsageRequestProto = call.decode()?;
    let (caller, path) = (node.caller(call).await, request.path);
    // Without a quota it is a walk too.
    let sum = walk(node, call, move |store| query::quota_usage(store, &caller, &path)).await?;
    answer(&pb::GetQuotaUsageResponseProto {
        usage: pb::QuotaUsageProto {
            file_and_directory_count: sum.files + sum.directories,
            quota: sum.names_max.unwrap_or(NO_QUOTA),
            space_consumed: sum.space,
            space_quota: sum.space_max.unwrap_or(NO_QUOTA),
            type_quota_infos: Some(type_quotas(&sum)),
        },
    })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getServerDefaults`.
pub async fn get_server_defaults(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetServerDefaultsRequestProto = call.decode()?;
    let config = &node.config;
    let checksum_type = match config.checksum_type {
        ChecksumType::Null => pb::ChecksumTypeProto::ChecksumNull,
        ChecksumType::Crc32 => pb::ChecksumTypeProto::ChecksumCrc32,
        ChecksumType::Crc32c => pb::ChecksumTypeProto::ChecksumCrc32c,
    };
    answer(&pb::GetServerDefaultsResponseProto {
        server_defaults: pb::FsServerDefaultsProto {
            block_size: config.block_len,
            bytes_per_checksum: config.bytes_per_checksum,
            write_packet_size: config.write_packet_len,
            replication: config.replication.into(),
            file_buffer_size: config.file_buffer_len,
            encrypt_data_transfer: Some(node.config.encrypts_data),
            trash_interval: Some(config.trash_interval_minutes),
            checksum_type: Some(checksum_type as i32),
            // An empty address tells clients that there is no key provider, so they do not ask.
            key_provider_uri: Some(
                config
                    .encryption
                    .key_provider
                    .as_ref()
                    .map_or_else(String::new, ToString::to_string),
            ),
            policy_id: Some(config.default_storage_policy.id.into()),
            snapshot_trash_root_enabled: Some(config.snapshot_trash_roots),
            http_port: node.http_addr.map(|addr| addr.port().into()),
        },
    })
}

/// There are no symbolic links, so a path is missing or is none.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getLinkTarget`.
pub async fn get_link_target(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetLinkTargetRequestProto = call.decode()?;
    let path = &request.path;
    Err(match file_status(node, &node.caller(call).await, path)? {
        None => Refusal::new(class::FILE_NOT_FOUND, format!("File does not exist: {path}")),
        Some(_) => Refusal::io(format!("Path {path} is not a symbolic link")),
    })
}
