//! `ReconfigurationProtocol`: settings that a server takes from its configuration files while it runs.
//!
//! The server names the properties that it can change and changes them; this compares the files with what
//! holds, and remembers what became of the last time. Source: Hadoop 3.5.0 `ReconfigurableBase`,
//! `ReconfigurationProtocolServerSideUtils`. Deviation: `startReconfiguration` answers when it is done.

use cairn_net::rpc_server::{Call, respond};
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs::{
    GetReconfigurationStatusConfigChangeProto, GetReconfigurationStatusResponseProto,
    ListReconfigurablePropertiesResponseProto, StartReconfigurationResponseProto,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The protocol's Java name.
pub const NAME: &str = "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol";

/// What the files say: the settings that follow from them, and each property as text.
pub type Read<C> = (C, BTreeMap<String, String>);

/// The name of a property, and the text that stands for its default.
pub type Property = (&'static str, &'static str);

/// Reads the configuration files again, or says what is wrong with them.
pub struct Reload<C>(Arc<dyn Fn() -> Result<Read<C>, String> + Send + Sync>);

impl<C> Reload<C> {
    /// `read` may wait for the disk.
    pub fn new(read: impl Fn() -> Result<Read<C>, String> + Send + Sync + 'static) -> Reload<C> {
        Reload(Arc::new(read))
    }

    /// What the files say now, or what is wrong with them. May wait for the disk.
    pub fn read(&self) -> Result<Read<C>, String> {
        (self.0)()
    }
}

impl<C> Clone for Reload<C> {
    fn clone(&self) -> Reload<C> {
        Reload(self.0.clone())
    }
}

impl<C> fmt::Debug for Reload<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

#[derive(Default)]
struct State {
    /// The properties as they hold.
    values: BTreeMap<String, String>,
    last: GetReconfigurationStatusResponseProto,
}

/// The properties that a server can change, and what became of the last change.
pub struct Reconfiguration<C> {
    reload: Option<Reload<C>>,
    properties: Vec<Property>,
    state: Mutex<State>,
}

impl<C> Reconfiguration<C> {
    /// For a server that has just read its configuration. Without `reload` there are no files to read again.
    pub fn new(reload: Option<Reload<C>>, mut properties: Vec<Property>) -> Reconfiguration<C> {
        // As Hadoop lists them.
        properties.sort_unstable();
        let read = reload.as_ref().and_then(|reload| (reload.0)().ok());
        let values = read.map(|(_, values)| values).unwrap_or_default();
        let state = Mutex::new(State { values, ..State::default() });
        Reconfiguration { reload, properties, state }
    }

    /// Answers `listReconfigurableProperties`.
    pub fn list(&self) -> Result<Vec<u8>, RemoteException> {
        let name = self.properties.iter().map(|(name, _)| name.to_string()).collect();
        respond(&ListReconfigurablePropertiesResponseProto { name })
    }

    /// Answers `getReconfigurationStatus`.
    pub fn status(&self) -> Result<Vec<u8>, RemoteException> {
        respond(&self.lock().last)
    }

    /// Answers `startReconfiguration`: `apply` takes each property that has changed to its new value. Fails when
    /// the files cannot be read; a property that cannot be changed is told of by the status.
    pub fn start(
        &self,
        mut apply: impl FnMut(&str, &C) -> Result<(), String>,
    ) -> Result<Vec<u8>, RemoteException> {
        let Some(reload) = &self.reload else {
            return Err(RemoteException::io(
                "This server was not started from configuration files",
            ));
        };
        let start_time = now_ms();
        let (settings, values) = (reload.0)().map_err(RemoteException::io)?;
        let mut state = self.lock();
        let mut changes = Vec::new();
        for (name, default) in &self.properties {
            let of = |values: &BTreeMap<String, String>| {
                values.get(*name).cloned().unwrap_or_else(|| default.to_string())
            };
            let (old, new) = (of(&state.values), of(&values));
            if old == new {
                continue;
            }
            let error_message = apply(name, &settings).err();
            if error_message.is_none() {
                tracing::info!(name, old, new, "a property has changed");
                state.values.insert(name.to_string(), new.clone());
            }
            changes.push(GetReconfigurationStatusConfigChangeProto {
                name: name.to_string(),
                old_value: old,
                new_value: Some(new),
                error_message,
            });
        }
        let end_time = Some(now_ms());
        state.last = GetReconfigurationStatusResponseProto { start_time, end_time, changes };
        respond(&StartReconfigurationResponseProto {})
    }

    /// Answers a call of this protocol; see [`Reconfiguration::start`] for `apply`.
    pub fn call(
        &self,
        call: &Call,
        apply: impl FnMut(&str, &C) -> Result<(), String>,
    ) -> Result<Vec<u8>, RemoteException> {
        match call.method.as_str() {
            "listReconfigurableProperties" => self.list(),
            "getReconfigurationStatus" => self.status(),
            "startReconfiguration" => self.start(apply),
            _ => Err(call.unknown_method()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn only_what_has_changed_is_applied_and_told() {
        let files = Arc::new(Mutex::new(BTreeMap::from([
            ("a".to_string(), "1".to_string()),
            ("other".to_string(), "x".to_string()),
        ])));
        let read = files.clone();
        let reload = Reload::new(move || Ok((7, read.lock().unwrap().clone())));
        let server = Reconfiguration::new(Some(reload), vec![("a", ""), ("b", ""), ("c", "0")]);
        let status = |server: &Reconfiguration<i32>| {
            let bytes = server.status().unwrap();
            GetReconfigurationStatusResponseProto::decode(&bytes[..]).unwrap()
        };
        assert_eq!((status(&server).start_time, status(&server).end_time), (0, None), "no task");
        files.lock().unwrap().insert("a".into(), "2".into());
        files.lock().unwrap().insert("c".into(), "3".into());
        files.lock().unwrap().insert("other".into(), "y".into());
        let mut applied = Vec::new();
        let apply = |name: &str, settings: &i32| {
            applied.push((name.to_string(), *settings));
            if name == "c" { Err("no".to_string()) } else { Ok(()) }
        };
        server.start(apply).unwrap();
        assert_eq!(applied, [("a".to_string(), 7), ("c".to_string(), 7)]);
        let told = status(&server);
        assert!(told.start_time > 0 && told.end_time.is_some());
        let changes: Vec<_> = told
            .changes
            .iter()
            .map(|c| (&c.name[..], &c.old_value[..], c.new_value(), c.error_message.as_deref()))
            .collect();
        assert_eq!(changes, [("a", "1", "2", None), ("c", "0", "3", Some("no"))]);
        // What could not be applied is tried again, what was is not.
        let mut again = Vec::new();
        let apply = |name: &str, _: &i32| {
            again.push(name.to_string());
            Ok(())
        };
        server.start(apply).unwrap();
        assert_eq!(again, ["c"]);
        assert!(Reconfiguration::<i32>::new(None, Vec::new()).start(|_, _| Ok(())).is_err());
    }
}
