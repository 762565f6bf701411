//! `cairn fs`: work with files. Each sub-command is a function here; bytes move in `transfer`, and what is removed goes
//! where `trash` says.

mod paths;
mod transfer;
mod trash;

use paths::below;
pub use transfer::upload;
use trash::Trash;

use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_client::{
    ChecksumMode, ClientConfig, ContentSummary, CreateOptions, FileStatus, FileSystem,
};
use cairn_net::date::Moment;
use clap::Subcommand;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::io::AsyncWriteExt;

/// Flags of `cairn fs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: FsCommand,
}

#[derive(Debug, Subcommand)]
enum FsCommand {
    /// Store local files or folders
    Put {
        /// Replace files that exist
        #[arg(short, long)]
        force: bool,
        /// Policy of the new files (default: the directory's)
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// Keep this many copies instead of erasure coding
        #[arg(long, value_name = "COPIES", conflicts_with = "policy")]
        replication: Option<u16>,
        /// What to store, then where
        #[arg(required = true, num_args = 2.., value_name = "LOCAL... PATH")]
        paths: Vec<String>,
    },
    /// Fetch a file or folder
    Get {
        /// Replace local files that exist
        #[arg(short, long)]
        force: bool,
        /// What to fetch
        path: String,
        /// Where to (default: here, under the same name)
        local: Option<PathBuf>,
    },
    /// Print files
    Cat {
        /// The files
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// List directories
    Ls {
        /// And all below them
        #[arg(short = 'R', long)]
        recursive: bool,
        /// What to list
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Make directories
    Mkdir {
        /// And their parents; existing ones are fine
        #[arg(short, long)]
        parents: bool,
        /// The directories
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Remove files: to /user/NAME/.Trash, if the NameNode keeps that for a time (fs.trash.interval)
    Rm {
        /// And whole directories
        #[arg(short, long)]
        recursive: bool,
        /// Say nothing of what does not exist
        #[arg(short, long)]
        force: bool,
        /// Remove for good, not to the trash
        #[arg(long)]
        skip_trash: bool,
        /// What to remove
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Rename, or move into a directory
    Mv {
        /// What
        from: String,
        /// Where to
        to: String,
    },
    /// Show the space that files take
    Du {
        /// One row for each path, not for each entry of it
        #[arg(short, long)]
        summary: bool,
        /// What to measure
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Show everything about files
    Stat {
        /// The files
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Show checksums of files, computed by the DataNodes
    Checksum {
        /// One CRC over the bytes, equal for equal bytes however they are stored
        #[arg(long)]
        composite: bool,
        /// The files
        #[arg(required = true)]
        paths: Vec<String>,
    },
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let json = settings.json;
    let at = |path: &str| absolute(path, fs.config());
    let all = |paths: Vec<String>| paths.iter().map(|path| at(path)).collect::<Result<Vec<_>>>();
    match args.command {
        FsCommand::Put { force, policy, replication, mut paths } => {
            if let Some(target) = paths.last_mut() {
                *target = at(target)?;
            }
            let options = CreateOptions {
                overwrite: force,
                create_parents: true,
                policy,
                replication,
                should_replicate: replication.is_some(),
                ..CreateOptions::default()
            };
            return put(&fs, &paths, &options).await;
        }
        FsCommand::Get { force, path, local } => {
            return until_told_to_stop(get(&fs, &at(&path)?, local, force)).await;
        }
        FsCommand::Cat { paths } => return cat(&fs, &all(paths)?).await,
        FsCommand::Ls { recursive, paths } => ls(&fs, &all(paths)?, recursive, json).await?,
        FsCommand::Mkdir { parents, paths } => mkdir(&fs, &all(paths)?, parents).await?,
        FsCommand::Rm { recursive, force, skip_trash, paths } => {
            let trash = if skip_trash { None } else { Trash::of(&fs).await? };
            rm(&fs, &all(paths)?, recursive, force, trash.as_ref()).await?
        }
        FsCommand::Mv { from, to } => mv(&fs, &at(&from)?, &at(&to)?).await?,
        FsCommand::Du { summary, paths } => du(&fs, &all(paths)?, summary, json).await?,
        FsCommand::Stat { paths } => stat(&fs, &all(paths)?, json).await?,
        FsCommand::Checksum { composite, paths } => {
            checksum(&fs, &all(paths)?, composite, json).await?
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A path as users write it: from the root, from their own folder, or with this file system before it.
fn absolute(path: &str, config: &ClientConfig) -> Result<String> {
    let rest = match path.split_once("://") {
        None => path,
        Some((_, rest)) => {
            let (authority, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let plain = |text: &str| text.strip_suffix(":8020").unwrap_or(text).to_string();
            let same = plain(authority) == plain(&config.namenode);
            if !path.starts_with("hdfs://") || !same && !authority.is_empty() {
                bail!("{path}: not on hdfs://{}; --fs names another file system", config.namenode);
            }
            if rest.is_empty() { "/" } else { rest }
        }
    };
    let home = match rest {
        "" => bail!("the path is empty"),
        _ if rest.starts_with('/') => String::new(),
        _ => config.home(),
    };
    let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
    Ok(format!("{home}/{}", names.join("/")))
}

/// Does the job, or what of it is done before a signal says to stop.
async fn until_told_to_stop(job: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    tokio::select! {
        done = job => done.map(|()| ExitCode::SUCCESS),
        told = output::told_to_stop() => told.map(ExitCode::from),
    }
}

async fn status(fs: &FileSystem, path: &str) -> Result<FileStatus> {
    match fs.file_info(path).await? {
        Some(status) => Ok(status),
        None => bail!("{path}: No such file or directory"),
    }
}

/// Leaves no unfinished file, whether it fails or is told to stop.
async fn put(fs: &FileSystem, paths: &[String], options: &CreateOptions) -> Result<ExitCode> {
    let mut unfinished = None;
    let done = until_told_to_stop(put_all(fs, paths, options, &mut unfinished)).await;
    if let Some(path) = unfinished {
        // What ended the copy is what to tell; a second signal ends this too.
        let _ = until_told_to_stop(async { Ok(fs.delete(&path, false).await.map(drop)?) }).await;
    }
    done
}

async fn put_all(
    fs: &FileSystem,
    paths: &[String],
    options: &CreateOptions,
    unfinished: &mut Option<String>,
) -> Result<()> {
    let (target, sources) = paths.split_last().context("nothing to store")?;
    let into = fs.file_info(target).await?.is_some_and(|status| status.is_dir());
    if sources.len() > 1 && !into {
        bail!("{target}: No such directory");
    }
    for source in sources {
        let source = Path::new(source);
        let path = match source.file_name() {
            Some(name) if into => below(target, utf8(name, source)?),
            _ => target.clone(),
        };
        put_tree(fs, source, &path, options, unfinished).await?;
    }
    Ok(())
}

/// The name of a local file as one of the file system. With signs in place of what is not UTF-8, two could become one.
fn utf8<'a>(name: &'a OsStr, local: &Path) -> Result<&'a str> {
    name.to_str().with_context(|| format!("cannot store {local:?}: its name is not UTF-8"))
}

async fn put_tree(
    fs: &FileSystem,
    local: &Path,
    path: &str,
    options: &CreateOptions,
    unfinished: &mut Option<String>,
) -> Result<()> {
    let mut waiting = vec![(local.to_path_buf(), path.to_string())];
    while let Some((local, path)) = waiting.pop() {
        let about = || format!("cannot store {}", local.display());
        let metadata = std::fs::metadata(&local).with_context(about)?;
        if metadata.is_dir() {
            fs.mkdirs(&path, 0o755).await?;
            for entry in std::fs::read_dir(&local).with_context(about)? {
                let entry = entry.with_context(about)?;
                let name = entry.file_name();
                waiting.push((entry.path(), below(&path, utf8(&name, &entry.path())?)));
            }
        } else {
            let bar = output::byte_bar(metadata.len(), &path);
            let stored = transfer::store(fs, &local, &path, options, &bar, unfinished).await;
            stored.with_context(about)?;
            bar.finish_and_clear();
        }
    }
    Ok(())
}

async fn get(fs: &FileSystem, path: &str, local: Option<PathBuf>, force: bool) -> Result<()> {
    let root = status(fs, path).await?;
    let mut local = local.unwrap_or_else(|| PathBuf::from("."));
    if local.is_dir() {
        local.push(root.name());
    }
    let mut waiting = vec![(root, local)];
    while let Some((status, local)) = waiting.pop() {
        if status.is_dir() {
            std::fs::create_dir_all(&local)?;
            for child in fs.list(&status.path).collect().await? {
                let place = local.join(child.name());
                waiting.push((child, place));
            }
            continue;
        }
        let place = transfer::place(&local, force)?;
        let bar = output::byte_bar(status.len, &status.path);
        let about = || format!("cannot fetch {}", status.path);
        transfer::download(fs, &status.path, &place, &bar).await.with_context(about)?;
        bar.finish_and_clear();
    }
    Ok(())
}

/// Ends without a word when nobody reads any more.
async fn cat(fs: &FileSystem, paths: &[String]) -> Result<ExitCode> {
    match cat_all(fs, paths).await {
        Err(error) if output::is_closed_pipe(&error) => Ok(ExitCode::from(output::UNREAD)),
        done => done.map(|()| ExitCode::SUCCESS),
    }
}

async fn cat_all(fs: &FileSystem, paths: &[String]) -> Result<()> {
    let mut out = tokio::io::stdout();
    for path in paths {
        transfer::read_into(fs, path, &mut out, |_| {}).await?;
    }
    Ok(out.flush().await?)
}

async fn ls(fs: &FileSystem, paths: &[String], recursive: bool, json: bool) -> Result<()> {
    for path in paths {
        let root = status(fs, path).await?;
        if !root.is_dir() {
            show(&root, json);
            continue;
        }
        let mut waiting = vec![root.path];
        while let Some(directory) = waiting.pop() {
            let mut entries = fs.list(&directory);
            while let Some(entry) = entries.next().await? {
                show(&entry, json);
                if recursive && entry.is_dir() {
                    waiting.push(entry.path);
                }
            }
        }
    }
    Ok(())
}

fn show(status: &FileStatus, json: bool) {
    if json {
        crate::say!("{}", status_json(status));
        return;
    }
    let redundancy = match &status.policy {
        Some(policy) => policy.name.clone(),
        None if status.is_dir() => "-".into(),
        None => format!("{}x", status.replication),
    };
    crate::say!(
        "{}{} {:>12} {} {} {:>12} {} {}",
        if status.is_dir() { 'd' } else { '-' },
        permission_text(status.permission),
        redundancy,
        status.owner,
        status.group,
        status.len,
        Moment::of_ms(status.modification_time_ms).to_the_minute(),
        status.path
    );
}

fn status_json(status: &FileStatus) -> Value {
    json!({
        "path": status.path,
        "type": format!("{:?}", status.file_type).to_lowercase(),
        "length": status.len,
        "permission": format!("{:04o}", status.permission),
        "owner": status.owner,
        "group": status.group,
        "modification_time_ms": status.modification_time_ms,
        "access_time_ms": status.access_time_ms,
        "replication": status.replication,
        "block_size": status.block_size,
        "file_id": status.file_id,
        "policy": status.policy.as_ref().map(|policy| policy.name.as_str()),
        "encrypted": status.is_encrypted,
    })
}

/// `rwxr-xr-t`.
fn permission_text(bits: u16) -> String {
    let letters =
        (0..9).map(|i| if bits & (0o400 >> i) != 0 { b"rwx"[i % 3] as char } else { '-' });
    let mut text: String = letters.collect();
    if bits & 0o1000 != 0 {
        text.pop();
        text.push(if bits & 1 != 0 { 't' } else { 'T' });
    }
    text
}

async fn mkdir(fs: &FileSystem, paths: &[String], parents: bool) -> Result<()> {
    for path in paths {
        if parents {
            fs.mkdirs(path, 0o777).await?;
        } else if fs.file_info(path).await?.is_some() {
            bail!("{path}: File exists");
        } else {
            fs.mkdir(path, 0o777).await?;
        }
    }
    Ok(())
}

async fn rm(
    fs: &FileSystem,
    paths: &[String],
    recursive: bool,
    force: bool,
    trash: Option<&Trash>,
) -> Result<()> {
    for path in paths {
        match fs.file_info(path).await? {
            None if force => continue,
            None => bail!("{path}: No such file or directory"),
            Some(status) if status.is_dir() && !recursive => bail!("{path}: Is a directory"),
            Some(_) => {}
        }
        if let Some(trash) = trash
            && trash.take(fs, path).await?
        {
            continue;
        }
        if !fs.delete(path, recursive).await? {
            bail!("{path}: could not be removed");
        }
    }
    Ok(())
}

async fn mv(fs: &FileSystem, from: &str, to: &str) -> Result<()> {
    let source = status(fs, from).await?;
    let target = match fs.file_info(to).await? {
        Some(target) if target.is_dir() => {
            // Else it would come below the directory of its own name.
            let target = below(to, source.name());
            if fs.file_info(&target).await?.is_some() {
                bail!("{target}: File exists");
            }
            target
        }
        Some(_) => bail!("{to}: File exists"),
        None => to.to_string(),
    };
    if !fs.rename(from, &target).await? {
        bail!("{from}: could not be moved to {target}");
    }
    Ok(())
}

async fn du(fs: &FileSystem, paths: &[String], summary: bool, json: bool) -> Result<()> {
    for path in paths {
        let root = status(fs, path).await?;
        let rows =
            if summary || !root.is_dir() { vec![root] } else { fs.list(path).collect().await? };
        for row in rows {
            let ContentSummary { len, space_consumed, file_count, directory_count, .. } =
                fs.content_summary(&row.path).await?;
            if json {
                let value = json!({
                    "path": row.path, "length": len, "space_consumed": space_consumed,
                    "files": file_count, "directories": directory_count,
                });
                crate::say!("{value}");
            } else {
                crate::say!("{len:>14} {space_consumed:>14} {}", row.path);
            }
        }
    }
    Ok(())
}

async fn stat(fs: &FileSystem, paths: &[String], json: bool) -> Result<()> {
    for path in paths {
        let status = status(fs, path).await?;
        let value = status_json(&status);
        match value.as_object() {
            Some(fields) if !json => {
                let row = |(key, value): (&String, &Value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
                    vec![key.clone(), text]
                };
                output::print(format_args!(
                    "{}",
                    output::table(&fields.iter().map(row).collect::<Vec<_>>())
                ));
            }
            _ => crate::say!("{value}"),
        }
    }
    Ok(())
}

async fn checksum(fs: &FileSystem, paths: &[String], composite: bool, json: bool) -> Result<()> {
    let mode = if composite { ChecksumMode::CompositeCrc } else { ChecksumMode::Md5Md5Crc };
    for path in paths {
        let Some(sum) = fs.checksum(path, mode).await? else {
            bail!("{path}: Is a directory");
        };
        if json {
            crate::say!(
                "{}",
                json!({"path": path, "algorithm": sum.algorithm, "bytes": sum.to_hex()})
            );
        } else {
            crate::say!("{path}\t{}\t{}", sum.algorithm, sum.to_hex());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_read_like_those_of_ls() {
        for (bits, want) in [
            (0o755, "rwxr-xr-x"),
            (0o640, "rw-r-----"),
            (0o1777, "rwxrwxrwt"),
            (0o1770, "rwxrwx--T"),
        ] {
            assert_eq!(permission_text(bits), want);
        }
    }

    #[test]
    fn paths_join_with_one_slash() {
        assert_eq!(below("/", "a"), "/a");
        assert_eq!(below("/a/", "b"), "/a/b");
    }

    #[test]
    fn paths_are_understood_as_users_write_them() {
        let (namenode, user) = ("nn:8020".to_string(), "ann".to_string());
        let config = ClientConfig { namenode, user, ..ClientConfig::default() };
        for (path, want) in [
            ("/a/b", "/a/b"),
            ("/", "/"),
            ("//a//b/", "/a/b"),
            ("a/b", "/user/ann/a/b"),
            ("hdfs://nn:8020/a", "/a"),
            ("hdfs://nn/a", "/a"),
            ("hdfs://nn", "/"),
            ("hdfs:///a", "/a"),
        ] {
            assert_eq!(absolute(path, &config).unwrap(), want, "{path}");
        }
        for path in ["", "hdfs://other:8020/a", "s3a://nn:8020/a"] {
            assert!(absolute(path, &config).is_err(), "{path}");
        }
    }
}
