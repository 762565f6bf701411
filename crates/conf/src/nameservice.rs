//! Where the NameNodes of a file system are: one at the address in its URI, or those of a nameservice.
//!
//! Source: Hadoop 3.5.0 `DFSUtilClient#getAddresses`, `HAUtilClient#isLogicalUri`.

use crate::{Configuration, authority};
use anyhow::{Result, bail};

const SCHEME: &str = "hdfs://";

/// The port of a NameNode's RPC where no URI names one.
const DEFAULT_PORT: &str = ":8020";

const HTTP_ADDRESS: &str = "dfs.namenode.http-address";

/// The port of a NameNode's pages where no key names one.
const HTTP_PORT: &str = "9870";

/// A file system's NameNodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameNodes {
    /// What its URIs have behind `hdfs://`: `host:port`, or the name of a nameservice.
    pub authority: String,
    /// `host:port` of each NameNode's RPC, in the order of `dfs.ha.namenodes`.
    pub rpc: Vec<String>,
    /// `host:port` of each NameNode's pages, in the same order.
    pub http: Vec<String>,
}

impl NameNodes {
    /// Those of a URI, `hdfs://HOST:PORT` or `hdfs://NAMESERVICE`.
    ///
    /// Fails if it is neither, or the configuration tells where no NameNode of the nameservice is.
    pub fn of(conf: &Configuration, uri: &str) -> Result<NameNodes> {
        let address = authority(uri)?;
        let named = uri.trim_start_matches(SCHEME).split('/').next().unwrap_or_default();
        // Hadoop takes the usual port for none.
        let name = named.strip_suffix(DEFAULT_PORT).unwrap_or(named);
        let host = name.split(':').next().unwrap_or_default();
        let members = conf.list(&format!("dfs.ha.namenodes.{host}"));
        let is_alone = conf.get(&format!("dfs.namenode.rpc-address.{name}")).is_some();
        let suffixes: Vec<String> = match (&members[..], is_alone) {
            ([], false) => {
                let http = http(conf, HTTP_ADDRESS, &address);
                let (rpc, http) = (vec![address.clone()], vec![http]);
                return Ok(NameNodes { authority: address, rpc, http });
            }
            ([], true) => vec![name.to_string()],
            (members, _) => members.iter().map(|member| format!("{host}.{member}")).collect(),
        };
        if name != host {
            bail!("{uri} names a port, and {host} is a nameservice, which has none");
        }
        let mut namenodes = NameNodes { authority: name.to_string(), rpc: vec![], http: vec![] };
        for suffix in &suffixes {
            // A member that is nowhere is left out, as by Hadoop.
            let Some(rpc) = conf.get(&format!("dfs.namenode.rpc-address.{suffix}")) else {
                continue;
            };
            let rpc = authority(&format!("{SCHEME}{}", rpc.trim_start_matches(SCHEME)))?;
            let key = format!("{HTTP_ADDRESS}.{suffix}");
            let key = if conf.get(&key).is_some() { key.as_str() } else { HTTP_ADDRESS };
            namenodes.http.push(http(conf, key, &rpc));
            namenodes.rpc.push(rpc);
        }
        if namenodes.rpc.is_empty() {
            bail!("dfs.namenode.rpc-address.{} is not set: where is {name}?", suffixes[0]);
        }
        Ok(namenodes)
    }

    /// The only one, for `who` can do with no more.
    pub fn only(mut self, who: &str) -> Result<String> {
        match (self.rpc.pop(), self.rpc.is_empty()) {
            (Some(rpc), true) => Ok(rpc),
            _ => bail!("{who} one NameNode, and the nameservice {} has more", self.authority),
        }
    }
}

