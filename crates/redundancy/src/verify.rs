//! Whether the cluster is wide enough for erasure coding policies (`hdfs ec -verifyClusterSetup`).

use cairn_stripe::Policy;

/// The answer to the question, in Hadoop's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyVerdict {
    /// Whether it is wide enough.
    pub supported: bool,
    /// What the administrator reads; tools compare it.
    pub message: String,
}

/// Whether `node_count` DataNodes on `rack_count` racks can hold groups of all `policies` such that the
/// loss of one rack loses no more units than the policy survives.
///
/// Source: Hadoop 3.5.0 `ECTopologyVerifier#getECTopologyVerifierResult`.
pub fn verify_policies<'a>(
    rack_count: usize,
    node_count: usize,
    policies: impl IntoIterator<Item = &'a Policy>,
) -> TopologyVerdict {
    let (mut nodes_needed, mut racks_needed, mut names) = (0, 0, Vec::new());
    for policy in policies {
        let units = policy.schema.units();
        nodes_needed = nodes_needed.max(units);
        racks_needed = racks_needed.max(units.div_ceil(policy.schema.parity_units().max(1)));
        names.push(policy.name.as_str());
    }
    if names.is_empty() {
        let message = "No erasure coding policy is given.".to_string();
        return TopologyVerdict { supported: true, message };
    }
    let names = names.join(", ");
    let (supported, message) = if node_count < nodes_needed {
        let lead = format!("{nodes_needed} DataNodes are required for the erasure coding policies");
        (false, format!("{lead}: {names}. The number of DataNodes is only {node_count}."))
    } else if rack_count < racks_needed {
        let lead = format!("{racks_needed} racks are required for the erasure coding policies");
        (false, format!("{lead}: {names}. The number of racks is only {rack_count}."))
    } else {
        (true, format!("The cluster setup can support EC policies: {names}"))
    };
    TopologyVerdict { supported, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(racks: usize, nodes: usize, names: &[&str]) -> (bool, String) {
        let all = Policy::built_in();
        let chosen: Vec<&Policy> =
            names.iter().map(|n| all.iter().find(|p| p.name == *n).unwrap()).collect();
        let got = verify_policies(racks, nodes, chosen);
        (got.supported, got.message)
    }

    #[test]
    fn the_widest_policy_decides() {
        let (ok, text) = verdict(4, 12, &["RS-6-3-1024k", "XOR-2-1-1024k"]);
        assert!(ok, "{text}");
        let want = "The cluster setup can support EC policies: RS-6-3-1024k, XOR-2-1-1024k";
        assert_eq!(text, want);
        let want = "9 DataNodes are required for the erasure coding policies: RS-6-3-1024k. \
                    The number of DataNodes is only 8.";
        assert_eq!(verdict(4, 8, &["RS-6-3-1024k"]), (false, want.to_string()));
        let want = "3 racks are required for the erasure coding policies: RS-6-3-1024k. \
                    The number of racks is only 2.";
        assert_eq!(verdict(2, 12, &["RS-6-3-1024k"]), (false, want.to_string()));
    }

    #[test]
    fn fourteen_units_with_four_spare_need_four_racks() {
        assert!(verdict(4, 14, &["RS-10-4-1024k"]).0);
        assert!(!verdict(3, 14, &["RS-10-4-1024k"]).0);
    }

    #[test]
    fn no_policy_needs_nothing() {
        assert_eq!(verdict(0, 0, &[]), (true, "No erasure coding policy is given.".to_string()));
    }
}
