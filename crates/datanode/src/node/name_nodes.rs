//! The NameNodes of the nameservice: who has accepted this DataNode, when each was heard last, and which one is obeyed.
//!
//! Source: Hadoop 3.5.0 `BPOfferService`.

use super::orders::Orders;
use crate::config::DataNodeConfig;
use crate::dataset::{Dataset, Given};
use crate::error::{DataNodeError, Result};
use crate::members::{Member, PerMember};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_process::held::{held, held_read, held_write};
use cairn_replica::{Claim, Following, Heard};
use cairn_wire::proto::datanode::DatanodeRegistrationProto;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

/// The protocol DataNodes report with.
const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

/// The longest that a NameNode may take for an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// One of them.
pub(crate) struct NameNode {
    /// `host:port`.
    pub(crate) address: String,
    pub(crate) client: RpcClient,
    /// What it told of work that waits for this DataNode.
    pub(crate) orders: Orders,
    /// As it returned it; `None` before the first registration.
    registration: RwLock<Option<DatanodeRegistrationProto>>,
    /// When it last answered a heartbeat, in milliseconds since the start and 1 more; 0 before.
    heard_ms: AtomicU64,
    /// It will not have this DataNode.
    has_refused: AtomicBool,
}

impl NameNode {
    /// The registration that it knows.
    pub(crate) fn registration(&self) -> Result<DatanodeRegistrationProto> {
        let registration = held_read(&self.registration).clone();
        registration.ok_or_else(|| DataNodeError::peer("not registered with a NameNode yet"))
    }

    pub(crate) fn set_registration(&self, registration: DatanodeRegistrationProto) {
        *held_write(&self.registration) = Some(registration);
    }

    /// It has answered a heartbeat of a DataNode that began at `started`.
    pub(crate) fn note_heartbeat(&self, started: Instant) {
        let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(now.saturating_add(1), Ordering::Relaxed);
    }

    /// How long ago that was; `None` if it never has.
    pub(crate) fn since_heartbeat(&self, started: Instant) -> Option<Duration> {
        let heard = self.heard_ms.load(Ordering::Relaxed).checked_sub(1)?;
        Some(started.elapsed().saturating_sub(Duration::from_millis(heard)))
    }
}

/// All of them.
pub(crate) struct NameNodes {
    all: PerMember<NameNode>,
    following: Mutex<Following>,
    /// One registration at a time opens the block pool.
    pub(crate) opening: tokio::sync::Mutex<()>,
}

impl NameNodes {
    /// Those of the configuration.
    pub(crate) fn new(config: &DataNodeConfig) -> NameNodes {
        let options = RpcClientOptions {
            call_timeout: CALL_TIMEOUT,
            credentials: config.credentials.clone(),
            reach: config.reach.clone(),
            ..RpcClientOptions::default()
        };
        let one = |member: Member| {
            let address = config.name_nodes[member.number()].clone();
            let user = config.user.clone();
            NameNode {
                client: RpcClient::new(address.clone(), DATANODE, user, options.clone()),
                address,
                orders: Orders::default(),
                registration: RwLock::new(None),
                heard_ms: AtomicU64::new(0),
                has_refused: AtomicBool::new(false),
            }
        };
        NameNodes {
            all: PerMember::new(config.name_nodes.len(), one),
            following: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        }
    }

    /// One of them.
    pub(crate) fn get(&self, member: Member) -> &NameNode {
        &self.all[member]
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NameNode> {
        self.all.iter()
    }

    /// Their numbers.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + use<> {
        Member::all(self.all.count())
    }

