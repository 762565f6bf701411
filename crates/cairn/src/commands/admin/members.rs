//! The NameNodes of a quorum.

use super::operator::Operator;
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::{FileSystem, Members as Told, QuorumMember, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// `cairn admin members`.
#[derive(Debug, clap::Args)]
pub struct Members {
    #[command(subcommand)]
    change: Option<Change>,
}

/// What is changed.
#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Let a member that was removed join again
    Add(Name),
    /// Shut a member out, running or not; it does not join again before it is added
    Remove(Name),
}

/// A member.
#[derive(Debug, clap::Args)]
struct Name {
    /// What dfs.ha.namenodes calls it
    name: String,
}

impl Members {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let seen = Seen::ask(operator.fs).await?;
        let Some(change) = &self.change else {
            show(&seen, operator.json);
            return Ok(ExitCode::SUCCESS);
        };
        let leader = seen.0.iter().find(|(_, told)| told.leads).map(|(server, _)| server);
        let leader = leader.context("nobody leads: the members can't be changed now")?;
        match change {
            Change::Add(Name { name }) => {
                leader.change_member(name, false).await?;
                crate::say!("{name} may join again");
            }
            Change::Remove(Name { name }) => {
                leader.change_member(name, true).await?;
                crate::say!("{name} is no member any more");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What each says that answers.
pub struct Seen(Vec<(Server, Told)>);

impl Seen {
    /// Asks all that the configuration names.
    pub async fn ask(fs: &FileSystem) -> Result<Seen> {
        let config = fs.config();
        let addresses = match config.namenode_addresses.is_empty() {
            true => std::slice::from_ref(&config.namenode),
            false => &config.namenode_addresses[..],
        };
        let mut asked = tokio::task::JoinSet::new();
        for addr in addresses {
            let server = Server::new(config, addr);
            asked.spawn(async move { (server.members().await, server) });
        }
        let (mut told, mut failed) = (Vec::new(), None);
        for (answer, server) in asked.join_all().await {
            match answer {
                Ok(answer) => told.push((server, answer)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if told.is_empty() && error.is_unknown_protocol() => {
                bail!("the NameNode is of no quorum")
            }
            Some(error) if told.is_empty() => Err(error.into()),
            _ => Ok(Seen(told)),
        }
    }

    /// Who leads knows most, and then who has heard of the latest term.
    fn best(&self) -> Option<&Told> {
        self.0.iter().map(|(_, told)| told).max_by_key(|told| (told.leads, told.term))
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let own: BTreeMap<&str, &Told> =
            self.0.iter().map(|(_, told)| (told.name.as_str(), told)).collect();
        let of = |best| move |member| line(best, &own, member);
        self.best().map_or_else(Vec::new, |best| best.members.iter().map(of(best)).collect())
    }

    /// One line for all.
    pub fn summary(&self) -> String {
        let Some(best) = self.best() else { return String::new() };
        let leader = best.leader.as_deref().unwrap_or("nobody");
        let mut out = format!("quorum: term {}, {leader} leads", best.term);
        for line in self.lines().iter().filter(|line| line.role != "leader") {
            let state = match (line.is_there(), line.lag) {
                (false, _) => "silent".to_string(),
                (true, Some(lag)) => format!("{lag} entries behind"),
                (true, None) => line.role.to_string(),
            };
            out.push_str(&format!(", {} {state}", line.member.name));
        }
        out
    }

    /// One value for each.
    pub fn as_json(&self) -> Vec<Value> {
        let quorum = self.best().map_or(0, |best| best.quorum);
        self.lines().iter().map(|line| as_json(quorum, line)).collect()
    }
}

/// One line of each member.
struct Line<'a> {
    member: &'a QuorumMember,
    role: &'a str,
    term: Option<u64>,
    last: Option<u64>,
    lag: Option<u64>,
    is_ready: bool,
    reads: Option<u64>,
}

impl Line<'_> {
    /// It answers, or others have heard of it.
    fn is_there(&self) -> bool {
        self.member.is_there || self.term.is_some()
    }
}

fn show(seen: &Seen, json: bool) {
    if json {
        seen.as_json().iter().for_each(|line| crate::say!("{line}"));
        return;
    }
    let Some(best) = seen.best() else { return };
    let leader = best.leader.as_deref().unwrap_or("nobody");
    crate::say!("quorum {:016x}, term {}: {leader} leads", best.quorum, best.term);
    let heads = ["MEMBER", "ROLE", "TERM", "ENTRY", "LAG", "READY", "ADDRESS"];
    let mut rows = vec![heads.map(str::to_string).to_vec()];
    rows.extend(seen.lines().iter().map(as_row));
    output::print(format_args!("{}", output::table(&rows)));
}

fn line<'a>(best: &'a Told, own: &BTreeMap<&str, &'a Told>, member: &'a QuorumMember) -> Line<'a> {
    let says = own.get(member.name.as_str());
    let leads = best.leader.as_ref() == Some(&member.name) && member.part == "voter";
    let last = match best.leads {
        true => member.last,
        false => says.map(|says| says.last),
    };
    Line {
        role: match member.part.as_str() {
            _ if leads => "leader",
            "voter" => "follower",
            part => part,
        },
        term: says.map(|says| says.term),
        last,
        lag: last.map(|last| best.last.saturating_sub(last)),
        reads: says.map(|says| says.reads),
        is_ready: says.map_or(member.is_there && member.is_ready, |says| says.is_ready),
        member,
    }
}

fn as_row(line: &Line<'_>) -> Vec<String> {
    let figure = |figure: Option<u64>| figure.map_or("-".to_string(), |figure| figure.to_string());
    let ready = match (line.is_there(), line.is_ready) {
        (false, _) => "silent",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let address = line.member.rpc_address.clone().unwrap_or("-".to_string());
    let (name, role) = (line.member.name.clone(), line.role.to_string());
    vec![name, role, figure(line.term), figure(line.last), figure(line.lag), ready.into(), address]
}

fn as_json(quorum: u64, line: &Line<'_>) -> Value {
    let member = line.member;
    json!({
        "name": member.name,
        "id": member.id.map(|id| format!("{id:016x}")),
        "quorum": format!("{quorum:016x}"),
        "role": line.role,
        "votes": member.part == "voter",
        "term": line.term,
        "entry": line.last,
        "lag": line.lag,
        "answers": line.term.is_some(),
        "ready": line.is_ready,
        "reads": line.reads,
        "rpc_address": member.rpc_address,
        "quorum_address": member.quorum_address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, leads: bool, last: u64) -> Told {
        let member = |name: &str, last| QuorumMember {
            name: name.to_string(),
            id: Some(7),
            part: "voter".to_string(),
            rpc_address: None,
            quorum_address: None,
            last,
            is_there: name != "c",
            is_ready: true,
        };
        let known = |last: u64| if leads { Some(last) } else { None };
        let members = vec![member("a", known(9)), member("b", known(7)), member("c", known(2))];
        let leader = Some("a".to_string());
        let (name, quorum) = (name.to_string(), 5);
        let (is_ready, reads) = (false, 12);
        Told { name, quorum, term: 3, leader, leads, last, is_ready, reads, members }
    }

    #[test]
    fn who_leads_tells_how_far_all_are_and_each_how_it_is() {
        let server = || Server::new(&cairn_client::ClientConfig::default(), "nowhere:1");
        let seen = Seen(vec![(server(), told("b", false, 6)), (server(), told("a", true, 9))]);
        let rows: Vec<_> = seen.lines().iter().map(as_row).collect();
        let row = |row: usize| rows[row].join(" ");
        assert_eq!(row(0), "a leader 3 9 0 no -");
        assert_eq!(row(1), "b follower 3 7 2 no -");
        assert_eq!(row(2), "c follower - 2 7 silent -");
        let summary = "quorum: term 3, a leads, b 2 entries behind, c silent";
        assert_eq!(seen.summary(), summary);
        // Without the leader each speaks for itself.
        let seen = Seen(vec![(server(), told("b", false, 6))]);
        let rows: Vec<_> = seen.lines().iter().map(as_row).collect();
        assert_eq!(rows[0].join(" "), "a leader - - - yes -");
        assert_eq!(rows[1].join(" "), "b follower 3 6 0 no -");
        assert_eq!(seen.as_json()[1]["entry"], 6);
        assert_eq!(seen.as_json()[1]["reads"], 12);
    }
}
