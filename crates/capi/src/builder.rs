//! Connecting: the builder of libhdfs, and what a connection is.

use crate::boundary::{Text, null};
use crate::configuration;
use crate::failure::{Failure, Result, call, status};
use crate::path::resolve;
use cairn_client::{Blocking, FileSystem, Kept};
use cairn_conf::trace;
use libc::c_int;
use std::sync::{Arc, PoisonError, RwLock};

/// A connected file system. `hdfsFS` points to one.
pub struct Fs(pub Arc<Connection>);

/// What a file system's handle and its builders share.
pub struct Connection {
    /// The client.
    pub client: Kept<FileSystem>,
    /// What it works on.
    pub blocking: Blocking,
    /// As it was named: `hdfs://` and the authority.
    pub uri: String,
    working_directory: RwLock<String>,
}

impl Connection {
    /// The absolute path that a string of C names.
    pub fn path(&self, text: &Text) -> Result<String> {
        resolve(&self.client.config().namenode, &self.working_directory(), text.require()?)
    }

    /// The directory to which relative paths belong.
    pub fn working_directory(&self) -> String {
        self.working_directory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes relative paths belong to another directory.
    pub fn set_working_directory(&self, path: String) {
        *self.working_directory.write().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Waits for a call of the client.
    pub fn wait<T>(&self, call: impl Future<Output = cairn_client::Result<T>>) -> Result<T> {
        Ok(self.blocking.wait(call)?)
    }
}

/// The connection behind a handle.
pub fn connection(fs: Option<&Fs>) -> Result<&Connection> {
    fs.map(|fs| &*fs.0).ok_or_else(null)
}

/// What a program says before it connects. `hdfsBuilder`.
#[derive(Default)]
pub struct Builder {
    namenode: Option<String>,
    port: u16,
    user: Option<String>,
    ticket_cache: Option<String>,
    keys: Vec<(String, String)>,
    /// A string was given that could not be understood.
    bad: Option<Failure>,
}

impl Builder {
    fn note(&mut self, text: &Text, slot: fn(&mut Builder) -> &mut Option<String>) {
        match text.get() {
            Ok(text) => *slot(self) = text.map(str::to_string),
            Err(failure) => self.bad = Some(failure),
        }
    }

    /// The URI that was asked for. The port may be given once.
    fn uri(&self, default: Option<String>) -> Result<String> {
        let Some(namenode) = &self.namenode else {
            return Err(Failure::unsupported("there is no local file system here"));
        };
        if namenode == "default" {
            let missing = || Failure::argument("fs.defaultFS is not set");
            return default.ok_or_else(missing);
        }
        let uri = match namenode.contains("://") {
            true => namenode.clone(),
            false => format!("hdfs://{namenode}"),
        };
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (self.port, namenode.rsplit_once(':')) {
            (0, _) => Ok(uri),
            (_, Some((_, port))) if is_port(port) => {
                Err(Failure::argument(format!("{namenode} already contains a port")))
            }
            (port, _) => Ok(format!("{}:{port}", uri.trim_end_matches('/'))),
        }
    }

    fn connect(self) -> Result<Fs> {
        if let Some(failure) = self.bad {
            return Err(failure);
        }
        let mut conf = configuration::read()?;
        for (key, value) in &self.keys {
            conf.set(key, value.as_str());
        }
        if let Some(path) = self.ticket_cache.as_ref().filter(|path| !path.is_empty()) {
            conf.set("hadoop.security.kerberos.ticket.cache.path", path.as_str());
        }
        let uri = self.uri(conf.default_fs())?;
        conf.set("fs.defaultFS", uri.as_str());
        let wrong = |error| Failure::argument(format!("{error:#}"));
        if !uri.starts_with("hdfs://") {
            return Err(Failure::unsupported(format!("{uri} is not an hdfs:// URI")));
        }
        let mut config = cairn_conf::client::read(&conf).map_err(wrong)?;
        if let Some(user) = self.user.filter(|user| !user.is_empty()) {
            config.act_as(&user).map_err(Failure::from)?;
        }
        let rest = uri.trim_start_matches("hdfs://");
        let uri = format!("hdfs://{}", rest.split('/').next().unwrap_or_default());
        let home = config.home();
        let blocking = Blocking::of_process()?;
        let traced = blocking.enter().map(|_runtime| trace::begin(&conf, "cairn-libhdfs"))?;
        traced.map_err(wrong)?;
        let client = blocking.wait(async { Ok(blocking.keep(FileSystem::new(config)?)) })?;
        let working_directory = RwLock::new(home);
        Ok(Fs(Arc::new(Connection { client, blocking, uri, working_directory })))
    }
}

fn connect_to(namenode: &Text, port: u16, user: Option<&Text>) -> Option<Box<Fs>> {
    let mut builder = Builder { port, ..Builder::default() };
    builder.note(namenode, |builder| &mut builder.namenode);
    if let Some(user) = user {
        builder.note(user, |builder| &mut builder.user);
    }
    call(None, || builder.connect().map(|fs| Some(Box::new(fs))))
}

/// A new builder.
#[unsafe(no_mangle)]
extern "C" fn hdfsNewBuilder() -> Option<Box<Builder>> {
    Some(Box::default())
}

/// Gives a builder back that does not connect.
#[unsafe(no_mangle)]
extern "C" fn hdfsFreeBuilder(builder: Option<Box<Builder>>) {
    drop(builder);
}

/// Says that the connection must be a new one: it always is.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderSetForceNewInstance(_builder: Option<&mut Builder>) {}

/// Names the NameNode: a host, `host:port`, an `hdfs://` URI, or `default` for `fs.defaultFS`.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderSetNameNode(builder: Option<&mut Builder>, namenode: Text) {
    if let Some(builder) = builder {
        builder.note(&namenode, |builder| &mut builder.namenode);
    }
}

/// Names the NameNode's port, where its name does not.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderSetNameNodePort(builder: Option<&mut Builder>, port: u16) {
    if let Some(builder) = builder {
        builder.port = port;
    }
}

