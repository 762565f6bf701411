//! Writing an erasure coded file: bytes to cells, cells to parity, `k + m` units at once.
//!
//! A packet is filled, checked and handed to its unit while it is hot; its bytes stay until the
//! parity is computed, packet by packet across the units. Cells shorter than a packet go several to a
//! packet, so many stripes at a time: a band. Up to `m` units may fail: what to do then is decided by
//! `cairn_stripe::write`, and done here. Memory: the packet pool.
//! Source: Hadoop 3.5.0 `DFSStripedOutputStream`.

use crate::datanode::write_block::{Target, targets};
use crate::encryption::FileCipher;
use crate::error::{ClientError, Result};
use crate::packet::{Filling, Packet, PacketPool};
use crate::protocol::convert::Located;
use crate::types::Block;
use crate::write::open_file::OpenFile;
use crate::write_stalls::{Progress, Stalls};
use crate::write_unit::{UnitSetup, UnitWriter};
use bytes::Bytes;
use cairn_codec::Codec;
use cairn_net::Boxed;
use cairn_stripe::write::{GroupLost, GroupWrite, Next};
use cairn_stripe::{Geometry, Policy, UnitIndex};
use cairn_wire::exception::class;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// Commands of a unit that are no packets.
const COMMANDS: usize = 8;

/// Bands that a stream can hold at least, so that one is sent while the next is filled.
const MIN_BANDS: usize = 2;

/// The writer of one erasure coded file.
pub(crate) struct StripedWriter {
    file: OpenFile,
    geometry: Geometry,
    codec: Arc<Codec>,
    pool: Arc<PacketPool>,
    /// A part of a cell, or whole cells.
    packet_len: usize,
    /// Packets of the pool.
    packets: usize,
    group: Option<Group>,
    /// The last group that was written whole.
    previous: Option<Block>,
    /// The packets of the band at hand, of each data unit.
    band: Vec<VecDeque<Bytes>>,
    /// Of each data unit, the packet that takes its next bytes.
    filling: Vec<Option<Filling>>,
    /// Data unit whose cell is being filled.
    unit: usize,
    /// Bytes of that cell so far.
    in_cell: u64,
    position: u64,
    broken: Option<String>,
    /// Of an encrypted file.
    cipher: Option<FileCipher>,
}

/// The block group being written.
struct Group {
    block: Block,
    plan: GroupWrite,
    /// `None` where the NameNode found no place.
    units: Vec<Option<UnitWriter>>,
    /// Data bytes handed to the units.
    len: u64,
    /// Those of them that have their parity.
    in_bands: u64,
    stalls: Stalls,
    /// Failures that the group is to survive at its end.
    margin: usize,
    /// Whether the next group may get more places than this one.
    is_makeshift: bool,
    /// Each unit is whole in the one packet that it is handed.
    is_small: bool,
}

impl StripedWriter {
    pub(crate) fn new(file: OpenFile, policy: Policy) -> Result<StripedWriter> {
        let geometry = Geometry::from(&policy);
        let chunk_len = file.checksums.chunk_len;
        let cell_len = policy.cell_len as usize;
        let argument = |what: String| Err(ClientError::Argument(what));
        if !cell_len.is_multiple_of(chunk_len) {
            return argument(format!(
                "checksums of {chunk_len} bytes do not fill cells of {cell_len}"
            ));
        }
        if geometry.full_group_len(file.status.block_size) == 0 {
            let block_size = file.status.block_size;
            return argument(format!("blocks of {block_size} bytes hold no cell of {cell_len}"));
        }
        let buffer_len = file.session.config.stream_buffer_len;
        let most = buffer_len / (MIN_BANDS * geometry.units());
        let packet_len = packet_len(file.packet_len, cell_len, most);
        let per_band = geometry.units() * cell_len.div_ceil(packet_len);
        let wanted = buffer_len / packet_len;
        let packets = wanted.max(MIN_BANDS * per_band);
        // The data of a band wait for its parity, and each unit has a packet on its way.
        let keep = geometry.k() * cell_len.div_ceil(packet_len) + geometry.units();
        let pool = PacketPool::new(packet_len, packets, keep, file.checksums);
        let codec = file.session.codec(&policy)?;
        Ok(StripedWriter {
            file,
            geometry,
            codec,
            pool,
            packet_len,
            packets,
            group: None,
            previous: None,
            band: vec![VecDeque::new(); geometry.k()],
            filling: (0..geometry.k()).map(|_| None).collect(),
            unit: 0,
            in_cell: 0,
            position: 0,
            broken: None,
            cipher: None,
        })
    }

