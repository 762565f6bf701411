//! What the keys of Kerberos make of the roles. A half of it is refused: who thinks that nobody comes in would be wrong.

use super::Configuration;
use crate::config::NameNodes;
use anyhow::{Context, Result, bail};
use cairn_conf::login;
use cairn_datanode::DataNodeConfig;
use cairn_datanode::security as datanode;
use cairn_kerberos::{Store, Ticket};
use cairn_keys::{BOOLEAN, Kind, MILLIS, OPTIONAL_TEXT, SECONDS, keys};
use cairn_namenode::NameNodeConfig;
use cairn_namenode::block_tokens::BlockTokenConfig;
use cairn_namenode::config::quorum::{MemberConfig, QuorumConfig};
use cairn_namenode::security::{MemberSecurity, SecurityConfig};
use cairn_net::http::HttpAuth;
use cairn_net::rpc_client::SharedCredentials;
use cairn_security::block_token::Form;
use cairn_security::gssapi::Acceptor;
use cairn_security::kerberos_name::server_principal;
use cairn_security::server::Offers;
use cairn_security::transfer::TransferPolicy;
use cairn_security::{KerberosName, NameRules, Protection};
use std::ffi::OsString;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const TOKENS: &str = "dfs.block.access.token.enable";
const ENCRYPT: &str = "dfs.encrypt.data.transfer";
const PROTECTION: &str = "dfs.data.transfer.protection";
const AUTHENTICATION: &str = "hadoop.security.authentication";
const NAMENODE: KeyPair = ("dfs.namenode.kerberos.principal", "dfs.namenode.keytab.file");
const DATANODE: KeyPair = ("dfs.datanode.kerberos.principal", "dfs.datanode.keytab.file");
/// Says that it is known that DataNodes ask nobody who he is.
const OPEN_DATANODES: &str = "cairn.security.open-datanodes";
/// What the Kerberos library reads.
const LIBRARY: [&str; 2] = ["KRB5_KTNAME", "KRB5_CLIENT_KTNAME"];
/// Where it keeps tickets that it gets with a keytab.
const CACHE: (&str, &str) = ("KRB5CCNAME", "MEMORY:cairn");

/// Minutes, as a number alone.
const MINUTES: Kind<Duration> = Kind::new("minutes", |text| match text.parse::<u64>()? {
    0 => Err("it takes minutes".into()),
    count => Ok(Duration::from_secs(count.saturating_mul(60))),
});

const CIPHER_BITS: Kind<usize> = Kind::new("128, 192 or 256", |text| match text.parse()? {
    bits @ (128 | 192 | 256) => Ok(bits),
    _ => Err("it takes 128, 192 or 256".into()),
});

