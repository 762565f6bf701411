//! Delegation tokens: issued, renewed, ended.
//!
//! Whether a caller may do that follows from how it is known and what it shows, and is looked at before.

use crate::counter;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::perm;
use crate::token::{self, PAGE, Secret, Token, TokenKey};

/// Makes a new master key, which proves all tokens that are issued from now on. Keys that no token needs any more go.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#rollMasterKey`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddTokenKey {
    /// Random bytes.
    pub secret: Secret,
    /// For how long tokens may need it, in ms.
    pub lasts_ms: u64,
}

/// Issues a token, for which there must be a key.
///
/// Answer: `Outcome::Token`.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#createPassword`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueToken {
    /// Whose rights it gives.
    pub owner: String,
    /// Who may renew and cancel it; empty for nobody.
    pub renewer: String,
    /// Who acts for the owner; empty for nobody.
    pub real_user: String,
    /// How long it can last, in ms.
    pub lasts_ms: u64,
    /// How long it lasts without being renewed, in ms.
    pub renew_ms: u64,
}

/// Lets a token go on.
///
/// Answer: `Outcome::Token`.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#renewToken`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewToken {
    /// Its number.
    pub number: u32,
    /// How long it lasts without being renewed again, in ms.
    pub renew_ms: u64,
}

/// Ends a token.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#cancelToken`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelToken {
    /// Its number.
    pub number: u32,
}

/// Removes tokens that have ended, of some that begin with a number.
///
/// Answer: `Outcome::TokensRemoved`, where the next ones begin, if there are more.
///
/// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#removeExpiredToken`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveEndedTokens {
    /// The first number.
    pub from: u32,
}

encode_struct!(AddTokenKey { secret, lasts_ms });
encode_struct!(IssueToken { owner, renewer, real_user, lasts_ms, renew_ms });
encode_struct!(RenewToken { number, renew_ms });
encode_struct!(CancelToken { number });
encode_struct!(RemoveEndedTokens { from });

impl AddTokenKey {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        for key in token::keys(cx.store)? {
            if key.until_ms < cx.times.wall_ms {
                token::delete_key(cx.store, key.number)?;
            }
        }
        let number = counter::next_token_key(cx.store)?;
        let until_ms = cx.times.wall_ms.saturating_add(self.lasts_ms);
        token::put_key(cx.store, &TokenKey { number, secret: self.secret.clone(), until_ms })?;
        Ok(Outcome::Done)
    }
}

impl IssueToken {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let Some(key) = token::keys(cx.store)?.pop() else {
            return Err(NamespaceError::Io(
                "There is no key for delegation tokens yet".to_string(),
            ));
        };
        let max_ms = cx.times.wall_ms.saturating_add(self.lasts_ms);
        let issued = Token {
            number: counter::next_token(cx.store)?,
            owner: self.owner.clone(),
            renewer: self.renewer.clone(),
            real_user: self.real_user.clone(),
            issued_ms: cx.times.wall_ms,
            max_ms,
            key: key.number,
            renew_by_ms: max_ms.min(cx.times.wall_ms.saturating_add(self.renew_ms)),
        };
        token::put_token(cx.store, &issued)?;
        Ok(Outcome::Token(Box::new(issued)))
    }
}

impl RenewToken {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let mut token = known(cx, self.number)?;
        if token.max_ms < cx.times.wall_ms {
            let text = format!("token {} has ended and cannot be renewed", self.number);
            return Err(NamespaceError::InvalidToken(text));
        }
        token.renew_by_ms = token.max_ms.min(cx.times.wall_ms.saturating_add(self.renew_ms));
        token::put_token(cx.store, &token)?;
        Ok(Outcome::Token(Box::new(token)))
    }
}

impl CancelToken {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        known(cx, self.number)?;
        token::delete_token(cx.store, self.number)?;
        Ok(Outcome::Done)
    }
}

impl RemoveEndedTokens {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let page = token::tokens_from(cx.store, self.from, PAGE)?;
        for token in &page {
            if token.renew_by_ms < cx.times.wall_ms {
                token::delete_token(cx.store, token.number)?;
            }
        }
        let last = page.last().filter(|_| page.len() == PAGE);
        Ok(Outcome::TokensRemoved(last.map(|last| last.number.saturating_add(1))))
    }
}

fn known(cx: &Context<'_, '_>, number: u32) -> Result<Token> {
    let token = token::token(cx.store, number)?;
    token.ok_or_else(|| NamespaceError::InvalidToken(format!("Token not found: {number}")))
}
