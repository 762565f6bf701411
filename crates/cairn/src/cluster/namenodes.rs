//! The NameNode of a cluster, or the members of its quorum.

use super::ports::{LOOPBACK, Ports};
use crate::commands::debug::inject;
use crate::config::{self, Configuration};
use anyhow::{Context, Result, anyhow, bail};
use cairn_namenode::config::{NameNodeConfig, RackSource};
use cairn_namenode::replica::{self, RunningReplica};
use cairn_namenode::{NameNode, RunningNameNode};
use cairn_net::reach::{Cut, Peer, Rule};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::Path;
use std::task::Poll;
use std::time::{Duration, Instant};

/// What the members have in common.
const SERVICE: &str = "cairn-cluster";
/// How long it may take until a member leads that is to.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is to be started.
pub(super) struct Wanted {
    pub count: usize,
    /// Ports of the first one; 0 for free ones.
    pub rpc_port: u16,
    pub http_port: u16,
    pub racks: RackSource,
}

/// See the module.
pub(super) enum NameNodes {
    One(Box<RunningNameNode>),
    Several(Vec<Slot>),
}

/// A member, running or not.
pub(super) struct Slot {
    name: String,
    config: NameNodeConfig,
    running: Option<RunningReplica>,
    /// What it is kept from by a fault.
    cuts: Vec<Cut>,
}

/// Which of them leads. One that has just handed over may not have noticed yet.
fn leader(members: &[Slot]) -> Option<usize> {
    let leads = |index: &usize| members[*index].leads_in();
    (0..members.len()).filter(|index| leads(index).is_some()).max_by_key(leads)
}

impl Slot {
    /// The term in which it leads, if it does.
    fn leads_in(&self) -> Option<u64> {
        let standing = self.running.as_ref()?.standing();
        let now = standing.borrow();
        now.term().filter(|_| now.leads())
    }

    /// Where others connect to it.
    fn ports(&self) -> Vec<SocketAddr> {
        let of = self.config.quorum.as_ref();
        let own = of.and_then(|of| of.members.get(&of.id)?.quorum.parse().ok());
        own.into_iter().chain([self.config.rpc_addr]).chain(self.config.http_addr).collect()
    }

    async fn start(&mut self) -> Result<()> {
        let started = replica::start(self.config.clone()).await;
        self.running = Some(started.with_context(|| format!("{} did not start", self.name))?);
        Ok(())
    }
}

impl NameNodes {
    /// Starts them, and adds the keys by which they are found.
    pub async fn start(
        wanted: Wanted,
        data: &Path,
        conf: &mut Configuration,
        ports: &mut Ports,
    ) -> Result<NameNodes> {
        if wanted.count > 1 {
            return several(wanted, data, conf, ports).await;
        }
        let mut config = config::namenode::read(conf)?;
        config.name_dir = data.join("namenode");
        config.format_if_empty = true;
        config.rpc_addr = SocketAddr::new(LOOPBACK, wanted.rpc_port);
        config.http_addr = Some(SocketAddr::new(LOOPBACK, wanted.http_port));
        config.racks = wanted.racks;
        let one = NameNode::start(config).await.context("the NameNode did not start")?;
        conf.set("fs.defaultFS", format!("hdfs://{}", one.rpc_addr));
        if let Some(addr) = one.http_addr {
            conf.set("dfs.namenode.http-address", addr.to_string());
        }
        Ok(NameNodes::One(Box::new(one)))
    }

    /// Where clients find the file system.
    pub fn uri(&self) -> String {
        match self {
            NameNodes::One(one) => format!("hdfs://{}", one.rpc_addr),
            NameNodes::Several(_) => format!("hdfs://{SERVICE}"),
        }
    }

    /// Addresses, for programs; of several also which of them leads.
    pub fn describe(&self, out: &mut Value) {
        let page = |addr: Option<SocketAddr>| addr.map(|addr| format!("http://{addr}"));
        match self {
            NameNodes::One(one) => {
                out["plain"] = json!(one.plain_rpc_addr.map(|addr| format!("hdfs://{addr}")));
                out["http"] = json!(page(one.http_addr));
            }
            NameNodes::Several(members) => {
                let leader = leader(members);
                let pages = leader.and_then(|index| page(members[index].config.http_addr));
                out["http"] = json!(pages);
                let describe = |(index, slot): (usize, &Slot)| {
                    json!({
                        "index": index,
                        "name": slot.name,
                        "rpc": format!("hdfs://{}", slot.config.rpc_addr),
                        "http": page(slot.config.http_addr),
                        "data": slot.config.name_dir,
                        "running": slot.running.is_some(),
                        "leads": leader == Some(index),
                    })
                };
                out["namenodes"] = members.iter().enumerate().map(describe).collect();
            }
        }
    }

