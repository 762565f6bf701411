//! Reed-Solomon with a Cauchy matrix: Hadoop's `rs`, ISA-L's matrix.

use crate::field;
use crate::matrix::Matrix;

/// The parity rows: cell (i, j) is 1 / ((k + i) + j), where `+` is the field's addition.
///
/// Every square part of a Cauchy matrix is regular, so any k of the k + m units suffice.
///
/// Source: Hadoop 3.5.0 `RSUtil#genCauchyMatrix`; ISA-L `gf_gen_cauchy1_matrix`.
pub(crate) fn parity_rows(data_count: usize, parity_count: usize) -> Matrix {
    Matrix::from_fn(parity_count, data_count, |row, col| {
        field::invert((data_count + row) as u8 ^ col as u8)
    })
}
