//! Block tokens and the protection of data, as a NameNode and DataNodes of Cairn and its client have them.

use crate::cluster::*;
use cairn_client::{ChecksumMode, ClientConfig, CreateOptions, FileSystem};
use cairn_datanode::DataNodeConfig;
use cairn_namenode::NameNodeConfig;
use cairn_namenode::block_tokens::BlockTokenConfig;
use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_security::Protection;
use cairn_security::block_token::Form;
use cairn_security::transfer::TransferPolicy;
use cairn_wire::proto::hdfs::{BlockOpResponseProto, OpReadBlockProto};
use cairn_wire::transfer::Op;
use std::time::Duration;

const LIFE: Duration = Duration::from_secs(2);

fn config(form: Form) -> BlockTokenConfig {
    BlockTokenConfig { key_interval: Duration::from_secs(1), lifetime: LIFE, form }
}

/// Tokens end in the middle of everything, and keys change.
#[tokio::test(flavor = "multi_thread")]
async fn long_reads_and_writes_outlive_their_tokens() {
    for form in [Form::Legacy, Form::Protobuf] {
        let tokens = config(form);
        let cluster =
            Cluster::start_tuned(5, |name, _| name.block_tokens = Some(tokens.clone()), |_| {})
                .await;
        let fs = &cluster.fs;
        fs.enable_policy("XOR-2-1-1024k").await.unwrap();
        let data = bytes(7, 9 << 20);
        let copied = CreateOptions { block_size: Some(2 << 20), ..CreateOptions::default() };
        for (path, options) in
            [("/copied", copied), ("/striped", striped("XOR-2-1-1024k", 2 << 20))]
        {
            let mut writer = fs.create(path, &options).await.unwrap();
            // A unit's token is shown with its first byte: each of the second group has one by then.
            let (first, second) = data.split_at(6 << 20);
            writer.write(first).await.unwrap();
            tokio::time::sleep(LIFE + LIFE / 4).await;
            writer.write(second).await.unwrap();
            writer.close().await.unwrap();
            let mut reader = fs.open(path).await.unwrap();
            let mut begin = vec![0; 1000];
            assert_eq!(reader.read_at(0, &mut begin).await.unwrap(), 1000);
            tokio::time::sleep(LIFE + LIFE / 4).await;
            let mut all = vec![0; data.len()];
            assert_eq!(reader.read_at(0, &mut all).await.unwrap(), data.len());
            assert!(all == data, "{path}");
            tokio::time::sleep(LIFE + LIFE / 4).await;
            let mut read = Vec::new();
            while let Some(chunk) = reader.next_chunk().await.unwrap() {
                read.extend_from_slice(&chunk);
            }
            assert!(read == data, "{path}");
        }
    }
}

/// Copied, striped and read again, with sums, over connections that are protected like that.
async fn uses(cluster: &Cluster) {
    let fs = &cluster.fs;
    fs.enable_policy("RS-3-2-1024k").await.unwrap();
    let data = bytes(3, 7 << 20);
    let copied = CreateOptions { block_size: Some(3 << 20), ..CreateOptions::default() };
    for (path, options) in [("/copied", copied), ("/striped", striped("RS-3-2-1024k", 2 << 20))] {
        put(fs, path, &data, &options).await.unwrap();
        assert_same(&get(fs, path).await.unwrap(), &data, path);
        let reader = fs.open(path).await.unwrap();
        let mut part = vec![0; 100_000];
        assert_eq!(reader.read_at(3_100_000, &mut part).await.unwrap(), part.len());
        assert_same(&part, &data[3_100_000..3_200_000], path);
        fs.checksum(path, ChecksumMode::CompositeCrc).await.unwrap();
    }
}

/// What a DataNode says to who begins an operation without more ado.
async fn plainly(cluster: &Cluster) -> Option<i32> {
    let addr = cluster.datanodes[0].xfer_addr();
    let mut stream = TransferStream::connect(addr, &TransferOptions::default()).await.unwrap();
    let request = OpReadBlockProto::default();
    stream.writer.send_op(Op::ReadBlock, &request).await.unwrap();
    let answer = stream.reader.read_message::<BlockOpResponseProto>("answer").await;
    answer.ok().map(|answer| answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn data_are_protected_as_is_asked_for() {
    use Protection::{Authentication, Integrity, Privacy};
    for (protections, has_aes) in [
        (vec![Authentication], true),
        (vec![Integrity], true),
        (vec![Privacy], true),
        (vec![Privacy], false),
    ] {
        let policy = TransferPolicy {
            protections: protections.clone(),
            by_key: false,
            has_aes,
            key_len: 32,
        };
        let cluster = Cluster::start_tuned(
            5,
            |_, data| data.data_transfer = Some(policy.clone()),
            |client| client.data_protections = protections.clone(),
        )
        .await;
        uses(&cluster).await;
        assert_eq!(plainly(&cluster).await, None);
        // Who wants less, or nothing, gets nothing.
        let less = ClientConfig { data_protections: vec![], ..cluster.fs.config().clone() };
        let other = FileSystem::connect(less).await.unwrap();
        let mut reader = other.open("/copied").await.unwrap();
        assert!(reader.next_chunk().await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_data_are_encrypted_where_the_namenode_says_so() {
    for has_aes in [true, false] {
        let policy = TransferPolicy {
            protections: vec![Protection::Privacy],
            by_key: true,
            has_aes,
            key_len: 16,
        };
        let tune = |name: &mut NameNodeConfig, data: &mut DataNodeConfig| {
            name.encrypts_data = true;
            let (key_interval, lifetime) = (LIFE / 2, 5 * LIFE);
            name.block_tokens =
                Some(BlockTokenConfig { key_interval, lifetime, form: Form::Legacy });
            data.data_transfer = Some(policy.clone());
        };
        let cluster = Cluster::start_tuned(5, tune, |_| {}).await;
        uses(&cluster).await;
        assert_eq!(plainly(&cluster).await, None);
        // Other keys by now: the DataNodes know the client's no more.
        tokio::time::sleep(7 * LIFE).await;
        let data = bytes(3, 7 << 20);
        assert_same(&get(&cluster.fs, "/striped").await.unwrap(), &data, "by another key");
    }
}
