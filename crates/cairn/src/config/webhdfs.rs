//! Settings of WebHDFS from Hadoop's keys, and what serves it in each role.

use super::{Configuration, client};
use anyhow::Result;
use cairn_client::ClientConfig;
use cairn_conf::login::is_kerberos;
use cairn_keys::{BOOLEAN, Kind, TEXT, keys};
use cairn_namenode::Web;
use cairn_net::Boxed;
use cairn_net::http::SharedHandler;
use cairn_webhdfs::{Csrf, Guard, Pattern, Redirects, Settings, Target, WebHdfs};
use regex_lite::Regex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Whether clients are sent to the addresses of DataNodes and not to their names.
pub const BY_ADDRESS: &str = "cairn.webhdfs.redirect.by-address";

/// How long a request waits for a NameNode: its client gives up after a minute.
const RETRY_FOR: Duration = Duration::from_secs(20);

const NO_REGEX: &str = "it takes a regular expression";

const PATTERN: Kind<Option<Pattern>> =
    Kind::new("regular expression", |text| match (text, Pattern::new(text)) {
        ("", _) => Ok(None),
        (_, None) => Err(NO_REGEX.into()),
        (_, pattern) => Ok(pattern),
    });

const WORDS: Kind<Vec<String>> = Kind::new("words with commas", |text| {
    Ok(text.split(',').map(|word| word.trim().to_string()).collect())
});

const PATTERNS: Kind<Vec<Regex>> = Kind::new("regular expressions with commas", |text| {
    let one = |text: &str| Regex::new(text.trim()).map_err(|_| NO_REGEX.into());
    text.split(',').map(one).collect()
});

keys! {
    /// What is said of WebHDFS, by all roles that serve it.
    #[derive(Clone, Debug)]
    pub struct WebHdfsKeys {
        /// Whether NameNode and DataNodes serve it.
        is_enabled: bool, "dfs.webhdfs.enabled" = "true" as BOOLEAN;
        /// Whether clients are sent to the addresses of DataNodes and not to their names; true in `cairn cluster`.
        by_address: bool, "cairn.webhdfs.redirect.by-address" = "false" as BOOLEAN;
        /// Who asks when a request does not say it.
        default_user: String, "hadoop.http.staticuser.user" = "dr.who" as TEXT;
        /// What users may be called; without it letters, digits, `.`, `_` and `-`, the first a letter or `_`, and a `$` at the end.
        user_pattern: Option<Pattern>, "dfs.webhdfs.user.provider.user.pattern" = "" as PATTERN;
        /// How access control lists are written; without it as `getfacl` shows them, with the names that users may have.
        acl_pattern: Option<Pattern>, "dfs.webhdfs.acl.provider.permission.pattern" = "" as PATTERN;
        /// Whether browsers must send a header that no page of another site can send.
        has_csrf: bool, "dfs.webhdfs.rest-csrf.enabled" = "false" as BOOLEAN;
    }
    parts {
        /// That header.
        "dfs.webhdfs.rest-csrf.custom-header" = "X-XSRF-HEADER" as TEXT => csrf.header;
        /// Methods of requests that need none.
        "dfs.webhdfs.rest-csrf.methods-to-ignore" = "GET,OPTIONS,HEAD,TRACE" as WORDS => csrf.ignored_methods;
        /// What browsers call themselves.
        "dfs.webhdfs.rest-csrf.browser-useragents-regex" = "^Mozilla.*,^Opera.*" as PATTERNS => csrf.browsers;
    }
    by_hand {}
    others {
        /// By which requests that browsers make for others are refused.
        csrf: Csrf = Csrf::default();
    }
}

fn keys(conf: &Configuration) -> Result<WebHdfsKeys> {
    let mut keys = WebHdfsKeys::default();
    conf.fill(WebHdfsKeys::KEYS, &mut keys)?;
    Ok(keys)
}

/// What serves it on a NameNode, if it is not switched off.
pub fn of_namenode(conf: &Configuration) -> Result<Option<Web>> {
    let WebHdfsKeys { is_enabled, by_address, .. } = keys(conf)?;
    if !is_enabled {
        return Ok(None);
    }
    let named = conf.default_fs().and_then(|uri| Some(uri.strip_prefix("hdfs://")?.to_string()));
    let settings = settings(conf, "")?;
    // Its page's transfers, by a client of this very NameNode.
    let mut own = conf.clone();
    own.set("fs.defaultFS", "hdfs://127.0.0.1:8020");
    let client = client_of(&own)?;
    Ok(Some(Web::new(move |parts| {
        let told = parts.rpc_addr.to_string();
        // Listening on all addresses, it has no other name than the one clients know.
        let all = parts.rpc_addr.ip().is_unspecified();
        let namenode = named.clone().filter(|_| all).unwrap_or(told);
        let settings = Settings { authority: namenode.clone(), ..settings.clone() };
        let choose = Arc::clone(&parts.choose);
        let choose = move |client, excluded: Vec<String>, by_tls| {
            let chosen = choose(client, excluded, by_tls);
            let target = async move {
                let chosen = chosen.await?;
                Some(Target { host_name: chosen.host_name, ip: chosen.ip, port: chosen.port })
            };
            Box::pin(target) as Boxed<'static, _>
        };
        let redirects = Redirects { choose: Arc::new(choose), namenode, by_address };
        let client = ClientConfig {
            namenode: reachable(parts.rpc_addr).to_string(),
            namenode_addresses: Vec::new(),
            ..client.clone()
        };
        let asks_proof = settings.asks_proof;
        let web = WebHdfs::of_namenode(settings, parts.service, redirects);
        // The page's transfers would need a token of who asks: they go to DataNodes.
        let web = if asks_proof { web } else { web.passing_on(client) };
        SharedHandler(Arc::new(web))
    })))
}

