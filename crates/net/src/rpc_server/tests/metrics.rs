//! What is counted of real connections.

use super::*;

/// How many calls of a method there were, and how many of them failed.
pub fn counted(metrics: &RpcMetrics, method: &str) -> (u64, u64) {
    let methods = metrics.methods();
    let of = methods.iter().find(|row| row.method == method).expect("a row");
    (of.times.calls(), of.times.errors)
}

#[tokio::test]
async fn every_call_is_counted_once_however_it_ends() {
    let server = start(RpcServerOptions::default()).await;
    let metrics = &*server.metrics;
    let mut raw = Raw::hello(&server).await;
    for (call_id, (method, src)) in [
        ("echo", "/a"),
        ("now", "/a"),
        ("echo", "/b"),
        ("fail", "/a"),
        ("panic", "/a"),
        ("now", "/panic"),
    ]
    .into_iter()
    .enumerate()
    {
        raw.send(&call(call_id as i32, method, src)).await;
        raw.answer().await;
    }
    raw.send(&call(10, "wait", "/a")).await;
    raw.send(&call(11, "echo", "/c")).await;
    raw.answer().await;
    assert_eq!((metrics.running(), counted(metrics, "wait")), (1, (0, 0)));
    tokio::time::sleep(Duration::from_millis(20)).await;
    server.service.release.notify_one();
    raw.answer().await;
    assert_eq!((metrics.running(), counted(metrics, "wait")), (0, (1, 0)));
    let waited = metrics.methods().into_iter().find(|row| row.method == "wait").expect("a row");
    assert!(waited.times.durations.total >= Duration::from_millis(20), "{waited:?}");
    assert_eq!(waited.times.durations.classes[..2], [0, 0], "{waited:?}");
    assert_eq!(counted(metrics, "echo"), (3, 0));
    assert_eq!(counted(metrics, "now"), (2, 1));
    assert_eq!(counted(metrics, "fail"), (1, 1));
    assert_eq!(counted(metrics, "panic"), (1, 1));
    assert_eq!(counted(metrics, "other"), (0, 0));
    assert_eq!(metrics.successes(PROTOCOL, "now"), 1);
}

#[tokio::test]
async fn calls_that_take_much_longer_than_others_are_noted() {
    let server = start(RpcServerOptions::default()).await;
    let metrics = &*server.metrics;
    metrics.log_slow_calls(true);
    // So that no other is slow because of what else the machine does.
    metrics.set_slow_threshold(Duration::from_millis(400));
    let mut raw = Raw::hello(&server).await;
    for call_id in 0..1100 {
        raw.send(&call(call_id, "now", "/a")).await;
        raw.answer().await;
    }
    let mut wait = async |pause| {
        raw.send(&call(2000, "wait", "/a")).await;
        tokio::time::sleep(pause).await;
        server.service.release.notify_one();
        raw.answer().await;
        metrics.slow_calls()
    };
    assert_eq!(wait(Duration::from_millis(500)).await, 1);
    metrics.set_slow_threshold(Duration::from_secs(3600));
    assert_eq!(wait(Duration::from_millis(500)).await, 1, "not above the threshold");
}

#[tokio::test]
async fn names_that_peers_make_up_share_one_row() {
    let server = start(RpcServerOptions::default()).await;
    let rows = server.metrics.methods().len();
    let mut raw = Raw::hello(&server).await;
    for call_id in 0..50 {
        let call = match call_id % 2 {
            0 => call(call_id, &format!("made{call_id}"), "/"),
            _ => call_of(header(call_id), &format!("org.example.Made{call_id}"), 1, "echo", "/"),
        };
        raw.send(&call).await;
        assert_eq!(raw.answer().await.0.status(), Status::Error);
    }
    assert_eq!(counted(&server.metrics, "other"), (50, 50));
    assert_eq!(counted(&server.metrics, "echo"), (0, 0));
    assert_eq!(server.metrics.methods().len(), rows);
}

#[tokio::test]
async fn bytes_are_counted_as_they_go_over_the_wire() {
    let server = start(RpcServerOptions::default()).await;
    let mut raw = Raw::connect(&server).await;
    let asked = [hello("alice", None), call(1, "echo", "/first"), call(2, "big", "/")].concat();
    raw.send(&asked).await;
    raw.0.shutdown().await.expect("the server reads on");
    let answers = raw.rest().await.len() as u64;
    assert!(answers > 3 << 20);
    assert_eq!((server.metrics.received(), server.metrics.sent()), (asked.len() as u64, answers));
}

#[tokio::test]
async fn connections_are_counted_by_what_becomes_of_them() {
    let server = start(RpcServerOptions { max_connections: 1, ..Default::default() }).await;
    let metrics = &*server.metrics;
    let mut raw = Raw::hello(&server).await;
    raw.send(&call(1, "echo", "/")).await;
    raw.answer().await;
    assert_eq!((metrics.open_connections(), metrics.authorized()), (1, 1));
    assert_eq!(Raw::connect(&server).await.rest().await, b"");
    assert_eq!(metrics.dropped_connections(), 1);
    drop(raw);
    are_open(metrics, 0).await;
    let mut raw = Raw::connect(&server).await;
    raw.send(&hello("bob", Some("nobody"))).await;
    raw.rest().await;
    assert_eq!((metrics.authorized(), metrics.unauthorized()), (1, 1));
}

#[tokio::test]
async fn servers_that_count_in_one_place_count_together() {
    let first = start(RpcServerOptions::default()).await;
    let second = start_counting(RpcServerOptions::default(), first.metrics.clone()).await;
    let mut clients = Vec::new();
    for server in [&first, &second, &second] {
        let mut raw = Raw::hello(server).await;
        raw.send(&call(1, "echo", "/")).await;
        raw.answer().await;
        clients.push(raw);
    }
    are_open(&first.metrics, 3).await;
    assert_eq!(counted(&first.metrics, "echo"), (3, 0));
    clients.pop();
    are_open(&first.metrics, 2).await;
    second.stop.send(()).expect("it serves");
    are_open(&first.metrics, 1).await;
}

async fn are_open(metrics: &RpcMetrics, count: usize) {
    let so_many = async {
        while metrics.open_connections() != count {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), so_many).await.expect("so many open connections");
}
