//! Writing files: create, append, the blocks one after another, close, and leases.
//!
//! What must be known of replicas for that, and in which order things happen, is in `cairn_master`.

use cairn_master::append::{self, Append, Appended};
use cairn_master::complete::{self, Complete};
use cairn_master::{OpError, lease, truncate};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::RenewLease;
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{BlockRef, InodeId, NamespaceError, Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::StoragePolicy;
use cairn_security::block_token::AccessMode;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::encryption;
use super::locate::{self, Locator};
use super::paths::check_path_len;
use super::places::Places;
use super::read::issuer;
use super::tree::create_mode;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};

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
        Err(OpError::Refused(NamespaceError::RetryStartFile(_))) => {
            encryption::create(node, call, command, &request.crypto_protocol_version).await?
        }
        answer => answer?,
    };
    match outcome {
        Outcome::Created { status } => {
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
    let wanted = Append {
        path,
        holder: request.client_name,
        client_machine: call.peer.ip().to_canonical().to_string(),
        new_block,
    };
    let caller = node.caller(call).await;
    let op = node.operation("append", call).await;
    let Appended { status, last } =
        append::append(&op, &caller, node.call_id(call), &wanted).await?;
    // It is found by its id, as it may have been moved by now.
    let id = status.inode.id;
    let mut block = node.see(|cluster, lookup| -> Result<_, Refusal> {
        let locator = Locator::for_writers(node, cluster);
        let Some((offset, block)) = &last else {
            // Writing begins with a new block: the last one is only named, so that `addBlock` fits.
            let named = query::last_block(lookup.store, id)?.filter(|_| new_block);
            let places = Places { storages: Vec::new(), corrupt: false };
            return Ok(named.map(|(offset, block)| {
                let named = locator.extended(block.id, block.gs, block.len);
                locator.located(named, offset, &places, false)
            }));
        };
        let info = query::get_block(lookup.store, block.id)?;
        Ok(info.map(|info| locator.locate(*offset, &info.block, &info.redundancy)))
    })?;
    block.iter_mut().for_each(|block| issuer(node, call).sign(block, AccessMode::Write));
    let stat = Some(locate::file_status(&status, ""));
    answer(&pb::AppendResponseProto { block, stat })
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
    let caller = node.caller(call).await;
    let operation = node.operation("truncate", call).await;
    match truncate::truncate(&operation, &caller, node.call_id(call), command).await? {
        Outcome::Removed { done, .. } => answer(&pb::TruncateResponseProto { result: done }),
        Outcome::Recovery { closed } => answer(&pb::TruncateResponseProto { result: closed }),
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
    node.submit(call, AbandonBlock { path, file, holder, block }).await?;
    answer(&pb::AbandonBlockResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#completeFile`.
pub async fn complete(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CompleteRequestProto = call.decode()?;
    let last = request.last.as_ref().map(|block| block_ref(node, block)).transpose()?;
    let path = request.src;
    node.check_safe_mode(|| format!("Cannot complete file {path}"))?;
    let (file, holder) = (file_id(request.file_id), request.client_name);
    let caller = node.caller(call).await;
    let wanted = Complete { path, file, holder, last };
    let op = node.operation("complete", call).await;
    let result = complete::complete(&op, &caller, node.call_id(call), &wanted).await?;
    answer(&pb::CompleteResponseProto { result })
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
    let (caller, id) = (node.caller(call).await, node.call_id(call));
    let op = node.operation("recoverLease", call).await;
    let result = lease::recover(&op, &caller, id, &path, &request.client_name).await?;
    answer(&pb::RecoverLeaseResponseProto { result })
}
