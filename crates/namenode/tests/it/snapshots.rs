//! Snapshots over the wire.

use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{
    CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish, start,
};

const HOLDER: &str = "writer";

async fn allow(client: &Client, path: &str) {
    let request = pb::AllowSnapshotRequestProto { snapshot_root: path.to_string() };
    let _: pb::AllowSnapshotResponseProto = client.call("allowSnapshot", &request).await.unwrap();
}

async fn take(client: &Client, path: &str, name: Option<&str>) -> String {
    let request = pb::CreateSnapshotRequestProto {
        snapshot_root: path.to_string(),
        snapshot_name: name.map(str::to_string),
    };
    let answer: pb::CreateSnapshotResponseProto =
        client.call("createSnapshot", &request).await.unwrap();
    answer.snapshot_path
}

async fn delete(client: &Client, path: &str) {
    let request = pb::DeleteRequestProto { src: path.to_string(), recursive: true };
    let answer: pb::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(answer.result);
}

/// `/d/f` with a block of 7 bytes, which is returned, and the snapshot `s` of `/d`.
async fn file_in_a_snapshot(client: &Client, datanodes: &[FakeDataNode]) -> pb::ExtendedBlockProto {
    client.mkdirs("/d").await;
    allow(client, "/d").await;
    client.create("/d/f", HOLDER).await;
    let located = client.add_block("/d/f", HOLDER, None).await;
    let last = finish(datanodes, &located, 7, None).await;
    assert!(client.complete("/d/f", HOLDER, Some(last.clone())).await);
    take(client, "/d", Some("s")).await;
    last
}

