//! Contiguous groups: attempts to make them, and their ends.
//!
//! What only the cluster knows (replicas that prove themselves, parities that were reported, deletions that were
//! ordered) is judged by who submits these. All that the store knows is compared here, when the command's turn comes:
//! whoever has appended to a member, cut it off or removed it meanwhile has simply won.

use crate::block::{self, Block, BlockState, Membership};
use crate::container::{self, ContainerState};
use crate::counter;
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::group::{self, ChecksumShape, Group, GroupPauses, GroupState, Member, ParityRecord};
use crate::inode::{FileRedundancy, InodeId};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::snapshot::{held, kept};
use crate::store::StoreRead;
use crate::tree::end_block::end_tombstone;
use crate::{inode, perm, policy_admin, waiting};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, PolicyLayout};
use std::collections::BTreeSet;

/// A block that is to be a member, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// The block.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
}

encode_struct!(NewMember { id, gs, len, crc32c });

/// Begins an attempt to make a group. From then on its parities are wanted. Member `i` gets slot `i`; slots that are
/// left over are empty.
///
/// Answer: `Outcome::EncodeBegun`, or `GroupRefused` if a member is not as it was or may not be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginEncode {
    /// The policy, which the files of all members have.
    pub policy: PolicyId,
    /// The members, by slot.
    pub members: Vec<NewMember>,
    /// Groups that give all their live members to this one.
    pub supersedes: Vec<BlockId>,
}

encode_struct!(BeginEncode { policy, members, supersedes });

/// A member as the encoder has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSum {
    /// Its slot.
    pub slot: u8,
    /// CRC32C of its bytes.
    pub crc32c: u32,
    /// CRC32C of the array of its chunks' checksums.
    pub sums_crc32c: u32,
}

encode_struct!(MemberSum { slot, crc32c, sums_crc32c });

/// Makes an attempt a group: its members are as safe by its parities as they are by copies.
///
/// Answer: `Outcome::Done`, or `GroupRefused` if the attempt has ended, or anything is not as it was when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The attempt.
    pub handle: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// All members.
    pub members: Vec<MemberSum>,
    /// All parities in the order of their slots.
    pub parities: Vec<ParityRecord>,
    /// How the members' `.meta` files sum them.
    pub checksum: ChecksumShape,
}

encode_struct!(Form { handle, gs, members, parities, checksum });

/// Ends an attempt; its parities are wanted no more.
///
/// Answer: `Outcome::Done`, also if there is no such attempt any more; `GroupRefused` if it was formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandon {
    /// The attempt.
    pub handle: BlockId,
}

encode_struct!(Abandon { handle });

/// Has the members of a group get their copies again, as its end needs them.
///
/// Answer: `Outcome::Done`, also if that is under way; `GroupRefused` if it is no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginDissolve {
    /// The group.
    pub handle: BlockId,
}

encode_struct!(BeginDissolve { handle });

/// Ends a group that is being dissolved, that another one has superseded or of which no member lives: tombstones and
/// parities are wanted no more. Who submits it has seen that every live member has its copies, or that the other group
/// is whole.
///
/// Answer: `Outcome::Done`, also if there is no such group any more; `GroupRefused` if it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dissolve {
    /// The group.
    pub handle: BlockId,
}

encode_struct!(Dissolve { handle });

/// Holds some of the work on groups back, or lets it go on; over restarts.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseGroups {
    /// Which work.
    pub work: GroupPauses,
    /// Whether it is held back from now on.
    pub pause: bool,
}

encode_struct!(PauseGroups { work, pause });

impl PauseGroups {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let was = group::pauses(cx.store)?;
        let with = |was: bool, named: bool| if named { self.pause } else { was };
        let now = GroupPauses {
            form: with(was.form, self.work.form),
            drop: with(was.drop, self.work.drop),
            renew: with(was.renew, self.work.renew),
            convert: with(was.convert, self.work.convert),
        };
        if now != was {
            group::put_pauses(cx.store, &now)?;
        }
        Ok(Outcome::Done)
    }
}

/// Why something about a group is not done; `Ok` if nothing speaks against it.
pub(super) type Checked = std::result::Result<(), String>;

pub(super) fn refused(reason: impl Into<String>) -> Result<Outcome> {
    Ok(Outcome::GroupRefused(reason.into()))
}

