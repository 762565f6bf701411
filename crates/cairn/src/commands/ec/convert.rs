//! `cairn ec convert`: files from copies to contiguous groups and back, and from stripes to either, with all below a
//! directory.
//!
//! Files are named to the NameNode some at a time; who gives the command again goes on where it ended, for what is done
//! stays so. Grouping, copying and deleting follow by themselves; `--wait` watches them. Striped files are read and
//! written here, some side by side.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{ConvertedFile, ConvertedFiles, FileStatus, FileSystem, LayoutSurvey};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Keep files in contiguous groups, or in copies again
///
/// Files that were closed for a while are grouped by the DataNodes; a file stays what it is, and can be read meanwhile.
#[derive(Debug, clap::Parser)]
#[command(name = "cairn ec convert", disable_version_flag = true)]
pub struct Args {
    /// A file, or a directory with all below it
    path: String,
    /// The contiguous policy, for example RS-6-3-contiguous
    #[arg(long, value_name = "POLICY", required_unless_present = "replicate")]
    policy: Option<String>,
    /// Keep copies of whole blocks again
    #[arg(long, conflicts_with = "policy")]
    replicate: bool,
    /// Only say what would be grouped and saved
    #[arg(long)]
    dry_run: bool,
    /// Wait until all is grouped, or copied, that can be
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// Leave striped files as they are: their bytes would be read and written here
    #[arg(long)]
    leave_striped: bool,
    /// Striped files that are read and written side by side
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    streams: u8,
}

/// The name of the policy by which nothing is coded.
const REPLICATION: &str = "REPLICATION";
/// Files that are named in one call.
const TOGETHER: usize = 1000;
/// How long to rest between two looks at what has come of it.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// What was done to files.
#[derive(Clone, Debug, Default)]
struct Done {
    converted: u64,
    directories: u64,
    survey: LayoutSurvey,
    refused: Vec<(String, String)>,
    /// Of those that were converted, the ones that were striped, and their bytes.
    rewritten: (u64, u64),
}

/// Exits with 0 if all was converted, with 1 if something was refused.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let policy = args.policy.as_deref().unwrap_or(REPLICATION);
    let bar = output::byte_bar(0, &args.path);
    let rewriting = (!args.dry_run && !args.leave_striped).then(|| Rewriting {
        policy: args.policy.clone(),
        streams: usize::from(args.streams),
        bar: bar.clone(),
    });
    let walk = Walk { fs: &fs, policy, is_trial: args.dry_run, rewriting };
    let done = walk.all(&args.path).await;
    bar.finish_and_clear();
    let done = done?;
    if !settings.json {
        tell(&args, policy, &done);
    }
    let mut survey = done.survey;
    if args.wait {
        survey = wait(settings, &fs, &args.path, policy).await?;
    }
    if settings.json {
        crate::say!("{}", as_json(&args, policy, &done, &survey));
    }
    Ok(if done.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Walks over a tree.
struct Walk<'a> {
    fs: &'a FileSystem,
    policy: &'a str,
    /// Nothing is to be changed.
    is_trial: bool,
    /// Whether striped files are converted as well, and how.
    rewriting: Option<Rewriting>,
}

/// How striped files are read and written.
struct Rewriting {
    /// The policy of the groups; none for copies alone.
    policy: Option<String>,
    /// So many side by side.
    streams: usize,
    bar: ProgressBar,
}

