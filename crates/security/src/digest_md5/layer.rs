//! What encloses messages once both sides know each other.
//!
//! ```text
//! integrity: message, mac (10), 00 01, number (4)
//! privacy:   RC4(message, mac (10)), 00 01, number (4)
//! ```
//! Source: RFC 2831, sections 2.3 and 2.4.

use hmac::{Hmac, Mac};
use md5::Md5;
use rc4::cipher::consts::U16;
use rc4::{KeyInit, Rc4, StreamCipher};

use super::hash::hash;
use crate::sasl::{Layer, Open, Seal};
use crate::token::is_same;
use crate::{Protection, SaslError};

/// Bytes of a code.
const MAC_LEN: usize = 10;
/// Type of a message, and its number.
const END_LEN: usize = 6;
const TYPE: [u8; 2] = [0, 1];

/// What follows from the session's secret; nothing for authentication alone.
pub(super) fn of(
    session: &[u8; 16],
    protection: Protection,
    is_client: bool,
    peer_max: usize,
) -> Option<Layer> {
    if protection == Protection::Authentication {
        return None;
    }
    let direction = |from_client: bool| {
        let way = if from_client { "client-to-server" } else { "server-to-client" };
        let key = |what: &str| hash(&[session, what.as_bytes()]);
        let cipher = (protection == Protection::Privacy).then(|| {
            let key = key(&format!("Digest H(A1) to {way} sealing key magic constant"));
            Box::new(Rc4::<U16>::new(&key.into()))
        });
        let key = key(&format!("Digest session key to {way} signing key magic constant"));
        Direction { key, cipher, number: 0 }
    };
    // A JDK leaves as much room.
    let plain_max = peer_max - MAC_LEN - END_LEN - 10;
    let seal = Box::new(Sealing { direction: direction(is_client), plain_max });
    let open = Box::new(Opening(direction(!is_client)));
    Some(Layer { seal, open })
}

struct Direction {
    key: [u8; 16],
    cipher: Option<Box<Rc4<U16>>>,
    /// Of the next message.
    number: u32,
}

impl Direction {
    fn mac(&self, message: &[u8]) -> [u8; MAC_LEN] {
        let mut code = [0; MAC_LEN];
        // HMAC takes keys of any length.
        if let Ok(mut mac) = <Hmac<Md5> as Mac>::new_from_slice(&self.key) {
            mac.update(&self.number.to_be_bytes());
            mac.update(message);
            code.copy_from_slice(&mac.finalize().into_bytes()[..MAC_LEN]);
        }
        code
    }

    fn apply_cipher(&mut self, bytes: &mut [u8]) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply_keystream(bytes);
        }
    }
}

struct Sealing {
    direction: Direction,
    plain_max: usize,
}

impl Seal for Sealing {
    fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, SaslError> {
        let direction = &mut self.direction;
        let mut out = Vec::with_capacity(plain.len() + MAC_LEN + END_LEN);
        out.extend_from_slice(plain);
        out.extend_from_slice(&direction.mac(plain));
        direction.apply_cipher(&mut out);
        out.extend_from_slice(&TYPE);
        out.extend_from_slice(&direction.number.to_be_bytes());
        direction.number = direction.number.wrapping_add(1);
        Ok(out)
    }

    fn plain_max(&self) -> usize {
        self.plain_max
    }
}

struct Opening(Direction);

impl Open for Opening {
    fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        let direction = &mut self.0;
        let Some(len) = sealed.len().checked_sub(MAC_LEN + END_LEN) else {
            return Err(SaslError("DIGEST-MD5: a message is too short".into()));
        };
        let (body, end) = sealed.split_at(len + MAC_LEN);
        if end[..2] != TYPE || end[2..] != direction.number.to_be_bytes() {
            return Err(SaslError("DIGEST-MD5: a message is out of its order".into()));
        }
        let mut body = body.to_vec();
        direction.apply_cipher(&mut body);
        let mac = body.split_off(len);
        if !is_same(&mac, &direction.mac(&body)) {
            return Err(SaslError("DIGEST-MD5: a message was changed".into()));
        }
        direction.number = direction.number.wrapping_add(1);
        Ok(body)
    }
}