keys! {
    /// What is said of who may come in, and of what is around data.
    #[derive(Clone, Debug)]
    pub struct SecurityKeys {
        /// Whether DataNodes ask for the NameNode's tokens.
        has_block_tokens: bool, "dfs.block.access.token.enable" = "false" as BOOLEAN;
        /// Whether these tokens are written as messages of protobuf.
        is_protobuf: bool, "dfs.block.access.token.protobuf.enable" = "false" as BOOLEAN;
        /// How long a key makes them.
        key_interval: Duration, "dfs.block.access.key.update.interval" = "600" as MINUTES;
        /// How long they are good.
        token_lifetime: Duration, "dfs.block.access.token.lifetime" = "600" as MINUTES;
        /// Whether all data are encrypted between clients and DataNodes, with the keys of block tokens.
        encrypts: bool, "dfs.encrypt.data.transfer" = "false" as BOOLEAN;
        /// Bits of the cipher's key.
        cipher_bits: usize, "dfs.encrypt.data.transfer.cipher.key.bitlength" = "128" as CIPHER_BITS;
        /// Whether servers start with Kerberos although something stays open.
        may_be_open: bool, "cairn.security.open-datanodes" = "false" as BOOLEAN;
        /// How long a delegation token can be renewed.
        delegation_life: Duration, "dfs.namenode.delegation.token.max-lifetime" = "7d" as MILLIS;
        /// How long it is good after it was renewed.
        delegation_renewal: Duration, "dfs.namenode.delegation.token.renew-interval" = "1d" as MILLIS;
        /// How long a key makes delegation tokens.
        delegation_key_interval: Duration, "dfs.namenode.delegation.key.update-interval" = "1d" as MILLIS;
        /// How long a cookie of pages is good.
        cookie_validity: Duration, "hadoop.http.authentication.token.validity" = "36000" as SECONDS;
        /// Of which domain such cookies are.
        cookie_domain: Option<String>, "hadoop.http.authentication.cookie.domain" = "" as OPTIONAL_TEXT;
    }
    parts {}
    by_hand {
        /// Whether users show who they are, with Kerberos.
        "hadoop.security.authentication" = "simple" as "simple or kerberos";
        /// Rules that turn principals into users.
        "hadoop.security.auth_to_local" = "DEFAULT" as "rules";
        /// As whose these rules are read.
        "hadoop.security.auth_to_local.mechanism" = "hadoop" as "hadoop or mit";
        /// What is around calls, of which client and server take the first that both have.
        "hadoop.rpc.protection" = "authentication" as "authentication, integrity or privacy, with commas";
        /// What is around data between clients and DataNodes, likewise; with Kerberos only.
        "dfs.data.transfer.protection" = "" as "authentication, integrity or privacy, with commas";
        /// The cipher of data, which is this one.
        "dfs.encrypt.data.transfer.cipher.suites" = "AES/CTR/NoPadding" as "text";
        /// The principal of the NameNode.
        "dfs.namenode.kerberos.principal" = "" as "SERVICE/_HOST@REALM";
        /// Its keytab.
        "dfs.namenode.keytab.file" = "" as "file";
        /// The principal of DataNodes.
        "dfs.datanode.kerberos.principal" = "" as "SERVICE/_HOST@REALM";
        /// Their keytab.
        "dfs.datanode.keytab.file" = "" as "file";
        /// The principal of pages and WebHDFS.
        "dfs.web.authentication.kerberos.principal" = "" as "HTTP/_HOST@REALM";
        /// Its keytab.
        "dfs.web.authentication.kerberos.keytab" = "" as "file";
        /// The same as `dfs.web.authentication.kerberos.principal`, which goes before it.
        "hadoop.http.authentication.kerberos.principal" = "" as "HTTP/_HOST@REALM";
        /// Its keytab.
        "hadoop.http.authentication.kerberos.keytab" = "" as "file";
        /// Whether pages with figures alone ask who looks; with Kerberos they do without this.
        "hadoop.http.authentication.type" = "" as "simple or kerberos";
        /// A file with what proves cookies; random, and of each process alone, without it.
        "hadoop.http.authentication.signature.secret.file" = "" as "file";
    }
    others {}
}

fn keys(conf: &Configuration) -> Result<SecurityKeys> {
    let mut keys = SecurityKeys::default();
    conf.fill(SecurityKeys::KEYS, &mut keys)?;
    Ok(keys)
}

/// Whether users are to show who they are.
fn is_on(conf: &Configuration) -> bool {
    conf.get(AUTHENTICATION).is_some_and(|value| value.trim().eq_ignore_ascii_case("kerberos"))
}

/// The key of a principal, and that of its keytab.
pub(super) type KeyPair = (&'static str, &'static str);

/// A key that must be set.
pub(super) fn need(conf: &Configuration, key: &str) -> Result<String> {
    let value = conf.get(key).map(|value| value.trim().to_string());
    let value = value.filter(|value| !value.is_empty());
    value.with_context(|| format!("{AUTHENTICATION} is kerberos, and {key} is not set"))
}

