//! An opened file, as both kinds of readers share it: where its blocks are, and what was found of them.

use super::tail;
use crate::datanode::read_into::Shape;
use crate::datanode::silent::is_silence;
use crate::encryption::FileCipher;
use crate::error::{ClientError, Result};
use crate::protocol::convert::{self, Located, LocatedFile};
use crate::session::Session;
use crate::types::{Block, BlockLocation, DataNodeAddr};
use cairn_net::Boxed;
use cairn_stripe::{BlockId, Policy};
use cairn_wire::proto::hdfs::{
    LocatedBlockProto, ReportBadBlocksRequestProto, ReportBadBlocksResponseProto,
};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often locations are asked for anew when no replica of a block can be read.
///
/// Source: Hadoop 3.5.0 `dfs.client.max.block.acquire.failures`.
pub(crate) const REFRESHES: u32 = 3;

/// The wait before the NameNode is asked once more, when it has named no others.
const REFRESH_WAIT: Duration = Duration::from_millis(300);

/// What all reads of a file share.
pub(crate) struct OpenedFile {
    pub session: Arc<Session>,
    pub path: String,
    pub len: u64,
    pub policy: Option<Policy>,
    /// Of an encrypted file that is to be decrypted.
    pub(super) cipher: Option<FileCipher>,
    /// What answers to positional reads look like.
    pub shape: Shape,
    located: Mutex<Arc<LocatedFile>>,
    /// Replicas and units not to be tried again, by block.
    bad: Mutex<HashMap<BlockId, Vec<BadReplica>>>,
}

/// A replica or unit that could not be read.
struct BadReplica {
    /// The DataNode's identity.
    uuid: String,
    error: String,
    corrupt: Corrupt,
    /// It may be good, with another block token.
    wants_token: bool,
}

/// Whether bytes that did not match their CRC came from a replica.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Corrupt {
    No,
    Found,
    Reported,
}

/// What the NameNode names when it is asked again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// No location beside those that were known.
    Known,
    /// Others too.
    Others,
}

/// A block of an open file, with its locations as they were known when it was asked for.
pub(crate) struct LocatedRef {
    file: Arc<LocatedFile>,
    index: usize,
}

impl Deref for LocatedRef {
    type Target = Located;

    fn deref(&self) -> &Located {
        &self.file.blocks[self.index]
    }
}

