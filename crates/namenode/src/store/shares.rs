//! What each part of the store's cache may have of its bytes.

/// A packed namespace takes one byte of so many on disk, about: 70 of 183 for a file with a block.
const PACKED_PART: u64 = 26;
const PACKED_OF: u64 = 10;
/// Pages that are enough where hardly anything is looked for in the file.
const PAGES_MIN: usize = 64 << 20;

/// Bytes of the parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Of records of files that are asked for again and again.
    pub(super) records: usize,
    /// Of so many such records one is kept when there is no room: where all is packed too, it need not be the last.
    pub(super) one_of: u32,
    /// Of pages of directories as they were encoded for clients.
    pub(super) listings: usize,
    /// Of pages of the store's file.
    pub(super) pages: usize,
    /// Of packed records.
    pub(super) runs: usize,
}

impl Shares {
    /// Those of a cache, for a file of that size. Records are packed if all of them have room: with a part of them a
    /// cache finds less than with whole records of those files that are asked for.
    pub(super) fn of(cache: usize, file: u64) -> Shares {
        let (records, listings) = (cache / 5, cache / 16);
        let pages = (cache / 16).max(PAGES_MIN.min(cache / 4));
        let runs = cache - records - listings - pages;
        if file / PACKED_PART * PACKED_OF <= runs as u64 {
            return Shares { records, one_of: 4, listings, pages, runs };
        }
        let (records, listings) = (cache / 2, cache / 8);
        Shares { records, one_of: 1, listings, pages: cache - records - listings, runs: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_packed_or_nothing() {
        let mib = |len: usize| len << 20;
        let sum = |shares: &Shares| shares.records + shares.listings + shares.pages + shares.runs;
        for (cache, file, is_packed) in [
            (mib(256), 0, true),
            (mib(256), 300 << 20, true),
            (mib(256), 1747 << 20, false),
            (mib(1024), 1747 << 20, true),
            (mib(1024), 2000 << 20, false),
            (1 << 20, 4096, true),
            (0, 4096, false),
        ] {
            let shares = Shares::of(cache, file);
            assert_eq!(shares.runs > 0, is_packed, "{cache} {file}");
            assert_eq!(sum(&shares), cache);
        }
    }
}
