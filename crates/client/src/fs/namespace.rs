//! Names, permissions and totals: the calls that touch no data.

use super::FileSystem;
use crate::error::{ClientError, Result};
use crate::protocol::convert;
use crate::types::*;
use cairn_wire::proto::hdfs::*;
use std::collections::VecDeque;

impl FileSystem {
    /// What a path names; `None` when it names nothing.
    pub async fn file_info(&self, path: &str) -> Result<Option<FileStatus>> {
        self.session.file_info(path).await
    }

    /// As [`FileSystem::file_info`], with an error when there is nothing.
    pub async fn require(&self, path: &str) -> Result<FileStatus> {
        self.session.require(path).await
    }

    /// The entries of a directory in the order of their names, or the one file that `path` names.
    /// Asks for the next page when the last is used up.
    pub fn list(&self, path: &str) -> Listing {
        Listing { pages: Pages::new(self, path, None), page: VecDeque::new() }
    }

    /// Makes a directory with the permission bits (less the umask) and all missing parents. True also
    /// when it was there.
    pub async fn mkdirs(&self, path: &str, permission: u16) -> Result<bool> {
        self.make_directory(path, permission, true).await
    }

    /// As [`FileSystem::mkdirs`], but fails when the parent is missing.
    pub async fn mkdir(&self, path: &str, permission: u16) -> Result<bool> {
        self.make_directory(path, permission, false).await
    }

    async fn make_directory(&self, path: &str, permission: u16, parents: bool) -> Result<bool> {
        let masked = permission & !self.session.config.umask;
        let request = MkdirsRequestProto {
            src: path.to_string(),
            masked: convert::permission_proto(masked),
            create_parent: parents,
            unmasked: Some(convert::permission_proto(permission)),
        };
        let response: MkdirsResponseProto = self.session.namenode.call("mkdirs", &request).await?;
        Ok(response.result)
    }

    /// Moves a file or directory; into `to` when that is a directory. False when it can't be, as
    /// Hadoop's older rename answers.
    pub async fn rename(&self, from: &str, to: &str) -> Result<bool> {
        let request = RenameRequestProto { src: from.to_string(), dst: to.to_string() };
        let response: RenameResponseProto = self.session.namenode.call("rename", &request).await?;
        Ok(response.result)
    }

    /// Moves a file or directory to exactly `to`, over a file or empty directory there if
    /// `overwrite`. Fails with Hadoop's exception when it can't be.
    pub async fn rename_to(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        self.rename2(from, to, overwrite, None).await
    }

    /// Moves a file or directory to the trash, which only who may delete it may do.
    ///
    /// Source: Hadoop 3.5.0 `Options.Rename#TO_TRASH`.
    pub async fn rename_to_trash(&self, from: &str, to: &str) -> Result<()> {
        self.rename2(from, to, false, Some(true)).await
    }

    async fn rename2(
        &self,
        from: &str,
        to: &str,
        overwrite_dest: bool,
        move_to_trash: Option<bool>,
    ) -> Result<()> {
        let (src, dst) = (from.to_string(), to.to_string());
        let request = Rename2RequestProto { src, dst, overwrite_dest, move_to_trash };
        let _: Rename2ResponseProto = self.session.namenode.call("rename2", &request).await?;
        Ok(())
    }

    /// Deletes a file, or a directory; a directory with entries only if `recursive`. False when
    /// nothing was there.
    pub async fn delete(&self, path: &str, recursive: bool) -> Result<bool> {
        let request = DeleteRequestProto { src: path.to_string(), recursive };
        let response: DeleteResponseProto = self.session.namenode.call("delete", &request).await?;
        Ok(response.result)
    }

    /// Sets the permission bits.
    pub async fn set_permission(&self, path: &str, permission: u16) -> Result<()> {
        let request = SetPermissionRequestProto {
            src: path.to_string(),
            permission: convert::permission_proto(permission),
        };
        let _: SetPermissionResponseProto =
            self.session.namenode.call("setPermission", &request).await?;
        Ok(())
    }

