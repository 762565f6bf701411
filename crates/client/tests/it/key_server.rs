//! A key server for tests. Its keys are named by their bits, as `k128`; it "encrypts" by adding a number
//! that depends on the version. User `mallory` gets nothing decrypted.

use crate::cluster::bytes;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub struct KeyServer {
    pub provider: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The current version of all keys.
    version: AtomicU64,
    /// Keys made so far.
    made: AtomicU64,
    decrypted: AtomicU64,
}

impl KeyServer {
    pub async fn start() -> KeyServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<State>::default();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, shared.clone()));
            }
        });
        KeyServer { provider: format!("kms://http@127.0.0.1:{port}/kms"), state }
    }

    /// Gives all keys a new version.
    pub fn roll(&self) {
        self.state.version.fetch_add(1, Ordering::Relaxed);
    }

    /// How often a key was decrypted.
    pub fn decrypted(&self) -> u64 {
        self.state.decrypted.load(Ordering::Relaxed)
    }
}

async fn talk(stream: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    while let Some((target, body)) = read(&mut stream).await {
        let (status, answer) = state.answer(&target, &body);
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 {status} Words\r\nContent-Length: {}\r\n\r\n", answer.len());
        if stream.get_mut().write_all((head + &answer).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let target = line.split(' ').nth(1)?.to_string();
    let mut len = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => len = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await.ok()?;
    Some((target, serde_json::from_slice(&body).unwrap_or_default()))
}

impl State {
    fn answer(&self, target: &str, body: &Value) -> (u16, Value) {
        let (path, query) = target.split_once('?').unwrap();
        let words: Vec<&str> = path.strip_prefix("/kms/v1/").unwrap().split('/').collect();
        match words[..] {
            ["key", name, "_metadata"] => (200, self.metadata(name)),
            ["key", name, "_currentversion"] => {
                (200, json!({ "name": name, "versionName": self.current(name) }))
            }
            ["key", name, "_eek"] => {
                let count = query.split('&').find_map(|pair| pair.strip_prefix("num_keys="));
                (200, (0..count.unwrap().parse().unwrap()).map(|_| self.make(name)).collect())
            }
            ["key", name, "_reencryptbatch"] => {
                let keys = body.as_array().unwrap();
                (200, keys.iter().map(|key| self.anew(name, key)).collect())
            }
            ["keyversion", _, "_eek"] if query.contains("user.name=mallory") => {
                let class = "org.apache.hadoop.security.authorize.AuthorizationException";
                (403, json!({"RemoteException": {"javaClassName": class, "message": "no"}}))
            }
            ["keyversion", version, "_eek"] => {
                self.decrypted.fetch_add(1, Ordering::Relaxed);
                let material = shifted(&bytes_of(&body["material"]), number(version), false);
                (200, json!({ "versionName": "EK", "material": BASE64.encode(material) }))
            }
            _ => (500, json!({})),
        }
    }

    fn current(&self, name: &str) -> String {
        format!("{name}@{}", self.version.load(Ordering::Relaxed))
    }

    fn metadata(&self, name: &str) -> Value {
        let Some(bits) = bits(name) else { return json!({}) };
        let versions = self.version.load(Ordering::Relaxed) + 1;
        json!({
            "name": name, "cipher": "AES/CTR/NoPadding", "length": bits, "description": null,
            "created": 1_790_000_000_000_u64, "versions": versions,
        })
    }

    fn make(&self, name: &str) -> Value {
        let seed = self.made.fetch_add(1, Ordering::Relaxed);
        let material = bytes(2 * seed + 1, bits(name).unwrap() / 8);
        self.encrypted(name, &material, &bytes(2 * seed + 2, 16))
    }

    fn anew(&self, name: &str, key: &Value) -> Value {
        let old = bytes_of(&key["encryptedKeyVersion"]["material"]);
        let version = number(key["versionName"].as_str().unwrap());
        self.encrypted(name, &shifted(&old, version, false), &bytes_of(&key["iv"]))
    }

    fn encrypted(&self, name: &str, material: &[u8], iv: &[u8]) -> Value {
        let material = shifted(material, self.version.load(Ordering::Relaxed), true);
        json!({
            "versionName": self.current(name), "iv": BASE64.encode(iv),
            "encryptedKeyVersion": {"versionName": "EEK", "material": BASE64.encode(material)},
        })
    }
}

fn bits(name: &str) -> Option<usize> {
    name.strip_prefix('k')?.parse().ok()
}

fn bytes_of(text: &Value) -> Vec<u8> {
    BASE64.decode(text.as_str().unwrap()).unwrap()
}

/// The number behind the last `@` or `%40`.
fn number(version: &str) -> u64 {
    version.replace("%40", "@").rsplit('@').next().unwrap().parse().unwrap()
}

fn shifted(material: &[u8], version: u64, there: bool) -> Vec<u8> {
    let step = (version as u8).wrapping_mul(7).wrapping_add(3);
    let shift = |byte: &u8| if there { byte.wrapping_add(step) } else { byte.wrapping_sub(step) };
    material.iter().map(shift).collect()
}
