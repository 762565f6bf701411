//! What is said on a connection of the data port before the first operation, where that is to be protected.
//!
//! ```text
//! client: magic number, ()                        server: challenge
//! client: response, ciphers that it has           server: its proof, the cipher with wrapped keys
//! ```
//! Both then speak as agreed: plainly, enclosed by DIGEST-MD5, or by AES in counter mode, which is chosen with privacy
//! only. The user is a block token, or a key for all data of the file system that the NameNode has given out.
//!
//! Source: Hadoop 3.5.0 `SaslDataTransferServer`, `SaslDataTransferClient`, `DataTransferSaslUtil`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::{
    CipherOptionProto, CipherSuiteProto, DataEncryptionKeyProto, DataTransferEncryptorMessageProto,
    DataTransferEncryptorMessageProtoDataTransferEncryptorStatus as Status,
};

use crate::block_token::InvalidToken;
use crate::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use crate::sasl::Layer;
use crate::{Protection, SaslError};

/// What comes first. Source: Hadoop 3.5.0 `DataTransferSaslUtil#SASL_TRANSFER_MAGIC_NUMBER`.
pub const MAGIC: u32 = 0xdead_beef;
/// Bytes of a counter.
pub const IV_LEN: usize = 16;
/// Bytes of keys.
const KEY_LENS: [usize; 3] = [16, 24, 32];

/// What keeps data from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferPolicy {
    /// What may be around data, what is wanted most first; at least one.
    pub protections: Vec<Protection>,
    /// Whoever connects shows a key for all data, rather than a token to one block. Key `dfs.encrypt.data.transfer`.
    pub by_key: bool,
    /// AES is offered, and taken where a client has it. Key `dfs.encrypt.data.transfer.cipher.suites`.
    pub has_aes: bool,
    /// Bytes of its keys. Key `dfs.encrypt.data.transfer.cipher.key.bitlength`.
    pub key_len: usize,
}

/// Whom a client says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever has the token with this identifier.
    Token(Vec<u8>),
    /// Whoever has the key that comes of that.
    Key {
        /// The block key that it is made with.
        key_id: i32,
        /// The block pool.
        pool: String,
        /// What it is made of.
        nonce: Vec<u8>,
    },
}

/// Why a client is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Its token is not good.
    Token(InvalidToken),
    /// There is no such key any more: it is to ask for another.
    Key(String),
    /// What it says is not understood, or not true.
    Sasl(SaslError),
}

impl From<SaslError> for Unknown {
    fn from(error: SaslError) -> Unknown {
        Unknown::Sasl(error)
    }
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unknown::Token(error) => error.fmt(f),
            Unknown::Key(text) => f.write_str(text),
            Unknown::Sasl(error) => error.fmt(f),
        }
    }
}

impl Unknown {
    /// What the client is told.
    pub fn message(&self) -> DataTransferEncryptorMessageProto {
        let (status, token) = match self {
            Unknown::Token(_) => (Status::Error, Some(true)),
            Unknown::Key(_) => (Status::ErrorUnknownKey, None),
            Unknown::Sasl(_) => (Status::Error, None),
        };
        DataTransferEncryptorMessageProto {
            status: status as i32,
            message: Some(self.to_string()),
            access_token_error: token,
            ..DataTransferEncryptorMessageProto::default()
        }
    }
}

/// A key and the counter that it begins with. The key does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamKey {
    /// 16, 24 or 32 bytes.
    pub key: Vec<u8>,
    /// The first counter.
    pub iv: [u8; IV_LEN],
}

impl std::fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamKey").finish_non_exhaustive()
    }
}

/// What is around all that follows.
#[derive(Debug)]
pub enum Channel {
    /// Nothing.
    Plain,
    /// Everything is enclosed, piece by piece.
    Enclosed(Layer),
    /// Everything is encrypted by AES in counter mode.
    Aes {
        /// For what is sent.
        seal: StreamKey,
        /// For what comes.
        open: StreamKey,
    },
}

/// Random bytes for one exchange.
#[derive(Clone, Copy)]
pub struct ServerRandom {
    /// For the challenge.
    pub nonce: [u8; NONCE_LEN],
    /// For keys, of the longest.
    pub keys: [[u8; 32]; 2],
    /// For counters.
    pub ivs: [[u8; IV_LEN]; 2],
}

/// The server's side of one exchange.
pub struct TransferServer {
    policy: TransferPolicy,
    random: ServerRandom,
    digest: Option<DigestServer>,
}

