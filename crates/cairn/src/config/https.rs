//! Whether roles serve HTTP, HTTPS or both, and with which certificate.
//!
//! Source: Hadoop 3.5.0 `DFSUtil#getHttpPolicy`, `DFSConfigKeys`.

use super::{Configuration, value};
use anyhow::{Context, Result, bail};
use cairn_keys::{BOOLEAN, Kind, keys};
use cairn_net::tls::{TlsFiles, TlsTrust};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const POLICY: &str = "dfs.http.policy";
const CERTIFICATE: &str = "cairn.https.certificate";
const KEY: &str = "cairn.https.key";
const AUTHORITY: &str = "cairn.https.authority";
const CLIENT_CERTIFICATES: &str = "dfs.client.https.need-auth";

/// Whether HTTP is served, and whether HTTPS is.
const SERVED: Kind<(bool, bool)> = Kind::new("HTTP_ONLY, HTTPS_ONLY or HTTP_AND_HTTPS", |text| {
    match text.to_ascii_uppercase().as_str() {
        "HTTP_ONLY" => Ok((true, false)),
        "HTTPS_ONLY" => Ok((false, true)),
        "HTTP_AND_HTTPS" => Ok((true, true)),
        _ => Err("it takes HTTP_ONLY, HTTPS_ONLY or HTTP_AND_HTTPS".into()),
    }
});

keys! {
    /// What is said of HTTPS.
    #[derive(Clone, Debug)]
    pub struct HttpsKeys {
        /// Whether servers have HTTP, HTTPS or both; where they have HTTPS alone, commands and other servers ask by it.
        served: (bool, bool), "dfs.http.policy" = "HTTP_ONLY" as SERVED;
        /// Whether clients are to show certificates, which is refused where HTTPS is served.
        asks_clients: bool, "dfs.client.https.need-auth" = "false" as BOOLEAN;
    }
    parts {}
    by_hand {
        /// A PEM file with the certificate of servers.
        "cairn.https.certificate" = "" as "file";
        /// A PEM file with the key of that.
        "cairn.https.key" = "" as "file";
        /// A PEM file of those who vouch for servers; whom the system trusts without it.
        "cairn.https.authority" = "" as "file";
        /// Where a NameNode serves HTTPS.
        "dfs.namenode.https-address" = "0.0.0.0:9871" as "host:port";
        /// Where a DataNode serves HTTPS.
        "dfs.datanode.https.address" = "0.0.0.0:9865" as "host:port";
    }
    others {}
}

/// What a role serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// Whether HTTP without TLS is served.
    pub is_plain: bool,
    /// Where HTTPS is served, and with which certificate, if it is.
    pub secure: Option<(SocketAddr, TlsFiles)>,
}

/// What the keys say, with that key for the address of HTTPS and its default.
pub fn read(conf: &Configuration, (address, default): (&str, &str)) -> Result<Web> {
    let HttpsKeys { served: (is_plain, is_secure), asks_clients } = keys(conf)?;
    if asks_clients && is_secure {
        bail!("{CLIENT_CERTIFICATES} is true: certificates of clients are not asked for");
    }
    if !is_secure {
        return Ok(Web { is_plain, secure: None });
    }
    let Some(files) = files(conf) else {
        bail!("{}", lacks(POLICY));
    };
    let address = conf.get(address).unwrap_or_else(|| default.to_string());
    Ok(Web { is_plain, secure: Some((value::address(&address)?, files)) })
}

fn keys(conf: &Configuration) -> Result<HttpsKeys> {
    let mut keys = HttpsKeys::default();
    conf.fill(HttpsKeys::KEYS, &mut keys)?;
    Ok(keys)
}

/// Whom a client trusts that asks servers by TLS; `None` where it asks them without.
///
/// Source: Hadoop 3.5.0 `DFSUtil#getHttpClientScheme`.
pub fn trust(conf: &Configuration) -> Result<Option<TlsTrust>> {
    if let (true, _) = keys(conf)?.served {
        return Ok(None);
    }
    authority(conf).map(Some)
}

