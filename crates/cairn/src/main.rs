//! The `cairn` command: every role and tool of the file system in one binary.
//!
//! One file per command in `commands/`; `config/` reads Hadoop's keys into what the roles take;
//! `cluster.rs` is a whole cluster in this process, for the quick start, scripts and tests.

mod cluster;
mod commands;
mod config;
mod output;
mod salvage;
mod settings;
mod words;

use anyhow::Result;
use clap::{Parser, Subcommand};
use commands::{crypto, datanode, ec, fs, gateway, namenode, quickstart, report};
use settings::Settings;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// Calls and commands are made by one thread and freed by another all the time. With the C library's allocator threads
/// then wait for each other, and half of the time of a change of the namespace goes there.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A distributed file system that speaks HDFS and makes erasure coding its normal case.
#[derive(Parser)]
#[command(name = "cairn", version, disable_help_subcommand = true)]
struct Cairn {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster in this process, store files, lose DataNodes, and compare what comes back
    Quickstart(quickstart::Args),
    /// Run a NameNode and DataNodes in this process until told to stop
    Cluster(commands::cluster::Args),
    /// Run a NameNode
    Namenode(namenode::Args),
    /// Run a DataNode
    Datanode(datanode::Args),
    /// Serve WebHDFS at one address, for clients that reach no NameNode and no DataNode
    Gateway(gateway::Args),
    /// Work with files: put, get, cat, ls, mkdir, rm, mv, du, stat, checksum
    Fs(fs::Args),
    /// Administer erasure coding policies, with the options of `hdfs ec`
    Ec(ec::Args),
    /// Administer encryption zones, with the options of `hdfs crypto`
    Crypto(crypto::Args),
    /// Check which blocks lack what, with the options of `hdfs fsck`
    Fsck(commands::fsck::Args),
    /// Move replicas and units until DataNodes are about equally full
    Balance(commands::balance::BalanceArgs),
    /// Move replicas and units to the storage types of their files' storage policies
    Mover(commands::balance::MoverArgs),
    /// Show the state and the space of the cluster
    Report(report::Args),
    /// Read every replica and unit of files, and name or repair those that are not what they should be
    Scrub(commands::scrub::Args),
}

impl Command {
    /// What is logged when no flag says it.
    fn log_level(&self) -> tracing::Level {
        match self {
            Command::Quickstart(_) => tracing::Level::ERROR,
            _ => tracing::Level::WARN,
        }
    }
}

fn main() -> ExitCode {
    let cairn = Cairn::parse_from(words::options_first(std::env::args_os().collect()));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(cairn.settings.log.unwrap_or(cairn.command.log_level()))
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        // It would be told of by a line that panics if it cannot be written either.
        .log_internal_errors(false)
        .init();
    match run(cairn) {
        Ok(code) => code,
        Err(error) => {
            crate::complain!("cairn: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cairn: Cairn) -> Result<ExitCode> {
    let settings = cairn.settings;
    if matches!(cairn.command, Command::Namenode(_)) {
        cairn_namenode::memory::keep_compact();
    }
    let runtime = output::runtime()?;
    let code = runtime.block_on(async {
        match cairn.command {
            Command::Quickstart(args) => quickstart::run(&settings, args).await,
            Command::Cluster(args) => commands::cluster::run(&settings, args).await,
            Command::Namenode(args) => namenode::run(&settings, args).await,
            Command::Datanode(args) => datanode::run(&settings, args).await,
            Command::Gateway(args) => gateway::run(&settings, args).await,
            Command::Fs(args) => fs::run(&settings, args).await,
            Command::Ec(args) => ec::run(&settings, args).await,
            Command::Crypto(args) => crypto::run(&settings, args).await,
            Command::Fsck(args) => commands::fsck::run(&settings, args).await,
            Command::Balance(args) => commands::balance::balance(&settings, args).await,
            Command::Mover(args) => commands::balance::mover(&settings, args).await,
            Command::Report(args) => report::run(&settings, args).await,
            Command::Scrub(args) => commands::scrub::run(&settings, args).await,
        }
    });
    // Work that a stopped role left on blocking threads must not hold the process back.
    runtime.shutdown_background();
    code
}
