//! Answers of the NameNode as JSON, in Hadoop's shapes.
//!
//! Names that are no UTF-8 cannot be told; what is wrong in them is replaced. Source: Hadoop 3.5.0 `JsonUtil`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::*;
use serde_json::{Map, Value, json};

/// What is told of a file: `HdfsFileStatus#Flags`.
mod flag {
    pub(super) const HAS_ACL: u32 = 1;
    pub(super) const HAS_CRYPT: u32 = 2;
    pub(super) const HAS_EC: u32 = 4;
    pub(super) const SNAPSHOT_ENABLED: u32 = 8;
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Permission bits with the sticky bit, octal.
fn mode(permission: &FsPermissionProto) -> String {
    format!("{:o}", permission.perm & 0o1777)
}

/// `FileStatus` of a listing.
pub(crate) fn status(status: &HdfsFileStatusProto) -> Value {
    let flags = status.flags.unwrap_or_default();
    let mut value = json!({
        "pathSuffix": text(&status.path),
        "type": match status.file_type() {
            HdfsFileStatusProtoFileType::IsDir => "DIRECTORY",
            HdfsFileStatusProtoFileType::IsFile => "FILE",
            HdfsFileStatusProtoFileType::IsSymlink => "SYMLINK",
        },
        "length": status.length,
        "owner": status.owner,
        "group": status.group,
        "permission": mode(&status.permission),
        "accessTime": status.access_time,
        "modificationTime": status.modification_time,
        "blockSize": status.blocksize.unwrap_or_default(),
        "replication": status.block_replication.unwrap_or_default(),
        "fileId": status.file_id.unwrap_or_default(),
        "childrenNum": status.children_num.unwrap_or(-1),
        "storagePolicy": status.storage_policy.unwrap_or_default(),
    });
    if let Some(target) = &status.symlink {
        value["symlink"] = json!(text(target));
    }
    if flags & flag::HAS_ACL != 0 {
        value["aclBit"] = json!(true);
    }
    if flags & flag::HAS_CRYPT != 0 || status.file_encryption_info.is_some() {
        value["encBit"] = json!(true);
    }
    if flags & flag::HAS_EC != 0 || status.ec_policy.is_some() {
        value["ecBit"] = json!(true);
        if let Some(policy) = &status.ec_policy {
            let schema = policy.schema.clone().unwrap_or_default();
            value["ecPolicy"] = json!(policy.name());
            value["ecPolicyObj"] = json!({
                "name": policy.name(),
                "cellSize": policy.cell_size(),
                "numDataUnits": schema.data_units,
                "numParityUnits": schema.parity_units,
                "codecName": schema.codec_name,
                "id": policy.id,
                "extraOptions": options(&schema),
            });
        }
    }
    if flags & flag::SNAPSHOT_ENABLED != 0 {
        value["snapshotEnabled"] = json!(true);
    }
    value
}

fn options(schema: &ECSchemaProto) -> Map<String, Value> {
    schema.options.iter().map(|o| (o.key.clone(), json!(o.value))).collect()
}

/// An erasure coding policy as the field `ErasureCodingPolicy`'s getters have it.
pub(crate) fn ec_policy(policy: &ErasureCodingPolicyProto) -> Value {
    let schema = policy.schema.clone().unwrap_or_default();
    json!({
        "name": policy.name(),
        "schema": {
            "codecName": schema.codec_name,
            "numDataUnits": schema.data_units,
            "numParityUnits": schema.parity_units,
            "extraOptions": options(&schema),
        },
        "cellSize": policy.cell_size(),
        "id": policy.id,
        "codecName": schema.codec_name,
        "numDataUnits": schema.data_units,
        "numParityUnits": schema.parity_units,
        "replicationPolicy": schema.codec_name == "replication",
        // Ids of those that users define begin there.
        "systemPolicy": policy.id < 64,
    })
}

/// All policies with their states.
pub(crate) fn ec_policies(policies: &[ErasureCodingPolicyProto]) -> Value {
    let each = policies.iter().map(|policy| {
        let state = policy.state.and_then(|state| ErasureCodingPolicyState::try_from(state).ok());
        json!({"policy": ec_policy(policy), "state": match state {
            Some(ErasureCodingPolicyState::Disabled) => "DISABLED",
            Some(ErasureCodingPolicyState::Removed) => "REMOVED",
            _ => "ENABLED",
        }})
    });
    json!({"ErasureCodingPolicies": {"ErasureCodingPolicyInfo": or_null(each)}})
}

/// The codecs and their coders.
pub(crate) fn codecs(codecs: &[CodecProto]) -> Value {
    let each = codecs.iter().map(|codec| (codec.codec.clone(), json!(codec.coders)));
    json!({"ErasureCodingCodecs": each.collect::<Map<_, _>>()})
}

/// An array, or `null` in the place of an empty one.
fn or_null(each: impl Iterator<Item = Value>) -> Value {
    match each.collect::<Vec<_>>() {
        none if none.is_empty() => Value::Null,
        some => Value::Array(some),
    }
}

fn storage_type(number: i32) -> &'static str {
    match StorageTypeProto::try_from(number) {
        Ok(StorageTypeProto::Ssd) => "SSD",
        Ok(StorageTypeProto::Archive) => "ARCHIVE",
        Ok(StorageTypeProto::RamDisk) => "RAM_DISK",
        Ok(StorageTypeProto::Provided) => "PROVIDED",
        Ok(StorageTypeProto::Nvdimm) => "NVDIMM",
        Ok(StorageTypeProto::Disk) | Err(_) => "DISK",
    }
}

