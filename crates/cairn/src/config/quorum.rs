//! A NameNode's quorum from Hadoop's keys for nameservices and those of Cairn.

use super::{Configuration, https, value};
use anyhow::{Context, Result, bail};
use cairn_keys::{BOOLEAN, Kind, MILLIS, keys};
use cairn_namenode::config::quorum::{ELECTION_TIMEOUT_MIN, MemberConfig, QuorumConfig, QuorumTls};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a member listens for the others; behind it come nameservice and id.
const ADDRESS: &str = "cairn.quorum.address";
/// Whether members show each other certificates, and encrypt what they say.
const TLS: &str = "cairn.quorum.tls";

const ELECTION: Kind<Duration> = Kind::new("time, in ms", |text| match MILLIS.parse(text)? {
    time if time >= ELECTION_TIMEOUT_MIN => Ok(time),
    _ => Err(format!("it takes {} ms at least", ELECTION_TIMEOUT_MIN.as_millis()).into()),
});

keys! {
    /// What is said of a quorum of NameNodes, beside where its members are.
    #[derive(Clone, Debug)]
    pub struct QuorumKeys {
        /// The shortest time without a word of the leader after which another NameNode may stand; it is twice as long at most.
        election_timeout: Duration, "cairn.quorum.election-timeout" = "500" as ELECTION;
        /// Whether a NameNode that follows hands clients' calls to the one that leads, rather than telling them to go there.
        forwards: bool, "cairn.namenode.followers.forward" = "true" as BOOLEAN;
        /// Whether members show each other certificates, those of `cairn.https.certificate`, and encrypt what they say.
        has_tls: bool, "cairn.quorum.tls" = "false" as BOOLEAN;
    }
    parts {}
    by_hand {
        /// Names of nameservices: file systems of several NameNodes.
        "dfs.nameservices" = "" as "words with commas";
        /// Which nameservice this NameNode is of, where several have a quorum.
        "dfs.nameservice.id" = "" as "text";
        /// The ids of the NameNodes of a nameservice.
        "dfs.ha.namenodes.NAMESERVICE" = "" as "words with commas";
        /// Which of them this one is.
        "dfs.ha.namenode.id" = "" as "text";
        /// Where RPC of a NameNode listens.
        "dfs.namenode.rpc-address.NAMESERVICE.ID" = "" as "host:port";
        /// Where a NameNode listens for the other members of its quorum; there is a quorum where one has this.
        "cairn.quorum.address.NAMESERVICE.ID" = "" as "host:port";
        /// A file with the key of the quorum, which all members have and nobody else.
        "cairn.quorum.key-file" = "" as "file";
        /// Where a member keeps what it has promised, and the log that is being agreed on; `quorum` in the NameNode's folder without it.
        "cairn.quorum.dir" = "" as "folder";
    }
    others {}
}

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
    let mut keys = QuorumKeys::default();
    conf.fill(QuorumKeys::KEYS, &mut keys)?;
    let QuorumKeys { election_timeout, forwards, has_tls } = keys;
    let tls = match has_tls {
        true => {
            let (files, authority) = https::mutual(conf, TLS)?;
            Some(QuorumTls { files, authority })
        }
        false => None,
    };
    let dir = conf.get("cairn.quorum.dir");
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
