//! Taking over groups that DataNodes have and a restored namespace does not know: they were formed behind the moment that it
//! went back to.
//!
//! What parities say of their group comes from outside. All of it that the store knows is compared here. What only the
//! cluster knows is judged by who submits it: that the namespace was restored, that members need the group, and that enough of
//! its units are there.

use crate::block::{self, Block, BlockRef, BlockState, Membership};
use crate::container::{self, Container};
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::group::{self, ChecksumShape, Group, GroupState, Member, ParityRecord};
use crate::inode::InodeId;
use crate::ops::Context;
use crate::ops::group::{check_file, refused};
use crate::outcome::Outcome;
use crate::snapshot::held;
use crate::store::StoreRead;
use crate::{perm, policy_admin, unpacking, waiting};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, PolicyLayout};
use std::collections::{BTreeMap, BTreeSet};

/// Takes a group over that parities tell of. Members that the namespace does not know become tombstones; those that it has as
/// the group has them are in it from then on, and what it knows of older groups and containers gives them up. Containers are
/// members that it does not know, of which nobody knows yet what is in them ([`crate::container::ContainerState::Found`]).
///
/// A member that the namespace has with another stamp or length, or in something newer, stays as it is: the group reads its
/// bytes as they were encoded, where DataNodes have them. Such a group, and one that a file does not want by now, is to end:
/// the others get their copies again.
///
/// Answer: `Outcome::Done`, or `GroupRefused` if no file has any of its members as the group has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopt {
    /// The group.
    pub handle: BlockId,
    /// The stamp of its parities.
    pub gs: GenerationStamp,
    /// Its policy.
    pub policy: PolicyId,
    /// Its members by slot, as they were encoded.
    pub members: Vec<Option<AdoptedMember>>,
    /// Bytes of the longest of them.
    pub data_len: u64,
    /// Its parities in the order of their slots; none for one that nobody has.
    pub parities: Vec<Option<ParityRecord>>,
    /// How the members' `.meta` files sum them.
    pub checksum: ChecksumShape,
}

/// A member as the parities tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedMember {
    /// The block.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// CRC32C of the array of its chunks' checksums.
    pub sums_crc32c: u32,
}

encode_struct!(Adopt { handle, gs, policy, members, data_len, parities, checksum });
encode_struct!(AdoptedMember { id, gs, len, crc32c, sums_crc32c });

/// A member by its slot, with what the namespace has of it.
type Found = (u8, AdoptedMember, Known);

/// What the namespace has of a member.
enum Known {
    /// Nothing.
    Nowhere,
    /// The block as the group has it, which may be in it.
    Same(Block),
    /// The block with other bytes, or in something newer.
    Otherwise(String),
}

impl Known {
    fn same(&self) -> Option<&Block> {
        match self {
            Known::Same(block) => Some(block),
            Known::Nowhere | Known::Otherwise(_) => None,
        }
    }
}

