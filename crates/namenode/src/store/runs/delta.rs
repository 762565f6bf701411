//! How a value differs from another one.
//!
//! A value of another length than that one has its front compared with the other's front, and what comes from some byte
//! on (a number, which comes first) with its end, so that a longer name moves nothing; in each part equal bytes (their
//! number) and others (their number and they) follow each other. Numbers are varints.

use std::ops::Range;

/// Equal bytes that are worth two numbers.
const SAME_MIN: usize = 3;

pub(super) fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn number(bytes: &[u8], at: &mut usize) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

/// The bytes at `at`, which begin with their length.
pub(super) fn take<'a>(bytes: &'a [u8], at: &mut usize) -> &'a [u8] {
    let len = number(bytes, at);
    let taken = &bytes[*at..*at + len];
    *at += len;
    taken
}

/// The parts of a value of `len` bytes, and what of the base each is compared with.
fn parts(base: &[u8], len: usize, front: usize) -> [(Range<usize>, &[u8]); 2] {
    let end = (len - front).min(base.len());
    [(0..front, &base[..front]), (front..len, &base[base.len() - end..])]
}

/// From which byte on the rest of a value is better compared with the end of the base: where most bytes are equal.
fn front_of(base: &[u8], value: &[u8]) -> usize {
    let max = base.len().min(value.len());
    let is_same_at_end = |at: usize| {
        (at + base.len()).checked_sub(value.len()).is_some_and(|from| base[from] == value[at])
    };
    let mut same = (0..value.len()).filter(|at| is_same_at_end(*at)).count();
    let (mut best, mut front) = (same, 0);
    for at in 0..max {
        same += usize::from(base[at] == value[at]);
        same -= usize::from(is_same_at_end(at));
        if same > best {
            (best, front) = (same, at + 1);
        }
    }
    front
}

/// Adds the length of a value and how it differs from `base`.
pub(super) fn put_value(out: &mut Vec<u8>, base: &[u8], value: &[u8]) {
    put_number(out, value.len());
    let front = match value.len() == base.len() {
        true => value.len(),
        false => {
            let front = front_of(base, value);
            put_number(out, front);
            front
        }
    };
    for (range, base) in parts(base, value.len(), front) {
        // What is longer than the base's end has nothing to be compared with.
        let value = &value[range];
        let skipped = value.len() - base.len();
        let is_same = |at: usize| at >= skipped && value[at] == base[at - skipped];
        let mut at = 0;
        while at < value.len() {
            let same = (at..value.len()).take_while(|at| is_same(*at)).count();
            put_number(out, same);
            at += same;
            if at == value.len() {
                break;
            }
            let start = at;
            let mut equal = 0;
            while at < value.len() && equal < SAME_MIN {
                equal = if is_same(at) { equal + 1 } else { 0 };
                at += 1;
            }
            // Equal ones at the very end are as good as others.
            at -= if equal == SAME_MIN { equal } else { 0 };
            put_number(out, at - start);
            out.extend_from_slice(&value[start..at]);
        }
    }
}

/// Makes a value of what is at `at`, its length known.
pub(super) fn unpack(base: &[u8], packed: &[u8], mut at: usize, value: &mut [u8]) {
    let front = match value.len() == base.len() {
        true => value.len(),
        false => number(packed, &mut at),
    };
    for (range, base) in parts(base, value.len(), front) {
        let value = &mut value[range];
        // One copy of all, and few bytes over it, takes less than a copy of each equal part.
        let skipped = value.len() - base.len();
        value[skipped..].copy_from_slice(base);
        let mut to = 0;
        while to < value.len() {
            to += number(packed, &mut at);
            if to == value.len() {
                break;
            }
            let other = take(packed, &mut at);
            value[to..to + other.len()].copy_from_slice(other);
            to += other.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_comes_back(
            head in "[a-c]{0,5}", names in ("[xy]{0,9}", "[xy]{0,9}"), tail in "[a-c]{0,300}", other in any::<[u8; 3]>()
        ) {
            let base = [head.as_bytes(), names.0.as_bytes(), tail.as_bytes()].concat();
            for value in [[head.as_bytes(), names.1.as_bytes(), &other, tail.as_bytes()].concat(), other.to_vec(), Vec::new()] {
                let mut packed = Vec::new();
                put_value(&mut packed, &base, &value);
                let mut at = 0;
                let mut found = vec![0xee; number(&packed, &mut at)];
                unpack(&base, &packed, at, &mut found);
                prop_assert_eq!(found, value);
            }
        }
    }

    #[test]
    fn a_longer_name_moves_nothing() {
        let value =
            |name: &str| ["version and id", name, "the owner, the group and all the rest"].concat();
        let mut packed = Vec::new();
        put_value(&mut packed, value("part-9").as_bytes(), value("part-10").as_bytes());
        assert!(packed.len() <= 10, "{packed:?}");
    }

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 1 << 40] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, value);
            let mut at = 0;
            assert_eq!((number(&bytes, &mut at), at), (value, bytes.len()));
        }
    }
}
