//! The CRCs of the store's blocks on disk, so that a start need not read the whole store to know them.
//!
//! Two files take turns. One is written and synced whenever the store is about to be: before its new root counts, and
//! after all blocks of the new state are written. A block that the old root reaches is never overwritten, so what is
//! in the newer file fits whichever of the two roots a crash leaves. A file that a crash has cut short was being
//! written, and the old root counts: the other file has it. One that is damaged otherwise makes the start read
//! everything, as if there were none.
//!
//! ```text
//! "CAIRNCRC" 8 | version = 2, 4 | generation 8 | count 8 | CRC32C of these 4
//! | count times CRC32C 4 | CRC32C of all before 4
//! ```
//! Numbers are little endian; the CRC of a block that is not known is 0.

use crate::disk::{DiskFile, Folders};
use cairn_codec::crc::crc32c;
use std::io;
use std::path::Path;

const MAGIC: &[u8; 8] = b"CAIRNCRC";
const VERSION: u32 = 2;
const HEADER_LEN: usize = 32;

/// Where CRCs are kept, and which generation is the last.
#[derive(Debug)]
pub(super) struct CrcTable {
    files: [Box<dyn DiskFile>; 2],
    generation: u64,
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// Generation and CRCs.
    Whole(u64, Vec<u32>),
    /// Less than was to be written; or nothing yet.
    CutShort,
    /// Other bytes than were written.
    Damaged,
}

fn parse(bytes: &[u8]) -> Content {
    let Some((header, sum)) =
        bytes.get(..HEADER_LEN).and_then(|header| header.split_last_chunk::<4>())
    else {
        return Content::CutShort;
    };
    let (Some(generation), Some(count)) = (number(header, 12), number(header, 20)) else {
        return Content::Damaged;
    };
    let is_known = header[..8] == *MAGIC && header[8..12] == VERSION.to_le_bytes();
    if !is_known || crc32c(0, header) != u32::from_le_bytes(*sum) {
        return Content::Damaged;
    }
    let listed = bytes[HEADER_LEN..].split_last_chunk::<4>();
    let len = listed.map_or(0, |(list, _)| list.len() as u64);
    let wanted = count.saturating_mul(4);
    match listed {
        _ if len < wanted => Content::CutShort,
        Some((list, sum))
            if len == wanted
                && crc32c(0, &bytes[..HEADER_LEN + list.len()]) == u32::from_le_bytes(*sum) =>
        {
            let (crcs, _) = list.as_chunks::<4>();
            Content::Whole(generation, crcs.iter().map(|crc| u32::from_le_bytes(*crc)).collect())
        }
        // Without any CRC what comes last can be missing too.
        None => Content::CutShort,
        Some(_) => Content::Damaged,
    }
}

impl CrcTable {
    /// The table beside the store at `path`, and the CRCs if what is there of them can be believed.
    pub(super) fn open(
        disk: &dyn Folders,
        path: &Path,
    ) -> io::Result<(CrcTable, Option<Vec<u32>>)> {
        let paths = ["crc-0", "crc-1"].map(|name| path.with_extension(name));
        let open = |path: &Path| {
            if path.try_exists()? { disk.open_file(path) } else { disk.create_file(path) }
        };
        let files = [open(&paths[0])?, open(&paths[1])?];
        path.parent().map_or(Ok(()), |folder| disk.sync(folder))?;
        let mut newest: Option<(u64, Vec<u32>)> = None;
        let mut is_damaged = false;
        for path in &paths {
            match parse(&std::fs::read(path)?) {
                Content::Whole(generation, crcs)
                    if newest.as_ref().is_none_or(|newest| newest.0 < generation) =>
                {
                    newest = Some((generation, crcs));
                }
                Content::Whole(..) | Content::CutShort => {}
                Content::Damaged => is_damaged = true,
            }
        }
        let generation = newest.as_ref().map_or(0, |newest| newest.0);
        if is_damaged {
            // The one that is left may be older than the store.
            for file in &files {
                file.set_len(0)?;
                file.sync()?;
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
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        bytes.extend(crcs.iter().flat_map(|crc| crc.to_le_bytes()));
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        let file = &self.files[(self.generation % 2) as usize];
        // From here on it is either short or whole.
        file.set_len(0)?;
        file.write(0, &bytes)?;
        file.sync()?;
        self.generation += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn the_newer_one_counts_and_a_damaged_one_spoils_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let (mut table, none) = CrcTable::open(&Disk, &path).unwrap();
        assert_eq!(none, None);
        for round in 1..6 {
            table.save(&vec![round; round as usize]).unwrap();
            let (_, crcs) = CrcTable::open(&Disk, &path).unwrap();
            assert_eq!(crcs, Some(vec![round; round as usize]));
        }
        let files = ["crc-0", "crc-1"].map(|name| path.with_extension(name));
        for file in &files {
            let whole = std::fs::read(file).unwrap();
            let other = files.iter().find(|other| *other != file).unwrap();
            let kept = std::fs::read(other).unwrap();
            let flipped = (0..whole.len()).map(|at| {
                let mut bytes = whole.clone();
                bytes[at] ^= 8;
                bytes
            });
            for bad in flipped.chain([[&whole[..], b"x"].concat()]) {
                std::fs::write(file, bad).unwrap();
                assert_eq!(CrcTable::open(&Disk, &path).unwrap().1, None);
                // And not believed the next time either.
                assert_eq!(CrcTable::open(&Disk, &path).unwrap().1, None);
                std::fs::write(file, &whole).unwrap();
                std::fs::write(other, &kept).unwrap();
            }
        }
        assert_eq!(CrcTable::open(&Disk, &path).unwrap().1, Some(vec![5; 5]));
    }

    #[test]
    fn what_a_crash_has_cut_short_leaves_the_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let (mut table, _) = CrcTable::open(&Disk, &path).unwrap();
        table.save(&[]).unwrap();
        for round in 1..6_u32 {
            table.save(&vec![round; round as usize]).unwrap();
            let newest = path.with_extension(if round % 2 == 0 { "crc-0" } else { "crc-1" });
            let whole = std::fs::read(&newest).unwrap();
            for len in 0..whole.len() {
                std::fs::write(&newest, &whole[..len]).unwrap();
                let (mut table, crcs) = CrcTable::open(&Disk, &path).unwrap();
                assert_eq!(crcs, Some(vec![round - 1; round as usize - 1]), "{len} bytes");
                // The next one takes the place of the one that is short.
                table.save(&[9]).unwrap();
                assert_eq!(CrcTable::open(&Disk, &path).unwrap().1, Some(vec![9]), "{len} bytes");
            }
            std::fs::write(&newest, &whole).unwrap();
        }
        // With none that is whole everything is to be read.
        for name in ["crc-0", "crc-1"] {
            let file = path.with_extension(name);
            let bytes = std::fs::read(&file).unwrap();
            std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
        }
        assert_eq!(CrcTable::open(&Disk, &path).unwrap().1, None);
    }
}
