//! `ClientProtocol`: one function for each method, in files by theme.
//!
//! Each decodes, runs one command or query, and encodes; methods that are not there yet are in
//! `refused`. Source: Hadoop 3.5.0 `ClientNamenodeProtocolServerSideTranslatorPB`.

mod acl;
mod admin;
mod attributes;
mod batched;
mod cache;
mod ec;
mod encode;
mod encryption;
pub(super) mod groups;
mod inotify;
mod listing;
mod locate;
mod meta_save;
mod paths;
mod pipeline;
mod places;
pub mod plain;
mod read;
mod refused;
mod scan;
mod snapshot;
mod to_read;
mod tokens;
mod told;
mod tree;
mod upgrade;
pub(super) mod write;

use cairn_namespace::Caller;
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs::CLIENT_NAMENODE_PROTOCOL_METHODS;

pub(crate) use scan::take_lost;

use crate::node::NameNode;
use crate::refusal::Answer;

/// Answers the calls that clients make most, if it is known who `caller` is. They read only and wait for nothing.
pub fn handle_now(node: &NameNode, call: &Call, caller: &Caller) -> Option<Answer> {
    Some(match call.method.as_str() {
        "getBlockLocations" => read::get_block_locations(node, call, caller),
        "getFileInfo" => read::get_file_info(node, call, caller),
        "getFileLinkInfo" => read::get_file_link_info(node, call, caller),
        "getLocatedFileInfo" => read::get_located_file_info(node, call, caller),
        "getListing" => to_read::get_listing(node, call, caller),
        _ => return None,
    })
}

/// Whether [`handle_now`] has the method.
pub fn is_read(method: &str) -> bool {
    const READS: [&str; 5] =
        ["getBlockLocations", "getFileInfo", "getFileLinkInfo", "getLocatedFileInfo", "getListing"];
    READS.contains(&method)
}

