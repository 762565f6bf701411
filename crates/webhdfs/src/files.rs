//! The clients that read and write files for users, one for each user who has asked lately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_client::{ClientConfig, FileSystem, SharedCredentials};
use cairn_net::rpc_server::UserInfo;
use cairn_security::Protection;
use cairn_security::client::OnlyToken;
use cairn_security::digest_md5::Secret;
use cairn_security::token::Token;

use crate::failure::Failure;

/// Users whose clients are kept.
const USERS_MAX: usize = 256;
/// How long, after the last request. `dfs.webhdfs.ugi.expire.after.access`.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// A user, and the token that was shown.
type Asker = (UserInfo, Option<Token>);

/// File systems of users.
pub(crate) struct FileSystems {
    config: ClientConfig,
    kept: Mutex<HashMap<Asker, (Instant, FileSystem)>>,
}

impl FileSystems {
    pub(crate) fn new(config: ClientConfig) -> FileSystems {
        // Permission bits come as they are to be.
        FileSystems { config: ClientConfig { umask: 0, ..config }, kept: Mutex::default() }
    }

    /// The file system of a user.
    pub(crate) fn of(&self, user: &UserInfo) -> Result<FileSystem, Failure> {
        self.kept(user, None)
    }

    /// That of who has shown a token, by which the NameNode knows who it is.
    pub(crate) fn of_token(&self, user: &UserInfo, token: Token) -> Result<FileSystem, Failure> {
        self.kept(user, Some(token))
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
            real_user: user.real.clone(),
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
            assert_eq!(files.of(&user).unwrap().config().user, user.effective);
        }
        assert_eq!(files.kept.lock().unwrap().len(), USERS_MAX);
    }
}
