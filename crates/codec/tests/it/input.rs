//! Bytes that anyone can compute: the inputs of the golden vectors.

use cairn_codec::{CauchyGood, Codec, CodecError, Hitchhiker};

/// What all codes can do.
pub trait Code {
    fn data_count(&self) -> usize;
    fn parity_count(&self) -> usize;
    fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError>;
    fn decode(
        &self,
        units: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<(), CodecError>;
}

macro_rules! is_a_code {
    ($($code:ty),*) => {$(
        impl Code for $code {
            fn data_count(&self) -> usize {
                self.data_count()
            }

            fn parity_count(&self) -> usize {
                self.parity_count()
            }

            fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError> {
                self.encode(data, parity)
            }

            fn decode(
                &self,
                units: &[Option<&[u8]>],
                lost: &[usize],
                out: &mut [&mut [u8]],
            ) -> Result<(), CodecError> {
                self.decode(units, lost, out)
            }
        }
    )*};
}

is_a_code!(Codec, CauchyGood, Hitchhiker);

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
pub fn data_units(code: &impl Code, len: usize) -> Vec<Vec<u8>> {
    (0..code.data_count()).map(|unit| input(unit, len)).collect()
}

/// The parity units of these data units, over buffers that were not empty.
pub fn parity_units(code: &impl Code, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut parity = vec![vec![0xa5; data[0].len()]; code.parity_count()];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&data, &mut outputs).expect("the buffers fit the code");
    parity
}

/// Data and parity units of inputs 0, 1, ..
pub fn all_units(code: &impl Code, len: usize) -> Vec<Vec<u8>> {
    let mut units = data_units(code, len);
    let parity = parity_units(code, &units);
    units.extend(parity);
    units
}

/// What is decoded of the units `lost` from all but those that are `absent`, over buffers that were not empty.
pub fn decoded(
    code: &impl Code,
    units: &[Vec<u8>],
    absent: &[usize],
    lost: &[usize],
) -> Result<Vec<Vec<u8>>, CodecError> {
    let present = units.iter().enumerate();
    let present: Vec<Option<&[u8]>> = present
        .map(|(unit, bytes)| (!absent.contains(&unit)).then_some(bytes.as_slice()))
        .collect();
    let mut rebuilt = vec![vec![0x5a; units[0].len()]; lost.len()];
    let mut outputs: Vec<&mut [u8]> = rebuilt.iter_mut().map(Vec::as_mut_slice).collect();
    code.decode(&present, lost, &mut outputs).map(|()| rebuilt)
}
