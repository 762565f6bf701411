//! The clients that read and write files for users, one for each user who has asked lately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_client::{ClientConfig, FileSystem, SharedCredentials};
use cairn_net::rpc_server::{Authentication, UserInfo};
use cairn_security::client::OnlyToken;
use cairn_security::digest_md5::Secret;
use cairn_security::token::{DelegationTokenId, Token};
use cairn_security::{NameRules, Protection};
use cairn_wire::exception::class;

use crate::failure::Failure;

/// Users whose clients are kept.
const USERS_MAX: usize = 256;
/// How long, after the last request. `dfs.webhdfs.ugi.expire.after.access`.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// A user, and the token that was shown.
type Shown = (UserInfo, Option<Token>);

/// File systems of users.
pub(crate) struct FileSystems {
    config: ClientConfig,
    /// Who asks for the users that have shown a ticket, and which users principals stand for, where it does.
    acting: Option<(String, NameRules)>,
    kept: Mutex<HashMap<Shown, (Instant, FileSystem)>>,
}

impl FileSystems {
    pub(crate) fn new(config: ClientConfig) -> FileSystems {
        // Permission bits come as they are to be.
        let config = ClientConfig { umask: 0, ..config };
        FileSystems { config, acting: None, kept: Mutex::default() }
    }

    /// The same, by `user`, who acts for all others by its own tickets.
    pub(crate) fn acting(self, user: String, rules: NameRules) -> FileSystems {
        FileSystems { acting: Some((user, rules)), ..self }
    }

    /// The file system of who asks; where a token was shown, the NameNode knows by that who it is.
    pub(crate) fn of(&self, user: &UserInfo, token: &Option<Token>) -> Result<FileSystem, Failure> {
        self.kept(user, token.clone())
    }

    /// For whom a token speaks by its own word.
    pub(crate) fn user_of_token(&self, token: &Token) -> Result<UserInfo, Failure> {
        let id = DelegationTokenId::decode(&token.identifier);
        let id = id.map_err(|error| Failure::argument(error.to_string()))?;
        let name = match &self.acting {
            Some((_, rules)) => rules.user_of(&id.owner),
            None => Ok(id.owner.clone()),
        };
        let name = name.map_err(|error| Failure::new(class::ACCESS_CONTROL, error.0))?;
        Ok(UserInfo { by: Authentication::Token(Some(id.name())), ..UserInfo::simple(name) })
    }

    /// Who asks for a user.
    fn real(&self, user: &UserInfo) -> Option<String> {
        match &self.acting {
            Some((acting, _)) => Some(acting.clone()).filter(|acting| *acting != user.effective),
            None => user.real.clone(),
        }
    }

    fn kept(&self, user: &UserInfo, token: Option<Token>) -> Result<FileSystem, Failure> {
        let now = Instant::now();
        let key = (user.clone(), token);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, fs)) = kept.get_mut(&key) {
            *used = now;
            return Ok(fs.clone());
        }
        kept.retain(|_, (used, _)| now.duration_since(*used) < KEPT_FOR);
        if kept.len() >= USERS_MAX {
            let oldest = kept.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                kept.remove(&oldest);
            }
        }
        let mut config = ClientConfig {
            user: user.effective.clone(),
            real_user: self.real(user),
            ..self.config.clone()
        };
        if let Some(Token { identifier, password, .. }) = &key.1 {
            let secret = Secret { identifier: identifier.clone(), password: password.clone() };
            let shown = match &config.credentials {
                Some(own) => own.0.protections().to_vec(),
                None => Protection::ALL.to_vec(),
            };
            let shown = OnlyToken { secret, protections: shown };
            config.credentials = Some(SharedCredentials(Arc::new(shown)));
            config.real_user = None;
        }
        let fs = FileSystem::new(config)?;
        kept.insert(key, (now, fs.clone()));
        Ok(fs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_users_are_kept() {
        let files = FileSystems::new(ClientConfig::default());
        for number in 0..2 * USERS_MAX {
            let user = UserInfo::simple(format!("u{number}"));
            assert_eq!(files.kept(&user, None).unwrap().config().user, user.effective);
        }
        assert_eq!(files.kept.lock().unwrap().len(), USERS_MAX);
    }

    #[test]
    fn who_acts_for_others_does_so_by_its_own_name_and_a_token_speaks_for_itself() {
        let rules = NameRules::parse("", "R", false).unwrap();
        let files = FileSystems::new(ClientConfig::default()).acting("web".to_string(), rules);
        let real =
            |user: &UserInfo, token| files.kept(user, token).unwrap().config().real_user.clone();
        let named = UserInfo { real: Some("ann".to_string()), ..UserInfo::simple("bob") };
        assert_eq!(real(&named, None).as_deref(), Some("web"), "whoever stands behind bob");
        assert_eq!(real(&UserInfo::simple("web"), None), None);
        for (owner, user) in [("ann@R", Some("ann")), ("ann", Some("ann")), ("ann@OTHER", None)] {
            let owner = owner.to_string();
            let identifier = DelegationTokenId { owner, ..DelegationTokenId::default() }.encode();
            let token = Token { identifier, ..Token::default() };
            let told = files.user_of_token(&token).ok();
            assert_eq!(told.as_ref().map(|user| user.effective.as_str()), user);
            if let Some(user) = told {
                assert_eq!(real(&user, Some(token)), None);
            }
        }
        let token = Token { identifier: vec![0xff], ..Token::default() };
        assert!(files.user_of_token(&token).is_err());
    }
}
