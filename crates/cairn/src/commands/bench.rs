//! `cairn bench`: how fast a file system of HDFS's writes and reads, Cairn's or Hadoop's, by layouts.
//!
//! Workers run side by side, each one operation after the other, for so many seconds of each kind. Files go into a folder
//! of the run's own, which goes when it ends, also when it is interrupted; or a run reads what an earlier one has left, as
//! after something has happened to the cluster.

mod latency;

use crate::config::value;
use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_client::{CreateOptions, FileReader, FileSystem};
use clap::ValueEnum;
use latency::Latencies;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What is written and read at a time.
const PIECE_LEN: usize = 1 << 20;

/// A kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pattern {
    /// Files are written, each is one operation
    Write,
    /// Files are read from beginning to end, each is one operation
    Read,
    /// Pieces of files are read, anywhere
    Random,
    /// Pieces are read, and now and then a file is written
    Mixed,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Pattern::Write => "write",
            Pattern::Read => "read",
            Pattern::Random => "random",
            Pattern::Mixed => "mixed",
        }
    }
}

/// Flags of `cairn bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The folder in which the run makes its own
    #[arg(default_value = "/tmp")]
    path: String,
    /// What is done, in this order; write makes the files that are read
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "write,read,random,mixed"
    )]
    patterns: Vec<Pattern>,
    /// Layouts that are compared: 3x for copies, or names of erasure coding policies, which must be enabled
    #[arg(long, value_name = "LAYOUT", value_delimiter = ',', default_value = "3x")]
    layouts: Vec<String>,
    /// Bytes of a file
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = value::bytes)]
    size: u64,
    /// Bytes of a piece that is read anywhere
    #[arg(long, value_name = "SIZE", default_value = "64k", value_parser = value::bytes)]
    piece: u64,
    /// Operations side by side
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// How long each kind is done
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Which part of mixed operations are reads
    #[arg(long, value_name = "PART", default_value_t = 0.7, value_parser = part)]
    reads: f64,
    /// Leave the files where they are, and say where
    #[arg(long)]
    keep: bool,
    /// Read what an earlier run left with --keep in this folder, and leave it; files say their size
    #[arg(long, value_name = "FOLDER")]
    from: Option<String>,
}

impl Args {
    fn keeps(&self) -> bool {
        self.keep || self.from.is_some()
    }
}

fn part(text: &str) -> Result<f64> {
    let number: f64 = text.parse().with_context(|| format!("{text} is no number"))?;
    match (0.0..=1.0).contains(&number) {
        true => Ok(number),
        false => bail!("{text} should be from 0 to 1"),
    }
}

/// Prints a row for each layout and kind.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    if args.size == 0 || args.piece == 0 || args.piece > args.size {
        bail!("a piece has some bytes, and no more than a file");
    }
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let folder = match &args.from {
        Some(folder) => folder.trim_end_matches('/').to_string(),
        None => format!("{}/cairn-bench-{}", args.path.trim_end_matches('/'), std::process::id()),
    };
    if args.from.is_none() {
        fs.mkdirs(&folder, 0o755).await?;
    }
    let fs = Arc::new(fs);
    let ended = tokio::select! {
        done = all(&fs, &folder, &args, settings.json) => done.map(|()| ExitCode::SUCCESS),
        told = output::told_to_stop() => told.map(ExitCode::from),
    };
    if args.keeps() {
        crate::complain!("files are in {folder}");
    } else {
        fs.delete(&folder, true).await?;
    }
    ended
}

async fn all(fs: &Arc<FileSystem>, folder: &str, args: &Args, as_json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for layout in &args.layouts {
        let (layout_folder, mut args) = (format!("{folder}/{layout}"), args.clone());
        let left = match args.from.is_some() {
            true => left(fs, &layout_folder, &mut args).await?,
            false => 0,
        };
        let run = Arc::new(Run {
            fs: Arc::clone(fs),
            folder: layout_folder,
            options: options(layout)?,
            args,
            written: AtomicU64::new(left),
            readable: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        });
        fs.mkdirs(&run.folder, 0o755).await?;
        for pattern in &run.args.patterns {
            if *pattern != Pattern::Write {
                run.have_files().await?;
            }
            rows.push(run.pattern(*pattern, layout).await?);
        }
    }
    match as_json {
        true => crate::say!("{}", Value::from(rows.iter().map(Row::json).collect::<Vec<Value>>())),
        false => {
            let head = ["layout", "kind", "operations", "MB/s", "ops/s", "mean ms", "p50", "p90"];
            let head = head.into_iter().chain(["p99", "p99.9", "max"]).map(str::to_string);
            let rows = std::iter::once(head.collect()).chain(rows.iter().map(Row::cells));
            crate::say!("{}", output::table(&rows.collect::<Vec<_>>()).trim_end());
        }
    }
    Ok(())
}