    /// The addresses of all, in their order.
    pub(crate) fn addresses(&self) -> String {
        self.iter().map(|one| one.address.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The registration of this DataNode with any of them: it names itself alike to all.
    pub(crate) fn registration(&self) -> Result<DatanodeRegistrationProto> {
        let known = self.iter().find_map(|one| one.registration().ok());
        known.ok_or_else(|| DataNodeError::peer("not registered with a NameNode yet"))
    }

    /// How long ago any of them answered a heartbeat; `None` if none ever has.
    pub(crate) fn since_heartbeat(&self, started: Instant) -> Option<Duration> {
        self.iter().filter_map(|one| one.since_heartbeat(started)).min()
    }

    /// Whether they are Cairn's.
    pub(crate) fn are_ours(&self) -> bool {
        self.iter().any(|one| one.orders.are_ours())
    }

    /// The one that is asked and told what only the active one knows.
    pub(crate) fn active(&self) -> Result<&NameNode> {
        let active = held(&self.following).active();
        let mut all = self.iter();
        let found = match active {
            Some(active) => all.nth(active),
            // There is nobody else.
            None => all.next().filter(|_| self.all.count() == 1),
        };
        found.ok_or_else(|| DataNodeError::peer("no NameNode is known to be active"))
    }

    /// Whether `member` is the one that is obeyed, or that was last.
    pub(crate) fn is_active(&self, member: Member) -> bool {
        self.all.count() == 1 || held(&self.following).active() == Some(member.number())
    }

    /// Before a registration with `member`: what it has ordered so far is void, for it will hear anew what is here.
    pub(crate) fn begin_registration(&self, member: Member, dataset: &Dataset) {
        let following = held(&self.following);
        if following.active().is_none_or(|active| active == member.number()) {
            dataset.begin_registration();
        }
    }

    /// Takes what `member` says of itself with the answer to a heartbeat. Orders of the one before are void when another
    /// one is obeyed from now on: it may count on replicas here that the former one wanted deleted, and have others
    /// deleted.
    pub(crate) fn hear(&self, member: Member, claim: Claim, dataset: &Dataset) -> Heard {
        let mut following = held(&self.following);
        let heard = following.hear(member.number(), claim);
        if heard == Heard::Begun {
            dataset.begin_registration();
        }
        heard
    }

    /// What orders of `member` are known by, if they are to be obeyed.
    pub(crate) fn given_by(&self, member: Member, dataset: &Dataset) -> Option<Given> {
        let following = held(&self.following);
        // Under the lock: the orders of the one before are not taken for those of the next one.
        following.obeys(member.number()).then(|| dataset.given())
    }

    /// `member` will not have this DataNode. Whether no other is left.
    pub(crate) fn refused_by(&self, member: Member) -> bool {
        self.all[member].has_refused.store(true, Ordering::SeqCst);
        self.iter().all(|one| one.has_refused.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_void_when_another_one_is_obeyed_and_when_it_hears_anew_what_is_here() {
        let dir = tempfile::tempdir().unwrap();
        let config = DataNodeConfig {
            data_dirs: vec![dir.path().to_path_buf().into()],
            name_nodes: vec!["a:1".into(), "b:1".into()],
            ..DataNodeConfig::default()
        };
        let dataset = Dataset::open(&config).unwrap();
        let name_nodes = NameNodes::new(&config);
        let members: Vec<Member> = name_nodes.members().collect();
        let [a, b] = members[..] else { panic!() };
        let hear = |member, txid| {
            name_nodes.hear(member, Claim { is_active: true, txid, term: None }, &dataset)
        };
        let given = |member| name_nodes.given_by(member, &dataset).map(|given| given.registration);
        assert!(name_nodes.active().is_err());
        assert_eq!((hear(a, 1), hear(a, 2)), (Heard::Begun, Heard::Same));
        let first = given(a).unwrap();
        name_nodes.begin_registration(b, &dataset);
        assert_eq!((given(a), given(b)), (Some(first), None), "nobody else's registration counts");
        name_nodes.begin_registration(a, &dataset);
        let second = given(a).unwrap();
        assert_ne!(first, second);
        assert_eq!(hear(b, 3), Heard::Begun);
        let third = given(b).unwrap();
        assert!(given(a).is_none() && third != second);
        assert_eq!(name_nodes.active().unwrap().address, "b:1");
    }
}
