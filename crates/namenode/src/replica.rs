//! A member of a quorum of NameNodes: it follows, leads, and follows again.
//!
//! As long as another one leads it writes what is agreed on to its log and its store ([`Follower`]) and answers DataNodes
//! only. When it leads it is a NameNode, which is opened on what it has, and whose entries are agreed on before anybody is
//! told of them ([`crate::lead`]). When it has lost the lead that NameNode is closed, and all that it had evaluated and was
//! not agreed on goes with it. Its port is open all the time ([`front`]).
//!
//! A member that has nothing, or lacks too much, gets a snapshot of the leader.
//!
//! Tested in `tests/it/replica.rs`, and with processes that are killed in `crates/cairn/tests/it/quorum.rs`.

mod agreed;
mod entering;
mod error;
mod forced;
mod front;
mod http;
mod reading;
mod running;

pub use error::ReplicaError;
pub use forced::{Forced, force};
pub use running::RunningReplica;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_access::groups::Groups;
use cairn_net::http::Handler;
use cairn_net::rpc_server::RpcMetrics;
use cairn_process::descriptors;
use cairn_process::held::held;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::block_tokens::BlockTokens;
use crate::config::NameNodeConfig;
use crate::config::quorum::QuorumConfig;
use crate::handing_on::Secret;
use crate::journal::NamesystemOptions;
use crate::journal::backup::BackupError;
use crate::journal::backup::restore::RestoreError;
use crate::journal::follower::Follower;
use crate::journal::{self, Namesystem, install};
use crate::kept_reports::KeptReports;
use crate::lead::Lead;
use crate::node::NameNode;
use crate::protocol::Protocols;
use crate::quorum::{self, Member, Snapshot, Status};
use crate::relay::Makes;
use crate::resources;
use crate::run::{self, Outside, WebAddrs, WebPorts};
use crate::standing::{Leader, Standing};
use agreed::{Agreed, data};
use entering::enter;
use front::{Front, Leading, Operators};
use http::{Door, LeadingSite};
use reading::Reading;

/// How often a leader looks whether it still is one.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often a follower looks whether it could serve if it led, and a new leader whether it does.
const READY_EVERY: Duration = Duration::from_millis(500);

/// How long a NameNode that has lost the lead may take to end what it is at.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// How long it is waited after a snapshot was sent until the same member is sent another one.
const SNAPSHOT_REST: Duration = Duration::from_secs(1);

/// Begins a quorum with the namespace in `config.name_dir`, which is made if there is none. Once, on one member; the others
/// join. False if that one belongs to a quorum already. With `config.roll_back` the namespace goes back to where a rolling
/// upgrade was prepared, and the quorum that the member belongs to is given up.
pub async fn found(config: NameNodeConfig) -> Result<bool, ReplicaError> {
    let quorum = config.quorum.clone().ok_or(ReplicaError::NoQuorum)?;
    let (dir, roll_back) = (config.name_dir.clone(), config.roll_back);
    if !NameNode::is_formatted(&config) {
        NameNode::format(config).await?;
    } else if roll_back {
        let superuser = run::superuser(&config).await?;
        let options = run::namesystem_options(&config, &superuser, None);
        let go_back = move || Namesystem::open(&config.name_dir, options).map(|ns| ns.close());
        tokio::task::spawn_blocking(go_back).await??;
    }
    let found = move || {
        if journal::is_held_by_files(&dir) {
            return Err(ReplicaError::Unsupported(
                "beginning with a file system of which others would not know that deletions are held; finalize its rolling \
                 upgrade, or accept that it was restored",
            ));
        }
        if roll_back {
            quorum::found_anew(&quorum.dir, &quorum.id)?;
            return Ok(true);
        }
        Ok(quorum::found(&quorum.dir, &quorum.id)?)
    };
    tokio::task::spawn_blocking(found).await?
}