/// Handles a call of this protocol.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    if is_read(&call.method)
        && let Some(answer) = handle_now(node, call, &node.caller(call).await)
    {
        return answer;
    }
    match call.method.as_str() {
        "getBatchedListing" => batched::get_batched_listing(node, call).await,
        "isFileClosed" => read::is_file_closed(node, call).await,
        "getContentSummary" => read::get_content_summary(node, call).await,
        "getQuotaUsage" => read::get_quota_usage(node, call).await,
        "getPreferredBlockSize" => read::get_preferred_block_size(node, call).await,
        "getServerDefaults" => read::get_server_defaults(node, call).await,
        "getEnclosingRoot" => encryption::get_enclosing_root(node, call).await,
        "getLinkTarget" => read::get_link_target(node, call).await,

        "listOpenFiles" => scan::list_open_files(node, call).await,
        "listCorruptFileBlocks" => scan::list_corrupt_file_blocks(node, call).await,

        "create" => write::create(node, call).await,
        "append" => write::append(node, call).await,
        "truncate" => write::truncate(node, call).await,
        "addBlock" => pipeline::add_block(node, call).await,
        "abandonBlock" => write::abandon_block(node, call).await,
        "complete" => write::complete(node, call).await,
        "fsync" => write::fsync(node, call).await,
        "renewLease" => write::renew_lease(node, call).await,
        "recoverLease" => write::recover_lease(node, call).await,
        "getAdditionalDatanode" => pipeline::get_additional_datanode(node, call).await,
        "updateBlockForPipeline" => pipeline::update_block_for_pipeline(node, call).await,
        "updatePipeline" => pipeline::update_pipeline(node, call).await,
        "reportBadBlocks" => pipeline::report_bad_blocks(node, call).await,

        "mkdirs" => tree::mkdirs(node, call).await,
        "rename" => tree::rename(node, call).await,
        "rename2" => tree::rename2(node, call).await,
        "delete" => tree::delete(node, call).await,
        "concat" => tree::concat(node, call).await,
        "setPermission" => tree::set_permission(node, call).await,
        "setOwner" => tree::set_owner(node, call).await,
        "setTimes" => tree::set_times(node, call).await,
        "setReplication" => tree::set_replication(node, call).await,
        "setQuota" => tree::set_quota(node, call).await,

        "setStoragePolicy" => attributes::set_storage_policy(node, call).await,
        "unsetStoragePolicy" => attributes::unset_storage_policy(node, call).await,
        "getStoragePolicy" => attributes::get_storage_policy(node, call).await,
        "getStoragePolicies" => attributes::get_storage_policies(node, call).await,
        "satisfyStoragePolicy" => attributes::satisfy_storage_policy(node, call).await,
        "setXAttr" => attributes::set_xattr(node, call).await,
        "removeXAttr" => attributes::remove_xattr(node, call).await,
        "getXAttrs" => attributes::get_xattrs(node, call).await,
        "listXAttrs" => attributes::list_xattrs(node, call).await,
        "getAclStatus" => acl::get_acl_status(node, call).await,
        "modifyAclEntries" => acl::modify_acl_entries(node, call).await,
        "removeAclEntries" => acl::remove_acl_entries(node, call).await,
        "removeDefaultAcl" => acl::remove_default_acl(node, call).await,
        "removeAcl" => acl::remove_acl(node, call).await,
        "setAcl" => acl::set_acl(node, call).await,
        "checkAccess" => attributes::check_access(node, call).await,

        "setErasureCodingPolicy" => ec::set_policy(node, call).await,
        "unsetErasureCodingPolicy" => ec::unset_policy(node, call).await,
        "getErasureCodingPolicy" => ec::get_policy(node, call).await,
        "getErasureCodingPolicies" => ec::get_policies(node, call).await,
        "getErasureCodingCodecs" => ec::get_codecs(node, call).await,
        "addErasureCodingPolicies" => ec::add_policies(node, call).await,
        "removeErasureCodingPolicy" => ec::remove_policy(node, call).await,
        "enableErasureCodingPolicy" => ec::enable_policy(node, call).await,
        "disableErasureCodingPolicy" => ec::disable_policy(node, call).await,
        "getECTopologyResultForPolicies" => ec::verify_topology(node, call).await,

        "convertFiles" => groups::convert_files(node, call).await,
        "swapBlocks" => groups::swap_blocks(node, call).await,
        "unpackFiles" => groups::unpack_files(node, call).await,
        "getGroupStatus" => groups::get_group_status(node, call).await,
        "pauseGroups" => groups::pause_groups(node, call).await,

        "getFsStats" => admin::get_fs_stats(node, call).await,
        "getFsReplicatedBlockStats" => admin::get_fs_replicated_block_stats(node, call).await,
        "getFsECBlockGroupStats" => admin::get_fs_ec_block_group_stats(node, call).await,
        "getDatanodeReport" => admin::get_datanode_report(node, call).await,
        "getDatanodeStorageReport" => admin::get_datanode_storage_report(node, call).await,
        "getSlowDatanodeReport" => admin::get_slow_datanode_report(node, call).await,
        "setSafeMode" => admin::set_safe_mode(node, call).await,
        "saveNamespace" => upgrade::save_namespace(node, call).await,
        "refreshNodes" => admin::refresh_nodes(node, call).await,
        "setDatanodeState" => admin::set_datanode_state(node, call).await,
        "acceptRestored" => upgrade::accept_restored(node, call).await,
        "finalizeUpgrade" => upgrade::finalize_upgrade(node, call).await,
        "upgradeStatus" => upgrade::upgrade_status(node, call).await,
        "rollingUpgrade" => upgrade::rolling_upgrade(node, call).await,
        "restoreFailedStorage" => upgrade::restore_failed_storage(node, call).await,
        "rollEdits" => upgrade::roll_edits(node, call).await,
        "setBalancerBandwidth" => admin::set_balancer_bandwidth(node, call).await,
        "getHAServiceState" => admin::get_ha_service_state(node, call).await,
        "msync" => admin::msync(node, call).await,
        "getCurrentEditLogTxid" => inotify::get_current_edit_log_txid(node, call).await,
        "getEditsFromTxid" => inotify::get_edits_from_txid(node, call).await,
        "metaSave" => meta_save::meta_save(node, call).await,

        "allowSnapshot" => snapshot::allow(node, call).await,
        "disallowSnapshot" => snapshot::disallow(node, call).await,
        "createSnapshot" => snapshot::create(node, call).await,
        "deleteSnapshot" => snapshot::delete(node, call).await,
        "renameSnapshot" => snapshot::rename(node, call).await,
        "getSnapshottableDirListing" => snapshot::list_directories(node, call).await,
        "getSnapshotListing" => snapshot::list(node, call).await,
        "getSnapshotDiffReport" => snapshot::diff_report(node, call).await,
        "getSnapshotDiffReportListing" => snapshot::diff_page(node, call).await,

        "addCachePool" => cache::add_pool(node, call).await,
        "modifyCachePool" => cache::modify_pool(node, call).await,
        "removeCachePool" => cache::remove_pool(node, call).await,
        "listCachePools" => cache::list_pools(node, call).await,
        "addCacheDirective" => cache::add_directive(node, call).await,
        "modifyCacheDirective" => cache::modify_directive(node, call).await,
        "removeCacheDirective" => cache::remove_directive(node, call).await,
        "listCacheDirectives" => cache::list_directives(node, call).await,

        "createEncryptionZone" => encryption::create_zone(node, call).await,
        "getEZForPath" => encryption::get_zone(node, call).await,
        "listEncryptionZones" => encryption::list_zones(node, call).await,
        "reencryptEncryptionZone" => encryption::reencrypt_zone(node, call).await,
        "listReencryptionStatus" => encryption::list_reencryption_status(node, call).await,

        "getDelegationToken" => tokens::get(node, call).await,
        "renewDelegationToken" => tokens::renew(node, call).await,
        "cancelDelegationToken" => tokens::cancel(node, call).await,
        "getDataEncryptionKey" => refused::get_data_encryption_key(node, call).await,
        method if CLIENT_NAMENODE_PROTOCOL_METHODS.contains(&method) => refused::refuse(call).await,
        _ => Err(call.unknown_method().into()),
    }
}
