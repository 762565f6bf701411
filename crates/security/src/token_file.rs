//! Files of tokens, which jobs are given in the place of tickets (`HADOOP_TOKEN_FILE_LOCATION`).
//!
//! They are written in two ways, of which the byte behind the mark tells: numbers and texts one after another, as
//! `hdfs fetchdt` writes them, or a message.
//!
//! Source: Hadoop 3.5.0 `Credentials#readTokenStorageStream`, `#writeTokenStorageToStream`, `Token#write`.

use cairn_wire::WireError;
use cairn_wire::proto::common::{CredentialsKVProto, CredentialsProto};
use prost::Message;

use crate::token::{HDFS_DELEGATION_TOKEN, Token};
use crate::writable::{Reader, put_long, put_text};

const WHAT: &str = "token file";
/// What a file begins with.
const MARK: &[u8; 4] = b"HDTS";
/// Tokens or secrets that a file has.
const COUNT_MAX: i32 = 10_000;
/// Bytes of a name, a token's parts, or a secret.
const LEN_MAX: usize = 1 << 20;

/// Bytes of the longest file that is worth reading.
pub const FILE_MAX: u64 = 64 << 20;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenFormat {
    /// Numbers and texts one after another, which every version of Hadoop reads.
    Writable = 0,
    /// A message, since Hadoop 3.
    Protobuf = 1,
}

/// What a file holds, in its order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenFile {
    /// Tokens by their names, which are mostly those of their services.
    pub tokens: Vec<(String, Token)>,
    /// Secrets by their names. Cairn needs none, and keeps them.
    pub secrets: Vec<(String, Vec<u8>)>,
}

/// Neither passwords nor secrets show.
impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |(name, _): &(String, Token)| name.clone();
        let names: Vec<String> = self.tokens.iter().map(names).collect();
        f.debug_struct("TokenFile").field("tokens", &names).finish_non_exhaustive()
    }
}

impl TokenFile {
    /// Reads a file.
    pub fn decode(bytes: &[u8]) -> Result<TokenFile, WireError> {
        let mut reader = Reader::new(bytes, WHAT);
        if reader.take(MARK.len())? != MARK {
            return Err(WireError::Value { what: WHAT, value: bytes[0].into() });
        }
        match reader.byte()? {
            0 => TokenFile::of_writable(reader),
            1 => TokenFile::of_message(&bytes[MARK.len() + 1..]),
            other => Err(WireError::Value { what: WHAT, value: other.into() }),
        }
    }

    fn of_writable(mut reader: Reader<'_>) -> Result<TokenFile, WireError> {
        let mut file = TokenFile::default();
        for _ in 0..reader.count(COUNT_MAX)? {
            let name = reader.text(LEN_MAX)?;
            let token = Token {
                identifier: reader.bytes(LEN_MAX)?.to_vec(),
                password: reader.bytes(LEN_MAX)?.to_vec(),
                kind: reader.text(LEN_MAX)?,
                service: reader.text(LEN_MAX)?,
            };
            file.tokens.push((name, token));
        }
        for _ in 0..reader.count(COUNT_MAX)? {
            let name = reader.text(LEN_MAX)?;
            file.secrets.push((name, reader.bytes(LEN_MAX)?.to_vec()));
        }
        Ok(file)
    }

    fn of_message(bytes: &[u8]) -> Result<TokenFile, WireError> {
        let message = CredentialsProto::decode_length_delimited(bytes);
        let message = message.map_err(|source| WireError::Proto { what: WHAT, source })?;
        let tokens = message.tokens.into_iter();
        let secrets = message.secrets.into_iter();
        Ok(TokenFile {
            tokens: tokens.filter_map(|entry| Some((entry.alias, entry.token?.into()))).collect(),
            secrets: secrets.filter_map(|entry| Some((entry.alias, entry.secret?))).collect(),
        })
    }

    /// The bytes of a file.
    pub fn encode(&self, format: TokenFormat) -> Vec<u8> {
        let mut out = MARK.to_vec();
        out.push(format as u8);
        match format {
            TokenFormat::Writable => self.put_writable(&mut out),
            TokenFormat::Protobuf => {
                out.extend(self.message().encode_length_delimited_to_vec());
            }
        }
        out
    }