/// What block tokens are like, if there are any. DataNodes are told by their NameNode.
///
/// Source: Hadoop 3.5.0 `BlockManager#createBlockTokenSecretManager`.
pub fn block_tokens(conf: &Configuration) -> Result<Option<BlockTokenConfig>> {
    let keys = keys(conf)?;
    let form = if keys.is_protobuf { Form::Protobuf } else { Form::Legacy };
    let (key_interval, lifetime) = (keys.key_interval, keys.token_lifetime);
    Ok(keys.has_block_tokens.then_some(BlockTokenConfig { key_interval, lifetime, form }))
}

/// What is around data, if anything.
///
/// Source: Hadoop 3.5.0 `SaslDataTransferServer#receive`, which takes no notice of `dfs.data.transfer.protection` without
/// Kerberos. Deviation: that is refused here.
fn data_transfer(conf: &Configuration) -> Result<Option<TransferPolicy>> {
    let keys = keys(conf)?;
    let policy = |protections, by_key| TransferPolicy {
        protections,
        by_key,
        has_aes: true,
        key_len: keys.cipher_bits / 8,
    };
    if keys.encrypts {
        return Ok(Some(policy(vec![Protection::Privacy], true)));
    }
    let protections = conf.get(PROTECTION).unwrap_or_default();
    if protections.trim().is_empty() {
        return Ok(None);
    }
    let protections = Protection::list(&protections).context(PROTECTION)?;
    if !is_on(conf) {
        bail!(
            "{PROTECTION} is set, and {AUTHENTICATION} is not kerberos: nothing would be protected"
        );
    }
    Ok(Some(policy(protections, false)))
}

/// What of it a NameNode needs to know: whether all data are encrypted.
pub fn encrypts_data(conf: &Configuration, has_tokens: bool) -> Result<bool> {
    let encrypts = data_transfer(conf)?.is_some_and(|policy| policy.by_key);
    if encrypts && !has_tokens {
        bail!(
            "{ENCRYPT} is true, and {TOKENS} is not: the keys of block tokens are what data are encrypted with"
        );
    }
    Ok(encrypts)
}

/// Fails in a build that has no Kerberos.
pub(super) fn need_library() -> Result<()> {
    match cairn_kerberos::IS_BUILT_IN {
        true => Ok(()),
        false => {
            let how = "build it with `--features kerberos`";
            bail!("{AUTHENTICATION} is kerberos: this build has no Kerberos; {how}")
        }
    }
}

/// What both roles need.
fn common(
    conf: &Configuration,
    (principal, keytab): (&str, &str),
    missing: Option<&str>,
) -> Result<(Vec<Protection>, bool)> {
    need_library()?;
    for key in [principal, keytab, NAMENODE.0, DATANODE.0] {
        need(conf, key)?;
    }
    let open = keys(conf)?.may_be_open;
    if let Some(missing) = missing.filter(|_| !open) {
        bail!(
            "{AUTHENTICATION} is kerberos, and {missing}: {OPEN_DATANODES}=true starts all the same"
        );
    }
    let protections = conf.get("hadoop.rpc.protection").unwrap_or_default();
    let protections = Protection::list(&protections).context("hadoop.rpc.protection")?;
    Ok((protections, open))
}

/// The parts of a server's principal.
pub(super) fn parts(key: &str, principal: &str) -> Result<(String, String, String)> {
    let name = KerberosName::parse(principal).with_context(|| key.to_string())?;
    match (name.host, name.realm) {
        (Some(host), Some(realm)) => Ok((name.service, host, realm)),
        _ => bail!("{key} is {principal}: it takes SERVICE/HOST@REALM"),
    }
}