    /// Sets owner, group or both.
    pub async fn set_owner(
        &self,
        path: &str,
        owner: Option<&str>,
        group: Option<&str>,
    ) -> Result<()> {
        let request = SetOwnerRequestProto {
            src: path.to_string(),
            username: owner.map(str::to_string),
            groupname: group.map(str::to_string),
        };
        let _: SetOwnerResponseProto = self.session.namenode.call("setOwner", &request).await?;
        Ok(())
    }

    /// Sets how many copies a replicated file has. False for directories.
    pub async fn set_replication(&self, path: &str, replication: u16) -> Result<bool> {
        let request = SetReplicationRequestProto {
            src: path.to_string(),
            replication: u32::from(replication),
        };
        let response: SetReplicationResponseProto =
            self.session.namenode.call("setReplication", &request).await?;
        Ok(response.result)
    }

    /// Sets the times, milliseconds since 1970; `None` leaves one as it is.
    pub async fn set_times(
        &self,
        path: &str,
        modification_ms: Option<u64>,
        access_ms: Option<u64>,
    ) -> Result<()> {
        // Hadoop leaves a time alone when it is -1.
        let request = SetTimesRequestProto {
            src: path.to_string(),
            mtime: modification_ms.unwrap_or(u64::MAX),
            atime: access_ms.unwrap_or(u64::MAX),
        };
        let _: SetTimesResponseProto = self.session.namenode.call("setTimes", &request).await?;
        Ok(())
    }

    /// Cuts a replicated file to `len` bytes. True when that is done; false when its last block is
    /// still being cut, and the file can't be written until then.
    pub async fn truncate(&self, path: &str, len: u64) -> Result<bool> {
        let request = TruncateRequestProto {
            src: path.to_string(),
            new_length: len,
            client_name: self.session.client_name.clone(),
        };
        let response: TruncateResponseProto =
            self.session.namenode.call("truncate", &request).await?;
        Ok(response.result)
    }

    /// Totals over a file or a tree.
    pub async fn content_summary(&self, path: &str) -> Result<ContentSummary> {
        let request = GetContentSummaryRequestProto { path: path.to_string() };
        let response: GetContentSummaryResponseProto =
            self.session.namenode.call("getContentSummary", &request).await?;
        Ok(convert::summary(response.summary))
    }

    /// What a directory may hold and holds, as the NameNode counts it against quotas.
    pub async fn quota_usage(&self, path: &str) -> Result<QuotaUsage> {
        let request = GetQuotaUsageRequestProto { path: path.to_string() };
        let response: GetQuotaUsageResponseProto =
            self.session.namenode.call("getQuotaUsage", &request).await?;
        Ok(convert::quota_usage(response.usage))
    }

    /// Puts the blocks of files behind those of `target`; the files are gone then.
    pub async fn concat(&self, target: &str, sources: &[String]) -> Result<()> {
        let request = ConcatRequestProto { trg: target.to_string(), srcs: sources.to_vec() };
        let _: ConcatResponseProto = self.session.namenode.call("concat", &request).await?;
        Ok(())
    }

