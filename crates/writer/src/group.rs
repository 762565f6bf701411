//! The block groups of an erasure coded file while they are written: notes failures at the end of each band of
//! stripes, fences off units that failed with a new stamp for all others, ends groups and begins the next.
//!
//! ```text
//! no group --bytes--> addBlock --band--> failures? --none--> full? --no--> next band
//!                                          |                   \--yes--> flush, mend, end of each unit, flush
//!                                          \--> flush, new stamp, reopen the others, tell --> again
//! ```
//! What failures ask for is decided by `cairn_stripe::write::GroupWrite`; how bytes get to the units is the
//! caller's. Source: Hadoop 3.5.0 `DFSStripedOutputStream`. Tested in `group/tests.rs`, and by the simulation.

#[cfg(test)]
mod tests;

use crate::Block;
use cairn_stripe::write::{GroupLost, GroupWrite, Next};
use cairn_stripe::{GenerationStamp, Geometry, UnitIndex};
use std::future::Future;

/// What the groups of a file ask of the NameNode, and of the units of the one at hand.
pub trait Peers {
    /// Why a question has no good answer.
    type Error;

    /// Asks for the next group, after `previous` with its final length: which units have a place.
    fn add_block(
        &mut self,
        previous: Option<Block>,
    ) -> impl Future<Output = Result<(Block, Vec<bool>), Self::Error>>;

    /// Whether that says that there are too few places.
    fn lacks_places(&self, error: &Self::Error) -> bool;

    /// Leaves nobody out of groups to come any more. False if nobody was.
    fn forget_left_out(&mut self) -> bool;

    /// Asks for a new generation stamp: `updateBlockForPipeline`.
    fn new_stamp(
        &mut self,
        block: Block,
    ) -> impl Future<Output = Result<GenerationStamp, Self::Error>>;

    /// Tells the NameNode that `units` have the stamp of `new`: `updatePipeline`.
    fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        units: &[UnitIndex],
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Ends the file, once its last group is on enough DataNodes.
    fn complete(&mut self, last: Option<Block>) -> impl Future<Output = Result<(), Self::Error>>;

    /// Waits until each of the `live` units has acknowledged what it was sent, or has failed; of those that
    /// hang, up to `spare` may be given up.
    fn flush(&mut self, live: &[UnitIndex], spare: usize) -> impl Future<Output = ()>;

    /// Whether a unit can't be written any more.
    fn has_failed(&self, unit: UnitIndex) -> bool;

    /// Bytes of an internal block that its DataNode has acknowledged.
    fn acked_len(&self, unit: UnitIndex) -> u64;

    /// Has `units`, of which everything is acknowledged, reopened with a new stamp, all at once.
    fn reopen(&mut self, units: &[UnitIndex], stamp: GenerationStamp) -> impl Future<Output = ()>;

    /// Waits until one of those is reopened; false if it is not, or not soon. `is_spare`: the group may lose it.
    fn reopened(&mut self, unit: UnitIndex, is_spare: bool) -> impl Future<Output = bool>;

    /// Sends the end of the internal block to each of `units`.
    fn send_last(&mut self, units: &[UnitIndex]) -> impl Future<Output = ()>;

    /// A unit has failed: it is not written any more, and its DataNode left out of groups to come.
    fn leave_out(&mut self, unit: UnitIndex);

    /// So few units are left that the group ends, and another one takes what follows.
    fn ends_early(&mut self, block: Block);

    /// The group is over.
    fn end(&mut self);
}

/// Why a file can't be written any more.
#[derive(Debug, thiserror::Error)]
pub enum GroupError<E> {
    /// A question had no good answer.
    #[error(transparent)]
    Peer(#[from] E),
    /// Too many units have failed.
    #[error("{source}")]
    Lost {
        /// The group.
        block: Block,
        /// How many.
        source: GroupLost,
    },
}

type Done<T, E> = Result<T, GroupError<E>>;

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Of its groups.
    pub geometry: Geometry,
    /// Bytes of an internal block.
    pub block_size: u64,
    /// Units of a group that may fail, at most `m`.
    pub tolerated: usize,
    /// Failures that a group is to survive at its end, at most `m`.
    pub margin: usize,
}

