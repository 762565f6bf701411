//! Cauchy Reed-Solomon by exclusive or alone: Jerasure's `cauchy_good`.
//!
//! A unit is eight packets. Multiplication by a coefficient is an 8 x 8 matrix of bits, and a parity's packet is the
//! exclusive or of the packets at which its row of bits has ones, so a code is the faster the fewer ones its matrix has.
//! The matrix is a Cauchy matrix whose columns are scaled so that the first row is all ones, and whose other rows are
//! each scaled by that of their elements which leaves the fewest ones. With two parities the second row has the elements
//! with the fewest ones there are.
//!
//! Source: J. Plank and L. Xu, *Optimizing Cauchy Reed-Solomon Codes for Fault-Tolerant Network Storage Applications*
//! (NCA 2006); the matrices and parities are those of Jerasure 2.0 (`tests/golden/jerasure-2.0.txt`), with words of 8 bits
//! and packets of an eighth of a unit. Not wired to any policy.

use crate::matrix::Matrix;
use crate::schedule::{PACKETS, Schedule, ones};
use crate::{CodecError, MAX_UNITS, check, field, recover};
use std::fmt;

/// A code with k data and m parity units, whose lengths in one call are one multiple of eight.
#[derive(Clone)]
pub struct CauchyGood {
    parity_rows: Matrix,
    encoding: Schedule,
}

impl CauchyGood {
    /// A code with `data_count` data and `parity_count` parity units.
    pub fn new(data_count: usize, parity_count: usize) -> Result<CauchyGood, CodecError> {
        let fits = data_count > 0
            && parity_count > 0
            && data_count.saturating_add(parity_count) <= MAX_UNITS;
        if !fits {
            let code = "cauchy-good";
            return Err(CodecError::UnsupportedShape { code, data_count, parity_count });
        }
        let parity_rows = match parity_count {
            2 => with_fewest_ones(data_count),
            _ => improved(data_count, parity_count),
        };
        Ok(CauchyGood { encoding: Schedule::new(&parity_rows), parity_rows })
    }

    /// Number of data units, k.
    pub fn data_count(&self) -> usize {
        self.parity_rows.cols()
    }

    /// Number of parity units, m.
    pub fn parity_count(&self) -> usize {
        self.parity_rows.rows()
    }

    /// Number of all units, k + m.
    pub fn unit_count(&self) -> usize {
        self.data_count() + self.parity_count()
    }

    /// The numbers of data and parity units.
    fn shape(&self) -> (usize, usize) {
        (self.data_count(), self.parity_count())
    }

    /// The coefficients of the parity units, `[m x k]` row by row.
    pub fn parity_coefficients(&self) -> Vec<u8> {
        (0..self.parity_count()).flat_map(|row| self.parity_rows.row(row)).copied().collect()
    }

    /// Ones in the matrix of bits: packets that are added up if nothing is used twice.
    pub fn ones(&self) -> usize {
        self.parity_coefficients().into_iter().map(ones).sum()
    }

    /// Packets that are copied or added to encode.
    pub fn steps(&self) -> usize {
        self.encoding.len()
    }

    /// Computes all parity units from all data units, as [`crate::Codec::encode`] does.
    ///
    /// Fails as that does, and with [`CodecError::UnevenLength`].
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError> {
        let len = check::encoding(self.shape(), data, parity)?;
        check_packets(len)?;
        self.encoding.run(data, parity);
        Ok(())
    }

    /// Rebuilds lost units from k units that are present, as [`crate::Codec::decode`] does.
    ///
    /// Fails as that does, and with [`CodecError::UnevenLength`].
    pub fn decode(
        &self,
        units: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<(), CodecError> {
        let (len, read) = check::decoding(self.shape(), units, lost, out)?;
        check_packets(len)?;
        if lost.is_empty() {
            return Ok(());
        }
        let (present, sources): (Vec<usize>, Vec<&[u8]>) = read.into_iter().unzip();
        Schedule::new(&recover::rows(&self.parity_rows, &present, lost)).run(&sources, out);
        Ok(())
    }
}

impl fmt::Debug for CauchyGood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cauchy-good-{}-{}", self.data_count(), self.parity_count())
    }
}

fn check_packets(len: usize) -> Result<(), CodecError> {
    match len % PACKETS {
        0 => Ok(()),
        _ => Err(CodecError::UnevenLength { parts: PACKETS, len }),
    }
}

/// A Cauchy matrix, improved: `cauchy_original_coding_matrix`, then `cauchy_improve_coding_matrix`.
fn improved(k: usize, m: usize) -> Matrix {
    let cell = |row: usize, col: usize| field::invert(row as u8 ^ (m + col) as u8);
    let scaled = |row, col| field::multiply(cell(row, col), field::invert(cell(0, col)));
    let mut best = Vec::with_capacity(m * k);
    for row in 0..m {
        let cells: Vec<u8> = (0..k).map(|col| scaled(row, col)).collect();
        best.extend(fewest_ones(cells));
    }
    Matrix::from_fn(m, k, |row, col| best[row * k + col])
}

/// A row divided by that of its elements which leaves the fewest ones; the row itself if none leaves fewer.
fn fewest_ones(row: Vec<u8>) -> Vec<u8> {
    let divided = |by: u8| -> Vec<u8> {
        row.iter().map(|&cell| field::multiply(cell, field::invert(by))).collect()
    };
    let total = |cells: &[u8]| cells.iter().map(|&cell| ones(cell)).sum::<usize>();
    let candidates = row.iter().filter(|&&by| by != 1).map(|&by| divided(by));
    // Of equals the first one is taken.
    std::iter::once(row.clone()).chain(candidates).min_by_key(|cells| total(cells)).unwrap_or(row)
}

/// Two rows: ones, and the elements in the order of the ones that they cost.
fn with_fewest_ones(k: usize) -> Matrix {
    let mut elements: Vec<u8> = (1..=u8::MAX).collect();
    elements.sort_by_key(|&element| (ones(element), element));
    Matrix::from_fn(2, k, |row, col| if row == 0 { 1 } else { elements[col] })
}
