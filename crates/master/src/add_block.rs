//! The next block of a file: whether there may be one yet, and where it goes.

use crate::complete::{awaited, is_reached, unexpected};
use crate::contiguous::in_memory;
use crate::op::{Look, Op, OpError, Submission, Targets, looking_again};
use cairn_namespace::ops::abandon_block::WithdrawBlock;
use cairn_namespace::ops::add_block::AddBlock as Command;
use cairn_namespace::query::{self, AddBlockPlan};
use cairn_namespace::{
    Block, BlockRef, BlockState, CallId, Caller, Guard, InodeId, NamespaceError, Outcome, settings,
};
use cairn_redundancy::{
    BlockLookup, BlockState as Known, NodeHandle, PlacementRequest, StorageHandle, Ticket,
};
use cairn_stripe::{BlockId, Redundancy};

/// How long an `addBlock` waits for the block before the previous one to be reported, and for reports of a block whose
/// storages a restart has forgotten.
const PATIENCE_MS: u64 = 1000;

/// Who wants a block for what.
#[derive(Clone, Debug, Default)]
pub struct AddBlock {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// The block the client has just finished, with its length.
    pub previous: Option<BlockRef>,
    /// UUIDs of DataNodes that failed the client.
    pub excluded: Vec<String>,
    /// DataNodes that the client would like, as `host:port` of data transfer.
    pub favored: Vec<String>,
    /// `AddBlockFlag.IGNORE_CLIENT_LOCALITY`: anywhere.
    pub anywhere: bool,
    /// `AddBlockFlag.NO_LOCAL_WRITE`.
    pub avoid_local: bool,
}

/// A block to write.
#[derive(Clone, Debug)]
pub struct Added {
    /// Where it begins in the file.
    pub offset: u64,
    /// The block.
    pub block: Block,
    /// How it is kept.
    pub redundancy: Redundancy,
}

/// What a look has found.
enum Found {
    /// Submit the command with these storages.
    Place { command: Command, guard: Guard, targets: Targets, redundancy: Redundancy },
    /// An earlier call has added the block, and its storages are known.
    Placed(Added),
    /// An earlier call has added the block, and a restart has forgotten where it goes.
    Forgotten { file: InodeId, block: Block },
    /// A block before it has too few replicas.
    TooEarly { behind: Vec<BlockId> },
}

/// Commits the previous block and adds the next one, on storages chosen for it. A repeated call gets what the first one
/// got. If nobody knows any more where that goes, it waits a moment for reports, takes the block back and adds
/// another: an id and stamp never gets other storages.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalBlock`.
pub async fn add_block(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &AddBlock,
) -> Result<Added, OpError> {
    let deadline = op.look(|look| look.now.mono_ms) + PATIENCE_MS;
    looking_again(|| attempt(op, caller, call, wanted, deadline)).await
}

async fn attempt(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    wanted: &AddBlock,
    deadline: u64,
) -> Result<Added, OpError> {
    let (found, ticket) = op.look(|look| -> Result<_, OpError> {
        let found = look_at(op, look, caller, wanted)?;
        let ticket = wait_for(look, &found, deadline);
        Ok((found, ticket))
    })?;
    if let Some(ticket) = ticket {
        op.wait(ticket, deadline).await;
        return Err(OpError::Moved);
    }
    let (command, guard, targets, redundancy) = match found {
        Found::Place { command, guard, targets, redundancy } => {
            (command, guard, targets, redundancy)
        }
        Found::Placed(added) => return Ok(added),
        Found::Forgotten { file, block } => {
            let block = block.reference();
            // Rests on nothing: it is taken back only if it is as it was, and its targets are gone for good.
            op.submit(Submission::own(WithdrawBlock { file, block })).await?;
            return Err(OpError::Moved);
        }
        Found::TooEarly { .. } => {
            let text = format!("Not replicated yet: {}", wanted.path);
            return Err(NamespaceError::NotReplicatedYet(text).into());
        }
    };
    let submission = Submission::of(caller.clone(), call, command);
    match op.submit(submission.resting_on(guard).with_targets(targets)).await? {
        // Another call was first.
        Outcome::BlockAdded { retry: true, .. } => Err(OpError::Moved),
        Outcome::BlockAdded { offset, block, .. } => Ok(Added { offset, block, redundancy }),
        other => Err(unexpected(&other)),
    }
}

/// Whether what was found may be different soon.
fn wait_for(look: &mut Look<'_>, found: &Found, deadline: u64) -> Option<Ticket> {
    if look.now.mono_ms >= deadline {
        return None;
    }
    match found {
        Found::Place { .. } | Found::Placed(_) => None,
        Found::Forgotten { block, .. } => Some(look.cluster.await_change(&[block.id])),
        Found::TooEarly { behind } => Some(look.cluster.await_change(behind)),
    }
}

