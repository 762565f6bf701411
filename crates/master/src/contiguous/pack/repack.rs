//! Containers of which much is dead: what lives in them goes into others.
//!
//! What is dead is counted for a whole group, whose containers were filled together: dead bytes of packed blocks, and all
//! of containers that have ended. Where it is more than a bound, the containers that are left are emptied side by side,
//! and their group ends with them.

use crate::complete::unexpected;
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::container::{Container, ContainerState};
use cairn_namespace::ops::repack::Repack;
use cairn_namespace::{Group, GroupState, Outcome, query};
use cairn_stripe::BlockId;

/// Groups that one look goes over.
const PAGE: usize = 200;
/// Containers that are emptied at a time, of all groups: each is read once more and written once more.
const EMPTYING_MAX: usize = 64;

/// What is to be done with what lives in containers of which too much is dead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Containers that are to be emptied.
    pub empty: Vec<BlockId>,
    /// Blocks that are too few for the containers of a group, and are to be plain again until there are others.
    pub unpack: Vec<BlockId>,
}

/// What is to be emptied now, of groups behind `after`. `after` becomes the last group that was looked at, or
/// none at the end.
pub fn choose(
    look: &mut Look<'_>,
    dead_share_max: f64,
    after: &mut Option<BlockId>,
) -> cairn_namespace::Result<Chosen> {
    let groups = query::groups_after(look.store, *after, PAGE)?;
    *after = groups.last().filter(|_| groups.len() == PAGE).map(|group| group.handle);
    let mut chosen = Chosen::default();
    for group in groups.iter().filter(|group| group.state == GroupState::Formed) {
        let Some(containers) = containers_of(look, group)? else { continue };
        let is_begun = containers.iter().any(Container::is_emptying);
        if !is_begun && dead_share(group, &containers) <= dead_share_max {
            continue;
        }
        let live: u64 = containers.iter().map(|of| of.live).sum();
        if live < u64::from(group.k) {
            for of in &containers {
                for (_, member) in query::pack_slots(look.store, of.id, 0, usize::from(group.k))? {
                    if !query::is_unpacking(look.store, member.id)? {
                        chosen.unpack.push(member.id);
                    }
                }
            }
            continue;
        }
        let is_left = |of: &&Container| {
            let is_halfway = matches!(of.state, ContainerState::Emptying { next: Some(_) });
            of.live > 0 && (of.state == ContainerState::Packed || is_halfway)
        };
        chosen.empty.extend(containers.iter().filter(is_left).map(|of| of.id));
        if chosen.empty.len() >= EMPTYING_MAX {
            *after = Some(group.handle);
            break;
        }
    }
    Ok(chosen)
}

/// The containers of a group that are still there; none if it is not one of containers, or some are not packed yet.
fn containers_of(
    look: &Look<'_>,
    group: &Group,
) -> cairn_namespace::Result<Option<Vec<Container>>> {
    let mut found = Vec::new();
    for (_, member) in group.live_members() {
        if !member.id.is_container() {
            return Ok(None);
        }
        match query::container(look.store, member.id)? {
            Some(of) if of.state == ContainerState::Packed || of.is_emptying() => found.push(of),
            _ => return Ok(None),
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// The part of the bytes of a group's members that no block has any more.
fn dead_share(group: &Group, containers: &[Container]) -> f64 {
    let all: u64 = group.members().map(|(_, member)| member.len).sum();
    let ended: u64 = group.members().filter(|(_, of)| !of.live).map(|(_, of)| of.len).sum();
    let dead = containers.iter().map(Container::dead_len).sum::<u64>().saturating_add(ended);
    if all == 0 { 0.0 } else { dead as f64 / all as f64 }
}

/// Has what lives in a container wait for others.
///
/// Rests on nothing that the command does not compare itself.
pub async fn begin(op: &impl Op, container: BlockId) -> Result<bool, OpError> {
    loop {
        match op.submit(Submission::own(Repack { container })).await? {
            Outcome::Flag(false) => {}
            Outcome::Flag(true) => return Ok(true),
            Outcome::GroupRefused(_) => return Ok(false),
            other => return Err(unexpected(&other)),
        }
    }
}
