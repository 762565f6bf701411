//! Storage policies as the NameNode's own settings have them.

use crate::cluster::*;
use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_stripe::StoragePolicy;
use cairn_wire::proto::hdfs as pb;

#[tokio::test(flavor = "multi_thread")]
async fn the_default_policy_is_told_and_places_blocks_of_files_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        NameNodeConfig { default_storage_policy: StoragePolicy::COLD, ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    // It has a disk, and no archive.
    let _datanode = FakeDataNode::start(&node, 0, &[]).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let request = pb::GetStoragePolicyRequestProto { path: "/f".to_string() };
    let told: pb::GetStoragePolicyResponseProto =
        client.call("getStoragePolicy", &request).await.unwrap();
    assert_eq!(told.storage_policy.name, "COLD");
    assert_eq!(client.file_info("/f").await.unwrap().storage_policy(), 0);
    let request = pb::GetServerDefaultsRequestProto {};
    let told: pb::GetServerDefaultsResponseProto =
        client.call("getServerDefaults", &request).await.unwrap();
    assert_eq!(told.server_defaults.policy_id, Some(2));
    let (_, text) = client.refused("addBlock", &add_block_request("/f", "writer", None)).await;
    assert!(text.contains("could only be written to 0 of the 1 minReplication nodes"), "{text}");
    let policy_name = "HOT".to_string();
    let request = pb::SetStoragePolicyRequestProto { src: "/f".to_string(), policy_name };
    let _: pb::SetStoragePolicyResponseProto =
        client.call("setStoragePolicy", &request).await.unwrap();
    assert_eq!(client.add_block("/f", "writer", None).await.locs.len(), 1);
    node.shutdown().await;
}
