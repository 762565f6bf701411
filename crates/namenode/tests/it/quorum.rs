//! Members of a quorum over real sockets and files: they agree, go on without one another, and nobody is believed who
//! may not lead any more.

use cairn_namenode::quorum::{
    self, Credentials, Key, Member, NotAgreed, Options, Place, StartError,
};
use cairn_net::reach::Reach;
use cairn_net::tls::TlsFiles;
use cairn_net::tls::mutual::MutualTls;
use cairn_quorum::{Entry, Payload};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NAMES: [&str; 3] = ["a", "b", "c"];
const TURN: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(60);

fn credentials() -> Credentials {
    Credentials { key: Key::new(b"what all members have").unwrap(), tls: None }
}

/// The same with a certificate, which the others believe. It is one of the tests of `cairn-net`.
fn with_certificate() -> Credentials {
    let at = |end: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/src/tls/one").with_extension(end)
    };
    let files = TlsFiles { certificate: at("pem"), key: at("key") };
    let tls = MutualTls::open(files, &at("pem")).unwrap();
    Credentials { tls: Some(Arc::new(tls)), ..credentials() }
}

/// Three places for members.
struct Three {
    dirs: [TempDir; 3],
    addrs: [SocketAddr; 3],
    members: [Option<(Member, Receiver<Entry>)>; 3],
    credentials: Credentials,
}

impl Three {
    fn new() -> Three {
        Three::with(credentials())
    }

    fn with(credentials: Credentials) -> Three {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addrs = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let mut three = Three { dirs, addrs, members: [None, None, None], credentials };
        assert!(quorum::found(three.dirs[0].path(), NAMES[0]).unwrap());
        for (at, listener) in listeners.into_iter().enumerate() {
            three.start_at(at, listener);
        }
        three.wait("all to vote", |three| {
            let status = three.leader().map(|leader| three.member(leader).status());
            status.is_some_and(|status| status.members.voters().count() == 3)
        });
        three
    }

    fn options(&self, at: usize, listener: TcpListener) -> Options {
        let others = (0..3).filter(|other| *other != at);
        let others = others.map(|other| (NAMES[other].to_string(), self.addrs[other].to_string()));
        Options {
            dir: self.dirs[at].path().to_owned(),
            name: NAMES[at].to_string(),
            listener,
            others: others.collect::<BTreeMap<_, _>>(),
            credentials: self.credentials.clone(),
            turn: TURN,
            // The last one is configured otherwise.
            settings: at as u64 / 2,
            reach: Reach::default(),
        }
    }

    fn start_at(&mut self, at: usize, listener: TcpListener) {
        self.members[at] = Some(Member::start(self.options(at, listener)).unwrap());
    }

    fn start(&mut self, at: usize) {
        self.start_at(at, TcpListener::bind(self.addrs[at]).unwrap());
    }

