//! `cairn fsck`: what the blocks of a tree lack, with the options and the exit statuses of `hdfs fsck`.
//!
//! The NameNode makes the text; see its module `fsck`. Source: Hadoop 3.5.0 `DFSck`.

use super::pages::{self, PageServer, Pages, encoded};
use crate::{Settings, config, output};
use anyhow::{Result, bail};
use cairn_client::FileSystem;
use indicatif::ProgressBar;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cairn fsck [PATH] [-list-corruptfileblocks | [-move | -delete | -openforwrite]
                  [-files [-blocks [-locations | -racks | -replicaDetails | -upgradedomains]]]]
                  [-includeSnapshots] [-showprogress] [-storagepolicies] [-maintenance]
                  [-blockId BLOCK...] [-replicate]";

/// What `DFSck` exits with when it cannot tell.
const UNKNOWN: u8 = 255;

/// Flags of `cairn fsck`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "cairn fsck [PATH] OPTION...", after_help = USAGE)]
pub struct Args {
    /// A path and options of `hdfs fsck`
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// Prints what the NameNode finds; exits like `hdfs fsck`: 0 healthy, 1 corrupt, 255 if it failed.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let request = match Request::parse(&args.words, settings.json) {
        Ok(request) => request,
        Err(error) => {
            crate::complain!("fsck: {error:#}\n{USAGE}");
            return Ok(ExitCode::from(UNKNOWN));
        }
    };
    let conf = settings.configuration()?;
    let client = config::client::read(&conf)?;
    let fs = FileSystem::connect(client).await?;
    let server = Pages::of(&conf, &fs)?.of_namenode(&fs).await?;
    let target = request.target(&fs.config().user);
    crate::complain!("Connecting to namenode via {server}{target}");
    let code = match request.list_corrupt {
        true => list_corrupt(&server, &target, &request).await?,
        false => {
            let mut last = String::new();
            let bar = bar(&fs, &request).await;
            let hides_points = !bar.is_hidden() && std::io::stdout().is_terminal();
            let print = |line: &str| {
                let files = files_told(line);
                bar.inc(files);
                if files == 0 || !hides_points {
                    bar.suspend(|| crate::say!("{line}"));
                }
                last = line.to_string();
            };
            let got = pages::get(&server, &target, print).await;
            bar.finish_and_clear();
            got?;
            if request.json { json_status(&last) } else { exit_status(&last) }
        }
    };
    Ok(ExitCode::from(code))
}

/// How many files have been looked at, on a terminal, where the NameNode tells it.
async fn bar(fs: &FileSystem, request: &Request) -> ProgressBar {
    let is_told = std::io::stderr().is_terminal()
        && !request.json
        && !request.flags.contains(&"files")
        && request.block_ids.is_none();
    let summary = match is_told {
        true => fs.content_summary(request.path()).await.ok(),
        false => None,
    };
    match summary {
        Some(summary) => output::file_bar(summary.file_count, "fsck"),
        None => ProgressBar::hidden(),
    }
}

/// Files that a line of nothing but points stands for.
///
/// Source: Hadoop 3.5.0 `NamenodeFsck#collectFileSummary`.
fn files_told(line: &str) -> u64 {
    const FILES: u64 = 100;
    let is_all = line.bytes().all(|byte| byte == b'.');
    if is_all { line.len() as u64 * FILES } else { 0 }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    path: Option<String>,
    flags: Vec<&'static str>,
    block_ids: Option<String>,
    list_corrupt: bool,
    json: bool,
}

/// Options, and what they are called in the query.
const FLAGS: [(&str, &str); 15] = [
    ("-move", "move"),
    ("-delete", "delete"),
    ("-files", "files"),
    ("-openforwrite", "openforwrite"),
    ("-blocks", "blocks"),
    ("-locations", "locations"),
    ("-racks", "racks"),
    ("-replicaDetails", "replicadetails"),
    ("-upgradedomains", "upgradedomains"),
    ("-storagepolicies", "storagepolicies"),
    ("-showprogress", "showprogress"),
    ("-list-corruptfileblocks", "listcorruptfileblocks"),
    ("-includeSnapshots", "includeSnapshots"),
    ("-maintenance", "maintenance"),
    ("-replicate", "replicate"),
];

