//! Numbers for the names of users, groups and attributes, in the order in which they come.

use super::message::Message;
use crate::names::NameKind;
use std::collections::HashMap;
use std::io;

/// Bits that tell kinds of names apart. Source: Hadoop 3.5.0 `SerialNumberManager#maskBits`.
const MASK_BITS: u32 = 3;
/// Numbers that fit into records. Source: Hadoop 3.5.0 `PermissionStatusFormat`, `AclEntryStatusFormat`, `XAttrFormat`.
const NUMBER_MAX: u32 = (1 << 24) - 1;

/// More users, groups or attributes than an image can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more names of users, groups or attributes than an image can number")]
pub struct TooManyNames;

impl From<TooManyNames> for io::Error {
    fn from(error: TooManyNames) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Names with their numbers, each kind from 1 on.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    users: HashMap<String, u32>,
    groups: HashMap<String, u32>,
    xattrs: HashMap<String, u32>,
}

impl Numbers {
    /// The number of a name.
    pub fn of(&mut self, kind: NameKind, name: &str) -> Result<u32, TooManyNames> {
        let all = match kind {
            NameKind::User => &mut self.users,
            NameKind::Group => &mut self.groups,
            NameKind::XAttr => &mut self.xattrs,
        };
        if let Some(number) = all.get(name) {
            return Ok(*number);
        }
        let number = all.len() as u32 + 1;
        if number > NUMBER_MAX {
            return Err(TooManyNames);
        }
        all.insert(name.to_string(), number);
        Ok(number)
    }

    /// What section STRING_TABLE begins with.
    pub fn head(&self) -> Message {
        let mut head = Message::default();
        let count = self.users.len() + self.groups.len() + self.xattrs.len();
        head.number(1, count as u64).number(2, MASK_BITS.into());
        head
    }

    /// Each name, in the order of the numbers: the same namespace gives the same bytes.
    pub fn entries(&self) -> impl Iterator<Item = Message> {
        let kinds = [
            (NameKind::User, &self.users),
            (NameKind::Group, &self.groups),
            (NameKind::XAttr, &self.xattrs),
        ];
        kinds.into_iter().flat_map(|(kind, all)| {
            let mask = (kind as u32) << (u32::BITS - MASK_BITS);
            let mut all: Vec<_> = all.iter().collect();
            all.sort_unstable_by_key(|(_, number)| **number);
            all.into_iter().map(move |(name, number)| {
                let mut entry = Message::default();
                entry.number(1, (number | mask).into()).text(2, name);
                entry
            })
        })
    }
}
