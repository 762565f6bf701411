//! Delegation tokens: what they say, and what proves that a NameNode has issued them.

use hmac::{Hmac, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;

use crate::writable::{Reader, put_long, put_text};
use cairn_wire::WireError;
use cairn_wire::proto::common::TokenProto;

/// Bytes of a name in a token. Source: Hadoop 3.5.0 `Text#DEFAULT_MAX_LEN`.
const NAME_MAX: usize = 1 << 20;
/// The only version of identifiers. Source: Hadoop 3.5.0 `AbstractDelegationTokenIdentifier#VERSION`.
const VERSION: u8 = 0;

/// The kind of tokens that NameNodes issue. Source: Hadoop 3.5.0 `DelegationTokenIdentifier#HDFS_DELEGATION_KIND`.
pub const HDFS_DELEGATION_TOKEN: &str = "HDFS_DELEGATION_TOKEN";

/// Bytes of a master key. Hadoop's default makes keys of 64 bits, which can be guessed.
///
/// Source: Hadoop 3.5.0 `hadoop.security.secret-manager.key-length`.
pub const KEY_LEN: usize = 32;

/// A token as it is passed on: to whoever has it, all that it gives.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Token {
    /// What it says of itself.
    pub identifier: Vec<u8>,
    /// What proves that.
    pub password: Vec<u8>,
    /// What it is good for.
    pub kind: String,
    /// Whose it is: the `ip:port` of a NameNode, or `ha-hdfs:` and a nameservice.
    pub service: String,
}

/// The password does not show.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, service) = (&self.kind, &self.service);
        f.debug_struct("Token")
            .field("kind", kind)
            .field("service", service)
            .finish_non_exhaustive()
    }
}

impl From<TokenProto> for Token {
    fn from(proto: TokenProto) -> Token {
        let TokenProto { identifier, password, kind, service } = proto;
        Token { identifier, password, kind, service }
    }
}

impl From<Token> for TokenProto {
    fn from(token: Token) -> TokenProto {
        let Token { identifier, password, kind, service } = token;
        TokenProto { identifier, password, kind, service }
    }
}

/// Which token somebody came in by, as logs call it; it opens nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenName {
    /// Its number.
    pub number: i32,
    /// The MD5 of its identifier in hexadecimal digits, by which Hadoop's logs track it.
    pub tracking_id: String,
}

/// What a token says of itself. Times are ms since the epoch.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenIdentifier`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DelegationTokenId {
    /// Whose rights it gives: the full name, as it was known when the token was issued.
    pub owner: String,
    /// Who may renew and cancel it, by the short name; empty for nobody.
    pub renewer: String,
    /// Who acts for the owner; empty for nobody.
    pub real_user: String,
    /// When it was issued.
    pub issued_ms: i64,
    /// When it ends, however often it is renewed.
    pub max_ms: i64,
    /// Its number.
    pub sequence: i32,
    /// The master key that proves it.
    pub key_id: i32,
}

impl DelegationTokenId {
    /// The bytes that the password is made of.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for name in [&self.owner, &self.renewer, &self.real_user] {
            put_text(name, &mut out);
        }
        for number in [self.issued_ms, self.max_ms, self.sequence.into(), self.key_id.into()] {
            put_long(number, &mut out);
        }
        out
    }

    /// What bytes from outside say. Bytes behind are ignored, as Hadoop does.
    pub fn decode(bytes: &[u8]) -> Result<DelegationTokenId, WireError> {
        let what = "delegation token";
        let mut reader = Reader::new(bytes, what);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(WireError::Value { what, value: version.into() });
        }
        Ok(DelegationTokenId {
            owner: reader.text(NAME_MAX)?,
            renewer: reader.text(NAME_MAX)?,
            real_user: reader.text(NAME_MAX)?,
            issued_ms: reader.long()?,
            max_ms: reader.long()?,
            sequence: reader.int()?,
            key_id: reader.int()?,
        })
    }

    /// What logs call it. Source: Hadoop 3.5.0 `TokenIdentifier#getTrackingId`.
    pub fn name(&self) -> TokenName {
        let digest = Md5::digest(self.encode());
        let tracking_id = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        TokenName { number: self.sequence, tracking_id }
    }

    /// What Hadoop calls it where it lasts. Source: Hadoop 3.5.0 `DelegationTokenIdentifier#toStringStable`.
    pub fn describe(&self, owner: &str) -> String {
        let (number, renewer) = (self.sequence, &self.renewer);
        format!("{HDFS_DELEGATION_TOKEN} token {number} for {owner} with renewer {renewer}")
    }
}

/// What proves that whoever has the key has issued a token with that identifier.
///
/// Source: Hadoop 3.5.0 `SecretManager#createPassword`, with `hadoop.security.secret-manager.key-generator.algorithm` as
/// it is by default.
pub fn password(identifier: &[u8], key: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return Vec::new() };
    mac.update(identifier);
    mac.finalize().into_bytes().to_vec()
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn identifiers_come_back(
            owner: String, renewer: String, real_user: String, issued_ms: i64, max_ms: i64, sequence: i32, key_id: i32,
        ) {
            let id = DelegationTokenId { owner, renewer, real_user, issued_ms, max_ms, sequence, key_id };
            let bytes = id.encode();
            prop_assert_eq!(&DelegationTokenId::decode(&bytes).unwrap(), &id);
            for len in 0..bytes.len() {
                prop_assert!(DelegationTokenId::decode(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = DelegationTokenId::decode(&bytes);
        }
    }

    #[test]
    fn announced_lengths_are_bounded() {
        let long = [&[0, 0x8c][..], &[0x7f, 255, 255, 255]].concat();
        let error = DelegationTokenId::decode(&long).unwrap_err().to_string();
        assert_eq!(error, "delegation token: length 2147483647 is outside 0..=1048576");
        let negative = [0, 0xff];
        assert!(DelegationTokenId::decode(&negative).is_err());
    }

    #[test]
    fn a_token_is_called_by_its_number_and_by_the_digest_of_its_identifier() {
        let id = DelegationTokenId { owner: "ann".into(), sequence: 7, ..Default::default() };
        assert_eq!(id.encode(), b"\0\x03ann\0\0\0\0\x07\0");
        let tracking_id = "99204c43a6c7c7178d19199fa8f57f94".to_owned();
        assert_eq!(id.name(), TokenName { number: 7, tracking_id });
    }

    #[test]
    fn secrets_are_compared_as_a_whole() {
        assert!(is_same(b"", b"") && is_same(b"abc", b"abc"));
        for (one, other) in [("abc", "abd"), ("abc", "ab"), ("", "a"), ("xbc", "abc")] {
            assert!(!is_same(one.as_bytes(), other.as_bytes()));
        }
    }
}
