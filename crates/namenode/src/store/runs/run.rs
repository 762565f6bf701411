//! Records that lie side by side in a table, packed: what their keys begin with is there once, and of each value only
//! what differs from the first one's. Inodes, names and blocks of files that were made together differ in a few bytes.
//!
//! A run's bytes are the prefix of its keys, the first value, the places (2 bytes each, little endian) of every eighth
//! record, and the records: length and bytes of the rest of the key, length of what follows, length of the value and how
//! it differs ([`super::delta`]).

use super::delta::{number, put_number, put_value, take, unpack};
use std::ops::{ControlFlow, Range};

/// Records of a run, at most.
pub(super) const COUNT_MAX: usize = 128;
/// Bytes of keys and values in a run, at most, so that all places in it fit in 2 bytes.
pub(super) const LEN_MAX: usize = 24 << 10;
/// Records from one whose place is known to the next.
const STRIDE: usize = 8;
/// Values up to this are unpacked with no memory taken.
const SHORT_MAX: usize = 256;

/// Records in a row, as they are, on their way into runs.
#[derive(Default)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    /// Where the key and the value of each end.
    ends: Vec<(usize, usize)>,
}

impl Rows {
    /// Whether a run of these has room for one more.
    pub(super) fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        self.len() < COUNT_MAX && self.bytes.len() + key.len() + value.len() <= LEN_MAX
    }

    /// Adds a record whose key is above all others.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key of a record, if there are so many.
    pub(super) fn key(&self, index: usize) -> Option<&[u8]> {
        (index < self.len()).then(|| self.row(index).0)
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before].1)
    }

    fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let (key_end, end) = self.ends[index];
        (&self.bytes[self.start(index)..key_end], &self.bytes[key_end..end])
    }

    /// The records in so many parts as runs have room for, each about as large as the others, so that what comes
    /// between them finds room; at least one. None if a record is too large for any.
    pub(super) fn parts(&self) -> Option<Vec<Range<usize>>> {
        let count = self.len().div_ceil(COUNT_MAX).max(self.bytes.len().div_ceil(LEN_MAX)).max(1);
        let len = self.len().div_ceil(count);
        let mut parts = Vec::with_capacity(count);
        let mut start = 0;
        for index in 0..self.len() {
            let is_full =
                index - start == len || self.start(index + 1) - self.start(start) > LEN_MAX;
            if is_full && index > start {
                parts.push(start..index);
                start = index;
            }
            if self.start(index + 1) - self.start(index) > LEN_MAX {
                return None;
            }
        }
        parts.push(start..self.len());
        Some(parts)
    }

    /// A run of some of them, no more than have room.
    pub(super) fn pack(&self, range: Range<usize>) -> Run {
        if range.is_empty() {
            return Run::default();
        }
        let ((first, base), (last, _)) = (self.row(range.start), self.row(range.end - 1));
        let prefix_len = same_len(first, last);
        let len = self.start(range.end) - self.start(range.start);
        let mut bytes = Vec::with_capacity(len / 2);
        bytes.extend_from_slice(&first[..prefix_len]);
        bytes.extend_from_slice(base);
        let places_at = bytes.len();
        bytes.resize(places_at + 2 * range.len().div_ceil(STRIDE), 0);
        for (at, index) in range.clone().enumerate() {
            if at % STRIDE == 0 {
                let (place, at) = (bytes.len() as u16, places_at + 2 * (at / STRIDE));
                bytes[at..at + 2].copy_from_slice(&place.to_le_bytes());
            }
            let (key, value) = self.row(index);
            put_record(&mut bytes, base, &key[prefix_len..], value);
        }
        Run {
            bytes: bytes.into(),
            prefix_len: prefix_len as u16,
            places_at: places_at as u16,
            count: range.len() as u16,
        }
    }
}

/// An unpacked value.
pub(in crate::store) struct Value {
    len: usize,
    short: [u8; SHORT_MAX],
    /// If it is longer.
    long: Vec<u8>,
}

impl Value {
    fn new(len: usize) -> Value {
        let long = if len > SHORT_MAX { vec![0; len] } else { Vec::new() };
        Value { len, short: [0; SHORT_MAX], long }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        match self.len > SHORT_MAX {
            true => &mut self.long,
            false => &mut self.short[..self.len],
        }
    }