impl OpenedFile {
    pub(super) fn open(
        session: Arc<Session>,
        path: &str,
        decrypt: bool,
    ) -> Boxed<'_, Result<OpenedFile>> {
        Box::pin(async move {
            let (mut located, visible) = tail::located(&session, path).await?;
            let cipher = match located.encryption.as_ref().filter(|_| decrypt) {
                Some(encryption) => Some(session.cipher(path, encryption).await?),
                None => None,
            };
            let too_long = || ClientError::Protocol(format!("{path} is too long"));
            let len = located.len.checked_add(visible).ok_or_else(too_long)?;
            if visible > 0
                && let Some(last) = located.last_block.clone()
            {
                let mut last = last;
                last.block.block.len = visible;
                last.block.offset_in_file = located.len;
                located.blocks.retain(|block| block.block.block.id != last.block.block.id);
                located.blocks.push(last);
            }
            Ok(OpenedFile {
                path: path.to_string(),
                len,
                policy: located.policy.clone(),
                cipher,
                shape: Shape::default(),
                located: Mutex::new(Arc::new(located)),
                bad: Mutex::default(),
                session,
            })
        })
    }

    /// The block that holds a byte of the file.
    pub(crate) fn block_at(&self, offset: u64) -> Result<LocatedRef> {
        let file = self.located.lock().unwrap_or_else(|poison| poison.into_inner()).clone();
        let holds = |block: &Located| {
            let start = block.block.offset_in_file;
            (start..start + block.block.block.len).contains(&offset)
        };
        // They come in the order of the file, where nothing is amiss.
        let behind = file.blocks.partition_point(|block| block.block.offset_in_file <= offset);
        let likely = behind.checked_sub(1).filter(|index| holds(&file.blocks[*index]));
        let found = likely.or_else(|| file.blocks.iter().position(holds));
        let what = || format!("{}: no block holds byte {offset}", self.path);
        let index = found.ok_or_else(|| ClientError::Protocol(what()))?;
        Ok(LocatedRef { file, index })
    }

    /// Asks for the locations of the block at `offset` anew, of which none could be read. Where the NameNode names others
    /// beside those that failed, these serve at once; otherwise it is asked once more after a wait, and all get another
    /// chance. The length known at open stays.
    pub(crate) async fn refresh(&self, offset: u64) -> Result<()> {
        if self.locate(offset).await? == Named::Others || self.has_new_tokens(offset)? {
            return Ok(());
        }
        tokio::time::sleep(REFRESH_WAIT).await;
        self.locate(offset).await?;
        self.session.silent.forget();
        let group = self.block_at(offset)?.block.block.id.group();
        self.bad_nodes().retain(|block, _| block.group() != group);
        Ok(())
    }

    /// Gives those another chance that wanted a block token, which has come with the locations; false where there are none.
    ///
    /// Source: Hadoop 3.5.0 `DFSInputStream#tokenRefetchNeeded`.
    fn has_new_tokens(&self, offset: u64) -> Result<bool> {
        let group = self.block_at(offset)?.block.block.id.group();
        let mut found = false;
        self.bad_nodes().retain(|block, bad| {
            if block.group() == group {
                let before = bad.len();
                bad.retain(|replica| !replica.wants_token);
                found |= bad.len() < before;
            }
            !bad.is_empty()
        });
        Ok(found)
    }

    /// Asks where the block at `offset` can be read after what is known has failed.
    async fn locate(&self, offset: u64) -> Result<Named> {
        let old = self.block_at(offset)?;
        let fresh = self.session.located_again(&self.path, offset, 1, true).await?;
        let same = |block: &&Located| block.block.block.id == old.block.block.id;
        // Hadoop's NameNode names a block that is being written only as the last one.
        let Some(new) = fresh.blocks.iter().chain(&fresh.last_block).find(same) else {
            return Ok(Named::Known);
        };
        let mut located = self.located.lock().unwrap_or_else(|poison| poison.into_inner());
        let mut all = LocatedFile::clone(&located);
        for block in &mut all.blocks {
            if block.block.block.id == new.block.block.id {
                let len = block.block.block.len;
                *block = new.clone();
                block.block.block.len = len;
            }
        }
        *located = Arc::new(all);
        let key = |location: &BlockLocation| (location.addr.uuid.clone(), location.unit);
        let known: Vec<_> = old.block.locations.iter().map(key).collect();
        let is_known = new.block.locations.iter().all(|location| known.contains(&key(location)));
        Ok(if is_known { Named::Known } else { Named::Others })
    }

    pub(crate) fn is_bad(&self, block: BlockId, addr: &DataNodeAddr) -> bool {
        self.bad_nodes().get(&block).is_some_and(|bad| bad.iter().any(|bad| bad.uuid == addr.uuid))
    }

    /// Why replicas of a block, or a unit, are not to be tried again.
    pub(crate) fn errors_of(&self, block: BlockId) -> Vec<String> {
        let bad = self.bad_nodes();
        bad.get(&block).into_iter().flatten().map(|bad| bad.error.clone()).collect()
    }

    /// Leaves a replica or unit out from now on. A unit with bad bytes is reported to the NameNode; a replica only by
    /// [`OpenedFile::report_corrupt`].
    pub(crate) fn mark_bad(&self, located: &Located, index: usize, error: &ClientError) {
        let location = &located.block.locations[index];
        let mut block = located.block.block.clone();
        if block.id.is_striped() {
            block.id = block.id.internal(location.unit);
        }
        match (is_silence(error), &location.addr) {
            (_, addr) if error.wants_token() => {
                tracing::debug!(%block, %addr, %error, "another block token is needed");
            }
            (true, addr) if !self.session.silent.note(addr) => {
                tracing::debug!(%block, %addr, %error, "left out of this read");
            }
            (_, addr) => tracing::warn!(%block, %addr, %error, "left out of this read"),
        }
        let corrupt = match error {
            ClientError::Checksum { .. } if block.id.is_striped() => Corrupt::Reported,
            ClientError::Checksum { .. } => Corrupt::Found,
            _ => Corrupt::No,
        };
        let uuid = location.addr.uuid.clone();
        let wants_token = error.wants_token();
        let new = BadReplica { uuid, error: error.to_string(), corrupt, wants_token };
        let mut bad = self.bad_nodes();
        let known = bad.entry(block.id).or_default();
        // Others may have found it bad at the same time.
        if known.iter().all(|bad| bad.uuid != new.uuid) {
            known.push(new);
        }
        drop(bad);
        if corrupt == Corrupt::Reported {
            self.report(block, located, index);
        }
    }

    /// Tells the NameNode of the replicas of a block in which reads found bad bytes: once another one was read, or
    /// none is left. Where all of them seem to be bad, it may be the memory of this machine that is.
    ///
    /// Source: Hadoop 3.5.0 `DFSInputStream#reportCheckSumFailure`.
    pub(crate) fn report_corrupt(&self, located: &Located) {
        let block = &located.block.block;
        let mut bad = self.bad_nodes();
        let Some(known) = bad.get_mut(&block.id) else { return };
        let corrupt = known.iter().filter(|bad| bad.corrupt != Corrupt::No).count();
        let count = located.block.locations.len();
        if corrupt >= count && count > 1 {
            return;
        }
        for (index, location) in located.block.locations.iter().enumerate() {
            let is_new = |bad: &&mut BadReplica| {
                bad.uuid == location.addr.uuid && bad.corrupt == Corrupt::Found
            };
            if let Some(found) = known.iter_mut().find(is_new) {
                found.corrupt = Corrupt::Reported;
                self.report(block.clone(), located, index);
            }
        }
    }

    fn report(&self, block: Block, located: &Located, index: usize) {
        let report = report_bad(self.session.clone(), block, located, index);
        tokio::spawn(async move {
            if let Err(error) = report.await {
                tracing::warn!(%error, "could not report a bad block");
            }
        });
    }

    fn bad_nodes(&self) -> std::sync::MutexGuard<'_, HashMap<BlockId, Vec<BadReplica>>> {
        self.bad.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Tells the NameNode of a replica with bad bytes.
pub(crate) fn report_bad(
    session: Arc<Session>,
    block: Block,
    located: &Located,
    index: usize,
) -> impl Future<Output = Result<()>> + use<> {
    let location = &located.block.locations[index];
    let proto = LocatedBlockProto {
        b: convert::block_proto(&block),
        offset: located.block.offset_in_file,
        locs: vec![located.infos[index].clone()],
        corrupt: false,
        block_token: located.token(index),
        is_cached: vec![false],
        storage_types: located.storage_types.get(index).copied().into_iter().collect(),
        storage_i_ds: vec![location.storage_id.clone()],
        ..Default::default()
    };
    async move {
        let request = ReportBadBlocksRequestProto { blocks: vec![proto] };
        let reported: Result<ReportBadBlocksResponseProto> =
            session.namenode.call("reportBadBlocks", &request).await;
        reported.map(|_| ())
    }
}
