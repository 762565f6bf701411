//! Small dense matrices over GF(2^8): the arithmetic of coefficients, not of data.

use crate::field;
use std::ops::{Index, IndexMut};

/// A matrix of field elements, stored row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    cols: usize,
    cells: Vec<u8>,
}

impl Matrix {
    /// A matrix whose cell at (row, column) is `cell(row, column)`.
    pub(crate) fn from_fn(
        rows: usize,
        cols: usize,
        mut cell: impl FnMut(usize, usize) -> u8,
    ) -> Matrix {
        let cells = (0..rows * cols).map(|i| cell(i / cols, i % cols)).collect();
        Matrix { cols, cells }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.cells.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.cols..][..self.cols]
    }

    /// The inverse of a square matrix, or `None` if it is singular.
    pub(crate) fn inverse(mut self) -> Option<Matrix> {
        let n = self.cols;
        assert_eq!(self.cells.len(), n * n, "only square matrices have an inverse");
        let mut inverse = Matrix::from_fn(n, n, |row, col| u8::from(row == col));
        for pivot in 0..n {
            let row = (pivot..n).find(|&row| self[(row, pivot)] != 0)?;
            self.swap_rows(row, pivot);
            inverse.swap_rows(row, pivot);
            let factor = field::invert(self[(pivot, pivot)]);
            self.scale_row(pivot, factor);
            inverse.scale_row(pivot, factor);
            for row in (0..n).filter(|&row| row != pivot) {
                let factor = self[(row, pivot)];
                self.add_scaled_row(row, pivot, factor);
                inverse.add_scaled_row(row, pivot, factor);
            }
        }
        Some(inverse)
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for col in 0..self.cols {
            self.cells.swap(a * self.cols + col, b * self.cols + col);
        }
    }

    fn scale_row(&mut self, row: usize, factor: u8) {
        for col in 0..self.cols {
            self[(row, col)] = field::multiply(self[(row, col)], factor);
        }
    }

    fn add_scaled_row(&mut self, row: usize, source: usize, factor: u8) {
        for col in 0..self.cols {
            self[(row, col)] ^= field::multiply(self[(source, col)], factor);
        }
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = u8;

    fn index(&self, (row, col): (usize, usize)) -> &u8 {
        &self.cells[row * self.cols + col]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut u8 {
        &mut self.cells[row * self.cols + col]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let matrix = Matrix::from_fn(7, 7, |row, col| field::invert(((row + 7) ^ col) as u8));
        let inverse = matrix.clone().inverse().expect("a Cauchy matrix is regular");
        let product = Matrix::from_fn(7, 7, |row, col| {
            (0..7).fold(0, |sum, i| sum ^ field::multiply(matrix[(row, i)], inverse[(i, col)]))
        });
        assert_eq!(product, Matrix::from_fn(7, 7, |row, col| u8::from(row == col)));
    }

    #[test]
    fn rows_are_swapped_when_a_pivot_is_zero() {
        let swap = Matrix::from_fn(2, 2, |row, col| u8::from(row != col));
        assert_eq!(swap.clone().inverse(), Some(swap));
    }

    #[test]
    fn a_singular_matrix_has_no_inverse() {
        assert_eq!(Matrix::from_fn(3, 3, |row, _| row as u8 + 1).inverse(), None);
    }
}
