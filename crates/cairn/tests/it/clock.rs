//! A NameNode whose machine's clock is set while files are written. Needs Debian's package `faketime`.

use crate::cluster::{Cluster, text, wait_until};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

/// The library that has a process see another time.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path());
    let mut files = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    files.find(|file| file.exists()).expect("the package `faketime` is not installed")
}

#[test]
fn a_wall_clock_that_jumps_a_day_ahead_and_back_ends_nothing_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (offset, log) = (folder.path().join("offset"), folder.path().join("log"));
    let set = |to: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, to).unwrap();
        std::fs::rename(new, &offset).unwrap();
    };
    set("+0");
    let environment = [
        ("LD_PRELOAD", &*faketime()),
        ("FAKETIME_TIMESTAMP_FILE", &*offset),
        ("FAKETIME_NO_CACHE", Path::new("1")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
    ];
    let cluster = Cluster::with(1, &[], File::create(&log).unwrap().into(), &environment);
    let other = cluster.file("other", b"of somebody else");
    let mut writer = cluster.command(&["fs", "put", "-", "/open"]);
    let mut writer = writer.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let mut bytes = vec![7; 5 << 20];
    input.write_all(&bytes).unwrap();
    let begun = || cluster.names("/").into_iter().find(|name| name.ends_with("._COPYING_"));
    wait_until("the file is begun", || begun().is_some());
    let begun = format!("/{}", begun().unwrap());
    for (to, path) in [("+1d", "/ahead"), ("-1d", "/back"), ("+0", "/again")] {
        set(to);
        // Leases are looked at every two seconds.
        std::thread::sleep(Duration::from_secs(5));
        let refused = cluster.run(&["fs", "append", &other, &begun]);
        let why = text(&refused.stderr);
        assert!(!refused.status.success() && why.contains("lease"), "{to}: {why}");
        cluster.fs(&["mkdir", path]);
        let made = cluster.run(&["fs", "stat", "%Y", path]);
        let made: u128 = text(&made.stdout).trim().parse().unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        assert!(made.abs_diff(now) < 300_000, "{to}: {made} at {now}");
        input.write_all(&bytes).unwrap();
    }
    drop(input);
    let ended = writer.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    bytes = bytes.repeat(4);
    let read = cluster.run(&["fs", "cat", "/open"]).stdout;
    assert!(read == bytes, "{} bytes", read.len());
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(said.matches("has jumped").count(), 1, "{said}");
    assert!(!said.contains("lease has expired"), "{said}");
}
