//! Ports for servers that stop and start again where they were.
//!
//! A port that the system gives for a bind to port 0 is of the range that outgoing connections take theirs from: while
//! its server is stopped, any connection may take it, and the server cannot come back. These are from below that range.

use std::net::{Ipv4Addr, TcpListener};

/// Ports from here on, unless outgoing connections take theirs there.
const FIRST: u16 = 10_000;
/// Ports to here; beyond are those that somebody else may have chosen by the same thought.
const END: u16 = 21_000;
/// How many ports one process is likely to want: two processes with numbers close to each other stay apart.
const STRETCH: u16 = 64;
/// The first and the last port of outgoing connections, on Linux.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The first one where that file is missing (IANA's is higher).
const USUAL_EPHEMERAL: u16 = 32_768;

/// Hands out free ports of the loopback address, none of them twice.
pub(super) struct Ports {
    candidates: Box<dyn Iterator<Item = u16> + Send>,
}

impl Ports {
    /// Ports for the process with the number `pid`.
    pub(super) fn of_process(pid: u32) -> Ports {
        let range = std::fs::read_to_string(EPHEMERAL).unwrap_or_default();
        let ephemeral = range.split_whitespace().next().and_then(|first| first.parse().ok());
        Ports { candidates: candidates(pid, ephemeral.unwrap_or(USUAL_EPHEMERAL)) }
    }

    /// A port that was free a moment ago; 0 (let the system choose) when there is none left.
    pub(super) fn free(&mut self) -> u16 {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        self.candidates.find(is_free).unwrap_or(0)
    }
}

/// All ports below `ephemeral` that may be tried, each once, from the stretch of `pid` on.
fn candidates(pid: u32, ephemeral: u16) -> Box<dyn Iterator<Item = u16> + Send> {
    let count = END.min(ephemeral).saturating_sub(FIRST);
    let stretches = u32::from(count / STRETCH).max(1);
    // Less than `stretches`, which came from a u16.
    let first = (pid % stretches) as u16 * STRETCH;
    Box::new((0..count).map(move |i| {
        let at = (u32::from(first) + u32::from(i)) % u32::from(count);
        FIRST + at as u16
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ports_are_outside_the_range_of_outgoing_connections_and_come_once() {
        for ephemeral in [15_000, USUAL_EPHEMERAL] {
            let all: Vec<u16> = candidates(77, ephemeral).collect();
            assert!(all.iter().all(|port| (FIRST..END.min(ephemeral)).contains(port)));
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            assert_eq!(all.len(), usize::from(END.min(ephemeral) - FIRST));
        }
        assert_eq!(candidates(77, 1024).count(), 0, "all ports are for outgoing connections");
    }

    #[test]
    fn processes_that_follow_each_other_begin_at_stretches_of_their_own() {
        let first = |pid| candidates(pid, USUAL_EPHEMERAL).next().unwrap();
        let starts: HashSet<u16> = (1000..1100).map(first).collect();
        assert_eq!(starts.len(), 100);
        assert!(starts.iter().all(|a| starts.iter().all(|b| a == b || a.abs_diff(*b) >= STRETCH)));
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let mut ports = Ports::of_process(std::process::id());
        let first = ports.free();
        if first == 0 {
            // All ports of this machine are for outgoing connections.
            return;
        }
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        assert_ne!(Ports::of_process(std::process::id()).free(), first);
    }
}
