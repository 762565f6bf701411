//! What members say to each other, in an encoding of our own: the library's is never read.

use crate::encoding::{Decoder, Malformed, put_u64};
use crate::entry::{Entry, Reach};
use crate::member::MemberId;
use raft::CAMPAIGN_TRANSFER;
use raft::eraftpb::{self, MessageType};

/// How a message begins.
const VERSION: u8 = 1;

/// Entries of a message, at most.
const ENTRIES_MAX: usize = 1 << 16;

/// What members say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub from: MemberId,
    pub to: MemberId,
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Of the library.
    Raft {
        message: eraftpb::Message,
        /// With a heartbeat, when it was sent, by its sender's clock; with an answer to one, what that had said.
        stamp: u64,
    },
    /// How far the log goes that the sender has on its disk; it wants to know the same if it has lost some.
    Last { reach: Reach, has_lost: bool },
    /// The log that the sender leads begins behind that entry, of that term, and it does not know that the receiver has it.
    Behind { index: u64, term: u64 },
    /// The sender asks to lead in the place of the receiver.
    Asks,
}

/// Kinds of the library's messages that travel. Others are for what is not done here: snapshots, questions of followers.
const KINDS: [MessageType; 9] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgTimeoutNow,
];

/// A request for a vote by who was told to stand.
const TOLD: u8 = 50;

const LAST: u8 = 100;
const BEHIND: u8 = 101;
const ASKS: u8 = 102;

impl Message {
    /// Its bytes; none if it is of a kind that does not travel.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut out = vec![VERSION];
        put_u64(&mut out, self.from.0);
        put_u64(&mut out, self.to.0);
        match &self.body {
            Body::Raft { message, stamp } => {
                let kind = KINDS.iter().position(|kind| *kind == message.get_msg_type())?;
                let is_told = message.context[..] == *CAMPAIGN_TRANSFER;
                out.push(if is_told { TOLD } else { kind as u8 });
                let eraftpb::Message { term, log_term, index, commit, commit_term, .. } = message;
                for number in
                    [term, log_term, index, commit, commit_term, &message.reject_hint, stamp]
                {
                    put_u64(&mut out, *number);
                }
                out.push(u8::from(message.reject));
                put_u64(&mut out, message.entries.len() as u64);
                for entry in message.entries.iter() {
                    Entry::from_raft(entry).ok()?.encode(&mut out);
                }
            }
            Body::Last { reach: Reach { term, index }, has_lost } => {
                out.push(LAST);
                put_u64(&mut out, *term);
                put_u64(&mut out, *index);
                out.push(u8::from(*has_lost));
            }
            Body::Behind { index, term } => {
                out.push(BEHIND);
                put_u64(&mut out, *index);
                put_u64(&mut out, *term);
            }
            Body::Asks => out.push(ASKS),
        }
        Some(out)
    }

    /// Reads one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Message, Malformed> {
        let mut input = Decoder::new(bytes);
        if input.byte()? != VERSION {
            return Err(Malformed("a message of another version"));
        }
        let (from, to) = (MemberId::decode(&mut input)?, MemberId::decode(&mut input)?);
        let body = match input.byte()? {
            LAST => {
                let reach = Reach { term: input.u64()?, index: input.u64()? };
                Body::Last { reach, has_lost: input.flag()? }
            }
            BEHIND => Body::Behind { index: input.u64()?, term: input.u64()? },
            ASKS => Body::Asks,
            byte => {
                let mut message = eraftpb::Message::default();
                let kind = match byte {
                    TOLD => {
                        message.context = CAMPAIGN_TRANSFER.into();
                        MessageType::MsgRequestVote
                    }
                    _ => *KINDS.get(usize::from(byte)).ok_or(Malformed("kind of message"))?,
                };
                message.set_msg_type(kind);
                (message.from, message.to) = (from.0, to.0);
                (message.term, message.log_term) = (input.u64()?, input.u64()?);
                (message.index, message.commit) = (input.u64()?, input.u64()?);
                (message.commit_term, message.reject_hint) = (input.u64()?, input.u64()?);
                let stamp = input.u64()?;
                message.reject = input.flag()?;
                let first =
                    message.index.checked_add(1).ok_or(Malformed("the place of entries"))?;
                let count = input.bounded(ENTRIES_MAX)? as u64;
                for next in first..first.saturating_add(count) {
                    let entry = Entry::decode(&mut input)?;
                    // The library trusts its peers that these follow each other.
                    if entry.index != next || entry.term == 0 || entry.term > message.term {
                        return Err(Malformed("entries that do not follow each other"));
                    }
                    message.entries.push(entry.to_raft());
                }
                if message.term == 0 {
                    return Err(Malformed("a message without a term"));
                }
                Body::Raft { message, stamp }
            }
        };
        input.finish()?;
        Ok(Message { from, to, body })
    }
}
