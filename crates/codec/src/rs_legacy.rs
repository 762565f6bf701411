//! Reed-Solomon as HDFS-RAID computed it: Hadoop's `rs-legacy`.
//!
//! A code word is a polynomial with parity unit 0 as its constant term and the data units above
//! the parity units; it has the roots 2^0 .. 2^(m-1). Parity is what is left of the data after
//! division by the polynomial with these roots.
//!
//! Source: Hadoop 3.5.0 `RSLegacyRawEncoder`, `GaloisField#remainder`.

use crate::field;
use crate::matrix::Matrix;

/// The parity rows: column j holds the remainder of x^(m + j).
pub(crate) fn parity_rows(data_count: usize, parity_count: usize) -> Matrix {
    let generator = generator(parity_count);
    let mut matrix = Matrix::from_fn(parity_count, data_count, |_, _| 0);
    // x^m leaves the generator without its leading term; each next power is one shift further.
    let mut remainder = generator.clone();
    for col in 0..data_count {
        for (row, &coefficient) in remainder.iter().enumerate() {
            matrix[(row, col)] = coefficient;
        }
        let overflow = remainder[parity_count - 1];
        remainder.rotate_right(1);
        remainder[0] = 0;
        for (coefficient, &g) in remainder.iter_mut().zip(&generator) {
            *coefficient ^= field::multiply(overflow, g);
        }
    }
    matrix
}

/// (x + 2^0)(x + 2^1)..(x + 2^(m-1)), constant term first, without the leading 1.
fn generator(parity_count: usize) -> Vec<u8> {
    let mut polynomial = vec![1];
    for exponent in 0..parity_count {
        let root = field::power_of_two(exponent);
        let mut next = vec![0; polynomial.len() + 1];
        for (degree, &coefficient) in polynomial.iter().enumerate() {
            next[degree] ^= field::multiply(coefficient, root);
            next[degree + 1] ^= coefficient;
        }
        polynomial = next;
    }
    polynomial.truncate(parity_count);
    polynomial
}
