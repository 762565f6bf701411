//! Entries of the log, and what must be kept of a member on a disk.

use crate::encoding::{Decoder, Malformed, put_bytes, put_u64};
use crate::member::{Change, MemberId, Membership};
use raft::eraftpb;

/// Longest data of an entry, in bytes.
pub const DATA_LEN_MAX: usize = 80 << 20;

/// What an entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// What was proposed; nothing is what a leader begins with.
    Data(Vec<u8>),
    /// Another membership.
    Change(Change),
}

/// An entry of the log that members agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place, from 1 on.
    pub index: u64,
    /// Whose leader has made it.
    pub term: u64,
    /// What it has.
    pub payload: Payload,
}

impl Entry {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.index);
        put_u64(out, self.term);
        match &self.payload {
            Payload::Data(data) => {
                out.push(1);
                put_bytes(out, data);
            }
            Payload::Change(change) => {
                out.push(2);
                put_bytes(out, &change.to_bytes());
            }
        }
    }

    /// Reads one.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Entry, Malformed> {
        let (index, term) = (input.u64()?, input.u64()?);
        let payload = match input.byte()? {
            1 => Payload::Data(input.bytes(DATA_LEN_MAX)?.to_vec()),
            2 => Payload::Change(Change::from_bytes(input.bytes(DATA_LEN_MAX)?)?),
            _ => return Err(Malformed("kind of entry")),
        };
        Ok(Entry { index, term, payload })
    }

    /// As the library has it. Its own encoding of a change is left out: only a leader that proposes one reads that.
    pub(crate) fn to_raft(&self) -> eraftpb::Entry {
        let mut entry = eraftpb::Entry { index: self.index, term: self.term, ..Default::default() };
        match &self.payload {
            Payload::Data(data) => entry.data = data.clone().into(),
            Payload::Change(change) => {
                entry.set_entry_type(eraftpb::EntryType::EntryConfChange);
                entry.context = change.to_bytes().into();
            }
        }
        entry
    }

    pub(crate) fn from_raft(entry: &eraftpb::Entry) -> Result<Entry, Malformed> {
        let payload = match entry.get_entry_type() {
            eraftpb::EntryType::EntryNormal => Payload::Data(entry.data.to_vec()),
            _ => Payload::Change(Change::from_bytes(&entry.context)?),
        };
        Ok(Entry { index: entry.index, term: entry.term, payload })
    }
}

/// How far a log goes. The further one has all that is agreed on if either has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach {
    /// The term of its last entry.
    pub term: u64,
    /// The last entry.
    pub index: u64,
}

impl Reach {
    /// Of a log that may have gone as far as either.
    pub fn or(self, other: Option<Reach>) -> Reach {
        let Reach { term, index } = other.unwrap_or(self);
        Reach { term: self.term.max(term), index: self.index.max(index) }
    }
}

/// What a member has promised, and how far it knows the log to be committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    /// The highest term that it has heard of.
    pub term: u64,
    /// For whom it has voted in that.
    pub vote: Option<MemberId>,
    /// The last entry that it knows to be committed.
    pub commit: u64,
    /// How far its log may have gone before it has lost the end of it. Until it has been brought there it does not stand, and
    /// votes as if it had all of that. A term that is too high does no harm.
    pub lost: Option<Reach>,
}

impl Ballot {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.term);
        put_u64(out, self.vote.map_or(0, |id| id.0));
        put_u64(out, self.commit);
        let lost = self.lost.unwrap_or(Reach { term: 0, index: 0 });
        put_u64(out, lost.term);
        put_u64(out, lost.index);
    }

    /// Reads one.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Ballot, Malformed> {
        let some = |number| if number == 0 { None } else { Some(number) };
        let (term, vote) = (input.u64()?, some(input.u64()?).map(MemberId));
        let commit = input.u64()?;
        let lost = Reach { term: input.u64()?, index: input.u64()? };
        Ok(Ballot { term, vote, commit, lost: Some(lost).filter(|lost| lost.index > 0) })
    }
}

/// Where a log begins: what was before it is in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The last entry before.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The members at that entry.
    pub members: Membership,
}

impl Base {
    /// Of a quorum that `id` founds.
    pub fn founded(id: MemberId, name: &str) -> Base {
        Base { index: 1, term: 1, members: Membership::founded(id, name) }
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.index);
        put_u64(out, self.term);
        self.members.encode(out);
    }

    /// Reads one.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Base, Malformed> {
        let (index, term) = (input.u64()?, input.u64()?);
        Ok(Base { index, term, members: Membership::decode(input)? })
    }
}

/// All that a member has on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Where its log begins.
    pub base: Base,
    /// What follows, without a gap.
    pub entries: Vec<Entry>,
    /// What it has promised.
    pub ballot: Ballot,
}
