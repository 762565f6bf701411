//! A NameNode's quorum from Hadoop's keys for nameservices and those of Cairn.

use super::{Configuration, https, value};
use anyhow::{Context, Result, bail};
use cairn_namenode::config::quorum::{
    ELECTION_TIMEOUT, ELECTION_TIMEOUT_MIN, MemberConfig, QuorumConfig, QuorumTls,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a member listens for the others; behind it come nameservice and id.
const ADDRESS: &str = "cairn.quorum.address";
/// Whether members show each other certificates, and encrypt what they say.
const TLS: &str = "cairn.quorum.tls";

/// The quorum that the NameNode belongs to, and its nameservice; none where no member has an address for that. What it
/// keeps is in a folder of `name_dir` unless a key says where.
pub fn read(conf: &Configuration, name_dir: &Path) -> Result<Option<(String, QuorumConfig)>> {
    let has_quorum = |service: &String| {
        let members = conf.list(&format!("dfs.ha.namenodes.{service}"));
        members.iter().any(|id| conf.get(&format!("{ADDRESS}.{service}.{id}")).is_some())
    };
    let services: Vec<String> = match conf.get("dfs.nameservice.id") {
        Some(service) => vec![service],
        None => conf.list("dfs.nameservices"),
    };
    let mut services = services.into_iter().filter(has_quorum);
    let Some(service) = services.next() else { return Ok(None) };
    if services.next().is_some() {
        bail!("several nameservices have a quorum: dfs.nameservice.id has to say which is meant");
    }
    let mut members = BTreeMap::new();
    for id in conf.list(&format!("dfs.ha.namenodes.{service}")) {
        let address = |key: &str| {
            let key = format!("{key}.{service}.{id}");
            conf.get(&key).with_context(|| format!("{key} is not set: where is {id}?"))
        };
        let (rpc, quorum) = (address("dfs.namenode.rpc-address")?, address(ADDRESS)?);
        members.insert(id, MemberConfig { rpc, quorum });
    }
    let id = conf
        .get("dfs.ha.namenode.id")
        .context("dfs.ha.namenode.id is not set: which of dfs.ha.namenodes is this NameNode?")?;
    if !members.contains_key(&id) {
        bail!("dfs.ha.namenode.id: {id} is not one of dfs.ha.namenodes.{service}");
    }
    let key_file = conf.get("cairn.quorum.key-file").context(
        "cairn.quorum.key-file is not set: members of a quorum are known to each other by a key",
    )?;
    let mut has_tls = false;
    conf.boolean(TLS, &mut has_tls)?;
    let tls = match has_tls {
        true => {
            let (files, authority) = https::mutual(conf, TLS)?;
            Some(QuorumTls { files, authority })
        }
        false => None,
    };
    let dir = conf.get("cairn.quorum.dir");
    let mut election_timeout = ELECTION_TIMEOUT;
    conf.millis("cairn.quorum.election-timeout", &mut election_timeout)?;
    if election_timeout < ELECTION_TIMEOUT_MIN {
        let least = ELECTION_TIMEOUT_MIN.as_millis();
        bail!("cairn.quorum.election-timeout is shorter than {least} ms");
    }
    let mut forwards = true;
    conf.boolean("cairn.namenode.followers.forward", &mut forwards)?;
    let quorum = QuorumConfig {
        id,
        members,
        key_file: value::folder(&key_file),
        tls,
        dir: dir.map_or_else(|| default_dir(name_dir), |dir| value::folder(&dir)),
        election_timeout,
        forwards,
    };
    Ok(Some((service, quorum)))
}

/// Where a member keeps what it has promised, unless `cairn.quorum.dir` says it.
pub fn default_dir(name_dir: &Path) -> PathBuf {
    name_dir.join("quorum")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const KEYS: [(&str, &str); 10] = [
        ("dfs.nameservices", "ns,other"),
        ("dfs.ha.namenodes.ns", "nn1,nn2"),
        ("dfs.ha.namenodes.other", "nn1,nn2"),
        ("dfs.namenode.rpc-address.ns.nn1", "127.0.0.1:8020"),
        ("dfs.namenode.rpc-address.ns.nn2", "127.0.0.2:8020"),
        ("cairn.quorum.address.ns.nn1", "127.0.0.1:8021"),
        ("cairn.quorum.address.ns.nn2", "127.0.0.2:8021"),
        ("dfs.ha.namenode.id", "nn2"),
        ("cairn.quorum.key-file", "/etc/cairn/quorum.key"),
        ("dfs.namenode.name.dir", "/data/nn"),
    ];

    fn conf(changed: &[(&str, &str)]) -> Configuration {
        let mut conf = Configuration::default();
        KEYS.iter().chain(changed).for_each(|(key, value)| conf.set(key, *value));
        conf
    }

    #[test]
    fn members_are_named_by_the_keys_of_nameservices() {
        let of = |changed: &[(&str, &str)]| read(&conf(changed), Path::new("/data/nn"));
        let (service, quorum) = of(&[]).unwrap().unwrap();
        assert_eq!((service.as_str(), quorum.id.as_str(), quorum.members.len()), ("ns", "nn2", 2));
        assert_eq!(quorum.members["nn1"].quorum, "127.0.0.1:8021");
        assert_eq!(quorum.dir, Path::new("/data/nn/quorum"));
        assert_eq!(quorum.election_timeout, Duration::from_millis(500));
        assert!(of(&[("dfs.nameservice.id", "other")]).unwrap().is_none());
        for (key, value) in [
            ("dfs.ha.namenode.id", "nn3"),
            ("dfs.ha.namenodes.ns", "nn1,nn2,nn3"),
            ("cairn.quorum.election-timeout", "99"),
            ("cairn.quorum.address.other.nn1", "127.0.0.1:1"),
        ] {
            assert!(of(&[(key, value)]).is_err(), "{key}");
        }
        assert!(read(&Configuration::default(), Path::new("/data/nn")).unwrap().is_none());
    }

    #[test]
    fn members_speak_tls_where_all_files_are_named() {
        let files = [
            ("cairn.https.certificate", "/c"),
            ("cairn.https.key", "/k"),
            ("cairn.https.authority", "/a"),
        ];
        let of = |tls: &str, files: &[(&'static str, &'static str)]| {
            let conf = conf(&[&[(TLS, tls)][..], files].concat());
            read(&conf, Path::new("/data/nn")).map(|read| read.unwrap().1.tls)
        };
        assert_eq!(of("false", &files).unwrap(), None);
        let tls = of("true", &files).unwrap().unwrap();
        assert_eq!((tls.files.key, tls.authority), ("/k".into(), "/a".into()));
        for missing in 0..3 {
            let mut left = files.to_vec();
            let (key, _) = left.remove(missing);
            assert!(of("true", &left).unwrap_err().to_string().contains(key), "{key}");
        }
    }

    #[test]
    fn a_member_serves_where_its_own_keys_say() {
        let conf = conf(&[
            ("fs.defaultFS", "hdfs://ns"),
            ("dfs.namenode.http-address.ns.nn2", "127.0.0.2:9870"),
        ]);
        let read = crate::config::namenode::read(&conf).unwrap();
        assert_eq!(read.rpc_addr, "127.0.0.2:8020".parse().unwrap());
        assert_eq!(read.http_addr, Some("127.0.0.2:9870".parse().unwrap()));
        assert_eq!(read.quorum.unwrap().id, "nn2");
    }
}
