//! Names and property files of Hadoop's DataNode layout (version -57).
//!
//! Source: Hadoop 3.5.0 `DataStorage`, `BlockPoolSliceStorage`, `DatanodeUtil#idToBlockDir`.

use crate::error::{Context, DataNodeError, Result};
use crate::sys;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder with everything that is not being upgraded or rolled back.
pub(crate) const CURRENT: &str = "current";
/// `DataNodeLayoutVersion`: finalized replicas in 32 x 32 folders by block id.
pub(crate) const LAYOUT_VERSION: i32 = -57;
const VERSION: &str = "VERSION";
/// A VERSION file has a few hundred bytes.
const MAX_VERSION_LEN: u64 = 64 << 10;

/// Name of the block file.
pub(crate) fn block_name(id: BlockId) -> String {
    format!("blk_{}", id.0)
}

/// Name of the file with its CRCs.
pub(crate) fn meta_name(id: BlockId, gs: GenerationStamp) -> String {
    format!("blk_{}_{}.meta", id.0, gs.0)
}

/// Behind the names of files whose sync failed, and which are no replica any more.
pub(crate) const UNSYNCED: &str = ".unsynced";

/// What a file in a replica folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    Block(BlockId),
    Meta(BlockId, GenerationStamp),
    Other,
}

/// Reads a name made by [`block_name`] or [`meta_name`].
pub(crate) fn parse_name(name: &str) -> FileName {
    let Some(rest) = name.strip_prefix("blk_") else { return FileName::Other };
    if let Some((id, gs)) = rest.strip_suffix(".meta").and_then(|stem| stem.rsplit_once('_')) {
        return match (id.parse(), gs.parse()) {
            (Ok(id), Ok(gs)) => FileName::Meta(BlockId(id), GenerationStamp(gs)),
            _ => FileName::Other,
        };
    }
    rest.parse().map_or(FileName::Other, |id| FileName::Block(BlockId(id)))
}

/// The folders of one block pool on one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolDirs {
    pub(crate) current: PathBuf,
    pub(crate) finalized: PathBuf,
    pub(crate) rbw: PathBuf,
    pub(crate) tmp: PathBuf,
    /// Saved copies of replicas that are in memory.
    pub(crate) saved: PathBuf,
}

impl PoolDirs {
    pub(crate) fn new(root: &Path, pool: &str) -> PoolDirs {
        let base = root.join(CURRENT).join(pool);
        let current = base.join(CURRENT);
        PoolDirs {
            finalized: current.join("finalized"),
            rbw: current.join("rbw"),
            saved: current.join("lazypersist"),
            tmp: base.join("tmp"),
            current,
        }
    }

    /// Where a finalized replica lies.
    pub(crate) fn finalized_dir(&self, id: BlockId) -> PathBuf {
        leaf_dir(&self.finalized, id)
    }

    /// Where the saved copy of a replica in memory lies.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#copyBlockFiles`.
    pub(crate) fn saved_dir(&self, id: BlockId) -> PathBuf {
        leaf_dir(&self.saved, id)
    }
}

fn leaf_dir(root: &Path, id: BlockId) -> PathBuf {
    let (first, second) = ((id.0 >> 16) & 0x1f, (id.0 >> 8) & 0x1f);
    root.join(format!("subdir{first}")).join(format!("subdir{second}"))
}

/// Identity of a volume: `current/VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeVersion {
    pub(crate) storage_id: String,
    pub(crate) cluster_id: String,
    pub(crate) datanode_uuid: String,
}

impl NodeVersion {
    /// The identity of the volume in `root`; `None` if it has none yet.
    pub(crate) fn read(root: &Path) -> Result<Option<NodeVersion>> {
        let dir = root.join(CURRENT);
        let Some(mut values) = read_properties(&dir)? else { return Ok(None) };
        expect(&dir, &values, "storageType", "DATA_NODE")?;
        expect(&dir, &values, "layoutVersion", &LAYOUT_VERSION.to_string())?;
        Ok(Some(NodeVersion {
            storage_id: take(&dir, &mut values, "storageID")?,
            cluster_id: take(&dir, &mut values, "clusterID")?,
            datanode_uuid: take(&dir, &mut values, "datanodeUuid")?,
        }))
    }

