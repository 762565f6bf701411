//! Small blocks that are packed: how containers are begun, taken for what they are, filled and ended.
//!
//! A container is written by the DataNode that keeps it. When it is sealed it waits for a group like any block
//! ([`super::choose`]), and what was to be packed in it is packed when that group is whole. A start goes on with what is
//! in a group, and gives the rest up.

use crate::complete::unexpected;
use crate::contiguous::{Formation, contents};
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::container::{Container, ContainerState};
use cairn_namespace::group::ChecksumShape;
use cairn_namespace::ops::pack::{AbandonPack, BeginPack, EndPack, Pack, SealPack};
use cairn_namespace::ops::unpack::Unpack;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Outcome, block, container, query};
use cairn_redundancy::packed::NotSealed;
use cairn_redundancy::{BlockRef, NodeHandle, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp};

pub mod batch;
pub mod repack;
pub mod unpack;

/// Containers that one look goes over.
const PAGE: usize = 200;
/// Blocks that are made plain again in one round, at most.
const UNPACKED_MAX: usize = 100;
/// How long a container waits for a group while no others are written, in ms: what is packed in it has all its copies as
/// long, and goes into containers of another batch then.
const LONELY_MS: u64 = 60_000;
/// Steps in which one round packs, at most: each holds others up for some milliseconds.
const STEPS_MAX: usize = 50;

/// A container that is to be written.
#[derive(Clone, Debug)]
pub struct PackProposal {
    /// What is to be logged.
    pub command: BeginPack,
    /// Where it goes.
    pub storage: StorageHandle,
}

/// What a DataNode says of a container that it was to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedContainer {
    /// The container.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// What it has written and read back, or why it could not.
    pub outcome: Result<WrittenContainer, String>,
}

/// A container as it was read back by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenContainer {
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// The UUID of the storage that has it.
    pub storage: String,
    /// Slots whose blocks are not in it.
    pub left_out: Vec<u32>,
    /// CRC32C of each packed block, by slot.
    pub crcs: Vec<u32>,
    /// How it and all in it are summed.
    pub checksum: ChecksumShape,
}

/// What has become of containers in a round, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackNews {
    /// One is to be written.
    Begun(BlockId),
    /// None was begun, and why.
    NotBegun(String),
    /// One was written as it should be.
    Sealed(BlockId),
    /// All that could be is packed in it.
    Packed(BlockId),
    /// It is given up, and why.
    Abandoned(BlockId, String),
    /// Nobody needs anything in it any more.
    Ended(BlockId),
    /// Blocks are plain again, whose containers cannot be had.
    Unpacked(usize),
    /// Blocks are plain again of which somebody wanted that.
    UnpackedAsAsked(usize),
    /// So much in it is dead that what lives goes into other containers.
    Emptying(BlockId),
    /// So many blocks are packed in one that a restored namespace did not know.
    TakenOver(BlockId, u64),
}

/// Begins a container. Returns its id, or why there is none.
///
/// Rests on nothing that the command does not compare itself. Where its node can take no order, it is given up.
pub async fn begin(
    op: &impl Op,
    proposal: PackProposal,
) -> Result<Result<BlockId, String>, OpError> {
    let PackProposal { command, storage } = proposal;
    match op.submit(Submission::own(command).with_targets(vec![Some(storage)])).await? {
        Outcome::EncodeBegun { handle, .. } => {
            if op.look(|look| look.cluster.is_attempt_known(handle)) {
                return Ok(Ok(handle));
            }
            abandon(op, handle).await?;
            Ok(Err("the DataNode that was to write it is gone".to_string()))
        }
        Outcome::GroupRefused(why) => Ok(Err(why)),
        other => Err(unexpected(&other)),
    }
}

