//! What a client and DataNodes did to the NameNode of an earlier build whose store the tests open.

use std::fmt::Write;

use cairn_net::rpc_client::{CallNumber, RpcClient};
use cairn_stripe::Policy;
use cairn_wire::proto::hdfs as pb;
use prost::Message;

use crate::cluster::{Client, FakeDataNode, create_request, finish};

/// Who writes in the scene.
pub const WRITER: &str = "writer";

/// Calls whose answers are kept, with the answers.
pub struct Recorder {
    pub rpc: RpcClient,
    /// A line for each: number, method, request, answer.
    pub calls: String,
}

/// The bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A call and its answer.
pub fn line(number: CallNumber, method: &str, request: &[u8], answer: &[u8]) -> String {
    format!("{} {method} [{}] [{}]\n", number.call_id, hex(request), hex(answer))
}

impl Recorder {
    async fn send<A: Message, B: Message + Default>(&mut self, method: &str, request: A) -> B {
        let number: CallNumber = self.rpc.new_call();
        let answer: B = self.rpc.call_numbered(method, &request, number).await.unwrap();
        self.calls += &line(number, method, &request.encode_to_vec(), &answer.encode_to_vec());
        answer
    }
}

/// Everything below `top`, which is not there yet.
pub async fn play(r: &mut Recorder, client: &Client, datanodes: &[FakeDataNode], top: &str) {
    let scene = Scene { client, datanodes, top };
    client.mkdirs(top).await;
    scene.files(r).await;
    scene.replaced(r).await;
    scene.unfinished(r).await;
    scene.erasure_coded(r).await;
    scene.snapshots(r).await;
    scene.attributes(r).await;
    scene.cached(r).await;
}

struct Scene<'a> {
    client: &'a Client,
    datanodes: &'a [FakeDataNode],
    top: &'a str,
}

