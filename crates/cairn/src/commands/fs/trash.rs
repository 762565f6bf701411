//! The trash: where `rm` moves what it removes, if the NameNode has one emptied.
//!
//! Source: Hadoop 3.5.0 `TrashPolicyDefault#moveToTrash`, `DistributedFileSystem#getTrashRoot`.

use super::paths::below;
use anyhow::{Context, Result, bail};
use cairn_client::{ClientError, FileSystem};
use cairn_net::date::Moment;
use std::io::ErrorKind;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nobody else reads what a user has thrown away.
const PERMISSION: u16 = 0o700;
/// What was thrown away last.
const CURRENT: &str = "Current";

/// The trash of a file system's users.
pub struct Trash {
    /// There may be encryption zones, each with a trash of its own, for nothing can be moved out of them.
    may_have_zones: bool,
    /// Snapshottable directories with trash of their own, of which the user may know.
    snapshottable: Vec<String>,
}

impl Trash {
    /// The trash, if there is one.
    pub async fn of(fs: &FileSystem) -> Result<Option<Trash>> {
        let defaults = fs.server_defaults().await?;
        let may_have_zones = defaults.key_provider.as_deref() != Some("");
        if defaults.trash_interval_minutes == 0 {
            return Ok(None);
        }
        let mut snapshottable = Vec::new();
        if defaults.snapshot_trash_roots {
            let directories = fs.snapshottable_directories().await?.into_iter();
            snapshottable = directories.map(|directory| directory.status.path).collect();
        }
        Ok(Some(Trash { may_have_zones, snapshottable }))
    }

    /// Moves what a path names to the trash. False if it is in there already, and is to be deleted.
    pub async fn take(&self, fs: &FileSystem, path: &str) -> Result<bool> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let path = format!("/{}", names.join("/"));
        let about =
            || format!("{path}: cannot be moved to the trash; --skip-trash removes it for good");
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let root = self.root(fs, folder).await.with_context(about)?;
        if is_in(&path, &root) {
            return Ok(false);
        }
        if is_in(&root, &path) {
            bail!("{path}: contains the trash; --skip-trash removes it for good");
        }
        let current = below(&root, CURRENT);
        let mut moved = move_into(fs, &path, &current, folder, name).await;
        if moved.is_err() {
            // A checkpoint of the trash may have taken the folder away between the two calls.
            moved = move_into(fs, &path, &current, folder, name).await;
        }
        let place = moved.with_context(about)?;
        crate::complain!("{path}: moved to {place}");
        Ok(true)
    }

    /// The user's trash for what is in a folder: that of the encryption zone or of the snapshottable directory that the
    /// folder is in, whichever is deeper.
    async fn root(&self, fs: &FileSystem, folder: &str) -> Result<String, ClientError> {
        let user = &fs.config().user;
        let folder = if folder.is_empty() { "/" } else { folder };
        let zone = match self.may_have_zones {
            true => fs.encryption_zone_of(folder).await?,
            false => None,
        };
        let snapshottable = self.snapshottable.iter().find(|directory| is_in(folder, directory));
        let own = zone.map(|zone| zone.path).into_iter().chain(snapshottable.cloned());
        Ok(match own.max_by_key(String::len) {
            Some(directory) => below(&directory, &format!(".Trash/{user}")),
            None => below(&fs.config().home(), ".Trash"),
        })
    }
}

/// Empties the user's trash as far as it is old enough, or wholly if `immediate`, and begins a new part of it. Returns
/// sentences for people.
///
/// Source: Hadoop 3.5.0 `TrashPolicyDefault#deleteCheckpoint`, `#createCheckpoint`.
pub async fn expunge(fs: &FileSystem, immediate: bool) -> Result<Vec<String>> {
    let keep_ms = u128::from(fs.server_defaults().await?.trash_interval_minutes) * 60_000;
    let (mut told, now) = (Vec::new(), now_ms());
    let home = below(&fs.config().home(), ".Trash");
    let limit = stamp(now.saturating_sub(keep_ms));
    if fs.file_info(&home).await?.is_none() {
        return Ok(told);
    }
    for entry in fs.list(&home).collect().await? {
        let name = entry.name();
        let is_current = name == CURRENT;
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let is_old = match digits {
            12 => name[..12] < limit[..],
            // Names of Hadoop 1 have no seconds.
            10 | 11 => name[..10] < limit[..10],
            _ if is_current => false,
            _ => continue,
        };
        if immediate || is_old {
            fs.delete(&entry.path, true).await?;
            told.push(format!("{}: deleted", entry.path));
        }
    }
    let current = below(&home, CURRENT);
    if !immediate && fs.file_info(&current).await?.is_some() {
        let mut place = below(&home, &stamp(now));
        if fs.file_info(&place).await?.is_some() {
            place.push_str(&format!("-{}", now % 1000));
        }
        fs.rename_to(&current, &place, false).await?;
        told.push(format!("{place}: holds what was thrown away until now"));
    }
    Ok(told)
}

/// A time as checkpoints are named: two digits each of year, month, day, hour, minute and second.
fn stamp(wall_ms: u128) -> String {
    let text = Moment::of_ms(u64::try_from(wall_ms).unwrap_or(u64::MAX)).to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits[2..14].to_string()
}

/// Moves a path to where it was, below `current`; returns its place.
async fn move_into(
    fs: &FileSystem,
    path: &str,
    current: &str,
    folder: &str,
    name: &str,
) -> Result<String, ClientError> {
    let mut to = format!("{current}{folder}");
    if let Err(error) = fs.mkdirs(&to, PERMISSION).await {
        if !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) {
            return Err(error);
        }
        to = around_file(fs, current, folder).await?;
        fs.mkdirs(&to, PERMISSION).await?;
    }
    let mut place = format!("{to}/{name}");
    while fs.file_info(&place).await?.is_some() {
        place = format!("{to}/{name}{}", now_ms());
    }
    fs.rename_to_trash(path, &place).await?;
    Ok(place)
}

/// `folder` below `current`, with another name for that part of it that is a file there.
async fn around_file(fs: &FileSystem, current: &str, folder: &str) -> Result<String, ClientError> {
    let ends = folder.match_indices('/').map(|(at, _)| at).skip(1).chain([folder.len()]);
    for end in ends {
        let (above, rest) = folder.split_at(end);
        let at = format!("{current}{above}");
        if fs.file_info(&at).await?.is_some_and(|status| !status.is_dir()) {
            return Ok(format!("{at}{}{rest}", now_ms()));
        }
    }
    Ok(format!("{current}{folder}"))
}

/// Whether a path is `folder` or below it.
fn is_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_are_not_below_each_other() {
        for (path, folder, want) in [
            ("/user/a/.Trash", "/user/a/.Trash", true),
            ("/user/a/.Trash/Current/x", "/user/a/.Trash", true),
            ("/user/a/.Trashed", "/user/a/.Trash", false),
            ("/user/a/.Trash", "/", true),
            ("/user/a", "/user/a/.Trash", false),
        ] {
            assert_eq!(is_in(path, folder), want, "{path} in {folder}");
        }
    }
}
