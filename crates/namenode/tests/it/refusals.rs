//! What is wrong, forbidden or not there gets Hadoop's exception, and the NameNode goes on.

use cairn_wire::exception::class;
use cairn_wire::proto::{common, hdfs as pb};

use cairn_namenode::{NameNode, NameNodeConfig};

use crate::cluster::{CLIENT, Client, SUPERUSER, config, create_request, start};

const HA: &str = "org.apache.hadoop.ha.HAServiceProtocol";
const USER_MAPPINGS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_methods_and_protocols_have_exceptions_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let nothing = pb::MsyncRequestProto {};
    let (class, text) = client.refused("fly", &nothing).await;
    assert_eq!(class, class::RPC_NO_SUCH_METHOD);
    assert!(text.contains("Unknown method fly"), "{text}");
    let stranger = Client::new(&node, "org.example.Nothing", SUPERUSER);
    assert_eq!(stranger.refused("fly", &nothing).await.0, class::RPC_NO_SUCH_PROTOCOL);
    // A number where the method's message has a text.
    let bad = pb::SetSafeModeRequestProto { action: 1, checked: None };
    let (class, _) = client.refused("getFileInfo", &bad).await;
    assert!(class.contains("InvalidProtocolBufferException"), "{class}");
    assert!(client.file_info("/").await.is_some());
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_the_protocol_answers_or_refuses_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    for method in pb::CLIENT_NAMENODE_PROTOCOL_METHODS {
        let answer: Result<pb::MsyncResponseProto, _> =
            client.call(method, &pb::MsyncRequestProto {}).await;
        if let Err(error) = answer {
            let exception = error.remote().unwrap_or_else(|| panic!("{method}: {error}"));
            assert_ne!(exception.class, class::RPC_NO_SUCH_METHOD, "{method}");
            assert!(!exception.message.contains("fault of its own"), "{method}: {exception}");
        }
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn features_that_are_not_there_are_refused_like_switched_off_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let link = pb::CreateSymlinkRequestProto {
        target: "/a".to_string(),
        link: "/b".to_string(),
        ..Default::default()
    };
    let want = (class::UNSUPPORTED_OPERATION.to_string(), "Symlinks not supported".to_string());
    assert_eq!(client.refused("createSymlink", &link).await, want);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_may_do_what_modes_allow_and_administration_is_for_superusers() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let admin = Client::new(&node, CLIENT, SUPERUSER);
    let alice = Client::new(&node, CLIENT, "alice");
    let (class, text) = alice.refused("create", &create_request("/f", "writer")).await;
    assert_eq!(class, class::ACCESS_CONTROL);
    assert!(text.contains("user=alice") && text.contains("access=WRITE"), "{text}");
    admin.mkdirs("/home/alice").await;
    let owner = pb::SetOwnerRequestProto {
        src: "/home/alice".to_string(),
        username: Some("alice".to_string()),
        groupname: Some("staff".to_string()),
    };
    let _: pb::SetOwnerResponseProto = admin.call("setOwner", &owner).await.unwrap();
    alice.create("/home/alice/f", "writer").await;
    let enter = pb::SetSafeModeRequestProto {
        action: pb::SafeModeActionProto::SafemodeEnter as i32,
        checked: None,
    };
    let (class, text) = alice.refused("setSafeMode", &enter).await;
    assert_eq!(class, class::ACCESS_CONTROL);
    let wanted = "Access denied for user alice. Superuser privilege is required for operation safemode_enter";
    assert_eq!(text, wanted);
    let report = pb::GetDatanodeReportRequestProto { r#type: 1 };
    assert_eq!(alice.refused("getDatanodeReport", &report).await.0, class::ACCESS_CONTROL);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_refused_in_hadoops_words() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d").await;
    client.create("/file", "writer").await;
    assert!(client.complete("/file", "writer", None).await);
    let set = |src: &str, name: &str| pb::SetErasureCodingPolicyRequestProto {
        src: src.to_string(),
        ec_policy_name: Some(name.to_string()),
    };
    let method = "setErasureCodingPolicy";
    let (class, text) = client.refused(method, &set("/file", "RS-6-3-1024k")).await;
    assert_eq!(class, class::IO);
    assert_eq!(text, "Attempt to set an erasure coding policy for a file /file");
    let (class, text) = client.refused(method, &set("/none", "RS-6-3-1024k")).await;
    assert_eq!((class.as_str(), text.as_str()), (class::FILE_NOT_FOUND, "Path not found: /none"));
    for name in ["nothing", "RS-10-4-1024k"] {
        let (class, text) = client.refused(method, &set("/d", name)).await;
        assert_eq!(class, class::HADOOP_ILLEGAL_ARGUMENT);
        let start = format!("Policy '{name}' does not match any enabled erasure coding policies: ");
        assert!(text.starts_with(&start), "{text}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_small_protocols_answer_as_a_name_node_without_ha() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let ha = Client::new(&node, HA, SUPERUSER);
    let (class, text) =
        ha.refused("getServiceStatus", &common::GetServiceStatusRequestProto {}).await;
    assert_eq!(class, "org.apache.hadoop.ha.ServiceFailedException");
    assert_eq!(text, "HA for namenode is not enabled");
    let users = Client::new(&node, USER_MAPPINGS, SUPERUSER);
    let request = common::GetGroupsForUserRequestProto { user: "alice".to_string() };
    let answer: common::GetGroupsForUserResponseProto =
        users.call("getGroupsForUser", &request).await.unwrap();
    assert_eq!(answer.groups, ["staff"]);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_registered_is_not_refreshed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, "org.apache.hadoop.ipc.GenericRefreshProtocol", "alice");
    let request = common::GenericRefreshRequestProto {
        identifier: Some("this".to_string()),
        args: Vec::new(),
    };
    let text = "Identifier 'this' does not exist in RefreshRegistry. Valid options are: ";
    let want = (class::ILLEGAL_ARGUMENT.to_string(), text.to_string());
    assert_eq!(client.refused("refresh", &request).await, want);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_added_enabled_set_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let policy = |codec: &str, k: u32, m: u32, cell_size: u32| pb::ErasureCodingPolicyProto {
        name: None,
        schema: Some(pb::ECSchemaProto {
            codec_name: codec.to_string(),
            data_units: k,
            parity_units: m,
            options: Vec::new(),
        }),
        cell_size: Some(cell_size),
        id: 255,
        state: None,
    };
    let asked = vec![policy("rs", 4, 2, 65_536), policy("lrc", 4, 2, 65_536)];
    let request = pb::AddErasureCodingPoliciesRequestProto { ec_policies: asked };
    let answer: pb::AddErasureCodingPoliciesResponseProto =
        client.call("addErasureCodingPolicies", &request).await.unwrap();
    let [added, refused] = &answer.responses[..] else { panic!("{answer:?}") };
    assert_eq!((added.succeed, added.policy.name(), added.policy.id), (true, "RS-4-2-64k", 64));
    assert!(!refused.succeed);
    assert_eq!(refused.error_msg(), "Codec name lrc is not supported");

    let ec_policy_name = "RS-4-2-64k".to_string();
    client.mkdirs("/d").await;
    let enable =
        pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: ec_policy_name.clone() };
    let _: pb::EnableErasureCodingPolicyResponseProto =
        client.call("enableErasureCodingPolicy", &enable).await.unwrap();
    client.set_policy("/d", "RS-4-2-64k").await;
    let get = pb::GetErasureCodingPolicyRequestProto { src: "/d".to_string() };
    let found: pb::GetErasureCodingPolicyResponseProto =
        client.call("getErasureCodingPolicy", &get).await.unwrap();
    assert_eq!(found.ec_policy.map(|policy| policy.id), Some(64));

    let remove = pb::RemoveErasureCodingPolicyRequestProto { ec_policy_name };
    let _: pb::RemoveErasureCodingPolicyResponseProto =
        client.call("removeErasureCodingPolicy", &remove).await.unwrap();
    let all: pb::GetErasureCodingPoliciesResponseProto = client
        .call("getErasureCodingPolicies", &pb::GetErasureCodingPoliciesRequestProto {})
        .await
        .unwrap();
    let state = all.ec_policies.iter().find(|policy| policy.id == 64).map(|policy| policy.state());
    assert_eq!(state, Some(pb::ErasureCodingPolicyState::Removed));
    assert!(all.ec_policies.is_sorted_by_key(|policy| policy.name().to_string()));
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_policies_can_be_switched_off_and_be_the_superusers() {
    let dir = tempfile::tempdir().unwrap();
    let set = pb::SetStoragePolicyRequestProto { src: "/".into(), policy_name: "COLD".into() };
    let unset = pb::UnsetStoragePolicyRequestProto { src: "/".into() };
    let off = NameNodeConfig { storage_policies_enabled: false, ..config(dir.path()) };
    let node = NameNode::start(off).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let want = |what: &str| {
        let text = format!("Failed to {what} since dfs.storage.policy.enabled is set to false.");
        (class::IO.to_string(), text)
    };
    assert_eq!(client.refused("setStoragePolicy", &set).await, want("set storage policy"));
    assert_eq!(client.refused("unsetStoragePolicy", &unset).await, want("unset storage policy"));
    let satisfy = pb::SatisfyStoragePolicyRequestProto { src: "/".into() };
    assert_eq!(
        client.refused("satisfyStoragePolicy", &satisfy).await,
        want("satisfy storage policy")
    );
    node.shutdown().await;
    let only = NameNodeConfig { storage_policies_superuser_only: true, ..config(dir.path()) };
    let node = NameNode::start(only).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/home").await;
    let owner = pb::SetOwnerRequestProto {
        src: "/home".into(),
        username: Some("alice".into()),
        groupname: None,
    };
    let _: pb::SetOwnerResponseProto = client.call("setOwner", &owner).await.unwrap();
    let set = pb::SetStoragePolicyRequestProto { src: "/home".into(), ..set };
    let unset = pb::UnsetStoragePolicyRequestProto { src: "/home".into() };
    let alice = Client::new(&node, CLIENT, "alice");
    let want = "Access denied for user alice. Superuser privilege is required";
    for (refused, text) in [
        alice.refused("setStoragePolicy", &set).await,
        alice.refused("unsetStoragePolicy", &unset).await,
    ] {
        assert_eq!(refused, class::ACCESS_CONTROL);
        assert!(text.starts_with(want), "{text}");
    }
    let _: pb::SetStoragePolicyResponseProto = client.call("setStoragePolicy", &set).await.unwrap();
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_that_are_switched_off_are_refused_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let off = NameNodeConfig { xattrs_enabled: false, ..config(dir.path()) };
    let node = NameNode::start(off).await.unwrap();
    let alice = Client::new(&node, CLIENT, "alice");
    let attribute = pb::XAttrProto {
        namespace: pb::XAttrProtoXAttrNamespaceProto::Trusted as i32,
        name: "a".into(),
        value: None,
    };
    let get = pb::GetXAttrsRequestProto { src: "/".into(), x_attrs: vec![attribute.clone()] };
    let x_attr = Some(attribute);
    let remove = pb::RemoveXAttrRequestProto { src: "/".into(), x_attr: x_attr.clone() };
    let set = pb::SetXAttrRequestProto { src: "/".into(), x_attr, flag: Some(1) };
    for (class, text) in [
        alice.refused("getXAttrs", &get).await,
        alice.refused("removeXAttr", &remove).await,
        alice.refused("setXAttr", &set).await,
    ] {
        assert_eq!(class, class::IO);
        assert!(text.starts_with("The XAttr operation has been rejected."), "{text}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_mode_is_told_behind_what_is_wrong_in_any_mode() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let token = common::GetDelegationTokenRequestProto { renewer: "yarn".into() };
    let none: common::GetDelegationTokenResponseProto =
        client.call("getDelegationToken", &token).await.unwrap();
    assert!(none.token.is_none());
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let (class, text) = client.refused("getDelegationToken", &token).await;
    assert_eq!(class, class::SAFE_MODE);
    assert!(
        text.starts_with("Cannot issue delegation token. Name node is in safe mode."),
        "{text}"
    );
    let (class, text) = client.refused("create", &create_request("/a//b", "me")).await;
    assert_eq!(class, "org.apache.hadoop.fs.InvalidPathException");
    assert_eq!(text, "Invalid path name /a//b");
    assert_eq!(client.refused("create", &create_request("/a", "me")).await.0, class::SAFE_MODE);

    let pool_id = node.node().ns.identity().block_pool_id.clone();
    let named = format!("{pool_id}:blk_1073741825_1001");
    let block = pb::ExtendedBlockProto {
        pool_id,
        block_id: 1_073_741_825,
        generation_stamp: 1001,
        num_bytes: None,
    };
    let (src, holder) = ("/f".to_string(), "me".to_string());
    let abandon = pb::AbandonBlockRequestProto {
        b: block.clone(),
        src: src.clone(),
        holder: holder.clone(),
        file_id: None,
    };
    let more = pb::GetAdditionalDatanodeRequestProto {
        src,
        blk: block.clone(),
        num_additional_nodes: 1,
        client_name: holder.clone(),
        ..Default::default()
    };
    let stamp = pb::UpdateBlockForPipelineRequestProto { block, client_name: holder };
    for ((class, text), want) in [
        (
            client.refused("abandonBlock", &abandon).await,
            format!("Cannot abandon block {named} for file/f. Name node"),
        ),
        (
            client.refused("getAdditionalDatanode", &more).await,
            format!("Cannot add datanode; src=/f, blk={named}. Name node"),
        ),
        (
            client.refused("updateBlockForPipeline", &stamp).await,
            format!(
                "Cannot get a new generation stamp and an access token for block {named}. Name node"
            ),
        ),
    ] {
        assert_eq!(class, class::SAFE_MODE);
        assert!(text.starts_with(&want), "{text}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_policy_that_is_not_there_is_refused_for_lazy_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let lazy = |path: &str, policy: &str| pb::CreateRequestProto {
        create_flag: pb::CreateFlagProto::Create as u32 | pb::CreateFlagProto::LazyPersist as u32,
        storage_policy: Some(policy.to_string()),
        ..create_request(path, "me")
    };
    let (class, text) = client.refused("create", &lazy("/f", "unknown")).await;
    assert_eq!(class, class::HADOOP_ILLEGAL_ARGUMENT);
    assert_eq!(text, "Cannot find a block policy with the name unknown");
    for (path, policy) in [("/f", "COLD"), ("/g", "")] {
        let _: pb::CreateResponseProto = client.call("create", &lazy(path, policy)).await.unwrap();
        assert_eq!(client.file_info(path).await.unwrap().storage_policy(), 15);
    }
    node.shutdown().await;
}

/// `dfs.permissions.allow.owner.set.quota`.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_set_no_quota_is_told_so_before_what_is_wrong_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig { owners_set_quotas: true, ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    Client::new(&node, CLIENT, SUPERUSER).mkdirs("/a/b").await;
    let request = |path: &str| pb::SetQuotaRequestProto {
        path: path.to_string(),
        namespace_quota: -7i64 as u64,
        storagespace_quota: 5,
        storage_type: None,
    };
    let alice = Client::new(&node, CLIENT, "alice");
    let denied =
        "Access denied for user alice. Superuser or owner of parent folder privilege is required";
    let refused = alice.refused("setQuota", &request("/a/b")).await;
    assert_eq!(refused, (class::ACCESS_CONTROL.to_string(), denied.to_string()));
    let (class, _) = alice.refused("setQuota", &request("/none/x/y")).await;
    assert_eq!(class, "java.io.FileNotFoundException");
    let superuser = Client::new(&node, CLIENT, SUPERUSER);
    let (class, text) = superuser.refused("setQuota", &request("/a/b")).await;
    assert_eq!(class, class::ILLEGAL_ARGUMENT);
    assert_eq!(text, "Illegal value for nsQuota or ssQuota : -7 and 5");
    node.shutdown().await;
}
