//! What is asked, and what the answers mean.

use crate::server::{Answer, Asked, Server, text};
use cairn_kms::{EncryptedKey, KmsError};
use std::sync::atomic::Ordering;

const EEK: &str = r#"{"versionName":"k 1@0","iv":"-_8","encryptedKeyVersion":{"versionName":"EEK","material":"AQI"}}"#;

/// Answers as Hadoop's server was seen to.
fn hadoop(asked: Asked) -> Answer {
    let resource = asked.target.split('?').next().unwrap_or_default();
    match (asked.method.as_str(), resource.strip_prefix("/kms/v1/").unwrap_or_default()) {
        ("GET", "key/k%201/_metadata") => text(
            200,
            r#"{"name":"k 1","cipher":"AES/CTR/NoPadding","length":128,"description":null,"attributes":{},"created":1790000000000,"versions":2}"#,
        ),
        ("GET", "key/k%201/_currentversion") => {
            text(200, r#"{"name":"k 1","versionName":"k 1@1","material":"AAEC"}"#)
        }
        ("GET", "key/other/_metadata" | "key/other/_currentversion") => text(200, "{}"),
        ("GET", "key/k%201/_eek") => text(200, format!("[{EEK},{EEK}]")),
        ("POST", "key/k%201/_reencryptbatch") => text(200, format!("[{EEK}]")),
        ("POST", "keyversion/k%201%400/_eek") => {
            text(200, r#"{"name":"k 1","versionName":"EK","material":"AwQ"}"#)
        }
        ("GET", "keys/names") => text(200, r#"["k 1","k2"]"#),
        ("POST", "keys") => text(201, r#"{"versionName":"new@0"}"#),
        ("POST", "key/k%201") => text(200, r#"{"versionName":"k 1@2"}"#),
        ("POST", "key/k%201/_invalidatecache") => text(200, ""),
        _ => text(
            500,
            r#"{"RemoteException":{"message":"no","exception":"X","javaClassName":"a.X"}}"#,
        ),
    }
}

fn key() -> EncryptedKey {
    EncryptedKey {
        key_name: "k 1".to_string(),
        key_version: "k 1@0".to_string(),
        iv: vec![0xfb, 0xff],
        encrypted_material: vec![1, 2],
    }
}

#[tokio::test]
async fn every_question_has_its_answer() {
    let server = Server::start(hadoop).await;
    let kms = server.kms();
    let metadata = kms.metadata("k 1").await.unwrap().unwrap();
    assert_eq!((metadata.cipher.as_str(), metadata.bit_length), ("AES/CTR/NoPadding", 128));
    assert_eq!((metadata.versions, metadata.description), (2, None));
    assert_eq!(kms.metadata("other").await.unwrap(), None);
    assert_eq!(kms.metadata("").await.unwrap(), None);
    let version = kms.current_version("k 1").await.unwrap().unwrap();
    assert_eq!(version.version_name, "k 1@1");
    assert_eq!(version.material.unwrap().as_bytes(), [0, 1, 2]);
    assert_eq!(kms.current_version("other").await.unwrap(), None);
    assert_eq!(kms.generate("k 1", 2).await.unwrap(), [key(), key()]);
    assert_eq!(kms.reencrypt(&[key()]).await.unwrap(), [key()]);
    let mixed_up = EncryptedKey { iv: vec![1, 2], ..key() };
    let error = kms.reencrypt(&[mixed_up]).await.unwrap_err();
    assert!(error.to_string().contains("key 0 has another initialization vector"), "{error}");
    assert_eq!(kms.reencrypt(&[]).await.unwrap(), []);
    assert_eq!(kms.decrypt(&key()).await.unwrap().as_bytes(), [3, 4]);
    assert_eq!(kms.names().await.unwrap(), ["k 1", "k2"]);
    assert_eq!(kms.create_key("new", 256).await.unwrap().version_name, "new@0");
    assert_eq!(kms.roll("k 1").await.unwrap().version_name, "k 1@2");

    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.target.ends_with("user.name=alice")));
    let decrypt = asked.iter().find(|asked| asked.target.contains("eek_op=decrypt")).unwrap();
    assert_eq!(decrypt.body, r#"{"iv":"-_8","material":"AQI","name":"k 1"}"#);
    let generate = asked.iter().find(|asked| asked.target.contains("generate")).unwrap();
    assert_eq!(
        generate.target,
        "/kms/v1/key/k%201/_eek?eek_op=generate&num_keys=2&user.name=alice"
    );
    let reencrypt = asked.iter().find(|asked| asked.target.contains("reencrypt")).unwrap();
    assert_eq!(
        reencrypt.body,
        r#"[{"encryptedKeyVersion":{"material":"AQI","versionName":"EEK"},"iv":"-_8","versionName":"k 1@0"}]"#
    );
    // Those that must not be heeded twice had a connection of their own.
    assert_eq!(server.connections.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_proxy_says_for_whom_it_asks() {
    let server = Server::start(hadoop).await;
    let kms = server.kms().on_behalf_of("bob&co");
    kms.names().await.unwrap();
    assert_eq!(server.asked()[0].target, "/kms/v1/keys/names?user.name=alice&doAs=bob%26co");
}

#[tokio::test]
async fn a_missing_key_is_told_from_other_failures() {
    let server = Server::start(hadoop).await;
    let kms = server.kms();
    let missing = KmsError::NotFound { name: "other".to_string() };
    assert_eq!(kms.generate("other", 1).await.unwrap_err(), missing);
    assert_eq!(kms.roll("other").await.unwrap_err(), missing);
    let refused = kms.create_key("x", 1).await;
    assert!(refused.is_ok());
    let mixed = EncryptedKey { key_name: "k2".to_string(), ..key() };
    let mixed = kms.reencrypt(&[key(), mixed]).await.unwrap_err();
    assert!(matches!(mixed, KmsError::Argument(_)), "{mixed}");
}

#[tokio::test]
async fn answers_that_make_no_sense_are_errors() {
    let answers = [
        "",
        "[]",
        "null",
        r#"{"versionName":1}"#,
        r#"{"versionName":"v","material":"!"}"#,
        r#"{"versionName":"v","material":7}"#,
        "[[[[",
    ];
    for answer in answers {
        let server = Server::start(move |_| text(200, answer)).await;
        let error = server.kms().current_version("k").await.unwrap_err();
        assert!(matches!(error, KmsError::Answer { .. }), "{answer}: {error}");
        let error = server.kms().decrypt(&key()).await.unwrap_err();
        assert!(matches!(error, KmsError::Answer { .. }), "{answer}: {error}");
        let error = server.kms().generate("k", 1).await.unwrap_err();
        assert!(matches!(error, KmsError::Answer { .. }), "{answer}: {error}");
    }
    let server = Server::start(|_| text(200, format!("[{EEK}]"))).await;
    assert!(server.kms().generate("k", 2).await.is_err(), "one key where two were asked for");
    assert!(server.kms().reencrypt(&[key(), key()]).await.is_err());
}
