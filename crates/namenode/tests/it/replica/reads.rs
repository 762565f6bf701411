//! Members that follow answer clients that say what they have seen, and what they answer is what the leader does.

use super::*;
use cairn_net::rpc_client::LastSeen;
use cairn_security::block_keys::{BlockKeys, Wanted};
use cairn_security::block_token::{AccessMode, Form};
use prost::Message;

/// An answer as it came.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bytes(Vec<u8>);

impl Message for Bytes {
    fn encode_raw(&self, out: &mut impl prost::bytes::BufMut) {
        out.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: prost::encoding::WireType,
        input: &mut impl prost::bytes::Buf,
        _: prost::encoding::DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        self.0.extend([tag as u8, wire_type as u8]);
        while input.has_remaining() {
            self.0.push(input.get_u8());
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

fn asked(request: &impl Message) -> Bytes {
    Bytes(request.encode_to_vec())
}

/// Reads of names, with a request of each.
fn reads() -> Vec<(&'static str, Bytes)> {
    let src = || "/dir".to_string();
    let listing = |need_location| pb::GetListingRequestProto {
        src: src(),
        start_after: Vec::new(),
        need_location,
        read_up_to: None,
    };
    let status = pb::GetFileInfoRequestProto { src: src() };
    vec![
        ("getFileInfo", asked(&status)),
        ("getFileLinkInfo", asked(&status)),
        ("getListing", asked(&listing(false))),
        ("getContentSummary", asked(&pb::GetContentSummaryRequestProto { path: src() })),
        ("isFileClosed", asked(&pb::IsFileClosedRequestProto { src: "/dir/file".into() })),
        ("getStoragePolicies", asked(&pb::GetStoragePoliciesRequestProto {})),
        ("getStoragePolicy", asked(&pb::GetStoragePolicyRequestProto { path: src() })),
        ("getErasureCodingPolicies", asked(&pb::GetErasureCodingPoliciesRequestProto {})),
        ("getErasureCodingPolicy", asked(&pb::GetErasureCodingPolicyRequestProto { src: src() })),
        ("getSnapshottableDirListing", asked(&pb::GetSnapshottableDirListingRequestProto {})),
        ("getEZForPath", asked(&pb::GetEZForPathRequestProto { src: src() })),
    ]
}

impl Three {
    fn seeing(&self, at: usize, user: &str, last_seen: &LastSeen) -> Client {
        Client::seeing(&self.members[NAMES[at]].rpc, CLIENT, user, last_seen)
    }

    fn read_by(&self, at: usize) -> u64 {
        self.running[at].as_ref().unwrap().reads()
    }
}

/// Whether a path is there, by whoever is asked.
async fn sees(client: &Client, path: &str) -> bool {
    let request = pb::GetFileInfoRequestProto { src: path.to_string() };
    let answer: pb::GetFileInfoResponseProto = client.call("getFileInfo", &request).await.unwrap();
    answer.fs.is_some()
}

async fn sync(client: &Client) {
    let _: pb::MsyncResponseProto = client.call("msync", &pb::MsyncRequestProto {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_reads_what_its_client_has_seen() {
    let (mut three, leader) = Three::that_hand_on().await;
    let follower = (leader + 1) % 3;
    let last_seen = LastSeen::default();
    let here = three.seeing(follower, "hdfs", &last_seen);
    let there = three.seeing(leader, "hdfs", &last_seen);
    // What the leader says comes back through whoever was asked.
    sync(&here).await;
    let first = last_seen.get();
    assert!(first > 0, "{first}");
    for number in 0..100 {
        let path = format!("/d{number}");
        let maker = if number % 2 == 0 { &there } else { &here };
        maker.mkdirs(&path).await;
        assert!(sees(&here, &path).await, "what it has made itself: {path}");
    }
    let read = three.read_by(follower);
    assert!(read >= 100, "{read}");
    assert!(last_seen.get() >= first + 100);
    // What others have made is seen once the leader was asked how far it is.
    for number in 0..50 {
        let path = format!("/o{number}");
        three.client(leader).mkdirs(&path).await;
        sync(if number % 2 == 0 { &there } else { &here }).await;
        assert!(sees(&here, &path).await, "{path}");
    }
    // A client that says nothing of what it has seen is answered by the leader, at once and with all there is.
    let read = three.read_by(follower);
    for number in 0..50 {
        let path = format!("/p{number}");
        three.client(leader).mkdirs(&path).await;
        assert_eq!(three.has(follower, &path).await, Ok(true), "{path}");
    }
    assert_eq!(three.read_by(follower), read);
    // So is one that has seen what nobody has, as after a restore.
    let ahead = LastSeen::default();
    ahead.see(i64::MAX / 2);
    assert!(sees(&three.seeing(follower, "hdfs", &ahead), "/p1").await);
    assert_eq!(three.read_by(follower), read);
    // Whoever leads next tells what it has by itself.
    three.stop(leader).await;
    let next = three.leader().await;
    let last = (0..3).find(|at| *at != leader && *at != next).unwrap();
    three.wait_for_standing(last, follows).await;
    let here = three.seeing(last, "hdfs", &last_seen);
    here.mkdirs("/next").await;
    let read = three.read_by(last);
    assert!(sees(&here, "/next").await && sees(&here, "/p49").await);
    assert!(three.read_by(last) > read);
    for at in [next, last] {
        three.stop(at).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_answers_as_the_leader_does() {
    let (mut three, leader) = Three::that_hand_on().await;
    let follower = (leader + 1) % 3;
    let last_seen = LastSeen::default();
    let here = three.seeing(follower, "hdfs", &last_seen);
    let there = three.seeing(leader, "hdfs", &last_seen);
    there.mkdirs("/dir/below").await;
    there.create("/dir/file", "writer").await;
    sync(&here).await;
    for (method, request) in reads() {
        let read = three.read_by(follower);
        let by_follower: Bytes = here.call(method, &request).await.unwrap();
        let by_leader: Bytes = there.call(method, &request).await.unwrap();
        assert_eq!(by_follower, by_leader, "{method}");
        assert_eq!(three.read_by(follower), read + 1, "{method}");
    }
    // Who may not, may not here.
    let closed = pb::SetPermissionRequestProto {
        src: "/dir".into(),
        permission: pb::FsPermissionProto { perm: 0o700 },
    };
    let _: pb::SetPermissionResponseProto = there.call("setPermission", &closed).await.unwrap();
    let read = three.read_by(follower);
    let refused = three
        .seeing(follower, "eve", &last_seen)
        .refused("getFileInfo", &pb::GetFileInfoRequestProto { src: "/dir/file".into() })
        .await;
    assert_eq!(refused.0, class::ACCESS_CONTROL);
    assert_eq!(three.read_by(follower), read + 1);
    three.stop_all().await;
}

/// Three members that hand on, to all of which as many DataNodes tell what happens to them.
struct Told {
    three: Three,
    leader: usize,
    follower: usize,
    datanodes: Vec<ToAll>,
    last_seen: LastSeen,
}

impl Told {
    async fn new() -> Told {
        Told::with_tokens(None).await
    }

    async fn with_tokens(block_tokens: Option<BlockTokenConfig>) -> Told {
        let mut three = Three::new().await;
        (three.forwards, three.block_tokens) = (true, block_tokens);
        let leader = three.begin().await;
        let follower = (leader + 1) % 3;
        let mut datanodes = Vec::new();
        for number in 1..4 {
            datanodes.push(ToAll::start(&three, number).await);
        }
        let told = Told { three, leader, follower, datanodes, last_seen: LastSeen::default() };
        sync(&told.here()).await;
        told
    }

    fn here(&self) -> Client {
        self.three.seeing(self.follower, "hdfs", &self.last_seen)
    }

    fn there(&self) -> Client {
        self.three.seeing(self.leader, "hdfs", &self.last_seen)
    }

    /// A file of one block that so many of the DataNodes have told these members of.
    async fn write(&self, path: &str, by: usize, members: &[usize]) -> pb::BlockProto {
        let there = self.there();
        there.create(path, "writer").await;
        let block = there.add_block(path, "writer", None).await.b;
        let replica = replica_of(&block, 77);
        for datanode in &self.datanodes[..by] {
            datanode.received(members.iter().copied(), &replica).await;
        }
        let last = pb::ExtendedBlockProto { num_bytes: Some(77), ..block };
        assert!(there.complete(path, "writer", Some(last)).await, "{path}");
        replica
    }

    /// Where a block is by the follower, and whether that has asked nobody.
    async fn places(&self, path: &str) -> (Vec<String>, bool) {
        let read = self.three.read_by(self.follower);
        let located = self.here().locations(path).await;
        (datanodes_of(&located), self.three.read_by(self.follower) > read)
    }

    /// Until the follower finds a block by itself.
    async fn wait_for_places(&self, path: &str) -> Vec<String> {
        let begun = Instant::now();
        loop {
            if let (places, true) = self.places(path).await {
                return places;
            }
            assert!(begun.elapsed() < PATIENCE, "the leader is asked for {path}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// UUIDs of the DataNodes of a file's first block.
fn datanodes_of(located: &pb::LocatedBlocksProto) -> Vec<String> {
    let places = located.blocks[0].locs.iter();
    let mut uuids: Vec<String> = places.map(|at| at.id.datanode_uuid.clone()).collect();
    uuids.sort();
    uuids
}

fn names_of(datanodes: &[ToAll]) -> Vec<String> {
    datanodes.iter().map(|all| all.0[0].uuid().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_tells_where_blocks_are_as_the_leader_does() {
    let mut told = Told::new().await;
    told.there().mkdirs("/d").await;
    let block = told.write("/d/file", 2, &[0, 1, 2]).await;
    assert_eq!(told.wait_for_places("/d/file").await, names_of(&told.datanodes[..2]));
    // All else of the answers is the leader's, too: what DataNodes have said when, but for that.
    let timeless = |mut located: pb::LocatedBlocksProto| {
        let last = located.last_block.iter_mut();
        for block in located.blocks.iter_mut().chain(last) {
            let mut places: Vec<_> = std::mem::take(&mut block.locs);
            places.sort_by(|a, b| a.id.datanode_uuid.cmp(&b.id.datanode_uuid));
            for place in &mut places {
                (place.last_update, place.last_update_monotonic) = (None, None);
                (place.last_block_report_time, place.last_block_report_monotonic) = (None, None);
            }
            block.locs = places;
            block.storage_i_ds.sort();
        }
        located
    };
    let by_leader = timeless(told.there().locations("/d/file").await);
    assert_eq!(timeless(told.here().locations("/d/file").await), by_leader);
    let status = pb::GetLocatedFileInfoRequestProto {
        src: Some("/d/file".into()),
        need_block_token: Some(false),
    };
    let listing = pb::GetListingRequestProto {
        src: "/d".into(),
        start_after: vec![],
        need_location: true,
        read_up_to: None,
    };
    let batch = pb::GetBatchedListingRequestProto {
        paths: vec!["/d".into()],
        start_after: vec![],
        need_location: true,
    };
    let read = told.three.read_by(told.follower);
    let here = told.here();
    let found: pb::GetLocatedFileInfoResponseProto =
        here.call("getLocatedFileInfo", &status).await.unwrap();
    assert_eq!(timeless(found.fs.unwrap().locations.unwrap()), by_leader);
    let listed: pb::GetListingResponseProto = here.call("getListing", &listing).await.unwrap();
    let mut entries = listed.dir_list.unwrap().partial_listing;
    assert_eq!(timeless(entries.remove(0).locations.unwrap()), by_leader);
    let batched = async || {
        let answer: pb::GetBatchedListingResponseProto =
            here.call("getBatchedListing", &batch).await.unwrap();
        let mut listings = answer.listings;
        let mut entries = listings.remove(0).partial_listing;
        entries.remove(0).locations.expect("it has places, and is no exception")
    };
    assert_eq!(timeless(batched().await), by_leader);
    assert_eq!(told.three.read_by(told.follower), read + 3);
    // It is copied, and deleted.
    told.datanodes[2].received(0..3, &block).await;
    assert_eq!(told.places("/d/file").await, (names_of(&told.datanodes), true));
    for at in 0..3 {
        told.datanodes[0].0[at].deleted(block.clone()).await;
    }
    assert_eq!(told.places("/d/file").await, (names_of(&told.datanodes[1..]), true));
    // What is gone everywhere here is the leader's to tell, in listings as well.
    for datanode in &told.datanodes[1..] {
        datanode.0[told.follower].deleted(block.clone()).await;
    }
    assert_eq!(told.places("/d/file").await, (names_of(&told.datanodes[1..]), false));
    let read = told.three.read_by(told.follower);
    let by_leader = timeless(told.there().locations("/d/file").await);
    assert_eq!(timeless(batched().await), by_leader);
    assert_eq!(told.three.read_by(told.follower), read);
    told.three.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_leader_knows_of_blocks_is_left_to_it() {
    let mut told = Told::new().await;
    let all: Vec<usize> = (0..3).collect();
    let others: Vec<usize> = all.iter().copied().filter(|at| *at != told.follower).collect();
    told.write("/known", 3, &all).await;
    told.wait_for_places("/known").await;
    // It was told to others only.
    told.write("/unknown", 3, &others).await;
    assert_eq!(told.places("/unknown").await, (names_of(&told.datanodes), false));
    // It is being written.
    let there = told.there();
    there.create("/open", "writer").await;
    there.add_block("/open", "writer", None).await;
    let (places, by_itself) = told.places("/open").await;
    assert_eq!((places.len(), by_itself), (3, false));
    // It could not be read where that was told.
    let failed = pb::GetBlockLocationsRequestProto {
        src: "/known".into(),
        length: 77,
        after_failure: Some(true),
        ..Default::default()
    };
    let read = told.three.read_by(told.follower);
    let _: pb::GetBlockLocationsResponseProto =
        told.here().call("getBlockLocations", &failed).await.unwrap();
    assert_eq!(told.three.read_by(told.follower), read);
    // Its access time is due.
    let long_ago = pb::SetTimesRequestProto { src: "/known".into(), mtime: 5, atime: 5 };
    let _: pb::SetTimesResponseProto = there.call("setTimes", &long_ago).await.unwrap();
    assert!(!told.places("/known").await.1);
    let begun = Instant::now();
    while there.file_info("/known").await.unwrap().access_time == 5 {
        assert!(begun.elapsed() < PATIENCE, "no access time is set");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sync(&told.here()).await;
    assert!(told.places("/known").await.1);
    // It is not known what another DataNode has.
    let late = FakeDataNode::told_nothing(&told.three.members[NAMES[told.follower]].rpc, 9).await;
    let begun = Instant::now();
    while told.places("/known").await.1 {
        assert!(begun.elapsed() < PATIENCE, "it tells of what it does not know");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    late.report(&[]).await;
    told.wait_for_places("/known").await;
    // A file that is gone for its reader is gone, whatever DataNodes have.
    let gone = pb::DeleteRequestProto { src: "/known".into(), recursive: false };
    let _: pb::DeleteResponseProto = there.call("delete", &gone).await.unwrap();
    let asked = pb::GetBlockLocationsRequestProto {
        src: "/known".into(),
        length: 77,
        ..Default::default()
    };
    let read = told.three.read_by(told.follower);
    let refused = told.here().refused("getBlockLocations", &asked).await;
    assert_eq!(refused.0, class::FILE_NOT_FOUND);
    assert_eq!(told.three.read_by(told.follower), read + 1);
    told.three.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_told_by_who_follows_after_the_lead_has_moved() {
    let mut told = Told::new().await;
    let block = told.write("/file", 2, &[0, 1, 2]).await;
    told.wait_for_places("/file").await;
    let before = told.leader;
    told.three.stop(before).await;
    told.leader = told.three.leader().await;
    told.follower = (0..3).find(|at| *at != before && *at != told.leader).unwrap();
    told.three.wait_for_standing(told.follower, follows).await;
    sync(&told.here()).await;
    assert_eq!(told.wait_for_places("/file").await, names_of(&told.datanodes[..2]));
    let datanode = &told.datanodes[2];
    datanode.received([told.leader, told.follower].into_iter(), &block).await;
    assert_eq!(told.places("/file").await, (names_of(&told.datanodes), true));
    for at in [told.leader, told.follower] {
        told.three.stop(at).await;
    }
}

/// Whether a DataNode takes a token for reading with the keys that the member `at` gave it when it registered.
fn takes(datanode: &ToAll, at: usize, located: &pb::LocatedBlockProto) -> bool {
    let (keys, now_ms) = (datanode.0[at].keys(), 0);
    let keys = BlockKeys::imported(None, keys, now_ms).unwrap().expect("it gives keys");
    let wanted = Wanted {
        pool: &located.b.pool_id,
        block: located.b.block_id as i64,
        name: &"it",
        mode: AccessMode::Read,
        storage_types: &[],
        storage_ids: &[],
    };
    keys.check(&located.block_token, &wanted, now_ms).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_issues_tokens_for_datanodes_that_have_its_keys() {
    let hour = Duration::from_secs(3600);
    let tokens = BlockTokenConfig { key_interval: hour, lifetime: hour, form: Form::Protobuf };
    let mut told = Told::with_tokens(Some(tokens)).await;
    let block = told.write("/file", 2, &[0, 1, 2]).await;
    let named = names_of(&told.datanodes[..2]);
    assert_eq!(told.wait_for_places("/file").await, named);
    let is_by = |at: usize, located: &pb::LocatedBlocksProto| {
        let first = &located.blocks[0];
        told.datanodes.iter().all(|datanode| takes(datanode, at, first))
    };
    let located = told.here().locations("/file").await;
    assert!(is_by(told.follower, &located) && !is_by(told.leader, &located));
    let by_leader = told.there().locations("/file").await;
    assert!(is_by(told.leader, &by_leader) && !is_by(told.follower, &by_leader));
    let status = pb::GetLocatedFileInfoRequestProto {
        src: Some("/file".into()),
        need_block_token: Some(true),
    };
    let read = told.three.read_by(told.follower);
    let found: pb::GetLocatedFileInfoResponseProto =
        told.here().call("getLocatedFileInfo", &status).await.unwrap();
    assert!(is_by(told.follower, &found.fs.unwrap().locations.unwrap()));
    assert_eq!(told.three.read_by(told.follower), read + 1);
    // One of them starts anew. What it has is known before it has shown that it got the keys.
    let addr = told.three.members[NAMES[told.follower]].rpc.clone();
    let anew = FakeDataNode::register(&addr, 1).await;
    anew.lifeline(&addr).await;
    anew.report(&[block]).await;
    told.three.wait_for_ready(told.leader, told.follower, true).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(told.places("/file").await, (named.clone(), false));
    assert!(is_by(told.leader, &told.here().locations("/file").await));
    anew.heartbeat().await;
    assert_eq!(told.places("/file").await, (named, true));
    told.three.stop_all().await;
}
