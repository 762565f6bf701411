//! The commands that the documents show: those between fences are run, in their order, and every other one has words
//! that the program knows.

use crate::cluster::{Cluster, cairn, text, word};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is run, page by page.
const RUN: [&str; 9] = [
    "docs/quick-start.md",
    "README.md",
    "docs/operations/setup.md",
    "docs/operations/serving.md",
    "docs/operations/erasure-coding.md",
    "docs/operations/nodes.md",
    "docs/operations/backup.md",
    "docs/operations/monitoring.md",
    "docs/advise.md",
];

/// Lines of these pages that are not run here, and why; what they say is checked all the same.
const NOT_RUN: [(&str, &str); 12] = [
    ("cargo ", "builds"),
    ("./test", "is what runs this"),
    ("cairn cluster ", "is what all others are run on"),
    ("cairn namenode --conf ", "serves until it is stopped: backup.rs"),
    ("cairn namenode -D ", "likewise"),
    ("cairn datanode --conf ", "likewise"),
    ("cairn gateway ", "likewise: interop/python/webhdfs"),
    (":14000/", "asks that gateway"),
    ("--until '2026", "is of a moment that this cluster has not seen: backup.rs"),
    ("hdfs dfs", "is Hadoop's: interop/hadoop"),
    ("hadoop ", "is Hadoop's: interop/old"),
    ("cairn advise --fsimage", "needs an image of Hadoop's: advise.rs"),
];

/// Systemd's, which packaging/check-package runs.
const UNITS: &str = "systemctl ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn pages_below(folder: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("{folder}/{name}");
        match root().join(&path).is_dir() {
            true => pages_below(&path, found),
            false if name.ends_with(".md") => found.push(path),
            false => {}
        }
    }
}

/// The lines between the fences of a page that are commands: in blocks of no language, or of a shell.
fn fenced(text: &str) -> Vec<String> {
    let (mut lines, mut within) = (Vec::new(), None);
    for line in text.lines() {
        match (line.strip_prefix("```"), within) {
            (Some(_), Some(_)) => within = None,
            (Some(language), None) => within = Some(matches!(language, "" | "sh" | "console")),
            (None, Some(true)) => lines.push(line.trim_start_matches("$ ").to_string()),
            (None, _) => {}
        }
    }
    lines
}

/// The commands of ours in a page, wherever they stand.
fn ours(text: &str) -> BTreeSet<String> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let lines = fenced(text);
    let all = spans.chain(lines.iter().map(String::as_str));
    // Not the program's name in a drawing, and not what all commands are called together.
    let is_one = |text: &&str| {
        let rest = text.strip_prefix("cairn ").unwrap_or(" ");
        !rest.starts_with(' ') && !rest.starts_with("COMMAND")
    };
    all.filter(is_one).map(str::to_string).collect()
}

/// Words that stand for a call, as the parser would read them: without comments, without what comes behind in a shell,
/// of several words one, and what may be left out is there.
fn words(command: &str) -> Vec<String> {
    let command = command.replace("\\|", "|");
    let command = command.split(" #").next().unwrap_or_default();
    let command = command.split(" && ").next().unwrap_or_default();
    let command = command.split(" > ").next().unwrap_or_default();
    let mut words = Vec::new();
    let mut quoted = false;
    for word in command.split_whitespace() {
        let continues = quoted;
        quoted ^= word.matches('\'').count() % 2 == 1;
        let word = word.replace('\'', "");
        if continues {
            let last: &mut String = words.last_mut().unwrap();
            last.push(' ');
            last.push_str(&word);
            continue;
        }
        let word = word.trim_matches(['[', ']', '(', ')']).trim_end_matches("...");
        let word = word.split('|').next().unwrap_or_default();
        // What stands for a number may be a number only.
        let word = if word == "PCT" { "10" } else { word };
        if !matches!(word, "" | "…" | "...") {
            words.push(word.to_string());
        }
    }
    words
}

/// Whether the program knows these words; what it says otherwise.
fn is_known(words: &[String]) -> Result<(), String> {
    let help = |words: &[String]| {
        let done = cairn().args(&words[1..]).arg("--help").output().unwrap();
        match done.status.success() {
            true => Ok(text(&done.stdout)),
            false => Err(text(&done.stderr)),
        }
    };
    let Some(at) = words.iter().position(|word| matches!(word.as_str(), "ec" | "crypto" | "fsck"))
    else {
        return help(words).map(drop);
    };
    // These have their own way to read words, or take those of Hadoop's commands.
    match words.get(at + 1) {
        Some(word) if word.chars().all(|c| c.is_ascii_lowercase()) && words[at] == "ec" => {
            help(words).map(drop)
        }
        _ => {
            let usage = help(&words[..=at])?;
            let options = words[at + 1..].iter().filter(|word| word.starts_with('-'));
            let told: Vec<&str> = usage.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
            let is_told = |word: &&String| told.contains(&word.as_str());
            let mut unknown = options.filter(|word| !is_told(word));
            unknown.next().map_or(Ok(()), |word| Err(format!("no {word} in\n{usage}")))
        }
    }
}

