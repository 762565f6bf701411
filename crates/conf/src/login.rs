//! Who a client is, and what shows it to servers: tokens of files, or tickets of Kerberos.
//!
//! Source: Hadoop 3.5.0 `UserGroupInformation#createLoginUser`, `SaslRpcClient`.

use crate::Configuration;
use crate::nameservice::NameNodes;
use anyhow::{Context, Result, bail};
use cairn_client::{ClientConfig, DelegationToken, SharedCredentials};
use cairn_kerberos::{Store, Ticket, TokenOrTicket};
use cairn_security::digest_md5::Secret;
use cairn_security::token::DelegationTokenId;
use cairn_security::token_file::{FILE_MAX, TokenFile};
use cairn_security::{KerberosName, NameRules, Protection, SaslError};
use std::ffi::OsString;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;

const AUTHENTICATION: &str = "hadoop.security.authentication";
const NAMENODE: &str = "dfs.namenode.kerberos.principal";
const DATANODE: &str = "dfs.datanode.kerberos.principal";
/// By which a process gets its own tickets: a principal, and its keytab.
pub const KEYTAB: (&str, &str) =
    ("cairn.client.kerberos.principal", "cairn.client.kerberos.keytab");

/// Whether users are to show who they are.
pub fn is_kerberos(conf: &Configuration) -> Result<bool> {
    match conf.get(AUTHENTICATION).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "simple" => Ok(false),
        "kerberos" => Ok(true),
        other => bail!("{AUTHENTICATION} is {other}: it takes simple or kerberos"),
    }
}

/// Which users principals of a realm stand for.
pub fn rules(conf: &Configuration, realm: &str) -> Result<NameRules> {
    const MECHANISM: &str = "hadoop.security.auth_to_local.mechanism";
    let mechanism = conf.get(MECHANISM).unwrap_or_default();
    let is_mit = match mechanism.to_ascii_lowercase().as_str() {
        "" | "hadoop" => false,
        "mit" => true,
        other => bail!("{MECHANISM} is {other}: it takes hadoop or mit"),
    };
    let rules = conf.get("hadoop.security.auth_to_local").unwrap_or_default();
    NameRules::parse(&rules, realm, is_mit).context("hadoop.security.auth_to_local")
}

/// Finds out who the client is and what it can show to the servers of a file system.
pub(crate) fn read(
    conf: &Configuration,
    found: &NameNodes,
    environment: impl Fn(&str) -> Option<OsString>,
    c: &mut ClientConfig,
) -> Result<()> {
    let is_kerberos = is_kerberos(conf)?;
    let token = token(conf, found, &environment)?;
    let protections = conf.get("hadoop.rpc.protection").unwrap_or_default();
    let protections = Protection::list(&protections).context("hadoop.rpc.protection")?;
    let mut allows_simple = false;
    conf.boolean("ipc.client.fallback-to-simple-auth-allowed", &mut allows_simple)?;
    allows_simple |= !is_kerberos;
    let (store, own) = store(conf)?;
    let credentials = |key: &str, server: Option<String>, token: Option<&DelegationToken>| {
        let ticket = match (is_kerberos, server) {
            (false, _) => Err(SaslError(format!("{AUTHENTICATION} is not kerberos"))),
            (true, None) => {
                Err(SaslError(format!("{AUTHENTICATION} is kerberos, and {key} is not set")))
            }
            (true, Some(server)) => Ok(Ticket {
                principal: own.clone(),
                store: store.clone(),
                server,
                protections: protections.clone(),
                allows_simple,
            }),
        };
        let token = token.map(|token| Secret {
            identifier: token.identifier.clone(),
            password: token.password.clone(),
        });
        let protections = protections.clone();
        let shown = TokenOrTicket { token, ticket, protections, allows_simple };
        Some(SharedCredentials(Arc::new(shown)))
    };
    if is_kerberos || token.is_some() {
        c.credentials = credentials(NAMENODE, conf.get(NAMENODE), token.as_ref());
        // Without a ticket nobody shows a token of a NameNode to a DataNode's RPC port.
        if is_kerberos {
            c.datanode_credentials = credentials(DATANODE, conf.get(DATANODE), None);
            let realm =
                conf.get(NAMENODE).and_then(|server| KerberosName::parse(&server).ok()?.realm);
            let pages = realm.map(|realm| format!("HTTP/_HOST@{realm}"));
            c.http_credentials = credentials(NAMENODE, pages, None);
        }
        if let Some(user) = user(conf, token.as_ref(), &store, own)? {
            c.user = user;
        }
    }
    if let Some(text) = conf.get("dfs.data.transfer.protection").filter(|_| is_kerberos) {
        c.data_protections = Protection::list(&text).context("dfs.data.transfer.protection")?;
    }
    let proxy = environment("HADOOP_PROXY_USER").and_then(|user| user.into_string().ok());
    if let Some(user) = proxy.filter(|user| !user.is_empty()) {
        c.real_user = Some(std::mem::replace(&mut c.user, user));
    }
    Ok(())
}

