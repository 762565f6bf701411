//! A key server with one key, `k`, of as many versions as a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use cairn_kms::KmsOptions;
use cairn_namenode::config::EncryptionConfig;

#[allow(dead_code, reason = "the tests of its client use more of it")]
#[path = "../../../kms/tests/it/server.rs"]
mod server;

use server::{Answer, Asked, Server, text};

/// What the server is to do.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// Later versions than the first.
    pub rolled: AtomicU32,
    /// It answers nothing.
    pub is_away: AtomicBool,
    /// It encrypts no keys anew.
    pub fails_batches: AtomicBool,
    /// It encrypts no more keys than so many at once anew, if this is not 0.
    pub longest_batch: AtomicUsize,
    /// Keys that it has made.
    pub made: AtomicU32,
}

pub struct KeyServer {
    pub behaviour: Arc<Behaviour>,
    port: u16,
}

impl KeyServer {
    pub async fn start() -> KeyServer {
        let behaviour = Arc::new(Behaviour::default());
        let seen = Arc::clone(&behaviour);
        let server = Server::start(move |asked| answer(&seen, &asked)).await;
        KeyServer { behaviour, port: server.port }
    }

    /// What a NameNode is told of it; keys of an old version are not kept for long.
    pub fn config(&self) -> EncryptionConfig {
        let path = format!("kms://http@127.0.0.1:{}/kms", self.port);
        EncryptionConfig {
            key_provider: Some(path.parse().unwrap()),
            kms: KmsOptions {
                timeout: Duration::from_millis(500),
                failover_sleep: Duration::from_millis(1),
                ..KmsOptions::default()
            },
            listed_zones_max: 2,
            reencryption_batch: 2,
            reencryption_interval: Duration::from_millis(100),
            ..EncryptionConfig::default()
        }
    }
}

fn answer(behaviour: &Behaviour, asked: &Asked) -> Answer {
    if behaviour.is_away.load(Ordering::Relaxed) {
        return Box::pin(async { None });
    }
    let version = behaviour.rolled.load(Ordering::Relaxed);
    let encrypted = |iv: Option<&str>| {
        let number = format!("{:A<22}", behaviour.made.fetch_add(1, Ordering::Relaxed));
        let iv = iv.unwrap_or(&number);
        format!(
            r#"{{"versionName":"k@{version}","iv":"{iv}","encryptedKeyVersion":{{"versionName":"EEK","material":"{number}"}}}}"#
        )
    };
    let (resource, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    match resource.strip_prefix("/kms/v1/").unwrap_or_default() {
        "key/k/_metadata" => text(
            200,
            r#"{"name":"k","cipher":"AES/CTR/NoPadding","length":128,"created":1,"versions":1}"#,
        ),
        "key/k/_eek" => {
            let count = query.split('&').find_map(|part| part.strip_prefix("num_keys="));
            let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(1);
            let keys: Vec<String> = (0..count).map(|_| encrypted(None)).collect();
            text(200, format!("[{}]", keys.join(",")))
        }
        "key/k/_reencryptbatch" if behaviour.fails_batches.load(Ordering::Relaxed) => {
            let exception = r#"{"RemoteException":{"message":"no","javaClassName":"a.X"}}"#;
            text(500, exception)
        }
        "key/k/_reencryptbatch" => {
            let sent = asked.body.split(r#""iv":""#).skip(1);
            let ivs: Vec<&str> = sent.filter_map(|rest| rest.split('"').next()).collect();
            let count = ivs.len();
            let longest = behaviour.longest_batch.load(Ordering::Relaxed);
            if longest > 0 && count > longest {
                let exception = r#"{"RemoteException":{"message":"no","javaClassName":"a.X"}}"#;
                return text(500, exception);
            }
            let keys: Vec<String> = ivs.into_iter().map(|iv| encrypted(Some(iv))).collect();
            text(200, format!("[{}]", keys.join(",")))
        }
        _ => text(200, "{}"),
    }
}
