//! AES in counter mode, from any byte of a file.
//!
//! Source: Hadoop 3.5.0 `AesCtrCryptoCodec`, `CryptoStreamUtils`.

use aes::cipher::consts::U16;
use aes::cipher::{Block, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// Blocks of counters that are encrypted at a time.
const BATCH: usize = 32;

/// The key of a file, ready for use, and its initialization vector.
pub(crate) struct FileCipher {
    key: Box<Key>,
    iv: [u8; 16],
}

enum Key {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

impl FileCipher {
    /// `None` if the key is not of 16, 24 or 32 bytes or the vector not of 16.
    pub(crate) fn new(key: &[u8], iv: &[u8]) -> Option<FileCipher> {
        let key = match key.len() {
            16 => Key::Aes128(Aes128::new_from_slice(key).ok()?),
            24 => Key::Aes192(Aes192::new_from_slice(key).ok()?),
            32 => Key::Aes256(Aes256::new_from_slice(key).ok()?),
            _ => return None,
        };
        Some(FileCipher { key: Box::new(key), iv: iv.try_into().ok()? })
    }

    /// Encrypts or decrypts, which is the same, bytes that begin at `offset` of the file.
    pub(crate) fn apply(&self, offset: u64, bytes: &mut [u8]) {
        match &*self.key {
            Key::Aes128(key) => apply(key, &self.iv, offset, bytes),
            Key::Aes192(key) => apply(key, &self.iv, offset, bytes),
            Key::Aes256(key) => apply(key, &self.iv, offset, bytes),
        }
    }

    /// The bytes that begin at `offset` of the file, decrypted: in place if nobody else holds them.
    pub(crate) fn decrypted(&self, offset: u64, stored: Bytes) -> Bytes {
        let mut plain = stored.try_into_mut().unwrap_or_else(|held| BytesMut::from(&held[..]));
        self.apply(offset, &mut plain);
        plain.freeze()
    }
}

/// The key does not show.
impl fmt::Debug for FileCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCipher").finish_non_exhaustive()
    }
}

/// What is added to the blocks of a file, from some block on.
struct Pads<'a, C: BlockEncrypt<BlockSize = U16>> {
    key: &'a C,
    counter: u128,
    blocks: [Block<C>; BATCH],
}

impl<C: BlockEncrypt<BlockSize = U16>> Pads<'_, C> {
    /// Those of the next `count` blocks, [`BATCH`] at most. They are encrypted at a time: the
    /// processor's instructions are asked for once for all of them, and work on some side by side.
    fn next(&mut self, count: usize) -> &[Block<C>] {
        let blocks = &mut self.blocks[..count];
        for block in blocks.iter_mut() {
            *block = self.counter.to_be_bytes().into();
            self.counter = self.counter.wrapping_add(1);
        }
        self.key.encrypt_blocks(blocks);
        blocks
    }
}

/// The counter of a block is the vector plus the block's number, both of 128 bits, wrapping.
fn apply<C>(key: &C, iv: &[u8; 16], offset: u64, bytes: &mut [u8])
where
    C: BlockEncrypt<BlockSize = U16>,
{
    let counter = u128::from_be_bytes(*iv).wrapping_add(u128::from(offset / 16));
    let mut pads = Pads { key, counter, blocks: [Block::<C>::default(); BATCH] };
    // What is left of a block, whole blocks, and the beginning of one.
    let into = (offset % 16) as usize;
    let left = if into > 0 { bytes.len().min(16 - into) } else { 0 };
    let (head, rest) = bytes.split_at_mut(left);
    if !head.is_empty() {
        add(head, &pads.next(1)[0][into..]);
    }
    let (blocks, tail) = rest.as_chunks_mut::<16>();
    for batch in blocks.chunks_mut(BATCH) {
        let pads = pads.next(batch.len());
        for (block, pad) in batch.iter_mut().zip(pads) {
            let pad = u128::from_ne_bytes((*pad).into());
            *block = (u128::from_ne_bytes(*block) ^ pad).to_ne_bytes();
        }
    }
    if !tail.is_empty() {
        add(tail, &pads.next(1)[0]);
    }
}