/// The groups of one file while they are written.
pub struct Groups<P> {
    /// Who is asked.
    pub peers: P,
    rules: Rules,
    group: Option<Group>,
    /// The last group that was written whole.
    previous: Option<Block>,
}

/// The group being written.
struct Group {
    block: Block,
    plan: GroupWrite,
    /// Data bytes handed to the units.
    len: u64,
    /// Those of them that have their parity.
    in_bands: u64,
    /// Whether the next group may get more places than this one.
    is_makeshift: bool,
    /// The end of each unit goes with its first bytes.
    is_whole: bool,
}

impl<P: Peers> Groups<P> {
    /// The groups of a new file.
    pub fn new(peers: P, rules: Rules) -> Groups<P> {
        Groups { peers, rules, group: None, previous: None }
    }

    /// Whether a group has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.group.is_some()
    }

    /// Whether `unit` takes bytes.
    pub fn is_live(&self, unit: UnitIndex) -> bool {
        self.group.as_ref().is_some_and(|group| group.plan.is_live(unit))
    }

    /// The units that take bytes, and how many of them may be given up because they hold the others up.
    pub fn live(&self) -> (Vec<UnitIndex>, usize) {
        self.group.as_ref().map_or((Vec::new(), 0), |group| group.live(&self.rules))
    }

    /// Whether computing parity is worth it: some parity unit is live.
    pub fn needs_parity(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.plan.needs_parity())
    }

    /// Whether each unit's bytes come whole, with its end.
    pub fn is_whole(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.is_whole)
    }

    /// Data bytes for which the group has room, or a new one, behind those that have their parity.
    pub fn room(&self) -> u64 {
        let used = self.group.as_ref().map_or(0, |group| group.in_bands);
        self.rules.geometry.full_group_len(self.rules.block_size) - used
    }

    /// Begins a group, if there is none. With `is_whole` each unit gets all its bytes at once, with its end.
    pub async fn begin(&mut self, is_whole: bool) -> Done<(), P::Error> {
        if self.group.is_some() {
            return Ok(());
        }
        let (block, placed, is_makeshift) = self.place().await?;
        let block = Block { len: 0, ..block };
        let plan = GroupWrite::new(self.rules.geometry, self.rules.tolerated, &placed)
            .map_err(|source| GroupError::Lost { block, source })?;
        let (len, in_bands) = (0, 0);
        self.group = Some(Group { block, plan, len, in_bands, is_makeshift, is_whole });
        Ok(())
    }

    /// So many data bytes are handed to the group's units.
    pub fn sent(&mut self, len: u64) {
        if let Some(group) = &mut self.group {
            group.len += len;
        }
    }

    /// All that was sent has its parity, and all units are equally far: mends the group after failures, and
    /// ends it if it is full or should go no further.
    pub async fn end_band(&mut self) -> Done<(), P::Error> {
        let Some(group) = &mut self.group else { return Ok(()) };
        group.in_bands = group.len;
        if self.room() == 0 {
            return self.end_group().await;
        }
        self.mend().await?;
        let Some(group) = &self.group else { return Ok(()) };
        if group.is_makeshift || group.plan.should_end(self.rules.margin) {
            self.peers.ends_early(Block { len: group.len, ..group.block });
            return self.end_group().await;
        }
        Ok(())
    }

    /// Ends the file.
    pub async fn close(&mut self) -> Done<(), P::Error> {
        self.end_group().await?;
        Ok(self.peers.complete(self.previous).await?)
    }

    /// Has the NameNode choose DataNodes other than those that failed a while ago. Where the others are not
    /// enough, all may be chosen: some may be back. A group cannot be given back; one that was placed on
    /// too few is a makeshift, which ends with its first band.
    async fn place(&mut self) -> Result<(Block, Vec<bool>, bool), P::Error> {
        let Rules { geometry, margin, .. } = self.rules;
        let wanted = geometry.k() + margin.min(geometry.m());
        match self.peers.add_block(self.previous).await {
            Ok((block, placed)) => {
                let is_short = placed.iter().filter(|placed| **placed).count() < wanted;
                Ok((block, placed, is_short && self.peers.forget_left_out()))
            }
            Err(error) if self.peers.lacks_places(&error) && self.peers.forget_left_out() => {
                let (block, placed) = self.peers.add_block(self.previous).await?;
                Ok((block, placed, false))
            }
            Err(error) => Err(error),
        }
    }

    /// Ends the group, if there is one: all units flushed, mended and closed.
    async fn end_group(&mut self) -> Done<(), P::Error> {
        // The end of one that came whole is on its way.
        if self.group.as_ref().is_some_and(|group| !group.is_whole) {
            self.flush().await;
            self.mend().await?;
            let Some(group) = &self.group else { return Ok(()) };
            self.peers.send_last(&group.writing()).await;
        }
        self.flush().await;
        let Some(group) = &mut self.group else { return Ok(()) };
        group.note_failures(&mut self.peers);
        let (block, len) = (group.block, group.len);
        // What fails so late needs no new stamp: Hadoop counts it only.
        group.plan.check_end().map_err(|source| GroupError::Lost { block, source })?;
        self.peers.end();
        self.previous = Some(Block { len, ..block });
        self.group = None;
        Ok(())
    }

    async fn flush(&mut self) {
        let (live, spare) = self.live();
        self.peers.flush(&live, spare).await;
    }

    /// Fences off units that failed since the last band: a new stamp for all others.
    async fn mend(&mut self) -> Done<(), P::Error> {
        let Some(group) = &mut self.group else { return Ok(()) };
        group.note_failures(&mut self.peers);
        while let Next::Restamp { .. } = group.check()? {
            let (live, spare) = group.live(&self.rules);
            self.peers.flush(&live, spare).await;
            group.note_failures(&mut self.peers);
            let Next::Restamp { units } = group.check()? else { return Ok(()) };
            group.restamp(&mut self.peers, &self.rules, &units).await?;
        }
        Ok(())
    }
}

