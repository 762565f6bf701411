//! Contiguous groups: which blocks are to be one, and how an attempt begins and ends.
//!
//! What a command rests on and the store knows (stamps, lengths, CRCs, files), it compares itself when its turn comes. What
//! only the cluster knows (replicas that were read and are still there, parities that were reported) is judged in the look
//! before it, and once more in the moment in which its effects are applied: if it holds no longer then, nothing is deleted
//! and the group is repaired.

use crate::complete::unexpected;
use crate::op::{Look, Op, OpError, Submission, Targets};
use cairn_namespace::group::{ChecksumShape, Group, GroupState, ParityRecord};
use cairn_namespace::ops::group::{Abandon, BeginDissolve, BeginEncode, Dissolve, Form, MemberSum};
use cairn_namespace::{Outcome, query};
use cairn_redundancy::groups::{Encoded, NotFormed};
use cairn_redundancy::{BlockLookup, NodeHandle, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

pub mod adopt;
pub mod choose;
mod contents;
pub mod convert;
pub mod counts;
pub mod elsewhere;
pub(crate) mod in_memory;
pub mod pack;
pub mod renew;
pub mod rounds;

/// Groups that one look of [`end_unneeded`] goes over.
const PAGE: usize = 500;

/// A group that is to be made.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What is to be logged.
    pub command: BeginEncode,
    /// Where replicas stay and parities go, by slot.
    pub targets: Targets,
}

/// What a DataNode says of a group that it was to encode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedGroup {
    /// The group.
    pub handle: BlockId,
    /// The stamp of its parities.
    pub gs: GenerationStamp,
    /// What it has made, or why it could not.
    pub outcome: Result<Made, String>,
}

/// What was read and written for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The members as they were read.
    pub members: Vec<MadeMember>,
    /// The parities as they were read back where they are, by slot.
    pub parities: Vec<(UnitIndex, ParityRecord)>,
    /// How the `.meta` files of all members sum them.
    pub checksum: ChecksumShape,
}

/// A member as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeMember {
    /// Its sums.
    pub sum: MemberSum,
    /// The UUID of the storage that it was read from.
    pub storage: String,
}

/// What has become of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formation {
    /// The group protects its members.
    Formed,
    /// Not all parities are reported yet: ask again.
    Awaited,
    /// It is abandoned, and why.
    Abandoned(String),
    /// There is no such attempt any more: nothing is heard of it.
    Over,
}

/// Begins an attempt. Returns its handle, or why there is none.
///
/// Rests on nothing that the command does not compare itself. Where a replica or storage is not as it was chosen when the
/// attempt comes into force, the cluster does not know the attempt, and it is abandoned.
pub async fn begin(op: &impl Op, proposal: Proposal) -> Result<Result<BlockId, String>, OpError> {
    let Proposal { command, targets } = proposal;
    match op.submit(Submission::own(command).with_targets(targets)).await? {
        Outcome::EncodeBegun { handle, .. } => {
            if op.look(|look| look.cluster.is_attempt_known(handle)) {
                return Ok(Ok(handle));
            }
            abandon(op, handle).await?;
            Ok(Err("what it was to be made of has changed meanwhile".to_string()))
        }
        Outcome::GroupRefused(why) => Ok(Err(why)),
        other => Err(unexpected(&other)),
    }
}

/// Takes what a DataNode says of a group that it was to encode: the group is formed if everything is as it was read and
/// written, else the attempt is abandoned.
///
/// Rests on nothing that the command does not compare itself, but for what the cluster judges again when it is told.
pub async fn form(
    op: &impl Op,
    reporter: NodeHandle,
    encoded: &EncodedGroup,
) -> Result<Formation, OpError> {
    let EncodedGroup { handle, gs, outcome } = encoded;
    let made = match outcome {
        Ok(made) => made,
        Err(why) => {
            let is_open = op.look(|look| {
                let is_its = look.cluster.is_encoding(reporter, *handle, *gs);
                if is_its {
                    look.cluster.end_attempt(*handle, *gs, "its encoder has failed");
                }
                is_its
            });
            return if is_open {
                given_up(op, *handle, why.clone()).await
            } else {
                Ok(Formation::Over)
            };
        }
    };
    match op.look(|look| judge(look, reporter, (*handle, *gs), made)) {
        Ok(()) => {}
        Err(NotFormed::Awaited) => return Ok(Formation::Awaited),
        Err(NotFormed::NotOpen) => return Ok(Formation::Over),
        Err(why) => return given_up(op, *handle, why.to_string()).await,
    }
    let command = Form {
        handle: *handle,
        gs: *gs,
        members: made.members.iter().map(|member| member.sum).collect(),
        parities: made.parities.iter().map(|(_, parity)| *parity).collect(),
        checksum: made.checksum,
    };
    match op.submit(Submission::own(command)).await? {
        Outcome::Done => Ok(Formation::Formed),
        Outcome::GroupRefused(why) => given_up(op, *handle, why).await,
        other => Err(unexpected(&other)),
    }
}

