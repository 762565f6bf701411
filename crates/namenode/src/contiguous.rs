//! The loop over contiguous groups: has them begun, formed, abandoned and ended.
//!
//! What that takes is in `cairn_master::contiguous`. Nothing is begun or formed in safe mode, nor while the tree may go
//! back to where it was before an upgrade: an older version knows no groups.

use std::sync::Arc;

use cairn_master::OpError;
use cairn_master::contiguous::choose::{self, Rules};
use cairn_master::contiguous::counts;
use cairn_master::contiguous::renew::{self, DeadRules, Renewal};
use cairn_master::contiguous::{self as groups, Formation};
use cairn_namespace::query::{self, Waiting as Due};
use cairn_redundancy::Cluster;
use cairn_redundancy::groups::ENCODES_PER_NODE;
use cairn_stripe::BlockId;
use tracing::{info, warn};

use crate::clock::TICK_MIN;
use crate::node::NameNode;
use crate::node::group_work::one_more;

/// Attempts that one round begins, at most.
const BEGUN_MAX: usize = 16;
/// Steps in which one round counts, at most.
const COUNTED_MAX: usize = 10;

/// How far the walks of the loop have come.
#[derive(Default)]
struct Walks {
    /// Over the blocks that wait.
    due: Option<Due>,
    /// Over the groups.
    group: Option<BlockId>,
    /// Over them, for what is dead in them.
    renewal: Option<BlockId>,
    /// Over them, for what DataNodes are to know of that.
    retired: Option<BlockId>,
    /// Over both, to count them.
    counts: counts::Walk,
}

/// Looks after contiguous groups as long as the NameNode lives.
pub(crate) async fn watch(node: Arc<NameNode>) {
    let mut ticks = tokio::time::interval(node.config.heartbeat_interval.max(TICK_MIN));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut walks = Walks::default();
    loop {
        let is_round = tokio::select! {
            _ = ticks.tick() => true,
            () = node.encoded.news.notified() => false,
        };
        if node.safe_mode_tip().is_some() {
            continue;
        }
        if let Err(error) = node.look_after_groups(&mut walks, is_round).await {
            warn!(%error, "contiguous groups are not looked after");
        }
    }
}

/// Attempts that can begin now.
fn room(cluster: &Cluster) -> usize {
    let able = cluster.nodes().filter(|node| node.alive && node.takes_groups);
    let room = able.count() * ENCODES_PER_NODE;
    room.saturating_sub(cluster.attempt_count()).min(BEGUN_MAX)
}

impl NameNode {
    async fn look_after_groups(&self, walks: &mut Walks, is_round: bool) -> Result<(), OpError> {
        if is_round {
            self.count_groups(&mut walks.counts).await?;
            for (handle, why) in groups::abandon_failed(&self.own_operation("abandonGroup")).await?
            {
                info!(group = %handle, why, "an attempt to make a contiguous group is abandoned");
                one_more(&self.group_work.abandoned);
            }
            walks.group =
                groups::end_unneeded(&self.own_operation("endGroup"), walks.group).await?;
        }
        if is_round {
            let operation = self.own_operation("tellRetired");
            walks.retired = renew::tell_retired(&operation, walks.retired).await?;
        }
        if self.ns.rollback_point().is_some() {
            return Ok(());
        }
        self.form_groups().await?;
        let pauses = self.ns.read(|store| query::group_pauses(store))?;
        // What is dead goes before more is put into groups: it may be what disks are full of.
        if is_round && !pauses.renew {
            self.renew_groups(&mut walks.renewal).await?;
        }
        if is_round && !pauses.form {
            self.begin_groups(&mut walks.due).await?;
        }
        Ok(())
    }

    /// Has the cluster do no more than operators let it.
    pub(crate) fn heed_group_pauses(&self) -> cairn_namespace::Result<()> {
        self.look(|look| {
            let pauses = query::group_pauses(look.store)?;
            look.cluster.hold_surplus(pauses.drop);
            Ok(())
        })
    }

    /// Counts some of what groups come to.
    async fn count_groups(&self, walk: &mut counts::Walk) -> Result<(), OpError> {
        for _ in 0..COUNTED_MAX {
            let now = self.now();
            if let Some(counts) = self.ns.read(|store| walk.step(store, now.wall_ms))? {
                self.group_work.counted(counts, now);
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Judges what DataNodes have encoded.
    async fn form_groups(&self) -> Result<(), OpError> {
        let mut awaited = Vec::new();
        for waiting in self.encoded.take() {
            let handle = waiting.group.handle;
            match groups::form(&self.own_operation("formGroup"), waiting.from, &waiting.group)
                .await?
            {
                Formation::Formed => {
                    info!(group = %handle, "a contiguous group is formed");
                    one_more(&self.group_work.formed);
                }
                Formation::Awaited if self.now().mono_ms < waiting.until_ms => {
                    awaited.push(waiting);
                }
                Formation::Awaited => {
                    info!(group = %handle, "parities are not reported: the attempt is abandoned");
                    groups::abandon(&self.own_operation("abandonGroup"), handle).await?;
                    one_more(&self.group_work.abandoned);
                }
                Formation::Abandoned(why) => {
                    info!(group = %handle, why, "a contiguous group is not formed");
                    one_more(&self.group_work.abandoned);
                }
                Formation::Over => {}
            }
        }
        self.encoded.put(awaited);
        Ok(())
    }

    /// Begins to make groups anew of which too much is dead, or to dissolve them.
    async fn renew_groups(&self, after: &mut Option<BlockId>) -> Result<(), OpError> {
        let share_max = self.config.group_dead_share;
        let chosen = self.look(|look| {
            let most = room(look.cluster);
            if most == 0 {
                return Ok(Vec::new());
            }
            renew::choose(look, &DeadRules { share_max, most }, after)
        })?;
        for renewal in chosen {
            match renewal {
                Renewal::Renew(proposal) => {
                    let old = proposal.command.supersedes.clone();
                    match groups::begin(&self.own_operation("renewGroup"), proposal).await? {
                        Ok(handle) => {
                            info!(group = %handle, ?old, "a contiguous group is to take the place of one with dead members");
                            one_more(&self.group_work.renewed);
                        }
                        Err(why) => info!(why, ?old, "a contiguous group is not made anew"),
                    }
                }
                Renewal::Dissolve(handle) => {
                    let operation = self.own_operation("dissolveGroup");
                    match groups::dissolve(&operation, handle).await? {
                        Ok(()) => {
                            info!(group = %handle, "a contiguous group with dead members is dissolved");
                            one_more(&self.group_work.renewed);
                        }
                        Err(why) => info!(why, group = %handle, "a contiguous group stays"),
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins attempts for blocks that wait.
    async fn begin_groups(&self, due: &mut Option<Due>) -> Result<(), OpError> {
        let pays = self.config.group_pays;
        let proposals = self.look(|look| {
            let proposals_max = room(look.cluster);
            if proposals_max == 0 {
                return Ok(Vec::new());
            }
            choose::choose(look, &Rules { pays, proposals_max }, due)
        })?;
        for proposal in proposals {
            match groups::begin(&self.own_operation("beginGroup"), proposal).await? {
                Ok(handle) => info!(group = %handle, "a contiguous group is to be encoded"),
                Err(why) => info!(why, "no contiguous group is begun"),
            }
        }
        Ok(())
    }
}
