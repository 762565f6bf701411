//! Scrubbing a block group: units are as written, and parity is what encoding the data gives.

use super::{FaultKind, Found, Scrub, read_fault};
use crate::datanode::read_block::RemoteReader;
use crate::datanode::read_range::ReadRange;
use crate::error::{ClientError, Result};
use crate::protocol::convert::Located;
use crate::session::Session;
use crate::types::DataNodeAddr;
use cairn_codec::agree::Agreement;
use cairn_codec::crc::crc32c;
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{Policy, UnitIndex};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Bytes of each unit that are compared at once.
const SLICE: u64 = 256 << 10;

/// One unit being read, or known to be zeros or lost.
struct Unit {
    index: UnitIndex,
    len: u64,
    /// Its place in the list of locations.
    location: Option<usize>,
    source: Option<Source>,
    crc: u32,
    fault: Option<FaultKind>,
}

struct Source {
    slices: mpsc::Receiver<Result<Vec<u8>>>,
    task: AbortHandle,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scrub<'_> {
    pub(super) async fn group(
        &mut self,
        policy: &Policy,
        located: &Located,
        recorded: &[Option<u32>],
    ) -> Result<Vec<Found>> {
        let geometry = Geometry::from(policy);
        let codec = self.fs.session.codec(policy)?;
        let indices = (0..geometry.units() as u8).map(UnitIndex);
        let mut units: Vec<Unit> =
            indices.map(|index| self.open(&geometry, located, index)).collect();
        let mut agreement = Agreement::new(&codec);
        let longest = units.iter().map(|unit| unit.len).max().unwrap_or(0);
        let mut start = 0;
        while start < longest {
            let len = SLICE.min(longest - start) as usize;
            let mut slices = Vec::with_capacity(units.len());
            for unit in &mut units {
                slices.push(unit.slice(start, len).await);
            }
            let bytes = units.iter().map(|unit| unit.slice_len(start, len) as u64);
            self.pace(bytes.sum()).await;
            let views: Vec<Option<&[u8]>> = slices.iter().map(Option::as_deref).collect();
            agreement.compare(&views)?;
            start += len as u64;
        }
        self.result.parity_checked += u64::from(agreement.is_complete());
        Ok(self.judge(units, &agreement, recorded))
    }

    fn open(&self, geometry: &Geometry, located: &Located, index: UnitIndex) -> Unit {
        let mut block = located.block.block.clone();
        let len = geometry.internal_block_len(block.len, index);
        let location = located.block.locations.iter().position(|at| at.unit == index);
        let mut unit = Unit { index, len, location, source: None, crc: 0, fault: None };
        if len == 0 {
            return unit;
        }
        let Some(at) = location else {
            unit.fault = Some(FaultKind::Missing);
            return unit;
        };
        (block.id, block.len) = (block.id.internal(index), len);
        let range =
            ReadRange { block, token: located.token(at), offset: 0, len, long_packets: false };
        let addr = located.block.locations[at].addr.clone();
        unit.source = Some(Source::start(self.fs.session.clone(), addr, range));
        unit
    }

    /// What all slices together say of each unit.
    fn judge(
        &mut self,
        units: Vec<Unit>,
        agreement: &Agreement<'_>,
        recorded: &[Option<u32>],
    ) -> Vec<Found> {
        let mut faults: Vec<Found> = Vec::new();
        let record_of = |unit: UnitIndex| recorded.get(unit.as_usize()).copied().flatten();
        let (mut is_explained, mut as_written) = (false, vec![false; units.len()]);
        for unit in &units {
            let found = unit.crc;
            let kind = match (unit.fault.clone(), record_of(unit.index)) {
                (Some(fault), _) => fault,
                (None, Some(recorded)) if unit.len > 0 => {
                    self.result.compared_with_record += 1;
                    as_written[unit.index.as_usize()] = found == recorded;
                    if found == recorded {
                        continue;
                    }
                    is_explained = true;
                    FaultKind::NotAsWritten { recorded, found }
                }
                (None, _) => continue,
            };
            faults.push((unit.location, Some(unit.index), kind));
        }
        if agreement.all_agree() || is_explained {
            return faults;
        }
        let may_be_wrong = |unit: usize| {
            let known = &units[unit];
            !as_written[unit] && known.len > 0 && known.fault.is_none()
        };
        match agreement.odd_one_out(may_be_wrong) {
            Some(unit) => {
                let Unit { location, index, .. } = units[unit];
                faults.push((location, Some(index), FaultKind::OddOneOut));
            }
            None => faults.push((None, None, FaultKind::Disagrees)),
        }
        faults
    }
}

impl Unit {
    /// How many of the `len` bytes from `start` on it has.
    fn slice_len(&self, start: u64, len: usize) -> usize {
        self.len.saturating_sub(start).min(len as u64) as usize
    }

    /// Its bytes with zeros behind its end; `None` if it cannot be read any more.
    async fn slice(&mut self, start: u64, len: usize) -> Option<Vec<u8>> {
        if self.fault.is_some() {
            return None;
        }
        let own = self.slice_len(start, len);
        let mut bytes = Vec::new();
        if let (true, Some(source)) = (own > 0, &mut self.source) {
            let ended = || ClientError::Protocol("the unit is too short".to_string());
            match source.slices.recv().await.unwrap_or_else(|| Err(ended())) {
                Ok(read) => {
                    self.crc = crc32c(self.crc, &read);
                    bytes = read;
                }
                Err(error) => {
                    self.fault = Some(read_fault(error));
                    return None;
                }
            }
        }
        bytes.resize(len, 0);
        Some(bytes)
    }
}

impl Source {
    fn start(session: Arc<Session>, addr: DataNodeAddr, range: ReadRange) -> Source {
        let (sink, slices) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            if let Err(error) = read_slices(session, addr, range, &sink).await {
                // The scrub may have ended.
                let _ = sink.send(Err(error)).await;
            }
        });
        Source { slices, task: task.abort_handle() }
    }
}

async fn read_slices(
    session: Arc<Session>,
    addr: DataNodeAddr,
    range: ReadRange,
    sink: &mpsc::Sender<Result<Vec<u8>>>,
) -> Result<()> {
    let mut reader = RemoteReader::open(session, addr, &range).await?;
    let mut left = range.len;
    let mut slice = Vec::new();
    while let Some(bytes) = reader.next().await? {
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            let want = SLICE.min(left) as usize;
            let (now, rest) = bytes.split_at(bytes.len().min(want - slice.len()));
            slice.extend_from_slice(now);
            bytes = rest;
            if slice.len() == want {
                left -= want as u64;
                if sink.send(Ok(std::mem::take(&mut slice))).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    reader.finish().await;
    Ok(())
}
