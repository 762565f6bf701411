//! The delegation tokens that a NameNode has issued: which are good, and the keys that prove them. They end by the wall
//! time of the file system, by which they are issued.

use std::sync::Arc;
use std::time::Duration;

use cairn_namespace::ops::token::{AddTokenKey, RemoveEndedTokens};
use cairn_namespace::token::{self, SECRET_LEN, Secret, Token};
use cairn_operate::workers::Worker;
use cairn_security::token::{DelegationTokenId, password};
use cairn_wire::exception::class;
use tokio::time::{MissedTickBehavior, interval};

use crate::node::NameNode;
use crate::refusal::Refusal;
use crate::security::SecurityConfig;

/// How often it is looked which tokens have ended and whether a new key is due.
///
/// Source: Hadoop 3.5.0 `DFS_NAMENODE_DELEGATION_TOKEN_REMOVER_SCAN_INTERVAL`, an hour.
const LOOK: Duration = Duration::from_secs(600);
/// How soon it is tried again where that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// A time in ms, as the log has it.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a token says of itself to clients.
pub(crate) fn identifier(token: &Token) -> DelegationTokenId {
    DelegationTokenId {
        owner: token.owner.clone(),
        renewer: token.renewer.clone(),
        real_user: token.real_user.clone(),
        issued_ms: token.issued_ms as i64,
        max_ms: token.max_ms as i64,
        sequence: token.number as i32,
        key_id: token.key as i32,
    }
}

impl NameNode {
    /// The token that says this of itself, if it was issued and not cancelled.
    pub(crate) fn known_token(&self, id: &DelegationTokenId) -> Result<Token, Refusal> {
        let token = self.ns.read(|store| token::token(store, id.sequence as u32))?;
        let token = token.filter(|token| identifier(token) == *id);
        token.ok_or_else(|| Refusal::new(class::INVALID_TOKEN, "Token not found"))
    }

    /// What proves a token.
    pub(crate) fn password_of(&self, key: u32, identifier: &[u8]) -> Result<Vec<u8>, Refusal> {
        match self.ns.read(|store| token::key(store, key))? {
            Some(key) => Ok(password(identifier, &key.secret.0)),
            None => {
                let text = format!("Unable to find master key for keyId={key}");
                Err(Refusal::new(class::INVALID_TOKEN, text))
            }
        }
    }

    /// The password of a token that is good now.
    ///
    /// Source: Hadoop 3.5.0 `AbstractDelegationTokenSecretManager#checkToken`.
    pub(crate) fn good_token_password(&self, id: &DelegationTokenId) -> Result<Vec<u8>, Refusal> {
        let token = self.known_token(id).map_err(|_| {
            let text = format!("Token for real user: {}, can't be found in cache", id.real_user);
            Refusal::new(class::INVALID_TOKEN, text)
        })?;
        if token.renew_by_ms < self.now().wall_ms {
            let text = format!("Token {} has expired", id.real_user);
            return Err(Refusal::new(class::INVALID_TOKEN, text));
        }
        self.password_of(token.key, &id.encode())
    }

    /// Makes a new key where one is due, and removes tokens that have ended.
    async fn look_after_tokens(&self, security: &SecurityConfig) -> Result<(), Refusal> {
        let newest = self.ns.read(|store| token::keys(store))?.pop();
        let life = millis(security.token_life);
        // A key is for as long as tokens are issued by it, and then for as long as these last.
        let is_due =
            newest.is_none_or(|key| key.until_ms.saturating_sub(life) <= self.now().wall_ms);
        if is_due {
            let mut secret = [0; SECRET_LEN];
            getrandom::fill(&mut secret)
                .map_err(|error| Refusal::io(format!("no random numbers: {error}")))?;
            let lasts_ms = life.saturating_add(millis(security.token_key_interval));
            self.submit_own(AddTokenKey { secret: Secret(secret), lasts_ms }).await?;
        }
        let has_ended = |token: &Token| token.renew_by_ms < self.now().wall_ms;
        let mut from = Some(0);
        while let Some(begin) = from {
            // Entries are for changes only.
            let page = self.ns.read(|store| token::tokens_from(store, begin, token::PAGE))?;
            from = page.last().filter(|_| page.len() == token::PAGE).map(|last| last.number + 1);
            if page.iter().any(has_ended) {
                self.submit_own(RemoveEndedTokens { from: begin }).await?;
            }
        }
        Ok(())
    }
}

/// Keeps the keys and tokens of a NameNode in order, where there are any.
pub(crate) async fn look_after(node: Arc<NameNode>, worker: Arc<Worker>) {
    let Some(security) = &node.config.security else { return };
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        worker.rest(looks.tick()).await;
        while let Err(refusal) = node.look_after_tokens(security).await {
            tracing::warn!(refusal = %refusal.0, "delegation tokens are not looked after");
            worker.failed(&refusal.0);
            tokio::time::sleep(AGAIN).await;
        }
    }
}
