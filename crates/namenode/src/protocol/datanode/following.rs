//! What a member of a quorum answers DataNodes while another one leads.
//!
//! It takes them in, keeps what they report until it leads, and gives no orders but to register and to report.

use cairn_net::rpc_server::Call;
use cairn_redundancy::{RedundancyError, Registration};
use cairn_stripe::StorageType;
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tracing::{info, warn};

use super::register::{self, ServiceState, claim, same_file_system};
use super::{commands, report};
use crate::block_tokens::BlockTokens;
use crate::kept_reports::KeptReports;
use crate::refusal::{Answer, Refusal, answer};
use crate::standing::Standing;
use crate::store::Identity;
use crate::topology::DEFAULT_RACK;

/// Answers a call of `DatanodeProtocol`.
pub(crate) fn handle(
    identity: &Identity,
    (kept, block_tokens): (&KeptReports, &BlockTokens),
    standing: &Standing,
    call: &Call,
) -> Answer {
    let following = Following { identity, kept, standing };
    match call.method.as_str() {
        "versionRequest" => register::namespace_info(identity, ServiceState::Standby, call),
        "registerDatanode" => following.register_datanode(call, block_tokens),
        "sendHeartbeat" => following.send_heartbeat(call, block_tokens),
        "blockReport" => following.block_report(call),
        "blockReceivedAndDeleted" => following.block_received_and_deleted(call),
        // It comes again in some seconds.
        "cacheReport" => answer(&dn::CacheReportResponseProto { cmd: None }),
        "errorReport" => following.error_report(call),
        "reportBadBlocks" => following.report_bad_blocks(call),
        _ => Err(Refusal::standby(standing)),
    }
}

/// Answers a call of `DatanodeLifelineProtocol`.
pub(crate) fn handle_lifeline(
    identity: &Identity,
    kept: &KeptReports,
    standing: &Standing,
    call: &Call,
) -> Answer {
    match call.method.as_str() {
        "sendLifeline" => Following { identity, kept, standing }.send_lifeline(call),
        _ => Err(call.unknown_method().into()),
    }
}

/// A member that does not lead.
struct Following<'a> {
    identity: &'a Identity,
    kept: &'a KeptReports,
    standing: &'a Standing,
}

