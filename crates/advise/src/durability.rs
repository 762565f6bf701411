//! How safe a layout is, and what keeping it safe moves over the network.
//!
//! A group of `n` units of which `m` may be lost is a Markov chain whose state is the number of units that are lost:
//!
//! ```text
//!      n·λ        (n-1)·λ            (n-m)·λ
//!  0 ───────▶ 1 ───────────▶ 2 … m ───────────▶ lost
//!    ◀───────   ◀───────────
//!        μ            μ
//! ```
//! `λ` is how often a unit is lost, `μ` how often one is made anew. With `h(i)` the mean time from `i` to `i + 1` lost units,
//! `h(0) = 1 / nλ` and `h(i) = (1 + μ·h(i-1)) / (n-i)λ`; the mean time to data loss is the sum of `h(0)` to `h(m)`, divided by
//! the number of groups. Losses count as independent: racks that fail as one, power cuts and faults of programs do not
//! follow this, so the figures compare layouts and promise nothing.
//!
//! Source: D. Patterson, G. Gibson, R. Katz, *A Case for Redundant Arrays of Inexpensive Disks* (SIGMOD 1988), and
//! D. Ford and others, *Availability in Globally Distributed Storage Systems* (OSDI 2010), section 7.

use crate::layout::{Cost, Layout};

const HOURS_A_YEAR: f64 = 8766.0;

/// How often what fails, and how fast it is mended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// The part of all disks that are lost in a year, whatever the reason.
    pub disks_a_year: f64,
    /// Bytes of a disk.
    pub disk_len: f64,
    /// DataNodes.
    pub nodes: f64,
    /// Bytes a second that each DataNode reads for repair.
    pub repair_rate: f64,
    /// Hours until a loss is noticed. Hadoop's default is ten and a half minutes.
    pub notice_hours: f64,
}

impl Default for Failures {
    fn default() -> Failures {
        Failures {
            disks_a_year: 0.03,
            disk_len: 16e12,
            nodes: 20.0,
            repair_rate: 50e6,
            notice_hours: 0.175,
        }
    }
}

impl Failures {
    /// Hours in which a lost disk's units are made anew, from `sources` units each.
    pub fn repair_hours(&self, sources: usize) -> f64 {
        let read = self.disk_len * sources as f64;
        self.notice_hours + read / (self.nodes.max(1.0) * self.repair_rate.max(1.0)) / 3600.0
    }

    /// Years until a group is lost, on average.
    pub fn group_years(&self, layout: &Layout) -> f64 {
        let (n, m) = (layout.width(), layout.may_lose());
        let lost = -(1.0 - self.disks_a_year.clamp(1e-9, 0.999_999)).ln() / HOURS_A_YEAR;
        let mended = 1.0 / self.repair_hours(layout.data_units());
        let (mut sum, mut step) = (0.0, 0.0);
        for i in 0..=m {
            let leaves = (n - i) as f64 * lost;
            step = if i == 0 { 1.0 / leaves } else { (1.0 + mended * step) / leaves };
            sum += step;
        }
        sum / HOURS_A_YEAR
    }

    /// Years until some of what takes `cost` is lost, on average.
    pub fn years_to_loss(&self, layout: &Layout, cost: &Cost) -> f64 {
        let groups = (cost.replicas as f64 / layout.width() as f64).max(1.0);
        self.group_years(layout) / groups
    }

    /// Bytes that are read in a year to make lost ones anew.
    pub fn repair_bytes_a_year(&self, cost: &Cost) -> f64 {
        cost.repair_reads as f64 * self.disks_a_year
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str) -> Layout {
        Layout::compared().into_iter().find(|of| of.name() == name).unwrap()
    }

    #[test]
    fn two_copies_last_as_the_textbook_says() {
        // λ = 1/1000 h, μ = 1/10 h: (3λ + μ) / 2λ² = 51,500 h.
        let failures = Failures {
            disks_a_year: 1.0 - (-8766.0f64 / 1000.0).exp(),
            disk_len: 3600.0 * 9.0,
            nodes: 1.0,
            repair_rate: 1.0,
            notice_hours: 1.0,
        };
        let hours = failures.group_years(&Layout::Copies(2)) * HOURS_A_YEAR;
        assert!((hours - 51_500.0).abs() < 1.0, "{hours}");
    }

    #[test]
    fn more_parity_lasts_longer_for_the_same_data() {
        let failures = Failures::default();
        let data = |name: &str| {
            let layout = layout(name);
            // A thousand blocks in each, with what makes them safe.
            let replicas = 1000 * layout.width() as u64 / layout.data_units() as u64;
            failures.years_to_loss(&layout, &Cost { replicas, ..Cost::default() })
        };
        assert!(data("RS-6-3-1024k") > data("3x"));
        assert!(data("RS-10-4-1024k") > data("RS-6-3-1024k"));
        assert!(data("3x") > data("RS-3-2-1024k"));
        assert_eq!(data("RS-6-3-contiguous"), data("RS-6-3-1024k"));
        let often = Failures { disks_a_year: 0.3, ..failures };
        assert!(often.group_years(&layout("3x")) < failures.group_years(&layout("3x")));
    }

    #[test]
    fn a_group_of_six_moves_six_times_as_much() {
        let failures = Failures { disks_a_year: 0.1, ..Failures::default() };
        let cost = Cost { bytes: 150, repair_reads: 900, ..Cost::default() };
        assert!((failures.repair_bytes_a_year(&cost) - 90.0).abs() < 1e-9);
    }
}
