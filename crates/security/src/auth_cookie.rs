//! The cookie by which a client by HTTP is known again, once it has shown a ticket.
//!
//! ```text
//! u=ann&p=ann@EXAMPLE.COM&t=kerberos&e=1796000000000&s=BASE64(HMAC-SHA256)
//! ```
//! Source: Hadoop 3.5.0 `AuthToken`, `Signer`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::token::is_same;

/// What it is called.
pub const NAME: &str = "hadoop.auth";
/// What is known of whoever has shown a ticket.
const KIND: &str = "kerberos";
/// What is before the proof.
const PROOF: &str = "&s=";
/// Bytes of the longest one that is looked at.
const LEN_MAX: usize = 8 << 10;

/// Who has a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthCookie {
    /// The user.
    pub user: String,
    /// The principal that it was.
    pub principal: String,
    /// When it ends, in ms since the epoch.
    pub ends_ms: u64,
}

impl AuthCookie {
    /// The value of the cookie. `None` for names that cannot be in one.
    pub fn sign(&self, secret: &[u8]) -> Option<String> {
        let can_be = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_graphic() && !b"&=\";,".contains(&b))
        };
        if !can_be(&self.user) || !can_be(&self.principal) {
            return None;
        }
        let (user, principal, ends) = (&self.user, &self.principal, self.ends_ms);
        let told = format!("u={user}&p={principal}&t={KIND}&e={ends}");
        let proof = STANDARD.encode(proof(&told, secret));
        Some(format!("{told}{PROOF}{proof}"))
    }

    /// Who has a cookie with that value, if it is one of ours and has not ended.
    pub fn verify(value: &str, secret: &[u8], now_ms: u64) -> Option<AuthCookie> {
        let value = value.trim().trim_matches('"');
        if value.len() > LEN_MAX {
            return None;
        }
        let (told, shown) = value.rsplit_once(PROOF)?;
        let shown = STANDARD.decode(shown).ok()?;
        if !is_same(&shown, &proof(told, secret)) {
            return None;
        }
        let part = |name: &str| {
            let mut parts = told.split('&').filter_map(|part| part.split_once('='));
            parts.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let ends_ms: u64 = part("e")?.parse().ok()?;
        let is_good = part("t") == Some(KIND) && now_ms < ends_ms;
        let (user, principal) = (part("u")?.to_owned(), part("p")?.to_owned());
        is_good.then_some(AuthCookie { user, principal, ends_ms })
    }
}

fn proof(told: &str, secret: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Vec::new() };
    mac.update(told.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The value of ours among the cookies of a request (`a=b; hadoop.auth="..."`).
pub fn of_header(header: &str) -> Option<&str> {
    let mut cookies = header.split(';').filter_map(|cookie| cookie.split_once('='));
    cookies.find(|(name, _)| name.trim() == NAME).map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ann() -> AuthCookie {
        AuthCookie { user: "ann".into(), principal: "ann@R".into(), ends_ms: 1000 }
    }

    #[test]
    fn who_has_a_cookie_is_known_until_it_ends() {
        let value = ann().sign(b"secret").unwrap();
        assert!(value.starts_with("u=ann&p=ann@R&t=kerberos&e=1000&s="));
        assert_eq!(AuthCookie::verify(&value, b"secret", 999), Some(ann()));
        assert_eq!(AuthCookie::verify(&format!("\"{value}\""), b"secret", 0), Some(ann()));
        assert_eq!(AuthCookie::verify(&value, b"secret", 1000), None, "it has ended");
        assert_eq!(AuthCookie::verify(&value, b"other", 0), None, "another's");
        for forged in ["u=ann", "u=hdfs"] {
            let forged = value.replacen("u=ann", forged, 1);
            let is_same = forged == value;
            assert_eq!(AuthCookie::verify(&forged, b"secret", 0).is_some(), is_same);
        }
        let later = value.replacen("e=1000", "e=9999", 1);
        assert_eq!(AuthCookie::verify(&later, b"secret", 0), None);
        let (told, _) = value.rsplit_once(PROOF).unwrap();
        assert_eq!(AuthCookie::verify(told, b"secret", 0), None);
        assert_eq!(AuthCookie::verify(&format!("{told}{PROOF}"), b"secret", 0), None);
    }

    #[test]
    fn names_cannot_say_more_than_a_name() {
        for user in ["", "a&u=b", "a=b", "a\"", "a;b", "a b", "a\r\nSet-Cookie: x"] {
            assert_eq!(AuthCookie { user: user.into(), ..ann() }.sign(b"secret"), None, "{user}");
        }
    }

    #[test]
    fn ours_is_found_among_others() {
        assert_eq!(of_header("a=b; hadoop.auth=\"u=x&s=y==\"; c=d"), Some("u=x&s=y=="));
        assert_eq!(of_header("hadoop.auth=u=x"), Some("u=x"));
        assert_eq!(of_header("xhadoop.auth=u=x; b"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, end in 0u64..3) {
            prop_assert_eq!(AuthCookie::verify(&text, b"secret", end), None);
            let _ = of_header(&text);
        }
    }
}
