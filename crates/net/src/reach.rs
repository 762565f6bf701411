//! With whom a server has connections: with everybody, unless a fault keeps it from some (`cairn debug inject partition`).
//!
//! Where connections are made and taken, a [`Reach`] is asked first. That of a server in production cannot be cut, and
//! costs a comparison. Only TCP is cut; who is on the same machine may still speak by UNIX domain sockets. A packet is
//! never lost by this: a peer sees connections end and none begin, which is what a cut network comes to once the
//! kernel's patience is over.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, getpeername, getsockname, shutdown, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use tokio::sync::watch;

/// Whom a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A host, at any port.
    Host(IpAddr),
    /// One port of a host. What that host connects from is other ports: such connections are not of it.
    Port(SocketAddr),
}

/// Which connections are not to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// With whom; with everybody where nobody is named.
    pub peers: Vec<Peer>,
    /// Those that this server makes.
    pub made: bool,
    /// Those that the peers make to this server.
    pub taken: bool,
    /// Where this server listens, if other servers are in this process: of what is there when the rule begins, only
    /// connections that were taken there end.
    pub ports: Vec<u16>,
}

impl Rule {
    fn is_about(&self, addr: SocketAddr) -> bool {
        let ip = addr.ip().to_canonical();
        self.peers.is_empty()
            || self.peers.iter().any(|peer| match peer {
                Peer::Host(host) => host.to_canonical() == ip,
                Peer::Port(port) => port.ip().to_canonical() == ip && port.port() == addr.port(),
            })
    }
}

/// See the module. Clones are of the same server. By default nothing can be cut.
#[derive(Clone, Debug, Default)]
pub struct Reach(Option<Arc<Rules>>);

#[derive(Debug, Default)]
struct Rules(watch::Sender<Vec<Arc<Rule>>>);

impl Rules {
    fn forbid(&self, is_it: impl Fn(&Rule) -> bool) -> bool {
        self.0.borrow().iter().any(|rule| is_it(rule))
    }
}

impl Reach {
    /// One that can be cut.
    pub fn that_can_be_cut() -> Reach {
        Reach(Some(Arc::default()))
    }

