//! A restored namespace takes groups over that were formed behind the moment that it went back to: which, and in which order.
//!
//! A group is taken over where one of its members needs it, first the one that most members need. So an attempt that was
//! given up is not taken for a group: its members have their copies, or the group that they are in.

use crate::complete::unexpected;
use crate::contiguous::abandon_failed;
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_namespace::ops::adopt::{Adopt, AdoptedMember};
use cairn_namespace::{Outcome, holds};
use cairn_redundancy::groups::adopt::FoundGroup;
use cairn_redundancy::{BlockLookup, BlockState};
use cairn_stripe::{BlockId, UnitIndex};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Groups that one round takes over, at most.
const ADOPTED_MAX: usize = 100;

/// What has become of a group that was found, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdoptNews {
    /// It was taken over.
    Adopted {
        /// The group.
        group: BlockId,
        /// Whether all its parities are there; those that are not are made again.
        is_whole: bool,
    },
    /// It is not taken over as things stand, and why.
    Refused(BlockId, String),
}

/// What a round is to take over.
struct Chosen {
    commands: Vec<Adopt>,
    refused: Vec<AdoptNews>,
    /// Whether there may be more to come.
    goes_on: bool,
}

/// Takes groups over that members need. Returns whether more may come, so that no block is to be in another group yet.
///
/// Rests on what the command does not compare: who needs a group. Whoever has got copies meanwhile is in a group as well.
pub async fn take_over(op: &impl Op, news: &mut Vec<AdoptNews>) -> Result<bool, OpError> {
    let is_restored = op.look(|look| -> cairn_namespace::Result<bool> {
        let is_restored = holds::get(look.store)?.restored.is_some();
        if !is_restored {
            look.cluster.forget_found();
        }
        Ok(is_restored)
    })?;
    if !is_restored {
        return Ok(false);
    }
    // What was an attempt then may have become a group since.
    if op.look(|look| look.cluster.safe_mode().is_on()) {
        abandon_failed(op).await?;
    }
    let Chosen { commands, refused, goes_on } = op.look(choose);
    news.extend(refused);
    for command in commands {
        let (handle, is_whole) = (command.handle, command.parities.iter().all(Option::is_some));
        // Rests on nothing: it compares all that the store knows, and what the cluster knows is only who needs it.
        match op.submit(Submission::own(command)).await? {
            Outcome::Done => news.push(AdoptNews::Adopted { group: handle, is_whole }),
            Outcome::GroupRefused(why) => {
                if op.look(|look| look.cluster.refuse_found(handle, &why)) {
                    news.push(AdoptNews::Refused(handle, why));
                }
            }
            other => return Err(unexpected(&other)),
        }
    }
    Ok(goes_on)
}

fn choose(look: &mut Look<'_>) -> Chosen {
    let lookup = look.lookup();
    look.cluster.ask_for_unknown(&lookup, look.now);
    let mut chosen = Chosen { commands: Vec::new(), refused: Vec::new(), goes_on: true };
    if !look.cluster.has_found_all(look.now) {
        return chosen;
    }
    let mut candidates = Vec::new();
    let mut refused = Vec::new();
    for found in look.cluster.found_groups() {
        match weigh(look, &lookup, found) {
            Ok(needed) => candidates.push((Reverse(needed), Reverse(found.record.gs), found)),
            Err(why) => refused.push((found.record.handle, why)),
        }
    }
    candidates.sort_by_key(|(needed, gs, _)| (*needed, *gs));
    // Whether a member needs a second group is seen when it is in the first one.
    let mut taken = BTreeSet::new();
    for (_, _, found) in candidates {
        let members = || found.record.members.iter().flatten().map(|member| member.id);
        if members().any(|id| taken.contains(&id)) || chosen.commands.len() == ADOPTED_MAX {
            continue;
        }
        taken.extend(members());
        chosen.commands.push(command(found));
    }
    chosen.goes_on = !chosen.commands.is_empty();
    for (handle, why) in refused {
        if look.cluster.refuse_found(handle, &why) {
            chosen.refused.push(AdoptNews::Refused(handle, why));
        }
    }
    chosen
}

/// How many members need a group, or why it is not taken over.
fn weigh(look: &Look<'_>, lookup: &dyn BlockLookup, found: &FoundGroup) -> Result<usize, String> {
    let members: Vec<_> = found.record.members.iter().flatten().collect();
    if members.iter().any(|member| member.id.is_container()) {
        return Err("its members are containers of small blocks".into());
    }
    let needs = |id: BlockId| {
        let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
        facts.is_some_and(|facts| look.cluster.needs_group(lookup, id, &facts))
    };
    let needed = members.iter().filter(|member| needs(member.id)).count();
    if needed == 0 {
        return Err("no file has members that need it".into());
    }
    let there = look.cluster.found_units(found);
    match there >= members.len() {
        true => Ok(needed),
        false => Err(format!("{there} of its units are there, {} are needed", members.len())),
    }
}

/// What takes a group over that was found.
fn command(found: &FoundGroup) -> Adopt {
    let record = &found.record;
    let member = |member: &cairn_stripe::group::Member| {
        let cairn_stripe::group::Member { id, gs, len, crc32c, sums_crc32c } = *member;
        AdoptedMember { id, gs, len, crc32c, sums_crc32c }
    };
    let parity = |slot: usize| {
        let (len, crc32c) = found.parities.get(&UnitIndex(slot as u8)).copied()?;
        Some(ParityRecord { len, crc32c })
    };
    Adopt {
        handle: record.handle,
        gs: record.gs,
        policy: record.policy,
        members: record.members.iter().map(|of| of.as_ref().map(member)).collect(),
        data_len: record.data_len,
        parities: (record.schema.data_units()..record.schema.units()).map(parity).collect(),
        checksum: ChecksumShape {
            kind: record.checksum_type,
            bytes_per_checksum: record.chunk_len,
        },
    }
}
