//! `cairn advise`: what each directory takes, would take under other layouts, and should be; of a running cluster, or of
//! Hadoop's fsimage with no cluster at all.

mod gears;
mod html;
mod listing;
mod told;

use crate::config::value;
use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_advise::advice::Choice;
use cairn_advise::audit::Audit;
use cairn_advise::census::{Asked, Found};
use cairn_advise::durability::Failures;
use cairn_advise::gears::Day;
use cairn_advise::image;
use cairn_advise::money::Prices;
use cairn_client::FileSystem;
use cairn_fsimage::Image;
use cairn_net::date::Moment;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use told::Told;

/// Flags of `cairn advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A directory of a running file system (default: the root)
    #[arg(conflicts_with = "fsimage")]
    path: Option<String>,
    /// Hadoop's fsimage instead: a file, from `hdfs dfsadmin -fetchImage` or a NameNode's folder
    #[arg(long, value_name = "FILE")]
    fsimage: Option<PathBuf>,
    /// The NameNode's audit log: who opens and appends; may be repeated
    #[arg(long, value_name = "FILE")]
    audit: Vec<PathBuf>,
    /// How deep directories are told apart
    #[arg(long, value_name = "LEVELS", default_value_t = 2)]
    depth: usize,
    /// Directories with fewer bytes on disk than this go to the one above: 100g, 2t
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = value::bytes)]
    min_size: u64,
    /// Rows that are printed; JSON and CSV have all
    #[arg(long, value_name = "ROWS", default_value_t = 30)]
    top: usize,
    /// DataNodes that there are, or will be
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    datanodes: usize,
    /// The part of all disks that is lost in a year
    #[arg(long, value_name = "PART", default_value_t = 0.03, value_parser = part)]
    failures: f64,
    /// Bytes of a disk
    #[arg(long, value_name = "SIZE", default_value = "16t", value_parser = value::bytes)]
    disk_size: u64,
    /// Bytes a second that a DataNode reads for repair
    #[arg(long, value_name = "SIZE", default_value = "50m", value_parser = value::bytes)]
    repair_rate: u64,
    /// Prices, in any currency: disk=15,node=6000,node-size=192,watts=450,energy=0.2,years=5,full=0.75
    #[arg(long, value_name = "PRICES", num_args = 0..=1, default_missing_value = "", value_parser = Prices::parse)]
    money: Option<Prices>,
    /// Advise Cairn's own layouts as well, which Hadoop has not: contiguous groups, cells of 64 KiB
    #[arg(long)]
    own_layouts: bool,
    /// The part of what it takes that a directory has to save for a change to be advised
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = part)]
    min_saving: f64,
    /// Say instead which DataNodes can be off while little is asked for, with everything readable, and simulate a day
    #[arg(long, conflicts_with_all = ["fsimage", "csv", "html"])]
    gears: bool,
    /// The day for --gears: what part of what it can do the file system is asked for, in equal parts of the day
    #[arg(long, value_name = "LOADS", value_parser = Day::parse, requires = "gears")]
    load: Option<Day>,
    /// Print values with commas between them
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with plots to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn part(text: &str) -> Result<f64> {
    let number: f64 = text.parse().with_context(|| format!("{text} is no number"))?;
    match number > 0.0 && number < 1.0 {
        true => Ok(number),
        false => bail!("{text} should be between 0 and 1"),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Prints what was found, and writes the page.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    if args.gears {
        let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
        let path = args.path.as_deref().unwrap_or("/");
        let day = args.load.unwrap_or_default();
        return gears::run(&fs, path, &day, args.money, settings.json).await;
    }
    let mut asked = Asked { depth: args.depth, bytes_min: args.min_size, ..Asked::new(now_ms()) };
    let mut notes = Vec::new();
    let (of, found, is_hadoop) = match &args.fsimage {
        Some(file) => {
            // An image may be old; ages are counted from when it was written.
            if let Ok(written) = file.metadata().and_then(|of| of.modified()) {
                let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
                asked.now_ms = u64::try_from(since.as_millis()).unwrap_or(asked.now_ms);
            }
            let (name, path) = (file.display().to_string(), file.clone());
            let found = tokio::task::spawn_blocking(move || of_image(&path, asked)).await??;
            notes.push(format!("as of {}", Moment::of_ms(asked.now_ms)));
            (name, found, true)
        }
        None => {
            let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
            let path = args.path.as_deref().unwrap_or("/");
            let found = listing::census(&fs, path, asked).await?;
            (format!("{}{path}", fs.config().namenode), found, false)
        }
    };
    if args.audit.is_empty() {
        notes.push(
            "who appends and who reads how often is not in a namespace: give --audit the NameNode's \
             audit log"
                .to_string(),
        );
    }
    notes.push(
        "which writers sync (hflush, hsync) no log says: striped files have neither, so ask the \
         owners of logs and streams"
            .to_string(),
    );
    let audit = audit(&args.audit, &found)?;
    let failures = Failures {
        disks_a_year: args.failures,
        disk_len: args.disk_size as f64,
        nodes: args.datanodes as f64,
        repair_rate: args.repair_rate as f64,
        ..Failures::default()
    };
    let choice = Choice {
        nodes: args.datanodes,
        own_layouts: args.own_layouts || !is_hadoop,
        saving_min: args.min_saving,
    };
    let told = Told::new(of, found, audit, failures, args.money, &choice, notes);
    if let Some(file) = &args.html {
        std::fs::write(file, html::page(&told, args.top))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    match () {
        () if settings.json => crate::say!("{}", told.json()),
        () if args.csv => output::print(format_args!("{}", told.csv())),
        () => output::print(format_args!("{}", told.text(args.top))),
    }
    Ok(ExitCode::SUCCESS)
}

fn of_image(path: &Path, asked: Asked) -> Result<Found> {
    let open = || format!("cannot read {}", path.display());
    let mut image = Image::open(File::open(path).with_context(open)?).with_context(open)?;
    let (census, _) = image::read(&mut image, asked).with_context(open)?;
    Ok(census.end())
}

/// What the audit logs say, if there are any.
fn audit(files: &[PathBuf], found: &Found) -> Result<Option<Audit>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut audit = Audit::new(found.rows.iter().map(|row| row.path.as_str()));
    for path in files {
        let open = || format!("cannot read {}", path.display());
        let mut reader = BufReader::new(File::open(path).with_context(open)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).with_context(open)? > 0 {
            audit.line(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    if audit.calls == 0 {
        bail!("the audit logs have no call of a client: are these other logs?");
    }
    Ok(Some(audit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_parts_are_read() {
        assert_eq!(value::bytes("100").unwrap(), 100);
        assert_eq!(value::bytes("2t").unwrap(), 2 << 40);
        assert_eq!(value::bytes("1G").unwrap(), 1 << 30);
        for wrong in ["", "x", "1x", "99999999p", "-1"] {
            assert!(value::bytes(wrong).is_err(), "{wrong}");
        }
        assert!(part("0.5").is_ok() && part("1").is_err() && part("0").is_err());
    }
}
