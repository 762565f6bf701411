//! What happens in the tree, for those who watch it.
//!
//! Source: Hadoop 3.5.0 `NameNodeRpcServer#getEditsFromTxid`, `PBHelperClient#convertEditsResponse`.

use cairn_namespace::events::{Event, MetadataChange};
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;
use prost::Message;

use super::{acl, attributes};
use crate::journal::SubmitError;
use crate::node::NameNode;
use crate::refusal::{Answer, answer};
use std::sync::Arc;

/// The number of the last log entry.
///
/// Source: Hadoop 3.5.0 `NameNodeRpcServer#getCurrentEditLogTxid`.
pub async fn get_current_edit_log_txid(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetCurrentEditLogTxidRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.ns.watch_events().await?;
    let last = node.ns.last_sequence();
    answer(&pb::GetCurrentEditLogTxidResponseProto { txid: signed(last) })
}

/// Events from a log entry on.
pub async fn get_edits_from_txid(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetEditsFromTxidRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.ns.watch_events().await?;
    let from = u64::try_from(request.txid).unwrap_or(0);
    let (ns, page) = (Arc::clone(&node.ns), node.config.inotify_events_page.max(1));
    // What is not in memory any more is read from a disk.
    let told = tokio::task::spawn_blocking(move || ns.events_since(from, page)).await;
    let told = told.map_err(|_| SubmitError::Stopped)?;
    let (first_txid, last_txid) =
        told.seen.map_or((-1, -1), |(first, last)| (signed(first), signed(last)));
    let batch = told.batches.into_iter().map(|batch| pb::EventBatchProto {
        txid: signed(batch.sequence),
        events: batch.events.into_iter().map(event).collect(),
    });
    answer(&pb::GetEditsFromTxidResponseProto {
        events_list: pb::EventsListProto {
            events: Vec::new(),
            first_txid,
            last_txid,
            sync_txid: signed(told.last),
            batch: batch.collect(),
        },
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn event(event: Event) -> pb::EventProto {
    let (kind, contents) = match event {
        Event::Create { path, inode, overwrite } => {
            let (file, is_striped) = (inode.file(), Event::is_striped(&inode));
            let kind = match file {
                Some(_) => pb::INodeType::ITypeFile,
                None => pb::INodeType::ITypeDirectory,
            };
            let replication =
                file.map_or(0, |file| i32::from(file.redundancy.copies().unwrap_or(1)));
            let proto = pb::CreateEventProto {
                r#type: kind as i32,
                path,
                ctime: signed(inode.mtime),
                owner_name: inode.owner.clone(),
                group_name: inode.group.clone(),
                perms: pb::FsPermissionProto { perm: inode.mode.into() },
                replication: Some(replication),
                symlink_target: Some(String::new()),
                overwrite: Some(overwrite),
                default_block_size: Some(file.map_or(0, |file| signed(file.block_size))),
                erasure_coded: is_striped,
            };
            (pb::EventType::EventCreate, proto.encode_to_vec())
        }
        Event::Close { path, len, time_ms } => {
            let file_size = len.map_or(-1, signed);
            let proto = pb::CloseEventProto { path, file_size, timestamp: signed(time_ms) };
            (pb::EventType::EventClose, proto.encode_to_vec())
        }
        Event::Append { path, new_block } => {
            let proto = pb::AppendEventProto { path, new_block: Some(new_block) };
            (pb::EventType::EventAppend, proto.encode_to_vec())
        }
        Event::Rename { from, to, time_ms } => {
            let (src_path, dest_path, timestamp) = (from, to, signed(time_ms));
            let proto = pb::RenameEventProto { src_path, dest_path, timestamp };
            (pb::EventType::EventRename, proto.encode_to_vec())
        }
        Event::Unlink { path, time_ms } => {
            let proto = pb::UnlinkEventProto { path, timestamp: signed(time_ms) };
            (pb::EventType::EventUnlink, proto.encode_to_vec())
        }
        Event::Truncate { path, len, time_ms } => {
            let (file_size, timestamp) = (signed(len), signed(time_ms));
            let proto = pb::TruncateEventProto { path, file_size, timestamp };
            (pb::EventType::EventTruncate, proto.encode_to_vec())
        }
        Event::Metadata { path, change } => {
            (pb::EventType::EventMetadata, metadata(path, change).encode_to_vec())
        }
    };
    pb::EventProto { r#type: kind as i32, contents }
}

fn metadata(path: String, change: MetadataChange) -> pb::MetadataUpdateEventProto {
    use pb::MetadataUpdateType as Type;
    let mut proto = pb::MetadataUpdateEventProto {
        path,
        r#type: Type::MetaTypeTimes as i32,
        mtime: Some(0),
        atime: Some(0),
        replication: Some(0),
        owner_name: Some(String::new()),
        group_name: Some(String::new()),
        perms: None,
        acls: Vec::new(),
        x_attrs: Vec::new(),
        x_attrs_removed: Some(false),
    };
    let kind = match change {
        MetadataChange::Times { mtime, atime } => {
            proto.mtime = Some(mtime.map_or(-1, signed));
            proto.atime = Some(atime.map_or(-1, signed));
            Type::MetaTypeTimes
        }
        MetadataChange::Replication(copies) => {
            proto.replication = Some(copies.into());
            Type::MetaTypeReplication
        }
        MetadataChange::Owner { owner, group } => {
            proto.owner_name = Some(owner.unwrap_or_default());
            proto.group_name = Some(group.unwrap_or_default());
            Type::MetaTypeOwner
        }
        MetadataChange::Mode(mode) => {
            proto.perms = Some(pb::FsPermissionProto { perm: mode.into() });
            Type::MetaTypePerms
        }
        MetadataChange::Acl(entries) => {
            proto.acls = entries.into_iter().map(acl::message).collect();
            Type::MetaTypeAcls
        }
        MetadataChange::XAttr { name, value, removed } => {
            proto.x_attrs_removed = Some(removed);
            proto.x_attrs = vec![attributes::xattr_proto(name, value)];
            Type::MetaTypeXattrs
        }
    };
    proto.r#type = kind as i32;
    proto
}
