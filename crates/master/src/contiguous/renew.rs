//! Groups of which much is dead: bytes of members that no file has any more, which the others need.
//!
//! The members that are left go into a new group, if that takes less than what there is, or get their copies again, if
//! these take less still. Then the old group ends, and what is dead in it is deleted.

use crate::contiguous::Proposal;
use crate::op::{Look, Op, OpError};
use cairn_namespace::ops::group::{BeginEncode, NewMember};
use cairn_namespace::{Group, GroupState, Result, query};
use cairn_redundancy::groups::plan::GroupRequest;
use cairn_redundancy::{BlockLookup, BlockRef};
use cairn_stripe::BlockId;

/// Groups that one look goes over.
const PAGE: usize = 200;

/// What is to be done for a group.
#[derive(Clone, Debug)]
pub enum Renewal {
    /// Its members are to be in another one.
    Renew(Proposal),
    /// Its members are to have their copies.
    Dissolve(BlockId),
}

/// What becomes of dead bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadRules {
    /// The part of the bytes of all members that may be dead.
    pub share_max: f64,
    /// Groups that one look may have renewed or dissolved.
    pub most: usize,
}

/// What of a group's members is how much, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    live: u64,
    dead: u64,
    /// Of the longest of those that live.
    longest: u64,
    parity: u64,
    m: u64,
}

/// What is better than a group as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Nothing,
    Another,
    Copies,
}

impl Shares {
    fn of(group: &Group) -> Shares {
        let sum = |is_live: bool| {
            group.members().filter(|(_, of)| of.live == is_live).map(|(_, of)| of.len).sum()
        };
        Shares {
            live: sum(true),
            dead: sum(false),
            longest: group.live_members().map(|(_, of)| of.len).max().unwrap_or(0),
            parity: group.parities.iter().map(|parity| parity.len).sum(),
            m: group.m.into(),
        }
    }

    fn better(&self, share_max: f64) -> Better {
        let all = self.live + self.dead;
        if self.live == 0 || self.dead as f64 <= share_max * all as f64 {
            return Better::Nothing;
        }
        let (now, copies) = (all + self.parity, 3 * self.live);
        let another = self.live + self.m * self.longest;
        if copies <= another && copies < now {
            Better::Copies
        } else if another < now {
            Better::Another
        } else {
            Better::Nothing
        }
    }
}

/// What is to be done for groups behind `after` of which too much is dead. `after` becomes the last that was looked at, or
/// none at the end.
pub fn choose(
    look: &mut Look<'_>,
    rules: &DeadRules,
    after: &mut Option<BlockId>,
) -> Result<Vec<Renewal>> {
    let groups = query::groups_after(look.store, *after, PAGE)?;
    let is_end = groups.len() < PAGE;
    *after = None;
    let mut chosen = Vec::new();
    for group in groups {
        if chosen.len() == rules.most {
            return Ok(chosen);
        }
        *after = Some(group.handle).filter(|_| !is_end);
        let is_settled = group.state == GroupState::Formed
            && !look.cluster.has_surplus(group.handle)
            && is_at_rest(look, &group)?;
        if !is_settled {
            continue;
        }
        match Shares::of(&group).better(rules.share_max) {
            Better::Nothing => {}
            Better::Copies => chosen.push(Renewal::Dissolve(group.handle)),
            Better::Another => chosen.extend(proposal(look, &group)?.map(Renewal::Renew)),
        }
    }
    Ok(chosen)
}

/// Whether none of its live members is, or was a moment ago, to be in another group.
fn is_at_rest(look: &Look<'_>, group: &Group) -> Result<bool> {
    for (_, member) in group.live_members() {
        let is_chosen = query::attempt_of(look.store, member.id)?.is_some();
        // A container that is emptied ends by itself.
        let is_emptying =
            query::container(look.store, member.id)?.is_some_and(|of| of.is_emptying());
        if is_chosen || is_emptying || look.cluster.is_resting(member.id, look.now) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A group of the members that are left; none if they cannot be one now.
fn proposal(look: &mut Look<'_>, group: &Group) -> Result<Option<Proposal>> {
    let Some(policy) = crate::orders::policy(look.store, group.policy)? else { return Ok(None) };
    let live: Vec<BlockRef> = group
        .live_members()
        .map(|(_, of)| BlockRef { id: of.id, gs: of.gs, len: of.len })
        .collect();
    let request = GroupRequest {
        candidates: &live,
        k: policy.schema.data_units(),
        m: policy.schema.parity_units(),
        storage_policy: look.lookup().storage_policy(group.handle),
    };
    let plan = look.cluster.plan_group(&request, look.now, look.dice);
    let Some(plan) = plan.filter(|plan| plan.members.len() == live.len()) else { return Ok(None) };
    let new = |block: &BlockRef| {
        let member = group.live_members().find(|(_, of)| of.id == block.id)?.1;
        Some(NewMember { id: block.id, gs: block.gs, len: block.len, crc32c: member.crc32c })
    };
    let members: Vec<NewMember> = plan.members.iter().filter_map(|(block, _)| new(block)).collect();
    let mut targets: Vec<_> = plan.members.iter().map(|(_, at)| Some(*at)).collect();
    targets.resize(policy.schema.data_units(), None);
    targets.extend(plan.parities.into_iter().map(Some));
    let supersedes = vec![group.handle];
    Ok(Some(Proposal { command: BeginEncode { policy: policy.id, members, supersedes }, targets }))
}

/// Has DataNodes know of the members of some groups that no file has any more, those of groups behind `after`: they serve
/// them to nobody but to others of the group. Returns the last of these groups, or none at the end.
pub async fn tell_retired(
    op: &impl Op,
    after: Option<BlockId>,
) -> std::result::Result<Option<BlockId>, OpError> {
    op.look(|look| {
        let groups = query::groups_after(look.store, after, PAGE)?;
        for group in groups.iter().filter(|group| group.is_formed()) {
            for (_, dead) in group.members().filter(|(_, member)| !member.live) {
                look.cluster.tell_retired(BlockRef { id: dead.id, gs: dead.gs, len: dead.len });
            }
        }
        Ok(groups.last().filter(|_| groups.len() == PAGE).map(|group| group.handle))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_less_is_done_for_groups_with_much_that_is_dead() {
        let shares = |live: u64, dead: u64, m: u64| {
            let (live, dead, parity) = (live * 10, dead * 10, m * 10);
            Shares { live, dead, longest: 10, parity, m }
        };
        let better = |live, dead, m| shares(live, dead, m).better(0.25);
        assert_eq!(better(6, 0, 3), Better::Nothing);
        assert_eq!(better(5, 1, 3), Better::Nothing, "a sixth");
        assert_eq!(better(4, 2, 3), Better::Another, "7 instead of 9");
        assert_eq!(better(2, 4, 3), Better::Another, "5 instead of 9, and 6 with copies");
        assert_eq!(better(1, 5, 3), Better::Copies, "3 instead of 9, and 4 with parities");
        assert_eq!(better(2, 1, 2), Better::Another, "4 instead of 5");
        assert_eq!(better(0, 3, 2), Better::Nothing, "it ends by itself");
        let padded = Shares { live: 30, dead: 15, longest: 29, parity: 58, m: 2 };
        assert_eq!(padded.better(0.25), Better::Another);
        let dear = Shares { live: 40, dead: 20, longest: 40, parity: 20, m: 2 };
        assert_eq!(dear.better(0.25), Better::Nothing, "either takes 120 instead of 80");
    }
}
