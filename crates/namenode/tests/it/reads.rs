//! Calls that only read: what is written straight from records says what the messages say, and a directory with very
//! many names is listed page by page.

use std::path::Path;
use std::time::{Duration, Instant};

use cairn_namenode::journal::{Durability, Namesystem, NamesystemOptions};
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::{Caller, Entry};
use cairn_stripe::Policy;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use tokio::task::JoinSet;

use crate::cluster::{CLIENT, Client, SUPERUSER, config, finish, start};
use crate::journal;

const POLICY: &str = "XOR-2-1-1024k";

/// The status of a path by the two calls that tell it, one of which makes messages.
async fn status(client: &Client, path: &str) -> Option<pb::HdfsFileStatusProto> {
    let request =
        pb::GetLocatedFileInfoRequestProto { src: Some(path.to_string()), need_block_token: None };
    let located: pb::GetLocatedFileInfoResponseProto =
        client.call("getLocatedFileInfo", &request).await.unwrap();
    let made = located.fs.map(|fs| pb::HdfsFileStatusProto { locations: None, ..fs });
    for _ in 0..2 {
        assert_eq!(client.file_info(path).await, made, "{path}");
    }
    made
}

/// Equally near places come in any order.
fn in_order(mut blocks: pb::LocatedBlocksProto) -> pb::LocatedBlocksProto {
    for block in blocks.blocks.iter_mut().chain(&mut blocks.last_block) {
        assert_eq!(block.locs.len(), block.storage_i_ds.len());
        block.locs.sort_by(|a, b| a.id.datanode_uuid.cmp(&b.id.datanode_uuid));
        block.storage_i_ds.sort();
        (block.unit_crc_indices, block.unit_crc32cs) = (None, Vec::new());
    }
    blocks
}

