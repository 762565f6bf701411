//! `cairn doctor`: whether a configuration and this host are fit for the roles, and what to do where they are not.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::FileSystem;
use cairn_codec::Engine;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Files that a server should be able to open: clients, DataNodes and replicas each take some.
const FILES: u64 = 65_536;
/// Free bytes below which a folder is told of.
const LITTLE: u64 = 1 << 30;
/// What keys of others begin with that may stand in the same files, and those that are looked for by their beginning.
const OTHERS: [&str; 9] = [
    "dfs.client.failover.",
    "yarn.",
    "mapreduce.",
    "hive.",
    "hbase.",
    "io.",
    "hadoop.proxyuser.",
    "httpfs.proxyuser.",
    "security.",
];
/// How long the file system may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Flags of `cairn doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Look at what these roles need (default: all whose folders or addresses the configuration names)
    #[arg(long, value_name = "ROLE", value_parser = ["namenode", "datanode", "client"])]
    role: Vec<String>,
}

/// How a look has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Fine,
    /// It works, and could be better.
    Doubtful,
    Bad,
}

/// What was looked at, and what was found.
#[derive(Debug)]
struct Finding {
    grade: Grade,
    what: &'static str,
    told: String,
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fine(&mut self, what: &'static str, told: impl Into<String>) {
        self.0.push(Finding { grade: Grade::Fine, what, told: told.into() });
    }

    fn doubtful(&mut self, what: &'static str, told: impl Into<String>) {
        self.0.push(Finding { grade: Grade::Doubtful, what, told: told.into() });
    }

    fn bad(&mut self, what: &'static str, told: impl Into<String>) {
        self.0.push(Finding { grade: Grade::Bad, what, told: told.into() });
    }
}

/// Exits with 0 if nothing is wrong, else with 1; what could be better alone is no failure.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let conf = settings.configuration()?;
    let wants = |role: &str, key: &str| match args.role.is_empty() {
        true => conf.get(key).is_some(),
        false => args.role.iter().any(|wanted| wanted == role),
    };
    let mut findings = Findings::default();
    if wants("namenode", "dfs.namenode.name.dir") {
        namenode(&mut findings, &conf);
    }
    if wants("datanode", "dfs.datanode.data.dir") {
        datanode(&mut findings, &conf);
    }
    let client = wants("client", "fs.defaultFS").then(|| config::client::read(&conf));
    keys(&mut findings, &conf);
    host(&mut findings);
    match client {
        None => {}
        Some(Err(error)) => findings.bad("client settings", output::sentence(&error)),
        Some(Ok(client)) => cluster(&mut findings, client).await,
    }
    Ok(tell(&findings, settings.json))
}

fn namenode(findings: &mut Findings, conf: &config::Configuration) {
    match config::namenode::read(conf) {
        Err(error) => findings.bad("NameNode settings", output::sentence(&error)),
        Ok(settings) => {
            findings.fine("NameNode settings", "can be read");
            folder(findings, "NameNode folder", &settings.name_dir);
            port(findings, "NameNode RPC", settings.rpc_addr);
            if let Some(addr) = settings.http_addr {
                port(findings, "NameNode pages", addr);
            }
        }
    }
}

fn datanode(findings: &mut Findings, conf: &config::Configuration) {
    let settings = match config::datanode::read(conf) {
        Err(error) => return findings.bad("DataNode settings", output::sentence(&error)),
        Ok(settings) => settings,
    };
    findings.fine("DataNode settings", "can be read");
    let mut devices: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for dir in &settings.data_dirs {
        folder(findings, "DataNode folder", &dir.path);
        let Some(device) = existing(&dir.path).metadata().ok().map(|metadata| metadata.dev())
        else {
            continue;
        };
        if let Some(other) = devices.insert(device, dir.path.clone()) {
            let (one, two) = (other.display(), dir.path.display());
            findings.doubtful("disks", format!("{one} and {two} are on one disk: its failure takes both, and neither is quicker"));
        }
    }
    port(findings, "DataNode data transfer", settings.xfer_addr);
    port(findings, "DataNode RPC", settings.ipc_addr);
    if let Some(addr) = settings.http_addr {
        port(findings, "DataNode pages", addr);
    }
}

/// Keys that no role reads: misspelt ones, and those that have nothing to act on here.
fn keys(findings: &mut Findings, conf: &config::Configuration) {
    // Each role asks for the keys that it knows.
    let _ = config::namenode::read(conf);
    let _ = config::datanode::read(conf);
    let _ = config::client::read(conf);
    let _ = config::trace::read(conf);
    let _ = config::gateway::read(conf);
    for key in conf.unasked() {
        match () {
            _ if OTHERS.iter().any(|prefix| key.starts_with(prefix)) => {}
            _ if key.starts_with("cairn.") => {
                findings.bad("keys", format!("{key} is no key of Cairn: see `cairn keys`"));
            }
            _ => findings
                .doubtful("keys", format!("{key} is read by no role of Cairn: it has no effect")),
        }
    }
}

/// The deepest folder of a path that there is.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

fn folder(findings: &mut Findings, what: &'static str, path: &Path) {
    let shown = path.display();
    let there = existing(path);
    let probe = tempfile::Builder::new().prefix(".cairn-doctor-").tempfile_in(there);
    if let Err(error) = probe {
        return findings.bad(
            what,
            format!(
                "{shown}: nothing can be written: {}; give it to the user that runs the role",
                error.kind()
            ),
        );
    }
    match free_len(there) {
        None => findings.doubtful(what, format!("{shown}: how much is free cannot be found out")),
        Some(free) if free < LITTLE => {
            findings.doubtful(what, format!("{shown}: only {} are free", output::size(free)));
        }
        Some(free) => findings.fine(what, format!("{shown}: {} are free", output::size(free))),
    }
}

