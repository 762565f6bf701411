//! A NameNode that may open few files, and many who connect to it.

use crate::cluster::cairn;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

struct NameNode {
    process: Child,
    addr: String,
    _dir: TempDir,
}

impl NameNode {
    /// Starts one for which a shell sets limits by `ulimit` before.
    fn start(ulimit: &str) -> NameNode {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh");
        process.args(["-c", &format!("{ulimit} && exec \"$0\" \"$@\"")]);
        process.arg(cairn().get_program()).env_remove("HADOOP_CONF_DIR");
        process.args(["-D", "dfs.namenode.rpc-address=127.0.0.1:0"]);
        process.args(["-D", "dfs.namenode.http-address=127.0.0.1:0", "namenode", "--data"]);
        process.arg(dir.path().join("name")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = process.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let addr = line["fs"].as_str().unwrap().strip_prefix("hdfs://").unwrap().to_string();
        NameNode { process, addr, _dir: dir }
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.process.id()))
    }
}

impl Drop for NameNode {
    fn drop(&mut self) {
        // It may have stopped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_namenode_opens_as_many_files_as_it_may() {
    let node = NameNode::start("ulimit -Sn 100");
    let limits = std::fs::read_to_string(node.proc("limits")).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|at| files.split_whitespace().nth(at).unwrap());
    assert_eq!(soft, hard);
    assert_ne!(soft, "100");
}

#[test]
fn connections_leave_a_namenode_some_files() {
    let node = NameNode::start("ulimit -n 200");
    let connect = || TcpStream::connect(&node.addr).unwrap();
    let held: Vec<TcpStream> = (0..250).map(|_| connect()).collect();
    // The last is closed when all are seen.
    held[249].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!((&held[249]).read(&mut [0]).unwrap(), 0);
    let open = std::fs::read_dir(node.proc("fd")).unwrap().count();
    assert!((150..190).contains(&open), "{open} files are open");
    drop(held);
    let made =
        cairn().args(["--fs", &format!("hdfs://{}", node.addr), "fs", "mkdir", "/d"]).output();
    assert!(made.unwrap().status.success());
}
