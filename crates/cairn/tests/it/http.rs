//! WebHDFS by requests that are made of all its operations and parameters, and of values that none expects. Each is
//! answered, none by a failure of the server, and it serves on. A seed makes the requests, so a run can be repeated.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use crate::cluster::Cluster;

const REQUESTS: usize = 3000;

const OPERATIONS: [(&str, &[&str]); 4] = [
    (
        "GET",
        &[
            "OPEN",
            "GETFILESTATUS",
            "LISTSTATUS",
            "GETCONTENTSUMMARY",
            "GETQUOTAUSAGE",
            "GETFILECHECKSUM",
            "GET_BLOCK_LOCATIONS",
            "GETFILEBLOCKLOCATIONS",
            "GETACLSTATUS",
            "GETXATTRS",
            "LISTXATTRS",
            "GETTRASHROOT",
            "GETSTORAGEPOLICY",
            "GETECPOLICY",
            "CHECKACCESS",
            "LISTSTATUS_BATCH",
            "GETSNAPSHOTDIFF",
            "GETSNAPSHOTDIFFLISTING",
            "GETSNAPSHOTLIST",
            "GETDELEGATIONTOKEN",
        ],
    ),
    (
        "PUT",
        &[
            "CREATE",
            "MKDIRS",
            "CREATESYMLINK",
            "RENAME",
            "SETREPLICATION",
            "SETOWNER",
            "SETPERMISSION",
            "SETTIMES",
            "MODIFYACLENTRIES",
            "SETACL",
            "SETXATTR",
            "REMOVEXATTR",
            "SETECPOLICY",
            "ALLOWSNAPSHOT",
            "CREATESNAPSHOT",
            "RENAMESNAPSHOT",
            "SETSTORAGEPOLICY",
            "SETQUOTA",
            "SETQUOTABYSTORAGETYPE",
            "CANCELDELEGATIONTOKEN",
        ],
    ),
    ("POST", &["APPEND", "CONCAT", "TRUNCATE", "UNSETECPOLICY", "UNSETSTORAGEPOLICY"]),
    ("DELETE", &["DELETE", "DELETESNAPSHOT"]),
];

const PARAMETERS: [&str; 34] = [
    "user.name",
    "doas",
    "delegation",
    "offset",
    "length",
    "buffersize",
    "blocksize",
    "replication",
    "permission",
    "unmaskedpermission",
    "overwrite",
    "createparent",
    "createflag",
    "noredirect",
    "recursive",
    "destination",
    "sources",
    "newlength",
    "owner",
    "group",
    "accesstime",
    "modificationtime",
    "aclspec",
    "xattr.name",
    "xattr.value",
    "flag",
    "encoding",
    "fsaction",
    "startafter",
    "ecpolicy",
    "storagepolicy",
    "snapshotname",
    "oldsnapshotname",
    "namespacequota",
];

const VALUES: [&str; 36] = [
    "",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "4294967296",
    "1e9",
    "NaN",
    "true",
    "FALSE",
    "yes",
    "/",
    "/a",
    "/a/b",
    "..",
    "/../x",
    "/.snapshot/s",
    "/.reserved/raw/a",
    "%00",
    "%ff%fe",
    "%E6%BC%A2",
    "user::rwx,group::r-x,other::---",
    "user:ann:rwx",
    "user.x",
    "0x41",
    "%22q%22",
    "755",
    "99999",
    "RS-6-3-1024k",
    "HOT",
    "null",
    "a,b,,",
    "=",
    "%zz",
];

