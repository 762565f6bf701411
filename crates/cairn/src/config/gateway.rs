//! Settings of `cairn gateway` from HttpFS's keys.
//!
//! With Kerberos its clients show tickets, or delegation tokens of the NameNode; the gateway shows the NameNode a ticket of
//! its own, and acts for them. Who of them may act for another, the gateway says.
//!
//! Source: Hadoop 3.5.0 `HttpFSServerWebServer`, `FileSystemAccessService`, `httpfs-default.xml`.

use super::security::{self, KeyPair};
use super::{Configuration, groups, https, webhdfs};
use anyhow::{Context, Result, bail};
use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_conf::login;
use cairn_keys::{BOOLEAN, Kind, TEXT, keys};
use cairn_net::http::{HttpAuth, SharedHandler};
use cairn_net::tls::TlsFiles;
use cairn_security::kerberos_name::server_principal;
use cairn_webhdfs::Guard;

/// By which it shows who it is to clients; else by the keys of other pages.
const FRONT: KeyPair =
    ("httpfs.authentication.kerberos.principal", "httpfs.authentication.kerberos.keytab");
/// By which it shows it to NameNode and DataNodes.
const BEHIND: KeyPair = (
    "httpfs.hadoop.authentication.kerberos.principal",
    "httpfs.hadoop.authentication.kerberos.keytab",
);
const FRONT_TYPE: &str = "httpfs.authentication.type";
const BEHIND_TYPE: &str = "httpfs.hadoop.authentication.type";
const TLS: &str = "httpfs.ssl.enabled";
/// What begins the keys of who may act for whom, here and at a NameNode.
const PROXY_USERS: (&str, &str) = ("httpfs.proxyuser.", "hadoop.proxyuser.");

const PORT: Kind<u16> = Kind::new("number up to 65535", |text| Ok(text.parse()?));

keys! {
    /// What is said of a gateway.
    #[derive(Clone, Debug)]
    pub struct GatewayKeys {
        /// The name or address at which it listens, and which its principal has.
        host: String, "httpfs.http.hostname" = "0.0.0.0" as TEXT;
        /// The port at which it listens.
        port: u16, "httpfs.http.port" = "14000" as PORT;
        /// Whether it serves HTTPS.
        by_tls: bool, "httpfs.ssl.enabled" = "false" as BOOLEAN;
    }
    parts {}
    by_hand {
        /// What clients show; `hadoop.security.authentication` decides, which this may not contradict.
        "httpfs.authentication.type" = "" as "simple or kerberos";
        /// What the gateway shows NameNode and DataNodes, likewise.
        "httpfs.hadoop.authentication.type" = "" as "simple or kerberos";
        /// By which it shows who it is to clients; that of other pages without it.
        "httpfs.authentication.kerberos.principal" = "" as "principal";
        /// The key of that.
        "httpfs.authentication.kerberos.keytab" = "" as "file";
        /// By which it shows who it is to NameNode and DataNodes.
        "httpfs.hadoop.authentication.kerberos.principal" = "" as "principal";
        /// The key of that.
        "httpfs.hadoop.authentication.kerberos.keytab" = "" as "file";
    }
    others {}
}

/// A gateway.
pub struct Gateway {
    /// Where it listens.
    pub listen: String,
    /// What serves WebHDFS.
    pub handler: SharedHandler,
    /// What clients must show, if anything.
    pub auth: Option<HttpAuth>,
    /// Its certificate, if it is asked by TLS.
    pub tls: Option<TlsFiles>,
}

