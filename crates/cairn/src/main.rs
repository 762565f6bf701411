//! The `cairn` command: every role and tool of the file system in one binary.
//!
//! One file per command in `commands/`; `config/` reads Hadoop's keys into what the roles take;
//! `cluster.rs` is a whole cluster in this process, for the quick start, scripts and tests.

mod cluster;
mod commands;
mod config;
mod output;
mod salvage;
mod words;

use anyhow::Result;
use clap::{Parser, Subcommand};
use commands::{crypto, datanode, ec, fs, namenode, quickstart, report};
use std::path::PathBuf;
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

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Folder with core-site.xml and hdfs-site.xml (default: HADOOP_CONF_DIR)
    #[arg(long, global = true, value_name = "DIR")]
    conf: Option<PathBuf>,
    /// A configuration key; may be repeated
    #[arg(short = 'D', global = true, value_name = "KEY=VALUE")]
    define: Vec<String>,
    /// The file system, hdfs://HOST:PORT (default: fs.defaultFS)
    #[arg(long, global = true, value_name = "URI")]
    fs: Option<String>,
    /// Answer with JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    /// What to log on standard error: error, warn, info, debug or trace (default: warn; of the quick
    /// start, which stops DataNodes itself: error)
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<tracing::Level>,
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

impl Settings {
    /// Reads everything again, for a role that runs: its settings, and the text of each property.
    fn reload<C>(
        &self,
        read: impl Fn(&config::Configuration) -> Result<C>,
    ) -> Result<cairn_net::reconfiguration::Read<C>, String> {
        let read_all = || {
            let conf = self.configuration()?;
            let settings = read(&conf)?;
            let text = |(key, _): (&str, &str)| Some((key.to_string(), conf.get(key)?));
            Ok((settings, conf.iter().filter_map(text).collect()))
        };
        read_all().map_err(|error: anyhow::Error| format!("{error:#}"))
    }

    /// The keys of the folder, the environment and the `-D` words, in that order.
    fn configuration(&self) -> Result<config::Configuration> {
        let mut conf = config::Configuration::default();
        if let Some(folder) = self.conf.clone().or_else(config::folder_from_environment) {
            conf.load_folder(&folder)?;
        }
        conf.set_words(&self.define)?;
        if let Some(fs) = &self.fs {
            conf.set("fs.defaultFS", fs);
        }
        Ok(conf)
    }
}
