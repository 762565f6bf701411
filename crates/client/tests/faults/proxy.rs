//! Stands in the place of a DataNode, passes everything on to it, and counts what it sends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes connections on to `to`, and adds the bytes that come back to `sent`.
pub fn pass_on(listener: TcpListener, to: SocketAddr, sent: Arc<AtomicU64>) {
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, to, sent.clone()));
        }
    });
}

async fn serve(client: TcpStream, to: SocketAddr, sent: Arc<AtomicU64>) {
    let Ok(node) = TcpStream::connect(to).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_node, mut to_node) = node.into_split();
    tokio::spawn(async move {
        // Either side may close at any time.
        let _ = tokio::io::copy(&mut from_client, &mut to_node).await;
    });
    let mut buf = vec![0; 16 << 10];
    while let Ok(count) = from_node.read(&mut buf).await {
        if count == 0 || to_client.write_all(&buf[..count]).await.is_err() {
            return;
        }
        sent.fetch_add(count as u64, Ordering::Relaxed);
    }
}
