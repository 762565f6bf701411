//! The one source of chance: splitmix64 from a seed.

/// Numbers that look random and follow from a seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed ^ 0x6361_6972_6e21_7369)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `from..to`; `from` if that is empty.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        if to <= from { from } else { from + self.any() % (to - from) }
    }

    /// An index below `count`; 0 if that is 0.
    pub fn index(&mut self, count: usize) -> usize {
        self.range(0, count as u64) as usize
    }

    /// Yes, once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.range(0, times) == 0
    }

    /// One of `items`, if there are any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.index(items.len());
        items.get(at)
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.any().to_le_bytes()).take(count).collect()
    }
}
