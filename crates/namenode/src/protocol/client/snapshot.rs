//! Snapshots.

use cairn_namespace::inode::Inode;
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot, RenameSnapshot,
};
use cairn_namespace::snapshot::diff::{self, Change, Cursor, DiffListing, PageEntry};
use cairn_namespace::snapshot::{QUOTA, listing};
use cairn_namespace::{Caller, Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;
use std::sync::Arc;

use super::paths::check_path_len;
use crate::diff_listings::Question;
use crate::java_text::compact_date;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// Source: Hadoop 3.5.0 `FSNamesystem#allowSnapshot`.
pub async fn allow(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AllowSnapshotRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let path = request.snapshot_root;
    node.check_safe_mode(|| format!("Cannot allow snapshot for {path}"))?;
    node.submit(call, AllowSnapshot { path }).await?;
    answer(&pb::AllowSnapshotResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#disallowSnapshot`.
pub async fn disallow(node: &NameNode, call: &Call) -> Answer {
    let request: pb::DisallowSnapshotRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let path = request.snapshot_root;
    node.check_safe_mode(|| format!("Cannot disallow snapshot for {path}"))?;
    node.submit(call, DisallowSnapshot { path }).await?;
    answer(&pb::DisallowSnapshotResponseProto {})
}

/// A snapshot without a name gets one from the time.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#createSnapshot`, `Snapshot#generateDefaultSnapshotName`.
pub async fn create(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CreateSnapshotRequestProto = call.decode()?;
    let path = request.snapshot_root;
    check_path_len("createSnapshot", &path)?;
    node.check_change(call, || format!("Cannot create snapshot for {path}"))?;
    let name = request.snapshot_name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("s{}", compact_date(node.now().wall_ms)));
    match node.submit(call, CreateSnapshot { path, name }).await? {
        Outcome::SnapshotCreated(snapshot_path) => {
            answer(&pb::CreateSnapshotResponseProto { snapshot_path })
        }
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#deleteSnapshot`.
pub async fn delete(node: &NameNode, call: &Call) -> Answer {
    let request: pb::DeleteSnapshotRequestProto = call.decode()?;
    let (path, name) = (request.snapshot_root, request.snapshot_name);
    if name.is_empty() {
        return Err(Refusal::io("The snapshot name is null or empty."));
    }
    node.check_change(call, || format!("Cannot delete snapshot for {path}"))?;
    node.submit(call, DeleteSnapshot { path, name }).await?;
    answer(&pb::DeleteSnapshotResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#renameSnapshot`.
pub async fn rename(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RenameSnapshotRequestProto = call.decode()?;
    let path = request.snapshot_root;
    let (from, to) = (request.snapshot_old_name, request.snapshot_new_name);
    if to.is_empty() {
        return Err(Refusal::io("The new snapshot name is null or empty."));
    }
    node.check_change(call, || format!("Cannot rename snapshot for {path}"))?;
    node.submit(call, RenameSnapshot { path, from, to }).await?;
    answer(&pb::RenameSnapshotResponseProto {})
}

/// A directory as the two listings below show it: without policies and flags.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getSnapshottableDirListing`.
fn status(inode: &Inode) -> pb::HdfsFileStatusProto {
    let children = inode.directory().map_or(0, |directory| directory.children);
    pb::HdfsFileStatusProto {
        file_type: pb::HdfsFileStatusProtoFileType::IsDir as i32,
        path: inode.name.as_bytes().to_vec(),
        permission: pb::FsPermissionProto { perm: inode.mode.into() },
        owner: inode.owner.clone(),
        group: inode.group.clone(),
        modification_time: inode.mtime,
        access_time: inode.atime,
        block_replication: Some(0),
        blocksize: Some(0),
        file_id: Some(inode.id.0),
        children_num: Some(i32::try_from(children).unwrap_or(i32::MAX)),
        storage_policy: Some(0),
        flags: Some(0),
        ..pb::HdfsFileStatusProto::default()
    }
}

/// What clients are told of the `.snapshot` of a snapshottable directory.
///
/// Source: Hadoop 3.5.0 `FSDirectory#DOT_SNAPSHOT_DIR_STATUS`.
fn dot_snapshot() -> pb::HdfsFileStatusProto {
    pb::HdfsFileStatusProto {
        file_type: pb::HdfsFileStatusProtoFileType::IsDir as i32,
        permission: pb::FsPermissionProto { perm: 0o777 },
        block_replication: Some(0),
        blocksize: Some(0),
        // -1 as an unsigned number.
        file_id: Some(u64::MAX),
        children_num: Some(0),
        storage_policy: Some(0),
        flags: Some(0),
        ..pb::HdfsFileStatusProto::default()
    }
}

/// The status of a path where no file or directory is, if it is a `.snapshot`.
///
/// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getFileInfo`.
pub fn file_info(
    node: &NameNode,
    caller: &Caller,
    path: &str,
) -> Result<Option<pb::HdfsFileStatusProto>, Refusal> {
    if !path.trim_end_matches('/').ends_with("/.snapshot") {
        return Ok(None);
    }
    let is_one = node.ns.read(|store| listing::is_dot_snapshot(store, caller, path))?;
    Ok(is_one.then(dot_snapshot))
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getSnapshottableDirListing`.
pub async fn list_directories(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetSnapshottableDirListingRequestProto = call.decode()?;
    let ((directories, _), found) = node
        .query(call, |store, caller| {
            let found = listing::snapshottable_directories(store, caller)?;
            Ok((listing::counts(store)?, found))
        })
        .await?;
    let entry = |found: &listing::SnapshottableDirectory| pb::SnapshottableDirectoryStatusProto {
        dir_status: status(&found.inode),
        snapshot_quota: QUOTA,
        snapshot_number: found.count,
        parent_fullpath: found.parent.clone().into_bytes(),
    };
    let list = pb::SnapshottableDirectoryListingProto {
        snapshottable_dir_listing: found.iter().map(entry).collect(),
    };
    // No list says that there is no such directory at all.
    let snapshottable_dir_list = (directories > 0).then_some(list);
    answer(&pb::GetSnapshottableDirListingResponseProto { snapshottable_dir_list })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getSnapshotListing`.
pub async fn list(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetSnapshotListingRequestProto = call.decode()?;
    let path = &request.snapshot_root;
    let (root, found) =
        node.query(call, |store, caller| listing::snapshots(store, caller, path)).await?;
    let entry = |found: &listing::SnapshotStatus| pb::SnapshotStatusProto {
        dir_status: status(&found.inode),
        snapshot_id: found.id.0,
        parent_fullpath: root.clone().into_bytes(),
        is_deleted: found.deleted,
    };
    let snapshot_listing = found.iter().map(entry).collect();
    let snapshot_list = Some(pb::SnapshotListingProto { snapshot_listing });
    answer(&pb::GetSnapshotListingResponseProto { snapshot_list })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getSnapshotDiffReport`, `SnapshotDiffReport.DiffType`.
pub async fn diff_report(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetSnapshotDiffReportRequestProto = call.decode()?;
    let (path, from, to) = (&request.snapshot_root, request.from_snapshot, request.to_snapshot);
    let report =
        node.query(call, |store, caller| diff::report(store, caller, path, &from, &to)).await?;
    let entry = |entry: diff::DiffEntry| pb::SnapshotDiffReportEntryProto {
        fullpath: entry.path.into_bytes(),
        modification_label: match entry.change {
            Change::Create => "+",
            Change::Modify => "M",
            Change::Delete => "-",
            Change::Rename => "R",
        }
        .to_string(),
        target_path: entry.target.map(String::into_bytes),
    };
    let diff_report = pb::SnapshotDiffReportProto {
        snapshot_root: report.root,
        from_snapshot: from,
        to_snapshot: to,
        diff_report_entries: report.entries.into_iter().map(entry).collect(),
    };
    answer(&pb::GetSnapshotDiffReportResponseProto { diff_report })
}

/// A page after the first comes from what the first was cut out of.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getSnapshotDiffReportListing`.
pub async fn diff_page(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetSnapshotDiffReportListingRequestProto = call.decode()?;
    let (path, from, to) = (&request.snapshot_root, request.from_snapshot, request.to_snapshot);
    let cursor = request.cursor.map(|cursor| (cursor.start_path, cursor.index));
    let (start, index) = cursor.unwrap_or_else(|| (Vec::new(), -1));
    let start = Cursor { path: String::from_utf8_lossy(&start).into_owned(), index };
    let user = call.user.effective.clone();
    let question = Question { user, path: path.clone(), from: from.clone(), to: to.clone() };
    let known = node.diff_listings.get(&question).filter(|_| !start.is_first());
    let (page, listing) = node
        .query(call, |store, caller| {
            let names = (from.as_str(), to.as_str());
            let listing = match known {
                Some(known) if known.is_of(store, caller, path, names)? => known,
                _ => Arc::new(DiffListing::new(store, caller, path, names)?),
            };
            Ok((listing.page(store, &start)?, listing))
        })
        .await?;
    match page.next {
        Some(_) => node.diff_listings.keep(question, listing),
        None => node.diff_listings.forget(&question),
    }
    let entries = |entries: Vec<PageEntry>| {
        let entry = |entry: PageEntry| pb::SnapshotDiffReportListingEntryProto {
            fullpath: entry.path.into_bytes(),
            dir_id: entry.directory.0,
            is_reference: entry.is_reference,
            target_path: entry.target.map(String::into_bytes),
            file_id: Some(entry.file.0),
        };
        entries.into_iter().map(entry).collect()
    };
    let next = page.next.unwrap_or(Cursor { path: String::new(), index: -1 });
    let cursor =
        pb::SnapshotDiffReportCursorProto { start_path: next.path.into_bytes(), index: next.index };
    let diff_report = pb::SnapshotDiffReportListingProto {
        modified_entries: entries(page.modified),
        created_entries: entries(page.created),
        deleted_entries: entries(page.deleted),
        is_from_earlier: page.from_earlier,
        cursor: Some(cursor),
    };
    answer(&pb::GetSnapshotDiffReportListingResponseProto { diff_report })
}

/// The blocks of the file at a path, of which the caller may know; in a snapshot, as they were then.
pub fn blocks_at(node: &NameNode, path: &str) -> Result<Option<query::FileBlocks>, Refusal> {
    Ok(node.ns.read(|store| query::file_blocks_at(store, path))?)
}
