//! Bytes that anyone can compute: the inputs of the golden vectors.

use cairn_codec::Codec;

/// The first `len` bytes of input `number`; `interop/golden/README.md` says how they arise.
pub fn input(number: usize, len: usize) -> Vec<u8> {
    let mut x = number as u64 + 1;
    std::iter::repeat_with(|| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 56) as u8
    })
    .take(len)
    .collect()
}

/// Inputs 0, 1, .. as the data units of a code.
pub fn data_units(code: &Codec, len: usize) -> Vec<Vec<u8>> {
    (0..code.data_count()).map(|unit| input(unit, len)).collect()
}

/// The parity units of these data units, over buffers that were not empty.
pub fn parity_units(code: &Codec, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut parity = vec![vec![0xa5; data[0].len()]; code.parity_count()];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&data, &mut outputs).expect("the buffers fit the code");
    parity
}

/// Data and parity units of inputs 0, 1, ..
pub fn all_units(code: &Codec, len: usize) -> Vec<Vec<u8>> {
    let mut units = data_units(code, len);
    let parity = parity_units(code, &units);
    units.extend(parity);
    units
}
