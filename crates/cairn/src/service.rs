//! What a role tells the service manager that has started it: that it serves, that it is alive, that it ends.
//!
//! One datagram for each, to the socket that systemd names; without one nothing is told.
//!
//! Source: sd_notify(3), sd_watchdog_enabled(3).

use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that the process is alive.
    period: Option<Duration>,
}

impl ServiceManager {
    /// Whom the environment names. An address that cannot be used is told in the log and counts as none.
    pub fn of_environment() -> ServiceManager {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return ServiceManager::default() };
        let number = |key: &str| env::var(key).ok()?.parse::<u64>().ok();
        let is_other =
            number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
        let micros = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && !is_other);
        ServiceManager::at(&name, micros.map(Duration::from_micros)).unwrap_or_else(|error| {
            tracing::warn!(socket = ?name, %error, "the service manager cannot be told of anything");
            ServiceManager::default()
        })
    }

    /// The one that listens at a path, or at an abstract name behind an `@`, and takes who is silent for `watchdog` for
    /// dead.
    fn at(name: &OsStr, watchdog: Option<Duration>) -> std::io::Result<ServiceManager> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that reads nothing holds up nobody.
        socket.set_nonblocking(true)?;
        let socket = Some((socket, address));
        // Half of it, as sd_watchdog_enabled(3) says, less what a busy machine takes.
        Ok(ServiceManager { socket, period: watchdog.map(|watchdog| watchdog / 3) })
    }

    fn tell(&self, what: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(what.as_bytes(), address) {
            tracing::warn!(%error, what, "the service manager was not told");
        }
    }

    /// The role serves; `status` is for people.
    pub fn ready(&self, status: &str) {
        // One line is one assignment.
        self.tell(&format!("READY=1\nSTATUS={}", status.replace('\n', " ")));
    }

    /// The role ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Tells again and again that the process is alive, as long as `look` comes to an end: it looks at the state that all
    /// calls need. Never ends.
    pub async fn watch(&self, look: impl Fn() + Clone + Send + 'static) {
        let Some(period) = self.period else { return std::future::pending().await };
        loop {
            let look = look.clone();
            if tokio::task::spawn_blocking(look).await.is_ok() {
                self.tell("WATCHDOG=1");
            }
            tokio::time::sleep(period).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 200];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..len]).into_owned()
    }

    #[tokio::test]
    async fn a_service_manager_hears_of_a_start_of_life_and_of_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("cairn-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{abstract_name}").into(), UnixDatagram::bind_addr(&address).unwrap()),
        ];
        for (name, socket) in sockets {
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let manager = ServiceManager::at(&name, Some(Duration::from_millis(300))).unwrap();
            manager.ready("serves\nREADY=0");
            assert_eq!(next(&socket), "READY=1\nSTATUS=serves READY=0");
            let watched = tokio::time::timeout(Duration::from_millis(250), manager.watch(|| ()));
            assert!(watched.await.is_err(), "it has ended");
            assert_eq!([next(&socket), next(&socket)], ["WATCHDOG=1", "WATCHDOG=1"]);
            manager.stopping();
            while next(&socket) != "STOPPING=1" {}
            // Nobody reads any more, and nobody waits.
            (0..1000).for_each(|_| manager.stopping());
        }
    }

    #[tokio::test]
    async fn who_does_not_answer_any_more_is_not_told_to_be_alive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let manager = ServiceManager::at(path.as_os_str(), Some(Duration::from_millis(3))).unwrap();
        let stands_still = || std::thread::sleep(Duration::from_millis(500));
        let watched = tokio::time::timeout(Duration::from_millis(100), manager.watch(stands_still));
        assert!(watched.await.is_err());
        assert!(socket.recv(&mut [0; 20]).is_err(), "nothing was told");
        // Nobody listens any more, which is no reason to end.
        drop(socket);
        manager.ready("");
    }
}
