//! DIGEST-MD5, as Java's SASL speaks it, for peers that hold a token.
//!
//! The user's name is a token's identifier and the password that of the token, both in base 64, or what else both sides
//! agree on. A peer shows that it
//! knows the password, and the server shows it likewise. With integrity or privacy both derive keys from it, for
//! HMAC-MD5 and for RC4: of the ciphers that Java has, the one that clients of every language have as well.
//!
//! Source: RFC 2831, and what a JDK does where that leaves a choice (`DigestMD5Server`, `DigestMD5Client`).

mod hash;
mod layer;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use self::hash::{hash, hex};
use crate::digest::{Directives, MAX_BUF, malformed, put, put_quoted};
use crate::sasl::Layer;
use crate::token::is_same;
use crate::{Protection, SaslError};

/// What both sides call the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    realm: &'static str,
    uri: &'static str,
}

impl Service {
    /// That of RPC: its protocol is empty. Source: Hadoop 3.5.0 `SaslRpcServer#SASL_DEFAULT_REALM`.
    pub const RPC: Service = Service { realm: "default", uri: "/default" };
    /// That of data transfer. Source: Hadoop 3.5.0 `SaslParticipant#SERVER_NAME`, `#PROTOCOL`.
    pub const TRANSFER: Service = Service { realm: "0", uri: "hdfs/0" };
}

/// How often a nonce is used. Source: RFC 2831, section 2.1.2.
const NONCE_COUNT: &str = "00000001";
/// The only cipher.
const CIPHER: &str = "rc4";
/// What is added to the digest where more than authentication is wanted.
const LAYER_MARK: &str = ":00000000000000000000000000000000";

/// Bytes of a nonce before they are made text.
pub const NONCE_LEN: usize = 30;

/// A secret that both sides know, under a name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The token's identifier.
    pub identifier: Vec<u8>,
    /// Its password.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

/// The server's side of one exchange.
#[derive(Clone, Debug)]
pub struct DigestServer {
    service: Service,
    nonce: String,
    protections: Vec<Protection>,
}

/// What a server has found.
#[derive(Debug)]
pub struct Verified<T> {
    /// What the client is to be told.
    pub answer: Vec<u8>,
    /// What was said of the token.
    pub token: T,
    /// How much the client wants.
    pub protection: Protection,
    /// Around everything that follows, if anything is.
    pub layer: Option<Layer>,
}

impl DigestServer {
    /// For one client, with random bytes that were never used before.
    pub fn new(
        service: Service,
        nonce: [u8; NONCE_LEN],
        protections: &[Protection],
    ) -> DigestServer {
        DigestServer { service, nonce: STANDARD.encode(nonce), protections: protections.to_vec() }
    }

    /// What the client is asked.
    ///
    /// Source: JDK 17 `DigestMD5Server#generateChallenge`.
    pub fn challenge(&self) -> Vec<u8> {
        let qops: Vec<&str> = self.protections.iter().map(|one| one.qop()).collect();
        let mut out = String::new();
        put_quoted("realm", self.service.realm, &mut out);
        put_quoted("nonce", &self.nonce, &mut out);
        put_quoted("qop", &qops.join(","), &mut out);
        put("charset", "utf-8", &mut out);
        if self.protections.contains(&Protection::Privacy) {
            put_quoted("cipher", CIPHER, &mut out);
        }
        put("algorithm", "md5-sess", &mut out);
        out.into_bytes()
    }

    /// As [`DigestServer::verify_user`], for tokens. `find` says what one's password is, and what else is known of it.
    pub fn verify<T, E: From<SaslError>>(
        &self,
        response: &[u8],
        find: impl FnOnce(&[u8]) -> Result<(Vec<u8>, T), E>,
    ) -> Result<Verified<T>, E> {
        self.verify_user(response, |user| {
            let identifier = STANDARD.decode(user).map_err(|_| malformed("username"))?;
            let (password, token) = find(&identifier)?;
            Ok((STANDARD.encode(password), token))
        })
    }

