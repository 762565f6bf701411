//! Replicas of DataNodes on this machine, read through descriptors that they pass.
//!
//! Each byte is compared with the CRCs of the meta file, as anywhere else. Whatever goes wrong here costs
//! nothing but the way: the caller then reads through the DataNode. No memory is shared for slots: what is
//! read by a generation stamp does not change under it, and CRCs tell of what does.
//!
//! Source: Hadoop 3.5.0 `ShortCircuitCache`, `BlockReaderLocal`, `DomainSocketFactory`.

use super::pool::ConnectionPool;
use super::read_range::{MAX_CHUNK_LEN, ReadRange};
use super::verify::verify_parts;
use super::{checked, failure};
use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::protocol::convert;
use crate::types::DataNodeAddr;
use cairn_codec::crc::ChecksumKind;
use cairn_net::file_read;
use cairn_net::transfer_stream::{TransferError, TransferOptions, TransferStream};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::{self, MetaHeader};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::collections::HashMap;
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
/// How often, while a replica may be open, those that were for too long are looked for.
const SWEEPS: u32 = 4;

/// The files of one replica.
pub(crate) struct LocalReplica {
    data: File,
    meta: File,
    kind: ChecksumKind,
    chunk_len: u64,
}

/// A replica: the address and port of the DataNode that has it, and the block. The port alone, which its socket is named
/// by, is that of DataNodes on other machines too.
type Key = (String, u16, BlockId, GenerationStamp);

struct Kept {
    since: Instant,
    used: Instant,
    replica: Arc<LocalReplica>,
}

/// What is known of DataNodes on this machine.
#[derive(Default)]
struct State {
    /// Open replicas.
    kept: HashMap<Key, Kept>,
    /// When those that were open for too long are next looked for.
    next_sweep: Option<Instant>,
    /// Until when sockets are left alone: for descriptors, and for all.
    no_descriptors: HashMap<PathBuf, Instant>,
    no_socket: HashMap<PathBuf, Instant>,
    /// Whether an address is this machine's.
    is_here: HashMap<String, bool>,
}

impl State {
    /// A replica that is open, and has not been for longer than `expiry`.
    fn kept(&mut self, key: &Key, now: Instant, expiry: Duration) -> Option<Arc<LocalReplica>> {
        if self.next_sweep.is_none_or(|at| now >= at) {
            self.kept.retain(|_, kept| now.duration_since(kept.since) < expiry);
            self.next_sweep = Some(now + expiry / SWEEPS);
        }
        let kept = self.kept.get_mut(key)?;
        kept.used = now;
        (now.duration_since(kept.since) < expiry).then(|| kept.replica.clone())
    }