async fn delete_snapshot(client: &Client) {
    let request = pb::DeleteSnapshotRequestProto {
        snapshot_root: "/d".to_string(),
        snapshot_name: "s".to_string(),
    };
    let _: pb::DeleteSnapshotResponseProto = client.call("deleteSnapshot", &request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_taken_listed_renamed_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let nothing = pb::GetSnapshottableDirListingRequestProto {};
    let list: pb::GetSnapshottableDirListingResponseProto =
        client.call("getSnapshottableDirListing", &nothing).await.unwrap();
    assert_eq!(list.snapshottable_dir_list, None);
    client.mkdirs("/a/d").await;
    let alice = Client::new(&node, CLIENT, "alice");
    let request = pb::AllowSnapshotRequestProto { snapshot_root: "/a/d".to_string() };
    assert_eq!(alice.refused("allowSnapshot", &request).await.0, class::ACCESS_CONTROL);
    let request =
        pb::CreateSnapshotRequestProto { snapshot_root: "/a/d".to_string(), snapshot_name: None };
    let want = (
        class::SNAPSHOT.to_string(),
        "Directory is not a snapshottable directory: /a/d".to_string(),
    );
    assert_eq!(client.refused("createSnapshot", &request).await, want);
    allow(&client, "/a/d").await;
    let flags = client.file_info("/a/d").await.unwrap().flags();
    assert_eq!(flags, pb::HdfsFileStatusProtoFlags::SnapshotEnabled as u32);
    assert_eq!(take(&client, "/a/d", Some("s")).await, "/a/d/.snapshot/s");
    let path = take(&client, "/a/d", None).await;
    let name = path.strip_prefix("/a/d/.snapshot/s2").unwrap();
    assert_eq!(name.len(), "0261121-170000.000".len());

    let list: pb::GetSnapshottableDirListingResponseProto =
        client.call("getSnapshottableDirListing", &nothing).await.unwrap();
    let found = &list.snapshottable_dir_list.unwrap().snapshottable_dir_listing[0];
    assert_eq!((found.snapshot_number, found.snapshot_quota), (2, 65_536));
    assert_eq!(found.parent_fullpath, b"/a");
    assert_eq!(found.dir_status.path, b"d");

    let rename = pb::RenameSnapshotRequestProto {
        snapshot_root: "/a/d".to_string(),
        snapshot_old_name: "s".to_string(),
        snapshot_new_name: "t".to_string(),
    };
    let _: pb::RenameSnapshotResponseProto = client.call("renameSnapshot", &rename).await.unwrap();
    let request = pb::GetSnapshotListingRequestProto { snapshot_root: "/a/d".to_string() };
    let list: pb::GetSnapshotListingResponseProto =
        client.call("getSnapshotListing", &request).await.unwrap();
    let found = list.snapshot_list.unwrap().snapshot_listing;
    let ids: Vec<_> = found.iter().map(|at| (at.snapshot_id, at.parent_fullpath.clone())).collect();
    assert_eq!(ids, [(1, b"/a/d".to_vec()), (0, b"/a/d".to_vec())]);
    assert_eq!(client.list("/a/d/.snapshot").await.len(), 2);
    // What a snapshot shows has no snapshots of its own.
    assert_eq!(client.file_info("/a/d/.snapshot/t").await.unwrap().flags(), 0);
    let dot = client.file_info("/a/d/.snapshot").await.unwrap();
    assert_eq!((dot.file_type, dot.file_id()), (1, u64::MAX));
    assert_eq!(client.file_info("/a/.snapshot").await, None);

    for name in ["t", path.rsplit('/').next().unwrap()] {
        let request = pb::DeleteSnapshotRequestProto {
            snapshot_root: "/a/d".to_string(),
            snapshot_name: name.to_string(),
        };
        let _: pb::DeleteSnapshotResponseProto =
            client.call("deleteSnapshot", &request).await.unwrap();
    }
    assert_eq!(client.list("/a/d/.snapshot").await, Vec::<String>::new());
    let request = pb::DisallowSnapshotRequestProto { snapshot_root: "/a/d".to_string() };
    let _: pb::DisallowSnapshotResponseProto =
        client.call("disallowSnapshot", &request).await.unwrap();
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_holds_blocks_until_it_goes_also_through_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    allow(&client, "/d").await;
    client.create("/d/f", HOLDER).await;
    let located = client.add_block("/d/f", HOLDER, None).await;
    let last = finish(&datanodes, &located, 7, None).await;
    assert!(client.complete("/d/f", HOLDER, Some(last)).await);
    take(&client, "/d", Some("s")).await;
    delete(&client, "/d/f").await;
    let found = client.locations("/d/.snapshot/s/f").await;
    assert_eq!((found.file_length, found.under_construction), (7, false));
    assert_eq!(found.blocks[0].locs.len(), 3);
    for datanode in &datanodes {
        assert_eq!(datanode.heartbeat().await, []);
    }
    let request = pb::DeleteRequestProto { src: "/d/.snapshot/s/f".to_string(), recursive: false };
    assert_eq!(client.refused("delete", &request).await.0, class::SNAPSHOT_ACCESS_CONTROL);
    let listing = pb::GetListingRequestProto {
        src: "/d/.snapshot/s".to_string(),
        start_after: Vec::new(),
        need_location: true,
        read_up_to: None,
    };
    let listing: pb::GetListingResponseProto = client.call("getListing", &listing).await.unwrap();
    let entry = &listing.dir_list.unwrap().partial_listing[0];
    assert_eq!(entry.locations.as_ref().unwrap().blocks.len(), 1);
    node.shutdown().await;
    drop(datanodes);

    let node = cairn_namenode::NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert_eq!(client.list("/d/.snapshot/s").await, ["f"]);
    assert_eq!(client.file_info("/d/.snapshot/s/f").await.unwrap().length, 7);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_a_snapshot_is_as_long_as_it_was_while_it_is_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let last = file_in_a_snapshot(&client, &datanodes).await;
    let request = pb::AppendRequestProto {
        src: "/d/f".to_string(),
        client_name: HOLDER.to_string(),
        flag: None,
    };
    let appended: pb::AppendResponseProto = client.call("append", &request).await.unwrap();
    assert_eq!(appended.block.unwrap().b, last);
    for told in [None, Some(30)] {
        if let Some(len) = told {
            let request = pb::FsyncRequestProto {
                src: "/d/f".to_string(),
                client: HOLDER.to_string(),
                last_block_length: Some(len),
                file_id: None,
            };
            let _: pb::FsyncResponseProto = client.call("fsync", &request).await.unwrap();
        }
        let open = client.locations("/d/f").await;
        let told = (open.file_length, open.under_construction, open.is_last_block_complete);
        assert_eq!(told, (0, true, false));
        let request = pb::GetListingRequestProto {
            src: "/d/.snapshot/s".to_string(),
            start_after: Vec::new(),
            need_location: true,
            read_up_to: None,
        };
        let listing: pb::GetListingResponseProto =
            client.call("getListing", &request).await.unwrap();
        let listed = listing.dir_list.unwrap().partial_listing.remove(0).locations.unwrap();
        for found in [client.locations("/d/.snapshot/s/f").await, listed] {
            let told = (found.file_length, found.under_construction, found.is_last_block_complete);
            assert_eq!(told, (7, false, true));
            assert_eq!(found.blocks[0].b.block_id, last.block_id);
        }
    }
    node.shutdown().await;
}

/// They stay as they are, and nobody reports them as whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_wait_for_open_blocks_of_removed_files() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    allow(&client, "/d").await;
    // A part of a block is none to wait for.
    for path in ["/d/f", "/d/g"] {
        client.create(path, HOLDER).await;
        client.add_block(path, HOLDER, None).await;
    }
    take(&client, "/d", Some("s")).await;
    for path in ["/d/f", "/d/g"] {
        delete(&client, path).await;
    }
    node.shutdown().await;
    drop(datanodes);
    let node = cairn_namenode::NameNode::start(config(dir.path())).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await);
    node.shutdown().await;
}

