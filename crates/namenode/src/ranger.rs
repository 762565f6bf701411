//! Policies of Ranger: got from its admin server, kept on disk, and asked before modes are.
//!
//! What they say of an access is decided in `policy.rs`. They are asked for again and again; while the server does not
//! answer, or says what cannot be read, the last good ones count, also after a start. Without any nobody but superusers may
//! do anything. Who an access was given or refused to, and by which policy, stands in the audit log.
//!
//! Source: Apache Ranger 2.4 `RangerHdfsAuthorizer`, `PolicyRefresher`.

pub mod policy;

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

use policy::{Policies, Request, Said};

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
    /// Of no service before the first are known.
    now: RwLock<Option<Arc<Policies>>>,
}

impl Ranger {
    /// With those that were kept.
    pub(crate) fn open(config: RangerConfig) -> Ranger {
        let kept = read_file(&config.file()).map_err(|error| error.to_string());
        let kept = kept.and_then(|text| config.read(&text));
        let now = match kept {
            Ok(policies) => Some(policies),
            Err(error) => {
                let file = config.file().display().to_string();
                tracing::warn!(
                    file,
                    error,
                    "there are no policies yet: only superusers may do anything"
                );
                None
            }
        };
        Ranger { config, now: RwLock::new(now.map(Arc::new)) }
    }

    /// Asks for them once; the last ones count where that fails.
    async fn refresh(&self) -> Result<(), String> {
        let mut failure = String::new();
        for place in &self.config.places {
            match self.ask(place).await {
                Ok(new) => {
                    if let Some(policies) = new {
                        let (version, count) = (policies.version, policies.count());
                        tracing::info!(version, count, "policies have changed");
                        *held_write(&self.now) = Some(Arc::new(policies));
                    }
                    return Ok(());
                }
                Err(error) => failure = format!("{}: {error}", place.host),
            }
        }
        Err(failure)
    }

