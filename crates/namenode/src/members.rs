//! What is told of the members of a quorum: to operators, on pages and in figures.

use crate::config::quorum::MemberConfig;
use crate::quorum::Status;
use cairn_net::monitoring::Metrics;
use cairn_quorum::MemberId;
use std::collections::BTreeMap;

/// What a member is in its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The configuration names it, and it has not joined yet.
    Absent,
    /// It follows, and does not vote.
    Learner,
    /// It votes.
    Voter,
    /// It was shut out.
    Out,
}

impl Part {
    /// As it is told.
    pub fn word(self) -> &'static str {
        match self {
            Part::Absent => "absent",
            Part::Learner => "learner",
            Part::Voter => "voter",
            Part::Out => "out",
        }
    }
}

/// What a member knows of one, itself or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub name: String,
    pub id: Option<MemberId>,
    pub part: Part,
    pub leads: bool,
    /// `host:port` of its RPC, and where the others speak to it; none if the configuration does not name it.
    pub place: Option<MemberConfig>,
    /// The last entry that it is known to have: known of itself, and to who leads.
    pub last: Option<u64>,
    /// It was heard of lately.
    pub is_there: bool,
    /// It would serve well if it led, as it says.
    pub is_ready: bool,
}

impl Row {
    /// Entries that are agreed on, by what `status` is of, and that it is not known to have.
    pub fn lag(&self, status: &Status) -> Option<u64> {
        self.last.map(|last| status.last.saturating_sub(last))
    }
}

/// What the member that is called `own` knows of all, as its configuration and the quorum name them.
pub(crate) fn rows(
    status: &Status,
    own: &str,
    configured: &BTreeMap<String, MemberConfig>,
) -> Vec<Row> {
    let row = |name: &str, id: Option<MemberId>, part| {
        let (is_own, known) = (name == own, id.and_then(|id| status.progress.get(&id)));
        let told = status.present.get(name).copied();
        Row {
            id,
            part,
            leads: status.leader.as_deref() == Some(name) && part != Part::Out,
            place: configured.get(name).cloned(),
            last: if is_own { Some(status.last) } else { known.map(|known| known.matched) },
            is_there: is_own || told.is_some(),
            is_ready: if is_own { status.is_ready } else { told == Some(true) },
            name: name.to_string(),
        }
    };
    let joined = status.members.0.iter().map(|(id, member)| {
        let part = match member {
            member if member.is_out => Part::Out,
            member if member.is_voter => Part::Voter,
            _ => Part::Learner,
        };
        row(&member.name, Some(*id), part)
    });
    let is_in = |name: &String| status.members.0.values().any(|member| member.name == *name);
    let absent = configured.keys().filter(|name| !is_in(name));
    let mut rows: Vec<Row> =
        joined.chain(absent.map(|name| row(name, None, Part::Absent))).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// What a member knows of its quorum, for Prometheus.
pub(crate) fn figures(status: &Status, rows: &[Row], out: &mut Metrics) {
    out.gauge("quorum_term", "Term of the leader of the quorum", status.term);
    let help =
        "Times that another member has led, or one in a new term, since this one was started";
    out.counter("quorum_leader_changes_total", help, &[], status.changes);
    let help = "1 for what each member is: leader, voter, learner, out, absent";
    for row in rows {
        let role = if row.leads { "leader" } else { row.part.word() };
        out.gauge_of("quorum_member_role", help, &[("member", &row.name), ("role", role)], 1);
    }
    let help = "1 for members that were heard of lately and would serve well if they led";
    for row in rows {
        let ready = u64::from(row.is_there && row.is_ready);
        out.gauge_of("quorum_member_ready", help, &[("member", &row.name)], ready);
    }
    let help = "Entries that are agreed on and that a member is not known to have";
    for row in rows {
        if let Some(lag) = row.lag(status) {
            out.gauge_of("quorum_member_lag_entries", help, &[("member", &row.name)], lag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_quorum::{Change, Membership, Progress};

    #[test]
    fn everybody_is_told_of_who_is_in_was_or_could_be() {
        let (a, b, c) = (MemberId(1), MemberId(2), MemberId(3));
        let mut members = Membership::founded(a, "a");
        for (id, name) in [(b, "b"), (c, "c")] {
            members.change(&Change::AddLearner { id, name: name.to_string() });
        }
        members.change(&Change::ShutOut { id: c });
        let progress = |id: MemberId, matched| {
            let member = members.0[&id].clone();
            (id, Progress { member, matched, is_active: true })
        };
        let status = Status {
            leader: Some("a".to_string()),
            last: 20,
            is_ready: true,
            progress: [progress(a, 22), progress(b, 15)].into(),
            present: [("b".to_string(), false), ("c".to_string(), true)].into(),
            members,
            ..Status::default()
        };
        let place = |name: &str| {
            let addr = format!("{name}:8020");
            (name.to_string(), MemberConfig { rpc: addr.clone(), quorum: addr })
        };
        let rows = rows(&status, "a", &["a", "b", "d"].map(place).into());
        let told = |row: &Row| (row.name.clone(), row.part, row.leads, row.lag(&status));
        let told: Vec<_> = rows.iter().map(told).collect();
        let wanted = [
            ("a", Part::Voter, true, Some(0)),
            ("b", Part::Learner, false, Some(5)),
            ("c", Part::Out, false, None),
            ("d", Part::Absent, false, None),
        ];
        let wanted = wanted.map(|(name, part, leads, lag)| (name.to_string(), part, leads, lag));
        assert_eq!(told, wanted);
        let ready: Vec<_> = rows.iter().map(|row| (row.is_there, row.is_ready)).collect();
        assert_eq!(ready, [(true, true), (true, false), (true, true), (false, false)]);
        assert!(rows[2].place.is_none() && rows[1].place.is_some());
    }
}