/// The host that a server's principal names: the one of its address, or this machine's.
pub(super) fn host(address: Option<String>) -> Result<String> {
    let named = address.as_deref().and_then(|address| Some(address.rsplit_once(':')?.0));
    if let Some(host) = named.filter(|host| host.parse::<IpAddr>().is_err() && !host.is_empty()) {
        return Ok(host.to_string());
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    Ok(name.context("cannot read this machine's name")?.trim().to_string())
}

/// Reads what a NameNode needs, if users are to show who they are.
pub fn of_namenode(conf: &Configuration, c: &mut NameNodeConfig) -> Result<()> {
    if !is_on(conf) {
        return web_is_open(conf);
    }
    let has_tokens = c.block_tokens.is_some();
    let open = "whoever reaches a DataNode could read everything, as dfs.block.access.token.enable is not true";
    let (protections, _) = common(conf, NAMENODE, (!has_tokens).then_some(open))?;
    let address = match (&c.quorum, conf.get("dfs.namenode.rpc-address")) {
        (Some(quorum), _) => Some(quorum.members[&quorum.id].rpc.clone()),
        (None, Some(address)) => Some(address),
        (None, None) => match conf.default_fs().filter(|uri| uri.starts_with("hdfs://")) {
            Some(uri) => Some(NameNodes::of(conf, &uri)?.only("Cairn has")?),
            None => None,
        },
    };
    let principal = server_principal(&need(conf, NAMENODE.0)?, &host(address)?);
    let (service, host, realm) = parts(NAMENODE.0, &principal)?;
    let rules = login::rules(conf, &realm)?;
    let (http_host, http_rules) = (host.clone(), rules.clone());
    if let Some(ranger) = &mut c.ranger {
        let ticket = Ticket {
            principal: Some(principal.clone()),
            store: Store::default(),
            server: format!("HTTP/_HOST@{realm}"),
            protections: protections.clone(),
            allows_simple: false,
        };
        ranger.credentials = Some(SharedCredentials(Arc::new(ticket)));
    }
    // As in Hadoop, whoever the NameNode is may do everything.
    let superuser = rules.user_of(&principal).context("hadoop.security.auth_to_local")?;
    c.superuser.get_or_insert(superuser);
    let datanode_principal = need(conf, DATANODE.0)?;
    KerberosName::parse(&datanode_principal).context(DATANODE.0)?;
    let members = match &c.quorum {
        Some(quorum) => Some(members(conf, quorum, &principal, &protections)?),
        None => None,
    };
    let acceptor =
        Acceptor(Arc::new(move || cairn_kerberos::accept(&principal, &Store::default())));
    let keys = keys(conf)?;
    let offers = Offers::Secure { service, host, protections };
    c.security = Some(SecurityConfig {
        offers,
        rules,
        datanode_principal,
        token_life: keys.delegation_life,
        token_renewal: keys.delegation_renewal,
        token_key_interval: keys.delegation_key_interval,
        acceptor,
        members,
    });
    c.http_auth = http_auth(conf, &PAGES, &http_host, http_rules)?;
    if c.http_auth.is_none() {
        if c.http_addr.take().is_some() | c.https.take().is_some() {
            tracing::warn!("{NO_WEB}");
        }
        c.web = None;
    }
    Ok(())
}

/// How the members of a quorum show each other who they are, of whom this one has the principal `own`. What they send each
/// other has what proves tokens, so it is not to be readable.
fn members(
    conf: &Configuration,
    quorum: &QuorumConfig,
    own: &str,
    protections: &[Protection],
) -> Result<MemberSecurity> {
    if quorum.tls.is_none() {
        bail!(
            "{AUTHENTICATION} is kerberos, and cairn.quorum.tls is not true: whoever reads what NameNodes send each other \
             would have what proves tokens"
        );
    }
    let named = need(conf, NAMENODE.0)?;
    let host = |rpc: &str| rpc.rsplit_once(':').map_or(rpc, |(host, _)| host).to_string();
    let at = |member: &MemberConfig| principal_at(&named, &host(&member.rpc));
    let principals = quorum.members.values().map(at).collect();
    let (own, protections) = (own.to_string(), protections.to_vec());
    let shows = move |host: &str| {
        let ticket = Ticket {
            principal: Some(own.clone()),
            store: Store::default(),
            server: principal_at(&named, host),
            protections: protections.clone(),
            allows_simple: false,
        };
        SharedCredentials(Arc::new(ticket))
    };
    Ok(MemberSecurity { principals, shows: Arc::new(shows) })
}

/// The principal of the NameNode at a host; where that is an address, which no principal names, that of any host.
fn principal_at(named: &str, host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(_) => named.to_string(),
        Err(_) => server_principal(named, host),
    }
}

