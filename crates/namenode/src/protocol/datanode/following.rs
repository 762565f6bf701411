//! What a member of a quorum answers DataNodes while another one leads.
//!
//! It takes them in and gives no orders. What they report is let go: when it leads, it has them register and report in
//! full.

use cairn_net::rpc_server::Call;
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use super::register::{self, ServiceState};
use crate::refusal::{Answer, Refusal, answer};
use crate::standing::Standing;
use crate::store::Identity;

/// Answers a call of `DatanodeProtocol`.
pub(crate) fn handle(identity: &Identity, standing: &Standing, call: &Call) -> Answer {
    match call.method.as_str() {
        "versionRequest" => register::namespace_info(identity, ServiceState::Standby, call),
        "registerDatanode" => register_datanode(identity, call),
        "sendHeartbeat" => send_heartbeat(identity, standing, call),
        "blockReport" => {
            let request: dn::BlockReportRequestProto = call.decode()?;
            register::same_file_system(identity, &request.registration)?;
            answer(&dn::BlockReportResponseProto { cmd: None })
        }
        "blockReceivedAndDeleted" => {
            let request: dn::BlockReceivedAndDeletedRequestProto = call.decode()?;
            register::same_file_system(identity, &request.registration)?;
            answer(&dn::BlockReceivedAndDeletedResponseProto {})
        }
        "cacheReport" => answer(&dn::CacheReportResponseProto { cmd: None }),
        "errorReport" => answer(&dn::ErrorReportResponseProto {}),
        "reportBadBlocks" => answer(&dn::ReportBadBlocksResponseProto {}),
        _ => Err(Refusal::standby(standing)),
    }
}

/// Answers a call of `DatanodeLifelineProtocol`.
pub(crate) fn handle_lifeline(call: &Call) -> Answer {
    match call.method.as_str() {
        "sendLifeline" => answer(&LifelineResponseProto {}),
        _ => Err(call.unknown_method().into()),
    }
}

fn register_datanode(identity: &Identity, call: &Call) -> Answer {
    let request: dn::RegisterDatanodeRequestProto = call.decode()?;
    let mut registration = request.registration;
    register::verify_version(&registration)?;
    register::same_file_system(identity, &registration)?;
    registration.datanode_id.ip_addr = call.peer.ip().to_canonical().to_string();
    answer(&dn::RegisterDatanodeResponseProto { registration })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#createHaStatusHeartbeat`.
fn send_heartbeat(identity: &Identity, standing: &Standing, call: &Call) -> Answer {
    let request: dn::HeartbeatRequestProto = call.decode()?;
    register::same_file_system(identity, &request.registration)?;
    answer(&dn::HeartbeatResponseProto {
        ha_status: pb::NNHAStatusHeartbeatProto {
            state: pb::NNHAStatusHeartbeatProtoState::Standby as i32,
            txid: standing.claim(0),
        },
        // Nobody is to report in full.
        full_block_report_lease_id: Some(0),
        term: standing.term(),
        ..Default::default()
    })
}