/// Reads its keys.
pub fn read(conf: &Configuration) -> Result<Gateway> {
    let mut keys = GatewayKeys::default();
    conf.fill(GatewayKeys::KEYS, &mut keys)?;
    let GatewayKeys { host, port, by_tls } = keys;
    let listen = format!("{host}:{port}");
    let tls = by_tls.then(|| https::files(conf).with_context(|| https::lacks(TLS))).transpose()?;
    let is_kerberos = login::is_kerberos(conf)?;
    for key in [FRONT_TYPE, BEHIND_TYPE] {
        let kind = conf.get(key).unwrap_or_default();
        let asks = kind.eq_ignore_ascii_case("kerberos");
        if !kind.is_empty() && asks != is_kerberos {
            bail!("{key} is {kind}, which hadoop.security.authentication contradicts");
        }
    }
    if !is_kerberos {
        return Ok(Gateway { listen, handler: webhdfs::of_gateway(conf)?, auth: None, tls });
    }
    security::need_library()?;
    let host = security::host(Some(listen.clone()))?;
    let principal = server_principal(&security::need(conf, BEHIND.0)?, &host);
    let (_, _, realm) = security::parts(BEHIND.0, &principal)?;
    let keytab = security::need(conf, BEHIND.1)?;
    std::fs::File::open(&keytab)
        .with_context(|| format!("cannot read the keytab {keytab} ({})", BEHIND.1))?;
    let rules = login::rules(conf, &realm)?;
    let user = rules.user_of(&principal).context("hadoop.security.auth_to_local")?;
    let front = [FRONT, security::PAGES[1], security::PAGES[0]];
    let auth = security::http_auth(conf, &front, &host, rules.clone())?;
    let auth = auth.with_context(|| format!("with Kerberos a gateway needs {}", FRONT.0))?;
    let access = Access::read(&proxy_users(conf), None).map_err(anyhow::Error::msg)?;
    let guard = Guard { user, rules, access, groups: Groups::new(&groups::read(conf)?) };
    let mut own = conf.clone();
    own.set(login::KEYTAB.0, principal);
    own.set(login::KEYTAB.1, keytab);
    let handler = webhdfs::of_guarded_gateway(&own, guard)?;
    Ok(Gateway { listen, handler, auth: Some(auth), tls })
}

/// The keys of who may act for whom, by the names that they have at a NameNode.
fn proxy_users(conf: &Configuration) -> Vec<(String, String)> {
    let (own, known) = PROXY_USERS;
    let all = conf.properties().into_iter();
    all.filter_map(|(key, value)| Some((format!("{known}{}", key.strip_prefix(own)?), value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(keys: &[(&str, &str)]) -> Configuration {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:8020");
        keys.iter().for_each(|(key, value)| conf.set(key, *value));
        conf
    }

    fn refused(keys: &[(&str, &str)]) -> String {
        format!("{:#}", read(&conf(keys)).err().expect("a refusal"))
    }

    #[test]
    fn without_kerberos_nothing_is_asked() {
        let gateway = read(&conf(&[])).unwrap();
        assert!(gateway.auth.is_none() && gateway.tls.is_none());
        assert!(refused(&[(FRONT_TYPE, "kerberos")]).contains(FRONT_TYPE));
        assert!(refused(&[(TLS, "true")]).contains("cairn.https.certificate"));
        let files = [("cairn.https.certificate", "/c"), ("cairn.https.key", "/k")];
        assert!(read(&conf(&[(TLS, "true"), files[0], files[1]])).unwrap().tls.is_some());
    }

    #[test]
    fn who_acts_for_whom_at_the_namenode_does_not_at_the_gateway() {
        let keys = [("hadoop.proxyuser.a.users", "*"), ("httpfs.proxyuser.b.users", "c")];
        let own = vec![("hadoop.proxyuser.b.users".to_string(), "c".to_string())];
        assert_eq!(proxy_users(&conf(&keys)), own);
    }

    #[test]
    fn with_kerberos_both_sides_are_asked_for() {
        let keytab = tempfile::NamedTempFile::new().unwrap();
        let path = keytab.path().to_str().unwrap();
        let all = [
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.namenode.kerberos.principal", "nn/_HOST@R"),
            (BEHIND.0, "httpfs/_HOST@R"),
            (BEHIND.1, path),
            (FRONT.0, "HTTP/_HOST@R"),
            (FRONT.1, path),
        ];
        if !cairn_kerberos::IS_BUILT_IN {
            assert!(refused(&all).contains("this build has no Kerberos"));
            return;
        }
        assert!(read(&conf(&all)).unwrap().auth.is_some());
        for missing in 2..all.len() {
            let mut keys = all.to_vec();
            let (key, _) = keys.remove(missing);
            assert!(refused(&keys).contains(key), "{key}");
        }
        let open = [&all[..], &[(FRONT_TYPE, "simple")]].concat();
        assert!(refused(&open).contains(FRONT_TYPE));
        let nowhere = [&all[..], &[(BEHIND.1, "/nonexistent")]].concat();
        assert!(refused(&nowhere).contains("/nonexistent"));
    }
}
