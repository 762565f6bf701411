//! `HAServiceProtocol`: a NameNode that stands alone changes for nobody; of a quorum each says whether it leads, and who
//! leads can be changed.
//!
//! Source: Hadoop 3.5.0 `NameNode#monitorHealth`, `NameNode#getServiceStatus`,
//! `NameNode#transitionToActive`.

use cairn_net::rpc_server::Call;
use cairn_wire::proto::common::{
    GetServiceStatusResponseProto, HAServiceStateProto, MonitorHealthResponseProto,
    TransitionToActiveResponseProto,
};

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What every call but `monitorHealth` gets without HA.
const SERVICE_FAILED: &str = "org.apache.hadoop.ha.ServiceFailedException";

/// Whether a member could lead, or why not.
pub(crate) type Ready = Result<(), String>;

/// Handles a call of this protocol to a NameNode that stands alone.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    let refusal = failed("HA for namenode is not enabled");
    match call.method.as_str() {
        "monitorHealth" => {
            node.check_superuser(call).await?;
            healthy()
        }
        "getServiceStatus" => Err(refusal),
        "transitionToActive" | "transitionToStandby" | "transitionToObserver" => {
            node.check_superuser(call).await?;
            Err(refusal)
        }
        _ => Err(call.unknown_method().into()),
    }
}

/// What a change of state fails with.
pub(crate) fn failed(why: &str) -> Refusal {
    Refusal::new(SERVICE_FAILED, why)
}

/// The answer to `monitorHealth`.
pub(crate) fn healthy() -> Answer {
    answer(&MonitorHealthResponseProto {})
}

/// The answer to a change of state: all are empty.
pub(crate) fn changed() -> Answer {
    answer(&TransitionToActiveResponseProto {})
}

/// The answer to `getServiceStatus` of a member of a quorum. Who follows is a standby: only from those does Hadoop's
/// `haadmin` fail over.
pub(crate) fn status(leads: bool, ready: &Ready) -> Answer {
    let state = if leads { HAServiceStateProto::Active } else { HAServiceStateProto::Standby };
    answer(&GetServiceStatusResponseProto {
        state: state as i32,
        ready_to_become_active: Some(ready.is_ok()),
        not_ready_reason: ready.clone().err(),
    })
}
