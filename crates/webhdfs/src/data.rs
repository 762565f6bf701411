//! The bytes of files: what a DataNode or a gateway reads and writes as a client, erasure coded files too.
//!
//! A piece is read while the one before is sent, and a body is written as it arrives: memory does not grow with files.
//! Source: Hadoop 3.5.0 `WebHdfsHandler`, `HdfsWriter`.

use bytes::Bytes;
use cairn_client::{ChecksumMode, CreateOptions, FileReader, FileSystem, FileWriter};
use cairn_net::http::{Answer, Body, Response, Streamed};
use serde_json::json;
use tokio::sync::mpsc;

use crate::attributes::hex;
use crate::failure::{Failure, JSON};
use crate::params::Params;

pub(crate) const OCTETS: &str = "application/octet-stream";

/// Files and ranges up to this length are read in one go.
const SHORT: u64 = 256 << 10;
/// The longest piece that is sent at a time.
const PIECE_MAX: usize = 1 << 20;
/// Pieces that may wait to be sent.
const PIECES: usize = 2;

/// What Hadoop's `DataOutputBuffer` begins with, bytes.
const BUFFER_LEN: usize = 32;

const FLAGS: [&str; 10] = [
    "CREATE",
    "OVERWRITE",
    "APPEND",
    "SYNC_BLOCK",
    "LAZY_PERSIST",
    "NEW_BLOCK",
    "NO_LOCAL_WRITE",
    "SHOULD_REPLICATE",
    "IGNORE_CLIENT_LOCALITY",
    "NO_LOCAL_RACK",
];

/// `OPEN`: the bytes of a range.
pub(crate) async fn open(fs: &FileSystem, path: &str, p: &Params<'_>) -> Result<Answer, Failure> {
    let offset = p.long("offset", Some(0))?.unwrap_or_default();
    let length = p.long("length", Some(0))?;
    p.int("buffersize", Some(1))?;
    let mut reader = fs.open(path).await?;
    let offset = u64::try_from(offset).unwrap_or_default();
    check_offset(path, offset, reader.len())?;
    let left = reader.len() - offset;
    let left = length.and_then(|len| u64::try_from(len).ok()).map_or(left, |len| len.min(left));
    if left <= SHORT {
        let mut bytes = vec![0; left as usize];
        let read = reader.read_at(offset, &mut bytes).await?;
        bytes.truncate(read);
        return Ok(Response::new(200, OCTETS, bytes).into());
    }
    reader.seek(offset);
    // What cannot be read at all is told by a status.
    let first = next(&mut reader, left).await?;
    let (sender, body) = mpsc::channel(PIECES);
    let told = path.to_string();
    tokio::spawn(async move {
        if let Err(error) = send(&mut reader, first, left, &sender).await {
            tracing::warn!(path = told, %error, "a file could not be sent to its end");
        }
    });
    Ok(Answer::Streamed(Streamed::new(OCTETS, body).of_len(left)))
}

/// Refuses to read from behind the end of a file.
pub(crate) fn check_offset(path: &str, offset: u64, len: u64) -> Result<(), Failure> {
    if offset < len || (offset, len) == (0, 0) {
        return Ok(());
    }
    Err(Failure::io(format!("Offset={offset} out of the range [0, {len}); OPEN, path={path}")))
}

/// Sends pieces until `left` bytes are sent or nobody wants them.
async fn send(
    reader: &mut FileReader,
    first: Bytes,
    mut left: u64,
    to: &mpsc::Sender<Bytes>,
) -> Result<(), Failure> {
    let mut piece = first;
    loop {
        left -= piece.len() as u64;
        if to.send(piece).await.is_err() || left == 0 {
            return Ok(());
        }
        piece = next(reader, left).await?;
    }
}

/// The next piece of a file, `left` bytes at most and one at least.
async fn next(reader: &mut FileReader, left: u64) -> Result<Bytes, Failure> {
    let max = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_MAX);
    let piece = reader.next_chunk_up_to(max).await?;
    piece
        .filter(|piece| !piece.is_empty())
        .ok_or_else(|| Failure::io("The file has become shorter"))
}

/// `CREATE`: a new file of what the body has.
pub(crate) async fn create(
    fs: &FileSystem,
    path: &str,
    p: &Params<'_>,
    body: &mut Option<Body>,
) -> Result<u64, Failure> {
    const CLASS: &str = "org.apache.hadoop.fs.CreateFlag";
    p.int("buffersize", Some(1))?;
    let flags = p.words("createflag", CLASS, &FLAGS)?;
    let has = |flag: &str| flags.contains(&flag);
    let permission = p.mode("permission")?.unwrap_or(0o644);
    let unmasked = p.mode("unmaskedpermission")?;
    let options = CreateOptions {
        overwrite: p.boolean("overwrite", false)? || has("OVERWRITE"),
        create_parents: p.boolean("createparent", true)?,
        replication: p.replication()?.and_then(|copies| u16::try_from(copies).ok()),
        block_size: p.long("blocksize", Some(1))?.and_then(|len| u64::try_from(len).ok()),
        policy: None,
        should_replicate: has("SHOULD_REPLICATE"),
        permission: Some(unmasked.unwrap_or(permission)),
        masked: Some(permission),
    };
    let writer = fs.create(path, &options).await?;
    write(writer, body.take().unwrap_or_else(Body::empty)).await
}

/// `APPEND`: what the body has behind the end of a file.
pub(crate) async fn append(
    fs: &FileSystem,
    path: &str,
    p: &Params<'_>,
    body: &mut Option<Body>,
) -> Result<u64, Failure> {
    p.int("buffersize", Some(1))?;
    let writer = fs.append(path).await?;
    write(writer, body.take().unwrap_or_else(Body::empty)).await
}

/// Writes a body and closes the file, also when the client goes away: what has arrived by then stays, as in Hadoop, and
/// nobody else has to wait for the lease.
async fn write(writer: FileWriter, mut body: Body) -> Result<u64, Failure> {
    let written = tokio::spawn(async move {
        let mut writer = writer;
        let mut len = 0;
        let ended = loop {
            match body.next().await {
                Ok(Some(piece)) => {
                    writer.write(&piece).await?;
                    len += piece.len() as u64;
                }
                Ok(None) => break Ok(len),
                Err(error) => break Err(Failure::io(format!("The body did not end: {error}"))),
            }
        };
        writer.close().await?;
        ended
    });
    written.await.map_err(|error| Failure::io(error.to_string()))?
}

/// `GETFILECHECKSUM`.
pub(crate) async fn checksum(fs: &FileSystem, path: &str) -> Result<Answer, Failure> {
    let checksum = fs.checksum(path, ChecksumMode::Md5Md5Crc).await?;
    let mut checksum =
        checksum.ok_or_else(|| Failure::not_found(format!("Path is not a file: {path}")))?;
    let len = checksum.bytes.len();
    // Hadoop tells the whole of its buffer.
    checksum.bytes.resize(len.max(BUFFER_LEN), 0);
    let told = json!({"FileChecksum": {
        "algorithm": checksum.algorithm,
        "bytes": hex(&checksum.bytes),
        "length": len,
    }});
    Ok(Response::ok(JSON, told.to_string()).into())
}
