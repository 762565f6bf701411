//! What Hadoop 3.5.0 and a JDK make of tokens, of DIGEST-MD5 and of principals: `interop/golden` has written it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_security::block_token::{AccessMode, BlockTokenId, Form};
use cairn_security::digest_md5::{DigestClient, DigestServer, NONCE_LEN, Secret, Service};
use cairn_security::sasl::Layer;
use cairn_security::token::{DelegationTokenId, password};
use cairn_security::{NameRules, Protection, SaslError};

const GOLDEN: &str = include_str!("golden/hadoop-3.5.0.txt");

fn lines(kind: &str) -> Vec<Vec<&'static str>> {
    let fields = GOLDEN.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let lines: Vec<_> =
        fields.filter(|line| line[0] == kind).map(|line| line[1..].to_vec()).collect();
    assert!(!lines.is_empty());
    lines
}

fn bytes(hex: &str) -> Vec<u8> {
    if hex == "-" {
        return Vec::new();
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).unwrap()
}

#[test]
fn tokens_are_hadoops() {
    for line in lines("token") {
        let id = DelegationTokenId {
            owner: text(line[0]),
            renewer: text(line[1]),
            real_user: text(line[2]),
            issued_ms: line[3].parse().unwrap(),
            max_ms: line[4].parse().unwrap(),
            sequence: line[5].parse().unwrap(),
            key_id: line[6].parse().unwrap(),
        };
        let identifier = bytes(line[7]);
        assert_eq!(id.encode(), identifier);
        assert_eq!(DelegationTokenId::decode(&identifier).unwrap(), id);
        assert_eq!(password(&identifier, &bytes(line[8])), bytes(line[9]));
    }
}

fn list(names: &str) -> Vec<&str> {
    if names == "-" { Vec::new() } else { names.split(',').collect() }
}

#[test]
fn block_tokens_are_hadoops() {
    const TYPES: [&str; 6] = ["DISK", "SSD", "ARCHIVE", "RAM_DISK", "PROVIDED", "NVDIMM"];
    let maybe = |name: &str| (name != "null").then(|| text(name));
    for line in lines("block-token") {
        let form = if line[0] == "legacy" { Form::Legacy } else { Form::Protobuf };
        let modes = list(line[4]).into_iter();
        let modes =
            modes.map(|name| AccessMode::ALL.into_iter().find(|mode| mode.name() == name).unwrap());
        let types = list(line[5]).into_iter();
        let id = BlockTokenId {
            user: maybe(line[1]),
            pool: maybe(line[2]),
            block: line[3].parse().unwrap(),
            modes: modes.collect(),
            storage_types: types
                .map(|name| TYPES.iter().position(|known| *known == name).unwrap() as i32 + 1)
                .collect(),
            storage_ids: list(line[6]).into_iter().map(text).collect(),
            handshake: bytes(line[7]),
            expires_ms: line[8].parse().unwrap(),
            key_id: line[9].parse().unwrap(),
        };
        let identifier = bytes(line[10]);
        assert_eq!(id.encode(form), identifier);
        assert_eq!(BlockTokenId::decode(&identifier).unwrap(), id);
        assert_eq!(password(&identifier, &bytes(line[11])), bytes(line[12]));
        assert_eq!(id.to_string(), text(line[13]));
    }
}

/// The random bytes of a directive.
fn nonce(directives: &str, name: &str) -> [u8; NONCE_LEN] {
    let (_, rest) = directives.split_once(&format!("{name}=\"")).unwrap();
    STANDARD.decode(rest.split_once('"').unwrap().0).unwrap().try_into().unwrap()
}

fn response(directives: &[u8]) -> String {
    let text = std::str::from_utf8(directives).unwrap();
    text.split(',').find(|one| one.starts_with("response=")).unwrap().to_owned()
}

#[test]
fn digest_md5_is_a_jdks() {
    for line in lines("digest") {
        let protection = Protection::of_qop(line[0]).unwrap();
        let secret = Secret { identifier: bytes(line[1]), password: bytes(line[2]) };
        let (challenge, answer, last) = (bytes(line[3]), bytes(line[4]), bytes(line[5]));
        let server = DigestServer::new(Service::RPC, nonce(&text(line[3]), "nonce"), &[protection]);
        let verified = server.verify(&answer, |identifier| {
            assert_eq!(identifier, secret.identifier);
            Ok::<_, SaslError>((secret.password.clone(), ()))
        });
        let verified = verified.unwrap();
        assert_eq!(verified.answer, last);
        let cnonce = nonce(&text(line[4]), "cnonce");
        let mut client = DigestClient::new(Service::RPC, &secret, cnonce, &Protection::ALL);
        assert_eq!(response(&client.respond(&challenge).unwrap()), response(&answer));
        let (_, layer) = client.finish(&last).unwrap();
        let wraps: Vec<_> = lines("wrap").into_iter().filter(|wrap| wrap[0] == line[0]).collect();
        assert_eq!(layer.is_some(), !wraps.is_empty());
        let Some((mut client, mut server)) = layer.zip(verified.layer) else { continue };
        for wrap in wraps {
            let plain = bytes(wrap[1]);
            let pass = |from: &mut Layer, to: &mut Layer, sealed: Vec<u8>| {
                assert_eq!(from.seal.seal(&plain).unwrap(), sealed);
                assert_eq!(to.open.open(&sealed).unwrap(), plain);
            };
            pass(&mut client, &mut server, bytes(wrap[2]));
            pass(&mut server, &mut client, bytes(wrap[3]));
        }
    }
}

#[test]
fn principals_stand_for_the_users_that_they_are_in_hadoop() {
    for line in lines("name") {
        let rules = NameRules::parse(&text(line[0]), "EXAMPLE.COM", false).unwrap();
        let expected = (line[2] != "-").then(|| text(line[2]));
        assert_eq!(rules.user_of(line[1]).ok(), expected, "{} of {}", line[1], text(line[0]));
    }
}
