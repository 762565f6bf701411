//! `cairn fs` with the commands of `hdfs dfs`. What Hadoop's print is compared in `interop/hadoop` (`ShellTests`).

use crate::cluster::{Cluster, text, word};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

#[test]
fn modes_owners_and_lists_are_changed_and_told() {
    let cluster = Cluster::start();
    let data = cluster.file("data", b"data");
    cluster.fs(&["put", &data, "/d/f"]);
    cluster.fs(&["chmod", "-R", "u=rwx,g=rX,o-rwx", "/d"]);
    cluster.fs(&["chmod", "--", "-w", "/d/f"]);
    cluster.fs(&["chown", "-R", "ann:crew", "/d"]);
    cluster.fs(&["chgrp", "staff", "/d/f"]);
    let stat = |format: &str, path: &str| cluster.fs(&["stat", "--format", format, path]);
    assert_eq!(stat("%A %u %g", "/d"), "rwxr-x--- ann crew\n");
    assert_eq!(stat("%A %u %g", "/d/f"), "r-xr-x--- ann staff\n");
    assert!(cluster.refused(&["chmod", "4755", "/d"]).contains("is no mode"));

    cluster.fs(&["setfacl", "-m", "user:bob:rw-", "/d/f"]);
    let told = cluster.fs(&["getfacl", "/d/f"]);
    assert!(told.contains("user:bob:rw-\n") && told.contains("mask::rwx\n"), "{told}");
    assert!(cluster.fs(&["ls", "/d"]).starts_with("-r-xrwx---+"));
    cluster.fs(&["setfacl", "--remove-all", "/d/f"]);
    assert!(!cluster.fs(&["getfacl", "/d/f"]).contains("bob"));

    cluster.fs(&["setfattr", "-n", "user.x", "-v", "0x6162", "/d/f"]);
    assert_eq!(cluster.fs(&["getfattr", "-d", "/d/f"]), "# file: /d/f\nuser.x=\"ab\"\n");
    cluster.fs(&["setfattr", "-x", "user.x", "/d/f"]);
    assert!(cluster.refused(&["getfattr", "-n", "user.x", "/d/f"]).contains("not found"));
}

#[test]
fn bytes_are_appended_shown_cut_and_joined() {
    let cluster = Cluster::start();
    let (one, two) = (cluster.file("one", b"one\n"), cluster.file("two", b"two\n"));
    cluster.fs(&["append", &one, &two, "/f"]);
    cluster.fs(&["append", &one, "/f"]);
    assert_eq!(cluster.fs(&["cat", "/f"]), "one\ntwo\none\n");
    assert_eq!(cluster.fs(&["head", "-c", "5", "/f"]), "one\nt");
    assert_eq!(cluster.fs(&["tail", "-c", "5", "/f"]), "\none\n");
    assert_eq!(
        cluster.fs(&["truncate", "-w", "4", "/f"]).lines().last(),
        Some("Truncated /f to length: 4")
    );
    cluster.fs(&["put", &two, "/g"]);
    cluster.fs(&["concat", "/f", "/g"]);
    assert_eq!(cluster.fs(&["cat", "/f"]), "one\ntwo\n");

    let mut put =
        cluster.command(&["fs", "put", "-", "/in"]).stdin(Stdio::piped()).spawn().unwrap();
    put.stdin.take().unwrap().write_all(b"from a pipe").unwrap();
    assert!(put.wait().unwrap().success());
    assert_eq!(cluster.fs(&["get", "/in", "-"]), "from a pipe");

    let packed = cluster.local("packed");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"packed\n").unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    cluster.fs(&["put", &word(&packed), "/p"]);
    assert_eq!(cluster.fs(&["text", "/p", "/in"]), "packed\nfrom a pipe");

    let merged = cluster.local("merged");
    cluster.fs(&["getmerge", "--nl", "/f", "/in", &word(&merged)]);
    assert_eq!(std::fs::read(&merged).unwrap(), b"one\ntwo\n\nfrom a pipe\n");
}

#[test]
fn a_file_that_grows_is_followed() {
    let cluster = Cluster::start();
    let more = cluster.file("more", b"more\n");
    cluster.fs(&["append", &more, "/f"]);
    let words = ["fs", "tail", "-f", "-s", "50", "/f"];
    let mut tail = cluster.command(&words).spawn().unwrap();
    let mut read = |wanted: &str| {
        let mut bytes = vec![0; wanted.len()];
        std::io::Read::read_exact(tail.stdout.as_mut().unwrap(), &mut bytes).unwrap();
        assert_eq!(text(&bytes), wanted);
    };
    read("more\n");
    cluster.fs(&["append", &more, "/f"]);
    read("more\n");
    assert_eq!(crate::cluster::interrupt(tail).status.code(), Some(130));
}

