//! `cairn fs`: work with files. Each sub-command has its flags and its deed in a file of `fs/`; bytes move in `transfer`,
//! and what is removed goes where `trash` says.

mod acl;
mod change;
mod copy;
mod find;
mod get;
mod glob;
mod modes;
mod paths;
mod put;
mod read;
mod remove;
mod shell;
mod show;
mod snapshots;
mod transfer;
mod trash;
mod usage;

pub use shell::absolute;
pub use show::permission_text;
pub use transfer::upload;

use crate::{Settings, config, output};
use anyhow::Result;
use cairn_client::FileSystem;
use clap::Subcommand;
use shell::{Ended, Shell};
use std::process::ExitCode;

const EXIT: &str = "\
Each sub-command may be written as Hadoop does it, too: cairn fs -ls /, cairn fs -rm -r -skipTrash /x.
Paths may have wildcards (* ? [a-z] {one,two}), begin with hdfs://HOST:PORT, or be relative to your folder.

Exit status: 0 if all was done, 1 if something was not, 2 for wrong words, 130 and 143 if interrupted, 141 if
nobody reads what is written to standard output.";

/// Flags of `cairn fs`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT)]
pub struct Args {
    /// Say what Hadoop says
    #[arg(long, hide = true)]
    as_hadoop: bool,
    #[command(subcommand)]
    command: FsCommand,
}

#[derive(Debug, Subcommand)]
enum FsCommand {
    /// Write local files behind the end of a file
    #[command(alias = "appendToFile")]
    Append(put::Append),
    /// Print files
    Cat(read::Cat),
    /// Show checksums of files, computed by the DataNodes
    Checksum(read::Checksum),
    /// Change groups
    Chgrp(modes::Chgrp),
    /// Change modes
    Chmod(modes::Chmod),
    /// Change owners and groups
    Chown(modes::Chown),
    /// Put the blocks of files behind those of another
    Concat(change::Concat),
    /// Count directories, files and bytes, and what quotas leave
    Count(usage::Count),
    /// Copy within the file system
    Cp(copy::Cp),
    /// Make a snapshot of a directory
    #[command(alias = "createSnapshot")]
    CreateSnapshot(snapshots::CreateSnapshot),
    /// Delete a snapshot
    #[command(alias = "deleteSnapshot")]
    DeleteSnapshot(snapshots::DeleteSnapshot),
    /// Show the space of the file system
    Df(usage::Df),
    /// Show the space that files take
    Du(usage::Du),
    /// Empty your trash as far as it is old enough
    Expunge(remove::Expunge),
    /// Find files by their names
    Find(find::Find),
    /// Fetch files or folders
    #[command(alias = "copyToLocal")]
    Get(get::Get),
    /// Show access control lists
    Getfacl(acl::Getfacl),
    /// Show extended attributes
    Getfattr(acl::Getfattr),
    /// Fetch files into one
    Getmerge(get::Getmerge),
    /// Print the beginning of a file
    Head(read::Head),
    /// List directories
    Ls(show::Ls),
    /// Make directories
    Mkdir(change::Mkdir),
    /// Store local files, and remove them here
    #[command(alias = "moveFromLocal")]
    MoveFromLocal(put::MoveFromLocal),
    /// Fetch files, and remove them there
    #[command(alias = "moveToLocal")]
    MoveToLocal(get::MoveToLocal),
    /// Rename, or move into a directory
    Mv(copy::Mv),
    /// Store local files or folders
    #[command(alias = "copyFromLocal")]
    Put(put::Put),
    /// Give a snapshot another name
    #[command(alias = "renameSnapshot")]
    RenameSnapshot(snapshots::RenameSnapshot),
    /// Remove files: to /user/NAME/.Trash, if the NameNode keeps that for a time (fs.trash.interval)
    Rm(remove::Rm),
    /// Remove empty directories
    Rmdir(remove::Rmdir),
    /// Change access control lists
    Setfacl(acl::Setfacl),
    /// Set or remove extended attributes
    Setfattr(acl::Setfattr),
    /// Set how many copies of files there are
    Setrep(change::Setrep),
    /// Show everything about files, or what a format says
    Stat(show::Stat),
    /// Print the end of a file
    Tail(read::Tail),
    /// Say by the exit status whether a path is there, and of which kind
    Test(change::Test),
    /// Print files, those packed with gzip or deflate unpacked
    Text(read::Text),
    /// Set the times of files; make those that are not there
    Touch(change::Touch),
    /// Make files without bytes
    Touchz(change::Touchz),
    /// Cut files off
    Truncate(change::Truncate),
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let conf = settings.configuration()?;
    let fs = FileSystem::connect(config::client::read(&conf)?).await?;
    let shell = Shell::new(fs, settings.json, args.as_hadoop);
    match carry_out(&shell, &conf, args.command).await {
        Ok(None) => Ok(shell.exit_code()),
        Ok(Some(code)) => Ok(ExitCode::from(code)),
        Err(error) if output::is_closed_pipe(&error) => Ok(ExitCode::from(output::UNREAD)),
        Err(error) => Err(error),
    }
}

