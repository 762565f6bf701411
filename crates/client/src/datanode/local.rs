//! Replicas of DataNodes on this machine, read through descriptors that they pass.
//!
//! Each byte is compared with the CRCs of the meta file, as anywhere else. Whatever goes wrong here costs
//! nothing but the way: the caller then reads through the DataNode. No memory is shared for slots: what is
//! read by a generation stamp does not change under it, and CRCs tell of what does.
//!
//! Source: Hadoop 3.5.0 `ShortCircuitCache`, `BlockReaderLocal`, `DomainSocketFactory`.

use super::read_range::{MAX_CHUNK_LEN, ReadRange};
use super::{checked, failure};
use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::fs::Inner;
use crate::protocol::convert;
use crate::types::DataNodeAddr;
use cairn_codec::crc::{ChecksumKind, verify_chunks};
use cairn_net::file_read;
use cairn_net::transfer_stream::{TransferError, TransferOptions, TransferStream};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::{self, MetaHeader};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The newest format of files that is understood.
///
/// Source: Hadoop 3.5.0 `DataNode#CURRENT_BLOCK_FORMAT_VERSION`.
const FORMAT_VERSION: u32 = 1;
/// How long a socket is left alone that did not work: the default of `dfs.domain.socket.disable.interval.seconds`.
const LEAVE_ALONE: Duration = Duration::from_secs(600);

/// The files of one replica.
pub(crate) struct LocalReplica {
    data: File,
    meta: File,
    kind: ChecksumKind,
    chunk_len: u64,
}

/// A replica: the socket of the DataNode that has it, and the block.
type Key = (PathBuf, BlockId, GenerationStamp);

struct Kept {
    key: Key,
    since: Instant,
    replica: Arc<LocalReplica>,
}

/// What is known of DataNodes on this machine.
#[derive(Default)]
struct State {
    /// Open replicas, the one that was not used for longest first.
    kept: VecDeque<Kept>,
    /// Until when sockets are left alone: for descriptors, and for all.
    no_descriptors: HashMap<PathBuf, Instant>,
    no_socket: HashMap<PathBuf, Instant>,
    /// Whether an address is this machine's.
    is_here: HashMap<String, bool>,
}

/// Open replicas of DataNodes on this machine.
#[derive(Default)]
pub(crate) struct LocalReplicas {
    state: Mutex<State>,
}

impl LocalReplicas {
    /// The socket of a DataNode, if it is on this machine and its socket is not known to be of no use.
    pub(crate) fn socket(&self, config: &ClientConfig, addr: &DataNodeAddr) -> Option<PathBuf> {
        let path = config.domain_socket.as_ref()?;
        let path = PathBuf::from(path.replace("_PORT", &addr.xfer_port.to_string()));
        let mut state = self.lock();
        // An address is this machine's if something can be bound to it.
        let is_here = state.is_here.entry(addr.ip.clone());
        let is_here = *is_here.or_insert_with(|| UdpSocket::bind((addr.ip.as_str(), 0)).is_ok());
        (is_here && !is_left_alone(&mut state.no_socket, &path)).then_some(path)
    }

