//! Which DataNodes can be switched off while little is read, so that everything can still be read; and what that saves in a
//! day.
//!
//! A block is kept by a set of DataNodes, of which some are needed to read it: one of its replicas, or as many units of a
//! group as it has units of data. The rest is its margin: so many of the set may be off. DataNodes are chosen one after
//! the other, always one that takes the last of its margin from blocks on as few as possible of those that could
//! still be chosen. That is not the best choice there is (which is as hard as finding the largest independent set), but each
//! DataNode that is named can be off together with all before it.
//!
//! Where replicas were put at random, a few thousand blocks are enough to tie all DataNodes to each other, and hardly more
//! than the smallest margin can be off. [`Gears::by_placement`] is what a placement made for it could switch off.
//!
//! Source of the idea: the gears of the report on erasure coding for data-intensive scalable computing (Microsoft
//! Research and North Carolina State University, 2010): n - m + 1 of them where m of n units are needed.

use std::collections::HashMap;

/// Most DataNodes that are told apart.
pub const NODES_MAX: usize = 10_000;

/// Where all blocks are.
#[derive(Debug, Default)]
pub struct Gears {
    /// DataNodes that keep the same blocks, ascending, and the smallest margin of these.
    sets: HashMap<Box<[u16]>, usize>,
    /// Blocks that no DataNode can be missing from, and those that cannot be read as it is.
    tight: u64,
    unreadable: u64,
    blocks: u64,
    /// The smallest part of its set that a block can do without.
    smallest_share: Option<f64>,
}

/// A DataNode that cannot be told apart from so many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {NODES_MAX} DataNodes")]
pub struct TooManyNodes;

impl Gears {
    /// Takes a block or group: the DataNodes that keep it, by number, and how many of these are needed to read it.
    pub fn add(&mut self, nodes: &[usize], needed: usize) -> Result<(), TooManyNodes> {
        let mut set = Vec::with_capacity(nodes.len());
        for &node in nodes {
            if node >= NODES_MAX {
                return Err(TooManyNodes);
            }
            set.push(u16::try_from(node).map_err(|_| TooManyNodes)?);
        }
        set.sort_unstable();
        set.dedup();
        self.blocks += 1;
        // Two units on one DataNode go together: then so many fewer may be missing.
        let doubled = nodes.len() - set.len();
        let Some(margin) = nodes.len().checked_sub(needed) else {
            self.unreadable += 1;
            return Ok(());
        };
        let margin = margin.saturating_sub(doubled);
        self.tight += u64::from(margin == 0);
        if !set.is_empty() {
            let share = margin as f64 / set.len() as f64;
            self.smallest_share = Some(self.smallest_share.map_or(share, |least| least.min(share)));
            let known = self.sets.entry(set.into_boxed_slice()).or_insert(margin);
            *known = margin.min(*known);
        }
        Ok(())
    }

    /// Blocks and groups that were taken.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Those of which no DataNode may be off.
    pub fn tight(&self) -> u64 {
        self.tight
    }

