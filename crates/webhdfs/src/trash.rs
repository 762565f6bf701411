//! Where what users delete goes.
//!
//! Source: Hadoop 3.5.0 `NamenodeWebHdfsMethods#getTrashRoot`, `DistributedFileSystem#getTrashRoots`.

use cairn_net::http::Answer;
use cairn_wire::proto::hdfs::*;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::questions::{Question, listing};
use crate::replies::told;

const TRASH: &str = ".Trash";

fn below(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

impl Question<'_> {
    /// The trash of the path: that of its encryption zone or of the snapshots above it, or else the user's own.
    pub(crate) async fn trash_root(&self) -> Result<String, Failure> {
        let user = &self.asker.user.effective;
        let own = |folder: &str| below(&below(folder, TRASH), user);
        let mut found: Option<String> = None;
        if self.server_defaults().await?.snapshot_trash_root_enabled() {
            let list = self.snapshottable().await?.unwrap_or_default();
            let dirs = list.snapshottable_dir_listing.iter().map(|dir| {
                let parent = String::from_utf8_lossy(&dir.parent_fullpath).into_owned();
                below(&parent, &String::from_utf8_lossy(&dir.dir_status.path))
            });
            let above = |dir: &String| {
                self.path
                    .strip_prefix(&dir[..])
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            found = dirs.filter(above).max_by_key(String::len).map(|dir| own(&dir));
        }
        let parent = match self.path.trim_end_matches('/').rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((parent, _)) => parent,
        };
        let ask = GetEZForPathRequestProto { src: parent.to_string() };
        let got: GetEZForPathResponseProto = self.call("getEZForPath", &ask).await?;
        let zone = got.zone.map(|zone| own(&zone.path));
        let longest = found.into_iter().chain(zone).max_by_key(String::len);
        Ok(longest.unwrap_or_else(|| below(&self.home(), TRASH)))
    }

    /// All trash of the user, or with `allusers` of all, that is there.
    pub(crate) async fn trash_roots(&self) -> Result<Answer, Failure> {
        let all = self.p.boolean("allusers", false)?;
        let user = &self.asker.user.effective;
        let mut roots = Vec::new();
        if all {
            for home in self.folders(&self.web.homes).await? {
                roots.push(below(&home, TRASH));
            }
        } else {
            roots.push(below(&self.home(), TRASH));
        }
        for zone in self.zones().await {
            let trash = below(&zone, TRASH);
            match all {
                true => roots.extend(self.folders(&trash).await?),
                false => roots.push(below(&trash, user)),
            }
        }
        let mut found = Vec::new();
        for root in roots {
            if let Some(status) = self.look(&root).await? {
                found.push(file_status(&root, &status));
            }
        }
        let paths = if found.is_empty() { Value::Null } else { Value::Array(found) };
        Ok(told(json!({"Paths": paths})))
    }

    /// The folders in a folder; none if it is not there.
    async fn folders(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        let mut start = Vec::new();
        if self.look(folder).await?.is_none() {
            return Ok(found);
        }
        loop {
            let page = listing(self.names, &self.asker, folder, start).await?;
            let dirs = page.partial_listing.iter();
            let dirs = dirs.filter(|dir| dir.file_type() == HdfsFileStatusProtoFileType::IsDir);
            found.extend(dirs.map(|dir| below(folder, &String::from_utf8_lossy(&dir.path))));
            match page.partial_listing.last() {
                Some(last) if page.remaining_entries > 0 => start = last.path.clone(),
                _ => return Ok(found),
            }
        }
    }

    /// The encryption zones, which only superusers are told.
    async fn zones(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut id = 0;
        loop {
            let ask = ListEncryptionZonesRequestProto { id };
            let got: Result<ListEncryptionZonesResponseProto, Failure> =
                self.call("listEncryptionZones", &ask).await;
            let Ok(got) = got else { return found };
            found.extend(got.zones.iter().map(|zone| zone.path.clone()));
            match got.zones.last() {
                Some(last) if got.has_more => id = last.id,
                _ => return found,
            }
        }
    }
}

/// `FileStatus` in the shape of these answers.
fn file_status(path: &str, status: &HdfsFileStatusProto) -> Value {
    json!({
        "path": path,
        "length": status.length,
        "isdir": status.file_type() == HdfsFileStatusProtoFileType::IsDir,
        "block_replication": status.block_replication(),
        "blocksize": status.blocksize(),
        "modification_time": status.modification_time,
        "access_time": status.access_time,
        "permission": format!("{:o}", status.permission.perm & 0o1777),
        "owner": status.owner,
        "group": status.group,
    })
}
