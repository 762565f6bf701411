//! The rounds over contiguous groups: in which order attempts are abandoned, groups ended, formed, made anew and begun.
//!
//! Nothing is begun or formed in safe mode, nor while the tree may go back to where it was before an upgrade: an older
//! version knows no groups.

use crate::contiguous::adopt::{self, AdoptNews};
use crate::contiguous::choose::{self, Rules};
use crate::contiguous::pack::batch::{Gather, PackRules};
use crate::contiguous::pack::{self, PackNews, PackedContainer, repack, unpack};
use crate::contiguous::renew::{self, DeadRules, Renewal};
use crate::contiguous::{self as groups, EncodedGroup, Formation};
use crate::op::{Look, Op, OpError};
use cairn_namespace::query::{self, Waiting};
use cairn_redundancy::groups::ENCODES_PER_NODE;
use cairn_redundancy::{Cluster, NodeHandle, Now};
use cairn_stripe::BlockId;

/// Attempts that one round begins, at most, of new groups and of those made anew each.
const BEGUN_MAX: usize = 16;
/// Looks for small blocks that wait, of one round at most.
const GATHERS_MAX: usize = 20;
/// How long parities may be awaited that their encoder has written, in ms.
const PATIENCE_MS: u64 = 30_000;

/// What a DataNode has made, or could not.
#[derive(Clone, Debug)]
pub enum Said {
    /// The parities of a group.
    Encoded(EncodedGroup),
    /// A container.
    Packed(PackedContainer),
}

impl Said {
    fn handle(&self) -> BlockId {
        match self {
            Said::Encoded(group) => group.handle,
            Said::Packed(container) => container.id,
        }
    }
}

/// What a DataNode has said of what it was to make, until that is judged.
#[derive(Clone, Debug)]
pub struct Unjudged {
    from: NodeHandle,
    said: Said,
    /// Until when it may wait, on the monotonic clock.
    until_ms: u64,
}

impl Unjudged {
    /// What a DataNode has just said.
    pub fn new(from: NodeHandle, said: Said, now: Now) -> Unjudged {
        Unjudged { from, said, until_ms: now.mono_ms.saturating_add(PATIENCE_MS) }
    }
}

/// What one round is to do.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Whether it is time for all of it: else only what was encoded is judged.
    pub is_due: bool,
    /// Whether groups may be begun and formed.
    pub may_form: bool,
    /// The part of the bytes of three copies that a group may take at most.
    pub pays: f64,
    /// The part of the bytes of a group's members that may be dead.
    pub dead_share_max: f64,
    /// How small blocks are packed, if they are.
    pub pack: Option<PackRules>,
}

/// What a round has done, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// An attempt was begun.
    Begun(BlockId),
    /// None was, and why.
    NotBegun(String),
    /// A group protects its members.
    Formed(BlockId),
    /// An attempt was abandoned, and why.
    Abandoned(BlockId, String),
    /// An attempt was begun to take the place of groups with dead members.
    Renewing {
        /// The attempt.
        group: BlockId,
        /// What it is to take the place of.
        old: Vec<BlockId>,
    },
    /// None was begun for these groups, and why.
    NotRenewed {
        /// The groups that stay.
        old: Vec<BlockId>,
        /// Why.
        why: String,
    },
    /// The members of a group with dead ones are to have their copies.
    Dissolving(BlockId),
    /// They are not, and why.
    NotDissolved(BlockId, String),
    /// Something of a container.
    OfContainer(PackNews),
    /// Something of a group that a restored namespace did not know.
    OfFound(AdoptNews),
}

/// The rounds, and how far their walks have come.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Over the blocks that wait.
    due: Option<Waiting>,
    /// Over the groups.
    group: Option<BlockId>,
    /// Over them, for what is dead in them.
    renewal: Option<BlockId>,
    /// Over them, for what DataNodes are to know of that.
    retired: Option<BlockId>,
    /// Over the containers.
    container: Option<BlockId>,
    /// Small blocks that are to be packed.
    gather: Gather,
    /// Over the groups, for what is dead in their containers.
    emptying: Option<BlockId>,
    /// Over the packed blocks that are to be plain again.
    unpacking: Option<BlockId>,
    /// Whether a restored namespace may take groups over that DataNodes have: until then their members are in no others.
    is_taking_over: bool,
}