impl BeginEncode {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let policies = policy_admin::all(cx.store)?;
        let Some(policy) = policies
            .into_iter()
            .map(|info| info.policy)
            .find(|known| known.id == self.policy && known.layout == PolicyLayout::Contiguous)
        else {
            return refused(format!("no policy of contiguous groups has number {}", self.policy.0));
        };
        let (k, m) = (policy.schema.k, policy.schema.m);
        if self.members.is_empty() || self.members.len() > usize::from(k) {
            return refused(format!("{} members for {k} slots", self.members.len()));
        }
        let ids: BTreeSet<BlockId> = self.members.iter().map(|member| member.id).collect();
        if ids.len() < self.members.len() {
            return refused("a block is named twice");
        }
        for member in &self.members {
            if let Err(reason) = check_member(cx.store, member, self.policy, &self.supersedes)? {
                return refused(reason);
            }
            if let Some(attempt) = group::attempt_of(cx.store, member.id)? {
                return refused(format!("{} is in attempt {attempt}", member.id));
            }
        }
        if let Err(reason) = check_superseded(cx.store, &self.supersedes, &ids)? {
            return refused(reason);
        }
        let new = |member: &NewMember| {
            let NewMember { id, gs, len, crc32c } = *member;
            Some(Member { id, gs, len, crc32c, sums_crc32c: None, live: true })
        };
        let mut members: Vec<_> = self.members.iter().map(new).collect();
        members.resize(usize::from(k), None);
        let group = Group {
            handle: counter::next_handle(cx.store)?,
            gs: counter::next_stamp(cx.store)?,
            policy: self.policy,
            k,
            m,
            state: GroupState::Encoding { started_ms: cx.times.elapsed_ms },
            members,
            supersedes: self.supersedes.clone(),
            data_len: self.members.iter().map(|member| member.len).max().unwrap_or(0),
            parities: Vec::new(),
            checksum: None,
        };
        group::put(cx.store, &group)?;
        group::open_attempt(cx.store, &group)?;
        Ok(Outcome::EncodeBegun { handle: group.handle, gs: group.gs })
    }
}

impl Form {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let found = group::get(cx.store, self.handle)?;
        let Some(mut group) = found.filter(|group| group.is_attempt() && group.gs == self.gs)
        else {
            return refused(format!(
                "there is no open attempt {} of stamp {}",
                self.handle, self.gs
            ));
        };
        if let Err(reason) = self.take_sums(&mut group) {
            return refused(reason);
        }
        let members: Vec<(u8, Member)> = group.members().map(|(slot, of)| (slot, *of)).collect();
        for (_, Member { id, gs, len, crc32c, .. }) in &members {
            let as_begun = NewMember { id: *id, gs: *gs, len: *len, crc32c: *crc32c };
            if let Err(reason) = check_member(cx.store, &as_begun, group.policy, &group.supersedes)?
            {
                return refused(reason);
            }
        }
        let ids = members.iter().map(|(_, member)| member.id).collect();
        if let Err(reason) = check_superseded(cx.store, &group.supersedes, &ids)? {
            return refused(reason);
        }
        group::close_attempt(cx.store, &group)?;
        group.state = GroupState::Formed;
        group.parities = self.parities.clone();
        group.checksum = Some(self.checksum);
        group::put(cx.store, &group)?;
        for handle in &group.supersedes {
            let mut old = group::expect(cx.store, *handle)?;
            old.state = GroupState::Superseded { by: group.handle };
            old.members.iter_mut().flatten().for_each(|member| member.live = false);
            group::put(cx.store, &old)?;
        }
        for (slot, member) in members {
            let Some(block) = block::get(cx.store, member.id)? else { continue };
            waiting::forget(cx.store, block.id)?;
            held::set_group(cx.store, block, Some(Membership { handle: group.handle, slot }))?;
        }
        Ok(Outcome::Done)
    }

    /// Compares what the encoder has read with what was begun, and keeps what is new.
    fn take_sums(&self, group: &mut Group) -> Checked {
        if self.parities.len() != usize::from(group.m) {
            return Err(format!("{} parities instead of {}", self.parities.len(), group.m));
        }
        if let Some(short) = self.parities.iter().find(|parity| parity.len < group.data_len) {
            return Err(format!("a parity of {} bytes for {}", short.len, group.data_len));
        }
        for sum in &self.members {
            let slot = group.members.get_mut(usize::from(sum.slot)).and_then(Option::as_mut);
            match slot {
                Some(member) if member.crc32c == sum.crc32c => {
                    member.sums_crc32c = Some(sum.sums_crc32c);
                }
                Some(member) => return Err(format!("other bytes were read of {}", member.id)),
                None => return Err(format!("slot {} is empty", sum.slot)),
            }
        }
        let unread = group.members().find(|(_, member)| member.sums_crc32c.is_none());
        unread.map_or(Ok(()), |(_, member)| Err(format!("{} was not read", member.id)))
    }
}

impl Abandon {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(group) = group::get(cx.store, self.handle)? else { return Ok(Outcome::Done) };
        if !group.is_attempt() {
            return refused(format!("group {} is no attempt any more", self.handle));
        }
        group::close_attempt(cx.store, &group)?;
        group::delete(cx.store, group.handle)?;
        Ok(Outcome::Done)
    }
}

