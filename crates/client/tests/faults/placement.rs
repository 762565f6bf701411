//! Where units are put at first is where they stay.

use crate::cluster::Cluster;
use crate::code::{CELL, Code};
use crate::readers::Dice;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_of_short_files_are_not_moved_to_other_racks_when_these_are_closed() {
    for code in [Code::rs(3, 2), Code::rs(6, 3)] {
        let cluster = Cluster::start(code.width() + 1, 3).await;
        code.enable(&cluster.fs).await;
        let mut places = Vec::new();
        for number in 0..30 {
            let len = 1 + Dice::new(number).below(3 * CELL as usize);
            let (path, data) = (format!("/{number}"), Dice::new(number).bytes(len));
            let mut writer = cluster.fs.create(&path, &code.options()).await.unwrap();
            writer.write(&data).await.unwrap();
            writer.close().await.unwrap();
            places.push((path.clone(), cluster.holders(&path, 0).await));
        }
        cluster.wait_quiet().await;
        // Several rounds of mending later.
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.wait_quiet().await;
        for (path, at_first) in places {
            let now = cluster.holders(&path, 0).await;
            assert!(
                at_first.iter().all(|node| now.contains(node)),
                "{path}: {at_first:?}, {now:?}"
            );
        }
    }
}
