//! Hadoop's configuration keys, from `core-site.xml`, `hdfs-site.xml`, `hadoop-policy.xml` and `-D key=value`.
//!
//! Only this crate, and the programs and bindings that use it, know keys and their text forms; the
//! roles get typed structures ([`client`] has the client's). Later sources win, except over a `final`
//! property. A key can be set, and asked for, by a name that it had in older versions of Hadoop.

pub mod client;
mod former_names;
pub mod kms;
pub mod login;
pub mod nameservice;
pub mod trace;
pub mod xml;

pub use cairn_keys::value;

use anyhow::{Context, Result, bail};
use cairn_keys::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The files of a folder, in the order in which they are read.
const FILES: [&str; 2] = ["core-site.xml", "hdfs-site.xml"];

/// The file of the access lists of services, which stands beside them.
const POLICY_FILE: &str = "hadoop-policy.xml";

/// What the keys of these lists begin with.
const POLICY_KEYS: &str = "security.";

/// How deep `${key}` may refer to other keys, as in Hadoop's `Configuration`.
const MAX_SUBSTITUTIONS: usize = 20;

/// Keys and values as text, before any role has read them.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    values: BTreeMap<String, String>,
    finals: BTreeSet<String>,
    /// Keys that were set otherwise than by a file.
    given: BTreeSet<String>,
    folders: Vec<PathBuf>,
    /// Keys that somebody has asked for, in this or a copy of it.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Configuration {
    /// Reads `core-site.xml` and `hdfs-site.xml` of a folder (absent files are fine).
    pub fn load_folder(&mut self, folder: &Path) -> Result<()> {
        if !folder.is_dir() {
            bail!("the configuration folder {} does not exist", folder.display());
        }
        for name in FILES {
            let path = folder.join(name);
            if path.is_file() {
                self.load_file(&path)?;
            }
        }
        self.folders.push(folder.to_path_buf());
        Ok(())
    }

    fn load_file(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let properties =
            xml::parse(&text).with_context(|| format!("{} is not valid", path.display()))?;
        for property in properties {
            let name = former_names::present(&property.name);
            if self.finals.contains(name) {
                continue;
            }
            if let Some(value) = property.value {
                self.values.insert(name.to_string(), value);
            }
            if property.is_final {
                self.finals.insert(name.to_string());
            }
        }
        Ok(())
    }

    /// The keys of access lists of services (all that begin with `security.`) with their text: `hadoop-policy.xml` of
    /// the folders that were loaded goes before their other files, and what was set otherwise before that. Reads these
    /// files. Blanks at the ends of a text are kept: they separate users from groups.
    ///
    /// Source: Hadoop 3.5.0 `ServiceAuthorizationManager#refresh`.
    pub fn service_policy(&self) -> Result<Vec<(String, String)>> {
        let mut all = self.clone();
        all.finals.extend(self.given.iter().cloned());
        for path in self.folders.iter().map(|folder| folder.join(POLICY_FILE)) {
            if path.is_file() {
                all.load_file(&path)?;
            }
        }
        let keys = all.values.keys().filter(|key| key.starts_with(POLICY_KEYS));
        Ok(keys.filter_map(|key| Some((key.clone(), all.text(key)?))).collect())
    }

    /// Sets a key, whatever a file said of it.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        let key = former_names::present(key).to_string();
        self.given.insert(key.clone());
        self.values.insert(key, value.into());
    }

    /// Sets a key that nothing has set yet.
    pub fn set_default(&mut self, key: &str, value: impl Into<String>) {
        let key = former_names::present(key).to_string();
        self.values.entry(key).or_insert_with(|| value.into());
    }

    /// Takes `key=value` words as given with `-D`.
    pub fn set_words(&mut self, words: &[String]) -> Result<()> {
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                bail!("-D takes key=value, not '{word}'");
            };
            self.set(key.trim(), value);
        }
        Ok(())
    }

    /// Every key with its text, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Keys that were set and that nobody has asked for yet, by the names that they have now.
    pub fn unasked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let asked: BTreeSet<&str> = asked.iter().map(|key| former_names::present(key)).collect();
        self.values.keys().filter(|key| !asked.contains(key.as_str())).cloned().collect()
    }

    /// All of them, for who outlives this.
    pub fn properties(&self) -> Vec<(String, String)> {
        self.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    /// The value of a key with `${other}` replaced; `None` where it is absent or empty.
    pub fn get(&self, key: &str) -> Option<String> {
        let text = self.text(key)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    /// The same as it stands there, with its blanks.
    fn text(&self, key: &str) -> Option<String> {
        let value_of = |name: &str| self.values.get(former_names::present(name));
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string());
        let mut text = value_of(key)?.clone();
        for _ in 0..MAX_SUBSTITUTIONS {
            let Some(start) = text.find("${") else { break };
            let Some(len) = text[start..].find('}') else { break };
            let name = &text[start + 2..start + len];
            let Some(value) = value_of(name).cloned().or_else(|| std::env::var(name).ok()) else {
                break;
            };
            text.replace_range(start..=start + len, &value);
        }
        Some(text)
    }

    /// A comma-separated list; empty where the key is absent.
    pub fn list(&self, key: &str) -> Vec<String> {
        let text = self.get(key).unwrap_or_default();
        value::list(&text).map(str::to_string).collect()
    }

    /// Reads the keys of a table into `settings`, but for those that are read by hand; leaves what no key names.
    pub fn fill<C>(&self, keys: &[Key<C>], settings: &mut C) -> Result<()> {
        for key in keys {
            let (Some(set), Some(text)) = (key.set, self.get(key.name)) else { continue };
            set(settings, &text).with_context(|| wrong(key.name, &text))?;
        }
        Ok(())
    }

    /// Reads a key into `slot` with one of the parsers of [`value`]; leaves it where the key is absent.
    pub fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T>,
        slot: &mut T,
    ) -> Result<()> {
        if let Some(text) = self.get(key) {
            *slot = parse(&text).with_context(|| wrong(key, &text))?;
        }
        Ok(())
    }

    /// A whole number.
    pub fn number<T: std::str::FromStr>(&self, key: &str, slot: &mut T) -> Result<()>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.read(key, |text| Ok(text.parse()?), slot)
    }

    /// `true` or `false`.
    pub fn boolean(&self, key: &str, slot: &mut bool) -> Result<()> {
        self.read(key, |text| Ok(value::boolean(text)?), slot)
    }

    /// A number of bytes, with or without a binary prefix (`64k`, `128m`).
    pub fn bytes(&self, key: &str, slot: &mut u64) -> Result<()> {
        self.read(key, |text| Ok(value::bytes(text)?), slot)
    }

    /// A duration; a bare number is in milliseconds.
    pub fn millis(&self, key: &str, slot: &mut Duration) -> Result<()> {
        self.read(key, |text| Ok(value::duration(text, Duration::from_millis(1))?), slot)
    }

    /// How long to wait; a bare number is in milliseconds, and 0 is [`value::FOR_EVER`].
    pub fn patience(&self, key: &str, slot: &mut Duration) -> Result<()> {
        self.read(key, |text| Ok(value::patience(text)?), slot)
    }

    /// A duration; a bare number is in seconds.
    pub fn seconds(&self, key: &str, slot: &mut Duration) -> Result<()> {
        self.read(key, |text| Ok(value::duration(text, Duration::from_secs(1))?), slot)
    }

    /// The name of the default file system (`fs.defaultFS`), `hdfs://host:port`.
    pub fn default_fs(&self) -> Option<String> {
        self.get("fs.defaultFS")
    }
}

