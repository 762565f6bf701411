//! A keeper of places that knows of blocks by effects alone, against what the store says.

use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{Block, BlockState, Effect, Group, GroupState, block, query};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Committed,
    Complete,
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    gs: GenerationStamp,
    state: State,
    /// The stamp of the recovery that runs.
    recovery: Option<GenerationStamp>,
    /// The block of which it becomes a copy.
    source: Option<BlockId>,
    /// How it is to be kept, as it was found when an effect made it worth a look.
    redundancy: Redundancy,
    /// Only its group has it.
    is_retired: bool,
}

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GroupIs {
    Attempt,
    Formed,
    Ending,
}

impl GroupIs {
    fn of(group: &Group) -> GroupIs {
        match group.state {
            GroupState::Encoding { .. } => GroupIs::Attempt,
            GroupState::Formed => GroupIs::Formed,
            GroupState::Dissolving { .. } | GroupState::Superseded { .. } => GroupIs::Ending,
        }
    }
}

impl Known {
    /// As the store has it.
    fn of(store: &MemoryStore, block: &Block) -> Known {
        let state = match block.state {
            BlockState::Committed => State::Committed,
            BlockState::Complete => State::Complete,
            _ => State::Open,
        };
        Known {
            gs: block.gs,
            state,
            recovery: block.recovery().map(|(gs, _)| gs),
            source: block.copy_source(),
            redundancy: redundancy(store, block.id),
            is_retired: block.is_tombstone(),
        }
    }
}

fn redundancy(store: &MemoryStore, id: BlockId) -> Redundancy {
    query::get_block(store, id).unwrap().unwrap().redundancy
}

/// What effects have told of blocks, by id.
#[derive(Default)]
pub struct Keeper {
    known: BTreeMap<i64, Known>,
    /// Stamps and states of groups, by handle.
    groups: BTreeMap<i64, (GenerationStamp, GroupIs)>,
}

impl Keeper {
    /// Takes the effects of an entry in, whose changes are in `store`.
    pub fn take(&mut self, store: &MemoryStore, effects: &[Effect]) {
        for effect in effects {
            self.take_one(store, effect);
        }
    }

    fn take_one(&mut self, store: &MemoryStore, effect: &Effect) {
        let id = effect.block();
        let fresh = |gs| {
            let (state, redundancy) = (State::Open, redundancy(store, id));
            let is_retired = false;
            Known { gs, state, recovery: None, source: None, redundancy, is_retired }
        };
        match *effect {
            Effect::GroupBegun { gs, .. } => {
                let before = self.groups.insert(id.0, (gs, GroupIs::Attempt));
                assert_eq!(before, None, "{effect:?}");
                return;
            }
            Effect::GroupAdopted { .. } => {
                let group = query::group(store, id).unwrap().unwrap();
                let before = self.groups.insert(id.0, (group.gs, GroupIs::of(&group)));
                assert_eq!(before, None, "{effect:?}");
                return;
            }
            Effect::MemberRetired { .. }
            | Effect::CopiesChanged { .. }
            | Effect::ContainerAdopted { .. }
                if !self.known.contains_key(&id.0) =>
            {
                // One that was taken over, as its group was or alone.
                let block = block::get(store, id).unwrap().unwrap();
                self.known.insert(id.0, Known::of(store, &block));
                return;
            }
            Effect::GroupFormed { .. } | Effect::GroupChanged { .. } => {
                let is = GroupIs::of(&query::group(store, id).unwrap().unwrap());
                let known = self.groups.get_mut(&id.0).unwrap();
                // One that was dissolved may be superseded.
                assert!(known.1 != is || is == GroupIs::Ending, "{effect:?}");
                known.1 = is;
                return;
            }
            Effect::GroupEnded { gs, .. } => {
                let before = self.groups.remove(&id.0).map(|known| known.0);
                assert_eq!(before, Some(gs), "{effect:?}");
                return;
            }
            Effect::Allocated { gs, .. } => {
                let before = self.known.insert(id.0, fresh(gs));
                assert_eq!(before, None, "{effect:?}");
                return;
            }
            Effect::Removed { gs, .. } => {
                let before = self.known.remove(&id.0).map(|known| known.gs);
                assert_eq!(before, Some(gs), "{effect:?}");
                return;
            }
            Effect::CopyBegun { gs, source, .. } => {
                let known = self.known.entry(id.0).or_insert_with(|| fresh(gs));
                known.gs = gs;
                known.source = Some(source);
                return;
            }
            _ => {}
        }
        let Some(known) = self.known.get_mut(&id.0) else { panic!("nobody knew of {effect:?}") };
        match *effect {
            Effect::PipelineUpdated { gs, .. } => known.gs = gs,
            Effect::Reopened { gs, .. } => {
                assert!(known.state != State::Open && known.gs == gs, "{effect:?} of {known:?}");
                known.state = State::Open;
            }
            Effect::RecoveryOrdered { new_gs, .. } => known.recovery = Some(new_gs),
            Effect::Synchronized { gs, .. } => {
                assert_eq!(known.recovery, Some(gs), "{effect:?} of {known:?}");
                known.gs = gs;
                known.recovery = None;
                known.source = None;
            }
            Effect::Committed { .. } => known.state = State::Committed,
            Effect::Completed { .. } => known.state = State::Complete,
            Effect::CopiesChanged { .. } | Effect::Packed { .. } | Effect::Unpacked { .. } => {
                known.redundancy = redundancy(store, id);
            }
            Effect::MemberRetired { .. } => {
                assert!(!known.is_retired, "{effect:?}");
                known.is_retired = true;
                known.redundancy = redundancy(store, id);
            }
            _ => {}
        }
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// What effects have told is what the store says.
    pub fn check(&self, store: &MemoryStore, last: &[Effect]) {
        let mut found = BTreeMap::new();
        let mut blocks = Vec::new();
        store
            .scan(Table::Block, &[], &[], &mut |_, record| {
                blocks.push(block::decode(record).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        for block in &blocks {
            found.insert(block.id.0, Known::of(store, block));
        }
        assert_eq!(self.known, found, "after {last:?}");
        let groups = query::groups_after(store, None, usize::MAX).unwrap();
        let groups = groups.iter().map(|group| (group.handle.0, (group.gs, GroupIs::of(group))));
        assert_eq!(self.groups, groups.collect(), "after {last:?}");
    }
}
