//! What all parts of a running DataNode share.
//!
//! A file of this folder has what one part keeps, and knows nothing of the others; what is done with it is told where
//! that part is.

pub(crate) mod bad_blocks;
pub(crate) mod cached;
mod copies;
pub(crate) mod name_nodes;
mod orders;
mod paces;
pub(crate) mod reconstructions;
pub(crate) mod reports;
mod retired;
pub(crate) mod scans;
mod scrubs;
pub(crate) mod tasks;
mod untold;
pub(crate) mod virtuals;

use crate::block_tokens::BlockTokens;
use crate::budget::Budget;
use crate::config::DataNodeConfig;
use crate::dataset::{Block, Dataset, Finalized};
use crate::disks::Disks;
use crate::error::{Context, DataNodeError, Result, transfer_error};
use crate::marks::Marks;
use crate::members::Wakes;
use crate::memory::LockedMemory;
use crate::messages;
use crate::metrics::Metrics;
use crate::peers::Peers;
use crate::short_circuit::ShortCircuitRegistry;
use crate::tunables::Tunables;
use crate::volume::Volume;
use bad_blocks::BadBlocks;
use cached::BlockCache;
use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_net::rpc_server::RpcMetrics;
use cairn_net::transfer_stream::{PacketMemory, SendFile, TransferOptions, TransferStream};
use cairn_operate::reconfiguration::Reconfiguration;
use cairn_operate::workers::Workers;
use cairn_process::lasting;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::datanode::{
    DatanodeRegistrationProto, EncodedGroupProto, FailedWorkProto, PackedContainerProto,
    ProvedReplicaProto, SlowDiskReportProto,
};
use cairn_wire::proto::hdfs::{
    CachingStrategyProto, DatanodeIDProto, DatanodeInfoProto, LocatedBlockProto,
};
use copies::Copies;
use name_nodes::NameNodes;
use reconstructions::Reconstructions;
use reports::IncrementalReports;
use retired::Retired;
use scans::Scanner;
use scrubs::Scrubs;
use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::time::{Duration, Instant};
use tasks::Tasks;
use untold::Untold;
use virtuals::Virtuals;

/// Socket buffers of each of the many connections that a rebuild reads from, in bytes: what waits in them all is to stay
/// in the processor's cache.
pub(crate) const SOURCE_BUFFER: usize = 256 << 10;

/// Failures that may wait to be told.
const MAX_FAILURES: usize = 4096;
/// Encoded groups that may wait to be told.
const MAX_ENCODED: usize = 1024;
/// Containers that may wait to be told.
const MAX_PACKED: usize = 64;
/// Proven replicas that the NameNode is to hear of.
const MAX_PROVED: usize = 1024;
/// Characters of the reason why work has failed.
const MAX_REASON_LEN: usize = 300;

/// How often a volume is checked of which nobody has said that it does not work.
const CHECK_PERIOD: Duration = Duration::from_secs(60);

/// The protocol DataNodes recover blocks with.
pub(crate) const INTER_DATANODE: &str =
    "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol";

