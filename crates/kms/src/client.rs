//! Questions to the key servers, with another server asked when one fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host::{Failure, Host, Question};
use crate::json::{self, Parsed};
use crate::{EncryptedKey, KeyMaterial, KeyMetadata, KeyVersion, KmsError, ProviderPath};

/// Most questions that are under way at a time.
const ASKED_MAX: usize = 64;

type Result<T, E = KmsError> = std::result::Result<T, E>;

/// How patient the client is. `Default` is Hadoop's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsOptions {
    /// `hadoop.security.kms.client.timeout`: how long one server may take for a connection, and as
    /// long again for an answer. Zero stands for any time, as in Java.
    pub timeout: Duration,
    /// `hadoop.security.kms.client.failover.max.retries`: how often a question is sent again when a
    /// server cannot be reached; as often as there are servers by default. Each server is tried once
    /// at least.
    pub failover_retries: Option<u32>,
    /// `hadoop.security.kms.client.failover.sleep.base.millis`: the wait after all servers were
    /// tried, doubled with each try.
    pub failover_sleep: Duration,
    /// `hadoop.security.kms.client.failover.sleep.max.millis`: the longest such wait.
    pub failover_sleep_max: Duration,
}

impl Default for KmsOptions {
    fn default() -> KmsOptions {
        KmsOptions {
            timeout: Duration::from_secs(60),
            failover_retries: None,
            failover_sleep: Duration::from_millis(100),
            failover_sleep_max: Duration::from_secs(2),
        }
    }
}

/// The key servers of one provider path, asked as one user.
///
/// Servers are asked in turn. One that cannot be reached, does not answer in time, fails inside or answers what no key
/// server does is followed by the next, except for a question that may have been heeded and must not be heeded
/// twice; one that refuses is believed. Connections are kept. 64 questions are asked at a time, others wait.
///
/// Source: Hadoop 3.5.0 `KMSClientProvider`, `LoadBalancingKMSClientProvider`.
#[derive(Debug)]
pub struct Kms {
    path: ProviderPath,
    hosts: Vec<Host>,
    next_host: AtomicUsize,
    /// The part of the query that says who asks.
    who: String,
    options: KmsOptions,
    /// For questions under way.
    places: Semaphore,
}

impl Kms {
    /// A client that connects when it is asked something. The servers believe that it is `user`.
    pub fn new(path: ProviderPath, user: &str, mut options: KmsOptions) -> Kms {
        if options.timeout.is_zero() {
            options.timeout = Duration::MAX;
        }
        let hosts: Vec<Host> =
            path.hosts().iter().map(|host| Host::new(host, path.port())).collect();
        // Clients that start together begin with different servers.
        let start = getrandom::u32().unwrap_or_default() as usize;
        let who = format!("user.name={}", encoded(user));
        let places = Semaphore::new(ASKED_MAX);
        Kms { path, hosts, next_host: AtomicUsize::new(start), who, options, places }
    }

    /// The same, but asking on behalf of `proxied`, which the servers must let this user do.
    pub fn on_behalf_of(mut self, proxied: &str) -> Kms {
        self.who = format!("{}&doAs={}", self.who, encoded(proxied));
        self
    }

    /// The path with which it was made.
    pub fn path(&self) -> &ProviderPath {
        &self.path
    }

    /// What there is to know of key `name`; `None` when it does not exist.
    pub async fn metadata(&self, name: &str) -> Result<Option<KeyMetadata>> {
        if name.is_empty() {
            return Ok(None);
        }
        self.get(&format!("key/{}/_metadata", encoded(name)), "", json::metadata).await
    }

    /// The version with which key `name` encrypts now; `None` when the key does not exist.
    pub async fn current_version(&self, name: &str) -> Result<Option<KeyVersion>> {
        if name.is_empty() {
            return Ok(None);
        }
        self.get(&format!("key/{}/_currentversion", encoded(name)), "", json::key_version).await
    }

