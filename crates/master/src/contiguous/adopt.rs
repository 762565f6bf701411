//! A restored namespace takes groups over that were formed behind the moment that it went back to: which, and in which order.
//!
//! A group is taken over where one of its members needs it, first the one that most members need. So an attempt that was
//! given up is not taken for a group: its members have their copies, or the group that they are in. Of containers nobody
//! knows yet what is in them: their groups are taken over to read that ([`super::contents`]), and end if it is nothing.
//! Containers of which no parity is left are read first, and taken over without a group where blocks need them.

use crate::complete::unexpected;
use crate::contiguous::pack::{self, PackNews};
use crate::contiguous::{abandon_failed, contents};
use crate::op::{Look, Op, OpError, Submission};
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_namespace::inode::FileRedundancy;
use cairn_namespace::ops::adopt::{Adopt, AdoptedMember};
use cairn_namespace::ops::adopt_container::AdoptContainer;
use cairn_namespace::{Outcome, block, holds, query};
use cairn_redundancy::groups::adopt::{FoundContainer, FoundGroup};
use cairn_redundancy::{BlockLookup, BlockState};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, PolicyId, PolicyLayout, UnitIndex};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Groups that one round takes over, at most.
const ADOPTED_MAX: usize = 100;
/// Containers without a group of which one round looks at all that is in them, at most.
const CONTAINERS_MAX: usize = 10;
/// Containers that are read from the store at once.
const PAGE: usize = 200;

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
    /// A container was taken over of whose group no parity is left.
    Container(BlockId),
}

/// What a round is to take over.
struct Chosen {
    commands: Vec<Adopt>,
    /// Containers without a group.
    alone: Vec<AdoptContainer>,
    /// Containers that were not in a group yet, and may have come into one behind that moment: what they are is told by that,
    /// or by themselves.
    given_up: Vec<BlockId>,
    refused: Vec<AdoptNews>,
    /// Whether there may be more to come.
    goes_on: bool,
}

/// Takes groups over that members need. Returns whether more may come, so that no block is to be in another group yet.
///
/// Rests on what the command does not compare: who needs a group. Whoever has got copies meanwhile is in a group as well.
pub async fn take_over(
    op: &impl Op,
    news: &mut Vec<AdoptNews>,
    of_containers: &mut Vec<PackNews>,
) -> Result<bool, OpError> {
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
    // Who needs a group is not known before all is that was told another leader.
    if op.look(|look| look.cluster.is_taking_over()) {
        return Ok(true);
    }
    // What was an attempt then may have become a group since.
    if op.look(|look| look.cluster.safe_mode().is_on()) {
        abandon_failed(op).await?;
    }
    let Chosen { commands, alone, given_up, refused, goes_on } = op.look(choose)?;
    news.extend(refused);
    for container in given_up {
        pack::abandon(op, container).await?;
    }
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
    for command in alone {
        let container = command.container;
        // Rests on nothing, as above.
        match op.submit(Submission::own(command)).await? {
            Outcome::Done => news.push(AdoptNews::Container(container)),
            Outcome::GroupRefused(_) => {}
            other => return Err(unexpected(&other)),
        }
    }
    let mut taken = Vec::new();
    let is_read = contents::take_all(op, &mut taken).await;
    of_containers.extend(taken.into_iter().map(|(id, blocks)| PackNews::TakenOver(id, blocks)));
    Ok(goes_on || !is_read?)
}