/// The shared state of one DataNode.
pub(crate) struct Node {
    pub(crate) config: DataNodeConfig,
    pub(crate) dataset: Arc<Dataset>,
    /// What says who may read and write blocks.
    pub(crate) block_tokens: Arc<BlockTokens>,
    pub(crate) reports: IncrementalReports,
    /// Replicas kept in memory.
    pub(crate) cache: BlockCache,
    /// Replicas that clients on this machine read themselves.
    pub(crate) short_circuit: ShortCircuitRegistry,
    /// What was done since the start.
    pub(crate) metrics: Metrics,
    /// Calls that were served.
    pub(crate) rpc_metrics: Arc<RpcMetrics>,
    /// What memory replicas may take.
    pub(crate) memory: LockedMemory,
    /// Bad replicas to tell the NameNode of.
    pub(crate) bad_blocks: BadBlocks,
    /// Copies and reconstructions that have failed (`HeartbeatRequestProto` 1000, Cairn's own).
    pub(crate) failed_work: Untold<FailedWorkProto>,
    pub(crate) copies: Copies,
    /// Whole blocks and groups that are read, and what came of it.
    pub(crate) scrubs: Scrubs,
    /// Groups that were encoded, to tell the NameNode of.
    pub(crate) encoded: Untold<EncodedGroupProto>,
    /// Containers that were written, likewise.
    pub(crate) packed: Untold<PackedContainerProto>,
    /// Blocks that clients are not served any more.
    pub(crate) retired: Retired,
    /// Replicas that were proven, likewise, each with the registration whose order that was.
    pub(crate) proved: Untold<(u64, ProvedReplicaProto)>,
    /// Blocks that are not here and were asked for.
    pub(crate) virtuals: Virtuals,
    /// Settings that can change.
    pub(crate) reconfiguration: Reconfiguration<DataNodeConfig>,
    /// What packets of data connections may take.
    pub(crate) packet_memory: Arc<PacketMemory>,
    /// Bytes per second of copies that the NameNode orders.
    pub(crate) transfer_budget: Budget,
    /// Bytes per second of reads by clients.
    pub(crate) read_budget: Budget,
    /// Bytes per second of what comes through pipelines.
    pub(crate) write_budget: Budget,
    pub(crate) name_nodes: NameNodes,
    pub(crate) xfer_addr: SocketAddr,
    pub(crate) ipc_addr: SocketAddr,
    /// Where pages are served.
    pub(crate) http_addr: Option<SocketAddr>,
    pub(crate) https_addr: Option<SocketAddr>,
    pub(crate) started: Instant,
    pub(crate) tasks: Tasks,
    /// What tells this process from any other with the same UUID, a copy of its disks or a predecessor; `None`
    /// where there is no randomness.
    pub(crate) process_number: Option<u64>,
    /// Connections being served.
    pub(crate) connections: AtomicUsize,
    /// Copies to other DataNodes that are running.
    pub(crate) transfers: AtomicU32,
    /// How long other DataNodes take.
    pub(crate) peers: Peers,
    /// What acknowledgements tell of this DataNode.
    pub(crate) marks: Marks,
    /// Which disks are slow.
    pub(crate) disks: Disks,
    /// Other settings that can change.
    pub(crate) tunables: Tunables,
    /// Who may speak to this DataNode by RPC.
    pub(crate) access: Access,
    /// Bytes per second of all balancer moves together.
    pub(crate) balance_budget: Budget,
    /// Asks for a full block report.
    pub(crate) report_now: Wakes,
    /// The lazy writer runs.
    pub(crate) saves_memory: AtomicBool,
    /// Asks for an incremental report.
    pub(crate) changes_now: Wakes,
    /// Asks for a heartbeat: there is room for more work.
    pub(crate) heartbeat_now: Wakes,
    /// Block groups whose lost units are being rebuilt here.
    pub(crate) reconstructions: Reconstructions,
    /// The block scanners of the volumes.
    pub(crate) scanner: Scanner,
    /// The groups of users.
    pub(crate) groups: Groups,
    /// Whether a superuser has told this DataNode to stop.
    pub(crate) is_told_to_stop: AtomicBool,
    /// Its background work.
    pub(crate) workers: Workers,
}

/// A number that no other process has; `None` where there is no randomness.
fn random_number() -> Option<u64> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).ok()?;
    Some(u64::from_le_bytes(random))
}

impl Node {
    /// Does work until the DataNode stops; if it panics, the DataNode does.
    pub(crate) fn spawn_lasting(
        self: &Arc<Node>,
        what: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let node = Arc::clone(self);
        self.tasks.spawn(async move {
            if let Err(panic) = lasting::unbroken(work).await {
                node.dataset.give_up(format!("{what} has failed: {panic}"));
            }
        });
    }

