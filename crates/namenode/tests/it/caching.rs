//! Cache directives reach DataNodes and readers, and the trash is emptied.

use std::time::Duration;

use cairn_namenode::{NameNode, NameNodeConfig};
use cairn_stripe::Policy;
use cairn_wire::proto::{datanode as dn, hdfs as pb};

use crate::cluster::{CLIENT, Client, FakeDataNode, SUPERUSER, config, finish};

/// What cache directives `client` sees once `is_done`.
async fn directives(
    client: &Client,
    is_done: impl Fn(&pb::CacheDirectiveStatsProto) -> bool,
) -> Vec<pb::CacheDirectiveEntryProto> {
    let request = pb::ListCacheDirectivesRequestProto { prev_id: 0, filter: Default::default() };
    loop {
        let answer: pb::ListCacheDirectivesResponseProto =
            client.call("listCacheDirectives", &request).await.unwrap();
        if answer.elements.iter().all(|entry| is_done(&entry.stats)) {
            return answer.elements;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datanodes_are_told_what_to_keep_and_readers_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        NameNodeConfig { cache_refresh_interval: Duration::from_millis(50), ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..9 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/d/f", "writer").await;
    let block = client.add_block("/d/f", "writer", None).await;
    let last = finish(&datanodes, &block, 1000, None).await;
    assert!(client.complete("/d/f", "writer", Some(last)).await);
    client.mkdirs("/ec").await;
    client.set_policy("/ec", "RS-6-3-1024k").await;
    client.create("/ec/f", "writer").await;
    let group = client.add_block("/ec/f", "writer", None).await;
    let policy = Policy::built_in().into_iter().find(|p| p.name == "RS-6-3-1024k").unwrap();
    let last = finish(&datanodes, &group, 4 << 20, Some(&policy)).await;
    assert!(client.complete("/ec/f", "writer", Some(last)).await);
    for datanode in &datanodes {
        datanode.heartbeat_caching(64 << 20).await;
    }

    let info = pb::CachePoolInfoProto {
        pool_name: Some("p".into()),
        group_name: Some("staff".into()),
        ..Default::default()
    };
    let _: pb::AddCachePoolResponseProto =
        client.call("addCachePool", &pb::AddCachePoolRequestProto { info }).await.unwrap();
    for (path, replication) in [("/d", 2), ("/ec//./f", 1)] {
        let info = pb::CacheDirectiveInfoProto {
            path: Some(path.into()),
            pool: Some("p".into()),
            replication: Some(replication),
            ..Default::default()
        };
        let request = pb::AddCacheDirectiveRequestProto { info, cache_flags: None };
        let _: pb::AddCacheDirectiveResponseProto =
            client.call("addCacheDirective", &request).await.unwrap();
    }
    let found = directives(&client, |_| true).await;
    let needed: Vec<_> = found
        .iter()
        .map(|entry| (entry.info.path(), entry.stats.bytes_needed, entry.stats.bytes_cached))
        .collect();
    assert_eq!(needed, [("/d", 2000, 0), ("/ec/f", 4 << 20, 0)]);

    let (mut whole, mut units) = (0, 0);
    for datanode in &datanodes {
        let commands = datanode.heartbeat_caching(64 << 20).await;
        let ids: Vec<u64> = commands
            .iter()
            .filter_map(|command| command.blk_id_cmd.as_ref())
            .filter(|ids| ids.action == dn::BlockIdCommandProtoAction::Cache as i32)
            .flat_map(|ids| ids.block_ids.clone())
            .collect();
        whole += ids.iter().filter(|id| **id == block.b.block_id).count();
        units += ids.iter().filter(|id| (**id as i64) < 0).count();
        datanode.cache_report(&ids).await;
    }
    assert_eq!((whole, units), (2, 4), "four of six data units have bytes");
    let found = directives(&client, |stats| stats.files_cached == 1).await;
    assert!(found.iter().all(|entry| entry.stats.bytes_cached == entry.stats.bytes_needed));
    let cached = |located: &pb::LocatedBlocksProto| {
        located.blocks[0].is_cached.iter().filter(|cached| **cached).count()
    };
    assert_eq!(cached(&client.locations("/d/f").await), 2);
    assert_eq!(cached(&client.locations("/ec/f").await), 4);

    let request = pb::RemoveCachePoolRequestProto { pool_name: "p".into() };
    let _: pb::RemoveCachePoolResponseProto =
        client.call("removeCachePool", &request).await.unwrap();
    assert!(directives(&client, |_| true).await.is_empty());
    let mut given_up = 0;
    for datanode in &datanodes {
        let commands = datanode.heartbeat_caching(64 << 20).await;
        let uncache = dn::BlockIdCommandProtoAction::Uncache as i32;
        let ids = commands.iter().filter_map(|command| command.blk_id_cmd.as_ref());
        given_up +=
            ids.filter(|ids| ids.action == uncache).map(|ids| ids.block_ids.len()).sum::<usize>();
    }
    assert_eq!(given_up, 6);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trash_is_emptied_in_two_steps() {
    const HOUR_MS: u64 = 3_600_000;
    let dir = tempfile::tempdir().unwrap();
    let config =
        NameNodeConfig { trash_interval_minutes: 60, homes: "/home/".into(), ..config(dir.path()) };
    let node = NameNode::start(config).await.unwrap();
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.mkdirs("/home/ann/.Trash/Current/d").await;
    client.mkdirs("/home/ann/.Trash/200101000000").await;
    client.mkdirs("/home/ann/.Trash/notes").await;
    client.mkdirs("/home/bob").await;
    let now_ms = node.node().now().wall_ms;
    let empty = async |at_ms| node.node().empty_trash_at(at_ms).await.unwrap();
    empty(now_ms).await;
    let kept = client.list("/home/ann/.Trash").await;
    assert_eq!(kept.len(), 3, "the old name was made just now: {kept:?}");
    assert!(!kept.contains(&"Current".to_string()));
    client.mkdirs("/home/ann/.Trash/Current/e").await;
    empty(now_ms).await;
    let kept = client.list("/home/ann/.Trash").await;
    assert!(kept.iter().any(|name| name.ends_with("-1")), "two in one second: {kept:?}");
    empty(now_ms + 2 * HOUR_MS).await;
    assert_eq!(client.list("/home/ann/.Trash").await, ["notes"]);
    node.shutdown().await;
}

/// `dfs.namenode.caching.enabled=false`: directives are kept, and nobody is told to obey them. A page has as many as the
/// key says.
#[tokio::test(flavor = "multi_thread")]
async fn directives_are_only_kept_where_caching_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let config = NameNodeConfig {
        caching_enabled: false,
        cache_directives_page: 2,
        cache_pools_page: 1,
        ..config(dir.path())
    };
    let node = NameNode::start(config).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..3 {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/f", "writer").await;
    let block = client.add_block("/f", "writer", None).await;
    let last = finish(&datanodes, &block, 1000, None).await;
    assert!(client.complete("/f", "writer", Some(last)).await);
    for pool in ["p", "q"] {
        let info = pb::CachePoolInfoProto {
            pool_name: Some(pool.into()),
            group_name: Some("staff".into()),
            ..Default::default()
        };
        let _: pb::AddCachePoolResponseProto =
            client.call("addCachePool", &pb::AddCachePoolRequestProto { info }).await.unwrap();
    }
    for _ in 0..3 {
        let (path, pool) = (Some("/f".into()), Some("p".into()));
        let info = pb::CacheDirectiveInfoProto { path, pool, ..Default::default() };
        let request = pb::AddCacheDirectiveRequestProto { info, cache_flags: None };
        let _: pb::AddCacheDirectiveResponseProto =
            client.call("addCacheDirective", &request).await.unwrap();
    }
    let found = directives(&client, |_| true).await;
    assert_eq!(found.len(), 2, "a page of two of three");
    assert!(found.iter().all(|entry| entry.stats.files_needed == 0));
    let request = pb::ListCachePoolsRequestProto { prev_pool_name: String::new() };
    let pools: pb::ListCachePoolsResponseProto =
        client.call("listCachePools", &request).await.unwrap();
    assert_eq!((pools.entries.len(), pools.has_more), (1, true));
    let commands = datanodes[0].heartbeat_caching(64 << 20).await;
    assert!(commands.iter().all(|command| command.blk_id_cmd.is_none()), "{commands:?}");
    node.shutdown().await;
}