    /// `count` new keys, encrypted with the current version of key `name`.
    pub async fn generate(&self, name: &str, count: usize) -> Result<Vec<EncryptedKey>> {
        if name.is_empty() {
            return Err(KmsError::NotFound { name: String::new() });
        }
        let resource = format!("key/{}/_eek", encoded(name));
        let query = format!("eek_op=generate&num_keys={count}&");
        let parse = |value: &Value| {
            let keys = json::encrypted_keys(name, value)?;
            if keys.len() != count {
                return Err(format!("it has {} keys instead of {count}", keys.len()));
            }
            Ok(keys)
        };
        let generated = self.get(&resource, &query, parse).await;
        self.or_not_found(generated, name).await
    }

    /// The same keys, encrypted with the current version of their key, in the same order. All are of
    /// one key. The server takes no more than 10,000.
    pub async fn reencrypt(&self, keys: &[EncryptedKey]) -> Result<Vec<EncryptedKey>> {
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let name = &first.key_name;
        if keys.iter().any(|key| key.key_name != *name) {
            let mixed = "encrypted keys of several keys cannot be encrypted anew together";
            return Err(KmsError::Argument(mixed.to_string()));
        }
        let resource = format!("key/{}/_reencryptbatch", encoded(name));
        let parse = |value: &Value| {
            let anew = json::encrypted_keys(name, value)?;
            if anew.len() != keys.len() {
                return Err(format!("it has {} keys instead of {}", anew.len(), keys.len()));
            }
            // Files are encrypted with what this key decrypts to only together with its own vector.
            match anew.iter().zip(keys).position(|(anew, key)| anew.iv != key.iv) {
                None => Ok(anew),
                Some(at) => Err(format!("key {at} has another initialization vector")),
            }
        };
        let body = json::to_reencrypt(keys);
        let question = self.question(Method::POST, &resource, "", Some(body), true);
        let anew = self.ask(question, parse).await;
        self.or_not_found(anew, name).await
    }

    /// Decrypts a key.
    pub async fn decrypt(&self, key: &EncryptedKey) -> Result<KeyMaterial> {
        let resource = format!("keyversion/{}/_eek", encoded(&key.key_version));
        let body = json::to_decrypt(key);
        let question = self.question(Method::POST, &resource, "eek_op=decrypt&", Some(body), true);
        let parse = |value: &Value| {
            let version = json::key_version(value)?.ok_or("it is empty")?;
            Ok(version.material.ok_or("it has no material")?)
        };
        let decrypted = self.ask(question, parse).await;
        self.or_not_found(decrypted, &key.key_name).await
    }

    /// Makes key `name` of so many bits for `AES/CTR/NoPadding`.
    pub async fn create_key(&self, name: &str, bit_length: u32) -> Result<KeyVersion> {
        let body = json!({ "name": name, "cipher": "AES/CTR/NoPadding", "length": bit_length });
        let question = self.question(Method::POST, "keys", "", Some(body), false);
        self.ask(question, existing_version).await
    }

    /// Makes a new version of key `name`, and has the server forget what it keeps of the one before.
    pub async fn roll(&self, name: &str) -> Result<KeyVersion> {
        let resource = format!("key/{}", encoded(name));
        let question = self.question(Method::POST, &resource, "", Some(json!({})), false);
        let rolled = self.ask(question, existing_version).await;
        let version = self.or_not_found(rolled, name).await?;
        let resource = format!("{resource}/_invalidatecache");
        let question = self.question(Method::POST, &resource, "", None, true);
        self.ask_raw(&question, |_| Ok(())).await?;
        Ok(version)
    }

    /// The names of all keys that this user may see.
    pub async fn names(&self) -> Result<Vec<String>> {
        self.get("keys/names", "", json::names).await
    }

    /// Finds out whether it was for want of the key that something failed: the server throws what
    /// it throws for other reasons as well.
    async fn or_not_found<T>(&self, outcome: Result<T>, name: &str) -> Result<T> {
        if matches!(outcome, Err(KmsError::Server { .. }))
            && matches!(self.metadata(name).await, Ok(None))
        {
            return Err(KmsError::NotFound { name: name.to_string() });
        }
        outcome
    }

