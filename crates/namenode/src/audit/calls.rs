//! What the audit log says of each method of `ClientProtocol` and of refreshes. Methods that are not here are never told
//! of.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem`, the calls of `logAuditEvent` and `checkSuperuserPrivilege`; `NameNodeRpcServer`.

use bytes::Buf;
use cairn_namespace::perm;
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field, string};

/// What is told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// `cmd`.
    pub command: String,
    /// `src`.
    pub src: Option<String>,
    /// `dst`.
    pub dst: Option<String>,
    /// Whose owner, group and mode are told.
    pub stat: Stat,
    /// When it is told of.
    pub when: When,
    /// What is told in its place where the caller is no superuser and has to be.
    pub denied: Option<Denied>,
}

/// What is told of a call that only a superuser may make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub command: String,
    pub src: Option<String>,
}

/// Whose permissions are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stat {
    None,
    Source,
    Target,
    /// The target, or what is in it by the source's name.
    Renamed,
    /// What the answer says of the new file: the path may lead to it no more.
    Answered,
    /// Nobody's; the target is the path that the answer names.
    Created,
}

/// When a call is told of. One that is denied always is, but for [`When::Allowed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// When it succeeds.
    Done,
    /// When it succeeds and answers yes.
    True,
    /// When it succeeds; as denied when it answers no.
    AsAnswered,
    /// Always; as denied when it fails, whatever for.
    Tried,
    /// When it succeeds and there is something in the answer.
    Filled,
    /// When it has found out what is there, also where that is not what was asked for.
    Looked,
    /// Only when it is denied.
    Denied,
    /// When it succeeds, or the caller is no superuser; not when something else denies it.
    Allowed,
}

/// Method, command, the fields of the request that are source and target (0: none), permissions, occasion.
type Row = (&'static str, &'static str, u32, u32, Stat, When);