/// Where this machine reaches what listens there.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let here: IpAddr = match addr {
        _ if !addr.ip().is_unspecified() => addr.ip(),
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(here, addr.port())
}

/// What serves it on a DataNode of the NameNode at `name_node`, if it is not switched off.
pub fn of_datanode(conf: &Configuration, name_node: &str) -> Result<Option<SharedHandler>> {
    if !keys(conf)?.is_enabled {
        return Ok(None);
    }
    let mut conf = conf.clone();
    if !conf.default_fs().is_some_and(|uri| uri.starts_with("hdfs://")) {
        conf.set("fs.defaultFS", format!("hdfs://{name_node}"));
    }
    let client = client_of(&conf)?;
    let settings = settings(&conf, &client.namenode)?;
    Ok(Some(SharedHandler(Arc::new(WebHdfs::of_datanode(settings, client)))))
}

/// What serves it in a process of its own.
pub fn of_gateway(conf: &Configuration) -> Result<SharedHandler> {
    let client = client_of(conf)?;
    let settings = settings(conf, &client.namenode)?;
    Ok(SharedHandler(Arc::new(WebHdfs::of_gateway(settings, client))))
}

/// The same, for clients that show tickets.
pub fn of_guarded_gateway(conf: &Configuration, guard: Guard) -> Result<SharedHandler> {
    let client = client_of(conf)?;
    let settings = settings(conf, &client.namenode)?;
    Ok(SharedHandler(Arc::new(WebHdfs::of_guarded_gateway(settings, client, guard))))
}

fn client_of(conf: &Configuration) -> Result<ClientConfig> {
    let client = client::read(conf)?;
    Ok(ClientConfig { retry_for: client.retry_for.min(RETRY_FOR), ..client })
}

fn settings(conf: &Configuration, authority: &str) -> Result<Settings> {
    let mut s = Settings::new(authority);
    conf.read("dfs.user.home.dir.prefix", |text| Ok(text.to_string()), &mut s.homes)?;
    conf.number("dfs.replication", &mut s.replication)?;
    let keys = keys(conf)?;
    s.default_user = keys.default_user;
    s.user_pattern = keys.user_pattern.unwrap_or(s.user_pattern);
    s.acl_pattern = keys.acl_pattern.unwrap_or(s.acl_pattern);
    s.asks_proof = is_kerberos(conf)?;
    s.csrf = keys.has_csrf.then_some(keys.csrf);
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_reached_here() {
        for (listens, reached) in
            [("10.0.0.1:1", "10.0.0.1:1"), ("0.0.0.0:2", "127.0.0.1:2"), ("[::]:3", "[::1]:3")]
        {
            assert_eq!(reachable(listens.parse().unwrap()), reached.parse().unwrap());
        }
    }

    #[test]
    fn keys_are_hadoops() {
        let mut conf = Configuration::default();
        assert!(settings(&conf, "nn:1").unwrap().csrf.is_none());
        assert!(of_namenode(&conf).unwrap().is_some());
        assert!(of_datanode(&conf, "nn:1").unwrap().is_some());
        conf.set("dfs.webhdfs.rest-csrf.enabled", "true");
        conf.set("dfs.webhdfs.rest-csrf.custom-header", "X-Mine");
        conf.set("dfs.webhdfs.rest-csrf.methods-to-ignore", "GET, PUT");
        conf.set("dfs.webhdfs.rest-csrf.browser-useragents-regex", "^A.*,^B.*");
        conf.set("hadoop.http.staticuser.user", "web");
        conf.set("dfs.webhdfs.user.provider.user.pattern", "^[0-9]+$");
        let read = settings(&conf, "nn:1").unwrap();
        let csrf = read.csrf.unwrap();
        assert_eq!(csrf.header, "X-Mine");
        assert_eq!(csrf.ignored_methods, ["GET", "PUT"]);
        assert_eq!(csrf.browsers.len(), 2);
        assert_eq!(read.default_user, "web");
        conf.set("dfs.webhdfs.user.provider.user.pattern", "(");
        assert!(settings(&conf, "nn:1").is_err());
        conf.set("dfs.webhdfs.user.provider.user.pattern", "");
        conf.set("dfs.webhdfs.enabled", "false");
        assert!(of_namenode(&conf).unwrap().is_none());
        assert!(of_datanode(&conf, "nn:1").unwrap().is_none());
    }
}