    pub(in crate::store) fn as_slice(&self) -> &[u8] {
        match self.len > SHORT_MAX {
            true => &self.long,
            false => &self.short[..self.len],
        }
    }
}

/// Packed records.
#[derive(Default)]
pub(in crate::store) struct Run {
    bytes: Box<[u8]>,
    prefix_len: u16,
    /// Where the first value ends and the places begin.
    places_at: u16,
    count: u16,
}

/// A record's new value; none where it is gone.
pub(super) type Change = (Box<[u8]>, Option<Box<[u8]>>);

/// Records on their way from one run to another.
#[derive(Default)]
struct Copied<'a> {
    base: &'a [u8],
    records: Vec<u8>,
    /// Of every eighth one, in `records`.
    places: Vec<usize>,
    count: usize,
}

impl Copied<'_> {
    fn begin(&mut self) {
        if self.count.is_multiple_of(STRIDE) {
            self.places.push(self.records.len());
        }
        self.count += 1;
    }

    /// Takes one over as it is packed.
    fn copy(&mut self, packed: &[u8]) {
        self.begin();
        self.records.extend_from_slice(packed);
    }

    fn put(&mut self, rest: &[u8], value: Option<&[u8]>) {
        let Some(value) = value else { return };
        self.begin();
        put_record(&mut self.records, self.base, rest, value);
    }
}

/// A record as it is in a run.
struct Packed<'a> {
    /// Its key after the prefix.
    rest: &'a [u8],
    value: &'a [u8],
    /// Where the next one is.
    next: usize,
}

impl Run {
    pub(super) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes in memory, besides the struct.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn prefix(&self) -> &[u8] {
        &self.bytes[..usize::from(self.prefix_len)]
    }

    fn base(&self) -> &[u8] {
        &self.bytes[usize::from(self.prefix_len)..usize::from(self.places_at)]
    }

    fn place(&self, index: usize) -> usize {
        let at = usize::from(self.places_at) + 2 * index;
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn packed(&self, mut at: usize) -> Packed<'_> {
        let rest = take(&self.bytes, &mut at);
        let value = take(&self.bytes, &mut at);
        Packed { rest, value, next: at }
    }

    /// Where the first record is whose key is not below that with this rest.
    fn seek(&self, rest: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.count().div_ceil(STRIDE));
        while low < high {
            let middle = low.midpoint(high);
            match self.packed(self.place(middle)).rest < rest {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let Some(before) = low.checked_sub(1) else { return self.place(0) };
        let mut at = self.place(before);
        while at < self.bytes.len() {
            let packed = self.packed(at);
            if packed.rest >= rest {
                break;
            }
            at = packed.next;
        }
        at
    }

    /// The run with changes of some records, which are in order, if these are all that has to be packed anew.
    pub(super) fn with(&self, changes: &[Change]) -> Option<Run> {
        if self.count == 0 {
            return None;
        }
        let mut new = Copied { base: self.base(), ..Copied::default() };
        let mut changes = changes.iter().peekable();
        let mut at = self.place(0);
        while at < self.bytes.len() {
            let packed = self.packed(at);
            while let Some((key, value)) = changes.peek() {
                let rest = key.strip_prefix(self.prefix())?;
                if rest > packed.rest {
                    break;
                }
                new.put(rest, value.as_deref());
                changes.next();
                if rest == packed.rest {
                    at = packed.next;
                    break;
                }
            }
            if at != packed.next {
                new.copy(&self.bytes[at..packed.next]);
                at = packed.next;
            }
        }
        for (key, value) in changes {
            new.put(key.strip_prefix(self.prefix())?, value.as_deref());
        }
        if new.count == 0 || new.count > COUNT_MAX {
            return None;
        }
        let head = &self.bytes[..usize::from(self.places_at)];
        let records_at = head.len() + 2 * new.places.len();
        if records_at + new.records.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut bytes = Vec::with_capacity(records_at + new.records.len());
        bytes.extend_from_slice(head);
        for at in &new.places {
            bytes.extend_from_slice(&((records_at + at) as u16).to_le_bytes());
        }
        bytes.extend_from_slice(&new.records);
        let (bytes, count) = (bytes.into(), new.count as u16);
        Some(Run { bytes, count, ..*self })
    }

    /// The value at `key`, if there is one.
    pub(super) fn get(&self, key: &[u8]) -> Option<Value> {
        if self.count == 0 {
            return None;
        }
        let rest = key.strip_prefix(self.prefix())?;
        let at = self.seek(rest);
        if at == self.bytes.len() {
            return None;
        }
        let packed = self.packed(at);
        if packed.rest != rest {
            return None;
        }
        let mut at = 0;
        let mut value = Value::new(number(packed.value, &mut at));
        unpack(self.base(), packed.value, at, value.as_mut());
        Some(value)
    }

    /// Calls `visit` for the records from `from` on.
    pub(in crate::store) fn scan(
        &self,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let prefix = self.prefix();
        if self.count == 0 {
            return ControlFlow::Continue(());
        }
        let mut at = match from.strip_prefix(prefix) {
            Some(rest) => self.seek(rest),
            None if from < prefix => self.place(0),
            None => return ControlFlow::Continue(()),
        };
        let (mut key, mut value) = (prefix.to_vec(), Vec::new());
        while at < self.bytes.len() {
            let packed = self.packed(at);
            key.truncate(prefix.len());
            key.extend_from_slice(packed.rest);
            let mut value_at = 0;
            value.resize(number(packed.value, &mut value_at), 0);
            unpack(self.base(), packed.value, value_at, &mut value);
            visit(&key, &value)?;
            at = packed.next;
        }
        ControlFlow::Continue(())
    }

    /// Calls `visit` for all records.
    pub(super) fn each(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        let end = self.scan(&[], |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        });
        debug_assert!(end.is_continue());
    }
}

