//! What the groups of a file ask of the NameNode, and of the DataNodes through the streams of their units.

use crate::datanode::write_block::{Target, targets};
use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::protocol::convert::Located;
use crate::types;
use crate::write::open_file::{OpenFile, bare, in_pool};
use crate::write_stalls::{Progress, Stalls};
use crate::write_unit::{UnitSetup, UnitWriter};
use cairn_stripe::{GenerationStamp, Geometry, UnitIndex};
use cairn_wire::exception::class;
use cairn_writer::Block;
use cairn_writer::group::{GroupError, Peers};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// See the module.
pub(super) struct Streams {
    pub(super) file: OpenFile,
    geometry: Geometry,
    /// Commands that may wait in each unit.
    queue: usize,
    /// The block pool of the file's groups; empty before the first of them.
    pool: String,
    /// Of the group at hand; `None` where the NameNode found no place.
    units: Vec<Option<UnitWriter>>,
    stalls: Stalls,
    /// The group with its newest stamp.
    restamped: Option<Located>,
    /// When units were asked to reopen, and what they answer.
    reopening: (Instant, Vec<(UnitIndex, oneshot::Receiver<()>)>),
}

impl Streams {
    pub(super) fn new(file: OpenFile, geometry: Geometry, queue: usize) -> Streams {
        let now = Instant::now();
        let stalls = Stalls::new(0, file.session.config.hanging_unit_timeout, now);
        let (pool, units, restamped, reopening) =
            (String::new(), Vec::new(), None, (now, Vec::new()));
        Streams { file, geometry, queue, pool, units, stalls, restamped, reopening }
    }

    /// What a program is told.
    pub(super) fn told(&self, error: GroupError<ClientError>) -> ClientError {
        match error {
            GroupError::Peer(error) => error,
            GroupError::Lost { block, source } => {
                ClientError::GroupLost { block: self.named(block).to_string(), source }
            }
        }
    }

    /// Hands a packet to a live unit: the next bytes of its block, or all of them.
    pub(super) async fn send(&mut self, unit: usize, packet: Packet, is_whole: bool) {
        let Some(writer) = &mut self.units[unit] else { return };
        let sent = match is_whole {
            true => writer.send_whole(packet).await,
            false => writer.send(packet).await,
        };
        if !sent {
            // Noted with its reason at the end of the band.
            writer.stop();
        }
    }

    /// How long to wait between two looks for units that hang.
    pub(super) fn patience(&self) -> Duration {
        self.stalls.between()
    }

    /// Gives `live` units up that hang while the others keep up, as many as are to `spare`.
    pub(super) fn give_up_hanging(&mut self, live: &[UnitIndex], spare: usize) {
        let failed = live.iter().filter(|unit| self.has_failed(**unit)).count();
        let progress = |(unit, writer): (usize, &Option<UnitWriter>)| -> Option<Progress> {
            let writer = writer.as_ref().filter(|writer| writer.failure().is_none())?;
            live.contains(&UnitIndex(unit as u8)).then(|| writer.progress())
        };
        let progress: Vec<_> = self.units.iter().enumerate().map(progress).collect();
        for unit in self.stalls.look(Instant::now(), &progress, spare.saturating_sub(failed)) {
            if let Some(writer) = &mut self.units[unit] {
                let addr = &writer.target.addr;
                tracing::warn!(path = self.file.path, unit, ?addr, "hangs, and is given up");
                writer.give_up();
            }
        }
    }

    fn named(&self, block: Block) -> types::Block {
        in_pool(&self.pool, block)
    }

    fn unit(&self, unit: UnitIndex) -> Option<&UnitWriter> {
        self.units.get(unit.as_usize())?.as_ref()
    }

    fn unit_mut(&mut self, unit: UnitIndex) -> Option<&mut UnitWriter> {
        self.units.get_mut(unit.as_usize())?.as_mut()
    }

    /// Gets the streams of a group's units ready; each connects with its first packet.
    fn start(&mut self, located: &Located) -> Result<()> {
        let group = &located.block.block;
        self.units.clear();
        self.units.resize_with(self.geometry.units(), || None);
        for (i, target) in targets(located).into_iter().enumerate() {
            let unit = located.block.locations[i].unit;
            let Some(place) = self.units.get_mut(unit.as_usize()) else {
                return Err(ClientError::Protocol(format!("{group} has no unit {unit}")));
            };
            *place = Some(UnitWriter::start(UnitSetup {
                session: self.file.session.clone(),
                block: types::Block { id: group.id.internal(unit), len: 0, ..group.clone() },
                token: located.token(i),
                target,
                block_size: self.file.status.block_size,
                checksums: self.file.checksums,
                queue: self.queue,
            }));
        }
        let bound = self.file.session.config.hanging_unit_timeout;
        self.stalls = Stalls::new(self.units.len(), bound, Instant::now());
        Ok(())
    }
}

