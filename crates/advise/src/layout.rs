//! Layouts that files may have, and what a file takes in each.

use cairn_stripe::geometry::Geometry;
use cairn_stripe::{Policy, PolicyLayout};

/// How bytes are made safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Whole copies.
    Copies(u16),
    /// Block groups that clients write.
    Striped(Policy),
    /// Parity over whole blocks, which servers put there.
    Contiguous(Policy),
}

impl Layout {
    /// The layouts that are compared: three copies, the policies of Reed-Solomon that stripe, and their contiguous siblings.
    pub fn compared() -> Vec<Layout> {
        let policies = Policy::built_in().into_iter();
        let rs = policies.filter(|of| of.name.starts_with("RS-") && !of.name.contains("LEGACY"));
        let coded = rs.map(|policy| match policy.layout {
            PolicyLayout::Striped => Layout::Striped(policy),
            PolicyLayout::Contiguous => Layout::Contiguous(policy),
        });
        std::iter::once(Layout::Copies(3)).chain(coded).collect()
    }

    /// Its name: `3x`, or that of the policy.
    pub fn name(&self) -> String {
        match self {
            Layout::Copies(copies) => format!("{copies}x"),
            Layout::Striped(policy) | Layout::Contiguous(policy) => policy.name.clone(),
        }
    }

    /// Data units of a group; 1 for copies.
    pub fn data_units(&self) -> usize {
        match self {
            Layout::Copies(_) => 1,
            Layout::Striped(policy) | Layout::Contiguous(policy) => policy.schema.data_units(),
        }
    }

    /// Units that may be lost.
    pub fn may_lose(&self) -> usize {
        match self {
            Layout::Copies(copies) => usize::from(copies.saturating_sub(1)),
            Layout::Striped(policy) | Layout::Contiguous(policy) => policy.schema.parity_units(),
        }
    }

    /// DataNodes that a group takes.
    pub fn width(&self) -> usize {
        self.data_units() + self.may_lose()
    }
}

/// What something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes on disks.
    pub bytes: u64,
    /// Blocks and block groups that the NameNode has an entry for.
    pub blocks: u64,
    /// Replicas and internal blocks, each a file on a DataNode.
    pub replicas: u64,
    /// Bytes that are read when each of `bytes` is lost once and made anew.
    pub repair_reads: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, more: Cost) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.blocks = self.blocks.saturating_add(more.blocks);
        self.replicas = self.replicas.saturating_add(more.replicas);
        self.repair_reads = self.repair_reads.saturating_add(more.repair_reads);
    }
}

impl Cost {
    /// What copies of blocks take.
    pub fn of_copies(len: u64, blocks: u64, copies: u64) -> Cost {
        let bytes = len.saturating_mul(copies);
        // With one copy nothing can be read.
        let repair_reads = if copies > 1 { bytes } else { 0 };
        Cost { bytes, blocks, replicas: blocks.saturating_mul(copies), repair_reads }
    }

    /// What a file of `len` bytes takes in stripes.
    pub fn of_stripes(len: u64, block_len: u64, geometry: &Geometry) -> Cost {
        // As a NameNode has it, a block is no shorter than a cell.
        let full = geometry.full_group_len(block_len.max(geometry.cell_len()));
        let (whole, rest) = (len / full, len % full);
        let mut cost = Cost::of_group(full.min(len), geometry).times(whole);
        if rest > 0 {
            cost += Cost::of_group(rest, geometry);
        }
        cost
    }

    /// What groups of these lengths take.
    pub fn of_groups(lens: impl Iterator<Item = u64>, geometry: &Geometry) -> Cost {
        let mut cost = Cost::default();
        lens.for_each(|len| cost += Cost::of_group(len, geometry));
        cost
    }

    /// What one group takes.
    pub fn of_group(len: u64, geometry: &Geometry) -> Cost {
        if len == 0 {
            return Cost { blocks: 1, ..Cost::default() };
        }
        let bytes = geometry.raw_len(len);
        let sources = geometry.data_units_with_bytes(len) as u64;
        let replicas = sources + geometry.m() as u64;
        Cost { bytes, blocks: 1, replicas, repair_reads: bytes.saturating_mul(sources) }
    }

    /// What members of a contiguous group take with their parities.
    pub fn of_members(lens: &[u64], m: u64) -> Cost {
        let longest = lens.iter().max().copied().unwrap_or(0);
        let sum = lens.iter().fold(0u64, |sum, len| sum.saturating_add(*len));
        let bytes = sum.saturating_add(longest.saturating_mul(m));
        let members = lens.len() as u64;
        let repair_reads = bytes.saturating_mul(members);
        // Each parity is a block of its own to the NameNode.
        Cost { bytes, blocks: members + m, replicas: members + m, repair_reads }
    }

    pub(crate) fn times(self, count: u64) -> Cost {
        Cost {
            bytes: self.bytes.saturating_mul(count),
            blocks: self.blocks.saturating_mul(count),
            replicas: self.replicas.saturating_mul(count),
            repair_reads: self.repair_reads.saturating_mul(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_stripe::geometry::group_lens;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn geometry(name: &str) -> Geometry {
        let all = Policy::built_in();
        Geometry::from(all.iter().find(|policy| policy.name == name).unwrap())
    }

    #[test]
    fn small_files_take_what_the_layout_gives_them() {
        let wide = geometry("RS-6-3-1024k");
        let cost = |len| Cost::of_stripes(len, 128 * MIB, &wide);
        // One data unit and three parities, each as long as the file.
        assert_eq!((cost(10_000).bytes, cost(10_000).replicas), (40_000, 4));
        assert_eq!((cost(2 * MIB).bytes, cost(2 * MIB).replicas), (5 * MIB, 5));
        // The vendor's count for a file of 10 MB: one group, nine internal blocks.
        assert_eq!((cost(10 * MIB).blocks, cost(10 * MIB).replicas), (1, 9));
        assert_eq!(cost(768 * MIB).bytes, 1152 * MIB);
        assert_eq!((cost(769 * MIB).blocks, cost(769 * MIB).bytes), (2, 1156 * MIB));
        assert_eq!(cost(0), Cost::default());
        let fine = Cost::of_stripes(384 << 10, 128 * MIB, &geometry("RS-6-3-64k"));
        assert_eq!(fine.bytes, 576 << 10);
    }

    #[test]
    fn a_repair_reads_as_many_units_as_there_are() {
        let narrow = geometry("RS-3-2-1024k");
        assert_eq!(Cost::of_group(100, &narrow).repair_reads, 300);
        assert_eq!(Cost::of_group(3 * MIB, &narrow).repair_reads, 15 * MIB);
        assert_eq!(Cost::of_copies(100, 1, 3).repair_reads, 300);
        assert_eq!(Cost::of_copies(100, 1, 1).repair_reads, 0);
        let group = Cost::of_members(&[10, 20, 30], 2);
        assert_eq!((group.bytes, group.blocks, group.repair_reads), (120, 5, 360));
    }

    proptest! {
        #[test]
        fn stripes_cost_what_their_groups_cost(len in 0..5_000_000_000u64, block in 1..300u64) {
            let geometry = geometry("RS-10-4-1024k");
            let full = geometry.full_group_len(block * MIB);
            let want = Cost::of_groups(group_lens(len, full), &geometry);
            prop_assert_eq!(Cost::of_stripes(len, block * MIB, &geometry), want);
        }
    }
}