/// Where the tickets are, and whose.
fn store(conf: &Configuration) -> Result<(Store, Option<String>)> {
    let cache = conf.get("hadoop.security.kerberos.ticket.cache.path");
    match (conf.get(KEYTAB.0), conf.get(KEYTAB.1)) {
        (None, None) => Ok((Store { cache, ..Store::default() }, None)),
        (Some(principal), Some(keytab)) => {
            // In memory, for this process alone.
            let cache = cache.unwrap_or_else(|| format!("MEMORY:cairn-{principal}"));
            let store = Store { keytab: None, client_keytab: Some(keytab), cache: Some(cache) };
            Ok((store, Some(principal)))
        }
        _ => bail!("{} and {} go together, and one of them is not set", KEYTAB.0, KEYTAB.1),
    }
}

/// For whom the token or ticket speaks; `None` where that cannot be known before it is shown.
fn user(
    conf: &Configuration,
    token: Option<&DelegationToken>,
    store: &Store,
    own: Option<String>,
) -> Result<Option<String>> {
    let shown = match token {
        Some(token) => DelegationTokenId::decode(&token.identifier).ok().map(|id| id.owner),
        None => own.or_else(|| cairn_kerberos::own(store).ok()),
    };
    let Some(shown) = shown else { return Ok(None) };
    let realm_of = |name: &str| KerberosName::parse(name).ok().and_then(|name| name.realm);
    let server = conf.get(NAMENODE).and_then(|server| realm_of(&server));
    let realm = server.or_else(|| realm_of(&shown)).unwrap_or_default();
    Ok(rules(conf, &realm)?.user_of(&shown).ok())
}

/// The token of the file system, from the files that jobs are given.
fn token(
    conf: &Configuration,
    found: &NameNodes,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<DelegationToken>> {
    let files = conf.list("hadoop.token.files").into_iter().map(OsString::from);
    let given = environment("HADOOP_TOKEN_FILE_LOCATION").filter(|path| !path.is_empty());
    let mut services = vec![format!("ha-hdfs:{}", found.authority), found.authority.clone()];
    services.extend(found.rpc.iter().cloned());
    let mut has_addresses = false;
    for file in files.chain(given) {
        let tokens = read_tokens(Path::new(&file))?;
        if tokens.tokens.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut has_addresses, true) {
            // Mostly a token is known by the address of its NameNode, not by its name.
            let addresses = found.rpc.iter().filter_map(|rpc| rpc.to_socket_addrs().ok()).flatten();
            services.extend(addresses.map(|address| address.to_string()));
        }
        if let Some(token) = tokens.delegation(&services) {
            return Ok(Some(token.clone()));
        }
    }
    Ok(None)
}

