//! What the NameNode does when its own disks are nearly full.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, SUPERUSER, config, create_request};

/// Waits until safe mode is on, or off.
async fn wait_for_safe_mode(client: &Client, wanted: bool) {
    let request = pb::SetSafeModeRequestProto {
        action: pb::SafeModeActionProto::SafemodeGet as i32,
        checked: None,
    };
    for _ in 0..3000 {
        let answer: pb::SetSafeModeResponseProto =
            client.call("setSafeMode", &request).await.unwrap();
        if answer.result == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("safe mode stays {}", !wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_space_for_the_log_nothing_is_changed_until_there_is_some() {
    let dir = tempfile::tempdir().unwrap();
    // A folder that is not there has no space.
    let volume = dir.path().join("volume");
    let node = NameNode::start(NameNodeConfig {
        reserved_len: 1,
        checked_dirs: vec![volume.clone()],
        resource_check_interval: Duration::from_millis(10),
        ..config(&dir.path().join("name"))
    });
    let node = node.await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    wait_for_safe_mode(&client, true).await;
    let create = create_request("/f", "holder");
    let (refused, text) = client.refused("create", &create).await;
    assert_eq!(refused, class::SAFE_MODE);
    assert!(text.starts_with("Cannot create file/f. Name node is in safe mode."), "{text}");
    assert!(client.file_info("/").await.is_some(), "reads are answered");
    // Whoever turns it off has it again at once.
    let leave = pb::SetSafeModeRequestProto {
        action: pb::SafeModeActionProto::SafemodeLeave as i32,
        checked: None,
    };
    let _: pb::SetSafeModeResponseProto = client.call("setSafeMode", &leave).await.unwrap();
    wait_for_safe_mode(&client, true).await;
    std::fs::create_dir(&volume).unwrap();
    wait_for_safe_mode(&client, false).await;
    client.create("/f", "holder").await;
    node.shutdown().await;
}
