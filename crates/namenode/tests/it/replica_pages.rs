//! HTTP at the members of a quorum: each tells of itself, and any has the pages of the cluster.

use crate::replica::Three;
use cairn_namenode::standing::Standing;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
struct Got {
    status: u16,
    /// In lower case.
    head: String,
    body: Vec<u8>,
}

impl Got {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Three {
    async fn ask(&self, at: usize, method: &str, target: &str) -> TcpStream {
        let addr = self.running[at].as_ref().unwrap().http_addr.unwrap();
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, at: usize, target: &str) -> Got {
        let mut answer = Vec::new();
        self.ask(at, "GET", target).await.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Got { status, head, body: answer[end + 4..].to_vec() }
    }

    fn followers(&self) -> Vec<usize> {
        let follows =
            |at: &usize| self.running[*at].as_ref().is_some_and(|m| !m.standing().borrow().leads());
        (0..3).filter(follows).collect()
    }

    /// What means one member.
    async fn check_own_pages(&self, leader: usize) {
        for at in (0..3).filter(|at| self.running[*at].is_some()) {
            let leads = at == leader;
            let active = self.get(at, "/isActive").await;
            let told = if leads { (200, "I am Active!\n") } else { (405, "I am not Active!\n") };
            assert_eq!((active.status, active.text().as_str()), told, "{at}");
            let state = if leads { "active" } else { "standby" };
            let status = self.get(at, "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus").await;
            assert!(status.text().contains(&format!("\"State\":\"{state}\"")), "{}", status.text());
            let system = self.get(at, "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem").await;
            let state = format!("\"tag.HAState\":\"{state}\"");
            assert!(system.text().contains(&state), "{}", system.text());
            let figures = self.get(at, "/prom").await.text();
            for figure in ["quorum_term ", "quorum_member_role{", "rpc_open_connections "] {
                assert!(figures.contains(&format!("cairn_namenode_{figure}")), "{figures}");
            }
            for path in ["/health", "/conf", "/stacks", "/startupProgress", "/page.css"] {
                assert_eq!(self.get(at, path).await.status, 200, "{path} at {at}");
            }
        }
    }

    /// What means the cluster.
    async fn check_pages_of_the_cluster(&self) {
        for at in (0..3).filter(|at| self.running[*at].is_some()) {
            let page = self.get(at, "/").await;
            assert!(page.status == 200 && page.text().contains("Overview"), "{}", page.text());
            assert!(page.head.contains("content-security-policy: default-src"), "{}", page.head);
            let check = self.get(at, "/fsck?ugi=hdfs&path=%2Fa%20b").await;
            assert!(check.text().contains("'/a b' is HEALTHY"), "{}", check.text());
            let files = self.get(at, "/files?path=%2F&user.name=hdfs").await;
            assert!(files.text().contains("a b"), "{}", files.text());
            let image = self.get(at, "/imagetransfer?getimage=1&txid=latest").await;
            assert!(image.head.contains("x-md5-digest: "), "{}", image.head);
            let len = format!("content-length: {}", image.body.len());
            assert!(image.head.contains(&len) && image.body.starts_with(b"HDFSIMG1"), "{len}");
            assert_eq!(self.get(at, "/no-such-page").await.status, 404);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_tells_of_itself_and_has_the_pages_of_the_cluster() {
    let mut three = Three::new().await;
    three.forwards = true;
    three.start_all().await;
    three.make("/a b").await;
    three.wait_for_voters().await;
    let leader = three.leader().await;
    three.check_own_pages(leader).await;
    three.check_pages_of_the_cluster().await;
    let follower = three.followers()[0];
    assert_eq!(three.get(follower, "/webhdfs/v1/?op=LISTSTATUS").await.status, 404, "it is off");
    // What changes on a page comes from who leads, and begins anew at the next one.
    let mut live = three.ask(follower, "GET", "/live?page=/").await;
    let mut read = vec![0; 64 << 10];
    let mut seen = String::new();
    while !seen.contains("data: ") {
        let len = tokio::time::timeout(PATIENCE, live.read(&mut read)).await.unwrap().unwrap();
        assert_ne!(len, 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&read[..len]));
    }
    let own = three.ask(leader, "GET", "/live?page=/").await;
    three.stop(leader).await;
    for mut stream in [live, own] {
        let ends = async { while stream.read(&mut read).await.is_ok_and(|len| len > 0) {} };
        tokio::time::timeout(PATIENCE, ends).await.expect("it tells on of a lead that is over");
    }
    // Whoever asks while nobody leads waits.
    assert!(three.get(follower, "/fsck?ugi=hdfs&path=/").await.text().contains("HEALTHY"));
    let next = three.leader().await;
    assert_ne!(next, leader);
    three.check_own_pages(next).await;
    three.check_pages_of_the_cluster().await;
    three.stop(next).await;
    let last = (0..3).find(|at| three.running[*at].is_some()).unwrap();
    three.wait_for_standing(last, |standing| matches!(standing, Standing::Nobody { .. })).await;
    let begun = Instant::now();
    let page = three.get(last, "/").await;
    assert!(begun.elapsed() > Duration::from_secs(5), "it does not wait");
    assert!(page.status == 503 && page.head.contains("retry-after: 1"), "{}", page.head);
    assert!(page.text().contains("no NameNode leads"), "{}", page.text());
    assert_eq!(three.get(last, "/health").await.status, 503);
    assert!(three.get(last, "/prom").await.text().contains("cairn_namenode_quorum_term "));
    three.stop(last).await;
}

/// As Hadoop's clients have it that go to the active one by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn members_that_hand_nothing_on_say_who_leads() {
    let mut three = Three::new().await;
    three.start_all().await;
    three.make("/a b").await;
    three.wait_for_voters().await;
    let leader = three.leader().await;
    three.check_own_pages(leader).await;
    let page = three.get(three.followers()[0], "/").await;
    assert_eq!(page.status, 503);
    let name = crate::replica::NAMES[leader];
    assert!(page.text().contains(&format!("ask {name}")), "{}", page.text());
    three.stop_all().await;
}