/// A DataNode may report a block after its open file is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_committed_block_of_a_removed_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    allow(&client, "/d").await;
    client.create("/d/f", HOLDER).await;
    let first = client.add_block("/d/f", HOLDER, None).await;
    let previous = finish(&datanodes, &first, 7, None).await;
    let last = client.add_block("/d/f", HOLDER, Some(previous)).await;
    let committed = pb::ExtendedBlockProto { num_bytes: Some(5), ..last.b.clone() };
    assert!(!client.complete("/d/f", HOLDER, Some(committed)).await);
    take(&client, "/d", Some("s")).await;
    delete(&client, "/d/f").await;
    finish(&datanodes, &last, 5, None).await;
    let found = client.locations("/d/.snapshot/s/f").await;
    assert_eq!((found.file_length, found.blocks[1].locs.len()), (12, 3));
    client.mkdirs("/goes/on").await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_a_snapshot_has_is_copied_when_its_file_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let last = file_in_a_snapshot(&client, &datanodes).await;
    let request = pb::TruncateRequestProto {
        src: "/d/f".to_string(),
        new_length: 3,
        client_name: HOLDER.to_string(),
    };
    let answer: pb::TruncateResponseProto = client.call("truncate", &request).await.unwrap();
    assert!(!answer.result);
    let mut orders = Vec::new();
    for datanode in &datanodes {
        let commands = datanode.heartbeat().await.into_iter().filter_map(|c| c.recovery_cmd);
        orders.extend(commands.flat_map(|command| command.blocks));
    }
    let [order] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!((&order.block.b, order.block.locs.len()), (&last, 3));
    let copy = order.truncate_block.clone().unwrap();
    assert_ne!(copy.block_id, last.block_id);
    assert_eq!((copy.gen_stamp, copy.num_bytes), (order.new_gen_stamp, Some(3)));
    let leader = datanodes.last().unwrap();
    leader.received(copy.clone(), Some(9)).await;
    leader.commit_synchronization(order, 3, false).await;
    for (path, block, len, count) in
        [("/d/f", copy.block_id, 3, 1), ("/d/.snapshot/s/f", last.block_id, 7, 3)]
    {
        let found = client.locations(path).await;
        assert_eq!((found.file_length, found.under_construction), (len, false), "{path}");
        let found = &found.blocks[0];
        assert_eq!((found.b.block_id, found.b.num_bytes()), (block, len), "{path}");
        assert_eq!(found.locs.len(), count, "{path}");
    }
    delete_snapshot(&client).await;
    assert_eq!(deletions(&datanodes).await, [last.block_id; 3]);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_only_a_snapshot_wanted_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let last = file_in_a_snapshot(&client, &datanodes).await;
    let request = pb::SetReplicationRequestProto { src: "/d/f".to_string(), replication: 1 };
    let answer: pb::SetReplicationResponseProto =
        client.call("setReplication", &request).await.unwrap();
    assert!(answer.result);
    assert_eq!(deletions(&datanodes).await, Vec::<u64>::new());
    delete_snapshot(&client).await;
    assert_eq!(deletions(&datanodes).await, [last.block_id; 2]);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_only_the_file_wanted_go_when_it_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    allow(&client, "/d").await;
    let request = pb::CreateRequestProto { replication: 1, ..create_request("/d/f", HOLDER) };
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    let located = client.add_block("/d/f", HOLDER, None).await;
    let last = finish(&datanodes, &located, 7, None).await;
    assert!(client.complete("/d/f", HOLDER, Some(last.clone())).await);
    take(&client, "/d", Some("s")).await;
    let request = pb::SetReplicationRequestProto { src: "/d/f".to_string(), replication: 3 };
    let _: pb::SetReplicationResponseProto = client.call("setReplication", &request).await.unwrap();
    for datanode in &datanodes {
        let replica = pb::BlockProto {
            block_id: last.block_id,
            gen_stamp: last.generation_stamp,
            num_bytes: last.num_bytes,
        };
        datanode.received(replica, Some(7)).await;
    }
    assert_eq!(deletions(&datanodes).await, Vec::<u64>::new());
    let create_flag = pb::CreateFlagProto::Create as u32 | pb::CreateFlagProto::Overwrite as u32;
    let request = pb::CreateRequestProto { create_flag, ..create_request("/d/f", HOLDER) };
    let _: pb::CreateResponseProto = client.call("create", &request).await.unwrap();
    assert_eq!(deletions(&datanodes).await, [last.block_id; 2]);
    node.shutdown().await;
}

