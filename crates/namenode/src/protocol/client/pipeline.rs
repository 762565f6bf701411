//! Blocks while they are written: where they go, and what replaces a DataNode that failed.

use std::time::Duration;

use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::query::AddBlockPlan;
use cairn_namespace::{Block, Caller, Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::{
    BlockLookup, BlockState, Cluster, NodeHandle, PlacementRequest, Reader, StorageHandle,
};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::committed;
use super::locate::Locator;
use super::places::Places;
use super::write::{block_ref, file_id, in_pool};
use crate::dice::dice;
use crate::lookup::{self, Lookup};
use crate::node::NameNode;
use crate::protocol::datanode::named;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// How long `addBlock` waits for the block before the previous one to be reported.
const ADD_BLOCK_PATIENCE: Duration = Duration::from_millis(1000);

/// What a placement is for, as far as `addBlock` and `getAdditionalDatanode` differ in it.
struct Wanted<'a> {
    path: &'a str,
    redundancy: Redundancy,
    block_size: u64,
    storage_policy: u8,
    client_machine: &'a str,
}

/// The nodes of a client's request that are known here.
fn nodes_of(cluster: &Cluster, infos: &[pb::DatanodeInfoProto]) -> Vec<NodeHandle> {
    infos
        .iter()
        .filter_map(|info| cluster.node_by_uuid(&info.id.datanode_uuid))
        .map(|n| n.handle)
        .collect()
}

/// Nodes that a client would like, as `host:port` of data transfer.
fn favored_nodes(cluster: &Cluster, names: &[String]) -> Vec<NodeHandle> {
    let find = |name: &String| {
        let (host, port) = name.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let mut nodes = cluster.nodes_on_host(host);
        nodes.find(|node| node.address.xfer_port == port).map(|node| node.handle)
    };
    names.iter().filter_map(find).collect()
}

/// Where the next block goes; fewer storages than wanted if there are no more, an error below the
/// minimum.
///
/// Source: Hadoop 3.5.0 `BlockManager#chooseTarget4NewBlock`.
fn choose_targets(
    node: &NameNode,
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    request: &pb::AddBlockRequestProto,
) -> Result<Vec<StorageHandle>, Refusal> {
    let flagged = |flag: pb::AddBlockFlagProto| request.flags.contains(&(flag as i32));
    let anywhere = flagged(pb::AddBlockFlagProto::IgnoreClientLocality);
    let writer = if anywhere { "" } else { wanted.client_machine };
    let rack = node.topology.rack_of_client(writer);
    let excluded = nodes_of(cluster, &request.exclude_nodes);
    let favored = favored_nodes(cluster, &request.favored_nodes);
    let placement = PlacementRequest {
        count: wanted.redundancy.width(),
        writer,
        writer_rack: rack.as_deref(),
        // A unit of a group can be as long as a block.
        block_len: wanted.block_size,
        excluded: &excluded,
        favored: &favored,
        busy: &[],
        existing: &[],
        storage_policy: node.config.storage_policy(wanted.storage_policy),
        is_new: true,
        avoid_local: flagged(pb::AddBlockFlagProto::NoLocalWrite),
    };
    let chosen = match &wanted.redundancy {
        Redundancy::Replicated(_) => cluster.choose_replicated(&placement, node.now(), &mut dice),
        Redundancy::Striped(policy) => {
            let data_units = policy.schema.data_units();
            cluster.choose_group(&placement, data_units, node.now(), &mut dice)
        }
    };
    let (min, what) = match &wanted.redundancy {
        Redundancy::Replicated(_) => {
            (usize::from(node.config.min_replication), "minReplication nodes".to_string())
        }
        Redundancy::Striped(policy) => {
            (policy.schema.data_units(), format!("required nodes for {}", policy.name))
        }
    };
    if chosen.len() >= min {
        return Ok(chosen);
    }
    // Hadoop counts with the caller's nodes every node that it tried in vain or chose, which by now are all.
    let excluded = excluded.len().max(cluster.live_count());
    Err(Refusal::io(format!(
        "File {} could only be written to {} of the {min} {what}. There are {} datanode(s) running \
         and {excluded} node(s) are excluded in this operation.",
        wanted.path,
        chosen.len(),
        cluster.live_count(),
    )))
}

