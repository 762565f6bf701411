//! What `-blockId` tells of contiguous groups: of a member, a parity, or a group by its handle.

use super::block::View;
use cairn_master::Lookup;
use cairn_namespace::{Group, GroupState, Result, query};
use cairn_redundancy::{BlockLookup, Standing};
use cairn_stripe::{BlockId, UnitIndex};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The group of which `id` is a parity, a member, or the handle; none if it is in none.
pub(super) fn of_block(lookup: &Lookup<'_>, id: BlockId) -> Result<Option<Group>> {
    if id.is_parity() {
        return query::group(lookup.store, id.group());
    }
    let handle = lookup.block(id).and_then(|facts| facts.group).map(|(handle, _)| handle);
    let attempt = query::attempt_of(lookup.store, id)?;
    match handle.or(attempt) {
        Some(handle) => query::group(lookup.store, handle),
        None => Ok(None),
    }
}

/// What a slot holds.
struct Slot {
    unit: UnitIndex,
    block: BlockId,
    len: u64,
    /// Bytes that no file has, which the others need.
    is_dead: bool,
    /// Good replicas on DataNodes that can be read.
    live: usize,
    /// Whether one of them was proven, so that others may go.
    is_proven: bool,
    /// Where they are.
    places: Vec<String>,
}

fn slots(view: &View<'_>, lookup: &Lookup<'_>, group: &Group) -> Vec<Slot> {
    let parities = (group.k..group.k.saturating_add(group.m)).map(UnitIndex);
    let members = group.members().map(|(slot, member)| {
        (UnitIndex(slot), member.id, member.len, group.is_formed() && !member.live)
    });
    let lens = group.parities.iter().map(|parity| parity.len).chain(std::iter::repeat(0));
    let parities =
        parities.zip(lens).map(|(unit, len)| (unit, group.handle.internal(unit), len, false));
    let all = members.chain(parities);
    all.map(|(unit, block, len, is_dead)| {
        let (owner, facts) = match block.is_parity() {
            true => (group.handle, lookup.block(group.handle)),
            false => (block, lookup.block(block)),
        };
        let replicas = facts.map_or(Vec::new(), |facts| view.cluster.replicas(owner, &facts));
        let here = replicas.iter().filter(|replica| !block.is_parity() || replica.unit == unit);
        let live = here.clone().filter(|replica| matches!(replica.standing, Standing::Live));
        let place = |replica: &cairn_redundancy::Replica| {
            let node = view.cluster.node(replica.node);
            format!("{} {}", node.address, view.status(replica, node))
        };
        Slot {
            unit,
            block,
            len,
            is_dead,
            live: live.count(),
            is_proven: view.cluster.is_proven(lookup, block),
            places: here.map(place).collect(),
        }
    })
    .collect()
}

fn state(group: &Group) -> String {
    match group.state {
        GroupState::Encoding { .. } => "being encoded".to_string(),
        GroupState::Formed => "formed".to_string(),
        GroupState::Dissolving { .. } => "being dissolved".to_string(),
        GroupState::Superseded { by } => format!("superseded by {by}"),
    }
}

fn policy_name(lookup: &Lookup<'_>, group: &Group) -> String {
    let policy = cairn_namespace::policy_admin::by_id(lookup.store, group.policy);
    policy.map_or_else(|_| group.policy.0.to_string(), |policy| policy.name)
}

/// Empty slots hold known zeros.
fn readable(group: &Group, slots: &[Slot]) -> usize {
    let empty = usize::from(group.k) - group.members().count();
    empty + slots.iter().filter(|slot| slot.live > 0).count()
}

/// The group for people, below what is told of the block.
pub(super) fn text(view: &View<'_>, lookup: &Lookup<'_>, group: &Group) -> String {
    let slots = slots(view, lookup, group);
    let policy = policy_name(lookup, group);
    let (readable, k) = (readable(group, &slots), group.k);
    let mut text = format!(
        "Contiguous group: {} of {policy}, {}, {readable} of {} units readable, {k} needed\n",
        group.handle,
        state(group),
        u16::from(k) + u16::from(group.m),
    );
    for slot in slots {
        let kind = match (slot.block.is_parity(), slot.is_dead) {
            (true, _) => ", parity",
            (false, true) => ", of no file",
            (false, false) => "",
        };
        let proven = if slot.is_proven { ", proven" } else { "" };
        let (unit, block, len, live) = (slot.unit.0, slot.block, slot.len, slot.live);
        let _ =
            writeln!(text, "Slot {unit}: {block}, {len} bytes{kind}, {live} live replicas{proven}");
        for place in slot.places {
            let _ = writeln!(text, "  on {place}");
        }
    }
    text
}

/// The group for programs.
pub(super) fn finding(view: &View<'_>, lookup: &Lookup<'_>, group: &Group) -> Value {
    let slots = slots(view, lookup, group);
    let readable = readable(group, &slots);
    let slot = |slot: &Slot| {
        json!({
            "slot": slot.unit.0,
            "block": slot.block.to_string(),
            "len": slot.len,
            "parity": slot.block.is_parity(),
            "dead": slot.is_dead,
            "live": slot.live,
            "proven": slot.is_proven,
            "places": slot.places,
        })
    };
    json!({
        "group": group.handle.to_string(),
        "policy": policy_name(lookup, group),
        "state": state(group),
        "readable": readable,
        "needed": group.k,
        "slots": slots.iter().map(slot).collect::<Vec<Value>>(),
    })
}
