//! Which calls a member of a quorum answers itself while it follows.

use super::{
    CLIENT, DATANODE, HA, LIFELINE, NAMENODE, REFRESH_ANY, REFRESH_POLICY, REFRESH_QUEUE,
    REFRESH_USERS, USER_MAPPINGS,
};
use cairn_net::rpc_server::Call;
use cairn_operate::reconfiguration;
use cairn_wire::proto::hdfs as pb;
use cairn_wire::reads::{OF_NAMES, OF_PLACES};

/// Who answers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The leader, to which it is handed on.
    Leader,
    /// The member: DataNodes report to each.
    DataNodes,
    /// The member, which says what it is.
    State,
    /// The member that was asked, which has nothing of what is meant while it follows.
    Member,
}

/// Calls of `ClientProtocol` that mean one NameNode.
const OF_MEMBER: [&str; 4] = ["metaSave", "restoreFailedStorage", "rollEdits", "saveNamespace"];

/// Of every call, by its protocol and method.
pub(crate) fn answers(protocol: &str, method: &str) -> Answers {
    match protocol {
        DATANODE | LIFELINE => Answers::DataNodes,
        HA => Answers::State,
        reconfiguration::NAME | REFRESH_USERS | REFRESH_POLICY | REFRESH_QUEUE | REFRESH_ANY => {
            Answers::Member
        }
        CLIENT if method == "getHAServiceState" => Answers::State,
        CLIENT if OF_MEMBER.contains(&method) => Answers::Member,
        CLIENT | NAMENODE | USER_MAPPINGS => Answers::Leader,
        // Whoever leads refuses it.
        _ => Answers::Leader,
    }
}

/// What a call reads that a member can answer that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Names alone.
    Names,
    /// Where blocks are, too.
    Places,
}

/// What a call reads, if a member that follows can answer it.
pub(crate) fn reads(call: &Call) -> Option<Reads> {
    if call.protocol != CLIENT || call.version != 1 {
        return None;
    }
    let method = call.method.as_str();
    if OF_PLACES.contains(&method) {
        return Some(Reads::Places);
    }
    let wants_places = match method {
        "getListing" => call.decode::<pb::GetListingRequestProto>().ok()?.need_location,
        "getBatchedListing" => {
            call.decode::<pb::GetBatchedListingRequestProto>().ok()?.need_location
        }
        _ => return OF_NAMES.contains(&method).then_some(Reads::Names),
    };
    Some(if wants_places { Reads::Places } else { Reads::Names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SERVED;
    use cairn_wire::proto::hdfs::CLIENT_NAMENODE_PROTOCOL_METHODS;

    #[test]
    fn every_protocol_and_every_call_of_clients_has_who_answers() {
        for (protocol, _) in SERVED {
            let wanted = match *protocol {
                DATANODE | LIFELINE => Answers::DataNodes,
                HA => Answers::State,
                CLIENT | NAMENODE | USER_MAPPINGS => Answers::Leader,
                _ => Answers::Member,
            };
            assert_eq!(answers(protocol, "x"), wanted, "{protocol}");
        }
        let methods = CLIENT_NAMENODE_PROTOCOL_METHODS;
        let of = |who| {
            let is_it = |method: &&&str| answers(CLIENT, method) == who;
            methods.iter().filter(is_it).copied().collect::<Vec<_>>()
        };
        let mut of_member = of(Answers::Member);
        of_member.sort_unstable();
        assert_eq!(of_member, OF_MEMBER);
        assert_eq!(of(Answers::State), ["getHAServiceState"]);
        assert_eq!(of(Answers::Leader).len(), methods.len() - OF_MEMBER.len() - 1);
        // As the page for operators has it.
        let page = include_str!("../../../../docs/operations/high-availability.md");
        for method in OF_NAMES.iter().chain(&OF_PLACES) {
            assert!(methods.contains(method), "{method}");
        }
        for method in OF_MEMBER.iter().chain(&OF_NAMES).chain(&OF_PLACES) {
            assert!(page.contains(&format!("`{method}`")), "{method}");
        }
    }
}