    /// Connects to such a socket; leaves it alone from now on if that fails.
    pub(crate) async fn connect(
        &self,
        config: &ClientConfig,
        path: &Path,
    ) -> Option<TransferStream> {
        let options = TransferOptions {
            connect_timeout: config.socket_timeout,
            read_timeout: config.socket_timeout,
            write_timeout: config.socket_timeout,
            ..TransferOptions::default()
        };
        match TransferStream::connect_domain(path, &options).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "a domain socket is of no use");
                self.lock().no_socket.insert(path.to_path_buf(), Instant::now() + LEAVE_ALONE);
                None
            }
        }
    }

    /// The files of the replica that a range is in, if its DataNode passes them.
    pub(crate) async fn open(
        &self,
        fs: &Inner,
        addr: &DataNodeAddr,
        range: &ReadRange,
    ) -> Option<Arc<LocalReplica>> {
        if !fs.config.short_circuit {
            return None;
        }
        let path = self.socket(&fs.config, addr)?;
        let key = (path.clone(), range.block.id, range.block.stamp);
        {
            let mut state = self.lock();
            if is_left_alone(&mut state.no_descriptors, &path) {
                return None;
            }
            let expiry = fs.config.short_circuit_expiry;
            state.kept.retain(|kept| kept.since.elapsed() < expiry);
            if let Some(at) = state.kept.iter().position(|kept| kept.key == key) {
                let kept = state.kept.remove(at)?;
                let replica = kept.replica.clone();
                state.kept.push_back(kept);
                return Some(replica);
            }
        }
        let replica = match self.request(fs, addr, range, &path).await {
            Ok(replica) => Arc::new(replica?),
            Err(error) => {
                if matches!(&error, ClientError::Refused { status, .. } if *status == Status::ErrorUnsupported as i32)
                {
                    self.lock().no_descriptors.insert(path, Instant::now() + LEAVE_ALONE);
                }
                tracing::debug!(block = %range.block, %error, "read through its DataNode");
                return None;
            }
        };
        let mut state = self.lock();
        while state.kept.len() >= fs.config.short_circuit_replicas {
            if state.kept.pop_front().is_none() {
                return Some(replica);
            }
        }
        state.kept.push_back(Kept { key, since: Instant::now(), replica: replica.clone() });
        Some(replica)
    }

    /// Forgets a replica that could not be read.
    pub(crate) fn forget(&self, replica: &Arc<LocalReplica>) {
        self.lock().kept.retain(|kept| !Arc::ptr_eq(&kept.replica, replica));
    }

    /// Asks for descriptors, over a kept connection if there is one that works; `None` without a connection.
    async fn request(
        &self,
        fs: &Inner,
        addr: &DataNodeAddr,
        range: &ReadRange,
        path: &Path,
    ) -> Result<Option<LocalReplica>> {
        let name = path.to_string_lossy().into_owned();
        if let Some(mut stream) = fs.connections.take(&name) {
            match receive(&mut stream, addr, range).await {
                Err(ClientError::DataNode { .. }) => {} // closed meanwhile
                done => {
                    fs.connections.put(name, stream);
                    return done.map(Some);
                }
            }
        }
        let Some(mut stream) = self.connect(&fs.config, path).await else { return Ok(None) };
        let replica = receive(&mut stream, addr, range).await?;
        fs.connections.put(name, stream);
        Ok(Some(replica))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

fn is_left_alone(until: &mut HashMap<PathBuf, Instant>, path: &Path) -> bool {
    let now = Instant::now();
    until.retain(|_, until| *until > now);
    until.contains_key(path)
}

async fn receive(
    stream: &mut TransferStream,
    addr: &DataNodeAddr,
    range: &ReadRange,
) -> Result<LocalReplica> {
    let request = OpRequestShortCircuitAccessProto {
        header: BaseHeaderProto {
            block: convert::block_proto(&range.block),
            token: Some(range.token.clone()),
            trace_info: None,
        },
        max_version: FORMAT_VERSION,
        slot_id: None,
        supports_receipt_verification: Some(true),
    };
    let failed = |error: TransferError| failure(addr, error);
    stream.writer.send_op(Op::RequestShortCircuitFds, &request).await.map_err(failed)?;
    let answer = stream.reader.read_message_before_fds("BlockOpResponseProto").await;
    checked(answer.map_err(failed)?, addr)?;
    let (receipt, files) = stream.reader.read_fds("descriptors").await.map_err(failed)?;
    if receipt == ShortCircuitFdResponse::UseReceiptVerification as u8 {
        stream.writer.send(&[0]).await.map_err(failed)?;
    }
    let mut files = files.into_iter().map(File::from);
    let (Some(data), Some(meta)) = (files.next(), files.next()) else {
        return Err(ClientError::Protocol(format!("{addr} passes no two descriptors")));
    };
    let unreadable = |source: io::Error| ClientError::DataNode { addr: addr.xfer_addr(), source };
    let mut head = [0; meta_file::HEADER_LEN];
    meta.read_exact_at(&mut head, 0).map_err(unreadable)?;
    let header =
        MetaHeader::decode(&head).map_err(|error| ClientError::Protocol(error.to_string()))?;
    let kind = ChecksumKind::from_id(header.checksum as u8)
        .ok_or_else(|| ClientError::Protocol(format!("{}: unknown checksum type", range.block)))?;
    if header.bytes_per_checksum > MAX_CHUNK_LEN {
        return Err(ClientError::Protocol(format!("{}: bad chunk length", range.block)));
    }
    Ok(LocalReplica { data, meta, kind, chunk_len: header.bytes_per_checksum.into() })
}

impl LocalReplica {
    /// The bytes of a range that ends within `block_len`, compared with their CRCs.
    pub(crate) fn read(&self, offset: u64, len: u64, block_len: u64) -> io::Result<Vec<u8>> {
        let start = offset - offset % self.chunk_len;
        let end = (offset + len).next_multiple_of(self.chunk_len).min(block_len);
        let mut data = vec![0; (end - start) as usize];
        file_read::read_exact_at(&self.data, &mut data, start)?;
        let chunks = (end - start).div_ceil(self.chunk_len) as usize;
        let mut crcs = vec![0; chunks * self.kind.len()];
        let at = start / self.chunk_len * self.kind.len() as u64 + meta_file::HEADER_LEN as u64;
        file_read::read_exact_at(&self.meta, &mut crcs, at)?;
        verify_chunks(self.kind, self.chunk_len as usize, &data, &crcs)
            .map_err(|mismatch| io::Error::new(io::ErrorKind::InvalidData, mismatch.to_string()))?;
        let skip = (offset - start) as usize;
        data.truncate(skip + len as usize);
        data.drain(..skip);
        Ok(data)
    }
}
