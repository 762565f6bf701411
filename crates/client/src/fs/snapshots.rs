//! Snapshots, and the directories that may have some.

use super::FileSystem;
use super::encryption::{TRASH, TRASH_PERMISSION};
use crate::error::{ClientError, Result};
use crate::protocol::convert;
use crate::types::*;
use cairn_wire::proto::hdfs::*;

impl FileSystem {
    /// Lets a directory have snapshots.
    pub async fn allow_snapshot(&self, path: &str) -> Result<()> {
        let request = AllowSnapshotRequestProto { snapshot_root: path.to_string() };
        let _: AllowSnapshotResponseProto =
            self.session.namenode.call("allowSnapshot", &request).await?;
        Ok(())
    }

    /// Lets a directory have no more snapshots; it must have none.
    pub async fn disallow_snapshot(&self, path: &str) -> Result<()> {
        let request = DisallowSnapshotRequestProto { snapshot_root: path.to_string() };
        let _: DisallowSnapshotResponseProto =
            self.session.namenode.call("disallowSnapshot", &request).await?;
        Ok(())
    }

    /// Makes a snapshot of a directory, with a name of the time when none is given. Returns its path.
    pub async fn create_snapshot(&self, path: &str, name: Option<&str>) -> Result<String> {
        let request = CreateSnapshotRequestProto {
            snapshot_root: path.to_string(),
            snapshot_name: name.map(str::to_string),
        };
        let response: CreateSnapshotResponseProto =
            self.session.namenode.call("createSnapshot", &request).await?;
        Ok(response.snapshot_path)
    }

    /// Deletes a snapshot.
    pub async fn delete_snapshot(&self, path: &str, name: &str) -> Result<()> {
        let request = DeleteSnapshotRequestProto {
            snapshot_root: path.to_string(),
            snapshot_name: name.to_string(),
        };
        let _: DeleteSnapshotResponseProto =
            self.session.namenode.call("deleteSnapshot", &request).await?;
        Ok(())
    }

    /// Gives a snapshot another name.
    pub async fn rename_snapshot(&self, path: &str, old: &str, new: &str) -> Result<()> {
        let request = RenameSnapshotRequestProto {
            snapshot_root: path.to_string(),
            snapshot_old_name: old.to_string(),
            snapshot_new_name: new.to_string(),
        };
        let _: RenameSnapshotResponseProto =
            self.session.namenode.call("renameSnapshot", &request).await?;
        Ok(())
    }

    /// The snapshottable directories that the user owns; all, for a superuser.
    ///
    /// Source: Hadoop 3.5.0 `DFSClient#getSnapshottableDirListing`.
    pub async fn snapshottable_directories(&self) -> Result<Vec<SnapshottableDirectory>> {
        let request = GetSnapshottableDirListingRequestProto {};
        let response: GetSnapshottableDirListingResponseProto =
            self.session.namenode.call("getSnapshottableDirListing", &request).await?;
        let listed = response.snapshottable_dir_list.map(|list| list.snapshottable_dir_listing);
        let told = |proto: SnapshottableDirectoryStatusProto| {
            let parent = String::from_utf8_lossy(&proto.parent_fullpath).into_owned();
            Ok(SnapshottableDirectory {
                status: convert::status(proto.dir_status, &parent)?,
                snapshots: proto.snapshot_number,
                snapshot_quota: proto.snapshot_quota,
            })
        };
        listed.unwrap_or_default().into_iter().map(told).collect()
    }

    /// Makes the trash of a snapshottable directory, if there is none. Returns its path.
    ///
    /// Source: Hadoop 3.5.0 `DistributedFileSystem#provisionSnapshotTrash`.
    pub async fn provision_snapshot_trash(&self, path: &str) -> Result<String> {
        let trash = format!("{}/{TRASH}", path.trim_end_matches('/'));
        if self.file_info(&trash).await?.is_none() {
            self.mkdir(&trash, TRASH_PERMISSION).await?;
            // The umask took some of it.
            self.set_permission(&trash, TRASH_PERMISSION).await?;
        }
        Ok(trash)
    }

    /// The snapshots of a directory.
    pub async fn snapshots(&self, path: &str) -> Result<Vec<Snapshot>> {
        let request = GetSnapshotListingRequestProto { snapshot_root: path.to_string() };
        let response: GetSnapshotListingResponseProto =
            self.session.namenode.call("getSnapshotListing", &request).await?;
        let told = |proto: SnapshotStatusProto| {
            let root = String::from_utf8_lossy(&proto.parent_fullpath).into_owned();
            let parent = format!("{}/.snapshot", root.trim_end_matches('/'));
            Ok(Snapshot {
                status: convert::status(proto.dir_status, &parent)?,
                id: proto.snapshot_id,
                is_deleted: proto.is_deleted,
            })
        };
        let listed = response.snapshot_list.map(|list| list.snapshot_listing);
        listed.unwrap_or_default().into_iter().map(told).collect()
    }

    /// What differs between two snapshots of a directory; an empty name stands for what it is now.
    pub async fn snapshot_diff(
        &self,
        path: &str,
        from: &str,
        to: &str,
    ) -> Result<Vec<SnapshotDiff>> {
        let request = GetSnapshotDiffReportRequestProto {
            snapshot_root: path.to_string(),
            from_snapshot: from.to_string(),
            to_snapshot: to.to_string(),
        };
        let response: GetSnapshotDiffReportResponseProto =
            self.session.namenode.call("getSnapshotDiffReport", &request).await?;
        let told = |proto: SnapshotDiffReportEntryProto| {
            let kind = match proto.modification_label.as_str() {
                "+" => DiffKind::Created,
                "-" => DiffKind::Deleted,
                "M" => DiffKind::Modified,
                "R" => DiffKind::Renamed,
                label => return Err(ClientError::Protocol(format!("kind of change {label}"))),
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok(SnapshotDiff {
                kind,
                path: text(&proto.fullpath),
                target: proto.target_path.as_deref().filter(|path| !path.is_empty()).map(text),
            })
        };
        response.diff_report.diff_report_entries.into_iter().map(told).collect()
    }
}
