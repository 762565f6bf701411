//! The loop over contiguous groups: has them begun, formed, made anew, abandoned and ended, and counts them.
//!
//! What that takes, and in which order, is in `cairn_master::contiguous`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_master::OpError;
use cairn_master::contiguous::adopt::AdoptNews;
use cairn_master::contiguous::counts;
use cairn_master::contiguous::pack::PackNews;
use cairn_master::contiguous::pack::batch::PackRules;
use cairn_master::contiguous::rounds::{News, Round, Rounds};
use cairn_namespace::query;
use cairn_operate::workers::Worker;
use cairn_process::disk_work::step_aside;
use tracing::{info, warn};

use crate::clock::TICK_MIN;
use crate::node::NameNode;
use crate::node::group_work::{GroupWork, one_more};

/// Steps in which one round counts, at most.
const COUNTED_MAX: usize = 10;

/// Looks after contiguous groups as long as the NameNode lives.
pub(crate) async fn watch(node: Arc<NameNode>, worker: Arc<Worker>) {
    let mut ticks = tokio::time::interval(node.config.heartbeat_interval.max(TICK_MIN));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut rounds = Rounds::default();
    let mut counts = counts::Walk::default();
    loop {
        let due = async {
            tokio::select! {
                _ = ticks.tick() => true,
                () = node.encoded.news.notified() => false,
            }
        };
        let is_due = worker.rest(due).await;
        if let Err(error) = node.look_after_groups(&mut rounds, &mut counts, is_due).await {
            warn!(%error, "contiguous groups are not looked after");
            worker.failed(&error);
        }
    }
}

impl NameNode {
    async fn look_after_groups(
        &self,
        rounds: &mut Rounds,
        counts: &mut counts::Walk,
        is_due: bool,
    ) -> Result<(), OpError> {
        if is_due && !self.holds_work() {
            self.count_groups(counts).await?;
        }
        let round = Round {
            is_due,
            may_form: self.ns.rollback_point().is_none(),
            pays: self.config.group_pays,
            dead_share_max: self.config.group_dead_share,
            pack: self.config.packs.then_some(PackRules {
                container_len: self.config.container_len,
                patience_ms: self.config.pack_patience.as_millis() as u64,
                dead_share_max: self.config.pack_dead_share,
            }),
        };
        let mut unjudged = self.encoded.take();
        let mut news = Vec::new();
        let done =
            rounds.take(|name| self.own_operation(name), round, &mut unjudged, &mut news).await;
        self.encoded.put(unjudged);
        news.into_iter().for_each(|news| self.tell_of_group(news));
        done
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
            if let Some(counts) = self.ns.read(|store| walk.step(store, now.elapsed_ms))? {
                self.group_work.counted(counts, now);
                break;
            }
            step_aside().await;
        }
        Ok(())
    }

    fn tell_of_group(&self, news: News) {
        let work = &self.group_work;
        match news {
            News::Begun(group) => info!(%group, "a contiguous group is to be encoded"),
            News::NotBegun(why) => info!(why, "no contiguous group is begun"),
            News::Formed(group) => {
                info!(%group, "a contiguous group is formed");
                one_more(&work.formed);
            }
            News::Abandoned(group, why) => {
                info!(%group, why, "an attempt to make a contiguous group is abandoned");
                one_more(&work.abandoned);
            }
            News::Renewing { group, old } => {
                info!(%group, ?old, "a contiguous group is to take the place of one with dead members");
                one_more(&work.renewed);
            }
            News::NotRenewed { old, why } => {
                info!(why, ?old, "a contiguous group is not made anew");
            }
            News::Dissolving(group) => {
                info!(%group, "a contiguous group with dead members is dissolved");
                one_more(&work.renewed);
            }
            News::OfFound(AdoptNews::Adopted { group, is_whole }) => {
                info!(%group, is_whole, "a contiguous group that DataNodes have is taken over");
            }
            News::OfFound(AdoptNews::Container(container)) => {
                info!(%container, "a container is taken over, of whose group no parity is left");
            }
            News::OfFound(AdoptNews::Refused(group, why)) => {
                info!(%group, why, "a contiguous group that DataNodes have is not taken over");
            }
            News::OfContainer(news) => tell_of_container(news, work),
            News::NotDissolved(group, why) => info!(why, %group, "a contiguous group stays"),
        }
    }
}

fn tell_of_container(news: PackNews, work: &GroupWork) {
    match news {
        PackNews::Begun(container) => {
            info!(%container, "a container of small blocks is to be written")
        }
        PackNews::NotBegun(why) => info!(why, "no container of small blocks is begun"),
        PackNews::Sealed(container) => {
            info!(%container, "a container was read back as it should be")
        }
        PackNews::Packed(container) => info!(%container, "small blocks are packed"),
        PackNews::Abandoned(container, why) => {
            info!(%container, why, "a container of small blocks is given up");
        }
        PackNews::Ended(container) => info!(%container, "nobody needs a container any more"),
        PackNews::Emptying(container) => {
            info!(%container, "what lives in a container goes into others, as much of it is dead");
            one_more(&work.emptied);
        }
        PackNews::TakenOver(container, blocks) => {
            info!(%container, blocks, "small blocks are packed in a container that DataNodes have");
        }
        PackNews::UnpackedAsAsked(count) => {
            info!(count, "blocks are plain again");
            work.unpacked.fetch_add(count as u64, Ordering::Relaxed);
        }
        PackNews::Unpacked(count) => {
            warn!(count, "blocks are plain again, whose containers cannot be had");
            work.unpacked.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}
