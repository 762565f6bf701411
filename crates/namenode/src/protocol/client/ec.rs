//! Erasure coding policies: on directories, and their administration (`hdfs ec`).

use cairn_namespace::Outcome;
use cairn_namespace::ops::ec::{
    AddEcPolicies, DisableEcPolicy, EnableEcPolicy, PolicySpec, RemoveEcPolicy, SetEcPolicy,
    UnsetEcPolicy,
};
use cairn_namespace::query;
use cairn_net::rpc_server::Call;
use cairn_redundancy::verify_policies;
use cairn_stripe::{CodecName, Policy, PolicyId, PolicyState};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::super::convert;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// Source: Hadoop 3.5.0 `FSNamesystem#setErasureCodingPolicy`.
pub async fn set_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetErasureCodingPolicyRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot set erasure coding policy on {}", request.src))?;
    let policy = request.ec_policy_name;
    node.submit(call, SetEcPolicy { path: request.src, policy }).await?;
    answer(&pb::SetErasureCodingPolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#unsetErasureCodingPolicy`.
pub async fn unset_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::UnsetErasureCodingPolicyRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot unset erasure coding policy on {}", request.src))?;
    node.submit(call, UnsetEcPolicy { path: request.src }).await?;
    answer(&pb::UnsetErasureCodingPolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#getErasureCodingPolicy`.
pub async fn get_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetErasureCodingPolicyRequestProto = call.decode()?;
    let path = &request.src;
    if path == "/.reserved" {
        return answer(&pb::GetErasureCodingPolicyResponseProto { ec_policy: None });
    }
    let found = node.query(call, |store, caller| query::get_ec_policy(store, caller, path)).await?;
    let found = found.filter(|policy| policy.id != PolicyId::REPLICATION);
    let ec_policy = found.map(|policy| convert::policy(&policy, None));
    answer(&pb::GetErasureCodingPolicyResponseProto { ec_policy })
}

/// All policies, by name.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#getPolicies`.
pub async fn get_policies(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetErasureCodingPoliciesRequestProto = call.decode()?;
    let mut infos = node.ns.read(|store| query::policies(store))?;
    infos.sort_by(|a, b| a.policy.name.cmp(&b.policy.name));
    let ec_policies =
        infos.iter().map(|info| convert::policy(&info.policy, Some(info.state))).collect();
    answer(&pb::GetErasureCodingPoliciesResponseProto { ec_policies })
}

/// Codecs with the coders that this binary has for each.
///
/// Source: Hadoop 3.5.0 `CodecRegistry#getCodec2CoderCompactMap`.
pub async fn get_codecs(_node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetErasureCodingCodecsRequestProto = call.decode()?;
    let codec = CodecName::ALL.into_iter().map(|codec| pb::CodecProto {
        codec: codec.as_str().to_string(),
        coders: format!("{codec}_cairn"),
    });
    answer(&pb::GetErasureCodingCodecsResponseProto { codec: codec.collect() })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#addErasureCodingPolicies`.
pub async fn add_policies(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AddErasureCodingPoliciesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.check_change(call, || "Cannot add erasure coding policy".to_string())?;
    let spec = |proto: &pb::ErasureCodingPolicyProto| {
        let schema = proto.schema.clone().unwrap_or_default();
        let (k, m) = (schema.data_units, schema.parity_units);
        PolicySpec { codec: schema.codec_name, k, m, cell_len: proto.cell_size() }
    };
    let policies = request.ec_policies.iter().map(spec).collect();
    let outcome = node.submit(call, AddEcPolicies { policies }).await?;
    let Outcome::PoliciesAdded(added) = outcome else { return Err(unexpected(&outcome)) };
    let responses = added.into_iter().zip(request.ec_policies).map(|(added, asked)| {
        let policy = added.policy.map_or(asked, |policy| convert::policy(&policy, None));
        let succeed = added.error.is_none();
        pb::AddErasureCodingPolicyResponseProto { policy, succeed, error_msg: added.error }
    });
    answer(&pb::AddErasureCodingPoliciesResponseProto { responses: responses.collect() })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeErasureCodingPolicy`.
pub async fn remove_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveErasureCodingPolicyRequestProto = call.decode()?;
    let name = request.ec_policy_name;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot remove erasure coding policy {name}"))?;
    node.submit(call, RemoveEcPolicy { name }).await?;
    answer(&pb::RemoveErasureCodingPolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#enableErasureCodingPolicy`.
pub async fn enable_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::EnableErasureCodingPolicyRequestProto = call.decode()?;
    let name = request.ec_policy_name;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot enable erasure coding policy {name}"))?;
    node.submit(call, EnableEcPolicy { name }).await?;
    answer(&pb::EnableErasureCodingPolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#disableErasureCodingPolicy`.
pub async fn disable_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::DisableErasureCodingPolicyRequestProto = call.decode()?;
    let name = request.ec_policy_name;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot disable erasure coding policy {name}"))?;
    node.submit(call, DisableEcPolicy { name }).await?;
    answer(&pb::DisableErasureCodingPolicyResponseProto {})
}

/// Whether the cluster is wide enough for policies; for all enabled ones if none is named.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getECTopologyResultForPolicies`.
pub async fn verify_topology(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetECTopologyResultForPoliciesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let infos = node.ns.read(|store| query::policies(store))?;
    let chosen: Vec<&Policy> = if request.policies.is_empty() {
        let enabled = infos.iter().filter(|info| info.state == PolicyState::Enabled);
        let mut enabled: Vec<&Policy> = enabled.map(|info| &info.policy).collect();
        enabled.sort_by(|a, b| a.name.cmp(&b.name));
        enabled
    } else {
        let find = |name: &String| {
            let found = infos.iter().find(|info| info.policy.name == *name);
            found.map(|info| &info.policy).ok_or_else(|| {
                let message = format!("The given erasure coding policy {name} does not exist.");
                Refusal::new(class::HADOOP_ILLEGAL_ARGUMENT, message)
            })
        };
        request.policies.iter().map(find).collect::<Result<_, _>>()?
    };
    let (racks, nodes) = node.see_cluster(|cluster| {
        (cluster.racks().values().filter(|live| **live > 0).count(), cluster.live_count())
    });
    let verdict = verify_policies(racks, nodes, chosen);
    let response = pb::ECTopologyVerifierResultProto {
        result_message: verdict.message,
        is_supported: verdict.supported,
    };
    answer(&pb::GetECTopologyResultForPoliciesResponseProto { response })
}
