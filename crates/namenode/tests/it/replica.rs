//! Members of a quorum in this process: one founds, the others join, one leads; when it ends another one goes on with all
//! that was acknowledged, and nobody else answers.

mod kerberos;
mod policy;
mod readiness;
mod reads;

use crate::backup::keep;
use crate::cluster::{CLIENT, Client, FakeDataNode, config};
use crate::delegation::{self, Shown};
use crate::ports::free_addr;
use crate::upgrade::upgrade;
use cairn_namenode::NameNodeConfig;
use cairn_namenode::block_tokens::BlockTokenConfig;
use cairn_namenode::config::quorum::{MemberConfig, QuorumConfig};
use cairn_namenode::journal::backup::restore::{Until, restore};
use cairn_namenode::replica::{self, RunningReplica};
use cairn_namenode::standing::Standing;
use cairn_wire::exception::class;
use cairn_wire::proto::common as hadoop;
use cairn_wire::proto::hdfs as pb;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const NAMES: [&str; 3] = ["nn1", "nn2", "nn3"];
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Three {
    dir: TempDir,
    pub members: BTreeMap<String, MemberConfig>,
    pub running: [Option<RunningReplica>; 3],
    pub forwards: bool,
    /// Who may use which protocol, if not all may.
    policy: Option<Vec<(String, String)>>,
    /// Whether clients have to show who they are.
    is_secure: bool,
    block_tokens: Option<BlockTokenConfig>,
}

