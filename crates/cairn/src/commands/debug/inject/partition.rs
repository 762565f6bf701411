//! A network that is cut between a server and some peers: the server itself refuses, told by a socket in its folder.
//!
//! The socket is there only where the server's own configuration allows faults. Whoever may open it says which connections
//! are not to be, in one line of JSON; that holds until the time is over, or whoever said it has closed the socket or died.

use super::allowed::KEY;
use anyhow::{Context, Result, bail};
use cairn_net::reach::{Cut, Peer, Reach, Rule};
use serde_json::{Value, json};
use std::fs::{self, File, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream, lookup_host};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// In a server's folder.
const SOCKET: &str = "cairn-debug.sock";
/// Bytes of a line, at most.
const LINE_MAX: u64 = 64 << 10;
/// How long either side waits for the other's line.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is cut, and for how long.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    pub rule: Rule,
    pub length: Duration,
}

/// The peers that a name stands for: `HOST` at any port, `HOST:PORT` at that one.
pub async fn peers(name: &str) -> Result<Vec<Peer>> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(vec![Peer::Host(ip)]);
    }
    let (host, port) = match name.rsplit_once(':') {
        Some((host, port)) => {
            (host, Some(port.parse::<u16>().with_context(|| format!("the port of {name}"))?))
        }
        None => (name, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = lookup_host((host, port.unwrap_or_default()));
    let found: Vec<SocketAddr> = found.await.with_context(|| name.to_string())?.collect();
    Ok(found
        .into_iter()
        .map(|addr| match port {
            Some(_) => Peer::Port(addr),
            None => Peer::Host(addr.ip()),
        })
        .collect())
}

fn encode(wanted: &Wanted) -> String {
    let Rule { peers, made, taken, ports: _ } = &wanted.rule;
    let name = |peer: &Peer| match peer {
        Peer::Host(ip) => ip.to_string(),
        Peer::Port(addr) => addr.to_string(),
    };
    let peers: Vec<String> = peers.iter().map(name).collect();
    let ms = wanted.length.as_millis() as u64;
    json!({"peers": peers, "made": made, "taken": taken, "ms": ms}).to_string()
}

fn decode(line: &str) -> Result<Wanted> {
    let said: Value = serde_json::from_str(line)?;
    let flag = |name: &str| said[name].as_bool().with_context(|| format!("{name} is missing"));
    let peer = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        let host = name.parse().map(Peer::Host);
        host.or_else(|_| name.parse().map(Peer::Port)).with_context(|| format!("peer '{name}'"))
    };
    let peers = said["peers"].as_array().context("peers are missing")?;
    let peers = peers.iter().map(peer).collect::<Result<_>>()?;
    let rule = Rule { peers, made: flag("made")?, taken: flag("taken")?, ports: Vec::new() };
    let ms = said["ms"].as_u64().context("ms is missing")?;
    Ok(Wanted { rule, length: Duration::from_millis(ms) })
}

