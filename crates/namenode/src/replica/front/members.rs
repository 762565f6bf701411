//! What operators ask of a member about all of them, and whom they shut out.

use super::{FIRST_PAUSE, Front, HANDOVER};
use crate::members::{Part, Row};
use crate::refusal::{Answer, Refusal, answer};
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;
use std::sync::Arc;
use tokio::time::Instant;

impl Front {
    /// Answers a call of this protocol.
    pub(super) async fn of_members(&self, call: &Call) -> Answer {
        match call.method.as_str() {
            "getMembers" => self.get_members(),
            "changeMember" => self.change_member(call).await,
            _ => Err(call.unknown_method().into()),
        }
    }

    fn get_members(&self) -> Answer {
        let (status, rows) = self.members();
        let told = |row: Row| {
            let place = row.place.map(|place| (place.rpc, place.quorum));
            let (rpc_address, quorum_address) = place.unzip();
            pb::QuorumMemberProto {
                name: row.name,
                id: row.id.map(|id| id.0),
                part: row.part.word().to_string(),
                rpc_address,
                quorum_address,
                last: row.last,
                is_there: row.is_there,
                ready: row.is_ready,
            }
        };
        answer(&pb::GetMembersResponseProto {
            name: self.config.id.clone(),
            quorum: status.quorum,
            term: status.term,
            leads: status.leads,
            last: status.last,
            ready: status.is_ready,
            members: rows.into_iter().map(told).collect(),
            leader: status.leader,
            reads: Some(self.reads().answered()),
        })
    }

    async fn change_member(&self, call: &Call) -> Answer {
        self.check_superuser(call).await?;
        let pb::ChangeMemberRequestProto { name, out } = call.decode()?;
        let refused = |why: &str| Refusal::io(format!("{name}: {why}"));
        let part = self.members().1.into_iter().find(|row| row.name == name).map(|row| row.part);
        match (out, part) {
            (_, None) => return Err(refused("no member is called so")),
            (false, Some(Part::Voter | Part::Learner)) => {
                return Err(refused("it is a member already"));
            }
            (false, Some(Part::Absent)) => {
                return Err(refused("it joins by itself when it is started"));
            }
            (false, Some(Part::Out)) if !self.config.members.contains_key(&name) => {
                let own = &self.config.id;
                let why = format!("the configuration of {own} does not say where it is");
                return Err(refused(&why));
            }
            (true, _) | (false, Some(Part::Out)) => {}
        }
        let (member, whom) = (Arc::clone(&self.member), name.clone());
        let changed = tokio::task::spawn_blocking(move || member.change(&whom, out)).await;
        match changed {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(why))) => return Err(refused(&why.to_string())),
            Ok(None) | Err(_) => return Err(refused("the member that was asked ends")),
        }
        let until = Instant::now() + HANDOVER;
        let is_out = |row: &Row| row.name == name && row.part == Part::Out;
        while self.members().1.iter().any(is_out) != out {
            if Instant::now() >= until {
                return Err(refused("whether that is agreed on is not known yet"));
            }
            tokio::time::sleep(FIRST_PAUSE).await;
        }
        answer(&pb::ChangeMemberResponseProto {})
    }
}