    fn member(&self, at: usize) -> &Member {
        &self.members[at].as_ref().unwrap().0
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..3).filter(|at| self.members[*at].is_some())
    }

    fn leader(&self) -> Option<usize> {
        self.running().find(|at| self.may_answer(*at))
    }

    fn may_answer(&self, at: usize) -> bool {
        self.member(at).may_answer(self.member(at).status().term)
    }

    fn propose(&self, at: usize, data: Vec<u8>) -> Result<Place, NotAgreed> {
        let member = self.member(at);
        let place = member.propose(member.status().term, data)?;
        member.shown(place);
        Ok(place)
    }

    /// Has snapshots sent and put in force. There is nothing in them: what is agreed on is kept nowhere else.
    fn send_snapshots(&self) {
        for at in self.running() {
            for name in self.member(at).status().wants {
                // Another one may be on its way.
                let _ = self.member(at).send_snapshot(&name, |out| match out(vec![1, 2, 3]) {
                    true => Ok(()),
                    false => Err("nobody takes it".to_string()),
                });
            }
            if let Some(snapshot) = self.member(at).snapshot() {
                assert_eq!(std::fs::read(&snapshot.path).unwrap(), [1, 2, 3]);
                if self.member(at).needs(&snapshot.base) {
                    self.member(at).go_on_from(snapshot);
                }
                self.member(at).remove_snapshot();
            }
        }
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Three) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            let told: Vec<_> = self.running().map(|at| self.member(at).status()).collect();
            assert!(begun.elapsed() < PATIENCE, "waited for {what}: {told:?}");
            self.send_snapshots();
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Has values agreed on by whoever leads, and tells the index of the last one. One that was not known to be is
    /// proposed again, so it may come twice.
    fn agree(&self, values: std::ops::Range<u8>) -> u64 {
        let mut last = 0;
        for value in values {
            let begun = Instant::now();
            loop {
                assert!(begun.elapsed() < PATIENCE, "nobody leads");
                match self.leader().map(|leader| self.propose(leader, vec![value])) {
                    Some(Ok(Place { index, .. })) => {
                        last = index;
                        break;
                    }
                    _ => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        }
        last
    }

    /// The values that come out of a member until so many different ones have.
    fn values(&self, at: usize, count: usize) -> Vec<u8> {
        let mut values: Vec<u8> = Vec::new();
        while values.iter().collect::<std::collections::BTreeSet<_>>().len() < count {
            let begun = Instant::now();
            let entry = loop {
                self.send_snapshots();
                match self.members[at].as_ref().unwrap().1.recv_timeout(TURN) {
                    Ok(entry) => break entry,
                    Err(_) => assert!(begun.elapsed() < PATIENCE, "nothing comes"),
                }
            };
            if let Payload::Data(data) = entry.payload {
                values.extend(data);
            }
        }
        values
    }
}

#[test]
fn three_agree_and_go_on_without_their_leader() {
    let mut three = Three::new();
    three.agree(0..20);
    let first = three.leader().unwrap();
    three.members[first] = None;
    three.wait("another one to lead", |three| three.leader().is_some());
    three.agree(20..40);
    three.start(first);
    let all = NAMES.len();
    let values: Vec<Vec<u8>> = (0..all).map(|at| three.values(at, 40)).collect();
    assert!(values[0].iter().copied().is_sorted(), "{values:?}");
    assert!(values.iter().all(|these| *these == values[0]), "{values:?}");
    // All at once, and from a log that begins later.
    let last = three.member(three.leader().unwrap()).status().last;
    three.running().for_each(|at| three.member(at).forget(last - 5));
    three.agree(40..41);
    three.members = [None, None, None];
    (0..all).for_each(|at| three.start(at));
    three.agree(41..60);
    for at in 0..all {
        // Those that were agreed on when the front was forgotten, at the most, and what came later.
        let (begun, mut values) = (Instant::now(), vec![]);
        while values.last() != Some(&59) {
            assert!(begun.elapsed() < PATIENCE, "{values:?}");
            values.extend(three.values(at, 1));
        }
        assert!(values.is_sorted() && values[0] > 30, "{values:?}");
    }
}

/// Found by a storm: members on one machine shared a folder, and wrote one log over another.
#[test]
fn two_members_have_no_folder_together() {
    let three = Three::new();
    let second = three.options(0, TcpListener::bind("127.0.0.1:0").unwrap());
    assert!(matches!(Member::start(second), Err(StartError::InUse { .. })));
    let again = quorum::found(three.dirs[0].path(), "a");
    assert!(matches!(again, Err(StartError::InUse { .. })), "{again:?}");
}

#[test]
fn members_that_are_configured_otherwise_are_named() {
    let three = Three::new();
    three.wait("all to hear of each other", |three| {
        three.running().all(|at| three.member(at).status().present.len() == 2)
    });
    for (at, others) in [(0, ["c"].as_slice()), (1, &["c"]), (2, &["a", "b"])] {
        let differ = three.member(at).status().differ;
        assert!(differ.iter().eq(others), "{at}: {differ:?}");
    }
}

#[test]
fn one_of_three_agrees_on_nothing_and_may_not_answer() {
    let mut three = Three::new();
    three.agree(0..1);
    let leader = three.leader().unwrap();
    for at in (0..NAMES.len()).filter(|at| *at != leader) {
        three.members[at] = None;
    }
    assert_eq!(three.propose(leader, vec![1]), Err(NotAgreed::Unknown));
    assert!(!three.may_answer(leader));
    assert_eq!(three.propose(leader, vec![2]), Err(NotAgreed::NotLeader));
}

/// Its folder is emptied, so it has forgotten what it has promised: it comes back as somebody else.
#[test]
fn a_member_whose_folder_was_emptied_joins_anew() {
    let mut three = Three::new();
    three.agree(0..3);
    let emptied = (1..3).find(|at| Some(*at) != three.leader()).unwrap();
    three.members[emptied] = None;
    let file = three.dirs[emptied].path().join("quorum.log");
    std::fs::remove_file(&file).unwrap();
    three.start(emptied);
    assert_eq!(three.values(emptied, 3), [0, 1, 2]);
    three.wait("it to vote", |three| {
        let members = three.member(emptied).status().members;
        members.0.len() == 3 && members.is_voter(three.member(emptied).id())
    });
    three.agree(3..5);
}

/// What was evaluated in another term rests on what was agreed on before that.
#[test]
fn what_is_proposed_for_another_term_is_not_agreed_on() {
    let three = Three::new();
    let leader = three.leader().unwrap();
    let term = three.member(leader).status().term;
    assert!(!three.member(leader).may_answer(term + 1));
    assert_eq!(three.member(leader).propose(term - 1, vec![1]), Err(NotAgreed::NotLeader));
    assert!(three.member(leader).propose(term, vec![2]).is_ok());
}

/// The others' log begins behind what it has.
#[test]
fn a_member_that_was_away_for_long_goes_on_from_a_snapshot() {
    let mut three = Three::new();
    three.agree(0..3);
    let away = (0..3).find(|at| Some(*at) != three.leader()).unwrap();
    three.values(away, 3);
    three.members[away] = None;
    // The status of a member may be a moment behind what it has answered.
    let last = three.agree(3..10);
    three.running().for_each(|at| three.member(at).forget(last));
    three.wait("the front to be forgotten", |three| {
        three.leader().is_some_and(|leader| three.member(leader).status().base.index == last)
    });
    three.agree(10..12);
    three.start(away);
    let mut values = Vec::new();
    while values.last() != Some(&11) {
        values.extend(three.values(away, 1));
    }
    assert_eq!(values, [0, 1, 2, 10, 11], "what its own log had, and what is behind the snapshot");
    three.wait("it to follow", |three| !three.member(away).status().members.0.is_empty());
    assert!(three.member(away).status().base.index >= last);
    three.agree(12..13);
    assert_eq!(three.values(away, 1), [12]);
}

impl Three {
    /// Has a member lead by what is done at whoever leads now: on a machine that is busy that may be another one again.
    fn have_lead(&self, at: usize, done: impl Fn(usize)) {
        self.wait("it to lead", |three| {
            if let Some(leader) = three.leader().filter(|leader| *leader != at) {
                done(leader);
            }
            three.leader() == Some(at)
        });
    }
}

#[test]
fn the_lead_goes_to_who_is_named_and_to_who_asks() {
    let three = Three::new();
    three.agree(0..3);
    assert_eq!(three.member(three.leader().unwrap()).hand_over(Some("nobody")), None);
    let name = |leader: usize, at: usize| {
        let told = three.member(leader).hand_over(Some(NAMES[at]));
        assert!(told.is_none() || !three.may_answer(leader), "the other one may lead by now");
    };
    three.have_lead(1, |leader| name(leader, 1));
    assert_eq!(three.member(0).hand_over(None), None, "it does not lead");
    three.agree(3..6);
    three.have_lead(2, |_| {
        let _ = three.member(2).ask_for_lead();
    });
    three.agree(6..9);
    // Of the two others one is not ready.
    three.member(0).is_ready(false);
    three.wait("that to be known", |three| {
        (1..3).all(|at| three.member(at).status().present.get(NAMES[0]) == Some(&false))
    });
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "nobody hands over");
        let leader = three.leader().filter(|leader| *leader != 0);
        match leader.map(|leader| (leader, three.member(leader).hand_over(None))) {
            Some((leader, Some(told))) => {
                assert_eq!(told, NAMES[3 - leader]);
                break;
            }
            _ => name(three.leader().unwrap_or(1), 1),
        }
        std::thread::sleep(TURN);
    }
    let values = three.values(0, 9);
    assert!(values.is_sorted(), "{values:?}");
}

