//! Delegation tokens: they give a job the rights of whoever got them, where there is no ticket.

use super::FileSystem;
use crate::error::Result;
use cairn_security::token::Token;
use cairn_wire::proto::common::*;

impl FileSystem {
    /// A token of the NameNode's, which `renewer` may renew. `None`: it issues none, as whoever asks is believed.
    ///
    /// Source: Hadoop 3.5.0 `DFSClient#getDelegationToken`, `HAUtilClient#buildTokenServiceForLogicalUri`.
    pub async fn delegation_token(&self, renewer: &str) -> Result<Option<Token>> {
        let request = GetDelegationTokenRequestProto { renewer: renewer.to_string() };
        let told: GetDelegationTokenResponseProto =
            self.session.namenode.call("getDelegationToken", &request).await?;
        Ok(told.token.map(Token::from))
    }

    /// Lets a token last longer. Returns when it ends, in ms since the epoch.
    pub async fn renew_delegation_token(&self, token: Token) -> Result<u64> {
        let request = RenewDelegationTokenRequestProto { token: token.into() };
        let told: RenewDelegationTokenResponseProto =
            self.session.namenode.call("renewDelegationToken", &request).await?;
        Ok(told.new_expiry_time)
    }

    /// Ends a token.
    pub async fn cancel_delegation_token(&self, token: Token) -> Result<()> {
        let request = CancelDelegationTokenRequestProto { token: token.into() };
        let _: CancelDelegationTokenResponseProto =
            self.session.namenode.call("cancelDelegationToken", &request).await?;
        Ok(())
    }
}
