//! Congestion control of connections within a machine.
//!
//! BBR paces what it sends, with a timer for each connection, so as not to fill the queues of a network. Within a machine
//! there are none: the timers only take processor time, up to half of what a stream needs. Where BBR is what the system
//! gives to all connections, those to the machine itself get the control that every Linux has; others keep the system's.

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use tokio::net::TcpListener;

/// For connections within the machine. What is lost on the way, nothing but what a full buffer drops, it sends again at
/// once.
const UNPACED: &str = "reno";

/// The system's when the first socket was made, if it is another for connections within the machine.
static SYSTEMS: OnceLock<Option<String>> = OnceLock::new();

fn paces(control: &str) -> bool {
    control.starts_with("bbr")
}

/// The system's, if it paces: what a new socket has.
fn systems(new: impl AsFd) -> Option<&'static str> {
    let ask = || tcp_congestion(new).ok().filter(|control| paces(control));
    SYSTEMS.get_or_init(ask).as_deref()
}

/// Makes a new socket one that does not pace, so far: once a connection has begun to, its timer stays.
pub(super) fn begin(new: impl AsFd) {
    if systems(&new).is_some() {
        // Where it is not allowed, the system's is good enough.
        let _ = set_tcp_congestion(new, UNPACED);
    }
}

/// Gives a connected socket the control for its peer.
pub(super) fn settle(connected: impl AsFd, is_local: bool) {
    if let Some(Some(systems)) = SYSTEMS.get() {
        let _ = set_tcp_congestion(connected, if is_local { UNPACED } else { systems });
    }
}

/// Makes a new listener one whose connections do not pace until [`super::TransferStream::from_tcp`] knows their peers.
pub fn prepare_listener(new: &TcpListener) {
    begin(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpSocket, TcpStream};

    #[test]
    fn only_what_paces_is_replaced() {
        let paced = ["bbr", "bbr2", "cubic", "reno", "dctcp"].map(paces);
        assert_eq!(paced, [true, true, false, false, false]);
    }

    /// What it is depends on the machine that the test runs on.
    #[tokio::test]
    async fn connections_within_the_machine_do_not_pace() {
        let systems = tcp_congestion(TcpSocket::new_v4().expect("a socket")).expect("its control");
        let local = if paces(&systems) { UNPACED } else { &systems };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        prepare_listener(&listener);
        let addr = listener.local_addr().expect("its address");
        let socket = TcpSocket::new_v4().expect("a socket");
        begin(&socket);
        let (accepted, connected) = tokio::join!(listener.accept(), socket.connect(addr));
        let (accepted, connected) = (accepted.expect("a client").0, connected.expect("a server"));
        let control = |stream: &TcpStream| tcp_congestion(stream).expect("its control");
        for stream in [&accepted, &connected] {
            settle(stream, true);
            assert_eq!(control(stream), local);
            settle(stream, false);
            assert_eq!(control(stream), systems);
        }
    }
}