#[test]
fn a_leader_without_space_has_one_lead_that_has_some() {
    let three = Three::new();
    three.agree(0..3);
    (1..3).for_each(|at| three.member(at).has_space(false));
    three.wait("the one with space to lead", |three| three.leader() == Some(0));
    three.member(0).has_space(false);
    three.member(2).has_space(true);
    three.wait("the next one with space to lead", |three| three.leader() == Some(2));
    // Without any that is ready one leads all the same.
    three.member(2).has_space(false);
    std::thread::sleep(TURN * 20);
    three.agree(3..6);
}

/// It has the same key and the same names, as a copied configuration has.
#[test]
fn a_member_of_another_quorum_is_not_listened_to() {
    let three = Three::new();
    let first = three.leader().unwrap();
    let next = if first == 0 { 1 } else { first };
    if next != first {
        three.member(first).hand_over(Some(NAMES[next])).unwrap();
        three.wait("one to lead that the other quorum knows", |three| three.leader() == Some(next));
    }
    let before = three.member(next).status().members;
    let dir = tempfile::tempdir().unwrap();
    assert!(quorum::found(dir.path(), NAMES[0]).unwrap());
    let others = (1..3).map(|at| (NAMES[at].to_string(), three.addrs[at].to_string()));
    let (stranger, _entries) = Member::start(Options {
        dir: dir.path().to_owned(),
        name: NAMES[0].to_string(),
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        others: others.collect(),
        credentials: credentials(),
        turn: TURN,
        settings: 0,
        reach: Reach::default(),
    })
    .unwrap();
    // Long enough for it to be added as one that takes the place of its namesake.
    let until = Instant::now() + TURN * 40;
    while Instant::now() < until {
        let members = three.member(next).status().members;
        assert!(!members.0.contains_key(&stranger.id()), "{members:?}");
        std::thread::sleep(TURN);
    }
    assert_eq!(three.member(next).status().members, before);
    assert_eq!(stranger.status().members.0.len(), 1, "nor does it take them in");
    three.agree(0..3);
}

/// By certificates, and with the key beside them; who speaks without TLS is not heard.
#[test]
fn members_that_speak_tls_agree_and_others_are_not_let_in() {
    let mut three = Three::with(with_certificate());
    three.agree(0..10);
    let away = (1..3).find(|at| Some(*at) != three.leader()).unwrap();
    three.members[away] = None;
    three.agree(10..20);
    let without = TcpListener::bind(three.addrs[away]).unwrap();
    let options = Options { credentials: credentials(), ..three.options(away, without) };
    let (deaf, _entries) = Member::start(options).unwrap();
    std::thread::sleep(TURN * 40);
    assert!(deaf.status().present.is_empty(), "{:?}", deaf.status());
    drop(deaf);
    three.start(away);
    assert_eq!(three.values(away, 20).len(), 20);
}
