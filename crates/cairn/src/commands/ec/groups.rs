//! `cairn ec status`, `pause` and `resume`: what contiguous groups come to, and what of their making is held back.

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::{FileSystem, GroupStatus, GroupWork};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Show what is in contiguous groups, and what waits for one
#[derive(Debug, clap::Parser)]
#[command(name = "cairn ec status", disable_version_flag = true)]
pub struct StatusArgs {}

/// Have the NameNode pause work on contiguous groups, or go on with it
#[derive(Debug, clap::Parser)]
#[command(name = "cairn ec", disable_version_flag = true)]
pub struct PauseArgs {
    /// Making groups, deleting copies that they do not need, making groups anew, converting files
    #[arg(required = true, value_parser = work)]
    work: Vec<GroupWork>,
}

fn work(name: &str) -> Result<GroupWork, String> {
    let found = GroupWork::ALL.into_iter().find(|work| work.name() == name);
    found.ok_or_else(|| format!("one of {}", names(&GroupWork::ALL)))
}

fn names(work: &[GroupWork]) -> String {
    work.iter().map(|work| work.name()).collect::<Vec<_>>().join(", ")
}

/// Shows what groups come to.
pub async fn status(settings: &Settings, _: StatusArgs) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let status = fs.group_status().await?;
    match settings.json {
        true => crate::say!("{}", as_json(&status)),
        false => output::print(format_args!("{}", output::table(&rows(&status)))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Holds work back, or lets it go on.
pub async fn pause(settings: &Settings, args: PauseArgs, pause: bool) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let paused = fs.pause_groups(&args.work, pause).await?;
    match (settings.json, &paused[..]) {
        (true, _) => crate::say!("{}", json!({"paused": paused_json(&paused)})),
        (false, []) => crate::say!("Nothing is paused"),
        (false, paused) => crate::say!("Paused: {}", names(paused)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The part of the bytes in groups that no file has any more.
fn dead_share(status: &GroupStatus) -> f64 {
    let all = status.grouped_bytes + status.dead_bytes;
    if all == 0 { 0.0 } else { status.dead_bytes as f64 / all as f64 }
}

/// The part of the bytes in containers that no block has any more.
fn dead_packed_share(status: &GroupStatus) -> f64 {
    let all = status.packed_bytes + status.dead_packed_bytes;
    if all == 0 { 0.0 } else { status.dead_packed_bytes as f64 / all as f64 }
}

/// Bytes of block files that packed blocks take less than three copies of them would.
fn packing_saves(status: &GroupStatus) -> u64 {
    status.packed_bytes.saturating_mul(3).saturating_sub(status.container_space)
}

fn rows(status: &GroupStatus) -> Vec<Vec<String>> {
    let sized = |count: u64, bytes: u64| format!("{}, {count} blocks", output::size(bytes));
    let counted = match status.counted_ms_ago {
        Some(ago_ms) => format!("{} s ago", ago_ms / 1000),
        None => "not yet since the NameNode's start".to_string(),
    };
    let paused =
        if status.paused.is_empty() { "nothing".to_string() } else { names(&status.paused) };
    let oldest = Duration::from_millis(status.oldest_due_ms).as_secs();
    let dead = output::size(status.dead_bytes);
    [
        ("Groups", status.groups.to_string()),
        ("In groups", output::size(status.grouped_bytes)),
        ("Parity", output::size(status.parity_bytes)),
        ("Dead in groups", format!("{dead}, {:.1} %", 100.0 * dead_share(status))),
        ("Being dissolved", status.dissolving.to_string()),
        ("With copies to delete", status.with_surplus.to_string()),
        ("Waiting with all copies", sized(status.waiting_blocks, status.waiting_bytes)),
        ("Of these quiet enough", sized(status.due_blocks, status.due_bytes)),
        ("The first of these for", format!("{oldest} s")),
        ("Being made", status.attempts.to_string()),
        ("Formed since the start", status.formed.to_string()),
        ("Abandoned since the start", status.abandoned.to_string()),
        ("Made anew since the start", status.renewed.to_string()),
        ("Containers of small blocks", status.containers.to_string()),
        ("Packed in these", sized(status.packed_blocks, status.packed_bytes)),
        ("On disk with parity", output::size(status.container_space)),
        ("Less than three copies by", output::size(packing_saves(status))),
        (
            "Dead in containers",
            format!(
                "{}, {:.1} %",
                output::size(status.dead_packed_bytes),
                100.0 * dead_packed_share(status)
            ),
        ),
        ("Containers being emptied", status.emptying_containers.to_string()),
        ("Waiting to be packed", sized(status.small_blocks, status.small_bytes)),
        ("Packed with copies to delete", status.packed_with_copies.to_string()),
        ("Being unpacked", status.unpacking.to_string()),
        ("Containers emptied since the start", status.emptied.to_string()),
        ("Unpacked since the start", status.unpacked.to_string()),
        ("Paused", paused),
        ("Counted", counted),
    ]
    .map(|(name, value)| vec![name.to_string(), value])
    .to_vec()
}

fn paused_json(paused: &[GroupWork]) -> Vec<&'static str> {
    paused.iter().map(|work| work.name()).collect()
}

fn as_json(status: &GroupStatus) -> Value {
    json!({
        "groups": status.groups,
        "grouped_bytes": status.grouped_bytes,
        "parity_bytes": status.parity_bytes,
        "dead_bytes": status.dead_bytes,
        "dead_share": dead_share(status),
        "dissolving_groups": status.dissolving,
        "groups_with_surplus": status.with_surplus,
        "waiting_blocks": status.waiting_blocks,
        "waiting_bytes": status.waiting_bytes,
        "due_blocks": status.due_blocks,
        "due_bytes": status.due_bytes,
        "oldest_due_seconds": status.oldest_due_ms / 1000,
        "attempts": status.attempts,
        "formed": status.formed,
        "abandoned": status.abandoned,
        "renewed": status.renewed,
        "containers": status.containers,
        "packed_blocks": status.packed_blocks,
        "packed_bytes": status.packed_bytes,
        "dead_packed_bytes": status.dead_packed_bytes,
        "packed_with_copies": status.packed_with_copies,
        "container_space": status.container_space,
        "packing_saves_bytes": packing_saves(status),
        "dead_packed_share": dead_packed_share(status),
        "emptying_containers": status.emptying_containers,
        "waiting_to_be_packed_blocks": status.small_blocks,
        "waiting_to_be_packed_bytes": status.small_bytes,
        "unpacking": status.unpacking,
        "emptied": status.emptied,
        "unpacked": status.unpacked,
        "paused": paused_json(&status.paused),
        "counted_ms_ago": status.counted_ms_ago,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn work_is_named() {
        let parse = |words: &str| PauseArgs::try_parse_from(words.split(' '));
        assert_eq!(parse("pause form drop").unwrap().work, [GroupWork::Form, GroupWork::Drop]);
        for wrong in ["pause", "pause everything", "pause form -x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dead_bytes_are_a_part_of_all() {
        let status = GroupStatus { grouped_bytes: 300, dead_bytes: 100, ..GroupStatus::default() };
        assert_eq!(rows(&status)[3][1], "100 B, 25.0 %");
        assert_eq!(as_json(&status)["dead_share"], 0.25);
        assert_eq!(dead_share(&GroupStatus::default()), 0.0);
    }
}
