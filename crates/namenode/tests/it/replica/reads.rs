//! Members that follow answer clients that say what they have seen, and what they answer is what the leader does.

use super::*;
use cairn_net::rpc_client::LastSeen;
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
    // And one that wants locations.
    here.create("/file", "writer").await;
    assert_eq!(here.locations("/file").await.blocks.len(), 0);
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
