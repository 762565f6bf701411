//! What DataNodes are asked to do with the page cache.

use crate::cluster::*;

const LEN: usize = 3 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datanodes_are_told_what_the_configuration_wishes_of_the_page_cache() {
    for told in [false, true] {
        let change = |config: &mut cairn_client::ClientConfig| {
            if told {
                config.cache_readahead = Some(64 << 10);
                (config.drop_behind_reads, config.drop_behind_writes) = (Some(true), Some(true));
            }
        };
        let cluster = Cluster::start_with(1, change).await;
        let data = bytes(2, LEN);
        let options = cairn_client::CreateOptions {
            replication: Some(1),
            ..cairn_client::CreateOptions::default()
        };
        put(&cluster.fs, "/f", &data, &options).await.unwrap();
        let stats = || cluster.datanodes[0].page_cache_stats();
        assert_eq!(stats().dropped_behind_writes > 0, told);
        // Of a short read nothing is asked for ahead, where nobody says so.
        let reader = cluster.fs.open("/f").await.unwrap();
        reader.read_at(512, &mut [0; 1024]).await.unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while told && stats().dropped_behind_reads == 0 {
            assert!(std::time::Instant::now() < until, "{:?}", stats());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(stats().read_ahead, if told { 64 << 10 } else { 0 });
        assert_eq!(stats().dropped_behind_reads, if told { 1024 } else { 0 });
    }
}