impl Peers for Streams {
    type Error = ClientError;

    async fn add_block(&mut self, previous: Option<Block>) -> Result<(Block, Vec<bool>)> {
        let previous = previous.map(|block| self.named(block));
        let located = self.file.add_block(previous.as_ref()).await?;
        let group = &located.block.block;
        if !group.id.is_striped() {
            return Err(ClientError::Protocol(format!("{group} is not a block group")));
        }
        self.pool = group.pool.clone();
        self.start(&located)?;
        let placed: Vec<bool> = self.units.iter().map(Option::is_some).collect();
        if placed.contains(&false) {
            tracing::warn!(block = %group, "not every unit has a place");
        }
        Ok((bare(group), placed))
    }

    fn lacks_places(&self, error: &ClientError) -> bool {
        error.is_remote(class::IO)
    }

    fn forget_left_out(&mut self) -> bool {
        let some = self.file.forget_excluded();
        if some {
            tracing::warn!(path = self.file.path, "DataNodes that failed before may be chosen");
        }
        some
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp> {
        let located = self.file.new_stamp(&self.named(block)).await?;
        let stamp = located.block.block.stamp;
        self.restamped = Some(located);
        Ok(stamp)
    }

    async fn update_pipeline(&mut self, old: Block, new: Block, units: &[UnitIndex]) -> Result<()> {
        let indices = (0..self.units.len() as u8).map(UnitIndex);
        let named = indices.map(|unit| self.unit(unit).filter(|_| units.contains(&unit)));
        let targets: Vec<Option<&Target>> =
            named.map(|writer| writer.map(|writer| &writer.target)).collect();
        self.file.update_pipeline(&self.named(old), &self.named(new), &targets).await
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<()> {
        let last = last.map(|block| self.named(block));
        self.file.complete(last.as_ref()).await
    }

    async fn flush(&mut self, live: &[UnitIndex], spare: usize) {
        let between = self.patience();
        for unit in live {
            while let Some(writer) = self.unit_mut(*unit)
                && tokio::time::timeout(between, writer.acknowledged()).await.is_err()
            {
                self.give_up_hanging(live, spare);
            }
        }
    }

    fn has_failed(&self, unit: UnitIndex) -> bool {
        self.unit(unit).is_some_and(|writer| writer.failure().is_some())
    }

    fn acked_len(&self, unit: UnitIndex) -> u64 {
        self.unit(unit).map_or(0, UnitWriter::acked_len)
    }

    async fn reopen(&mut self, units: &[UnitIndex], stamp: GenerationStamp) {
        self.reopening = (Instant::now(), Vec::with_capacity(units.len()));
        let Some(located) = self.restamped.take() else { return };
        for unit in units {
            if let Some(writer) = self.unit_mut(*unit) {
                let answer = writer.restamp(stamp, located.token(unit.as_usize())).await;
                self.reopening.1.push((*unit, answer));
            }
        }
    }

    async fn reopened(&mut self, unit: UnitIndex, is_spare: bool) -> bool {
        let (since, answers) = &mut self.reopening;
        let Some(at) = answers.iter().position(|(asked, _)| *asked == unit) else { return false };
        let (_, answer) = answers.swap_remove(at);
        let config = &self.file.session.config;
        let longest = config.socket_timeout / 2;
        let bound = if is_spare { config.hanging_unit_timeout.min(longest) } else { longest };
        let deadline = *since + bound;
        let took = matches!(tokio::time::timeout_at(deadline.into(), answer).await, Ok(Ok(())));
        if !took {
            tracing::warn!(path = self.file.path, %unit, "did not take the new stamp in time");
        }
        took
    }

    async fn send_last(&mut self, units: &[UnitIndex]) {
        for unit in units {
            if let Some(writer) = self.unit_mut(*unit) {
                writer.send_last().await;
            }
        }
    }

    fn leave_out(&mut self, unit: UnitIndex) {
        let Some(writer) = self.unit_mut(unit) else { return };
        writer.stop();
        let target = writer.target.clone();
        self.file.exclude(target);
    }

    fn ends_early(&mut self, block: Block) {
        let (block, len) = (self.named(block), block.len);
        tracing::warn!(%block, len, "ended early: few units are left");
    }

    fn end(&mut self) {
        self.units.clear();
    }
}