impl Request {
    fn parse(words: &[String], json: bool) -> Result<Request> {
        let mut request = Request { json, ..Request::default() };
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            if let Some((_, name)) = FLAGS.iter().find(|(option, _)| option == word) {
                request.flags.push(name);
                request.list_corrupt |= *name == "listcorruptfileblocks";
            } else if word == "-blockId" {
                let ids = request.block_ids.get_or_insert_default();
                while let Some(id) = words.next_if(|word| !word.starts_with('-')) {
                    let _ = write!(ids, "{id} ");
                }
            } else if word == "--json" {
                request.json = true;
            } else if word.starts_with('-') {
                bail!("Illegal option '{word}'");
            } else if request.path.is_none() {
                request.path = Some(word.clone());
            } else {
                bail!("can only operate on one path at a time '{word}'");
            }
        }
        Ok(request)
    }

    /// Path and query of the page.
    fn target(&self, user: &str) -> String {
        let mut target = format!("/fsck?ugi={}", encoded(user));
        for flag in &self.flags {
            let _ = write!(target, "&{flag}=1");
        }
        if let Some(ids) = &self.block_ids {
            let _ = write!(target, "&blockId={}", encoded(ids));
        }
        if self.json {
            target.push_str("&format=json");
        }
        let _ = write!(target, "&path={}", encoded(self.path()));
        target
    }

    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/")
    }
}

/// What `DFSck` makes of the last line.
fn exit_status(last: &str) -> u8 {
    const ENDS: [(&str, u8); 9] = [
        ("is HEALTHY", 0),
        ("is CORRUPT", 1),
        ("does not exist", 0),
        ("is EXCESS", 0),
        ("is DECOMMISSIONED", 2),
        ("is DECOMMISSIONING", 3),
        ("is IN MAINTENANCE", 4),
        ("is ENTERING MAINTENANCE", 5),
        ("is STALE", 6),
    ];
    if last.contains("Incorrect blockId format:") {
        return 0;
    }
    ENDS.iter().find(|(end, _)| last.ends_with(end)).map_or(UNKNOWN, |(_, status)| *status)
}

fn json_status(last: &str) -> u8 {
    let last: Value = serde_json::from_str(last).unwrap_or_default();
    match last["status"].as_str() {
        Some("HEALTHY" | "NONEXISTENT") => 0,
        Some("CORRUPT") => 1,
        // A block has no status of its own, but places.
        None if last["places"].is_array() => u8::from(last["corrupt"] == true),
        _ => UNKNOWN,
    }
}

