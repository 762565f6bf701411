//! Which groups a user is in, asked of the operating system, or of an LDAP server ([`ldap`]), and believed for a while.
//!
//! A user is asked for by one caller at a time, few are at once, and none for long: the others have what was known
//! before, or wait. An answer that does not come leaves the one before it in place.
//!
//! Source: Hadoop 3.5.0 `Groups`, `ShellBasedUnixGroupsMapping`.

pub mod ldap;

use cairn_keys::{Kind, MILLIS, SECONDS, keys, value};
use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use ldap::LdapConfig;

/// Users remembered at a time; some are forgotten when more come.
const MAX_CACHED_USERS: usize = 10_000;
/// So many of them.
const FORGOTTEN_USERS: usize = MAX_CACHED_USERS / 8;
/// Longest user name that is looked up, bytes.
const MAX_USER_LEN: usize = 256;
/// For so many times as long as they are believed, groups are better than none. Source: Hadoop 3.5.0 `Groups#Groups`.
const KEPT_FOR: u32 = 10;
/// Look-ups that run at a time.
const LOOKUPS: usize = 8;
/// The longest that a look-up may take, waiting for its turn included. Deviation: Hadoop's
/// `hadoop.security.groups.shell.command.timeout` sets no limit unless it is told to.
const LOOKUP_MAX: Duration = Duration::from_secs(20);

const OVERRIDES: Kind<Vec<(String, Vec<String>)>> = Kind::new("user=group,group;…", value::groups);

keys! {
    /// Where groups come from, and how long they are believed; `Default` has Hadoop's defaults.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GroupsConfig {
        /// Groups of users that go before what the system says.
        fixed: Vec<(String, Vec<String>)>,
        "hadoop.user.group.static.mapping.overrides" = "dr.who=;" as OVERRIDES;
        /// How long looked-up groups are believed.
        believed_for: Duration, "hadoop.security.groups.cache.secs" = "300" as SECONDS;
        /// How long a look-up that failed or found no groups is not tried again.
        failure_believed_for: Duration, "hadoop.security.groups.negative-cache.secs" = "30" as SECONDS;
        /// A look-up that takes longer is told in the log.
        warn_after: Duration, "hadoop.security.groups.cache.warn.after.ms" = "5000" as MILLIS;
    }
    parts {}
    by_hand {
        /// Who is asked: the system, or an LDAP server for `org.apache.hadoop.security.LdapGroupsMapping`.
        "hadoop.security.group.mapping" = "the system" as "Hadoop's class";
    }
    others {
        /// How an LDAP server is asked, if one is and not the system.
        ldap: Option<LdapConfig> = None;
    }
}

/// A cache in front of the system's user database, or of a directory.
#[derive(Debug)]
pub struct Groups {
    fixed: HashMap<String, Vec<String>>,
    believed_for: Duration,
    failure_believed_for: Duration,
    warn_after: Duration,
    cache: Mutex<HashMap<String, User>>,
    lookups: Semaphore,
    lookup_max: Duration,
    /// What prints the groups of a user whose name is its last argument.
    command: Vec<String>,
    /// Who is asked instead.
    ldap: Option<LdapConfig>,
}

/// What is remembered of a user.
#[derive(Debug, Default)]
struct User {
    known: Option<Known>,
    /// Who holds it asks the system.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Known {
    groups: Vec<String>,
    /// When the system told them.
    told: Instant,
    /// When it was asked last, and for how long it is not asked again.
    asked: Instant,
    believed_for: Duration,
}

impl Known {
    /// The groups, if the system needs not be asked.
    fn believed(&self) -> Option<Vec<String>> {
        (self.asked.elapsed() < self.believed_for).then(|| self.groups.clone())
    }
}

impl Groups {
    /// Groups of which nothing is known yet.
    pub fn new(config: &GroupsConfig) -> Groups {
        Groups {
            fixed: config.fixed.iter().cloned().collect(),
            believed_for: config.believed_for,
            failure_believed_for: config.failure_believed_for,
            warn_after: config.warn_after,
            cache: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
            lookup_max: LOOKUP_MAX,
            command: ["id", "-Gn", "--"].map(str::to_owned).to_vec(),
            ldap: config.ldap.clone(),
        }
    }

    /// The groups of `user`, the primary one first; none for a user that the system does not know.
    pub async fn of(&self, user: &str) -> Vec<String> {
        if let Some(groups) = self.known(user) {
            return groups;
        }
        let asking = self.asking(user);
        let _asking = asking.lock().await;
        // Who asked before has been answered, most likely.
        let answered = self.cache().get(user).and_then(|user| user.known.as_ref()?.believed());
        if let Some(groups) = answered {
            return groups;
        }
        let lookup = async {
            let _turn = self.lookups.acquire().await.map_err(io::Error::other)?;
            self.look_up(user).await
        };
        let begun = Instant::now();
        let told = timeout(self.lookup_max, lookup).await.unwrap_or_else(|late| Err(late.into()));
        let took = begun.elapsed();
        if took > self.warn_after {
            let took_ms = took.as_millis();
            tracing::warn!(user, took_ms, "it took long to look up the groups of a user");
        }
        self.note(user, told)
    }

