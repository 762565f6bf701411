//! What a kernel is given: coefficients in the order in which it reads them, sources, and room for outputs.

use crate::field::AFFINE;
use crate::matrix::Matrix;

/// Most outputs of one pass: their sums, for several vectors each, fill the registers.
pub(super) const GROUP_ROWS: usize = 6;

/// A matrix of coefficients in the order in which kernels read it: group by group, and in each
/// group column by column.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(super) rows: usize,
    cols: usize,
    coefficients: Vec<u8>,
    /// The coefficients as bit matrices, see [`AFFINE`].
    affine: Vec<u64>,
}

impl Tables {
    /// The tables of `matrix`.
    pub(crate) fn new(matrix: &Matrix) -> Tables {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let mut coefficients = Vec::with_capacity(rows * cols);
        for first in (0..rows).step_by(GROUP_ROWS) {
            let group = first..rows.min(first + GROUP_ROWS);
            for col in 0..cols {
                coefficients.extend(group.clone().map(|row| matrix[(row, col)]));
            }
        }
        let affine = coefficients.iter().map(|&c| AFFINE[c as usize]).collect();
        Tables { rows, cols, coefficients, affine }
    }
}

/// One pass over the sources that gives the outputs of one group of rows.
///
/// [`Pass::new`], the only way to make one, has checked every size; the kernels rely on it.
pub(super) struct Pass<'a, 'b> {
    /// Bytes of every source and output.
    pub(super) len: usize,
    /// One coefficient per output for each source: `[sources x outputs]`, source by source.
    pub(super) coefficients: &'a [u8],
    /// The same as bit matrices, see [`AFFINE`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) affine: &'a [u64],
    /// At least one.
    pub(super) sources: &'a [&'a [u8]],
    /// 1 to [`GROUP_ROWS`].
    pub(super) outputs: &'a mut [&'b mut [u8]],
}

impl<'a, 'b> Pass<'a, 'b> {
    pub(super) fn new(
        tables: &'a Tables,
        group: usize,
        sources: &'a [&'a [u8]],
        outputs: &'a mut [&'b mut [u8]],
    ) -> Pass<'a, 'b> {
        let first = group * GROUP_ROWS;
        let rows = GROUP_ROWS.min(tables.rows - first);
        let cells = first * tables.cols..(first + rows) * tables.cols;
        let (coefficients, affine) = (&tables.coefficients[cells.clone()], &tables.affine[cells]);
        let len = sources[0].len();
        assert_eq!(sources.len(), tables.cols);
        assert!(outputs.len() == rows && (1..=GROUP_ROWS).contains(&rows));
        assert!(sources.iter().all(|source| source.len() == len));
        assert!(outputs.iter().all(|output| output.len() == len));
        Pass { len, coefficients, affine, sources, outputs }
    }
}
