//! Servers that refuse, fail, hang, close, or send too much.

use crate::server::{Answer, Server, hasty, kms, pair, text};
use cairn_kms::{KmsError, KmsOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn names() -> Answer {
    text(200, "[]")
}

fn hang() -> Answer {
    Box::pin(std::future::pending())
}

fn close() -> Answer {
    Box::pin(async { None })
}

#[tokio::test]
async fn a_refusal_without_a_word_is_told_with_its_host_and_status() {
    let refuse = |_| text(401, "");
    let (one, _two) = pair(refuse, refuse).await;
    let authority = format!("127.0.0.1:{}", one.port);
    let error = kms(&authority, hasty()).names().await.unwrap_err();
    assert_eq!(error.to_string(), format!("KMS {authority}: HTTP status 401"));
}

#[tokio::test]
async fn a_refusal_is_believed_and_has_its_class() {
    let refuse = |_| {
        text(
            403,
            r#"{"RemoteException":{"message":"User:alice not allowed","exception":"AuthorizationException","javaClassName":"org.apache.hadoop.security.authorize.AuthorizationException"}}"#,
        )
    };
    let (one, two) = pair(refuse, refuse).await;
    let error = kms(&format!("127.0.0.1;127.0.0.2:{}", one.port), hasty()).names().await;
    let class = "org.apache.hadoop.security.authorize.AuthorizationException".to_string();
    let message = "User:alice not allowed".to_string();
    assert_eq!(error.unwrap_err(), KmsError::Refused { class, message });
    assert_eq!(one.asked().len() + two.asked().len(), 1);
}

#[tokio::test]
async fn what_is_no_json_is_told_as_it_came() {
    let server = Server::start(|_| text(404, "<html>not here</html>")).await;
    let error = server.kms().names().await.unwrap_err();
    assert!(error.to_string().contains("status 404: <html>not here</html>"), "{error}");
}

#[tokio::test]
async fn the_next_server_answers_for_one_that_fails() {
    let failures: [fn() -> Answer; 6] = [
        close,
        hang,
        || text(500, ""),
        // Something else has its port, or stands before it.
        || text(404, "<html>not here</html>"),
        || text(401, ""),
        || text(200, "<html>maintenance</html>"),
    ];
    for fail in failures {
        let (bad, good) = pair(move |_| fail(), |_| names()).await;
        let kms = kms(&format!("127.0.0.1;127.0.0.2:{}", bad.port), hasty());
        for _ in 0..4 {
            assert_eq!(kms.names().await.unwrap(), Vec::<String>::new());
        }
        assert_eq!((bad.asked().len(), good.asked().len()), (2, 4));
    }
}

#[tokio::test]
async fn servers_are_asked_in_turn() {
    let (one, two) = pair(|_| names(), |_| names()).await;
    let kms = kms(&format!("127.0.0.1;127.0.0.2:{}", one.port), hasty());
    for _ in 0..6 {
        kms.names().await.unwrap();
    }
    assert_eq!((one.asked().len(), two.asked().len()), (3, 3));
    // Each over one connection.
    assert_eq!(one.connections.load(Ordering::Relaxed), 1);
    assert_eq!(two.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        1 => close(),
        _ => names(),
    })
    .await;
    let options = KmsOptions { failover_retries: Some(0), ..hasty() };
    let kms = kms(&format!("127.0.0.1:{}", server.port), options);
    for _ in 0..3 {
        kms.names().await.unwrap();
    }
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_one_after_the_other_share_a_connection() {
    let server = Server::start(|_| names()).await;
    let options = KmsOptions { timeout: Duration::ZERO, ..KmsOptions::default() };
    let kms = kms(&format!("127.0.0.1:{}", server.port), options);
    for _ in 0..200 {
        kms.names().await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_may_have_been_heeded_is_not_asked_twice() {
    let server = Server::start(|_| close()).await;
    let kms = kms(&format!("127.0.0.1:{}", server.port), hasty());
    assert!(matches!(kms.create_key("k", 128).await, Err(KmsError::Unreachable { .. })));
    assert_eq!(server.asked().len(), 1);
    assert!(matches!(kms.names().await, Err(KmsError::Unreachable { .. })));
    assert_eq!(server.asked().len(), 3, "once more, as Hadoop does");
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_end_in_time() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let nobody = kms(&format!("127.0.0.1:{port}"), hasty()).names().await.unwrap_err();
    assert!(nobody.to_string().contains("cannot connect"), "{nobody}");

    let server = Server::start(|_| hang()).await;
    let options = KmsOptions { failover_retries: Some(0), ..hasty() };
    let began = Instant::now();
    let slow = kms(&format!("127.0.0.1:{}", server.port), options).names().await.unwrap_err();
    assert!(slow.to_string().contains("no answer for 300ms"), "{slow}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _ = stream.write_all(head).await;
                let piece = [b"10000\r\n", &[b' '; 0x10000][..], b"\r\n"].concat();
                while stream.write_all(&piece).await.is_ok() {}
            });
        }
    });
    let options = KmsOptions { failover_retries: Some(0), ..KmsOptions::default() };
    let error = kms(&format!("127.0.0.1:{port}"), options).names().await.unwrap_err();
    assert!(error.to_string().contains("length limit exceeded"), "{error}");
}