impl Following<'_> {
    /// What was heard, if it is still kept here: its own NameNode takes it else, as soon as that serves.
    fn if_kept<R>(&self, heard: Option<R>) -> Result<R, Refusal> {
        heard.ok_or_else(|| Refusal::standby(self.standing))
    }

    /// The rack is found when it leads. It gets the keys of this member's block tokens.
    fn register_datanode(&self, call: &Call, block_tokens: &BlockTokens) -> Answer {
        let request: dn::RegisterDatanodeRequestProto = call.decode()?;
        let mut registration = request.registration;
        register::verify_version(&registration)?;
        same_file_system(self.identity, &registration)?;
        let address = register::address(call, &registration.datanode_id)?;
        registration.datanode_id.ip_addr = address.ip.clone();
        let uuid = registration.datanode_id.datanode_uuid.clone();
        info!(%address, uuid, "a DataNode registers with a NameNode that does not lead");
        let (software_version, process) =
            (registration.software_version.clone(), registration.process_number);
        let rack = DEFAULT_RACK.to_string();
        let heard = self.kept.hear(|standby, now| {
            let asked = now;
            let known = Registration { uuid, address, rack, software_version, process, asked };
            standby.register(known, now);
        });
        self.if_kept(heard)?;
        registration.keys = block_tokens.for_new(&registration.datanode_id.datanode_uuid);
        answer(&dn::RegisterDatanodeResponseProto { registration })
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#createHaStatusHeartbeat`. DataNodes heed an order to register, and one to take keys,
    /// whoever gives it: `BPOfferService#processCommandFromStandby`.
    fn send_heartbeat(&self, call: &Call, block_tokens: &BlockTokens) -> Answer {
        let request: dn::HeartbeatRequestProto = call.decode()?;
        same_file_system(self.identity, &request.registration)?;
        let registration = request.registration.clone();
        let heartbeat = report::heartbeat(request);
        let heard =
            self.kept.hear(|standby, now| standby.heartbeat(&claim(&registration), heartbeat, now));
        let heard = self.if_kept(heard)?;
        // The only command of the cluster that there can be. One that is to register gets keys with that.
        let mut cmds: Vec<_> = heard.commands.iter().map(|_| commands::register()).collect();
        if cmds.is_empty() {
            let keys = block_tokens.due_for(&registration.datanode_id.datanode_uuid);
            cmds.extend(keys.map(commands::keys));
        }
        answer(&dn::HeartbeatResponseProto {
            cmds,
            ha_status: pb::NNHAStatusHeartbeatProto {
                state: pb::NNHAStatusHeartbeatProtoState::Standby as i32,
                txid: self.standing.claim(0),
            },
            full_block_report_lease_id: Some(heard.report_lease.unwrap_or(0)),
            term: self.standing.term(),
            ..Default::default()
        })
    }

    fn send_lifeline(&self, call: &Call) -> Answer {
        let request: dn::HeartbeatRequestProto = call.decode()?;
        same_file_system(self.identity, &request.registration)?;
        let registration = request.registration.clone();
        let heartbeat = report::heartbeat(request);
        let heard =
            self.kept.hear(|standby, now| standby.lifeline(&claim(&registration), heartbeat, now));
        self.if_kept(heard)?;
        answer(&LifelineResponseProto {})
    }

    fn block_report(&self, call: &Call) -> Answer {
        let request: dn::BlockReportRequestProto = call.decode()?;
        same_file_system(self.identity, &request.registration)?;
        let mut lists = Vec::with_capacity(request.reports.len());
        for part in &request.reports {
            let kind = StorageType::by_number(part.storage.storage_type.unwrap_or_default());
            lists.push((part.storage.storage_uuid.clone(), kind, report::replicas(part)?));
        }
        let context = request.context.unwrap_or_default();
        let is_last = context.cur_rpc.saturating_add(1) >= context.total_rpcs;
        let under = (context.lease_id(), is_last);
        let claim = claim(&request.registration);
        let taken = self.kept.hear(|standby, now| standby.full_report(&claim, under, lists, now));
        let cmd = match self.if_kept(taken)? {
            Ok(()) => None,
            Err(RedundancyError::UnregisteredNode { .. }) => Some(commands::register()),
            Err(error @ RedundancyError::InvalidReportLease { .. }) => {
                return Err(report::refused_report(&context, &error));
            }
            Err(error) => {
                warn!(uuid = claim.uuid, "a report is not taken: {error}");
                None
            }
        };
        answer(&dn::BlockReportResponseProto { cmd })
    }

    fn block_received_and_deleted(&self, call: &Call) -> Answer {
        let request: dn::BlockReceivedAndDeletedRequestProto = call.decode()?;
        same_file_system(self.identity, &request.registration)?;
        let registration = request.registration;
        let claim = claim(&registration);
        for part in request.blocks {
            let ((storage, kind), events) = report::events_of(part);
            let taken = self
                .kept
                .hear(|standby, _| standby.incremental_report(&claim, (&storage, kind), &events));
            match self.if_kept(taken)? {
                // One that is not known is told to register by its next heartbeat.
                Ok(()) | Err(RedundancyError::UnregisteredNode { .. }) => {}
                Err(error) => warn!(uuid = claim.uuid, "a report is not taken: {error}"),
            }
        }
        answer(&dn::BlockReceivedAndDeletedResponseProto {})
    }

    fn error_report(&self, call: &Call) -> Answer {
        let request: dn::ErrorReportRequestProto = call.decode()?;
        if request.error_code == report::FATAL_DISK_ERROR {
            same_file_system(self.identity, &request.registartion)?;
            let claim = claim(&request.registartion);
            let heard = self.kept.hear(|standby, _| standby.node_died(&claim));
            self.if_kept(heard)?;
        }
        answer(&dn::ErrorReportResponseProto {})
    }

    fn report_bad_blocks(&self, call: &Call) -> Answer {
        let request: dn::ReportBadBlocksRequestProto = call.decode()?;
        for (claim, storage, block) in report::bad_blocks(&request) {
            let heard = self.kept.hear(|standby, _| standby.bad(&claim, storage, block));
            self.if_kept(heard)?;
        }
        answer(&dn::ReportBadBlocksResponseProto {})
    }
}
