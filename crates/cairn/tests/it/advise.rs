//! `cairn advise`: what it foretells is what comes, and what Hadoop has written is judged without a cluster.

use crate::cluster::{Cluster, cairn, text, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

const MIB: usize = 1 << 20;

/// Bytes of all replicas and units on the disks of a cluster, checksums left out.
fn on_disks(folder: &Path) -> u64 {
    let (mut sum, mut folders) = (0, vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        // Files and folders come and go meanwhile.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            match entry.metadata() {
                Ok(about) if about.is_dir() => folders.push(entry.path()),
                Ok(about) if name.starts_with("blk_") && !name.ends_with(".meta") => {
                    sum += about.len();
                }
                _ => {}
            }
        }
    }
    sum
}

fn about(cluster: &Cluster, path: &str) -> Value {
    let told = cluster.tool(&["advise", "--json", "--datanodes", "7", "--depth", "0", path]);
    serde_json::from_str::<Value>(&told).unwrap()["rows"][0].clone()
}

#[test]
fn what_is_foretold_is_what_conversion_gives() {
    let keys = [
        "cairn.ec.contiguous.quiet-time=0",
        "cairn.ec.contiguous.short-quiet-time=0",
        "dfs.heartbeat.interval=1",
        "dfs.namenode.redundancy.interval.seconds=1",
    ];
    let words: Vec<&str> = keys.iter().flat_map(|key| ["-D", key]).collect();
    let cluster = Cluster::of(7, &words, Stdio::inherit());
    let disks = cluster.local("cluster");
    for policy in ["RS-3-2-1024k", "RS-3-2-contiguous"] {
        cluster.tool(&["ec", "-enablePolicy", "-policy", policy]);
    }
    cluster.fs(&["mkdir", "/cold", "/striped"]);
    cluster.tool(&["ec", "-setPolicy", "-path", "/striped", "-policy", "RS-3-2-1024k"]);
    let put = |name: &str, to: &str| {
        let words = ["-D", "dfs.replication=3", "-D", "dfs.blocksize=2m", "fs", "put", name, to];
        let done = cluster.run(&words);
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    // Several blocks, some of which are short: of one file, of several together, and of none.
    for (number, len) in [0, 900, MIB + 5, 3 * MIB, 5 * MIB + 7, 6 * MIB, 9 * MIB - 100, 14 * MIB]
        .into_iter()
        .enumerate()
    {
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + number) as u8).collect();
        put(&cluster.file(&format!("file-{number}"), &bytes), "/cold");
    }
    let row = about(&cluster, "/cold");
    let before = on_disks(&disks);
    assert_eq!(row["now"]["bytes_on_disk"], before);

    // A copy in stripes takes to the byte what was foretold.
    for number in 0..8 {
        put(&crate::cluster::word(&cluster.local(&format!("file-{number}"))), "/striped");
    }
    let striped = row["as"]["RS-3-2-1024k"]["bytes_on_disk"].as_u64().unwrap();
    wait_until("the striped copy is on disk", || on_disks(&disks) == before + striped);
    assert_eq!(about(&cluster, "/striped")["now"]["bytes_on_disk"], striped);

    // In place, parities have checksums of their own in them, which nobody has foretold.
    let then = row["as"]["RS-3-2-contiguous"]["bytes_on_disk"].as_u64().unwrap();
    let saving = before - then;
    assert!(saving > before / 5, "{row}");
    cluster.tool(&["ec", "convert", "--policy", "RS-3-2-contiguous", "--wait", "/cold"]);
    let near = || {
        let saved = (before + striped).saturating_sub(on_disks(&disks));
        saved.abs_diff(saving) <= saving / 50
    };
    wait_until("the saving is within 2 % of what was foretold", near);
    // And it stays so.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(near(), "{} on disk, {then} foretold", on_disks(&disks) - striped);
}

#[test]
fn an_image_is_judged_without_a_cluster() {
    let image = "../fsimage/tests/golden/hadoop-3.5.0.fsimage";
    let folder = tempfile::tempdir().unwrap();
    let (page, log) = (folder.path().join("page.html"), folder.path().join("audit.log"));
    std::fs::write(
        &log,
        "2026-11-27 18:43:41,123 INFO FSNamesystem.audit: allowed=true\tugi=root\tip=/127.0.0.1\tcmd=append\t\
         src=/snap/changed\tdst=null\tperm=null\n",
    )
    .unwrap();
    let words = ["advise", "--fsimage", image, "--json", "--money", "--html"];
    let done = cairn().args(words).arg(&page).arg("--audit").arg(&log).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let told: Value = serde_json::from_str(&text(&done.stdout)).unwrap();
    let row = |path: &str| {
        let rows = told["rows"].as_array().unwrap();
        rows.iter().find(|row| row["path"] == path).unwrap().clone()
    };
    assert_eq!(told["total"]["files"], 16);
    assert_eq!(row("/striped/narrow")["now"]["bytes_on_disk"], 13 * MIB);
    assert_eq!(row("/snap")["audit"]["appends"], 1);
    assert!(told["total"]["now"]["cost_a_year"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("<svg"));

    let csv =
        cairn().args(["advise", "--fsimage", image, "--csv", "--depth", "1"]).output().unwrap();
    assert!(text(&csv.stdout).starts_with("path,files,bytes,bytes_on_disk"));
    let refused = cairn().args(["advise", "--fsimage", "Cargo.toml"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("this is no fsimage"), "{}", text(&refused.stderr));
}