impl Group {
    fn live(&self, rules: &Rules) -> (Vec<UnitIndex>, usize) {
        (self.plan.live(), self.plan.spare(rules.margin))
    }

    /// The live units that have data.
    fn writing(&self) -> Vec<UnitIndex> {
        let mut units = self.plan.live();
        units.retain(|unit| self.plan.is_writing(*unit, self.len));
        units
    }

    /// Takes notice of units that failed.
    fn note_failures<P: Peers>(&mut self, peers: &mut P) {
        for unit in self.plan.live() {
            if peers.has_failed(unit) {
                self.failed(unit, peers);
            }
        }
    }

    fn failed<P: Peers>(&mut self, unit: UnitIndex, peers: &mut P) {
        self.plan.failed(unit);
        peers.leave_out(unit);
    }

    fn check<E>(&self) -> Done<Next, E> {
        let block = self.block;
        self.plan.check(self.len).map_err(|source| GroupError::Lost { block, source })
    }

    /// Gives `units` a new stamp and tells the NameNode, unless one fails on the way.
    async fn restamp<P: Peers>(
        &mut self,
        peers: &mut P,
        rules: &Rules,
        units: &[UnitIndex],
    ) -> Result<(), P::Error> {
        let stamp = peers.new_stamp(Block { len: self.len, ..self.block }).await?;
        peers.reopen(units, stamp).await;
        for unit in units {
            let is_spare = self.plan.spare(rules.margin) > 0;
            if !peers.reopened(*unit, is_spare).await {
                self.failed(*unit, peers);
            }
        }
        if !self.plan.restamped(units) {
            return Ok(());
        }
        let old = Block { len: self.acked_len(peers, &rules.geometry), ..self.block };
        peers.update_pipeline(old, Block { stamp, ..old }, units).await?;
        self.block.stamp = stamp;
        Ok(())
    }

    fn acked_len<P: Peers>(&self, peers: &P, geometry: &Geometry) -> u64 {
        let acked = |unit| self.plan.is_live(unit).then(|| peers.acked_len(unit));
        let units = (0..geometry.units() as u8).map(UnitIndex);
        self.plan.acked_len(self.len, &units.map(acked).collect::<Vec<_>>())
    }
}
