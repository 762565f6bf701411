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

const ANNS: &str = r#"{"serviceName": "s", "policyVersion": 3, "policies": [{"id": 1,
    "resources": {"path": {"values": ["/a"], "isRecursive": true}},
    "policyItems": [{"users": ["ann"], "accesses": [{"type": "read"}]}]}]}"#;

#[tokio::test]
async fn the_last_good_policies_count_and_without_any_nobody_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let none = Ranger::open(config(folder.path(), true));
    assert_eq!(verdict(&none, "ann", "/a"), Verdict::Denied);
    assert!(none.refresh().await.is_err());
    assert_eq!(verdict(&none, "ann", "/a"), Verdict::Denied);
    keep(&folder.path().join("hdfs_s.json"), ANNS.as_bytes()).unwrap();
    let kept = Ranger::open(config(folder.path(), true));
    assert!(kept.refresh().await.is_err());
    assert_eq!(verdict(&kept, "ann", "/a/.snapshot/s/b"), Verdict::Allowed);
    assert_eq!(verdict(&kept, "bob", "/a"), Verdict::Open);
    let strict = Ranger::open(config(folder.path(), false));
    assert_eq!(verdict(&strict, "bob", "/a"), Verdict::Denied);
    let other = RangerConfig { service: "t".to_owned(), ..config(folder.path(), true) };
    keep(&other.file(&POLICIES), ANNS.as_bytes()).unwrap();
    assert_eq!(verdict(&Ranger::open(other), "ann", "/a"), Verdict::Denied, "of another service");
}

fn whole(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
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
    let newer = ANNS.replace(": 3", ": 4").replace("ann", "bob");
    let answers = [
        whole(ANNS),
        "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        whole("<html>"),
        "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned(),
        whole(&newer),
    ];
    let (place, serving) = server(answers.to_vec()).await;
    let ranger = Ranger::open(RangerConfig { places: vec![place], ..config(folder.path(), true) });
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
    assert_eq!(verdict(&Ranger::open(config(folder.path(), true)), "bob", "/a"), Verdict::Allowed);
}

const BY_ROLES_AND_TAGS: &str = r#"{"serviceName": "s", "policyVersion": 3,
    "policies": [{"id": 1, "resources": {"path": {"values": ["/a"], "isRecursive": true}},
        "policyItems": [{"roles": ["r"], "accesses": [{"type": "read"}]}]}],
    "tagPolicies": {"policies": [{"id": 2, "resources": {"tag": {"values": ["PII"]}},
        "denyPolicyItems": [{"groups": ["public"], "accesses": [{"type": "hdfs:read"}]}]}]}}"#;

#[tokio::test]
async fn roles_and_tags_are_asked_for_where_policies_name_them_and_deny_until_they_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned();
    let same = || "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned();
    let roles = r#"{"serviceName": "s", "roleVersion": 5,
        "rangerRoles": [{"name": "r", "users": [{"name": "ann"}]}]}"#;
    let tags = r#"{"serviceName": "s", "tagVersion": 6, "tags": {"1": {"type": "PII"}},
        "serviceResources": [{"id": 1, "resourceElements": {"path": {"values": ["/a/secret"]}}}],
        "resourceToTagIds": {"1": [1]}}"#;
    let answers =
        [whole(BY_ROLES_AND_TAGS), refused(), same(), whole(roles), refused(), same(), same()];
    let answers = [&answers[..], &[whole(tags)]].concat();
    let (place, serving) = server(answers).await;
    let ranger = Ranger::open(RangerConfig { places: vec![place], ..config(folder.path(), true) });
    for _ in 0..2 {
        assert!(ranger.refresh().await.is_err());
        assert_eq!(verdict(&ranger, "ann", "/a"), Verdict::Denied, "it may have the tag");
    }
    assert!(ranger.refresh().await.is_ok());
    let again = Ranger::open(config(folder.path(), true));
    for known in [&ranger, &again] {
        assert_eq!(verdict(known, "ann", "/a"), Verdict::Allowed);
        assert_eq!(verdict(known, "ann", "/a/secret"), Verdict::Denied);
        assert_eq!(verdict(known, "bob", "/a"), Verdict::Open);
    }
    let asked = serving.await.unwrap();
    let target = |line: &String| line.split(['?', '&', ' ']).take(3).collect::<Vec<_>>().join(" ");
    let (policies, roles) =
        ("GET /service/plugins/policies/download/s", "GET /service/roles/download/s");
    let tags = "GET /service/tags/download/s lastKnownVersion=-1";
    assert_eq!(
        asked.iter().map(target).collect::<Vec<_>>(),
        [
            format!("{policies} lastKnownVersion=-1"),
            format!("{roles} lastKnownRoleVersion=-1"),
            format!("{policies} lastKnownVersion=3"),
            format!("{roles} lastKnownRoleVersion=-1"),
            tags.to_owned(),
            format!("{policies} lastKnownVersion=3"),
            format!("{roles} lastKnownRoleVersion=5"),
            tags.to_owned(),
        ]
    );
}

/// Shows `ticket` to every server of the service HTTP.
struct Tickets;

impl Credentials for Tickets {
    fn token(&self) -> Option<Secret> {
        None
    }

    fn initiate(&self, service: &str, host: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
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
    let config = RangerConfig { places: vec![place], credentials, ..config(folder.path(), true) };
    assert!(Ranger::open(config).refresh().await.is_ok());
    let asked = &serving.await.unwrap()[0];
    assert!(asked.starts_with("GET /service/plugins/secure/policies/download/s?"), "{asked}");
    assert!(asked.contains("authorization: Negotiate dGlja2V0"), "{asked}");
}