/// The ids of the blocks that DataNodes are told to delete.
async fn deletions(datanodes: &[FakeDataNode]) -> Vec<u64> {
    let mut deleted = Vec::new();
    for datanode in datanodes {
        let commands = datanode.heartbeat().await.into_iter().filter_map(|c| c.blk_cmd);
        let invalidate =
            commands.filter(|c| c.action == dn::BlockCommandProtoAction::Invalidate as i32);
        deleted.extend(invalidate.flat_map(|c| c.blocks).map(|block| block.block_id));
    }
    deleted
}

#[tokio::test(flavor = "multi_thread")]
async fn both_calls_tell_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d/a").await;
    client.mkdirs("/d/b").await;
    allow(&client, "/d").await;
    take(&client, "/d", Some("s")).await;
    client.mkdirs("/d/a/new").await;
    let rename = pb::RenameRequestProto { src: "/d/b".to_string(), dst: "/d/c".to_string() };
    let _: pb::RenameResponseProto = client.call("rename", &rename).await.unwrap();
    let request = pb::GetSnapshotDiffReportRequestProto {
        snapshot_root: "/d".to_string(),
        from_snapshot: "s".to_string(),
        to_snapshot: String::new(),
    };
    let report: pb::GetSnapshotDiffReportResponseProto =
        client.call("getSnapshotDiffReport", &request).await.unwrap();
    let line = |entry: &pb::SnapshotDiffReportEntryProto| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let target = entry.target_path.as_deref().map(text).unwrap_or_default();
        format!("{} {} {target}", entry.modification_label, text(&entry.fullpath))
    };
    let lines: Vec<_> = report.diff_report.diff_report_entries.iter().map(line).collect();
    assert_eq!(lines, ["M  ", "R b c", "M a ", "+ a/new "]);
    let request = pb::GetSnapshotDiffReportListingRequestProto {
        snapshot_root: "/d".to_string(),
        from_snapshot: "s".to_string(),
        to_snapshot: String::new(),
        cursor: None,
    };
    let page: pb::GetSnapshotDiffReportListingResponseProto =
        client.call("getSnapshotDiffReportListing", &request).await.unwrap();
    let page = page.diff_report;
    assert!(page.is_from_earlier);
    assert_eq!(page.cursor.map(|cursor| (cursor.start_path, cursor.index)), Some((vec![], -1)));
    assert_eq!((page.modified_entries.len(), page.created_entries.len()), (2, 2));
    let moved = &page.deleted_entries[0];
    assert_eq!((moved.is_reference, moved.target_path.as_deref()), (true, Some(&b"c"[..])));
    node.shutdown().await;
}

/// One page; the paths in it, and where the next begins.
async fn page_of(
    client: &Client,
    cursor: Option<pb::SnapshotDiffReportCursorProto>,
) -> (Vec<String>, Option<pb::SnapshotDiffReportCursorProto>) {
    let request = pb::GetSnapshotDiffReportListingRequestProto {
        snapshot_root: "/d".to_string(),
        from_snapshot: "s".to_string(),
        to_snapshot: String::new(),
        cursor,
    };
    let page: pb::GetSnapshotDiffReportListingResponseProto =
        client.call("getSnapshotDiffReportListing", &request).await.unwrap();
    let page = page.diff_report;
    let path =
        |entry: pb::SnapshotDiffReportListingEntryProto| String::from_utf8(entry.fullpath).unwrap();
    let entries = page.modified_entries.into_iter().chain(page.created_entries);
    let next = page.cursor.filter(|cursor| cursor.index >= 0 || !cursor.start_path.is_empty());
    (entries.chain(page.deleted_entries).map(path).collect(), next)
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_from_what_the_first_was_cut_out_of() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.snapshots.diff_page = 2;
    let node = cairn_namenode::NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    allow(&client, "/d").await;
    take(&client, "/d", Some("s")).await;
    for name in ["a", "b", "c"] {
        client.mkdirs(&format!("/d/{name}")).await;
    }
    let (first, next) = page_of(&client, None).await;
    assert_eq!(first, ["", "a"]);
    // It is not in pages that go on, and in those that begin.
    client.mkdirs("/d/aa").await;
    let (second, end) = page_of(&client, next.clone()).await;
    assert_eq!((second, end), (vec!["b".to_string(), "c".to_string()], None));
    let (first, next) = page_of(&client, None).await;
    assert_eq!(first, ["", "a"]);
    let (second, _) = page_of(&client, next.clone()).await;
    assert_eq!(second, ["aa", "b"]);

    // Another snapshot of that name has nothing to do with them.
    delete_snapshot(&client).await;
    take(&client, "/d", Some("s")).await;
    assert_eq!(page_of(&client, next).await, (vec![], None));
    node.shutdown().await;
}
