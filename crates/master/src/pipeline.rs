//! A block whose pipeline broke: the storages that its writer goes on with.

use crate::add_block::nodes_of;
use crate::op::{Look, Op, OpError, Submission, looking_again};
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::{
    BlockRef, CallId, Caller, Guard, InodeId, NamespaceError, Outcome, Result, query, settings,
};
use cairn_redundancy::{NodeClaim, PlacementRequest, StorageHandle};
use cairn_stripe::GenerationStamp;

/// Gives out a new generation stamp for a broken pipeline.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#bumpBlockGenerationStamp`. Deviation: Hadoop gives one also to a stream whose block
/// has got another stamp since.
pub async fn new_stamp(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    command: UpdateBlockForPipeline,
) -> Result<Outcome, OpError> {
    looking_again(|| async {
        let guard = op.look(|look| check_stamp(look, command.block, None))?;
        let submission = Submission::of(caller.clone(), call, command.clone()).resting_on(guard);
        op.submit(submission).await
    })
    .await
}

/// Moves a block to its new stamp and storages, which are given by who has them and their UUIDs.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`. Deviation: as for a new stamp.
pub async fn update(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    command: UpdatePipeline,
    storages: &[(NodeClaim<'_>, &str)],
) -> Result<(), OpError> {
    looking_again(|| async {
        let (targets, guard) = op.look(|look| -> Result<_> {
            let guard = check_stamp(look, command.old, Some(command.new.gs))?;
            Ok((look.cluster.storages_named(storages.iter().copied()), guard))
        })?;
        let submission = Submission::of(caller.clone(), call, command.clone());
        op.submit(submission.resting_on(guard).with_targets(targets)).await.map(drop)
    })
    .await
}

/// Refuses a stream that names an older stamp of its block than it has: its file was closed and opened again since, perhaps
/// by another stream of the same client, which has one name for all. One that repeats a call names the stamp that it has
/// brought about (`new`).
fn check_stamp(look: &Look<'_>, named: BlockRef, new: Option<GenerationStamp>) -> Result<Guard> {
    let mut guard = Guard::NONE;
    let found = query::get_block(look.store, named.id)?.map(|info| info.block);
    match &found {
        Some(block) if Some(block.gs) == new => {}
        Some(block) if named.gs < block.gs => {
            return Err(NamespaceError::Io(format!(
                "{}_{} has the generation stamp {} by now: it was recovered, or is written by another stream",
                named.id, named.gs, block.gs
            )));
        }
        _ => guard.block(named.id, found.as_ref()),
    }
    Ok(guard)
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
