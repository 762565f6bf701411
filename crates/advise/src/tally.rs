//! What is known of the files of a row.

use crate::layout::Cost;

/// Ages at which readers are told apart, in days.
pub const AGES: [u64; 4] = [30, 90, 365, u64::MAX];
/// Lengths below which a file is short, by the kind of short that matters.
pub const SHORT: [u64; 3] = [1 << 20, 6 << 20, 128 << 20];
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Sums over files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files.
    pub files: u64,
    /// Their bytes, once.
    pub bytes: u64,
    /// What they take now.
    pub now: Cost,
    /// What they would take, by the numbers of [`crate::Layout::compared`].
    pub then: Vec<Cost>,
    /// Files that are striped now.
    pub striped: u64,
    /// Files that are open.
    pub open: u64,
    /// Files shorter than each of [`SHORT`].
    pub short: [u64; 3],
    /// Bytes that were last read so many days ago, by [`AGES`]; all older ones in the last.
    pub read_ago: [u64; 4],
    /// When one of them was last written or read, in milliseconds since 1970.
    pub last_ms: (u64, u64),
    /// Bytes of files with fewer than two copies and no parity.
    pub unsafe_bytes: u64,
}

impl Tally {
    /// Nothing yet, of so many layouts.
    pub fn new(layouts: usize) -> Tally {
        Tally { then: vec![Cost::default(); layouts], ..Tally::default() }
    }

    /// Adds the files of another row.
    pub fn merge(&mut self, other: &Tally) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.now += other.now;
        self.then.iter_mut().zip(&other.then).for_each(|(sum, more)| *sum += *more);
        self.striped += other.striped;
        self.open += other.open;
        self.short.iter_mut().zip(other.short).for_each(|(sum, more)| *sum += more);
        for (sum, more) in self.read_ago.iter_mut().zip(other.read_ago) {
            *sum = sum.saturating_add(more);
        }
        self.last_ms.0 = self.last_ms.0.max(other.last_ms.0);
        self.last_ms.1 = self.last_ms.1.max(other.last_ms.1);
        self.unsafe_bytes = self.unsafe_bytes.saturating_add(other.unsafe_bytes);
    }

    /// Notes the age and the length of a file.
    pub(crate) fn note(&mut self, len: u64, (written_ms, read_ms): (u64, u64), now_ms: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(len);
        for (sum, below) in self.short.iter_mut().zip(SHORT) {
            *sum += u64::from(len < below);
        }
        // Where access times are off, a file has been read when it was written.
        let days = now_ms.saturating_sub(read_ms.max(written_ms)) / DAY_MS;
        let class = AGES.iter().position(|age| days < *age).unwrap_or(AGES.len() - 1);
        self.read_ago[class] = self.read_ago[class].saturating_add(len);
        self.last_ms = (self.last_ms.0.max(written_ms), self.last_ms.1.max(read_ms));
    }
}