/// Reads what a DataNode needs, likewise.
pub fn of_datanode(conf: &Configuration, c: &mut DataNodeConfig) -> Result<()> {
    c.data_transfer = data_transfer(conf)?;
    if !is_on(conf) {
        return web_is_open(conf);
    }
    let plain = "what clients send and read would be open on the network, as neither dfs.data.transfer.protection nor \
                 dfs.encrypt.data.transfer is set";
    let (protections, may_be_open) =
        common(conf, DATANODE, c.data_transfer.is_none().then_some(plain))?;
    let host = match conf.get("dfs.datanode.hostname") {
        Some(host) => host,
        None => host(None)?,
    };
    let datanode_principal = need(conf, DATANODE.0)?;
    let principal = server_principal(&datanode_principal, &host);
    let (service, host, realm) = parts(DATANODE.0, &principal)?;
    let http_host = host.clone();
    let ticket = |server: String| {
        let (principal, protections) = (Some(principal.clone()), protections.clone());
        let store = Store::default();
        let ticket = Ticket { principal, store, server, protections, allows_simple: false };
        SharedCredentials(Arc::new(ticket))
    };
    c.credentials = Some(ticket(need(conf, NAMENODE.0)?));
    let rules = login::rules(conf, &realm)?;
    let http_rules = rules.clone();
    // As in Hadoop, whoever the DataNode is may administer it.
    if let Ok(user) = rules.user_of(&principal) {
        c.user = user;
    }
    let peers = ticket(datanode_principal.clone());
    let offers = Offers::Secure { service, host, protections: protections.clone() };
    let acceptor =
        Acceptor(Arc::new(move || cairn_kerberos::accept(&principal, &Store::default())));
    c.security = Some(datanode::SecurityConfig {
        offers,
        rules,
        datanode_principal,
        peers,
        acceptor,
        may_be_open,
    });
    c.http_auth = http_auth(conf, &PAGES, &http_host, http_rules)?;
    if c.http_auth.is_none() {
        if c.http_addr.take().is_some() | c.https.take().is_some() {
            tracing::warn!("{NO_WEB}");
        }
        c.web = None;
    }
    Ok(())
}

/// By which pages show who they are.
pub(super) const PAGES: [KeyPair; 2] = [
    ("dfs.web.authentication.kerberos.principal", "dfs.web.authentication.kerberos.keytab"),
    ("hadoop.http.authentication.kerberos.principal", "hadoop.http.authentication.kerberos.keytab"),
];
const WEB_TYPE: &str = "hadoop.http.authentication.type";
const NO_WEB: &str = "with Kerberos there are no pages and no WebHDFS, as dfs.web.authentication.kerberos.principal and \
                      .keytab are not set";
/// Bytes of the longest secret of cookies that is read.
const SECRET_MAX: u64 = 64 << 10;

/// Fails where pages would ask nobody, and are to.
fn web_is_open(conf: &Configuration) -> Result<()> {
    let kind = conf.get(WEB_TYPE).unwrap_or_default();
    match kind.eq_ignore_ascii_case("simple") || kind.is_empty() {
        true => Ok(()),
        false => {
            bail!("{WEB_TYPE} is {kind}, and {AUTHENTICATION} is not kerberos: pages ask nobody")
        }
    }
}

