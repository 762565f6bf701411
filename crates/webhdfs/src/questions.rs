//! The operations that a NameNode answers: a call, and its answer as JSON.
//!
//! Source: Hadoop 3.5.0 `NamenodeWebHdfsMethods#get`, `#put`, `#post`, `#delete`.

use bytes::Bytes;
use cairn_net::http::{Answer, Streamed};
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    CancelDelegationTokenRequestProto, CancelDelegationTokenResponseProto,
    GetDelegationTokenRequestProto, GetDelegationTokenResponseProto,
    RenewDelegationTokenRequestProto, RenewDelegationTokenResponseProto, TokenProto,
};
use cairn_wire::proto::hdfs::*;
use prost::Message;
use serde_json::json;
use tokio::sync::mpsc;

use crate::attributes;
use crate::failure::{Failure, JSON};
use crate::json;
use crate::names::{Asker, Names};
use crate::operation::Operation;
use crate::params::{Params, missing};
use crate::replies::{done, done_untyped, told};
use crate::settings::Settings;

/// What leaves a quota as it is.
const QUOTA_DONT_SET: i64 = i64::MAX;
/// Permission bits of a directory where a request does not say them.
const DIRECTORY_MODE: u16 = 0o755;

/// A request about names.
pub(crate) struct Question<'a> {
    pub(crate) web: &'a Settings,
    pub(crate) names: &'a Names,
    pub(crate) op: Operation,
    pub(crate) path: &'a str,
    pub(crate) p: Params<'a>,
    pub(crate) asker: Asker,
}

