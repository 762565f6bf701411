//! Clients that send more than the server has memory for.

use super::*;

const LONG: usize = 1 << 20;

/// Room for four long requests, of which one place is kept for short ones.
fn options() -> RpcServerOptions {
    let max_request_memory = 4 * (LONG as u64 + 1024);
    RpcServerOptions { max_request_memory, ..RpcServerOptions::default() }
}

fn running(server: &Server) -> usize {
    server.service.running.load(Ordering::SeqCst)
}

/// Waits until so many calls have begun.
async fn until_begun(server: &Server, count: usize) {
    let begun = async {
        while running(server) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), begun).await.expect("calls begin");
}

/// Sends a long call on each of some connections, which the server need not read.
async fn send_long(server: &Server, count: usize) -> Vec<tokio::task::JoinHandle<Raw>> {
    let mut senders = Vec::new();
    for _ in 0..count {
        let mut raw = Raw::hello(server).await;
        senders.push(tokio::spawn(async move {
            raw.send(&call(1, "wait", &"x".repeat(LONG))).await;
            raw
        }));
    }
    senders
}

#[tokio::test(flavor = "multi_thread")]
async fn long_requests_wait_for_memory_and_short_ones_do_not() {
    let server = start(options()).await;
    let senders = send_long(&server, 12).await;
    until_begun(&server, 3).await;
    for id in 0..50 {
        let mut raw = Raw::hello(&server).await;
        raw.send(&call(id, "echo", "/short")).await;
        assert_eq!(echoed(raw.answer().await), "alice/-/short");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(running(&server), 3, "no more than there is memory for");
    // Each that ends lets another one in.
    for ended in 1..=12 {
        server.service.release.notify_one();
        until_begun(&server, (ended + 3).min(12)).await;
    }
    for sender in senders {
        assert_eq!(sender.await.unwrap().answer().await.0.status(), Status::Success);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_request_is_taken_however_little_memory_there_is() {
    let options = RpcServerOptions { max_request_memory: 0, ..RpcServerOptions::default() };
    let server = start(options).await;
    let senders = send_long(&server, 3).await;
    for ended in 1..=3 {
        until_begun(&server, ended).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(running(&server), ended, "one after the other");
        server.service.release.notify_one();
    }
    for sender in senders {
        assert_eq!(sender.await.unwrap().answer().await.0.status(), Status::Success);
    }
    assert_lives(&server).await;
}

/// Short ones as well when they are many.
#[tokio::test(flavor = "multi_thread")]
async fn many_short_requests_wait_too() {
    let options = RpcServerOptions { max_request_memory: 256 << 10, ..RpcServerOptions::default() };
    let server = start(options).await;
    let mut connections = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::hello(&server).await;
        for id in 0..10 {
            raw.send(&call(id, "wait", &"x".repeat(8 << 10))).await;
        }
        connections.push(raw);
    }
    until_begun(&server, 7).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Seven fill the memory, and each connection may have one more.
    assert!((7..=15).contains(&running(&server)), "{}", running(&server));
    let release = async {
        loop {
            server.service.release.notify_one();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let answers = async {
        for raw in &mut connections {
            for _ in 0..10 {
                raw.answer().await;
            }
        }
    };
    tokio::select! { () = release => {}, () = answers => {} }
    assert_eq!(running(&server), 80);
}

/// Who begins a long request and does not go on keeps others waiting for a while only.
#[tokio::test(flavor = "multi_thread")]
async fn memory_of_a_request_that_does_not_come_is_given_back() {
    let idle_timeout = Duration::from_millis(300);
    let options = RpcServerOptions { idle_timeout, ..options() };
    let server = start(options).await;
    let mut silent = Vec::new();
    let long = call(1, "wait", &"x".repeat(LONG));
    for _ in 0..3 {
        let mut raw = Raw::hello(&server).await;
        raw.send(&long[..LONG / 2]).await;
        silent.push(raw);
    }
    // One byte now and then is not enough while others wait.
    let dripping = async {
        let Raw(socket) = &mut silent[0];
        for byte in &long[LONG / 2..] {
            if socket.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let senders = send_long(&server, 3).await;
    timeout(Duration::from_secs(10), dripping).await.expect("the connection is closed");
    until_begun(&server, 3).await;
    server.service.release.notify_waiters();
    for sender in senders {
        assert_eq!(sender.await.unwrap().answer().await.0.status(), Status::Success);
    }
}
