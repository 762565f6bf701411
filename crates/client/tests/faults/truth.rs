//! What must be on disk and what is: every unit of a file computed from its bytes, against the files of
//! every replica on every running DataNode.

use crate::cluster::{Cluster, PATIENCE};
use crate::code::Code;
use cairn_client::FileBlock;
use cairn_codec::crc::{ChecksumKind, verify_chunks};
use cairn_codec::{Codec, CodecKind};
use cairn_stripe::{BlockId, CodecName, Geometry, Policy, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// A file as it was written.
#[derive(Clone, Debug)]
pub struct Written {
    pub path: String,
    pub data: Vec<u8>,
}

/// What a wrong byte in a finalized replica means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongBytes {
    /// Somebody stored it: nobody may, not for a moment.
    AreAFault,
    /// The test put it there: it goes in time.
    Vanish,
}

/// A replica that must be: its bytes, by its own id.
type Units = BTreeMap<i64, Vec<u8>>;

/// Checks, after quiet time, that the files read back, that every unit is once on a DataNode of its
/// own, and that no finalized replica has a wrong byte.
pub async fn check(cluster: &Cluster, code: &Code, files: &[Written], what: &str) {
    check_with(cluster, code, files, WrongBytes::AreAFault, what).await;
}

/// As [`check`], where wrong bytes may have been put on disk by the test itself.
pub async fn check_with(
    cluster: &Cluster,
    code: &Code,
    files: &[Written],
    wrong: WrongBytes,
    what: &str,
) {
    let start = Instant::now();
    // The NameNode may learn only later of what is not quite there: quiet is what lasts.
    loop {
        cluster.wait_quiet().await;
        let faults = faults(cluster, code, files, wrong).await;
        if faults.is_empty() {
            break;
        }
        let stats = cluster.stats();
        assert!(start.elapsed() < PATIENCE, "{what}: {}\n{stats:?}", faults.join("\n"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let fs = cluster.another_client().await;
    for file in files {
        let mut reader = fs.open(&file.path).await.unwrap();
        let mut all = Vec::new();
        while let Some(chunk) = reader.next_chunk().await.unwrap() {
            all.extend_from_slice(&chunk);
        }
        assert!(all == file.data, "{what}: {} reads back wrong", file.path);
    }
}

/// What is missing, too much, or badly placed. A wrong byte that is a fault is not waited for.
async fn faults(
    cluster: &Cluster,
    code: &Code,
    files: &[Written],
    wrong: WrongBytes,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut wanted: Units = BTreeMap::new();
    for file in files {
        let located = cluster.fs.block_locations(&file.path, 0, u64::MAX >> 1).await.unwrap();
        assert_eq!(located.len, file.data.len() as u64, "{}", file.path);
        for block in &located.blocks {
            let start = block.offset_in_file as usize;
            let data = &file.data[start..start + block.block.len as usize];
            let units = units(code, block, data);
            faults.extend(misplaced(cluster, code, block, units.keys().copied().collect()));
            wanted.extend(units);
        }
    }
    let mut found: BTreeMap<i64, usize> = BTreeMap::new();
    for node in cluster.running() {
        for path in cluster.finalized_files(node) {
            let Some(id) = block_id(&path) else { continue };
            match wanted.get(&id) {
                Some(unit) => match check_replica(&path, unit, wrong) {
                    Ok(()) => *found.entry(id).or_default() += 1,
                    Err(fault) => faults.push(format!("node {node}: {fault}")),
                },
                None => faults.push(format!("node {node} has {id}, which no file wants")),
            }
        }
    }
    let copies = match code {
        Code::Replicated(copies) => usize::from(*copies),
        Code::Striped(_) => 1,
    };
    for id in wanted.keys() {
        let count = found.get(id).copied().unwrap_or(0);
        if count != copies {
            faults.push(format!("{count} of {id} on disk, {copies} wanted"));
        }
    }
    faults
}

/// Where the NameNode says that a block is: all of it, on DataNodes of its own, spread over the racks.
fn misplaced(
    cluster: &Cluster,
    code: &Code,
    block: &FileBlock,
    units: BTreeSet<i64>,
) -> Option<String> {
    let running = cluster.running();
    let places: Vec<(i64, usize)> = block
        .locations
        .iter()
        .map(|place| (own_id(block, place.unit), cluster.node_of(&place.addr.uuid)))
        .collect();
    let nodes: BTreeSet<usize> = places.iter().map(|(_, node)| *node).collect();
    let held: BTreeSet<i64> = places.iter().map(|(id, _)| *id).collect();
    let count = match code {
        Code::Replicated(copies) => usize::from(*copies),
        Code::Striped(_) => units.len(),
    };
    let racks: BTreeSet<&str> = block.locations.iter().map(|place| place.rack.as_str()).collect();
    let all_racks: BTreeSet<usize> = running.iter().map(|node| cluster.rack(*node)).collect();
    let most = if matches!(code, Code::Replicated(_)) { 2 } else { usize::MAX };
    let is_spread = racks.len() >= most.min(count).min(all_racks.len());
    let is_live = nodes.iter().all(|node| running.contains(node));
    let is_whole = held == units && places.len() == count && nodes.len() == count;
    let known = || {
        let known = cluster.known(block.block.id);
        format!("{} is at {places:?} on {racks:?}, running {running:?}; {known}", block.block)
    };
    (!is_whole || !is_live || !is_spread || block.corrupt).then(known)
}

fn own_id(block: &FileBlock, unit: UnitIndex) -> i64 {
    match block.block.id.is_striped() {
        true => block.block.id.internal(unit).0,
        false => block.block.id.0,
    }
}

/// The bytes of every replica or unit that a block should have. Units without bytes are none.
fn units(code: &Code, block: &FileBlock, data: &[u8]) -> Units {
    let Code::Striped(policy) = code else {
        return BTreeMap::from([(block.block.id.0, data.to_vec())]);
    };
    let geometry = Geometry::from(policy);
    encode(policy, data)
        .into_iter()
        .enumerate()
        .filter_map(|(unit, mut bytes)| {
            let unit = UnitIndex(unit as u8);
            bytes.truncate(geometry.internal_block_len(data.len() as u64, unit) as usize);
            (!bytes.is_empty()).then(|| (own_id(block, unit), bytes))
        })
        .collect()
}

/// All units of a group, padded to whole cells of the longest one.
pub fn encode(policy: &Policy, data: &[u8]) -> Vec<Vec<u8>> {
    let kind = match policy.schema.codec {
        CodecName::Rs => CodecKind::Rs,
        CodecName::RsLegacy => CodecKind::RsLegacy,
        CodecName::Xor => CodecKind::Xor,
    };
    let (k, m) = (policy.schema.data_units(), policy.schema.parity_units());
    let (cell, stripe) = (policy.cell_len as usize, policy.stripe_len() as usize);
    let codec = Codec::new(kind, k, m).unwrap();
    let mut units = vec![Vec::new(); k + m];
    for stripe in data.chunks(stripe) {
        let mut cells: Vec<Vec<u8>> = stripe.chunks(cell).map(<[u8]>::to_vec).collect();
        cells.resize(k, Vec::new());
        cells.iter_mut().for_each(|bytes| bytes.resize(cell, 0));
        let mut parity = vec![vec![0; cell]; m];
        let sources: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
        let mut sinks: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        codec.encode(&sources, &mut sinks).unwrap();
        cells.extend(parity);
        units.iter_mut().zip(cells).for_each(|(unit, cell)| unit.extend(cell));
    }
    units
}

/// The id in the name of a block file; `None` for meta files.
pub fn block_id(path: &Path) -> Option<i64> {
    path.file_name()?.to_str()?.strip_prefix("blk_")?.parse().ok()
}

/// A finalized replica that is as long as it should be has the right bytes, and CRCs that agree.
fn check_replica(path: &Path, unit: &[u8], wrong: WrongBytes) -> Result<(), String> {
    let Ok(bytes) = std::fs::read(path) else {
        return Err(format!("{} is gone or unreadable", path.display()));
    };
    if bytes.len() != unit.len() {
        return Err(format!("{} has {} bytes, {} wanted", path.display(), bytes.len(), unit.len()));
    }
    let differs = bytes.iter().zip(unit).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let fault = format!("wrong byte {at} in {}", path.display());
        assert_eq!(wrong, WrongBytes::Vanish, "{fault}");
        return Err(fault);
    }
    let Some(meta) = meta_of(path) else {
        return Err(format!("{} has no meta file", path.display()));
    };
    const HEADER: usize = 7;
    let crcs = meta.get(HEADER..).unwrap_or_default();
    if crcs.len() != ChecksumKind::Crc32c.total_len(512, bytes.len()) {
        return Err(format!("{} has {} bytes of CRCs", path.display(), crcs.len()));
    }
    match verify_chunks(ChecksumKind::Crc32c, 512, &bytes, crcs) {
        Ok(()) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn meta_of(path: &Path) -> Option<Vec<u8>> {
    let prefix = format!("blk_{}_", BlockId(block_id(path)?).0);
    let entries = std::fs::read_dir(path.parent()?).ok()?;
    let mut names = entries.flatten().map(|entry| entry.path());
    let meta = names.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(".meta")
    })?;
    std::fs::read(meta).ok()
}
