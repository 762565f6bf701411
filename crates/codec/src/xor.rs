//! One parity unit, the exclusive or of all data units: Hadoop's `xor`.

use crate::matrix::Matrix;

/// The parity row: all ones.
///
/// Source: Hadoop 3.5.0 `XORRawEncoder`, which writes its first output only; so one parity unit is
/// all that [`crate::Codec`] allows for this code.
pub(crate) fn parity_rows(data_count: usize) -> Matrix {
    Matrix::from_fn(1, data_count, |_, _| 1)
}
