//! Products of a matrix with columns of packets by exclusive or alone.
//!
//! Each coefficient is an 8 x 8 matrix of bits, so a row of coefficients is eight rows of bits, one for each packet of
//! an output. A schedule says in which order the packets of the outputs are made, each from the packets of the sources, or from
//! one of the outputs that is there already and differs from it by less.
//!
//! Source: J. Plank, *The RAID-6 Liberation Codes* (FAST 2008), and Jerasure's `jerasure_smart_bitmatrix_to_schedule`
//! for the idea of making a row from another one.

use crate::field;
use crate::matrix::Matrix;

/// Packets of a unit: the bits of a word.
pub(crate) const PACKETS: usize = 8;
/// Bytes of a packet that one walk over the schedule covers: those of all units stay near.
const SLICE: usize = 512;

/// Ones in the matrix of bits that multiplies by `coefficient`.
pub(crate) fn ones(coefficient: u8) -> usize {
    (0..PACKETS).map(|bit| column(coefficient, bit).count_ones() as usize).sum()
}

/// Column `bit` of that matrix: the product with that power of two.
fn column(coefficient: u8, bit: usize) -> u8 {
    field::multiply(coefficient, 1 << bit)
}

/// A packet of a source or of an output, by the unit's number times eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Source(usize),
    Output(usize),
}

/// Copies a packet to a packet of an output, or adds it.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: Origin,
    to: usize,
    copies: bool,
}

/// The steps that multiply by a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    steps: Vec<Step>,
    outputs: usize,
}

impl Schedule {
    pub(crate) fn new(rows: &Matrix) -> Schedule {
        let mut left: Vec<(usize, Bits)> =
            (0..rows.rows() * PACKETS).map(|to| (to, Bits::of(rows, to))).collect();
        let mut made: Vec<(usize, Bits)> = Vec::with_capacity(left.len());
        let mut steps = Vec::new();
        while let Some((index, base)) = cheapest(&left, &made) {
            let (to, bits) = left.swap_remove(index);
            let mut sources = bits.clone();
            let mut copies = true;
            if let Some(base) = base {
                let (from, other) = &made[base];
                steps.push(Step { from: Origin::Output(*from), to, copies });
                sources.add(other);
                copies = false;
            }
            for source in sources.iter() {
                steps.push(Step { from: Origin::Source(source), to, copies });
                copies = false;
            }
            made.push((to, bits));
        }
        Schedule { steps, outputs: rows.rows() }
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Overwrites `outputs`. Panics unless all units have one length, a multiple of [`PACKETS`], and there are as many as
    /// the matrix has rows and columns: the code has checked that.
    pub(crate) fn run(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        assert_eq!(self.outputs, outputs.len());
        let packet = sources[0].len() / PACKETS;
        if packet == 0 {
            return;
        }
        let sources: Vec<&[u8]> =
            sources.iter().flat_map(|unit| unit.chunks_exact(packet)).collect();
        let mut outputs: Vec<&mut [u8]> =
            outputs.iter_mut().flat_map(|unit| unit.chunks_exact_mut(packet)).collect();
        // Packets of long units lie so that their slices would drive each other out of the cache: they are gathered.
        let mut scratch = vec![0; (sources.len() + outputs.len()) * SLICE];
        let (from_slices, to_slices) = scratch.split_at_mut(sources.len() * SLICE);
        for at in (0..packet).step_by(SLICE) {
            let len = SLICE.min(packet - at);
            let slot = |index: usize| index * SLICE..index * SLICE + len;
            for (index, source) in sources.iter().enumerate() {
                from_slices[slot(index)].copy_from_slice(&source[at..at + len]);
            }
            for step in &self.steps {
                match step.from {
                    Origin::Source(from) => {
                        step.apply(&from_slices[slot(from)], &mut to_slices[slot(step.to)]);
                    }
                    Origin::Output(from) => {
                        let [from, to] = to_slices
                            .get_disjoint_mut([slot(from), slot(step.to)])
                            .expect("a packet is made from another one");
                        step.apply(from, to);
                    }
                }
            }
            for (index, output) in outputs.iter_mut().enumerate() {
                output[at..at + len].copy_from_slice(&to_slices[slot(index)]);
            }
        }
    }
}

impl Step {
    fn apply(self, from: &[u8], to: &mut [u8]) {
        match self.copies {
            true => to.copy_from_slice(from),
            false => to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from),
        }
    }
}

/// Which row that is left is made with the fewest steps, and from which one that is made, if from any.
fn cheapest(left: &[(usize, Bits)], made: &[(usize, Bits)]) -> Option<(usize, Option<usize>)> {
    let alone = left.iter().enumerate().map(|(index, (_, bits))| (bits.count(), index, None));
    let derived = left.iter().enumerate().flat_map(|(index, (_, bits))| {
        let others = made.iter().enumerate();
        others.map(move |(base, (_, other))| (1 + bits.distance(other), index, Some(base)))
    });
    let (_, index, base) = alone.chain(derived).min_by_key(|&(steps, ..)| steps)?;
    Some((index, base))
}

/// The packets of the sources that add up to a packet of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn of(rows: &Matrix, to: usize) -> Bits {
        let (row, bit) = (to / PACKETS, to % PACKETS);
        let mut words = vec![0; (rows.cols() * PACKETS).div_ceil(64)];
        for col in 0..rows.cols() {
            for from in 0..PACKETS {
                let is_set = column(rows[(row, col)], from) >> bit & 1;
                let at = col * PACKETS + from;
                words[at / 64] |= u64::from(is_set) << (at % 64);
            }
        }
        Bits(words)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn distance(&self, other: &Bits) -> usize {
        self.0.iter().zip(&other.0).map(|(a, b)| (a ^ b).count_ones() as usize).sum()
    }

    fn add(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a ^= b);
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&at| self.0[at / 64] >> (at % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_multiplies_in_no_more_steps_than_there_are_ones() {
        let rows = Matrix::from_fn(3, 5, |row, col| (row * 40 + col * 7 + 3) as u8);
        let schedule = Schedule::new(&rows);
        let all: usize = (0..3).flat_map(|row| rows.row(row)).map(|&cell| ones(cell)).sum();
        assert!(schedule.len() < all, "{} steps, {all} ones", schedule.len());

        // One word in eight packets of a byte: bit b of the word is bit 0 of packet b.
        let words = [0x00u8, 0x5a, 0xff, 0x81, 0x37];
        let spread = |word: u8| -> Vec<u8> { (0..8).map(|bit| word >> bit & 1).collect() };
        let sources: Vec<Vec<u8>> = words.iter().map(|&word| spread(word)).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut outputs = vec![vec![0xa5; 8]; 3];
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        schedule.run(&sources, &mut slices);
        for row in 0..3 {
            let product =
                (0..5).fold(0, |sum, col| sum ^ field::multiply(rows[(row, col)], words[col]));
            assert_eq!(outputs[row], spread(product), "row {row}");
        }
    }
}
