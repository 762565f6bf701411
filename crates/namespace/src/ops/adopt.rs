//! Taking over groups that DataNodes have and a restored namespace does not know: they were formed behind the moment that it
//! went back to.
//!
//! What parities say of their group comes from outside. All of it that the store knows is compared here. What only the
//! cluster knows is judged by who submits it: that the namespace was restored, that members need the group, and that enough of
//! its units are there.

use crate::block::{self, Block, BlockRef, BlockState, Membership};
use crate::container::{self, Container, ContainerState};
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
use crate::{perm, policy_admin, waiting};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, PolicyLayout};
use std::collections::{BTreeMap, BTreeSet};

/// Takes a group over that parities tell of. Members that the namespace does not know become tombstones. Groups that it
/// knows of its members, and that are older, give these up. If a file is not to be kept so by now, the members get their copies
/// again and the group ends. Containers are members that it does not know, of which nobody knows yet what is in them
/// ([`ContainerState::Found`]).
///
/// Answer: `Outcome::Done`, or `GroupRefused` if a member is not as the group has it, or is in a newer one.
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

/// A member, with its block if the namespace has that.
type Found = (u8, AdoptedMember, Option<Block>);

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
        for (_, _, block) in &found {
            if let Some(block) = block {
                is_wanted &= check_file(cx.store, block, self.policy)?.is_ok();
            }
        }
        let started_ms = cx.times.elapsed_ms;
        let state = match is_wanted {
            true => GroupState::Formed,
            false => GroupState::Dissolving { started_ms },
        };
        let older = self.take_from_older(cx, &found)?;
        group::put(cx.store, &self.group(&found, state, older))?;
        for (slot, member, block) in found {
            let group = Some(Membership { handle: self.handle, slot });
            let unit_crcs = vec![Some(member.crc32c)];
            match block {
                Some(block) => {
                    waiting::forget(cx.store, block.id)?;
                    held::set_group(cx.store, Block { unit_crcs, ..block }, group)?;
                }
                None => {
                    let AdoptedMember { id, gs, len, .. } = member;
                    let file = match id.is_container() {
                        true => InodeId::CONTAINERS,
                        false => InodeId::NONE,
                    };
                    if id.is_container() {
                        container::put(cx.store, &self.container(&member))?;
                    }
                    let (of, place) = (BlockRef { id, gs, len }, (file, 0));
                    let block = Block::new(of, place, BlockState::Complete);
                    block::put(cx.store, &Block { unit_crcs, group, ..block })?;
                    counter::add(cx.store, Counter::Blocks, 1)?;
                }
            }
        }
        Ok(Outcome::Done)
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

    /// The members, if they are containers, and the namespace has none of them.
    fn find_containers(
        &self,
        store: &dyn StoreRead,
    ) -> Result<std::result::Result<Vec<Found>, String>> {
        let mut found = Vec::new();
        let last = counter::get(store, Counter::ContainerId)?;
        let last_gs = counter::get(store, Counter::GenerationStamp)?;
        for (slot, member) in (0u8..).zip(&self.members) {
            let Some(member) = member else { continue };
            let id = member.id;
            let is_old = id.0 as u64 <= last && member.gs.0 <= last_gs;
            if !id.is_container() || !is_old || member.len == 0 {
                return Ok(Err(format!("{id} cannot be taken over as a container")));
            }
            if block::get(store, id)?.is_some() || container::get(store, id)?.is_some() {
                return Ok(Err(format!("container {id} is known")));
            }
            found.push((slot, *member, None));
        }
        Ok(Ok(found))
    }

    /// The members, if those that the namespace has are as the group has them, and one of them lives.
    fn find(&self, store: &dyn StoreRead) -> Result<std::result::Result<Vec<Found>, String>> {
        if self.members.iter().flatten().any(|member| member.id.is_container()) {
            return self.find_containers(store);
        }
        let mut found = Vec::new();
        let last = counter::get(store, Counter::BlockId)?;
        let last_gs = counter::get(store, Counter::GenerationStamp)?;
        for (slot, member) in (0u8..).zip(&self.members) {
            let Some(member) = member else { continue };
            let id = member.id;
            let is_old = id.0 > 0 && id.0 as u64 <= last && member.gs.0 <= last_gs;
            if id.has_units() || !is_old || member.len == 0 {
                return Ok(Err(format!("{id} cannot be taken over as a member")));
            }
            let block = block::get(store, id)?;
            if let Some(block) = &block {
                let crc32c = block.unit_crcs.first().copied().flatten();
                let is_same = block.state == BlockState::Complete
                    && (block.gs, block.len) == (member.gs, member.len)
                    && crc32c.is_none_or(|crc32c| crc32c == member.crc32c);
                if !is_same || block.packed.is_some() || block.is_tombstone() {
                    return Ok(Err(format!("{id} is not as the group has it")));
                }
                if let Some(attempt) = group::attempt_of(store, id)? {
                    return Ok(Err(format!("{id} is in attempt {attempt}")));
                }
                if let Some(of) = block.group {
                    let other = group::expect(store, of.handle)?;
                    if other.gs > self.gs || !other.is_formed() {
                        return Ok(Err(format!("{id} is in group {}", of.handle)));
                    }
                }
            }
            found.push((slot, *member, block));
        }
        Ok(match found.iter().any(|(_, _, block)| block.is_some()) {
            true => Ok(found),
            false => Err("no file has any of its members".into()),
        })
    }

    /// Takes the members out of older groups. One that has other live members is to end when these have their copies.
    fn take_from_older(&self, cx: &mut Context<'_, '_>, found: &[Found]) -> Result<Vec<BlockId>> {
        let mut older: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
        for block in found.iter().filter_map(|(_, _, block)| block.as_ref()) {
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

    /// A container of which is not known yet what is in it.
    fn container(&self, member: &AdoptedMember) -> Container {
        Container {
            id: member.id,
            gs: member.gs,
            policy: self.policy,
            storage_policy: 0,
            state: ContainerState::Found,
            checksum: Some(self.checksum),
            packed: 0,
            packed_len: 0,
            live: 0,
            live_len: 0,
            moved_to: Vec::new(),
        }
    }

    fn group(&self, found: &[Found], state: GroupState, supersedes: Vec<BlockId>) -> Group {
        let mut members = vec![None; self.members.len()];
        for (slot, AdoptedMember { id, gs, len, crc32c, sums_crc32c }, block) in found {
            let (sums_crc32c, live) = (Some(*sums_crc32c), block.is_some() || id.is_container());
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
