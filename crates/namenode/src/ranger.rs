//! Policies of Ranger: got from its admin server, kept on disk, and asked before modes are.
//!
//! What they say of an access is decided in `policy.rs`; who has the roles that they name, and which paths the tags, in
//! `roles.rs` and `tags.rs`. All are asked for again and again; while the server does not answer, or says what cannot be
//! read, the last good ones count, also after a start. Without any nobody but superusers may
//! do anything. Who an access was given or refused to, and by which policy, stands in the audit log.
//!
//! Source: Apache Ranger 2.4 `RangerHdfsAuthorizer`, `PolicyRefresher`, `RangerRolesProvider`, `RangerAdminTagRetriever`.

pub mod policy;
pub mod roles;
pub mod tags;

use std::fs;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_namespace::{Judge, Rights, Verdict};
use cairn_net::http::{Place, percent_encode};
use cairn_net::rpc_client::SharedCredentials;
use cairn_net::tls::TlsTrust;
use cairn_operate::workers::Worker;
use cairn_process::disk_work::may_wait;
use cairn_process::held::{held, held_read, held_write};

use policy::{Policies, PolicyError, Request, Said};
use roles::Roles;
use tags::Tags;

/// Reads a document, and its version.
type ReadDocument<T> = fn(&RangerConfig, &[u8]) -> Result<(i64, T), String>;

/// Bytes of the longest answer, or file, that is read.
const LEN_MAX: usize = 256 << 20;
/// The folder of snapshots.
const SNAPSHOTS: &str = "/.snapshot/";

/// Where policies come from.
#[derive(Clone, Debug)]
pub struct RangerConfig {
    /// The admin servers, of which the next is asked when one does not answer. `ranger.plugin.hdfs.policy.rest.url`.
    pub places: Vec<Place>,
    /// The service whose policies these are. `ranger.plugin.hdfs.service.name`.
    pub service: String,
    /// Time between two questions. `ranger.plugin.hdfs.policy.pollIntervalMs`.
    pub poll_interval: Duration,
    /// How long an answer may take. `ranger.plugin.hdfs.policy.rest.client.read.timeoutMs`.
    pub patience: Duration,
    /// The folder where the last good policies are kept. `ranger.plugin.hdfs.policy.cache.dir`.
    pub cache: PathBuf,
    /// Whether modes decide where no policy does. `xasecure.add-hadoop-authorization`.
    pub falls_back: bool,
    /// Whom to trust, where servers are asked by TLS.
    pub trust: Option<TlsTrust>,
    /// What shows servers who asks, with Kerberos.
    pub credentials: Option<SharedCredentials>,
}

/// The policies as they are now.
pub(crate) struct Ranger {
    config: RangerConfig,
    now: RwLock<Known>,
}

/// What is known, each of it once it was told.
#[derive(Clone, Default)]
struct Known {
    policies: Option<Arc<Policies>>,
    roles: Option<Arc<Roles>>,
    tags: Option<Arc<Tags>>,
}

/// What an admin server gives out: where it does, by what name it is told the last known version, and what is behind the
/// service in the name of the file where it is kept, which is that of Ranger's own plugin.
struct Document {
    folder: &'static str,
    secure_folder: &'static str,
    version: &'static str,
    suffix: &'static str,
}

const POLICIES: Document = Document {
    folder: "plugins/policies",
    secure_folder: "plugins/secure/policies",
    version: "lastKnownVersion",
    suffix: "",
};
const ROLES: Document = Document {
    folder: "roles",
    secure_folder: "roles/secure",
    version: "lastKnownRoleVersion",
    suffix: "_roles",
};
const TAGS: Document = Document {
    folder: "tags",
    secure_folder: "tags/secure",
    version: "lastKnownVersion",
    suffix: "_tag",
};

impl Ranger {
    /// With those that were kept.
    pub(crate) fn open(config: RangerConfig) -> Ranger {
        let policies = match config.kept(&POLICIES, RangerConfig::read) {
            Ok(policies) => Some(policies),
            Err(error) => {
                let file = config.file(&POLICIES).display().to_string();
                tracing::warn!(
                    file,
                    error,
                    "there are no policies yet: only superusers may do anything"
                );
                None
            }
        };
        let (mut roles, mut tags) = (None, None);
        let needs = |needs: fn(&Policies) -> bool| policies.as_deref().is_some_and(needs);
        if needs(Policies::names_roles) {
            roles = told(config.kept(&ROLES, RangerConfig::read_roles));
        }
        if needs(Policies::names_tags) {
            tags = told(config.kept(&TAGS, RangerConfig::read_tags));
        }
        Ranger { config, now: RwLock::new(Known { policies, roles, tags }) }
    }

