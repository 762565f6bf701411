//! Which groups a user is in, asked of the operating system and believed for a while.
//!
//! Source: Hadoop 3.5.0 `Groups`, `ShellBasedUnixGroupsMapping`.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Users remembered at a time; the cache is emptied when more come.
const MAX_CACHED_USERS: usize = 10_000;
/// Longest user name that is looked up, bytes.
const MAX_USER_LEN: usize = 256;

/// A cache in front of the system's user database.
#[derive(Debug)]
pub struct Groups {
    fixed: HashMap<String, Vec<String>>,
    believed_for: Duration,
    cache: Mutex<HashMap<String, (Instant, Vec<String>)>>,
}

impl Groups {
    /// `fixed` groups go before what the system says; lookups are believed for `believed_for`.
    pub fn new(fixed: &[(String, Vec<String>)], believed_for: Duration) -> Groups {
        let fixed = fixed.iter().cloned().collect();
        Groups { fixed, believed_for, cache: Mutex::default() }
    }

    /// The groups of `user`, the primary one first; none for a user that the system does not know.
    pub async fn of(&self, user: &str) -> Vec<String> {
        if let Some(groups) = self.known(user) {
            return groups;
        }
        let name = user.to_owned();
        let groups =
            tokio::task::spawn_blocking(move || system_groups(&name)).await.unwrap_or_default();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_USERS {
            cache.clear();
        }
        cache.insert(user.to_owned(), (Instant::now(), groups.clone()));
        groups
    }

    /// The groups of `user` if the system needs not be asked.
    pub fn known(&self, user: &str) -> Option<Vec<String>> {
        self.fixed.get(user).cloned().or_else(|| self.cached(user))
    }

    /// Forgets what was looked up. Source: `RefreshUserMappingsProtocol`.
    pub fn refresh(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn cached(&self, user: &str) -> Option<Vec<String>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (looked_up, groups) = cache.get(user)?;
        (looked_up.elapsed() < self.believed_for).then(|| groups.clone())
    }
}

/// The name of the user of this process; `None` if the system cannot tell.
pub fn process_user() -> Option<String> {
    run_id(&["-un"]).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn system_groups(user: &str) -> Vec<String> {
    if user.is_empty() || user.len() > MAX_USER_LEN || user.contains('\0') {
        return Vec::new();
    }
    // `id` takes a number for a user id, Hadoop's users are names.
    if user.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let line = run_id(&["-Gn", "--", user]).unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

fn run_id(args: &[&str]) -> Option<String> {
    let output = Command::new("id").args(args).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn groups_come_from_the_table_then_the_system() {
        let fixed = [("alice".to_string(), vec!["staff".to_string(), "dev".to_string()])];
        let groups = Groups::new(&fixed, Duration::from_secs(60));
        assert_eq!(groups.of("alice").await, ["staff", "dev"]);
        assert_eq!(groups.of("root").await.first().map(String::as_str), Some("root"));
        for nobody in ["", "no-such-user-here", "-h", "0", "a\0b"] {
            assert!(groups.of(nobody).await.is_empty(), "{nobody:?}");
        }
    }
}
