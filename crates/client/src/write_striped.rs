//! Writing an erasure coded file: bytes to cells, cells to parity, `k + m` units at once.
//!
//! A packet is filled, checked and handed to its unit while it is hot; its bytes stay until the
//! parity is computed, packet by packet across the units. Cells shorter than a packet go several to a
//! packet, so many stripes at a time: a band. Up to `m` units may fail: what follows then is in
//! `cairn_writer::group`. Memory: the packet pool.
//! Source: Hadoop 3.5.0 `DFSStripedOutputStream`.

mod streams;

use crate::encryption::FileCipher;
use crate::error::{ClientError, Result};
use crate::packet::{Filling, Packet, PacketPool};
use crate::write::open_file::OpenFile;
use bytes::Bytes;
use cairn_codec::Codec;
use cairn_net::Boxed;
use cairn_stripe::{Geometry, Policy, UnitIndex};
use cairn_writer::group::{Groups, Peers, Rules};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use streams::Streams;

/// Commands of a unit that are no packets.
const COMMANDS: usize = 8;

/// Bands that a stream can hold at least, so that one is sent while the next is filled.
const MIN_BANDS: usize = 2;

/// The writer of one erasure coded file.
pub(crate) struct StripedWriter {
    groups: Groups<Streams>,
    geometry: Geometry,
    codec: Arc<Codec>,
    pool: Arc<PacketPool>,
    /// A part of a cell, or whole cells.
    packet_len: usize,
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
        let config = &file.session.config;
        let rules = Rules {
            geometry,
            block_size: file.status.block_size,
            tolerated: config.failed_units_tolerated.unwrap_or(geometry.m()),
            margin: config.write_margin,
        };
        let streams = Streams::new(file, geometry, packets + COMMANDS);
        Ok(StripedWriter {
            groups: Groups::new(streams, rules),
            geometry,
            codec,
            pool,
            packet_len,
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
        &self.groups.peers.file.path
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn buffered_len(&self) -> usize {
        self.pool.held()
    }

    pub(crate) async fn write(&mut self, data: &[u8]) -> Result<()> {
        if let Some(reason) = &self.broken {
            let (path, reason) = (self.path().to_string(), reason.clone());
            return Err(ClientError::Broken { path, reason });
        }
        let done = self.fill(data).await;
        if let Err(error) = &done {
            self.broken = Some(error.to_string());
            self.groups.peers.end();
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
            true => self.groups.room() / self.geometry.k() as u64,
            false => cell_len - self.in_cell,
        };
        left.min(self.packet_len as u64) as usize
    }

    /// An empty packet. While none is free, units that hang are looked for: they hold most of them.
    async fn take_packet(&mut self, limit: usize) -> Filling {
        let pool = self.pool.clone();
        let mut taken = pin!(pool.take(limit));
        if !self.groups.is_open() {
            return taken.await;
        }
        loop {
            match tokio::time::timeout(self.groups.peers.patience(), &mut taken).await {
                Ok(filling) => return filling,
                Err(_) => {
                    let (live, spare) = self.groups.live();
                    self.groups.peers.give_up_hanging(&live, spare);
                }
            }
        }
    }

    /// Hands a packet of data to its unit.
    fn send_data(&mut self, unit: usize, filling: Filling) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if !self.groups.is_open() {
                self.begin_group(false).await?;
            }
            let packet = filling.seal();
            self.band[unit].push_back(packet.data.clone());
            self.groups.sent(packet.data.len() as u64);
            self.send(unit, packet).await;
            Ok(())
        })
    }

    /// Begins a group if there is none; with `is_whole` its units get all their bytes at once.
    fn begin_group(&mut self, is_whole: bool) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let done = self.groups.begin(is_whole).await;
            done.map_err(|error| self.groups.peers.told(error))
        })
    }

    /// Hands a packet to a unit; one that failed or has no place takes none.
    async fn send(&mut self, unit: usize, packet: Packet) {
        if self.groups.is_live(UnitIndex(unit as u8)) {
            let is_whole = self.groups.is_whole();
            self.groups.peers.send(unit, packet, is_whole).await;
        }
    }

    /// Gives a whole band its parity, and ends the group if it is full or should go no further.
    fn end_band(&mut self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            self.send_parity().await?;
            let done = self.groups.end_band().await;
            done.map_err(|error| self.groups.peers.told(error))
        })
    }

    /// Computes and sends the parity of the band at hand, which may be short.
    async fn send_parity(&mut self) -> Result<()> {
        if !self.groups.needs_parity() {
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
            for (i, filling) in parity.into_iter().enumerate() {
                self.send(self.geometry.k() + i, filling.seal()).await;
            }
        }
        Ok(())
    }

    pub(crate) async fn close(mut self) -> Result<()> {
        if let Some(reason) = self.broken {
            return Err(ClientError::Broken { path: self.groups.peers.file.path, reason });
        }
        let last: Vec<(usize, Filling)> = self
            .filling
            .iter_mut()
            .enumerate()
            .filter_map(|(unit, filling)| Some((unit, filling.take()?)))
            .filter(|(_, filling)| !filling.data().is_empty())
            .collect();
        // Nothing was sent of the group, and nothing follows.
        if !self.groups.is_open() && !last.is_empty() {
            self.begin_group(true).await?;
        }
        for (unit, filling) in last {
            self.send_data(unit, filling).await?;
        }
        if self.band.iter().any(|unit| !unit.is_empty()) {
            self.send_parity().await?;
        }
        let done = self.groups.close().await;
        done.map_err(|error| self.groups.peers.told(error))
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

/// The bytes, with zeros behind them up to `len`.
fn padded(bytes: Bytes, len: usize) -> Bytes {
    if bytes.len() == len {
        return bytes;
    }
    let mut longer = bytes.to_vec();
    longer.resize(len, 0);
    longer.into()
}