    /// The policies that a server has, if they are others. They are kept on disk before they count.
    async fn ask(&self, place: &Place) -> Result<Option<Policies>, String> {
        let config = &self.config;
        let known = held_read(&self.now).as_ref().map_or(-1, |policies| policies.version);
        let proof = match &config.credentials {
            Some(credentials) => may_wait(|| proof(credentials, &place.host))?,
            None => None,
        };
        let secure = if config.credentials.is_some() { "secure/" } else { "" };
        let service = percent_encode(&config.service, false);
        let target = format!(
            "/service/plugins/{secure}policies/download/{service}?lastKnownVersion={known}&lastActivationTime=0&pluginId=hdfs@cairn&supportsPolicyDeltas=false"
        );
        let asked =
            place.get(&target, config.trust.as_ref(), proof.as_deref(), LEN_MAX, config.patience);
        let (status, text) = asked.await.map_err(|error| error.to_string())?;
        match status {
            200 => {}
            204 | 304 => return Ok(None),
            other => return Err(format!("it answers with status {other}")),
        }
        let policies = config.read(&text)?;
        if policies.version == known {
            return Ok(None);
        }
        may_wait(|| keep(&config.file(), &text)).map_err(|error| error.to_string())?;
        Ok(Some(policies))
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
        Rights::Judged(Arc::new(Asking {
            policies: held_read(&self.now).clone(),
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
    fn file(&self) -> PathBuf {
        self.cache.join(format!("hdfs_{}.json", self.service.replace('/', "_")))
    }

    fn read(&self, text: &[u8]) -> Result<Policies, String> {
        let (policies, told) = Policies::parse(text).map_err(|error| error.to_string())?;
        if policies.service != self.service {
            return Err(format!("the policies are of the service {}", policies.service));
        }
        told.iter().for_each(|what| tracing::warn!("{what}"));
        Ok(policies)
    }
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
    policies: Option<Arc<Policies>>,
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
        let Some(policies) = &self.policies else { return Verdict::Denied };
        let path = without_snapshot(path);
        let request = Request { user: &self.user, groups: &self.groups, path: &path, owner };
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
mod tests {
    use super::*;
    use cairn_security::client::Credentials;
    use cairn_security::digest_md5::Secret;
    use cairn_security::gssapi::Context;
    use cairn_security::{Protection, SaslError};

    #[test]
    fn snapshots_are_judged_as_what_they_are_of() {
        for (path, bare) in [
            ("/a/.snapshot/s/b", "/a/b"),
            ("/a/.snapshot/s", "/a"),
            ("/a/.snapshot", "/a"),
            ("/.snapshot/s/b/c", "/b/c"),
            ("/.snapshot/s", "/"),
            ("/.snapshot", "/"),
            ("/a/b", "/a/b"),
            ("/", "/"),
        ] {
            assert_eq!(without_snapshot(path), bare, "{path}");
        }
    }

    fn config(folder: &Path, falls_back: bool) -> RangerConfig {
        RangerConfig {
            places: vec![Place::of("http://127.0.0.1:1").unwrap()],
            service: "s".to_owned(),
            poll_interval: Duration::from_secs(30),
            patience: Duration::from_secs(1),
            cache: folder.to_owned(),
            falls_back,
            trust: None,
            credentials: None,
        }
    }

    fn verdict(ranger: &Ranger, user: &str, path: &str) -> Verdict {
        let Rights::Judged(judge) = ranger.rights(None, (user, &[]), None) else {
            panic!("nobody judges")
        };
        judge.judge(path, "hdfs", 4)
    }

    const POLICIES: &str = r#"{"serviceName": "s", "policyVersion": 3, "policies": [{"id": 1,
        "resources": {"path": {"values": ["/a"], "isRecursive": true}},
        "policyItems": [{"users": ["ann"], "accesses": [{"type": "read"}]}]}]}"#;

    #[tokio::test]
    async fn the_last_good_policies_count_and_without_any_nobody_is_let_in() {
        let folder = tempfile::tempdir().unwrap();
        let none = Ranger::open(config(folder.path(), true));
        assert_eq!(verdict(&none, "ann", "/a"), Verdict::Denied);
        assert!(none.refresh().await.is_err());
        assert_eq!(verdict(&none, "ann", "/a"), Verdict::Denied);
        keep(&folder.path().join("hdfs_s.json"), POLICIES.as_bytes()).unwrap();
        let kept = Ranger::open(config(folder.path(), true));
        assert!(kept.refresh().await.is_err());
        assert_eq!(verdict(&kept, "ann", "/a/.snapshot/s/b"), Verdict::Allowed);
        assert_eq!(verdict(&kept, "bob", "/a"), Verdict::Open);
        let strict = Ranger::open(config(folder.path(), false));
        assert_eq!(verdict(&strict, "bob", "/a"), Verdict::Denied);
        let other = RangerConfig { service: "t".to_owned(), ..config(folder.path(), true) };
        keep(&other.file(), POLICIES.as_bytes()).unwrap();
        assert_eq!(
            verdict(&Ranger::open(other), "ann", "/a"),
            Verdict::Denied,
            "of another service"
        );
    }

    /// A server that gives these answers, one to each question, and what it was asked.
    async fn server(answers: Vec<String>) -> (Place, tokio::task::JoinHandle<Vec<String>>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Place::of(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let serving = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let len = stream.read(&mut head).await.unwrap();
                asked.push(String::from_utf8_lossy(&head[..len]).into_owned());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (place, serving)
    }

    #[tokio::test]
    async fn policies_are_asked_for_by_their_version_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let whole =
            |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        let newer = POLICIES.replace(": 3", ": 4").replace("ann", "bob");
        let answers = [
            whole(POLICIES),
            "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
            whole("<html>"),
            "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned(),
            whole(&newer),
        ];
        let (place, serving) = server(answers.to_vec()).await;
        let ranger =
            Ranger::open(RangerConfig { places: vec![place], ..config(folder.path(), true) });
        for (is_good, user) in
            [(true, "ann"), (true, "ann"), (false, "ann"), (false, "ann"), (true, "bob")]
        {
            assert_eq!(ranger.refresh().await.is_ok(), is_good);
            assert_eq!(verdict(&ranger, user, "/a"), Verdict::Allowed);
        }
        assert_eq!(verdict(&ranger, "ann", "/a"), Verdict::Open);
        let asked = serving.await.unwrap();
        let known = |line: &String| {
            line.split("lastKnownVersion=").nth(1).unwrap().split('&').next().unwrap().to_owned()
        };
        assert_eq!(asked.iter().map(known).collect::<Vec<_>>(), ["-1", "3", "3", "3", "3"]);
        assert!(asked[0].starts_with("GET /service/plugins/policies/download/s?"), "{}", asked[0]);
        assert_eq!(
            verdict(&Ranger::open(config(folder.path(), true)), "bob", "/a"),
            Verdict::Allowed
        );
    }

    /// Shows `ticket` to every server of the service HTTP.
    struct Tickets;

    impl Credentials for Tickets {
        fn token(&self) -> Option<Secret> {
            None
        }

        fn initiate(
            &self,
            service: &str,
            host: &str,
        ) -> Result<Option<Box<dyn Context>>, SaslError> {
            assert_eq!((service, host), ("HTTP", "127.0.0.1"));
            Ok(Some(Box::new(Tickets)))
        }

        fn protections(&self) -> &[Protection] {
            &[]
        }

        fn allows_simple(&self) -> bool {
            false
        }
    }

    impl Context for Tickets {
        fn step(&mut self, _: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
            Ok(Some(b"ticket".to_vec()))
        }

        fn is_established(&self) -> bool {
            true
        }

        fn peer(&self) -> Result<String, SaslError> {
            Err(SaslError("nobody".to_owned()))
        }

        fn wrap(&mut self, _: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
            Ok(message.to_vec())
        }

        fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
            Ok(sealed.to_vec())
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn with_kerberos_a_ticket_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (place, serving) = server(vec!["HTTP/1.1 204 None\r\n\r\n".to_owned()]).await;
        let credentials = Some(SharedCredentials(Arc::new(Tickets)));
        let config =
            RangerConfig { places: vec![place], credentials, ..config(folder.path(), true) };
        assert!(Ranger::open(config).refresh().await.is_ok());
        let asked = &serving.await.unwrap()[0];
        assert!(asked.starts_with("GET /service/plugins/secure/policies/download/s?"), "{asked}");
        assert!(asked.contains("authorization: Negotiate dGlja2V0"), "{asked}");
    }
}
