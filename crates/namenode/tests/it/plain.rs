//! The address for clients that know no erasure coding: striped files are told as plain ones.

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_stripe::{BlockId, Policy};
use cairn_wire::exception::class;
use cairn_wire::proto::datanode as dn;
use cairn_wire::proto::hdfs as pb;

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, create_request, finish};

const POLICY: &str = "XOR-2-1-1024k";
const HAS_EC: u32 = pb::HdfsFileStatusProtoFlags::HasEc as u32;
const LEN: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn striped_files_are_told_as_plain_ones() {
    let dir = tempfile::tempdir().unwrap();
    let plain_rpc_addr = Some("127.0.0.1:0".parse().unwrap());
    let settings = NameNodeConfig { plain_rpc_addr, ..config(dir.path()) };
    let node = NameNode::start(settings).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    for datanode in &datanodes {
        datanode.heartbeat_with_groups(Vec::new()).await;
    }
    let striped = Client::new(&node, CLIENT, SUPERUSER);
    let addr = node.plain_rpc_addr.unwrap().to_string();
    let plain = Client::at(&addr, CLIENT, SUPERUSER);
    striped.mkdirs("/ec").await;
    let enable = pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: POLICY.to_string() };
    let _: pb::EnableErasureCodingPolicyResponseProto =
        striped.call("enableErasureCodingPolicy", &enable).await.unwrap();
    striped.set_policy("/ec", POLICY).await;

    // A closed file of two groups, and one whose second group is being written.
    let policy = Policy::built_in().into_iter().find(|policy| policy.name == POLICY);
    for path in ["/ec/closed", "/ec/open"] {
        striped.create(path, "c").await;
        let group = striped.add_block(path, "c", None).await;
        let last = finish(&datanodes, &group, 2 * LEN, policy.as_ref()).await;
        let group = striped.add_block(path, "c", Some(last)).await;
        if path == "/ec/closed" {
            let last = finish(&datanodes, &group, LEN, policy.as_ref()).await;
            assert!(striped.complete(path, "c", Some(last)).await);
        }
    }
    let told = striped.locations("/ec/closed").await;
    assert!(told.ec_policy.is_some());
    let seen = plain.locations("/ec/closed").await;
    assert_eq!((seen.ec_policy, seen.file_length), (None, 3 * LEN));
    for (group, view) in told.blocks.iter().zip(&seen.blocks) {
        let id = BlockId(group.b.block_id as i64).plain_view().unwrap();
        let expected = pb::ExtendedBlockProto { block_id: id.0 as u64, ..group.b.clone() };
        assert_eq!((&view.b, view.offset), (&expected, group.offset));
        assert_eq!((view.block_indices.as_deref(), view.locs.len()), (None, 3));
    }
    assert_eq!(seen.blocks.len(), 2);
    assert_eq!(seen.last_block.unwrap().b, seen.blocks[1].b);
    let open = plain.locations("/ec/open").await;
    assert_eq!((open.file_length, open.blocks.len()), (2 * LEN, 1), "what is complete is told");
    assert!(open.under_construction && open.is_last_block_complete && open.last_block.is_none());

    // Its status by each call that tells it; that of its directory tells the policy.
    let request = pb::GetLocatedFileInfoRequestProto {
        src: Some("/ec/closed".to_string()),
        need_block_token: None,
    };
    let located: pb::GetLocatedFileInfoResponseProto =
        plain.call("getLocatedFileInfo", &request).await.unwrap();
    let located = located.fs.unwrap();
    assert_eq!(located.locations.as_ref().unwrap().blocks.len(), 2);
    let request = pb::GetListingRequestProto {
        src: "/ec".to_string(),
        start_after: Vec::new(),
        need_location: true,
        read_up_to: None,
    };
    let listed: pb::GetListingResponseProto = plain.call("getListing", &request).await.unwrap();
    let listed = listed.dir_list.unwrap().partial_listing;
    assert_eq!(listed.len(), 2);
    let mut files = vec![plain.file_info("/ec/closed").await.unwrap(), located];
    files.extend(listed);
    for file in files {
        assert_eq!((file.ec_policy, file.flags.unwrap() & HAS_EC), (None, 0));
        assert!(file.locations.is_none_or(|blocks| blocks.ec_policy.is_none()));
    }
    assert!(plain.file_info("/ec").await.unwrap().ec_policy.is_some());

    // A DataNode is told of what the view is made.
    let registration = datanodes[0].registration().clone();
    let ask = |block: &pb::ExtendedBlockProto| {
        let registration = registration.clone();
        let request =
            dn::LocateUnitsRequestProto { registration, block: block.clone(), also: Vec::new() };
        let rpc = datanodes[0].client();
        async move {
            let answer: dn::LocateUnitsResponseProto =
                rpc.call("locateUnits", &request).await.unwrap();
            answer.viewed
        }
    };
    let viewed = ask(&seen.blocks[0].b).await.unwrap();
    assert_eq!(viewed.group, told.blocks[0].b);
    let mut units: Vec<u32> = viewed.units.iter().map(|unit| unit.slot).collect();
    units.sort_unstable();
    assert_eq!(units, [0, 1, 2]);
    let stale = pb::ExtendedBlockProto { generation_stamp: 1, ..seen.blocks[0].b.clone() };
    assert_eq!(ask(&stale).await, None);
    let group = BlockId(striped.locations("/ec/open").await.blocks[1].b.block_id as i64);
    let unfinished = pb::ExtendedBlockProto {
        block_id: group.plain_view().unwrap().0 as u64,
        ..striped.locations("/ec/open").await.blocks[1].b.clone()
    };
    assert_eq!(ask(&unfinished).await, None);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_files_are_not_striped() {
    let dir = tempfile::tempdir().unwrap();
    let plain_rpc_addr = Some("127.0.0.1:0".parse().unwrap());
    let settings = NameNodeConfig { plain_rpc_addr, ..config(dir.path()) };
    let node = NameNode::start(settings).await.unwrap();
    let striped = Client::new(&node, CLIENT, SUPERUSER);
    let plain = Client::at(&node.plain_rpc_addr.unwrap().to_string(), CLIENT, SUPERUSER);
    let contiguous = "RS-6-3-contiguous";
    for (folder, policy) in [("/ec", POLICY), ("/contiguous", contiguous)] {
        striped.mkdirs(folder).await;
        let enable =
            pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: policy.to_string() };
        let _: pb::EnableErasureCodingPolicyResponseProto =
            striped.call("enableErasureCodingPolicy", &enable).await.unwrap();
        striped.set_policy(folder, policy).await;
    }
    let kept = async |path: &str| {
        let request = pb::GetErasureCodingPolicyRequestProto { src: path.to_string() };
        let answer: pb::GetErasureCodingPolicyResponseProto =
            striped.call("getErasureCodingPolicy", &request).await.unwrap();
        answer.ec_policy.map(|policy| policy.name.unwrap_or_default())
    };
    for (path, policy) in
        [("/ec/f", None), ("/ec/below/f", None), ("/contiguous/f", Some(contiguous)), ("/f", None)]
    {
        let made = plain.create(path, "c").await;
        assert_eq!((made.ec_policy, made.flags.unwrap() & HAS_EC), (None, 0), "{path}");
        assert_eq!(kept(path).await.as_deref(), policy, "{path}");
    }
    striped.create("/ec/striped", "c").await;
    assert_eq!(kept("/ec/striped").await.as_deref(), Some(POLICY));
    let named = |path: &str, policy: &str| pb::CreateRequestProto {
        ec_policy_name: Some(policy.to_string()),
        ..create_request(path, "c")
    };
    let (class, text) = plain.refused("create", &named("/named", POLICY)).await;
    assert!(class == class::IO && text.contains("contiguous policy"), "{class}: {text}");
    assert_eq!(plain.file_info("/named").await, None);
    let _: pb::CreateResponseProto =
        plain.call("create", &named("/named", contiguous)).await.unwrap();
    assert_eq!(kept("/named").await.as_deref(), Some(contiguous));
    node.shutdown().await;
}
