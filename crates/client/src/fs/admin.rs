//! Erasure coding policies, DataNodes, safe mode: what an administrator asks.

use super::FileSystem;
use crate::error::Result;
use crate::protocol::convert;
use crate::types::*;
use cairn_stripe::Policy;
use cairn_wire::proto::hdfs::*;

impl FileSystem {
    /// All policies, with their states.
    pub async fn policies(&self) -> Result<Vec<PolicyInfo>> {
        let request = GetErasureCodingPoliciesRequestProto {};
        let response: GetErasureCodingPoliciesResponseProto =
            self.session.namenode.call("getErasureCodingPolicies", &request).await?;
        response.ec_policies.into_iter().map(convert::policy).collect()
    }

    /// The codecs and the coders that can compute each.
    pub async fn codecs(&self) -> Result<Vec<(String, String)>> {
        let request = GetErasureCodingCodecsRequestProto {};
        let response: GetErasureCodingCodecsResponseProto =
            self.session.namenode.call("getErasureCodingCodecs", &request).await?;
        Ok(response.codec.into_iter().map(|codec| (codec.codec, codec.coders)).collect())
    }

    /// The policy of a file, or that a directory gives its new files; `None` for replication.
    pub async fn policy(&self, path: &str) -> Result<Option<Policy>> {
        let request = GetErasureCodingPolicyRequestProto { src: path.to_string() };
        let response: GetErasureCodingPolicyResponseProto =
            self.session.namenode.call("getErasureCodingPolicy", &request).await?;
        convert::path_policy(response.ec_policy)
    }

    /// Sets the policy of a directory by name; the NameNode's default policy when `None`.
    pub async fn set_policy(&self, path: &str, name: Option<&str>) -> Result<()> {
        let request = SetErasureCodingPolicyRequestProto {
            src: path.to_string(),
            ec_policy_name: name.map(str::to_string),
        };
        let _: SetErasureCodingPolicyResponseProto =
            self.session.namenode.call("setErasureCodingPolicy", &request).await?;
        Ok(())
    }

    /// Takes the policy off a directory.
    pub async fn unset_policy(&self, path: &str) -> Result<()> {
        let request = UnsetErasureCodingPolicyRequestProto { src: path.to_string() };
        let _: UnsetErasureCodingPolicyResponseProto =
            self.session.namenode.call("unsetErasureCodingPolicy", &request).await?;
        Ok(())
    }

    /// Defines policies. Each has its own answer.
    pub async fn add_policies(&self, policies: &[Policy]) -> Result<Vec<AddPolicyResult>> {
        let ec_policies = policies.iter().map(convert::policy_proto).collect();
        let request = AddErasureCodingPoliciesRequestProto { ec_policies };
        let response: AddErasureCodingPoliciesResponseProto =
            self.session.namenode.call("addErasureCodingPolicies", &request).await?;
        let result = |response: AddErasureCodingPolicyResponseProto| AddPolicyResult {
            name: response.policy.name.unwrap_or_default(),
            id: u8::try_from(response.policy.id).ok().filter(|_| response.succeed),
            error: response.error_msg.filter(|_| !response.succeed),
        };
        Ok(response.responses.into_iter().map(result).collect())
    }

    /// Removes a user-defined policy.
    pub async fn remove_policy(&self, name: &str) -> Result<()> {
        let request = RemoveErasureCodingPolicyRequestProto { ec_policy_name: name.to_string() };
        let _: RemoveErasureCodingPolicyResponseProto =
            self.session.namenode.call("removeErasureCodingPolicy", &request).await?;
        Ok(())
    }

    /// Lets directories have a policy.
    pub async fn enable_policy(&self, name: &str) -> Result<()> {
        let request = EnableErasureCodingPolicyRequestProto { ec_policy_name: name.to_string() };
        let _: EnableErasureCodingPolicyResponseProto =
            self.session.namenode.call("enableErasureCodingPolicy", &request).await?;
        Ok(())
    }

    /// Lets no more directories have a policy.
    pub async fn disable_policy(&self, name: &str) -> Result<()> {
        let request = DisableErasureCodingPolicyRequestProto { ec_policy_name: name.to_string() };
        let _: DisableErasureCodingPolicyResponseProto =
            self.session.namenode.call("disableErasureCodingPolicy", &request).await?;
        Ok(())
    }

    /// Whether the cluster has the nodes and racks for these policies; for all enabled ones when
    /// none is named.
    pub async fn check_topology(&self, policies: &[String]) -> Result<TopologyCheck> {
        let request = GetECTopologyResultForPoliciesRequestProto { policies: policies.to_vec() };
        let response: GetECTopologyResultForPoliciesResponseProto =
            self.session.namenode.call("getECTopologyResultForPolicies", &request).await?;
        let result = response.response;
        Ok(TopologyCheck { message: result.result_message, supported: result.is_supported })
    }

