//! A quorum is begun anew by one of its members, where a majority is lost for good.
//!
//! What that member has of the log is taken as agreed on; what others have agreed on behind it is lost. The new quorum has
//! another number, so members of the old one are not listened to any more before their folders are emptied, and its first
//! term is above all that the old one can have had.

use super::carrier::StartError;
use super::disk::Disk;
use super::member::{lock, new_id, new_number};
use cairn_quorum::{Ballot, Base, Entry, Membership, Payload, Reach, Saved};
use std::path::Path;

/// Terms that are left out: more than there can have been elections of which the member has not heard.
const TERMS: u64 = 1000;

/// What a member of a quorum has, which does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The last entry of its log.
    pub last: Reach,
    /// The highest term that it has heard of.
    pub term: u64,
    /// The last entry that it knows to be agreed on.
    pub commit: u64,
    /// How far its log had gone before it has lost the end.
    pub lost: Option<Reach>,
    /// All members, as far as it has heard.
    pub members: Membership,
    /// What its log has.
    pub entries: Vec<Entry>,
}

impl Left {
    /// The term in which a quorum that goes on from it begins.
    pub fn next_term(&self) -> u64 {
        let lost = self.lost.map_or(0, |lost| lost.term);
        self.term.max(self.last.term).max(lost) + TERMS
    }
}

/// What the member with its file in `dir` has; none if there is none. It must not run.
pub fn left(dir: &Path) -> Result<Option<Left>, StartError> {
    if !dir.exists() {
        return Ok(None);
    }
    let _lock = lock(dir)?;
    let Some((_, Saved { base, entries, ballot })) = Disk::open(dir)? else { return Ok(None) };
    let begins = Reach { term: base.term, index: base.index };
    let last = entries.last().map(|entry| Reach { term: entry.term, index: entry.index });
    let mut members = base.members;
    for entry in &entries {
        if let Payload::Change(change) = &entry.payload {
            members.change(change);
        }
    }
    let Ballot { term, commit, lost, .. } = ballot;
    Ok(Some(Left { last: last.unwrap_or(begins), term, commit, lost, members, entries }))
}

/// Begins a quorum whose only member has its file in `dir` and is called `name`, and which goes on behind what is left of
/// another one: all of that is kept elsewhere.
pub fn begin_anew(dir: &Path, name: &str, left: &Left) -> Result<(), StartError> {
    let _lock = lock(dir)?;
    let (me, term) = (new_id()?, left.next_term());
    let base = Base { index: left.last.index, term, members: Membership::founded(me, name) };
    let ballot = Ballot { term, commit: base.index, ..Ballot::default() };
    let saved = Saved { base, entries: Vec::new(), ballot };
    Disk::create(dir, me, new_number()?, &saved)?;
    Ok(())
}
