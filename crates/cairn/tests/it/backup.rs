//! A NameNode that is backed up while it serves, lost, and restored under its DataNode.

use crate::cluster::{cairn, text, wait_until, word};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Output, Stdio};

/// A server that ends with its test.
struct Server(Child);

impl Server {
    /// Starts a role and waits until it serves.
    fn start(words: &[&str]) -> Server {
        let mut process = cairn().args(words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("\"pid\""), "{words:?}: {line}");
        Server(process)
    }

    /// What a power cut does to a process.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The words of every command.
struct Site {
    keys: Vec<String>,
}

impl Site {
    fn run(&self, words: &[&str]) -> Output {
        let mut command = cairn();
        self.keys.iter().for_each(|key| _ = command.args(["-D", key]));
        command.args(words).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let done = self.run(words);
        assert!(done.status.success(), "{words:?}: {}{}", text(&done.stdout), text(&done.stderr));
        text(&done.stdout)
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(words)).unwrap()
    }

    fn serve(&self, role: &str, dir: &Path) -> Server {
        let keys = self.keys.iter().flat_map(|key| ["-D".to_string(), key.clone()]);
        let words: Vec<_> = keys.chain([role.into(), "--data".into(), word(dir)]).collect();
        Server::start(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[test]
fn a_lost_name_node_is_restored_to_the_moment_before_a_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = Site {
        keys: vec![
            format!("fs.defaultFS=hdfs://127.0.0.1:{port}"),
            "dfs.namenode.http-address=127.0.0.1:0".into(),
            "dfs.datanode.address=127.0.0.1:0".into(),
            "dfs.datanode.ipc.address=127.0.0.1:0".into(),
            "dfs.datanode.http.address=127.0.0.1:0".into(),
            "dfs.replication=1".into(),
            "dfs.heartbeat.interval=1s".into(),
            // What is deleted by mistake is there still.
            "dfs.namenode.startup.delay.block.deletion.sec=3600".into(),
        ],
    };
    let name_node = site.serve("namenode", &at("name"));
    let _data_node = site.serve("datanode", &at("data"));
    wait_until("the DataNode is there", || {
        text(&site.run(&["admin", "topology"]).stdout).contains("127.0.0.1")
    });
    let backups = word(&at("backups"));
    let back_up = || site.json(&["--json", "namenode", "backup", "--to", &backups]);
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(at("local"), bytes).unwrap();
        site.ok(&["fs", "put", &word(&at("local")), name]);
    };
    put("/one", &[1; 100_000]);
    let whole = back_up();
    assert!(whole["path"].as_str().unwrap().contains("snapshot-"), "{whole}");
    put("/two", &[2; 200_000]);
    site.ok(&["fs", "mv", "/one", "/uno"]);
    let changes = back_up();
    assert!(changes["path"].as_str().unwrap().contains("changes-"), "{changes}");
    site.ok(&["fs", "rm", "/uno", "/two"]);
    back_up();
    assert_eq!(back_up()["path"], Value::Null, "nothing has changed");

    // Nobody may look at or restore into the folder of one that runs.
    let name = word(&at("name"));
    let refused = site.run(&["namenode", "check", "--data", &name]);
    assert!(text(&refused.stderr).contains("another NameNode uses this folder"));
    name_node.kill();
    let checked = site.json(&["--json", "namenode", "check", "--data", &name]);
    assert_eq!(checked["problems"], Value::Array(Vec::new()), "{checked}");
    site.ok(&["namenode", "check", "--backups", &backups]);

    let (restored, until) = (word(&at("restored")), changes["last_entry"].to_string());
    let words = ["namenode", "restore", "--from", &backups, "--data", &restored];
    site.ok(&[&words[..], &["--until-entry", &until]].concat());
    let again = site.run(&[&words[..], &["--until-entry", &until]].concat());
    assert!(text(&again.stderr).contains("the folder is not empty"), "{}", text(&again.stderr));
    let _name_node = site.serve("namenode", &at("restored"));
    wait_until("safe mode ends when the DataNode has reported", || {
        text(&site.run(&["admin", "safemode", "get"]).stdout).contains("OFF")
    });
    for (name, bytes) in [("/uno", vec![1; 100_000]), ("/two", vec![2; 200_000])] {
        let read = site.run(&["fs", "cat", name]);
        assert!(read.status.success() && read.stdout == bytes, "{name}: {}", text(&read.stderr));
    }
    assert!(site.ok(&["fsck", "/"]).contains("HEALTHY"));
    assert!(site.ok(&["admin", "restored"]).contains("No replica is deleted"));
    assert!(site.ok(&["admin", "restored", "--accept"]).contains("Accepted"));
    assert!(site.ok(&["admin", "restored"]).contains("not restored"));
    // What follows is another timeline: the backups begin anew.
    put("/three", &[3; 1000]);
    assert!(back_up()["path"].as_str().unwrap().contains("snapshot-"));
    let checked = site.run(&["namenode", "check", "--backups", &backups]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn damage_of_a_name_node_s_files_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("name");
    let site = Site { keys: vec!["fs.defaultFS=hdfs://127.0.0.1:0".into()] };
    let data = word(&name);
    let missing = site.run(&["namenode", "check", "--data", &data]);
    assert!(!missing.status.success());
    site.ok(&["namenode", "--data", &data, "--format-only"]);
    let check = |problem: Option<&str>| {
        let done = site.run(&["namenode", "check", "--data", &data]);
        assert_eq!(
            done.status.code(),
            Some(i32::from(problem.is_some())),
            "{}",
            text(&done.stdout)
        );
        assert!(text(&done.stdout).contains(problem.unwrap_or("Everything is whole")));
    };
    check(None);
    let store = name.join("namespace.redb");
    let good = std::fs::read(&store).unwrap();
    for at in (0..good.len()).step_by(4096).filter(|at| good[*at..][..4096].iter().any(|b| *b > 0))
    {
        let mut bad = good.clone();
        bad[at..at + 4096].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&store, &bad).unwrap();
        let done = site.run(&["namenode", "check", "--data", &data]);
        // Pages that nothing refers to any more may be damaged.
        let told = text(&done.stdout);
        assert!(done.status.success() || told.contains("restore the namespace"), "{at}: {told}");
        std::fs::write(&store, &good).unwrap();
    }
    check(None);
    for log in std::fs::read_dir(&name).unwrap().map(|file| file.unwrap().path()) {
        if log.file_name().unwrap().to_str().unwrap().starts_with("log-") {
            std::fs::remove_file(log).unwrap();
        }
    }
    check(Some("is missing"));
}
