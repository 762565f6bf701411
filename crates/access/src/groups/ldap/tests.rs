//! A server that says what it is told to, whatever it is asked.

use super::*;
use cairn_security::ldap::message_len;
use tokio::net::TcpListener;

/// An element.
fn ber(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    assert!(len < 0x10000);
    [&[tag, 0x82, (len >> 8) as u8, len as u8], content].concat()
}

fn message(id: u8, operation: Vec<u8>) -> Vec<u8> {
    ber(0x30, &[ber(2, &[id]), operation].concat())
}

fn ended(id: u8, tag: u8, code: u8) -> Vec<u8> {
    message(id, ber(tag, &[ber(0x0a, &[code]), ber(4, b""), ber(4, b"told so")].concat()))
}

fn entry(id: u8, name: &str, attributes: &[(&str, &[&str])]) -> Vec<u8> {
    let attribute = |(name, values): &(&str, &[&str])| {
        let values: Vec<u8> = values.iter().flat_map(|value| ber(4, value.as_bytes())).collect();
        ber(0x30, &[ber(4, name.as_bytes()), ber(0x31, &values)].concat())
    };
    let attributes: Vec<u8> = attributes.iter().flat_map(attribute).collect();
    message(id, ber(0x64, &[ber(4, name.as_bytes()), ber(0x30, &attributes)].concat()))
}

/// Answers the requests of connections, one list of answers for each connection; gives where, and all that was asked.
async fn server(scripts: Vec<Vec<Vec<u8>>>) -> (String, tokio::task::JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ldap://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for script in scripts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            for answer in script {
                let request = loop {
                    if let Some(len) = message_len(&read).unwrap().filter(|len| *len <= read.len())
                    {
                        break read.drain(..len).collect::<Vec<u8>>();
                    }
                    assert!(stream.read_buf(&mut read).await.unwrap() > 0);
                };
                asked.push(request);
                // In pieces, as networks do.
                for piece in answer.chunks(7) {
                    stream.write_all(piece).await.unwrap();
                }
            }
        }
        asked
    });
    (url, serving)
}

fn config(url: String) -> LdapConfig {
    let patience = Duration::from_millis(500);
    LdapConfig {
        urls: vec![url],
        base: "dc=x".to_owned(),
        user_filter: "(uid={0})".to_owned(),
        group_filter: "(objectClass=groupOfNames)".to_owned(),
        read_timeout: patience,
        connect_timeout: patience,
        attempts: 1,
        ..LdapConfig::default()
    }
}

fn has(request: &[u8], text: &str) -> bool {
    request.windows(text.len()).any(|window| window == text.as_bytes())
}

const ANN: &str = "uid=ann,ou=people,dc=x";

fn bound() -> Vec<u8> {
    ended(1, 0x61, 0)
}

fn found(id: u8, entries: &[Vec<u8>]) -> Vec<u8> {
    [&entries.concat()[..], &ended(id, 0x65, 0)].concat()
}

#[tokio::test]
async fn groups_are_those_that_name_the_user_and_those_that_name_them() {
    let staff = entry(3, "cn=staff,dc=x", &[("cn", &["staff"])]);
    let all = entry(4, "cn=all,dc=x", &[("cn", &["all"])]);
    let again = entry(5, "cn=staff,dc=x", &[("cn", &["staff"])]);
    let script = vec![
        bound(),
        found(2, &[entry(2, ANN, &[])]),
        found(3, &[staff]),
        found(4, &[all]),
        found(5, &[again]),
    ];
    let (url, serving) = server(vec![script]).await;
    let config = LdapConfig { levels: 9, bind_user: "cn=me".to_owned(), ..config(url) };
    let config = LdapConfig { password: Password("pw".to_owned()), ..config };
    assert_eq!(config.groups("ann").await.unwrap(), ["staff", "all"]);
    let asked = serving.await.unwrap();
    assert_eq!(asked.len(), 5, "circles of groups end");
    assert!(has(&asked[0], "cn=me") && has(&asked[0], "pw"));
    assert!(has(&asked[1], "uid") && has(&asked[1], "ann"));
    for (request, member) in asked[2..].iter().zip([ANN, "cn=staff,dc=x", "cn=all,dc=x"]) {
        assert!(has(request, member) && has(request, "groupOfNames"), "{member}");
    }
}