    /// What the NameNode knows of the DataNodes.
    pub async fn datanodes(&self, filter: DataNodeFilter) -> Result<Vec<DataNodeInfo>> {
        use DatanodeReportTypeProto as Type;
        let kind = match filter {
            DataNodeFilter::All => Type::All,
            DataNodeFilter::Live => Type::Live,
            DataNodeFilter::Dead => Type::Dead,
            DataNodeFilter::Decommissioning => Type::Decommissioning,
            DataNodeFilter::EnteringMaintenance => Type::EnteringMaintenance,
            DataNodeFilter::InMaintenance => Type::InMaintenance,
        };
        let request = GetDatanodeReportRequestProto { r#type: kind as i32 };
        let response: GetDatanodeReportResponseProto =
            self.session.namenode.call("getDatanodeReport", &request).await?;
        Ok(convert::datanode_report(response))
    }

    /// Has the NameNode read its lists of hosts again.
    pub async fn refresh_nodes(&self) -> Result<()> {
        let request = RefreshNodesRequestProto {};
        let _: RefreshNodesResponseProto =
            self.session.namenode.call("refreshNodes", &request).await?;
        Ok(())
    }

    /// Says what is to become of the DataNodes that `names` mean: `host`, or `host:port` of data transfer. The NameNode
    /// keeps it over restarts. Returns the `ip:port` of those that are meant. Hadoop's NameNode does not know the call.
    pub async fn set_datanode_state(
        &self,
        names: &[String],
        state: WantedState,
    ) -> Result<Vec<String>> {
        use DatanodeInfoProtoAdminState as State;
        let (admin_state, until_ms) = match state {
            WantedState::Normal => (State::Normal, None),
            WantedState::Decommissioned => (State::Decommissioned, None),
            WantedState::InMaintenance { until_ms } => (State::InMaintenance, until_ms),
        };
        let request = SetDatanodeStateRequestProto {
            datanodes: names.to_vec(),
            admin_state: admin_state as i32,
            until_ms,
        };
        let response: SetDatanodeStateResponseProto =
            self.session.namenode.call("setDatanodeState", &request).await?;
        Ok(response.addresses)
    }

    /// The moment that the namespace was restored to from a backup, if nobody has accepted that yet; `accept` does, and
    /// has replicas deleted again that it does not know. Hadoop's NameNode does not know the call.
    pub async fn restored_namespace(&self, accept: bool) -> Result<Option<RestoredNamespace>> {
        let request = AcceptRestoredRequestProto { accept: Some(accept) };
        let response: AcceptRestoredResponseProto =
            self.session.namenode.call("acceptRestored", &request).await?;
        Ok((response.restored == Some(true)).then(|| RestoredNamespace {
            sequence: response.sequence.unwrap_or(0),
            entry_ms: response.entry_ms.unwrap_or(0),
            restored_ms: response.restored_ms.unwrap_or(0),
            unread_parities: response.unread_parities(),
            found_groups: response.found_groups(),
            adopted_groups: response.adopted_groups(),
            unread_containers: response.unread_containers(),
            adopted_blocks: response.adopted_blocks(),
            refused_groups: response.refused_groups,
        }))
    }

    /// Enters, leaves or asks for safe mode. Returns whether it is on.
    pub async fn safe_mode(&self, action: SafeModeAction) -> Result<bool> {
        use SafeModeActionProto as Action;
        let action = match action {
            SafeModeAction::Leave => Action::SafemodeLeave,
            SafeModeAction::Enter => Action::SafemodeEnter,
            SafeModeAction::Get => Action::SafemodeGet,
            SafeModeAction::ForceExit => Action::SafemodeForceExit,
        };
        // A standby would obey, too.
        let checked = Some(self.session.namenode.has_others());
        let request = SetSafeModeRequestProto { action: action as i32, checked };
        let response: SetSafeModeResponseProto =
            self.session.namenode.call("setSafeMode", &request).await?;
        Ok(response.result)
    }

    /// Totals over the file system.
    pub async fn stats(&self) -> Result<FsStats> {
        let response =
            self.session.namenode.call("getFsStats", &GetFsStatusRequestProto {}).await?;
        Ok(convert::stats(response))
    }

    /// What the NameNode recommends for new files.
    pub async fn server_defaults(&self) -> Result<ServerDefaults> {
        self.session.server_defaults().await
    }
}