/// How clients by HTTP show who they are, with Kerberos; `None` where no key for that is named.
///
/// Source: Hadoop 3.5.0 `AuthFilterInitializer`, `AuthenticationFilter`.
pub(super) fn http_auth(
    conf: &Configuration,
    by: &[KeyPair],
    host: &str,
    rules: NameRules,
) -> Result<Option<HttpAuth>> {
    let opens_numbers = match conf.get(WEB_TYPE).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "kerberos" => false,
        "simple" => true,
        other => bail!("{WEB_TYPE} is {other}: it takes simple or kerberos"),
    };
    let Some((key, keytab)) = by.iter().find(|(key, _)| conf.get(key).is_some()) else {
        return Ok(None);
    };
    let principal = server_principal(&need(conf, key)?, host);
    let (service, ..) = parts(key, &principal)?;
    if service != "HTTP" {
        bail!("{key} is {principal}: clients ask for a ticket for HTTP/HOST@REALM");
    }
    let path = need(conf, keytab)?;
    std::fs::File::open(&path)
        .with_context(|| format!("cannot read the keytab {path} ({keytab})"))?;
    let store = Store { keytab: Some(path), ..Store::default() };
    let acceptor = Acceptor(Arc::new(move || cairn_kerberos::accept(&principal, &store)));
    let SecurityKeys { cookie_validity: validity, cookie_domain: domain, .. } = keys(conf)?;
    let secret = cookie_secret(conf)?;
    Ok(Some(HttpAuth { acceptor, rules, secret, validity, domain, opens_numbers }))
}

/// What proves cookies: of a file, or random and of this process alone.
fn cookie_secret(conf: &Configuration) -> Result<Vec<u8>> {
    const FILE: &str = "hadoop.http.authentication.signature.secret.file";
    let mut secret = Vec::new();
    match conf.get(FILE) {
        Some(path) => {
            let read = std::fs::File::open(&path)
                .and_then(|file| file.take(SECRET_MAX).read_to_end(&mut secret));
            read.with_context(|| format!("cannot read {path} ({FILE})"))?;
            if secret.is_empty() {
                bail!("{path} is empty ({FILE}): whoever knows that could make cookies");
            }
        }
        None => {
            secret.resize(32, 0);
            getrandom::fill(&mut secret)
                .map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
        }
    }
    Ok(secret)
}

/// A role that has a keytab.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    NameNode,
    DataNode,
}

