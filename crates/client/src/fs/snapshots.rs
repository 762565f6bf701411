//! Snapshottable directories.

use super::FileSystem;
use crate::error::Result;
use crate::protocol::convert;
use cairn_wire::proto::hdfs::*;

impl FileSystem {
    /// The paths of the snapshottable directories that the user owns; of all, for a superuser.
    ///
    /// Source: Hadoop 3.5.0 `DFSClient#getSnapshottableDirListing`.
    pub async fn snapshottable_directories(&self) -> Result<Vec<String>> {
        let request = GetSnapshottableDirListingRequestProto {};
        let response: GetSnapshottableDirListingResponseProto =
            self.session.namenode.call("getSnapshottableDirListing", &request).await?;
        let listed = response.snapshottable_dir_list.map(|list| list.snapshottable_dir_listing);
        let path = |status: SnapshottableDirectoryStatusProto| {
            let parent = String::from_utf8_lossy(&status.parent_fullpath).into_owned();
            Ok(convert::status(status.dir_status, &parent)?.path)
        };
        listed.unwrap_or_default().into_iter().map(path).collect()
    }
}