    /// Whether it can be cut.
    pub fn can_be_cut(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a connection to `addr` may be made now.
    pub fn may_make(&self, addr: SocketAddr) -> bool {
        let forbids = |rule: &Rule| rule.made && rule.is_about(addr);
        !self.0.as_ref().is_some_and(|rules| rules.forbid(forbids))
    }

    /// Whether a connection that `peer` has made may be served now.
    pub fn may_take(&self, peer: SocketAddr) -> bool {
        let forbids = |rule: &Rule| rule.taken && rule.is_about(peer);
        !self.0.as_ref().is_some_and(|rules| rules.forbid(forbids))
    }

    /// Makes a connection to `addr` once that may be: as with a cut network, nothing answers before.
    pub async fn make<T>(
        &self,
        addr: SocketAddr,
        connecting: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let Some(rules) = &self.0 else { return connecting.await };
        let mut changes = rules.0.subscribe();
        while !self.may_make(addr) {
            // Whoever sends is held here.
            let _ = changes.changed().await;
        }
        let made = connecting.await?;
        match self.may_make(addr) {
            true => Ok(made),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// The same for who blocks, and waits for no longer than `patience`.
    pub fn make_blocking<T>(
        &self,
        addr: SocketAddr,
        patience: Duration,
        connect: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        if !self.may_make(addr) {
            std::thread::sleep(patience);
            return Err(io::ErrorKind::TimedOut.into());
        }
        let made = connect()?;
        match self.may_make(addr) {
            true => Ok(made),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Keeps the connections of a rule from being until what is returned goes, and ends those that this process has.
    /// Where several servers are in one process, those that others have made to the same peers end once as well. Blocks
    /// for as long as a look at every descriptor takes.
    pub fn cut(&self, rule: Rule) -> io::Result<Cut> {
        let Some(rules) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        let rule = Arc::new(rule);
        // What is made or taken from now on is refused, so that what is there after this is all.
        rules.0.send_modify(|all| all.push(Arc::clone(&rule)));
        let cut = Cut { rules: Arc::clone(rules), rule };
        end_connections(&cut.rule)?;
        Ok(cut)
    }
}

/// As long as this is there, some connections are not to be.
#[derive(Debug)]
pub struct Cut {
    rules: Arc<Rules>,
    rule: Arc<Rule>,
}

impl Drop for Cut {
    fn drop(&mut self) {
        self.rules.0.send_modify(|all| all.retain(|rule| !Arc::ptr_eq(rule, &self.rule)));
    }
}

/// Ends the connections of this process that a rule is about.
fn end_connections(rule: &Rule) -> io::Result<()> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut connected = Vec::new();
    let mut listened = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Another name of whatever has the number now. It may be closed meanwhile, or be a file.
        let Ok(socket) = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()) else { continue };
        let Ok(local) = getsockname(&socket) else { continue };
        let Ok(local) = SocketAddr::try_from(local) else { continue };
        if sockopt::socket_acceptconn(&socket).unwrap_or(false) {
            listened.push(local.port());
            continue;
        }
        let Ok(Some(peer)) = getpeername(&socket) else { continue };
        if SocketAddr::try_from(peer).is_ok_and(|peer| rule.is_about(peer)) {
            connected.push((socket, local.port()));
        }
    }
    for (socket, port) in connected {
        let is_taken = listened.contains(&port);
        let is_here = rule.ports.is_empty() || rule.ports.contains(&port);
        if (is_taken && rule.taken && is_here) || (!is_taken && rule.made) {
            // Whoever has closed it already has no need of this.
            let _ = shutdown(&socket, Shutdown::Both);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_millis(100);
    const LATE: Duration = Duration::from_secs(10);

    fn rule(peers: &[Peer], made: bool, taken: bool) -> Rule {
        Rule { peers: peers.to_vec(), made, taken, ports: Vec::new() }
    }

    #[test]
    fn a_rule_is_about_hosts_ports_or_everybody() {
        let addr = |text: &str| text.parse::<SocketAddr>().unwrap();
        let host = Peer::Host("10.0.0.1".parse().unwrap());
        let port = Peer::Port(addr("10.0.0.2:9866"));
        let some = rule(&[host, port], true, true);
        assert!(some.is_about(addr("10.0.0.1:1")) && some.is_about(addr("[::ffff:10.0.0.1]:2")));
        assert!(some.is_about(addr("10.0.0.2:9866")) && !some.is_about(addr("10.0.0.2:9867")));
        assert!(!some.is_about(addr("10.0.0.3:9866")));
        assert!(rule(&[], true, true).is_about(addr("10.0.0.3:9866")));
    }

    #[test]
    fn what_cannot_be_cut_is_not() {
        let reach = Reach::default();
        assert!(!reach.can_be_cut());
        let error = reach.cut(rule(&[], true, true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[tokio::test]
    async fn connections_end_and_none_are_made_until_it_is_healed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let reach = Reach::that_can_be_cut();
        let connect = || reach.make(addr, TcpStream::connect(addr));
        let mut near = connect().await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        far.write_all(b"a").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'a');

        let cut = reach.cut(rule(&[Peer::Port(addr)], true, false)).unwrap();
        assert_eq!(timeout(LATE, near.read(&mut [0])).await.unwrap().unwrap(), 0);
        assert_eq!(timeout(LATE, far.read(&mut [0])).await.unwrap().unwrap(), 0);
        assert!(timeout(SOON, connect()).await.is_err(), "nothing answers");
        let refused = reach.make_blocking(addr, SOON, || Ok(())).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(reach.may_take(addr), "the other way it goes");

        let waiting = tokio::spawn({
            let reach = reach.clone();
            async move { reach.make(addr, TcpStream::connect(addr)).await.map(drop) }
        });
        tokio::time::sleep(SOON).await;
        drop(cut);
        timeout(LATE, waiting).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn one_way_only() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut near = TcpStream::connect(addr).await.unwrap();
        let (mut far, from) = listener.accept().await.unwrap();
        let reach = Reach::that_can_be_cut();
        // What the peer has made stays where only what is made to it is cut.
        let made = reach.cut(rule(&[Peer::Port(from)], true, false)).unwrap();
        assert!(!reach.may_make(from) && reach.may_take(from));
        far.write_all(b"a").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'a');
        drop(made);
        let elsewhere = Rule { ports: vec![1], ..rule(&[Peer::Port(from)], false, true) };
        let taken = reach.cut(elsewhere).unwrap();
        assert!(!reach.may_take(from));
        far.write_all(b"b").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'b');
        drop(taken);
        let taken = reach.cut(rule(&[Peer::Port(from)], false, true)).unwrap();
        assert!(reach.may_make(from) && !reach.may_take(from));
        assert_eq!(timeout(LATE, near.read(&mut [0])).await.unwrap().unwrap(), 0);
        drop(taken);
        assert!(reach.may_take(from));
    }

    #[tokio::test]
    async fn two_cuts_are_healed_one_by_one() {
        let addr: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let reach = Reach::that_can_be_cut();
        let host = rule(&[Peer::Host(addr.ip())], true, true);
        let (first, second) = (reach.cut(host.clone()).unwrap(), reach.cut(host).unwrap());
        drop(first);
        assert!(!reach.may_make(addr));
        drop(second);
        assert!(reach.may_make(addr));
    }
}
