//! A byte range of a stripe, read from exactly the bytes of the units that the plan names.

use super::Group;
use crate::datanode::pace::Expected;
use crate::datanode::read_block::read_whole;
use crate::error::{ClientError, Result};
use crate::read::{OpenedFile, REFRESHES};
use cairn_stripe::read::{Ask, Decode, Progress, StripeRead};
use cairn_stripe::{Policy, UnitIndex};
use std::ops::Range;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Fills `buf` with the bytes from `offset` on, which lie in one group.
pub(crate) async fn read_at(
    file: &OpenedFile,
    policy: &Policy,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let mut filled = 0;
    let mut refreshes = 0;
    while filled < buf.len() {
        let at = offset + filled as u64;
        let group = Group::at(file, policy, at)?;
        let start = at - group.located.block.offset_in_file;
        let left_in_stripe = policy.stripe_len() - start % policy.stripe_len();
        let count = left_in_stripe.min((buf.len() - filled) as u64);
        let part = &mut buf[filled..filled + count as usize];
        match read_stripe(&group, start..start + count, part).await {
            Ok(()) => filled += count as usize,
            Err(ClientError::TooManyLost { .. }) if refreshes < REFRESHES => {
                refreshes += 1;
                file.refresh(at).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a read of one unit brought: from which location, and after how long.
type Answer = (Ask, usize, Duration, Result<Vec<u8>>);

/// The answers so far, by unit.
type Pieces = Vec<Vec<(Range<u64>, Vec<u8>)>>;

async fn read_stripe(group: &Group<'_>, wanted: Range<u64>, buf: &mut [u8]) -> Result<()> {
    let geometry = group.geometry;
    let stripe = wanted.start / geometry.stripe_len();
    let inner = &group.file.fs.inner;
    let paces = &inner.paces;
    let health = group.health(paces, Instant::now());
    let mut plan = StripeRead::new(&geometry, group.len(), stripe, wanted.clone(), &health);
    let mut pieces: Pieces = vec![Vec::new(); geometry.units()];
    let mut reads: JoinSet<Answer> = JoinSet::new();
    let mut out: Vec<Ask> = Vec::new();
    let longest = inner.config.hedge_after;
    let mut deadline = Instant::now() + paces.bound(longest);
    ask(group, stripe, &mut plan, &mut reads, &mut out)?;
    if doubt(group, &mut plan, &out) {
        ask(group, stripe, &mut plan, &mut reads, &mut out)?;
    }
    let decode = loop {
        match plan.progress() {
            Progress::Ready => break None,
            Progress::Decode(decode) => break Some(decode),
            Progress::Waiting => {}
        }
        match tokio::time::timeout_at(deadline.into(), reads.join_next()).await {
            Ok(Some(Ok((ask_, location, wait, answer)))) => {
                out.retain(|out| *out != ask_);
                match answer {
                    Ok(bytes) => {
                        let addr = &group.located.block.locations[location].addr;
                        paces.answered(addr, wait, longest);
                        plan.arrived(ask_.unit, ask_.range_in_cell.clone());
                        pieces[ask_.unit.as_usize()].push((ask_.range_in_cell, bytes));
                    }
                    Err(error) => {
                        group.file.mark_bad(&group.located, location, &error);
                        plan.failed(ask_.unit);
                        pieces[ask_.unit.as_usize()].clear();
                        ask(group, stripe, &mut plan, &mut reads, &mut out)?;
                    }
                }
            }
            Ok(Some(Err(panic))) => return Err(ClientError::Protocol(panic.to_string())),
            Ok(None) => return Err(ClientError::Protocol("a read without an end".to_string())),
            Err(_) => {
                out.iter().for_each(|ask| plan.late(ask.unit));
                deadline = Instant::now() + longest;
                ask(group, stripe, &mut plan, &mut reads, &mut out)?;
            }
        }
    };
    // Reads that are still out are given up when the set is dropped.
    if let Some(decode) = &decode {
        let now = Instant::now();
        let lost = out.iter().filter(|ask| decode.lost.contains(&ask.unit));
        lost.filter_map(|ask| group.location(ask.unit)).for_each(|(_, a)| paces.overran(a, now));
    }
    if let Some(decode) = decode {
        let cells = decode_range(group, &decode, &pieces)?;
        for (unit, cell) in decode.lost.iter().zip(cells) {
            pieces[unit.as_usize()] = vec![(decode.range_in_cell.clone(), cell)];
        }
    }
    for span in geometry.cells(wanted.clone()) {
        let range = span.offset_in_cell..span.offset_in_cell + span.len;
        let at = (span.offset_in_group - wanted.start) as usize;
        let part = &mut buf[at..at + span.len as usize];
        copy_range(&pieces[span.unit.as_usize()], range, part);
    }
    Ok(())
}

/// Gives up waiting for units of which nobody knows whether they are quick again, so that others are
/// asked beside them. True if there are such units.
fn doubt(group: &Group<'_>, plan: &mut StripeRead, out: &[Ask]) -> bool {
    let (paces, now) = (&group.file.fs.inner.paces, Instant::now());
    let is_uncertain = |unit: UnitIndex| {
        let found = group.location(unit);
        found.is_some_and(|(_, addr)| paces.expect(addr, now) == Expected::Uncertain)
    };
    let doubted: Vec<UnitIndex> =
        out.iter().map(|ask| ask.unit).filter(|unit| is_uncertain(*unit)).collect();
    doubted.iter().for_each(|unit| plan.late(*unit));
    !doubted.is_empty()
}

/// Starts the reads that the plan wants.
fn ask(
    group: &Group<'_>,
    stripe: u64,
    plan: &mut StripeRead,
    reads: &mut JoinSet<Answer>,
    out: &mut Vec<Ask>,
) -> Result<()> {
    loop {
        let asks = plan.next_asks().map_err(|error| group.not_enough(&error))?;
        let mut lost = false;
        for ask in asks {
            let Some((location, addr)) = group.location(ask.unit) else {
                plan.failed(ask.unit);
                lost = true;
                continue;
            };
            let offset = stripe * group.geometry.cell_len() + ask.range_in_cell.start;
            let len = ask.range_in_cell.end - ask.range_in_cell.start;
            let range = group.read_range(ask.unit, location, offset, len);
            let read = read_whole(group.file.fs.inner.clone(), addr.clone(), range);
            out.push(ask.clone());
            reads.spawn(async move {
                let start = Instant::now();
                let answer = read.await;
                (ask, location, start.elapsed(), answer)
            });
        }
        if !lost {
            return Ok(());
        }
    }
}

/// Computes the lost units over the range to decode.
fn decode_range(group: &Group<'_>, decode: &Decode, pieces: &Pieces) -> Result<Vec<Vec<u8>>> {
    let len = (decode.range_in_cell.end - decode.range_in_cell.start) as usize;
    let sources: Vec<(UnitIndex, Vec<u8>)> = decode
        .sources
        .iter()
        .map(|unit| {
            // What no piece covers lies past the end of a short cell: zeros.
            let mut bytes = vec![0; len];
            copy_range(&pieces[unit.as_usize()], decode.range_in_cell.clone(), &mut bytes);
            (*unit, bytes)
        })
        .collect();
    let mut present: Vec<Option<&[u8]>> = vec![None; group.geometry.units()];
    for (unit, bytes) in &sources {
        present[unit.as_usize()] = Some(bytes);
    }
    let lost: Vec<usize> = decode.lost.iter().map(|unit| unit.as_usize()).collect();
    let mut cells = vec![vec![0; len]; lost.len()];
    let mut out: Vec<&mut [u8]> = cells.iter_mut().map(Vec::as_mut_slice).collect();
    group.codec.decode(&present, &lost, &mut out)?;
    Ok(cells)
}

/// Copies what the pieces have of a range of the cell.
fn copy_range(pieces: &[(Range<u64>, Vec<u8>)], range: Range<u64>, to: &mut [u8]) {
    for (have, bytes) in pieces {
        let start = have.start.max(range.start);
        let end = have.end.min(range.end);
        if start < end {
            let from = &bytes[(start - have.start) as usize..(end - have.start) as usize];
            to[(start - range.start) as usize..(end - range.start) as usize].copy_from_slice(from);
        }
    }
}
