//! What the volumes of an embedded cluster's DataNodes are.

use anyhow::{Result, bail};
use cairn_datanode::{DataDir, medium};
use cairn_stripe::StorageType;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The volumes of one DataNode: `DISK,SSD` or, with a place of its own, `DISK,[RAM_DISK]/dev/shm/cairn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes(Vec<(StorageType, Option<PathBuf>)>);

impl FromStr for Volumes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Volumes> {
        let one = |word: &str| match word.starts_with('[') {
            true => word.parse().map(|dir: DataDir| Ok((dir.storage_type, Some(dir.path))))?,
            false => Ok((medium(word)?, None)),
        };
        let volumes = text.split(',').map(|word| one(word.trim())).collect::<Result<Vec<_>>>()?;
        if volumes.iter().any(|(_, dir)| dir.as_ref().is_some_and(|dir| dir.as_os_str().is_empty()))
        {
            bail!("a storage type in brackets takes a folder behind it");
        }
        Ok(Volumes(volumes))
    }
}

/// Where DataNode `index` keeps what it has.
pub(super) fn datanode_folder(data: &Path, index: usize) -> PathBuf {
    data.join(format!("datanode{index}"))
}

/// The volumes of DataNode `index`, which has the list whose turn it is: one disk if there is none.
pub(super) fn data_dirs(lists: &[Volumes], data: &Path, index: usize) -> Vec<DataDir> {
    let Some(turn) = index.checked_rem(lists.len()) else {
        return vec![datanode_folder(data, index).into()];
    };
    let one = |(at, (storage_type, dir)): (usize, &(StorageType, Option<PathBuf>))| {
        let name = format!("datanode{index}-volume{at}");
        let path = match dir {
            Some(dir) => dir.join(name),
            // Where it is without any list, so that what was written then is still there.
            None if at == 0 => datanode_folder(data, index),
            None => data.join(name),
        };
        DataDir { storage_type: *storage_type, ..path.into() }
    };
    lists[turn].0.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_nodes_take_their_turns() {
        let lists: Vec<Volumes> =
            ["disk, ssd", "ARCHIVE,[RAM_DISK]/dev/shm"].map(|text| text.parse().unwrap()).into();
        let dirs = |lists: &[Volumes], index| {
            let dirs = data_dirs(lists, Path::new("/c"), index);
            dirs.iter()
                .map(|d| format!("{} {}", d.storage_type.name(), d.path.display()))
                .collect::<Vec<_>>()
        };
        assert_eq!(dirs(&[], 1), ["DISK /c/datanode1"]);
        assert_eq!(dirs(&lists, 0), ["DISK /c/datanode0", "SSD /c/datanode0-volume1"]);
        assert_eq!(
            dirs(&lists, 3),
            ["ARCHIVE /c/datanode3", "RAM_DISK /dev/shm/datanode3-volume1"]
        );
        for bad in ["", "TAPE", "DISK,", "[SSD]", "PROVIDED"] {
            assert!(bad.parse::<Volumes>().is_err(), "{bad}");
        }
    }
}
