//! `cairn fs`: what is stored, fetched and removed is there as a whole, or as it was before.

use crate::cluster::{Cluster, interrupt, text, wait_until, word};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Stdio;

#[test]
fn a_put_that_fails_or_is_interrupted_changes_nothing() {
    let cluster = Cluster::start();
    let (old, new) = (cluster.file("old", b"old"), cluster.file("new", b"new"));
    cluster.fs(&["put", &old, "/d/x"]);
    assert!(cluster.refused(&["put", &new, "/d/x"]).contains("/d/x: File exists"));
    assert!(cluster.refused(&["put", "-f", &new, "/d/x/y"]).contains("/d/x"));

    // It can be opened, and not read.
    assert!(cluster.refused(&["put", "-f", "/proc/self/mem", "/d/x"]).contains("/proc/self/mem"));
    assert_eq!(cluster.names("/d"), ["x"]);

    let pipe = cluster.fifo("pipe");
    let put = cluster.command(&["fs", "put", "-f", &pipe, "/d/x"]).spawn().unwrap();
    let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(b"half").unwrap();
    wait_until("it is being written", || copies(&cluster.names("/d")) == 1);
    let done = interrupt(put);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(130), String::new()));
    assert_eq!(cluster.names("/d"), ["x"]);
    assert_eq!(cluster.fs(&["cat", "/d/x"]), "old");

    // A put to the same name, at the same time, is in no one's way.
    drop(writer);
    let slow = cluster.command(&["fs", "put", "-f", &pipe, "/d/x"]).spawn().unwrap();
    let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(b"sl").unwrap();
    wait_until("it is being written", || copies(&cluster.names("/d")) == 1);
    cluster.fs(&["put", "-f", &new, "/d/x"]);
    assert_eq!(cluster.fs(&["cat", "/d/x"]), "new");
    writer.write_all(b"ow").unwrap();
    drop(writer);
    let done = slow.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
    assert_eq!(cluster.names("/d"), ["x"]);
    assert_eq!(cluster.fs(&["cat", "/d/x"]), "slow");
}

/// How many names are those of unfinished copies.
fn copies(names: &[String]) -> usize {
    names.iter().filter(|name| name.ends_with("._COPYING_")).count()
}

#[test]
fn a_directory_is_not_moved_below_its_own_name() {
    let cluster = Cluster::start();
    for path in ["/a/b/c", "/into/b/d"] {
        cluster.fs(&["mkdir", "-p", path]);
    }
    assert!(cluster.refused(&["mv", "/a/b", "/into"]).contains("/into/b: File exists"));
    assert_eq!(
        (cluster.names("/a"), cluster.names("/into/b")),
        (vec!["b".into()], vec!["d".into()])
    );
    cluster.fs(&["mv", "/a/b", "/into/b"]);
    assert_eq!(cluster.names("/into/b"), ["b", "d"]);
}

#[test]
fn words_that_cannot_be_meant_are_refused() {
    let cluster = Cluster::start();
    let tree = cluster.local("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join(OsStr::from_bytes(b"a\xff")), b"a").unwrap();
    let told = cluster.refused(&["put", &word(&tree), "/tree"]);
    assert!(told.contains(r"tree/a\xFF") && told.contains("UTF-8"), "{told}");
    assert_eq!(cluster.names("/tree"), [""; 0]);

    let both = cluster.run(&["fs", "put", "--replication", "2", "--policy", "P", "a", "/b"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
    let nothing = cluster.run(&["mover", "/nope"]);
    assert_eq!(nothing.status.code(), Some(252), "{}", text(&nothing.stdout));
    assert!(text(&nothing.stderr).contains("/nope"), "{}", text(&nothing.stderr));
}

#[test]
fn get_replaces_what_it_is_told_to_and_nothing_else() {
    let mut cluster = Cluster::start();
    let data = cluster.file("data", b"data");
    cluster.fs(&["put", &data, "/x"]);
    let folder = cluster.local("folder");
    std::fs::create_dir(&folder).unwrap();
    let (own, real, link) = (folder.join("x.part"), folder.join("real"), folder.join("x"));
    std::fs::write(&own, b"own").unwrap();
    std::fs::write(&real, b"real").unwrap();
    symlink("real", &link).unwrap();
    let get = |place: &str| ["get", "-f", "/x", place].map(str::to_string);
    let run = |words: [String; 4]| cluster.fs(&words.each_ref().map(String::as_str));

    assert!(cluster.refused(&["get", "/x", &word(&folder)]).contains("File exists"));
    assert_eq!(std::fs::read(&real).unwrap(), b"real");
    run(get(&word(&folder)));
    assert_eq!(std::fs::read(&real).unwrap(), b"data");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&own).unwrap(), b"own");

    let pipe = cluster.fifo("pipe");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    run(get(&pipe));
    assert_eq!(reader.join().unwrap(), b"data");
    assert!(cluster.refused(&["get", "-f", "/x", "/dev/full"]).contains("/dev/full"));

    // Without its DataNode the file is waited for.
    cluster.kill_datanode(0);
    let words = ["fs", "get", "-f", "/x", &word(&link)];
    let fetch = cluster.command(&words).spawn().unwrap();
    let count = || std::fs::read_dir(&folder).unwrap().count();
    wait_until("a file is begun", || count() == 4);
    let done = interrupt(fetch);
    assert_eq!(done.status.code(), Some(130), "{}", text(&done.stderr));
    assert_eq!((count(), std::fs::read(&real).unwrap()), (3, b"data".to_vec()));
}

#[test]
fn cat_is_quiet_when_nobody_reads_any_more() {
    let cluster = Cluster::start();
    let long = cluster.file("long", &vec![b'a'; 20 << 20]);
    cluster.fs(&["put", &long, "/long"]);
    let mut cat = cluster.command(&["fs", "cat", "/long"]).spawn().unwrap();
    let mut first = [0];
    cat.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let done = cat.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(141), String::new()));

    let mut full = cluster.command(&["fs", "cat", "/long"]);
    full.stdout(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(full.status().unwrap().code(), Some(1));
}

