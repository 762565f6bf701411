//! Scrubbing a replicated block: all replicas have the same bytes.

use super::{FaultKind, Found, Scrub, read_fault};
use crate::datanode::read_block::RemoteReader;
use crate::datanode::read_range::ReadRange;
use crate::error::Result;
use crate::protocol::convert::Located;
use cairn_codec::crc::crc32c;
use std::collections::BTreeMap;

impl Scrub<'_> {
    pub(super) async fn copies(
        &mut self,
        located: &Located,
        recorded: Option<u32>,
    ) -> Result<Vec<Found>> {
        let mut faults: Vec<Found> = Vec::new();
        let mut sums: Vec<(usize, u32)> = Vec::new();
        for index in 0..located.block.locations.len() {
            match self.copy_sum(located, index).await {
                Ok(sum) => sums.push((index, sum)),
                Err(error) => faults.push((Some(index), None, read_fault(error))),
            }
        }
        if located.block.locations.is_empty() {
            faults.push((None, None, FaultKind::Missing));
        }
        if let Some(recorded) = recorded {
            self.result.compared_with_record += sums.len() as u64;
            let wrong = sums.iter().filter(|(_, found)| *found != recorded);
            faults.extend(wrong.map(|(index, found)| {
                let found = *found;
                (Some(*index), None, FaultKind::NotAsWritten { recorded, found })
            }));
            return Ok(faults);
        }
        faults.extend(unequal(&sums).into_iter().map(|(index, kind)| (Some(index), None, kind)));
        Ok(faults)
    }

    async fn copy_sum(&mut self, located: &Located, index: usize) -> Result<u32> {
        let block = located.block.block.clone();
        let (len, token) = (block.len, located.token(index));
        let addr = located.block.locations[index].addr.clone();
        let range = ReadRange { block, token, offset: 0, len, long_packets: false };
        let mut reader = RemoteReader::open(self.fs.session.clone(), addr, &range).await?;
        let mut sum = 0;
        while let Some(bytes) = reader.next().await? {
            sum = crc32c(sum, &bytes);
            self.pace(bytes.len() as u64).await;
        }
        reader.finish().await;
        Ok(sum)
    }
}

/// Replicas that differ from what more than half of them have; all, if there is no such majority.
fn unequal(sums: &[(usize, u32)]) -> Vec<(usize, FaultKind)> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    sums.iter().for_each(|(_, sum)| *counts.entry(*sum).or_default() += 1);
    if counts.len() < 2 {
        return Vec::new();
    }
    let majority = counts.iter().find(|(_, count)| 2 * **count > sums.len()).map(|(sum, _)| *sum);
    let fault = |(index, sum): &(usize, u32)| match majority {
        Some(good) if good == *sum => None,
        Some(_) => Some((*index, FaultKind::OddOneOut)),
        None => Some((*index, FaultKind::Disagrees)),
    };
    sums.iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minority_is_wrong_if_there_is_one() {
        assert_eq!(unequal(&[]), []);
        assert_eq!(unequal(&[(0, 5), (1, 5), (2, 5)]), []);
        assert_eq!(unequal(&[(0, 5), (1, 6), (2, 5)]), [(1, FaultKind::OddOneOut)]);
        let both = [(0, FaultKind::Disagrees), (3, FaultKind::Disagrees)];
        assert_eq!(unequal(&[(0, 5), (3, 6)]), both);
    }
}
