//! Traces: what a command, the NameNode and DataNodes tell a collector of.

use crate::cluster::{Cluster, text, wait_until};
use crate::collector::Collector;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

/// All spans that a collector was told of, each with the name of its service beside it.
fn all_spans(collector: &Collector) -> Vec<(String, Value)> {
    let told = collector.told().into_iter();
    let requests: Vec<Value> = told.map(|body| serde_json::from_str(&body).unwrap()).collect();
    let mut spans = Vec::new();
    for of_process in requests.iter().flat_map(|one| one["resourceSpans"].as_array().unwrap()) {
        let service = &of_process["resource"]["attributes"][0];
        assert_eq!(service["key"], "service.name");
        let service = service["value"]["stringValue"].as_str().unwrap().to_string();
        for span in of_process["scopeSpans"][0]["spans"].as_array().unwrap() {
            spans.push((service.clone(), span.clone()));
        }
    }
    spans
}

#[test]
fn a_command_is_one_trace_through_namenode_and_datanodes() {
    let collector = Collector::start();
    let key = format!("cairn.trace.endpoint={}", collector.endpoint);
    let cluster = Cluster::of(2, &["-D", &key], Stdio::inherit());
    let file = cluster.file("x", b"told of");
    let run = |words: &[&str], environment: &str| {
        let all = [&["-D", "dfs.replication=2", "-D", &key, "fs"], words].concat();
        let done = cluster.command(&all).env("TRACEPARENT", environment).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    run(&["put", &file, "/x"], parent);
    let spans = || -> Vec<(String, Value)> {
        let is_of_it = |span: &Value| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736";
        all_spans(&collector).into_iter().filter(|(_, span)| is_of_it(span)).collect()
    };
    let named = |name: &str| -> Vec<(String, Value)> {
        spans().into_iter().filter(|(_, span)| span["name"] == name).collect()
    };
    wait_until("all have told", || {
        named("DataTransfer/WriteBlock").len() == 2
            && named("ClientProtocol/complete").len() >= 2
            && named("cairn fs put").len() == 1
    });
    let root = &named("cairn fs put")[0];
    assert_eq!((root.0.as_str(), &root.1["parentSpanId"]), ("cairn", &"00f067aa0ba902b7".into()));
    // A call of the client, and the NameNode's part of it.
    let calls = named("ClientProtocol/create");
    let by = |service: &str| calls.iter().find(|(by, _)| by == service).map(|(_, span)| span);
    let (asked, served) = (by("cairn").unwrap(), by("cairn-cluster").unwrap());
    assert_eq!((&asked["parentSpanId"], &asked["kind"]), (&root.1["spanId"], &3.into()));
    assert_eq!((&served["parentSpanId"], &served["kind"]), (&asked["spanId"], &2.into()));
    // The first DataNode is asked by the command, the second by the first.
    let writes = named("DataTransfer/WriteBlock");
    let below = |parent: &Value| writes.iter().find(|(_, span)| span["parentSpanId"] == *parent);
    let first = below(&root.1["spanId"]).expect("one that the command has asked");
    below(&first.1["spanId"]).expect("one that the first has asked");

    run(&["cat", "/x"], parent);
    wait_until("a read is told", || named("DataTransfer/ReadBlock").len() == 1);

    // Who begins a trace that is not recorded, and commands that are not chosen, tell nothing.
    let before = all_spans(&collector).len();
    run(&["cat", "/x"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
    let unchosen = ["-D", "cairn.trace.sample=0", "-D", &key, "fs", "cat", "/x"];
    assert_eq!(text(&cluster.run(&unchosen).stdout), "told of");
    assert_eq!(all_spans(&collector).len(), before);
}

#[test]
fn a_collector_that_is_gone_or_hangs_holds_up_nothing() {
    let cluster = Cluster::of(1, &[], Stdio::inherit());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for endpoint in ["127.0.0.1:9".to_string(), silent.local_addr().unwrap().to_string()] {
        let key = format!("cairn.trace.endpoint=http://{endpoint}");
        let done = cluster.run(&["-D", &key, "fs", "ls", "/"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let done = cluster.run(&["-D", "cairn.trace.endpoint=nowhere", "fs", "ls", "/"]);
    assert!(text(&done.stderr).contains("http://HOST:PORT"), "{}", text(&done.stderr));
}

#[test]
fn requests_by_http_and_rebuilding_are_told() {
    let collector = Collector::start();
    let key = format!("cairn.trace.endpoint={}", collector.endpoint);
    // A silent DataNode is soon dead.
    let keys = [
        key.as_str(),
        "dfs.heartbeat.interval=200ms",
        "dfs.namenode.heartbeat.recheck-interval=200",
        "dfs.namenode.redundancy.interval.seconds=1",
    ];
    let words: Vec<&str> = keys.iter().flat_map(|key| ["-D", *key]).collect();
    let mut cluster = Cluster::of(4, &words, Stdio::inherit());
    let named = |name: &str| -> Vec<Value> {
        let spans = all_spans(&collector).into_iter().map(|(_, span)| span);
        spans.filter(|span| span["name"] == name).collect()
    };
    cluster.fs(&["mkdir", "/ec"]);
    let mut asked = TcpStream::connect(cluster.http()).unwrap();
    let head = "host: x\r\nconnection: close\r\n\
                traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
    write!(asked, "GET /webhdfs/v1/ec?op=GETFILESTATUS HTTP/1.1\r\n{head}").unwrap();
    let mut answer = String::new();
    asked.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    wait_until("a request is told", || named("WebHDFS/GETFILESTATUS").len() == 1);
    let request = &named("WebHDFS/GETFILESTATUS")[0];
    assert_eq!(request["parentSpanId"], "00f067aa0ba902b7");

    let ec = |words: &[&str]| {
        let done = cluster.run(&[&["ec"], words].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    ec(&["-enablePolicy", "-policy", "XOR-2-1-1024k"]);
    ec(&["-setPolicy", "-path", "/ec", "-policy", "XOR-2-1-1024k"]);
    let file = cluster.file("x", &[7; 3 << 20]);
    for number in 0..8 {
        cluster.fs(&["put", &file, &format!("/ec/{number}")]);
    }
    assert_eq!(named("Rebuild/units").len(), 0);
    // Of each group three of the four have a unit.
    cluster.kill_datanode(0);
    wait_until("rebuilding is told, with what was read for it", || {
        let reads = named("DataTransfer/ReadBlock");
        named("Rebuild/units").iter().any(|work| {
            work["parentSpanId"].as_str().is_none_or(str::is_empty)
                && reads.iter().any(|read| read["parentSpanId"] == work["spanId"])
        })
    });
}
