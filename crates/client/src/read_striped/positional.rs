//! A byte range of a stripe, read from exactly the bytes of the units that the plan names: what the caller
//! wants straight into the caller's memory, what only decoding needs beside it.

use super::Group;
use crate::datanode::hedges::Hedge;
use crate::datanode::pace::Expected;
use crate::datanode::read_into::read_into;
use crate::datanode::reads::{Place, Reads};
use crate::error::{ClientError, Result};
use crate::read::opened::{OpenedFile, REFRESHES};
use cairn_stripe::read::{Ask, Decode, Progress, StripeRead};
use cairn_stripe::{Policy, UnitIndex};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Stripes that are asked for at once: while one is taken in, DataNodes have the next ones to send.
const AT_ONCE: usize = 3;

/// Fills `buf` with the bytes from `offset` on, which lie in one group. Some stripes are asked for at once.
pub(crate) async fn read_at(
    file: &OpenedFile,
    policy: &Policy,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let start = file.block_at(offset)?.block.offset_in_file;
    let left_in_stripe = policy.stripe_len() - (offset - start) % policy.stripe_len();
    if buf.len() as u64 <= left_in_stripe {
        return read_part(file, policy, offset, buf).await;
    }
    let (first, rest) = buf.split_at_mut(left_in_stripe as usize);
    let stripes = std::iter::once(first).chain(rest.chunks_mut(policy.stripe_len() as usize));
    let (mut reads, mut at) = (Reads::new(), offset);
    for part in stripes {
        let begin = at;
        at += part.len() as u64;
        if reads.len() == AT_ONCE {
            reads.next().await.transpose()?;
        }
        reads.push(read_part(file, policy, begin, part));
    }
    while let Some(done) = reads.next().await {
        done?;
    }
    Ok(())
}

/// Fills `buf` with the bytes from `offset` on, which lie in one stripe.
async fn read_part(file: &OpenedFile, policy: &Policy, offset: u64, buf: &mut [u8]) -> Result<()> {
    let mut refreshes = 0;
    loop {
        let group = Group::at(file, policy, offset)?;
        let start = offset - group.located.block.offset_in_file;
        match read_stripe(&group, start..start + buf.len() as u64, buf).await {
            Err(ClientError::TooManyLost { .. }) if refreshes < REFRESHES => {
                refreshes += 1;
                file.refresh(offset).await?;
            }
            done => return done,
        }
    }
}

/// What a read of one unit brought: from which location, after how long, and where it was put.
type Answer<'b> = (Ask, usize, Duration, Place<'b>, Result<()>);

/// The caller's memory for the wanted bytes of one unit.
struct Slot<'b> {
    range_in_cell: Range<u64>,
    /// Its place in the caller's memory.
    at: usize,
    /// `None` while a read has it or has filled it.
    memory: Option<&'b mut [u8]>,
}

