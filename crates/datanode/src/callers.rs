//! What the RPC port knows of callers.

use crate::block_tokens::BlockTokens;
use crate::security::SecurityConfig;
use cairn_security::SaslError;
use cairn_security::gssapi::Context;
use cairn_security::server::{Authority, Identity, Offers};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use std::sync::Arc;

/// What the RPC port knows of callers.
pub(crate) struct Callers {
    pub(crate) tokens: Arc<BlockTokens>,
    pub(crate) security: Option<SecurityConfig>,
}

impl Authority for Callers {
    fn offers(&self) -> &Offers {
        self.security.as_ref().map_or(&Offers::Tokens, |security| &security.offers)
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        match self.tokens.password_of(identifier) {
            Ok((id, password)) => Ok((Identity::Block(Box::new(id)), password)),
            Err(error) => Err(RemoteException::new(class::INVALID_TOKEN, error.0)),
        }
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        match &self.security {
            Some(security) => security.rules.user_of(principal),
            None => Ok(principal.to_owned()),
        }
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        match &self.security {
            Some(security) => (security.acceptor.0)(),
            None => Err(SaslError::new("There is no Kerberos")),
        }
    }
}