    /// Has all that is written from now on encrypted.
    pub(crate) fn encrypt(&mut self, cipher: FileCipher) {
        self.cipher = Some(cipher);
    }

    pub(crate) fn path(&self) -> &str {
        &self.file.path
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn buffered_len(&self) -> usize {
        self.pool.held()
    }

    pub(crate) async fn write(&mut self, data: &[u8]) -> Result<()> {
        if let Some(reason) = &self.broken {
            let (path, reason) = (self.file.path.clone(), reason.clone());
            return Err(ClientError::Broken { path, reason });
        }
        let done = self.fill(data).await;
        if let Err(error) = &done {
            self.broken = Some(error.to_string());
            self.group = None;
        }
        done
    }

    async fn fill(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let unit = self.unit;
            let mut filling = match self.filling[unit].take() {
                Some(filling) => filling,
                None => self.take_packet(self.room()).await,
            };
            let left = (self.geometry.cell_len() - self.in_cell).min(data.len() as u64);
            let taken = filling.put(&data[..left as usize]);
            if let Some(cipher) = &self.cipher {
                cipher.apply(self.position, filling.last_mut(taken));
            }
            data = &data[taken..];
            self.position += taken as u64;
            self.in_cell += taken as u64;
            let is_full = filling.is_full();
            match is_full {
                true => self.send_data(unit, filling).await?,
                false => self.filling[unit] = Some(filling),
            }
            if self.in_cell < self.geometry.cell_len() {
                continue;
            }
            self.in_cell = 0;
            self.unit = (unit + 1) % self.geometry.k();
            if self.unit == 0 && is_full {
                self.end_band().await?;
            }
        }
        Ok(())
    }

    /// Bytes that the next packet of the unit at hand may have: those of its cell, or of cells that the group has
    /// room for.
    fn room(&self) -> usize {
        let cell_len = self.geometry.cell_len();
        let left = match self.packet_len as u64 >= cell_len {
            true => {
                let group_len = self.geometry.full_group_len(self.file.status.block_size);
                let in_bands = self.group.as_ref().map_or(0, |group| group.in_bands);
                (group_len - in_bands) / self.geometry.k() as u64
            }
            false => cell_len - self.in_cell,
        };
        left.min(self.packet_len as u64) as usize
    }

    /// An empty packet. While none is free, units that hang are looked for: they hold most of them.
    async fn take_packet(&mut self, limit: usize) -> Filling {
        let pool = self.pool.clone();
        let mut taken = pin!(pool.take(limit));
        loop {
            let Some(group) = &mut self.group else { return taken.await };
            match tokio::time::timeout(group.stalls.between(), &mut taken).await {
                Ok(filling) => return filling,
                Err(_) => group.give_up_hanging(),
            }
        }
    }