    pub(crate) fn new(
        config: DataNodeConfig,
        dataset: Dataset,
        access: Access,
        rpc_metrics: Arc<RpcMetrics>,
        reconfiguration: Reconfiguration<DataNodeConfig>,
        (xfer_addr, ipc_addr, [http_addr, https_addr]): (
            SocketAddr,
            SocketAddr,
            [Option<SocketAddr>; 2],
        ),
    ) -> Node {
        let count = config.name_nodes.len();
        Node {
            scanner: Scanner::new(&dataset.volumes(), &config),
            workers: Workers::new(),
            metrics: Metrics::default(),
            rpc_metrics,
            memory: dataset.memory().clone(),
            dataset: Arc::new(dataset),
            block_tokens: Arc::default(),
            reports: IncrementalReports::new(count),
            cache: BlockCache::new(count),
            short_circuit: ShortCircuitRegistry::default(),
            bad_blocks: BadBlocks::new(count),
            failed_work: Untold::new(MAX_FAILURES),
            copies: Copies::default(),
            scrubs: Scrubs::default(),
            encoded: Untold::new(MAX_ENCODED),
            packed: Untold::new(MAX_PACKED),
            proved: Untold::new(MAX_PROVED),
            retired: Retired::default(),
            virtuals: Virtuals::default(),
            reconfiguration,
            packet_memory: Arc::new(PacketMemory::new(config.packet_memory)),
            transfer_budget: Budget::new(config.transfer_bandwidth),
            read_budget: Budget::new(config.read_bandwidth),
            write_budget: Budget::new(config.write_bandwidth),
            name_nodes: NameNodes::new(&config),
            xfer_addr,
            ipc_addr,
            http_addr,
            https_addr,
            started: Instant::now(),
            tasks: Tasks::default(),
            process_number: random_number(),
            connections: AtomicUsize::new(0),
            transfers: AtomicU32::new(0),
            peers: Peers::new(&config),
            marks: Marks::new(&config),
            disks: Disks::new(&config),
            tunables: Tunables::new(&config),
            access,
            balance_budget: Budget::new(config.balance_bandwidth),
            report_now: Wakes::new(count),
            saves_memory: AtomicBool::new(false),
            changes_now: Wakes::new(count),
            heartbeat_now: Wakes::new(count),
            reconstructions: Reconstructions::new(&config),
            groups: Groups::new(&config.groups),
            is_told_to_stop: AtomicBool::new(false),
            config,
        }
    }

    /// How the NameNodes know this DataNode.
    pub(crate) fn registration(&self) -> Result<DatanodeRegistrationProto> {
        self.name_nodes.registration()
    }

    /// Compares disks anew; returns those that are slow.
    pub(crate) fn compare_disks(&self) -> Vec<SlowDiskReportProto> {
        self.disks.report(&self.dataset.volumes(), self.dataset.sampling())
    }

    /// How long ago a NameNode answered a heartbeat; `None` if none ever has.
    pub(crate) fn since_heartbeat(&self) -> Option<Duration> {
        self.name_nodes.since_heartbeat(self.started)
    }

    /// Timeouts for a pipeline with `downstream` more DataNodes: each adds some, so that the one nearest to a
    /// failure notices it first.
    ///
    /// Source: Hadoop 3.5.0 `HdfsConstants.READ_TIMEOUT_EXTENSION`, `WRITE_TIMEOUT_EXTENSION`.
    pub(crate) fn transfer_options(&self, downstream: usize) -> TransferOptions {
        let extension = Duration::from_secs(5) * downstream as u32;
        // The kernel has bounds of its own below this one.
        let buffer = |bytes: u64| bytes.min(1 << 30) as usize;
        TransferOptions {
            connect_timeout: self.config.read_timeout + extension,
            read_timeout: self.config.read_timeout + extension,
            write_timeout: self.config.write_timeout + extension,
            send_buffer: buffer(self.config.send_buffer),
            recv_buffer: buffer(self.config.recv_buffer),
            send_file: match self.config.transfer_to_allowed {
                true => SendFile::WherePays,
                false => SendFile::Never,
            },
            reach: self.config.reach.clone(),
            ..TransferOptions::default()
        }
    }

