//! Striped files become files of plain blocks, and are the same files all the time.

use crate::cluster::*;
use cairn_client::{ChecksumMode, ConvertedFile, FileSystem};
use cairn_codec::crc::ChecksumKind;
use cairn_namenode::NameNodeConfig;
use cairn_wire::converted::DIRECTORY;
use std::time::{Duration, Instant};

const STRIPED: &str = "RS-3-2-1024k";
const CONTIGUOUS: &str = "RS-3-2-contiguous";
const BLOCK: u64 = 2 << 20;

async fn cluster(keep: Duration) -> Cluster {
    let tune = move |namenode: &mut NameNodeConfig, _: &mut _| namenode.keep_converted = keep;
    let cluster = Cluster::start_tuned(6, tune, |_| {}).await;
    for policy in [STRIPED, CONTIGUOUS] {
        cluster.fs.enable_policy(policy).await.unwrap();
    }
    cluster
}

async fn composite(fs: &FileSystem, path: &str) -> Vec<u8> {
    fs.checksum(path, ChecksumMode::CompositeCrc).await.unwrap().unwrap().bytes
}

async fn kept(fs: &FileSystem) -> usize {
    fs.list(DIRECTORY).collect().await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_striped_file_is_converted_under_a_reader() {
    let cluster = cluster(Duration::from_secs(3600)).await;
    let fs = &cluster.fs;
    for (number, len) in (0..).zip([0, 1, 100_000, 17_000_000]) {
        let path = format!("/striped/{len}");
        let data = bytes(number, len);
        put(fs, &path, &data, &striped(STRIPED, BLOCK)).await.unwrap();
        let before = fs.require(&path).await.unwrap();
        let sum = composite(fs, &path).await;
        let mut reader = fs.open(&path).await.unwrap();
        let mut read = Vec::new();
        if let Some(chunk) = reader.next_chunk().await.unwrap() {
            read.extend_from_slice(&chunk);
        }
        let mut told = 0;
        // To groups, then that file's twin to copies.
        let policy = Some(CONTIGUOUS).filter(|_| number % 2 == 1);
        let done = fs.rewrite(&before, policy, &mut |more| told += more).await.unwrap();
        assert_eq!((done, told), (ConvertedFile::Done, len as u64), "{path}");
        while let Some(chunk) = reader.next_chunk().await.unwrap() {
            read.extend_from_slice(&chunk);
        }
        assert_same(&read, &data, "who had opened it before");
        assert_same(&get(fs, &path).await.unwrap(), &data, &path);
        let after = fs.require(&path).await.unwrap();
        let same = |status: &cairn_client::FileStatus| {
            let times = (status.modification_time_ms, status.access_time_ms);
            (status.file_id, status.len, times, status.block_size, status.permission)
        };
        assert_eq!(same(&after), same(&before));
        assert_eq!(after.policy.map(|policy| policy.name).as_deref(), policy);
        assert_eq!(composite(fs, &path).await, sum);
        let blocks = fs.block_locations(&path, 0, u64::MAX).await.unwrap().blocks;
        assert_eq!(blocks.len() as u64, (len as u64).div_ceil(BLOCK));
        let again = fs.rewrite(&before, policy, &mut |_| {}).await.unwrap();
        assert_eq!(again, ConvertedFile::Same);
        assert_eq!(kept(fs).await, number as usize + 1, "one for each, and none of the last turn");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_converted_file_was_made_of_goes_after_a_while() {
    let cluster = cluster(Duration::from_secs(1)).await;
    let fs = &cluster.fs;
    put(fs, "/striped/f", &bytes(1, 3_000_000), &striped(STRIPED, BLOCK)).await.unwrap();
    let group = fs.block_locations("/striped/f", 0, 1).await.unwrap().blocks.remove(0);
    let status = fs.require("/striped/f").await.unwrap();
    fs.rewrite(&status, None, &mut |_| {}).await.unwrap();
    let began = Instant::now();
    while kept(fs).await > 0 || !cluster.block_files(group.block.id.0).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is kept");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_same(&get(fs, "/striped/f").await.unwrap(), &bytes(1, 3_000_000), "the file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_changed_or_is_held_stays_as_it_is() {
    let cluster = cluster(Duration::from_secs(3600)).await;
    let fs = &cluster.fs;
    let options = striped(STRIPED, BLOCK);
    put(fs, "/striped/f", &bytes(1, 3_000_000), &options).await.unwrap();
    let status = fs.require("/striped/f").await.unwrap();

    // Somebody has given it another time: they may have written it anew.
    fs.set_times("/striped/f", Some(12_345), None).await.unwrap();
    let refused = fs.rewrite(&status, None, &mut |_| {}).await.unwrap();
    assert_eq!(refused, ConvertedFile::Refused("it has changed meanwhile".to_string()));

    // Another file is at the path.
    let status = fs.require("/striped/f").await.unwrap();
    fs.rename("/striped/f", "/striped/g").await.unwrap();
    put(fs, "/striped/f", &bytes(2, 3_000_000), &options).await.unwrap();
    let error = fs.rewrite(&status, None, &mut |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("another checksum"), "{error}");

    fs.allow_snapshot("/striped").await.unwrap();
    fs.create_snapshot("/striped", Some("s")).await.unwrap();
    let status = fs.require("/striped/f").await.unwrap();
    let refused = fs.rewrite(&status, None, &mut |_| {}).await.unwrap();
    assert_eq!(refused, ConvertedFile::Refused("a snapshot has it".to_string()));
    assert_eq!(kept(fs).await, 0, "nothing is left of what came to nothing");
    assert_same(&get(fs, "/striped/f").await.unwrap(), &bytes(2, 3_000_000), "the file");
    assert!(fs.require("/striped/f").await.unwrap().policy.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_client_has_summed_otherwise_is_converted() {
    let cluster = cluster(Duration::from_secs(3600)).await;
    let old =
        cairn_client::ClientConfig { checksum: ChecksumKind::Crc32, ..cluster.fs.config().clone() };
    let old = FileSystem::new(old).unwrap();
    put(&old, "/striped/f", &bytes(1, 3_000_000), &striped(STRIPED, BLOCK)).await.unwrap();
    let status = cluster.fs.require("/striped/f").await.unwrap();
    let done = cluster.fs.rewrite(&status, None, &mut |_| {}).await.unwrap();
    assert_eq!(done, ConvertedFile::Done);
    assert_same(&get(&old, "/striped/f").await.unwrap(), &bytes(1, 3_000_000), "the file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_who_convert_a_file_at_once_one_does() {
    let cluster = cluster(Duration::from_secs(3600)).await;
    let fs = &cluster.fs;
    let data = bytes(1, 3_000_000);
    put(fs, "/striped/f", &data, &striped(STRIPED, BLOCK)).await.unwrap();
    let group = fs.block_locations("/striped/f", 0, 1).await.unwrap().blocks.remove(0);
    let status = fs.require("/striped/f").await.unwrap();
    let other = FileSystem::new(fs.config().clone()).unwrap();
    let (mut one, mut two) = (|_| {}, |_| {});
    let (one, two) = tokio::join!(
        fs.rewrite(&status, None, &mut one),
        other.rewrite(&status, Some(CONTIGUOUS), &mut two)
    );
    let mut done = [one.unwrap(), two.unwrap()];
    done.sort_by_key(|done| *done == ConvertedFile::Same);
    assert_eq!(done, [ConvertedFile::Done, ConvertedFile::Same]);
    assert_same(&get(fs, "/striped/f").await.unwrap(), &data, "the file");
    // The copy that nobody needs is gone, and what readers may have found is there.
    let left = fs.list(DIRECTORY).collect().await.unwrap();
    let [left] = &left[..] else { panic!("{left:?}") };
    assert_eq!(left.policy.as_ref().map(|policy| policy.name.as_str()), Some(STRIPED));
    let kept = fs.block_locations(&left.path, 0, 1).await.unwrap().blocks.remove(0);
    assert_eq!(kept.block.id, group.block.id);
}

/// Units are lost: what is written is decoded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_lost_units_is_converted() {
    let mut cluster = cluster(Duration::from_secs(3600)).await;
    let data = bytes(1, 9_000_000);
    put(&cluster.fs, "/striped/f", &data, &striped(STRIPED, BLOCK)).await.unwrap();
    cluster.kill_units("/striped/f", &[0, 2]).await;
    let status = cluster.fs.require("/striped/f").await.unwrap();
    let done = cluster.fs.rewrite(&status, None, &mut |_| {}).await.unwrap();
    assert_eq!(done, ConvertedFile::Done);
    assert_same(&get(&cluster.fs, "/striped/f").await.unwrap(), &data, "the file");
}