    /// Those that cannot be read with all DataNodes on.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// DataNodes of 0..nodes that can be off together, in the order in which to switch them off, while each block
    /// outlives the loss of `spare` more.
    pub fn off(&self, nodes: usize, spare: usize) -> Vec<usize> {
        // By the DataNodes' order, so that the same blocks give the same answer.
        let mut sets: Vec<(&[u16], usize)> =
            self.sets.iter().map(|(set, &margin)| (&**set, margin.saturating_sub(spare))).collect();
        sets.sort_unstable();
        let nodes = nodes.min(NODES_MAX);
        let mut can: Vec<bool> = vec![true; nodes];
        let mut off = Vec::new();
        loop {
            // Those with whom a choice would use a set up, as bits.
            let words = nodes.div_ceil(64);
            let mut with = vec![0u64; words * nodes];
            for &(set, margin) in &sets {
                let members =
                    || set.iter().map(|&node| usize::from(node)).filter(move |&n| n < nodes);
                match margin {
                    0 => members().for_each(|node| can[node] = false),
                    1 => {
                        for a in members() {
                            members().for_each(|b| with[a * words + b / 64] |= 1 << (b % 64));
                        }
                    }
                    _ => {}
                }
            }
            let still: Vec<u64> = (0..words)
                .map(|word| {
                    let bits = (0..64).filter(|bit| can.get(word * 64 + bit) == Some(&true));
                    bits.fold(0, |all, bit| all | 1 << bit)
                })
                .collect();
            let lost = |node: usize| -> u32 {
                let row = &with[node * words..][..words];
                row.iter().zip(&still).map(|(a, b)| (a & b).count_ones()).sum()
            };
            let Some(chosen) = (0..nodes).filter(|&node| can[node]).min_by_key(|&node| lost(node))
            else {
                return off;
            };
            off.push(chosen);
            can[chosen] = false;
            for (set, margin) in &mut sets {
                if set.iter().any(|&node| usize::from(node) == chosen) {
                    *margin = margin.saturating_sub(1);
                }
            }
        }
    }

    /// DataNodes of `nodes` that could be off if each block were placed for it: the smallest part of a set that is
    /// not needed, of all DataNodes.
    pub fn by_placement(&self, nodes: usize) -> usize {
        (self.smallest_share.unwrap_or(1.0) * nodes as f64).floor() as usize
    }
}

/// A day: what part of its capacity is asked for in each equal part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    loads: Vec<f64>,
}

/// A list of loads that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "loads are numbers from 0 to 1 with commas between them, at most 1440 of a day, and not {0}"
)]
pub struct NoDay(String);

impl Default for Day {
    /// A day with little asked for in the night and a peak in the evening, hour by hour: an example, to be replaced by
    /// one's own.
    fn default() -> Day {
        let hours = [
            35, 30, 25, 22, 20, 22, 30, 45, 60, 75, 85, 90, 90, 88, 85, 85, 90, 95, 100, 95, 85,
            70, 55, 45,
        ];
        Day { loads: hours.iter().map(|&percent| f64::from(percent) / 100.0).collect() }
    }
}

impl Day {
    /// Reads `0.3,0.2,0.5`.
    pub fn parse(text: &str) -> Result<Day, NoDay> {
        let wrong = || NoDay(text.to_string());
        let loads: Vec<f64> = text
            .split(',')
            .map(|word| word.trim().parse().ok().filter(|load| (0.0..=1.0).contains(load)))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        match loads.len() <= 1440 {
            true => Ok(Day { loads }),
            false => Err(wrong()),
        }
    }

    /// What is on through it, of `nodes` of which `off_max` may be off.
    pub fn run(&self, nodes: usize, off_max: usize) -> Simulated {
        let least = nodes.saturating_sub(off_max);
        let on: Vec<usize> = self
            .loads
            .iter()
            .map(|load| ((load * nodes as f64).ceil() as usize).max(least).min(nodes))
            .collect();
        let hours = 24.0 / self.loads.len() as f64;
        let before = on.iter().cycle().skip(on.len().saturating_sub(1));
        let switched = on.iter().zip(before).map(|(now, before)| now.abs_diff(*before)).sum();
        let node_hours = on.iter().map(|&on| on as f64 * hours).sum();
        Simulated { on, node_hours, switched, of_node_hours: nodes as f64 * 24.0 }
    }
}

/// A day as it was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// DataNodes that are on in each part of the day.
    pub on: Vec<usize>,
    /// Hours that DataNodes are on, of all together.
    pub node_hours: f64,
    /// The same if none is switched off.
    pub of_node_hours: f64,
    /// How often one is switched on or off.
    pub switched: usize,
}

