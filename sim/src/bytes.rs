//! Bytes that are compared often and change seldom: by a sum that is kept until they change.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    bytes: Vec<u8>,
    sum: Cell<Option<u64>>,
}

impl Bytes {
    fn sum(&self) -> u64 {
        if let Some(sum) = self.sum.get() {
            return sum;
        }
        // Each step maps no two words to one sum, so that no change of a single word is missed.
        let step =
            |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word =
            |part: &[u8]| part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let words = self.bytes.chunks(8).map(|part| match part.try_into() {
            Ok(whole) => u64::from_le_bytes(whole),
            Err(_) => word(part),
        });
        let sum = words.fold(0, step);
        self.sum.set(Some(sum));
        sum
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        self.bytes.len() == other.bytes.len() && self.sum() == other.sum()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes { bytes, sum: Cell::new(None) }
    }
}

impl Deref for Bytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.sum.set(None);
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_equal_when_each_of_them_is() {
        let (mut one, other) = (Bytes::from(vec![7; 4099]), Bytes::from(vec![7; 4099]));
        assert_eq!(one, other);
        for at in [0, 8, 4095, 4096, 4098] {
            for bit in 0..8 {
                one[at] ^= 1 << bit;
                assert_ne!(one, other, "bit {bit} of byte {at}");
                one[at] ^= 1 << bit;
                assert_eq!(one, other);
            }
        }
        one.push(0);
        assert_ne!(one, other, "they are longer");
    }
}