/// Names the user to act as.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderSetUserName(builder: Option<&mut Builder>, user: Text) {
    if let Some(builder) = builder {
        builder.note(&user, |builder| &mut builder.user);
    }
}

/// Names a cache of Kerberos tickets. It is used where `hadoop.security.authentication` is `kerberos`.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderSetKerbTicketCachePath(builder: Option<&mut Builder>, path: Text) {
    if let Some(builder) = builder {
        builder.note(&path, |builder| &mut builder.ticket_cache);
    }
}

/// Sets a key of the configuration, or takes its value away. 0, or the error's number.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderConfSetStr(
    builder: Option<&mut Builder>,
    key: Text,
    value: Text,
) -> c_int {
    call(libc::EINVAL, || {
        let builder = builder.ok_or_else(null)?;
        let value = value.get()?.unwrap_or_default();
        builder.keys.push((key.require()?.to_string(), value.to_string()));
        Ok(0)
    })
}

/// Connects, and gives the builder back. As in libhdfs nothing is sent before the first call.
#[unsafe(no_mangle)]
extern "C" fn hdfsBuilderConnect(builder: Option<Box<Builder>>) -> Option<Box<Fs>> {
    call(None, || builder.ok_or_else(null)?.connect().map(|fs| Some(Box::new(fs))))
}

/// Connects to a NameNode.
#[unsafe(no_mangle)]
extern "C" fn hdfsConnect(namenode: Text, port: u16) -> Option<Box<Fs>> {
    connect_to(&namenode, port, None)
}

/// As [`hdfsConnect`].
#[unsafe(no_mangle)]
extern "C" fn hdfsConnectNewInstance(namenode: Text, port: u16) -> Option<Box<Fs>> {
    connect_to(&namenode, port, None)
}

/// Connects to a NameNode as a user.
#[unsafe(no_mangle)]
extern "C" fn hdfsConnectAsUser(namenode: Text, port: u16, user: Text) -> Option<Box<Fs>> {
    connect_to(&namenode, port, Some(&user))
}

/// As [`hdfsConnectAsUser`].
#[unsafe(no_mangle)]
extern "C" fn hdfsConnectAsUserNewInstance(
    namenode: Text,
    port: u16,
    user: Text,
) -> Option<Box<Fs>> {
    connect_to(&namenode, port, Some(&user))
}

/// Gives a connection back. What is open stays open.
#[unsafe(no_mangle)]
extern "C" fn hdfsDisconnect(fs: Option<Box<Fs>>) -> c_int {
    status(|| {
        let fs = fs.ok_or_else(|| Failure::bad_handle("no file system"))?;
        let blocking = fs.0.blocking;
        blocking.wait(async {
            trace::flush().await;
            Ok(())
        })?;
        let _on_runtime = blocking.enter()?;
        drop(fs);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_given_once() {
        let uri = |namenode: &str, port| {
            let namenode = Some(namenode.to_string());
            let builder = Builder { namenode, port, ..Builder::default() };
            builder.uri(Some("hdfs://d".to_string())).map_err(|failure| failure.errno)
        };
        assert_eq!(uri("nn", 0).as_deref(), Ok("hdfs://nn"));
        assert_eq!(uri("nn", 9000).as_deref(), Ok("hdfs://nn:9000"));
        assert_eq!(uri("hdfs://nn", 9000).as_deref(), Ok("hdfs://nn:9000"));
        assert_eq!(uri("hdfs://nn:9000", 0).as_deref(), Ok("hdfs://nn:9000"));
        assert_eq!(uri("nn:9000", 9000), Err(libc::EINVAL));
        assert_eq!(uri("default", 0).as_deref(), Ok("hdfs://d"));
        assert_eq!(Builder::default().uri(None).unwrap_err().errno, libc::ENOTSUP);
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused() {
        let refused = |change: fn(&mut Builder)| {
            let mut builder = Builder { namenode: Some("nn".to_string()), ..Builder::default() };
            change(&mut builder);
            builder.connect().err().map(|failure| failure.errno)
        };
        assert_eq!(refused(|_| {}), None);
        assert_eq!(refused(|b| b.ticket_cache = Some("/x".into())), None);
        assert_eq!(refused(|b| b.namenode = Some("file:///".into())), Some(libc::ENOTSUP));
        let size = ("dfs.blocksize".to_string(), "many".to_string());
        let mut builder = Builder { keys: vec![size], ..Builder::default() };
        builder.namenode = Some("nn".to_string());
        assert_eq!(builder.connect().err().map(|failure| failure.errno), Some(libc::EINVAL));
    }
}
