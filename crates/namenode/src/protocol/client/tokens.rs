//! Delegation tokens: who may have, renew and cancel them, and what they look like to clients.

use cairn_namespace::Outcome;
use cairn_namespace::ops::token::{CancelToken, IssueToken, RenewToken};
use cairn_net::rpc_server::{Authentication, Call};
use cairn_security::token::{DelegationTokenId, HDFS_DELEGATION_TOKEN, is_same};
use cairn_wire::exception::class;
use cairn_wire::proto::common;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};
use crate::security::SecurityConfig;
use crate::tokens::{identifier, millis};

/// Bytes of the longest name of a renewer.
const NAME_MAX: usize = 1024;
/// What Java throws when bytes end too early; its text is its name.
const END_OF_FILE: &str = "java.io.EOFException";

/// A token for who has shown a ticket; none where nobody has to show anything, and clients then go on without.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getDelegationToken`.
pub async fn get(node: &NameNode, call: &Call) -> Answer {
    let request: common::GetDelegationTokenRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot issue delegation token".to_string())?;
    let Some(security) = &node.config.security else {
        return answer(&common::GetDelegationTokenResponseProto { token: None });
    };
    let Authentication::Kerberos { effective, principal } = &call.user.by else {
        let text = "Delegation Token can be issued only with kerberos or web authentication";
        return Err(Refusal::io(text));
    };
    let renewer = match request.renewer.as_str() {
        "" => String::new(),
        long if long.len() > NAME_MAX => return Err(Refusal::io("The renewer's name is too long")),
        renewer => security.rules.user_of(renewer).map_err(|error| Refusal::io(error.0))?,
    };
    let acts = call.user.real.is_some();
    let issue = IssueToken {
        owner: effective.clone(),
        renewer,
        real_user: if acts { principal.clone() } else { String::new() },
        lasts_ms: millis(security.token_life),
        renew_ms: millis(security.token_renewal),
    };
    let token = match node.submit(call, issue).await? {
        Outcome::Token(token) => token,
        other => return Err(unexpected(&other)),
    };
    let identifier = identifier(&token).encode();
    let password = node.password_of(token.key, &identifier)?;
    let token = common::TokenProto {
        identifier,
        password,
        kind: HDFS_DELEGATION_TOKEN.to_string(),
        // Clients say which server it is of.
        service: String::new(),
    };
    answer(&common::GetDelegationTokenResponseProto { token: Some(token) })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#renewDelegationToken`, `AbstractDelegationTokenSecretManager#renewToken`.
pub async fn renew(node: &NameNode, call: &Call) -> Answer {
    let request: common::RenewDelegationTokenRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot renew delegation token".to_string())?;
    let Some(security) = &node.config.security else { return Err(unknown(&request.token)) };
    if !matches!(call.user.by, Authentication::Kerberos { .. }) {
        let text = "Delegation Token can be renewed only with kerberos or web authentication";
        return Err(Refusal::io(text));
    }
    let id = decoded(&request.token)?;
    let renewer = &call.user.effective;
    let described = describe(security, &id);
    let denied = |what: &str| {
        Err(Refusal::new(class::ACCESS_CONTROL, format!("{renewer} {what} {described}")))
    };
    if id.renewer.is_empty() {
        return denied("tried to renew without a renewer");
    }
    if id.renewer != *renewer {
        return denied(&format!("tries to renew with non-matching renewer {}", id.renewer));
    }
    let token = node.known_token(&id)?;
    let password = node.password_of(token.key, &id.encode())?;
    if !is_same(&password, &request.token.password) {
        return denied("is trying to renew with wrong password");
    }
    let renew_ms = millis(security.token_renewal);
    match node.submit(call, RenewToken { number: token.number, renew_ms }).await? {
        Outcome::Token(token) => {
            let new_expiry_time = token.renew_by_ms;
            answer(&common::RenewDelegationTokenResponseProto { new_expiry_time })
        }
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#cancelDelegationToken`, `AbstractDelegationTokenSecretManager#cancelToken`.
pub async fn cancel(node: &NameNode, call: &Call) -> Answer {
    let request: common::CancelDelegationTokenRequestProto = call.decode()?;
    node.check_safe_mode(|| "Cannot cancel delegation token".to_string())?;
    let Some(security) = &node.config.security else { return Err(unknown(&request.token)) };
    let id = decoded(&request.token)?;
    let user = &call.user.effective;
    let owner = security.rules.user_of(&id.owner).map_err(|error| Refusal::io(error.0))?;
    if *user != owner && *user != id.renewer {
        let described = describe(security, &id);
        let text = format!("{user} is not authorized to cancel the token {described}");
        return Err(Refusal::new(class::ACCESS_CONTROL, text));
    }
    let token = node.known_token(&id)?;
    node.submit(call, CancelToken { number: token.number }).await?;
    answer(&common::CancelDelegationTokenResponseProto {})
}

fn describe(security: &SecurityConfig, id: &DelegationTokenId) -> String {
    id.describe(&security.rules.user_of(&id.owner).unwrap_or_default())
}

fn decoded(token: &common::TokenProto) -> Result<DelegationTokenId, Refusal> {
    DelegationTokenId::decode(&token.identifier).map_err(|_| unknown(token))
}

/// There is none that this NameNode has issued.
fn unknown(token: &common::TokenProto) -> Refusal {
    match token.identifier.is_empty() {
        true => Refusal::new(END_OF_FILE, END_OF_FILE),
        false => Refusal::new(class::INVALID_TOKEN, "Token not found"),
    }
}
