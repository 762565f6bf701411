//! The clients that read and write files for users, one for each user who has asked lately.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_client::{ClientConfig, FileSystem};
use cairn_net::rpc_server::UserInfo;

use crate::failure::Failure;

/// Users whose clients are kept.
const USERS_MAX: usize = 256;
/// How long, after the last request. `dfs.webhdfs.ugi.expire.after.access`.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// File systems of users.
pub(crate) struct FileSystems {
    config: ClientConfig,
    kept: Mutex<HashMap<UserInfo, (Instant, FileSystem)>>,
}

impl FileSystems {
    pub(crate) fn new(config: ClientConfig) -> FileSystems {
        // Permission bits come as they are to be.
        FileSystems { config: ClientConfig { umask: 0, ..config }, kept: Mutex::default() }
    }

    /// The file system of a user.
    pub(crate) fn of(&self, user: &UserInfo) -> Result<FileSystem, Failure> {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, fs)) = kept.get_mut(user) {
            *used = now;
            return Ok(fs.clone());
        }
        kept.retain(|_, (used, _)| now.duration_since(*used) < KEPT_FOR);
        if kept.len() >= USERS_MAX {
            let oldest = kept.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(user, _)| user.clone()) {
                kept.remove(&oldest);
            }
        }
        let config = ClientConfig {
            user: user.effective.clone(),
            real_user: user.real.clone(),
            ..self.config.clone()
        };
        let fs = FileSystem::new(config)?;
        kept.insert(user.clone(), (now, fs.clone()));
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
