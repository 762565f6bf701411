//! Hadoop's image of a namespace that serves, by HTTP.

use std::io::Cursor;

use cairn_fsimage::{Counters, Image, Tree, sections};
use cairn_namenode::RunningNameNode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{CLIENT, Client, SUPERUSER, start};

/// Head and body of an answer.
async fn get(node: &RunningNameNode, path: &str) -> (String, Vec<u8>) {
    let mut stream = tokio::net::TcpStream::connect(node.http_addr.unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).unwrap().to_lowercase(), body)
}

#[tokio::test]
async fn the_latest_image_is_made_when_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let latest = "/imagetransfer?getimage=1&txid=latest";
    let mut counts = Vec::new();
    for path in ["/a/b", "/c"] {
        client.mkdirs(path).await;
        let (head, body) = get(&node, latest).await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let mut image = Image::open(Cursor::new(&body[..])).unwrap();
        let counters = Counters::read(image.required(sections::NS_INFO).unwrap()).unwrap();
        let name = format!("x-image-edits-name: fsimage_{:019}\r\n", counters.transaction);
        assert!(head.contains(&name) && head.contains("x-md5-digest: "), "{head}");
        counts.push(Tree::read(image.required(sections::INODE).unwrap()).unwrap().count);
    }
    assert_eq!(counts, [3, 4]);
    let left = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name == "fsimage.unnamed"));
    for other in
        ["/imagetransfer?getimage=1&txid=5", "/imagetransfer?getedit=1&startTxId=1&endTxId=2"]
    {
        let (head, _) = get(&node, other).await;
        assert!(head.starts_with("http/1.1 410"), "{head}");
    }
    node.shutdown().await;
}