impl Rounds {
    /// Takes one, and adds what it has done to `news`, up to a failure too. Of what DataNodes have said, puts back what
    /// cannot be judged yet. `op` begins an operation of that name.
    pub async fn take<O: Op>(
        &mut self,
        op: impl Fn(&'static str) -> O,
        round: Round,
        unjudged: &mut Vec<Unjudged>,
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        if round.is_due {
            let (mut told, mut contents) = (Vec::new(), Vec::new());
            let goes_on = adopt::take_over(&op("adoptGroups"), &mut told, &mut contents).await;
            news.extend(told.into_iter().map(News::OfFound));
            news.extend(contents.into_iter().map(News::OfContainer));
            self.is_taking_over = goes_on?;
        }
        if op("contiguousGroups").look(|look| look.cluster.safe_mode().holds_work()) {
            return Ok(());
        }
        if round.is_due {
            let failed = groups::abandon_failed(&op("abandonGroup")).await?;
            let told = |(handle, why): (BlockId, &'static str)| News::Abandoned(handle, why.into());
            news.extend(failed.into_iter().map(told));
            self.group = groups::end_unneeded(&op("endGroup"), self.group).await?;
            self.retired = renew::tell_retired(&op("tellRetired"), self.retired).await?;
        }
        if !round.may_form || self.is_taking_over {
            return Ok(());
        }
        form(&op, unjudged, news).await?;
        if round.is_due {
            self.go_on_packing(&op, news).await?;
        }
        let pauses = op("contiguousGroups").look(|look| query::group_pauses(look.store))?;
        // What is dead goes before more is put into groups: it may be what disks are full of.
        if round.is_due && !pauses.renew {
            if let Some(rules) = round.pack {
                self.empty_containers(&op, rules.dead_share_max, news).await?;
            }
            self.renew(&op, round.dead_share_max, news).await?;
        }
        if round.is_due && !pauses.form {
            self.begin(&op, round.pays, news).await?;
            if let Some(rules) = round.pack {
                self.begin_packing(&op, (rules, round.pays), news).await?;
            }
        }
        Ok(())
    }

    /// Begins to make groups anew of which too much is dead, or to dissolve them.
    async fn renew<O: Op>(
        &mut self,
        op: &impl Fn(&'static str) -> O,
        share_max: f64,
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        let chosen = chosen(op("renewGroup"), |look, most| {
            renew::choose(look, &DeadRules { share_max, most }, &mut self.renewal)
        })?;
        for renewal in chosen {
            news.push(match renewal {
                Renewal::Renew(proposal) => {
                    let old = proposal.command.supersedes.clone();
                    match groups::begin(&op("renewGroup"), proposal).await? {
                        Ok(group) => News::Renewing { group, old },
                        Err(why) => News::NotRenewed { old, why },
                    }
                }
                Renewal::Dissolve(handle) => {
                    match groups::dissolve(&op("dissolveGroup"), handle).await? {
                        Ok(()) => News::Dissolving(handle),
                        Err(why) => News::NotDissolved(handle, why),
                    }
                }
            });
        }
        Ok(())
    }

    /// Begins to empty containers of which too much is dead.
    async fn empty_containers<O: Op>(
        &mut self,
        op: &impl Fn(&'static str) -> O,
        share_max: f64,
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        let chosen = op("repackContainer")
            .look(|look| repack::choose(look, share_max, &mut self.emptying))?;
        unpack::ask(&op("unpackBlocks"), &chosen.unpack, true).await?;
        for container in chosen.empty {
            if repack::begin(&op("repackContainer"), container).await? {
                self.gather.clear();
                news.push(News::OfContainer(PackNews::Emptying(container)));
            }
        }
        Ok(())
    }

    /// Does for containers what comes next.
    async fn go_on_packing<O: Op>(
        &mut self,
        op: &impl Fn(&'static str) -> O,
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        let mut told = Vec::new();
        self.container = pack::go_on(&op("packContainers"), self.container, &mut told).await?;
        let unpacked = pack::unpack_lost(&op("unpackBlocks")).await?;
        if unpacked > 0 {
            told.push(PackNews::Unpacked(unpacked));
        }
        let (last, count) = unpack::go_on(&op("unpackBlocks"), self.unpacking).await?;
        self.unpacking = last;
        if count > 0 {
            told.push(PackNews::UnpackedAsAsked(count));
        }
        news.extend(told.into_iter().map(News::OfContainer));
        Ok(())
    }

    /// Begins containers for small blocks that wait.
    async fn begin_packing<O: Op>(
        &mut self,
        op: &impl Fn(&'static str) -> O,
        (rules, pays): (PackRules, f64),
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        for _ in 0..GATHERS_MAX {
            if !op("gatherSmall").look(|look| self.gather.look(look))? {
                break;
            }
        }
        unpack::ask(&op("unpackBlocks"), &self.gather.take_stuck(), true).await?;
        let chosen = chosen(op("beginContainer"), |look, most| {
            self.gather.batch(look, (&rules, pays), most)
        })?;
        for proposal in chosen {
            let begun = pack::begin(&op("beginContainer"), proposal).await?;
            if begun.is_err() {
                self.gather.clear();
            }
            news.push(News::OfContainer(match begun {
                Ok(id) => PackNews::Begun(id),
                Err(why) => PackNews::NotBegun(why),
            }));
        }
        Ok(())
    }

    /// Begins attempts for blocks that wait.
    async fn begin<O: Op>(
        &mut self,
        op: &impl Fn(&'static str) -> O,
        pays: f64,
        news: &mut Vec<News>,
    ) -> Result<(), OpError> {
        let proposals = chosen(op("beginGroup"), |look, proposals_max| {
            choose::choose(look, &Rules { pays, proposals_max }, &mut self.due)
        })?;
        for proposal in proposals {
            news.push(match groups::begin(&op("beginGroup"), proposal).await? {
                Ok(handle) => News::Begun(handle),
                Err(why) => News::NotBegun(why),
            });
        }
        Ok(())
    }
}

/// What is chosen for as many attempts as can begin now; nothing is looked at where none can.
fn chosen<T>(
    op: impl Op,
    choose: impl FnOnce(&mut Look<'_>, usize) -> cairn_namespace::Result<Vec<T>>,
) -> Result<Vec<T>, OpError> {
    let chosen = op.look(|look| match room(look.cluster) {
        0 => Ok(Vec::new()),
        most => choose(look, most),
    });
    Ok(chosen?)
}

/// Attempts that can begin now.
fn room(cluster: &Cluster) -> usize {
    let able = cluster.nodes().filter(|node| node.alive && node.takes_groups);
    let room = able.count() * ENCODES_PER_NODE;
    room.saturating_sub(cluster.attempt_count()).min(BEGUN_MAX)
}

/// Judges what DataNodes have encoded.
async fn form<O: Op>(
    op: &impl Fn(&'static str) -> O,
    unjudged: &mut Vec<Unjudged>,
    news: &mut Vec<News>,
) -> Result<(), OpError> {
    for said in std::mem::take(unjudged) {
        let handle = said.said.handle();
        let formation = match &said.said {
            Said::Encoded(group) => groups::form(&op("formGroup"), said.from, group).await?,
            Said::Packed(of) => pack::seal(&op("sealContainer"), said.from, of).await?,
        };
        match formation {
            Formation::Formed if handle.is_container() => {
                news.push(News::OfContainer(PackNews::Sealed(handle)));
            }
            Formation::Formed => news.push(News::Formed(handle)),
            Formation::Awaited => {
                let is_over = |now: Now| now.mono_ms >= said.until_ms;
                if op("formGroup").look(|look| is_over(look.now)) {
                    match handle.is_container() {
                        true => pack::abandon(&op("abandonContainer"), handle).await?,
                        false => groups::abandon(&op("abandonGroup"), handle).await?,
                    }
                    news.push(News::Abandoned(handle, "what was made is not reported".into()));
                } else {
                    unjudged.push(said);
                }
            }
            Formation::Abandoned(why) => news.push(News::Abandoned(handle, why)),
            Formation::Over => {}
        }
    }
    Ok(())
}