    /// Judges what the client has answered. `find` says what a user's password is, and what else is known of it.
    ///
    /// Source: JDK 17 `DigestMD5Server#validateClientResponse`.
    pub fn verify_user<T, E: From<SaslError>>(
        &self,
        response: &[u8],
        find: impl FnOnce(&str) -> Result<(String, T), E>,
    ) -> Result<Verified<T>, E> {
        let response = Directives::parse(response)?;
        if response.get("charset").is_some_and(|charset| charset != "utf-8") {
            return Err(malformed("Incompatible charset value").into());
        }
        let max_buf = response.max_buf()?;
        let user = response.need("username")?;
        if response.get("realm").unwrap_or_default() != self.service.realm {
            return Err(malformed("Nonexistent realm").into());
        }
        if response.need("nonce")? != self.nonce {
            return Err(malformed("Mismatched nonce.").into());
        }
        if response.get("nc").is_some_and(|count| count != NONCE_COUNT) {
            return Err(malformed("Nonce count does not match").into());
        }
        let qop = response.get("qop").unwrap_or("auth");
        let protection = Protection::of_qop(qop).filter(|one| self.protections.contains(one));
        let Some(protection) = protection else {
            return Err(SaslError("DIGEST-MD5: server does not support  qop".into()).into());
        };
        if protection == Protection::Privacy && response.need("cipher")? != CIPHER {
            return Err(SaslError("DIGEST-MD5: server does not support cipher".into()).into());
        }
        if !response.need("digest-uri")?.eq_ignore_ascii_case(self.service.uri) {
            return Err(malformed("Mismatched URI").into());
        }
        if response.get("authzid").is_some_and(|other| other != user) {
            return Err(SaslError("DIGEST-MD5: nobody may act as another".into()).into());
        }
        let (password, token) = find(user)?;
        let proof = Proof {
            realm: self.service.realm,
            user,
            password: &password,
            nonce: &self.nonce,
            cnonce: response.need("cnonce")?,
            uri: response.need("digest-uri")?,
            authzid: response.get("authzid"),
            protection,
        };
        let expected = proof.value("AUTHENTICATE");
        if !is_same(expected.as_bytes(), response.need("response")?.as_bytes()) {
            return Err(malformed("Mismatched response.").into());
        }
        let answer = format!("rspauth={}", proof.value("")).into_bytes();
        Ok(Verified {
            answer,
            token,
            protection,
            layer: layer::of(&proof.session(), protection, false, max_buf),
        })
    }
}

/// The identifier of the token that a client's answer names, if it is one that can be read.
pub(crate) fn identifier(response: &[u8]) -> Option<Vec<u8>> {
    let response = Directives::parse(response).ok()?;
    STANDARD.decode(response.need("username").ok()?).ok()
}

/// The client's side of one exchange.
pub struct DigestClient {
    service: Service,
    user: String,
    password: String,
    cnonce: String,
    protections: Vec<Protection>,
    /// What the server is to answer, and what follows.
    expected: Option<(String, Protection, Option<Layer>)>,
}

impl DigestClient {
    /// For one connection. Of `protections` the first that the server has is taken.
    pub fn new(
        service: Service,
        secret: &Secret,
        nonce: [u8; NONCE_LEN],
        protections: &[Protection],
    ) -> DigestClient {
        let user = STANDARD.encode(&secret.identifier);
        let password = STANDARD.encode(&secret.password);
        DigestClient::of_user(service, (user, password), nonce, protections)
    }

    /// The same for a user with its password.
    pub fn of_user(
        service: Service,
        (user, password): (String, String),
        nonce: [u8; NONCE_LEN],
        protections: &[Protection],
    ) -> DigestClient {
        let (cnonce, protections) = (STANDARD.encode(nonce), protections.to_vec());
        DigestClient { service, user, password, cnonce, protections, expected: None }
    }

