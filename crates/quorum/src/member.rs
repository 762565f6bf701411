//! Who is in the quorum.
//!
//! A member is known by a random number that was drawn for its folder, never by its name or address: a folder that was
//! emptied is another member, which has promised nothing.

use crate::encoding::{Decoder, Malformed, put_bytes, put_u64};
use raft::eraftpb::{ConfChange, ConfChangeType};
use std::collections::BTreeMap;
use std::fmt;

/// Members that there can be, so that what a peer tells has a bound.
pub const MEMBERS_MAX: usize = 64;

/// What is written of who is no member any more, where others have whether they vote.
const OUT: u8 = 2;

/// Bytes of a name.
pub const NAME_LEN_MAX: usize = 256;

/// A member's random number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl MemberId {
    /// Reads one.
    pub fn decode(input: &mut Decoder<'_>) -> Result<MemberId, Malformed> {
        match input.u64()? {
            0 => Err(Malformed("a member")),
            id => Ok(MemberId(id)),
        }
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What is agreed of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What the configuration calls it.
    pub name: String,
    /// Whether it votes and counts; a learner only follows.
    pub is_voter: bool,
    /// Whether it is no member any more, and nobody who is called so joins.
    pub is_out: bool,
}

impl Member {
    /// One that follows, and does not vote.
    pub fn learner(name: &str) -> Member {
        Member { name: name.to_string(), is_voter: false, is_out: false }
    }
}

/// All members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership(pub BTreeMap<MemberId, Member>);

impl Membership {
    /// The one of a quorum that has just been founded.
    pub fn founded(id: MemberId, name: &str) -> Membership {
        Membership([(id, Member { is_voter: true, ..Member::learner(name) })].into())
    }

    /// Those who vote.
    pub fn voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.0.iter().filter(|(_, member)| member.is_voter).map(|(id, _)| *id)
    }

    /// Whether it votes.
    pub fn is_voter(&self, id: MemberId) -> bool {
        self.0.get(&id).is_some_and(|member| member.is_voter)
    }

    /// What it is after a change.
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::AddLearner { id, name } => {
                self.0.insert(*id, Member::learner(name));
            }
            Change::Promote { id } => {
                if let Some(member) = self.0.get_mut(id) {
                    member.is_voter = true;
                }
            }
            Change::Remove { id } => {
                self.0.remove(id);
            }
            Change::ShutOut { id } => {
                if let Some(member) = self.0.get_mut(id) {
                    (member.is_voter, member.is_out) = (false, true);
                }
            }
        }
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.0.len() as u64);
        for (id, member) in &self.0 {
            put_u64(out, id.0);
            out.push(if member.is_out { OUT } else { u8::from(member.is_voter) });
            put_bytes(out, member.name.as_bytes());
        }
    }

    /// Reads it.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Membership, Malformed> {
        let count = input.bounded(MEMBERS_MAX)?;
        let mut members = BTreeMap::new();
        for _ in 0..count {
            let id = MemberId::decode(input)?;
            let (is_voter, is_out) = match input.byte()? {
                0 => (false, false),
                1 => (true, false),
                OUT => (false, true),
                _ => return Err(Malformed("what a member is")),
            };
            let name = input.text(NAME_LEN_MAX)?;
            members.insert(id, Member { name, is_voter, is_out });
        }
        Ok(Membership(members))
    }
}

/// A change of the membership: one at a time, so that majorities before and after it have a voter in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody new follows.
    AddLearner {
        /// Who.
        id: MemberId,
        /// What the configuration calls it.
        name: String,
    },
    /// A learner votes from now on.
    Promote {
        /// Who.
        id: MemberId,
    },
    /// Somebody is no member any more.
    Remove {
        /// Who.
        id: MemberId,
    },
    /// The same, and nobody who is called so joins.
    ShutOut {
        /// Who.
        id: MemberId,
    },
}

impl Change {
    /// Whom it is about.
    pub fn id(&self) -> MemberId {
        match self {
            Change::AddLearner { id, .. }
            | Change::Promote { id }
            | Change::Remove { id }
            | Change::ShutOut { id } => *id,
        }
    }

    /// As the library has it.
    pub(crate) fn to_raft(&self) -> ConfChange {
        let kind = match self {
            Change::AddLearner { .. } => ConfChangeType::AddLearnerNode,
            Change::Promote { .. } => ConfChangeType::AddNode,
            Change::Remove { .. } | Change::ShutOut { .. } => ConfChangeType::RemoveNode,
        };
        ConfChange { node_id: self.id().0, change_type: kind, ..Default::default() }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, name) = match self {
            Change::AddLearner { name, .. } => (1, name.as_str()),
            Change::Promote { .. } => (2, ""),
            Change::Remove { .. } => (3, ""),
            Change::ShutOut { .. } => (4, ""),
        };
        let mut out = vec![kind];
        put_u64(&mut out, self.id().0);
        put_bytes(&mut out, name.as_bytes());
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Change, Malformed> {
        let mut input = Decoder::new(bytes);
        let kind = input.byte()?;
        let id = MemberId::decode(&mut input)?;
        let name = input.text(NAME_LEN_MAX)?;
        input.finish()?;
        match kind {
            1 => Ok(Change::AddLearner { id, name }),
            2 => Ok(Change::Promote { id }),
            3 => Ok(Change::Remove { id }),
            4 => Ok(Change::ShutOut { id }),
            _ => Err(Malformed("kind of change")),
        }
    }
}
