//! `cairn debug`: files of replicas, leases that are ended, and faults of servers.
//!
//! Source: Hadoop 3.5.0 `DebugAdmin`.

pub mod inject;

use super::fs::absolute;
use super::scrub::fault_text;
use crate::{Settings, config};
use anyhow::{Context, Result, bail};
use cairn_client::{FileSystem, ScrubOptions};
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Between two tries to end a lease.
const RETRY: Duration = Duration::from_secs(4);

/// Flags of `cairn debug`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: DebugCommand,
}

#[derive(Debug, Subcommand)]
enum DebugCommand {
    /// Read all replicas and units of a file, and say whether they are what they should be
    #[command(alias = "verifyEC", alias = "verify-e-c")]
    Verify {
        /// The file
        #[arg(long = "file", value_name = "PATH")]
        file: Option<String>,
        /// The file
        #[arg(value_name = "PATH", required_unless_present = "file", conflicts_with = "file")]
        path: Option<String>,
    },
    /// Have a server on this machine fail, where cairn.debug.inject.enabled allows it
    Inject(inject::Args),
    /// End another client's writing of a file
    #[command(alias = "recoverLease")]
    RecoverLease {
        /// The file
        #[arg(long)]
        path: String,
        /// How often to try
        #[arg(long, default_value_t = 1)]
        retries: u32,
    },
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    match args.command {
        DebugCommand::Inject(args) => inject::run(settings, args).await,
        DebugCommand::Verify { file, path } => {
            let path = file.or(path).context("no file is named")?;
            let fs = connected(settings).await?;
            verify(&fs, &absolute(&path, fs.config())?, settings.json).await
        }
        DebugCommand::RecoverLease { path, retries } => {
            let fs = connected(settings).await?;
            recover_lease(&fs, &absolute(&path, fs.config())?, retries).await
        }
    }
}

async fn connected(settings: &Settings) -> Result<FileSystem> {
    Ok(FileSystem::connect(config::client::read(&settings.configuration()?)?).await?)
}

async fn verify(fs: &FileSystem, path: &str, json: bool) -> Result<ExitCode> {
    if fs.require(path).await?.is_dir() {
        bail!("{path}: Is a directory; cairn scrub looks at all files below one");
    }
    let scrub = fs.scrub(path, &ScrubOptions::default(), &|_| {}).await?;
    let is_fine = scrub.faults.is_empty();
    if json {
        let faults: Vec<String> = scrub.faults.iter().map(fault_text).collect();
        crate::say!("{}", json!({"path": path, "blocks": scrub.blocks, "faults": faults}));
    } else {
        scrub.faults.iter().for_each(|fault| crate::say!("{path}: {}", fault_text(fault)));
        let told = if is_fine {
            "All replicas and units are what they should be"
        } else {
            "Not all is as it should be"
        };
        crate::say!("{told}: {} blocks of {path}", scrub.blocks);
    }
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn recover_lease(fs: &FileSystem, path: &str, retries: u32) -> Result<ExitCode> {
    for turn in 0..retries.max(1) {
        if turn > 0 {
            tokio::time::sleep(RETRY).await;
        }
        if fs.recover_lease(path).await? {
            crate::say!("recoverLease SUCCEEDED on {path}");
            return Ok(ExitCode::SUCCESS);
        }
    }
    bail!("{path}: its last block is still being recovered; try again, or give --retries")
}