/// Reads a file of tokens.
pub fn read_tokens(file: &Path) -> Result<TokenFile> {
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(file)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let bytes = read().with_context(|| format!("cannot read the tokens of {}", file.display()))?;
    if bytes.len() as u64 > FILE_MAX {
        bail!("{} is too long for a file of tokens", file.display());
    }
    TokenFile::decode(&bytes).with_context(|| format!("{} is no file of tokens", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_security::token::HDFS_DELEGATION_TOKEN;
    use cairn_security::token_file::TokenFormat;

    fn client(keys: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<ClientConfig> {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:8020");
        keys.iter().for_each(|(key, value)| conf.set(key, *value));
        let found = NameNodes::of(&conf, "hdfs://127.0.0.1:8020")?;
        let mut c = ClientConfig { user: "login".to_string(), ..ClientConfig::default() };
        let value = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        read(&conf, &found, value, &mut c)?;
        Ok(c)
    }

    #[test]
    fn a_token_of_a_file_says_who_the_client_is() {
        let dir = tempfile::tempdir().unwrap();
        let id = DelegationTokenId { owner: "ann@R".to_string(), ..DelegationTokenId::default() };
        let token = |service: &str| DelegationToken {
            identifier: id.encode(),
            password: vec![1],
            kind: HDFS_DELEGATION_TOKEN.to_string(),
            service: service.to_string(),
        };
        for (service, is_its) in [("127.0.0.1:8020", true), ("127.0.0.1:8021", false)] {
            let tokens = vec![(String::new(), token(service))];
            let file = dir.path().join("tokens");
            let bytes = TokenFile { tokens, secrets: Vec::new() }.encode(TokenFormat::Protobuf);
            std::fs::write(&file, bytes).unwrap();
            let file = file.to_str().unwrap();
            let given = client(&[], &[("HADOOP_TOKEN_FILE_LOCATION", file)]).unwrap();
            let named = client(&[("hadoop.token.files", file)], &[]).unwrap();
            for c in [given, named] {
                assert_eq!(c.credentials.is_some(), is_its);
                assert_eq!(c.user, if is_its { "ann" } else { "login" });
                assert!(c.datanode_credentials.is_none());
            }
        }
        let missing = [("HADOOP_TOKEN_FILE_LOCATION", "/nonexistent")];
        assert!(client(&[], &missing).is_err());
    }

    #[test]
    fn who_need_not_show_anything_shows_nothing() {
        let c = client(&[("dfs.data.transfer.protection", "privacy")], &[]).unwrap();
        assert!(c.credentials.is_none() && c.data_protections.is_empty());
        let c = client(&[], &[("HADOOP_PROXY_USER", "bob")]).unwrap();
        assert_eq!((c.user.as_str(), c.real_user.as_deref()), ("bob", Some("login")));
    }

    #[test]
    fn kerberos_asks_for_its_keys() {
        let on = (AUTHENTICATION, "Kerberos");
        let c = client(&[on, (NAMENODE, "nn/_HOST@R")], &[]).unwrap();
        assert!(c.credentials.is_some() && c.datanode_credentials.is_some());
        let shown = c.credentials.unwrap().0;
        assert!(!shown.allows_simple(), "who asks for no proof is not believed");
        let nameless = client(&[on], &[]).unwrap().credentials.unwrap().0;
        let told = nameless.initiate("nn", "h").err().unwrap().0;
        assert!(told.contains(NAMENODE), "{told}");
        let half = client(&[on, (KEYTAB.1, "/x")], &[]);
        assert!(format!("{:#}", half.err().unwrap()).contains(KEYTAB.0));
        assert!(client(&[(AUTHENTICATION, "token")], &[]).is_err());
        let both = [on, (KEYTAB.0, "ann@R"), (KEYTAB.1, "/x"), (NAMENODE, "nn/_HOST@R")];
        assert_eq!(client(&both, &[]).unwrap().user, "ann");
    }
}