/// Starts a member. Must run inside a tokio runtime with time and I/O.
pub async fn start(config: NameNodeConfig) -> Result<RunningReplica, ReplicaError> {
    let quorum = config.quorum.clone().ok_or(ReplicaError::NoQuorum)?;
    if config.roll_back {
        return Err(ReplicaError::Unsupported(
            "going back to where a rolling upgrade was prepared, other than with --found-quorum",
        ));
    }
    descriptors::raise_limit();
    let superuser = run::superuser(&config).await?;
    let options = run::namesystem_options(&config, &superuser, None);
    let access = run::access(&config).await?;
    let (member, entries, key) = enter(&quorum, &config.reach, &options.obeyed()).await?;
    let member = Arc::new(member);
    let rpc = run::bind_rpc(config.rpc_addr, &config, 4).await?;
    let rpc_addr = rpc.local_addr();
    let metrics = run::rpc_metrics(&config);
    let rpc = rpc.counting_in(Arc::clone(&metrics));
    let web_ports = WebPorts::open(&config).await?;
    let web_addrs = web_ports.addrs();
    let (tells, standing) = watch::channel(Standing::Nobody { term: 0 });
    let operators = Operators {
        access,
        groups: Groups::new(&config.groups),
        superuser: config.permissions_enabled.then(|| superuser.clone()),
        supergroup: config.supergroup.clone(),
        security: config.security.clone(),
    };
    let kept = Arc::new(KeptReports::new(&config));
    let block_tokens = run::block_tokens(&config)?;
    let secret = Secret::of(key.bytes());
    let front = Front::new(
        standing.clone(),
        (&quorum, Arc::clone(&member)),
        (operators, Arc::clone(&kept), Arc::clone(&block_tokens)),
        secret.clone(),
    );
    let front = Arc::new(front.map_err(quorum::StartError::Random)?);
    let (own, told) = ((rpc_addr, Arc::clone(&metrics)), (standing.clone(), secret));
    let door = Door::new(&config, &front, own, told).map_err(quorum::StartError::Random)?;
    let door = Arc::new(door);
    let (stop, stopped) = watch::channel(false);
    let mut serving = JoinSet::new();
    let (site, until) = ((door.clone() as Arc<dyn Handler>, front.admins()), || {
        run::until_stopped(stopped.clone())
    });
    web_ports.serve(site, &config, until, &mut serving);
    let roles = Roles {
        config,
        quorum,
        options,
        member: Arc::clone(&member),
        agreed: Agreed::new(entries),
        front: Arc::clone(&front),
        door,
        web_addrs,
        kept,
        block_tokens: Arc::clone(&block_tokens),
        standing: tells,
        rpc: (rpc_addr, metrics),
        stop: stopped.clone(),
        sending: Arc::default(),
    };
    let until = run::until_stopped(stopped.clone());
    let watch = resources::watch_member(roles.config.clone(), Arc::clone(&member));
    tokio::spawn(async move {
        tokio::select! {
            () = until => {}
            () = watch => {}
        }
    });
    let until = run::until_stopped(stopped.clone());
    serving.spawn(async move {
        tokio::select! {
            () = until => {}
            () = block_tokens.roll_unasked() => {}
        }
    });
    serving.spawn(rpc.serve(Arc::clone(&front), run::until_stopped(stopped)));
    let roles = tokio::spawn(roles.run());
    Ok(RunningReplica {
        rpc_addr,
        http_addr: web_addrs.http,
        https_addr: web_addrs.https,
        standing,
        member,
        front,
        stop,
        roles,
        serving,
    })
}

/// What is to be done when it follows no more.
enum Next {
    /// It leads in that term, and has the entries up to `last`.
    Lead {
        term: u64,
        last: u64,
    },
    End,
}

/// What goes through the roles of a member, one after the other.
struct Roles {
    config: NameNodeConfig,
    quorum: QuorumConfig,
    options: NamesystemOptions,
    member: Arc<Member>,
    agreed: Agreed,
    front: Arc<Front>,
    door: Arc<Door>,
    web_addrs: WebAddrs,
    /// What DataNodes have told while it does not lead.
    kept: Arc<KeptReports>,
    block_tokens: Arc<BlockTokens>,
    standing: watch::Sender<Standing>,
    rpc: (SocketAddr, Arc<RpcMetrics>),
    stop: watch::Receiver<bool>,
    /// Who is sent a snapshot.
    sending: Arc<Mutex<BTreeSet<String>>>,
}

impl Roles {
    async fn run(self) -> Result<(), ReplicaError> {
        let member = Arc::clone(&self.member);
        let done = self.go_through().await;
        // Others may still have hold of it.
        tokio::task::spawn_blocking(move || member.close()).await?;
        done
    }