    /// Whether the user may do to a path what permission bits (4 read, 2 write, 1 execute) stand for. Fails when there
    /// is no such path.
    pub async fn may(&self, path: &str, bits: u8) -> Result<bool> {
        let request = CheckAccessRequestProto { path: path.to_string(), mode: i32::from(bits) };
        let answer: Result<CheckAccessResponseProto> =
            self.session.namenode.call("checkAccess", &request).await;
        match answer {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether nobody has a file open for writing.
    pub async fn is_closed(&self, path: &str) -> Result<bool> {
        let request = IsFileClosedRequestProto { src: path.to_string() };
        let response: IsFileClosedResponseProto =
            self.session.namenode.call("isFileClosed", &request).await?;
        Ok(response.result)
    }

    /// The blocks of a byte range of a file and where they are.
    pub async fn block_locations(&self, path: &str, offset: u64, len: u64) -> Result<FileBlocks> {
        Ok(convert::file_blocks(self.session.located(path, offset, len).await?))
    }

    /// All blocks of a file with the CRCs recorded of their units, as far as the NameNode tells them.
    pub(crate) async fn located_with_crcs(&self, path: &str) -> Result<convert::LocatedWithCrcs> {
        let request = GetBlockLocationsRequestProto {
            src: path.to_string(),
            length: i64::MAX as u64,
            with_unit_crcs: Some(true),
            after_failure: None,
            ..Default::default()
        };
        let response: GetBlockLocationsResponseProto =
            self.session.namenode.call("getBlockLocations", &request).await?;
        let proto =
            response.locations.ok_or_else(|| ClientError::NotFound { path: path.into() })?;
        let unit_crcs = proto.blocks.iter().map(convert::unit_crcs).collect::<Result<_>>()?;
        Ok(convert::LocatedWithCrcs { file: convert::located_file(proto)?, unit_crcs })
    }

    /// Ends another client's writing of a file, so that it can be read or written again. True when
    /// the file is closed; false while its last block is being recovered.
    pub async fn recover_lease(&self, path: &str) -> Result<bool> {
        let request = RecoverLeaseRequestProto {
            src: path.to_string(),
            client_name: self.session.client_name.clone(),
        };
        let response: RecoverLeaseResponseProto =
            self.session.namenode.call("recoverLease", &request).await?;
        Ok(response.result)
    }
}

/// The entries of a directory, page by page.
pub struct Listing {
    pages: Pages,
    page: VecDeque<FileStatus>,
}

impl Listing {
    /// The next entry, `None` at the end. Fails with [`ClientError::NotFound`] at the first call when
    /// there is no such path.
    pub async fn next(&mut self) -> Result<Option<FileStatus>> {
        while self.page.is_empty() {
            let Some(page) = self.pages.next().await? else { return Ok(None) };
            for proto in page {
                self.page.push_back(self.pages.status(proto)?);
            }
        }
        Ok(self.page.pop_front())
    }

    /// All entries that are left.
    pub async fn collect(mut self) -> Result<Vec<FileStatus>> {
        let mut all = Vec::new();
        while let Some(status) = self.next().await? {
            all.push(status);
        }
        Ok(all)
    }
}

/// The pages of a directory as the NameNode sends them.
pub(crate) struct Pages {
    fs: FileSystem,
    path: String,
    /// The longest files that are to come with their blocks.
    read_up_to: Option<u64>,
    start_after: Vec<u8>,
    finished: bool,
}

impl Pages {
    pub(crate) fn new(fs: &FileSystem, path: &str, read_up_to: Option<u64>) -> Pages {
        let (fs, path) = (fs.clone(), path.to_string());
        Pages { fs, path, read_up_to, start_after: Vec::new(), finished: false }
    }

    /// The next page, `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<HdfsFileStatusProto>>> {
        if self.finished {
            return Ok(None);
        }
        let request = GetListingRequestProto {
            src: self.path.clone(),
            start_after: self.start_after.clone(),
            need_location: false,
            read_up_to: self.read_up_to,
        };
        let response: GetListingResponseProto =
            self.fs.session.namenode.call("getListing", &request).await?;
        let not_found = || ClientError::NotFound { path: self.path.clone() };
        let listing = response.dir_list.ok_or_else(not_found)?;
        match listing.partial_listing.last() {
            Some(last) if listing.remaining_entries > 0 => self.start_after = last.path.clone(),
            _ => self.finished = true,
        }
        Ok(Some(listing.partial_listing))
    }

    /// An entry of a page.
    pub(crate) fn status(&self, proto: HdfsFileStatusProto) -> Result<FileStatus> {
        let parent = match self.path.trim_end_matches('/') {
            "" => "/",
            parent => parent,
        };
        convert::status(proto, parent)
    }
}
