//! The `cairn` command: every role and tool of the file system in one binary.
//!
//! One file per command in `commands/`; `config/` reads Hadoop's keys into what the roles take;
//! `cluster.rs` is a whole cluster in this process, for the quick start, scripts and tests.

mod cluster;
mod commands;
mod config;
mod logging;
mod output;
mod salvage;
mod service;
mod settings;
mod time;
mod traces;
mod words;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{
    admin, completion, crypto, datanode, ec, fs, gateway, namenode, quickstart, report,
};
use config::security::{Role, use_keytab};
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
    /// Work with files, with the commands of `hdfs dfs`
    Fs(fs::Args),
    /// Do what operators do with a cluster, with the commands of `hdfs dfsadmin`
    Admin(admin::Args),
    /// Have DataNodes keep files in memory, with the commands of `hdfs cacheadmin`
    #[command(alias = "cacheadmin")]
    Cache(commands::cache::Args),
    /// Say what each directory takes, what it would take under other layouts, and which it should have
    Advise(commands::advise::Args),
    /// Measure how fast files are written and read, by layouts, on any HDFS
    Bench(commands::bench::Args),
    /// Look into files and leases
    Debug(commands::debug::Args),
    /// Look whether a configuration and this host are fit for the roles, and say what to do
    Doctor(commands::doctor::Args),
    /// Show which groups users are in, as the NameNode sees it
    Groups(commands::groups::Args),
    /// List configuration keys: what each is set to, its default, and what it is for
    Keys(commands::keys::Args),
    /// List the background work of a NameNode or DataNode, pause and resume it
    Workers(commands::workers::Args),
    /// List snapshots and what differs between them
    Snapshot(commands::snapshot::Args),
    /// Choose on which types of storage files are, with the commands of `hdfs storagepolicies`
    #[command(name = "storagepolicies")]
    StoragePolicies(commands::storage_policies::Args),
    /// Administer erasure coding policies, with the options of `hdfs ec`
    Ec(ec::Args),
    /// Print what a shell is to read so that it completes words
    Completion(completion::CompletionArgs),
    /// Write pages for man, one for each command
    Man(completion::ManArgs),
    /// Administer encryption zones, with the options of `hdfs crypto`
    Crypto(crypto::Args),
    /// Check which blocks lack what, with the options of `hdfs fsck`
    Fsck(commands::fsck::Args),
    /// Move replicas and units until DataNodes are about equally full
    Balance(commands::balance::BalanceArgs),
    /// Move replicas and units to the storage types of their files' storage policies
    Mover(commands::balance::MoverArgs),
    /// Get, show, renew and cancel delegation tokens, in files that Hadoop reads
    Token(commands::token::Args),
    /// Show what the cluster does, again and again: bytes, calls, repair, slow DataNodes
    Top(commands::top::Args),
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

    /// Whether it serves others until it is told to stop.
    fn is_server(&self) -> bool {
        matches!(
            self,
            Command::Cluster(_) | Command::Namenode(_) | Command::Datanode(_) | Command::Gateway(_)
        )
    }
}

fn main() -> ExitCode {
    let words = words::understood(std::env::args_os().collect());
    let matches = command_line().get_matches_from(words);
    let cairn = Cairn::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if cairn.settings.json {
        output::answer_with_json();
    }
    let level = cairn.settings.log.unwrap_or(cairn.command.log_level());
    logging::begin(level, cairn.settings.log_format);
    match run(cairn, &name_of(&matches)) {
        Ok(code) => code,
        Err(error) => {
            crate::complain!("cairn: {}", output::sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// All commands and their flags.
fn command_line() -> clap::Command {
    Cairn::command()
}

/// Which command it is: `fs put`.
fn name_of(matches: &clap::ArgMatches) -> String {
    let (mut names, mut at) = (Vec::new(), matches);
    while let Some((name, inner)) = at.subcommand() {
        names.push(name);
        at = inner;
    }
    names.join(" ")
}

fn run(cairn: Cairn, name: &str) -> Result<ExitCode> {
    let settings = cairn.settings;
    if matches!(cairn.command, Command::Namenode(_)) {
        cairn_namenode::memory::keep_compact();
    }
    let role = match cairn.command {
        Command::Namenode(_) => Some(Role::NameNode),
        Command::Datanode(_) => Some(Role::DataNode),
        _ => None,
    };
    if let Some(role) = role {
        use_keytab(&settings.configuration()?, role)?;
    }
    let runtime = output::runtime()?;
    let is_server = cairn.command.is_server();
    let code = runtime.block_on(async {
        let traced = traces::Traced::begin(&settings, name, is_server)?;
        let done = carry_out(&settings, cairn.command).await;
        traced.end(done.as_ref().err()).await;
        done
    });
    // Work that a stopped role left on blocking threads must not hold the process back.
    runtime.shutdown_background();
    code
}

async fn carry_out(settings: &Settings, command: Command) -> Result<ExitCode> {
    match command {
        Command::Quickstart(args) => quickstart::run(settings, args).await,
        Command::Cluster(args) => commands::cluster::run(settings, args).await,
        Command::Namenode(args) => namenode::run(settings, args).await,
        Command::Datanode(args) => datanode::run(settings, args).await,
        Command::Gateway(args) => gateway::run(settings, args).await,
        Command::Fs(args) => fs::run(settings, args).await,
        Command::Admin(args) => admin::run(settings, args).await,
        Command::Cache(args) => commands::cache::run(settings, args).await,
        Command::Advise(args) => commands::advise::run(settings, args).await,
        Command::Bench(args) => commands::bench::run(settings, args).await,
        Command::Debug(args) => commands::debug::run(settings, args).await,
        Command::Doctor(args) => commands::doctor::run(settings, args).await,
        Command::Groups(args) => commands::groups::run(settings, args).await,
        Command::Keys(args) => commands::keys::run(settings, &args),
        Command::Workers(args) => commands::workers::run(settings, args).await,
        Command::Snapshot(args) => commands::snapshot::run(settings, args).await,
        Command::StoragePolicies(args) => commands::storage_policies::run(settings, args).await,
        Command::Ec(args) => ec::run(settings, args).await,
        Command::Completion(args) => Ok(completion::completion(&args, command_line())),
        Command::Man(args) => completion::man(&args, command_line()),
        Command::Crypto(args) => crypto::run(settings, args).await,
        Command::Fsck(args) => commands::fsck::run(settings, args).await,
        Command::Balance(args) => commands::balance::balance(settings, args).await,
        Command::Mover(args) => commands::balance::mover(settings, args).await,
        Command::Token(args) => commands::token::run(settings, args).await,
        Command::Top(args) => commands::top::run(settings, args).await,
        Command::Report(args) => report::run(settings, args).await,
        Command::Scrub(args) => commands::scrub::run(settings, args).await,
    }
}
