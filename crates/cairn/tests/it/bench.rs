//! `cairn bench`, on a cluster of processes' own.

use crate::cluster::Cluster;
use serde_json::Value;
use std::process::Stdio;

#[test]
fn every_kind_is_done_in_each_layout_and_nothing_is_left() {
    let cluster = Cluster::of(5, &[], Stdio::inherit());
    cluster.tool(&["ec", "-enablePolicy", "-policy", "RS-3-2-1024k"]);
    cluster.fs(&["mkdir", "/b"]);
    let words = ["bench", "/b", "--layouts", "2x,RS-3-2-1024k", "--size", "3m", "--piece", "10k"];
    let more = ["--concurrency", "2", "--seconds", "1", "--json"];
    let told = cluster.tool(&[&words[..], &more].concat());
    let rows: Value = serde_json::from_str(&told).unwrap();
    let rows = rows.as_array().unwrap();
    let kinds: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["layout"].as_str().unwrap(), row["kind"].as_str().unwrap()))
        .collect();
    let each = ["write", "read", "random", "mixed"];
    let want = ["2x", "RS-3-2-1024k"].map(|layout| each.map(|kind| (layout, kind))).concat();
    assert_eq!(kinds, want);
    for row in rows {
        assert!(row["operations"].as_u64().unwrap() >= 2, "{row}");
        let latency = |name: &str| row["latency_ms"][name].as_f64().unwrap();
        assert!(latency("p50") <= latency("p99") && latency("p99") <= latency("max"), "{row}");
    }
    // Whole files are read and written, of pieces only their bytes.
    let len = 3 << 20;
    for at in [0, 1, 4, 5] {
        let operations = rows[at]["operations"].as_u64().unwrap();
        assert_eq!(rows[at]["bytes"], operations * len);
    }
    assert_eq!(rows[2]["bytes"], rows[2]["operations"].as_u64().unwrap() * 10 * 1024);
    assert_eq!(cluster.names("/b"), Vec::<String>::new());
}

#[test]
fn what_a_run_has_left_is_read_by_another() {
    let cluster = Cluster::of(1, &[], Stdio::inherit());
    cluster.fs(&["mkdir", "/b"]);
    let run = |words: &[&str]| -> Value {
        let same = ["--layouts", "1x", "--concurrency", "2", "--seconds", "1", "--json"];
        let told = cluster.tool(&[&["bench", "/b"], words, &same].concat());
        serde_json::from_str(&told).unwrap()
    };
    let wrote = run(&["--patterns", "write", "--size", "100k", "--piece", "1k", "--keep"]);
    let folder = wrote[0]["folder"].as_str().unwrap();
    let (parent, layout) = folder.rsplit_once('/').unwrap();
    assert_eq!(layout, "1x");
    let files = cluster.names(folder);
    assert_eq!(files.len() as u64, wrote[0]["operations"]);

    let read = run(&["--patterns", "read,random", "--from", parent]);
    assert_eq!(read[0]["bytes"], read[0]["operations"].as_u64().unwrap() * 100 * 1024);
    assert!(read[1]["operations"].as_u64().unwrap() > 0, "{read}");
    assert_eq!(cluster.names(folder), files);
}
