//! Whether units agree, slice by slice, and which one does not.
//!
//! Any `k` units determine all others. With more than `k` at hand the others are decoded and compared; where they
//! differ, each unit in turn is left out to see whether the rest agree. With `k + 1` units every rest does, so
//! nothing can be told; with more, a single wrong unit is the only one without which all agree. Two wrong units that
//! differ at the same byte could, with odds of some in 255 at that byte alone, look like one.

use crate::{Codec, CodecError};
use std::collections::BTreeSet;

/// What the slices of a group's units have shown so far.
pub struct Agreement<'a> {
    codec: &'a Codec,
    /// Units without which every slice agrees; `None` while all agree with all.
    suspects: Option<BTreeSet<usize>>,
    is_complete: bool,
}

impl<'a> Agreement<'a> {
    /// Nothing is compared yet.
    pub fn new(codec: &'a Codec) -> Agreement<'a> {
        Agreement { codec, suspects: None, is_complete: true }
    }

    /// Compares a slice of each unit; all of one length, `None` for a unit that cannot be read. Fails as
    /// [`Codec::decode`] does, when the slices are of several lengths, say.
    pub fn compare(&mut self, units: &[Option<&[u8]>]) -> Result<(), CodecError> {
        let there: Vec<usize> = (0..units.len()).filter(|unit| units[*unit].is_some()).collect();
        if there.len() <= self.codec.data_count() {
            self.is_complete = false;
            return Ok(());
        }
        if self.agree(units, &there)? {
            return Ok(());
        }
        let mut suspects = BTreeSet::new();
        for left_out in &there {
            let rest: Vec<usize> = there.iter().copied().filter(|unit| unit != left_out).collect();
            if self.agree(units, &rest)? {
                suspects.insert(*left_out);
            }
        }
        self.suspects = Some(match &self.suspects {
            Some(before) => before & &suspects,
            None => suspects,
        });
        Ok(())
    }

    /// Whether every slice could be compared: there was more than decoding needs.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether all slices that were compared have agreed.
    pub fn all_agree(&self) -> bool {
        self.suspects.is_none()
    }

    /// The units without any one of which all others agree; none while all do.
    pub fn suspects(&self) -> impl Iterator<Item = usize> + '_ {
        self.suspects.iter().flatten().copied()
    }

    /// The one unit without which all agree, among those that `may_be` wrong.
    pub fn odd_one_out(&self, may_be: impl Fn(usize) -> bool) -> Option<usize> {
        let mut left = self.suspects().filter(|unit| may_be(*unit));
        left.next().filter(|_| left.next().is_none())
    }

    fn agree(&self, units: &[Option<&[u8]>], among: &[usize]) -> Result<bool, CodecError> {
        let (sources, others) = among.split_at(self.codec.data_count());
        let mut given = vec![None; units.len()];
        sources.iter().for_each(|unit| given[*unit] = units[*unit]);
        let len = sources.first().and_then(|unit| units[*unit]).map_or(0, <[u8]>::len);
        let mut decoded = vec![vec![0; len]; others.len()];
        let mut out: Vec<&mut [u8]> = decoded.iter_mut().map(Vec::as_mut_slice).collect();
        self.codec.decode(&given, others, &mut out)?;
        Ok(others.iter().zip(&decoded).all(|(unit, bytes)| units[*unit] == Some(bytes.as_slice())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodecKind;

    fn encoded(codec: &Codec) -> Vec<Vec<u8>> {
        let (k, m) = (codec.data_count(), codec.parity_count());
        let mut units: Vec<Vec<u8>> =
            (0..k).map(|unit| (0..40).map(|at| (at * 7 + unit * 31) as u8).collect()).collect();
        let mut parity = vec![vec![0; 40]; m];
        let data: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
        let mut out: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        codec.encode(&data, &mut out).unwrap();
        units.extend(parity);
        units
    }

    fn check(kind: CodecKind, k: usize, m: usize) {
        let codec = Codec::new(kind, k, m).unwrap();
        let good = encoded(&codec);
        for wrong in 0..k + m {
            for lost in (0..k + m).map(Some).chain([None]).filter(|lost| *lost != Some(wrong)) {
                let mut units = good.clone();
                units[wrong][11] ^= 4;
                let slices: Vec<Option<&[u8]>> = units
                    .iter()
                    .enumerate()
                    .map(|(unit, bytes)| Some(bytes.as_slice()).filter(|_| Some(unit) != lost))
                    .collect();
                let mut agreement = Agreement::new(&codec);
                agreement.compare(&slices).unwrap();
                let spare = m - usize::from(lost.is_some());
                let found = agreement.odd_one_out(|_| true);
                let want = (spare >= 2).then_some(wrong);
                assert_eq!(found, want, "{wrong} of {k}+{m} without {lost:?}");
                assert_eq!(
                    (agreement.all_agree(), agreement.is_complete()),
                    (spare == 0, spare > 0)
                );
                if spare == 1 {
                    // Known to be as written, the others clear themselves.
                    let known = agreement.odd_one_out(|unit| unit == wrong);
                    assert_eq!(known, Some(wrong));
                }
            }
        }
        let mut agreement = Agreement::new(&codec);
        let slices: Vec<Option<&[u8]>> = good.iter().map(|unit| Some(unit.as_slice())).collect();
        agreement.compare(&slices).unwrap();
        assert!(agreement.all_agree() && agreement.odd_one_out(|_| true).is_none());
    }

    #[test]
    fn the_wrong_one_of_more_than_one_spare_is_named() {
        check(CodecKind::Xor, 2, 1);
        check(CodecKind::Rs, 3, 2);
        check(CodecKind::Rs, 6, 3);
        check(CodecKind::RsLegacy, 6, 3);
    }
}