fn choose(look: &mut Look<'_>) -> cairn_namespace::Result<Chosen> {
    let lookup = look.lookup();
    look.cluster.ask_for_unknown(&lookup, look.now);
    let (commands, given_up, refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut chosen = Chosen { commands, alone: Vec::new(), given_up, refused, goes_on: true };
    if !look.cluster.has_found_all(look.now) {
        return Ok(chosen);
    }
    let mut candidates = Vec::new();
    let mut refused = Vec::new();
    for found in look.cluster.found_groups() {
        let ungrouped = ungrouped(look, found)?;
        if !ungrouped.is_empty() {
            chosen.given_up.extend(ungrouped);
            continue;
        }
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
    for (handle, why) in refused {
        if look.cluster.refuse_found(handle, &why) {
            chosen.refused.push(AdoptNews::Refused(handle, why));
        }
    }
    let mut goes_on = !chosen.commands.is_empty() || !chosen.given_up.is_empty();
    if !goes_on {
        // Nothing is packed in safe mode: those were there at that moment.
        if look.cluster.safe_mode().is_on() {
            chosen.given_up = spare(look)?;
        }
        goes_on = !chosen.given_up.is_empty() || look.cluster.found_containers().next().is_some();
        chosen.alone = alone(look)?;
    }
    Ok(Chosen { goes_on, ..chosen })
}

/// The containers that the namespace knows, in no group, and in which nothing is packed.
fn spare(look: &Look<'_>) -> cairn_namespace::Result<Vec<BlockId>> {
    let (mut after, mut spare) = (None, Vec::new());
    loop {
        let page = query::containers_after(look.store, after, PAGE)?;
        for of in &page {
            let own = block::get(look.store, of.id)?;
            if own.is_some_and(|own| of.is_spare(&own))
                && query::attempt_of(look.store, of.id)?.is_none()
            {
                spare.push(of.id);
            }
        }
        after = page.last().filter(|_| page.len() == PAGE).map(|of| of.id);
        if after.is_none() {
            return Ok(spare);
        }
    }
}

/// What takes containers over that no group has and that blocks need. Others are judged no more.
fn alone(look: &mut Look<'_>) -> cairn_namespace::Result<Vec<AdoptContainer>> {
    let found: Vec<FoundContainer> =
        look.cluster.found_containers().take(CONTAINERS_MAX).cloned().collect();
    let mut alone = Vec::new();
    for of in found {
        match policy_of(look, &of.index)? {
            Some(policy) => alone.push(AdoptContainer {
                container: of.block.id,
                gs: of.block.gs,
                len: of.block.len,
                crc32c: of.crc32c,
                policy,
                checksum: contents::shape_of(&of.index),
            }),
            None => look.cluster.pass_container_over(of.block.id),
        }
    }
    Ok(alone)
}

/// The policy of the files of blocks that need a container; none if no block does.
fn policy_of(look: &Look<'_>, index: &PackIndex) -> cairn_namespace::Result<Option<PolicyId>> {
    let lookup = look.lookup();
    let mut needed = index.packed().iter().filter(|of| contents::is_needed(look, &lookup, of));
    let Some(first) = needed.next() else { return Ok(None) };
    for packed in std::iter::once(first).chain(needed) {
        let file = query::file_of_block(look.store, packed.id)?;
        let redundancy = file.as_ref().and_then(|file| file.file()).map(|file| file.redundancy);
        if let Some(FileRedundancy::Contiguous { policy, .. }) = redundancy {
            return Ok(Some(policy));
        }
    }
    // Files that are not to be kept so by now get their blocks as plain ones again.
    let policies = query::policies(look.store)?.into_iter().map(|info| info.policy);
    let mut of_groups = policies.filter(|policy| policy.layout == PolicyLayout::Contiguous);
    Ok(of_groups.next().map(|policy| policy.id))
}

/// The containers of a group that was found which the namespace knows, in no group, and in which nothing is packed.
fn ungrouped(look: &Look<'_>, found: &FoundGroup) -> cairn_namespace::Result<Vec<BlockId>> {
    let mut ungrouped = Vec::new();
    for id in found.record.members.iter().flatten().map(|member| member.id) {
        let own =
            block::get(look.store, id)?.filter(|own| id.is_container() && own.group.is_none());
        if own.is_some() && query::container(look.store, id)?.is_some_and(|of| !of.is_needed()) {
            ungrouped.push(id);
        }
    }
    Ok(ungrouped)
}

/// How many members need a group, or why it is not taken over.
fn weigh(look: &Look<'_>, lookup: &dyn BlockLookup, found: &FoundGroup) -> Result<usize, String> {
    let members: Vec<_> = found.record.members.iter().flatten().collect();
    let needs = |id: BlockId| {
        let facts = lookup.block(id).filter(|facts| facts.state == BlockState::Complete);
        facts.is_some_and(|facts| look.cluster.needs_group(lookup, id, &facts))
    };
    let is_unknown = |id: BlockId| id.is_container() && lookup.block(id).is_none();
    let needed = match members.iter().any(|member| is_unknown(member.id)) {
        // What is in them may be: they come first.
        true => usize::MAX,
        false => members.iter().filter(|member| needs(member.id)).count(),
    };
    if needed == 0 {
        return Err("no file has members that need it".into());
    }
    let there = look.cluster.found_units(lookup, found);
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