    async fn go_through(mut self) -> Result<(), ReplicaError> {
        loop {
            let follows = move || {
                let next = self.follow();
                (self, next)
            };
            let (again, next) = tokio::task::spawn_blocking(follows).await?;
            self = again;
            match next? {
                Next::End => return Ok(()),
                Next::Lead { term, last } => self = self.lead(term, last).await?,
            }
            if self.is_to_end() {
                return Ok(());
            }
        }
    }

    /// Takes what is agreed on, until it leads or is to end. Blocks.
    fn follow(&mut self) -> Result<Next, ReplicaError> {
        let mut follower = self.open()?;
        // Dropped before the follower.
        let _reads = Reading(Arc::clone(&self.front));
        let mut look_next = Instant::now();
        loop {
            if self.is_to_end() {
                return Ok(Next::End);
            }
            if let Some(snapshot) = self.member.snapshot() {
                reading::end(&self.front);
                drop(follower);
                self.install(snapshot);
                follower = self.open()?;
            }
            let entry = self.agreed.next().map_err(|_| self.ended())?;
            if let Some(entry) = entry {
                let last = self.take(follower.as_mut(), data(&entry))?;
                self.front.reads().has(last);
                self.agreed.is_logged(&entry, last);
            }
            if let Some(follower) = &mut follower
                && let Some(index) = self.agreed.needless(follower.store_if_due()?)
            {
                self.member.forget(index);
            }
            if Instant::now() >= look_next {
                look_next = Instant::now() + READY_EVERY;
                self.look_whether_ready(follower.as_ref())?;
            }
            let status = self.member.status();
            self.tell(&status);
            let has_all = self.agreed.taken_up_to().is_some_and(|index| index >= status.last);
            if let Some(follower) = follower.as_ref().filter(|_| status.leads && has_all) {
                return Ok(Next::Lead { term: status.term, last: follower.last() });
            }
        }
    }

    /// Whether it was told to end, or whoever could has gone.
    fn is_to_end(&self) -> bool {
        *self.stop.borrow() || self.stop.has_changed().is_err()
    }

    /// Has others lead before it as long as it does not know where blocks are.
    fn look_whether_ready(&self, follower: Option<&Follower>) -> Result<(), ReplicaError> {
        if let Some(follower) = follower {
            self.kept.expect(follower.blocks()?);
        }
        self.member.is_ready(follower.is_some() && self.kept.is_ready());
        Ok(())
    }

    fn open(&self) -> Result<Option<Follower>, ReplicaError> {
        let follower = Follower::open(&self.config.name_dir, &self.options)?;
        self.front.know(follower.as_ref().map(|follower| follower.identity().clone()));
        if let Some(follower) = &follower {
            let block_tokens = Arc::clone(&self.block_tokens);
            let outside = (self.standing.subscribe(), self.rpc.clone(), block_tokens);
            let configured = (&self.config, self.options.superuser.as_str());
            reading::begin(&self.front, follower, configured, &self.kept, outside);
        }
        Ok(follower)
    }

    /// Takes what was agreed on. Returns the last entry that it has.
    fn take(&self, follower: Option<&mut Follower>, group: &[u8]) -> Result<u64, ReplicaError> {
        match follower {
            Some(follower) => {
                // A leader begins with nothing.
                if !group.is_empty() {
                    follower.take(group)?;
                }
                Ok(follower.last())
            }
            None if group.is_empty() => Ok(0),
            None => {
                let (name, quorum) = (self.config.name_dir.clone(), self.quorum.dir.clone());
                Err(ReplicaError::NoNamespace { name, quorum })
            }
        }
    }

    /// Puts a snapshot in the place of what is there, if that is needed. One that can't be used is let go: another will
    /// come.
    fn install(&self, snapshot: Snapshot) {
        if self.member.needs(&snapshot.base) {
            let dir = &self.config.name_dir;
            match install::install(dir, &snapshot.path, self.options.cache_len) {
                Ok(last) => {
                    tracing::info!(
                        last,
                        "a snapshot of the leader has taken the place of the namespace"
                    );
                    self.member.go_on_from(snapshot);
                }
                Err(error @ RestoreError::Mixed { .. }) => {
                    tracing::error!(%error, "this NameNode has the namespace of another file system, and does not join");
                }
                Err(error) => tracing::error!(%error, "a snapshot of the leader is of no use"),
            }
        }
        self.member.remove_snapshot();
    }

