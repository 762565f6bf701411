//! How much a reader asks for at once, by how it has been used: the rule only.
//!
//! A reader begins as one that reads all of its file. After a jump it asks for little, and for more while reads follow
//! each other, so that what nobody wants is never more than a few times what somebody wanted.

/// What is asked for after a jump, and as long as reads follow each other: bytes. Behind the last one comes the rest
/// of the file.
const STEPS: [u64; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// The most bytes that are asked for at once and without reading ahead.
pub(super) const MOST_AT_ONCE: u64 = 4 << 20;

/// The longest piece that is asked for to be kept for later reads: longer ones come as a stream.
pub(super) const MOST_KEPT: u64 = 1 << 20;

/// Bytes that are rather received than skipped.
const SHORT: u64 = 64 << 10;

/// Reads that follow each other.
#[derive(Debug)]
pub(super) struct Run {
    /// How often something was asked for since the last jump, at most as often as there are steps.
    asked: usize,
    /// Bytes that were wanted since the last jump or skip.
    wanted: u64,
}

impl Run {
    /// That of a reader at the start of its file.
    pub(super) fn of_all() -> Run {
        Run { asked: STEPS.len(), wanted: 0 }
    }

    /// How many bytes to ask for, where `wanted` are; `None`: the rest of the file.
    pub(super) fn next(&mut self, wanted: u64) -> Option<u64> {
        let step = *STEPS.get(self.asked)?;
        self.asked += 1;
        Some(step.max(wanted))
    }

    /// Bytes were handed out.
    pub(super) fn took(&mut self, count: usize) {
        self.wanted += count as u64;
    }

    /// The next read is `ahead` bytes further on. Whether that is a gap in the run, which is short beside what was
    /// wanted before it; else a new run begins.
    pub(super) fn skips(&mut self, ahead: u64) -> bool {
        let wanted = std::mem::take(&mut self.wanted);
        let goes_on = wanted > 0 && ahead <= wanted.max(SHORT);
        if !goes_on {
            self.jump();
        }
        goes_on
    }

    /// The next read is somewhere else.
    pub(super) fn jump(&mut self) {
        (self.asked, self.wanted) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_begins_with_all_of_its_file_and_after_a_jump_with_little() {
        let mut run = Run::of_all();
        assert_eq!(run.next(10), None);
        run.jump();
        let asked: Vec<_> = (0..6).map(|_| run.next(100_000)).collect();
        let more = [100_000, 100_000, 256 << 10, 1 << 20, 4 << 20].map(Some);
        assert_eq!(asked[..5], more);
        assert_eq!(asked[5], None);
    }

    #[test]
    fn a_skip_ends_a_run_when_it_is_longer_than_what_was_wanted() {
        let mut run = Run::of_all();
        assert!(!run.skips(1), "nothing was read yet");
        run.jump();
        for (took, ahead, goes_on) in [
            (1, SHORT, true),
            (1, SHORT + 1, false),
            (1 << 20, 1 << 20, true),
            (1 << 20, (1 << 20) + 1, false),
        ] {
            run.next(0);
            run.took(took);
            assert_eq!(run.skips(ahead), goes_on, "{ahead} after {took}");
            assert_eq!(run.asked, usize::from(goes_on));
            run.jump();
        }
    }
}
