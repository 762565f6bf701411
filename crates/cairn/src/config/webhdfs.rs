//! Settings of WebHDFS from Hadoop's keys, and what serves it in each role.

use super::{Configuration, client};
use anyhow::{Context, Result};
use cairn_client::ClientConfig;
use cairn_conf::login::is_kerberos;
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

fn is_enabled(conf: &Configuration) -> Result<bool> {
    let mut enabled = true;
    conf.boolean("dfs.webhdfs.enabled", &mut enabled)?;
    Ok(enabled)
}

/// What serves it on a NameNode, if it is not switched off.
pub fn of_namenode(conf: &Configuration) -> Result<Option<Web>> {
    if !is_enabled(conf)? {
        return Ok(None);
    }
    let named = conf.default_fs().and_then(|uri| Some(uri.strip_prefix("hdfs://")?.to_string()));
    let mut by_address = false;
    conf.boolean(BY_ADDRESS, &mut by_address)?;
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
    if !is_enabled(conf)? {
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
    let text = |text: &str| Ok(text.to_string());
    conf.read("dfs.user.home.dir.prefix", text, &mut s.homes)?;
    conf.read("hadoop.http.staticuser.user", text, &mut s.default_user)?;
    const KIND: &str = "it takes a regular expression";
    let pattern = |text: &str| Pattern::new(text).context(KIND);
    conf.read("dfs.webhdfs.user.provider.user.pattern", pattern, &mut s.user_pattern)?;
    conf.read("dfs.webhdfs.acl.provider.permission.pattern", pattern, &mut s.acl_pattern)?;
    conf.number("dfs.replication", &mut s.replication)?;
    s.asks_proof = is_kerberos(conf)?;
    const CSRF: &str = "dfs.webhdfs.rest-csrf";
    let mut enabled = false;
    conf.boolean(&format!("{CSRF}.enabled"), &mut enabled)?;
    if enabled {
        let mut csrf = Csrf::default();
        conf.read(&format!("{CSRF}.custom-header"), text, &mut csrf.header)?;
        let words = |text: &str| {
            Ok(text.split(',').map(|word| word.trim().to_string()).collect::<Vec<_>>())
        };
        conf.read(&format!("{CSRF}.methods-to-ignore"), words, &mut csrf.ignored_methods)?;
        let patterns =
            |text: &str| text.split(',').map(|one| Regex::new(one.trim()).context(KIND)).collect();
        conf.read(&format!("{CSRF}.browser-useragents-regex"), patterns, &mut csrf.browsers)?;
        s.csrf = Some(csrf);
    }
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
        conf.set("dfs.webhdfs.enabled", "false");
        assert!(of_namenode(&conf).unwrap().is_none());
        assert!(of_datanode(&conf, "nn:1").unwrap().is_none());
    }
}
