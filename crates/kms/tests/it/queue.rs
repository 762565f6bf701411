//! Keys that are kept ready.

use crate::server::{Answer, Asked, Server, text};
use cairn_kms::{EncryptedKeys, KmsError, QueueOptions};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server whose keys have numbers for versions, each after `wait`.
async fn counting(wait: Duration) -> Server {
    let made = Arc::new(AtomicUsize::new(0));
    Server::start(move |asked| {
        if asked.target.contains("/nothing/") {
            return match asked.target.contains("_metadata") {
                true => text(200, "{}"),
                false => text(500, ""),
            };
        }
        let first = made.fetch_add(count(&asked), Ordering::Relaxed);
        let eek = |number| {
            format!(
                r#"{{"versionName":"k@{number}","iv":"AA","encryptedKeyVersion":{{"material":"AA"}}}}"#
            )
        };
        let keys: Vec<String> = (first..first + count(&asked)).map(eek).collect();
        let answer = format!("[{}]", keys.join(","));
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            Some((200_u16, answer))
        }) as Answer
    })
    .await
}

fn count(asked: &Asked) -> usize {
    let (_, rest) = asked.target.split_once("num_keys=").unwrap();
    rest.split('&').next().unwrap().parse().unwrap()
}

fn counts(server: &Server) -> Vec<usize> {
    server.asked().iter().map(count).collect()
}

fn keys(server: &Server, options: QueueOptions) -> EncryptedKeys {
    EncryptedKeys::new(Arc::new(server.kms()), options)
}

fn small() -> QueueOptions {
    QueueOptions { size: 10, low_watermark: 0.3, expiry: Duration::from_secs(60) }
}

async fn until(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen in five seconds");
}

#[tokio::test]
async fn the_first_ask_gets_one_and_more_come_behind_it() {
    let server = counting(Duration::ZERO).await;
    let keys = keys(&server, small());
    let mut seen = HashSet::new();
    seen.insert(keys.next("k").await.unwrap().key_version);
    until(|| keys.ready("k") == 10).await;
    assert_eq!(counts(&server), [1, 10]);
    for _ in 0..7 {
        seen.insert(keys.next("k").await.unwrap().key_version);
    }
    assert_eq!((counts(&server).len(), keys.ready("k")), (2, 3), "the low watermark");
    seen.insert(keys.next("k").await.unwrap().key_version);
    until(|| keys.ready("k") == 10).await;
    assert_eq!(counts(&server), [1, 10, 8]);
    assert_eq!(seen.len(), 9, "each is given out once");
}

#[tokio::test]
async fn many_asks_at_once_start_one_task_and_most_wait_for_it() {
    let server = counting(Duration::from_millis(300)).await;
    let keys = Arc::new(keys(&server, QueueOptions { size: 100, ..small() }));
    let mut asks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let keys = Arc::clone(&keys);
        asks.spawn(async move { keys.next("k").await.unwrap().key_version });
    }
    let seen: HashSet<String> = asks.join_all().await.into_iter().collect();
    assert_eq!(seen.len(), 20);
    until(|| keys.ready("k") > 0).await;
    assert_eq!(counts(&server).iter().filter(|count| **count > 1).count(), 1);
    let for_one = counts(&server).iter().filter(|count| **count == 1).count();
    assert!(for_one < 20, "each has asked for itself");
}

#[tokio::test]
async fn warming_up_leaves_nothing_for_the_first_ask_to_wait_for() {
    let server = counting(Duration::ZERO).await;
    let keys = keys(&server, small());
    keys.warm_up(&["a".to_string(), "b".to_string()]).await.unwrap();
    assert_eq!((keys.ready("a"), keys.ready("b")), (3, 3));
    keys.warm_up(&["a".to_string()]).await.unwrap();
    assert_eq!(counts(&server), [3, 3]);
    let names = ["nothing".to_string(), "c".to_string()];
    let missing = keys.warm_up(&names).await.unwrap_err();
    assert_eq!(missing, KmsError::NotFound { name: "nothing".to_string() });
    assert_eq!(keys.ready("c"), 3);
}

#[tokio::test]
async fn what_was_asked_for_before_a_drain_is_not_kept() {
    let server = counting(Duration::from_millis(100)).await;
    let keys = keys(&server, small());
    keys.next("k").await.unwrap();
    until(|| counts(&server).len() == 2).await;
    keys.drain("k");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(keys.ready("k"), 0);
    let next = keys.next("k").await.unwrap();
    assert_eq!(next.key_version, "k@11", "those of the first filling were thrown away");
    until(|| keys.ready("k") == 10).await;
    keys.drain("k");
    assert_eq!(keys.ready("k"), 0);
    keys.drain("never asked for");
}

#[tokio::test]
async fn what_nobody_wants_for_long_goes() {
    let server = counting(Duration::ZERO).await;
    let keys = keys(&server, QueueOptions { expiry: Duration::from_millis(100), ..small() });
    keys.next("k").await.unwrap();
    until(|| keys.ready("k") == 10).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(keys.next("k").await.unwrap().key_version, "k@11");
    until(|| keys.ready("k") == 10).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    keys.next("other").await.unwrap();
    assert_eq!(keys.ready("k"), 0);
}

#[tokio::test]
async fn a_failure_is_told_and_the_next_ask_tries_again() {
    let server = counting(Duration::ZERO).await;
    let keys = keys(&server, small());
    for _ in 0..2 {
        let missing = keys.next("nothing").await.unwrap_err();
        assert_eq!(missing, KmsError::NotFound { name: "nothing".to_string() });
    }
}