impl Three {
    /// Three of which the first has founded.
    pub async fn new() -> Three {
        let member = || MemberConfig { rpc: free_addr(), quorum: free_addr() };
        let members = NAMES.iter().map(|name| (name.to_string(), member())).collect();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), "what all members have\n").unwrap();
        let three = Three {
            dir,
            members,
            running: [None, None, None],
            forwards: false,
            policy: None,
            is_secure: false,
            block_tokens: None,
        };
        assert!(replica::found(three.config(0)).await.unwrap());
        assert!(!replica::found(three.config(0)).await.unwrap(), "it has one");
        three
    }

    fn config(&self, at: usize) -> NameNodeConfig {
        let name_dir = self.dir.path().join(NAMES[at]);
        let id = NAMES[at].to_string();
        NameNodeConfig {
            rpc_addr: self.members[&id].rpc.parse().unwrap(),
            quorum: Some(QuorumConfig {
                members: self.members.clone(),
                key_file: self.dir.path().join("key"),
                tls: None,
                dir: name_dir.join("quorum"),
                // Long enough for a machine on which other tests run.
                election_timeout: Duration::from_millis(800),
                id,
                forwards: self.forwards,
            }),
            service_policy: self.policy.clone(),
            security: self.is_secure.then(delegation::security),
            block_tokens: self.block_tokens.clone(),
            ..config(&name_dir)
        }
    }

    pub async fn start_all(&mut self) {
        for at in 0..3 {
            self.start(at).await;
        }
    }

    pub async fn stop_all(&mut self) {
        for at in 0..3 {
            self.stop(at).await;
        }
    }

    async fn start(&mut self, at: usize) {
        self.running[at] = Some(replica::start(self.config(at)).await.unwrap());
    }

    pub async fn stop(&mut self, at: usize) {
        self.running[at].take().unwrap().shutdown().await;
    }

    fn standing(&self, at: usize) -> Option<Standing> {
        Some(self.running[at].as_ref()?.standing().borrow().clone())
    }

    /// Three that hand calls on, all of whom vote, and which of them leads.
    async fn that_hand_on() -> (Three, usize) {
        let mut three = Three::new().await;
        three.forwards = true;
        let leader = three.begin().await;
        (three, leader)
    }

    /// Starts all, and says which one leads once all vote.
    async fn begin(&mut self) -> usize {
        let three = self;
        three.start_all().await;
        three.leader().await;
        three.wait_for_voters().await;
        three.leader().await
    }

    /// Which one leads, and answers.
    pub async fn leader(&self) -> usize {
        let begun = Instant::now();
        loop {
            let leads = |at: &usize| matches!(self.standing(*at), Some(Standing::Leads { .. }));
            if let Some(at) = (0..3).find(leads)
                && self.has(at, "/").await == Ok(true)
            {
                return at;
            }
            let all: Vec<_> = (0..3).map(|at| self.standing(at)).collect();
            assert!(begun.elapsed() < PATIENCE, "nobody leads: {all:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn client(&self, at: usize) -> Client {
        let addr = &self.members[NAMES[at]].rpc;
        match self.is_secure {
            true => {
                let shown = Shown::Ticket(delegation::NAMENODE);
                Client::shown(delegation::at(addr, CLIENT, Some(shown)))
            }
            false => Client::at(addr, CLIENT, "hdfs"),
        }
    }

    /// Whether a path is there, or the class of the exception.
    async fn has(&self, at: usize, path: &str) -> Result<bool, String> {
        let request = pb::GetFileInfoRequestProto { src: path.to_string() };
        let answer: Result<pb::GetFileInfoResponseProto, _> =
            self.client(at).call("getFileInfo", &request).await;
        match answer {
            Ok(answer) => Ok(answer.fs.is_some()),
            Err(cairn_net::rpc_client::RpcError::Remote(exception)) => Err(exception.class),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Until three members vote, and none of before: two go on without the third one then.
    pub async fn wait_for_voters(&self) {
        let begun = Instant::now();
        loop {
            let ids: Vec<_> = self.running.iter().flatten().map(RunningReplica::id).collect();
            let knows_all = |replica: &RunningReplica| {
                let members = replica.members();
                members.0.len() == 3 && ids.iter().all(|id| members.is_voter(*id))
            };
            if ids.len() == 3 && self.running.iter().flatten().all(knows_all) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not all vote");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn wait_for_standing(&self, at: usize, is_so: impl Fn(&Standing) -> bool) {
        let begun = Instant::now();
        while !self.standing(at).is_some_and(|standing| is_so(&standing)) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.standing(at));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Makes a directory at whoever leads; a call that gets no answer is made again.
    pub async fn make(&self, path: &str) {
        let begun = Instant::now();
        loop {
            let leader = self.leader().await;
            match self.client(leader).try_mkdirs(path).await {
                Ok(()) => return,
                // On a machine that is busy another one may lead by now.
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{path}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn follows(standing: &Standing) -> bool {
    matches!(standing, Standing::Follows { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn members_join_and_go_on_without_their_leader() {
    let mut three = Three::new().await;
    three.start(0).await;
    three.make("/alone").await;
    three.start(1).await;
    three.start(2).await;
    three.wait_for_standing(1, follows).await;
    three.wait_for_standing(2, follows).await;
    let refused = three.has(1, "/alone").await;
    assert_eq!(refused, Err(class::STANDBY.to_string()));
    for number in 0..20 {
        three.make(&format!("/d{number}")).await;
    }
    three.wait_for_voters().await;
    let first = three.leader().await;
    three.stop(first).await;
    let second = three.leader().await;
    assert_ne!(first, second);
    for path in ["/alone", "/d0", "/d19"] {
        assert_eq!(three.has(second, path).await, Ok(true), "{path}");
    }
    three.make("/second").await;
    three.start(first).await;
    three.wait_for_standing(first, follows).await;
    // Somebody new, who finds an empty folder.
    let emptied = (0..3).find(|at| *at != first && *at != second).unwrap();
    three.stop(emptied).await;
    std::fs::remove_dir_all(three.dir.path().join(NAMES[emptied])).unwrap();
    three.start(emptied).await;
    three.wait_for_standing(emptied, follows).await;
    three.make("/third").await;
    three.wait_for_voters().await;
    three.stop(second).await;
    let third = three.leader().await;
    for path in ["/alone", "/d7", "/second", "/third"] {
        assert_eq!(three.has(third, path).await, Ok(true), "{path}");
    }
    three.stop(third).await;
    let last = (0..3).find(|at| *at != second && *at != third).unwrap();
    let begun = Instant::now();
    three.wait_for_standing(last, |standing| !standing.leads()).await;
    let refused = three.has(last, "/alone").await;
    assert_eq!(refused, Err(class::STANDBY.to_string()), "one of three decides nothing");
    assert!(begun.elapsed() < PATIENCE);
    for at in 0..3 {
        if three.running[at].is_some() {
            three.stop(at).await;
        }
    }
}

/// Nobody waits for an election timeout: when it has ended the others know already who leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_hands_over_first() {
    let (mut three, leader) = Three::that_hand_on().await;
    let term = three.standing(leader).unwrap().term().unwrap();
    let other = (leader + 1) % 3;
    three.stop(leader).await;
    // Sooner than anybody would stand by itself.
    let begun = Instant::now();
    while three.standing(other).unwrap().term() == Some(term) {
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", three.standing(other));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    three.make("/after").await;
    // The last of them has nobody to hand over to, and ends all the same.
    for at in (0..3).filter(|at| *at != leader) {
        three.stop(at).await;
    }
}

/// Two of three are lost for good.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_left_goes_on_alone_and_others_join_it() {
    let mut three = Three::new().await;
    three.start_all().await;
    three.make("/before").await;
    three.wait_for_voters().await;
    let running = replica::force(three.config(1), false).await;
    assert!(running.is_err(), "it runs");
    three.stop_all().await;
    let seen = replica::force(three.config(1), false).await.unwrap().unwrap();
    assert!(!seen.is_done && seen.left.members.voters().count() == 3, "{seen:?}");
    let again = replica::force(three.config(1), false).await.unwrap().unwrap();
    assert_eq!(again, seen, "looking changes nothing");
    let forced = replica::force(three.config(1), true).await.unwrap().unwrap();
    assert!(forced.is_done && forced.left == seen.left, "{forced:?}");
    three.start(1).await;
    three.make("/after").await;
    assert_eq!(three.has(1, "/before").await, Ok(true));
    let term = three.standing(1).unwrap().term().unwrap();
    assert!(term > seen.left.term + 100, "DataNodes follow the highest term: {term}");
    // Who comes back as it was is not listened to, and does not disturb.
    three.start(0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!three.standing(0).unwrap().leads());
    assert_eq!(three.standing(1).unwrap().term(), Some(term));
    assert_eq!(three.running[1].as_ref().unwrap().members().0.len(), 1);
    three.stop(0).await;
    for at in [0, 2] {
        std::fs::remove_dir_all(three.config(at).quorum.unwrap().dir).unwrap();
        three.start(at).await;
    }
    three.wait_for_voters().await;
    three.make("/joined").await;
    three.stop(1).await;
    let next = three.leader().await;
    for path in ["/before", "/after", "/joined"] {
        assert_eq!(three.has(next, path).await, Ok(true), "{path}");
    }
    for at in [0, 2] {
        three.stop(at).await;
    }
}

/// What it has begun ends with it: the runtime waits for that.
#[test]
fn a_leader_that_is_given_up_without_a_shutdown_ends() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let three = runtime.block_on(async {
        let mut three = Three::new().await;
        three.start(0).await;
        three.make("/alone").await;
        three
    });
    let (ended, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(three);
        drop(runtime);
        ended.send(())
    });
    assert_eq!(waits.recv_timeout(PATIENCE), Ok(()), "something goes on");
}

/// It is known to them when it leads, and claims so that they follow.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_follows_takes_datanodes_in_and_gives_no_orders() {
    let mut three = Three::new().await;
    three.start_all().await;
    three.leader().await;
    three.wait_for_voters().await;
    let leader = three.leader().await;
    let mut datanodes = Vec::new();
    for name in NAMES {
        datanodes.push(FakeDataNode::start_at(&three.members[name].rpc, 1, &[]).await);
    }
    let (active, standby) = (
        pb::NNHAStatusHeartbeatProtoState::Active as i32,
        pb::NNHAStatusHeartbeatProtoState::Standby as i32,
    );
    let mut claimed = 0;
    for (at, datanode) in datanodes.iter().enumerate() {
        let answer = datanode.heartbeat_with_slow(Vec::new(), Vec::new()).await;
        let expected = if at == leader { active } else { standby };
        assert_eq!((answer.ha_status.state, answer.cmds), (expected, vec![]), "{at}");
        if at == leader {
            claimed = answer.ha_status.txid;
        }
    }
    three.stop(leader).await;
    let next = three.leader().await;
    let answer = datanodes[next].heartbeat_with_slow(Vec::new(), Vec::new()).await;
    assert_eq!(answer.ha_status.state, active);
    assert!(answer.ha_status.txid > claimed && claimed > 1 << 43);
    assert_eq!(answer.cmds, [], "it has registered");
    for at in (0..3).filter(|at| *at != leader) {
        three.stop(at).await;
    }
}

/// What one DataNode tells three members.
struct ToAll(Vec<FakeDataNode>);

impl ToAll {
    async fn start(three: &Three, number: u16) -> ToAll {
        let mut all = Vec::new();
        for name in NAMES {
            all.push(FakeDataNode::start_at(&three.members[name].rpc, number, &[]).await);
        }
        ToAll(all)
    }

    async fn received(&self, members: impl Iterator<Item = usize>, block: &pb::BlockProto) {
        for at in members {
            self.0[at].received(block.clone(), None).await;
        }
    }
}

fn replica_of(block: &pb::ExtendedBlockProto, len: u64) -> pb::BlockProto {
    pb::BlockProto {
        block_id: block.block_id,
        gen_stamp: block.generation_stamp,
        num_bytes: Some(len),
    }
}

/// Also of those that were told before their entry came, and of a file that was being written.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_knows_where_blocks_are_and_deletes_nothing_before_it_is_told_anew() {
    let mut three = Three::new().await;
    three.start_all().await;
    three.leader().await;
    three.wait_for_voters().await;
    let leader = three.leader().await;
    let mut datanodes = Vec::new();
    for number in 1..4 {
        datanodes.push(ToAll::start(&three, number).await);
    }
    let client = three.client(leader);
    client.create("/whole", "writer").await;
    let whole = client.add_block("/whole", "writer", None).await.b;
    let replica = replica_of(&whole, 77);
    for datanode in &datanodes {
        datanode.received(0..3, &replica).await;
    }
    let last = pb::ExtendedBlockProto { num_bytes: Some(77), ..whole.clone() };
    assert!(client.complete("/whole", "writer", Some(last)).await);
    // The next one has the next number and stamp; its DataNodes are faster than what is agreed on.
    let early = pb::BlockProto {
        block_id: whole.block_id + 1,
        gen_stamp: whole.generation_stamp + 1,
        num_bytes: Some(5),
    };
    let others = || (0..3).filter(move |at| *at != leader);
    for datanode in &datanodes {
        datanode.received(others(), &early).await;
    }
    client.create("/early", "writer").await;
    let block = client.add_block("/early", "writer", None).await.b;
    assert_eq!(replica_of(&block, 5), early);
    for datanode in &datanodes {
        datanode.received([leader].into_iter(), &early).await;
    }
    let last = pb::ExtendedBlockProto { num_bytes: Some(5), ..block };
    assert!(client.complete("/early", "writer", Some(last)).await);
    // One too many of which the next leader does not know whether it is there still.
    let copies = pb::SetReplicationRequestProto { src: "/whole".into(), replication: 2 };
    three.stop(leader).await;
    let next = three.leader().await;
    let client = three.client(next);
    assert!(!client.safe_mode(pb::SafeModeActionProto::SafemodeGet).await, "it knows all");
    for path in ["/whole", "/early"] {
        let located = client.locations(path).await;
        assert_eq!(located.blocks[0].locs.len(), 3, "{path}");
    }
    let _: pb::SetReplicationResponseProto = client.call("setReplication", &copies).await.unwrap();
    let deletions = async |seconds: u64| {
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut deletions = 0;
        while deletions == 0 && Instant::now() < until {
            for datanode in &datanodes {
                let orders = datanode.0[next].heartbeat().await;
                deletions += orders.iter().filter(|order| order.blk_cmd.is_some()).count();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        deletions
    };
    assert_eq!(deletions(1).await, 0);
    for datanode in &datanodes {
        datanode.0[next].report_under_lease(&[replica.clone(), early.clone()]).await;
    }
    assert_eq!(deletions(30).await, 1);
    for at in others() {
        three.stop(at).await;
    }
}

const HA: &str = "org.apache.hadoop.ha.HAServiceProtocol";

impl Three {
    /// What a member says of itself to `haadmin`.
    async fn service_state(&self, at: usize) -> (i32, bool) {
        let client = Client::at(&self.members[NAMES[at]].rpc, HA, "hdfs");
        let told: hadoop::GetServiceStatusResponseProto = client
            .call("getServiceStatus", &hadoop::GetServiceStatusRequestProto {})
            .await
            .unwrap();
        (told.state, told.ready_to_become_active())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_the_leader_answers_and_the_lead_can_be_moved() {
    let (mut three, leader) = Three::that_hand_on().await;
    for at in 0..3 {
        let path = format!("/by{at}");
        three.client(at).mkdirs(&path).await;
        for asked in 0..3 {
            assert_eq!(three.has(asked, &path).await, Ok(true), "{path} at {asked}");
        }
        assert_eq!(three.has(at, "/none").await, Ok(false));
    }
    // An exception of the leader is that of who was asked.
    let next = (leader + 1) % 3;
    let request = pb::GetListingRequestProto { src: "/none".into(), ..Default::default() };
    let missing: Result<pb::GetListingResponseProto, _> =
        three.client(next).call("getListing", &request).await;
    assert_eq!(missing.unwrap().dir_list, None);
    let save: Result<pb::SaveNamespaceResponseProto, _> =
        three.client(next).call("saveNamespace", &pb::SaveNamespaceRequestProto::default()).await;
    assert!(save.unwrap_err().is_remote(class::UNSUPPORTED_OPERATION));
    let (active, standby) =
        (hadoop::HAServiceStateProto::Active as i32, hadoop::HAServiceStateProto::Standby as i32);
    for at in 0..3 {
        let state = if at == leader { active } else { standby };
        assert_eq!(three.service_state(at).await, (state, true), "{at}");
    }
    let client = Client::at(&three.members[NAMES[next]].rpc, HA, "hdfs");
    let req_info = || hadoop::HAStateChangeRequestInfoProto {
        req_source: hadoop::HARequestSource::RequestByUser as i32,
    };
    let _: hadoop::TransitionToActiveResponseProto = client
        .call(
            "transitionToActive",
            &hadoop::TransitionToActiveRequestProto { req_info: req_info() },
        )
        .await
        .unwrap();
    assert_eq!(three.service_state(next).await, (active, true));
    three.client(leader).mkdirs("/moved").await;
    // Whoever leads gives it to one of the others.
    let term = three.standing(next).unwrap().term();
    let _: hadoop::TransitionToStandbyResponseProto = client
        .call(
            "transitionToStandby",
            &hadoop::TransitionToStandbyRequestProto { req_info: req_info() },
        )
        .await
        .unwrap();
    three.wait_for_standing(next, |standing| standing.term() > term).await;
    let _: hadoop::TransitionToActiveResponseProto = client
        .call(
            "transitionToActive",
            &hadoop::TransitionToActiveRequestProto { req_info: req_info() },
        )
        .await
        .unwrap();
    assert_eq!(three.service_state(next).await, (active, true));
    // The leader ends; a client of another one only waits.
    three.stop(next).await;
    three.client(leader).mkdirs("/after").await;
    assert_eq!(three.has(leader, "/moved").await, Ok(true));
    for at in (0..3).filter(|at| *at != next) {
        three.stop(at).await;
    }
}

/// What watchers are told of who have seen all before the entry `next`: the paths that were made, whether nothing is
/// missing, and the next entry.
async fn told(client: &Client, next: i64) -> (Vec<String>, bool, i64) {
    let request = pb::GetEditsFromTxidRequestProto { txid: next };
    let answer: pb::GetEditsFromTxidResponseProto =
        client.call("getEditsFromTxid", &request).await.unwrap();
    let list = answer.events_list;
    let events = list.batch.into_iter().flat_map(|batch| batch.events);
    let made = events.map(|event| {
        let made = <pb::CreateEventProto as prost::Message>::decode(&event.contents[..]);
        made.unwrap().path
    });
    (made.collect(), list.first_txid == next, list.last_txid + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_miss_nothing_when_another_member_leads() {
    let mut three = Three::new().await;
    three.start_all().await;
    three.wait_for_voters().await;
    let first = three.leader().await;
    let request = pb::GetCurrentEditLogTxidRequestProto {};
    let answer: pb::GetCurrentEditLogTxidResponseProto =
        three.client(first).call("getCurrentEditLogTxid", &request).await.unwrap();
    let begins = answer.txid + 1;
    let paths = |numbers: std::ops::Range<usize>| -> Vec<String> {
        numbers.map(|number| format!("/w{number}")).collect()
    };
    for path in paths(0..5) {
        three.make(&path).await;
    }
    let (made, is_all, next) = told(&three.client(first), begins).await;
    assert_eq!((made, is_all), (paths(0..5), true));
    for path in paths(5..8) {
        three.make(&path).await;
    }
    three.stop(first).await;
    let second = three.leader().await;
    three.make("/w8").await;
    // One goes on, another one has been away, and one who asks for what nobody watched is told so.
    let (made, is_all, _) = told(&three.client(second), next).await;
    assert_eq!((made, is_all), (paths(5..9), true));
    let (made, is_all, _) = told(&three.client(second), begins).await;
    assert_eq!((made, is_all), (paths(0..9), true));
    assert!(!told(&three.client(second), 1).await.1, "it is said that something is missing");
    three.start(first).await;
    three.wait_for_standing(first, follows).await;
    three.stop_all().await;
    three.start_all().await;
    let third = three.leader().await;
    let (made, is_all, _) = told(&three.client(third), begins).await;
    assert_eq!((made, is_all), (paths(0..9), true), "all were stopped");
    three.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_prepared_is_known_to_all_and_can_be_gone_back_from() {
    use pb::RollingUpgradeActionProto::{Finalize, Query, Start};
    let mut three = Three::new().await;
    three.start_all().await;
    three.wait_for_voters().await;
    three.make("/before").await;
    let first = three.leader().await;
    let client = three.client(first);
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    let prepared = upgrade(&client, Start).await.unwrap().unwrap();
    assert!(prepared.created_rollback_images);
    three.make("/since").await;
    three.stop(first).await;
    let second = three.leader().await;
    let found = upgrade(&three.client(second), Query).await.unwrap().unwrap();
    assert_eq!((found.start_time, found.created_rollback_images), (prepared.start_time, true));
    three.make("/later").await;
    three.start(first).await;
    three.wait_for_standing(first, follows).await;
    three.stop_all().await;
    let back = || NameNodeConfig { roll_back: true, ..three.config(first) };
    assert!(replica::start(back()).await.is_err(), "not without --found-quorum");
    assert!(replica::found(back()).await.unwrap());
    assert!(replica::found(back()).await.is_err(), "it is back already");
    three.start(first).await;
    assert_eq!(three.leader().await, first, "it is alone");
    for at in (0..3).filter(|at| *at != first) {
        std::fs::remove_dir_all(three.dir.path().join(NAMES[at]).join("quorum")).unwrap();
        three.start(at).await;
    }
    three.wait_for_voters().await;
    three.make("/after").await;
    assert_eq!(upgrade(&three.client(first), Query).await.unwrap(), None);
    three.stop(first).await;
    let third = three.leader().await;
    for (path, is_there) in
        [("/before", true), ("/since", false), ("/later", false), ("/after", true)]
    {
        assert_eq!(three.has(third, path).await, Ok(is_there), "{path}");
    }
    // Once more, to its end.
    three.start(first).await;
    three.wait_for_standing(first, follows).await;
    let client = three.client(third);
    assert!(client.safe_mode(pb::SafeModeActionProto::SafemodeEnter).await);
    upgrade(&client, Start).await.unwrap().unwrap();
    assert!(upgrade(&client, Finalize).await.unwrap().unwrap().status.finalized());
    assert_eq!(upgrade(&client, Query).await.unwrap(), None);
    three.make("/end").await;
    for (at, name) in NAMES.iter().enumerate() {
        three.stop(at).await;
        assert!(!three.dir.path().join(name).join("rollback").exists(), "{name}");
    }
}

async fn is_restored(client: &Client, accept: bool) -> bool {
    let request = pb::AcceptRestoredRequestProto { accept: Some(accept) };
    let answer: pb::AcceptRestoredResponseProto =
        client.call("acceptRestored", &request).await.unwrap();
    answer.restored()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_namespace_is_held_whoever_leads_until_it_is_accepted() {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let namesystem = crate::journal::open(dir.path());
    keep(&namesystem, folder.path(), None);
    namesystem.close();
    let mut three = Three::new().await;
    let name_dir = three.dir.path().join(NAMES[0]);
    std::fs::remove_dir_all(&name_dir).unwrap();
    restore(folder.path(), &name_dir, Until::End, 1 << 20).unwrap();
    assert!(replica::found(three.config(0)).await.unwrap());
    three.start_all().await;
    three.wait_for_voters().await;
    let first = three.leader().await;
    assert!(is_restored(&three.client(first), false).await);
    three.stop(first).await;
    let second = three.leader().await;
    assert!(is_restored(&three.client(second), false).await, "another one leads");
    assert!(is_restored(&three.client(second), true).await);
    assert!(!is_restored(&three.client(second), false).await);
    three.start(first).await;
    three.wait_for_standing(first, follows).await;
    three.make("/accepted").await;
    three.stop(second).await;
    let third = three.leader().await;
    assert!(!is_restored(&three.client(third), false).await, "it was accepted");
    for at in (0..3).filter(|at| *at != second) {
        three.stop(at).await;
    }
}
