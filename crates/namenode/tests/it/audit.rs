//! The audit log: which calls are told of, as whose, and with what.

use crate::cluster::*;
use cairn_namenode::config::AuditConfig;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_wire::proto::{common, hdfs as pb};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The lines behind their times, once there are so many.
async fn lines(path: &Path, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap();
        if text.lines().count() >= count {
            let after_time = |line: &str| line.split_once("audit: ").unwrap().1.to_string();
            return text.lines().map(after_time).collect();
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{text}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_told_of_with_their_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let audit = AuditConfig {
        file: Some(path.clone()),
        silent_commands: vec!["getErasureCodingCodecs".to_string()],
        ..AuditConfig::default()
    };
    let config = NameNodeConfig { audit, ..config(&dir.path().join("name")) };
    let node = NameNode::start(config).await.unwrap();
    let (root, bob) = (Client::new(&node, CLIENT, SUPERUSER), Client::new(&node, CLIENT, "bob"));
    for client in [&root, &bob] {
        let _: pb::GetErasureCodingCodecsResponseProto = client
            .call("getErasureCodingCodecs", &pb::GetErasureCodingCodecsRequestProto {})
            .await
            .unwrap();
    }
    root.mkdirs("/a\tb").await;
    let src = "/a\tb".to_string();
    let to = pb::FsPermissionProto { perm: 0o1700 };
    let request = pb::SetPermissionRequestProto { src: src.clone(), permission: to };
    let _: pb::SetPermissionResponseProto = root.call("setPermission", &request).await.unwrap();
    let inside = pb::GetFileInfoRequestProto { src: format!("{src}/c") };
    let denied = bob.call::<_, pb::GetFileInfoResponseProto>("getFileInfo", &inside).await;
    assert!(denied.is_err());
    let _: pb::GetFileInfoResponseProto = root.call("getFileInfo", &inside).await.unwrap();
    let delete = pb::DeleteRequestProto { src: "/none".to_string(), recursive: true };
    let _: pb::DeleteResponseProto = root.call("delete", &delete).await.unwrap();
    let request = pb::SaveNamespaceRequestProto::default();
    // The one is not in safe mode, the other is no superuser.
    for client in [&root, &bob] {
        let saved = client.call::<_, pb::SaveNamespaceResponseProto>("saveNamespace", &request);
        assert!(saved.await.is_err());
    }
    let line = |allowed: bool, user: &str, rest: &str| {
        let rest = rest.replace(' ', "\t");
        format!("allowed={allowed}\tugi={user} (auth:SIMPLE)\tip=/127.0.0.1\t{rest}\tproto=rpc")
    };
    let group = "supergroup";
    assert_eq!(
        lines(&path, 6).await,
        [
            line(
                true,
                SUPERUSER,
                &format!("cmd=mkdirs src=/a\\tb dst=null perm={SUPERUSER}:{group}:rwxr-xr-x")
            ),
            line(
                true,
                SUPERUSER,
                &format!(
                    "cmd=setPermission src=/a\\tb dst=null perm={SUPERUSER}:{group}:rwx-----T"
                )
            ),
            line(false, "bob", "cmd=getfileinfo src=/a\\tb/c dst=null perm=null"),
            line(true, SUPERUSER, "cmd=getfileinfo src=/a\\tb/c dst=null perm=null"),
            line(false, SUPERUSER, "cmd=delete src=/none dst=null perm=null"),
            line(false, "bob", "cmd=saveNamespace src=null dst=null perm=null"),
        ]
    );
}

/// A NameNode and its log.
async fn audited(dir: &Path) -> (RunningNameNode, PathBuf) {
    let path = dir.join("audit.log");
    let audit = AuditConfig { file: Some(path.clone()), ..AuditConfig::default() };
    let config = NameNodeConfig { audit, ..config(&dir.join("name")) };
    (NameNode::start(config).await.unwrap(), path)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_cannot_forge_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let (node, path) = audited(dir.path()).await;
    let root = Client::new(&node, CLIENT, SUPERUSER);
    let src = "/open".to_string();
    root.mkdirs(&src).await;
    let to = pb::FsPermissionProto { perm: 0o1777 };
    let request = pb::SetPermissionRequestProto { src, permission: to };
    let _: pb::SetPermissionResponseProto = root.call("setPermission", &request).await.unwrap();
    let forger = Client::new(&node, CLIENT, "x\nallowed=true\tugi=root");
    forger.mkdirs("/open/x").await;
    root.mkdirs("/last").await;
    let lines = lines(&path, 4).await;
    assert!(lines[2].contains("perm=x\\nallowed=true\\tugi=root:"), "{lines:?}");
    assert!(lines[3].contains("src=/last"), "{lines:?}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_looked_for_where_inodes_are_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (node, path) = audited(dir.path()).await;
    let root = Client::new(&node, CLIENT, SUPERUSER);
    // The first leads nowhere, so that nothing is told of it.
    for path in ["/.reserved/.inodes/77777", "/.reserved/.inodes/"] {
        let request = pb::GetLinkTargetRequestProto { path: path.to_string() };
        let asked = root.call::<_, pb::GetLinkTargetResponseProto>("getLinkTarget", &request);
        assert!(asked.await.is_err());
    }
    root.mkdirs("/last").await;
    let lines = lines(&path, 2).await;
    assert!(lines[0].contains("src=/.reserved/.inodes/\t"), "{lines:?}");
    assert!(lines[1].contains("src=/last"), "{lines:?}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_files_and_blocks_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let audit = AuditConfig { file: Some(path.clone()), ..AuditConfig::default() };
    let http_addr = Some("127.0.0.1:0".parse().unwrap());
    let config = NameNodeConfig { audit, http_addr, ..config(&dir.path().join("name")) };
    let node = NameNode::start(config).await.unwrap();
    for query in ["path=%2Fa", "path=%2F&blockId=blk_1+blk_2"] {
        let mut stream = tokio::net::TcpStream::connect(node.http_addr.unwrap()).await.unwrap();
        let request = format!("GET /fsck?ugi=bob&{query} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    }
    let line = |allowed: bool, src: &str| {
        let start = format!("allowed={allowed}\tugi=bob (auth:SIMPLE)\tip=/127.0.0.1\tcmd=fsck\t");
        format!("{start}src={src}\tdst=null\tperm=null\tproto=null")
    };
    let want = [line(true, "/a"), line(false, "blocksIds=[blk_1, blk_2]")];
    assert_eq!(lines(&path, 2).await, want);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_tells_of_what_was_moved_into_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (node, path) = audited(dir.path()).await;
    let root = Client::new(&node, CLIENT, SUPERUSER);
    root.mkdirs("/d").await;
    root.create("/d/f", "w").await;
    let id = root.file_info("/d/f").await.unwrap().file_id.unwrap();
    for dst in ["/d", &format!("/.reserved/.inodes/{id}/..")] {
        let (src, dst) = ("/d/f".to_string(), dst.to_string());
        let request = pb::RenameRequestProto { src, dst };
        let _: pb::RenameResponseProto = root.call("rename", &request).await.unwrap();
    }
    let lines = lines(&path, 5).await;
    for line in &lines[3..] {
        assert!(line.contains(&format!("perm={SUPERUSER}:supergroup:rw-")), "{line}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_are_so_already_are_not_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (node, path) = audited(dir.path()).await;
    let root = Client::new(&node, CLIENT, SUPERUSER);
    let bob = Client::new(&node, CLIENT, "bob");
    let ec_policy_name = "RS-3-2-1024k".to_string();
    let enable =
        pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: ec_policy_name.clone() };
    let disable = pb::DisableErasureCodingPolicyRequestProto { ec_policy_name };
    for _ in 0..2 {
        let _: pb::EnableErasureCodingPolicyResponseProto =
            root.call("enableErasureCodingPolicy", &enable).await.unwrap();
    }
    bob.refused("enableErasureCodingPolicy", &enable).await;
    for _ in 0..2 {
        let _: pb::DisableErasureCodingPolicyResponseProto =
            root.call("disableErasureCodingPolicy", &disable).await.unwrap();
    }
    root.mkdirs("/last").await;
    let lines = lines(&path, 4).await;
    let told: Vec<_> = lines.iter().map(|line| line.split('\t').nth(3).unwrap()).collect();
    let (on, off) = ("cmd=enableErasureCodingPolicy", "cmd=disableErasureCodingPolicy");
    assert_eq!(told, [on, on, off, "cmd=mkdirs"]);
    assert!(lines[1].starts_with("allowed=false"), "{lines:?}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_policy_is_told_without_its_path_where_only_superusers_set_them() {
    for storage_policies_superuser_only in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let audit = AuditConfig { file: Some(path.clone()), ..AuditConfig::default() };
        let config = config(&dir.path().join("name"));
        let config = NameNodeConfig { audit, storage_policies_superuser_only, ..config };
        let node = NameNode::start(config).await.unwrap();
        let bob = Client::new(&node, CLIENT, "bob");
        // What is denied on a raw path is so by its path.
        let src = "/.reserved/raw/".to_string();
        let set =
            pb::SetStoragePolicyRequestProto { src: src.clone(), policy_name: "COLD".to_string() };
        bob.refused("setStoragePolicy", &set).await;
        let unset = pb::UnsetStoragePolicyRequestProto { src };
        bob.refused("unsetStoragePolicy", &unset).await;
        let src = if storage_policies_superuser_only { "null" } else { "/.reserved/raw/" };
        for (line, command) in
            lines(&path, 2).await.iter().zip(["setStoragePolicy", "unsetStoragePolicy"])
        {
            let want = format!("cmd={command}\tsrc={src}\tdst=null");
            assert!(line.starts_with("allowed=false") && line.contains(&want), "{line}");
        }
        node.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_that_are_allowed_in_a_snapshot_are_not_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (node, path) = audited(dir.path()).await;
    let root = Client::new(&node, CLIENT, SUPERUSER);
    let bob = Client::new(&node, CLIENT, "bob");
    root.mkdirs("/d").await;
    let allow = |path: &str| pb::AllowSnapshotRequestProto { snapshot_root: path.to_string() };
    let disallow =
        |path: &str| pb::DisallowSnapshotRequestProto { snapshot_root: path.to_string() };
    let _: pb::AllowSnapshotResponseProto = root.call("allowSnapshot", &allow("/d")).await.unwrap();
    for path in ["/d/.snapshot", "/d/.snapshot/s"] {
        root.refused("allowSnapshot", &allow(path)).await;
        root.refused("disallowSnapshot", &disallow(path)).await;
    }
    bob.refused("disallowSnapshot", &disallow("/d")).await;
    root.mkdirs("/last").await;
    let lines = lines(&path, 4).await;
    let told: Vec<_> = lines.iter().map(|line| line.split('\t').nth(3).unwrap()).collect();
    let (on, off) = ("cmd=allowSnapshot", "cmd=disallowSnapshot");
    assert_eq!(told, ["cmd=mkdirs", on, off, "cmd=mkdirs"]);
    assert!(lines[2].starts_with("allowed=false"), "{lines:?}");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshes_are_told_of() {
    const USERS: &str = "org.apache.hadoop.security.RefreshUserMappingsProtocol";
    const QUEUE: &str = "org.apache.hadoop.ipc.RefreshCallQueueProtocol";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let audit = AuditConfig { file: Some(path.clone()), ..AuditConfig::default() };
    let config = NameNodeConfig { audit, ..config(&dir.path().join("name")) };
    let node = NameNode::start(config).await.unwrap();
    let refreshes = [
        (USERS, "refreshUserToGroupsMappings"),
        (USERS, "refreshSuperUserGroupsConfiguration"),
        (QUEUE, "refreshCallQueue"),
    ];
    for (protocol, method) in refreshes {
        let request = common::RefreshCallQueueRequestProto {};
        let _: common::RefreshCallQueueResponseProto =
            Client::new(&node, protocol, "bob").call(method, &request).await.unwrap();
    }
    let told = refreshes.map(|(_, method)| {
        format!(
            "allowed=true\tugi=bob (auth:SIMPLE)\tip=/127.0.0.1\tcmd={method}\tsrc=null\tdst=null\t\
             perm=null\tproto=rpc"
        )
    });
    assert_eq!(lines(&path, 3).await, told);
    node.shutdown().await;
}
