//! What a NameNode tells of its namespace, as text, without anything that DataNodes tell.

use std::fmt::Write;

use cairn_wire::proto::hdfs as pb;
use prost::Message;

use crate::cluster::Client;

async fn ask<A: Message, B: Message + Default>(client: &Client, method: &str, request: A) -> B {
    client.call(method, &request).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// One line for each fact.
pub async fn facts(client: &Client) -> String {
    let mut told = String::new();
    let mut folders = vec!["/".to_string()];
    while let Some(folder) = folders.pop() {
        folder_facts(client, &folder, &mut told, &mut folders).await;
    }
    snapshot_facts(client, &mut told).await;
    let policies: pb::GetErasureCodingPoliciesResponseProto =
        ask(client, "getErasureCodingPolicies", pb::GetErasureCodingPoliciesRequestProto {}).await;
    for policy in policies.ec_policies {
        // Those of contiguous groups came later, and are disabled.
        if policy.name.as_ref().is_some_and(|name| name.ends_with("-contiguous")) {
            assert_eq!(policy.state, Some(1));
            continue;
        }
        let (name, id, state) = (policy.name.unwrap(), policy.id, policy.state.unwrap());
        writeln!(told, "policy {name} id={id} state={state}").unwrap();
    }
    let open: pb::ListOpenFilesResponseProto =
        ask(client, "listOpenFiles", pb::ListOpenFilesRequestProto::default()).await;
    for file in open.entries {
        writeln!(told, "open {} by {}", file.path, file.client_name).unwrap();
    }
    let pools: pb::ListCachePoolsResponseProto =
        ask(client, "listCachePools", pb::ListCachePoolsRequestProto::default()).await;
    for pool in pools.entries {
        writeln!(told, "pool {:?}", pool.info).unwrap();
    }
    let directives: pb::ListCacheDirectivesResponseProto =
        ask(client, "listCacheDirectives", pb::ListCacheDirectivesRequestProto::default()).await;
    for directive in directives.elements {
        writeln!(told, "directive {:?}", directive.info).unwrap();
    }
    told
}

/// A folder with what is in it; adds the folders in it, and one for each of its snapshots.
async fn folder_facts(client: &Client, folder: &str, told: &mut String, folders: &mut Vec<String>) {
    let base = if folder == "/" { "" } else { folder };
    let src = folder.to_string();
    let usage = pb::GetQuotaUsageRequestProto { path: src.clone() };
    let usage: pb::GetQuotaUsageResponseProto = ask(client, "getQuotaUsage", usage).await;
    writeln!(told, "usage {folder} {:?}", usage.usage).unwrap();
    let mut names = vec![String::new()];
    names.extend(client.list(folder).await);
    for name in names {
        let path = match name.is_empty() {
            true => src.clone(),
            false => format!("{base}/{name}"),
        };
        let status = client.file_info(&path).await.unwrap();
        if name.is_empty() || status.file_type == pb::HdfsFileStatusProtoFileType::IsFile as i32 {
            path_facts(client, &path, &status, told).await;
        } else {
            folders.push(path);
        }
    }
}

async fn path_facts(
    client: &Client,
    path: &str,
    status: &pb::HdfsFileStatusProto,
    told: &mut String,
) {
    let pb::HdfsFileStatusProto { file_type, length, permission, owner, group, .. } = status;
    let ec = status.ec_policy.as_ref().and_then(|policy| policy.name.clone());
    let (copies, policy) = (status.block_replication(), status.storage_policy());
    let (mtime, atime, id) = (status.modification_time, status.access_time, status.file_id());
    let mode = permission.perm;
    writeln!(
        told,
        "path {path} id={id} type={file_type} mode={mode:o} owner={owner}:{group} length={length} copies={copies} ec={ec:?} policy={policy} mtime={mtime} atime={atime} children={:?} flags={:?}",
        status.children_num, status.flags,
    )
    .unwrap();
    let x_attrs = pb::GetXAttrsRequestProto { src: path.to_string(), x_attrs: Vec::new() };
    let x_attrs: pb::GetXAttrsResponseProto = ask(client, "getXAttrs", x_attrs).await;
    for attribute in x_attrs.x_attrs {
        writeln!(told, "xattr {path} {attribute:?}").unwrap();
    }
    let get = pb::GetAclStatusRequestProto { src: path.to_string() };
    let acl: pb::GetAclStatusResponseProto = ask(client, "getAclStatus", get).await;
    for entry in acl.result.entries {
        writeln!(told, "acl {path} {entry:?}").unwrap();
    }
    if *file_type != pb::HdfsFileStatusProtoFileType::IsFile as i32 {
        return;
    }
    let file = client.locations(path).await;
    let (open, complete) = (file.under_construction, file.is_last_block_complete);
    writeln!(told, "blocks {path} length={} open={open} complete={complete}", file.file_length)
        .unwrap();
    for block in &file.blocks {
        assert!(block.locs.is_empty(), "no DataNode is there");
        let pb::ExtendedBlockProto { block_id, generation_stamp, num_bytes, .. } = block.b;
        writeln!(
            told,
            "block {path} at={} id={block_id} stamp={generation_stamp} length={num_bytes:?}",
            block.offset,
        )
        .unwrap();
    }
}

/// What is in snapshots, and what differs between one and the next, and between the last one and now.
async fn snapshot_facts(client: &Client, told: &mut String) {
    let request = pb::GetSnapshottableDirListingRequestProto {};
    let roots: pb::GetSnapshottableDirListingResponseProto =
        ask(client, "getSnapshottableDirListing", request).await;
    for root in roots.snapshottable_dir_list.unwrap_or_default().snapshottable_dir_listing {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let parent = text(&root.parent_fullpath);
        let path = format!("{}/{}", parent.trim_end_matches('/'), text(&root.dir_status.path));
        writeln!(told, "snapshots {path} count={}", root.snapshot_number).unwrap();
        let mut names = client.list(&format!("{path}/.snapshot")).await;
        names.sort();
        let mut folders: Vec<String> =
            names.iter().map(|name| format!("{path}/.snapshot/{name}")).collect();
        while let Some(folder) = folders.pop() {
            folder_facts(client, &folder, told, &mut folders).await;
        }
        names.push(String::new());
        for two in names.windows(2) {
            let request = pb::GetSnapshotDiffReportRequestProto {
                snapshot_root: path.clone(),
                from_snapshot: two[0].clone(),
                to_snapshot: two[1].clone(),
            };
            let diff: pb::GetSnapshotDiffReportResponseProto =
                ask(client, "getSnapshotDiffReport", request).await;
            for entry in diff.diff_report.diff_report_entries {
                let target = entry.target_path.as_deref().map(text).unwrap_or_default();
                let (label, changed) = (entry.modification_label, text(&entry.fullpath));
                writeln!(told, "diff {path} {:?} {label} {changed} {target}", two).unwrap();
            }
        }
    }
}
