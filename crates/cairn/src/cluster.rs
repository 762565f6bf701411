//! A whole cluster in this process: one NameNode or the members of a quorum, some DataNodes, real ports, real files.
//!
//! The same code as the separate roles. What is killed stops at once, as if its process had died.

mod namenodes;
mod ports;
mod storage;

use self::namenodes::{NameNodes, Wanted};
use self::ports::{LOOPBACK, Ports};
pub use self::storage::Volumes;
use crate::commands::debug::inject;
use crate::config::{self, Configuration, xml};
use anyhow::{Context, Result, bail};
use cairn_client::{DataNodeFilter, FileSystem, SafeModeAction};
use cairn_datanode::{DataDir, DataNode, DataNodeConfig, RunningDataNode};
use cairn_namenode::config::RackSource;
use cairn_net::reach::{Cut, Peer, Rule};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long all DataNodes may take to report what they hold.
const REPORTS_TIMEOUT: Duration = Duration::from_secs(120);
/// How long safe mode may last once they have.
const SAFE_MODE_TIMEOUT: Duration = Duration::from_secs(10);
const REPORTS_POLL: Duration = Duration::from_millis(20);

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many NameNodes: one, or the members of a quorum.
    pub namenodes: usize,
    /// How many DataNodes.
    pub datanodes: usize,
    /// In how many racks; DataNode `i` is in rack `i % racks`.
    pub racks: usize,
    /// Folder for all that the cluster keeps.
    pub data: PathBuf,
    /// RPC port of the first NameNode, or 0 for a free one.
    pub rpc_port: u16,
    /// HTTP port of the first NameNode, or 0 for a free one.
    pub http_port: u16,
    /// Volumes of the DataNodes, which take the lists in turn; one disk each if there is none.
    pub storage: Vec<Volumes>,
    /// Keys for every role.
    pub conf: Configuration,
}

struct Slot {
    config: DataNodeConfig,
    rack: String,
    running: Option<RunningDataNode>,
    /// What it and others are kept from by a fault.
    cuts: Vec<Cut>,
}

impl Slot {
    fn cut(&self, rule: Rule) -> Result<Cut> {
        self.config.reach.cut(rule).context("the network is not cut")
    }

    /// Where others connect to it.
    fn ports(&self) -> impl Iterator<Item = SocketAddr> {
        let always = [self.config.xfer_addr, self.config.ipc_addr];
        always.into_iter().chain(self.config.http_addr)
    }

    /// The DataNode, unless it was killed or has stopped by itself.
    fn serving(&self) -> Option<&RunningDataNode> {
        self.running.as_ref().filter(|running| running.stop_reason().is_none())
    }
}

/// A running cluster.
pub struct Cluster {
    namenodes: NameNodes,
    datanodes: Vec<Slot>,
    data: PathBuf,
    conf: Configuration,
    /// Keeps the ports of DataNodes that are stopped for them.
    _ports: Ports,
}

impl Cluster {
    /// Starts the NameNodes, then all DataNodes, and writes a configuration folder for clients.
    pub async fn start(options: Options) -> Result<Cluster> {
        let Options { datanodes, racks, data, storage, .. } = &options;
        let (datanodes, racks) = (*datanodes, *racks);
        if datanodes == 0 || racks == 0 {
            bail!("a cluster needs at least one DataNode and one rack");
        }
        if options.namenodes == 0 || options.namenodes == 2 {
            bail!("one NameNode serves alone, and three or more go on without one of them");
        }
        let mut conf = options.conf.clone();
        std::fs::create_dir_all(data)
            .with_context(|| format!("cannot make the folder {}", data.display()))?;
        let data = data.canonicalize().context("the data folder has no path")?;
        // A cluster that starts as a whole has nobody to wait for once its blocks are reported.
        conf.set_default("dfs.namenode.safemode.extension", "0");
        // Nobody else knows the names of its DataNodes.
        conf.set_default(config::webhdfs::BY_ADDRESS, "true");
        let mut ports = Ports::of_process(std::process::id());
        let table = rack_table(datanodes, racks);
        let Options { namenodes: count, rpc_port, http_port, .. } = options;
        let wanted = Wanted { count, rpc_port, http_port, racks: table };
        let namenodes = NameNodes::start(wanted, &data, &mut conf, &mut ports).await?;
        let slots = (0..datanodes)
            .map(|index| {
                slot(&conf, storage::data_dirs(storage, &data, index), index, racks, &mut ports)
            })
            .collect::<Result<Vec<Slot>>>()?;
        let mut cluster = Cluster { namenodes, datanodes: slots, data, conf, _ports: ports };
        for index in 0..datanodes {
            cluster.start_datanode(index).await?;
        }
        cluster.write_client_conf()?;
        cluster.wait_for_reports().await?;
        Ok(cluster)
    }

