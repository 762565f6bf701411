//! `cairn scrub`: reads every replica and unit of files, and names those that are not what they should be.

use crate::config::value;
use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{ClientError, FaultKind, FileScrub, FileSystem, ScrubFault, ScrubOptions};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// Flags of `cairn scrub`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file, or a directory with all below it
    path: String,
    /// Have what is bad rebuilt, wait for it, and read those files again
    #[arg(long)]
    repair: bool,
    /// Bytes to read a second at most (64m, say; default: as fast as it goes)
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = value::bytes)]
    rate: u64,
    /// How long to wait for the repair of a file, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    wait: u64,
}

/// Sums over all files.
#[derive(Default)]
struct Totals {
    files: u64,
    blocks: u64,
    bytes: u64,
    compared: u64,
    parity_checked: u64,
    faults: u64,
    repaired: u64,
    /// Files that could not be looked at.
    unread: u64,
}

impl Totals {
    fn add(&mut self, scrub: &FileScrub) {
        self.blocks += scrub.blocks;
        self.bytes += scrub.bytes;
        self.compared += scrub.compared_with_record;
        self.parity_checked += scrub.parity_checked;
    }
}

/// Exits with 0 if all is as it should be, at the end; else with 1.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let summary = fs.content_summary(&args.path).await?;
    let bar = output::byte_bar(summary.space_consumed, "scrub");
    let (mut totals, mut faulty) = (Totals::default(), Vec::new());
    let mut waiting = vec![args.path.clone()];
    while let Some(path) = waiting.pop() {
        let mut listing = fs.list(&path);
        loop {
            let entry = match listing.next().await {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) if is_gone(&error, &path, &args) => break,
                Err(error) => return Err(error.into()),
            };
            if entry.is_dir() {
                waiting.push(entry.path);
                continue;
            }
            let file = match scrub_file(&fs, &args, &entry.path, &bar).await {
                Ok(file) => file,
                Err(error) if is_gone(&error, &entry.path, &args) => continue,
                Err(error) => {
                    totals.unread += 1;
                    bar.suspend(|| crate::complain!("cannot scrub {}: {error}", entry.path));
                    continue;
                }
            };
            totals.files += 1;
            for scrub in &file.passes {
                totals.add(scrub);
            }
            if let Some(first) = file.passes.first().filter(|scrub| !scrub.faults.is_empty()) {
                totals.faults += first.faults.len() as u64;
                totals.repaired += u64::from(file.is_repaired);
                bar.suspend(|| {
                    if !settings.json {
                        tell(&entry.path, &file)
                    }
                });
                faulty.push((entry.path, file));
            }
        }
    }
    bar.finish_and_clear();
    if settings.json {
        crate::say!("{}", as_json(&totals, &faulty));
    } else {
        crate::say!(
            "{} files, {} blocks, {} read; {} CRCs compared with the record, {} groups checked for parity",
            totals.files,
            totals.blocks,
            output::size(totals.bytes),
            totals.compared,
            totals.parity_checked
        );
        crate::say!(
            "{} faults in {} files, {} repaired",
            totals.faults,
            faulty.len(),
            totals.repaired
        );
        if totals.unread > 0 {
            crate::say!("{} files could not be looked at", totals.unread);
        }
    }
    let is_well = totals.unread == 0 && faulty.iter().all(|(_, file)| file.is_repaired);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Whether a path is missing because it was deleted, or moved, while the rest was read.
fn is_gone(error: &ClientError, path: &str, args: &Args) -> bool {
    error.kind() == ErrorKind::NotFound && path != args.path
}

/// A file's first scrub and, after a repair, the second.
struct Scrubbed {
    passes: Vec<FileScrub>,
    is_repaired: bool,
}

