//! The CRCs of the store's blocks on disk, so that a start need not read the whole store to know them.
//!
//! Two files take turns. One is written and synced whenever the store is about to be: before its new root counts, and
//! after all blocks of the new state are written. A block that the old root reaches is never overwritten, so what is
//! in the newer file fits whichever of the two roots a crash leaves. A file that is neither empty nor whole makes the
//! start read everything, as if there were none.
//!
//! ```text
//! "CAIRNCRC" 8 | version = 1, 4 | generation 8 | count 8 | count times CRC32C 4 | CRC32C of all before 4
//! ```
//! Numbers are little endian; the CRC of a block that is not known is 0.

use super::sync_dir;
use cairn_codec::crc::crc32c;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"CAIRNCRC";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 28;

/// Where CRCs are kept, and which generation is the last.
#[derive(Debug)]
pub(super) struct CrcTable {
    files: [File; 2],
    generation: u64,
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Generation and CRCs of a file; `None` if it is not whole.
fn parse(bytes: &[u8]) -> Option<(u64, Vec<u32>)> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if body.get(..8)? != MAGIC || body.get(8..12)? != VERSION.to_le_bytes() {
        return None;
    }
    let (generation, count) = (number(body, 12)?, number(body, 20)?);
    let list = &body[HEADER_LEN..];
    if crc32c(0, body) != u32::from_le_bytes(*sum) || list.len() as u64 != count.checked_mul(4)? {
        return None;
    }
    let (crcs, _) = list.as_chunks::<4>();
    Some((generation, crcs.iter().map(|crc| u32::from_le_bytes(*crc)).collect()))
}

impl CrcTable {
    /// The table beside the store at `path`, and the CRCs if all that is there of them is whole.
    pub(super) fn open(path: &Path) -> io::Result<(CrcTable, Option<Vec<u32>>)> {
        let mut options = std::fs::OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let open = |name| options.open(path.with_extension(name));
        let files = [open("crc-0")?, open("crc-1")?];
        path.parent().map_or(Ok(()), sync_dir)?;
        let mut newest: Option<(u64, Vec<u32>)> = None;
        let mut is_whole = true;
        for mut file in &files {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            match parse(&bytes) {
                _ if bytes.is_empty() => {}
                Some(found) if newest.as_ref().is_none_or(|newest| newest.0 < found.0) => {
                    newest = Some(found);
                }
                Some(_) => {}
                None => is_whole = false,
            }
        }
        let generation = newest.as_ref().map_or(0, |newest| newest.0);
        if !is_whole {
            // The one that is left may be older than the store.
            for file in &files {
                file.set_len(0)?;
                file.sync_all()?;
            }
            return Ok((CrcTable { files, generation }, None));
        }
        Ok((CrcTable { files, generation }, newest.map(|newest| newest.1)))
    }

    /// Makes `crcs` durable. After an error the table must not be used again.
    pub(super) fn save(&mut self, crcs: &[u32]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + 4 * crcs.len() + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.generation + 1).to_le_bytes());
        bytes.extend_from_slice(&(crcs.len() as u64).to_le_bytes());
        bytes.extend(crcs.iter().flat_map(|crc| crc.to_le_bytes()));
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        let file = &self.files[(self.generation % 2) as usize];
        file.write_all_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_data()?;
        self.generation += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_one_counts_and_a_damaged_one_spoils_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let (mut table, none) = CrcTable::open(&path).unwrap();
        assert_eq!(none, None);
        for round in 1..6 {
            table.save(&vec![round; round as usize]).unwrap();
            let (_, crcs) = CrcTable::open(&path).unwrap();
            assert_eq!(crcs, Some(vec![round; round as usize]));
        }
        let files = ["crc-0", "crc-1"].map(|name| path.with_extension(name));
        for file in &files {
            let whole = std::fs::read(file).unwrap();
            let other = files.iter().find(|other| *other != file).unwrap();
            let kept = std::fs::read(other).unwrap();
            for bad in [whole[..whole.len() - 1].to_vec(), [&whole[..], b"x"].concat(), {
                let mut bytes = whole.clone();
                bytes[17] ^= 8;
                bytes
            }] {
                std::fs::write(file, bad).unwrap();
                assert_eq!(CrcTable::open(&path).unwrap().1, None);
                // And not believed the next time either.
                assert_eq!(CrcTable::open(&path).unwrap().1, None);
                std::fs::write(file, &whole).unwrap();
                std::fs::write(other, &kept).unwrap();
            }
        }
        assert_eq!(CrcTable::open(&path).unwrap().1, Some(vec![5; 5]));
    }
}
