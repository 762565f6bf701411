//! One balancer and one mover at a time, which leave nothing behind.

use crate::cluster::*;
use cairn_client::{BalanceOptions, CreateOptions, FileSystem, MoveEnd};
use std::future::{pending, ready};
use std::time::Duration;

const MARK: &str = "/system/balancer.id";

fn options() -> BalanceOptions {
    BalanceOptions {
        threshold: 10.0,
        by_pool: false,
        include: vec![],
        exclude: vec![],
        min_block_len: 0,
        settle: Duration::from_millis(100),
        run_during_upgrade: false,
    }
}

async fn balance(fs: &FileSystem) -> MoveEnd {
    fs.balance(&options(), pending(), &|_| {}).await.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn one_runs_at_a_time_and_takes_its_mark_away() {
    let cluster = Cluster::start(3).await;
    let (fs, other) =
        (&cluster.fs, FileSystem::connect(cluster.fs.config().clone()).await.unwrap());
    assert_eq!(balance(fs).await, MoveEnd::Done);
    assert!(fs.file_info(MARK).await.unwrap().is_none());
    // Another one holds it.
    let held = CreateOptions { create_parents: true, ..CreateOptions::default() };
    let mut mark = other.create(MARK, &held).await.unwrap();
    mark.write(b"other").await.unwrap();
    mark.hflush().await.unwrap();
    let id = fs.file_info(MARK).await.unwrap().unwrap().file_id;
    assert_eq!(balance(fs).await, MoveEnd::AlreadyRunning);
    assert_eq!(fs.file_info(MARK).await.unwrap().unwrap().file_id, id, "it is not taken away");
    // What a balancer that was killed has left is taken over.
    mark.close().await.unwrap();
    assert_eq!(balance(fs).await, MoveEnd::Done);
    assert!(fs.file_info(MARK).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_told_to_stop_takes_its_mark_away() {
    let cluster = Cluster::start(3).await;
    let fs = &cluster.fs;
    let paths = ["/".to_string()];
    let settle = Duration::from_millis(100);
    let (end, _) = fs.balance(&options(), ready(()), &|_| {}).await.unwrap();
    assert!(matches!(end, MoveEnd::Interrupted | MoveEnd::Done), "{end:?}");
    let (end, _) = fs.settle_storage_types(&paths, settle, ready(()), &|_| {}).await.unwrap();
    assert!(matches!(end, MoveEnd::Interrupted | MoveEnd::Done), "{end:?}");
    for mark in [MARK, "/system/mover.id"] {
        assert!(fs.file_info(mark).await.unwrap().is_none(), "{mark}");
    }
}