const ROWS: &[Row] = &[
    ("getBlockLocations", "open", 1, 0, Stat::None, When::Done),
    ("getFileInfo", "getfileinfo", 1, 0, Stat::None, When::Done),
    ("getFileLinkInfo", "getfileinfo", 1, 0, Stat::None, When::Done),
    ("getLinkTarget", "getfileinfo", 1, 0, Stat::None, When::Looked),
    ("getListing", "listStatus", 1, 0, Stat::None, When::Done),
    ("getContentSummary", "contentSummary", 1, 0, Stat::None, When::Done),
    ("getQuotaUsage", "quotaUsage", 1, 0, Stat::None, When::Done),
    ("isFileClosed", "isFileClosed", 1, 0, Stat::None, When::True),
    ("checkAccess", "checkAccess", 1, 0, Stat::None, When::Done),
    ("create", "create", 1, 0, Stat::Answered, When::Done),
    ("append", "append", 1, 0, Stat::None, When::Done),
    ("truncate", "truncate", 1, 0, Stat::Source, When::Done),
    ("mkdirs", "mkdirs", 1, 0, Stat::Source, When::Done),
    ("delete", "delete", 1, 0, Stat::None, When::AsAnswered),
    ("rename", "rename", 1, 2, Stat::Renamed, When::True),
    ("setReplication", "setReplication", 1, 0, Stat::None, When::True),
    ("setPermission", "setPermission", 1, 0, Stat::Source, When::Done),
    ("setOwner", "setOwner", 1, 0, Stat::Source, When::Done),
    ("setTimes", "setTimes", 1, 0, Stat::Source, When::Done),
    ("satisfyStoragePolicy", "satisfyStoragePolicy", 1, 0, Stat::Source, When::Done),
    ("getAclStatus", "getAclStatus", 1, 0, Stat::None, When::Done),
    ("modifyAclEntries", "modifyAclEntries", 1, 0, Stat::Source, When::Done),
    ("removeAclEntries", "removeAclEntries", 1, 0, Stat::Source, When::Done),
    ("removeDefaultAcl", "removeDefaultAcl", 1, 0, Stat::Source, When::Done),
    ("removeAcl", "removeAcl", 1, 0, Stat::Source, When::Done),
    ("setAcl", "setAcl", 1, 0, Stat::Source, When::Done),
    ("setXAttr", "setXAttr", 1, 0, Stat::Source, When::Done),
    ("removeXAttr", "removeXAttr", 1, 0, Stat::Source, When::Done),
    ("getXAttrs", "getXAttrs", 1, 0, Stat::None, When::Done),
    ("listXAttrs", "listXAttrs", 1, 0, Stat::None, When::Done),
    ("setErasureCodingPolicy", "setErasureCodingPolicy", 1, 0, Stat::Source, When::Done),
    ("unsetErasureCodingPolicy", "unsetErasureCodingPolicy", 1, 0, Stat::Source, When::Done),
    ("getErasureCodingPolicy", "getErasureCodingPolicy", 1, 0, Stat::None, When::Tried),
    ("getErasureCodingPolicies", "getErasureCodingPolicies", 0, 0, Stat::None, When::Tried),
    ("getErasureCodingCodecs", "getErasureCodingCodecs", 0, 0, Stat::None, When::Tried),
    (
        "getECTopologyResultForPolicies",
        "getECTopologyResultForPolicies",
        0,
        0,
        Stat::None,
        When::Done,
    ),
    ("allowSnapshot", "allowSnapshot", 1, 0, Stat::None, When::Allowed),
    ("disallowSnapshot", "disallowSnapshot", 1, 0, Stat::None, When::Allowed),
    ("createSnapshot", "createSnapshot", 1, 0, Stat::Created, When::Done),
    ("getSnapshottableDirListing", "listSnapshottableDirectory", 0, 0, Stat::None, When::Done),
    ("getSnapshotListing", "ListSnapshot", 1, 0, Stat::None, When::Done),
    ("getDatanodeReport", "datanodeReport", 0, 0, Stat::None, When::Done),
    ("getDatanodeStorageReport", "getDatanodeStorageReport", 0, 0, Stat::None, When::Done),
    ("getSlowDatanodeReport", "slowDataNodesReport", 0, 0, Stat::None, When::Done),
    ("saveNamespace", "saveNamespace", 0, 0, Stat::None, When::Done),
    ("refreshNodes", "refreshNodes", 0, 0, Stat::None, When::Done),
    ("acceptRestored", "acceptRestored", 0, 0, Stat::None, When::Done),
    ("setDatanodeState", "setDatanodeState", 0, 0, Stat::None, When::Done),
    ("setBalancerBandwidth", "setBalancerBandwidth", 0, 0, Stat::None, When::Done),
    ("finalizeUpgrade", "finalizeUpgrade", 0, 0, Stat::None, When::Done),
    ("rollEdits", "rollEditLog", 0, 0, Stat::None, When::Done),
    ("metaSave", "metaSave", 0, 0, Stat::None, When::Done),
    ("listCorruptFileBlocks", "listCorruptFileBlocks", 1, 0, Stat::None, When::Denied),
    ("getCurrentEditLogTxid", "getCurrentEditLogTxid", 0, 0, Stat::None, When::Denied),
    ("getEditsFromTxid", "getEditsFromTxid", 0, 0, Stat::None, When::Denied),
    ("listCachePools", "listCachePools", 0, 0, Stat::None, When::Done),
    ("createEncryptionZone", "createEncryptionZone", 1, 0, Stat::Source, When::Done),
    ("getEnclosingRoot", "getEZForPath", 1, 0, Stat::Source, When::Done),
    ("getEZForPath", "getEZForPath", 1, 0, Stat::Source, When::Done),
    ("refreshServiceAcl", "refreshServiceAcl", 0, 0, Stat::None, When::Done),
    ("refreshUserToGroupsMappings", "refreshUserToGroupsMappings", 0, 0, Stat::None, When::Done),
    (
        "refreshSuperUserGroupsConfiguration",
        "refreshSuperUserGroupsConfiguration",
        0,
        0,
        Stat::None,
        When::Done,
    ),
    ("refreshCallQueue", "refreshCallQueue", 0, 0, Stat::None, When::Done),
];

/// What is told of a call; nothing of one that cannot be decoded, for it names nothing.
pub(super) fn events(call: &Call) -> Vec<Event> {
    let row = ROWS.iter().find(|row| call.method == row.0);
    match row {
        Some((_, command, src, dst, stat, when)) => {
            let (src, dst) = (string_field(&call.body, *src), string_field(&call.body, *dst));
            let (stat, when) = (*stat, *when);
            vec![Event { dst, stat, when, ..plain(command, src) }]
        }
        None => special(call).into_iter().collect(),
    }
}