async fn carry_out(
    shell: &Shell,
    conf: &config::Configuration,
    command: FsCommand,
) -> Result<Ended> {
    use FsCommand as Do;
    match command {
        Do::Append(args) => return args.run(shell).await,
        Do::Cat(args) => args.run(shell).await?,
        Do::Checksum(args) => args.run(shell).await?,
        Do::Chgrp(args) => args.run(shell).await?,
        Do::Chmod(args) => args.run(shell).await?,
        Do::Chown(args) => args.run(shell).await?,
        Do::Concat(args) => args.run(shell).await?,
        Do::Count(args) => args.run(shell).await?,
        Do::Cp(args) => return args.run(shell).await,
        Do::CreateSnapshot(args) => args.run(shell).await?,
        Do::DeleteSnapshot(args) => args.run(shell).await?,
        Do::Df(args) => args.run(shell).await?,
        Do::Du(args) => args.run(shell).await?,
        Do::Expunge(args) => args.run(shell).await?,
        Do::Find(args) => args.run(shell).await?,
        Do::Get(args) => return args.run(shell).await,
        Do::Getfacl(args) => args.run(shell).await?,
        Do::Getfattr(args) => args.run(shell).await?,
        Do::Getmerge(args) => return args.run(shell).await,
        Do::Head(args) => args.run(shell).await?,
        Do::Ls(args) => args.run(shell).await?,
        Do::Mkdir(args) => args.run(shell).await?,
        Do::MoveFromLocal(args) => return args.run(shell).await,
        Do::MoveToLocal(args) => return args.run(shell).await,
        Do::Mv(args) => args.run(shell).await?,
        Do::Put(args) => return args.run(shell).await,
        Do::RenameSnapshot(args) => args.run(shell).await?,
        Do::Rm(args) => {
            let mut files = None;
            let read = |text: &str| Ok(Some(text.parse()?));
            conf.read("hadoop.shell.safely.delete.limit.num.files", read, &mut files)?;
            args.asking_above(files).run(shell).await?;
        }
        Do::Rmdir(args) => args.run(shell).await?,
        Do::Setfacl(args) => args.run(shell).await?,
        Do::Setfattr(args) => args.run(shell).await?,
        Do::Setrep(args) => args.run(shell).await?,
        Do::Stat(args) => args.run(shell).await?,
        Do::Tail(args) => return args.run(shell).await,
        Do::Test(args) => args.run(shell).await?,
        Do::Text(args) => args.run(shell).await?,
        Do::Touch(args) => args.run(shell).await?,
        Do::Touchz(args) => args.run(shell).await?,
        Do::Truncate(args) => args.run(shell).await?,
    }
    Ok(None)
}
