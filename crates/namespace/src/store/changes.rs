//! What one command changes, to be written to a store and to the log.
//!
//! In the log: count, then for each record a byte (the table's number, and 0x80 if a value follows), the length that its
//! key has in common with the key before, the length of the rest, the rest, and then length and bytes of the value. They
//! are in the order of tables and keys, so that the same changes have the same bytes.

use super::state::StoreTxn;
use super::table::Table;
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use crate::error::StoreError;
use std::collections::BTreeMap;

/// Changed records of each table; `None` is a deleted one.
pub(super) type Tables = [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()];

/// Bit of a record's first byte: it has a value.
const IS_SET: u8 = 0x80;

/// What [`Overlay::into_changes`](super::Overlay::into_changes) leaves to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(pub(super) Tables);

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(BTreeMap::is_empty)
    }

    /// The keys of a table that are written or removed, in order.
    pub(crate) fn keys(&self, table: Table) -> impl Iterator<Item = &[u8]> {
        self.0[table as usize].keys().map(Vec::as_slice)
    }

    /// Writes them all.
    pub fn write_to(self, store: &mut dyn StoreTxn) -> Result<(), StoreError> {
        for (table, changes) in Table::ALL.iter().zip(self.0) {
            for (key, value) in changes {
                match value {
                    Some(value) => store.put(*table, &key, &value)?,
                    None => store.delete(*table, &key)?,
                }
            }
        }
        Ok(())
    }

    /// The first record of which the two say different things: its table and key.
    pub fn difference(&self, other: &Changes) -> Option<(Table, Vec<u8>)> {
        Table::ALL.iter().zip(self.0.iter().zip(&other.0)).find_map(|(table, (ours, theirs))| {
            let differs = |key: &&Vec<u8>| ours.get(*key) != theirs.get(*key);
            let key = ours.keys().find(differs).into_iter().chain(theirs.keys().find(differs));
            key.min().map(|key| (*table, key.clone()))
        })
    }
}

impl Encode for Changes {
    fn encode(&self, out: &mut Encoder) {
        out.unsigned(self.0.iter().map(|table| table.len() as u64).sum());
        for (table, changes) in (0u8..).zip(&self.0) {
            let mut last: &[u8] = &[];
            for (key, value) in changes {
                out.byte(table | if value.is_some() { IS_SET } else { 0 });
                let common = in_common(key, last);
                out.unsigned(common as u64);
                out.bytes(&key[common..]);
                if let Some(value) = value {
                    out.bytes(value);
                }
                last = key;
            }
        }
    }
}

impl Decode for Changes {
    fn decode(input: &mut Decoder<'_>) -> Result<Changes, DecodeError> {
        let (mut tables, count) = (Tables::default(), input.unsigned()?);
        let (mut at, mut last) = (0, Vec::new());
        // A record takes a byte at least: no more are read than there can be.
        for number in 0..count {
            let tag = input.byte()?;
            let table = usize::from(tag & !IS_SET);
            let unknown = || DecodeError::Invalid { what: "table", value: table as u64 };
            if table != at {
                last.clear();
            }
            let common = usize::try_from(input.unsigned()?).unwrap_or(usize::MAX);
            let shared = last.get(..common).ok_or(DecodeError::TooLong { len: common as u64 })?;
            let key = [shared, long(input)?].concat();
            // Changes have one encoding.
            let is_next = common == in_common(&key, &last)
                && (number == 0 || table > at || table == at && key > last);
            let changes = tables.get_mut(table).filter(|_| is_next).ok_or_else(unknown)?;
            let value = if tag & IS_SET == 0 { None } else { Some(long(input)?.to_vec()) };
            changes.insert(key.clone(), value);
            (at, last) = (table, key);
        }
        Ok(Changes(tables))
    }
}

/// How many bytes two keys begin with alike.
fn in_common(key: &[u8], other: &[u8]) -> usize {
    key.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// A byte string of the store, which the input alone bounds.
fn long<'a>(input: &mut Decoder<'a>) -> Result<&'a [u8], DecodeError> {
    let len = input.unsigned()?;
    input.raw(usize::try_from(len).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Changes {
        let mut changes = Changes::default();
        let mut set = |table: Table, key: &[u8], value: Option<&[u8]>| {
            changes.0[table as usize].insert(key.to_vec(), value.map(<[u8]>::to_vec));
        };
        set(Table::Meta, b"inodes", Some(b"\x07"));
        set(Table::Inode, b"\0\0\0\x01", Some(b"root"));
        set(Table::Inode, b"\0\0\0\x02", None);
        set(Table::WaitingDue, b"", Some(b""));
        changes
    }

    fn bytes_of(changes: &Changes) -> Vec<u8> {
        let mut out = Encoder::new();
        changes.encode(&mut out);
        out.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Changes, DecodeError> {
        let mut input = Decoder::new(bytes);
        let changes = Changes::decode(&mut input)?;
        input.finish()?;
        Ok(changes)
    }

    #[test]
    fn their_bytes_are_these_and_come_back() {
        let bytes = bytes_of(&some());
        let golden = [
            &b"\x04\x80\x00\x06inodes\x01\x07"[..],
            b"\x81\x00\x04\x00\x00\x00\x01\x04root",
            b"\x01\x03\x01\x02",
            b"\x99\x00\x00\x00",
        ];
        assert_eq!(bytes, golden.concat());
        assert_eq!(read(&bytes), Ok(some()));
        assert_eq!(read(&bytes_of(&Changes::default())), Ok(Changes::default()));
    }

    /// Bytes that are read are those that would be written: no other ones say the same.
    #[test]
    fn other_bytes_are_refused_or_say_something_else() {
        let bytes = bytes_of(&some());
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            for flip in 1..=255 {
                let mut other = bytes.clone();
                other[at] ^= flip;
                if let Ok(changes) = read(&other) {
                    assert_ne!(changes, some(), "byte {at} ^ {flip}");
                }
            }
        }
    }

    #[test]
    fn a_difference_is_named() {
        let (ours, mut theirs) = (some(), some());
        assert_eq!(ours.difference(&theirs), None);
        theirs.0[Table::Inode as usize].insert(b"\0\0\0\x02".to_vec(), Some(b"x".to_vec()));
        assert_eq!(ours.difference(&theirs), Some((Table::Inode, b"\0\0\0\x02".to_vec())));
        theirs.0[Table::Inode as usize].insert(b"\0\0\0\0".to_vec(), None);
        assert_eq!(ours.difference(&theirs), Some((Table::Inode, b"\0\0\0\0".to_vec())));
        assert_eq!(theirs.difference(&ours), Some((Table::Inode, b"\0\0\0\0".to_vec())));
    }
}