    /// Asks for them once; the last ones count where that fails.
    async fn refresh(&self) -> Result<(), String> {
        let mut failure = String::new();
        for place in &self.config.places {
            match self.refresh_at(place).await {
                Ok(()) => return Ok(()),
                Err(error) => failure = format!("{}: {error}", place.host),
            }
        }
        Err(failure)
    }

    /// What a server has that is other than what is known; new policies count together with the roles and tags that they
    /// name, where that server tells them.
    async fn refresh_at(&self, place: &Place) -> Result<(), String> {
        let mut known = held_read(&self.now).clone();
        let version = known.policies.as_ref().map_or(-1, |policies| policies.version);
        if let Some(new) = self.ask(place, &POLICIES, version, RangerConfig::read).await? {
            let count = new.count();
            tracing::info!(version = new.version, count, "policies have changed");
            known.policies = Some(new);
        }
        let needed = self.refresh_needed(place, &mut known).await;
        *held_write(&self.now) = known;
        needed
    }

    async fn refresh_needed(&self, place: &Place, known: &mut Known) -> Result<(), String> {
        let Some(policies) = known.policies.clone() else { return Ok(()) };
        if policies.names_roles() {
            let version = known.roles.as_ref().map_or(-1, |roles| roles.version);
            if let Some(new) = self.ask(place, &ROLES, version, RangerConfig::read_roles).await? {
                tracing::info!(version = new.version, "roles of policies have changed");
                known.roles = Some(new);
            }
        }
        if policies.names_tags() {
            let version = known.tags.as_ref().map_or(-1, |tags| tags.version);
            if let Some(new) = self.ask(place, &TAGS, version, RangerConfig::read_tags).await? {
                tracing::info!(version = new.version, "tags of policies have changed");
                known.tags = Some(new);
            }
        }
        Ok(())
    }

    /// A document of a server, if it is another one. It is kept on disk before it counts.
    async fn ask<T>(
        &self,
        place: &Place,
        document: &Document,
        known: i64,
        read: ReadDocument<T>,
    ) -> Result<Option<Arc<T>>, String> {
        let config = &self.config;
        let proof = match &config.credentials {
            Some(credentials) => may_wait(|| proof(credentials, &place.host))?,
            None => None,
        };
        let folder = match config.credentials {
            Some(_) => document.secure_folder,
            None => document.folder,
        };
        let (service, version) = (percent_encode(&config.service, false), document.version);
        let target = format!(
            "/service/{folder}/download/{service}?{version}={known}&lastActivationTime=0&pluginId=hdfs@cairn&supportsPolicyDeltas=false&supportsTagDeltas=false"
        );
        let asked =
            place.get(&target, config.trust.as_ref(), proof.as_deref(), LEN_MAX, config.patience);
        let (status, text) = asked.await.map_err(|error| error.to_string())?;
        match status {
            200 => {}
            204 | 304 => return Ok(None),
            other => return Err(format!("it answers for {folder} with status {other}")),
        }
        let (version, new) = read(config, &text)?;
        if version == known {
            return Ok(None);
        }
        may_wait(|| keep(&config.file(document), &text)).map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(new)))
    }

    /// Looks for other policies again and again.
    pub(crate) async fn watch(&self, worker: &Worker) {
        loop {
            if let Err(error) = self.refresh().await {
                tracing::warn!(error, "no policies are told; the last ones count");
                worker.failed(error);
            }
            worker.rest(tokio::time::sleep(self.config.poll_interval)).await;
        }
    }

    /// What they say of a user's accesses.
    pub(crate) fn rights(
        &self,
        audit: Option<Arc<dyn Tell>>,
        (user, groups): (&str, &[String]),
        from: Option<(&'static str, IpAddr)>,
    ) -> Rights {
        let known = held_read(&self.now).clone();
        Rights::Judged(Arc::new(Asking {
            roles: known.roles.as_ref().map(|roles| roles.of(user, groups)),
            known,
            falls_back: self.config.falls_back,
            user: user.to_owned(),
            groups: groups.to_vec(),
            from,
            audit,
            last: Mutex::default(),
        }))
    }
}

/// What a policy has decided.
pub(crate) struct Decision<'a> {
    pub(crate) allowed: bool,
    pub(crate) policy: i64,
    pub(crate) user: &'a str,
    /// How the user was known, and where from it asked, if by a call.
    pub(crate) from: Option<(&'static str, IpAddr)>,
    pub(crate) path: &'a str,
    /// As permission bits.
    pub(crate) rights: u16,
}

/// Whoever is told of decisions.
pub(crate) trait Tell: Send + Sync {
    fn tell(&self, decision: &Decision<'_>);
}

impl RangerConfig {
    /// As Ranger's own plugin calls it.
    fn file(&self, document: &Document) -> PathBuf {
        let (service, suffix) = (self.service.replace('/', "_"), document.suffix);
        self.cache.join(format!("hdfs_{service}{suffix}.json"))
    }