    /// Why the quorum has ended.
    fn ended(&self) -> ReplicaError {
        let why = self.member.status().failed;
        ReplicaError::Stopped(why.unwrap_or_else(|| "the quorum has ended".to_string()))
    }

    /// Has others know what it is while it does not lead.
    fn tell(&self, status: &Status) {
        tell(&self.standing, status, &self.quorum);
    }

    /// Leads until that is over.
    async fn lead(mut self, term: u64, last: u64) -> Result<Roles, ReplicaError> {
        let (member, config) = (Arc::clone(&self.member), self.quorum.clone());
        let lead = Arc::new(Lead::new(member, config, term, last));
        let ends = Arc::new(AtomicBool::new(false));
        let (watched, told, member) =
            (Arc::clone(&lead), Arc::clone(&ends), Arc::clone(&self.member));
        let mut agreed = self.agreed;
        let watch = move || {
            agreed.watch(&watched, &told, |index| member.forget(index));
            agreed
        };
        let watch = tokio::task::spawn_blocking(watch);
        let serves = Serves {
            config: &self.config,
            quorum: &self.quorum,
            member: &self.member,
            front: &self.front,
            door: &self.door,
            web_addrs: self.web_addrs,
            kept: &self.kept,
            block_tokens: &self.block_tokens,
            standing: &self.standing,
            rpc: &self.rpc,
            stop: &self.stop,
            sending: &self.sending,
        };
        let over = Over(ends);
        let served = serves.serve(&lead, term).await;
        self.kept.begin_anew();
        drop(over);
        self.agreed = watch.await?;
        served.map(|()| self)
    }
}

/// Has others know what a member is that does not lead.
fn tell(told: &watch::Sender<Standing>, status: &Status, quorum: &QuorumConfig) {
    let term = status.term;
    let leader = status.leader.as_ref().filter(|name| **name != quorum.id);
    let known = leader.and_then(|name| Some((name, quorum.members.get(name)?)));
    let standing = match known {
        Some((name, member)) => {
            let leader = Leader { name: name.clone(), rpc: member.rpc.clone() };
            Standing::Follows { term, leader }
        }
        None => Standing::Nobody { term },
    };
    told.send_if_modified(|told| {
        let is_new = *told != standing;
        *told = standing;
        is_new
    });
}

/// Ends what watches over a lead when it goes, also where nobody comes to the end of it: a blocking task outlives those
/// who have begun it.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Tells of members whose configuration says otherwise what commands obey, when there are others than before.
fn warn_of_settings(told: &mut BTreeSet<String>, differ: BTreeSet<String>) {
    if *told == differ {
        return;
    }
    for member in differ.difference(told) {
        tracing::warn!(
            member,
            "a member is configured otherwise than this NameNode, which leads: its log names the settings, which would be in force if it led"
        );
    }
    *told = differ;
}

/// What a member that leads needs of its roles.
struct Serves<'a> {
    config: &'a NameNodeConfig,
    quorum: &'a QuorumConfig,
    member: &'a Arc<Member>,
    front: &'a Front,
    door: &'a Door,
    web_addrs: WebAddrs,
    kept: &'a Arc<KeptReports>,
    block_tokens: &'a Arc<BlockTokens>,
    standing: &'a watch::Sender<Standing>,
    rpc: &'a (SocketAddr, Arc<RpcMetrics>),
    stop: &'a watch::Receiver<bool>,
    sending: &'a Arc<Mutex<BTreeSet<String>>>,
}

