//! One row of the figures: an operation of a code on cells of one size, in cache or from memory.

use crate::isal;
use cairn_codec::{Codec, CodecKind, Engine};
use reed_solomon_erasure::galois_8::ReedSolomon;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Bytes of all cells together for rows "from memory": far more than the last cache level.
const MEMORY_LEN: usize = 1 << 30;

/// How cells lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// At the start of a page: the best case for everyone.
    Page,
    /// 16 bytes behind the start of a page, as malloc gives large buffers.
    Malloc,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether the first m data units are rebuilt, or parity is computed.
    pub decode: bool,
    /// Data units.
    pub k: usize,
    /// Parity units.
    pub m: usize,
    /// Bytes of a cell.
    pub cell_len: usize,
    /// Whether each call works on cells that no cache holds.
    pub from_memory: bool,
}

impl Row {
    /// All rows of the figures.
    pub fn all() -> impl Iterator<Item = Row> {
        [false, true].into_iter().flat_map(|decode| {
            [(6, 3), (10, 4)].into_iter().flat_map(move |(k, m)| {
                [64 << 10, 1 << 20].into_iter().flat_map(move |cell_len| {
                    [false, true].map(|from_memory| Row { decode, k, m, cell_len, from_memory })
                })
            })
        })
    }

    /// Data bytes of one call.
    pub fn data_len(&self) -> usize {
        self.k * self.cell_len
    }

    /// A name such as `encode/6-3/64k/cache`.
    pub fn name(&self) -> String {
        let operation = if self.decode { "decode" } else { "encode" };
        let place = if self.from_memory { "memory" } else { "cache" };
        format!("{operation}/{}-{}/{}k/{place}", self.k, self.m, self.cell_len >> 10)
    }
}

/// The cells of many stripes, used in turn.
pub struct Stripes {
    row: Row,
    memory: Vec<u8>,
    start: usize,
    stripe_count: usize,
    next: usize,
}

impl Stripes {
    /// Stripes with random data: one for a row in cache, a gibibyte of them otherwise.
    pub fn new(row: Row, alignment: Alignment) -> Stripes {
        Stripes::of(row, alignment, if row.from_memory { MEMORY_LEN } else { 0 })
    }

    /// So many stripes with random data as fit into `memory_len` bytes, but at least one.
    pub fn of(row: Row, alignment: Alignment, memory_len: usize) -> Stripes {
        let stripe_len = (row.k + row.m) * Stripes::stride(row.cell_len);
        let stripe_count = 1.max(memory_len / stripe_len);
        let mut memory = vec![0u8; stripe_count * stripe_len + 8192];
        let mut state = 1u64;
        for word in memory.chunks_exact_mut(8) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
        }
        let page = memory.as_ptr().align_offset(4096);
        let start = page + if alignment == Alignment::Malloc { 16 } else { 0 };
        Stripes { row, memory, start, stripe_count, next: 0 }
    }

    /// A page between cells, as an allocator leaves one between large buffers.
    fn stride(cell_len: usize) -> usize {
        cell_len + 4096
    }

    /// The k + m cells of the next stripe.
    fn next(&mut self) -> Vec<&mut [u8]> {
        let (units, stride) = (self.row.k + self.row.m, Stripes::stride(self.row.cell_len));
        let start = self.start + self.next * units * stride;
        self.next = (self.next + 1) % self.stripe_count;
        self.memory[start..start + units * stride]
            .chunks_exact_mut(stride)
            .map(|cell| &mut cell[..self.row.cell_len])
            .collect()
    }
}

/// One implementation at work on one row.
pub enum Contender {
    /// This project's codec on one of its engines.
    Cairn(Codec),
    /// Intel's ISA-L.
    Isal(isal::Tables),
    /// The `reed-solomon-erasure` crate; it knows another matrix, at the same cost.
    Erasure(Box<ReedSolomon>),
    /// The `reed-solomon-simd` crate: another code, whose time grows less with m; it copies all that it is given.
    Simd(Box<(ReedSolomonEncoder, ReedSolomonDecoder)>),
}

impl Contender {
    /// This project on its fastest engine, or on the given one.
    pub fn cairn(row: Row, engine: Engine) -> Contender {
        let codec = Codec::with_engine(CodecKind::Rs, row.k, row.m, engine);
        Contender::Cairn(codec.expect("the schema and the engine exist"))
    }

    /// ISA-L.
    pub fn isal(row: Row) -> Contender {
        Contender::Isal(match row.decode {
            false => isal::Tables::encode(row.k, row.m),
            true => isal::Tables::decode(row.k, row.m, row.m),
        })
    }

    /// The `reed-solomon-erasure` crate.
    pub fn erasure(row: Row) -> Contender {
        Contender::Erasure(Box::new(ReedSolomon::new(row.k, row.m).expect("the schema exists")))
    }

    /// The `reed-solomon-simd` crate.
    pub fn simd(row: Row) -> Contender {
        let encoder = ReedSolomonEncoder::new(row.k, row.m, row.cell_len);
        let decoder = ReedSolomonDecoder::new(row.k, row.m, row.cell_len);
        Contender::Simd(Box::new((
            encoder.expect("the schema exists"),
            decoder.expect("the schema exists"),
        )))
    }

    /// Encodes or rebuilds the next stripe.
    pub fn run(&mut self, stripes: &mut Stripes) {
        let row = stripes.row;
        let mut cells = stripes.next();
        match self {
            Contender::Erasure(code) if row.decode => {
                let mut units: Vec<_> = cells
                    .iter_mut()
                    .enumerate()
                    .map(|(unit, cell)| (&mut **cell, unit >= row.m))
                    .collect();
                code.reconstruct_data(&mut units).expect("m lost units can be rebuilt");
            }
            Contender::Erasure(code) => {
                let (data, parity) = cells.split_at_mut(row.k);
                code.encode_sep(data, parity).expect("the buffers fit");
            }
            // What is computed stays where the crate keeps it: reading it there is free.
            Contender::Simd(code) if row.decode => {
                for (unit, cell) in cells.iter().enumerate().skip(row.m) {
                    let added = match unit.checked_sub(row.k) {
                        None => code.1.add_original_shard(unit, cell),
                        Some(parity) => code.1.add_recovery_shard(parity, cell),
                    };
                    added.expect("the buffers fit");
                }
                code.1.decode().expect("m lost units can be rebuilt");
            }
            Contender::Simd(code) => {
                for cell in &cells[..row.k] {
                    code.0.add_original_shard(cell).expect("the buffers fit");
                }
                code.0.encode().expect("the buffers fit");
            }
            // Decoding: the first m units are the outputs, the other k the sources.
            Contender::Isal(tables) => {
                let split = if row.decode { row.m } else { row.k };
                let (left, right) = cells.split_at_mut(split);
                let (sources, outputs) = if row.decode { (right, left) } else { (left, right) };
                let sources: Vec<&[u8]> = sources.iter().map(|cell| &**cell).collect();
                tables.multiply(&sources, outputs);
            }
            Contender::Cairn(codec) if row.decode => {
                let (lost, present) = cells.split_at_mut(row.m);
                let mut units = vec![None; row.m];
                units.extend(present.iter().map(|cell| Some(&**cell)));
                let names: Vec<usize> = (0..row.m).collect();
                codec.decode(&units, &names, lost).expect("m lost units can be rebuilt");
            }
            Contender::Cairn(codec) => {
                let (data, parity) = cells.split_at_mut(row.k);
                let data: Vec<&[u8]> = data.iter().map(|cell| &**cell).collect();
                codec.encode(&data, parity).expect("the buffers fit");
            }
        }
    }
}