fn look_at(
    op: &impl Op,
    look: &mut Look<'_>,
    caller: &Caller,
    wanted: &AddBlock,
) -> Result<Found, OpError> {
    let (command, mut guard) = command(look, wanted)?;
    match query::plan_add_block(look.store, caller, &command)? {
        AddBlockPlan::Retry { offset, block } => {
            let info = query::get_block(look.store, block.id)?;
            let Some(info) = info else {
                let text = format!("File does not exist: {}", wanted.path);
                return Err(NamespaceError::FileNotFound(text).into());
            };
            if look.cluster.pipeline(block.id).is_empty() {
                return Ok(Found::Forgotten { file: block.file, block });
            }
            Ok(Found::Placed(Added { offset, block, redundancy: info.redundancy }))
        }
        AddBlockPlan::New {
            file,
            block_size,
            redundancy,
            storage_policy,
            client_machine,
            penultimate,
        } => {
            guard.file(look.store, file)?;
            if let Some(block) = &penultimate {
                guard.block(block.id, Some(block));
            }
            if let Some(behind) = too_early(op, look, file, penultimate)? {
                return Ok(Found::TooEarly { behind });
            }
            let settings = settings::get(look.store)?;
            let writer = if wanted.anywhere { "" } else { client_machine.as_str() };
            let rack = op.rack_of(writer);
            let excluded = nodes_of(look, &wanted.excluded);
            let favored = favored_nodes(look, &wanted.favored);
            let policy = settings.storage_policy(storage_policy);
            let placing = in_memory::placing(look, file, &redundancy, policy)?;
            let request = PlacementRequest {
                count: redundancy.width(),
                writer,
                writer_rack: rack.as_deref(),
                // A unit of a group can be as long as a block.
                block_len: block_size,
                excluded: &excluded,
                favored: &favored,
                busy: &placing.busy,
                existing: &[],
                storage_policy: placing.storage_policy,
                is_new: true,
                avoid_local: wanted.avoid_local,
            };
            let targets = choose_targets(look, &request, &redundancy, &wanted.path)?;
            let targets = targets.into_iter().map(Some).collect();
            Ok(Found::Place { command, guard, targets, redundancy })
        }
    }
}

/// The command with what the cluster knows of the previous block, and what that rests on.
fn command(look: &Look<'_>, wanted: &AddBlock) -> Result<(Command, Guard), OpError> {
    let mut command = Command {
        path: wanted.path.clone(),
        file: wanted.file,
        holder: wanted.holder.clone(),
        previous: wanted.previous,
        previous_crcs: Vec::new(),
        previous_min_replicated: false,
    };
    let mut guard = Guard::NONE;
    let Some(previous) = wanted.previous else { return Ok((command, guard)) };
    let id = previous.id.group();
    guard.block(id, cairn_namespace::block::get(look.store, id)?.as_ref());
    if let Some(mut facts) = look.lookup().block(id) {
        facts.gs = previous.gs;
        facts.len = previous.len;
        if !facts.is_final() {
            facts.state = Known::Committed;
        }
        command.previous_min_replicated = look.cluster.min_reached(id, &facts);
        command.previous_crcs = look.cluster.unit_crcs(id, &facts);
    }
    Ok((command, guard))
}

/// The blocks that must be reported before the next one is added, if there are such.
fn too_early(
    op: &impl Op,
    look: &Look<'_>,
    file: InodeId,
    penultimate: Option<Block>,
) -> Result<Option<Vec<BlockId>>, OpError> {
    match op.committed_allowed() {
        0 => {
            // The command makes it complete.
            let open = penultimate.filter(|block| block.state != BlockState::Complete);
            let Some(open) = open else { return Ok(None) };
            Ok((!is_reached(look, &open)?).then(|| vec![open.id]))
        }
        allowed => {
            let awaited = awaited(look, file, allowed.saturating_add(2))?;
            Ok(awaited.map(|block| vec![block.id]))
        }
    }
}

/// The nodes that are known here of those that a client names by UUID.
pub fn nodes_of(look: &Look<'_>, uuids: &[String]) -> Vec<NodeHandle> {
    uuids.iter().filter_map(|uuid| look.cluster.node_by_uuid(uuid)).map(|n| n.handle).collect()
}

/// Nodes that a client would like, as `host:port` of data transfer.
fn favored_nodes(look: &Look<'_>, names: &[String]) -> Vec<NodeHandle> {
    let find = |name: &String| {
        let (host, port) = name.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let mut nodes = look.cluster.nodes_on_host(host);
        nodes.find(|node| node.address.xfer_port == port).map(|node| node.handle)
    };
    names.iter().filter_map(find).collect()
}

/// Where the next block goes; fewer storages than wanted if there are no more, an error below the
/// minimum.
///
/// Source: Hadoop 3.5.0 `BlockManager#chooseTarget4NewBlock`.
fn choose_targets(
    look: &mut Look<'_>,
    request: &PlacementRequest<'_>,
    redundancy: &Redundancy,
    path: &str,
) -> Result<Vec<StorageHandle>, OpError> {
    let (chosen, min, what) = match redundancy {
        Redundancy::Replicated(_) => (
            look.cluster.choose_replicated(request, look.now, look.dice),
            usize::from(look.cluster.config().replication_min),
            "minReplication nodes".to_string(),
        ),
        Redundancy::Striped(policy) => {
            let data_units = policy.schema.data_units();
            let chosen = look.cluster.choose_group(request, data_units, look.now, look.dice);
            (chosen, data_units, format!("required nodes for {}", policy.name))
        }
    };
    if chosen.len() >= min {
        return Ok(chosen);
    }
    // Hadoop counts with the caller's nodes every node that it tried in vain or chose, which by now are all.
    let live = look.cluster.live_count();
    let excluded = request.excluded.len().max(live);
    Err(OpError::NoPlace(format!(
        "File {path} could only be written to {} of the {min} {what}. There are {live} datanode(s) \
         running and {excluded} node(s) are excluded in this operation.",
        chosen.len(),
    )))
}
