//! Blocks while they are written: where they go, and what replaces a DataNode that failed.

use cairn_master::Lookup;
use cairn_master::add_block::{self, AddBlock, Added};
use cairn_master::pipeline::{self, Additional};
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::{Caller, Outcome};
use cairn_net::rpc_server::Call;
use cairn_redundancy::{BlockLookup, Cluster, NodeClaim};
use cairn_security::block_token::AccessMode;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_wire::proto::hdfs as pb;

use super::locate::Locator;
use super::places::Places;
use super::read::issuer;
use super::write::{block_ref, file_id, in_pool};
use crate::node::NameNode;
use crate::protocol::datanode::named;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalBlock`.
pub async fn add_block(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AddBlockRequestProto = call.decode()?;
    let previous = request.previous.as_ref().map(|block| block_ref(node, block)).transpose()?;
    node.check_safe_mode(|| format!("Cannot add block to {}", request.src))?;
    let flagged = |flag: pb::AddBlockFlagProto| request.flags.contains(&(flag as i32));
    let wanted = AddBlock {
        file: file_id(request.file_id),
        previous,
        excluded: uuids(&request.exclude_nodes),
        anywhere: flagged(pb::AddBlockFlagProto::IgnoreClientLocality),
        avoid_local: flagged(pb::AddBlockFlagProto::NoLocalWrite),
        path: request.src,
        holder: request.client_name,
        favored: request.favored_nodes,
    };
    // By its number a file can be reached by everybody who knows it.
    let by_number = wanted.file.is_some();
    let caller = if by_number { Caller::system() } else { node.caller(call).await };
    let op = node.operation("addBlock", call).await;
    let Added { offset, block, redundancy } =
        add_block::add_block(&op, &caller, node.call_id(call), &wanted).await?;
    let mut located = node.see(|cluster, _| {
        let locator = Locator::for_writers(node, cluster);
        locator.locate(offset, &block, &redundancy)
    });
    issuer(node, call).sign(&mut located, AccessMode::Write);
    answer(&pb::AddBlockResponseProto { block: located })
}

/// The UUIDs of DataNodes that a client names.
fn uuids(nodes: &[pb::DatanodeInfoProto]) -> Vec<String> {
    nodes.iter().map(|node| node.id.datanode_uuid.clone()).collect()
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
pub async fn get_additional_datanode(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetAdditionalDatanodeRequestProto = call.decode()?;
    let block = block_ref(node, &request.blk)?;
    node.check_safe_mode(|| {
        format!("Cannot add datanode; src={}, blk={}", request.src, in_pool(node, &block))
    })?;
    let caller = node.caller(call).await;
    let existing = uuids(&request.existings);
    let wanted = Additional {
        path: &request.src,
        file: file_id(request.file_id),
        holder: &request.client_name,
        count: request.num_additional_nodes as usize,
        storages: pairs(
            request.existings.iter().map(|info| &info.id),
            &request.existing_storage_uuids,
        ),
        existing: &existing,
        excluded: &uuids(&request.excludes),
    };
    let rack_of = |client: &str| node.topology.rack_of_client(client);
    let storages = node.look(|look| pipeline::additional(look, &rack_of, &caller, &wanted))?;
    let mut located = node.see(|cluster, _| {
        let places = Places {
            storages: storages.into_iter().map(|storage| (storage, UnitIndex(0))).collect(),
            corrupt: false,
        };
        let locator = Locator::for_writers(node, cluster);
        let extended = locator.extended(block.id, block.gs, block.len);
        locator.located(extended, u64::MAX, &places, false)
    });
    issuer(node, call).sign(&mut located, AccessMode::Copy);
    answer(&pb::GetAdditionalDatanodeResponseProto { block: located })
}

/// DataNodes with their storages.
fn pairs<'a>(
    nodes: impl Iterator<Item = &'a pb::DatanodeIDProto>,
    storages: &'a [String],
) -> Vec<(NodeClaim<'a>, &'a str)> {
    nodes.map(named).zip(storages.iter().map(String::as_str)).collect()
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
    let (caller, number) = (node.caller(call).await, node.call_id(call));
    let op = node.operation("updateBlockForPipeline", call).await;
    let outcome = pipeline::new_stamp(&op, &caller, number, command).await;
    let outcome = outcome.map_err(|error| with_pool(node, error.into()))?;
    let Outcome::Stamp(gs) = outcome else { return Err(unexpected(&outcome)) };
    let mut block =
        node.see(|cluster, lookup| new_stamp(node, cluster, lookup, (id, gs), block.len));
    issuer(node, call).sign(&mut block, AccessMode::Write);
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
    let locator = Locator::for_writers(node, cluster);
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
    let storages = pairs(request.new_nodes.iter(), &request.storage_i_ds);
    let (caller, id) = (node.caller(call).await, node.call_id(call));
    let op = node.operation("updatePipeline", call).await;
    let updated = pipeline::update(&op, &caller, id, command, &storages).await;
    updated.map_err(|error| with_pool(node, error.into()))?;
    answer(&pb::UpdatePipelineResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#reportBadBlocks`.
pub async fn report_bad_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ReportBadBlocksRequestProto = call.decode()?;
    let mut found = Vec::new();
    for located in &request.blocks {
        let block = block_ref(node, &located.b)?;
        for (index, info) in located.locs.iter().enumerate() {
            let storage = located.storage_i_ds.get(index).map_or("", String::as_str);
            let mut bad = cairn_redundancy::BlockRef { id: block.id, gs: block.gs, len: block.len };
            let units = located.block_indices.as_deref().unwrap_or_default();
            if let (true, Some(unit)) = (bad.id.is_striped(), units.get(index)) {
                bad.id = bad.id.group().internal(UnitIndex(unit & 15));
            }
            found.push((named(&info.id), storage, bad));
        }
    }
    for error in node.mark_bad(&found) {
        tracing::info!(%error, client = %call.peer, "bad block report passed over");
    }
    answer(&pb::ReportBadBlocksResponseProto {})
}