impl Scene<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.top)
    }

    async fn call<A: Message, B: Message + Default>(&self, method: &str, request: A) -> B {
        self.client.call(method, &request).await.unwrap()
    }

    /// A closed file of blocks of so many bytes.
    async fn file(&self, name: &str, blocks: &[u64], policy: Option<&Policy>) {
        let path = self.path(name);
        self.client.create(&path, WRITER).await;
        self.fill(&path, blocks, policy).await;
    }

    async fn fill(&self, path: &str, blocks: &[u64], policy: Option<&Policy>) {
        let mut last = None;
        for len in blocks {
            let block = self.client.add_block(path, WRITER, last).await;
            last = Some(finish(self.datanodes, &block, *len, policy).await);
        }
        assert!(self.client.complete(path, WRITER, last).await);
    }

    /// Files with copies; one that was appended to, one that was joined of two, ones that were moved.
    async fn files(&self, r: &mut Recorder) {
        self.file("empty", &[], None).await;
        self.file("two-blocks", &[1 << 20, 7], None).await;
        let fewer = pb::SetReplicationRequestProto { src: self.path("two-blocks"), replication: 2 };
        let _: pb::SetReplicationResponseProto = self.call("setReplication", fewer).await;

        self.file("appended", &[7], None).await;
        let path = self.path("appended");
        let append = pb::AppendRequestProto {
            src: path.clone(),
            client_name: WRITER.to_string(),
            flag: None,
        };
        let appended: pb::AppendResponseProto = r.send("append", append).await;
        let block = appended.block.unwrap();
        let bump = pb::UpdateBlockForPipelineRequestProto {
            block: block.b.clone(),
            client_name: WRITER.to_string(),
        };
        let bumped: pb::UpdateBlockForPipelineResponseProto =
            self.call("updateBlockForPipeline", bump).await;
        let update = pb::UpdatePipelineRequestProto {
            client_name: WRITER.to_string(),
            old_block: block.b.clone(),
            new_block: bumped.block.b.clone(),
            new_nodes: block.locs.iter().map(|info| info.id.clone()).collect(),
            storage_i_ds: block.storage_i_ds.clone(),
        };
        let _: pb::UpdatePipelineResponseProto = r.send("updatePipeline", update).await;
        let renewed = pb::LocatedBlockProto { b: bumped.block.b, ..block };
        let last = finish(self.datanodes, &renewed, 20, None).await;
        assert!(self.client.complete(&path, WRITER, Some(last)).await);

        for name in ["joined", "second", "third"] {
            self.file(name, &[11], None).await;
        }
        let srcs = vec![self.path("second"), self.path("third")];
        let concat = pb::ConcatRequestProto { trg: self.path("joined"), srcs };
        let _: pb::ConcatResponseProto = r.send("concat", concat).await;

        self.file("from", &[3], None).await;
        let rename = pb::RenameRequestProto { src: self.path("from"), dst: self.path("to") };
        let renamed: pb::RenameResponseProto = r.send("rename", rename).await;
        assert!(renamed.result);

        // A cut at the end of a block is done at once.
        self.file("cut", &[1 << 20, 9], None).await;
        assert!(self.truncate("cut", 1 << 20).await);
    }

    async fn truncate(&self, name: &str, new_length: u64) -> bool {
        let request = pb::TruncateRequestProto {
            src: self.path(name),
            new_length,
            client_name: WRITER.to_string(),
        };
        let answer: pb::TruncateResponseProto = self.call("truncate", request).await;
        answer.result
    }

    /// Calls that took blocks away.
    async fn replaced(&self, r: &mut Recorder) {
        self.file("overwritten", &[5], None).await;
        let path = self.path("overwritten");
        let over = pb::CreateRequestProto {
            create_flag: pb::CreateFlagProto::Create as u32 | pb::CreateFlagProto::Overwrite as u32,
            ..create_request(&path, WRITER)
        };
        let _: pb::CreateResponseProto = r.send("create", over).await;
        self.fill(&path, &[6], None).await;

        self.file("mover", &[7], None).await;
        self.file("moved-over", &[8], None).await;
        let rename = pb::Rename2RequestProto {
            src: self.path("mover"),
            dst: self.path("moved-over"),
            overwrite_dest: true,
            move_to_trash: None,
        };
        let _: pb::Rename2ResponseProto = r.send("rename2", rename).await;

        self.client.mkdirs(&self.path("gone")).await;
        self.file("gone/a", &[1], None).await;
        self.file("gone/b", &[2], None).await;
        let delete = pb::DeleteRequestProto { src: self.path("gone"), recursive: true };
        let deleted: pb::DeleteResponseProto = r.send("delete", delete).await;
        assert!(deleted.result);
        let delete = pb::DeleteRequestProto { src: self.path("never"), recursive: true };
        let deleted: pb::DeleteResponseProto = r.send("delete", delete).await;
        assert!(!deleted.result);
    }

    /// Files that are open: being written, being recovered, being cut.
    async fn unfinished(&self, r: &mut Recorder) {
        let path = self.path("open");
        let _: pb::CreateResponseProto = r.send("create", create_request(&path, WRITER)).await;
        let first = self.client.add_block(&path, WRITER, None).await;
        let first = finish(self.datanodes, &first, 1 << 20, None).await;
        self.client.add_block(&path, WRITER, Some(first)).await;

        let path = self.path("recovering");
        self.client.create(&path, "vanished").await;
        self.client.add_block(&path, "vanished", None).await;
        let recover =
            pb::RecoverLeaseRequestProto { src: path, client_name: "rescuer".to_string() };
        let recovered: pb::RecoverLeaseResponseProto = self.call("recoverLease", recover).await;
        assert!(!recovered.result);

        self.file("being-cut", &[100], None).await;
        assert!(!self.truncate("being-cut", 40).await);
    }

    /// Groups with a policy that is built in, and with one that is not.
    async fn erasure_coded(&self, r: &mut Recorder) {
        let policy = |name: &str| Policy::built_in().into_iter().find(|it| it.name == name);
        let rs = policy("RS-6-3-1024k").unwrap();
        let cells = if self.top.ends_with("one") { 1 << 16 } else { 1 << 17 };
        let wanted = pb::ErasureCodingPolicyProto {
            schema: Some(pb::ECSchemaProto {
                codec_name: "rs".to_string(),
                data_units: 4,
                parity_units: 2,
                ..Default::default()
            }),
            cell_size: Some(cells),
            ..Default::default()
        };
        let add = pb::AddErasureCodingPoliciesRequestProto { ec_policies: vec![wanted] };
        let added: pb::AddErasureCodingPoliciesResponseProto =
            r.send("addErasureCodingPolicies", add).await;
        let own = added.responses[0].policy.name.clone().unwrap();
        let disabled = if self.top.ends_with("one") { "XOR-2-1-1024k" } else { "RS-3-2-1024k" };
        for name in ["RS-6-3-1024k", disabled, own.as_str()] {
            let enable =
                pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: name.to_string() };
            let _: pb::EnableErasureCodingPolicyResponseProto =
                r.send("enableErasureCodingPolicy", enable).await;
        }
        let disable =
            pb::DisableErasureCodingPolicyRequestProto { ec_policy_name: disabled.to_string() };
        let _: pb::DisableErasureCodingPolicyResponseProto =
            r.send("disableErasureCodingPolicy", disable).await;
        for (folder, name) in [("ec", "RS-6-3-1024k"), ("ec/own", own.as_str())] {
            self.client.mkdirs(&self.path(folder)).await;
            let set = pb::SetErasureCodingPolicyRequestProto {
                src: self.path(folder),
                ec_policy_name: Some(name.to_string()),
            };
            let _: pb::SetErasureCodingPolicyResponseProto =
                r.send("setErasureCodingPolicy", set).await;
        }
        self.file("ec/groups", &[6 << 20, 3_000_001], Some(&rs)).await;
        self.file("ec/deleted", &[5], Some(&rs)).await;
        let delete = pb::DeleteRequestProto { src: self.path("ec/deleted"), recursive: false };
        let _: pb::DeleteResponseProto = r.send("delete", delete).await;
        self.client.create(&self.path("ec/open"), WRITER).await;
        self.client.add_block(&self.path("ec/open"), WRITER, None).await;
        self.client.create(&self.path("ec/own/open"), WRITER).await;
        self.client.add_block(&self.path("ec/own/open"), WRITER, None).await;
    }

    /// Two snapshots, and changes after each of them.
    async fn snapshots(&self, r: &mut Recorder) {
        for folder in ["s", "s/sub", "s/later"] {
            self.client.mkdirs(&self.path(folder)).await;
        }
        for name in ["s/kept", "s/removed", "s/moved", "s/sub/inner", "s/cut", "s/more"] {
            self.file(name, &[50], None).await;
        }
        let root = self.path("s");
        let allow = pb::AllowSnapshotRequestProto { snapshot_root: root.clone() };
        let _: pb::AllowSnapshotResponseProto = self.call("allowSnapshot", allow).await;
        self.snapshot(r, "a").await;
        for name in ["s/removed", "s/sub"] {
            let delete = pb::DeleteRequestProto { src: self.path(name), recursive: true };
            let _: pb::DeleteResponseProto = r.send("delete", delete).await;
        }
        let rename =
            pb::RenameRequestProto { src: self.path("s/moved"), dst: self.path("s/later/renamed") };
        let _: pb::RenameResponseProto = r.send("rename", rename).await;
        self.file("s/new", &[1], None).await;
        assert!(!self.truncate("s/cut", 20).await, "a snapshot needs what is cut off");
        let mode = pb::SetPermissionRequestProto {
            src: self.path("s/kept"),
            permission: pb::FsPermissionProto { perm: 0o600 },
        };
        let _: pb::SetPermissionResponseProto = self.call("setPermission", mode).await;
        let fewer = pb::SetReplicationRequestProto { src: self.path("s/more"), replication: 1 };
        let _: pb::SetReplicationResponseProto = self.call("setReplication", fewer).await;
        self.snapshot(r, "b").await;
        self.snapshot(r, "dropped").await;
        // What replaces it is in no snapshot; it is.
        let over = pb::CreateRequestProto {
            create_flag: pb::CreateFlagProto::Create as u32 | pb::CreateFlagProto::Overwrite as u32,
            ..create_request(&self.path("s/more"), WRITER)
        };
        let _: pb::CreateResponseProto = r.send("create", over).await;
        assert!(self.client.complete(&self.path("s/more"), WRITER, None).await);
        let rename = pb::RenameSnapshotRequestProto {
            snapshot_root: root.clone(),
            snapshot_old_name: "b".to_string(),
            snapshot_new_name: "c".to_string(),
        };
        let _: pb::RenameSnapshotResponseProto = r.send("renameSnapshot", rename).await;
        let delete = pb::DeleteSnapshotRequestProto {
            snapshot_root: root,
            snapshot_name: "dropped".to_string(),
        };
        let _: pb::DeleteSnapshotResponseProto = r.send("deleteSnapshot", delete).await;
    }

    async fn snapshot(&self, r: &mut Recorder, name: &str) {
        let create = pb::CreateSnapshotRequestProto {
            snapshot_root: self.path("s"),
            snapshot_name: Some(name.to_string()),
        };
        let _: pb::CreateSnapshotResponseProto = r.send("createSnapshot", create).await;
    }

    /// Quotas, lists, attributes, owners, times and storage policies.
    async fn attributes(&self, r: &mut Recorder) {
        for (name, of) in [("limited", None), ("limited-ssd", Some(pb::StorageTypeProto::Ssd))] {
            self.client.mkdirs(&self.path(name)).await;
            let quota = pb::SetQuotaRequestProto {
                path: self.path(name),
                namespace_quota: if of.is_some() { i64::MAX as u64 } else { 10 },
                storagespace_quota: 1 << 30,
                storage_type: of.map(|of| of as i32),
            };
            let _: pb::SetQuotaResponseProto = self.call("setQuota", quota).await;
        }
        self.file("limited/f", &[1000], None).await;

        self.client.mkdirs(&self.path("listed")).await;
        use pb::AclEntryProtoAclEntryScopeProto::{Access, Default as Inherited};
        use pb::AclEntryProtoAclEntryTypeProto::{Group, Mask, Other, User};
        let entry = |scope: pb::AclEntryProtoAclEntryScopeProto,
                     of: pb::AclEntryProtoAclEntryTypeProto,
                     permissions: i32,
                     name: Option<&str>| pb::AclEntryProto {
            r#type: of as i32,
            scope: scope as i32,
            permissions,
            name: name.map(str::to_string),
        };
        let acl_spec = vec![
            entry(Access, User, 7, None),
            entry(Access, User, 5, Some("alice")),
            entry(Access, Group, 4, None),
            entry(Access, Mask, 5, None),
            entry(Access, Other, 0, None),
            entry(Inherited, Group, 6, Some("staff")),
        ];
        let set = pb::SetAclRequestProto { src: self.path("listed"), acl_spec };
        let _: pb::SetAclResponseProto = self.call("setAcl", set).await;
        self.file("listed/heir", &[4], None).await;

        for (name, namespace, value) in [
            ("note", pb::XAttrProtoXAttrNamespaceProto::User, vec![1, 2, 3]),
            ("mark", pb::XAttrProtoXAttrNamespaceProto::Trusted, Vec::new()),
        ] {
            let attribute = pb::XAttrProto {
                namespace: namespace as i32,
                name: name.to_string(),
                value: Some(value),
            };
            let set = pb::SetXAttrRequestProto {
                src: self.path("two-blocks"),
                x_attr: Some(attribute),
                flag: Some(pb::XAttrSetFlagProto::XattrCreate as u32),
            };
            let _: pb::SetXAttrResponseProto = r.send("setXAttr", set).await;
        }
        let owner = pb::SetOwnerRequestProto {
            src: self.path("two-blocks"),
            username: Some("alice".to_string()),
            groupname: Some("staff".to_string()),
        };
        let _: pb::SetOwnerResponseProto = self.call("setOwner", owner).await;
        let times = pb::SetTimesRequestProto {
            src: self.path("two-blocks"),
            mtime: 1_000_000_000_001,
            atime: 1_000_000_000_002,
        };
        let _: pb::SetTimesResponseProto = self.call("setTimes", times).await;
        for (name, policy) in [("cold", "COLD"), ("cold/fast", "ALL_SSD")] {
            self.client.mkdirs(&self.path(name)).await;
            let set = pb::SetStoragePolicyRequestProto {
                src: self.path(name),
                policy_name: policy.to_string(),
            };
            let _: pb::SetStoragePolicyResponseProto = self.call("setStoragePolicy", set).await;
        }
        let satisfy = pb::SatisfyStoragePolicyRequestProto { src: self.path("cold") };
        let _: pb::SatisfyStoragePolicyResponseProto =
            r.send("satisfyStoragePolicy", satisfy).await;
    }

    /// A pool with a directive.
    async fn cached(&self, r: &mut Recorder) {
        let pool = format!("pool-{}", self.top.trim_start_matches('/'));
        let info = pb::CachePoolInfoProto {
            pool_name: Some(pool.clone()),
            group_name: Some("staff".to_string()),
            mode: Some(0o750),
            limit: Some(1 << 30),
            ..Default::default()
        };
        let _: pb::AddCachePoolResponseProto =
            r.send("addCachePool", pb::AddCachePoolRequestProto { info }).await;
        let info = pb::CacheDirectiveInfoProto {
            path: Some(self.path("two-blocks")),
            pool: Some(pool),
            replication: Some(2),
            ..Default::default()
        };
        let add = pb::AddCacheDirectiveRequestProto { info, cache_flags: None };
        let _: pb::AddCacheDirectiveResponseProto = r.send("addCacheDirective", add).await;
    }
}