    /// Keeps a replica open, in place of the one that was not used for longest if there are `most`.
    fn keep(&mut self, key: Key, now: Instant, replica: Arc<LocalReplica>, most: usize) {
        if most == 0 {
            return;
        }
        while self.kept.len() >= most && !self.kept.contains_key(&key) {
            let oldest =
                self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.kept.remove(&oldest));
        }
        self.kept.insert(key, Kept { since: now, used: now, replica });
    }
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
        config: &ClientConfig,
        connections: &ConnectionPool,
        addr: &DataNodeAddr,
        range: &ReadRange,
    ) -> Option<Arc<LocalReplica>> {
        if !config.short_circuit {
            return None;
        }
        let key = (addr.ip.clone(), addr.xfer_port, range.block.id, range.block.stamp);
        let (now, expiry) = (Instant::now(), config.short_circuit_expiry);
        if let Some(replica) = self.lock().kept(&key, now, expiry) {
            return Some(replica);
        }
        let path = self.socket(config, addr)?;
        if is_left_alone(&mut self.lock().no_descriptors, &path) {
            return None;
        }
        let replica = match self.request(config, connections, addr, range, &path).await {
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
        let most = config.short_circuit_replicas;
        self.lock().keep(key, Instant::now(), replica.clone(), most);
        Some(replica)
    }

    /// Forgets a replica that could not be read.
    pub(crate) fn forget(&self, replica: &Arc<LocalReplica>) {
        self.lock().kept.retain(|_, kept| !Arc::ptr_eq(&kept.replica, replica));
    }

    /// Asks for descriptors, over a kept connection if there is one that works; `None` without a connection.
    async fn request(
        &self,
        config: &ClientConfig,
        connections: &ConnectionPool,
        addr: &DataNodeAddr,
        range: &ReadRange,
        path: &Path,
    ) -> Result<Option<LocalReplica>> {
        let name = path.to_string_lossy().into_owned();
        if let Some(mut stream) = connections.take(&name) {
            match receive(&mut stream, addr, range).await {
                Err(ClientError::DataNode { .. }) => {} // closed meanwhile
                done => {
                    connections.put(name, stream);
                    return done.map(Some);
                }
            }
        }
        let Some(mut stream) = self.connect(config, path).await else { return Ok(None) };
        let replica = receive(&mut stream, addr, range).await?;
        connections.put(name, stream);
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
            trace_info: cairn_net::transfer_stream::trace_info(),
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
    /// Fills `into` with the bytes from `offset` on, which end within `block_len`, and compares them with their CRCs.
    pub(crate) fn read_into(&self, offset: u64, into: &mut [u8], block_len: u64) -> io::Result<()> {
        let end = offset + into.len() as u64;
        let from = offset - offset % self.chunk_len;
        let to = end.next_multiple_of(self.chunk_len).min(block_len).max(end);
        let chunks = (to - from).div_ceil(self.chunk_len) as usize;
        // What else belongs to the first and the last chunk, and the CRCs.
        let (lead_len, trail_len) = ((offset - from) as usize, (to - end) as usize);
        let mut around = vec![0; lead_len + trail_len + chunks * self.kind.len()];
        let (lead, rest) = around.split_at_mut(lead_len);
        let (trail, crcs) = rest.split_at_mut(trail_len);
        let parts = [&mut *lead, &mut *into, &mut *trail];
        file_read::read_exact_parts_at(&self.data, parts, from)?;
        if self.kind == ChecksumKind::Null {
            return Ok(());
        }
        let at = from / self.chunk_len * self.kind.len() as u64 + meta_file::HEADER_LEN as u64;
        file_read::read_exact_at(&self.meta, crcs, at)?;
        let chunk_len = self.chunk_len as usize;
        verify_parts(self.kind, chunk_len, [lead, into, trail], crcs).map_err(|chunk| {
            let what =
                format!("chunk {} does not match its CRC", from / self.chunk_len + chunk as u64);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica() -> Arc<LocalReplica> {
        let file = || tempfile::tempfile().unwrap();
        let (data, meta, kind) = (file(), file(), ChecksumKind::Null);
        Arc::new(LocalReplica { data, meta, kind, chunk_len: 512 })
    }

    fn key(id: i64) -> Key {
        ("127.0.0.1".to_string(), 9866, BlockId(id), GenerationStamp(1))
    }

    #[test]
    fn the_replica_that_was_not_used_for_longest_makes_room() {
        let (mut state, expiry) = (State::default(), Duration::from_secs(100));
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        state.keep(key(1), at(0), replica(), 2);
        state.keep(key(2), at(1), replica(), 2);
        let elsewhere = ("192.0.2.1".to_string(), 9866, BlockId(1), GenerationStamp(1));
        assert!(state.kept(&elsewhere, at(2), expiry).is_none(), "of another machine");
        assert!(state.kept(&key(1), at(2), expiry).is_some());
        state.keep(key(3), at(3), replica(), 2);
        let mut is_kept = |id, seconds| state.kept(&key(id), at(seconds), expiry).is_some();
        assert_eq!([1, 2, 3].map(|id| is_kept(id, 4)), [true, false, true]);
        // Use does not make it younger.
        assert_eq!([1, 3].map(|id| is_kept(id, 101)), [false, true]);
        assert_eq!(state.kept.len(), 1, "what is too old is closed, asked for or not");
        state.keep(key(4), at(102), replica(), 0);
        assert_eq!(state.kept.len(), 1, "none is to be kept");
    }
}
