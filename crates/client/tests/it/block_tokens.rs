//! Block tokens, as a NameNode and DataNodes of Cairn and its client have them.

use crate::cluster::*;
use cairn_client::CreateOptions;
use cairn_namenode::block_tokens::BlockTokenConfig;
use cairn_security::block_token::Form;
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
