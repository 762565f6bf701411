//! Reads many whole blocks of one DataNode in one exchange.
//!
//! Hadoop's DataNodes, and Cairn's of before, answer for the first block only.

use super::read_block::{self, Dial, RemoteReader};
use super::read_range::ReadRange;
use super::{checked, failure};
use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::types::DataNodeAddr;
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::{BlockOpResponseProto, Status};
use std::sync::Arc;

/// Most blocks of one exchange.
pub(crate) const MOST_AT_ONCE: usize = cairn_wire::transfer::MAX_ALSO + 1;

/// Gives `take` the bytes of each block that comes, checked, with its place among `ranges`, which are of whole blocks and at
/// most [`MOST_AT_ONCE`]. What the DataNode refuses is left out.
pub(crate) async fn read_many(
    session: &Arc<Session>,
    addr: &DataNodeAddr,
    ranges: &[ReadRange],
    take: impl FnMut(usize, Vec<u8>),
) -> Result<()> {
    let Some((first, also)) = ranges.split_first() else { return Ok(()) };
    let mut dial = Dial::new(session, addr, &first.token);
    loop {
        let (mut stream, peer, is_kept) = dial.next().await?;
        let begun = async {
            read_block::request(session, addr, first, also, &mut stream).await?;
            answer(&mut stream, addr).await
        };
        match begun.await {
            Err(ClientError::DataNode { .. }) if is_kept => {} // closed meanwhile
            begun => {
                let from = (session, addr, peer);
                return read_answers(from, ranges, begun?, stream, take).await;
            }
        }
    }
}

async fn answer(stream: &mut TransferStream, addr: &DataNodeAddr) -> Result<BlockOpResponseProto> {
    let answer = stream.reader.read_message("BlockOpResponseProto").await;
    answer.map_err(|error| failure(addr, error))
}

async fn read_answers(
    (session, addr, peer): (&Arc<Session>, &DataNodeAddr, String),
    ranges: &[ReadRange],
    mut told: BlockOpResponseProto,
    mut stream: TransferStream,
    mut take: impl FnMut(usize, Vec<u8>),
) -> Result<()> {
    let wrong = |what: &str| ClientError::Protocol(format!("{addr}: {what}"));
    for left in (0..ranges.len()).rev() {
        let number = told.answered;
        let at = number.unwrap_or_default() as usize;
        let range = ranges.get(at).ok_or_else(|| wrong("it answers what nobody has asked"))?;
        if number.is_none() || told.status == Status::Success as i32 {
            let form = read_block::checksum_info(checked(told, addr)?, range)?;
            let (of, from, name) = (session.clone(), addr.clone(), peer.clone());
            let mut reader = RemoteReader::new(of, from, range, stream, name, form);
            let mut bytes = Vec::with_capacity(range.len as usize);
            while let Some(piece) = reader.next().await? {
                bytes.extend_from_slice(&piece);
            }
            let ended = reader.end().await;
            stream = ended.ok_or_else(|| wrong("a block does not end where it should"))?;
            take(at, bytes);
        }
        if left == 0 || number.is_none() {
            break;
        }
        told = answer(&mut stream, addr).await?;
    }
    read_block::keep(session, stream, peer);
    Ok(())
}
