//! Who may hand on calls: whoever has the key of the quorum.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Bytes of a proof, and of the random bytes that each side adds to a session.
pub(super) const LEN: usize = 32;

/// Numbers behind the greatest one that may still come: calls are sent side by side.
const WINDOW: u64 = 4096;

/// What all members have and nobody else.
#[derive(Clone)]
pub struct Secret([u8; LEN]);

impl Secret {
    /// Of the key of the quorum.
    pub fn of(key: &[u8]) -> Secret {
        Secret(mac(key, &[b"calls that are handed on"]))
    }

    /// What proves the calls of a session between whoever has added these bytes.
    pub(super) fn session(&self, follower: &[u8; LEN], leader: &[u8; LEN]) -> SessionKey {
        SessionKey(mac(&self.0, &[follower, leader]))
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; LEN] {
    hmac(key, parts).finalize().into_bytes().into()
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length do");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// What is proven.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Session = 1,
    Call = 2,
    Answer = 3,
}

/// What proves the calls of one session.
pub(super) struct SessionKey([u8; LEN]);

impl SessionKey {
    pub(super) fn proof(&self, of: Of, number: u64, bytes: &[u8]) -> Vec<u8> {
        mac(&self.0, &[&[of as u8], &number.to_le_bytes(), bytes]).to_vec()
    }

    pub(super) fn proves(&self, of: Of, number: u64, bytes: &[u8], proof: &[u8]) -> bool {
        let mac = hmac(&self.0, &[&[of as u8], &number.to_le_bytes(), bytes]);
        mac.verify_slice(proof).is_ok()
    }
}

/// The numbers of calls that have come.
pub(super) struct Window {
    /// One more than the greatest.
    next: u64,
    /// Those of the last [`WINDOW`], by their remainders.
    has_come: Box<[bool]>,
}

impl Default for Window {
    fn default() -> Window {
        Window { next: 0, has_come: vec![false; WINDOW as usize].into() }
    }
}

impl Window {
    /// Whether a number comes for the first time. It has come then.
    pub(super) fn take(&mut self, number: u64) -> bool {
        let at = |number: u64| (number % WINDOW) as usize;
        if number == u64::MAX {
            return false;
        }
        if number >= self.next {
            let skipped = number - self.next;
            (0..skipped.min(WINDOW)).for_each(|back| self.has_come[at(number - 1 - back)] = false);
            self.next = number + 1;
        } else if self.next - number > WINDOW || self.has_come[at(number)] {
            return false;
        }
        self.has_come[at(number)] = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_once_in_any_order_within_the_window() {
        let mut window = Window::default();
        for (number, is_new) in [
            (0, true),
            (0, false),
            (5, true),
            (3, true),
            (3, false),
            (5, false),
            (WINDOW + 3, true),
            (3, false),
            (4, true),
            (WINDOW + 3, false),
            (WINDOW + 5, true),
            (5, false),
            (u64::MAX, false),
            (u64::MAX - 1, true),
            (u64::MAX - 1, false),
            (7, false),
        ] {
            assert_eq!(window.take(number), is_new, "{number}");
        }
    }

    #[test]
    fn a_proof_is_of_one_key_one_session_one_number_and_one_direction() {
        let (ours, theirs) = (Secret::of(b"the key of a quorum"), Secret::of(b"another one"));
        let session = |secret: &Secret, leader| secret.session(&[1; LEN], &[leader; LEN]);
        let key = session(&ours, 2);
        let proof = key.proof(Of::Call, 7, b"bytes");
        assert!(session(&ours, 2).proves(Of::Call, 7, b"bytes", &proof));
        assert!(!session(&theirs, 2).proves(Of::Call, 7, b"bytes", &proof));
        assert!(!session(&ours, 3).proves(Of::Call, 7, b"bytes", &proof));
        assert!(!key.proves(Of::Call, 8, b"bytes", &proof));
        assert!(!key.proves(Of::Answer, 7, b"bytes", &proof));
        assert!(
            !key.proves(Of::Call, 7, b"byte", &proof) && !key.proves(Of::Call, 7, b"bytes", &[])
        );
    }
}
