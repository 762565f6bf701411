//! Contiguous groups: the rounds that ship, what DataNodes have encoded, what readers find, and the mistakes that are put
//! back.

use super::NameNode;
use super::grouping::{Grouping, Located, NamedOrder, NamedRebuild, Round};
use super::names::sure;
use super::op::Answer;
use super::store::Store;
use cairn_master::contiguous::EncodedGroup;
use cairn_master::contiguous::elsewhere::{Elsewhere, elsewhere};
use cairn_master::contiguous::rounds::{self, News, Said, Unjudged};
use cairn_master::{Lookup, Op, Submission, contiguous};
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::group::Form;
use cairn_namespace::store::{StoreTxn, Table};
use cairn_namespace::{Caller, Command, Group, Outcome, query};
use cairn_redundancy::{EncodeOrder, GroupRebuild, NodeHandle, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp, Policy, UnitIndex};

impl NameNode {
    /// Takes what a DataNode says of groups that it was to encode.
    pub(super) fn take_encoded(&mut self, from: NodeHandle, encoded: Vec<EncodedGroup>) {
        let now = self.now();
        for group in encoded {
            if self.bugs.believes_encoders {
                self.believe(group);
                continue;
            }
            self.unjudged.push(Unjudged::new(from, Said::Encoded(group), now));
        }
        if !self.unjudged.is_empty() {
            self.look_after_groups(false);
        }
    }

    /// Begins a round over the groups, if none is under way.
    pub(crate) fn look_after_groups(&mut self, is_due: bool) -> Vec<News> {
        let mut told = Vec::new();
        let Some(Grouping { pays, dead_share_max, pack, .. }) = self.grouping else { return told };
        if let Some(round) = self.round.take() {
            let done = round.borrow_mut().take();
            let Some(done) = done else {
                self.round = Some(round);
                return told;
            };
            if let Ok(Round { rounds, unjudged, news }) = done {
                self.rounds = rounds;
                self.unjudged.splice(..0, unjudged);
                told = news;
            }
        }
        let round = rounds::Round { is_due, may_form: true, pays, dead_share_max, pack };
        let (mut rounds, mut unjudged) =
            (std::mem::take(&mut self.rounds), std::mem::take(&mut self.unjudged));
        let answer: Answer<Round> = self.begin(|op| async move {
            let mut news = Vec::new();
            let done = rounds.take(|_| op.clone(), round, &mut unjudged, &mut news).await;
            done.map(|()| Round { rounds, unjudged, news })
        });
        self.round = Some(answer);
        told
    }

    /// Whether a round finds nothing to do.
    pub(crate) fn is_at_rest(&mut self) -> bool {
        let Some(Grouping { pays, .. }) = self.grouping else { return true };
        if !sure(query::open_attempts(&self.store)).is_empty() || !self.unjudged.is_empty() {
            return false;
        }
        let rules = contiguous::choose::Rules { pays, proposals_max: 1 };
        let mut all = None;
        let mut core = self.core.take().expect("no operation is being polled");
        let found = core.look(|look| contiguous::choose::choose(look, &rules, &mut all));
        self.core = Some(core);
        sure(found).is_empty()
    }

    /// A contiguous policy.
    pub(crate) fn policy_of(&self, group: &Group) -> Policy {
        let known = sure(cairn_master::orders::policy(&self.store, group.policy));
        known.expect("a group has a policy that is known")
    }

    /// The group of an order, as it is in the namespace when the order is told.
    pub(crate) fn group_of(&self, handle: BlockId) -> Option<Group> {
        sure(query::group(&self.store, handle))
    }

    /// The group that protects a block, if one does, or of whose attempt it is to be a member.
    pub(crate) fn handle_of(&self, id: BlockId) -> Option<(BlockId, UnitIndex)> {
        if id.is_parity() {
            return Some((id.group(), id.unit()));
        }
        self.grouping?;
        if let Some(of) = self.block(id).and_then(|info| info.block.group) {
            return Some((of.handle, UnitIndex(of.slot)));
        }
        let handle = sure(cairn_namespace::group::attempt_of(&self.store, id))?;
        let group = self.all_groups();
        let group = group.iter().find(|group| group.handle == handle)?;
        let slot = group.members().find(|(_, member)| member.id == id);
        slot.map(|(slot, _)| (handle, UnitIndex(slot)))
    }

    /// Whether a group protects its members.
    pub(crate) fn is_formed(&self, handle: BlockId) -> bool {
        self.all_groups().iter().any(|group| group.handle == handle && group.is_formed())
    }

    /// The members of a contiguous group by slot; nothing for what is none.
    pub(crate) fn members_of(&self, handle: BlockId) -> Vec<Option<BlockId>> {
        let groups = self.all_groups();
        let group = groups.iter().find(|group| group.handle == handle);
        let members = group.into_iter().flat_map(|group| &group.members);
        members.map(|member| member.as_ref().map(|member| member.id)).collect()
    }