/// The path of a folder's socket, however long the folder's own is: those of sockets may have 107 bytes.
fn short_path(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// A fault that is there as long as this is.
pub struct Partition(BufReader<UnixStream>);

impl Partition {
    /// Has the server of a folder do without some connections.
    pub async fn begin(folder: &Path, wanted: &Wanted) -> Result<Partition> {
        let opened = File::open(folder).with_context(|| folder.display().to_string())?;
        let connected = UnixStream::connect(short_path(&opened)).await;
        let mut stream = connected.with_context(|| {
            format!(
                "{}: no server there takes this fault, for which its own configuration has to allow faults: {}",
                folder.join(SOCKET).display(),
                KEY
            )
        })?;
        stream.write_all((encode(wanted) + "\n").as_bytes()).await?;
        let mut stream = BufReader::new(stream);
        let mut answer = String::new();
        let mut limited = (&mut stream).take(LINE_MAX);
        timeout(PATIENCE, limited.read_line(&mut answer)).await.context("no answer")??;
        match answer.trim() {
            "ok" => Ok(Partition(stream)),
            why => bail!("the server refuses: {why}"),
        }
    }

    /// Completes when its time is over, or the server's life.
    pub async fn ended(&mut self) {
        // Nothing more is said.
        let _ = self.0.read(&mut [0]).await;
    }
}

/// Where a server is told of cut networks. They are whole again when this goes.
pub struct Door {
    path: PathBuf,
    task: AbortHandle,
}

impl Door {
    /// Opens one in a server's folder, whose lock the server has; `None` where its network cannot be cut.
    pub fn open(folder: &Path, reach: &Reach) -> Result<Option<Door>> {
        if !reach.can_be_cut() {
            return Ok(None);
        }
        let path = folder.join(SOCKET);
        let bind = || -> io::Result<UnixListener> {
            let opened = File::open(folder)?;
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(short_path(&opened))?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        let listener = bind().with_context(|| path.display().to_string())?;
        tracing::warn!(socket = %path.display(), "faults may be injected here");
        let task = tokio::spawn(serve_all(listener, reach.clone())).abort_handle();
        Ok(Some(Door { path, task }))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
        // Who starts next removes it otherwise.
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve_all(listener: UnixListener, reach: Reach) {
    let mut served = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                while served.try_join_next().is_some() {}
                let reach = reach.clone();
                served.spawn(async move {
                    if let Err(error) = serve(stream, reach).await {
                        tracing::debug!(%error, "whoever injects faults is gone");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take connections of who injects faults");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, reach: Reach) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut limited = (&mut stream).take(LINE_MAX);
    timeout(PATIENCE, limited.read_line(&mut line)).await??;
    let length;
    let cut: Cut = match decode(&line) {
        Err(error) => return stream.write_all(format!("{error:#}\n").as_bytes()).await,
        Ok(wanted) => {
            tracing::warn!(?wanted, "the network is cut on purpose");
            length = wanted.length;
            // It looks at every descriptor.
            let cut = tokio::task::spawn_blocking(move || reach.cut(wanted.rule)).await;
            match cut.map_err(io::Error::other)? {
                Ok(cut) => cut,
                Err(error) => return stream.write_all(format!("{error}\n").as_bytes()).await,
            }
        }
    };
    stream.write_all(b"ok\n").await?;
    tokio::select! {
        () = sleep(length) => {}
        _ = stream.read_u8() => {}
    }
    drop(cut);
    tracing::warn!("the network that was cut on purpose is whole again");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn wanted(length: Duration) -> Wanted {
        let peers = vec![
            Peer::Host("10.0.0.1".parse().unwrap()),
            Peer::Port("[2001:db8::1]:9866".parse().unwrap()),
        ];
        Wanted { rule: Rule { peers, made: true, taken: false, ports: Vec::new() }, length }
    }

    #[test]
    fn what_is_wanted_is_read_as_it_was_written() {
        let wanted = wanted(Duration::from_millis(1500));
        assert_eq!(decode(&encode(&wanted)).unwrap(), wanted);
        for wrong in ["", "{}", r#"{"peers":["x"],"made":true,"taken":true,"ms":1}"#, "[1]"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn names_are_hosts_or_ports() {
        let host = Peer::Host("127.0.0.1".parse().unwrap());
        assert_eq!(peers("127.0.0.1").await.unwrap(), [host]);
        let port = Peer::Port("127.0.0.1:9866".parse().unwrap());
        assert_eq!(peers("127.0.0.1:9866").await.unwrap(), [port]);
        let port = Peer::Port("[::1]:9866".parse().unwrap());
        assert_eq!(peers("[::1]:9866").await.unwrap(), [port]);
        assert!(peers("localhost").await.unwrap().contains(&host));
        assert!(peers("localhost:x").await.is_err());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_is_told_keeps_to_it_until_it_is_healed() {
        // A path that is longer than a socket's may be.
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("x".repeat(120));
        fs::create_dir(&folder).unwrap();
        let long = wanted(Duration::from_secs(600));
        assert!(Door::open(&folder, &Reach::default()).unwrap().is_none());
        let refused = Partition::begin(&folder, &long).await.err().unwrap();
        assert!(refused.to_string().contains(KEY), "{refused:#}");

        let reach = Reach::that_can_be_cut();
        let door = Door::open(&folder, &reach).unwrap().unwrap();
        let addr: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let healed = async || {
            let begun = Instant::now();
            while !reach.may_make(addr) {
                assert!(begun.elapsed() < PATIENCE);
                sleep(Duration::from_millis(5)).await;
            }
        };
        let partition = Partition::begin(&folder, &long).await.unwrap();
        assert!(!reach.may_make(addr) && reach.may_take(addr));
        drop(partition);
        healed().await;
        // By itself.
        let short = wanted(Duration::from_millis(50));
        let mut partition = Partition::begin(&folder, &short).await.unwrap();
        partition.ended().await;
        healed().await;
        // With the server.
        let _partition = Partition::begin(&folder, &long).await.unwrap();
        drop(door);
        healed().await;
        assert!(!folder.join(SOCKET).exists());
    }
}
