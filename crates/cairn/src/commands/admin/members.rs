//! The NameNodes of a quorum.

use super::operator::Operator;
use crate::output;
use anyhow::{Context, Result, bail};
use cairn_client::{Members as Told, QuorumMember, Server};
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
        let told = ask(operator).await?;
        let Some(change) = &self.change else {
            show(&told, operator.json);
            return Ok(ExitCode::SUCCESS);
        };
        let leader = told.iter().find(|(_, told)| told.leads).map(|(server, _)| server);
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
async fn ask(operator: &Operator<'_>) -> Result<Vec<(Server, Told)>> {
    let config = operator.fs.config();
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
        _ => Ok(told),
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
}

fn show(told: &[(Server, Told)], json: bool) {
    // Who leads knows most, and then who has heard of the latest term.
    let best = told.iter().map(|(_, told)| told).max_by_key(|told| (told.leads, told.term));
    let Some(best) = best else { return };
    let own: BTreeMap<&str, &Told> =
        told.iter().map(|(_, told)| (told.name.as_str(), told)).collect();
    let lines: Vec<Line<'_>> = best.members.iter().map(|member| line(best, &own, member)).collect();
    if json {
        lines.iter().for_each(|line| crate::say!("{}", as_json(best, line)));
        return;
    }
    let leader = best.leader.as_deref().unwrap_or("nobody");
    crate::say!("quorum {:016x}, term {}: {leader} leads", best.quorum, best.term);
    let heads = ["MEMBER", "ROLE", "TERM", "ENTRY", "LAG", "READY", "ADDRESS"];
    let mut rows = vec![heads.map(str::to_string).to_vec()];
    rows.extend(lines.iter().map(as_row));
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
        is_ready: says.map_or(member.is_there && member.is_ready, |says| says.is_ready),
        member,
    }
}

fn as_row(line: &Line<'_>) -> Vec<String> {
    let figure = |figure: Option<u64>| figure.map_or("-".to_string(), |figure| figure.to_string());
    let ready = match (line.member.is_there || line.term.is_some(), line.is_ready) {
        (false, _) => "silent",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let address = line.member.rpc_address.clone().unwrap_or("-".to_string());
    let (name, role) = (line.member.name.clone(), line.role.to_string());
    vec![name, role, figure(line.term), figure(line.last), figure(line.lag), ready.into(), address]
}

fn as_json(best: &Told, line: &Line<'_>) -> Value {
    let member = line.member;
    json!({
        "name": member.name,
        "id": member.id.map(|id| format!("{id:016x}")),
        "quorum": format!("{:016x}", best.quorum),
        "role": line.role,
        "votes": member.part == "voter",
        "term": line.term,
        "entry": line.last,
        "lag": line.lag,
        "answers": line.term.is_some(),
        "ready": line.is_ready,
        "rpc_address": member.rpc_address,
        "quorum_address": member.quorum_address,
    })
}