    /// Completes when one has stopped by itself, and says why.
    pub async fn stopped(&mut self) -> String {
        let members = match self {
            NameNodes::One(one) => return one.stopped().await,
            NameNodes::Several(members) => members,
        };
        let mut all = Vec::new();
        for Slot { name, running, .. } in members.iter_mut() {
            if let Some(running) = running {
                all.push(Box::pin(async move { format!("{name}: {}", running.stopped().await) }));
            }
        }
        poll_fn(|context| {
            let ended = all.iter_mut().find_map(|stopped| match stopped.as_mut().poll(context) {
                Poll::Ready(why) => Some(why),
                Poll::Pending => None,
            });
            ended.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Ends a member at once, without a word to the others.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        let slot = self.slot(index)?;
        slot.running.take().with_context(|| format!("{} does not run", slot.name)).map(drop)
    }

    /// Starts a member on what it had.
    pub async fn start_again(&mut self, index: usize) -> Result<()> {
        let slot = self.slot(index)?;
        if slot.running.is_some() {
            bail!("{} runs already", slot.name);
        }
        slot.start().await
    }

    /// Has whoever leads hand over to a member, or to the best of the others. Says who leads then.
    pub async fn hand_over(&mut self, to: Option<usize>) -> Result<String> {
        let to = to.map(|index| self.slot(index).map(|slot| slot.name.clone())).transpose()?;
        let NameNodes::Several(members) = self else { bail!("there is one NameNode") };
        let leads = &members[leader(members).context("nobody leads")?];
        if to.as_ref() == Some(&leads.name) {
            bail!("{} leads already", leads.name);
        }
        let told = match &leads.running {
            Some(running) => running.hand_over(to.as_deref()).await,
            None => None,
        };
        let told = told.context("no such member could lead")?;
        let begun = Instant::now();
        while leader(members).is_none_or(|index| members[index].name != told) {
            if begun.elapsed() > PATIENCE {
                bail!("{told} does not lead");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(told)
    }

    /// Where others connect to them.
    pub fn ports(&self) -> Vec<SocketAddr> {
        match self {
            NameNodes::One(one) => std::iter::once(one.rpc_addr).chain(one.http_addr).collect(),
            NameNodes::Several(members) => members.iter().flat_map(Slot::ports).collect(),
        }
    }

    /// Keeps a member from all connections, or lets it have them again.
    pub fn partition(&mut self, index: usize, is_cut: bool) -> Result<()> {
        let all = self.ports();
        let slot = self.slot(index)?;
        slot.cuts.clear();
        if is_cut {
            let own = slot.ports();
            let others = all.into_iter().filter(|addr| !own.contains(addr));
            let peers = others.map(Peer::Port).collect();
            let made = Rule { peers, made: true, taken: false, ports: Vec::new() };
            let ports = own.iter().map(SocketAddr::port).collect();
            let taken = Rule { peers: Vec::new(), made: false, taken: true, ports };
            for rule in [made, taken] {
                slot.cuts.push(slot.config.reach.cut(rule).context("the network is not cut")?);
            }
        }
        Ok(())
    }

    fn slot(&mut self, index: usize) -> Result<&mut Slot> {
        let NameNodes::Several(members) = self else { bail!("there is one NameNode") };
        let count = members.len();
        members.get_mut(index).with_context(|| format!("there are {count} NameNodes"))
    }

    /// Stops them in order.
    pub async fn shutdown(self) {
        match self {
            NameNodes::One(one) => one.shutdown().await,
            NameNodes::Several(members) => {
                for running in members.into_iter().filter_map(|slot| slot.running) {
                    running.shutdown().await;
                }
            }
        }
    }
}

/// Members of a quorum that the first one has founded.
async fn several(
    wanted: Wanted,
    data: &Path,
    conf: &mut Configuration,
    ports: &mut Ports,
) -> Result<NameNodes> {
    let names: Vec<String> = (1..=wanted.count).map(|number| format!("nn{number}")).collect();
    conf.set("dfs.nameservices", SERVICE);
    conf.set(&format!("dfs.ha.namenodes.{SERVICE}"), names.join(","));
    conf.set("cairn.quorum.key-file", key(data)?);
    for (index, name) in names.iter().enumerate() {
        let given = |port: u16| if index == 0 { port } else { 0 };
        let mut address = |key: &str, given: u16| {
            let port = if given == 0 { ports.free() } else { given };
            let address = SocketAddr::new(LOOPBACK, port).to_string();
            conf.set(&format!("{key}.{SERVICE}.{name}"), address);
        };
        address("dfs.namenode.rpc-address", given(wanted.rpc_port));
        address("dfs.namenode.http-address", given(wanted.http_port));
        address("cairn.quorum.address", 0);
    }
    let mut members = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        // The first one goes on with what a single NameNode had there.
        let folder = if index == 0 { "namenode".to_string() } else { format!("namenode-{name}") };
        let mut own = conf.clone();
        own.set("dfs.ha.namenode.id", &*name);
        let folder = data.join(folder);
        own.set("dfs.namenode.name.dir", folder.to_str().context("the data folder has no name")?);
        let (racks, reach) = (wanted.racks.clone(), inject::reach(&own)?);
        let config = NameNodeConfig { racks, reach, ..config::namenode::read(&own)? };
        members.push(Slot { name, config, running: None, cuts: Vec::new() });
    }
    let first = members[0].config.clone();
    replica::found(first).await.context("the quorum was not begun")?;
    for slot in &mut members {
        slot.start().await?;
    }
    conf.set("fs.defaultFS", format!("hdfs://{SERVICE}"));
    Ok(NameNodes::Several(members))
}

/// The file with the key of the quorum, which is made if there is none.
fn key(data: &Path) -> Result<String> {
    let path = data.join("quorum.key");
    if !path.exists() {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(&path, text).context("the key of the quorum can't be written")?;
    }
    Ok(path.to_str().context("the data folder has no name")?.to_string())
}
