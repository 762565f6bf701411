//! How clients show a member who they are, whoever leads: by tickets for its own principal, and by the tokens of the
//! namespace, of which it knows what it has applied.
//!
//! A token that is not there yet, or is good again after a renewal that is not, is waited for a moment: it may have been
//! issued by the leader just now. Who asks has shown nothing yet, so few wait at a time, and others are judged at once. A
//! member that hears of no leader, or has no namespace, refuses no token but says that it does not know.
//!
//! Source: Hadoop 3.5.0 `DelegationTokenSecretManager#retrievePassword`, `#retriableRetrievePassword`.
//! Deviation: a standby of Hadoop's refuses clients with tokens and has them go elsewhere.

use super::{Front, PATIENCE};
use crate::node::NameNode;
use crate::refusal::Refusal;
use crate::security::SecurityConfig;
use crate::standing::Standing;
use cairn_net::rpc_server::UserInfo;
use cairn_process::disk_work::quick;
use cairn_process::held::{held_read, held_write};
use cairn_security::SaslError;
use cairn_security::gssapi::Context;
use cairn_security::server::{Authority, Identity, Offers, delegation};
use cairn_wire::RemoteException;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a token is waited for that this member does not know.
const TOKEN_PATIENCE: Duration = Duration::from_millis(500);

/// The time between two looks for it.
const PAUSE: Duration = Duration::from_millis(20);

impl Front {
    /// From now on tokens are judged by what this NameNode reads, which follows; by nobody while there is none.
    pub fn judge_by(&self, following: Option<Arc<NameNode>>) {
        *held_write(&self.tokens.following) = following;
    }

    /// What knows of tokens now.
    fn judge(&self) -> Option<Arc<NameNode>> {
        match self.leading() {
            Some(leading) => Some(Arc::clone(&leading.service.0)),
            None => held_read(&self.tokens.following).clone(),
        }
    }

    /// What is configured, if clients are to show who they are.
    pub(super) fn security(&self) -> Option<&SecurityConfig> {
        self.operators.security.as_ref()
    }

    /// Whether a connection, or a call over one of another protocol, may speak a protocol for a user.
    pub(super) fn check(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
    ) -> Result<(), RemoteException> {
        self.security().map_or(Ok(()), |security| security.check(user, protocol))
    }

    /// Ends when a token can be judged, or has been waited for for long enough.
    pub(super) async fn wait_for_token(&self, identifier: &[u8]) {
        let Ok(id) = delegation(identifier) else { return };
        let is_good = |node: &NameNode| quick(|| node.good_token_password(&id)).is_ok();
        if self.judge().is_some_and(|node| is_good(&node)) {
            return;
        }
        let Ok(_turn) = self.tokens.waits.try_acquire() else { return };
        let begun = Instant::now();
        loop {
            let patience = match self.judge() {
                // Who leads knows all tokens that there are.
                Some(_) if self.leading().is_some() => return,
                Some(node) if is_good(&node) => return,
                Some(_) => TOKEN_PATIENCE,
                None => PATIENCE,
            };
            if begun.elapsed() >= patience {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Authority for Front {
    fn offers(&self) -> &Offers {
        self.security().map_or(&Offers::Simple, |security| &security.offers)
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        let unknown = || Refusal::standby(&self.standing()).0;
        let judge = self.judge().ok_or_else(unknown)?;
        let found = judge.token(identifier);
        // What was closed meanwhile finds nothing, and who is cut off may lack what others have.
        let has_judged = self.judge().is_some_and(|now| Arc::ptr_eq(&now, &judge))
            && !matches!(self.standing(), Standing::Nobody { .. });
        match found {
            Err(_) if !has_judged => Err(unknown()),
            found => found,
        }
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        match self.security() {
            Some(security) => security.rules.user_of(principal),
            None => Ok(principal.to_owned()),
        }
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        match self.security() {
            Some(security) => (security.acceptor.0)(),
            None => Err(SaslError::new("There is no Kerberos")),
        }
    }
}