impl Adopt {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        if let Err(reason) = self.check(cx.store)? {
            return refused(reason);
        }
        let found = match self.find(cx.store)? {
            Ok(found) => found,
            Err(reason) => return refused(reason),
        };
        let mut is_wanted = true;
        for (_, _, known) in &found {
            is_wanted &= match known {
                Known::Nowhere => true,
                Known::Same(block) => self.is_wanted(cx.store, block)?,
                Known::Otherwise(_) => false,
            };
        }
        let started_ms = cx.times.elapsed_ms;
        let state = match is_wanted {
            true => GroupState::Formed,
            false => GroupState::Dissolving { started_ms },
        };
        let older = self.take_from_older(cx, &found)?;
        group::put(cx.store, &self.group(&found, state, older))?;
        for (slot, member, known) in found {
            let group = Some(Membership { handle: self.handle, slot });
            match known {
                Known::Same(block) => take(cx, block, &member, group)?,
                Known::Nowhere => self.add(cx, &member, group)?,
                Known::Otherwise(_) => {}
            }
        }
        Ok(Outcome::Done)
    }

    /// Whether a member is to stay in a group of that policy. A tombstone is in any.
    fn is_wanted(&self, store: &dyn StoreRead, block: &Block) -> Result<bool> {
        if block.is_tombstone() {
            return Ok(true);
        }
        if block.id.is_container() {
            return Ok(container::expect(store, block.id)?.policy == self.policy);
        }
        Ok(check_file(store, block, self.policy)?.is_ok())
    }

    /// Adds the block of a member that the namespace does not know.
    fn add(
        &self,
        cx: &mut Context<'_, '_>,
        member: &AdoptedMember,
        group: Option<Membership>,
    ) -> Result<()> {
        let AdoptedMember { id, gs, len, crc32c, .. } = *member;
        let file = match id.is_container() {
            true => InodeId::CONTAINERS,
            false => InodeId::NONE,
        };
        if id.is_container() {
            container::put(cx.store, &Container::found((id, gs), self.policy, self.checksum))?;
        }
        let block = Block::new(BlockRef { id, gs, len }, (file, 0), BlockState::Complete);
        block::put(cx.store, &Block { unit_crcs: vec![Some(crc32c)], group, ..block })?;
        counter::add(cx.store, Counter::Blocks, 1)
    }

    /// Whether there can be such a group.
    fn check(&self, store: &dyn StoreRead) -> Result<std::result::Result<(), String>> {
        let policies = policy_admin::all(store)?;
        let fits = policies.into_iter().map(|info| info.policy).any(|known| {
            let shape = (usize::from(known.schema.k), usize::from(known.schema.m));
            known.id == self.policy
                && known.layout == PolicyLayout::Contiguous
                && shape == (self.members.len(), self.parities.len())
        });
        if !fits {
            return Ok(Err(format!("no policy of such groups has number {}", self.policy.0)));
        }
        // Numbers that are still to be given out would come twice.
        let is_old = self.handle.is_parity()
            && self.handle == self.handle.group()
            && self.handle.0 as u64 <= counter::get(store, Counter::Handle)?
            && self.gs.0 <= counter::get(store, Counter::GenerationStamp)?;
        if !is_old || group::get(store, self.handle)?.is_some() {
            return Ok(Err(format!("{} is known, or is still to be given out", self.handle)));
        }
        let lens: BTreeSet<u64> = self.parities.iter().flatten().map(|parity| parity.len).collect();
        let members = || self.members.iter().flatten();
        let is_as_long = members().map(|member| member.len).max() == Some(self.data_len)
            && lens.len() == 1
            && lens.first().is_some_and(|len| *len >= self.data_len);
        let ids: BTreeSet<BlockId> = members().map(|member| member.id).collect();
        Ok(match is_as_long && ids.len() == members().count() {
            true => Ok(()),
            false => Err("its lengths or members do not fit together".into()),
        })
    }

    /// The members, if one of them can be in the group.
    fn find(&self, store: &dyn StoreRead) -> Result<std::result::Result<Vec<Found>, String>> {
        let members = || self.members.iter().flatten();
        let of_containers = members().any(|member| member.id.is_container());
        let mut found = Vec::new();
        for (slot, member) in (0u8..).zip(&self.members) {
            let Some(member) = member else { continue };
            let id = member.id;
            let counter = if of_containers { Counter::ContainerId } else { Counter::BlockId };
            let is_old = id.0 > 0
                && id.0 as u64 <= counter::get(store, counter)?
                && member.gs.0 <= counter::get(store, Counter::GenerationStamp)?;
            let is_one = id.is_container() == of_containers && !id.has_units();
            if !is_one || !is_old || member.len == 0 {
                let kind = if of_containers { "container" } else { "member" };
                return Ok(Err(format!("{id} cannot be taken over as a {kind}")));
            }
            found.push((slot, *member, self.known(store, member)?));
        }
        let is_live = |(_, member, known): &Found| match known {
            Known::Nowhere => member.id.is_container(),
            Known::Same(block) => !block.is_tombstone(),
            Known::Otherwise(_) => false,
        };
        if found.iter().any(is_live) {
            return Ok(Ok(found));
        }
        let why = found.into_iter().find_map(|(_, _, known)| match known {
            Known::Otherwise(why) => Some(why),
            Known::Nowhere | Known::Same(_) => None,
        });
        Ok(Err(why.unwrap_or_else(|| "no file has any of its members".into())))
    }

    /// What the namespace has of a member.
    fn known(&self, store: &dyn StoreRead, member: &AdoptedMember) -> Result<Known> {
        let id = member.id;
        let otherwise = |why: String| Ok(Known::Otherwise(why));
        let Some(block) = block::get(store, id)? else {
            return Ok(Known::Nowhere);
        };
        let crc32c = block.unit_crcs.first().copied().flatten();
        let is_same = block.state == BlockState::Complete
            && (block.gs, block.len) == (member.gs, member.len)
            && crc32c.is_none_or(|crc32c| crc32c == member.crc32c);
        if !is_same {
            return otherwise(format!("{id} is not as the group has it"));
        }
        if container::get(store, id)?.is_some_and(|container| container.is_spare(&block)) {
            return otherwise(format!("container {id} is known"));
        }
        if let Some(attempt) = group::attempt_of(store, id)? {
            return otherwise(format!("{id} is in attempt {attempt}"));
        }
        if let Some(at) = block.packed
            && container::expect(store, at.container)?.gs > self.gs
        {
            return otherwise(format!("{id} is in container {}", at.container));
        }
        if let Some(of) = block.group {
            let other = group::expect(store, of.handle)?;
            if other.gs > self.gs || !other.is_formed() {
                return otherwise(format!("{id} is in group {}", of.handle));
            }
        }
        Ok(Known::Same(block))
    }

    /// Takes the members out of older groups. One that has other live members is to end when these have their copies.
    fn take_from_older(&self, cx: &mut Context<'_, '_>, found: &[Found]) -> Result<Vec<BlockId>> {
        let mut older: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
        for block in found.iter().filter_map(|(_, _, known)| known.same()) {
            if let Some(of) = block.group {
                older.entry(of.handle).or_default().insert(block.id);
            }
        }
        for (handle, taken) in &older {
            let mut old = group::expect(cx.store, *handle)?;
            let is_taken = |member: &&mut Member| taken.contains(&member.id);
            old.members.iter_mut().flatten().filter(is_taken).for_each(|of| of.live = false);
            let has_others = old.live_members().next().is_some();
            old.state = match has_others {
                false => GroupState::Superseded { by: self.handle },
                true => GroupState::Dissolving { started_ms: cx.times.elapsed_ms },
            };
            group::put(cx.store, &old)?;
        }
        Ok(older.into_keys().collect())
    }

    fn group(&self, found: &[Found], state: GroupState, supersedes: Vec<BlockId>) -> Group {
        let mut members = vec![None; self.members.len()];
        for (slot, AdoptedMember { id, gs, len, crc32c, sums_crc32c }, known) in found {
            let live = match known {
                Known::Nowhere => id.is_container(),
                Known::Same(block) => !block.is_tombstone(),
                Known::Otherwise(_) => false,
            };
            let sums_crc32c = Some(*sums_crc32c);
            let member = Member { id: *id, gs: *gs, len: *len, crc32c: *crc32c, sums_crc32c, live };
            members[usize::from(*slot)] = Some(member);
        }
        // One that nobody has is as long as the others, and its CRC is known when it was made again.
        let len = self.parities.iter().flatten().map(|parity| parity.len).next().unwrap_or(0);
        let parity =
            |parity: &Option<ParityRecord>| parity.unwrap_or(ParityRecord { len, crc32c: 0 });
        Group {
            handle: self.handle,
            gs: self.gs,
            policy: self.policy,
            k: self.members.len() as u8,
            m: self.parities.len() as u8,
            state,
            members,
            supersedes,
            data_len: self.data_len,
            parities: self.parities.iter().map(parity).collect(),
            checksum: Some(self.checksum),
        }
    }
}

/// Has a block that the namespace has be in a group, whatever it was in.
fn take(
    cx: &mut Context<'_, '_>,
    block: Block,
    member: &AdoptedMember,
    group: Option<Membership>,
) -> Result<()> {
    waiting::forget(cx.store, block.id)?;
    let block = match block.packed {
        Some(_) => {
            container::leave(cx.store, &block, block.len)?;
            unpacking::forget(cx.store, block.id)?;
            held::set_packed(cx.store, block, None)?
        }
        None => block,
    };
    let unit_crcs = vec![Some(member.crc32c)];
    held::set_group(cx.store, Block { unit_crcs, ..block }, group)?;
    Ok(())
}
