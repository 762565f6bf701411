//! Opening a file whose last block is being written: how much of that block can be read.
//!
//! Bytes that a writer was told are there must not be missing without an error, so a block is taken for empty only
//! where every DataNode says that it has no replica. Tested in `tests/it/open_blocks.rs`.

use crate::datanode::visible_len;
use crate::error::{ClientError, Result};
use crate::protocol::convert::{Located, LocatedFile};
use crate::session::Session;
use crate::types::DataNodeAddr;
use cairn_wire::exception::class;
use std::time::{Duration, Instant};

/// How often the NameNode is asked again for the locations of a block that is appended to: DataNodes may not have
/// reported yet.
///
/// Source: Hadoop 3.5.0 `dfs.client.retry.times.get-last-block-length`.
const LOCATION_RETRIES: u32 = 3;

/// The wait before that.
///
/// Source: Hadoop 3.5.0 `dfs.client.retry.interval-ms.get-last-block-length`.
const LOCATION_WAIT: Duration = Duration::from_secs(4);

/// The wait before a DataNode that is not ready is asked again.
const NOT_READY_WAIT: Duration = Duration::from_millis(500);

/// A file's blocks, and how many bytes readers may see of a last block that is being written.
///
/// Source: Hadoop 3.5.0 `DFSInputStream#openInfo`, `#getLastBlockLength`.
pub(super) async fn located(session: &Session, path: &str) -> Result<(LocatedFile, u64)> {
    let mut tries = 0;
    loop {
        let located = session.located(path, 0, u64::MAX).await?;
        let is_open = !located.last_block_complete && located.policy.is_none();
        let Some(last) = located.last_block.as_ref().filter(|_| is_open) else {
            return Ok((located, 0));
        };
        if !last.block.locations.is_empty() {
            let visible = visible_tail(session, path, last).await?;
            return Ok((located, visible));
        }
        if last.block.block.len == 0 {
            return Ok((located, 0));
        }
        if tries == LOCATION_RETRIES {
            let what = "the NameNode knows of no DataNode that has it".to_string();
            return Err(unknown_len(path, last, what));
        }
        tries += 1;
        tracing::warn!(path, block = %last.block.block, "its locations are waited for");
        tokio::time::sleep(LOCATION_WAIT).await;
    }
}

/// Bytes that readers may see of a last block that is being written; 0 when no DataNode has it.
///
/// Source: Hadoop 3.5.0 `DFSInputStream#readBlockLength`.
async fn visible_tail(session: &Session, path: &str, last: &Located) -> Result<u64> {
    let config = &session.config;
    let mut asked: Vec<&DataNodeAddr> = last.block.locations.iter().map(|at| &at.addr).collect();
    let mut failure = None;
    let mut deadline = None;
    loop {
        let (mut not_ready, mut why) = (Vec::new(), None);
        for addr in asked {
            match visible_len(config, addr, last).await {
                Ok(len) => return Ok(len),
                // The pipeline may not have come as far. Any other error may hide bytes.
                Err(error) if error.is_remote(class::REPLICA_NOT_FOUND) => {}
                Err(error) if error.is_remote(class::RETRIABLE) => {
                    not_ready.push(addr);
                    why = Some(error);
                }
                Err(error) => failure = Some(error),
            }
        }
        let now = Instant::now();
        if not_ready.is_empty() || now >= *deadline.get_or_insert(now + config.socket_timeout) {
            return match failure.or(why) {
                None => Ok(0),
                Some(error) => Err(unknown_len(path, last, error.to_string())),
            };
        }
        asked = not_ready;
        tokio::time::sleep(NOT_READY_WAIT).await;
    }
}

fn unknown_len(path: &str, last: &Located, why: String) -> ClientError {
    let block = last.block.block.to_string();
    ClientError::UnknownLength { block, path: path.to_string(), last: why }
}
