//! Which units of a contiguous group serve what is lost, and what is tried after an attempt that fails.

use super::{GroupError, Layout};

/// See the module.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Slots of units that can be read, the best first; one may be there more than once.
    listed: Vec<usize>,
    /// Units that were left out for one attempt.
    tried: Vec<usize>,
    /// The one that is left out now.
    left_out: Option<usize>,
}

impl Sources {
    /// Those that can be read.
    pub fn new(best_first: impl IntoIterator<Item = usize>) -> Sources {
        let listed = best_first.into_iter().collect();
        Sources { listed, tried: Vec::new(), left_out: None }
    }

    /// Which to read now. Fails if they are too few.
    pub fn chosen(&self, layout: &Layout) -> Result<Vec<usize>, GroupError> {
        let wanted: Vec<usize> =
            self.listed.iter().copied().filter(|slot| Some(*slot) != self.left_out).collect();
        layout.sources(&wanted)
    }

    /// A unit cannot be read, or is not what was recorded: it serves no more. Returns whether it was among them.
    pub fn lost(&mut self, slot: usize) -> bool {
        let before = self.listed.len();
        self.listed.retain(|listed| *listed != slot);
        self.listed.len() < before
    }

    /// What was made of the `used` units is not believed. If it is one of them that is `wrong`, it serves no more; where that
    /// is not known, one after the other is left out. Returns false when all were.
    pub fn unbelieved(&mut self, wrong: Option<usize>, used: &[usize]) -> bool {
        if wrong.is_some_and(|slot| used.contains(&slot) && self.lost(slot)) {
            return true;
        }
        self.left_out = used.iter().copied().find(|slot| !self.tried.contains(slot));
        self.tried.extend(self.left_out);
        self.left_out.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_left_out_once_and_those_that_are_lost_for_good() {
        let layout = Layout::new(2, vec![10, 10, 10], 10, 4).unwrap();
        let mut sources = Sources::new([4, 0, 1, 1, 3]);
        assert_eq!(sources.chosen(&layout), Ok(vec![4, 0, 1]));
        let mut used = Vec::new();
        while sources.unbelieved(Some(2), &sources.chosen(&layout).unwrap_or_default()) {
            used.push(sources.chosen(&layout).unwrap());
        }
        assert_eq!(used, [[0, 1, 3], [4, 1, 3], [4, 0, 3], [4, 0, 1]]);
        let mut sources = Sources::new([4, 0, 1, 1, 3]);
        assert!(sources.unbelieved(Some(1), &[4, 0, 1]) && !sources.lost(1));
        assert_eq!(sources.chosen(&layout), Ok(vec![4, 0, 3]));
        assert!(sources.unbelieved(None, &[4, 0, 3]));
        assert!(sources.chosen(&layout).is_err(), "none is left to take its place");
    }
}