/// The blocks of a file as they are told with CRCs, for which messages are made, and without.
async fn locations(
    client: &Client,
    path: &str,
    offset: u64,
    length: u64,
) -> pb::LocatedBlocksProto {
    let mut told = Vec::new();
    for with_unit_crcs in [Some(true), None, None] {
        let request = pb::GetBlockLocationsRequestProto {
            src: path.to_string(),
            offset,
            length,
            with_unit_crcs,
            after_failure: None,
        };
        let answer: pb::GetBlockLocationsResponseProto =
            client.call("getBlockLocations", &request).await.unwrap();
        told.push(in_order(answer.locations.expect("a file has locations")));
    }
    assert_eq!(told[0], told[1], "{path}");
    assert_eq!(told[0], told[2], "{path}");
    told.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_who_asks_below_a_file_is_told_of_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 0).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let alice = Client::new(&node, CLIENT, "alice");
    for path in ["/f/a", "/f/a/b", "/f/.snapshot", "/f/.snapshot/s"] {
        assert_eq!(status(&client, path).await, None, "{path}");
        let request = pb::GetFileInfoRequestProto { src: path.to_string() };
        let (class, text) = alice.refused("getFileInfo", &request).await;
        assert_eq!(
            (class.as_str(), text.as_str()),
            (class::ACCESS_CONTROL, "/f (is not a directory)")
        );
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_straight_from_records_is_what_messages_say() {
    let dir = tempfile::tempdir().unwrap();
    let (node, datanodes) = start(dir.path(), 3).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/d/below").await;
    client.mkdirs("/ec").await;
    let enable = pb::EnableErasureCodingPolicyRequestProto { ec_policy_name: POLICY.to_string() };
    let _: pb::EnableErasureCodingPolicyResponseProto =
        client.call("enableErasureCodingPolicy", &enable).await.unwrap();
    client.set_policy("/ec", POLICY).await;
    let policy = Policy::built_in().into_iter().find(|policy| policy.name == POLICY);
    for (path, blocks) in [("/d/empty", 0), ("/d/one", 1), ("/d/two", 2), ("/ec/one", 1)] {
        client.create(path, "c").await;
        let mut last = None;
        for _ in 0..blocks {
            let located = client.add_block(path, "c", last.take()).await;
            if blocks == 1 {
                locations(&client, path, 0, u64::MAX >> 1).await;
            }
            let policy = policy.as_ref().filter(|_| path.starts_with("/ec"));
            last = Some(finish(&datanodes, &located, 1024 * 1024, policy).await);
        }
        assert!(client.complete(path, "c", last).await);
    }
    client.create("/d/open", "c").await;
    client.add_block("/d/open", "c", None).await;
    for path in [
        "/",
        "/d",
        "/d/",
        "//d//below",
        "/ec",
        "/d/empty",
        "/d/one",
        "/d/two",
        "/ec/one",
        "/d/open",
    ] {
        assert!(status(&client, path).await.is_some(), "{path}");
    }
    for path in ["/none", "/d/none", "/none/none", "/.reserved/raw/none"] {
        assert_eq!(status(&client, path).await, None, "{path}");
    }
    assert!(status(&client, "/.reserved/raw/d/one").await.is_some());
    for path in ["/d/empty", "/d/one", "/d/two", "/ec/one", "/d/open"] {
        for (offset, len) in [(0, u64::MAX >> 1), (0, 0), (1 << 20, 1), (1 << 30, 5)] {
            locations(&client, path, offset, len).await;
        }
    }
    assert_eq!(locations(&client, "/ec/one", 0, 1).await.blocks[0].locs.len(), 3);
    node.shutdown().await;
}

/// Makes `count` directories in `/huge`; their names are not made in their order. Returns the names in order.
fn fill(dir: &Path, count: usize) -> Vec<String> {
    let options = NamesystemOptions {
        durability: Durability::PageCache,
        superuser: SUPERUSER.to_string(),
        ..journal::options()
    };
    let ns = Namesystem::open(dir, options).unwrap();
    let caller = Caller {
        user: SUPERUSER.to_string(),
        groups: vec!["g".to_string()],
        superuser: true,
        ..Caller::default()
    };
    let mut names: Vec<String> = (0..count)
        .map(|number| match number % 1000 {
            // Some are as long as names may be, some are not ASCII.
            0 => format!("{number:0>255}"),
            1 => format!("\u{e4}\u{1f980}{number}"),
            _ => format!("{}-name", number * 7919 % count),
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for some in names.chunks(1000) {
        let submitted = some.iter().map(|name| {
            let path = format!("/huge/{name}");
            let command = Mkdirs { path, mode: 0o755.into(), create_parent: true }.into();
            ns.submit(Entry {
                now_ms: 1_700_000_000_000,
                elapsed_ms: 1_700_000_000_000,
                caller: caller.clone(),
                call: None,
                command,
            })
        });
        runtime.block_on(async {
            let mut waiting: Vec<_> = submitted.map(Box::pin).collect();
            for answer in &mut waiting {
                answer.await.unwrap();
            }
        });
    }
    ns.close();
    names.sort_unstable();
    names.dedup();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_directory_is_listed_page_by_page() {
    const COUNT: usize = 100_000;
    const LIMIT: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let begin = Instant::now();
    let names = tokio::task::spawn_blocking(move || fill(&path, COUNT)).await.unwrap();
    println!("filled in {:?}", begin.elapsed());
    assert!(names.len() > COUNT / 2);
    let settings = NameNodeConfig { listing_limit: LIMIT, ..config(dir.path()) };
    let node = NameNode::start(settings).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    let page = async |start_after: &[u8], need_location: bool| {
        let request = pb::GetListingRequestProto {
            src: "/huge".to_string(),
            start_after: start_after.to_vec(),
            need_location,
            read_up_to: None,
        };
        let answer: pb::GetListingResponseProto =
            client.call("getListing", &request).await.unwrap();
        // Far below what a client takes, however many names there are.
        assert!(answer.encoded_len() < LIMIT * 512);
        answer.dir_list.expect("the directory is there")
    };
    // The second time from pages that were kept.
    for _ in 0..2 {
        let mut seen = 0;
        let mut after = Vec::new();
        loop {
            let list = page(&after, false).await;
            let found = list.partial_listing.iter().map(|entry| &entry.path[..]);
            assert!(list.partial_listing.len() <= LIMIT);
            let expected = names[seen..].iter().take(LIMIT).map(String::as_bytes);
            assert!(found.eq(expected), "after {seen}");
            seen += list.partial_listing.len();
            if list.remaining_entries == 0 {
                break;
            }
            after = list.partial_listing.last().unwrap().path.clone();
        }
        assert_eq!(seen, names.len());
    }
    // From behind names that are not there, also by the call that tells locations.
    for start in ["0", "5-", "50000-nam", "50000-name0", "\u{e4}", "zzz", "\u{10ffff}"] {
        let from = names.partition_point(|name| name.as_bytes() <= start.as_bytes());
        let expected: Vec<&[u8]> =
            names[from..].iter().take(LIMIT).map(|name| name.as_bytes()).collect();
        for need_location in [false, true] {
            let list = page(start.as_bytes(), need_location).await;
            let found: Vec<&[u8]> =
                list.partial_listing.iter().map(|entry| &entry.path[..]).collect();
            assert!(found == expected, "{start}");
            assert_eq!(list.remaining_entries == 0, names.len() - from <= LIMIT, "{start}");
        }
    }
    // A name that has come since pages were kept.
    client.mkdirs("/huge/0-new").await;
    let first = page(b"", false).await;
    let at = names.partition_point(|name| name.as_str() < "0-new");
    assert_eq!(first.partial_listing[at].path, b"0-new");
    node.shutdown().await;
}

/// Calls of several connections that walk over the same tree, as many as each may have in flight.
async fn sum_up(node: &RunningNameNode, connections: usize) {
    let clients = (0..connections).map(|_| Client::new(node, CLIENT, SUPERUSER));
    let clients: Vec<_> = clients.collect();
    let mut calls = JoinSet::new();
    for number in 0..connections * 128 {
        let client = clients[number % connections].clone();
        calls.spawn(async move {
            let path = "/huge".to_string();
            if (number / connections).is_multiple_of(2) {
                let request = pb::GetContentSummaryRequestProto { path };
                let answer: pb::GetContentSummaryResponseProto =
                    client.call("getContentSummary", &request).await.unwrap();
                answer.summary.directory_count
            } else {
                let request = pb::GetQuotaUsageRequestProto { path };
                let answer: pb::GetQuotaUsageResponseProto =
                    client.call("getQuotaUsage", &request).await.unwrap();
                answer.usage.file_and_directory_count
            }
        });
    }
    let sums = calls.join_all().await;
    assert!(sums.iter().all(|sum| *sum == sums[0] && *sum > 1000), "{sums:?}");
}

/// Threads of this process with that name.
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = |path: &Path| std::fs::read_to_string(path).is_ok_and(|it| it.trim() == name);
    tasks.filter(|task| named(&task.path().join("comm"))).count()
}

#[test]
fn sums_leave_threads_for_the_cluster() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2000);
    // Threads that have waited for something stay for a while: they can be counted when all is over.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("sums")
        .thread_keep_alive(Duration::from_secs(3600))
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let node = NameNode::start(config(dir.path())).await.unwrap();
        sum_up(&node, 2).await;
        let threads = threads("sums");
        assert!(threads < 40, "{threads} threads");
        node.shutdown().await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_does_not_wait_for_the_access_time_that_it_sets() {
    let dir = tempfile::tempdir().unwrap();
    let precision = Duration::from_millis(1);
    let config = NameNodeConfig { access_time_precision: precision, ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    assert!(client.complete("/f", "writer", None).await);
    let time = async || client.file_info("/f").await.unwrap().access_time;
    let before = time().await;
    tokio::time::sleep(20 * precision).await;
    client.locations("/f").await;
    let asked = Instant::now();
    while time().await <= before {
        assert!(asked.elapsed() < Duration::from_secs(30), "the access time stays {before}");
        tokio::time::sleep(precision).await;
    }
    node.shutdown().await;
}