    /// Writes it durably.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        let dir = root.join(CURRENT);
        fs::create_dir_all(&dir).at(&dir)?;
        write_properties(
            &dir,
            &[
                ("storageID", &self.storage_id),
                ("clusterID", &self.cluster_id),
                ("cTime", "0"),
                ("datanodeUuid", &self.datanode_uuid),
                ("storageType", "DATA_NODE"),
                ("layoutVersion", &LAYOUT_VERSION.to_string()),
            ],
        )?;
        sys::sync_dir(root)
    }
}

/// Identity of a block pool: `current/BP-…/current/VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolVersion {
    pub(crate) namespace_id: u32,
    pub(crate) block_pool_id: String,
    pub(crate) c_time: u64,
}

impl PoolVersion {
    /// The identity in `BP-…/current`; `None` if it has none yet.
    pub(crate) fn read(current: &Path) -> Result<Option<PoolVersion>> {
        let Some(mut values) = read_properties(current)? else { return Ok(None) };
        expect(current, &values, "layoutVersion", &LAYOUT_VERSION.to_string())?;
        let block_pool_id = take(current, &mut values, "blockpoolID")?;
        let namespace_id = number(current, &mut values, "namespaceID")? as u32;
        let c_time = number(current, &mut values, "cTime")? as u64;
        Ok(Some(PoolVersion { namespace_id, block_pool_id, c_time }))
    }

    /// Writes it durably.
    pub(crate) fn write(&self, current: &Path) -> Result<()> {
        write_properties(
            current,
            &[
                // Java reads a signed number.
                ("namespaceID", &(self.namespace_id as i32).to_string()),
                ("cTime", &self.c_time.to_string()),
                ("blockpoolID", &self.block_pool_id),
                ("layoutVersion", &LAYOUT_VERSION.to_string()),
            ],
        )
    }

    /// The block pools that a volume holds.
    pub(crate) fn list(root: &Path) -> Result<Vec<PoolVersion>> {
        let dir = root.join(CURRENT);
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.at(&dir)?,
        };
        let mut pools = Vec::new();
        for entry in entries {
            let entry = entry.at(&dir)?;
            if entry.file_name().to_string_lossy().starts_with("BP-") {
                pools.extend(PoolVersion::read(&entry.path().join(CURRENT))?);
            }
        }
        Ok(pools)
    }
}

/// A random UUID (version 4) in its usual notation.
pub(crate) fn random_uuid() -> Result<String> {
    let mut b = [0u8; 16];
    getrandom::fill(&mut b)
        .map_err(|e| io::Error::other(e.to_string()))
        .context(|| "random number".into())?;
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let hex: String = b.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// A Java properties file, as far as Hadoop's VERSION files use the format.
fn read_properties(dir: &Path) -> Result<Option<HashMap<String, String>>> {
    let path = dir.join(VERSION);
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).at(&path),
        Ok(meta) if meta.len() > MAX_VERSION_LEN => {
            return Err(broken(dir, "VERSION is too long".into()));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(&path).at(&path)?;
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    Ok(Some(pairs.map(|(k, v)| (k.trim().to_string(), v.trim().replace('\\', ""))).collect()))
}

/// Replaces the VERSION file in `dir` in one step.
fn write_properties(dir: &Path, values: &[(&str, &str)]) -> Result<()> {
    let (path, next) = (dir.join(VERSION), dir.join("VERSION.tmp"));
    let mut text = String::from("#Cairn\n");
    for (key, value) in values {
        text.push_str(&format!("{key}={value}\n"));
    }
    let mut file = File::create(&next).at(&next)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).at(&next)?;
    fs::rename(&next, &path).at(&path)?;
    sys::sync_dir(dir)
}

fn take(dir: &Path, values: &mut HashMap<String, String>, key: &str) -> Result<String> {
    values.remove(key).ok_or_else(|| broken(dir, format!("VERSION has no {key}")))
}

fn number(dir: &Path, values: &mut HashMap<String, String>, key: &str) -> Result<i64> {
    let text = take(dir, values, key)?;
    text.parse().map_err(|_| broken(dir, format!("{key}={text} in VERSION is no number")))
}

fn expect(dir: &Path, values: &HashMap<String, String>, key: &str, want: &str) -> Result<()> {
    match values.get(key) {
        Some(found) if found == want => Ok(()),
        found => Err(broken(dir, format!("{key} in VERSION is {found:?}, expected {want}"))),
    }
}

fn broken(dir: &Path, why: String) -> DataNodeError {
    DataNodeError::Storage { dir: dir.to_path_buf(), why }
}
