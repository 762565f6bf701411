//! A look at one replica: lengths, every chunk's CRC, and the CRC of all its bytes.

use crate::dataset::{Block, Finalized, ReadView, blocking};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::sys;
use crate::volume::Volume;
use cairn_codec::crc::{self, CRC_LEN, ChecksumKind};
use cairn_replica::{CrcFold, Replica};
use cairn_stripe::BlockId;
use rustix::fs::Advice;
use std::sync::Arc;
use std::time::Duration;

/// Bytes read at once, at most; at low rates as many as a quarter of a second takes.
const MAX_STEP: u64 = 1 << 20;
const MIN_STEP: u64 = 64 << 10;

/// What came of a look.
pub(super) enum Outcome {
    /// All is as it should be. Without the CRC of all bytes if not all were read in one look.
    Good(Finalized),
    /// The replica is not what it was when it was finalized.
    Bad { block: Block, error: DataNodeError },
    /// It is not there, is being written, or was bad at the first look only.
    Passed,
}

/// Looks at a replica, and a second time if it seems to be bad.
pub(super) async fn look(node: &Arc<Node>, volume: &Arc<Volume>, id: BlockId) -> Outcome {
    let Some(replica) = node.dataset.finalized_on(id, volume) else { return Outcome::Passed };
    let block = Block {
        pool: node.dataset.pool_id().unwrap_or_default().into(),
        id,
        gs: replica.gs(),
        len: replica.on_disk_len(),
    };
    let is_same = |replica: &Replica| {
        let now = node.dataset.finalized_on(id, volume);
        now.is_some_and(|now| {
            (now.gs(), now.on_disk_len()) == (replica.gs(), replica.on_disk_len())
        })
    };
    let mut doubt = 0;
    let error = match read_from(node, &block, &mut doubt).await {
        Ok(crc32c) if is_same(&replica) => {
            let storage_id = volume.storage_id().into();
            let Block { gs, len, .. } = block;
            return Outcome::Good(Finalized { id, gs, len, storage_id, crc32c });
        }
        Ok(_) => return Outcome::Passed,
        Err(error) => error,
    };
    tracing::info!(block = %id, %error, "a replica seems to be bad, looking again");
    match read_from(node, &block, &mut doubt).await {
        // It is bad only if nobody has changed or deleted it meanwhile.
        Err(error) if is_same(&replica) => Outcome::Bad { block, error },
        _ => Outcome::Passed,
    }
}

/// Checks the chunks from byte `at` on, which follows what was found good. Returns the CRC32C of all bytes, if
/// they were read from the first on.
async fn read_from(node: &Arc<Node>, block: &Block, at: &mut u64) -> Result<Option<u32>> {
    let view = Arc::new(node.dataset.open_read(block, 0).await?);
    view.check_lengths()?;
    let (kind, chunk_len) = (view.checksum.kind, view.checksum.chunk_len as u64);
    let (has_sum, has_crc32cs) = (*at == 0, kind == ChecksumKind::Crc32c);
    let mut sum = Sum { fold: CrcFold::new(kind, view.checksum.chunk_len), tail: 0, of_bytes: 0 };
    let mut rate = node.scanner.rate().max(1);
    let step = (rate / 4).clamp(MIN_STEP, MAX_STEP);
    let step = step.next_multiple_of(chunk_len);
    while *at < view.end {
        let end = (*at + step).min(view.end);
        let (slice_view, from, block_id) = (view.clone(), *at, block.id);
        sum = blocking(move || check_slice(&slice_view, block_id, from, end, sum)).await?;
        // One that was begun is read to its end, at the rate before if scanners were turned off.
        rate = Some(node.scanner.rate()).filter(|now| *now > 0).unwrap_or(rate);
        let cost = (end - from) as f64 / rate as f64;
        *at = end;
        tokio::time::sleep(Duration::from_secs_f64(cost)).await;
    }
    Ok(has_sum.then(|| match has_crc32cs {
        true => sum.fold.finish(sum.tail, view.end % chunk_len),
        false => sum.of_bytes,
    }))
}

/// The CRC of the chunks so far.
struct Sum {
    fold: CrcFold,
    /// Of a last chunk that is not full.
    tail: u32,
    /// CRC32C of the bytes themselves, where the chunks have none.
    of_bytes: u32,
}

/// Checks some chunks. They are read from the disk, not from memory, and do not stay there.
fn check_slice(view: &ReadView, id: BlockId, from: u64, end: u64, mut sum: Sum) -> Result<Sum> {
    let (kind, chunk_len) = (view.checksum.kind, view.checksum.chunk_len);
    sys::advise(&view.data, from, end - from, Advice::DontNeed);
    let (mut data, mut crcs) = (vec![0; (end - from) as usize], Vec::new());
    view.read_at(from, &mut data)?;
    sys::advise(&view.data, from, end - from, Advice::DontNeed);
    if kind != ChecksumKind::Crc32c {
        sum.of_bytes = crc::crc32c(sum.of_bytes, &data);
    }
    if kind == ChecksumKind::Null {
        return Ok(sum);
    }
    view.crcs(from, end, &mut crcs)?;
    crc::verify_chunks(kind, chunk_len, &data, &crcs)
        .map_err(|bad| DataNodeError::Checksum(format!("{id} at {from}: {bad}")))?;
    let full = data.len() / chunk_len;
    for (at, crc) in crcs.chunks_exact(CRC_LEN).enumerate() {
        let crc = crc.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        if at < full { sum.fold.push(crc) } else { sum.tail = crc }
    }
    Ok(sum)
}