    /// The same for connections from elsewhere, whose packets are counted: each is served by itself.
    pub(crate) fn served_options(&self) -> TransferOptions {
        let packet_memory = Some(self.packet_memory.clone());
        TransferOptions { packet_memory, ..self.transfer_options(0) }
    }

    /// Connects to the data port of another DataNode.
    pub(crate) async fn connect(
        &self,
        peer: &DatanodeInfoProto,
        downstream: usize,
        token: &TokenProto,
    ) -> Result<TransferStream> {
        self.connect_with(peer, token, &self.transfer_options(downstream)).await
    }

    /// The same, to read a unit that a block group is rebuilt from.
    pub(crate) async fn connect_to_source(
        &self,
        peer: &DatanodeInfoProto,
        token: &TokenProto,
    ) -> Result<TransferStream> {
        let recv_buffer = SOURCE_BUFFER;
        let options = TransferOptions { recv_buffer, ..self.transfer_options(0) };
        self.connect_with(peer, token, &options).await
    }

    async fn connect_with(
        &self,
        peer: &DatanodeInfoProto,
        token: &TokenProto,
        options: &TransferOptions,
    ) -> Result<TransferStream> {
        let host = self.host_of(&peer.id);
        let port = u16::try_from(peer.id.xfer_port)
            .map_err(|_| DataNodeError::peer("port above 65535"))?;
        let mut addrs = tokio::net::lookup_host((host.as_str(), port))
            .await
            .context(|| format!("looking up {host}"))?;
        let addr =
            addrs.next().ok_or_else(|| DataNodeError::peer(format!("{host} has no address")))?;
        let failed = |error| transfer_error(format!("connecting to {addr}"), error);
        let mut stream = TransferStream::connect(addr, options).await.map_err(failed)?;
        if let Some(policy) = &self.config.data_transfer {
            let pool = self.dataset.pool_id().unwrap_or_default().to_string();
            let shown = self.block_tokens.shown(policy, token, &pool)?;
            stream.introduce(policy, &shown).await.map_err(failed)?;
        }
        Ok(stream)
    }

    /// The name or address to connect to.
    pub(crate) fn host_of(&self, id: &DatanodeIDProto) -> String {
        if self.config.connect_via_hostname { id.host_name.clone() } else { id.ip_addr.clone() }
    }

    /// What a copy made for the NameNode or a balancer wants of the page cache: nobody will read it soon.
    ///
    /// Source: Hadoop 3.5.0 `DataNode.DataTransfer`, `CachingStrategy#newDropBehind`.
    pub(crate) fn caching_of_copies(&self) -> CachingStrategyProto {
        let readahead = i64::try_from(self.config.readahead_bytes).ok();
        CachingStrategyProto { drop_behind: Some(true), readahead }
    }

    /// Tells the NameNode of a finished replica.
    pub(crate) fn report_received(&self, done: &Finalized, delete_hint: Option<String>) {
        self.reports.received(done, delete_hint);
    }

    /// Tells the NameNode in the background that `holder` has a bad replica of `block`, which for a unit is its
    /// internal block.
    pub(crate) fn report_bad_block(&self, block: &Block, holder: DatanodeInfoProto) {
        let b = messages::extended_block(block);
        let report = LocatedBlockProto { b, locs: vec![holder], ..Default::default() };
        self.bad_blocks.queue(report);
    }