impl Serves<'_> {
    /// Is a NameNode until the lead is lost or it is to end.
    async fn serve(&self, lead: &Arc<Lead>, term: u64) -> Result<(), ReplicaError> {
        let outside = Outside {
            rpc_addr: self.rpc.0,
            rpc_metrics: Arc::clone(&self.rpc.1),
            web_addrs: self.web_addrs,
            standing: self.standing.subscribe(),
            lead: Arc::clone(lead),
            kept: Arc::clone(self.kept),
            block_tokens: Arc::clone(self.block_tokens),
        };
        self.standing.send_replace(Standing::Leads { term });
        let running = match NameNode::start_within(self.config.clone(), outside).await {
            Ok(running) => running,
            Err(error) if lead.is_lost() => {
                tracing::warn!(%error, term, "the lead was lost before this NameNode served");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        tracing::info!(term, "this NameNode leads");
        let service = Arc::new(Protocols(Arc::clone(running.node())));
        let site = running.site();
        let pages =
            site.clone().map(|site| Arc::new(Makes::new(site, run::chooser(running.node()))));
        self.door.lead(site.map(|site| LeadingSite { site, lead: Arc::clone(lead) }));
        self.front.lead(Some(Leading { service, lead: Arc::clone(lead), pages }));
        let mut differ = BTreeSet::new();
        // Which it stays: the safe mode of a start ends once.
        let mut is_ready = false;
        let mut look_next = Instant::now();
        let failure = loop {
            tokio::select! {
                biased;
                () = lead.lost() => break None,
                () = run::until_stopped(self.stop.clone()) => break None,
                why = running.stopped() => break Some(why).filter(|_| !lead.is_lost()),
                () = tokio::time::sleep(LOOK_EVERY) => {
                    lead.look();
                    self.send_snapshots(running.node());
                    warn_of_settings(&mut differ, lead.configured_otherwise());
                    if !is_ready && Instant::now() >= look_next {
                        look_next = Instant::now() + READY_EVERY;
                        is_ready = running.node().cluster().safe_mode().has_enough();
                        self.member.is_ready(is_ready);
                    }
                }
            }
        };
        self.front.lead(None);
        self.door.lead(None);
        self.kept.begin_anew();
        // Calls under way are the next leader's.
        lead.lose();
        tracing::info!(term, "this NameNode does not lead any more");
        if failure.is_some() {
            self.hand_over().await?;
        }
        let ns = Arc::clone(&running.node().ns);
        let closes = async {
            if tokio::time::timeout(END_PATIENCE, running.shutdown()).await.is_err() {
                tracing::warn!("what the NameNode was at when it lost the lead is broken off");
            }
            tokio::task::spawn_blocking(move || ns.close()).await
        };
        tokio::pin!(closes);
        // Calls that wait go to the next leader meanwhile.
        loop {
            tokio::select! {
                closed = &mut closes => break closed?,
                () = tokio::time::sleep(LOOK_EVERY) => {
                    let status = self.member.status();
                    tell(self.standing, &status, self.quorum);
                }
            }
        }
        match failure {
            Some(why) => Err(ReplicaError::Stopped(why)),
            None => Ok(()),
        }
    }

    /// Has another member lead before this one ends, as one does whose disk is full.
    async fn hand_over(&self) -> Result<(), JoinError> {
        let member = Arc::clone(self.member);
        let asked = tokio::task::spawn_blocking(move || member.hand_over(None)).await?;
        let until = tokio::time::Instant::now() + self.quorum.election_timeout;
        let is_leader = |status: Status| status.leader.as_ref() == Some(&self.quorum.id);
        while asked.is_some()
            && is_leader(self.member.status())
            && tokio::time::Instant::now() < until
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Sends snapshots to those who want one.
    fn send_snapshots(&self, node: &Arc<NameNode>) {
        for name in self.member.status().wants {
            if !held(self.sending).insert(name.clone()) {
                continue;
            }
            let (member, node, sending) =
                (Arc::clone(self.member), Arc::clone(node), Arc::clone(self.sending));
            tokio::task::spawn_blocking(move || {
                let make = |out: &mut dyn FnMut(Vec<u8>) -> bool| {
                    node.ns
                        .back_up(None, out)
                        .map(|_| ())
                        .map_err(|error: BackupError| error.to_string())
                };
                match member.send_snapshot(&name, make) {
                    Ok(()) => tracing::info!(name, "a member of the quorum has got a snapshot"),
                    Err(error) => {
                        tracing::warn!(name, %error, "a member of the quorum got no snapshot");
                    }
                }
                // It says whether it wants another one when it has put this one in force.
                std::thread::sleep(SNAPSHOT_REST);
                held(&sending).remove(&name);
            });
        }
    }
}