/// What comes of a client's message.
#[derive(Debug)]
pub enum ServerStep {
    /// The client is to get this.
    Reply(DataTransferEncryptorMessageProto),
    /// The client is to get this, and is known. That is around all that follows.
    Done(DataTransferEncryptorMessageProto, Channel),
}

fn reply(payload: Vec<u8>) -> DataTransferEncryptorMessageProto {
    DataTransferEncryptorMessageProto {
        status: Status::Success as i32,
        payload: Some(payload),
        ..DataTransferEncryptorMessageProto::default()
    }
}

/// The bytes that a peer has sent, or what it says that went wrong.
fn payload(message: &DataTransferEncryptorMessageProto) -> Result<&[u8], Unknown> {
    let text = || message.message().to_owned();
    match message.status() {
        Status::Success => Ok(message.payload()),
        Status::ErrorUnknownKey => Err(Unknown::Key(text())),
        Status::Error if message.access_token_error() => Err(Unknown::Token(InvalidToken(text()))),
        Status::Error => Err(Unknown::Sasl(SaslError(text()))),
    }
}

fn aes() -> CipherOptionProto {
    CipherOptionProto {
        suite: CipherSuiteProto::AesCtrNopadding as i32,
        ..CipherOptionProto::default()
    }
}

fn is_aes(option: &CipherOptionProto) -> bool {
    option.suite == CipherSuiteProto::AesCtrNopadding as i32
}

impl TransferServer {
    /// For one connection, with random bytes that were never used before.
    pub fn new(policy: TransferPolicy, random: ServerRandom) -> TransferServer {
        TransferServer { policy, random, digest: None }
    }

    /// Takes what the client has sent. `find` says what a user's password is. After an error, which the client is to be
    /// told, there is nothing more to say.
    pub fn take(
        &mut self,
        message: &DataTransferEncryptorMessageProto,
        find: impl FnOnce(&User) -> Result<Vec<u8>, Unknown>,
    ) -> Result<ServerStep, Unknown> {
        let response = payload(message)?;
        let Some(digest) = self.digest.take() else {
            if let Some(wanted) = &message.handshake_secret {
                self.narrow(&wanted.secret)?;
            }
            let nonce = self.random.nonce;
            let digest = DigestServer::new(Service::TRANSFER, nonce, &self.policy.protections);
            let challenge = digest.challenge();
            self.digest = Some(digest);
            return Ok(ServerStep::Reply(reply(challenge)));
        };
        let by_key = self.policy.by_key;
        let verified = digest.verify_user(response, |user| {
            let password = find(&User::parse(user, by_key)?)?;
            Ok::<_, Unknown>((STANDARD.encode(password), ()))
        })?;
        let mut answer = reply(verified.answer);
        let Some(mut layer) = verified.layer else {
            return Ok(ServerStep::Done(answer, Channel::Plain));
        };
        let can_aes = self.policy.has_aes && message.cipher_option.iter().any(is_aes);
        if verified.protection != Protection::Privacy || !can_aes {
            return Ok(ServerStep::Done(answer, Channel::Enclosed(layer)));
        }
        let [open, seal] = [0, 1].map(|at| StreamKey {
            key: self.random.keys[at][..self.policy.key_len].to_vec(),
            iv: self.random.ivs[at],
        });
        answer.cipher_option = vec![CipherOptionProto {
            in_key: Some(layer.seal.seal(&open.key)?),
            in_iv: Some(open.iv.to_vec()),
            out_key: Some(layer.seal.seal(&seal.key)?),
            out_iv: Some(seal.iv.to_vec()),
            ..aes()
        }];
        Ok(ServerStep::Done(answer, Channel::Aes { seal, open }))
    }

    /// A client that came by another port of the NameNode says how much it wants, which its token proves elsewhere.
    /// Never less than what is offered anyway.
    fn narrow(&mut self, wanted: &[u8]) -> Result<(), Unknown> {
        let wanted = std::str::from_utf8(wanted).ok().and_then(Protection::of_qop);
        let wanted = wanted.filter(|wanted| self.policy.protections.contains(wanted));
        let wanted =
            wanted.ok_or_else(|| SaslError::new("an unknown quality of protection is wanted"))?;
        self.policy.protections = vec![wanted];
        Ok(())
    }
}