/// Takes what a DataNode says of a container that it was to write: it is sealed if everything is as recorded and
/// reported, else given up.
///
/// Rests on nothing that the command does not compare itself, but for what the cluster has looked at: a container that is
/// lost after that is given up before anything is packed in it.
pub async fn seal(
    op: &impl Op,
    reporter: NodeHandle,
    packed: &PackedContainer,
) -> Result<Formation, OpError> {
    let PackedContainer { id, gs, outcome } = packed;
    let written = match outcome {
        Ok(written) => written,
        Err(why) => {
            let is_its = op.look(|look| look.cluster.is_encoding(reporter, *id, *gs));
            return match is_its {
                true => given_up(op, *id, why.clone()).await,
                false => Ok(Formation::Over),
            };
        }
    };
    let block = BlockRef { id: *id, gs: *gs, len: written.len };
    let judged = op.look(|look| {
        let storage = look.cluster.storage_by_uuid(&written.storage).map(|of| of.handle);
        let at = (reporter, storage.ok_or(NotSealed::Lost)?);
        look.cluster.can_seal(&look.lookup(), at, block, written.crc32c)
    });
    match judged {
        Ok(()) => {}
        Err(NotSealed::Awaited) => return Ok(Formation::Awaited),
        Err(NotSealed::NotOpen) => return Ok(Formation::Over),
        Err(NotSealed::Lost) => {
            let why = "the container is not what was read back, or is gone".to_string();
            return given_up(op, *id, why).await;
        }
    }
    let command = SealPack {
        container: *id,
        gs: *gs,
        len: written.len,
        crc32c: written.crc32c,
        left_out: written.left_out.clone(),
        crcs: written.crcs.clone(),
        checksum: written.checksum,
    };
    match op.submit(Submission::own(command)).await? {
        Outcome::Done => Ok(Formation::Formed),
        Outcome::GroupRefused(why) => given_up(op, *id, why).await,
        other => Err(unexpected(&other)),
    }
}

async fn given_up(op: &impl Op, id: BlockId, why: String) -> Result<Formation, OpError> {
    abandon(op, id).await?;
    Ok(Formation::Abandoned(why))
}

/// Gives a container up: what was to be packed in it waits again.
///
/// Rests on nothing: nothing happens if something may be packed in it.
pub async fn abandon(op: &impl Op, container: BlockId) -> Result<(), OpError> {
    loop {
        match op.submit(Submission::own(AbandonPack { container })).await? {
            Outcome::Flag(false) => {}
            Outcome::Flag(true) | Outcome::GroupRefused(_) => return Ok(()),
            other => return Err(unexpected(&other)),
        }
    }
}