fn add(bytes: &mut [u8], pad: &[u8]) {
    for (byte, pad) in bytes.iter_mut().zip(pad) {
        *byte ^= pad;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let hex: String = hex.split_whitespace().collect();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    /// NIST SP 800-38A, F.5.1, F.5.3 and F.5.5.
    #[test]
    fn the_standards_vectors_are_met() {
        let plain = bytes(
            "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
             30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710",
        );
        let iv = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        for (key, encrypted) in [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff
                 5ae4df3edbd5d35e5b4f09020db03eab 1e031dda2fbe03d1792170a0f3009cee",
            ),
            (
                "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
                "1abc932417521ca24f2b0459fe7e6e0b 090339ec0aa6faefd5ccc2c6f4ce8e94
                 1e36b26bd1ebc670d1bd1d665620abf7 4f78a7f6d29809585a97daec58c6b050",
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "601ec313775789a5b7a7f504bbf3d228 f443e3ca4d62b59aca84e990cacaf5c5
                 2b0930daa23de94ce87017ba2d84988d dfc9c58db67aada613c2dd08457941a6",
            ),
        ] {
            let cipher = FileCipher::new(&bytes(key), &iv).unwrap();
            let mut text = plain.clone();
            cipher.apply(0, &mut text);
            assert_eq!(text, bytes(encrypted));
            cipher.apply(0, &mut text);
            assert_eq!(text, plain);
        }
    }

    #[test]
    fn only_keys_and_vectors_of_aes_are_taken() {
        for (key, iv, taken) in
            [(16, 16, true), (24, 16, true), (32, 16, true), (0, 16, false), (17, 16, false)]
                .into_iter()
                .chain([(16, 0, false), (16, 15, false), (16, 17, false)])
        {
            let made = FileCipher::new(&vec![0; key], &vec![0; iv]);
            assert_eq!(made.is_some(), taken, "{key} {iv}");
        }
    }

    /// The vector plus the number of the block, block by block.
    fn by_definition(key: &[u8; 16], iv: [u8; 16], offset: u64, bytes: &mut [u8]) {
        let aes = Aes128::new(key.into());
        for (at, byte) in (offset..).zip(bytes) {
            let counter = u128::from_be_bytes(iv).wrapping_add(u128::from(at / 16));
            let mut block = counter.to_be_bytes().into();
            aes.encrypt_block(&mut block);
            *byte ^= block[(at % 16) as usize];
        }
    }

    #[test]
    fn the_counter_wraps_and_offsets_are_large() {
        let key = [7; 16];
        for (iv, offset) in [
            ([0xff; 16], 0),
            ([0xff; 16], 5),
            ([0xff; 16], 1 << 40),
            ([0; 16], i64::MAX as u64 - 100),
            (u128::from(u64::MAX).to_be_bytes(), 3),
        ] {
            let (mut ours, mut wanted) = ([1; 100], [1; 100]);
            FileCipher::new(&key, &iv).unwrap().apply(offset, &mut ours);
            by_definition(&key, iv, offset, &mut wanted);
            assert_eq!(ours, wanted, "{iv:x?} {offset}");
        }
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(
            key in prop_oneof![Just(16), Just(24), Just(32)],
            iv: [u8; 16],
            start in 0..1_000_000_000_u64,
            data in prop::collection::vec(any::<u8>(), 0..500),
            cuts in prop::collection::vec(0..500_usize, 0..5),
        ) {
            let cipher = FileCipher::new(&vec![3; key], &iv).unwrap();
            let mut whole = data.clone();
            cipher.apply(start, &mut whole);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(data.len())).collect();
            cuts.extend([0, data.len()]);
            cuts.sort_unstable();
            let stored = Bytes::from(data);
            let parts = cuts.windows(2).map(|cut| {
                cipher.decrypted(start + cut[0] as u64, stored.slice(cut[0]..cut[1]))
            });
            prop_assert_eq!(parts.flatten().collect::<Vec<u8>>(), whole);
        }
    }
}
