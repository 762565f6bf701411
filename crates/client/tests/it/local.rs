//! Reads on the machine of the DataNodes.

use crate::cluster::*;
use cairn_client::{ClientConfig, CreateOptions, FaultKind, ScrubOptions};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const LEN: usize = 2_500_000;

/// DataNodes whose sockets are in `folder`, and a client that looks for them there.
async fn start(folder: &Path, count: usize, change: impl FnOnce(&mut ClientConfig)) -> Cluster {
    let path = Some(format!("{}/_PORT", folder.display()));
    let sockets = path.clone();
    let tune = move |_: &mut _, config: &mut cairn_datanode::DataNodeConfig| {
        config.domain_socket = sockets.clone();
        config.check_domain_socket = false;
        config.short_circuit = true;
    };
    Cluster::start_tuned(count, tune, |config| {
        config.domain_socket = path;
        config.short_circuit = true;
        config.socket_timeout = Duration::from_secs(2);
        change(config);
    })
    .await
}

async fn write(cluster: &Cluster, path: &str, options: CreateOptions) -> Vec<u8> {
    let bytes: Vec<u8> = (0..LEN).map(|i| (i * 31 + i / 1000) as u8).collect();
    let mut writer = cluster.fs.create(path, &options).await.unwrap();
    writer.write(&bytes).await.unwrap();
    writer.close().await.unwrap();
    bytes
}

async fn read_all(reader: &mut cairn_client::FileReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

fn replicated(copies: u16) -> CreateOptions {
    CreateOptions { replication: Some(copies), should_replicate: true, ..CreateOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_passed_is_read_without_its_datanode() {
    let folder = TempDir::new().unwrap();
    let mut cluster = start(folder.path(), 1, |_| {}).await;
    let bytes = write(&cluster, "/file", replicated(1)).await;
    let mut reader = cluster.fs.open("/file").await.unwrap();
    let mut part = vec![0; 1000];
    assert_eq!(reader.read_at(700, &mut part).await.unwrap(), part.len());
    assert_eq!(part, bytes[700..1700]);
    cluster.datanodes.remove(0).shutdown().await;
    let mut back = vec![0; LEN];
    assert_eq!(reader.read_at(0, &mut back).await.unwrap(), LEN);
    assert_eq!(back, bytes);
    assert_eq!(read_all(&mut reader).await, bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_range_is_read_wherever_chunks_end() {
    let folder = TempDir::new().unwrap();
    let mut cluster = start(folder.path(), 1, |_| {}).await;
    let bytes = write(&cluster, "/file", replicated(1)).await;
    let reader = cluster.fs.open("/file").await.unwrap();
    reader.read_at(0, &mut [0]).await.unwrap();
    cluster.datanodes.remove(0).shutdown().await;
    let edges = [0, 1, 511, 512, 513, 1024, 70_001, LEN / 512 * 512, LEN - 1, LEN];
    for from in edges {
        for to in edges.into_iter().filter(|to| from < *to) {
            let mut part = vec![0; to - from];
            assert_eq!(reader.read_at(from as u64, &mut part).await.unwrap(), part.len());
            assert_same(&part, &bytes[from..to], &format!("{from}..{to}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn units_of_a_group_are_read_through_descriptors() {
    let folder = TempDir::new().unwrap();
    let mut cluster = start(folder.path(), 9, |_| {}).await;
    let options = CreateOptions { policy: Some("RS-6-3-1024k".into()), ..CreateOptions::default() };
    let bytes = write(&cluster, "/ec", options).await;
    let mut reader = cluster.fs.open("/ec").await.unwrap();
    assert_eq!(read_all(&mut reader).await, bytes);
    for node in cluster.datanodes.drain(..) {
        node.shutdown().await;
    }
    let mut part = vec![0; 100_000];
    assert_eq!(reader.read_at(1_000_000, &mut part).await.unwrap(), part.len());
    assert_eq!(part, bytes[1_000_000..1_100_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_noticed_and_another_replica_read() {
    let folder = TempDir::new().unwrap();
    let cluster = start(folder.path(), 2, |_| {}).await;
    let bytes = write(&cluster, "/file", replicated(2)).await;
    cluster.corrupt_one();
    for _ in 0..4 {
        let mut reader = cluster.fs.open("/file").await.unwrap();
        assert_eq!(read_all(&mut reader).await, bytes);
        let mut middle = vec![0; 1000];
        reader.read_at(LEN as u64 / 2 - 500, &mut middle).await.unwrap();
        assert_eq!(middle, bytes[LEN / 2 - 500..LEN / 2 + 500]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrub_reads_what_each_datanode_has_now() {
    let folder = TempDir::new().unwrap();
    let cluster = start(folder.path(), 2, |_| {}).await;
    let bytes = write(&cluster, "/file", replicated(2)).await;
    // A file is closed when the NameNode knows one of them.
    while first_block(&cluster.fs, "/file").await.locations.len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut part = vec![0; 1000];
    for _ in 0..20 {
        // The order of the replicas is drawn anew for each.
        let reader = cluster.fs.open("/file").await.unwrap();
        assert_eq!(reader.read_at(0, &mut part).await.unwrap(), part.len());
    }
    let files = cluster.block_files(first_block(&cluster.fs, "/file").await.block.id.0);
    for (number, (data, _)) in files.iter().enumerate() {
        flip(data, 8_000_000);
        let scrub = cluster.fs.scrub("/file", &ScrubOptions::default(), &|_| ()).await.unwrap();
        let bad =
            scrub.faults.iter().filter(|fault| matches!(fault.kind, FaultKind::BadChunk { .. }));
        assert_eq!(bad.count(), 1, "replica {number}: {:?}", scrub.faults);
        flip(data, 8_000_000);
    }
    assert_eq!(part, bytes[..1000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_socket_or_descriptors_reads_go_through_the_datanode() {
    let folder = TempDir::new().unwrap();
    let absent = |config: &mut ClientConfig| config.domain_socket = Some("/absent/_PORT".into());
    let traffic = |config: &mut ClientConfig| {
        (config.short_circuit, config.domain_socket_traffic) = (false, true);
    };
    for change in [absent as fn(&mut ClientConfig), traffic] {
        let cluster = start(folder.path(), 1, change).await;
        let bytes = write(&cluster, "/file", replicated(1)).await;
        let mut reader = cluster.fs.open("/file").await.unwrap();
        assert_eq!(read_all(&mut reader).await, bytes);
    }
}
