//! Hitchhiker: Reed-Solomon whose parities carry some of the data too, so that one lost data unit is rebuilt from
//! fewer bytes, with no more space and any m units lost.
//!
//! A unit has two halves. The first halves `a` are a word of the code below, and so are the second ones `b`; the
//! second half of each parity but the first has the first halves of a group of data units added:
//!
//! ```text
//!              first half    second half
//! data i       a(i)          b(i)
//! parity 0     f0(a)         f0(b)
//! parity j     fj(a)         fj(b) + the a(i) of group j
//! ```
//! To rebuild data unit i of group j, `b` is decoded from k second halves. What is left of parity j's second half
//! without `fj(b)` is the group's sum, of which a(i) is what the others' first halves leave: k + s halves of 2k for a
//! group of s. In [`Variant::XorPlus`] parity 1 of the code below is the plain sum of all data units, and its second half is
//! added to its first one as well. The last data units are in no group then: the sums of the groups beyond the first,
//! and the other last units, leave them of that half.
//!
//! A unit is cut in the middle, not byte by byte, so that each half is read in one piece.
//!
//! Source: K. V. Rashmi and others, *A "Hitchhiker's" Guide to Fast and Efficient Data Reconstruction in Erasure-coded
//! Data Centers* (SIGCOMM 2014). [`Variant::Xor`] has the bytes of Hadoop 3.5.0 `HHXORErasureEncoder` where m - 1 divides
//! k, or leaves one over. Not wired to any policy.

use crate::engine::Engine;
use crate::matrix::Matrix;
use crate::{Codec, CodecError, CodecKind, MAX_UNITS, check, field, rs};
use std::borrow::Cow;
use std::ops::Range;

/// The parity that is the sum of all data units in [`Variant::XorPlus`], and whose halves are coupled.
const COUPLED: usize = 1;

/// Which of the two codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Over the code `rs` as it is.
    Xor,
    /// Over `rs` with each column scaled so that one parity is the sum of the data units.
    XorPlus,
}

/// A half of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Half {
    /// The unit: 0..k data, then k..k + m parity.
    pub unit: usize,
    /// Whether it is the second half.
    pub is_second: bool,
}

/// A Hitchhiker code with k data and m parity units; the units of one call have one even length.
#[derive(Clone, Debug)]
pub struct Hitchhiker {
    variant: Variant,
    below: Codec,
    /// The data units whose first halves parity 1, 2, .. has in its second half.
    groups: Vec<Range<usize>>,
}

impl Hitchhiker {
    /// A code with `data_count` data and `parity_count` parity units, two of them at least.
    pub fn new(
        variant: Variant,
        data_count: usize,
        parity_count: usize,
    ) -> Result<Hitchhiker, CodecError> {
        let fits = data_count > 0
            && parity_count > 1
            && data_count.saturating_add(parity_count) <= MAX_UNITS;
        if !fits {
            let code = "hitchhiker";
            return Err(CodecError::UnsupportedShape { code, data_count, parity_count });
        }
        let (k, m) = (data_count, parity_count);
        let rows = rs::parity_rows(k, m);
        let (rows, last) = match variant {
            Variant::Xor => (rows, 0),
            Variant::XorPlus => (with_plain_sum(&rows), last_units(k, m)),
        };
        let below = Codec::of_rows(CodecKind::Rs, rows, Engine::best());
        Ok(Hitchhiker { variant, below, groups: groups(k - last, m - 1) })
    }

    /// Which of the two codes this is.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Number of data units, k.
    pub fn data_count(&self) -> usize {
        self.below.data_count()
    }

    /// Number of parity units, m.
    pub fn parity_count(&self) -> usize {
        self.below.parity_count()
    }

    /// Number of all units, k + m.
    pub fn unit_count(&self) -> usize {
        self.below.unit_count()
    }

    /// The numbers of data and parity units.
    fn shape(&self) -> (usize, usize) {
        (self.data_count(), self.parity_count())
    }

