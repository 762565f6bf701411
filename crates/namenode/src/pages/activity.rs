//! What the NameNode has done for clients and DataNodes, told by the calls that succeeded.

use cairn_net::rpc_server::RpcMetrics;
use serde_json::{Map, Value};

use crate::protocol::{CLIENT, DATANODE};

/// Hadoop's counters and the methods whose calls they count. What cannot be told from calls alone is not there.
///
/// Source: Hadoop 3.5.0 `NameNodeMetrics`, `NameNodeRpcServer`.
const COUNTERS: [(&str, &[(&str, &str)]); 22] = [
    ("CreateFileOps", &[(CLIENT, "create")]),
    ("FilesCreated", &[(CLIENT, "create")]),
    ("FilesAppended", &[(CLIENT, "append")]),
    ("FilesTruncated", &[(CLIENT, "truncate")]),
    ("FilesRenamed", &[(CLIENT, "rename"), (CLIENT, "rename2")]),
    ("DeleteFileOps", &[(CLIENT, "delete")]),
    ("GetBlockLocations", &[(CLIENT, "getBlockLocations")]),
    ("GetListingOps", &[(CLIENT, "getListing"), (CLIENT, "getBatchedListing")]),
    (
        "FileInfoOps",
        &[(CLIENT, "getFileInfo"), (CLIENT, "getFileLinkInfo"), (CLIENT, "getLocatedFileInfo")],
    ),
    ("AddBlockOps", &[(CLIENT, "addBlock")]),
    ("GetAdditionalDatanodeOps", &[(CLIENT, "getAdditionalDatanode")]),
    ("CreateSymlinkOps", &[(CLIENT, "createSymlink")]),
    ("GetLinkTargetOps", &[(CLIENT, "getLinkTarget")]),
    ("AllowSnapshotOps", &[(CLIENT, "allowSnapshot")]),
    ("DisallowSnapshotOps", &[(CLIENT, "disallowSnapshot")]),
    ("CreateSnapshotOps", &[(CLIENT, "createSnapshot")]),
    ("DeleteSnapshotOps", &[(CLIENT, "deleteSnapshot")]),
    ("RenameSnapshotOps", &[(CLIENT, "renameSnapshot")]),
    ("ListSnapshottableDirOps", &[(CLIENT, "getSnapshottableDirListing")]),
    ("ListSnapshotOps", &[(CLIENT, "getSnapshotListing")]),
    (
        "SnapshotDiffReportOps",
        &[(CLIENT, "getSnapshotDiffReport"), (CLIENT, "getSnapshotDiffReportListing")],
    ),
    ("BlockReceivedAndDeletedOps", &[(DATANODE, "blockReceivedAndDeleted")]),
];

/// Counters that are no operations on files: they are not in `TotalFileOps`.
const APART: [&str; 2] = ["FilesCreated", "BlockReceivedAndDeletedOps"];

/// The bean `NameNodeActivity`.
pub(crate) fn bean(metrics: &RpcMetrics) -> Value {
    let mut bean = Map::new();
    bean.insert("name".into(), "Hadoop:service=NameNode,name=NameNodeActivity".into());
    bean.insert("modelerType".into(), "NameNodeActivity".into());
    let mut total = 0;
    for (name, methods) in COUNTERS {
        let each = methods.iter().map(|(protocol, method)| metrics.successes(protocol, method));
        let count: u64 = each.sum();
        bean.insert(name.into(), count.into());
        if !APART.contains(&name) {
            total += count;
        }
    }
    bean.insert("TotalFileOps".into(), total.into());
    Value::Object(bean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::catalogue;

    #[test]
    fn every_counter_is_of_methods_that_are_counted() {
        let methods = catalogue::metrics().methods();
        for (protocol, method) in COUNTERS.iter().flat_map(|(_, methods)| *methods) {
            let is_this =
                methods.iter().any(|row| (row.protocol, row.method) == (*protocol, *method));
            assert!(is_this, "{method}");
        }
        assert!(APART.iter().all(|name| COUNTERS.iter().any(|(counter, _)| counter == name)));
    }
}
