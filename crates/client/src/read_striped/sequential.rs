//! The bytes of groups in order, stripe by stripe, from streams of whole cells.

use super::Group;
use super::cells::{CellPool, CellStream, PooledCell, Reading};
use crate::datanode::hedges::Hedge;
use crate::datanode::read_range::ReadRange;
use crate::datanode::silent::is_closed;
use crate::error::{ClientError, Result};
use crate::read::opened::{OpenedFile, REFRESHES};
use bytes::Bytes;
use cairn_stripe::read::{Decode, Progress, StripeRead, UnitHealth};
use cairn_stripe::{Policy, UnitIndex};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Cells are read ahead, and the caller sets the pace: no shorter wait for one says anything.
const SHORTEST_CELL_WAIT: Duration = Duration::from_millis(50);

/// Bytes that may wait for the caller.
const CHUNKS_LEN: u32 = 1 << 20;

/// Races that a unit may lose in a group before it is left out: once says nothing on a busy machine, and to decode
/// all that is left of a group makes it busier.
const RACES: u32 = 2;

/// Sends the bytes of a range of the file in order.
pub(crate) async fn stream(
    file: &OpenedFile,
    policy: &Policy,
    range: Range<u64>,
    sink: &mpsc::Sender<Result<Bytes>>,
    held: Arc<AtomicUsize>,
) -> Result<()> {
    let mut at = range.start;
    let mut refreshes = 0;
    let reading = Reading::new(policy.cell_len.into(), cells_ahead(file, policy));
    let memory = Memory::new(&reading, policy, held);
    while at < range.end {
        let group = Group::at(file, policy, at)?;
        let start = group.located.block.offset_in_file;
        let in_group = at - start..(range.end - start).min(group.len());
        let mut reader = GroupReader::new(group, in_group, reading, memory.clone());
        let sent = reader.run(sink).await;
        let reached = start + reader.range.start;
        if reached > at {
            refreshes = 0;
        }
        at = reached;
        match sent {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(ClientError::TooManyLost { .. }) if refreshes < REFRESHES => {
                refreshes += 1;
                file.refresh(at).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes that a sequential read is ahead of its caller.
pub(crate) fn ahead_len(file: &OpenedFile, policy: &Policy) -> u64 {
    cells_ahead(file, policy) as u64 * policy.stripe_len()
}

/// Cells that each unit is read ahead, so that all of them fit the stream's buffer.
fn cells_ahead(file: &OpenedFile, policy: &Policy) -> usize {
    let cells = file.session.config.stream_buffer_len as u64 / policy.stripe_len();
    (cells as usize).saturating_sub(2).clamp(1, 16)
}

/// Chunks, of a cell each, that may wait for the caller: short ones are not worth waking it for each.
pub(crate) fn chunks_ahead(policy: &Policy) -> usize {
    (CHUNKS_LEN / policy.cell_len).max(1) as usize
}

struct GroupReader<'a> {
    group: Group<'a>,
    /// What is still to be sent, as offsets in the group.
    range: Range<u64>,
    units: Vec<Unit>,
    reading: Reading,
    memory: Memory,
}

/// Memory that a stream uses again and again.
#[derive(Clone)]
struct Memory {
    /// What is read.
    runs: Arc<CellPool>,
    /// Cells that are decoded.
    decoded: Arc<CellPool>,
}

impl Memory {
    /// That of a stream, counted in `held`.
    fn new(reading: &Reading, policy: &Policy, held: Arc<AtomicUsize>) -> Memory {
        let runs = (reading.ahead + 2) * policy.schema.data_units();
        let decoded = policy.schema.parity_units() * (1 + chunks_ahead(policy));
        Memory { runs: CellPool::new(runs, held.clone()), decoded: CellPool::new(decoded, held) }
    }
}

#[derive(Default)]
struct Unit {
    stream: Option<CellStream>,
    /// The cell of the stripe at hand.
    cell: Option<Bytes>,
    /// Is late, or was so often that it is not asked again in this group while others do.
    late: bool,
    /// Stripes in which it was late and decoding was quicker.
    lost_races: u32,
    waiting: bool,
}

impl<'a> GroupReader<'a> {
    fn new(
        group: Group<'a>,
        range: Range<u64>,
        reading: Reading,
        memory: Memory,
    ) -> GroupReader<'a> {
        let mut units = Vec::new();
        units.resize_with(group.geometry.units(), Unit::default);
        GroupReader { group, range, units, reading, memory }
    }

    /// Sends the range; false when nobody takes it any more.
    async fn run(&mut self, sink: &mpsc::Sender<Result<Bytes>>) -> Result<bool> {
        while self.range.start < self.range.end {
            let stripe = self.range.start / self.group.geometry.stripe_len();
            let stripe_end = (stripe + 1) * self.group.geometry.stripe_len();
            let wanted = self.range.start..self.range.end.min(stripe_end);
            self.read_stripe(stripe, wanted.clone()).await?;
            for span in self.group.geometry.cells(wanted) {
                let cell = self.units[span.unit.as_usize()].cell.clone().unwrap_or_default();
                let from = span.offset_in_cell as usize;
                let chunk = cell.slice(from..from + span.len as usize);
                if sink.send(Ok(chunk)).await.is_err() {
                    return Ok(false);
                }
                self.range.start += span.len;
            }
        }
        Ok(true)
    }

    /// Gets the cells of a stripe that `wanted` touches, read or decoded.
    async fn read_stripe(&mut self, stripe: u64, wanted: Range<u64>) -> Result<()> {
        for unit in &mut self.units {
            unit.cell = None;
            unit.waiting = false;
        }
        let health = self.health();
        let geometry = self.group.geometry;
        let mut plan = StripeRead::new(&geometry, self.group.len(), stripe, wanted, &health);
        self.ask(&mut plan, stripe)?;
        self.drop_unused(stripe);
        let session = &self.group.file.session.clone();
        let longest = session.config.hedge_after;
        let start = Instant::now();
        let mut hedged: Option<Hedge<'_>> = None;
        let mut hedge_after =
            session.cell_paces.bound(longest).max(SHORTEST_CELL_WAIT).min(longest);
        loop {
            match plan.progress() {
                Progress::Ready => {
                    self.settle_late(start);
                    return Ok(());
                }
                Progress::Decode(decode) => {
                    if let Some(hedge) = &hedged {
                        hedge.won();
                    }
                    self.decode(stripe, &decode)?;
                    self.settle_late(start);
                    return Ok(());
                }
                Progress::Waiting => {}
            }
            match tokio::time::timeout(hedge_after, next_cell(&mut self.units)).await {
                Ok((unit, Ok(cell))) => {
                    let len = cell.len() as u64;
                    self.units[unit.as_usize()].cell = Some(cell);
                    self.on_time(unit, start.elapsed());
                    plan.arrived(unit, 0..len);
                }
                Ok((unit, Err(error))) => {
                    match self.lose(unit, &error) {
                        true => plan.again(unit),
                        false => plan.failed(unit),
                    }
                    self.ask(&mut plan, stripe)?;
                }
                Err(_) => {
                    hedge_after = longest;
                    if hedged.is_none() {
                        hedged = session.hedges.begin(session.config.hedged_reads);
                    }
                    if hedged.is_some() {
                        self.hedge(&mut plan, stripe)?;
                    }
                }
            }
        }
    }

    fn health(&self) -> Vec<UnitHealth> {
        let late = self.units.iter().map(|unit| unit.late);
        let known = self
            .group
            .health(&self.group.file.session.cell_paces, Instant::now())
            .into_iter()
            .zip(late);
        known
            .map(|(health, late)| match (health, late) {
                (UnitHealth::Good, true) => UnitHealth::Slow,
                (health, _) => health,
            })
            .collect()
    }

    /// Asks what the plan wants. Streams bring whole cells, so what the plan wants more of a cell
    /// that is there is there too.
    fn ask(&mut self, plan: &mut StripeRead, stripe: u64) -> Result<()> {
        loop {
            let asks = plan.next_asks().map_err(|error| self.group.not_enough(&error))?;
            let mut at_once = false;
            for ask in asks {
                let unit = &mut self.units[ask.unit.as_usize()];
                if let Some(cell) = &unit.cell {
                    plan.arrived(ask.unit, 0..cell.len() as u64);
                    at_once = true;
                } else if !self.ensure_stream(ask.unit, stripe) {
                    plan.failed(ask.unit);
                    at_once = true;
                }
            }
            if !at_once {
                return Ok(());
            }
        }
    }

    /// Has a stream whose next cell is that of `stripe`; false when the unit has no location.
    fn ensure_stream(&mut self, unit: UnitIndex, stripe: u64) -> bool {
        let group = &self.group;
        let state = &mut self.units[unit.as_usize()];
        state.waiting = true;
        if state.stream.as_ref().is_some_and(|stream| stream.is_at(stripe)) {
            return true;
        }
        let Some((index, addr)) = group.location(unit) else { return false };
        let cell_len = group.geometry.cell_len();
        let offset = stripe * cell_len;
        let end_len = group.geometry.internal_block_len(self.range.end, unit);
        // A unit that the range does not reach in its last stripe is read for decoding only.
        let whole = group.geometry.internal_block_len(group.len(), unit);
        let len =
            (end_len.div_ceil(cell_len) * cell_len).max(offset + cell_len).min(whole) - offset;
        state.stream = Some(CellStream::start(
            group.file.session.clone(),
            addr.clone(),
            ReadRange { long_packets: true, ..group.read_range(unit, index, offset, len) },
            self.reading,
            index,
            self.memory.runs.clone(),
        ));
        true
    }

    /// Ends the streams that this stripe does not need.
    fn drop_unused(&mut self, stripe: u64) {
        for unit in &mut self.units {
            if !unit.waiting && unit.stream.as_ref().is_some_and(|s| s.next_stripe <= stripe) {
                unit.stream = None;
            }
        }
    }

    /// Nothing came for a while: when only a few units are out, asks for parity in their stead.
    fn hedge(&mut self, plan: &mut StripeRead, stripe: u64) -> Result<()> {
        let out: Vec<usize> =
            (0..self.units.len()).filter(|unit| self.units[*unit].waiting).collect();
        if out.len() > self.group.geometry.m() {
            return Ok(());
        }
        for unit in out {
            if !self.units[unit].late {
                self.units[unit].late = true;
                plan.late(UnitIndex(unit as u8));
            }
        }
        self.ask(plan, stripe)
    }

    /// A cell came, `wait` after the stripe was begun.
    fn on_time(&mut self, unit: UnitIndex, wait: Duration) {
        let Some(stream) = &self.units[unit.as_usize()].stream else { return };
        let session = &self.group.file.session;
        let addr = &self.group.located.block.locations[stream.location].addr;
        session.cell_paces.answered(addr, wait, session.config.hedge_after);
        session.silent.answered(addr);
    }

    /// At the end of a stripe: units that have not come are given up, and left out if they were late;
    /// those that have come after all are not late.
    fn settle_late(&mut self, began: Instant) {
        for unit in &mut self.units {
            if unit.waiting {
                if let (Some(stream), true) = (unit.stream.take(), unit.late) {
                    // The next groups need not wait for it as well.
                    let addr = &self.group.located.block.locations[stream.location].addr;
                    let session = &self.group.file.session;
                    session.cell_paces.overran(addr, began, Instant::now());
                    if !stream.is_answered() && session.silent.note(addr) {
                        tracing::warn!(%addr, "does not answer; read around for a while");
                    }
                    unit.lost_races += 1;
                    unit.late = unit.lost_races >= RACES;
                }
                unit.waiting = false;
            } else if unit.stream.is_some() {
                unit.late = false;
            }
        }
    }

    /// A unit's stream has failed. True if there is still a place to read the unit from.
    fn lose(&mut self, unit: UnitIndex, error: &ClientError) -> bool {
        let state = &mut self.units[unit.as_usize()];
        state.waiting = false;
        if let Some(stream) = state.stream.take()
            // One that went on until its DataNode closed it can be opened anew there.
            && !(stream.has_delivered && is_closed(error))
        {
            self.group.file.mark_bad(&self.group.located, stream.location, error);
        }
        self.group.location(unit).is_some()
    }

    /// Computes whole cells of the lost units.
    fn decode(&mut self, stripe: u64, decode: &Decode) -> Result<()> {
        let span = decode.range_in_cell.start as usize..decode.range_in_cell.end as usize;
        let mut short: Vec<(usize, Vec<u8>)> = Vec::new();
        for source in &decode.sources {
            let unit = source.as_usize();
            let cell = self.units[unit].cell.as_deref().unwrap_or_default();
            if cell.len() < span.end {
                let mut padded = cell.get(span.start..).unwrap_or_default().to_vec();
                padded.resize(span.len(), 0);
                short.push((unit, padded));
            }
        }
        let mut present: Vec<Option<&[u8]>> = vec![None; self.units.len()];
        for source in &decode.sources {
            let unit = source.as_usize();
            let padded = short.iter().find(|(padded, _)| *padded == unit).map(|(_, p)| &p[..]);
            let whole = || &self.units[unit].cell.as_deref().unwrap_or_default()[span.clone()];
            present[unit] = Some(padded.unwrap_or_else(whole));
        }
        let lost: Vec<usize> = decode.lost.iter().map(|unit| unit.as_usize()).collect();
        let mut cells: Vec<PooledCell> =
            lost.iter().map(|_| self.memory.decoded.take(span.end)).collect();
        let mut out: Vec<&mut [u8]> = cells.iter_mut().map(|c| &mut c[span.clone()]).collect();
        self.group.codec.decode(&present, &lost, &mut out)?;
        tracing::trace!(stripe, ?lost, "decoded");
        for (unit, cell) in lost.into_iter().zip(cells) {
            self.units[unit].cell = Some(cell.share());
        }
        Ok(())
    }
}

/// The next cell of any unit that is waited for, or why there is none.
async fn next_cell(units: &mut [Unit]) -> (UnitIndex, Result<Bytes>) {
    poll_fn(|context| {
        for (index, unit) in units.iter_mut().enumerate() {
            if !unit.waiting {
                continue;
            }
            let Some(stream) = &mut unit.stream else { continue };
            if let Poll::Ready(cell) = stream.poll_next(context) {
                unit.waiting = false;
                stream.next_stripe += 1;
                return Poll::Ready((UnitIndex(index as u8), cell));
            }
        }
        Poll::Pending
    })
    .await
}
