//! Logs for programs.

use crate::cluster::Cluster;
use serde_json::Value;
use std::fs::File;
use std::process::Stdio;

#[test]
fn a_log_for_programs_is_one_object_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = Stdio::from(File::create(&path).unwrap());
    let cluster = Cluster::of(2, &["--log-format", "json", "--log", "debug"], log);
    let file = cluster.file("x", b"told of");
    cluster.fs(&["put", &file, "/x"]);
    cluster.fs(&["cat", "/x"]);
    drop(cluster);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["fields", "level", "message", "target", "time"], "{line}");
        assert!(line["fields"].is_object() && line["time"].as_str().unwrap().ends_with('Z'));
    }
    let of = |target: &str| {
        lines.iter().any(|line| line["target"].as_str().unwrap().starts_with(target))
    };
    assert!(of("cairn_datanode") && of("cairn_net"), "{} lines", lines.len());
    let started = lines.iter().find(|line| line["message"] == "DataNode started").unwrap();
    assert!(started["fields"]["xfer_addr"].as_str().unwrap().starts_with("127.0.0.1:"));
}