#[test]
fn trees_are_copied_moved_found_and_counted() {
    let cluster = Cluster::start();
    let data = cluster.file("data", &[7; 1000]);
    cluster.fs(&["put", &data, "/a/b/one.txt"]);
    cluster.fs(&["put", &data, "/a/Two.TXT"]);
    cluster.fs(&["cp", "-p", "/a", "/copy"]);
    assert!(cluster.refused(&["cp", "/a/Two.TXT", "/copy/Two.TXT"]).contains("File exists"));
    assert!(cluster.refused(&["cp", "/a", "/a/b"]).contains("subdirectory of itself"));
    assert_eq!(cluster.fs(&["find", "/", "--iname", "*.txt"]).lines().count(), 4);
    assert_eq!(cluster.fs(&["find", "/a", "--name", "*.txt"]), "/a/b/one.txt\n");
    cluster.fs(&["mv", "/copy/b", "/copy/Two.TXT", "/a/b"]);
    assert_eq!(cluster.names("/a/b"), ["Two.TXT", "b", "one.txt"]);
    assert_eq!(
        cluster.fs(&["ls", "-C", "/a/{b,none}/*.TXT", "/a/T?o*"]),
        "/a/b/Two.TXT\n/a/Two.TXT\n"
    );
    assert!(cluster.refused(&["ls", "/a/none*"]).contains("No such file"));

    let counted = cluster.fs(&["count", "/a"]);
    assert_eq!(counted.split_whitespace().collect::<Vec<_>>(), ["3", "4", "4000", "/a"]);
    assert_eq!(cluster.fs(&["du", "-s", "-h", "/a"]), "3.9 K  3.9 K  /a\n");
    let df: Value = serde_json::from_str(&cluster.fs(&["df", "--json"])).unwrap();
    assert!(df["capacity"].as_u64().unwrap() > 0);

    // What fails leaves the rest as it is to be.
    let some = cluster.run(&["fs", "rm", "--skip-trash", "/none", "/a/Two.TXT"]);
    assert_eq!(some.status.code(), Some(1));
    assert_eq!(cluster.names("/a"), ["b"]);
    assert!(cluster.refused(&["rmdir", "/a"]).contains("not empty"));
}

#[test]
fn tests_times_and_snapshots() {
    let cluster = Cluster::start();
    cluster.fs(&["mkdir", "/d"]);
    cluster.fs(&["touchz", "/d/z"]);
    cluster.fs(&["touch", "-m", "-t", "20220101:000000", "/d/z", "/d/new"]);
    assert_eq!(cluster.fs(&["stat", "%Y", "/d/z"]), "1640995200000\n");
    for (flag, path, code) in [
        ("-e", "/d", 0),
        ("-e", "/none", 1),
        ("-d", "/d/z", 1),
        ("-f", "/d/z", 0),
        ("-z", "/d/new", 0),
        ("-s", "/d/new", 1),
        ("-r", "/d", 0),
    ] {
        let done = cluster.run(&["fs", "test", flag, path]);
        assert_eq!(done.status.code(), Some(code), "{flag} {path}");
    }
    cluster.tool(&["admin", "allow-snapshot", "/d"]);
    assert_eq!(cluster.fs(&["create-snapshot", "/d", "s1"]), "Created snapshot /d/.snapshot/s1\n");
    cluster.fs(&["rm", "--skip-trash", "/d/z"]);
    cluster.fs(&["create-snapshot", "/d", "s2"]);
    cluster.fs(&["rename-snapshot", "/d", "s2", "s3"]);
    assert_eq!(
        cluster.tool(&["snapshot", "diff", "/d", "s1", "s3"]),
        "Difference between snapshot s1 and snapshot s3 under directory /d:\nM\t.\n-\t./z\n"
    );
    let listed = cluster.tool(&["lsSnapshottableDir"]);
    assert!(listed.ends_with(" 2 65536 /d\n"), "{listed}");
    cluster.fs(&["delete-snapshot", "/d", "s1"]);
    assert_eq!(cluster.names("/d/.snapshot"), ["s3"]);
}

#[test]
fn hadoops_spelling_is_understood() {
    let cluster = Cluster::start();
    let data = cluster.file("data", b"data");
    cluster.fs(&["-mkdir", "-p", "/d/e"]);
    cluster.fs(&["-put", &data, "/d/f"]);
    assert!(cluster.fs(&["-ls", "/d"]).starts_with("Found 2 items\ndrwx"));
    assert_eq!(cluster.fs(&["-find", "/d", "-name", "f", "-print"]), "/d/f\n");
    assert_eq!(cluster.fs(&["-rm", "-r", "-skipTrash", "/d"]), "Deleted /d\n");
    let help = cluster.run(&["fs", "-help", "rm"]);
    assert!(text(&help.stdout).contains("--skip-trash"), "{}", text(&help.stdout));
    let wrong = cluster.run(&["fs", "-nothing"]);
    assert_eq!(wrong.status.code(), Some(2));
}
