//! The matrix: any `m` DataNodes of a block die at each stage of its life.

use crate::cluster::Cluster;
use crate::code::{Code, is_full};
use crate::readers::{Dice, Reading};
use crate::truth::{self, Written};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// When DataNodes die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The file is there, none of its blocks.
    Create,
    /// In the middle of a block, after a whole one.
    Block,
    /// The last byte of a block is handed over, none of the next.
    Boundary,
    /// The writer closes the file.
    Complete,
    /// Nobody writes.
    Idle,
    /// What others lost is being rebuilt.
    Repair,
}

const STAGES: [Stage; 6] =
    [Stage::Create, Stage::Block, Stage::Boundary, Stage::Complete, Stage::Idle, Stage::Repair];

struct Case {
    code: Code,
    stage: Stage,
    /// Units (or replicas) whose DataNodes die.
    victims: Vec<usize>,
    seed: u64,
}

/// All cases; some at a time, because most of a case is waiting.
async fn run(cases: Vec<Case>, at_once: usize) {
    let places = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for case in cases {
        let places = places.clone();
        running.spawn(async move {
            let _place = places.acquire().await.unwrap();
            run_case(case).await;
        });
    }
    while let Some(done) = running.join_next().await {
        // A failed case says itself which one it is.
        done.unwrap();
    }
}

async fn run_case(case: Case) {
    let Case { code, stage, victims, seed } = case;
    let what = format!("{code:?} {stage:?} without {victims:?}, seed {seed}");
    println!("{what}");
    let mut dice = Dice::new(seed);
    let mut cluster = Cluster::start(code.width() + code.tolerance() + 2, 3).await;
    code.enable(&cluster.fs).await;
    let reading = Reading::start(cluster.another_client().await, seed);

    let old = cluster.write(&code, "/old", dice.bytes(code.block_len() * 2 + 5000)).await;
    reading.acknowledged(old);
    let data = dice.bytes(code.block_len() * 2 + dice.clone().below(code.block_len()) + 1);
    let new = Written { path: "/new".to_string(), data };
    write_losing(&mut cluster, &code, &new, stage, &victims, &mut dice).await;
    reading.acknowledged(new.clone());
    if matches!(stage, Stage::Idle | Stage::Repair) {
        lose(&mut cluster, stage, &victims, &mut dice).await;
    }
    let files = reading.files();
    truth::check(&cluster, &code, &files, &what).await;

    // They return with what they had: units that others have by now, or old ones.
    for node in cluster.stopped() {
        cluster.restart(node).await;
    }
    truth::check(&cluster, &code, &files, &format!("{what}, all returned")).await;
    reading.stop().await;
}

/// Writes a file while DataNodes die, if the stage is one of writing. The write must succeed.
async fn write_losing(
    cluster: &mut Cluster,
    code: &Code,
    file: &Written,
    stage: Stage,
    victims: &[usize],
    dice: &mut Dice,
) {
    let (path, data) = (file.path.as_str(), file.data.as_slice());
    let block = code.block_len();
    let at = match stage {
        Stage::Create => 0,
        Stage::Block => block + 1 + dice.below(block - 1),
        Stage::Boundary => block,
        Stage::Complete | Stage::Idle | Stage::Repair => data.len(),
    };
    let mut writer = cluster.fs.create(path, &code.options()).await.unwrap();
    writer.write(&data[..at]).await.unwrap();
    match stage {
        Stage::Create => {
            let holders = cluster.holders("/old", 0).await;
            victims.iter().for_each(|unit| cluster.kill(holders[*unit]));
        }
        Stage::Block | Stage::Boundary => {
            let holders = cluster.holders(path, u64::MAX >> 1).await;
            victims.iter().for_each(|unit| cluster.kill(holders[*unit]));
        }
        Stage::Complete | Stage::Idle | Stage::Repair => {}
    }
    writer.write(&data[at..]).await.unwrap();
    if stage == Stage::Complete {
        let holders = cluster.holders(path, u64::MAX >> 1).await;
        let closing = tokio::spawn(writer.close());
        tokio::time::sleep(Duration::from_micros(dice.below(4000) as u64)).await;
        victims.iter().for_each(|unit| cluster.kill(holders[*unit]));
        closing.await.unwrap().unwrap();
    } else {
        writer.close().await.unwrap();
    }
}

/// Kills DataNodes of a closed file, all at once or some while others' units are being rebuilt.
async fn lose(cluster: &mut Cluster, stage: Stage, victims: &[usize], dice: &mut Dice) {
    let holders = cluster.holders("/new", 0).await;
    let (first, rest) = match stage {
        Stage::Repair => victims.split_at(victims.len().div_ceil(2)),
        _ => (victims, &[][..]),
    };
    // A fresh one holds little but what is rebuilt: it may die as well.
    let fresh = if stage == Stage::Repair { cluster.add().await } else { 0 };
    first.iter().for_each(|unit| cluster.kill(holders[*unit]));
    if stage != Stage::Repair {
        return;
    }
    // Small units can be mended between two looks at the figures, as soon as the dead are known.
    let is_mending = || {
        let stats = cluster.stats();
        stats.pending_reconstruction > 0 || stats.live_nodes == cluster.running().len()
    };
    cluster.wait(is_mending, || format!("nothing is mended: {:?}", cluster.stats())).await;
    tokio::time::sleep(Duration::from_millis(dice.below(30) as u64)).await;
    rest.iter().for_each(|unit| cluster.kill(holders[*unit]));
    // Often the one that rebuilds.
    cluster.kill_spare(fresh);
}

/// All sets of `count` numbers below `end`.
pub fn combinations(end: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with_last = |last: usize| {
        combinations(last, count - 1).into_iter().map(move |mut set| {
            set.push(last);
            set
        })
    };
    (0..end).flat_map(with_last).collect()
}

/// Every set of victims at every stage.
fn all_cases(code: &Code) -> Vec<Case> {
    let sets = combinations(code.width(), code.tolerance());
    let pairs = STAGES.iter().flat_map(|stage| sets.iter().map(move |set| (*stage, set.clone())));
    let case = |(seed, (stage, victims)): (usize, (Stage, Vec<usize>))| Case {
        code: code.clone(),
        stage,
        victims,
        seed: seed as u64,
    };
    pairs.enumerate().map(case).collect()
}

/// `count` seeded sets of victims at every stage, all sets when everything is to be run.
fn some_cases(code: &Code, count: usize, full: usize) -> Vec<Case> {
    let count = if is_full() { full } else { count };
    let mut cases = Vec::new();
    for (i, stage) in STAGES.into_iter().enumerate() {
        for j in 0..count {
            let seed = (i * 1000 + j) as u64;
            let victims = Dice::new(seed).choose(code.tolerance(), code.width());
            cases.push(Case { code: code.clone(), stage, victims, seed });
        }
    }
    cases
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_3_2_survives_any_two_deaths_at_each_stage() {
    let code = Code::rs(3, 2);
    let cases = if is_full() { all_cases(&code) } else { some_cases(&code, 4, 4) };
    run(cases, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xor_2_1_survives_any_death_at_each_stage() {
    run(all_cases(&Code::xor()), 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_survive_any_two_deaths_at_each_stage() {
    run(all_cases(&Code::Replicated(3)), 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_6_3_survives_three_deaths_at_each_stage() {
    run(some_cases(&Code::rs(6, 3), 2, 60), 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_10_4_survives_four_deaths_at_each_stage() {
    run(some_cases(&Code::rs(10, 4), 1, 60), 4).await;
}
