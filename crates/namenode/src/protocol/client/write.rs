//! Writing files: create, append, the blocks one after another, close, and leases.
//!
//! A handler that needs to know where replicas are asks the cluster first, hands what it learnt to
//! the command, and tells the cluster what the command has done.

use std::time::Duration;

use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::{RecoverLease, RenewLease};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{BlockRef, Caller, Command, InodeId, Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::{BlockState, Reader, StoragePolicy};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::committed;
use super::encryption;
use super::locate::{self, Locator};
use super::paths::check_path_len;
use super::places::Places;
use super::tree::create_mode;
use crate::lookup;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// How long `complete` waits for DataNodes' reports before it tells the client to ask again: clients
/// pause for longer than reports take.
const COMPLETE_PATIENCE: Duration = Duration::from_millis(300);

/// A block as a client names it, which must be of this file system.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#checkBlock`.
pub(super) fn block_ref(
    node: &NameNode,
    block: &pb::ExtendedBlockProto,
) -> Result<BlockRef, Refusal> {
    let expected = &node.ns.identity().block_pool_id;
    if block.pool_id != *expected {
        let message = format!("Unexpected BlockPoolId {} - expected {expected}", block.pool_id);
        return Err(Refusal::io(message));
    }
    let len = block.num_bytes();
    check_len(len)?;
    let gs = GenerationStamp(block.generation_stamp);
    Ok(BlockRef { id: BlockId(block.block_id as i64), gs, len })
}

/// Refuses lengths that Java knows as negative: no block is that long.
pub(crate) fn check_len(len: u64) -> Result<(), Refusal> {
    match i64::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::io(format!("A block cannot have {} bytes", len as i64))),
    }
}

/// A block as Hadoop writes it into refusals.
///
/// Source: Hadoop 3.5.0 `ExtendedBlock#toString`.
pub(super) fn in_pool(node: &NameNode, block: &BlockRef) -> String {
    format!("{}:{}_{}", node.ns.identity().block_pool_id, block.id, block.gs)
}

/// The file id that a client sent; 0 stands for none (`HdfsConstants.GRANDFATHER_INODE_ID`).
pub(super) fn file_id(id: Option<u64>) -> Option<InodeId> {
    id.filter(|id| *id != 0).map(InodeId)
}

