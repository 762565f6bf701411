//! What the sub-commands of `cairn fs` share: the file system, paths as users write them, and complaints.

use super::glob;
use crate::output;
use anyhow::{Result, bail};
use cairn_client::{ClientConfig, FileStatus, FileSystem};
use std::cell::Cell;
use std::process::ExitCode;

/// What a sub-command works with.
pub struct Shell {
    pub fs: FileSystem,
    /// Whether to answer with JSON.
    pub json: bool,
    /// Whether it was called as Hadoop calls it (`-ls`), and says what Hadoop says.
    pub is_hadoop: bool,
    has_failed: Cell<bool>,
}

impl Shell {
    pub fn new(fs: FileSystem, json: bool, is_hadoop: bool) -> Shell {
        Shell { fs, json, is_hadoop, has_failed: Cell::new(false) }
    }

    /// A path of the file system as users write it.
    pub fn at(&self, path: &str) -> Result<String> {
        absolute(path, self.fs.config())
    }

    /// What a path names, which must be there.
    pub async fn status(&self, path: &str) -> Result<FileStatus> {
        match self.fs.file_info(path).await? {
            Some(status) => Ok(status),
            None => bail!("{path}: No such file or directory"),
        }
    }

    /// What a path names as users write it, or all that fits its wildcards; at least one.
    pub async fn find(&self, path: &str) -> Result<Vec<FileStatus>> {
        let path = self.at(path)?;
        if !glob::has_wildcards(&path) {
            return Ok(vec![self.status(&path).await?]);
        }
        let found = glob::expand(&self.fs, &path).await?;
        if found.is_empty() {
            bail!("{path}: No such file or directory");
        }
        Ok(found)
    }

    /// What several paths name; complains of those that name nothing.
    pub async fn find_all(&self, paths: &[String]) -> Vec<FileStatus> {
        let mut found = Vec::new();
        for path in paths {
            found.extend(self.keep(self.find(path).await).unwrap_or_default());
        }
        found
    }

    /// The result of one step. Complains of its failure, with which the command will end, and goes on.
    pub fn keep<T>(&self, done: Result<T>) -> Option<T> {
        match done {
            Ok(value) => Some(value),
            Err(error) => {
                self.complain(&error);
                None
            }
        }
    }

    /// Says what went wrong; the command will end with that.
    pub fn complain(&self, error: &anyhow::Error) {
        crate::complain!("cairn: {}", output::sentence(error));
        self.fail();
    }

    /// Has the command end with a failure, without a word.
    pub fn fail(&self) {
        self.has_failed.set(true);
    }

    /// With what the command ends.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(self.has_failed.get()))
    }

    /// Does to each what it is told to; with `recursive`, a directory first and then all below it.
    pub async fn each(
        &self,
        paths: &[String],
        recursive: bool,
        job: impl AsyncFn(&FileStatus) -> Result<()>,
    ) {
        for root in self.find_all(paths).await {
            self.keep(self.walk(root, recursive, &job).await);
        }
    }

    /// The same below one path, in the order of names. Complains and goes on where something fails.
    pub async fn walk(
        &self,
        root: FileStatus,
        recursive: bool,
        job: &impl AsyncFn(&FileStatus) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = vec![root];
        while let Some(status) = waiting.pop() {
            let done = self.keep(job(&status).await).is_some();
            if !done || !recursive || !status.is_dir() {
                continue;
            }
            let listed = self.fs.list(&status.path).collect().await;
            let children = self.keep(listed.map_err(Into::into)).unwrap_or_default();
            waiting.extend(children.into_iter().rev());
        }
        Ok(())
    }

    /// Says what Hadoop says, where it was called so.
    pub fn tell_hadoop(&self, line: std::fmt::Arguments<'_>) {
        if self.is_hadoop {
            crate::say!("{line}");
        }
    }
}

/// `--help`, where `-h` means something else.
pub fn help() -> clap::Arg {
    clap::Arg::new("help").long("help").action(clap::ArgAction::Help).help("Print help")
}

/// With which code a signal has ended a command; `None` where it came to its own end.
pub type Ended = Option<u8>;

/// Does the job, or what of it is done before a signal says to stop.
pub async fn until_told_to_stop(job: impl Future<Output = Result<()>>) -> Result<Ended> {
    tokio::select! {
        done = job => done.map(|()| None),
        told = output::told_to_stop() => told.map(Some),
    }
}

/// A path as users write it: from the root, from their own folder, or with this file system before it.
pub fn absolute(path: &str, config: &ClientConfig) -> Result<String> {
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
    let mut names: Vec<&str> = home.split('/').filter(|name| !name.is_empty()).collect();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    Ok(format!("/{}", names.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_understood_as_users_write_them() {
        let (namenode, user) = ("nn:8020".to_string(), "ann".to_string());
        let config = ClientConfig { namenode, user, ..ClientConfig::default() };
        for (path, want) in [
            ("/a/b", "/a/b"),
            ("/", "/"),
            ("//a//b/", "/a/b"),
            ("a/b", "/user/ann/a/b"),
            ("../bob/./c", "/user/bob/c"),
            ("/../a/../b", "/b"),
            (".", "/user/ann"),
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