/// Has the Kerberos library use a role's keytab. The library looks into the environment, which a process cannot change
/// safely once it has threads: so it begins anew, as the same process.
pub fn use_keytab(conf: &Configuration, role: Role) -> Result<()> {
    if !is_on(conf) || !cairn_kerberos::IS_BUILT_IN {
        return Ok(());
    }
    let (_, key) = match role {
        Role::NameNode => NAMENODE,
        Role::DataNode => DATANODE,
    };
    let keytab: PathBuf = need(conf, key)?.into();
    std::fs::File::open(&keytab)
        .with_context(|| format!("cannot read the keytab {} ({key})", keytab.display()))?;
    let wanted = OsString::from(&keytab);
    if LIBRARY.iter().all(|name| std::env::var_os(name).as_ref() == Some(&wanted)) {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe().context("cannot find this program")?);
    again.args(std::env::args_os().skip(1)).env(CACHE.0, CACHE.1);
    for name in LIBRARY {
        again.env(name, &wanted);
    }
    Err(again.exec()).context("cannot begin anew with a keytab")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{datanode, namenode};

    fn secure() -> Configuration {
        let mut conf = Configuration::default();
        for (key, value) in [
            (AUTHENTICATION, "Kerberos"),
            ("dfs.namenode.rpc-address", "localhost:0"),
            (NAMENODE.0, "nn/_HOST@EXAMPLE.COM"),
            (NAMENODE.1, "/etc/nn.keytab"),
            (DATANODE.0, "dn/_HOST@EXAMPLE.COM"),
            (DATANODE.1, "/etc/dn.keytab"),
            (OPEN_DATANODES, "true"),
            ("hadoop.rpc.protection", "privacy"),
            ("dfs.http.policy", "HTTP_AND_HTTPS"),
            ("cairn.https.certificate", "/etc/cairn.pem"),
            ("cairn.https.key", "/etc/cairn.key"),
        ] {
            conf.set(key, value);
        }
        conf
    }

    fn refused(conf: &Configuration) -> [String; 2] {
        [
            format!("{:#}", namenode::read(conf).expect_err("a refusal")),
            format!("{:#}", datanode::read(conf).expect_err("a refusal")),
        ]
    }

    #[test]
    fn a_build_without_kerberos_says_so() {
        if !cairn_kerberos::IS_BUILT_IN {
            for told in refused(&secure()) {
                assert!(told.contains("this build has no Kerberos"), "{told}");
            }
        }
    }

    #[test]
    fn protection_that_would_protect_nothing_is_refused() {
        let with = |keys: &[(&str, &str)]| {
            let mut conf = Configuration::default();
            for (key, value) in keys.iter().copied() {
                conf.set(key, value);
            }
            conf
        };
        let conf = with(&[(PROTECTION, "privacy")]);
        for told in refused(&conf) {
            assert!(told.starts_with(PROTECTION), "{told}");
        }
        let encrypts = with(&[(ENCRYPT, "true")]);
        let told = format!("{:#}", namenode::read(&encrypts).expect_err("a refusal"));
        assert!(told.contains(ENCRYPT) && told.contains(TOKENS), "{told}");
        let encrypts = with(&[(ENCRYPT, "true"), (TOKENS, "true")]);
        let c = namenode::read(&encrypts).unwrap();
        assert!(c.encrypts_data && c.block_tokens.is_some());
        let policy = datanode::read(&encrypts).unwrap().data_transfer.unwrap();
        assert_eq!((policy.by_key, policy.protections), (true, vec![Protection::Privacy]));
        let none = datanode::read(&Configuration::default()).unwrap();
        assert!(none.data_transfer.is_none() && none.security.is_none());
    }

    #[test]
    fn whole_security_needs_no_word_about_open_datanodes() {
        if !cairn_kerberos::IS_BUILT_IN {
            return;
        }
        let mut conf = secure();
        conf.set(OPEN_DATANODES, "false");
        conf.set(TOKENS, "true");
        assert!(namenode::read(&conf).is_ok());
        let told = format!("{:#}", datanode::read(&conf).expect_err("a refusal"));
        assert!(told.contains(PROTECTION) && told.contains(OPEN_DATANODES), "{told}");
        conf.set(PROTECTION, "integrity,privacy");
        let c = datanode::read(&conf).unwrap();
        let policy = c.data_transfer.unwrap();
        let protections = vec![Protection::Integrity, Protection::Privacy];
        assert_eq!((policy.by_key, policy.protections), (false, protections));
        assert!(!c.security.unwrap().may_be_open);
        assert_eq!(c.user, "dn");
    }

    #[test]
    fn pages_that_would_ask_nobody_are_refused_where_they_are_to() {
        let mut conf = Configuration::default();
        conf.set(WEB_TYPE, "simple");
        assert!(namenode::read(&conf).is_ok() && datanode::read(&conf).is_ok());
        conf.set(WEB_TYPE, "kerberos");
        for told in refused(&conf) {
            assert!(told.contains(WEB_TYPE) && told.contains(AUTHENTICATION), "{told}");
        }
    }

    #[test]
    fn pages_ask_for_tickets_where_their_keytab_is_named() {
        if !cairn_kerberos::IS_BUILT_IN {
            return;
        }
        let keytab = tempfile::NamedTempFile::new().unwrap();
        let mut conf = secure();
        let (principal, key) = PAGES[0];
        conf.set(principal, "HTTP/_HOST@EXAMPLE.COM");
        for told in refused(&conf) {
            assert!(told.contains(key), "{told}");
        }
        conf.set(key, "/nonexistent");
        for told in refused(&conf) {
            assert!(told.contains("/nonexistent"), "{told}");
        }
        conf.set(key, keytab.path().to_str().unwrap());
        let c = namenode::read(&conf).unwrap();
        assert!(c.http_addr.is_some() && c.https.is_some() && c.web.is_some());
        assert!(!c.http_auth.unwrap().opens_numbers);
        conf.set(WEB_TYPE, "simple");
        assert!(datanode::read(&conf).unwrap().http_auth.unwrap().opens_numbers);
        conf.set(
            "hadoop.http.authentication.signature.secret.file",
            keytab.path().to_str().unwrap(),
        );
        for told in refused(&conf) {
            assert!(told.contains("is empty"), "{told}");
        }
        conf.set(principal, "nn/_HOST@EXAMPLE.COM");
        for told in refused(&conf) {
            assert!(told.contains("HTTP/HOST@REALM"), "{told}");
        }
    }

    #[test]
    fn members_of_a_quorum_know_each_other_and_speak_tls() {
        if !cairn_kerberos::IS_BUILT_IN {
            return;
        }
        let mut conf = secure();
        for (key, value) in [
            ("dfs.nameservices", "ns"),
            ("dfs.ha.namenodes.ns", "nn1,nn2,nn3"),
            ("dfs.namenode.rpc-address.ns.nn1", "localhost:8020"),
            ("dfs.namenode.rpc-address.ns.nn2", "Two.example.com:8020"),
            ("dfs.namenode.rpc-address.ns.nn3", "127.0.0.3:8020"),
            ("cairn.quorum.address.ns.nn1", "localhost:8021"),
            ("cairn.quorum.address.ns.nn2", "two.example.com:8021"),
            ("cairn.quorum.address.ns.nn3", "127.0.0.3:8021"),
            ("dfs.ha.namenode.id", "nn1"),
            ("cairn.quorum.key-file", "/etc/cairn/quorum.key"),
            ("cairn.https.authority", "/etc/cairn.ca"),
        ] {
            conf.set(key, value);
        }
        let told = format!("{:#}", namenode::read(&conf).expect_err("a refusal"));
        assert!(told.contains("cairn.quorum.tls is not true"), "{told}");
        conf.set("cairn.quorum.tls", "true");
        let security = namenode::read(&conf).unwrap().security.unwrap();
        let (service, host) = ("nn".to_string(), "localhost".to_string());
        let offers = Offers::Secure { service, host, protections: vec![Protection::Privacy] };
        assert_eq!(security.offers, offers);
        let principals =
            ["nn/localhost@EXAMPLE.COM", "nn/two.example.com@EXAMPLE.COM", "nn/_HOST@EXAMPLE.COM"];
        assert_eq!(security.members.unwrap().principals, principals);
    }

    #[test]
    fn a_half_of_security_is_refused() {
        if !cairn_kerberos::IS_BUILT_IN {
            return;
        }
        for key in [NAMENODE.0, DATANODE.0, OPEN_DATANODES] {
            let mut conf = secure();
            conf.set(key, "");
            for told in refused(&conf) {
                assert!(told.contains(key), "{told}");
            }
        }
        let c = namenode::read(&secure()).unwrap();
        assert_eq!((c.superuser.as_deref(), c.http_addr), (Some("nn"), None));
        assert!(c.https.is_none());
        let (service, host) = ("nn".to_string(), "localhost".to_string());
        let protections = vec![Protection::Privacy];
        let offers = Offers::Secure { service, host, protections };
        assert_eq!(c.security.unwrap().offers, offers);
        let c = datanode::read(&secure()).unwrap();
        assert!(c.credentials.is_some() && c.http_addr.is_none() && c.web.is_none());
        assert!(c.https.is_none());
    }
}
