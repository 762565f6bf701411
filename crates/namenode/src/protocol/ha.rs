//! `HAServiceProtocol`: a NameNode that stands alone changes for nobody.
//!
//! Source: Hadoop 3.5.0 `NameNode#monitorHealth`, `NameNode#getServiceStatus`,
//! `NameNode#transitionToActive`.

use cairn_net::rpc_server::Call;
use cairn_wire::proto::common::MonitorHealthResponseProto;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// What every call but `monitorHealth` gets without HA.
const SERVICE_FAILED: &str = "org.apache.hadoop.ha.ServiceFailedException";

/// Handles a call of this protocol.
pub async fn handle(node: &NameNode, call: &Call) -> Answer {
    let refusal = Refusal::new(SERVICE_FAILED, "HA for namenode is not enabled");
    match call.method.as_str() {
        "monitorHealth" => {
            node.check_superuser(call).await?;
            answer(&MonitorHealthResponseProto {})
        }
        "getServiceStatus" => Err(refusal),
        "transitionToActive" | "transitionToStandby" | "transitionToObserver" => {
            node.check_superuser(call).await?;
            Err(refusal)
        }
        _ => Err(call.unknown_method().into()),
    }
}