    /// What was kept of a document.
    fn kept<T>(&self, document: &Document, read: ReadDocument<T>) -> Result<Arc<T>, String> {
        let text = read_file(&self.file(document)).map_err(|error| error.to_string())?;
        read(self, &text).map(|(_, kept)| Arc::new(kept))
    }

    /// Policies, and their version.
    fn read(&self, text: &[u8]) -> Result<(i64, Policies), String> {
        let (policies, told) = Policies::parse(text).map_err(|error| error.to_string())?;
        self.is_own(&policies.service)?;
        told.iter().for_each(|what| tracing::warn!("{what}"));
        Ok((policies.version, policies))
    }

    fn read_roles(&self, text: &[u8]) -> Result<(i64, Roles), String> {
        let roles = Roles::parse(text).map_err(|error: PolicyError| error.to_string())?;
        self.is_own(&roles.service)?;
        Ok((roles.version, roles))
    }

    fn read_tags(&self, text: &[u8]) -> Result<(i64, Tags), String> {
        let tags = Tags::parse(text).map_err(|error: PolicyError| error.to_string())?;
        self.is_own(&tags.service)?;
        Ok((tags.version, tags))
    }

    fn is_own(&self, service: &str) -> Result<(), String> {
        match service == self.service {
            true => Ok(()),
            false => Err(format!("what it gives out is of the service {service}")),
        }
    }
}

/// What was kept of roles or tags; the log tells that there is none.
fn told<T>(kept: Result<T, String>) -> Option<T> {
    kept.inspect_err(|error| {
        tracing::warn!(error, "roles or tags of policies are not known: none allows, all deny");
    })
    .ok()
}

/// The header that shows a ticket. Source: RFC 4559.
fn proof(
    SharedCredentials(credentials): &SharedCredentials,
    host: &str,
) -> Result<Option<String>, String> {
    let shown = match credentials.initiate("HTTP", host) {
        Ok(Some(mut context)) => context.step(&[]),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    Ok(shown.map_err(|error| error.0)?.map(|token| format!("Negotiate {}", STANDARD.encode(token))))
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(LEN_MAX as u64).read_to_end(&mut text)?;
    Ok(text)
}

/// Puts a file in the place of the one before, whole.
fn keep(path: &Path, text: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create(&part)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// One caller's questions.
struct Asking {
    known: Known,
    /// Whoever asks has these, where that is known.
    roles: Option<Vec<String>>,
    falls_back: bool,
    user: String,
    groups: Vec<String>,
    /// How who asks was known, and from where that is.
    from: Option<(&'static str, IpAddr)>,
    audit: Option<Arc<dyn Tell>>,
    /// What a policy has decided last, which is told at the end: whether it was allowed, by which, where, and what.
    last: Mutex<Option<(bool, i64, String, u16)>>,
}

impl Judge for Asking {
    fn judge(&self, path: &str, owner: &str, rights: u16) -> Verdict {
        let Some(policies) = &self.known.policies else { return Verdict::Denied };
        let path = without_snapshot(path);
        let (user, groups, roles) = (&self.user, &self.groups, self.roles.as_deref());
        let request = Request { user, groups, roles, path: &path, owner, tags: None };
        let tags = self.known.tags.as_ref().map(|tags| tags.of(request));
        let request = Request { tags: tags.as_deref(), ..request };
        let (allowed, by) = match policies.judge(request, (rights & 7) as u8) {
            Said::Allowed(by) => (true, by),
            Said::Denied(by) => (false, by),
            Said::Nothing if self.falls_back => return Verdict::Open,
            Said::Nothing => return Verdict::Denied,
        };
        if by.is_audited {
            *held(&self.last) = Some((allowed, by.id, path, rights));
        }
        if allowed { Verdict::Allowed } else { Verdict::Denied }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let last = held(&self.last).take();
        if let (Some(audit), Some((allowed, policy, path, rights))) = (&self.audit, last) {
            let (user, from) = (self.user.as_str(), self.from);
            audit.tell(&Decision { allowed, policy, user, from, path: &path, rights });
        }
    }
}

/// A path in a snapshot is judged as the one that it is a copy of.
fn without_snapshot(path: &str) -> String {
    let Some((above, below)) = path.split_once(SNAPSHOTS) else {
        let bare = path.strip_suffix(SNAPSHOTS.trim_end_matches('/')).unwrap_or(path);
        return if bare.is_empty() { "/".to_owned() } else { bare.to_owned() };
    };
    match (above, below.split_once('/')) {
        ("", None) => "/".to_owned(),
        (above, None) => above.to_owned(),
        (above, Some((_, rest))) => format!("{above}/{rest}"),
    }
}

#[cfg(test)]
mod tests;