impl Simulated {
    /// The part of the energy that is saved, if a DataNode that is on takes as much whatever it does.
    pub fn saved(&self) -> f64 {
        match self.of_node_hours > 0.0 {
            true => 1.0 - self.node_hours / self.of_node_hours,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether every block is readable with these off, and outlives `spare` more.
    fn all_read(blocks: &[(Vec<usize>, usize)], off: &[usize], spare: usize) -> bool {
        blocks.iter().all(|(nodes, needed)| {
            let on = nodes.iter().filter(|node| !off.contains(node)).count();
            on >= needed + spare.min(nodes.len() - needed)
        })
    }

    fn gears(blocks: &[(Vec<usize>, usize)]) -> Gears {
        let mut gears = Gears::default();
        blocks.iter().for_each(|(nodes, needed)| gears.add(nodes, *needed).unwrap());
        gears
    }

    #[test]
    fn copies_on_three_rows_of_nodes_leave_one_row_on() {
        // Copy 1 of every block is in 0..4, copy 2 in 4..8, copy 3 in 8..12.
        let blocks: Vec<_> = (0..4)
            .flat_map(|a| (4..8).flat_map(move |b| (8..12).map(move |c| (vec![a, b, c], 1))))
            .collect();
        let gears = gears(&blocks);
        let off = gears.off(12, 0);
        assert!(all_read(&blocks, &off, 0));
        assert_eq!((off.len(), gears.by_placement(12)), (8, 8));
        let off = gears.off(12, 1);
        assert!(all_read(&blocks, &off, 1));
        assert_eq!(off.len(), 4);
    }

    #[test]
    fn whatever_is_named_leaves_everything_readable() {
        // Groups of three sizes on nodes by a fixed sequence that looks random.
        let mut x = 7usize;
        let mut next = |below: usize| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % below
        };
        for (width, needed, count) in [(3, 1, 30), (5, 3, 40), (9, 6, 25), (14, 10, 10)] {
            let nodes = 20;
            let blocks: Vec<_> = (0..count)
                .map(|_| {
                    let mut set: Vec<usize> = Vec::new();
                    while set.len() < width {
                        let node = next(nodes);
                        if !set.contains(&node) {
                            set.push(node);
                        }
                    }
                    (set, needed)
                })
                .collect();
            for spare in 0..=2 {
                let off = gears(&blocks).off(nodes, spare);
                assert!(all_read(&blocks, &off, spare), "{width} {needed} {spare}: {off:?}");
                let held = |node: &usize| blocks.iter().any(|(set, _)| set.contains(node));
                // Any m nodes may be missing, so so many can at least be off.
                let margin = (width - needed).saturating_sub(spare);
                assert!(off.iter().filter(|node| held(node)).count() >= margin, "{off:?}");
            }
        }
    }

    #[test]
    fn one_replica_ties_its_node_and_an_empty_node_is_free() {
        let gears = gears(&[(vec![0], 1), (vec![1, 2], 1), (vec![3, 3], 1)]);
        assert_eq!(gears.off(5, 0), [4, 1]);
        assert_eq!((gears.blocks(), gears.tight(), gears.unreadable()), (3, 2, 0));
    }

    #[test]
    fn what_cannot_be_read_anyway_is_counted_and_ties_nobody() {
        let gears = gears(&[(vec![0, 1], 3)]);
        assert_eq!(gears.unreadable(), 1);
        assert_eq!(gears.off(2, 0).len(), 2);
        assert_eq!(Gears::default().add(&[NODES_MAX], 1), Err(TooManyNodes));
    }

    #[test]
    fn a_day_keeps_on_what_is_asked_for_and_what_must_stay() {
        let day = Day::parse("0.1, 0.5,1,0.5").unwrap();
        let simulated = day.run(10, 6);
        assert_eq!(simulated.on, [4, 5, 10, 5]);
        assert_eq!(simulated.node_hours, 24.0 * 6.0);
        assert_eq!(simulated.switched, 1 + 1 + 5 + 5);
        assert!((simulated.saved() - 0.4).abs() < 1e-9);
        assert_eq!(Day::default().run(10, 0).saved(), 0.0);
        for wrong in ["", "2", "0.5,x", "-1"] {
            assert!(Day::parse(wrong).is_err(), "{wrong}");
        }
    }
}
