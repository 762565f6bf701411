//! Blocks by the types of the storages that they are on, against what their policies ask for.
//!
//! Source: Hadoop 3.5.0 `StoragePolicySummary`.

use cairn_redundancy::{StoragePolicy, StorageType};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// How many blocks are on which types of storage, by the number of their policy.
#[derive(Clone, Debug, Default)]
pub(super) struct StorageSummary {
    combinations: BTreeMap<(u8, Vec<usize>), u64>,
}

impl StorageSummary {
    /// Counts a block of a file for which that policy is in force.
    pub(super) fn add(&mut self, policy: StoragePolicy, types: impl Iterator<Item = StorageType>) {
        let mut ranks: Vec<usize> = types.map(StorageType::rank).collect();
        ranks.sort_unstable();
        *self.combinations.entry((policy.id, ranks)).or_default() += 1;
    }
}

/// The first policy that would put blocks on just these types.
fn policy_of(ranks: &[usize]) -> Option<StoragePolicy> {
    StoragePolicy::ALL.into_iter().find(|policy| {
        let mut wanted: Vec<usize> =
            policy.creation.iter().copied().map(StorageType::rank).collect();
        wanted.sort_unstable();
        let Some((head, rest)) = ranks.split_at_checked(wanted.len()) else { return false };
        head == wanted && rest.iter().all(|rank| Some(rank) == wanted.last())
    })
}

/// Such as `DISK:3(HOT)`.
fn describe(ranks: &[usize], policy: Option<StoragePolicy>) -> String {
    let counts = StorageType::ALL.into_iter().enumerate().filter_map(|(rank, kind)| {
        let count = ranks.iter().filter(|other| **other == rank).count();
        (count > 0).then(|| format!("{}:{count}", kind.name()))
    });
    let types = counts.collect::<Vec<_>>().join(",");
    policy.map_or(types.clone(), |policy| format!("{types}({})", policy.name))
}

impl fmt::Display for StorageSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.combinations.values().sum();
        let mut rows: Vec<_> = self.combinations.iter().collect();
        rows.sort_by_key(|(_, count)| Reverse(**count));
        f.write_str(
            "\nBlocks satisfying the specified storage policy:\n\
             Storage Policy                  # of blocks       % of blocks\n",
        )?;
        let mut others = String::new();
        for ((specified, ranks), count) in rows {
            let actual = policy_of(ranks);
            let name = describe(ranks, actual);
            let share = format!("{:.4}%", *count as f64 * 100.0 / total as f64);
            if actual.is_some_and(|policy| policy.id == *specified) {
                writeln!(f, "{name:<25} {count:>10}  {share:>20}")?;
            } else {
                let wanted = StoragePolicy::by_id(*specified).name;
                others += &format!("{name:<35} {wanted:<20} {count:>10}  {share:>20}\n");
            }
        }
        if others.is_empty() {
            return f.write_str("\nAll blocks satisfy specified storage policy.\n");
        }
        write!(
            f,
            "\nBlocks NOT satisfying the specified storage policy:\nStorage Policy                  \
             Specified Storage Policy      # of blocks       % of blocks\n{others}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StorageType::{Archive, Disk, Ssd};

    #[test]
    fn blocks_are_counted_by_their_types() {
        let mut summary = StorageSummary::default();
        for _ in 0..2 {
            summary.add(StoragePolicy::HOT, [Disk, Disk, Disk].into_iter());
        }
        summary.add(StoragePolicy::by_id(10), [Disk, Ssd, Disk].into_iter());
        summary.add(StoragePolicy::by_id(2), [Disk, Archive, Disk].into_iter());
        let wanted = "
Blocks satisfying the specified storage policy:
Storage Policy                  # of blocks       % of blocks
DISK:3(HOT)                        2              50.0000%
SSD:1,DISK:2(ONE_SSD)              1              25.0000%

Blocks NOT satisfying the specified storage policy:
Storage Policy                  Specified Storage Policy      # of blocks       % of blocks
DISK:2,ARCHIVE:1                    COLD                          1              25.0000%
";
        assert_eq!(summary.to_string(), wanted);
    }
}