#[tokio::test]
async fn a_user_may_say_its_groups_itself() {
    let member: &[&str] = &["cn=sta\\,ff\\20x,ou=groups,dc=x", "cn=dev,dc=x"];
    let ann = entry(2, ANN, &[("memberOf", member)]);
    let (url, serving) = server(vec![vec![bound(), found(2, &[ann])]]).await;
    let config = LdapConfig { memberof_attr: "memberof".to_owned(), ..config(url) };
    assert_eq!(config.groups("ann").await.unwrap(), ["sta,ff x", "dev"]);
    assert!(has(&serving.await.unwrap()[1], "memberof"));
}

#[tokio::test]
async fn groups_of_posix_know_members_by_number() {
    let ann = entry(2, ANN, &[("uid", &["ann"]), ("gidNumber", &["100"])]);
    let users = entry(3, "cn=users,dc=x", &[("cn", &["users"])]);
    let (url, serving) = server(vec![vec![bound(), found(2, &[ann]), found(3, &[users])]]).await;
    let config = LdapConfig {
        user_filter: "(&(objectClass=posixAccount)(uid={0}))".to_owned(),
        group_filter: "(objectClass=posixGroup)".to_owned(),
        member_attr: "memberUid".to_owned(),
        posix_uid_attr: "uid".to_owned(),
        ..config(url)
    };
    assert_eq!(config.groups("ann").await.unwrap(), ["users"]);
    let asked = serving.await.unwrap();
    assert!(["gidNumber", "100", "memberUid", "ann"].iter().all(|part| has(&asked[2], part)));
}

#[tokio::test]
async fn who_is_not_there_has_no_groups() {
    let (url, serving) = server(vec![vec![bound(), found(2, &[])]]).await;
    assert!(config(url).groups("no*body").await.unwrap().is_empty());
    assert!(has(&serving.await.unwrap()[1], "no*body"), "a star is a star");
}

#[tokio::test]
async fn the_next_server_is_asked_where_one_fails() {
    let (refuses, _first) = server(vec![vec![ended(1, 0x61, 49)]]).await;
    let (silent, _second) = server(vec![vec![Vec::new()]]).await;
    let (strange, _third) = server(vec![vec![b"HTTP/1.1 400".to_vec()]]).await;
    let gone = "ldap://127.0.0.1:1".to_owned();
    let (good, _last) = server(vec![vec![bound(), found(2, &[])]]).await;
    let config = LdapConfig {
        urls: vec![refuses.clone(), silent, strange, gone, good],
        attempts: 5,
        ..config(String::new())
    };
    assert!(config.groups("ann").await.unwrap().is_empty());
    let (refuses, _again) = server(vec![vec![ended(1, 0x61, 49)]]).await;
    let told = self::config(refuses).groups("ann").await.unwrap_err().to_string();
    assert!(told.contains("49") && told.contains("told so"), "{told}");
}

#[test]
fn servers_are_named_by_urls() {
    let server = |url: &str| config(String::new()).server(url);
    let is = |host: &str, port, is_secure| Some(Server { host: host.to_owned(), port, is_secure });
    assert_eq!(server("ldap://a"), is("a", 389, false));
    assert_eq!(server("ldap://a:1/dc=x"), is("a", 1, false));
    assert_eq!(server("ldaps://a/"), is("a", 636, true));
    assert_eq!(server("ldap://[::1]"), is("[::1]", 389, false));
    let secure = LdapConfig { is_secure: true, ..config("ldap://a".to_owned()) };
    assert!(secure.asks_by_tls() && !config("ldap://a".to_owned()).asks_by_tls());
    for wrong in ["a", "http://a", "ldap://", "ldap://a:x"] {
        assert_eq!(server(wrong), None, "{wrong}");
        assert!(config(wrong.to_owned()).fault().is_some());
    }
    assert_eq!(config("ldap://a".to_owned()).fault(), None);
    let wrong = LdapConfig { group_filter: "(a".to_owned(), ..config("ldap://a".to_owned()) };
    assert!(wrong.fault().is_some());
}
