//! The engine to read: table look-ups, no instructions beyond those of every processor.
//!
//! It is the judge of all others in `tests/it/engines.rs`, and does what is too short for them.

use super::Pass;
use crate::field::PRODUCTS;

/// Writes the outputs of the pass.
pub(super) fn run(pass: Pass<'_, '_>) {
    run_from(pass, 0);
}

/// Writes the outputs from byte `from` on.
pub(super) fn run_from(pass: Pass<'_, '_>, from: usize) {
    let rows = pass.outputs.len();
    for (row, output) in pass.outputs.iter_mut().enumerate() {
        let output = &mut output[from..];
        output.fill(0);
        for (col, source) in pass.sources.iter().enumerate() {
            let coefficient = pass.coefficients[col * rows + row];
            add_product(output, coefficient, &source[from..]);
        }
    }
}

fn add_product(output: &mut [u8], coefficient: u8, source: &[u8]) {
    let pairs = output.iter_mut().zip(source);
    match coefficient {
        1 => pairs.for_each(|(sum, &x)| *sum ^= x),
        _ => {
            let products = &PRODUCTS[coefficient as usize];
            pairs.for_each(|(sum, &x)| *sum ^= products[x as usize]);
        }
    }
}