    /// How a DataNode can have a block that it lacks. `None` if the NameNode does not know the DataNode.
    pub(crate) fn locate_units(
        &mut self,
        reader: usize,
        (id, gs): (BlockId, GenerationStamp),
    ) -> Option<Option<Located>> {
        let reader = self.cluster.registered(&self.named(reader).claim()).ok()?;
        let lookup = Lookup::new(&self.store);
        let found = sure(elsewhere(&self.cluster, &lookup, (id, gs), reader, self.now()));
        let located = found.map(|Elsewhere { len, relays, group, packed }| {
            let target = |storage: StorageHandle| self.target(storage);
            let group = group.map(|(group, slot, sources)| {
                let sources = sources.into_iter().map(|(at, slot)| (slot.as_usize(), target(at)));
                (group, slot.as_usize(), sources.collect())
            });
            Located { len, relays: relays.into_iter().map(target).collect(), group, packed }
        });
        Some(located.map(|located| self.place_as_kept(id, located)))
    }

    /// Has more of what was deleted removed.
    pub(crate) fn purge(&mut self) {
        let purge = Submission::own(Purge { limit: 100 });
        self.begin(|op| async move { op.submit(purge).await });
    }

    /// What the quota of a directory counts otherwise than is there.
    pub(crate) fn miscounted(&self, path: &str) -> Option<String> {
        let caller = Caller::system();
        let counted = sure(query::quota_usage(&self.store, &caller, path)).space;
        let there = sure(query::content_summary(&self.store, &caller, path)).space;
        (counted != there).then(|| format!("{path} takes {there} bytes, counted are {counted}"))
    }

    // Mistakes that are put back.

    /// The group is formed as its encoder says, whoever else says otherwise.
    fn believe(&mut self, encoded: EncodedGroup) {
        let EncodedGroup { handle, gs, outcome } = encoded;
        let Ok(made) = outcome else { return };
        let form = Form {
            handle,
            gs,
            members: made.members.iter().map(|member| member.sum).collect(),
            parities: made.parities.iter().map(|(_, parity)| *parity).collect(),
            checksum: made.checksum,
        };
        let submission = Submission::own(form);
        self.begin(|op| async move { op.submit(submission).await });
    }

    /// The state that a command is evaluated on.
    pub(super) fn seen_by(&self, command: &Command) -> &Store {
        let begun = match command {
            Command::Form(form) => self.begun.get(&form.handle),
            Command::Pack(pack) => self.begun.get(&pack.container),
            _ => None,
        };
        begun.unwrap_or(&self.ahead)
    }

    /// An attempt begins: its `Form` is evaluated on this state, where that mistake is put back.
    pub(super) fn note_begun(&mut self, ahead: &Store, answer: &Outcome) {
        if let (true, Outcome::EncodeBegun { handle, .. }) = (self.bugs.forms_unchecked, answer) {
            self.begun.insert(*handle, ahead.clone());
        }
    }

    /// A group of containers is formed: what is packed in them is judged by this state, where that mistake is put back.
    pub(super) fn note_containers(&mut self, ahead: &Store, command: &Command) {
        let Command::Form(Form { handle, .. }) = command else { return };
        if !self.bugs.packs_unchecked {
            return;
        }
        let group = sure(query::group(ahead, *handle));
        let members: Vec<BlockId> =
            group.iter().flat_map(Group::members).map(|(_, member)| member.id).collect();
        for id in members.into_iter().filter(|id| id.is_container()) {
            self.begun.insert(id, ahead.clone());
        }
    }

    /// The numbers of an attempt that was abandoned are given out again.
    pub(super) fn forget_handle(&self, store: &mut Store, command: &Command) {
        if self.bugs.reuses_handles && matches!(command, Command::Abandon(_)) {
            sure(store.remove(Table::Meta, b"handle").map_err(Into::into));
        }
    }
}

impl NameNode {
    pub(crate) fn name_order(&self, order: EncodeOrder) -> NamedOrder {
        let members = order.members.iter().map(|member| self.target(member.storage)).collect();
        let targets = order.targets.iter().map(|(storage, _)| self.target(*storage)).collect();
        NamedOrder { order, members, targets }
    }

    /// None if the group is no more.
    pub(crate) fn name_rebuild(&self, order: &GroupRebuild) -> Option<NamedRebuild> {
        let group = self.group_of(order.group.id)?;
        let named = |places: &[(StorageHandle, UnitIndex)]| {
            let name =
                |(at, slot): &(StorageHandle, UnitIndex)| (slot.as_usize(), self.target(*at));
            places.iter().map(name).collect()
        };
        let (sources, targets) = (named(&order.sources), named(&order.targets));
        Some(NamedRebuild { group, sources, targets })
    }
}
