//! A block whose pipeline broke: the storages that its writer goes on with.

use crate::add_block::nodes_of;
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::ops::pipeline::UpdatePipeline;
use cairn_namespace::{CallId, Caller, InodeId, Result, query, settings};
use cairn_redundancy::{NodeClaim, PlacementRequest, StorageHandle};

/// Moves a block to its new stamp and storages, which are given by who has them and their UUIDs.
///
/// Rests on nothing: the command names the stamp before and the new one.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`.
pub async fn update(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    command: UpdatePipeline,
    storages: &[(NodeClaim<'_>, &str)],
) -> Result<(), OpError> {
    let targets = op.look(|look| look.cluster.storages_named(storages.iter().copied()));
    let submission = Submission::of(caller.clone(), call, command).with_targets(targets);
    op.submit(submission).await.map(drop)
}

/// Who wants how many more storages for a pipeline.
#[derive(Clone, Debug)]
pub struct Additional<'a> {
    /// The file.
    pub path: &'a str,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: &'a str,
    /// Storages that are wanted.
    pub count: usize,
    /// The storages that the pipeline has, by who has them and their UUIDs.
    pub storages: Vec<(NodeClaim<'a>, &'a str)>,
    /// UUIDs of the DataNodes that it has.
    pub existing: &'a [String],
    /// UUIDs of DataNodes that failed the client.
    pub excluded: &'a [String],
}

/// The storages of a pipeline with those that are chosen to replace others, which come last. `rack_of` tells the rack
/// that a client's host is known to be in.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalDatanode`.
pub fn additional(
    look: &mut Look<'_>,
    rack_of: &dyn Fn(&str) -> Option<String>,
    caller: &Caller,
    wanted: &Additional<'_>,
) -> Result<Vec<StorageHandle>> {
    let Additional { path, file, holder, .. } = *wanted;
    let status = query::check_lease(look.store, caller, path, file, holder)?;
    let settings = settings::get(look.store)?;
    let named = look.cluster.storages_named(wanted.storages.iter().copied());
    let mut storages: Vec<StorageHandle> = named.into_iter().flatten().collect();
    let mut excluded = nodes_of(look, wanted.excluded);
    excluded.extend(nodes_of(look, wanted.existing));
    let writer = status.inode.file().and_then(|file| file.writer.as_ref());
    let writer = writer.map_or("", |writer| writer.client_machine.as_str());
    let rack = rack_of(writer);
    let request = PlacementRequest {
        count: wanted.count,
        writer,
        writer_rack: rack.as_deref(),
        block_len: status.block_size(),
        excluded: &excluded,
        favored: &[],
        busy: &[],
        existing: &storages,
        storage_policy: settings.storage_policy(status.storage_policy),
        is_new: storages.is_empty(),
        avoid_local: false,
    };
    let added = look.cluster.choose_replicated(&request, look.now, look.dice);
    storages.extend(added);
    Ok(storages)
}
