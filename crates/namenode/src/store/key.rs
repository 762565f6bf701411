//! Keys of records in memory, most of them with no memory of their own.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Bytes that fit: the key of an inode, of a call, of a child whose name is not long.
const SHORT_MAX: usize = 30;

/// A key, in the place where it is compared: to follow a pointer for each comparison is most of what a search costs.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// So many bytes of these.
    Short(u8, [u8; SHORT_MAX]),
    /// Longer ones.
    Long(Box<[u8]>),
}

impl Key {
    /// Its bytes.
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Key::Short(len, bytes) => &bytes[..usize::from(*len)],
            Key::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        Key::from([key, &[]])
    }
}

impl From<[&[u8]; 2]> for Key {
    fn from([first, rest]: [&[u8]; 2]) -> Key {
        let len = first.len() + rest.len();
        let mut bytes = [0; SHORT_MAX];
        match bytes.get_mut(..len) {
            None => Key::Long([first, rest].concat().into()),
            Some(place) => {
                place[..first.len()].copy_from_slice(first);
                place[first.len()..].copy_from_slice(rest);
                Key::Short(len as u8, bytes)
            }
        }
    }
}

// All of these as the bytes have them, so that a key is found by its bytes.

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap};

    #[test]
    fn keys_are_found_by_their_bytes_and_ordered_as_these() {
        assert!(size_of::<Key>() <= 32);
        let bytes: Vec<Vec<u8>> =
            [0, 1, 29, 30, 31, 300].iter().flat_map(|len| [vec![0; *len], vec![7; *len]]).collect();
        let mut ordered: Vec<Key> = bytes.iter().map(|bytes| Key::from(&bytes[..])).collect();
        ordered.sort();
        let mut sorted = bytes.clone();
        sorted.sort();
        assert!(ordered.iter().map(Key::as_slice).eq(sorted.iter().map(Vec::as_slice)));
        let tree: BTreeMap<Key, usize> = (0..).zip(&ordered).map(|(i, k)| (k.clone(), i)).collect();
        let map: HashMap<Key, usize> = (0..).zip(&ordered).map(|(i, k)| (k.clone(), i)).collect();
        for bytes in &bytes {
            let found = tree[&bytes[..]];
            assert_eq!(ordered[found].as_slice(), bytes);
            assert_eq!(ordered[map[&bytes[..]]].as_slice(), bytes);
        }
    }
}