/// Where a NameNode serves HTTP: what `key` says, with the host of its RPC in place of one that stands for all, or
/// that host with Hadoop's port.
///
/// Source: Hadoop 3.5.0 `DFSUtil#getInfoServer`.
fn http(conf: &Configuration, key: &str, rpc: &str) -> String {
    let host = rpc.rsplit_once(':').map_or(rpc, |(host, _)| host);
    let value = conf.get(key).unwrap_or_default();
    let (named, port) = value.rsplit_once(':').unwrap_or((&value, HTTP_PORT));
    let host = if ["", "0.0.0.0", "[::]"].contains(&named) { host } else { named };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(keys: &[(&str, &str)]) -> Configuration {
        let mut conf = Configuration::default();
        keys.iter().for_each(|(key, value)| conf.set(key, *value));
        conf
    }

    #[test]
    fn a_host_is_its_own_namenode() {
        let of = |keys: &[(&str, &str)]| NameNodes::of(&conf(keys), "hdfs://nn/a").unwrap();
        let plain = of(&[]);
        assert_eq!(
            (plain.authority.as_str(), &plain.rpc[..]),
            ("nn:8020", &["nn:8020".to_string()][..])
        );
        assert_eq!(plain.http, ["nn:9870"]);
        assert_eq!(of(&[(HTTP_ADDRESS, "0.0.0.0:50070")]).http, ["nn:50070"]);
        assert_eq!(of(&[(HTTP_ADDRESS, "web:80")]).http, ["web:80"]);
        assert_eq!(plain.only("x").unwrap(), "nn:8020");
    }

    #[test]
    fn a_nameservice_has_the_namenodes_that_are_named() {
        let keys = [
            ("dfs.nameservices", "ns, other"),
            ("dfs.ha.namenodes.ns", "nn1, nn2"),
            ("dfs.namenode.rpc-address.ns.nn1", "a:9000"),
            ("dfs.namenode.rpc-address.ns.nn2", "b"),
            ("dfs.namenode.http-address.ns.nn2", "0.0.0.0:80"),
            ("dfs.namenode.rpc-address.other", "c:8020"),
        ];
        let conf = conf(&keys);
        let found = NameNodes::of(&conf, "hdfs://ns/a").unwrap();
        assert_eq!(found.authority, "ns");
        assert_eq!(
            (found.rpc.join(" "), found.http.join(" ")),
            ("a:9000 b:8020".into(), "a:9870 b:80".into())
        );
        let refused = found.only("a DataNode reports to").unwrap_err().to_string();
        assert_eq!(refused, "a DataNode reports to one NameNode, and the nameservice ns has more");
        let alone = NameNodes::of(&conf, "hdfs://other").unwrap();
        assert_eq!(alone.authority, "other");
        assert_eq!(alone.only("x").unwrap(), "c:8020");
        assert_eq!(NameNodes::of(&conf, "hdfs://ns:8020/a").unwrap().authority, "ns");
        let error = NameNodes::of(&conf, "hdfs://ns:9000/a").unwrap_err().to_string();
        assert!(error.ends_with("ns is a nameservice, which has none"), "{error}");
    }

    #[test]
    fn what_is_said_of_a_member_may_be_incomplete() {
        let of = |keys: &[(&str, &str)]| {
            let members = [("dfs.ha.namenodes.ns", "nn1,,nn2,")];
            NameNodes::of(&conf(&[&members, keys].concat()), "hdfs://ns")
        };
        let error = of(&[]).unwrap_err().to_string();
        assert!(error.starts_with("dfs.namenode.rpc-address.ns.nn1 is not set"), "{error}");
        let second = ("dfs.namenode.rpc-address.ns.nn2", "hdfs://b:9000");
        let found = of(&[second, (HTTP_ADDRESS, "0.0.0.0:50070")]).unwrap();
        assert_eq!((found.rpc, found.http), (vec!["b:9000".into()], vec!["b:50070".into()]));
    }

    #[test]
    fn a_host_whose_name_a_nameservice_has_is_reached_by_its_port() {
        let conf = conf(&[("dfs.namenode.rpc-address.h", "h:9000")]);
        for (uri, authority, rpc) in
            [("hdfs://h:9001/", "h:9001", "h:9001"), ("hdfs://h", "h", "h:9000")]
        {
            let found = NameNodes::of(&conf, uri).unwrap();
            assert_eq!((found.authority.as_str(), found.rpc[0].as_str()), (authority, rpc));
        }
    }
}
