//! Storage policies as clients get them.

use cairn_redundancy::{StoragePolicy, StorageType};
use cairn_wire::proto::hdfs as pb;

/// A policy as `getStoragePolicies` and `getStoragePolicy` answer with it.
pub fn to_proto(policy: StoragePolicy) -> pb::BlockStoragePolicyProto {
    let types = |types: &[StorageType]| {
        let storage_types = types.iter().map(|kind| kind.number()).collect();
        pb::StorageTypesProto { storage_types }
    };
    let some_types = |list: &[StorageType]| (!list.is_empty()).then(|| types(list));
    pb::BlockStoragePolicyProto {
        policy_id: policy.id.into(),
        name: policy.name.to_string(),
        creation_policy: types(policy.creation),
        creation_fallback_policy: some_types(policy.creation_fallback),
        replication_fallback_policy: some_types(policy.replication_fallback),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_without_fallbacks_sends_none() {
        let cold = to_proto(StoragePolicy::by_id(2));
        assert_eq!(cold.creation_policy.storage_types, [pb::StorageTypeProto::Archive as i32]);
        assert_eq!(cold.creation_fallback_policy, None);
    }
}