/// What is to be done for a container now.
enum Next {
    Nothing,
    Abandon(&'static str),
    Pack,
    Read,
    Empty,
    End,
}

/// Goes over some containers, those after `after`, and does for each what comes next. Returns the last of them, or none at
/// the end.
///
/// Rests on nothing that the commands do not compare themselves, but for what only the cluster knows, which is judged in one
/// look. If that holds no longer when a block is packed, its plain replicas
/// stay all the same: that is judged again when their nodes are told.
pub async fn go_on(
    op: &impl Op,
    after: Option<BlockId>,
    news: &mut Vec<PackNews>,
) -> Result<Option<BlockId>, OpError> {
    let todo = op.look(|look| -> cairn_namespace::Result<_> {
        let failed = look.cluster.failed_packs(look.now);
        let containers = query::containers_after(look.store, after, PAGE)?;
        let last = containers.last().filter(|_| containers.len() == PAGE).map(|of| of.id);
        let mut todo = Vec::new();
        for container in containers {
            let failed = failed.iter().find(|(id, _)| *id == container.id).map(|(_, why)| *why);
            todo.push((next(look, &container, failed)?, container));
        }
        Ok((todo, last))
    })?;
    let (todo, last) = todo;
    let mut steps = STEPS_MAX;
    for (next, Container { id, gs, .. }) in todo {
        match next {
            Next::Nothing => {}
            Next::Abandon(why) => {
                abandon(op, id).await?;
                news.push(PackNews::Abandoned(id, why.to_string()));
            }
            Next::Pack => {
                if pack(op, (id, gs), &mut steps).await? {
                    news.push(PackNews::Packed(id));
                }
            }
            Next::Read => {
                let blocks = contents::take(op, id).await?;
                news.extend(blocks.map(|blocks| PackNews::TakenOver(id, blocks)));
            }
            Next::Empty => {
                if repack::begin(op, id).await? {
                    news.push(PackNews::Emptying(id));
                }
            }
            Next::End => match op.submit(Submission::own(EndPack { container: id })).await? {
                Outcome::Done => news.push(PackNews::Ended(id)),
                Outcome::GroupRefused(_) => {}
                other => return Err(unexpected(&other)),
            },
        }
    }
    Ok(last)
}

fn next(
    look: &mut Look<'_>,
    of: &Container,
    failed: Option<&'static str>,
) -> cairn_namespace::Result<Next> {
    let lookup = look.lookup();
    Ok(match of.state {
        ContainerState::Building { .. } => match (failed, look.cluster.is_attempt_known(of.id)) {
            (Some(why), _) => Next::Abandon(why),
            (None, false) => Next::Abandon("nobody knows who was to write it"),
            (None, true) => Next::Nothing,
        },
        ContainerState::Ending => Next::Abandon("it is being given up"),
        ContainerState::Found => Next::Read,
        ContainerState::Sealed if !is_grouped(look.store, of.id)? => {
            if query::attempt_of(look.store, of.id)?.is_some() {
                return Ok(Next::Nothing);
            }
            let has_waited = has_waited(look, of.id)?;
            match look.cluster.readable_places(of.id).is_empty() {
                true => Next::Abandon("it is lost"),
                false if has_waited => Next::Abandon("there are no others to be in a group with"),
                false => Next::Nothing,
            }
        }
        ContainerState::Sealed | ContainerState::Packing { .. } => {
            match look.cluster.is_container_safe(&lookup, of.id, look.now) {
                true => Next::Pack,
                false => {
                    look.cluster.have_containers_proven(&lookup, of.id);
                    Next::Nothing
                }
            }
        }
        ContainerState::Packed | ContainerState::Emptying { .. } => {
            match container::is_empty(look.store, of.id)? && has_moved_safely(look, of)? {
                true => Next::End,
                // Nothing keeps it safe but copies, and what is packed in it keeps its own.
                false if is_alone(look, of)? => Next::Empty,
                false => Next::Nothing,
            }
        }
    })
}

/// Whether a container waits for a group for so long that there are no others to be in one with.
fn has_waited(look: &Look<'_>, id: BlockId) -> cairn_namespace::Result<bool> {
    let since_ms = query::waiting_since(look.store, id)?.unwrap_or(0);
    Ok(look.now.elapsed_ms >= since_ms.saturating_add(LONELY_MS)
        && !look.cluster.is_packing()
        && !query::group_pauses(look.store)?.form)
}

/// Whether a container in which blocks are packed has lost its group and finds no other, and is not being emptied.
fn is_alone(look: &Look<'_>, of: &Container) -> cairn_namespace::Result<bool> {
    let is_emptied = of.state == ContainerState::Emptying { next: None };
    Ok(!is_emptied
        && !is_grouped(look.store, of.id)?
        && query::attempt_of(look.store, of.id)?.is_none()
        && has_waited(look, of.id)?)
}

/// Whether the containers that have got blocks of this one keep them safe, as far as there are still blocks in those.
fn has_moved_safely(look: &mut Look<'_>, of: &Container) -> cairn_namespace::Result<bool> {
    let lookup = look.lookup();
    for id in &of.moved_to {
        let is_needed = container::get(look.store, *id)?.is_some_and(|of| of.is_needed());
        if is_needed && !look.cluster.is_container_safe(&lookup, *id, look.now) {
            look.cluster.have_containers_proven(&lookup, *id);
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_grouped(store: &dyn StoreRead, id: BlockId) -> cairn_namespace::Result<bool> {
    Ok(block::get(store, id)?.is_some_and(|block| block.group.is_some()))
}

/// Packs what is in a container, as far as steps are left. Returns whether all is.
///
/// Rests on nothing that the command does not compare itself: see [`go_on`].
async fn pack(
    op: &impl Op,
    (container, gs): (BlockId, GenerationStamp),
    steps: &mut usize,
) -> Result<bool, OpError> {
    while *steps > 0 {
        *steps -= 1;
        match op.submit(Submission::own(Pack { container, gs })).await? {
            Outcome::Flag(true) => return Ok(true),
            Outcome::Flag(false) => {}
            Outcome::GroupRefused(_) => return Ok(false),
            other => return Err(unexpected(&other)),
        }
    }
    Ok(false)
}

/// Makes blocks plain again whose containers cannot be had, and of which good replicas are left.
///
/// Rests on nothing: a block that is plain is counted, and mended, as what it has.
pub async fn unpack_lost(op: &impl Op) -> Result<usize, OpError> {
    let blocks = op.look(|look| look.cluster.to_unpack(&look.lookup(), UNPACKED_MAX));
    let count = blocks.len();
    if count > 0 {
        op.submit(Submission::own(Unpack { blocks })).await?;
    }
    Ok(count)
}