/// A read of a byte range of one stripe, under way. `'g` is the group, `'b` the caller's memory.
struct StripeReading<'g, 'b> {
    group: &'g Group<'g>,
    stripe: u64,
    plan: StripeRead,
    /// By unit; those that are not wanted have none.
    slots: Vec<Option<Slot<'b>>>,
    /// What came, by unit.
    pieces: Vec<Vec<(Range<u64>, Place<'b>)>>,
    reads: Reads<'b, Answer<'b>>,
    out: Vec<Ask>,
    hedge: Option<Hedge<'g>>,
}

async fn read_stripe(group: &Group<'_>, wanted: Range<u64>, buf: &mut [u8]) -> Result<()> {
    let reading = StripeReading::new(group, wanted, buf);
    for (at, bytes) in reading.run().await? {
        buf[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(())
}

impl<'g: 'b, 'b> StripeReading<'g, 'b> {
    fn new(group: &'g Group<'g>, wanted: Range<u64>, buf: &'b mut [u8]) -> StripeReading<'g, 'b> {
        let geometry = group.geometry;
        let stripe = wanted.start / geometry.stripe_len();
        let health = group.health(&group.file.session.paces, Instant::now());
        let plan = StripeRead::new(&geometry, group.len(), stripe, wanted.clone(), &health);
        let mut slots: Vec<Option<Slot<'b>>> = Vec::new();
        slots.resize_with(geometry.units(), || None);
        let (mut rest, mut at) = (buf, 0);
        for span in geometry.cells(wanted) {
            let (memory, behind) = rest.split_at_mut(span.len as usize);
            slots[span.unit.as_usize()] = Some(Slot {
                range_in_cell: span.offset_in_cell..span.offset_in_cell + span.len,
                at,
                memory: Some(memory),
            });
            rest = behind;
            at += span.len as usize;
        }
        let mut pieces = Vec::new();
        pieces.resize_with(geometry.units(), Vec::new);
        let (reads, out, hedge) = (Reads::new(), Vec::new(), None);
        StripeReading { group, stripe, plan, slots, pieces, reads, out, hedge }
    }

    /// Fills the caller's memory; returns what could not be put there, because a late read still had it, and where
    /// it belongs.
    async fn run(mut self) -> Result<Vec<(usize, Vec<u8>)>> {
        let group = self.group;
        let session = &group.file.session;
        let (began, longest) = (Instant::now(), session.config.hedge_after);
        let mut deadline = began + session.paces.bound(longest);
        self.ask()?;
        self.doubt()?;
        loop {
            match self.plan.progress() {
                Progress::Ready => return self.finish(None),
                Progress::Decode(decode) => {
                    self.note_overruns(&decode, began);
                    return self.finish(Some(decode));
                }
                Progress::Waiting => {}
            }
            match tokio::time::timeout_at(deadline.into(), self.reads.next()).await {
                Ok(Some(answer)) => self.take(answer)?,
                Ok(None) => return Err(ClientError::Protocol("a read without an end".to_string())),
                Err(_) => {
                    deadline = Instant::now() + longest;
                    if self.may_hedge() {
                        self.out.iter().for_each(|ask| self.plan.late(ask.unit));
                        self.ask()?;
                    }
                }
            }
        }
    }

    fn take(&mut self, (ask, location, wait, place, answer): Answer<'b>) -> Result<()> {
        let (group, unit) = (self.group, ask.unit.as_usize());
        self.out.retain(|out| *out != ask);
        match answer {
            Ok(()) => {
                let session = &group.file.session;
                let addr = &group.located.block.locations[location].addr;
                session.paces.answered(addr, wait, session.config.hedge_after);
                session.silent.answered(addr);
                self.plan.arrived(ask.unit, ask.range_in_cell.clone());
                self.pieces[unit].push((ask.range_in_cell, place));
                Ok(())
            }
            Err(error) => {
                group.file.mark_bad(&group.located, location, &error);
                let is_out = self.out.iter().any(|out| out.unit == ask.unit);
                match group.location(ask.unit) {
                    // Another DataNode has the unit too.
                    Some(_) if !is_out => self.plan.again(ask.unit),
                    _ => self.plan.failed(ask.unit),
                }
                let mut places = std::mem::take(&mut self.pieces[unit]);
                places.push((ask.range_in_cell, place));
                for (_, place) in places {
                    if let (Place::Caller(memory), Some(slot)) = (place, &mut self.slots[unit]) {
                        slot.memory = Some(memory);
                    }
                }
                self.ask()
            }
        }
    }

    /// Whether others may be asked beside those that were asked.
    fn may_hedge(&mut self) -> bool {
        let session = &self.group.file.session;
        if self.hedge.is_none() {
            self.hedge = session.hedges.begin(session.config.hedged_reads);
        }
        self.hedge.is_some()
    }

    /// Gives up waiting for units of which nobody knows whether they are quick again, so that others are
    /// asked beside them.
    fn doubt(&mut self) -> Result<()> {
        let (group, now) = (self.group, Instant::now());
        let session = &group.file.session;
        if session.is_all_timely(&session.paces) {
            return Ok(());
        }
        let is_uncertain = |unit: &UnitIndex| {
            let found = group.location(*unit);
            found.is_some_and(|(_, addr)| {
                session.expect(&session.paces, addr, now) == Expected::Uncertain
            })
        };
        let doubted: Vec<UnitIndex> =
            self.out.iter().map(|ask| ask.unit).filter(is_uncertain).collect();
        if doubted.is_empty() || !self.may_hedge() {
            return Ok(());
        }
        doubted.iter().for_each(|unit| self.plan.late(*unit));
        self.ask()
    }

    /// Starts the reads that the plan wants.
    fn ask(&mut self) -> Result<()> {
        let group = self.group;
        let session = &group.file.session;
        loop {
            let asks = self.plan.next_asks().map_err(|error| group.not_enough(&error))?;
            let mut lost = false;
            for ask in asks {
                let Some((location, addr)) = group.location(ask.unit) else {
                    self.plan.failed(ask.unit);
                    lost = true;
                    continue;
                };
                let offset = self.stripe * group.geometry.cell_len() + ask.range_in_cell.start;
                let len = ask.range_in_cell.end - ask.range_in_cell.start;
                let range = group.read_range(ask.unit, location, offset, len);
                let slot = self.slots[ask.unit.as_usize()].as_mut();
                let fitting = slot.filter(|slot| slot.range_in_cell == ask.range_in_cell);
                let mut place = match fitting.and_then(|slot| slot.memory.take()) {
                    Some(memory) => Place::Caller(memory),
                    None => Place::Apart(session.scratch.take(len as usize)),
                };
                self.out.push(ask.clone());
                let shape = &group.file.shape;
                self.reads.push(async move {
                    let start = Instant::now();
                    let answer = read_into(session, addr, &range, shape, place.bytes_mut()).await;
                    (ask, location, start.elapsed(), place, answer)
                });
            }
            if !lost {
                return Ok(());
            }
        }
    }

    /// Decoding was quicker than units that were asked.
    fn note_overruns(&self, decode: &Decode, began: Instant) {
        let (group, now) = (self.group, Instant::now());
        let lost = self.out.iter().filter(|ask| decode.lost.contains(&ask.unit));
        let mut overran = false;
        for (_, addr) in lost.filter_map(|ask| group.location(ask.unit)) {
            group.file.session.paces.overran(addr, began, now);
            overran = true;
        }
        if let (Some(hedge), true) = (&self.hedge, overran) {
            hedge.won();
        }
    }

    /// Puts everything in its place.
    fn finish(self, decode: Option<Decode>) -> Result<Vec<(usize, Vec<u8>)>> {
        let StripeReading { group, mut slots, pieces, reads, .. } = self;
        // Reads that are still out are given up.
        drop(reads);
        let scratch = &group.file.session.scratch;
        let mut apart = Vec::new();
        if let Some(decode) = &decode {
            for (unit, cell) in decode_range(group, decode, &pieces, &mut slots)? {
                let Some(Slot { range_in_cell, at, memory }) = &mut slots[unit] else { continue };
                let from = (range_in_cell.start - decode.range_in_cell.start) as usize;
                let len = (range_in_cell.end - range_in_cell.start) as usize;
                match memory.take() {
                    Some(memory) => memory.copy_from_slice(&cell[from..from + len]),
                    None => apart.push((*at, cell[from..from + len].to_vec())),
                }
                scratch.put(cell);
            }
        }
        for (slot, pieces) in slots.iter_mut().zip(pieces) {
            let is_lost = pieces.is_empty();
            if let Some(Slot { range_in_cell, memory: Some(memory), .. }) = slot
                && !is_lost
            {
                copy_range(&pieces, range_in_cell.clone(), memory);
            }
            for (_, place) in pieces {
                if let Place::Apart(bytes) = place {
                    scratch.put(bytes);
                }
            }
        }
        Ok(apart)
    }
}

/// Computes the lost units over the range to decode: where the caller wants just that in the caller's memory, else
/// beside it, which is returned with the unit.
fn decode_range(
    group: &Group<'_>,
    decode: &Decode,
    pieces: &[Vec<(Range<u64>, Place<'_>)>],
    slots: &mut [Option<Slot<'_>>],
) -> Result<Vec<(usize, Vec<u8>)>> {
    let span = &decode.range_in_cell;
    let len = (span.end - span.start) as usize;
    let scratch = &group.file.session.scratch;
    let mut joined: Vec<(usize, Vec<u8>)> = Vec::new();
    for unit in decode.sources.iter().map(|unit| unit.as_usize()) {
        if whole(&pieces[unit], span).is_none() {
            // What no piece covers lies past the end of a short cell: zeros.
            let mut bytes = scratch.take(len);
            bytes.fill(0);
            copy_range(&pieces[unit], span.clone(), &mut bytes);
            joined.push((unit, bytes));
        }
    }
    let mut present: Vec<Option<&[u8]>> = vec![None; group.geometry.units()];
    for unit in decode.sources.iter().map(|unit| unit.as_usize()) {
        let found = joined.iter().find(|(joined, _)| *joined == unit);
        present[unit] = found.map(|(_, bytes)| &bytes[..]).or_else(|| whole(&pieces[unit], span));
    }
    let lost: Vec<usize> = decode.lost.iter().map(|unit| unit.as_usize()).collect();
    let mut beside: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut direct: Vec<Option<&mut [u8]>> = Vec::new();
    for (unit, slot) in slots.iter_mut().enumerate() {
        let slot = slot.as_mut().filter(|slot| slot.range_in_cell == *span && lost.contains(&unit));
        direct.push(slot.and_then(|slot| slot.memory.as_deref_mut()));
    }
    for unit in lost.iter().filter(|unit| direct[**unit].is_none()) {
        beside.push((*unit, scratch.take(len)));
    }
    for (unit, bytes) in &mut beside {
        direct[*unit] = Some(bytes);
    }
    let mut out: Vec<&mut [u8]> = direct.into_iter().flatten().collect();
    group.codec.decode(&present, &lost, &mut out)?;
    joined.into_iter().for_each(|(_, bytes)| scratch.put(bytes));
    Ok(beside)
}

/// The bytes of a range of the cell, if one piece has them all.
fn whole<'a>(pieces: &'a [(Range<u64>, Place<'_>)], range: &Range<u64>) -> Option<&'a [u8]> {
    let has =
        |(have, _): &&(Range<u64>, Place<'_>)| have.start <= range.start && range.end <= have.end;
    let (have, place) = pieces.iter().find(has)?;
    Some(&place.bytes()[(range.start - have.start) as usize..(range.end - have.start) as usize])
}

/// Copies what the pieces have of a range of the cell.
fn copy_range(pieces: &[(Range<u64>, Place<'_>)], range: Range<u64>, to: &mut [u8]) {
    for (have, place) in pieces {
        let start = have.start.max(range.start);
        let end = have.end.min(range.end);
        if start < end {
            let bytes = place.bytes();
            let from = &bytes[(start - have.start) as usize..(end - have.start) as usize];
            to[(start - range.start) as usize..(end - range.start) as usize].copy_from_slice(from);
        }
    }
}
