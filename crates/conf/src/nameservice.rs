//! Where the NameNodes of a file system are: one at the address in its URI, or those of a nameservice.
//!
//! Source: Hadoop 3.5.0 `DFSUtilClient#getAddresses`, `HAUtilClient#isLogicalUri`.

use crate::{Configuration, authority};
use anyhow::{Result, bail};

const SCHEME: &str = "hdfs://";

/// The port of a NameNode's RPC where no URI names one.
const DEFAULT_PORT: &str = ":8020";

/// The key of the address of a NameNode's pages, and their port where it names none: without TLS, and with it.
const HTTP: (&str, &str) = ("dfs.namenode.http-address", "9870");
const HTTPS: (&str, &str) = ("dfs.namenode.https-address", "9871");

/// A file system's NameNodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameNodes {
    /// What its URIs have behind `hdfs://`: `host:port`, or the name of a nameservice.
    pub authority: String,
    /// `host:port` of each NameNode's RPC, in the order of `dfs.ha.namenodes`.
    pub rpc: Vec<String>,
    /// `host:port` where each NameNode serves DataNodes, in the same order: its RPC, if it has no port for them.
    pub service: Vec<String>,
    /// `host:port` of each NameNode's pages, in the same order.
    pub http: Vec<String>,
    /// Where it serves them by TLS, in the same order.
    pub https: Vec<String>,
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
                let [http, https] = [HTTP, HTTPS].map(|key| vec![pages(conf, key, "", &address)]);
                let rpc = vec![address.clone()];
                let service = rpc.clone();
                return Ok(NameNodes { authority: address, service, rpc, http, https });
            }
            ([], true) => vec![name.to_string()],
            (members, _) => members.iter().map(|member| format!("{host}.{member}")).collect(),
        };
        if name != host {
            bail!("{uri} names a port, and {host} is a nameservice, which has none");
        }
        let mut namenodes = NameNodes {
            authority: name.to_string(),
            rpc: vec![],
            service: vec![],
            http: vec![],
            https: vec![],
        };
        for suffix in &suffixes {
            // A member that is nowhere is left out, as by Hadoop.
            let Some(rpc) = conf.get(&format!("dfs.namenode.rpc-address.{suffix}")) else {
                continue;
            };
            let rpc = address_of(&rpc)?;
            let service = match conf.get(&format!("dfs.namenode.servicerpc-address.{suffix}")) {
                Some(service) => address_of(&service)?,
                None => rpc.clone(),
            };
            namenodes.service.push(service);
            namenodes.http.push(pages(conf, HTTP, suffix, &rpc));
            namenodes.https.push(pages(conf, HTTPS, suffix, &rpc));
            namenodes.rpc.push(rpc);
        }
        if namenodes.rpc.is_empty() {
            bail!("dfs.namenode.rpc-address.{} is not set: where is {name}?", suffixes[0]);
        }
        Ok(namenodes)
    }

    /// Those to which the DataNodes of this configuration report; `None` if it names none.
    ///
    /// Source: Hadoop 3.5.0 `DFSUtil#getNNServiceRpcAddressesForCluster`. Deviation: a DataNode reports to one
    /// nameservice, that of `fs.defaultFS` where several are named.
    pub fn of_datanodes(conf: &Configuration) -> Result<Option<NameNodes>> {
        let internal = conf.list("dfs.internal.nameservices");
        let default = conf.default_fs().filter(|uri| uri.starts_with(SCHEME));
        let named =
            if internal.is_empty() { conf.list("dfs.nameservices") } else { internal.clone() };
        let uri = match (default, &named[..]) {
            (Some(uri), _) if internal.is_empty() => uri,
            (None, []) => return Ok(None),
            (_, [only]) => format!("{SCHEME}{only}"),
            (Some(uri), _) if named.iter().any(|name| uri == format!("{SCHEME}{name}")) => uri,
            _ => bail!(
                "a DataNode of Cairn reports to one nameservice, and there are {}: dfs.internal.nameservices names \
                 the one that is meant",
                named.join(", ")
            ),
        };
        NameNodes::of(conf, &uri).map(Some)
    }

    /// The only one, for `who` can do with no more.
    pub fn only(mut self, who: &str) -> Result<String> {
        match (self.rpc.pop(), self.rpc.is_empty()) {
            (Some(rpc), true) => Ok(rpc),
            _ => bail!("{who} one NameNode, and the nameservice {} has more", self.authority),
        }
    }
}

/// `host:port` of what a key of an address says.
fn address_of(text: &str) -> Result<String> {
    authority(&format!("{SCHEME}{}", text.trim_start_matches(SCHEME)))
}

/// Where a NameNode serves pages: what `key` says, for the member `suffix` alone if it says that, with the host of its
/// RPC in place of one that stands for all, or that host with Hadoop's port.
///
/// Source: Hadoop 3.5.0 `DFSUtil#getInfoServer`.
fn pages(conf: &Configuration, (key, port): (&str, &str), suffix: &str, rpc: &str) -> String {
    let host = rpc.rsplit_once(':').map_or(rpc, |(host, _)| host);
    let own = conf.get(&format!("{key}.{suffix}"));
    let value = own.or_else(|| conf.get(key)).unwrap_or_default();
    let (named, port) = value.rsplit_once(':').unwrap_or((&value, port));
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
        assert_eq!(of(&[(HTTP.0, "0.0.0.0:50070")]).http, ["nn:50070"]);
        assert_eq!(of(&[(HTTP.0, "web:80")]).http, ["web:80"]);
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
        assert_eq!(found.service, found.rpc);
        let refused = found.only("Cairn has").unwrap_err().to_string();
        assert_eq!(refused, "Cairn has one NameNode, and the nameservice ns has more");
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
        let found = of(&[second, (HTTP.0, "0.0.0.0:50070")]).unwrap();
        assert_eq!((found.rpc, found.http), (vec!["b:9000".into()], vec!["b:50070".into()]));
    }

    #[test]
    fn datanodes_report_to_one_nameservice() {
        let of = |keys: &[(&str, &str)]| {
            let members = [
                ("dfs.ha.namenodes.ns", "nn1,nn2"),
                ("dfs.namenode.rpc-address.ns.nn1", "a:9000"),
                ("dfs.namenode.rpc-address.ns.nn2", "b:9000"),
                ("dfs.namenode.servicerpc-address.ns.nn2", "b:9001"),
            ];
            let found = NameNodes::of_datanodes(&conf(&[&members, keys].concat()));
            found.map(|found| found.map(|found| found.service.join(" "))).map_err(|e| e.to_string())
        };
        let (both, default) = (Ok(Some("a:9000 b:9001".to_string())), "fs.defaultFS");
        let plain = Ok(Some("h:8020".to_string()));
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("dfs.nameservices", "ns")]), both);
        assert_eq!(of(&[(default, "hdfs://ns"), ("dfs.nameservices", "ns,far")]), both);
        assert_eq!(of(&[(default, "hdfs://h"), ("dfs.nameservices", "ns")]), plain);
        assert_eq!(of(&[(default, "hdfs://h"), ("dfs.internal.nameservices", "ns")]), both);
        let several = of(&[("dfs.nameservices", "ns,far")]).unwrap_err();
        assert!(several.contains("one nameservice, and there are ns, far"), "{several}");
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
