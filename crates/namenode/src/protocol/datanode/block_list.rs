//! The two forms in which a full block report lists replicas.
//!
//! The present one is a stream of variable-length numbers, four for each replica: id (zigzag), length
//! (48 bits), generation stamp, state (4 bits). The old one is a list of numbers: two counts, three
//! numbers for each finalized replica, three times -1, four numbers for each other one.
//!
//! Source: Hadoop 3.5.0 `BlockListAsLongs`.

use cairn_redundancy::{BlockRef, ReplicaState, ReportedReplica};
use cairn_stripe::{BlockId, GenerationStamp};

/// Fewest bytes that a replica takes in the present form.
const REPLICA_LEN_MIN: u64 = 4;
/// Bits of the length; the others are kept for later.
const LEN_MASK: u64 = (1 << 48) - 1;
/// Bits of the state; the others are kept for later.
const STATE_MASK: u64 = 0xf;
/// Most bytes of a variable-length number.
const VARINT_LEN_MAX: usize = 10;

/// Why a report cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockListError {
    /// It ends within a replica, or before as many as it announces.
    #[error("a block report ends early")]
    Truncated,
    /// A number is longer than 64 bits.
    #[error("a block report has a malformed number")]
    Number,
    /// More replicas than the bytes can hold.
    #[error("a block report announces {announced} replicas in {len} bytes")]
    Count {
        /// Replicas announced.
        announced: u64,
        /// Bytes there are.
        len: u64,
    },
    /// A state that no replica has.
    #[error("a block report has a replica in state {number}")]
    State {
        /// Its number.
        number: u64,
    },
    /// The finalized replicas of the old form are not set off.
    #[error("a block report lacks the mark after its finalized replicas")]
    Mark,
}

/// Reads the present form: `buffers` are parts of one stream of `count` replicas.
pub fn decode_buffers(
    count: u64,
    buffers: &[Vec<u8>],
) -> Result<Vec<ReportedReplica>, BlockListError> {
    let len: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
    if count > len / REPLICA_LEN_MIN {
        return Err(BlockListError::Count { announced: count, len });
    }
    let mut bytes = buffers.iter().flatten().copied();
    let mut replicas = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    for _ in 0..count {
        let id = BlockId(unzigzag(read_varint(&mut bytes)?));
        let len = read_varint(&mut bytes)? & LEN_MASK;
        let gs = GenerationStamp(read_varint(&mut bytes)?);
        let state = state(read_varint(&mut bytes)? & STATE_MASK)?;
        replicas.push(ReportedReplica { block: BlockRef { id, gs, len }, state, crc32c: None });
    }
    Ok(replicas)
}

/// Reads the old form. Hadoop's DataNodes send it only to NameNodes that know no other.
pub fn decode_longs(numbers: &[u64]) -> Result<Vec<ReportedReplica>, BlockListError> {
    let [finalized, others, rest @ ..] = numbers else {
        return if numbers.is_empty() { Ok(Vec::new()) } else { Err(BlockListError::Truncated) };
    };
    let count = |number: u64| usize::try_from(number).map_err(|_| BlockListError::Truncated);
    let (finalized, others) = (count(*finalized)?, count(*others)?);
    let finalized_len = finalized.checked_mul(3).ok_or(BlockListError::Truncated)?;
    let (closed, rest) = rest.split_at_checked(finalized_len).ok_or(BlockListError::Truncated)?;
    let mut replicas: Vec<ReportedReplica> = closed
        .chunks_exact(3)
        .map(|n| replica(n[0], n[1], n[2], ReplicaState::Finalized))
        .collect();
    if others == 0 {
        return Ok(replicas);
    }
    let open = rest.strip_prefix(&[u64::MAX; 3]).ok_or(BlockListError::Mark)?;
    let open_len = others.checked_mul(4).ok_or(BlockListError::Truncated)?;
    for n in open.get(..open_len).ok_or(BlockListError::Truncated)?.chunks_exact(4) {
        replicas.push(replica(n[0], n[1], n[2], state(n[3])?));
    }
    Ok(replicas)
}

fn replica(id: u64, len: u64, gs: u64, state: ReplicaState) -> ReportedReplica {
    let block = BlockRef { id: BlockId(id as i64), gs: GenerationStamp(gs), len };
    ReportedReplica { block, state, crc32c: None }
}

fn state(number: u64) -> Result<ReplicaState, BlockListError> {
    let known = u8::try_from(number).ok().and_then(ReplicaState::from_number);
    known.ok_or(BlockListError::State { number })
}

fn read_varint(bytes: &mut impl Iterator<Item = u8>) -> Result<u64, BlockListError> {
    let mut value = 0_u64;
    for at in 0..VARINT_LEN_MAX {
        let byte = bytes.next().ok_or(BlockListError::Truncated)?;
        let last = at + 1 == VARINT_LEN_MAX;
        if last && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BlockListError::Number)
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests;
