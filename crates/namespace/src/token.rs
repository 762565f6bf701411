//! Delegation tokens that the NameNode has issued, and the master keys that prove them.
//!
//! Table `delegation-token`: number, 8 bytes, big endian -> token. Table `token-key`: number, 8 bytes, big endian -> key.
//! What a token is to clients, and what follows from a key, is not known here. Changes are in `ops/token.rs`.
//!
//! Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager`.

use crate::encoding::{
    Decode, DecodeError, Decoder, Encode, Encoder, encode_struct, from_record, to_record,
};
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};
use std::fmt;
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// Tokens that are looked at in one go.
pub const PAGE: usize = 1000;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number.
    pub number: u32,
    /// Whose rights it gives, by the name known when it was issued.
    pub owner: String,
    /// Who may renew and cancel it; empty for nobody.
    pub renewer: String,
    /// Who acts for the owner; empty for nobody.
    pub real_user: String,
    /// When it was issued, ms since the epoch.
    pub issued_ms: u64,
    /// When it ends, however often it is renewed.
    pub max_ms: u64,
    /// The master key that proves it.
    pub key: u32,
    /// When it ends if it is not renewed.
    pub renew_by_ms: u64,
}

/// Random bytes of a master key, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; SECRET_LEN]);

/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Encode for Secret {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

impl Decode for Secret {
    fn decode(input: &mut Decoder<'_>) -> std::result::Result<Self, DecodeError> {
        Decode::decode(input).map(Secret)
    }
}

/// What proves tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKey {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub secret: Secret,
    /// From when on no token needs it, ms since the epoch.
    pub until_ms: u64,
}

encode_struct!(Token { number, owner, renewer, real_user, issued_ms, max_ms, key, renew_by_ms });
encode_struct!(TokenKey { number, secret, until_ms });

fn number_key(number: u32) -> [u8; 8] {
    u64::from(number).to_be_bytes()
}

/// The token of that number.
pub fn token(store: &dyn StoreRead, number: u32) -> Result<Option<Token>> {
    match store.get(Table::DelegationToken, &number_key(number))? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Ok(None),
    }
}

/// The key of that number.
pub fn key(store: &dyn StoreRead, number: u32) -> Result<Option<TokenKey>> {
    match store.get(Table::TokenKey, &number_key(number))? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Ok(None),
    }
}

/// Up to `limit` tokens with numbers from `from` on.
pub fn tokens_from(store: &dyn StoreRead, from: u32, limit: usize) -> Result<Vec<Token>> {
    records(store, Table::DelegationToken, from, limit)
}

/// All keys, the newest last. There are few.
pub fn keys(store: &dyn StoreRead) -> Result<Vec<TokenKey>> {
    records(store, Table::TokenKey, 0, usize::MAX)
}

fn records<T: Decode>(
    store: &dyn StoreRead,
    table: Table,
    from: u32,
    limit: usize,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    store.scan(table, &number_key(from), &[], &mut |_, value| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push(from_record(VERSION, value));
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().collect::<std::result::Result<_, DecodeError>>()?)
}

pub(crate) fn put_token(store: &mut dyn StoreTxn, token: &Token) -> Result<()> {
    let record = to_record(VERSION, token);
    Ok(store.put(Table::DelegationToken, &number_key(token.number), &record)?)
}

pub(crate) fn delete_token(store: &mut dyn StoreTxn, number: u32) -> Result<()> {
    Ok(store.delete(Table::DelegationToken, &number_key(number))?)
}

pub(crate) fn put_key(store: &mut dyn StoreTxn, key: &TokenKey) -> Result<()> {
    Ok(store.put(Table::TokenKey, &number_key(key.number), &to_record(VERSION, key))?)
}

pub(crate) fn delete_key(store: &mut dyn StoreTxn, number: u32) -> Result<()> {
    Ok(store.delete(Table::TokenKey, &number_key(number))?)
}
