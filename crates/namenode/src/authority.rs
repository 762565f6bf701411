//! What the handshakes of connections ask of a NameNode.

use cairn_security::SaslError;
use cairn_security::gssapi::Context;
use cairn_security::server::{Authority, Identity, Offers, delegation};
use cairn_wire::RemoteException;

use crate::node::NameNode;

impl Authority for NameNode {
    fn offers(&self) -> &Offers {
        self.config.security.as_ref().map_or(&Offers::Simple, |security| &security.offers)
    }

    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
        let id = delegation(identifier)?;
        let password = self.good_token_password(&id).map_err(|refusal| refusal.0)?;
        Ok((Identity::Token(id), password))
    }

    fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        match &self.config.security {
            Some(security) => security.rules.user_of(principal),
            None => Ok(principal.to_owned()),
        }
    }

    fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
        match &self.config.security {
            Some(security) => (security.acceptor.0)(),
            None => Err(SaslError::new("There is no Kerberos")),
        }
    }
}