fn wrong(key: &str, text: &str) -> String {
    format!("the value '{text}' of {key} is wrong")
}

/// The folder of the configuration when no flag names one: `HADOOP_CONF_DIR`, where that is set.
pub fn folder_from_environment() -> Option<PathBuf> {
    std::env::var_os("HADOOP_CONF_DIR").map(PathBuf::from).filter(|folder| folder.is_dir())
}

/// The configuration of a program that names no folder, found as programs of libhdfs have it: in
/// `HADOOP_CONF_DIR`, else in the folders of `CLASSPATH`, else in `etc/hadoop` below `HADOOP_HOME`.
/// Empty where there is none. `environment` tells the value of a variable.
pub fn of_library(environment: impl Fn(&str) -> Option<OsString>) -> Result<Configuration> {
    let mut conf = Configuration::default();
    let is_folder = |folder: &PathBuf| folder.is_dir();
    if let Some(folder) = environment("HADOOP_CONF_DIR").map(PathBuf::from).filter(is_folder) {
        conf.load_folder(&folder)?;
        return Ok(conf);
    }
    // The first folder of the class path that has a file hides those behind it.
    let classpath = environment("CLASSPATH").unwrap_or_default();
    let holds = |folder: &PathBuf| FILES.iter().any(|name| folder.join(name).is_file());
    let home = environment("HADOOP_HOME").map(|home| PathBuf::from(home).join("etc/hadoop"));
    if let Some(folder) = std::env::split_paths(&classpath).find(holds).or(home.filter(holds)) {
        conf.load_folder(&folder)?;
    }
    Ok(conf)
}