/// What was found out before a block is added.
enum Plan {
    /// Submit the command, and use these storages.
    Place { command: AddBlock, targets: Vec<StorageHandle>, penultimate: Option<BlockId> },
    /// An earlier call has added the block and it has a pipeline.
    Placed { offset: u64, block: Block, redundancy: Redundancy },
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalBlock`.
pub async fn add_block(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AddBlockRequestProto = call.decode()?;
    let previous = request.previous.as_ref().map(|block| block_ref(node, block)).transpose()?;
    node.check_safe_mode(|| format!("Cannot add block to {}", request.src))?;
    let command = AddBlock {
        path: request.src.clone(),
        file: file_id(request.file_id),
        holder: request.client_name.clone(),
        previous,
        previous_crcs: Vec::new(),
        previous_min_replicated: false,
    };
    // By its number a file can be reached by everybody who knows it.
    let by_number = command.file.is_some();
    let caller = if by_number { Caller::system() } else { node.caller(call).await };
    let plan = || {
        node.with_cluster(|cluster, lookup| {
            plan(node, cluster, lookup, (&caller, &command), &request)
        })
    };
    let found = node.wait_for_reports(ADD_BLOCK_PATIENCE, plan).await?;
    let mut closed: Vec<BlockId> = previous.map(|block| block.id.group()).into_iter().collect();
    let (block, offset, redundancy, targets) = match found {
        None => {
            let message = format!("Not replicated yet: {}", request.src);
            return Err(Refusal::new(class::NOT_REPLICATED_YET, message));
        }
        Some(Plan::Placed { offset, block, redundancy }) => (block, offset, redundancy, Vec::new()),
        Some(Plan::Place { command, targets, penultimate }) => {
            closed.extend(penultimate);
            let outcome = node.submit(call, command).await?;
            let Outcome::BlockAdded { offset, block, .. } = outcome else {
                return Err(unexpected(&outcome));
            };
            let redundancy = node.ns.read(|store| query::get_block(store, block.id))?;
            let Some(redundancy) = redundancy.map(|info| info.redundancy) else {
                let message = format!("File does not exist: {}", request.src);
                return Err(Refusal::new(class::FILE_NOT_FOUND, message));
            };
            (block, offset, redundancy, targets)
        }
    };
    node.note_completed(&closed);
    node.complete_reported(&closed).await?;
    let located = node.with_cluster(|cluster, lookup| {
        // A repeated call keeps the pipeline that the first one was told.
        if cluster.pipeline(block.id).is_empty() && lookup.block(block.id).is_some() {
            let targets: Vec<_> = targets.iter().copied().map(Some).collect();
            cluster.block_allocated(block.id, block.gs, &targets);
        }
        let block_pool = node.ns.identity().block_pool_id.as_str();
        let locator = Locator { cluster, block_pool, reader: Reader::default(), now: node.now() };
        locator.locate(offset, &block, &redundancy)
    });
    answer(&pb::AddBlockResponseProto { block: located })
}

/// Looks at the file and chooses storages. `None` (with `false`: worth waiting) if the block before the
/// previous one has too few replicas.
fn plan(
    node: &NameNode,
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    (caller, command): (&Caller, &AddBlock),
    request: &pb::AddBlockRequestProto,
) -> Result<(bool, Option<Plan>), Refusal> {
    let mut command = command.clone();
    if let Some(previous) = command.previous
        && let Some(mut facts) = lookup.block(previous.id)
    {
        facts.gs = previous.gs;
        facts.len = previous.len;
        if !facts.is_final() {
            facts.state = BlockState::Committed;
        }
        command.previous_min_replicated = cluster.min_reached(previous.id.group(), &facts);
        command.previous_crcs = cluster.unit_crcs(previous.id.group(), &facts);
    }
    let (targets, penultimate) = match query::plan_add_block(lookup.store, caller, &command)? {
        AddBlockPlan::Retry { offset, block } => {
            let info = query::get_block(lookup.store, block.id)?;
            let redundancy = info.map_or(Redundancy::Replicated(1), |info| info.redundancy);
            if !cluster.pipeline(block.id).is_empty() {
                return Ok((true, Some(Plan::Placed { offset, block, redundancy })));
            }
            // It was added, but a restart has forgotten where: choose anew.
            let (path, holder) = (&command.path, &command.holder);
            let status = query::check_lease(lookup.store, caller, path, command.file, holder)?;
            let writer = status.inode.file().and_then(|file| file.writer.clone());
            let wanted = Wanted {
                path: &request.src,
                redundancy,
                block_size: status.block_size(),
                storage_policy: status.storage_policy,
                client_machine: writer.as_ref().map_or("", |writer| writer.client_machine.as_str()),
            };
            (choose_targets(node, cluster, &wanted, request)?, None)
        }
        AddBlockPlan::New {
            file,
            block_size,
            redundancy,
            storage_policy,
            client_machine,
            penultimate,
            ..
        } => {
            // The command makes it complete.
            let open =
                penultimate.filter(|block| block.state != cairn_namespace::BlockState::Complete);
            let lacks =
                |block: &Block| !cluster.min_reached(block.id, &lookup::facts(block, &redundancy));
            let waits = match node.config.committed_allowed {
                0 => open.as_ref().is_some_and(lacks),
                allowed => committed::is_awaited(cluster, lookup, file, allowed.saturating_add(2))?,
            };
            if waits {
                return Ok((false, None));
            }
            let client_machine = &client_machine;
            let wanted = Wanted {
                path: &request.src,
                redundancy,
                block_size,
                storage_policy,
                client_machine,
            };
            (choose_targets(node, cluster, &wanted, request)?, open.map(|block| block.id))
        }
    };
    Ok((true, Some(Plan::Place { command, targets, penultimate })))
}

/// The storages that a client names, in its order.
fn storages_named(
    cluster: &Cluster,
    nodes: &[pb::DatanodeInfoProto],
    storages: &[String],
) -> Vec<StorageHandle> {
    let pairs = nodes.iter().map(|node| named(&node.id)).zip(storages.iter().map(String::as_str));
    cluster.storages_named(pairs).into_iter().flatten().collect()
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
pub async fn get_additional_datanode(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetAdditionalDatanodeRequestProto = call.decode()?;
    let block = block_ref(node, &request.blk)?;
    let path = &request.src;
    node.check_safe_mode(|| {
        format!("Cannot add datanode; src={path}, blk={}", in_pool(node, &block))
    })?;
    let caller = node.caller(call).await;
    let located = node.with_cluster(|cluster, lookup| -> Result<_, Refusal> {
        let file = file_id(request.file_id);
        let status = query::check_lease(lookup.store, &caller, path, file, &request.client_name)?;
        let existing = storages_named(cluster, &request.existings, &request.existing_storage_uuids);
        let mut excluded = nodes_of(cluster, &request.excludes);
        excluded.extend(nodes_of(cluster, &request.existings));
        let writer = status.inode.file().and_then(|file| file.writer.as_ref());
        let writer = writer.map_or("", |writer| writer.client_machine.as_str());
        let rack = node.topology.rack_of_client(writer);
        let placement = PlacementRequest {
            count: request.num_additional_nodes as usize,
            writer,
            writer_rack: rack.as_deref(),
            block_len: status.block_size(),
            excluded: &excluded,
            favored: &[],
            busy: &[],
            existing: &existing,
            storage_policy: node.config.storage_policy(status.storage_policy),
            is_new: existing.is_empty(),
            avoid_local: false,
        };
        let added = cluster.choose_replicated(&placement, node.now(), &mut dice);
        let all = existing.iter().chain(&added).map(|storage| (*storage, UnitIndex(0)));
        let places = Places { storages: all.collect(), corrupt: false };
        let block_pool = node.ns.identity().block_pool_id.as_str();
        let locator = Locator { cluster, block_pool, reader: Reader::default(), now: node.now() };
        let extended = locator.extended(block.id, block.gs, block.len);
        Ok(locator.located(extended, u64::MAX, &places, false))
    })?;
    answer(&pb::GetAdditionalDatanodeResponseProto { block: located })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#bumpBlockGenerationStamp`.
pub async fn update_block_for_pipeline(node: &NameNode, call: &Call) -> Answer {
    let request: pb::UpdateBlockForPipelineRequestProto = call.decode()?;
    let block = block_ref(node, &request.block)?;
    let id = block.id;
    node.check_safe_mode(|| {
        let block = in_pool(node, &block);
        format!("Cannot get a new generation stamp and an access token for block {block}")
    })?;
    let command = UpdateBlockForPipeline { holder: request.client_name, block };
    let outcome = node.submit(call, command).await.map_err(|refusal| with_pool(node, refusal))?;
    let Outcome::Stamp(gs) = outcome else { return Err(unexpected(&outcome)) };
    let block =
        node.with_cluster(|cluster, lookup| new_stamp(node, cluster, lookup, (id, gs), block.len));
    answer(&pb::UpdateBlockForPipelineResponseProto { block })
}

/// Names the pool before the block that a refusal is about, as Hadoop does.
fn with_pool(node: &NameNode, mut refusal: Refusal) -> Refusal {
    let pool = &node.ns.identity().block_pool_id;
    refusal.0.message = refusal.0.message.replacen("blk_", &format!("{pool}:blk_"), 1);
    refusal
}

/// The block with its new stamp and no locations; a token for each unit of a group.
fn new_stamp(
    node: &NameNode,
    cluster: &Cluster,
    lookup: &Lookup<'_>,
    (id, gs): (BlockId, GenerationStamp),
    len: u64,
) -> pb::LocatedBlockProto {
    let block_pool = node.ns.identity().block_pool_id.as_str();
    let locator = Locator { cluster, block_pool, reader: Reader::default(), now: node.now() };
    let none = Places { storages: Vec::new(), corrupt: false };
    let extended = locator.extended(id, gs, len);
    let mut located = locator.located(extended, u64::MAX, &none, id.is_striped());
    if id.is_striped() {
        let width = lookup.block(id.group()).map_or(0, |facts| facts.layout.width());
        located.block_indices = Some((0..width as u8).collect());
        located.block_tokens = vec![Default::default(); width];
    }
    located
}

/// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`.
pub async fn update_pipeline(node: &NameNode, call: &Call) -> Answer {
    let request: pb::UpdatePipelineRequestProto = call.decode()?;
    let old = block_ref(node, &request.old_block)?;
    let new = block_ref(node, &request.new_block)?;
    node.check_change(call, || "Pipeline not updated".to_string())?;
    let command = UpdatePipeline { holder: request.client_name, old, new };
    node.submit(call, command).await.map_err(|refusal| with_pool(node, refusal))?;
    let id = new.id.group();
    let pairs =
        request.new_nodes.iter().map(named).zip(request.storage_i_ds.iter().map(String::as_str));
    node.with_cluster(|cluster, lookup| {
        // Meanwhile the file may have been deleted, or its block recovered.
        if lookup.block(id).is_some_and(|facts| facts.gs == new.gs && !facts.is_final()) {
            let targets = cluster.storages_named(pairs);
            cluster.pipeline_updated(id, new.gs, &targets);
        }
    });
    answer(&pb::UpdatePipelineResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#reportBadBlocks`.
pub async fn report_bad_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ReportBadBlocksRequestProto = call.decode()?;
    node.with_cluster(|cluster, lookup| -> Result<(), Refusal> {
        for located in &request.blocks {
            let block = block_ref(node, &located.b)?;
            for (index, info) in located.locs.iter().enumerate() {
                let Ok(handle) = cluster.registered(&named(&info.id)) else { continue };
                let storage = located.storage_i_ds.get(index).map_or("", String::as_str);
                let mut bad =
                    cairn_redundancy::BlockRef { id: block.id, gs: block.gs, len: block.len };
                let units = located.block_indices.as_deref().unwrap_or_default();
                if let (true, Some(unit)) = (bad.id.is_striped(), units.get(index)) {
                    bad.id = bad.id.group().internal(UnitIndex(unit & 15));
                }
                if let Err(error) = cluster.report_bad(lookup, handle, storage, bad) {
                    tracing::info!(%error, client = %call.peer, "bad block report passed over");
                }
            }
        }
        Ok(())
    })?;
    answer(&pb::ReportBadBlocksResponseProto {})
}