/// What is told of the directories that one call has listed, and whether each may be.
pub(super) fn listed(call: &Call, answer: &[u8]) -> Vec<(Event, bool)> {
    let request = call.decode::<pb::GetBatchedListingRequestProto>().ok();
    let answer = pb::GetBatchedListingResponseProto::decode(answer).ok();
    let Some((request, answer)) = request.zip(answer) else { return Vec::new() };
    let event = |listing: pb::BatchedDirectoryListingProto| {
        let path = request.paths.get(listing.parent_idx as usize)?;
        let denied = listing.exception.is_some_and(|refusal| is_denial(&refusal.class_name));
        Some((plain("listStatus", Some(path.clone())), !denied))
    };
    answer.listings.into_iter().filter_map(event).collect()
}

/// The permissions of a file that was made.
pub(super) fn created(answer: &[u8]) -> Option<String> {
    let status = pb::CreateResponseProto::decode(answer).ok()?.fs?;
    let mode = u16::try_from(status.permission.perm).ok()?;
    Some(permissions(&status.owner, &status.group, mode))
}

/// `owner:group:rwxr-xr-x`.
pub(super) fn permissions(owner: &str, group: &str, mode: u16) -> String {
    format!("{owner}:{group}:{}", perm::symbols(mode))
}

/// Whether an exception says that the caller may not.
pub(super) fn is_denial(class: &str) -> bool {
    class.ends_with("AccessControlException")
}

fn plain(command: &str, src: Option<String>) -> Event {
    let (stat, when) = (Stat::None, When::Done);
    Event { command: command.to_string(), src, dst: None, stat, when, denied: None }
}

fn denied_at(command: &str, src: Option<String>) -> Option<Denied> {
    Some(Denied { command: command.to_string(), src })
}