    /// Waits until every DataNode has reported its blocks (a read before that could find none) and
    /// safe mode is over.
    async fn wait_for_reports(&self) -> Result<()> {
        let fs = FileSystem::connect(config::client::read(&self.conf)?).await?;
        let start = Instant::now();
        loop {
            let live = fs.datanodes(DataNodeFilter::Live).await?;
            let reported = live.iter().filter(|node| node.last_block_report_ms > 0).count();
            let waited = start.elapsed();
            if reported >= self.datanodes.len() {
                if !fs.safe_mode(SafeModeAction::Get).await? {
                    return Ok(());
                }
                // Blocks are missing: the cluster serves what it has, and says so.
                if waited > SAFE_MODE_TIMEOUT {
                    tracing::warn!("the NameNode stays in safe mode: blocks are missing");
                    return Ok(());
                }
            }
            if waited > REPORTS_TIMEOUT {
                bail!("{reported} of {} DataNodes reported in time", self.datanodes.len());
            }
            tokio::time::sleep(REPORTS_POLL).await;
        }
    }

    /// Completes when a NameNode has stopped by itself, and says why.
    pub async fn namenode_stopped(&mut self) -> String {
        self.namenodes.stopped().await
    }

    /// Stops member `index` of the quorum at once, without a word to anybody.
    pub fn kill_namenode(&mut self, index: usize) -> Result<()> {
        self.namenodes.kill(index)
    }

    /// Starts member `index` of the quorum on what it had.
    pub async fn start_namenode(&mut self, index: usize) -> Result<()> {
        self.namenodes.start_again(index).await
    }

    /// Has who leads hand over to member `index`, or to the best of the others. Says who leads then.
    pub async fn hand_over(&mut self, to: Option<usize>) -> Result<String> {
        self.namenodes.hand_over(to).await
    }

    /// Where clients find the file system.
    pub fn uri(&self) -> String {
        self.namenodes.uri()
    }

    /// The keys with which the cluster runs, `fs.defaultFS` among them.
    pub fn configuration(&self) -> &Configuration {
        &self.conf
    }

    /// The folder with `core-site.xml` and `hdfs-site.xml` for clients.
    pub fn conf_folder(&self) -> PathBuf {
        self.data.join("conf")
    }

    /// Folders in which the DataNodes keep their blocks.
    pub fn block_folders(&self) -> impl Iterator<Item = PathBuf> {
        let dirs = self.datanodes.iter().flat_map(|slot| &slot.config.data_dirs);
        dirs.map(|dir| dir.path.clone())
    }

    /// The folders of one DataNode's volumes.
    pub fn volumes_of(&self, index: usize) -> Result<Vec<PathBuf>> {
        let Some(slot) = self.datanodes.get(index) else {
            bail!("there is no DataNode {index}");
        };
        Ok(slot.config.data_dirs.iter().map(|dir| dir.path.clone()).collect())
    }

    /// Starts DataNode `index` on the data that it had.
    pub async fn start_datanode(&mut self, index: usize) -> Result<()> {
        let slot = self.slot(index)?;
        if slot.serving().is_some() {
            bail!("DataNode {index} runs already");
        }
        if let Some(stopped) = slot.running.take() {
            stopped.shutdown().await;
        }
        let running = DataNode::start(slot.config.clone())
            .await
            .with_context(|| format!("DataNode {index} did not start"))?;
        // Where the system chose: the same ports at the next start, as with a process of its own.
        slot.config.xfer_addr = running.xfer_addr();
        slot.config.ipc_addr = running.ipc_addr();
        slot.config.http_addr = running.http_addr();
        slot.running = Some(running);
        Ok(())
    }

    /// Stops DataNode `index` at once, without a word to anybody.
    pub fn kill_datanode(&mut self, index: usize) -> Result<()> {
        match self.slot(index)?.running.take() {
            Some(running) => {
                running.kill();
                Ok(())
            }
            None => bail!("DataNode {index} does not run"),
        }
    }

