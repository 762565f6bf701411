//! The keys that prove block tokens: a NameNode makes them and hands them to its DataNodes, and both issue and check
//! tokens with them.
//!
//! ```text
//! next  --roll-->  current  --roll-->  former, until no token needs it any more
//! ```
//! A key is known to DataNodes for as long as keys are used before it proves anything. A NameNode that starts makes new
//! keys; DataNodes keep those that they have until these end, and so go on to take the tokens of before.
//!
//! Times are ms since the epoch by the clocks of the machines: tokens go from one to another.
//!
//! Source: Hadoop 3.5.0 `BlockTokenSecretManager`, `ExportedBlockKeys`, `BlockKey`.

use std::fmt;

use cairn_wire::WireError;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::{BlockKeyProto, DataEncryptionKeyProto, ExportedBlockKeysProto};
use hmac::{Hmac, Mac};
use sha1::Sha1;

use crate::block_token::{
    AccessMode, BlockTokenId, Form, HDFS_BLOCK_TOKEN, InvalidToken, Modes, type_name,
};
use crate::token::is_same;
use crate::transfer::{Unknown, User};

/// Bytes of a key that is made here. Hadoop's default makes keys of 64 bits, which can be guessed.
pub const SECRET_LEN: usize = 32;
/// Bytes of a key that is taken.
const SECRET_MAX: usize = 4096;
/// Keys that are kept. What a NameNode has is three, and some more where it is often started.
const KEYS_MAX: usize = 256;

/// What a key is made of: random numbers.
#[derive(Clone, Copy)]
pub struct Random {
    /// Its number, unless one has that already.
    pub number: u32,
    /// What it is.
    pub secret: [u8; SECRET_LEN],
}

/// How long keys and tokens last, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lives {
    /// How long a key proves new tokens. Key `dfs.block.access.key.update.interval`.
    pub key_ms: i64,
    /// How long a token lasts. Key `dfs.block.access.token.lifetime`.
    pub token_ms: i64,
}

/// A key, ready to prove.
#[derive(Clone)]
struct BlockKey {
    id: i32,
    /// From when on no token needs it.
    expires_ms: i64,
    /// `None` where there is a number only.
    secret: Option<Vec<u8>>,
    /// With the secret in it: half of the work for a short identifier.
    mac: Option<Hmac<Sha1>>,
}

impl BlockKey {
    fn new(id: i32, expires_ms: i64, secret: Option<Vec<u8>>) -> BlockKey {
        // HMAC takes keys of any length.
        let mac = secret.as_ref().and_then(|secret| Hmac::new_from_slice(secret).ok());
        BlockKey { id, expires_ms, secret, mac }
    }

    fn password(&self, identifier: &[u8]) -> Option<Vec<u8>> {
        let mut mac = self.mac.clone()?;
        mac.update(identifier);
        Some(mac.finalize().into_bytes().to_vec())
    }

    fn proto(&self) -> BlockKeyProto {
        BlockKeyProto {
            key_id: self.id as u32,
            expiry_date: self.expires_ms as u64,
            key_bytes: self.secret.clone(),
        }
    }

    fn from_proto(proto: &BlockKeyProto) -> Result<BlockKey, WireError> {
        let len = proto.key_bytes.as_ref().map_or(0, Vec::len);
        if len > SECRET_MAX {
            let (what, limit) = ("block key", SECRET_MAX as u64);
            return Err(WireError::Length { what, len: len as i64, limit });
        }
        let (id, expires_ms) = (proto.key_id as i32, proto.expiry_date as i64);
        Ok(BlockKey::new(id, expires_ms, proto.key_bytes.clone()))
    }
}

/// What somebody wants to do with a block.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The block pool.
    pub pool: &'a str,
    /// The block.
    pub block: i64,
    /// As Hadoop's refusals name it.
    pub name: &'a dyn fmt::Display,
    /// What is to be done.
    pub mode: AccessMode,
    /// Numbers of types of the storages where it is to be written; none if that says nothing.
    pub storage_types: &'a [i32],
    /// The storages, likewise.
    pub storage_ids: &'a [String],
}

/// Keys at some moment. Others come of them, they do not change.
#[derive(Clone)]
pub struct BlockKeys {
    lives: Lives,
    form: Form,
    /// Its number.
    current: i32,
    /// The one that comes after it, where keys are made.
    next: Option<i32>,
    all: Vec<BlockKey>,
}

/// No secret shows.
impl fmt::Debug for BlockKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<i32> = self.all.iter().map(|key| key.id).collect();
        f.debug_struct("BlockKeys").field("current", &self.current).field("all", &ids).finish()
    }
}

impl BlockKeys {
    /// The first ones of a NameNode.
    pub fn begin(lives: Lives, form: Form, now_ms: i64, random: [Random; 2]) -> BlockKeys {
        let mut keys = BlockKeys { lives, form, current: 0, next: None, all: Vec::new() };
        let [current, next] = random;
        keys.current = keys.add(keys.until(now_ms, 2), current);
        keys.next = Some(keys.add(keys.until(now_ms, 3), next));
        keys
    }