fn has(flags: u32, flag: pb::CreateFlagProto) -> bool {
    flags & flag as u32 != 0
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#create`, `FSNamesystem#startFile`.
pub async fn create(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CreateRequestProto = call.decode()?;
    check_path_len("create", &request.src)?;
    let flags = request.create_flag;
    let policy = request.storage_policy.filter(|name| !name.is_empty());
    // A name that there is not is left for the command to refuse.
    let is_known = policy.as_deref().is_none_or(|name| StoragePolicy::by_name(name).is_some());
    let command = Create {
        mode: create_mode(&request.masked, request.unmasked.as_ref()),
        holder: request.client_name,
        client_machine: call.peer.ip().to_canonical().to_string(),
        create: has(flags, pb::CreateFlagProto::Create),
        overwrite: has(flags, pb::CreateFlagProto::Overwrite),
        should_replicate: has(flags, pb::CreateFlagProto::ShouldReplicate),
        create_parent: request.create_parent,
        // Java's short.
        replication: request.replication as u16,
        block_size: request.block_size,
        ec_policy: request.ec_policy_name.filter(|name| !name.is_empty()),
        // Source: Hadoop 3.5.0 `FSDirWriteFileOp#setNewINodeStoragePolicy`.
        storage_policy: match has(flags, pb::CreateFlagProto::LazyPersist) && is_known {
            true => Some(StoragePolicy::LAZY_PERSIST.name.to_string()),
            false => policy,
        },
        path: request.src,
    };
    node.unless_answered(call, command.check_arguments().map_err(Refusal::from))?;
    node.check_change(call, || format!("Cannot create file{}", command.path))?;
    let path = command.path.clone();
    let outcome = match node.submit_or_recover(call, command.clone(), &path).await {
        Err(refusal) if refusal.0.is(encryption::RETRY_START_FILE) => {
            encryption::create(node, call, command, &request.crypto_protocol_version).await?
        }
        answer => answer?,
    };
    node.settle(&outcome);
    match outcome {
        Outcome::Created { status, .. } => {
            let fs = Some(locate::file_status(&status, ""));
            answer(&pb::CreateResponseProto { fs })
        }
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#append`, `FSDirAppendOp#appendFile`.
pub async fn append(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AppendRequestProto = call.decode()?;
    let path = request.src;
    node.check_change(call, || format!("Cannot append to file{path}"))?;
    let new_block = has(request.flag.unwrap_or(0), pb::CreateFlagProto::NewBlock);
    let holder = request.client_name;
    let caller = node.caller(call).await;
    let file = node.file_of(&path);
    let command = Append {
        holder: holder.clone(),
        client_machine: call.peer.ip().to_canonical().to_string(),
        new_block,
        replicas: node.last_blocks(file),
        path: path.clone(),
    };
    let open = file.map(|file| node.incomplete_blocks(file)).unwrap_or_default();
    let is_awaited = match file {
        Some(file) if node.config.committed_allowed > 0 => {
            node.with_cluster(|cluster, lookup| committed::is_awaited(cluster, lookup, file, 1))?
        }
        _ => false,
    };
    let refused = |refusal: Refusal| match is_awaited {
        true => not_yet_complete(refusal),
        false => refusal,
    };
    let outcome = node.submit_as(call, caller, command).await.map_err(refused)?;
    // It may have been taken from a silent holder and closed on the way.
    node.note_completed(&open);
    if matches!(outcome, Outcome::Recovery { .. }) {
        // The file was taken from a silent holder; its last block must be recovered first.
        node.begin_recovery(&outcome);
        let message = format!(
            "Failed to APPEND_FILE {path} for {holder} on {} because lease recovery is in progress. \
             Try again later.",
            call.peer.ip().to_canonical()
        );
        return Err(Refusal::new(class::RECOVERY_IN_PROGRESS, message));
    }
    node.settle(&outcome);
    let (Outcome::Appended { status, last } | Outcome::TakenOver { status, last, .. }) = outcome
    else {
        return Err(unexpected(&outcome));
    };
    // It is found by its id, as it may have been moved by now.
    let id = status.inode.id;
    let block = node.with_cluster(|cluster, lookup| -> Result<_, Refusal> {
        let block_pool = node.ns.identity().block_pool_id.as_str();
        let (now, reader) = (node.now(), Reader::default());
        let Some((offset, block)) = &last else {
            let locator = Locator { cluster, block_pool, reader, now };
            // Writing begins with a new block: the last one is only named, so that `addBlock` fits.
            let named = query::last_block(lookup.store, id)?.filter(|_| new_block);
            let places = Places { storages: Vec::new(), corrupt: false };
            return Ok(named.map(|(offset, block)| {
                let named = locator.extended(block.id, block.gs, block.len);
                locator.located(named, offset, &places, false)
            }));
        };
        let Some(info) = query::get_block(lookup.store, block.id)? else { return Ok(None) };
        if cluster.pipeline(block.id).is_empty() {
            let facts = lookup::facts(&info.block, &info.redundancy);
            let before = cairn_redundancy::BlockFacts { state: BlockState::Complete, ..facts };
            cluster.block_reopened(block.id, &before);
        }
        let locator = Locator { cluster, block_pool, reader, now };
        Ok(Some(locator.locate(*offset, &info.block, &info.redundancy)))
    })?;
    let stat = Some(locate::file_status(&status, ""));
    answer(&pb::AppendResponseProto { block, stat })
}

/// What an append is told whose file was closed before its last block had its replicas: it may try again.
///
/// Source: Hadoop 3.5.0 `FSDirAppendOp#appendFile`.
fn not_yet_complete(refusal: Refusal) -> Refusal {
    match refusal.0.message.strip_suffix(" is not sufficiently replicated yet.") {
        Some(what) => Refusal::new(
            class::RETRIABLE,
            format!("{}: {what} is COMMITTED but not yet COMPLETE.", class::NOT_REPLICATED_YET),
        ),
        None => refusal,
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#truncate`.
pub async fn truncate(node: &NameNode, call: &Call) -> Answer {
    let request: pb::TruncateRequestProto = call.decode()?;
    let new_len = request.new_length as i64;
    if new_len < 0 {
        let message = format!("Cannot truncate to a negative file size: {new_len}.");
        return Err(Refusal::new(class::HADOOP_ILLEGAL_ARGUMENT, message));
    }
    node.check_safe_mode(|| format!("Cannot truncate for {}", request.src))?;
    let command = Truncate {
        path: request.src,
        new_len: request.new_length,
        holder: request.client_name,
        client_machine: call.peer.ip().to_canonical().to_string(),
    };
    let path = command.path.clone();
    let outcome = node.submit_or_recover(call, command, &path).await?;
    if let Outcome::Recovery { work: Some(work), .. } = &outcome
        && work.block.copy_source().is_none()
    {
        // It was complete until now.
        node.with_cluster(|cluster, lookup| {
            if let Some(facts) = cairn_redundancy::BlockLookup::block(lookup, work.block.id) {
                let before = cairn_redundancy::BlockFacts { state: BlockState::Complete, ..facts };
                cluster.block_reopened(work.block.id, &before);
            }
        });
    }
    node.begin_recovery(&outcome);
    match outcome {
        Outcome::Removed { done, .. } => answer(&pb::TruncateResponseProto { result: done }),
        Outcome::Recovery { closed, .. } => answer(&pb::TruncateResponseProto { result: closed }),
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#abandonBlock`.
pub async fn abandon_block(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AbandonBlockRequestProto = call.decode()?;
    let block = block_ref(node, &request.b)?;
    let path = request.src;
    node.check_safe_mode(|| {
        format!("Cannot abandon block {} for file{path}", in_pool(node, &block))
    })?;
    let (file, holder) = (file_id(request.file_id), request.holder);
    let outcome = node.submit(call, AbandonBlock { path, file, holder, block }).await?;
    node.settle(&outcome);
    answer(&pb::AbandonBlockResponseProto {})
}

/// Closes a file once its blocks have enough replicas.
///
/// Deviation: waits a little for DataNodes' reports, where Hadoop has the client sleep and ask again.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#completeFile`.
pub async fn complete(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CompleteRequestProto = call.decode()?;
    let last = request.last.as_ref().map(|block| block_ref(node, block)).transpose()?;
    let path = request.src;
    node.check_safe_mode(|| format!("Cannot complete file {path}"))?;
    let file = file_id(request.file_id);
    let id = file.or_else(|| node.file_of(&path));
    let open = match id {
        Some(id) => {
            node.wait_for_reports(COMPLETE_PATIENCE, || open_blocks(node, id, last)).await?
        }
        None => OpenBlocks::default(),
    };
    let command = Complete {
        path,
        file,
        holder: request.client_name,
        last,
        last_crcs: open.last_crcs,
        min_replicated: open.ready,
    };
    let outcome = node.submit(call, command).await?;
    node.note_completed(&open.ids);
    let Outcome::Flag(result) = outcome else { return Err(unexpected(&outcome)) };
    if !result {
        node.complete_reported(&open.ids).await?;
    }
    answer(&pb::CompleteResponseProto { result })
}

/// The blocks of a file that are not complete, and what the cluster knows of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OpenBlocks {
    ids: Vec<BlockId>,
    last_crcs: Vec<Option<u32>>,
    ready: bool,
}

/// Looks at the open blocks of a file as they will be with `last` committed. The flag says whether
/// all have their minimum of replicas, or may lack it.
fn open_blocks(
    node: &NameNode,
    file: InodeId,
    last: Option<BlockRef>,
) -> Result<(bool, OpenBlocks), Refusal> {
    node.with_cluster(|cluster, lookup| {
        let mut open = OpenBlocks { ready: true, ..OpenBlocks::default() };
        let allowed = node.config.committed_allowed;
        if allowed > 0 {
            // Those before them were looked at when blocks were added.
            for back in [1, 2].map(|more| allowed.saturating_add(more)) {
                open.ready &= !committed::is_awaited(cluster, lookup, file, back)?;
            }
        }
        let blocks = query::incomplete_blocks(lookup.store, file)?;
        let count = blocks.len();
        for (index, block) in blocks.into_iter().enumerate() {
            let Some(mut facts) = cairn_redundancy::BlockLookup::block(lookup, block.id) else {
                continue;
            };
            let is_last = last.filter(|last| last.id == block.id);
            if let Some(last) = is_last {
                facts.gs = last.gs;
                facts.len = last.len;
                facts.state = BlockState::Committed;
                open.last_crcs = cluster.unit_crcs(block.id, &facts);
            }
            open.ready &= cluster.min_reached(block.id, &facts)
                || committed::may_lack(&node.config, cluster, (block.id, &facts), count - index);
            open.ids.push(block.id);
        }
        Ok((open.ready, open))
    })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#fsync`.
pub async fn fsync(node: &NameNode, call: &Call) -> Answer {
    let request: pb::FsyncRequestProto = call.decode()?;
    node.check_safe_mode(|| format!("Cannot fsync file {}", request.src))?;
    let last_len = u64::try_from(request.last_block_length()).ok();
    let (file, holder) = (file_id(request.file_id), request.client);
    node.submit(call, Fsync { path: request.src, file, holder, last_len }).await?;
    answer(&pb::FsyncResponseProto {})
}

/// Source: Hadoop 3.5.0 `NameNodeRpcServer#renewLease`, `FSNamesystem#renewLease`.
pub async fn renew_lease(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RenewLeaseRequestProto = call.decode()?;
    if !request.namespaces.is_empty() {
        let message = format!("namespaces({:?}) should be null or empty", request.namespaces);
        return Err(Refusal::io(message));
    }
    node.check_safe_mode(|| format!("Cannot renew lease for {}", request.client_name))?;
    node.submit(call, RenewLease { holder: request.client_name }).await?;
    answer(&pb::RenewLeaseResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#recoverLease`.
pub async fn recover_lease(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RecoverLeaseRequestProto = call.decode()?;
    let path = request.src;
    node.check_safe_mode(|| format!("Cannot recover the lease of {path}"))?;
    let caller = node.caller(call).await;
    let file = node.file_of(&path);
    let replicas = node.last_blocks(file);
    let open = file.map(|file| node.incomplete_blocks(file)).unwrap_or_default();
    let command = RecoverLease { path, holder: request.client_name, replicas };
    let outcome = node.submit_as(call, caller, command).await?;
    node.note_completed(&open);
    let result = node.begin_recovery(&outcome);
    answer(&pb::RecoverLeaseResponseProto { result })
}

impl NameNode {
    /// Submits a command that needs `path` closed. If a silent holder is in the way, its file begins
    /// to be closed, for the client to try again.
    pub(super) async fn submit_or_recover(
        &self,
        call: &Call,
        command: impl Into<Command>,
        path: &str,
    ) -> Result<Outcome, Refusal> {
        let answer = self.submit(call, command).await;
        if answer.as_ref().is_err_and(|refusal| refusal.0.is(class::RECOVERY_IN_PROGRESS)) {
            self.recover_expired(path).await;
        }
        answer
    }

    /// The id of what is at `path` now.
    pub(super) fn file_of(&self, path: &str) -> Option<InodeId> {
        let found =
            self.ns.read(|store| query::get_file_info(store, &Caller::system(), path)).ok()??;
        Some(found.inode.id)
    }
}
