//! Reading the short files of a directory many at a time.
//!
//! A page of the listing brings where their blocks are, and tokens; then each DataNode is asked for many whole blocks at
//! once. Of packed blocks it reads a range of their container for many. What does not come so is read as any other file.

use crate::datanode::pace::Expected;
use crate::datanode::read_many::{MOST_AT_ONCE, read_many};
use crate::datanode::read_range::ReadRange;
use crate::datanode::reads::Reads;
use crate::datanode::silent::is_silence;
use crate::error::Result;
use crate::fs::{FileSystem, Pages};
use crate::protocol::convert::{self, Located};
use crate::session::Session;
use crate::types::{DataNodeAddr, FileStatus};
use bytes::Bytes;
use cairn_wire::proto::hdfs::HdfsFileStatusProto;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Longer files are read as any other.
const SHORT_FILE: u64 = 1 << 20;
/// Bytes and files that are read ahead of the caller, about.
const WINDOW_LEN: u64 = 8 << 20;
const WINDOW_FILES: usize = 2048;
/// How long one exchange may take: what has not come by then is read otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// The entries of a directory in the order of their names, with the bytes of short files.
pub struct DirectoryReader {
    session: Arc<Session>,
    pages: Pages,
    waiting: VecDeque<(FileStatus, Wanted)>,
    ready: VecDeque<(FileStatus, Option<Bytes>)>,
}

/// What is read of an entry here.
enum Wanted {
    Nothing,
    Empty,
    Block(Box<Located>),
}

impl FileSystem {
    /// As [`FileSystem::list`], with the bytes of short files, which are read many at a time where the servers are
    /// Cairn's.
    pub fn read_directory(&self, path: &str) -> DirectoryReader {
        DirectoryReader::new(self, path)
    }
}

impl DirectoryReader {
    pub(crate) fn new(fs: &FileSystem, path: &str) -> DirectoryReader {
        DirectoryReader {
            session: fs.session.clone(),
            pages: Pages::new(fs, path, Some(SHORT_FILE)),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next entry, `None` at the end; without bytes if it is no file, or one that is to be opened to be read: it is long,
    /// encrypted, striped or open for writing, the caller may not read it, it could not be read with others, or the servers
    /// are not Cairn's. Fails with [`crate::ClientError::NotFound`] at the first call when there is no such path.
    pub async fn next(&mut self) -> Result<Option<(FileStatus, Option<Bytes>)>> {
        while self.ready.is_empty() {
            while self.waiting.is_empty() {
                let Some(page) = self.pages.next().await? else { return Ok(None) };
                for mut proto in page {
                    let wanted = wanted(&mut proto)?;
                    self.waiting.push_back((self.pages.status(proto)?, wanted));
                }
            }
            self.read_ahead().await;
        }
        Ok(self.ready.pop_front())
    }

    /// Reads the next files, as many as are read ahead.
    async fn read_ahead(&mut self) {
        let (mut files, mut blocks, mut len) = (Vec::new(), Vec::new(), 0);
        while let Some((status, wanted)) = self.waiting.pop_front() {
            len += status.len.min(SHORT_FILE);
            let bytes = matches!(wanted, Wanted::Empty).then(Bytes::new);
            if let Wanted::Block(located) = wanted {
                blocks.push((files.len(), located));
            }
            files.push((status, bytes));
            if len >= WINDOW_LEN || files.len() >= WINDOW_FILES {
                break;
            }
        }
        let mut reads = Reads::new();
        for (addr, mut of_node) in by_node(&self.session, blocks) {
            while !of_node.is_empty() {
                let behind = of_node.split_off(of_node.len().min(MOST_AT_ONCE));
                let some = std::mem::replace(&mut of_node, behind);
                reads.push(read_some(&self.session, addr.clone(), some));
            }
        }
        while let Some(read) = reads.next().await {
            for (at, bytes) in read {
                files[at].1 = Some(bytes.into());
            }
        }
        drop(reads);
        self.ready.extend(files);
    }
}

/// What of an entry can be read here. Takes its blocks out.
fn wanted(proto: &mut HdfsFileStatusProto) -> Result<Wanted> {
    let Some(located) = proto.locations.take() else { return Ok(Wanted::Nothing) };
    let mut file = convert::located_file(located)?;
    let is_whole = !file.under_construction && file.len == proto.length;
    if !is_whole || file.policy.is_some() || file.encryption.is_some() || file.len > SHORT_FILE {
        return Ok(Wanted::Nothing);
    }
    Ok(match (file.blocks.len(), file.blocks.pop()) {
        (0, _) if file.len == 0 => Wanted::Empty,
        (1, Some(located)) if located.block.block.len == file.len && file.len > 0 => {
            Wanted::Block(Box::new(located))
        }
        _ => Wanted::Nothing,
    })
}

type Blocks = Vec<(usize, ReadRange)>;

/// The blocks by the DataNode that is asked for each: the nearest that is not known to be silent.
fn by_node(
    session: &Session,
    blocks: Vec<(usize, Box<Located>)>,
) -> impl Iterator<Item = (DataNodeAddr, Blocks)> + use<> {
    let mut nodes: BTreeMap<String, (DataNodeAddr, Blocks)> = BTreeMap::new();
    for (at, located) in blocks {
        let mut locations = located.block.locations.iter();
        let Some(location) =
            locations.find(|location| session.silent.expect(&location.addr) == Expected::Timely)
        else {
            continue;
        };
        let block = located.block.block.clone();
        let (len, token) = (block.len, located.token(0));
        let range = ReadRange { block, token, offset: 0, len, long_packets: true };
        let addr = &location.addr;
        let of_node = nodes.entry(addr.uuid.clone()).or_insert_with(|| (addr.clone(), Vec::new()));
        of_node.1.push((at, range));
    }
    nodes.into_values()
}

/// What comes of blocks of one DataNode.
async fn read_some(
    session: &Arc<Session>,
    addr: DataNodeAddr,
    blocks: Blocks,
) -> Vec<(usize, Vec<u8>)> {
    let (places, ranges): (Vec<usize>, Vec<ReadRange>) = blocks.into_iter().unzip();
    let mut found = Vec::with_capacity(ranges.len());
    let read = read_many(session, &addr, &ranges, |at, bytes| found.push((places[at], bytes)));
    let why = match tokio::time::timeout(PATIENCE, read).await {
        Ok(Ok(())) => return found,
        Ok(Err(error)) => {
            if is_silence(&error) {
                session.silent.note(&addr);
            }
            error.to_string()
        }
        Err(_) => {
            session.silent.note(&addr);
            "it takes too long".to_string()
        }
    };
    tracing::debug!(%addr, why, "files are read one by one");
    found
}