fn judge(
    look: &mut Look<'_>,
    reporter: NodeHandle,
    (handle, gs): (BlockId, GenerationStamp),
    made: &Made,
) -> Result<(), NotFormed> {
    let storage = |member: &MadeMember| -> Option<(UnitIndex, StorageHandle)> {
        let storage = look.cluster.storage_by_uuid(&member.storage)?;
        Some((UnitIndex(member.sum.slot), storage.handle))
    };
    let parity = |(slot, parity): &(UnitIndex, ParityRecord)| (*slot, parity.len, parity.crc32c);
    let encoded = Encoded {
        handle,
        gs,
        read_from: made.members.iter().filter_map(storage).collect(),
        parities: made.parities.iter().map(parity).collect(),
    };
    look.cluster.can_form(&look.lookup(), reporter, &encoded)
}

async fn given_up(op: &impl Op, handle: BlockId, why: String) -> Result<Formation, OpError> {
    abandon(op, handle).await?;
    Ok(Formation::Abandoned(why))
}

/// Ends an attempt: its parities are wanted no more.
///
/// Rests on nothing: nothing happens if it was formed or has ended already.
pub async fn abandon(op: &impl Op, handle: BlockId) -> Result<(), OpError> {
    match op.submit(Submission::own(Abandon { handle })).await? {
        Outcome::Done | Outcome::GroupRefused(_) => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Abandons the attempts that cannot end well any more: those whose time is over, that have lost their encoder or a
/// replica that was to stay, and all that another NameNode, or this one before a restart, has begun. Returns them, and why.
pub async fn abandon_failed(op: &impl Op) -> Result<Vec<(BlockId, &'static str)>, OpError> {
    let failed = op.look(|look| -> cairn_namespace::Result<_> {
        let lookup = look.lookup();
        let failed = look.cluster.failed_attempts(&lookup, look.now).into_iter();
        let mut failed: Vec<_> = failed.map(|(handle, _, why)| (handle, why)).collect();
        let mut open = query::open_attempts(look.store)?;
        open.retain(|handle| !look.cluster.is_attempt_known(*handle));
        failed.extend(open.into_iter().map(|handle| (handle, "nobody knows where it was to be")));
        Ok(failed)
    })?;
    for (handle, _) in &failed {
        abandon(op, *handle).await?;
    }
    Ok(failed)
}

/// Has a group dissolved: its members get their copies again, then it ends ([`end_unneeded`]). Returns why not, if it is
/// none.
///
/// Rests on nothing: it is asked for.
pub async fn dissolve(op: &impl Op, handle: BlockId) -> Result<Result<(), String>, OpError> {
    match op.submit(Submission::own(BeginDissolve { handle })).await? {
        Outcome::Done => Ok(Ok(())),
        Outcome::GroupRefused(why) => Ok(Err(why)),
        other => Err(unexpected(&other)),
    }
}

/// Ends the groups among some that nobody needs: no file has a member, or all members have their copies without it.
///
/// Rests on nothing that the command does not compare itself, but for copies: one that is lost after the look is made
/// again from the others, as that of any block.
pub async fn end(op: &impl Op, handles: &[BlockId]) -> Result<(), OpError> {
    for handle in handles {
        if op.look(|look| is_unneeded(look, *handle))? {
            match op.submit(Submission::own(Dissolve { handle: *handle })).await? {
                Outcome::Done | Outcome::GroupRefused(_) => {}
                other => return Err(unexpected(&other)),
            }
        }
    }
    Ok(())
}

/// Whether nobody needs a group: no file has a member, all members have their copies without it, or the group that has
/// them is whole.
fn is_unneeded(look: &mut Look<'_>, handle: BlockId) -> cairn_namespace::Result<bool> {
    let Some(group) = query::group(look.store, handle)? else { return Ok(false) };
    let lookup = look.lookup();
    if let GroupState::Superseded { by } = group.state {
        let other = query::group(look.store, by)?;
        return Ok(other.is_none_or(|_| look.cluster.is_group_whole(&lookup, by, look.now)));
    }
    let group = lookup.group(handle).filter(|group| group.formed);
    Ok(group.is_some_and(|group| look.cluster.can_dissolve(&lookup, &group)))
}

/// Goes over some groups, those after `after`, and ends those that nobody needs. Returns the last of them, or none at the
/// end.
pub async fn end_unneeded(
    op: &impl Op,
    after: Option<BlockId>,
) -> Result<Option<BlockId>, OpError> {
    let groups = op.look(|look| query::groups_after(look.store, after, PAGE))?;
    let last = groups.last().filter(|_| groups.len() == PAGE).map(|group| group.handle);
    // One that is superseded has no live members.
    let may_end = |group: &&Group| {
        let is_dead = group.live_members().next().is_none();
        !group.is_attempt() && (group.is_dissolving() || is_dead)
    };
    let handles: Vec<BlockId> = groups.iter().filter(may_end).map(|group| group.handle).collect();
    end(op, &handles).await?;
    Ok(last)
}