const PATHS: [&str; 15] = [
    "/",
    "/a",
    "/a/",
    "/a/b/c",
    "//",
    "/.snapshot",
    "/a/.snapshot/s",
    "/.reserved/raw/",
    "/.reserved/.inodes/1",
    "/%00",
    "/%ff",
    "/%E6%BC%A2",
    "/..",
    "/a;b",
    "",
];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % most as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn request(dice: &mut Dice) -> String {
    let (method, operations) = dice.of(&OPERATIONS);
    let mut query = vec![format!("op={}", dice.of(operations))];
    if dice.below(10) > 0 {
        query.push(format!("user.name={}", dice.of(&["root", "ann"])));
    }
    for _ in 0..dice.below(5) {
        query.push(format!("{}={}", dice.of(&PARAMETERS), dice.of(&VALUES)));
    }
    let (path, query) = (dice.of(&PATHS), query.join("&"));
    let body = "x".repeat(dice.of(&[0, 0, 1, 3000]));
    format!(
        "{method} /webhdfs/v1{path}?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The whole answer.
fn answer(addr: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap_or_else(|error| panic!("{error}: {request}"));
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of the answer.
fn ask(addr: &str, request: &str) -> String {
    let answer = answer(addr, request);
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {request}")).to_string()
}

/// A request without a body.
fn plain(method: &str, target: &str) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn webhdfs_answers_whatever_it_is_asked() {
    let cluster = Cluster::of(1, &[], Stdio::inherit());
    let mut dice = Dice(20_261_128);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..REQUESTS {
        let request = request(&mut dice);
        let status = ask(cluster.http(), &request);
        assert!(!status.starts_with('5'), "{status}: {request}");
        *answers.entry(status).or_default() += 1;
    }
    // Neither is all refused before it is looked at, nor is anything let through.
    for status in ["200", "307", "400", "403", "404"] {
        assert!(answers.get(status).is_some_and(|count| *count > 5), "{answers:?}");
    }
    assert_eq!(ask(cluster.http(), &plain("GET", "/webhdfs/v1/?op=GETFILESTATUS")), "200");
}

#[test]
fn what_webhdfs_answers_otherwise_than_hadoops() {
    let cluster = Cluster::start();
    let data = cluster.file("data", b"data");
    cluster.fs(&["put", &data, "/f"]);
    cluster.fs(&["chmod", "777", "/f"]);
    let nobody = plain("GET", "/webhdfs/v1/?op=GETFILESTATUS&user.name=");
    assert_eq!(ask(cluster.http(), &nobody), "200");

    let set = "/webhdfs/v1/f?op=SETXATTR&xattr.name=user.c&flag=CREATE&user.name=ann";
    assert_eq!(ask(cluster.http(), &plain("PUT", set)), "200");
    let get = "/webhdfs/v1/f?op=GETXATTRS&xattr.name=user.c&encoding=text&user.name=ann";
    let told = answer(cluster.http(), &plain("GET", get));
    assert!(told.ends_with(r#"{"XAttrs":[{"name":"user.c","value":"\"\""}]}"#), "{told}");

    // Neither the NameNode nor the DataNode that it sends to lets pages of other sites read.
    let sent = answer(cluster.http(), &plain("GET", "/webhdfs/v1/f?op=OPEN&user.name=ann"));
    let place = sent.lines().find_map(|line| line.strip_prefix("location: http://")).unwrap();
    let (datanode, target) = place.split_at(place.find('/').unwrap());
    let read = answer(datanode, &plain("GET", target));
    assert!(read.ends_with("\r\n\r\ndata"), "{read}");
    for told in [sent, read] {
        assert!(!told.to_lowercase().contains("access-control"), "{told}");
    }
}

#[test]
fn a_thousand_connections_that_rest_or_never_end_their_heads_hold_nobody_up() {
    let cluster = Cluster::start();
    let mut resting = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(cluster.http()).unwrap();
        if number % 2 == 1 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
        }
        resting.push(stream);
    }
    for path in ["/", "/prom", "/webhdfs/v1/?op=LISTSTATUS", "/../../etc/passwd"] {
        let status = if path.contains("passwd") { "404" } else { "200" };
        assert_eq!(ask(cluster.http(), &plain("GET", path)), status, "{path}");
    }
}