/// Adds a record.
fn put_record(out: &mut Vec<u8>, base: &[u8], rest: &[u8], value: &[u8]) {
    put_number(out, rest.len());
    out.extend_from_slice(rest);
    let len_at = out.len();
    // Most take less than 128 bytes, of which the length takes one.
    out.push(0);
    put_value(out, base, value);
    let len = out.len() - len_at - 1;
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => out[len_at] = short,
        _ => {
            let packed = out.split_off(len_at + 1);
            out.truncate(len_at);
            put_number(out, packed.len());
            out.extend_from_slice(&packed);
        }
    }
}

/// How many bytes both begin with.
fn same_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Keys and values that have much in common, and some that have nothing.
    fn records() -> impl Strategy<Value = BTreeMap<Vec<u8>, Vec<u8>>> {
        let key = prop_oneof!["[ab]{0,3}", "a/b/[0-9]{1,4}"].prop_map(String::into_bytes);
        let like = ("[xy]{0,6}", any::<u16>()).prop_map(|(name, number)| {
            let number = number.to_be_bytes();
            [b"head of all", name.as_bytes(), b"owner of all", &number, b"tail"].concat()
        });
        let value = prop_oneof![
            8 => like,
            1 => proptest::collection::vec(any::<u8>(), 0..20),
            1 => proptest::collection::vec(any::<u8>(), 0..600),
        ];
        proptest::collection::btree_map(key, value, 0..40)
    }

    proptest! {
        #[test]
        fn has_what_was_packed(records in records(), other in "[ab]{0,3}") {
            let mut rows = Rows::default();
            for (key, value) in &records {
                prop_assert!(rows.fits(key, value));
                rows.push(key, value);
            }
            let run = rows.pack(0..rows.len());
            prop_assert_eq!(run.count(), records.len());
            for (key, value) in &records {
                prop_assert!(run.get(key).is_some_and(|found| found.as_slice() == value));
            }
            let other = other.as_bytes();
            let found = run.get(other).map(|found| found.as_slice().to_vec());
            prop_assert_eq!(found, records.get(other).cloned());
            for from in [&b""[..], other, b"a/b/5", b"zz"] {
                let mut found = Vec::new();
                let end = run.scan(from, |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                });
                prop_assert!(end.is_continue());
                let expected = records.range(from.to_vec()..);
                let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    proptest! {
        #[test]
        fn changes_are_as_if_it_was_packed_with_them(
            records in records(), others in records(), gone in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4)
        ) {
            let mut rows = Rows::default();
            records.iter().for_each(|(key, value)| rows.push(key, value));
            let run = rows.pack(0..rows.len());
            let mut changes: BTreeMap<Box<[u8]>, Option<Box<[u8]>>> =
                others.iter().map(|(key, value)| (key[..].into(), Some(value[..].into()))).collect();
            let keys: Vec<_> = records.keys().collect();
            for gone in gone.iter().filter(|_| !keys.is_empty()) {
                changes.insert(gone.get(&keys)[..].into(), None);
            }
            let mut expected = records.clone();
            for (key, value) in &changes {
                match value {
                    Some(value) => expected.insert(key.to_vec(), value.to_vec()),
                    None => expected.remove(&**key),
                };
            }
            let changes: Vec<_> = changes.into_iter().collect();
            // Keys have nothing in common that all begin with, nearly always.
            let Some(new) = run.with(&changes) else { return Ok(()) };
            let mut found = BTreeMap::new();
            new.each(|key, value| drop(found.insert(key.to_vec(), value.to_vec())));
            prop_assert_eq!(new.count(), found.len());
            for key in records.keys().chain(others.keys()) {
                let value = new.get(key).map(|value| value.as_slice().to_vec());
                prop_assert_eq!(value.as_ref(), expected.get(key));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let mut rows = Rows::default();
        (0..COUNT_MAX as u8).for_each(|key| rows.push(&[7, key], b"value"));
        let run = rows.pack(0..rows.len());
        let change = |key: &[u8], value: Option<&[u8]>| [(key.into(), value.map(Box::from))];
        assert!(run.with(&change(&[7, 5], Some(b"other"))).is_some());
        assert!(run.with(&change(&[7, 200], Some(b"more"))).is_none());
        assert!(run.with(&change(&[8], None)).is_none());
        assert!(run.with(&change(&[7, 5], Some(&vec![1; usize::from(u16::MAX)]))).is_none());
        assert!(Run::default().with(&change(&[7], Some(b""))).is_none());
    }

    #[test]
    fn a_scan_stops_where_it_is_told_to() {
        let mut rows = Rows::default();
        (0..20_u8).for_each(|key| rows.push(&[7, key], &[key]));
        let mut seen = Vec::new();
        let end = rows.pack(0..20).scan(&[7, 11], |key, _| {
            seen.push(key[1]);
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(end.is_break());
        assert_eq!(seen, [11, 12, 13]);
    }

    #[test]
    fn is_cut_where_no_more_has_room() {
        let mut rows = Rows::default();
        assert!(!rows.fits(b"key", &vec![0; LEN_MAX]));
        assert_eq!(rows.parts().map(|parts| parts.len()), Some(1));
        (0..=COUNT_MAX as u8).for_each(|key| rows.push(&[key], b"value"));
        assert!(!rows.fits(&[255], b"value"));
        assert_eq!(rows.parts(), Some(vec![0..65, 65..129]));
        rows.push(&[254], &vec![0; LEN_MAX / 2]);
        rows.push(&[255], &vec![0; LEN_MAX]);
        assert_eq!(rows.parts(), None);
        rows.clear();
        // Values that have nothing in common.
        let value = |key: u8| (0..600).map(|at| (at % 251) as u8 ^ key).collect::<Vec<_>>();
        (0..100).for_each(|key| rows.push(&[key], &value(key)));
        let parts = rows.parts().unwrap();
        assert_eq!(parts, [0..34, 34..68, 68..100]);
        for range in parts {
            let run = rows.pack(range.clone());
            for key in range {
                let found = run.get(&[key as u8]).unwrap();
                assert_eq!(found.as_slice(), value(key as u8));
            }
        }
    }

    #[test]
    fn records_of_files_that_were_made_together_take_a_quarter() {
        let mut rows = Rows::default();
        for number in 0..COUNT_MAX as u64 {
            let (id, name) = (9_000_000 + number, format!("part-{number}"));
            let time = 1_700_000_000_000 + number * 3;
            let value = [
                &id.to_be_bytes()[..],
                name.as_bytes(),
                b"owner, group, mode",
                &time.to_be_bytes(),
            ];
            rows.push(&id.to_be_bytes(), &[&value.concat()[..], &[3; 30]].concat());
        }
        let raw = rows.bytes.len();
        let run = rows.pack(0..rows.len());
        assert!(run.len() * 4 < raw, "{} of {raw} bytes", run.len());
    }
}