#[test]
fn every_command_that_is_written_of_is_known() {
    let mut pages = vec!["README.md".to_string()];
    pages_below("docs", &mut pages);
    let (mut count, mut wrong) = (0, Vec::new());
    let mut seen = BTreeSet::new();
    for path in pages {
        for command in ours(&page(&path)) {
            let words = words(&command);
            if !seen.insert(words.clone()) {
                continue;
            }
            count += 1;
            if let Err(why) = is_known(&words) {
                wrong.push(format!("{path}: {command}\n  {words:?}\n{why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} commands were found");
}

#[test]
fn what_is_not_known_would_be_noticed() {
    for command in [
        "cairn fs list /",
        "cairn admin decommission --waiting dn7",
        "cairn ec -setPolicies -path /a",
        "cairn ec convert --polic x /a",
        "cairn fsck / -file",
    ] {
        assert!(is_known(&words(command)).is_err(), "{command}");
    }
    assert_eq!(words("cairn a [--b|--c] 'd e' … # f"), ["cairn", "a", "--b", "d e"]);
}

#[test]
fn what_the_pages_show_can_be_done() {
    // Nothing is waited for that a cluster waits for because there might be more.
    let keys = [
        "cairn.ec.contiguous.quiet-time=0",
        "cairn.ec.contiguous.short-quiet-time=0",
        "dfs.namenode.decommission.interval=1",
        "dfs.namenode.redundancy.interval.seconds=1",
    ];
    let keys: Vec<&str> = keys.iter().flat_map(|key| ["-D", *key]).collect();
    let cluster = Cluster::of(12, &keys, Stdio::inherit());
    let here = |name: &str| word(&cluster.local(name));
    cluster.file("big.file", &[7; 3 << 20]);
    std::fs::create_dir(cluster.local("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cairn"), cluster.local("bin/cairn")).unwrap();
    let path = format!("{}:{}", here("bin"), std::env::var("PATH").unwrap());

    // What the pages take to be there.
    for folder in ["/cold", "/striped", "/warehouse"] {
        cluster.fs(&["mkdir", folder]);
    }
    let policy = ["-setPolicy", "-path", "/striped", "-policy", "RS-6-3-1024k"];
    cluster.tool(&[&["ec"], &policy[..]].concat());
    let file = here("big.file");
    cluster.fs(&["put", &file, "/striped/file"]);
    cluster.fs(&["put", &file, "/warehouse/file"]);
    for number in 0..6 {
        cluster.fs(&["put", &file, &format!("/cold/{number}")]);
    }

    let mut count = 0;
    for name in RUN {
        // Each page puts its file where it is not yet.
        cluster.fs(&["rm", "-f", "--skip-trash", "/data/big.file"]);
        for line in fenced(&page(name)) {
            let is_passed_over = |(part, _): &(&str, &str)| line.contains(part);
            if line.is_empty() || line.starts_with(UNITS) || NOT_RUN.iter().any(is_passed_over) {
                continue;
            }
            // Hadoop's command understands it as ours does.
            let is_one = ["cairn ", "curl ", "hdfs ec "].iter().any(|name| line.starts_with(name));
            if !is_one {
                continue;
            }
            let line = line
                .replace("hdfs ec ", "cairn ec ")
                .replace("hdfs://127.0.0.1:8020", cluster.uri())
                .replace("hdfs://namenode:8020", cluster.uri())
                .replace("127.0.0.1:9870", cluster.http())
                .replace("/tmp/back", &here("back"))
                .replace("/backups/cairn", &here("backups"))
                .replace("/var/lib/cairn/name", &here("name"))
                .replace(" dn7", " datanode7")
                .replace(" FILE", " big.file");
            let shell = if line.starts_with("curl ") {
                format!("{line} --silent --show-error --fail-with-body")
            } else {
                line
            };
            let done = Command::new("sh")
                .args(["-c", &shell])
                .current_dir(cluster.local(""))
                .env("PATH", &path)
                .env("USER", user())
                .env("HADOOP_CONF_DIR", cluster.local("cluster/conf"))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let (out, err) = (text(&done.stdout), text(&done.stderr));
            assert!(done.status.success(), "{name}: {shell}\n{out}{err}");
            count += 1;
        }
    }
    assert!(count >= 25, "{count} commands were run");
}

/// As whom the commands are run.
fn user() -> String {
    let done = Command::new("id").arg("-un").output().unwrap();
    text(&done.stdout).trim().to_string()
}
