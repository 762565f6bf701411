//! `cairn admin` and the commands beside it, on a cluster of processes' own.

use crate::cluster::{Cluster, cairn, text, wait_until};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn operators_ask_and_are_told() {
    let cluster = Cluster::start();
    assert_eq!(cluster.tool(&["admin", "-safemode", "enter"]), "Safe mode is ON\n");
    assert_eq!(cluster.tool(&["admin", "save-namespace"]), "Save namespace successful\n");
    assert_eq!(cluster.tool(&["admin", "safemode", "leave"]), "Safe mode is OFF\n");
    assert!(cluster.tool(&["admin", "topology"]).contains("In Service"));
    assert_eq!(cluster.tool(&["admin", "upgrade", "query"]), "Upgrade finalized\n");
    assert!(cluster.tool(&["admin", "open-files"]).starts_with("Client Host"));
    cluster.tool(&["admin", "roll-edits"]);
    let told = cluster.tool(&["--json", "admin", "refresh-nodes"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["told"], "Refresh nodes successful");
    cluster.tool(&["admin", "refresh-user-to-groups-mappings"]);
    assert!(cluster.tool(&["groups", "nobody-such"]).starts_with("nobody-such : "));

    cluster.fs(&["mkdir", "/q"]);
    cluster.tool(&["admin", "-setQuota", "3", "/q"]);
    cluster.tool(&["admin", "-setSpaceQuota", "1m", "-storageType", "DISK", "/q"]);
    let counted = cluster.fs(&["count", "-q", "/q"]);
    let counted: Vec<&str> = counted.split_whitespace().collect();
    assert_eq!(counted, ["3", "2", "none", "inf", "1", "0", "0", "/q"]);
    cluster.tool(&["admin", "clear-quota", "/q"]);
    assert!(cluster.fs(&["count", "-q", "/q"]).trim_start().starts_with("none"));

    cluster.tool(&["storagepolicies", "-setStoragePolicy", "-path", "/q", "-policy", "COLD"]);
    let policy = cluster.tool(&["storagepolicies", "get", "--path", "/q"]);
    assert!(policy.contains("BlockStoragePolicy{COLD:2, storageTypes=[ARCHIVE]"), "{policy}");
    cluster.tool(&["cacheadmin", "-addPool", "p", "-limit", "1000"]);
    let id = cluster.tool(&["cache", "add-directive", "--path", "/q", "--pool", "p"]);
    assert_eq!(id, "Added cache directive 1\n");
    assert!(cluster.tool(&["cache", "list-directives"]).contains("/q"));
    cluster.tool(&["cache", "remove-pool", "p"]);

    let data = cluster.file("data", b"data");
    cluster.fs(&["put", &data, "/f"]);
    assert!(cluster.tool(&["debug", "verify", "/f"]).starts_with("All replicas"));
    assert!(cluster.tool(&["debug", "-recoverLease", "-path", "/f"]).contains("SUCCEEDED"));
}

#[test]
fn datanodes_leave_by_name_to_the_end_and_come_back() {
    let keys = ["dfs.heartbeat.interval=200ms", "dfs.namenode.decommission.interval=1"];
    let words: Vec<&str> = keys.iter().flat_map(|key| ["-D", key]).collect();
    let cluster = Cluster::of(3, &words, Stdio::inherit());
    for name in ["a", "b", "c"] {
        let data = cluster.file(name, &[7; 100_000]);
        cluster.fs(&["put", &data, &format!("/{name}")]);
    }
    let report = || -> Value {
        serde_json::from_str(&cluster.tool(&["admin", "report", "--json"])).unwrap()
    };
    let first = report()["live"][0]["address"].as_str().unwrap().to_string();
    let state = || -> String {
        let told = report();
        let nodes = told["live"].as_array().unwrap().clone();
        let node = nodes.into_iter().find(|node| node["address"] == first.as_str()).unwrap();
        node["state"].as_str().unwrap().to_string()
    };
    let done = cluster.tool(&["admin", "decommission", &first]);
    assert_eq!(done, format!("{first}: decommissioned; it may be switched off\n"));
    assert_eq!(state(), "Decommissioned");
    // What is refreshed keeps it.
    cluster.tool(&["admin", "-refreshNodes"]);
    assert_eq!(state(), "Decommissioned");
    for name in ["a", "b", "c"] {
        assert_eq!(cluster.fs(&["cat", &format!("/{name}")]).len(), 100_000);
    }
    cluster.tool(&["admin", "recommission", &first]);
    wait_until("it serves again", || state() == "Normal");
    cluster.tool(&["admin", "maintenance", "--for", "1h", "--no-wait", &first]);
    wait_until("it is away", || state() != "Normal");
    let unknown = cluster.run(&["admin", "decommission", "no-such-host.invalid"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("no DataNode is no-such-host.invalid"));
}

#[test]
fn fsck_finds_the_pages_of_the_namenode_that_it_was_given() {
    let cluster = Cluster::start();
    let done = cluster.run(&["fsck", "/"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).trim_end().ends_with("The filesystem under path '/' is HEALTHY"));
}

#[test]
fn an_error_tells_its_cause_once() {
    let started = cairn().args(["namenode", "--data", "/proc/x"]).output().unwrap();
    let told = text(&started.stderr);
    let cause = "No such file or directory";
    assert_eq!(told.matches(cause).count(), 1, "{told}");
    assert_eq!(started.status.code(), Some(1));
}

#[test]
fn a_file_system_is_made_once_and_only_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("name").display().to_string();
    let namenode = |option| {
        let done = cairn().args(["namenode", option, "--data", &folder]).output().unwrap();
        (done.status.code(), text(&done.stdout) + &text(&done.stderr))
    };
    let (status, told) = namenode("--no-format");
    assert!(status == Some(1) && told.contains("not formatted"), "{told}");
    let (status, told) = namenode("--format-only");
    assert_eq!((status, told), (Some(0), format!("formatted {folder}\n")));
    let version = || std::fs::read_to_string(dir.path().join("name/VERSION")).unwrap();
    let before = version();
    let (status, told) = namenode("--format-only");
    assert!(status == Some(0) && told.contains("already"), "{told}");
    assert_eq!(version(), before);
}

#[test]
fn shells_and_man_learn_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let made = cairn().args(["completion", shell]).output().unwrap();
        let made = text(&made.stdout);
        for command in ["decommission", "setfacl", "storagepolicies"] {
            assert!(made.contains(command), "{shell} {command}");
        }
    }
}