/// Asks for one page of lost blocks after the other.
async fn list_corrupt(server: &PageServer, target: &str, request: &Request) -> Result<u8> {
    let (path, mut count, mut cookie) = (request.path(), 0_u64, 0_u64);
    loop {
        let more = if cookie > 0 { format!("&startblockafter={cookie}") } else { String::new() };
        let (mut rows, mut next, mut denied, mut failed) = (Vec::new(), None, false, false);
        let mut is_whole = false;
        pages::get(server, &format!("{target}{more}"), |line| {
            let object: Value = serde_json::from_str(line).unwrap_or_default();
            if let Some(number) = line.strip_prefix("Cookie:\t") {
                next = number.parse().ok();
            } else if let Some(number) = object["cookie"].as_u64() {
                (next, is_whole) = (Some(number), true);
            } else if line.contains("Access denied for user") {
                denied = true;
            } else if line.contains("blk_") {
                rows.push(line.to_string());
            } else if line.starts_with("The filesystem under path ") {
                is_whole = true;
            } else if line.ends_with(" FAILED") || object["status"] == "FAILED" {
                failed = true;
            }
        })
        .await?;
        if denied {
            crate::say!("Failed to open path '{path}': Permission denied");
            return Ok(UNKNOWN);
        }
        if failed {
            bail!("the NameNode cannot list lost blocks now");
        }
        if !is_whole {
            bail!("the NameNode's list of lost blocks was cut short");
        }
        if count == 0 && !rows.is_empty() && !request.json {
            crate::say!("The list of corrupt blocks under path '{path}' are:");
        }
        for row in &rows {
            crate::say!("{row}");
        }
        count += rows.len() as u64;
        match next {
            Some(next) if next > cookie && !rows.is_empty() => cookie = next,
            _ => break,
        }
    }
    if request.json {
        crate::say!("{}", serde_json::json!({"path": path, "corrupt": count}));
    } else {
        crate::say!("The filesystem under path '{path}' has {count} CORRUPT blocks");
    }
    Ok(if count == 0 { 0 } else { UNKNOWN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').filter(|word| !word.is_empty()).map(str::to_string).collect()
    }

    #[test]
    fn queries_are_hadoops() {
        let target = |text: &str| Request::parse(&words(text), false).unwrap().target("me");
        assert_eq!(target(""), "/fsck?ugi=me&path=%2F");
        assert_eq!(
            target("/a/ü -files -blocks -replicaDetails"),
            "/fsck?ugi=me&files=1&blocks=1&replicadetails=1&path=%2Fa%2F%C3%BC"
        );
        assert_eq!(
            target("-blockId blk_1 blk_-2 -racks"),
            "/fsck?ugi=me&racks=1&blockId=blk_1+blk_-2+&path=%2F"
        );
        assert_eq!(target("/ --json"), "/fsck?ugi=me&format=json&path=%2F");
        for wrong in ["/ -bad", "/a /b"] {
            assert!(Request::parse(&words(wrong), false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn points_are_files() {
        for (line, files) in [("", 0), (".", 100), ("...", 300), ("/a. ", 0), ("..x", 0)] {
            assert_eq!(files_told(line), files, "{line}");
        }
    }

    #[test]
    fn the_last_line_is_the_status() {
        for (last, status) in [
            ("The filesystem under path '/' is HEALTHY", 0),
            ("The filesystem under path '/' is CORRUPT", 1),
            ("Path '/x' does not exist", 0),
            ("Block replica on datanode/rack: a/b is DECOMMISSIONING", 3),
            ("Block replica on datanode/rack: a/b is IN MAINTENANCE", 4),
            ("Fsck on path '/' FAILED", 255),
            ("", 255),
        ] {
            assert_eq!(exit_status(last), status, "{last}");
        }
        for (last, status) in [
            (r#"{"status":"HEALTHY"}"#, 0),
            (r#"{"status":"CORRUPT"}"#, 1),
            (r#"{"status":"FAILED"}"#, 255),
            (r#"{"places":[],"corrupt":true}"#, 1),
            ("no JSON", 255),
        ] {
            assert_eq!(json_status(last), status, "{last}");
        }
    }

    #[tokio::test]
    async fn a_list_that_is_cut_short_is_no_good_news() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = PageServer::open_to_all(listener.local_addr().unwrap());
        let end = "The filesystem under path '/' has no CORRUPT files\n\n";
        let text = format!("Cookie:\t0\n\n\n{end}");
        let json = r#"{"path":"/","cookie":0,"corrupt":0}"#.to_string();
        for (whole, is_json) in [(text, false), (json, true)] {
            let request = Request::parse(&words("/ -list-corruptfileblocks"), is_json).unwrap();
            for (body, is_good) in [("", false), (&whole[..11], false), (&whole[..], true)] {
                let asked = list_corrupt(&server, "/fsck", &request);
                let answered = async {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let answer = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
                    stream.read_exact(&mut [0; 10]).await.unwrap();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    // A socket with unread bytes is reset when it is closed.
                    stream.shutdown().await.unwrap();
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                };
                let (told, ()) = tokio::join!(asked, answered);
                assert_eq!(told.is_ok(), is_good, "{body}");
            }
        }
    }
}