    /// The groups of `user` if the system needs not be asked, or somebody asks it and they were known before.
    pub fn known(&self, user: &str) -> Option<Vec<String>> {
        if let Some(groups) = self.fixed.get(user) {
            return Some(groups.clone());
        }
        if !is_name(user) {
            return Some(Vec::new());
        }
        let cache = self.cache();
        let User { known, asking } = cache.get(user)?;
        let known = known.as_ref()?;
        let is_asked_for = || asking.try_lock().is_err() && self.is_kept(known);
        known.believed().or_else(|| is_asked_for().then(|| known.groups.clone()))
    }

    /// Forgets what was looked up. Source: `RefreshUserMappingsProtocol`.
    pub fn refresh(&self) {
        self.cache().clear();
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, User>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether groups that should be asked for again are better than none.
    fn is_kept(&self, known: &Known) -> bool {
        known.told.elapsed() < self.believed_for.saturating_mul(KEPT_FOR)
    }

    /// What one holds who asks for `user`.
    fn asking(&self, user: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut cache = self.cache();
        if let Some(user) = cache.get(user) {
            return Arc::clone(&user.asking);
        }
        if cache.len() >= MAX_CACHED_USERS {
            forget(&mut cache, FORGOTTEN_USERS);
        }
        Arc::clone(&cache.entry(user.to_owned()).or_default().asking)
    }

    /// Remembers what the system said, and tells what is to be believed.
    fn note(&self, user: &str, told: io::Result<Vec<String>>) -> Vec<String> {
        let now = Instant::now();
        let groups = told.unwrap_or_else(|error| {
            tracing::warn!(user, %error, "cannot look up the groups of a user");
            Vec::new()
        });
        let mut cache = self.cache();
        // Who is not there any more was forgotten meanwhile: the next caller asks again.
        let Some(User { known, .. }) = cache.get_mut(user) else { return groups };
        if !groups.is_empty() {
            let believed_for = self.believed_for;
            *known = Some(Known { groups: groups.clone(), told: now, asked: now, believed_for });
            return groups;
        }
        let before = known.take().filter(|known| self.is_kept(known));
        let (groups, told) = before.map_or((groups, now), |known| (known.groups, known.told));
        let believed_for = self.failure_believed_for;
        *known = Some(Known { groups: groups.clone(), told, asked: now, believed_for });
        groups
    }

    /// Asks the system, or whoever is asked instead; no groups where it does not know the user.
    async fn look_up(&self, user: &str) -> io::Result<Vec<String>> {
        if let Some(ldap) = &self.ldap {
            return ldap.groups(user).await;
        }
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).arg(user).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await?;
        if output.status.code().is_none() {
            return Err(io::Error::other(output.status.to_string()));
        }
        let line = String::from_utf8_lossy(&output.stdout);
        // A group without a name is printed as its number, and makes it fail: the others are good.
        let is_named = |group: &&str| output.status.success() || !is_number(group);
        Ok(line.split_whitespace().filter(is_named).map(str::to_owned).collect())
    }
}

/// Drops `count` users: first those without groups, who may be made up, then those who were asked for longest ago.
fn forget(cache: &mut HashMap<String, User>, count: usize) {
    let worth = |user: &User| match &user.known {
        Some(known) if known.groups.is_empty() => (0, Some(known.asked)),
        None => (1, None),
        Some(known) => (2, Some(known.asked)),
    };
    let mut worths: Vec<_> = cache.values().map(worth).collect();
    let most = *worths.select_nth_unstable(count.saturating_sub(1)).1;
    let mut left = count;
    cache.retain(|_, user| {
        let goes = left > 0 && worth(user) <= most;
        left -= usize::from(goes);
        !goes
    });
}

/// The name of the user of this process; `None` if the system cannot tell.
pub fn process_user() -> Option<String> {
    let mut command = std::process::Command::new("id");
    let output = command.arg("-un").stdin(Stdio::null()).output().ok()?;
    let name = String::from_utf8_lossy(&output.stdout);
    let name = output.status.success().then(|| name.trim().to_owned());
    name.filter(|name| !name.is_empty())
}

/// Whether `user` may be a name. `id` takes a number for a user id, Hadoop's users are names.
fn is_name(user: &str) -> bool {
    user.len() <= MAX_USER_LEN && !user.contains('\0') && !is_number(user)
}

/// Whether `text` has nothing but digits, if anything.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
