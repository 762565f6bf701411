//! AES in counter mode over a stream of bytes.
//!
//! Source: Hadoop 3.5.0 `CryptoOutputStream`, `AesCtrCryptoCodec`.

use aes::{Aes128, Aes192, Aes256};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher as _};

use crate::SaslError;
use crate::transfer::StreamKey;

/// Encrypts or decrypts, which is the same, what goes one way over a connection, in its order.
pub struct StreamCipher(Aes);

enum Aes {
    Aes128(Box<Ctr128BE<Aes128>>),
    Aes192(Box<Ctr128BE<Aes192>>),
    Aes256(Box<Ctr128BE<Aes256>>),
}

impl StreamCipher {
    /// From the first byte on. Fails if the key is not of 16, 24 or 32 bytes.
    pub fn new(StreamKey { key, iv }: &StreamKey) -> Result<StreamCipher, SaslError> {
        let aes = match key.len() {
            16 => Ctr128BE::new_from_slices(key, iv).map(|aes| Aes::Aes128(Box::new(aes))),
            24 => Ctr128BE::new_from_slices(key, iv).map(|aes| Aes::Aes192(Box::new(aes))),
            _ => Ctr128BE::new_from_slices(key, iv).map(|aes| Aes::Aes256(Box::new(aes))),
        };
        aes.map(StreamCipher).map_err(|_| SaslError::new("a key is not one of AES"))
    }

    /// Changes the next bytes.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        match &mut self.0 {
            Aes::Aes128(aes) => aes.apply_keystream(bytes),
            Aes::Aes192(aes) => aes.apply_keystream(bytes),
            Aes::Aes256(aes) => aes.apply_keystream(bytes),
        }
    }
}