impl User {
    /// Source: Hadoop 3.5.0 `SaslDataTransferServer#getEncryptionKeyFromUserName`, `#deserializeIdentifier`.
    fn parse(name: &str, by_key: bool) -> Result<User, SaslError> {
        let bad = || SaslError::new("DIGEST-MD5: username");
        if !by_key {
            return STANDARD.decode(name).map(User::Token).map_err(|_| bad());
        }
        let parts: Vec<&str> = name.split(' ').collect();
        let [key_id, pool, nonce] = parts[..] else { return Err(bad()) };
        Ok(User::Key {
            key_id: key_id.parse().map_err(|_| bad())?,
            pool: pool.to_owned(),
            nonce: STANDARD.decode(nonce).map_err(|_| bad())?,
        })
    }
}

/// What a client shows.
#[derive(Clone)]
pub enum Shown {
    /// A token to the block that it asks for.
    Token(TokenProto),
    /// A key for all data.
    Key(DataEncryptionKeyProto),
}

/// The client's side of one exchange.
pub struct TransferClient {
    digest: DigestClient,
    /// Ciphers to name beside the response.
    ciphers: Vec<CipherOptionProto>,
    has_responded: bool,
}

/// What comes of a server's message.
#[derive(Debug)]
pub enum TransferStep {
    /// The server is to get this.
    Send(DataTransferEncryptorMessageProto),
    /// Both know each other. That is around all that follows.
    Done(Channel),
}

impl TransferClient {
    /// For one connection, with random bytes that were never used before; and the first message, which goes behind
    /// [`MAGIC`].
    pub fn begin(
        policy: &TransferPolicy,
        shown: &Shown,
        nonce: [u8; NONCE_LEN],
    ) -> (TransferClient, DataTransferEncryptorMessageProto) {
        let digest = match shown {
            Shown::Token(token) => {
                let (identifier, password) = (token.identifier.clone(), token.password.clone());
                let secret = Secret { identifier, password };
                DigestClient::new(Service::TRANSFER, &secret, nonce, &policy.protections)
            }
            Shown::Key(key) => {
                let (id, pool) = (key.key_id as i32, &key.block_pool_id);
                let user = format!("{id} {pool} {}", STANDARD.encode(&key.nonce));
                let user = (user, STANDARD.encode(&key.encryption_key));
                // Whoever encrypts all data takes nothing less.
                DigestClient::of_user(Service::TRANSFER, user, nonce, &[Protection::Privacy])
            }
        };
        let is_private = policy.protections.contains(&Protection::Privacy);
        let ciphers = if policy.has_aes && is_private { vec![aes()] } else { Vec::new() };
        (TransferClient { digest, ciphers, has_responded: false }, reply(Vec::new()))
    }

    /// Takes what the server has sent. After an error there is nothing more to say.
    pub fn take(
        &mut self,
        message: &DataTransferEncryptorMessageProto,
    ) -> Result<TransferStep, Unknown> {
        let bytes = payload(message)?;
        if !self.has_responded {
            self.has_responded = true;
            let response = self.digest.respond(bytes)?;
            let cipher_option = self.ciphers.clone();
            let message = DataTransferEncryptorMessageProto { cipher_option, ..reply(response) };
            return Ok(TransferStep::Send(message));
        }
        let (protection, layer) = self.digest.finish(bytes)?;
        let Some(mut layer) = layer else { return Ok(TransferStep::Done(Channel::Plain)) };
        let chosen = message.cipher_option.first().filter(|_| protection == Protection::Privacy);
        let Some(chosen) = chosen else {
            return Ok(TransferStep::Done(Channel::Enclosed(layer)));
        };
        if !is_aes(chosen) || self.ciphers.is_empty() {
            return Err(
                SaslError::new("the server has chosen a cipher that was not offered").into()
            );
        }
        let mut key = |wrapped: &[u8], iv: &[u8]| -> Result<StreamKey, SaslError> {
            let key = layer.open.open(wrapped)?;
            let iv = iv.try_into().ok().filter(|_| KEY_LENS.contains(&key.len()));
            let iv = iv.ok_or_else(|| SaslError::new("the server has sent keys that are none"))?;
            Ok(StreamKey { key, iv })
        };
        // Named as the server sees them.
        let seal = key(chosen.in_key(), chosen.in_iv())?;
        let open = key(chosen.out_key(), chosen.out_iv())?;
        Ok(TransferStep::Done(Channel::Aes { seal, open }))
    }
}

#[cfg(test)]
mod tests;
