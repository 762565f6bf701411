//! Where units are put at first is where they stay.

use crate::cluster::Cluster;
use crate::code::{CELL, Code};
use crate::readers::Dice;
use std::time::Duration;

/// How often it may look otherwise: units of a DataNode that was taken for dead, because all were slow, are rebuilt.
const ATTEMPTS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_of_short_files_are_not_moved_to_other_racks_when_these_are_closed() {
    for code in [Code::rs(3, 2), Code::rs(6, 3)] {
        let mut moved = Vec::new();
        for _ in 0..ATTEMPTS {
            moved = moved_units(&code).await;
            if moved.is_empty() {
                break;
            }
        }
        assert!(moved.is_empty(), "{code:?}: {}", moved.join("\n"));
    }
}

/// Writes short files, and tells which of them are not where they were when these were closed.
async fn moved_units(code: &Code) -> Vec<String> {
    let cluster = Cluster::start(code.width() + 1, 3).await;
    code.enable(&cluster.fs).await;
    let mut places = Vec::new();
    for number in 0..30 {
        let len = 1 + Dice::new(number).below(3 * CELL as usize);
        let (path, data) = (format!("/{number}"), Dice::new(number).bytes(len));
        cluster.write(code, &path, data).await;
        places.push((path.clone(), cluster.holders(&path, 0).await));
    }
    cluster.wait_quiet().await;
    // Several rounds of mending later.
    tokio::time::sleep(Duration::from_millis(300)).await;
    cluster.wait_quiet().await;
    let mut moved = Vec::new();
    for (path, at_first) in places {
        let now = cluster.holders(&path, 0).await;
        if !at_first.iter().all(|node| now.contains(node)) {
            moved.push(format!("{path}: {at_first:?}, then {now:?}"));
        }
    }
    moved
}
