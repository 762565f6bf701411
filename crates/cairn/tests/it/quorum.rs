//! Three NameNodes as processes: their leader is killed again and again, and nothing that was acknowledged is missing.

use crate::cluster::{cairn, text};
use crate::ports::free_addr;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const IDS: [&str; 3] = ["nn1", "nn2", "nn3"];
const PATIENCE: Duration = Duration::from_secs(60);

struct Three {
    dir: TempDir,
    rpc: [String; 3],
    http: [String; 3],
    processes: [Option<Child>; 3],
    datanode: Option<Child>,
}

impl Three {
    fn start() -> Three {
        let addrs = [(); 9].map(|()| free_addr());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), "what all members have").unwrap();
        let mut keys = vec![
            ("dfs.nameservices".to_string(), "ns".to_string()),
            ("dfs.ha.namenodes.ns".to_string(), IDS.join(",")),
            ("cairn.quorum.key-file".to_string(), word(&dir.path().join("key"))),
            ("cairn.quorum.election-timeout".to_string(), "500ms".to_string()),
            ("dfs.heartbeat.interval".to_string(), "1".to_string()),
            ("dfs.replication".to_string(), "1".to_string()),
        ];
        for (at, id) in IDS.iter().enumerate() {
            keys.push((format!("dfs.namenode.rpc-address.ns.{id}"), addrs[at].clone()));
            keys.push((format!("dfs.namenode.http-address.ns.{id}"), addrs[at + 6].clone()));
            keys.push((format!("cairn.quorum.address.ns.{id}"), addrs[at + 3].clone()));
        }
        let conf = dir.path().join("conf");
        std::fs::create_dir(&conf).unwrap();
        let property = |(key, value): &(String, String)| {
            format!("<property><name>{key}</name><value>{value}</value></property>")
        };
        let text: String = keys.iter().map(property).collect();
        std::fs::write(
            conf.join("hdfs-site.xml"),
            format!("<configuration>{text}</configuration>"),
        )
        .unwrap();
        let core = property(&("fs.defaultFS".to_string(), "hdfs://ns".to_string()));
        std::fs::write(
            conf.join("core-site.xml"),
            format!("<configuration>{core}</configuration>"),
        )
        .unwrap();
        let rpc = [0, 1, 2].map(|at| addrs[at].clone());
        let http = [6, 7, 8].map(|at| addrs[at].clone());
        let mut three = Three { dir, rpc, http, processes: [None, None, None], datanode: None };
        let founded = three.member(0).arg("--found-quorum").output().unwrap();
        assert!(founded.status.success(), "{}", text_of(&founded));
        assert!(three.dir.path().join(IDS[0]).join("quorum").is_dir(), "{}", text_of(&founded));
        (0..3).for_each(|at| three.begin(at));
        three.begin_datanode();
        three
    }

    fn command(&self) -> Command {
        let mut command = cairn();
        command.arg("--conf").arg(self.dir.path().join("conf")).stdin(Stdio::null());
        command
    }

    fn member(&self, at: usize) -> Command {
        let mut command = self.command();
        let folder = self.dir.path().join(IDS[at]);
        command.args(["--log", "info", "-D", &format!("dfs.ha.namenode.id={}", IDS[at])]);
        command.args(["namenode", "--data", &word(&folder)]);
        command
    }

    fn begin(&mut self, at: usize) {
        let log = std::fs::File::options().create(true).append(true).open(self.log(at)).unwrap();
        let mut process = self.member(at).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("namenode"), "{}", self.logs());
        self.processes[at] = Some(process);
    }

    fn begin_datanode(&mut self) {
        let mut command = self.command();
        for (key, value) in [
            ("dfs.datanode.data.dir", &*word(&self.dir.path().join("dn"))),
            ("dfs.datanode.address", "127.0.0.1:0"),
            ("dfs.datanode.ipc.address", "127.0.0.1:0"),
            ("dfs.datanode.http.address", "127.0.0.1:0"),
        ] {
            command.args(["-D", &format!("{key}={value}")]);
        }
        let log = std::fs::File::create(self.dir.path().join("dn.log")).unwrap();
        self.datanode =
            Some(command.arg("datanode").stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// As a machine does that loses its power.
    fn kill(&mut self, at: usize) {
        let mut process = self.processes[at].take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn signal(&self, at: usize, signal: &str) {
        let pid = self.processes[at].as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn log(&self, at: usize) -> PathBuf {
        self.dir.path().join(format!("{}.log", IDS[at]))
    }

    fn logs(&self) -> String {
        (0..3).map(|at| std::fs::read_to_string(self.log(at)).unwrap_or_default()).collect()
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command().args(words).output().unwrap()
    }

    /// Who leads: who has last said so among those that run.
    fn leader(&self) -> usize {
        self.leader_but(None)
    }

    /// The same among the others.
    fn leader_but(&self, not: Option<usize>) -> usize {
        let begun = Instant::now();
        loop {
            let log = |at: &usize| std::fs::read_to_string(self.log(*at)).unwrap_or_default();
            let term = |at: &usize| {
                let log = log(at);
                let said = log.lines().rfind(|line| line.contains("this NameNode leads"))?;
                said.rsplit_once("term=")?.1.trim().parse::<u64>().ok()
            };
            let last = (0..3).max_by_key(term);
            let last = last.filter(|at| self.processes[*at].is_some() && Some(*at) != not);
            if let Some(at) = last.filter(|at| term(at).is_some()) {
                return at;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody leads: {}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a directory, by whoever leads then.
    fn make(&self, path: &str) {
        let begun = Instant::now();
        loop {
            let made = self.run(&["fs", "mkdir", path]);
            // A command that was broken off may have done it.
            if made.status.success() || text(&made.stderr).contains("exists") {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{path}: {} {}", text_of(&made), self.logs());
        }
    }

    /// Writes a file with its name in it, by whoever leads then.
    fn put(&self, name: &str) {
        let (begun, local) = (Instant::now(), self.dir.path().join("local"));
        std::fs::write(&local, name.repeat(1000)).unwrap();
        loop {
            let put = self.run(&["fs", "put", "-f", &word(&local), &format!("/{name}")]);
            if put.status.success() {
                return;
            }
            let dn = std::fs::read_to_string(self.dir.path().join("dn.log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{name}: {} {} {dn}", text_of(&put), self.logs());
        }
    }

    /// Reads it back; its place may not be known yet.
    fn check(&self, name: &str) {
        let begun = Instant::now();
        while self.run(&["fs", "cat", &format!("/{name}")]).stdout != name.repeat(1000).as_bytes() {
            assert!(begun.elapsed() < PATIENCE, "{name} does not read back: {}", self.logs());
        }
    }

    fn names(&self) -> BTreeSet<String> {
        let listed = self.run(&["fs", "ls", "/"]);
        assert!(listed.status.success(), "{}", text_of(&listed));
        let names = text(&listed.stdout);
        names.lines().filter_map(|line| Some(line.rsplit_once('/')?.1.to_string())).collect()
    }

    /// Until all vote: two of them go on without the third one then.
    fn wait_for_voters(&self) {
        let begun = Instant::now();
        while self.logs().matches("Promote").count() < 2 {
            assert!(begun.elapsed() < PATIENCE, "not all have joined: {}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
        // What is said is not agreed on yet, and what is agreed on not known to all.
        self.make("/voters");
        std::thread::sleep(Duration::from_secs(1));
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().chain([&mut self.datanode]).flatten() {
            // It may have ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn word(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

fn text_of(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_was_acknowledged_outlives_leaders_that_are_killed() {
    let mut three = Three::start();
    let mut made = BTreeSet::new();
    three.make("/begun");
    made.extend(["begun".to_string(), "voters".to_string()]);
    three.wait_for_voters();
    let mut killed = None;
    for round in 0..2 {
        for number in 0..3 {
            let (folder, file) = (format!("d{round}-{number}"), format!("f{round}-{number}"));
            three.make(&format!("/{folder}"));
            three.put(&file);
            made.extend([folder, file]);
        }
        let leader = three.leader();
        three.kill(leader);
        let begun = Instant::now();
        let after = format!("after-{round}");
        three.make(&format!("/{after}"));
        made.insert(after);
        println!("after {} ms another leader has made a directory", begun.elapsed().as_millis());
        assert_eq!(three.names(), made, "{}", three.logs());
        let told = three.run(&["fsck", "/"]);
        assert!(text(&told.stdout).contains("HEALTHY"), "{}", text_of(&told));
        made.iter().filter(|name| name.starts_with('f')).for_each(|name| three.check(name));
        println!("after {} ms every file was read back", begun.elapsed().as_millis());
        let logs = three.logs();
        let knew_places = logs.matches("is_enough=true").count();
        assert!(knew_places > round, "who came next knew no places: {logs}");
        if let Some(before) = killed.replace(leader) {
            assert_ne!(before, leader, "it has come back as a follower");
        }
        three.begin(leader);
        // What it has missed it gets from the one that leads.
        std::thread::sleep(Duration::from_secs(2));
    }
    assert_ne!(Some(three.leader()), killed);
}

/// It has a call waiting when it goes on, and has not heard yet that another one leads.
#[test]
fn files_are_read_at_members_that_follow_by_who_wants_that() {
    let three = Three::start();
    three.make("/begun");
    three.wait_for_voters();
    three.put("file");
    let reads = || {
        let told = text(&three.run(&["admin", "members", "--json"]).stdout);
        let of_each = told.lines().map(|line| {
            let told: serde_json::Value = serde_json::from_str(line).unwrap();
            told["reads"].as_u64().unwrap_or(0)
        });
        of_each.sum::<u64>()
    };
    let cat = || three.run(&["-D", "cairn.client.read-followers=true", "fs", "cat", "/file"]);
    let before = reads();
    three.check("file");
    assert_eq!(reads(), before, "nobody has asked for it");
    // Each has to hear from its leader and of the block first.
    let begun = Instant::now();
    loop {
        let (before, told) = (reads(), cat());
        assert_eq!(text(&told.stdout), "file".repeat(1000), "{}", text_of(&told));
        // One of the name, one of its places.
        if reads() >= before + 2 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the leader is asked: {}", three.logs());
    }
    // What was done is seen, and what is gone is gone.
    let gone = three.run(&["fs", "rm", "/file"]);
    assert!(gone.status.success(), "{}", text_of(&gone));
    let told = cat();
    assert!(
        !told.status.success() && text_of(&told).contains("No such file"),
        "{}",
        text_of(&told)
    );
}

#[test]
fn a_leader_that_stood_still_answers_nothing_old() {
    let three = Three::start();
    three.make("/old");
    three.wait_for_voters();
    for round in 0..3 {
        let leader = three.leader();
        three.signal(leader, "-STOP");
        let uri = format!("hdfs://{}", three.rpc[leader]);
        let mut asks = three.command();
        let asks = asks.args(["--fs", &uri, "fs", "ls", "/"]).stdout(Stdio::piped());
        let mut asks = asks.stderr(Stdio::null()).spawn().unwrap();
        let other = format!("hdfs://{}", three.rpc[three.leader_but(Some(leader))]);
        let new = format!("new-{round}");
        let made = three.run(&["--fs", &other, "fs", "mkdir", &format!("/{new}")]);
        assert!(made.status.success(), "{}", text_of(&made));
        three.signal(leader, "-CONT");
        let begun = Instant::now();
        // Whoever is refused asks again for a while.
        while asks.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = asks.kill();
        let told = asks.wait_with_output().unwrap();
        let names = text(&told.stdout);
        assert!(names.is_empty() || names.contains(&new), "what was so before: {names}");
    }
}

/// Status, head and body of an answer.
fn http(addr: &str, method: &str, target: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let len = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = text(&answer[..end]);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

impl Three {
    fn web(&self, at: usize, method: &str, path: &str, op: &str) -> (u16, String, Vec<u8>) {
        let user = text_of(&Command::new("id").arg("-un").output().unwrap());
        let target = format!("/webhdfs/v1{path}?op={op}&user.name={}", user.trim());
        http(&self.http[at], method, &target, b"")
    }

    /// The same at the DataNode to which that leads.
    fn web_bytes(
        &self,
        at: usize,
        method: &str,
        path: &str,
        op: &str,
        body: &[u8],
    ) -> (u16, Vec<u8>) {
        let (status, head, told) = self.web(at, method, path, op);
        assert_eq!(status, 307, "{head} {} {}", text(&told), self.logs());
        let place = head.lines().find_map(|line| line.strip_prefix("location: http://")).unwrap();
        let (addr, target) = place.split_at(place.find('/').unwrap());
        // The name that the DataNode goes by is this machine's, whatever it listens at.
        let addr = format!("127.0.0.1:{}", addr.rsplit_once(':').unwrap().1);
        let (status, _, got) = http(&addr, method, target, body);
        (status, got)
    }
}

/// Each of the calls that a request makes waits, and is carried out once.
#[test]
fn any_member_serves_webhdfs_whoever_leads() {
    let mut three = Three::start();
    three.make("/begun");
    three.wait_for_voters();
    three.put("there");
    for round in 0..2 {
        let leader = three.leader();
        let follower = (leader + 1) % 3;
        for at in [leader, follower] {
            let (path, bytes) =
                (format!("/f{round}{at}"), format!("what {at} was told").repeat(1000));
            let made = three.web_bytes(at, "PUT", &path, "CREATE", bytes.as_bytes());
            assert_eq!(made.0, 201, "{} {}", text(&made.1), three.logs());
            for at in 0..3 {
                let (status, read) = three.web_bytes(at, "GET", &path, "OPEN", b"");
                assert_eq!((status, read.len()), (200, bytes.len()), "{path} at {at}");
                assert!(read == bytes.as_bytes());
            }
        }
        let (status, _, listed) = three.web(follower, "GET", "/", "LISTSTATUS");
        assert!(status == 200 && text(&listed).contains(&format!("f{round}{leader}")));
        let (status, _, missing) = three.web(follower, "GET", "/none", "GETFILESTATUS");
        assert!(status == 404 && text(&missing).contains("FileNotFoundException"));
        three.kill(leader);
        // It is asked before another one leads.
        for (method, path, op) in [
            ("PUT", format!("/d{round}"), "MKDIRS".to_string()),
            ("PUT", format!("/d{round}"), format!("RENAME&destination=/e{round}")),
            ("DELETE", format!("/e{round}"), "DELETE".to_string()),
        ] {
            let (status, _, told) = three.web(follower, method, &path, &op);
            assert!(status == 200 && text(&told).contains("true"), "{op}: {}", text(&told));
        }
        three.begin(leader);
        // It has heard of no DataNode yet, and perhaps of no leader.
        let path = format!("/back{round}");
        assert_eq!(three.web_bytes(leader, "PUT", &path, "CREATE", b"back").0, 201);
        assert_eq!(three.web_bytes(leader, "GET", &path, "OPEN", b"").1, b"back");
        let begun = Instant::now();
        // Until it follows: two are needed for the next round.
        while http(&three.http[leader], "GET", "/health", b"").0 != 200 {
            assert!(begun.elapsed() < PATIENCE, "{}", three.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(2));
    }
}
