//! Ports for servers that stop and start again where they were.
//!
//! A port that the system gives for a bind to port 0 is of the range that outgoing connections take theirs from: while
//! its server is stopped, any connection may take it, and the server cannot come back. These are from below that range,
//! and from stretches that no other cluster on this machine has: two whose process numbers gave them the same ones took
//! each other's ports while a server was stopped.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};

/// Where all servers of a cluster listen.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Ports from here on, unless outgoing connections take theirs there.
const FIRST: u16 = 10_000;
/// Ports to here; beyond are those that somebody else may have chosen by the same thought.
const END: u16 = 21_000;
/// How many ports are claimed at once.
const STRETCH: u16 = 64;
/// The first and the last port of outgoing connections, on Linux.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The first one where that file is missing (IANA's is higher).
const USUAL_EPHEMERAL: u16 = 32_768;

/// Hands out free ports of the loopback address, none of them twice, and keeps other clusters from them while it lives.
pub(super) struct Ports {
    /// The first ports of stretches that have not been tried.
    stretches: Box<dyn Iterator<Item = u16> + Send>,
    /// What is left of the stretch that was claimed last.
    left: std::ops::Range<u16>,
    claims: Vec<UdpSocket>,
}

impl Ports {
    /// Ports for the process with the number `pid`.
    pub(super) fn of_process(pid: u32) -> Ports {
        let range = std::fs::read_to_string(EPHEMERAL).unwrap_or_default();
        let ephemeral = range.split_whitespace().next().and_then(|first| first.parse().ok());
        Ports {
            stretches: stretches(pid, ephemeral.unwrap_or(USUAL_EPHEMERAL)),
            left: 0..0,
            claims: Vec::new(),
        }
    }

    /// A port that was free a moment ago; 0 (let the system choose) when there is none left.
    pub(super) fn free(&mut self) -> u16 {
        loop {
            let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
            if let Some(port) = self.left.find(is_free) {
                return port;
            }
            let Some((first, claim)) = self.stretches.find_map(|at| Some((at, claim(at)?))) else {
                return 0;
            };
            self.left = first..first + STRETCH;
            self.claims.push(claim);
        }
    }
}

/// Keeps the stretch that begins with the port `first`, unless somebody has it. A claim is a UDP socket: it is in the way
/// of no server, and ends with its process, however that ends.
fn claim(first: u16) -> Option<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, first)).ok()
}

/// The first ports of all stretches below `ephemeral`, each once, those of `pid` first.
fn stretches(pid: u32, ephemeral: u16) -> Box<dyn Iterator<Item = u16> + Send> {
    let count = END.min(ephemeral).saturating_sub(FIRST) / STRETCH;
    // Less than `count`, which is a u16.
    let first = (pid % u32::from(count).max(1)) as u16;
    Box::new((first..count).chain(0..first).map(|i| FIRST + i * STRETCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn stretches_are_outside_the_range_of_outgoing_connections_and_come_once() {
        for ephemeral in [15_000, USUAL_EPHEMERAL] {
            let end = END.min(ephemeral);
            let all: Vec<u16> = stretches(77, ephemeral).collect();
            assert!(all.iter().all(|first| *first >= FIRST && first + STRETCH <= end));
            let ports: HashSet<u16> =
                all.iter().flat_map(|first| *first..first + STRETCH).collect();
            assert_eq!(ports.len(), all.len() * usize::from(STRETCH));
            assert!(usize::from(end - FIRST) - ports.len() < usize::from(STRETCH));
        }
        assert_eq!(stretches(77, 1024).count(), 0, "all ports are for outgoing connections");
    }

    #[test]
    fn processes_that_follow_each_other_begin_at_stretches_of_their_own() {
        let first = |pid| stretches(pid, USUAL_EPHEMERAL).next().unwrap();
        assert_eq!((1000..1100).map(first).collect::<HashSet<_>>().len(), 100);
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let first = {
            let mut ports = Ports::of_process(std::process::id());
            ports.free()
        };
        if first == 0 {
            // All ports of this machine are for outgoing connections.
            return;
        }
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        assert_ne!(Ports::of_process(std::process::id()).free(), first);
    }

    /// Two clusters whose process numbers gave them the same stretch: the later one took the ports of servers of the
    /// other one that were stopped for a while.
    #[test]
    fn ports_of_stopped_servers_are_nobody_elses() {
        let (mut one, mut other) = (Ports::of_process(5), Ports::of_process(5));
        let ports = |of: &mut Ports| (0..2 * STRETCH).map(|_| of.free()).collect::<Vec<_>>();
        let (ones, others) = (ports(&mut one), ports(&mut other));
        assert!(ones.iter().all(|port| *port == 0 || !others.contains(port)));
    }
}
