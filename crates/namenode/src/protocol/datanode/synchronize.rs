//! The end of a block recovery: `commitBlockSynchronization`.

use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_namespace::{BlockRef, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::{BlockLookup, Synchronized};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode as dn;
use tracing::info;

use super::register::named;
use crate::node::NameNode;
use crate::protocol::client::write::check_len;
use crate::refusal::{Answer, answer};

/// Source: Hadoop 3.5.0 `FSNamesystem#commitBlockSynchronization`.
pub(super) async fn commit_block_synchronization(node: &NameNode, call: &Call) -> Answer {
    let request: dn::CommitBlockSynchronizationRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot commitBlockSynchronization while in safe mode".to_string())?;
    let id = BlockId(request.block.block_id as i64).group();
    let gs = GenerationStamp(request.block.generation_stamp);
    let len = request.block.num_bytes();
    let new_gs = GenerationStamp(request.new_gen_stamp);
    check_len(request.new_length)?;
    info!(
        block = %id, %new_gs, len = request.new_length, close = request.close_file,
        delete = request.delete_block, "a block is recovered"
    );
    let (file, copy) = node.ns.read(|store| -> cairn_namespace::Result<_> {
        let Some(block) = query::get_block(store, id)?.map(|info| info.block) else {
            return Ok((None, None));
        };
        Ok((Some(block.file), query::copy_of(store, &block)?))
    })?;
    let open = file.map(|file| node.incomplete_blocks(file)).unwrap_or_default();
    let outcome = node
        .submit_own(CommitBlockSynchronization {
            block: BlockRef { id, gs, len },
            new_gs,
            new_len: request.new_length,
            close_file: request.close_file,
            delete_block: request.delete_block.into(),
        })
        .await?;
    node.settle(&outcome);
    // What was recovered is the block that stands in the file.
    let id = copy.unwrap_or(id);
    let late = node.with_cluster(|cluster, lookup| {
        let nodes = request.new_taragets.iter().map(named);
        let storages = request.new_target_storages.iter().map(String::as_str);
        let done = Synchronized {
            block: cairn_redundancy::BlockRef { id, gs, len },
            new_gs,
            new_len: request.new_length,
            close_file: request.close_file,
            delete_block: request.delete_block,
            targets: cluster.storages_named(nodes.zip(storages)),
        };
        // The end of an attempt that was overtaken says nothing of the block as it is.
        let counts = lookup.block(id).is_some_and(|facts| facts.gs == new_gs);
        if done.delete_block || !counts {
            return Vec::new();
        }
        cluster.block_synchronized(lookup, id, &done)
    });
    node.record_late(late);
    node.note_completed(&open);
    node.reported.notify_waiters();
    answer(&dn::CommitBlockSynchronizationResponseProto {})
}