/// Who vouches for servers that are asked by TLS.
pub fn authority(conf: &Configuration) -> Result<TlsTrust> {
    match conf.get(AUTHORITY) {
        Some(path) => TlsTrust::open(Path::new(&path)).context(AUTHORITY),
        None => TlsTrust::of_system().with_context(|| {
            format!("{AUTHORITY} names no file of those who vouch for servers, and the system's")
        }),
    }
}

/// Why there is no HTTPS, which `key` wants.
pub fn lacks(key: &str) -> String {
    format!(
        "{key} wants HTTPS, and {CERTIFICATE} and {KEY} are not both set: they name PEM files, in the place of the keystore \
         of ssl-server.xml, which is not read"
    )
}

/// The certificate and its key, if both are named.
pub fn files(conf: &Configuration) -> Option<TlsFiles> {
    let path = |key: &str| conf.get(key).map(PathBuf::from);
    Some(TlsFiles { certificate: path(CERTIFICATE)?, key: path(KEY)? })
}

/// The certificate and its key, and who vouches for the others, where both sides of a connection show one, as `key` wants.
pub fn mutual(conf: &Configuration, key: &str) -> Result<(TlsFiles, PathBuf)> {
    match (files(conf), conf.get(AUTHORITY)) {
        (Some(files), Some(authority)) => Ok((files, PathBuf::from(authority))),
        _ => bail!(
            "{key} is true, and {CERTIFICATE}, {KEY} and {AUTHORITY} are not all set: they name PEM files of this NameNode's \
             certificate and key, and of those who vouch for the other members"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_what_is_served() {
        let of = |keys: &[(&str, &str)]| {
            let mut conf = Configuration::default();
            keys.iter().for_each(|(key, value)| conf.set(key, *value));
            read(&conf, ("dfs.namenode.https-address", "127.0.0.1:9871"))
        };
        let files = [(CERTIFICATE, "/c"), (KEY, "/k")];
        let with = |policy| of(&[(POLICY, policy), files[0], files[1]]);
        let told = TlsFiles { certificate: "/c".into(), key: "/k".into() };
        let secure = Some(("127.0.0.1:9871".parse().unwrap(), told));
        assert_eq!(of(&[]).unwrap(), Web { is_plain: true, secure: None });
        assert_eq!(with("HTTP_ONLY").unwrap(), Web { is_plain: true, secure: None });
        assert_eq!(with("https_only").unwrap(), Web { is_plain: false, secure: secure.clone() });
        assert_eq!(with("HTTP_AND_HTTPS").unwrap(), Web { is_plain: true, secure });
        assert!(with("HTTPS").is_err());
        let missing = format!("{:#}", of(&[(POLICY, "HTTPS_ONLY"), files[0]]).unwrap_err());
        assert!(missing.contains(CERTIFICATE) && missing.contains(KEY), "{missing}");
        let asks = [(POLICY, "HTTPS_ONLY"), files[0], files[1], (CLIENT_CERTIFICATES, "true")];
        assert!(of(&asks).is_err());
    }

    #[test]
    fn clients_ask_by_tls_where_nothing_else_is_served() {
        let of = |policy: &str, authority: &str| {
            let mut conf = Configuration::default();
            conf.set(POLICY, policy);
            conf.set(AUTHORITY, authority);
            trust(&conf).map(|trust| trust.is_some())
        };
        let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/../net/src/tls/one.pem");
        for (policy, by_tls) in [("HTTPS_ONLY", true), ("HTTP_AND_HTTPS", false), ("", false)] {
            assert_eq!(of(policy, authority).unwrap(), by_tls, "{policy}");
        }
        let told = format!("{:#}", of("HTTPS_ONLY", "/nonexistent").unwrap_err());
        assert!(told.contains(AUTHORITY) && told.contains("/nonexistent"), "{told}");
    }
}
