//! Which coefficients rebuild which units: the same for every code that is a matrix over the field.

use crate::field;
use crate::matrix::Matrix;

/// The coefficients that give each lost unit from the k `present` ones (ascending).
///
/// The present parity units are equations over the absent data units alone once the present
/// data units are moved to the other side. There are as many equations as absent data units,
/// so only that small square is inverted, not a k x k matrix.
pub(crate) fn rows(parity_rows: &Matrix, present: &[usize], lost: &[usize]) -> Matrix {
    let k = parity_rows.cols();
    let present_data = present.partition_point(|&unit| unit < k);
    let absent: Vec<usize> =
        (0..k).filter(|unit| present[..present_data].binary_search(unit).is_err()).collect();
    let equations: Vec<usize> = present[present_data..].iter().map(|&unit| unit - k).collect();
    let n = absent.len();
    let square = Matrix::from_fn(n, n, |i, j| parity_rows[(equations[i], absent[j])]);
    let solved = square.inverse().expect("any k units of these codes determine the others");

    // Absent data unit i in terms of the present units.
    let absent_rows = Matrix::from_fn(n, k, |i, col| match col.checked_sub(present_data) {
        None => (0..n).fold(0, |sum, e| {
            let known = parity_rows[(equations[e], present[col])];
            sum ^ field::multiply(solved[(i, e)], known)
        }),
        Some(e) => solved[(i, e)],
    });
    Matrix::from_fn(lost.len(), k, |row, col| match lost[row].checked_sub(k) {
        None => {
            let i = absent.binary_search(&lost[row]).expect("a lost unit is absent");
            absent_rows[(i, col)]
        }
        Some(parity) => {
            let direct = match col < present_data {
                true => parity_rows[(parity, present[col])],
                false => 0,
            };
            (0..n).fold(direct, |sum, i| {
                let factor = parity_rows[(parity, absent[i])];
                sum ^ field::multiply(factor, absent_rows[(i, col)])
            })
        }
    })
}