#[test]
fn what_is_removed_goes_to_the_trash() {
    let cluster = Cluster::start();
    let data = cluster.file("data", b"data");
    let remove = |path: &str| {
        cluster.fs(&["put", &data, path]);
        cluster.fs(&["rm", path]);
    };
    remove("/d/x");
    let users = cluster.names("/user");
    let home = format!("/user/{}", users[0]);
    let current = format!("{home}/.Trash/Current");
    assert_eq!(cluster.fs(&["cat", &format!("{current}/d/x")]), "data");
    assert!(cluster.fs(&["stat", "--json", &current]).contains(r#""permission":"0700""#));

    // A name that is taken there, by what was removed or by what a folder needs, gets the time behind it.
    remove("/d/x");
    assert_eq!(cluster.names(&format!("{current}/d")).len(), 2);
    cluster.fs(&["rm", "-r", "/d"]);
    remove("/f");
    remove("/f/g");
    let names = cluster.names(&current);
    assert!(
        names.len() == 4 && names[1].starts_with('d') && names[3].starts_with('f'),
        "{names:?}"
    );
    assert_eq!(cluster.names(&format!("{current}/{}", names[3])), ["g"]);

    // From the trash, it is for good.
    cluster.fs(&["rm", &format!("{current}/d/x")]);
    assert_eq!(cluster.names(&format!("{current}/d")).len(), 1);
    assert!(cluster.refused(&["rm", "-r", &home]).contains("--skip-trash"));
    cluster.fs(&["put", &data, "/gone"]);
    cluster.fs(&["rm", "--skip-trash", "/gone"]);
    assert_eq!(cluster.names(&current), names);
    cluster.fs(&["rm", "-r", &format!("{home}/.Trash")]);
    assert_eq!(cluster.names(&home), [""; 0]);
    cluster.fs(&["rm", "-rf", "--skip-trash", "/user"]);
}

#[test]
fn what_is_removed_stays_in_its_snapshottable_directory() {
    let keys = ["fs.trash.interval=60", "dfs.namenode.snapshot.trashroot.enabled=true"];
    let words: Vec<&str> = keys.iter().flat_map(|key| ["-D", key]).collect();
    let cluster = Cluster::of(1, &words, Stdio::inherit());
    let data = cluster.file("data", b"data");
    for path in ["/d/sub/x", "/dd/x", "/d/y"] {
        cluster.fs(&["put", &data, path]);
    }
    cluster.tool(&["admin", "allow-snapshot", "/d"]);
    for path in ["/d/sub/x", "/dd/x", "/d/y"] {
        cluster.fs(&["rm", path]);
    }
    let user = cluster.names("/user").remove(0);
    let home = format!("/user/{user}/.Trash/Current");
    assert_eq!(cluster.names(&home), ["dd"]);
    let own = format!("/d/.Trash/{user}/Current/d");
    assert_eq!(cluster.names(&own), ["sub", "y"]);
    // What all users have thrown away there is not thrown away.
    assert!(cluster.refused(&["rm", "-r", "/d/.Trash"]).contains("--skip-trash"));
    cluster.fs(&["rm", &format!("{own}/y")]);
    assert_eq!(cluster.names(&own), ["sub"]);
}
