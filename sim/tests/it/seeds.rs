//! No seed breaks a promise, and a seed gives the same run each time.

use cairn_sim::{Options, Right, run};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that each run of the tests can afford.
fn seed_count() -> u64 {
    if env!("CAIRN_SIM_OPT_LEVEL") == "0" { 60 } else { 1500 }
}

#[test]
fn no_seed_breaks_a_promise() {
    let next = AtomicU64::new(0);
    let failed: Mutex<BTreeMap<u64, String>> = Mutex::default();
    let counts: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    let worker = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seed_count() {
            return;
        }
        let report = run(seed, Options::default(), &mut Right);
        for (what, count) in report.counts {
            *counts.lock().unwrap().entry(what).or_default() += count;
        }
        if let Some(why) = report.violation {
            failed.lock().unwrap().insert(seed, why);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| _ = scope.spawn(worker));
    });
    let failed = failed.into_inner().unwrap();
    let replay = "cargo run -p cairn-sim -- --trace --seed";
    assert!(failed.is_empty(), "replay with {replay} SEED: {failed:#?}");
    // What never happens proves nothing.
    let counts = counts.into_inner().unwrap();
    for what in [
        "DataNodes change racks",
        "DataNodes cloned",
        "DataNodes crash",
        "DataNodes cut off",
        "DataNodes in maintenance",
        "DataNodes in the place of others",
        "DataNodes join",
        "DataNodes leave",
        "DataNodes let go",
        "DataNodes refused for others",
        "DataNodes restored",
        "DataNodes return",
        "DataNodes stall",
        "DataNodes stay away",
        "DataNodes switched off",
        "NameNode falls",
        "all DataNodes cut off",
        "appends",
        "bits flipped in memory",
        "bits flipped on disk",
        "block files lost",
        "block recoveries",
        "clients die",
        "clocks set",
        "clones switched off",
        "copies",
        "degraded stripes read",
        "disks full",
        "disks lost",
        "files read",
        "files written",
        "leases recovered",
        "logs full",
        "groups mended",
        "moves",
        "orders obeyed twice",
        "pipelines mended",
        "power failures",
        "racks cut off",
        "rebuilds",
        "reports come late",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count > 0), "never: {what}");
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let options = Options { trace: true, ..Options::default() };
    let first = run(7, options, &mut Right);
    assert!(first.trace.len() > 100, "{} lines", first.trace.len());
    assert_eq!(first, run(7, options, &mut Right));
}

/// A copy that comes after the deletion was told is another one.
#[test]
fn a_member_that_returns_to_where_it_was_deleted_is_on_its_way_out_no_more() {
    let options = Options { groups: true, ..Options::default() };
    assert_eq!(run(281, options, &mut Right).violation, None);
}

/// The NameNode counts on what it had of the machine before, until the clone tells what it has.
#[test]
fn a_clone_with_a_torn_replica_counts_for_no_other_bytes_before_it_has_told() {
    let options = Options { groups: true, ..Options::default() };
    assert_eq!(run(149, options, &mut Right).violation, None);
}

/// One of two open replicas is torn, and the other one's node was let go before anybody could know.
#[test]
fn a_recovery_waits_for_a_node_that_was_let_go_before_the_other_was_known_to_be_torn() {
    assert_eq!(run(1538, Options::default(), &mut Right).violation, None);
}

/// A node is let go, and one of those that were thought to have what it has has lost it unnoticed (81). A NameNode
/// falls with a durable group that it has not shown (47, 335, 826). The simulation ends with an entry that is not
/// logged yet (444, 653). A closed file that was not synced is torn before its end comes into force (649). A unit is
/// known to be bad on a machine whose clone has a good one (845).
#[test]
fn much_comes_between_a_look_and_the_command_that_rests_on_it() {
    let options = Options { is_contended: true, ..Options::default() };
    for seed in [47, 81, 335, 444, 649, 653, 826, 845] {
        assert_eq!(run(seed, options, &mut Right).violation, None, "seed {seed}");
    }
}

/// A recovery finds nothing, and a writer that was given the block before opens its replicas only then.
#[test]
fn a_writer_that_comes_after_a_recovery_that_found_nothing_is_told_of_no_byte() {
    let options = Options { is_contended: true, ..Options::default() };
    for seed in [30, 309] {
        assert_eq!(run(seed, options, &mut Right).violation, None, "seed {seed}");
    }
}

/// What a DataNode has read before it registered was not ordered by the NameNode that it registers with.
#[test]
fn a_replica_that_was_read_before_its_node_registered_is_not_proven() {
    assert_eq!(run(31944, Options::default(), &mut Right).violation, None);
}

/// It is not dropped, and nobody can close it.
#[test]
fn a_group_of_which_a_power_cut_has_left_no_stripe_stays_open() {
    assert_eq!(run(30655, Options::default(), &mut Right).violation, None);
}