async fn scrub_file(
    fs: &FileSystem,
    args: &Args,
    path: &str,
    bar: &ProgressBar,
) -> cairn_client::Result<Scrubbed> {
    let options = ScrubOptions { bytes_per_second: args.rate, report: args.repair };
    let progress = |bytes| bar.inc(bytes);
    let first = fs.scrub(path, &options, &progress).await?;
    let faults = first.faults.clone();
    let mut file = Scrubbed { passes: vec![first], is_repaired: false };
    if faults.is_empty() || !args.repair {
        return Ok(file);
    }
    if fs.wait_repaired(path, &faults, Duration::from_secs(args.wait)).await? {
        let again = fs.scrub(path, &options, &|_| ()).await?;
        file.is_repaired = again.faults.is_empty();
        file.passes.push(again);
    }
    Ok(file)
}

fn tell(path: &str, file: &Scrubbed) {
    for fault in file.passes.first().into_iter().flat_map(|scrub| &scrub.faults) {
        crate::say!("{path}: {}", fault_text(fault));
    }
    if file.is_repaired {
        crate::say!("{path}: repaired");
    }
}

/// A sentence about a replica or unit that is not what it should be.
pub fn fault_text(fault: &ScrubFault) -> String {
    let unit = fault.unit.map_or(String::new(), |unit| format!(" unit {unit}"));
    let place = fault.location.as_ref().map_or(String::new(), |at| format!(" on {}", at.addr));
    format!("{}{unit}{place}: {}", fault.block, words(&fault.kind))
}

fn words(kind: &FaultKind) -> String {
    match kind {
        FaultKind::Missing => "missing".into(),
        FaultKind::Unreadable(why) => format!("cannot be read: {why}"),
        FaultKind::BadChunk { offset } => format!("bad checksum at {offset}"),
        FaultKind::NotAsWritten { recorded, found } => {
            format!("not as written: CRC32C {found:08x} instead of {recorded:08x}")
        }
        FaultKind::OddOneOut => "does not fit the others".into(),
        FaultKind::Disagrees => "disagrees with the others; which is wrong is not known".into(),
    }
}

fn as_json(totals: &Totals, faulty: &[(String, Scrubbed)]) -> Value {
    let file = |(path, file): &(String, Scrubbed)| {
        let faults = file.passes.first().map_or(&[][..], |scrub| &scrub.faults);
        let faults: Vec<Value> = faults.iter().map(fault_json).collect();
        json!({ "path": path, "faults": faults, "repaired": file.is_repaired })
    };
    json!({
        "files": totals.files,
        "blocks": totals.blocks,
        "bytes": totals.bytes,
        "compared_with_record": totals.compared,
        "parity_checked": totals.parity_checked,
        "faults": totals.faults,
        "repaired_files": totals.repaired,
        "unread_files": totals.unread,
        "faulty": faulty.iter().map(file).collect::<Vec<Value>>(),
    })
}

fn fault_json(fault: &ScrubFault) -> Value {
    let kind = match &fault.kind {
        FaultKind::Missing => "missing",
        FaultKind::Unreadable(_) => "unreadable",
        FaultKind::BadChunk { .. } => "bad-chunk",
        FaultKind::NotAsWritten { .. } => "not-as-written",
        FaultKind::OddOneOut => "odd-one-out",
        FaultKind::Disagrees => "disagrees",
    };
    json!({
        "block": format!("{}_{}", fault.block.id, fault.block.stamp),
        "unit": fault.unit.map(|unit| unit.0),
        "datanode": fault.location.as_ref().map(|at| at.addr.xfer_addr()),
        "storage": fault.location.as_ref().map(|at| &at.storage_id),
        "kind": kind,
        "detail": words(&fault.kind),
        "reported": fault.reported,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::Block;
    use cairn_stripe::{BlockId, GenerationStamp};

    #[test]
    fn programs_get_whole_block_ids() {
        let (id, stamp) = (BlockId(i64::MIN + 16), GenerationStamp(1001));
        let block = Block { pool: "BP".to_string(), id, stamp, len: 0 };
        let kind = FaultKind::Missing;
        let fault = ScrubFault { block, unit: None, location: None, kind, reported: false };
        assert_eq!(fault_json(&fault)["block"], "blk_-9223372036854775792_1001");
    }
}
