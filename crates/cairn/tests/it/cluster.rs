//! A cluster in a process of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Cluster {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
    uri: String,
    http: String,
    dir: TempDir,
}

impl Cluster {
    /// What is thrown away stays for an hour.
    pub fn start() -> Cluster {
        Cluster::of(1, &["-D", "fs.trash.interval=60"], Stdio::inherit())
    }

    /// One of so many DataNodes, with these words besides, whose log goes there.
    pub fn of(datanodes: usize, words: &[&str], log: Stdio) -> Cluster {
        Cluster::with(datanodes, words, log, &[])
    }

    /// The same with something in its environment.
    pub fn with(
        datanodes: usize,
        words: &[&str],
        log: Stdio,
        environment: &[(&str, &Path)],
    ) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let mut process = cairn()
            .args(["cluster", "--datanodes", &datanodes.to_string(), "--racks", "1"])
            .args(words)
            .envs(environment.iter().copied())
            .arg("--data")
            .arg(dir.path().join("cluster"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut cluster = Cluster { process, lines, uri: String::new(), http: String::new(), dir };
        let told = cluster.line();
        cluster.uri = told["fs"].as_str().unwrap().to_string();
        cluster.http = told["http"].as_str().unwrap_or_default().to_string();
        cluster
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Where clients find it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// `host:port` of the NameNode's HTTP.
    pub fn http(&self) -> &str {
        self.http.trim_start_matches("http://")
    }

    pub fn kill_datanode(&mut self, index: usize) {
        writeln!(self.process.stdin.as_ref().unwrap(), "kill-datanode {index}").unwrap();
        assert_eq!(self.line()["ok"], true);
    }

    /// A local path for a test's own files.
    pub fn local(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same, as a word, with a file of these bytes there.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.local(name);
        std::fs::write(&path, bytes).unwrap();
        word(&path)
    }

    pub fn fifo(&self, name: &str) -> String {
        let path = self.local(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        word(&path)
    }

    /// A command with its words, not yet started.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = cairn();
        command.args(["--fs", &self.uri, "-D", "dfs.replication=1"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What `cairn fs` prints with these words.
    pub fn fs(&self, words: &[&str]) -> String {
        let done = self.run(&[&["fs"], words].concat());
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// What `cairn fs` says when it refuses these words.
    pub fn refused(&self, words: &[&str]) -> String {
        let done = self.run(&[&["fs"], words].concat());
        assert_eq!(done.status.code(), Some(1), "{words:?}: {}", text(&done.stdout));
        text(&done.stderr)
    }

    /// What another command prints with these words.
    pub fn tool(&self, words: &[&str]) -> String {
        let done = self.run(words);
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// The names in a directory of the file system.
    pub fn names(&self, path: &str) -> Vec<String> {
        let rows = self.fs(&["ls", "--json", path]);
        let name = |row: &str| {
            let row: Value = serde_json::from_str(row).unwrap();
            let (_, name) = row["path"].as_str().unwrap().rsplit_once('/').unwrap();
            name.to_string()
        };
        rows.lines().map(name).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have stopped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn cairn() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    command.env_remove("HADOOP_CONF_DIR");
    command
}

pub fn word(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sends an interrupt, and waits for the end.
pub fn interrupt(child: Child) -> Output {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