    /// Those that come next: the one that DataNodes know already proves from now on.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#updateKeys`.
    pub fn rolled(&self, now_ms: i64, random: Random) -> BlockKeys {
        let mut keys = self.clone();
        keys.all.retain(|key| key.expires_ms >= now_ms);
        let (retiring, until) = (keys.current, [keys.until(now_ms, 1), keys.until(now_ms, 2)]);
        keys.current = keys.next.unwrap_or(retiring);
        for key in &mut keys.all {
            if key.id == keys.current {
                key.expires_ms = until[1];
            } else if key.id == retiring {
                key.expires_ms = until[0];
            }
        }
        keys.next = Some(keys.add(keys.until(now_ms, 3), random));
        keys
    }

    /// When a key ends that proves tokens for so many more intervals.
    fn until(&self, now_ms: i64, intervals: i64) -> i64 {
        let all = self.lives.key_ms.saturating_mul(intervals).saturating_add(self.lives.token_ms);
        now_ms.saturating_add(all)
    }

    fn add(&mut self, expires_ms: i64, random: Random) -> i32 {
        let mut id = (random.number >> 1) as i32;
        while self.all.iter().any(|key| key.id == id) {
            id = id.wrapping_add(1);
        }
        self.all.push(BlockKey::new(id, expires_ms, Some(random.secret.to_vec())));
        id
    }

    /// As DataNodes and balancers get them.
    pub fn exported(&self) -> ExportedBlockKeysProto {
        let current = self.all.iter().find(|key| key.id == self.current);
        ExportedBlockKeysProto {
            is_block_token_enabled: true,
            key_update_interval: self.lives.key_ms as u64,
            token_life_time: self.lives.token_ms as u64,
            current_key: current.map(BlockKey::proto).unwrap_or_default(),
            all_keys: self.all.iter().map(BlockKey::proto).collect(),
        }
    }

    /// Those that a NameNode has sent, and of `former` ones what has not ended; `None` where it issues no tokens.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#addKeys`.
    pub fn imported(
        former: Option<&BlockKeys>,
        sent: &ExportedBlockKeysProto,
        now_ms: i64,
    ) -> Result<Option<BlockKeys>, WireError> {
        if !sent.is_block_token_enabled {
            return Ok(None);
        }
        let lives = Lives {
            key_ms: sent.key_update_interval as i64,
            token_ms: sent.token_life_time as i64,
        };
        let (current, form) = (sent.current_key.key_id as i32, Form::default());
        let mut all = Vec::new();
        for proto in std::iter::once(&sent.current_key).chain(&sent.all_keys) {
            let key = BlockKey::from_proto(proto)?;
            all.retain(|known: &BlockKey| known.id != key.id);
            all.push(key);
        }
        let kept = former.iter().flat_map(|former| &former.all);
        let kept = kept.filter(|key| key.expires_ms >= now_ms);
        let kept: Vec<_> =
            kept.filter(|key| all.iter().all(|new| new.id != key.id)).cloned().collect();
        all.extend(kept);
        if all.len() > KEYS_MAX {
            let (len, limit) = (all.len() as i64, KEYS_MAX as u64);
            return Err(WireError::Length { what: "block keys", len, limit });
        }
        Ok(Some(BlockKeys { lives, form, current, next: None, all }))
    }

    /// How long a key proves new tokens, in ms.
    pub fn lives(&self) -> Lives {
        self.lives
    }

    /// A token that says what `id` does, from now on.
    pub fn issue(&self, id: BlockTokenId, now_ms: i64) -> TokenProto {
        let expires_ms = now_ms.saturating_add(self.lives.token_ms);
        let id = BlockTokenId { expires_ms, key_id: self.current, ..id };
        let identifier = id.encode(self.form);
        let key = self.key(self.current);
        let password = key.and_then(|key| key.password(&identifier)).unwrap_or_default();
        TokenProto {
            identifier,
            password,
            kind: HDFS_BLOCK_TOKEN.to_owned(),
            service: String::new(),
        }
    }

    /// A token for whoever serves: to one block, for one thing.
    pub fn issue_own(
        &self,
        user: &str,
        pool: &str,
        block: i64,
        mode: AccessMode,
        now_ms: i64,
    ) -> TokenProto {
        let id = BlockTokenId {
            user: Some(user.to_owned()),
            pool: Some(pool.to_owned()),
            block,
            modes: Modes::from(mode),
            ..BlockTokenId::default()
        };
        self.issue(id, now_ms)
    }

    fn key(&self, id: i32) -> Option<&BlockKey> {
        self.all.iter().find(|key| key.id == id)
    }