    /// Keeps DataNode `index` from all connections, or it and another DataNode from connections to each other. What other
    /// servers of this process have with the same peers ends once as well.
    pub fn partition_datanode(&mut self, index: usize, from: Option<usize>) -> Result<()> {
        let mut cuts = Vec::new();
        match from {
            None => {
                let others = self.datanodes.iter().enumerate().filter(|(other, _)| *other != index);
                let peers = others.flat_map(|(_, slot)| slot.ports()).chain(self.namenodes.ports());
                let peers: Vec<Peer> = peers.map(Peer::Port).collect();
                let slot = self.slot(index)?;
                cuts.push(slot.cut(Rule { peers, made: true, taken: false, ports: Vec::new() })?);
                let ports = slot.ports().map(|addr| addr.port()).collect();
                cuts.push(slot.cut(Rule { peers: Vec::new(), made: false, taken: true, ports })?);
            }
            Some(other) if other == index => bail!("a DataNode is not kept from itself"),
            Some(other) => {
                for (one, other) in [(index, other), (other, index)] {
                    let peers = self.slot(other)?.ports().map(Peer::Port).collect();
                    let rule = Rule { peers, made: true, taken: false, ports: Vec::new() };
                    cuts.push(self.slot(one)?.cut(rule)?);
                }
            }
        }
        self.slot(index)?.cuts.extend(cuts);
        Ok(())
    }

    /// Ends that.
    pub fn heal_datanode(&mut self, index: usize) -> Result<()> {
        self.slot(index)?.cuts.clear();
        Ok(())
    }

    /// Keeps member `index` of the quorum from all connections, or lets it have them again.
    pub fn partition_namenode(&mut self, index: usize, is_cut: bool) -> Result<()> {
        self.namenodes.partition(index, is_cut)
    }

    fn slot(&mut self, index: usize) -> Result<&mut Slot> {
        let count = self.datanodes.len();
        self.datanodes.get_mut(index).with_context(|| format!("there are {count} DataNodes"))
    }

    /// Addresses and folders, for programs.
    pub fn describe(&self) -> Value {
        let datanodes: Vec<Value> = self.datanodes.iter().enumerate().map(describe_slot).collect();
        let mut described = json!({
            "fs": self.uri(),
            "conf": self.conf_folder(),
            "pids": [std::process::id()],
            "datanodes": datanodes,
        });
        self.namenodes.describe(&mut described);
        described
    }

    /// Stops everything in order.
    pub async fn shutdown(self) {
        for slot in self.datanodes {
            if let Some(running) = slot.running {
                running.shutdown().await;
            }
        }
        self.namenodes.shutdown().await;
    }

    fn write_client_conf(&self) -> Result<()> {
        let folder = self.conf_folder();
        std::fs::create_dir_all(&folder)?;
        let uri = self.uri();
        let core = xml::write([("fs.defaultFS", uri.as_str())]);
        std::fs::write(folder.join("core-site.xml"), core)?;
        let keys = self.conf.iter().filter(|(key, _)| *key != "fs.defaultFS");
        std::fs::write(folder.join("hdfs-site.xml"), xml::write(keys))?;
        Ok(())
    }
}

fn host_name(index: usize) -> String {
    format!("datanode{index}")
}

fn rack_table(datanodes: usize, racks: usize) -> RackSource {
    RackSource::Fixed((0..datanodes).map(|i| (host_name(i), rack_name(i, racks))).collect())
}

fn rack_name(index: usize, racks: usize) -> String {
    format!("/rack{}", index % racks)
}

fn slot(
    conf: &Configuration,
    dirs: Vec<DataDir>,
    index: usize,
    racks: usize,
    ports: &mut Ports,
) -> Result<Slot> {
    let mut config = config::datanode::read(conf)?;
    config.data_dirs = dirs;
    config.reach = inject::reach(conf)?;
    config::datanode::bound_capacity(conf, &mut config.data_dirs)?;
    config.hostname = Some(host_name(index));
    config.xfer_addr = SocketAddr::new(LOOPBACK, ports.free());
    config.ipc_addr = SocketAddr::new(LOOPBACK, ports.free());
    config.http_addr = Some(SocketAddr::new(LOOPBACK, ports.free()));
    Ok(Slot { config, rack: rack_name(index, racks), running: None, cuts: Vec::new() })
}

fn describe_slot((index, slot): (usize, &Slot)) -> Value {
    let mut value = json!({
        "index": index,
        "rack": slot.rack,
        "running": slot.serving().is_some(),
        "data": slot.config.data_dirs.first().map(|volume| volume.path.clone()),
        "volumes": slot.config.data_dirs.iter().map(describe_volume).collect::<Vec<Value>>(),
    });
    if let Some(why) = slot.running.as_ref().and_then(RunningDataNode::stop_reason) {
        value["stopped"] = json!(why);
    }
    if let Some(running) = slot.serving() {
        value["uuid"] = json!(running.uuid());
        value["xfer"] = json!(running.xfer_addr().to_string());
        value["ipc"] = json!(running.ipc_addr().to_string());
        value["http"] = json!(running.http_addr().map(|addr| format!("http://{addr}")));
    }
    value
}

fn describe_volume(volume: &DataDir) -> Value {
    json!({"type": volume.storage_type.name(), "path": volume.path})
}

#[cfg(test)]
mod tests;