    fn question(
        &self,
        method: Method,
        resource: &str,
        query: &str,
        body: Option<Value>,
        repeatable: bool,
    ) -> Question {
        let target = format!("{}/v1/{resource}?{query}{}", self.path.base(), self.who);
        let body = body.map(|body| Bytes::from(body.to_string()));
        Question { method, target, body, repeatable }
    }

    async fn get<T>(
        &self,
        resource: &str,
        query: &str,
        parse: impl Fn(&Value) -> Parsed<T>,
    ) -> Result<T> {
        self.ask(self.question(Method::GET, resource, query, None, true), parse).await
    }

    async fn ask<T>(&self, question: Question, parse: impl Fn(&Value) -> Parsed<T>) -> Result<T> {
        let parse_json = |body: &Bytes| {
            let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            parse(&value)
        };
        self.ask_raw(&question, parse_json).await
    }

    /// What `parse` makes of the first answer that is one of a key server that has done what it was asked.
    async fn ask_raw<T>(
        &self,
        question: &Question,
        parse: impl Fn(&Bytes) -> Parsed<T>,
    ) -> Result<T> {
        let count = self.hosts.len();
        let start = self.next_host.fetch_add(1, Ordering::Relaxed);
        let retries = self.options.failover_retries.map_or(count, |retries| retries as usize);
        let mut tried = 0;
        loop {
            let host = &self.hosts[start.wrapping_add(tried) % count];
            let named = || host.authority.clone();
            let error = match self.ask_one(host, question).await {
                Ok((status, body)) if status.is_success() => match parse(&body) {
                    Ok(answer) => return Ok(answer),
                    Err(reason) => KmsError::Answer { host: named(), reason },
                },
                Ok((status, body)) => refusal(host, status, &body),
                Err(failure) => {
                    let error = KmsError::Unreachable { host: named(), reason: failure.reason };
                    if failure.sent && !question.repeatable {
                        return Err(error);
                    }
                    error
                }
            };
            let tries = match &error {
                KmsError::Unreachable { .. } => count.max(retries + 1),
                KmsError::Server { status: 500.., .. } if question.repeatable => count,
                // A key server names a class: something else has answered, or one that does not work.
                KmsError::Server { class, .. } if class.is_empty() && question.repeatable => count,
                KmsError::Answer { .. } if question.repeatable => count,
                _ => return Err(error),
            };
            tracing::warn!(%error, "a key server failed");
            tried += 1;
            if tried >= tries {
                return Err(error);
            }
            if tried % count == 0 {
                tokio::time::sleep(self.sleep(tried - 1)).await;
            }
        }
    }

    /// Asks one server, when there is a place.
    async fn ask_one(
        &self,
        host: &Host,
        question: &Question,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let place = tokio::time::timeout(self.options.timeout, self.places.acquire()).await;
        let reason = || format!("{ASKED_MAX} other questions wait for an answer");
        let _place = place.map_err(|_| Failure { sent: false, reason: reason() })?;
        host.ask(question, self.options.timeout).await
    }

    /// How long to wait after so many tries; not at all after the first. `RetryPolicies`.
    fn sleep(&self, failovers: usize) -> Duration {
        if failovers == 0 {
            return Duration::ZERO;
        }
        let factor = 1_u32 << failovers.min(20);
        let full = self.options.failover_sleep.saturating_mul(factor);
        let random = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
        full.min(self.options.failover_sleep_max).mul_f64(0.5 + random)
    }
}

fn existing_version(value: &Value) -> Parsed<KeyVersion> {
    Ok(json::key_version(value)?.ok_or("it is empty")?)
}

fn refusal(host: &Host, status: StatusCode, body: &[u8]) -> KmsError {
    let (class, message) = json::exception(body);
    let refuses = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if refuses && !class.is_empty() {
        return KmsError::Refused { class, message };
    }
    KmsError::Server { host: host.authority.clone(), status: status.as_u16(), class, message }
}

/// `text` as part of a path or a query.
fn encoded(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