impl Walk<'_> {
    async fn all(&self, path: &str) -> Result<Done> {
        let mut done = Done::default();
        let top = self.fs.require(path).await?;
        if !top.is_dir() {
            self.files(vec![top], &mut done).await?;
            return Ok(done);
        }
        let mut waiting = vec![top];
        while let Some(directory) = waiting.pop() {
            // New files first, or some could come between.
            self.directory(&directory, &mut done).await?;
            let mut listing = self.fs.list(&directory.path);
            let mut files = Vec::new();
            loop {
                match listing.next().await {
                    Ok(Some(entry)) if entry.is_dir() => waiting.push(entry),
                    Ok(Some(entry)) => files.push(entry),
                    Ok(None) => break,
                    Err(error) if error.kind() == ErrorKind::NotFound && directory.path != path => {
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
                if files.len() == TOGETHER {
                    self.files(std::mem::take(&mut files), &mut done).await?;
                }
            }
            self.files(files, &mut done).await?;
        }
        Ok(done)
    }

    /// Has new files of a directory kept so, unless they are already: what it has of its own goes before what is above.
    async fn directory(&self, directory: &FileStatus, done: &mut Done) -> Result<()> {
        if self.is_trial {
            return Ok(());
        }
        let now = match self.fs.policy(&directory.path).await {
            Ok(now) => now,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if now.map_or(REPLICATION.to_string(), |policy| policy.name) != self.policy {
            self.fs.set_policy(&directory.path, Some(self.policy)).await?;
            done.directories += 1;
        }
        Ok(())
    }

    async fn files(&self, files: Vec<FileStatus>, done: &mut Done) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let ids: Vec<u64> = files.iter().map(|file| file.file_id).collect();
        let ConvertedFiles { outcomes, survey } =
            self.fs.convert_files(&ids, self.policy, self.is_trial).await?;
        done.survey += survey;
        let mut striped = Vec::new();
        for (file, outcome) in files.into_iter().zip(outcomes) {
            match outcome {
                ConvertedFile::Done => done.converted += 1,
                ConvertedFile::Refused(why) => done.refused.push((file.path, why)),
                ConvertedFile::Striped => striped.push(file),
                ConvertedFile::Same | ConvertedFile::Gone => {}
            }
        }
        if let Some(rewriting) = &self.rewriting {
            rewriting.all(self.fs, striped, done).await?;
        }
        Ok(())
    }
}

impl Rewriting {
    /// Converts striped files, some side by side.
    async fn all(&self, fs: &FileSystem, files: Vec<FileStatus>, done: &mut Done) -> Result<()> {
        self.bar.inc_length(files.iter().map(|file| file.len).sum());
        let mut waiting = files.into_iter();
        let mut running = JoinSet::new();
        loop {
            while running.len() < self.streams
                && let Some(file) = waiting.next()
            {
                let (fs, policy, bar) = (fs.clone(), self.policy.clone(), self.bar.clone());
                running.spawn(async move {
                    let rewritten =
                        fs.rewrite(&file, policy.as_deref(), &mut |more| bar.inc(more)).await;
                    (file, rewritten)
                });
            }
            let Some(ended) = running.join_next().await else { return Ok(()) };
            let (file, ended) = ended?;
            match ended {
                Ok(ConvertedFile::Done) => {
                    done.converted += 1;
                    done.rewritten = (done.rewritten.0 + 1, done.rewritten.1 + file.len);
                }
                Ok(ConvertedFile::Refused(why)) => done.refused.push((file.path, why)),
                Ok(_) => {}
                Err(error) => done.refused.push((file.path, error.to_string())),
            }
        }
    }
}

/// Waits until nothing is left to be grouped or copied.
async fn wait(
    settings: &Settings,
    fs: &FileSystem,
    path: &str,
    policy: &str,
) -> Result<LayoutSurvey> {
    let began = Instant::now();
    let mut first: Option<u64> = None;
    loop {
        let walk = Walk { fs, policy, is_trial: true, rewriting: None };
        let looked = Instant::now();
        let survey = walk.all(path).await?.survey;
        let left = survey.to_group + survey.leaving;
        if left == 0 {
            return Ok(survey);
        }
        let done = first.get_or_insert(left).saturating_sub(left);
        if !settings.json {
            crate::say!("{}", progress(&survey, left, done, began.elapsed()));
        }
        // A large tree is not looked at all the time.
        tokio::time::sleep(LOOK_EVERY.max(9 * looked.elapsed())).await;
    }
}

/// How far it is, and when it may be done if it goes on like that.
fn progress(survey: &LayoutSurvey, left: u64, done: u64, after: Duration) -> String {
    let grouped = output::size(survey.grouped);
    let of = output::size(left);
    let begun = format!("{grouped} in groups, {of} to go");
    match after.as_secs() {
        0 => begun,
        _ if done == 0 => begun,
        seconds => {
            let rate = done / seconds;
            let more = left.checked_div(rate).unwrap_or(u64::MAX);
            format!("{begun}, {}/s, about {more} s", output::size(rate))
        }
    }
}

fn tell(args: &Args, policy: &str, done: &Done) {
    let survey = &done.survey;
    let (bytes, space) = (output::size(survey.bytes), output::size(survey.space));
    crate::say!("{}: {} files, {bytes}, {space} on disk", args.path, survey.files);
    if !args.dry_run {
        crate::say!(
            "converted to {policy}: {} files, and {} were so already; {} directories set",
            done.converted,
            survey.as_wanted.saturating_sub(done.converted),
            done.directories
        );
    }
    match (survey.striped, done.rewritten) {
        (0, _) => {}
        (striped, _) if args.dry_run => {
            let bytes = output::size(survey.striped_bytes);
            crate::say!("to be read and written anew: {striped} striped files, {bytes}");
        }
        (_, (0, _)) => crate::say!("left as they are: {} striped files", survey.striped),
        (_, (files, bytes)) => {
            crate::say!("read and written anew: {files} striped files, {}", output::size(bytes));
        }
    }
    for (path, why) in &done.refused {
        crate::complain!("{path}: {why}");
    }
    let (group, then) = (output::size(survey.to_group), output::size(survey.space_then));
    crate::say!("{} in groups of it, {group} can be", output::size(survey.grouped));
    if survey.leaving > 0 {
        let leaving = output::size(survey.leaving);
        crate::say!("{leaving} in groups that are dissolved first: missing copies are made");
    }
    let saved = survey.space.saturating_sub(survey.space_then);
    let more = survey.space_then.saturating_sub(survey.space);
    let change = match more {
        0 => format!("{} less", output::size(saved)),
        more => format!("{} more", output::size(more)),
    };
    crate::say!("{then} on disk then, {change}");
}

fn as_json(args: &Args, policy: &str, done: &Done, survey: &LayoutSurvey) -> Value {
    let refused = |(path, why): &(String, String)| json!({"path": path, "reason": why});
    json!({
        "path": args.path,
        "policy": policy,
        "dry_run": args.dry_run,
        "files": survey.files,
        "files_as_wanted": survey.as_wanted,
        "files_striped": survey.striped,
        "bytes_striped": survey.striped_bytes,
        "files_converted": done.converted,
        "files_rewritten": done.rewritten.0,
        "bytes_rewritten": done.rewritten.1,
        "directories_set": done.directories,
        "refused": done.refused.iter().map(refused).collect::<Vec<Value>>(),
        "bytes": survey.bytes,
        "bytes_on_disk": survey.space,
        "bytes_grouped": survey.grouped,
        "bytes_leaving": survey.leaving,
        "bytes_to_group": survey.to_group,
        "bytes_on_disk_then": survey.space_then,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_policy_or_copies_are_asked_for() {
        let parse =
            |words: &str| Args::try_parse_from(std::iter::once("convert").chain(words.split(' ')));
        assert!(parse("--policy P /a --dry-run").unwrap().dry_run);
        assert!(parse("/a --replicate --wait").unwrap().wait);
        for wrong in
            ["/a", "--policy P", "--policy P --replicate /a", "/a --replicate --wait --dry-run"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn progress_says_how_long_it_may_take() {
        let survey = LayoutSurvey { grouped: 1 << 30, ..LayoutSurvey::default() };
        let told = progress(&survey, 2 << 30, 1 << 30, Duration::from_secs(64));
        assert_eq!(told, "1.0 GiB in groups, 2.0 GiB to go, 16.0 MiB/s, about 128 s");
        let begun = progress(&survey, 2 << 30, 0, Duration::from_secs(64));
        assert_eq!(begun, "1.0 GiB in groups, 2.0 GiB to go");
    }
}