/// The number of a storage type by its name.
pub(crate) fn storage_type_number(name: &str) -> Option<i32> {
    (1..=6).find(|number| storage_type(*number).eq_ignore_ascii_case(name))
}

fn storage_types(types: &[i32]) -> Vec<&'static str> {
    types.iter().map(|number| storage_type(*number)).collect()
}

/// A storage policy.
pub(crate) fn storage_policy(policy: &BlockStoragePolicyProto) -> Value {
    let of = |types: &Option<StorageTypesProto>| {
        types.as_ref().map_or(Vec::new(), |types| storage_types(&types.storage_types))
    };
    json!({
        "id": policy.policy_id,
        "name": policy.name,
        "storageTypes": storage_types(&policy.creation_policy.storage_types),
        "creationFallbacks": of(&policy.creation_fallback_policy),
        "replicationFallbacks": of(&policy.replication_fallback_policy),
        // A policy of memory is that of the file only. Source: `BlockStoragePolicySuite`.
        "copyOnCreateFile": policy.name == "LAZY_PERSIST",
    })
}

/// All storage policies.
pub(crate) fn storage_policies(policies: &[BlockStoragePolicyProto]) -> Value {
    let each = or_null(policies.iter().map(storage_policy));
    json!({"BlockStoragePolicies": {"BlockStoragePolicy": each}})
}

/// A page of a listing.
pub(crate) fn listing(listing: &DirectoryListingProto) -> Value {
    let each: Vec<Value> = listing.partial_listing.iter().map(status).collect();
    json!({"DirectoryListing": {
        "partialListing": {"FileStatuses": {"FileStatus": each}},
        "remainingEntries": listing.remaining_entries,
    }})
}

/// `Token#encodeToUrlString`, in an object.
pub(crate) fn token(token: &TokenProto) -> Value {
    json!({"urlString": url_string(token)})
}