/// The `host:port` of an `hdfs://` URI; port 8020 where it names none.
pub fn authority(uri: &str) -> Result<String> {
    let rest =
        uri.strip_prefix("hdfs://").with_context(|| format!("{uri} is not an hdfs:// URI"))?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        bail!("{uri} names no host");
    }
    Ok(if authority.contains(':') { authority.to_string() } else { format!("{authority}:8020") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_sources_win_except_over_final() {
        let dir = tempfile::tempdir().unwrap();
        let property = |name, value, is_final| {
            format!(
                "<property><name>{name}</name><value>{value}</value><final>{is_final}</final></property>"
            )
        };
        let core = format!(
            "<configuration>{}{}</configuration>",
            property("a", "1", true),
            property("b", "1", false)
        );
        let hdfs = format!(
            "<configuration>{}{}</configuration>",
            property("a", "2", false),
            property("b", "2", false)
        );
        std::fs::write(dir.path().join("core-site.xml"), core).unwrap();
        std::fs::write(dir.path().join("hdfs-site.xml"), hdfs).unwrap();
        let mut conf = Configuration::default();
        conf.load_folder(dir.path()).unwrap();
        assert_eq!((conf.get("a"), conf.get("b")), (Some("1".into()), Some("2".into())));
        conf.set_words(&["b=3".into()]).unwrap();
        assert_eq!(conf.get("b"), Some("3".into()));
        assert!(conf.set_words(&["b".into()]).is_err());
    }

    /// Source: Hadoop 3.5.0 `Configuration`: the later of two names of a key wins, whichever is the older.
    #[test]
    fn former_names_of_keys_are_names_of_the_same_keys() {
        let dir = tempfile::tempdir().unwrap();
        let load = |properties: &[(&str, &str, bool)]| {
            let properties = properties.iter().map(|(name, value, is_final)| {
                format!(
                    "<property><name>{name}</name><value>{value}</value><final>{is_final}</final></property>"
                )
            });
            let text = format!("<configuration>{}</configuration>", properties.collect::<String>());
            std::fs::write(dir.path().join("hdfs-site.xml"), text).unwrap();
            let mut conf = Configuration::default();
            conf.load_folder(dir.path()).unwrap();
            conf
        };
        let mut conf = load(&[
            ("dfs.data.dir", "/old", false),
            ("dfs.replication.min", "2", true),
            ("dfs.namenode.replication.min", "3", false),
            ("dfs.blocksize", "1m", false),
            ("dfs.block.size", "2m", false),
            ("dfs.permissions", "false", false),
            ("fs.default.name", "hdfs://nn", false),
            ("x", "${dfs.data.dir}/x", false),
        ]);
        for (key, want) in [
            ("dfs.datanode.data.dir", "/old"),
            ("dfs.data.dir", "/old"),
            ("dfs.namenode.replication.min", "2"),
            ("dfs.blocksize", "2m"),
            ("dfs.permissions.enabled", "false"),
            ("x", "/old/x"),
        ] {
            assert_eq!(conf.get(key).as_deref(), Some(want), "{key}");
        }
        assert_eq!(conf.default_fs().as_deref(), Some("hdfs://nn"));
        assert!(conf.iter().all(|(key, _)| key != "dfs.data.dir"), "it is told by its name");
        conf.set_words(&["dfs.data.dir=/given".into()]).unwrap();
        assert_eq!(conf.get("dfs.datanode.data.dir").as_deref(), Some("/given"));
        conf.set("dfs.datanode.data.dir", "/new");
        conf.set_default("dfs.data.dir", "/unused");
        assert_eq!(conf.get("dfs.data.dir").as_deref(), Some("/new"));
    }

    #[test]
    fn an_element_without_text_sets_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("core-site.xml"), xml::write([("a", "1"), ("b", "")]))
            .unwrap();
        std::fs::write(dir.path().join("hdfs-site.xml"), xml::write([("a", ""), ("b", "2")]))
            .unwrap();
        let mut conf = Configuration::default();
        conf.load_folder(dir.path()).unwrap();
        assert_eq!((conf.get("a"), conf.get("b")), (Some("1".into()), Some("2".into())));
    }

    #[test]
    fn access_lists_are_in_a_file_of_their_own_too() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
        let core = [
            ("security.a.acl", "ann"),
            ("security.b.acl", "ann"),
            ("who", "bob"),
            ("x", "security"),
        ];
        write("core-site.xml", xml::write(core));
        let policy = [
            ("security.b.acl", "${who},dan "),
            ("security.c.acl", " staff"),
            ("security.d.acl", "dan"),
            ("who", "carol"),
        ];
        write("hadoop-policy.xml", xml::write(policy));
        let mut conf = Configuration::default();
        conf.load_folder(dir.path()).unwrap();
        conf.set_words(&["security.d.acl= admins".into()]).unwrap();
        let read = conf.service_policy().unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            read,
            [
                ("security.a.acl", "ann"),
                ("security.b.acl", "carol,dan "),
                ("security.c.acl", " staff"),
                ("security.d.acl", " admins"),
            ]
        );
        assert_eq!(
            (conf.get("security.b.acl"), conf.get("who")),
            (Some("ann".into()), Some("bob".into()))
        );
        write("hadoop-policy.xml", "garbage".into());
        assert!(conf.service_policy().is_err());
        std::fs::remove_file(dir.path().join("hadoop-policy.xml")).unwrap();
        assert_eq!(conf.service_policy().unwrap().len(), 3);
    }

    #[test]
    fn references_are_replaced_and_loops_end() {
        let mut conf = Configuration::default();
        conf.set("base", "/data");
        conf.set("dir", "${base}/dn");
        conf.set("loop", "${loop}");
        assert_eq!(conf.get("dir"), Some("/data/dn".into()));
        assert_eq!(conf.get("loop"), Some("${loop}".into()));
        assert_eq!(conf.get("absent"), None);
    }

    #[test]
    fn a_wrong_value_names_its_key() {
        let mut conf = Configuration::default();
        conf.set("dfs.blocksize", "many");
        let mut size = 0;
        let error = conf.bytes("dfs.blocksize", &mut size).unwrap_err();
        assert_eq!(error.to_string(), "the value 'many' of dfs.blocksize is wrong");
    }
    #[test]
    fn an_authority_has_a_host_and_a_port() {
        assert_eq!(authority("hdfs://nn/x").unwrap(), "nn:8020");
        assert!(authority("file:///x").is_err());
        assert!(authority("hdfs:///x").is_err());
    }
    #[test]
    fn a_library_finds_its_folder_as_libhdfs_does() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = dir.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let text = xml::write([("fs.defaultFS", format!("hdfs://{}", &name[..1]).as_str())]);
            std::fs::write(folder.join("core-site.xml"), text).unwrap();
            folder
        };
        let (conf_dir, classpath, home) =
            (folder("conf"), folder("path"), folder("home/etc/hadoop"));
        let found = |set: &[(&str, OsString)]| {
            let value = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
            of_library(value).unwrap().default_fs()
        };
        let paths =
            std::env::join_paths([dir.path(), &dir.path().join("x.jar"), &classpath]).unwrap();
        let all = [
            ("HADOOP_HOME", home.parent().unwrap().parent().unwrap().into()),
            ("CLASSPATH", paths),
            ("HADOOP_CONF_DIR", conf_dir.into()),
        ];
        assert_eq!(found(&all), Some("hdfs://c".to_string()));
        assert_eq!(found(&all[..2]), Some("hdfs://p".to_string()));
        assert_eq!(found(&all[..1]), Some("hdfs://h".to_string()));
        assert_eq!(found(&[]), None);
    }
}
