//! Reads at NameNodes that follow: who is asked for what, having seen what, and who answers where that comes to nothing.

use crate::cluster::any_port;
use cairn_client::{ClientConfig, ClientError, FileSystem};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::HAServiceStateProto;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A NameNode without files that says what it is, how far it is, and keeps what it was asked, by those who had seen what.
struct Member {
    is: HAServiceStateProto,
    last: AtomicI64,
    asked: Mutex<Vec<(String, Option<i64>)>>,
    /// What it answers reads with instead.
    refuses: Mutex<Option<RemoteException>>,
}

impl Service for Member {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        if call.method.as_str() == "getHAServiceState" {
            return Ok(pb::HAServiceStateResponseProto { state: self.is as i32 }.encode_to_vec());
        }
        let seen = call.state.as_ref().map(|state| state.seen());
        self.asked.lock().unwrap().push((call.method.to_string(), seen));
        call.tell_state(self.last.load(Ordering::SeqCst) as u64);
        match call.method.as_str() {
            "msync" => Ok(pb::MsyncResponseProto {}.encode_to_vec()),
            "mkdirs" => {
                self.last.fetch_add(1, Ordering::SeqCst);
                call.tell_state(self.last.load(Ordering::SeqCst) as u64);
                Ok(pb::MkdirsResponseProto { result: true }.encode_to_vec())
            }
            _ => match self.refuses.lock().unwrap().clone() {
                Some(refusal) => Err(refusal),
                None => Ok(pb::GetFileInfoResponseProto { fs: None }.encode_to_vec()),
            },
        }
    }
}

impl Member {
    /// What it was asked since the last time.
    fn asked(&self) -> Vec<(String, Option<i64>)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.asked().len()
    }

    fn refuse(&self, class: &str) {
        *self.refuses.lock().unwrap() = Some(RemoteException::new(class, "no"));
    }
}

async fn start(is: HAServiceStateProto) -> (Arc<Member>, String, JoinHandle<()>) {
    let (last, asked, refuses) = (AtomicI64::new(100), Mutex::default(), Mutex::default());
    let member = Arc::new(Member { is, last, asked, refuses });
    let server = RpcServer::bind(any_port(), RpcServerOptions::default()).await.unwrap();
    let addr = server.local_addr().to_string();
    let served = tokio::spawn(server.serve(member.clone(), std::future::pending()));
    (member, addr, served)
}

/// Two that follow, and one that leads.
struct Three {
    members: [Arc<Member>; 3],
    addresses: Vec<String>,
    served: Vec<JoinHandle<()>>,
}

impl Three {
    async fn new() -> Three {
        use HAServiceStateProto::{Active, Observer};
        let (one, one_addr, one_served) = start(Observer).await;
        let (two, two_addr, two_served) = start(Observer).await;
        let (three, three_addr, three_served) = start(Active).await;
        Three {
            members: [one, two, three],
            addresses: vec![one_addr, two_addr, three_addr],
            served: vec![one_served, two_served, three_served],
        }
    }

    /// A client that knows the leader first.
    fn client(&self, change: impl FnOnce(&mut ClientConfig)) -> FileSystem {
        let mut addresses = self.addresses.clone();
        addresses.rotate_left(2);
        let mut config = ClientConfig {
            namenode: "ns".to_string(),
            namenode_addresses: addresses,
            reads_followers: true,
            ..ClientConfig::default()
        };
        change(&mut config);
        FileSystem::new(config).unwrap()
    }

    fn leader(&self) -> &Member {
        &self.members[2]
    }

    /// What the others were asked since the last time.
    fn others(&self) -> Vec<(String, Option<i64>)> {
        self.members[..2].iter().flat_map(|member| member.asked()).collect()
    }
}

fn asked(method: &str, seen: i64) -> (String, Option<i64>) {
    (method.to_string(), Some(seen))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_go_around_among_those_who_follow_with_what_was_seen() {
    let three = Three::new().await;
    let fs = three.client(|_| {});
    for _ in 0..4 {
        assert!(fs.file_info("/a").await.unwrap().is_none());
    }
    assert_eq!(three.leader().asked(), [asked("msync", i64::MIN)], "once, before the first");
    let of_each = three.members.each_ref().map(|member| member.asked());
    assert_eq!(of_each[0], vec![asked("getFileInfo", 100); 2]);
    assert_eq!(of_each[1], vec![asked("getFileInfo", 100); 2]);
    // What it has done it sees at all of them.
    assert!(fs.mkdirs("/d", 0o755).await.unwrap());
    assert_eq!(three.leader().asked(), [asked("mkdirs", 100)]);
    fs.file_info("/d").await.unwrap();
    assert_eq!(three.others(), [asked("getFileInfo", 101)]);
    // And what others have done after it has asked for that.
    three.leader().last.store(500, Ordering::SeqCst);
    fs.msync().await.unwrap();
    fs.file_info("/d").await.unwrap();
    assert_eq!(three.others(), [asked("getFileInfo", 500)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_asked_how_far_it_is_as_often_as_is_wanted() {
    let three = Three::new().await;
    let fs = three.client(|config| config.msync_period = Some(Duration::ZERO));
    for last in [100, 200, 300] {
        three.leader().last.store(last, Ordering::SeqCst);
        fs.file_info("/a").await.unwrap();
        assert_eq!(three.others(), [asked("getFileInfo", last)]);
    }
    assert_eq!(three.leader().count(), 3);
    let fs = three.client(|config| config.msync_period = Some(Duration::from_secs(1000)));
    for _ in 0..3 {
        fs.file_info("/a").await.unwrap();
    }
    assert_eq!((three.leader().count(), three.others().len()), (1, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_answers_who_follows_the_leader_does() {
    let mut three = Three::new().await;
    let fs = three.client(|_| {});
    fs.file_info("/a").await.unwrap();
    assert_eq!((three.leader().count(), three.others().len()), (1, 1));
    // This call is for the leader, says who follows, and may be asked for the next one.
    three.members[..2].iter().for_each(|member| member.refuse(class::OBSERVER_RETRY_ON_ACTIVE));
    for _ in 0..3 {
        fs.file_info("/a").await.unwrap();
    }
    assert_eq!((three.leader().count(), three.others().len()), (3, 3));
    // Whoever does not follow any more is not asked for the next one.
    three.members[0].refuse(class::STANDBY);
    three.members[1].refuse(class::FILE_NOT_FOUND);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(fs.file_info("/a").await);
    }
    let refused = |answer: &&Result<_, ClientError>| {
        answer.as_ref().is_err_and(|error| error.is_remote(class::FILE_NOT_FOUND))
    };
    let refused = answers.iter().filter(refused).count();
    assert_eq!((refused, three.leader().count()), (3, 1), "a refusal is an answer");
    assert_eq!((three.members[0].count(), three.members[1].count()), (1, 3));
    // Nor is one that is gone, and then there is nobody.
    three.served[1].abort();
    let _ = (&mut three.served[1]).await;
    for _ in 0..3 {
        fs.file_info("/a").await.unwrap();
    }
    assert_eq!((three.leader().count(), three.others().len()), (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_but_the_leader_unless_that_is_wanted() {
    let three = Three::new().await;
    let fs = three.client(|config| config.reads_followers = false);
    fs.file_info("/a").await.unwrap();
    assert_eq!(three.leader().asked(), [("getFileInfo".to_string(), None)]);
    assert_eq!(three.others(), []);
}
