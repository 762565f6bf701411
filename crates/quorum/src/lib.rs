//! How NameNodes agree on one log.
//!
//! A [`Quorum`] is one member. It does no I/O and reads no clock: whoever carries it tells it what has come and what time it
//! is ([`Quorum::step`], [`Quorum::tick`]), what is to be agreed on ([`Quorum::propose`], [`Quorum::change`]), and what is on
//! its disk ([`Quorum::persisted`]); and does what it says ([`Quorum::ready`]). The protocol is Raft, by the library `raft`,
//! which nobody else knows.
//!
//! Rules that the library leaves to its user, and that are kept here:
//! - a member is a random number ([`MemberId`]), so a folder that was emptied votes under no promise that it has forgotten;
//! - who has lost the end of its log votes as if it had it, and does not stand before it has it again ([`Ballot::lost`]);
//! - who has just started votes for nobody for an election timeout: it may have taken a heartbeat before;
//! - the right to answer is a lease by the time when heartbeats were sent ([`Quorum::lease`]);
//! - who has told another one to stand has no lease in that term any more ([`Quorum::hand_over`]).
//!
//! Tested in `tests/it`, with messages that are lost, late and repeated, power cuts, stopped and emptied members, which have
//! a namespace and tell DataNodes who leads.

mod claim;
pub mod encoding;
mod entry;
mod lease;
mod log;
mod member;
mod message;
mod quorum;
mod refused;

pub use claim::claim;
pub use encoding::Malformed;
pub use entry::{Ballot, Base, DATA_LEN_MAX, Entry, Payload, Reach, Saved};
pub use member::{Change, Member, MemberId, Membership, NAME_LEN_MAX};
pub use quorum::{ELECTION_TURNS, Progress, Quorum, QuorumError, Ready, Role};
pub use refused::{NotChanged, NotProposed};