impl BeginDissolve {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        match group::get(cx.store, self.handle)? {
            Some(group) if group.is_formed() => {
                group::begin_dissolving(cx.store, group, cx.times.elapsed_ms)?;
                Ok(Outcome::Done)
            }
            _ => refused(format!("{} is no group", self.handle)),
        }
    }
}

impl Dissolve {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(group) = group::get(cx.store, self.handle)? else { return Ok(Outcome::Done) };
        match group.state {
            GroupState::Encoding { .. } => {
                return refused(format!("{} is an attempt", self.handle));
            }
            GroupState::Formed if group.live_members().next().is_some() => {
                return refused(format!("group {} has live members", self.handle));
            }
            _ => {}
        }
        group::delete(cx.store, group.handle)?;
        for (_, member) in group.members() {
            let block = block::get(cx.store, member.id)?;
            let is_here = |block: &Block| block.group.is_some_and(|of| of.handle == group.handle);
            let Some(block) = block.filter(is_here) else { continue };
            if block.is_tombstone() {
                end_tombstone(cx.store, &block)?;
                continue;
            }
            let block = held::set_group(cx.store, block, None)?;
            if block.file == InodeId::CONTAINERS {
                waiting::begin_container(cx.store, block.id, cx.times.elapsed_ms)?;
            }
            if let Some(inode) = inode::get(cx.store, block.file)?
                && let Some(file) = inode.file()
                && block::is_in_place(cx.store, &block)?
                && !block::is_at_open_end(&inode, &block)
            {
                waiting::closed_block(cx.store, cx.settings, file, &block, cx.times.elapsed_ms)?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Whether a block may be a member of a group of that policy, and is as it was found.
fn check_member(
    store: &dyn StoreRead,
    member: &NewMember,
    policy: PolicyId,
    supersedes: &[BlockId],
) -> Result<Checked> {
    let id = member.id;
    let Some(block) = block::get(store, id)?.filter(|block| block.id == id) else {
        return Ok(Err(format!("there is no block {id}")));
    };
    let is_same = block.state == BlockState::Complete
        && (block.gs, block.len) == (member.gs, member.len)
        && block.unit_crcs.first() == Some(&Some(member.crc32c));
    if !is_same || block.len == 0 || id.has_units() || block.packed.is_some() {
        return Ok(Err(format!("{id} is not as it was")));
    }
    if let Some(Membership { handle, .. }) = block.group
        && !supersedes.contains(&handle)
    {
        return Ok(Err(format!("{id} is in group {handle}")));
    }
    if block.file == InodeId::CONTAINERS {
        let container = container::expect(store, id)?;
        return Ok(match container.policy == policy && container.state != ContainerState::Ending {
            true => Ok(()),
            false => Err(format!("container {id} is not to be in such a group")),
        });
    }
    check_file(store, &block, policy)
}

/// Whether the file of a block wants it to be in a group of that policy, packed or as it is.
pub(super) fn check_file(
    store: &dyn StoreRead,
    block: &Block,
    policy: PolicyId,
) -> Result<Checked> {
    let id = block.id;
    // A tombstone has no file.
    let Some(file) = kept::current_or_kept(store, block.file)? else {
        return Ok(Err(format!("no file has {id}")));
    };
    let is_wanted = match file.file().map(|file| file.redundancy) {
        Some(FileRedundancy::Contiguous { policy: of_file, .. }) => of_file == policy,
        _ => false,
    };
    if !is_wanted {
        return Ok(Err(format!("the file of {id} is not to be kept so")));
    }
    if let Some(inode) = inode::get(store, block.file)? {
        if block::is_in_place(store, block)? && block::is_at_open_end(&inode, block) {
            return Ok(Err(format!("the file of {id} is open")));
        }
        if block::last(store, &inode)?.is_some_and(|last| last.copy_source() == Some(id)) {
            return Ok(Err(format!("{id} is being copied")));
        }
    }
    Ok(Ok(()))
}

/// Whether groups are there whose live members are all among `members`.
fn check_superseded(
    store: &dyn StoreRead,
    supersedes: &[BlockId],
    members: &BTreeSet<BlockId>,
) -> Result<Checked> {
    for handle in supersedes {
        let Some(old) = group::get(store, *handle)?.filter(|old| old.state == GroupState::Formed)
        else {
            return Ok(Err(format!("there is no group {handle}")));
        };
        if let Some((_, left)) = old.live_members().find(|(_, of)| !members.contains(&of.id)) {
            return Ok(Err(format!("{} of group {handle} would be left", left.id)));
        }
    }
    Ok(Ok(()))
}