/// Bytes that can be written below a path.
fn free_len(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn port(findings: &mut Findings, what: &'static str, addr: SocketAddr) {
    match TcpListener::bind(addr) {
        Ok(_) => findings.fine(what, format!("{addr} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            findings.doubtful(
                what,
                format!("{addr} is taken: fine if the role runs already, else set another"),
            );
        }
        Err(error) => findings.bad(what, format!("{addr} cannot be listened at: {}", error.kind())),
    }
}

fn host(findings: &mut Findings) {
    let files = limit_of_files(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default());
    match files {
        Some(files) if files < FILES => findings.bad(
            "open files",
            format!("{files} at most: raise the hard limit to {FILES} (ulimit -Hn, LimitNOFILE=)"),
        ),
        Some(files) => findings.fine("open files", format!("{files} at most")),
        None => findings.doubtful("open files", "how many there may be cannot be found out"),
    }
    let engine = Engine::best();
    let told = format!("erasure codes are computed by {}", engine.name());
    match engine {
        Engine::Portable => findings.doubtful(
            "processor",
            format!("{told}, without vector instructions: expect a tenth of the speed"),
        ),
        _ => findings.fine("processor", told),
    }
    match is_synchronized() {
        Some(true) => findings.fine("clock", "is synchronized"),
        Some(false) => findings.bad("clock", "is not synchronized: run chrony or systemd-timesyncd; leases, tokens and maintenance go by it"),
        None => findings.doubtful("clock", "whether it is synchronized cannot be found out: see that chrony or its like runs"),
    }
}

/// The hard limit in what the kernel tells of a process's limits.
fn limit_of_files(text: &str) -> Option<u64> {
    let row = text.lines().find(|line| line.starts_with("Max open files"))?;
    match row.split_whitespace().nth(4)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn is_synchronized() -> Option<bool> {
    let told =
        Command::new("timedatectl").args(["show", "-p", "NTPSynchronized", "--value"]).output();
    let told = told.ok().filter(|told| told.status.success())?;
    match String::from_utf8_lossy(&told.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

async fn cluster(findings: &mut Findings, client: cairn_client::ClientConfig) {
    let name = client.namenode.clone();
    let connected = tokio::time::timeout(PATIENCE, FileSystem::connect(client)).await;
    let fs = match connected {
        Err(_) => {
            return findings.doubtful(
                "cluster",
                format!("hdfs://{name} does not answer: racks and policies were not looked at"),
            );
        }
        Ok(Err(error)) => return findings.doubtful("cluster", format!("hdfs://{name}: {error}")),
        Ok(Ok(fs)) => fs,
    };
    findings.fine("cluster", format!("hdfs://{name} answers"));
    match fs.check_topology(&[]).await {
        Ok(check) if check.supported => findings.fine("racks", check.message),
        Ok(check) => findings.bad(
            "racks",
            format!("{}; add racks or DataNodes, or enable another policy", check.message),
        ),
        Err(error) => findings.doubtful("racks", error.to_string()),
    }
}

fn tell(findings: &Findings, json: bool) -> ExitCode {
    for Finding { grade, what, told } in &findings.0 {
        if json {
            let grade = format!("{grade:?}").to_lowercase();
            crate::say!("{}", json!({"grade": grade, "what": what, "told": told}));
            continue;
        }
        let mark = match grade {
            Grade::Fine => "ok  ",
            Grade::Doubtful => "note",
            Grade::Bad => "BAD ",
        };
        crate::say!("{mark}  {what}: {told}");
    }
    let is_bad = findings.0.iter().any(|finding| finding.grade == Grade::Bad);
    ExitCode::from(u8::from(is_bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(findings: &Findings, what: &str) -> Vec<Grade> {
        findings.0.iter().filter(|f| f.what == what).map(|f| f.grade).collect()
    }

    #[test]
    fn keys_that_nobody_reads_are_told() {
        let mut conf = config::Configuration::default();
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:8020");
        conf.set("dfs.replication", "2");
        conf.set("cairn.durabilty", "stable");
        conf.set("dfs.namenode.no.such.key", "1");
        conf.set("yarn.something", "1");
        let mut findings = Findings::default();
        keys(&mut findings, &conf);
        assert_eq!(told(&findings, "keys"), [Grade::Bad, Grade::Doubtful]);
    }

    #[test]
    fn folders_and_ports_are_tried() {
        let dir = tempfile::tempdir().unwrap();
        let mut findings = Findings::default();
        folder(&mut findings, "DataNode folder", &dir.path().join("not/yet/there"));
        folder(&mut findings, "NameNode folder", Path::new("/proc/x"));
        assert_ne!(told(&findings, "DataNode folder"), [Grade::Bad]);
        assert_eq!(told(&findings, "NameNode folder"), [Grade::Bad]);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        port(&mut findings, "DataNode RPC", taken.local_addr().unwrap());
        assert_eq!(told(&findings, "DataNode RPC"), [Grade::Doubtful]);
    }

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let text = "Limit   Soft   Hard   Units\nMax open files            1024                 524288               files     \n";
        assert_eq!(limit_of_files(text), Some(524_288));
        assert_eq!(limit_of_files(&text.replace("524288", "unlimited")), Some(u64::MAX));
        assert_eq!(limit_of_files(""), None);
    }
}
