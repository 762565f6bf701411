//! What callers are told of commands. What DataNodes and the keeper of places have to do with them is in
//! [`crate::effects`].

use crate::block::Block;
use crate::encoding::{Decode, DecodeError, Decoder, encode_enum, encode_struct};
use crate::inode::{FileRedundancy, InodeId};
use crate::status::FileStatus;
use crate::token::Token;
use cairn_stripe::{BlockId, GenerationStamp, Policy};

/// What its caller is told of a command. A call that comes again is told the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; there is nothing to say.
    Done,
    /// A yes or no for the client.
    Flag(bool),
    /// `Create`: the file is open.
    Created {
        /// The new file.
        status: Box<FileStatus>,
    },
    /// `Append`: the file is open again.
    Appended {
        /// The file.
        status: Box<FileStatus>,
        /// The last block, if writing goes on in it, and its offset in the file. Its stamp is still
        /// the old one: the client gets a new one by `UpdateBlockForPipeline`.
        last: Option<(u64, Block)>,
    },
    /// `AddBlock`: the block to write next.
    BlockAdded {
        /// Where it begins in the file.
        offset: u64,
        /// The block.
        block: Block,
        /// Whether an earlier call had added it already.
        retry: bool,
    },
    /// Operations that take things away.
    Removed {
        /// What the client gets as its yes or no, if the call has one.
        done: bool,
        /// Whether [`crate::ops::delete::Purge`] has more to do.
        more: bool,
    },
    /// `UpdateBlockForPipeline`: the stamp that was given out.
    Stamp(GenerationStamp),
    /// `RecoverLease`, `ReleaseLease`, and what has to take a file from its holder first.
    Recovery {
        /// Whether the file is closed now. If not, a DataNode must recover its last block first.
        closed: bool,
    },
    /// `SetReplication`.
    ReplicationSet {
        /// False if the path is no file: nothing was done.
        done: bool,
        /// The file.
        file: InodeId,
        /// Copies before; 0 if nothing was done.
        old: u16,
        /// Copies now; 0 if nothing was done.
        new: u16,
    },
    /// `AddEcPolicies`, one for each that was asked for.
    PoliciesAdded(Vec<PolicyAdded>),
    /// `CreateSnapshot`: the path of the snapshot.
    SnapshotCreated(String),
    /// `AddCacheDirective`: the directive's number.
    CacheDirective(u64),
    /// `SatisfyStoragePolicy`: what the satisfier is to look after, if that is new.
    ToSatisfy(Option<InodeId>),
    /// `BeginEncode`: the attempt.
    EncodeBegun {
        /// Its handle.
        handle: BlockId,
        /// The stamp of its parities.
        gs: GenerationStamp,
    },
    /// Commands about contiguous groups: nothing was done, because something is not as it was, and what that is.
    GroupRefused(String),
    /// `Convert`, for each file that was named; `SwapBlocks`, for one.
    Converted(Vec<Conversion>),
    /// `IssueToken`, `RenewToken`: the token as it is now.
    Token(Box<Token>),
    /// `RemoveEndedTokens`: the first number that was not looked at, if there are more.
    TokensRemoved(Option<u32>),
}

/// What became of one policy that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyAdded {
    /// The policy, new or already there; `None` if it was refused.
    pub policy: Option<Policy>,
    /// Why it was refused.
    pub error: Option<String>,
}

/// What became of a file that was to be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// It is kept in that way from now on.
    Done,
    /// It was kept so already.
    Same,
    /// It is striped, and stays so.
    Striped,
    /// There is no such file.
    Gone,
    /// It cannot be, and why.
    Refused(String),
}

encode_enum!(Outcome {
    1 => Done,
    2 => Flag(value),
    4 => Appended { status, last },
    5 => BlockAdded { offset, block, retry },
    7 => Stamp(value),
    9 => ReplicationSet { done, file, old, new },
    10 => PoliciesAdded(value),
    16 => SnapshotCreated(value),
    24 => CacheDirective(value),
    34 => ToSatisfy(value),
    36 => Created { status },
    37 => Removed { done, more },
    38 => Recovery { closed },
    40 => EncodeBegun { handle, gs },
    41 => GroupRefused(value),
    42 => Converted(value),
    43 => Token(value),
    44 => TokensRemoved(value),
} or former);
encode_struct!(PolicyAdded { policy, error });
encode_enum!(Conversion {
    1 => Done,
    2 => Same,
    3 => Striped,
    4 => Gone,
    5 => Refused(value),
});

/// Reads what older builds have kept of calls that may come again: outcomes that named blocks as well, of which none
/// were left when they were kept. Tags 32, 33 and 35 were never kept.
fn former(tag: u8, input: &mut Decoder<'_>) -> Result<Option<Outcome>, DecodeError> {
    let no_blocks = |input: &mut Decoder<'_>| match input.byte()? {
        0 => Ok(()),
        count => Err(DecodeError::Invalid { what: "count of removed blocks", value: count.into() }),
    };
    Ok(Some(match tag {
        3 => {
            let status = Decode::decode(input)?;
            no_blocks(input)?;
            Outcome::Created { status }
        }
        6 => {
            let done = Decode::decode(input)?;
            no_blocks(input)?;
            Outcome::Removed { done, more: Decode::decode(input)? }
        }
        8 => {
            let closed = Decode::decode(input)?;
            <Option<(Block, (FileRedundancy, GenerationStamp))>>::decode(input)?;
            no_blocks(input)?;
            Outcome::Recovery { closed }
        }
        _ => return Ok(None),
    }))
}