    fn put_writable(&self, out: &mut Vec<u8>) {
        let put_bytes = |bytes: &[u8], out: &mut Vec<u8>| {
            put_long(bytes.len() as i64, out);
            out.extend_from_slice(bytes);
        };
        put_long(self.tokens.len() as i64, out);
        for (name, token) in &self.tokens {
            put_text(name, out);
            put_bytes(&token.identifier, out);
            put_bytes(&token.password, out);
            put_text(&token.kind, out);
            put_text(&token.service, out);
        }
        put_long(self.secrets.len() as i64, out);
        for (name, secret) in &self.secrets {
            put_text(name, out);
            put_bytes(secret, out);
        }
    }

    fn message(&self) -> CredentialsProto {
        let tokens = self.tokens.iter().cloned();
        let secrets = self.secrets.iter().cloned();
        CredentialsProto {
            tokens: tokens
                .map(|(alias, token)| {
                    let token = Some(token.into());
                    CredentialsKVProto { alias, token, secret: None }
                })
                .collect(),
            secrets: secrets
                .map(|(alias, secret)| CredentialsKVProto {
                    alias,
                    token: None,
                    secret: Some(secret),
                })
                .collect(),
        }
    }

    /// The delegation token of a NameNode that is known by one of these names.
    ///
    /// Source: Hadoop 3.5.0 `AbstractDelegationTokenSelector#selectToken`.
    pub fn delegation(&self, services: &[String]) -> Option<&Token> {
        let tokens = self.tokens.iter().map(|(_, token)| token);
        let mut tokens = tokens.filter(|token| token.kind == HDFS_DELEGATION_TOKEN);
        tokens.find(|token| services.contains(&token.service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(kind: &str, service: &str) -> Token {
        Token {
            identifier: vec![1, 2, 3],
            password: vec![0xff; 300],
            kind: kind.to_string(),
            service: service.to_string(),
        }
    }

    fn file() -> TokenFile {
        let token = |kind, service| ("a name".to_string(), token(kind, service));
        TokenFile {
            tokens: vec![
                token("other", "127.0.0.1:8020"),
                token(HDFS_DELEGATION_TOKEN, "127.0.0.1:8020"),
                token(HDFS_DELEGATION_TOKEN, "ha-hdfs:ns"),
            ],
            secrets: vec![("key".to_string(), vec![7; 3])],
        }
    }

    #[test]
    fn files_are_hadoops() {
        let small = TokenFile {
            tokens: vec![("n".to_string(), Token { password: vec![9], ..token("k", "s") })],
            secrets: Vec::new(),
        };
        let bytes = b"HDTS\0\x01\x01n\x03\x01\x02\x03\x01\x09\x01k\x01s\0";
        assert_eq!(small.encode(TokenFormat::Writable), bytes);
        assert_eq!(TokenFile::decode(bytes).unwrap(), small);
        let message = small.encode(TokenFormat::Protobuf);
        let inner = b"\x0a\x03\x01\x02\x03\x12\x01\x09\x1a\x01k\x22\x01s";
        let mut expected = b"HDTS\x01\x15\x0a\x13\x0a\x01n\x12\x0e".to_vec();
        expected.extend_from_slice(inner);
        assert_eq!(message, expected);
    }

    #[test]
    fn files_come_back_and_cut_ones_do_not() {
        for format in [TokenFormat::Writable, TokenFormat::Protobuf] {
            let bytes = file().encode(format);
            assert_eq!(TokenFile::decode(&bytes).unwrap(), file());
            for len in 0..bytes.len() {
                assert!(TokenFile::decode(&bytes[..len]).is_err(), "{format:?} {len}");
            }
        }
        assert!(TokenFile::decode(b"HDTS\x02\0\0").is_err());
        assert!(TokenFile::decode(b"HDTX\0\0\0").is_err());
    }

    #[test]
    fn a_token_belongs_to_its_service() {
        let service = |services: &[&str]| {
            let services: Vec<String> = services.iter().map(ToString::to_string).collect();
            file().delegation(&services).map(|token| token.service.clone())
        };
        assert_eq!(service(&["host:8020", "127.0.0.1:8020"]).as_deref(), Some("127.0.0.1:8020"));
        assert_eq!(service(&["ha-hdfs:ns"]).as_deref(), Some("ha-hdfs:ns"));
        assert_eq!(service(&["ns"]), None);
    }

    #[test]
    fn secrets_do_not_show() {
        let told = format!("{:?}", file());
        assert!(told.contains("a name") && !told.contains("255") && !told.contains('7'), "{told}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, format in 0u8..3) {
            let _ = TokenFile::decode(&bytes);
            let _ = TokenFile::decode(&[b"HDTS", &[format][..], &bytes].concat());
        }
    }
}