/// How many files an earlier run has left; they say how long files are.
async fn left(fs: &FileSystem, folder: &str, args: &mut Args) -> Result<u64> {
    let files = fs.list(folder).collect().await?;
    let Some(len) = files.iter().map(|file| file.len).min().filter(|len| *len > 0) else {
        bail!("no run has left whole files in {folder}");
    };
    args.size = len;
    args.piece = args.piece.min(len);
    Ok(files.len() as u64)
}

/// How files of a layout are made.
fn options(layout: &str) -> Result<CreateOptions> {
    let copies = layout.strip_suffix('x').map(str::parse::<u16>);
    Ok(match copies {
        Some(Ok(copies)) if copies > 0 => CreateOptions {
            replication: Some(copies),
            should_replicate: true,
            ..CreateOptions::default()
        },
        Some(_) => bail!("{layout} is no number of copies like 3x"),
        None => CreateOptions { policy: Some(layout.to_string()), ..CreateOptions::default() },
    })
}

/// The files of one layout, and what is done with them.
struct Run {
    fs: Arc<FileSystem>,
    folder: String,
    options: CreateOptions,
    args: Args,
    /// Files that were written, by number.
    written: AtomicU64,
    /// Those of them that may be read: all that were there when a kind began.
    readable: AtomicU64,
    /// Bytes since a kind has begun, for the bar.
    moved: AtomicU64,
}

/// What one worker has done.
#[derive(Default)]
struct Done {
    bytes: u64,
    latencies: Latencies,
}

/// A row of the result.
struct Row {
    layout: String,
    /// Where its files are, if they stay.
    folder: Option<String>,
    pattern: Pattern,
    bytes: u64,
    took: Duration,
    latencies: Latencies,
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let latencies = &self.latencies;
        let seconds = self.took.as_secs_f64().max(1e-9);
        let mut cells = vec![
            self.layout.clone(),
            self.pattern.name().to_string(),
            latencies.count().to_string(),
            format!("{:.1}", output::megabytes_per_second(self.bytes, self.took)),
            format!("{:.1}", latencies.count() as f64 / seconds),
            format!("{:.2}", latencies.mean_ms()),
        ];
        let parts = [0.5, 0.9, 0.99, 0.999];
        cells.extend(parts.map(|part| format!("{:.2}", latencies.at_most_ms(part))));
        cells.push(format!("{:.2}", latencies.max_ms()));
        cells
    }

    fn json(&self) -> Value {
        let latencies = &self.latencies;
        json!({
            "layout": self.layout,
            "folder": self.folder,
            "kind": self.pattern.name(),
            "operations": latencies.count(),
            "bytes": self.bytes,
            "seconds": self.took.as_secs_f64(),
            "megabytes_per_second": output::megabytes_per_second(self.bytes, self.took),
            "latency_ms": {
                "mean": latencies.mean_ms(),
                "p50": latencies.at_most_ms(0.5),
                "p90": latencies.at_most_ms(0.9),
                "p99": latencies.at_most_ms(0.99),
                "p99.9": latencies.at_most_ms(0.999),
                "max": latencies.max_ms(),
            },
        })
    }
}

/// A sequence of numbers that is another one for each seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() << 31 ^ self.next()) % end.max(1)
    }
}

impl Run {
    fn path(&self, number: u64) -> String {
        format!("{}/{number}", self.folder)
    }

    /// Writes as many files as workers, unless there are some.
    async fn have_files(self: &Arc<Run>) -> Result<()> {
        while self.written.load(Ordering::Relaxed) < u64::from(self.args.concurrency) {
            self.write().await?;
        }
        Ok(())
    }

