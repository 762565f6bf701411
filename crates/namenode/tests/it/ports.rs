//! Ports for servers that a test stops and starts again.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports from which connections that go out are given none: one of theirs may be taken while a server is down.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A free address, another one each time. Tests that run in other processes begin elsewhere.
pub fn free_addr() -> String {
    let begin = (std::process::id() % 1000) as u16 * 20;
    loop {
        let port = FIRST + begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("127.0.0.1:{port}");
        }
    }
}