/// Calls whose words are made of several parts of the request.
fn special(call: &Call) -> Option<Event> {
    Some(match call.method.as_str() {
        "getLocatedFileInfo" => {
            let request: pb::GetLocatedFileInfoRequestProto = call.decode().ok()?;
            let opens = request.need_block_token.unwrap_or(false);
            plain(if opens { "open" } else { "getfileinfo" }, request.src)
        }
        "concat" => {
            let request: pb::ConcatRequestProto = call.decode().ok()?;
            let (dst, stat) = (Some(request.trg), Stat::Target);
            Event { dst, stat, ..plain("concat", Some(list(&request.srcs))) }
        }
        "rename2" => {
            let request: pb::Rename2RequestProto = call.decode().ok()?;
            let options: &[&str] = match (request.overwrite_dest, request.move_to_trash) {
                (true, Some(true)) => &["OVERWRITE", "TO_TRASH"],
                (true, _) => &["OVERWRITE"],
                (false, Some(true)) => &["TO_TRASH"],
                (false, _) => &["NONE"],
            };
            let command = format!("rename (options={})", list(options));
            let (dst, stat) = (Some(request.dst), Stat::Target);
            Event { dst, stat, ..plain(&command, Some(request.src)) }
        }
        "setQuota" => {
            let request: pb::SetQuotaRequestProto = call.decode().ok()?;
            let (names, space) = (request.namespace_quota, request.storagespace_quota);
            plain(quota_command(names as i64, space as i64), Some(request.path))
        }
        "deleteSnapshot" => {
            let request: pb::DeleteSnapshotRequestProto = call.decode().ok()?;
            let path = snapshot_path(&request.snapshot_root, &request.snapshot_name);
            plain("deleteSnapshot", Some(path))
        }
        "renameSnapshot" => {
            let request: pb::RenameSnapshotRequestProto = call.decode().ok()?;
            let path = |name: &str| snapshot_path(&request.snapshot_root, name);
            let dst = Some(path(&request.snapshot_new_name));
            Event { dst, ..plain("renameSnapshot", Some(path(&request.snapshot_old_name))) }
        }
        "getSnapshotDiffReport" | "getSnapshotDiffReportListing" => {
            let root = string_field(&call.body, 1)?;
            let path = |field: u32| match string_field(&call.body, field) {
                Some(name) if !name.is_empty() => Some(snapshot_path(&root, &name)),
                _ => Some(root.clone()),
            };
            Event { dst: path(3), ..plain("computeSnapshotDiff", path(2)) }
        }
        "addErasureCodingPolicies" => {
            let request: pb::AddErasureCodingPoliciesRequestProto = call.decode().ok()?;
            let names: Vec<String> = request
                .ec_policies
                .into_iter()
                .map(|policy| policy.name.unwrap_or_default())
                .collect();
            let denied = denied_at("addErasureCodingPolicies", None);
            Event { denied, ..plain("addErasureCodingPolicies", Some(list(&names))) }
        }
        "enableErasureCodingPolicy"
        | "disableErasureCodingPolicy"
        | "removeErasureCodingPolicy" => {
            let denied = denied_at(&call.method, None);
            Event { denied, ..plain(&call.method, string_field(&call.body, 1)) }
        }
        "setStoragePolicy" | "unsetStoragePolicy" => {
            let (denied, stat) = (denied_at(&call.method, None), Stat::Source);
            Event { denied, stat, ..plain(&call.method, string_field(&call.body, 1)) }
        }
        "convertFiles" => {
            let request: pb::ConvertFilesRequestProto = call.decode().ok()?;
            if request.dry_run() {
                return None;
            }
            let path = |id: &u64| format!("/.reserved/.inodes/{id}");
            let paths: Vec<String> = request.file_ids.iter().map(path).collect();
            let denied = denied_at("convertFiles", None);
            Event { denied, ..plain("convertFiles", Some(list(&paths))) }
        }
        "unpackFiles" => {
            let request: pb::UnpackFilesRequestProto = call.decode().ok()?;
            if request.dry_run() {
                return None;
            }
            let path = |id: &u64| format!("/.reserved/.inodes/{id}");
            let paths: Vec<String> = request.file_ids.iter().map(path).collect();
            let denied = denied_at("unpackFiles", None);
            Event { denied, ..plain("unpackFiles", Some(list(&paths))) }
        }
        "swapBlocks" => {
            let request: pb::SwapBlocksRequestProto = call.decode().ok()?;
            let path = |id: u64| format!("/.reserved/.inodes/{id}");
            let denied = denied_at("swapBlocks", None);
            Event {
                denied,
                dst: Some(path(request.copy_id)),
                ..plain("swapBlocks", Some(path(request.file_id)))
            }
        }
        "listOpenFiles" => {
            let denied = denied_at("listOpenFiles", string_field(&call.body, 3));
            Event { denied, ..plain("listOpenFiles", None) }
        }
        "setSafeMode" => {
            let request: pb::SetSafeModeRequestProto = call.decode().ok()?;
            plain(safe_mode_command(request.action)?, None)
        }
        "rollingUpgrade" => {
            let request: pb::RollingUpgradeRequestProto = call.decode().ok()?;
            let command = rolling_upgrade_command(request.action)?;
            Event { when: When::Filled, ..plain(command, None) }
        }
        "restoreFailedStorage" => {
            let request: pb::RestoreFailedStorageRequestProto = call.decode().ok()?;
            let command = match request.arg.as_str() {
                "check" => "checkRestoreFailedStorage",
                "true" => "enableRestoreFailedStorage",
                _ => "disableRestoreFailedStorage",
            };
            plain(command, None)
        }
        "listEncryptionZones" | "listReencryptionStatus" => {
            let command = call.method.as_str();
            let denied = denied_at(command, Some("/".to_string()));
            Event { when: When::Tried, denied, ..plain(command, None) }
        }
        "reencryptEncryptionZone" => {
            let request: pb::ReencryptEncryptionZoneRequestProto = call.decode().ok()?;
            let action = pb::ReencryptActionProto::try_from(request.action).ok()?;
            let command = match action {
                pb::ReencryptActionProto::StartReencrypt => "STARTreencryption",
                pb::ReencryptActionProto::CancelReencrypt => "CANCELreencryption",
            };
            let denied = denied_at("reencryptEncryptionZone", Some(request.zone.clone()));
            Event { when: When::Tried, denied, ..plain(command, Some(request.zone)) }
        }
        _ => return cache_call(call),
    })
}