impl Question<'_> {
    pub(crate) async fn answer(self) -> Result<Answer, Failure> {
        match self.op.name {
            "GETFILESTATUS" => self.file_status().await,
            "GETFILELINKSTATUS" => self.link_status().await,
            "LISTSTATUS" => self.list().await,
            "LISTSTATUS_BATCH" => {
                let start = self.p.text("startafter").unwrap_or_default();
                let page = listing(self.names, &self.asker, self.path, start.into()).await?;
                Ok(told(json::listing(&page)))
            }
            "GETLINKTARGET" => self.link_target().await,
            "GETCONTENTSUMMARY" => {
                let ask = GetContentSummaryRequestProto { path: self.src() };
                let got: GetContentSummaryResponseProto =
                    self.call("getContentSummary", &ask).await?;
                Ok(told(json::content_summary(&got.summary)))
            }
            "GETQUOTAUSAGE" => {
                let ask = GetQuotaUsageRequestProto { path: self.src() };
                let got: GetQuotaUsageResponseProto = self.call("getQuotaUsage", &ask).await?;
                Ok(told(json::quota_usage(&got.usage)))
            }
            "GET_BLOCK_LOCATIONS" => Ok(told(json::located_blocks(&self.blocks().await?))),
            "GETFILEBLOCKLOCATIONS" => Ok(told(json::block_locations(&self.blocks().await?))),
            "CHECKACCESS" => self.check_access().await,
            "GETHOMEDIRECTORY" => {
                if self.asker.user.real.is_some() {
                    // Any call tells whether one may act for the other.
                    self.server_defaults().await?;
                }
                Ok(told(json!({"Path": self.home()})))
            }
            "GETTRASHROOT" => Ok(told(json!({"Path": self.trash_root().await?}))),
            "GETTRASHROOTS" => self.trash_roots().await,
            "GETSERVERDEFAULTS" => Ok(told(json::server_defaults(&self.server_defaults().await?))),
            "GETSTATUS" => {
                let got: GetFsStatsResponseProto =
                    self.call("getFsStats", &GetFsStatusRequestProto {}).await?;
                let (capacity, used, remaining) = (got.capacity, got.used, got.remaining);
                let status = json!({"capacity": capacity, "used": used, "remaining": remaining});
                Ok(told(json!({"FsStatus": status})))
            }
            "GETACLSTATUS" | "MODIFYACLENTRIES" | "REMOVEACLENTRIES" | "REMOVEDEFAULTACL"
            | "REMOVEACL" | "SETACL" => self.acls().await,
            "GETXATTRS" | "LISTXATTRS" | "SETXATTR" | "REMOVEXATTR" => self.xattrs().await,
            "GETECPOLICY" | "GETECPOLICIES" | "GETECCODECS" | "ENABLEECPOLICY"
            | "DISABLEECPOLICY" | "SETECPOLICY" | "UNSETECPOLICY" => self.erasure_coding().await,
            "GETALLSTORAGEPOLICY"
            | "GETSTORAGEPOLICY"
            | "SETSTORAGEPOLICY"
            | "UNSETSTORAGEPOLICY"
            | "SATISFYSTORAGEPOLICY" => self.storage_policies().await,
            "GETDELEGATIONTOKEN" | "RENEWDELEGATIONTOKEN" | "CANCELDELEGATIONTOKEN" => {
                self.tokens().await
            }
            name if name.contains("SNAPSHOT") => self.snapshots().await,
            _ => self.change().await,
        }
    }

    /// The path, as messages have it.
    pub(crate) fn src(&self) -> String {
        self.path.to_string()
    }

    pub(crate) async fn call<Req: Message, Resp: Message + Default>(
        &self,
        method: &'static str,
        request: &Req,
    ) -> Result<Resp, Failure> {
        self.names.call(&self.asker, method, request).await
    }

    fn required(&self, name: &str) -> Result<String, Failure> {
        self.p.required(name, self.op.name).map(str::to_string)
    }

    fn unsupported(&self) -> Failure {
        Failure::new(class::UNSUPPORTED_OPERATION, format!("{} is not supported", self.op.name))
    }

    /// What a path names, if anything.
    pub(crate) async fn look(&self, path: &str) -> Result<Option<HdfsFileStatusProto>, Failure> {
        let ask = GetFileInfoRequestProto { src: path.to_string() };
        let got: GetFileInfoResponseProto = self.call("getFileInfo", &ask).await?;
        Ok(got.fs)
    }

    fn status(&self, status: Option<HdfsFileStatusProto>) -> Result<Answer, Failure> {
        let missing = || Failure::not_found(format!("File does not exist: {}", self.path));
        Ok(told(json!({"FileStatus": json::status(&status.ok_or_else(missing)?)})))
    }

    async fn file_status(&self) -> Result<Answer, Failure> {
        self.status(self.look(self.path).await?)
    }

    async fn link_status(&self) -> Result<Answer, Failure> {
        let ask = GetFileLinkInfoRequestProto { src: self.src() };
        let got: GetFileLinkInfoResponseProto = self.call("getFileLinkInfo", &ask).await?;
        self.status(got.fs)
    }

    async fn link_target(&self) -> Result<Answer, Failure> {
        let ask = GetLinkTargetRequestProto { path: self.src() };
        let got: GetLinkTargetResponseProto = self.call("getLinkTarget", &ask).await?;
        Ok(told(json!({"Path": got.target_path})))
    }

    /// A directory's entries, page by page.
    async fn list(self) -> Result<Answer, Failure> {
        // What fails here is told by a status.
        let mut page = listing(self.names, &self.asker, self.path, Vec::new()).await?;
        if page.remaining_entries == 0 {
            let entries: Vec<_> = page.partial_listing.iter().map(json::status).collect();
            return Ok(told(json!({"FileStatuses": {"FileStatus": entries}})));
        }
        let (sender, body) = mpsc::channel(2);
        let (names, path) = (self.names.clone(), self.src());
        tokio::spawn(async move {
            let mut text = "{\"FileStatuses\":{\"FileStatus\":[\n".to_string();
            loop {
                let entries: Vec<_> =
                    page.partial_listing.iter().map(|e| json::status(e).to_string()).collect();
                text.push_str(&entries.join(",\n"));
                let last = page.partial_listing.last().filter(|_| page.remaining_entries > 0);
                let Some(last) = last.map(|last| last.path.clone()) else { break };
                text.push_str(",\n");
                if sender.send(Bytes::from(std::mem::take(&mut text))).await.is_err() {
                    return;
                }
                page = match listing(&names, &self.asker, &path, last).await {
                    Ok(page) => page,
                    // The body is left without its end.
                    Err(failure) => {
                        tracing::debug!(path, %failure, "a listing was cut short");
                        return;
                    }
                };
                if page.partial_listing.is_empty() {
                    // What came after has gone meanwhile.
                    text.push_str("null");
                }
            }
            text.push_str("\n]}}\n");
            let _ = sender.send(Bytes::from(text)).await;
            let _ = sender.send(Bytes::new()).await;
        });
        Ok(Answer::Streamed(Streamed::new(JSON, body)))
    }

    async fn blocks(&self) -> Result<LocatedBlocksProto, Failure> {
        let offset = self.p.long("offset", Some(0))?.unwrap_or_default();
        let length = self.p.long("length", Some(0))?.unwrap_or(i64::MAX);
        let ask = GetBlockLocationsRequestProto {
            src: self.src(),
            offset: offset as u64,
            length: length as u64,
            ..Default::default()
        };
        let got: GetBlockLocationsResponseProto = self.call("getBlockLocations", &ask).await?;
        let missing = || Failure::not_found(format!("File does not exist: {}", self.path));
        got.locations.ok_or_else(missing)
    }

    async fn check_access(&self) -> Result<Answer, Failure> {
        const ACTION: &str = "fsaction";
        let symbols = self.p.text(ACTION).filter(|text| *text != "null");
        let symbols = symbols.ok_or_else(|| missing(ACTION, self.op.name))?;
        let mode = cairn_client::permission_bits(symbols).ok_or_else(|| {
            let domain = "does not belong to the domain [r-][w-][x-]";
            Failure::param(ACTION, format!("Invalid value: \"{symbols}\" {domain}"))
        })?;
        let ask = CheckAccessRequestProto { path: self.src(), mode: mode.into() };
        let _: CheckAccessResponseProto = self.call("checkAccess", &ask).await?;
        Ok(done_untyped())
    }

    /// Source: Hadoop 3.5.0 `DFSUtilClient#getHomeDirectory`.
    pub(crate) fn home(&self) -> String {
        format!("{}/{}", self.web.homes.trim_end_matches('/'), self.asker.user.effective)
    }

    pub(crate) async fn server_defaults(&self) -> Result<FsServerDefaultsProto, Failure> {
        let ask = GetServerDefaultsRequestProto {};
        let got: GetServerDefaultsResponseProto = self.call("getServerDefaults", &ask).await?;
        Ok(got.server_defaults)
    }

    /// The entries of `aclspec`.
    fn acl_spec(&self, with_permissions: bool) -> Result<Vec<AclEntryProto>, Failure> {
        const SPEC: &str = "aclspec";
        let spec = self.p.required(SPEC, self.op.name)?;
        self.web.acl_pattern.check(SPEC, spec)?;
        attributes::acl(spec, with_permissions)
    }

    async fn acls(&self) -> Result<Answer, Failure> {
        let src = self.src();
        match self.op.name {
            "GETACLSTATUS" => {
                let ask = GetAclStatusRequestProto { src };
                let got: GetAclStatusResponseProto = self.call("getAclStatus", &ask).await?;
                return Ok(told(json::acl(&got.result)));
            }
            "MODIFYACLENTRIES" => {
                let ask = ModifyAclEntriesRequestProto { src, acl_spec: self.acl_spec(true)? };
                let _: ModifyAclEntriesResponseProto = self.call("modifyAclEntries", &ask).await?;
            }
            "REMOVEACLENTRIES" => {
                let ask = RemoveAclEntriesRequestProto { src, acl_spec: self.acl_spec(false)? };
                let _: RemoveAclEntriesResponseProto = self.call("removeAclEntries", &ask).await?;
            }
            "REMOVEDEFAULTACL" => {
                let ask = RemoveDefaultAclRequestProto { src };
                let _: RemoveDefaultAclResponseProto = self.call("removeDefaultAcl", &ask).await?;
            }
            "REMOVEACL" => {
                let ask = RemoveAclRequestProto { src };
                let _: RemoveAclResponseProto = self.call("removeAcl", &ask).await?;
            }
            "SETACL" => {
                let ask = SetAclRequestProto { src, acl_spec: self.acl_spec(true)? };
                let _: SetAclResponseProto = self.call("setAcl", &ask).await?;
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }

    async fn xattrs(&self) -> Result<Answer, Failure> {
        const NAME: &str = "xattr.name";
        const CODEC: &str = "org.apache.hadoop.fs.XAttrCodec";
        let src = self.src();
        match self.op.name {
            "GETXATTRS" => {
                let encoding = self.p.word("encoding", CODEC, &attributes::ENCODINGS)?;
                let encoding = encoding.ok_or_else(|| missing("encoding", self.op.name))?;
                let wanted = self.p.all(NAME).filter(|name| !name.is_empty());
                let x_attrs =
                    wanted.map(|name| attributes::xattr(name, None)).collect::<Result<_, _>>()?;
                let ask = GetXAttrsRequestProto { src, x_attrs };
                let got: GetXAttrsResponseProto = self.call("getXAttrs", &ask).await?;
                return Ok(told(attributes::xattrs(&got.x_attrs, encoding)));
            }
            "LISTXATTRS" => {
                let ask = ListXAttrsRequestProto { src };
                let got: ListXAttrsResponseProto = self.call("listXAttrs", &ask).await?;
                return Ok(told(attributes::xattr_names(&got.x_attrs)));
            }
            "SETXATTR" => {
                const FLAGS: &str = "org.apache.hadoop.fs.XAttrSetFlag";
                let name = self.required(NAME)?;
                let flags = self.p.words("flag", FLAGS, &["CREATE", "REPLACE"])?;
                if flags.is_empty() {
                    return Err(missing("flag", self.op.name));
                }
                let bits = flags.iter().map(|flag| match *flag {
                    "CREATE" => XAttrSetFlagProto::XattrCreate as u32,
                    _ => XAttrSetFlagProto::XattrReplace as u32,
                });
                let value = self.p.text("xattr.value").map(attributes::xattr_value).transpose()?;
                let ask = SetXAttrRequestProto {
                    src,
                    x_attr: Some(attributes::xattr(&name, value)?),
                    flag: Some(bits.fold(0, |all, bit| all | bit)),
                };
                let _: SetXAttrResponseProto = self.call("setXAttr", &ask).await?;
            }
            "REMOVEXATTR" => {
                let x_attr = Some(attributes::xattr(&self.required(NAME)?, None)?);
                let ask = RemoveXAttrRequestProto { src, x_attr };
                let _: RemoveXAttrResponseProto = self.call("removeXAttr", &ask).await?;
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }

    async fn erasure_coding(&self) -> Result<Answer, Failure> {
        let src = self.src();
        let name = || self.required("ecpolicy");
        match self.op.name {
            "GETECPOLICY" => {
                let ask = GetErasureCodingPolicyRequestProto { src };
                let got: GetErasureCodingPolicyResponseProto =
                    self.call("getErasureCodingPolicy", &ask).await?;
                return Ok(told(json!(got.ec_policy.as_ref().map(json::ec_policy))));
            }
            "GETECPOLICIES" => {
                let ask = GetErasureCodingPoliciesRequestProto {};
                let got: GetErasureCodingPoliciesResponseProto =
                    self.call("getErasureCodingPolicies", &ask).await?;
                return Ok(told(json::ec_policies(&got.ec_policies)));
            }
            "GETECCODECS" => {
                let ask = GetErasureCodingCodecsRequestProto {};
                let got: GetErasureCodingCodecsResponseProto =
                    self.call("getErasureCodingCodecs", &ask).await?;
                return Ok(told(json::codecs(&got.codec)));
            }
            "ENABLEECPOLICY" => {
                let ask = EnableErasureCodingPolicyRequestProto { ec_policy_name: name()? };
                let _: EnableErasureCodingPolicyResponseProto =
                    self.call("enableErasureCodingPolicy", &ask).await?;
            }
            "DISABLEECPOLICY" => {
                let ask = DisableErasureCodingPolicyRequestProto { ec_policy_name: name()? };
                let _: DisableErasureCodingPolicyResponseProto =
                    self.call("disableErasureCodingPolicy", &ask).await?;
            }
            "SETECPOLICY" => {
                let ask = SetErasureCodingPolicyRequestProto { src, ec_policy_name: Some(name()?) };
                let _: SetErasureCodingPolicyResponseProto =
                    self.call("setErasureCodingPolicy", &ask).await?;
            }
            "UNSETECPOLICY" => {
                let ask = UnsetErasureCodingPolicyRequestProto { src };
                let _: UnsetErasureCodingPolicyResponseProto =
                    self.call("unsetErasureCodingPolicy", &ask).await?;
                return Ok(done_untyped());
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }

    async fn storage_policies(&self) -> Result<Answer, Failure> {
        let src = self.src();
        match self.op.name {
            "GETALLSTORAGEPOLICY" => {
                let ask = GetStoragePoliciesRequestProto {};
                let got: GetStoragePoliciesResponseProto =
                    self.call("getStoragePolicies", &ask).await?;
                return Ok(told(json::storage_policies(&got.policies)));
            }
            "GETSTORAGEPOLICY" => {
                let ask = GetStoragePolicyRequestProto { path: src };
                let got: GetStoragePolicyResponseProto =
                    self.call("getStoragePolicy", &ask).await?;
                let policy = json::storage_policy(&got.storage_policy);
                return Ok(told(json!({"BlockStoragePolicy": policy})));
            }
            "SETSTORAGEPOLICY" => {
                let name = self.p.text("storagepolicy");
                let name =
                    name.ok_or_else(|| Failure::argument("Storage policy name is empty."))?;
                let ask = SetStoragePolicyRequestProto { src, policy_name: name.to_string() };
                let _: SetStoragePolicyResponseProto = self.call("setStoragePolicy", &ask).await?;
            }
            "UNSETSTORAGEPOLICY" => {
                let ask = UnsetStoragePolicyRequestProto { src };
                let _: UnsetStoragePolicyResponseProto =
                    self.call("unsetStoragePolicy", &ask).await?;
                return Ok(done_untyped());
            }
            "SATISFYSTORAGEPOLICY" => {
                let ask = SatisfyStoragePolicyRequestProto { src };
                let _: SatisfyStoragePolicyResponseProto =
                    self.call("satisfyStoragePolicy", &ask).await?;
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }

    /// Without security there are no tokens: whoever asks for one gets none.
    async fn tokens(&self) -> Result<Answer, Failure> {
        match self.op.name {
            "GETDELEGATIONTOKEN" => {
                if self.p.text("delegation").is_some() {
                    return Err(Failure::argument("delegation parameter is not null."));
                }
                let renewer = self.p.text("renewer").unwrap_or(&self.asker.user.effective);
                let ask = GetDelegationTokenRequestProto { renewer: renewer.to_string() };
                let got: GetDelegationTokenResponseProto =
                    self.call("getDelegationToken", &ask).await?;
                // By this kind a client finds it again among others, to come by the scheme that it came by.
                let kind =
                    if self.p.is_secure() { "SWEBHDFS delegation" } else { "WEBHDFS delegation" };
                let token = got.token.map(|token| TokenProto { kind: kind.to_string(), ..token });
                Ok(told(json!({"Token": token.as_ref().map(json::token)})))
            }
            "RENEWDELEGATIONTOKEN" => {
                let ask = RenewDelegationTokenRequestProto { token: self.token()? };
                let got: RenewDelegationTokenResponseProto =
                    self.call("renewDelegationToken", &ask).await?;
                Ok(told(json!({"long": got.new_expiry_time})))
            }
            "CANCELDELEGATIONTOKEN" => {
                let ask = CancelDelegationTokenRequestProto { token: self.token()? };
                let _: CancelDelegationTokenResponseProto =
                    self.call("cancelDelegationToken", &ask).await?;
                Ok(done())
            }
            _ => Err(self.unsupported()),
        }
    }

    fn token(&self) -> Result<TokenProto, Failure> {
        let text = self.p.required("token", self.op.name)?;
        json::read_token(text).ok_or_else(|| Failure::new("java.io.EOFException", "no token"))
    }

    async fn snapshots(&self) -> Result<Answer, Failure> {
        let root = self.src();
        let text = |name| self.p.text(name).unwrap_or_default().to_string();
        let (old, new) = (text("oldsnapshotname"), text("snapshotname"));
        match self.op.name {
            "ALLOWSNAPSHOT" => {
                let ask = AllowSnapshotRequestProto { snapshot_root: root };
                let _: AllowSnapshotResponseProto = self.call("allowSnapshot", &ask).await?;
            }
            "DISALLOWSNAPSHOT" => {
                let ask = DisallowSnapshotRequestProto { snapshot_root: root };
                let _: DisallowSnapshotResponseProto = self.call("disallowSnapshot", &ask).await?;
            }
            "CREATESNAPSHOT" => {
                let name = Some(new).filter(|name| !name.is_empty());
                let ask = CreateSnapshotRequestProto { snapshot_root: root, snapshot_name: name };
                let got: CreateSnapshotResponseProto = self.call("createSnapshot", &ask).await?;
                return Ok(told(json!({"Path": got.snapshot_path})));
            }
            "RENAMESNAPSHOT" => {
                let ask = RenameSnapshotRequestProto {
                    snapshot_root: root,
                    snapshot_old_name: self.required("oldsnapshotname")?,
                    snapshot_new_name: self.required("snapshotname")?,
                };
                let _: RenameSnapshotResponseProto = self.call("renameSnapshot", &ask).await?;
            }
            "DELETESNAPSHOT" => {
                let name = self.required("snapshotname")?;
                let ask = DeleteSnapshotRequestProto { snapshot_root: root, snapshot_name: name };
                let _: DeleteSnapshotResponseProto = self.call("deleteSnapshot", &ask).await?;
            }
            "GETSNAPSHOTDIFF" => {
                let ask = GetSnapshotDiffReportRequestProto {
                    snapshot_root: root,
                    from_snapshot: old,
                    to_snapshot: new,
                };
                let got: GetSnapshotDiffReportResponseProto =
                    self.call("getSnapshotDiffReport", &ask).await?;
                return Ok(told(json::diff(&got.diff_report)));
            }
            "GETSNAPSHOTDIFFLISTING" => {
                let cursor = SnapshotDiffReportCursorProto {
                    start_path: text("snapshotdiffstartpath").into_bytes(),
                    index: self.p.int("snapshotdiffindex", None)?.unwrap_or(-1),
                };
                let ask = GetSnapshotDiffReportListingRequestProto {
                    snapshot_root: root,
                    from_snapshot: old,
                    to_snapshot: new,
                    cursor: Some(cursor),
                };
                let got: GetSnapshotDiffReportListingResponseProto =
                    self.call("getSnapshotDiffReportListing", &ask).await?;
                return Ok(told(json::diff_listing(&got.diff_report)));
            }
            "GETSNAPSHOTTABLEDIRECTORYLIST" => {
                let got = self.snapshottable().await?;
                return Ok(told(json::snapshottable(got.as_ref())));
            }
            "GETSNAPSHOTLIST" => {
                let ask = GetSnapshotListingRequestProto { snapshot_root: root };
                let got: GetSnapshotListingResponseProto =
                    self.call("getSnapshotListing", &ask).await?;
                return Ok(told(json::snapshots(got.snapshot_list.as_ref())));
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }

    pub(crate) async fn snapshottable(
        &self,
    ) -> Result<Option<SnapshottableDirectoryListingProto>, Failure> {
        let ask = GetSnapshottableDirListingRequestProto {};
        let got: GetSnapshottableDirListingResponseProto =
            self.call("getSnapshottableDirListing", &ask).await?;
        Ok(got.snapshottable_dir_list)
    }

    /// What changes the tree or the attributes of a file.
    async fn change(&self) -> Result<Answer, Failure> {
        let src = self.src();
        let p = &self.p;
        let permission = |mode: Option<u16>| FsPermissionProto {
            perm: u32::from(mode.unwrap_or(DIRECTORY_MODE)),
        };
        match self.op.name {
            "MKDIRS" => {
                let ask = MkdirsRequestProto {
                    src,
                    masked: permission(p.mode("permission")?),
                    create_parent: true,
                    unmasked: p.mode("unmaskedpermission")?.map(|mode| permission(Some(mode))),
                };
                let got: MkdirsResponseProto = self.call("mkdirs", &ask).await?;
                return Ok(told(json!({"boolean": got.result})));
            }
            "CREATESYMLINK" => {
                let ask = CreateSymlinkRequestProto {
                    target: p.destination(self.op.name)?,
                    link: src,
                    dir_perm: permission(Some(0o777)),
                    create_parent: p.boolean("createparent", true)?,
                };
                let _: CreateSymlinkResponseProto = self.call("createSymlink", &ask).await?;
            }
            "RENAME" => {
                const OPTIONS: &str = "org.apache.hadoop.fs.Options.Rename";
                let dst = p.destination(self.op.name)?;
                let words = ["NONE", "OVERWRITE", "TO_TRASH"];
                let options = p.words("renameoptions", OPTIONS, &words)?;
                if options.is_empty() {
                    let ask = RenameRequestProto { src, dst };
                    let got: RenameResponseProto = self.call("rename", &ask).await?;
                    return Ok(told(json!({"boolean": got.result})));
                }
                let ask = Rename2RequestProto {
                    src,
                    dst,
                    overwrite_dest: options.contains(&"OVERWRITE"),
                    move_to_trash: options.contains(&"TO_TRASH").then_some(true),
                };
                let _: Rename2ResponseProto = self.call("rename2", &ask).await?;
            }
            "DELETE" => {
                let recursive = p.boolean("recursive", false)?;
                let ask = DeleteRequestProto { src, recursive };
                let got: DeleteResponseProto = self.call("delete", &ask).await?;
                return Ok(told(json!({"boolean": got.result})));
            }
            "TRUNCATE" => {
                let len = p.long("newlength", Some(0))?;
                let len = len.ok_or_else(|| missing("newlength", self.op.name))?;
                let mut random = [0; 8];
                getrandom::fill(&mut random).map_err(|error| Failure::io(error.to_string()))?;
                let ask = TruncateRequestProto {
                    src,
                    new_length: len as u64,
                    // Each request is a client of its own.
                    client_name: format!("DFSClient_{}", i64::from_le_bytes(random)),
                };
                let got: TruncateResponseProto = self.call("truncate", &ask).await?;
                return Ok(told(json!({"boolean": got.result})));
            }
            "CONCAT" => {
                let srcs = self.required("sources")?.split(',').map(str::to_string).collect();
                let _: ConcatResponseProto =
                    self.call("concat", &ConcatRequestProto { trg: src, srcs }).await?;
                return Ok(done_untyped());
            }
            "SETREPLICATION" => {
                let copies = p.replication()?.map_or(u32::from(self.web.replication), |copies| {
                    u32::from(copies.unsigned_abs())
                });
                let ask = SetReplicationRequestProto { src, replication: copies };
                let got: SetReplicationResponseProto = self.call("setReplication", &ask).await?;
                return Ok(told(json!({"boolean": got.result})));
            }
            "SETOWNER" => {
                let (owner, group) = (p.text("owner"), p.text("group"));
                if owner.is_none() && group.is_none() {
                    return Err(Failure::argument("Both owner and group are empty."));
                }
                let ask = SetOwnerRequestProto {
                    src,
                    username: owner.map(str::to_string),
                    groupname: group.map(str::to_string),
                };
                let _: SetOwnerResponseProto = self.call("setOwner", &ask).await?;
            }
            "SETPERMISSION" => {
                let permission = permission(p.mode("permission")?);
                let ask = SetPermissionRequestProto { src, permission };
                let _: SetPermissionResponseProto = self.call("setPermission", &ask).await?;
            }
            "SETTIMES" => {
                let ask = SetTimesRequestProto {
                    src,
                    mtime: p.long("modificationtime", Some(-1))?.unwrap_or(-1) as u64,
                    atime: p.long("accesstime", Some(-1))?.unwrap_or(-1) as u64,
                };
                let _: SetTimesResponseProto = self.call("setTimes", &ask).await?;
            }
            "SETQUOTA" | "SETQUOTABYSTORAGETYPE" => {
                let limit = |name| Ok::<_, Failure>(p.long(name, None)?.unwrap_or(QUOTA_DONT_SET));
                let (mut names, space) = (limit("namespacequota")?, limit("storagespacequota")?);
                let mut storage_type = None;
                if self.op.name == "SETQUOTABYSTORAGETYPE" {
                    let name = self.required("storagetype")?;
                    names = QUOTA_DONT_SET;
                    let number = json::storage_type_number(&name).ok_or_else(|| {
                        let upper = name.to_uppercase();
                        Failure::argument(format!(
                            "No enum constant org.apache.hadoop.fs.StorageType.{upper}"
                        ))
                    })?;
                    storage_type = Some(number);
                }
                let ask = SetQuotaRequestProto {
                    path: src,
                    namespace_quota: names as u64,
                    storagespace_quota: space as u64,
                    storage_type,
                };
                let _: SetQuotaResponseProto = self.call("setQuota", &ask).await?;
            }
            _ => return Err(self.unsupported()),
        }
        Ok(done())
    }
}

/// A page of a directory's entries.
pub(crate) async fn listing(
    names: &Names,
    asker: &Asker,
    path: &str,
    start_after: Vec<u8>,
) -> Result<DirectoryListingProto, Failure> {
    let ask = GetListingRequestProto {
        src: path.to_string(),
        start_after,
        need_location: false,
        read_up_to: None,
    };
    let got: GetListingResponseProto = names.call(asker, "getListing", &ask).await?;
    got.dir_list.ok_or_else(|| Failure::not_found(format!("File {path} does not exist.")))
}
