//! The checksum of a file, put together from what DataNodes say of its blocks.
//!
//! Source: Hadoop 3.5.0 `FileChecksumHelper`, `MD5MD5CRC32FileChecksum`, `CompositeCrcFileChecksum`.

use crate::datanode::checksum::{BlockChecksum, block_checksum, group_checksum};
use crate::error::{ClientError, Result};
use crate::protocol::convert::{Located, LocatedFile};
use crate::session::Session;
use crate::types::{Block, ChecksumMode, FileChecksum};
use cairn_codec::crc::{ChecksumKind, combine};
use md5::{Digest, Md5};

/// Hadoop digests its whole buffer, which starts at this many bytes and doubles: zeros included.
const FIRST_BUFFER_LEN: usize = 32;

/// The checksum of the file at `path`, `None` for a directory.
pub(crate) async fn file_checksum(
    session: &Session,
    path: &str,
    mode: ChecksumMode,
) -> Result<Option<FileChecksum>> {
    let status = session.require(path).await?;
    if status.is_dir() {
        return Ok(None);
    }
    let file = session.located(path, 0, u64::MAX).await?;
    let mut sums = Vec::with_capacity(file.blocks.len());
    for located in &file.blocks {
        let len = located.block.block.len;
        sums.push((one_block(session, &file, located, len, mode).await?, len));
    }
    let Some((first, _)) = sums.first() else {
        let md5 = Md5::digest([0; FIRST_BUFFER_LEN]);
        return Ok(Some(md5_checksum(0, 0, ChecksumKind::Crc32, &md5)));
    };
    for (sum, _) in &sums {
        if sum.bytes_per_crc != first.bytes_per_crc || sum.kind != first.kind {
            let what = format!("{path}: blocks with different kinds of checksums");
            return Err(ClientError::Protocol(what));
        }
    }
    match mode {
        ChecksumMode::Md5Md5Crc => Ok(Some(md5_of_blocks(&sums)?)),
        ChecksumMode::CompositeCrc => Ok(Some(crc_of_blocks(&sums)?)),
    }
}

/// Asks the block's DataNodes in turn.
async fn one_block(
    session: &Session,
    file: &LocatedFile,
    located: &Located,
    len: u64,
    mode: ChecksumMode,
) -> Result<BlockChecksum> {
    let config = &session.config;
    let block = Block { len, ..located.block.block.clone() };
    let mut last = "no location".to_string();
    for location in &located.block.locations {
        let addr = &location.addr;
        let answer = match &file.policy {
            None => block_checksum(config, addr, located, &block, mode).await,
            Some(policy) => group_checksum(config, addr, located, policy, len, mode).await,
        };
        match answer {
            Ok(sum) => return Ok(sum),
            Err(error) => {
                tracing::debug!(%block, %error, "no checksum");
                last = error.to_string();
            }
        }
    }
    Err(ClientError::NoReplica { block: block.to_string(), last })
}

fn sized<const N: usize>(sum: &BlockChecksum) -> Result<[u8; N]> {
    let wrong = || ClientError::Protocol(format!("block checksum of {} bytes", sum.bytes.len()));
    sum.bytes.as_slice().try_into().map_err(|_| wrong())
}

fn md5_of_blocks(sums: &[(BlockChecksum, u64)]) -> Result<FileChecksum> {
    let first = &sums[0].0;
    let mut buffer = Vec::with_capacity(sums.len() * 16);
    for (sum, _) in sums {
        buffer.extend_from_slice(&sized::<16>(sum)?);
    }
    buffer.resize(buffer.len().next_power_of_two().max(FIRST_BUFFER_LEN), 0);
    let per_block = if sums.len() > 1 { first.crcs_per_block } else { 0 };
    Ok(md5_checksum(first.bytes_per_crc, per_block, first.kind, &Md5::digest(&buffer)))
}

fn md5_checksum(
    bytes_per_crc: u32,
    crcs_per_block: u64,
    kind: ChecksumKind,
    md5: &[u8],
) -> FileChecksum {
    let mut bytes = Vec::with_capacity(28);
    bytes.extend_from_slice(&bytes_per_crc.to_be_bytes());
    bytes.extend_from_slice(&crcs_per_block.to_be_bytes());
    bytes.extend_from_slice(md5);
    let algorithm = format!("MD5-of-{crcs_per_block}MD5-of-{bytes_per_crc}{kind}");
    FileChecksum { algorithm, bytes }
}

fn crc_of_blocks(sums: &[(BlockChecksum, u64)]) -> Result<FileChecksum> {
    let kind = sums[0].0.kind;
    let mut crc = 0;
    for (sum, len) in sums {
        crc = combine(kind, crc, u32::from_be_bytes(sized::<4>(sum)?), *len);
    }
    let algorithm = format!("COMPOSITE-{kind}");
    Ok(FileChecksum { algorithm, bytes: crc.to_be_bytes().to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: Vec<u8>) -> BlockChecksum {
        let kind = ChecksumKind::Crc32c;
        BlockChecksum { bytes_per_crc: 512, crcs_per_block: 2048, kind, bytes }
    }

    #[test]
    fn an_empty_file_has_hadoops_magic_checksum() {
        let md5 = Md5::digest([0; FIRST_BUFFER_LEN]);
        let sum = md5_checksum(0, 0, ChecksumKind::Crc32, &md5);
        assert_eq!(sum.algorithm, "MD5-of-0MD5-of-0CRC32");
        assert_eq!(sum.to_hex(), "00000000000000000000000070bc8f4b72a86921468bf8e8441dce51");
    }

    #[test]
    fn the_zeros_of_hadoops_buffer_are_digested_too() {
        let blocks = [(sum(vec![1; 16]), 5), (sum(vec![2; 16]), 5), (sum(vec![3; 16]), 5)];
        let got = md5_of_blocks(&blocks).unwrap();
        let mut buffer = [vec![1; 16], vec![2; 16], vec![3; 16]].concat();
        buffer.resize(64, 0);
        assert_eq!(got.bytes[12..], Md5::digest(&buffer)[..]);
        assert_eq!(got.algorithm, "MD5-of-2048MD5-of-512CRC32C");
        let one = md5_of_blocks(&blocks[..1]).unwrap();
        assert_eq!(one.algorithm, "MD5-of-0MD5-of-512CRC32C");
    }

    #[test]
    fn a_composite_crc_is_that_of_the_bytes() {
        let crc = |data: &[u8]| cairn_codec::crc::crc32c(0, data);
        let blocks = [
            (sum(crc(b"hello ").to_be_bytes().to_vec()), 6),
            (sum(crc(b"world").to_be_bytes().to_vec()), 5),
        ];
        let got = crc_of_blocks(&blocks).unwrap();
        assert_eq!(got.bytes, crc(b"hello world").to_be_bytes());
        assert_eq!(got.algorithm, "COMPOSITE-CRC32C");
        assert!(crc_of_blocks(&[(sum(vec![1, 2, 3]), 1)]).is_err());
    }
}