    /// Computes all parity units from all data units, as [`Codec::encode`] does.
    ///
    /// Fails as that does, and with [`CodecError::UnevenLength`] if a unit has no two halves.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError> {
        let len = check::encoding(self.shape(), data, parity)?;
        let half = half_of(len)?;
        let (a, b): (Vec<&[u8]>, Vec<&[u8]>) = data.iter().map(|unit| unit.split_at(half)).unzip();
        let (mut first, mut second) = halves(parity, half);
        self.below.encode(&a, &mut first)?;
        self.below.encode(&b, &mut second)?;
        for (group, second) in self.groups.iter().zip(&mut second[1..]) {
            group.clone().for_each(|unit| add(second, a[unit]));
        }
        if self.variant == Variant::XorPlus {
            add(first[COUPLED], second[COUPLED]);
        }
        Ok(())
    }

    /// Rebuilds lost units from k whole units that are present, as [`Codec::decode`] does.
    ///
    /// Fails as that does, and with [`CodecError::UnevenLength`].
    pub fn decode(
        &self,
        units: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<(), CodecError> {
        let (len, read) = check::decoding(self.shape(), units, lost, out)?;
        let half = half_of(len)?;
        let (mut first, mut second) = halves(out, half);

        // The first halves are a word of the code below once parity 1 is uncoupled.
        let mut a: Vec<Option<Cow<'_, [u8]>>> = vec![None; self.unit_count()];
        for &(unit, bytes) in &read {
            let mut bytes_a = Cow::Borrowed(&bytes[..half]);
            if self.is_coupled(unit) {
                add(bytes_a.to_mut(), &bytes[half..]);
            }
            a[unit] = Some(bytes_a);
        }
        self.below.decode(&views(&a), lost, &mut first)?;
        let absent: Vec<usize> = (0..self.data_count()).filter(|&unit| a[unit].is_none()).collect();
        let mut decoded = vec![vec![0; half]; absent.len()];
        let mut outputs: Vec<&mut [u8]> = decoded.iter_mut().map(Vec::as_mut_slice).collect();
        self.below.decode(&views(&a), &absent, &mut outputs)?;
        for (unit, bytes) in absent.into_iter().zip(decoded) {
            a[unit] = Some(Cow::Owned(bytes));
        }

        // And the second ones once what rides on them is taken off.
        let mut b: Vec<Option<Cow<'_, [u8]>>> = vec![None; self.unit_count()];
        for &(unit, bytes) in &read {
            let mut bytes_b = Cow::Borrowed(&bytes[half..]);
            for data in self.riding_on(unit) {
                add(bytes_b.to_mut(), a[data].as_deref().unwrap_or_default());
            }
            b[unit] = Some(bytes_b);
        }
        self.below.decode(&views(&b), lost, &mut second)?;
        for (index, &unit) in lost.iter().enumerate() {
            for data in self.riding_on(unit) {
                add(second[index], a[data].as_deref().unwrap_or_default());
            }
            if self.is_coupled(unit) {
                add(first[index], second[index]);
            }
        }
        Ok(())
    }

    /// The halves that [`Hitchhiker::repair`] reads to rebuild one unit when no other is lost, in its order.
    ///
    /// For a data unit k + s of them, s being the length of its group; for a parity unit all of the data. Panics if there
    /// is no such unit.
    pub fn reads(&self, lost: usize) -> Vec<Half> {
        assert!(lost < self.unit_count(), "no unit {lost} among {}", self.unit_count());
        let k = self.data_count();
        let first = |unit| Half { unit, is_second: false };
        let second = |unit| Half { unit, is_second: true };
        if lost >= k {
            return (0..k).map(first).chain((0..k).map(second)).collect();
        }
        // All second halves but the lost one's, with parity 0's in its place.
        let b = (0..=k).filter(|&unit| unit != lost).map(second);
        match self.group_of(lost) {
            Some(parity) => {
                let others =
                    self.groups[parity - 1].clone().filter(|&unit| unit != lost).map(first);
                b.chain([second(k + parity)]).chain(others).collect()
            }
            None => {
                let sums = (COUPLED + 1..self.parity_count()).map(|parity| second(k + parity));
                let others = self.last_units().filter(|&unit| unit != lost).map(first);
                b.chain([first(k + COUPLED)]).chain(sums).chain(others).collect()
            }
        }
    }

    /// Rebuilds one unit from the halves that [`Hitchhiker::reads`] names.
    ///
    /// Fails with [`CodecError::BufferCount`], [`CodecError::BufferLength`] or [`CodecError::UnevenLength`], with nothing
    /// written; panics if there is no such unit.
    pub fn repair(&self, lost: usize, halves: &[&[u8]], out: &mut [u8]) -> Result<(), CodecError> {
        let k = self.data_count();
        let half = half_of(out.len())?;
        check::count("halves", self.reads(lost).len(), halves.len())?;
        check::lengths("half", half, halves.iter().map(|bytes| bytes.len()))?;
        let (first, second) = out.split_at_mut(half);
        if lost >= k {
            let (a, b) = halves.split_at(k);
            self.below.decode(&self.word(a, k), &[lost], &mut [&mut *first])?;
            self.below.decode(&self.word(b, k), &[lost], &mut [&mut *second])?;
            self.riding_on(lost).for_each(|data| add(second, a[data]));
            if self.is_coupled(lost) {
                add(first, second);
            }
            return Ok(());
        }
        let (b, rest) = halves.split_at(k);
        // The parities whose second halves are known without being read, and are taken off what was read.
        let known: Vec<usize> = match self.group_of(lost) {
            Some(parity) => vec![k + parity],
            None => (COUPLED..self.parity_count()).map(|parity| k + parity).collect(),
        };
        let mut scratch = vec![vec![0; half]; known.len()];
        let wanted: Vec<usize> = std::iter::once(lost).chain(known).collect();
        let mut outputs: Vec<&mut [u8]> =
            std::iter::once(second).chain(scratch.iter_mut().map(Vec::as_mut_slice)).collect();
        self.below.decode(&self.word(b, lost), &wanted, &mut outputs)?;
        first.fill(0);
        rest.iter()
            .copied()
            .chain(scratch.iter().map(Vec::as_slice))
            .for_each(|bytes| add(first, bytes));
        Ok(())
    }

    /// The data units and parity 0 as units of the code below, of which `absent` is not there.
    fn word<'a>(&self, present: &[&'a [u8]], absent: usize) -> Vec<Option<&'a [u8]>> {
        let mut bytes = present.iter().copied();
        (0..self.unit_count())
            .map(|unit| match unit <= self.data_count() && unit != absent {
                true => bytes.next(),
                false => None,
            })
            .collect()
    }

    /// The parity in whose second half a data unit's first half is, if there is one.
    fn group_of(&self, data: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.contains(&data)).map(|index| index + 1)
    }

    /// The data units that are in no group.
    fn last_units(&self) -> Range<usize> {
        self.groups.last().map_or(0, |group| group.end)..self.data_count()
    }

    /// The data units whose first halves are in a unit's second half beside what the code below has there.
    fn riding_on(&self, unit: usize) -> Range<usize> {
        let parity = unit.checked_sub(self.data_count() + 1);
        parity.map_or(0..0, |index| self.groups[index].clone())
    }

    fn is_coupled(&self, unit: usize) -> bool {
        self.variant == Variant::XorPlus && unit == self.data_count() + COUPLED
    }
}

