//! Where policies come from, by the keys of Ranger's plugin for HDFS, in `hdfs-site.xml`.

use super::{Configuration, https, value};
use anyhow::{Context, Result, bail};
use cairn_keys::{BOOLEAN, MILLIS, keys};
use cairn_namenode::ranger::RangerConfig;
use cairn_net::http::Place;
use std::path::PathBuf;
use std::time::Duration;

/// Who says what users may do before modes do.
pub const PROVIDER: &str = "dfs.namenode.inode.attributes.provider.class";
/// The value of it for Ranger.
pub const BY_RANGER: &str = "org.apache.ranger.authorization.hadoop.RangerHdfsAuthorizer";
const SERVICE: &str = "ranger.plugin.hdfs.service.name";
const URL: &str = "ranger.plugin.hdfs.policy.rest.url";
const CACHE: &str = "ranger.plugin.hdfs.policy.cache.dir";

keys! {
    /// How Ranger is asked.
    #[derive(Clone, Debug)]
    pub struct RangerKeys {
        /// Time between two questions for new policies.
        poll_interval: Duration, "ranger.plugin.hdfs.policy.pollIntervalMs" = "30000" as MILLIS;
        /// How long an answer may take.
        patience: Duration, "ranger.plugin.hdfs.policy.rest.client.read.timeoutMs" = "30000" as MILLIS;
        /// Whether modes and access control lists decide where no policy does.
        falls_back: bool, "xasecure.add-hadoop-authorization" = "true" as BOOLEAN;
    }
    parts {}
    by_hand {
        /// Who says what users may do before modes do: Ranger, or nobody.
        "dfs.namenode.inode.attributes.provider.class" = "" as "org.apache.ranger.authorization.hadoop.RangerHdfsAuthorizer";
        /// The service whose policies count.
        "ranger.plugin.hdfs.service.name" = "" as "text";
        /// Ranger's servers, of which the next is asked when one does not answer.
        "ranger.plugin.hdfs.policy.rest.url" = "" as "URLs with commas";
        /// Where the last good policies are kept.
        "ranger.plugin.hdfs.policy.cache.dir" = "" as "folder";
    }
    others {}
}

/// What the keys say, if Ranger is to be asked.
///
/// Source: Apache Ranger 2.4 `RangerBasePlugin`, `RangerHadoopConstants`.
pub fn read(conf: &Configuration) -> Result<Option<RangerConfig>> {
    if conf.get(PROVIDER).is_none_or(|class| class.trim() != BY_RANGER) {
        return Ok(None);
    }
    let need = |key: &str| {
        let text = conf.get(key).filter(|text| !text.is_empty());
        text.with_context(|| format!("{PROVIDER} is {BY_RANGER}, and {key} is not set"))
    };
    let urls = need(URL)?;
    let place = |url: &str| Place::of(url).with_context(|| format!("{URL}: {url} is no URL"));
    let places = value::list(&urls).map(place).collect::<Result<Vec<_>>>()?;
    if places.is_empty() {
        bail!("{URL} names no server");
    }
    let by_tls = places.iter().any(Place::is_secure);
    let mut keys = RangerKeys::default();
    conf.fill(RangerKeys::KEYS, &mut keys)?;
    let RangerKeys { poll_interval, patience, falls_back } = keys;
    Ok(Some(RangerConfig {
        places,
        service: need(SERVICE)?,
        poll_interval: poll_interval.max(Duration::from_millis(100)),
        patience,
        cache: PathBuf::from(need(CACHE)?),
        falls_back,
        trust: by_tls.then(|| https::authority(conf)).transpose()?,
        credentials: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranger_is_asked_where_its_class_is_named_and_all_that_it_takes_is_there() {
        assert!(read(&Configuration::default()).unwrap().is_none());
        let all = [
            (PROVIDER, BY_RANGER),
            (URL, "http://a:6080, https://b"),
            (SERVICE, "s"),
            (CACHE, "/c"),
            (
                "cairn.https.authority",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../net/src/tls/one.pem"),
            ),
        ];
        let with = |keys: &[(&str, &str)]| {
            let mut conf = Configuration::default();
            keys.iter().for_each(|(key, value)| conf.set(key, *value));
            read(&conf)
        };
        let config = with(&all).unwrap().unwrap();
        assert_eq!((config.places.len(), config.service.as_str()), (2, "s"));
        assert!(config.falls_back && config.trust.is_some());
        for missing in [URL, SERVICE, CACHE] {
            let keys: Vec<_> = all.into_iter().filter(|(key, _)| *key != missing).collect();
            let told = format!("{:#}", with(&keys).unwrap_err());
            assert!(told.contains(missing), "{told}");
        }
        assert!(with(&[all[0], (URL, "ftp://a"), all[2], all[3]]).is_err());
    }
}
