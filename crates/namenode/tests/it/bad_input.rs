//! What no well-meaning client sends: it gets an exception, and nothing changes.

use cairn_namenode::NameNode;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, SUPERUSER, config};

/// The first field of a request, with bytes that need not be text.
#[derive(Clone, PartialEq, prost::Message)]
struct Bytes {
    #[prost(bytes, tag = "1")]
    first: Vec<u8>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_no_text_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    let before = node.node().ns.last_sequence();
    for first in [&b"/d/\xff"[..], b"/\xc3\x28", b"/d/\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"] {
        for method in ["getFileInfo", "mkdirs", "create", "delete", "getListing", "setQuota"] {
            let (got, _) = client.refused(method, &Bytes { first: first.to_vec() }).await;
            assert_eq!(got, class::INVALID_PROTOCOL_BUFFER, "{method}");
        }
    }
    assert_eq!(client.list("/").await, ["d"]);
    assert_eq!(node.node().ns.last_sequence(), before);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_without_end_and_numbers_too_great_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let node = NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    let before = node.node().ns.last_sequence();
    let entry = |number: u32| pb::AclEntryProto {
        r#type: pb::AclEntryProtoAclEntryTypeProto::User as i32,
        scope: pb::AclEntryProtoAclEntryScopeProto::Access as i32,
        permissions: 7,
        name: Some(format!("user{number}")),
    };
    let acl_spec: Vec<_> = (0..100_000).map(entry).collect();
    let request = pb::SetAclRequestProto { src: "/d".into(), acl_spec };
    let (got, _) = client.refused("setAcl", &request).await;
    assert_eq!(got, "org.apache.hadoop.hdfs.protocol.AclException");
    for (names, space) in [(u64::MAX - 7, 1), (1, 1 << 63)] {
        let request = pb::SetQuotaRequestProto {
            path: "/d".into(),
            namespace_quota: names,
            storagespace_quota: space,
            storage_type: None,
        };
        let (got, _) = client.refused("setQuota", &request).await;
        assert_eq!(got, "java.lang.IllegalArgumentException", "{names} {space}");
    }
    assert_eq!(node.node().ns.last_sequence(), before);
    node.shutdown().await;
}