    /// Writes a file; its bytes are nowhere the same for long, so that nothing can make them fewer.
    async fn write(&self) -> Result<u64> {
        let written = self.written.fetch_add(1, Ordering::Relaxed);
        let path = self.path(written);
        let mut writer = self.fs.create(&path, &self.options).await?;
        let (mut dice, mut left) = (Dice(written), self.args.size);
        let mut piece = vec![0; PIECE_LEN];
        while left > 0 {
            let len = left.min(PIECE_LEN as u64) as usize;
            let (words, _) = piece.as_chunks_mut::<8>();
            words.iter_mut().for_each(|word| *word = dice.next().to_le_bytes());
            writer.write(&piece[..len]).await?;
            left -= len as u64;
            self.moved.fetch_add(len as u64, Ordering::Relaxed);
        }
        writer.close().await?;
        Ok(self.args.size)
    }

    /// Opens any of the files.
    async fn open(&self, dice: &mut Dice) -> Result<FileReader> {
        let number = dice.below(self.readable.load(Ordering::Relaxed));
        Ok(self.fs.open(&self.path(number)).await?)
    }

    async fn read(&self, dice: &mut Dice) -> Result<u64> {
        let mut reader = self.open(dice).await?;
        let mut sum = 0;
        while let Some(piece) = reader.next_chunk().await? {
            sum += piece.len() as u64;
            self.moved.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Ok(sum)
    }

    async fn read_piece(&self, reader: &FileReader, dice: &mut Dice) -> Result<u64> {
        let len = self.args.piece;
        let mut piece = vec![0; usize::try_from(len)?];
        let offset = dice.below(self.args.size - len + 1);
        let mut at = 0;
        while at < piece.len() {
            let read = reader.read_at(offset + at as u64, &mut piece[at..]).await?;
            if read == 0 {
                bail!("{} ends early", self.folder);
            }
            at += read;
        }
        self.moved.fetch_add(len, Ordering::Relaxed);
        Ok(len)
    }

    /// One worker: operations until the time is over.
    async fn work(self: Arc<Run>, pattern: Pattern, number: u64, end: Instant) -> Result<Done> {
        let mut dice = Dice(number);
        let mut done = Done::default();
        let reader = match pattern {
            Pattern::Random | Pattern::Mixed => Some(self.open(&mut dice).await?),
            Pattern::Write | Pattern::Read => None,
        };
        while Instant::now() < end {
            let begun = Instant::now();
            let reads = match pattern {
                Pattern::Write => false,
                Pattern::Read | Pattern::Random => true,
                Pattern::Mixed => dice.below(1000) as f64 <= self.args.reads * 1000.0,
            };
            done.bytes += match &reader {
                Some(reader) if reads => self.read_piece(reader, &mut dice).await?,
                None if reads => self.read(&mut dice).await?,
                _ => self.write().await?,
            };
            done.latencies.add(begun.elapsed());
        }
        Ok(done)
    }

    /// Does one kind of operations with all workers.
    async fn pattern(self: &Arc<Run>, pattern: Pattern, layout: &str) -> Result<Row> {
        let bar = output::byte_bar(0, &format!("{layout} {}", pattern.name()));
        self.moved.store(0, Ordering::Relaxed);
        self.readable.store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
        let (begun, mut workers) = (Instant::now(), JoinSet::new());
        let end = begun + Duration::from_secs(self.args.seconds);
        for number in 0..u64::from(self.args.concurrency) {
            workers.spawn(Arc::clone(self).work(pattern, number, end));
        }
        let mut row = Row {
            layout: layout.to_string(),
            folder: self.args.keeps().then(|| self.folder.clone()),
            pattern,
            bytes: 0,
            took: Duration::ZERO,
            latencies: Latencies::default(),
        };
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        loop {
            tokio::select! {
                ended = workers.join_next() => {
                    let Some(ended) = ended else { break };
                    let done = ended??;
                    row.bytes += done.bytes;
                    row.latencies.merge(&done.latencies);
                }
                _ = tick.tick() => bar.set_position(self.moved.load(Ordering::Relaxed)),
            }
        }
        row.took = begun.elapsed();
        bar.finish_and_clear();
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_copies_or_policies() {
        assert_eq!(options("2x").unwrap().replication, Some(2));
        assert!(options("2x").unwrap().should_replicate);
        let policy = options("RS-6-3-1024k").unwrap();
        assert_eq!((policy.policy.as_deref(), policy.replication), (Some("RS-6-3-1024k"), None));
        assert!(options("0x").is_err() && options("manyx").is_err());
        assert!(part("1").is_ok() && part("1.1").is_err());
    }
}