    /// Answers the server's challenge.
    ///
    /// Source: JDK 17 `DigestMD5Client#generateClientResponse`.
    pub fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, SaslError> {
        let challenge = Directives::parse(challenge)?;
        let nonce = challenge.need("nonce")?;
        let Service { realm: own, uri } = self.service;
        let realm = challenge.get("realm").unwrap_or(own);
        if realm != own {
            return Err(SaslError(format!("DIGEST-MD5: an unknown realm {realm}")));
        }
        let offered: Vec<&str> =
            challenge.get("qop").unwrap_or("auth").split(',').map(str::trim).collect();
        let chosen = self.protections.iter().find(|one| offered.contains(&one.qop()));
        let Some(&protection) = chosen else {
            let text = "No common protection layer between client and server";
            return Err(SaslError(format!("DIGEST-MD5: {text}")));
        };
        let ciphers = challenge.get("cipher").unwrap_or_default();
        if protection == Protection::Privacy
            && !ciphers.split(',').any(|cipher| cipher.trim() == CIPHER)
        {
            return Err(SaslError(format!("DIGEST-MD5: the server lacks the cipher {CIPHER}")));
        }
        let (user, password) = (self.user.as_str(), self.password.as_str());
        let proof = Proof {
            realm: own,
            user,
            password,
            nonce,
            cnonce: &self.cnonce,
            uri,
            authzid: None,
            protection,
        };
        let mut out = String::new();
        put("charset", "utf-8", &mut out);
        put_quoted("username", user, &mut out);
        put_quoted("realm", own, &mut out);
        put_quoted("nonce", nonce, &mut out);
        put("nc", NONCE_COUNT, &mut out);
        put_quoted("cnonce", &self.cnonce, &mut out);
        put_quoted("digest-uri", uri, &mut out);
        put("maxbuf", &MAX_BUF.to_string(), &mut out);
        put("response", &proof.value("AUTHENTICATE"), &mut out);
        put("qop", protection.qop(), &mut out);
        if protection == Protection::Privacy {
            put_quoted("cipher", CIPHER, &mut out);
        }
        let layer = layer::of(&proof.session(), protection, true, challenge.max_buf()?);
        self.expected = Some((proof.value(""), protection, layer));
        Ok(out.into_bytes())
    }

    /// Judges the server's answer, which shows that it knows the secret too. Returns what is around all that follows.
    pub fn finish(&mut self, answer: &[u8]) -> Result<(Protection, Option<Layer>), SaslError> {
        let Some((expected, protection, layer)) = self.expected.take() else {
            return Err(SaslError("DIGEST-MD5: an answer without a question".into()));
        };
        let answer = Directives::parse(answer)?;
        if !is_same(answer.need("rspauth")?.as_bytes(), expected.as_bytes()) {
            return Err(SaslError("DIGEST-MD5: the server does not know the token".into()));
        }
        Ok((protection, layer))
    }
}

/// The password does not show.
impl std::fmt::Debug for DigestClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DigestClient").finish_non_exhaustive()
    }
}

/// What both sides compute.
struct Proof<'a> {
    realm: &'a str,
    user: &'a str,
    password: &'a str,
    nonce: &'a str,
    cnonce: &'a str,
    uri: &'a str,
    authzid: Option<&'a str>,
    protection: Protection,
}

impl Proof<'_> {
    /// What the session's keys come from. Source: RFC 2831, section 2.1.2.1, `H(A1)`.
    fn session(&self) -> [u8; 16] {
        let user = hash(&[self.user, ":", self.realm, ":", self.password].map(str::as_bytes));
        let mut parts: Vec<&[u8]> =
            vec![&user, b":", self.nonce.as_bytes(), b":", self.cnonce.as_bytes()];
        if let Some(authzid) = self.authzid {
            parts.extend([&b":"[..], authzid.as_bytes()]);
        }
        hash(&parts)
    }

    /// What shows that one knows the password. The server's has no method.
    fn value(&self, method: &str) -> String {
        let mark = if self.protection == Protection::Authentication { "" } else { LAYER_MARK };
        let second = hex(&hash(&[method, ":", self.uri, mark].map(str::as_bytes)));
        let first = hex(&self.session());
        let qop = self.protection.qop();
        let parts =
            [&first, ":", self.nonce, ":", NONCE_COUNT, ":", self.cnonce, ":", qop, ":", &second];
        hex(&hash(&parts.map(str::as_bytes)))
    }
}

#[cfg(test)]
mod tests;