    /// What an identifier says, and the password that belongs to it, if it has not ended and its key is known.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#retrievePassword`.
    pub fn password_of(
        &self,
        identifier: &[u8],
        now_ms: i64,
    ) -> Result<(BlockTokenId, Vec<u8>), InvalidToken> {
        let id = BlockTokenId::decode(identifier)
            .map_err(|_| InvalidToken("Unable to de-serialize block token identifier".into()))?;
        if now_ms > id.expires_ms {
            return Err(InvalidToken(format!("Block token with {id} is expired.")));
        }
        let password = self.key(id.key_id).and_then(|key| key.password(identifier));
        let password = password.ok_or_else(|| {
            let key = id.key_id;
            InvalidToken(format!(
                "Can't re-compute password for {id}, since the required block key (keyID={key}) doesn't exist."
            ))
        })?;
        Ok((id, password))
    }

    /// A key for all data of a block pool, made of random bytes.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#generateDataEncryptionKey`.
    pub fn data_key(&self, pool: &str, nonce: [u8; 8], now_ms: i64) -> DataEncryptionKeyProto {
        let current = self.key(self.current);
        DataEncryptionKeyProto {
            key_id: self.current as u32,
            block_pool_id: pool.to_owned(),
            nonce: nonce.to_vec(),
            encryption_key: current.and_then(|key| key.password(&nonce)).unwrap_or_default(),
            expiry_date: now_ms.saturating_add(self.lives.token_ms) as u64,
            // The only one that is spoken where AES is not.
            encryption_algorithm: Some("rc4".to_owned()),
        }
    }

    /// What a user of a data port shows to have, or why it is not known.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#retrieveDataEncryptionKey`.
    pub fn password_for(&self, user: &User, now_ms: i64) -> Result<Vec<u8>, Unknown> {
        let (id, nonce) = match user {
            User::Token(identifier) => {
                let found = self.password_of(identifier, now_ms);
                return found.map(|(_, password)| password).map_err(Unknown::Token);
            }
            User::Key { key_id, nonce, .. } => (key_id, nonce),
        };
        self.key(*id).and_then(|key| key.password(nonce)).ok_or_else(|| {
            let current = self.current;
            Unknown::Key(format!(
                "Can't re-compute encryption key for nonce, since the required block key (keyID={id}) doesn't exist. \
                 Current key: {current}"
            ))
        })
    }

    /// Whether a token allows what is wanted.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenSecretManager#checkAccess`.
    pub fn check(
        &self,
        token: &TokenProto,
        wanted: &Wanted<'_>,
        now_ms: i64,
    ) -> Result<BlockTokenId, InvalidToken> {
        let id = BlockTokenId::decode(&token.identifier).map_err(|_| {
            let (block, mode) = (wanted.name, wanted.mode.name());
            InvalidToken(format!(
                "Unable to de-serialize block token identifier for user=null, block={block}, access mode={mode}"
            ))
        })?;
        allows(&id, wanted, now_ms)?;
        let (id, password) = self.password_of(&token.identifier, now_ms)?;
        if !is_same(&password, &token.password) {
            return Err(InvalidToken(format!(
                "Block token with {id} doesn't have the correct token password"
            )));
        }
        Ok(id)
    }
}

/// Whether an identifier, which is proven elsewhere, allows what is wanted.
pub fn allows(id: &BlockTokenId, wanted: &Wanted<'_>, now_ms: i64) -> Result<(), InvalidToken> {
    let refused = |why: String| Err(InvalidToken(format!("Block token with {id} {why}")));
    if id.pool.as_deref() != Some(wanted.pool) || id.block != wanted.block {
        return refused(format!("doesn't apply to block {}", wanted.name));
    }
    if now_ms > id.expires_ms {
        return refused("is expired.".into());
    }
    if !id.modes.has(wanted.mode) {
        return refused(format!("doesn't have {} permission", wanted.mode.name()));
    }
    let names = |numbers: &[i32]| -> Vec<String> {
        numbers.iter().map(|number| type_name(*number).to_owned()).collect()
    };
    covers("StorageTypes", &names(&id.storage_types), &names(wanted.storage_types))?;
    covers("StorageIDs", &id.storage_ids, wanted.storage_ids)
}

/// Whether all that are asked for are among those of the token, each as often. A token that names none is for any.
fn covers(what: &str, named: &[String], asked: &[String]) -> Result<(), InvalidToken> {
    if named.is_empty() || asked.is_empty() {
        return Ok(());
    }
    let mut left: Vec<&String> = named.iter().collect();
    for one in asked {
        match left.iter().position(|known| *known == one) {
            Some(at) => drop(left.swap_remove(at)),
            None => {
                let list = |names: &[String]| format!("[{}]", names.join(", "));
                let (named, asked) = (list(named), list(asked));
                return Err(InvalidToken(format!(
                    "Block token with {what} {named} not valid for access with {what} {asked}"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