    /// Tells the NameNode in the background that the replica of `block` on this DataNode's `volume` is bad.
    pub(crate) fn report_own_bad_block(&self, block: &Block, volume: &Volume) {
        self.scanner.is_bad(block.id, volume);
        // Before the first registration nobody knows of the replica.
        let Ok(registration) = self.registration() else { return };
        let holder = DatanodeInfoProto { id: registration.datanode_id, ..Default::default() };
        self.bad_blocks.queue(LocatedBlockProto {
            b: messages::extended_block(block),
            locs: vec![holder],
            storage_types: vec![volume.storage_type().number()],
            storage_i_ds: vec![volume.storage_id().into()],
            ..Default::default()
        });
    }

    /// Tells the NameNode that a replica or unit will not arrive on the DataNode `target`, for the fault of
    /// `suspect` if that is known. Both are UUIDs.
    pub(crate) fn report_failed_work(
        &self,
        (block, gs): (BlockId, GenerationStamp),
        target: &str,
        suspect: Option<&str>,
        reason: &dyn Display,
    ) {
        let reason = reason.to_string().chars().take(MAX_REASON_LEN).collect();
        let failed = FailedWorkProto {
            block: messages::local_block(block, gs, 0),
            target_uuid: target.into(),
            suspect_uuid: suspect.map(str::to_string),
            reason: Some(reason),
        };
        self.failed_work.add(failed);
        self.heartbeat_now.all();
    }

    /// Tells the NameNode that a replica which it takes to be here is on none of the volumes.
    pub(crate) fn tell_absent(&self, id: BlockId, gs: GenerationStamp) {
        for volume in self.dataset.volumes().iter().filter(|volume| !volume.is_failed()) {
            self.reports.deleted(id, gs, volume.storage_id());
        }
    }

    /// Has a replica of this DataNode looked at soon: somebody had trouble with its bytes. Does nothing if it has
    /// been lately.
    ///
    /// Source: Hadoop 3.5.0 `BlockScanner#markSuspectBlock`.
    pub(crate) fn suspect_block(&self, id: BlockId) {
        if let Some(volume) = self.dataset.volume_of(id) {
            self.scanner.suspect(id, &volume);
        }
    }

    /// A NameNode has taken this DataNode, and may know nothing of what others, or the process before it, were told of.
    pub(crate) fn has_registered(&self) {
        self.scanner.look_again();
    }

    /// Takes a volume out of use whose disk has not answered for too long: what it has is copied or rebuilt elsewhere.
    /// Has it checked from time to time, as much of what is asked of a disk that hangs may be answered from memory.
    ///
    /// Source: Hadoop 3.5.0 `DatasetVolumeChecker`, whose checks time out. Deviation: it checks after errors only.
    pub(crate) fn watch_volume(&self, volume: &Arc<Volume>) {
        let timeout = self.config.disk_check_timeout;
        if volume.is_failed() {
            return;
        }
        match volume.check_answered_in(timeout) {
            Err(error) => self.dataset.fail_volume(volume, &error),
            Ok(()) if volume.is_check_due(timeout.min(CHECK_PERIOD)) => self.start_check(volume),
            Ok(()) => {}
        }
    }

    /// An error at a file takes its volume out of use when that does not take writes any more. Does not wait: a disk
    /// that is dying can take long. Other errors say nothing about a volume.
    pub(crate) fn check_volume(&self, error: &DataNodeError) {
        let Some(path) = error.failed_path() else { return };
        let holds_it = |volume: &&Arc<Volume>| path.starts_with(volume.root());
        let volumes = self.dataset.volumes();
        let Some(volume) = volumes.iter().find(holds_it) else { return };
        if !volume.is_failed() {
            self.start_check(volume);
        }
    }

    fn start_check(&self, volume: &Arc<Volume>) {
        let (dataset, volume) = (self.dataset.clone(), volume.clone());
        // Nobody waits for it; it ends with the disk's answer.
        drop(tokio::task::spawn_blocking(move || {
            if let Err(error) = volume.check() {
                dataset.fail_volume(&volume, &error);
            }
        }));
    }
}
