//! Copies of files and trees, also from one file system to another.
//!
//! Source: Hadoop 3.5.0 `FileUtil#copy`.

use crate::boundary::Text;
use crate::builder::{Connection, Fs, connection};
use crate::failure::{Failure, Result, status};
use crate::path::{join, name, same};
use cairn_client::{CreateOptions, FileStatus};
use libc::c_int;

/// Permission bits of new directories, before the umask.
const DIRECTORY: u16 = 0o777;

fn copy(
    (from, source): (&Connection, &str),
    (to, target): (&Connection, &str),
    delete_source: bool,
) -> Result<()> {
    let status = from.wait(from.client.require(source))?;
    let target = place(to, target, name(source))?;
    if same(&from.client.config().namenode, &to.client.config().namenode) {
        let below = target.strip_prefix(source.trim_end_matches('/'));
        if below == Some("") {
            return Err(Failure::io(format!("Cannot copy {source} to itself.")));
        }
        if status.is_dir() && below.is_some_and(|rest| rest.starts_with('/')) {
            return Err(Failure::io(format!("Cannot copy {source} to its subdirectory {target}")));
        }
    }
    let options =
        CreateOptions { overwrite: true, create_parents: true, ..CreateOptions::default() };
    let mut left = vec![(status, target)];
    while let Some((status, target)) = left.pop() {
        if status.is_dir() {
            to.wait(to.client.mkdirs(&target, DIRECTORY))?;
            let entries = from.wait(from.client.list(&status.path).collect())?;
            let below = |entry: FileStatus| {
                let target = join(&target, entry.name());
                (entry, target)
            };
            left.extend(entries.into_iter().map(below));
        } else {
            to.wait(from.client.copy_file(&status.path, &to.client, &target, &options))?;
        }
    }
    if delete_source {
        from.wait(from.client.delete(source, true))?;
    }
    Ok(())
}

/// Where the copy goes: below a directory that is there, else to the path itself.
fn place(to: &Connection, target: &str, name: &str) -> Result<String> {
    let is_dir = |path: &str| -> Result<bool> {
        Ok(to.wait(to.client.file_info(path))?.is_some_and(|status| status.is_dir()))
    };
    if !is_dir(target)? {
        return Ok(target.to_string());
    }
    let inside = join(target, name);
    if is_dir(&inside)? {
        return Err(Failure::io(format!("Target {inside} is a directory")));
    }
    Ok(inside)
}

/// Copies a file or tree; into `target` when that is a directory.
#[unsafe(no_mangle)]
extern "C" fn hdfsCopy(from: Option<&Fs>, source: Text, to: Option<&Fs>, target: Text) -> c_int {
    status(|| {
        let (from, to) = (connection(from)?, connection(to)?);
        copy((from, &from.path(&source)?), (to, &to.path(&target)?), false)
    })
}

/// Copies a file or tree and deletes what was copied.
#[unsafe(no_mangle)]
extern "C" fn hdfsMove(from: Option<&Fs>, source: Text, to: Option<&Fs>, target: Text) -> c_int {
    status(|| {
        let (from, to) = (connection(from)?, connection(to)?);
        copy((from, &from.path(&source)?), (to, &to.path(&target)?), true)
    })
}