    /// Hands a packet of data to its unit.
    fn send_data(&mut self, unit: usize, filling: Filling) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if self.group.is_none() {
                self.group = Some(self.allocate().await?);
            }
            let packet = filling.seal();
            self.band[unit].push_back(packet.data.clone());
            let Some(group) = &mut self.group else { return Ok(()) };
            group.len += packet.data.len() as u64;
            group.send(unit, packet).await;
            Ok(())
        })
    }

    /// Gives a whole band its parity, and ends the group if it is full or should go no further.
    fn end_band(&mut self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            self.send_parity().await?;
            let Some(group) = &mut self.group else { return Ok(()) };
            if group.len == self.geometry.full_group_len(self.file.status.block_size) {
                return self.end_group().await;
            }
            group.mend(&mut self.file).await?;
            if group.is_makeshift || group.plan.should_end(group.margin) {
                tracing::warn!(block = %group.block, len = group.len, "ended early: few units are left");
                return self.end_group().await;
            }
            Ok(())
        })
    }

    /// Computes and sends the parity of the band at hand, which may be short.
    async fn send_parity(&mut self) -> Result<()> {
        let Some(group) = &mut self.group else { return Ok(()) };
        group.in_bands = group.len;
        if !group.plan.needs_parity() {
            self.band.iter_mut().for_each(VecDeque::clear);
            return Ok(());
        }
        // Unit 0 has the longest part of the band, as long as parity.
        while let Some(first) = self.band[0].pop_front() {
            let len = first.len();
            let mut data = vec![first];
            for unit in &mut self.band[1..] {
                data.push(padded(unit.pop_front().unwrap_or_default(), len));
            }
            let mut parity = Vec::with_capacity(self.geometry.m());
            for _ in 0..self.geometry.m() {
                parity.push(self.take_packet(self.packet_len).await);
            }
            let sources: Vec<&[u8]> = data.iter().map(|bytes| &bytes[..]).collect();
            let mut sinks: Vec<&mut [u8]> = parity.iter_mut().map(|p| p.fill(len)).collect();
            self.codec.encode(&sources, &mut sinks)?;
            let Some(group) = &mut self.group else { return Ok(()) };
            for (i, filling) in parity.into_iter().enumerate() {
                group.send(self.geometry.k() + i, filling.seal()).await;
            }
        }
        Ok(())
    }

    /// Has the NameNode choose DataNodes other than those that failed a while ago. Where the others are not
    /// enough, all may be chosen: some may be back. A group cannot be given back; one that was placed on
    /// too few is a makeshift, which ends with its first band.
    async fn place(&mut self) -> Result<(Located, bool)> {
        let previous = self.previous.as_ref();
        let wanted =
            self.geometry.k() + self.file.session.config.write_margin.min(self.geometry.m());
        match self.file.add_block(previous).await {
            Err(error) if error.is_remote(class::IO) && self.file.forget_excluded() => {
                tracing::warn!(%error, "asking again with DataNodes that failed before");
                Ok((self.file.add_block(previous).await?, false))
            }
            Ok(located) => {
                let is_makeshift = located.infos.len() < wanted && self.file.forget_excluded();
                Ok((located, is_makeshift))
            }
            Err(error) => Err(error),
        }
    }

    /// Gets places for the next group.
    fn allocate(&mut self) -> Boxed<'_, Result<Group>> {
        Box::pin(async move {
            let (located, is_makeshift) = self.place().await?;
            let block = Block { len: 0, ..located.block.block.clone() };
            if !block.id.is_striped() {
                return Err(ClientError::Protocol(format!("{block} is not a block group")));
            }
            let mut units: Vec<Option<UnitWriter>> = Vec::new();
            units.resize_with(self.geometry.units(), || None);
            for (i, target) in targets(&located).into_iter().enumerate() {
                let unit = located.block.locations[i].unit;
                let Some(place) = units.get_mut(unit.as_usize()) else {
                    return Err(ClientError::Protocol(format!("{block} has no unit {unit}")));
                };
                *place = Some(UnitWriter::start(UnitSetup {
                    session: self.file.session.clone(),
                    block: Block { id: block.id.internal(unit), ..block.clone() },
                    token: located.token(i),
                    target,
                    block_size: self.file.status.block_size,
                    checksums: self.file.checksums,
                    queue: self.packets + COMMANDS,
                }));
            }
            let allocated: Vec<bool> = units.iter().map(Option::is_some).collect();
            let config = &self.file.session.config;
            let tolerated = config.failed_units_tolerated.unwrap_or(self.geometry.m());
            let plan = GroupWrite::new(self.geometry, tolerated, &allocated)
                .map_err(|source| lost(&block, source))?;
            if plan.failed_count() > 0 {
                tracing::warn!(%block, "not every parity unit has a place");
            }
            let stalls = Stalls::new(units.len(), config.hanging_unit_timeout, Instant::now());
            let margin = config.write_margin;
            let (len, in_bands, is_small) = (0, 0, false);
            Ok(Group { block, plan, units, len, in_bands, stalls, margin, is_makeshift, is_small })
        })
    }

    /// Ends the group: all units flushed, mended and closed.
    async fn end_group(&mut self) -> Result<()> {
        let Some(group) = &mut self.group else { return Ok(()) };
        // The end of a small one is on its way.
        if !group.is_small {
            group.flush().await;
            group.mend(&mut self.file).await?;
            group.send_last().await;
        }
        group.flush().await;
        group.note_failures(&mut self.file);
        // What fails so late needs no new stamp: Hadoop counts it only.
        group.plan.check_end().map_err(|source| lost(&group.block, source))?;
        self.previous = Some(Block { len: group.len, ..group.block.clone() });
        self.group = None;
        Ok(())
    }

    pub(crate) async fn close(mut self) -> Result<()> {
        if let Some(reason) = self.broken {
            return Err(ClientError::Broken { path: self.file.path, reason });
        }
        let last: Vec<(usize, Filling)> = self
            .filling
            .iter_mut()
            .enumerate()
            .filter_map(|(unit, filling)| Some((unit, filling.take()?)))
            .filter(|(_, filling)| !filling.data().is_empty())
            .collect();
        // Nothing was sent of the group, and nothing follows.
        if self.group.is_none() && !last.is_empty() {
            self.group = Some(Group { is_small: true, ..self.allocate().await? });
        }
        for (unit, filling) in last {
            self.send_data(unit, filling).await?;
        }
        if self.band.iter().any(|unit| !unit.is_empty()) {
            self.send_parity().await?;
        }
        self.end_group().await?;
        self.file.complete(self.previous.as_ref()).await
    }
}