/// Rows whose second one is all ones: each column by what it has there. Every square part stays regular.
fn with_plain_sum(rows: &Matrix) -> Matrix {
    Matrix::from_fn(rows.rows(), rows.cols(), |row, col| {
        field::multiply(rows[(row, col)], field::invert(rows[(COUPLED, col)]))
    })
}

/// How many data units are in no group, so that the fewest halves are read on average.
fn last_units(k: usize, m: usize) -> usize {
    let cost = |last: usize| {
        let grouped: usize =
            groups(k - last, m - 1).iter().map(|group| group.len() * (k + group.len())).sum();
        grouped + last * (k + m + last).saturating_sub(2)
    };
    (0..=k).min_by_key(|&last| cost(last)).unwrap_or(0)
}

/// `count` groups of 0..units, whose lengths differ by one at most; the last ones are the longest.
fn groups(units: usize, count: usize) -> Vec<Range<usize>> {
    let (short, longer) = (units / count, units % count);
    let mut end = 0;
    (0..count)
        .map(|group| {
            let start = end;
            end += short + usize::from(group >= count - longer);
            start..end
        })
        .collect()
}

fn half_of(len: usize) -> Result<usize, CodecError> {
    match len % 2 {
        0 => Ok(len / 2),
        _ => Err(CodecError::UnevenLength { parts: 2, len }),
    }
}

fn halves<'a>(units: &'a mut [&mut [u8]], half: usize) -> (Vec<&'a mut [u8]>, Vec<&'a mut [u8]>) {
    units.iter_mut().map(|unit| unit.split_at_mut(half)).unzip()
}

fn views<'a>(units: &'a [Option<Cow<'_, [u8]>>]) -> Vec<Option<&'a [u8]>> {
    units.iter().map(Option::as_deref).collect()
}

fn add(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}
