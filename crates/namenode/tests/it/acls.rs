//! Access control lists over the wire.

use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, SUPERUSER, start};

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_set_inherited_told_and_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    let entry = |kind: pb::AclEntryProtoAclEntryTypeProto, name: Option<&str>, permissions| {
        pb::AclEntryProto {
            r#type: kind as i32,
            scope: pb::AclEntryProtoAclEntryScopeProto::Default as i32,
            permissions,
            name: name.map(str::to_string),
        }
    };
    use pb::AclEntryProtoAclEntryTypeProto::{Mask, User};
    let spec = vec![entry(User, Some("alice"), 7), entry(Mask, Some(""), 7)];
    let modify = pb::ModifyAclEntriesRequestProto { src: "/d".to_string(), acl_spec: spec };
    let _: pb::ModifyAclEntriesResponseProto =
        client.call("modifyAclEntries", &modify).await.unwrap();
    let mkdirs = pb::MkdirsRequestProto {
        src: "/d/s".to_string(),
        masked: pb::FsPermissionProto { perm: 0o700 },
        create_parent: true,
        unmasked: Some(pb::FsPermissionProto { perm: 0o770 }),
    };
    let _: pb::MkdirsResponseProto = client.call("mkdirs", &mkdirs).await.unwrap();
    let get = pb::GetAclStatusRequestProto { src: "/d/s".to_string() };
    let status: pb::GetAclStatusResponseProto = client.call("getAclStatus", &get).await.unwrap();
    assert_eq!(status.result.permission.map(|mode| mode.perm), Some(0o770));
    assert_eq!(status.result.entries.len(), 2 + 5);
    let named = &status.result.entries[0];
    assert_eq!((named.name(), named.permissions), ("alice", 7));
    let info = client.file_info("/d/s").await.unwrap();
    assert_eq!(info.flags(), pb::HdfsFileStatusProtoFlags::HasAcl as u32);
    let alice = Client::new(&node, CLIENT, "alice");
    alice.create("/d/s/f", "writer").await;
    let remove = pb::RemoveAclRequestProto { src: "/d/s".to_string() };
    let _: pb::RemoveAclResponseProto = client.call("removeAcl", &remove).await.unwrap();
    let delete = pb::DeleteRequestProto { src: "/d/s/f".to_string(), recursive: false };
    assert_eq!(alice.refused("delete", &delete).await.0, class::ACCESS_CONTROL);
    let allow = pb::AllowSnapshotRequestProto { snapshot_root: "/d/s".to_string() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let get = pb::GetAclStatusRequestProto { src: "/d/s/.snapshot".to_string() };
    let list: pb::GetAclStatusResponseProto = client.call("getAclStatus", &get).await.unwrap();
    assert_eq!(list.result, pb::AclStatusProto::default());
    let get = pb::GetAclStatusRequestProto { src: "/none".to_string() };
    let want = (class::FILE_NOT_FOUND.to_string(), "cannot find /none".to_string());
    assert_eq!(client.refused("getAclStatus", &get).await, want);
    node.shutdown().await;
}
