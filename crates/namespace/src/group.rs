//! Contiguous groups, and the attempts to make them.
//!
//! Table `group`: handle (as a block's id) -> [`Group`]. Table `encoding`: id of a block -> handle of the open attempt
//! of which it is to be a member. Membership belongs to blocks: a group names no file, so that renaming, joining and
//! snapshots need no rule.

pub(crate) mod record;

use crate::block::{self, Block};
use crate::encoding::{from_record, to_record};
use crate::error::{Result, StoreError};
use crate::store::{StoreRead, StoreTxn, Table};
use cairn_stripe::BlockId;
use record::VERSION;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

pub use record::{ChecksumShape, Group, GroupPauses, GroupState, Member, ParityRecord, decode};

/// The group of a handle, or of the id of one of its parities.
pub fn get(store: &dyn StoreRead, handle: BlockId) -> Result<Option<Group>> {
    let mut found = None;
    let key = block::key(handle.group());
    store.peek(Table::Group, &key, &mut |record| found = Some(decode(record)))?;
    found.transpose()
}

/// The group of a handle, to which another record refers.
pub(crate) fn expect(store: &dyn StoreRead, handle: BlockId) -> Result<Group> {
    Ok(get(store, handle)?.ok_or_else(|| StoreError::Corrupt {
        what: "reference",
        reason: format!("there is no group {handle}"),
    })?)
}

/// At most `limit` groups in any state, those with handles greater than `after`, ascending.
pub fn groups_after(
    store: &dyn StoreRead,
    after: Option<BlockId>,
    limit: usize,
) -> Result<Vec<Group>> {
    let from = after.map_or(Vec::new(), |id| block::key(BlockId(id.0.saturating_add(1))).to_vec());
    let mut found = Vec::new();
    if limit > 0 {
        store.scan(Table::Group, &from, &[], &mut |_, record| {
            found.push(decode(record));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    found.into_iter().collect()
}

/// The open attempt of which a block is to be a member.
pub fn attempt_of(store: &dyn StoreRead, member: BlockId) -> Result<Option<BlockId>> {
    let mut found = None;
    store.peek(Table::Encoding, &block::key(member), &mut |value| {
        found = Some(from_record(VERSION, value));
    })?;
    Ok(found.transpose()?)
}

/// The handles of all open attempts to make groups, ascending.
pub fn open_attempts(store: &dyn StoreRead) -> Result<Vec<BlockId>> {
    let mut found = Vec::new();
    store.scan(Table::Encoding, &[], &[], &mut |_, value| {
        found.push(from_record::<BlockId>(VERSION, value));
        ControlFlow::Continue(())
    })?;
    let handles: BTreeSet<BlockId> = found.into_iter().collect::<Result<_, _>>()?;
    Ok(handles.into_iter().collect())
}

/// Writes a group.
pub(crate) fn put(store: &mut dyn StoreTxn, group: &Group) -> Result<()> {
    Ok(store.put(Table::Group, &block::key(group.handle), &to_record(VERSION, group))?)
}

/// Removes a group's record, which is there.
pub(crate) fn delete(store: &mut dyn StoreTxn, handle: BlockId) -> Result<()> {
    Ok(store.remove(Table::Group, &block::key(handle))?)
}

/// Has the members of a formed group get their copies again; nothing if that is under way, or they are in another one.
pub(crate) fn begin_dissolving(
    store: &mut dyn StoreTxn,
    group: Group,
    elapsed_ms: u64,
) -> Result<()> {
    match group.state {
        GroupState::Formed => {
            let state = GroupState::Dissolving { started_ms: elapsed_ms };
            put(store, &Group { state, ..group })
        }
        _ => Ok(()),
    }
}

/// Where it is in table `meta` what is held back.
const PAUSES: &[u8] = b"group-pauses";

/// What of the work on groups is held back.
pub fn pauses(store: &dyn StoreRead) -> Result<GroupPauses> {
    let mut found = None;
    store.peek(Table::Meta, PAUSES, &mut |record| found = Some(from_record(VERSION, record)))?;
    Ok(found.transpose()?.unwrap_or_default())
}

/// Holds work on groups back, or lets it go on.
pub(crate) fn put_pauses(store: &mut dyn StoreTxn, pauses: &GroupPauses) -> Result<()> {
    Ok(store.put(Table::Meta, PAUSES, &to_record(VERSION, pauses))?)
}

/// Notes an attempt at its members.
pub(crate) fn open_attempt(store: &mut dyn StoreTxn, group: &Group) -> Result<()> {
    let handle = to_record(VERSION, &group.handle);
    for (_, member) in group.members() {
        store.put(Table::Encoding, &block::key(member.id), &handle)?;
    }
    Ok(())
}

/// Takes the notes of an attempt away.
pub(crate) fn close_attempt(store: &mut dyn StoreTxn, group: &Group) -> Result<()> {
    for (_, member) in group.members() {
        store.remove(Table::Encoding, &block::key(member.id))?;
    }
    Ok(())
}

/// The member that a block is in its group.
fn member_of<'a>(group: &'a mut Group, block: &Block) -> Option<&'a mut Member> {
    let slot = block.group?.slot;
    group.members.get_mut(usize::from(slot))?.as_mut().filter(|member| member.id == block.id)
}

/// Says whether a file or a snapshot has a member. One that nobody has is as its group knows it.
pub(crate) fn set_live(
    store: &mut dyn StoreTxn,
    block: &Block,
    live: bool,
) -> Result<Option<Member>> {
    let Some(membership) = block.group else { return Ok(None) };
    let mut group = expect(store, membership.handle)?;
    let Some(member) = member_of(&mut group, block) else {
        return Err(StoreError::Corrupt {
            what: "reference",
            reason: format!("{} is no member of group {}", block.id, group.handle),
        }
        .into());
    };
    member.live = live;
    let member = *member;
    put(store, &group)?;
    Ok(Some(member))
}
