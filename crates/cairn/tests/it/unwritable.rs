//! Servers whose log and commands whose complaints cannot be written.

use crate::cluster::{Cluster, wait_until};
use serde_json::Value;
use std::fs::File;
use std::process::Stdio;

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn dead_datanodes_are_noticed_though_the_log_cannot_be_written() {
    let silence = "dfs.namenode.heartbeat.recheck-interval=200";
    let words = ["-D", "dfs.heartbeat.interval=200ms", "-D", silence];
    let mut cluster = Cluster::of(2, &words, full());
    for index in 0..2 {
        cluster.kill_datanode(index);
        wait_until("a DataNode that is gone counts as dead", || {
            let report: Value =
                serde_json::from_slice(&cluster.run(&["report", "--json"]).stdout).unwrap();
            report["dead"].as_array().unwrap().len() == index + 1
        });
    }
}

#[test]
fn commands_end_as_ever_though_they_cannot_complain() {
    let cluster = Cluster::start();
    let x = cluster.file("x", b"x");
    cluster.fs(&["put", &x, "/x"]);
    cluster.fs(&["put", &x, "/y"]);
    let removed = cluster.command(&["fs", "rm", "/x", "/y"]).stderr(full()).status().unwrap();
    assert_eq!(removed.code(), Some(0));
    assert_eq!(cluster.names("/").iter().filter(|name| name.len() == 1).count(), 0);
    let refused = cluster.command(&["fs", "cat", "/x"]).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(1));
    let refused = cluster.command(&["ec", "-nothing"]).stderr(full()).status().unwrap();
    assert!(refused.code().is_some_and(|code| code != 101), "{refused}");
}
