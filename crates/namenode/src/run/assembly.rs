//! A NameNode out of what was opened for it, without sockets and loops: for who serves, and for who only reads what a member
//! of a quorum follows.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_namespace::query;
use cairn_net::rpc_server::RpcMetrics;
use cairn_operate::reconfiguration::Reconfiguration;
use cairn_operate::workers::Workers;
use cairn_redundancy::Cluster;
use tokio::sync::{Notify, Semaphore, watch};

use super::error::StartError;
use crate::audit::AuditLog;
use crate::block_tokens::BlockTokens;
use crate::clock::wall_ms;
use crate::config::{AuditConfig, NameNodeConfig, parts};
use crate::diff_listings::DiffListings;
use crate::journal::Namesystem;
use crate::keeper::Keeper;
use crate::kept_reports::KeptReports;
use crate::key_provider::KeyProvider;
use crate::lead::Lead;
use crate::node::NameNode;
use crate::node::caching::Caching;
use crate::node::encoded::EncodedGroups;
use crate::node::group_work::GroupWork;
use crate::node::missing_trash::MissingTrash;
use crate::node::reencryptor::Reencryptor;
use crate::node::satisfier::Satisfier;
use crate::operations::Operations;
use crate::ranger::Ranger;
use crate::standing::Standing;
use crate::topology::Topology;

/// Walks over large trees for clients at a time.
const WALKS: usize = 4;

/// See the module.
pub(super) struct Parts {
    pub config: NameNodeConfig,
    pub superuser: String,
    pub ns: Arc<Namesystem>,
    pub standing: watch::Receiver<Standing>,
    pub lead: Option<Arc<Lead>>,
    pub told: Option<Arc<KeptReports>>,
    pub topology: Topology,
    pub access: Access,
    pub audit: Option<AuditLog>,
    pub ranger: Option<Ranger>,
    /// Where RPC is served, and what counts its calls.
    pub rpc: (SocketAddr, Arc<RpcMetrics>),
    pub block_tokens: Arc<BlockTokens>,
    pub http_addr: Option<SocketAddr>,
}

impl Parts {
    pub fn assemble(self) -> Arc<NameNode> {
        let Parts { config, superuser, ns, standing, lead, told, topology, .. } = self;
        let cluster = Cluster::new(parts::cluster_config(&config));
        let keys = config.encryption.key_provider.clone();
        Arc::new(NameNode {
            standing,
            lead,
            told,
            keeper: Arc::new(Keeper::new(cluster, ns.clock())),
            block_tokens: self.block_tokens,
            operations: Operations::default(),
            reconfiguration: Reconfiguration::new(config.reload.clone(), NameNodeConfig::live()),
            walks: Arc::new(Semaphore::new(WALKS)),
            groups: Groups::new(&config.groups),
            access: Mutex::new(Arc::new(self.access)),
            caching: Caching::default(),
            satisfier: Satisfier::new(config.satisfier_mode, config.satisfier_queue_limit),
            keys: keys.map(|path| KeyProvider::new(path, &superuser, &config.encryption)),
            reencryptor: Reencryptor::default(),
            topology,
            superuser,
            audit: self.audit.map(Arc::new),
            ranger: self.ranger,
            rpc_addr: self.rpc.0,
            rpc_metrics: self.rpc.1,
            http_addr: self.http_addr,
            started_ms: wall_ms(),
            encoded: EncodedGroups::default(),
            group_work: GroupWork::default(),
            garbage: Notify::new(),
            is_stopping: AtomicBool::new(false),
            missing_trash: MissingTrash::default(),
            ordering: tokio::sync::Mutex::default(),
            upgrading: tokio::sync::Mutex::default(),
            restores_storage: AtomicBool::new(false),
            diff_listings: DiffListings::default(),
            saved: Mutex::new((wall_ms(), ns.last_sequence())),
            workers: Workers::new(),
            ns,
            config,
        })
    }
}

/// What a member tells of itself, where its RPC is and what counts its calls, and what issues block tokens.
pub(crate) type Shared =
    (watch::Receiver<Standing>, (SocketAddr, Arc<RpcMetrics>), Arc<BlockTokens>);

/// What issues block tokens in this process, or says that there are none.
pub(crate) fn block_tokens(config: &NameNodeConfig) -> Result<Arc<BlockTokens>, StartError> {
    let made = BlockTokens::new(config.block_tokens.as_ref());
    made.map(Arc::new).map_err(|error| StartError::NoRandomness { why: error.to_string() })
}

/// A NameNode that reads from what a member of a quorum follows: names, and where blocks are as DataNodes have told. It knows
/// these themselves only as far as somebody tells it of them ([`NameNode::look_at_nodes`]). Blocks.
pub(crate) fn reading(
    config: &NameNodeConfig,
    superuser: &str,
    (ns, told): (Arc<Namesystem>, Arc<KeptReports>),
    (standing, rpc, block_tokens): Shared,
) -> Result<Arc<NameNode>, StartError> {
    let access = Access::read(&config.properties, config.service_policy.as_deref());
    let topology = Topology::open(config, &ns.read(|store| query::orders(store))?.nodes)?;
    let parts = Parts {
        config: config.clone(),
        superuser: superuser.to_string(),
        ns,
        standing,
        lead: None,
        told: Some(told),
        topology,
        access: access.map_err(StartError::Policy)?,
        audit: open_audit(&config.audit)?,
        ranger: None,
        rpc,
        block_tokens,
        http_addr: None,
    };
    Ok(parts.assemble())
}

/// The audit log, if there is to be one. Blocks.
pub(super) fn open_audit(config: &AuditConfig) -> Result<Option<AuditLog>, StartError> {
    AuditLog::open(config).map_err(|source| {
        let path = config.file.clone().unwrap_or_default();
        StartError::Audit { path, source }
    })
}