/// Calls on the cache. What pools and directives are to be is not told; Hadoop writes out all of it.
fn cache_call(call: &Call) -> Option<Event> {
    let command = call.method.as_str();
    let src = match command {
        "addCacheDirective" => {
            let request: pb::AddCacheDirectiveRequestProto = call.decode().ok()?;
            format!("{{path: {}}}", request.info.path.unwrap_or_default())
        }
        "modifyCacheDirective" => {
            let request: pb::ModifyCacheDirectiveRequestProto = call.decode().ok()?;
            format!("{{id: {}}}", request.info.id?)
        }
        "removeCacheDirective" => {
            let request: pb::RemoveCacheDirectiveRequestProto = call.decode().ok()?;
            format!("{{id: {}}}", request.id)
        }
        "listCacheDirectives" => "{}".to_string(),
        "addCachePool" => {
            let request: pb::AddCachePoolRequestProto = call.decode().ok()?;
            format!("{{poolName: {}}}", request.info.pool_name.unwrap_or_default())
        }
        "modifyCachePool" => {
            let request: pb::ModifyCachePoolRequestProto = call.decode().ok()?;
            format!("{{poolName: {}}}", request.info.pool_name.unwrap_or_default())
        }
        "removeCachePool" => format!("{{poolName: {}}}", string_field(&call.body, 1)?),
        _ => return None,
    };
    Some(plain(command, Some(src)))
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getQuotaCommand`.
fn quota_command(names: i64, space: i64) -> &'static str {
    /// `HdfsConstants.QUOTA_RESET` and `QUOTA_DONT_SET`.
    const RESET: i64 = -1;
    const KEEP: i64 = i64::MAX;
    match (names, space) {
        (RESET, KEEP) => "clearQuota",
        (KEEP, RESET) => "clearSpaceQuota",
        (_, KEEP) => "setQuota",
        _ => "setSpaceQuota",
    }
}

fn safe_mode_command(action: i32) -> Option<&'static str> {
    use pb::SafeModeActionProto as Action;
    Some(match Action::try_from(action).ok()? {
        Action::SafemodeLeave => "safemode_leave",
        Action::SafemodeEnter => "safemode_enter",
        Action::SafemodeGet => "safemode_get",
        Action::SafemodeForceExit => "safemode_force_exit",
    })
}

fn rolling_upgrade_command(action: i32) -> Option<&'static str> {
    use pb::RollingUpgradeActionProto as Action;
    Some(match Action::try_from(action).ok()? {
        Action::Query => "queryRollingUpgrade",
        Action::Start => "startRollingUpgrade",
        Action::Finalize => "finalizeRollingUpgrade",
    })
}

/// Source: Hadoop 3.5.0 `Snapshot#getSnapshotPath`.
fn snapshot_path(root: &str, name: &str) -> String {
    let slash = if root.ends_with('/') { "" } else { "/" };
    format!("{root}{slash}.snapshot/{name}")
}

fn list(items: &[impl AsRef<str>]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(", "))
}

/// The last string in field `wanted` of a message.
pub(super) fn string_field(message: &[u8], wanted: u32) -> Option<String> {
    let (mut rest, mut found) = (message, None);
    while rest.has_remaining() && wanted > 0 {
        let (field, wire_type) = decode_key(&mut rest).ok()?;
        let context = DecodeContext::default();
        if field == wanted && wire_type == WireType::LengthDelimited {
            let mut text = String::new();
            string::merge(wire_type, &mut text, &mut rest, context).ok()?;
            found = Some(text);
        } else {
            skip_field(wire_type, field, &mut rest, context).ok()?;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_wire::proto::common as refresh;

    #[test]
    fn rows_name_methods_that_there_are() {
        let all = [
            pb::CLIENT_NAMENODE_PROTOCOL_METHODS,
            refresh::REFRESH_AUTHORIZATION_POLICY_PROTOCOL_SERVICE_METHODS,
            refresh::REFRESH_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS,
            refresh::REFRESH_CALL_QUEUE_PROTOCOL_SERVICE_METHODS,
            &crate::protocol::catalogue::ADMIN,
        ]
        .concat();
        for row in ROWS {
            assert!(all.contains(&row.0), "{}", row.0);
        }
    }

    #[test]
    fn strings_are_found_by_their_field() {
        let request = pb::RenameRequestProto { src: "/a".to_string(), dst: "/b".to_string() };
        let bytes = request.encode_to_vec();
        let strings = [1, 2, 3, 0].map(|field| string_field(&bytes, field));
        assert_eq!(strings, [Some("/a".to_string()), Some("/b".to_string()), None, None]);
        assert_eq!(string_field(&bytes[..bytes.len() - 1], 2), None, "cut off");
    }

    #[test]
    fn quotas_have_four_commands() {
        for (names, space, want) in [
            (-1, i64::MAX, "clearQuota"),
            (i64::MAX, -1, "clearSpaceQuota"),
            (7, i64::MAX, "setQuota"),
            (i64::MAX, 7, "setSpaceQuota"),
        ] {
            assert_eq!(quota_command(names, space), want);
        }
    }
}