impl Group {
    /// Hands a packet to a unit; a unit that failed or has no place takes none.
    async fn send(&mut self, unit: usize, packet: Packet) {
        let index = UnitIndex(unit as u8);
        let (true, Some(writer)) = (self.plan.is_live(index), &mut self.units[unit]) else {
            return;
        };
        let sent = match self.is_small {
            true => writer.send_whole(packet).await,
            false => writer.send(packet).await,
        };
        if !sent {
            // Noted with its reason at the end of the band.
            writer.stop();
        }
    }

    /// The live units that have data.
    fn writing(&mut self) -> impl Iterator<Item = &mut UnitWriter> {
        let (plan, len) = (&self.plan, self.len);
        let writing =
            move |unit: usize| (plan.is_live(index(unit)), plan.is_writing(index(unit), len));
        self.units
            .iter_mut()
            .enumerate()
            .filter(move |(unit, _)| writing(*unit) == (true, true))
            .filter_map(|(_, writer)| writer.as_mut())
    }

    /// Waits until every live unit has acknowledged what it was sent, or failed, or been given up.
    async fn flush(&mut self) {
        let between = self.stalls.between();
        for unit in 0..self.units.len() {
            if !self.plan.is_live(index(unit)) || !self.plan.is_writing(index(unit), self.len) {
                continue;
            }
            while let Some(writer) = &mut self.units[unit]
                && tokio::time::timeout(between, writer.acknowledged()).await.is_err()
            {
                self.give_up_hanging();
            }
        }
    }

    /// Gives units up that hang while the others keep up, as many as the group can spare.
    fn give_up_hanging(&mut self) {
        let has_failed = |writer: &&UnitWriter| writer.failure().is_some();
        let live = |unit: usize| self.plan.is_live(index(unit));
        let writers = self.units.iter().enumerate().filter(|(unit, _)| live(*unit));
        let unnoticed =
            writers.filter_map(|(_, writer)| writer.as_ref()).filter(has_failed).count();
        let spare = self.plan.spare(self.margin).saturating_sub(unnoticed);
        let progress: Vec<Option<Progress>> = self
            .units
            .iter()
            .enumerate()
            .map(|(unit, writer)| {
                let writer = writer.as_ref().filter(|writer| live(unit) && !has_failed(writer))?;
                Some(writer.progress())
            })
            .collect();
        for unit in self.stalls.look(Instant::now(), &progress, spare) {
            if let Some(writer) = &mut self.units[unit] {
                let addr = &writer.target.addr;
                tracing::warn!(block = %self.block, unit, ?addr, "hangs, and is given up");
                writer.give_up();
            }
        }
    }

    async fn send_last(&mut self) {
        for writer in self.writing() {
            writer.send_last().await;
        }
    }