/// A token as a parameter. Source: Hadoop 3.5.0 `Token#encodeToUrlString`.
pub(crate) fn url_string(token: &TokenProto) -> String {
    let mut bytes = Vec::new();
    for part in
        [&token.identifier[..], &token.password, token.kind.as_bytes(), token.service.as_bytes()]
    {
        put_vint(&mut bytes, part.len());
        bytes.extend_from_slice(part);
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Source: Hadoop 3.5.0 `WritableUtils#writeVInt`.
fn put_vint(out: &mut Vec<u8>, value: usize) {
    if value <= 127 {
        out.push(value as u8);
        return;
    }
    let bytes = (value as u64).to_be_bytes();
    let len = bytes.len() - bytes.iter().take_while(|byte| **byte == 0).count();
    out.push((-112 - len as i32) as i8 as u8);
    out.extend_from_slice(&bytes[bytes.len() - len..]);
}

/// The token that `encodeToUrlString` has made. `None` if it is none.
pub(crate) fn read_token(encoded: &str) -> Option<TokenProto> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
    let mut rest = &bytes[..];
    let mut part = || {
        let (first, after) = rest.split_first()?;
        let (len, after) = match *first as i8 {
            short @ 0.. => (usize::try_from(short).ok()?, after),
            long @ -120..=-113 => {
                let count = usize::try_from(-112 - i32::from(long)).ok()?;
                let (len, after) = after.split_at_checked(count)?;
                let len = len.iter().fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
                (usize::try_from(len).ok()?, after)
            }
            _ => return None,
        };
        let (part, after) = after.split_at_checked(len)?;
        rest = after;
        Some(part.to_vec())
    };
    Some(TokenProto {
        identifier: part()?,
        password: part()?,
        kind: String::from_utf8(part()?).ok()?,
        service: String::from_utf8(part()?).ok()?,
    })
}

fn xfer_addr(id: &DatanodeIDProto) -> String {
    format!("{}:{}", id.ip_addr, id.xfer_port)
}

fn datanode(node: &DatanodeInfoProto) -> Value {
    let id = &node.id;
    let mut value = json!({
        "ipAddr": id.ip_addr,
        "name": xfer_addr(id),
        "hostName": id.host_name,
        "storageID": id.datanode_uuid,
        "xferPort": id.xfer_port,
        "infoPort": id.info_port,
        "infoSecurePort": id.info_secure_port(),
        "ipcPort": id.ipc_port,
        "capacity": node.capacity(),
        "dfsUsed": node.dfs_used(),
        "remaining": node.remaining(),
        "blockPoolUsed": node.block_pool_used(),
        "cacheCapacity": node.cache_capacity(),
        "cacheUsed": node.cache_used(),
        "lastUpdate": node.last_update(),
        "lastUpdateMonotonic": node.last_update_monotonic(),
        "xceiverCount": node.xceiver_count(),
        "networkLocation": node.location.clone().unwrap_or_default(),
        "adminState": match node.admin_state() {
            DatanodeInfoProtoAdminState::Normal => "NORMAL",
            DatanodeInfoProtoAdminState::DecommissionInprogress => "DECOMMISSION_INPROGRESS",
            DatanodeInfoProtoAdminState::Decommissioned => "DECOMMISSIONED",
            DatanodeInfoProtoAdminState::EnteringMaintenance => "ENTERING_MAINTENANCE",
            DatanodeInfoProtoAdminState::InMaintenance => "IN_MAINTENANCE",
        },
        "lastBlockReportTime": node.last_block_report_time(),
        "lastBlockReportMonotonic": node.last_block_report_monotonic(),
    });
    if let Some(domain) = &node.upgrade_domain {
        value["upgradeDomain"] = json!(domain);
    }
    value
}

/// The locations of a block that have it in memory.
fn cached(block: &LocatedBlockProto) -> impl Iterator<Item = &DatanodeInfoProto> {
    let pairs = block.locs.iter().zip(&block.is_cached);
    pairs.filter(|(_, is_cached)| **is_cached).map(|(node, _)| node)
}

fn located_block(block: &LocatedBlockProto) -> Value {
    json!({
        "blockToken": token(&block.block_token),
        "isCorrupt": block.corrupt,
        "startOffset": block.offset,
        "block": {
            "blockPoolId": block.b.pool_id,
            "blockId": block.b.block_id as i64,
            "numBytes": block.b.num_bytes(),
            "generationStamp": block.b.generation_stamp,
        },
        "storageTypes": storage_types(&block.storage_types),
        "locations": block.locs.iter().map(datanode).collect::<Vec<_>>(),
        "cachedLocations": cached(block).map(datanode).collect::<Vec<_>>(),
    })
}

/// The blocks of a file as the NameNode knows them.
pub(crate) fn located_blocks(blocks: &LocatedBlocksProto) -> Value {
    json!({"LocatedBlocks": {
        "fileLength": blocks.file_length,
        "isUnderConstruction": blocks.under_construction,
        "locatedBlocks": blocks.blocks.iter().map(located_block).collect::<Vec<_>>(),
        "lastLocatedBlock": blocks.last_block.as_ref().map(located_block),
        "isLastBlockComplete": blocks.is_last_block_complete,
    }})
}

/// The blocks of a file as programs want them.
///
/// Source: Hadoop 3.5.0 `DFSUtilClient#locatedBlocks2Locations`.
pub(crate) fn block_locations(blocks: &LocatedBlocksProto) -> Value {
    let each = blocks.blocks.iter().map(|block| {
        let ids = || block.locs.iter().map(|node| &node.id);
        let rack = |node: &DatanodeInfoProto| {
            format!("{}/{}", node.location.as_deref().unwrap_or_default(), xfer_addr(&node.id))
        };
        json!({
            "length": block.b.num_bytes(),
            "offset": block.offset,
            "corrupt": block.corrupt,
            "storageTypes": storage_types(&block.storage_types),
            "cachedHosts": cached(block).map(|node| &node.id.host_name).collect::<Vec<_>>(),
            "hosts": ids().map(|id| &id.host_name).collect::<Vec<_>>(),
            "names": ids().map(xfer_addr).collect::<Vec<_>>(),
            "topologyPaths": block.locs.iter().map(rack).collect::<Vec<_>>(),
        })
    });
    json!({"BlockLocations": {"BlockLocation": each.collect::<Vec<_>>()}})
}

/// What both kinds of totals tell of quotas.
fn usage(
    quota: u64,
    consumed: u64,
    space: u64,
    types: &Option<StorageTypeQuotaInfosProto>,
) -> Value {
    let infos = types.as_ref().map_or(&[][..], |types| &types.type_quota_info);
    // -1 is no quota.
    let limited = infos.iter().filter(|info| info.quota as i64 != -1);
    let of_type = |info: &StorageTypeQuotaInfoProto| {
        let figures = json!({"quota": info.quota as i64, "consumed": info.consumed as i64});
        (storage_type(info.r#type.unwrap_or_default()).to_string(), figures)
    };
    json!({
        "quota": quota as i64,
        "spaceConsumed": consumed as i64,
        "spaceQuota": space as i64,
        "typeQuota": limited.map(of_type).collect::<Map<_, _>>(),
    })
}

/// Totals of a tree.
pub(crate) fn content_summary(s: &ContentSummaryProto) -> Value {
    let mut value = usage(s.quota, s.space_consumed, s.space_quota, &s.type_quota_infos);
    value["length"] = json!(s.length);
    value["fileCount"] = json!(s.file_count);
    value["directoryCount"] = json!(s.directory_count);
    value["ecPolicy"] = json!(s.erasure_coding_policy());
    value["snapshotLength"] = json!(s.snapshot_length());
    value["snapshotFileCount"] = json!(s.snapshot_file_count());
    value["snapshotDirectoryCount"] = json!(s.snapshot_directory_count());
    value["snapshotSpaceConsumed"] = json!(s.snapshot_space_consumed());
    json!({"ContentSummary": value})
}

/// What counts against quotas.
pub(crate) fn quota_usage(u: &QuotaUsageProto) -> Value {
    let mut value = usage(u.quota, u.space_consumed, u.space_quota, &u.type_quota_infos);
    value["fileAndDirectoryCount"] = json!(u.file_and_directory_count as i64);
    json!({"QuotaUsage": value})
}

/// An access control list.
pub(crate) fn acl(acl: &AclStatusProto) -> Value {
    let entry = |entry: &AclEntryProto| {
        let scope = match entry.scope() {
            AclEntryProtoAclEntryScopeProto::Default => "default:",
            AclEntryProtoAclEntryScopeProto::Access => "",
        };
        let kind = match entry.r#type() {
            AclEntryProtoAclEntryTypeProto::User => "user",
            AclEntryProtoAclEntryTypeProto::Group => "group",
            AclEntryProtoAclEntryTypeProto::Mask => "mask",
            AclEntryProtoAclEntryTypeProto::Other => "other",
        };
        let bits = entry.permissions;
        let bit = |bit: i32, symbol: char| if bits & bit != 0 { symbol } else { '-' };
        let symbols: String = [bit(4, 'r'), bit(2, 'w'), bit(1, 'x')].iter().collect();
        format!("{scope}{kind}:{}:{symbols}", entry.name())
    };
    let mut value = json!({
        "owner": acl.owner,
        "group": acl.group,
        "stickyBit": acl.sticky,
        "entries": acl.entries.iter().map(entry).collect::<Vec<_>>(),
    });
    if let Some(permission) = &acl.permission {
        value["permission"] = json!(mode(permission));
    }
    json!({"AclStatus": value})
}

/// What the cluster recommends for new files.
pub(crate) fn server_defaults(d: &FsServerDefaultsProto) -> Value {
    json!({"FsServerDefaults": {
        "blockSize": d.block_size,
        "bytesPerChecksum": d.bytes_per_checksum,
        "writePacketSize": d.write_packet_size,
        "replication": d.replication,
        "fileBufferSize": d.file_buffer_size,
        "encryptDataTransfer": d.encrypt_data_transfer(),
        "trashInterval": d.trash_interval(),
        "checksumType": d.checksum_type.unwrap_or_default(),
        "keyProviderUri": d.key_provider_uri,
        "defaultStoragePolicyId": d.policy_id(),
    }})
}

/// What differs between two snapshots.
pub(crate) fn diff(diff: &SnapshotDiffReportProto) -> Value {
    let entry = |entry: &SnapshotDiffReportEntryProto| {
        let mut value = json!({
            "type": match entry.modification_label.as_str() {
                "+" => "CREATE",
                "-" => "DELETE",
                "R" => "RENAME",
                _ => "MODIFY",
            },
            "sourcePath": text(&entry.fullpath),
        });
        if let Some(target) = &entry.target_path {
            value["targetPath"] = json!(text(target));
        }
        value
    };
    json!({"SnapshotDiffReport": {
        "snapshotRoot": diff.snapshot_root,
        "fromSnapshot": diff.from_snapshot,
        "toSnapshot": diff.to_snapshot,
        "diffList": diff.diff_report_entries.iter().map(entry).collect::<Vec<_>>(),
    }})
}

/// A page of what differs.
pub(crate) fn diff_listing(page: &SnapshotDiffReportListingProto) -> Value {
    let entry = |entry: &SnapshotDiffReportListingEntryProto| {
        let mut value = json!({
            "dirId": entry.dir_id,
            "fileId": entry.file_id(),
            "sourcePath": text(&entry.fullpath),
            "isReference": entry.is_reference,
        });
        if let Some(target) = &entry.target_path {
            value["targetPath"] = json!(text(target));
        }
        value
    };
    let all = |entries: &[SnapshotDiffReportListingEntryProto]| {
        entries.iter().map(entry).collect::<Vec<_>>()
    };
    let cursor = page.cursor.as_ref();
    json!({"SnapshotDiffReportListing": {
        "lastPath": cursor.map(|cursor| text(&cursor.start_path)).unwrap_or_default(),
        "lastIndex": cursor.map_or(-1, |cursor| cursor.index),
        "isFromEarlier": page.is_from_earlier,
        "modifyList": all(&page.modified_entries),
        "createList": all(&page.created_entries),
        "deleteList": all(&page.deleted_entries),
    }})
}

/// Directories that may have snapshots.
pub(crate) fn snapshottable(list: Option<&SnapshottableDirectoryListingProto>) -> Value {
    let entry = |entry: &SnapshottableDirectoryStatusProto| {
        json!({
            "snapshotNumber": entry.snapshot_number,
            "snapshotQuota": entry.snapshot_quota,
            "parentFullPath": text(&entry.parent_fullpath),
            "dirStatus": status(&entry.dir_status),
        })
    };
    let each =
        list.map(|list| list.snapshottable_dir_listing.iter().map(entry).collect::<Vec<_>>());
    json!({"SnapshottableDirectoryList": each})
}

/// The snapshots of a directory.
pub(crate) fn snapshots(list: Option<&SnapshotListingProto>) -> Value {
    let entry = |entry: &SnapshotStatusProto| {
        let (parent, name) = (text(&entry.parent_fullpath), text(&entry.dir_status.path));
        json!({
            "snapshotID": entry.snapshot_id,
            "deletionStatus": if entry.is_deleted { "DELETED" } else { "ACTIVE" },
            "fullPath": format!("{}/.snapshot/{name}", parent.trim_end_matches('/')),
            "dirStatus": status(&entry.dir_status),
        })
    };
    let each = list.map(|list| list.snapshot_listing.iter().map(entry).collect::<Vec<_>>());
    json!({"SnapshotList": each})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_were() {
        for len in [0, 1, 127, 128, 255, 256, 70_000] {
            let it = TokenProto {
                identifier: vec![7; len],
                password: vec![8; len / 2],
                kind: "WEBHDFS delegation".to_string(),
                service: "1.2.3.4:5".to_string(),
            };
            let encoded = token(&it)["urlString"].as_str().unwrap().to_string();
            assert_eq!(read_token(&encoded).as_ref(), Some(&it));
            assert_eq!(read_token(&encoded[..encoded.len() / 2]), None);
        }
        assert_eq!(token(&TokenProto::default())["urlString"], "AAAAAA");
        assert_eq!(read_token("/"), None);
    }
}