    /// Takes notice of units that failed, and leaves their DataNodes out from now on.
    fn note_failures(&mut self, file: &mut OpenFile) {
        for (unit, writer) in self.units.iter_mut().enumerate() {
            let Some(writer) = writer else { continue };
            if self.plan.is_live(index(unit)) && writer.failure().is_some() {
                self.plan.failed(index(unit));
                writer.stop();
                file.exclude(writer.target.clone());
            }
        }
    }

    /// Fences off units that failed since the last band: a new stamp for all others.
    async fn mend(&mut self, file: &mut OpenFile) -> Result<()> {
        self.note_failures(file);
        while let Next::Restamp { .. } = self.check()? {
            self.flush().await;
            self.note_failures(file);
            let Next::Restamp { units } = self.check()? else { return Ok(()) };
            self.restamp(file, &units).await?;
        }
        Ok(())
    }

    fn check(&self) -> Result<Next> {
        self.plan.check(self.len).map_err(|source| lost(&self.block, source))
    }

    /// Gives `units` a new stamp and tells the NameNode, unless one fails on the way.
    async fn restamp(&mut self, file: &mut OpenFile, units: &[UnitIndex]) -> Result<()> {
        let old = Block { len: self.len, ..self.block.clone() };
        let located = file.new_stamp(&old).await?;
        let stamp = located.block.block.stamp;
        let config = &file.session.config;
        let (now, longest) = (Instant::now(), config.socket_timeout / 2);
        let bound = config.hanging_unit_timeout.min(longest);
        let mut answers = Vec::with_capacity(units.len());
        for unit in units {
            if let Some(writer) = &mut self.units[unit.as_usize()] {
                let token = located.token(unit.as_usize());
                answers.push((*unit, writer.restamp(stamp, token).await));
            }
        }
        for (unit, answer) in answers {
            let can_spare = self.plan.spare(self.margin) > 0;
            let deadline = now + if can_spare { bound } else { longest };
            if !matches!(tokio::time::timeout_at(deadline.into(), answer).await, Ok(Ok(()))) {
                tracing::warn!(block = %self.block, %unit, "did not take the new stamp in time");
                self.plan.failed(unit);
                if let Some(writer) = &mut self.units[unit.as_usize()] {
                    writer.stop();
                    file.exclude(writer.target.clone());
                }
            }
        }
        if !self.plan.restamped(units) {
            return Ok(());
        }
        let acked = self.acked_len();
        let old = Block { len: acked, ..self.block.clone() };
        let new = Block { stamp, ..old.clone() };
        let targets: Vec<Option<&Target>> = self
            .units
            .iter()
            .enumerate()
            .map(|(unit, writer)| {
                writer.as_ref().filter(|_| units.contains(&index(unit))).map(|w| &w.target)
            })
            .collect();
        file.update_pipeline(&old, &new, &targets).await?;
        self.block.stamp = stamp;
        Ok(())
    }

    fn acked_len(&self) -> u64 {
        let acked: Vec<Option<u64>> = self
            .units
            .iter()
            .enumerate()
            .map(|(unit, writer)| {
                writer.as_ref().filter(|_| self.plan.is_live(index(unit))).map(|w| w.acked_len())
            })
            .collect();
        self.plan.acked_len(self.len, &acked)
    }
}

/// Bytes of a packet: as many as are wanted, but a part of a cell, or whole cells and then at most `most` bytes if there
/// are several.
fn packet_len(wanted: usize, cell_len: usize, most: usize) -> usize {
    match wanted < cell_len {
        true => wanted,
        false => (wanted.min(most) / cell_len).max(1) * cell_len,
    }
}

fn index(unit: usize) -> UnitIndex {
    UnitIndex(unit as u8)
}

fn lost(block: &Block, source: GroupLost) -> ClientError {
    ClientError::GroupLost { block: block.to_string(), source }
}

/// The bytes, with zeros behind them up to `len`.
fn padded(bytes: Bytes, len: usize) -> Bytes {
    if bytes.len() == len {
        return bytes;
    }
    let mut longer = bytes.to_vec();
    longer.resize(len, 0);
    longer.into()
}
