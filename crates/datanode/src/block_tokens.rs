//! Who may read and write blocks: whoever shows a token that the NameNode has issued, or another DataNode, where the
//! NameNode has sent keys; everybody where it has said that there are none; nobody before it has said anything.
//!
//! Source: Hadoop 3.5.0 `DataNode#registerBlockPoolWithSecretManager`, `BlockPoolTokenSecretManager`.

use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use cairn_process::held::{held_read, held_write};
use cairn_security::block_keys::{BlockKeys, Wanted, allows};
use cairn_security::block_token::{AccessMode, BlockTokenId, InvalidToken};
use cairn_security::transfer::{Shown, TransferPolicy, Unknown, User};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, ExportedBlockKeysProto, ExtendedBlockProto, OpBlockChecksumProto,
    OpBlockGroupChecksumProto, OpCopyBlockProto, OpReadBlockProto, OpReplaceBlockProto,
    OpRequestShortCircuitAccessProto, OpTransferBlockProto, OpWriteBlockProto,
};
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whom this DataNode's own tokens name.
const OWN_USER: &str = "datanode";

/// What says who may read and write blocks.
#[derive(Default)]
pub(crate) struct BlockTokens(RwLock<Told>);

/// What the NameNode has said.
#[derive(Clone, Default)]
enum Told {
    /// Nothing yet.
    #[default]
    Nothing,
    /// There are no tokens.
    Open,
    /// These keys prove them.
    Keys(Arc<BlockKeys>),
}

/// What a request asks for.
pub(crate) struct Asked<'a> {
    block: &'a ExtendedBlockProto,
    token: Option<&'a TokenProto>,
    mode: AccessMode,
    storage_types: Vec<i32>,
    storage_ids: Vec<String>,
    /// Somebody waits for an answer.
    pub(crate) is_answered: bool,
}

/// A request about a block.
pub(crate) trait Guarded: prost::Message + Default {
    /// What it asks for.
    fn asked(&self) -> Asked<'_>;
}

fn by_header(header: &BaseHeaderProto, mode: AccessMode) -> Asked<'_> {
    Asked {
        block: &header.block,
        token: header.token.as_ref(),
        mode,
        storage_types: Vec::new(),
        storage_ids: Vec::new(),
        is_answered: true,
    }
}

impl Guarded for OpReadBlockProto {
    fn asked(&self) -> Asked<'_> {
        by_header(&self.header.base_header, AccessMode::Read)
    }
}

/// Source: Hadoop 3.5.0 `DataXceiver#writeBlock`: the storages of all of the pipeline; the ids only where there is one
/// behind.
impl Guarded for OpWriteBlockProto {
    fn asked(&self) -> Asked<'_> {
        let types = self.storage_type.iter().chain(&self.target_storage_types);
        let ids = self.storage_id.iter().chain(&self.target_storage_ids);
        let has_ids = !self.target_storage_ids.is_empty();
        Asked {
            storage_types: types.copied().collect(),
            storage_ids: if has_ids { ids.cloned().collect() } else { Vec::new() },
            is_answered: !self.header.client_name.is_empty(),
            ..by_header(&self.header.base_header, AccessMode::Write)
        }
    }
}

impl Guarded for OpTransferBlockProto {
    fn asked(&self) -> Asked<'_> {
        Asked {
            storage_types: self.target_storage_types.clone(),
            storage_ids: self.target_storage_ids.clone(),
            ..by_header(&self.header.base_header, AccessMode::Copy)
        }
    }
}

impl Guarded for OpCopyBlockProto {
    fn asked(&self) -> Asked<'_> {
        by_header(&self.header, AccessMode::Copy)
    }
}

impl Guarded for OpReplaceBlockProto {
    fn asked(&self) -> Asked<'_> {
        Asked {
            storage_types: self.storage_type.into_iter().collect(),
            storage_ids: self.storage_id.iter().cloned().collect(),
            ..by_header(&self.header, AccessMode::Replace)
        }
    }
}

impl Guarded for OpBlockChecksumProto {
    fn asked(&self) -> Asked<'_> {
        by_header(&self.header, AccessMode::Read)
    }
}

impl Guarded for OpBlockGroupChecksumProto {
    fn asked(&self) -> Asked<'_> {
        by_header(&self.header, AccessMode::Read)
    }
}

impl Guarded for OpRequestShortCircuitAccessProto {
    fn asked(&self) -> Asked<'_> {
        by_header(&self.header, AccessMode::Read)
    }
}

/// A block as Hadoop's refusals name it.
struct Name<'a>(&'a ExtendedBlockProto);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pool, id, gs) = (&self.0.pool_id, self.0.block_id as i64, self.0.generation_stamp);
        write!(f, "{pool}:blk_{id}_{gs}")
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl BlockTokens {
    /// Takes what the NameNode has sent.
    pub(crate) fn take(&self, sent: &ExportedBlockKeysProto) -> Result<()> {
        let mut told = held_write(&self.0);
        let former = match &*told {
            Told::Keys(keys) => Some(&**keys),
            Told::Nothing | Told::Open => None,
        };
        let keys = BlockKeys::imported(former, sent, now_ms())?;
        if former.is_some() && keys.is_none() {
            tracing::warn!(
                "the NameNode issues no block tokens any more: everybody may read blocks"
            );
        }
        *told = keys.map_or(Told::Open, |keys| Told::Keys(Arc::new(keys)));
        Ok(())
    }

    /// The keys, where there are any.
    pub(crate) fn keys(&self) -> Option<Arc<BlockKeys>> {
        match held_read(&self.0).clone() {
            Told::Keys(keys) => Some(keys),
            Told::Nothing | Told::Open => None,
        }
    }

    /// Whether a request's token allows what it asks for.
    pub(crate) fn check(&self, asked: &Asked<'_>) -> Result<(), InvalidToken> {
        let keys = match held_read(&self.0).clone() {
            Told::Open => return Ok(()),
            Told::Nothing => return Err(not_yet()),
            Told::Keys(keys) => keys,
        };
        let (none, name) = (TokenProto::default(), Name(asked.block));
        let wanted = Wanted {
            storage_types: &asked.storage_types,
            storage_ids: &asked.storage_ids,
            ..wanted(asked.block, &name, asked.mode)
        };
        keys.check(asked.token.unwrap_or(&none), &wanted, now_ms()).map(drop)
    }

    /// Whether a token allows to read a block.
    pub(crate) fn check_read(
        &self,
        block: &ExtendedBlockProto,
        token: &TokenProto,
    ) -> Result<(), InvalidToken> {
        let (mode, token) = (AccessMode::Read, Some(token));
        let (storage_types, storage_ids) = (Vec::new(), Vec::new());
        self.check(&Asked { block, token, mode, storage_types, storage_ids, is_answered: true })
    }

    /// Whether somebody may know of a block who has shown this token, or none, to the RPC port.
    ///
    /// Source: Hadoop 3.5.0 `DataNode#checkReadAccess`.
    pub(crate) fn check_shown(
        &self,
        block: &ExtendedBlockProto,
        shown: Option<&BlockTokenId>,
    ) -> Result<(), InvalidToken> {
        let name = Name(block);
        match (&*held_read(&self.0), shown) {
            (Told::Open, _) => Ok(()),
            (Told::Nothing, _) => Err(not_yet()),
            (Told::Keys(_), None) => {
                let text =
                    "Can't continue since none or more than one BlockTokenIdentifier is found.";
                Err(InvalidToken(text.into()))
            }
            (Told::Keys(_), Some(id)) => {
                allows(id, &wanted(block, &name, AccessMode::Read), now_ms())
            }
        }
    }

    /// What a token says that the RPC port was shown, and the password that goes with it.
    pub(crate) fn password_of(
        &self,
        identifier: &[u8],
    ) -> Result<(BlockTokenId, Vec<u8>), InvalidToken> {
        let keys = self.keys().ok_or_else(not_yet)?;
        keys.password_of(identifier, now_ms())
    }

    /// What a user of the data port shows to have, or why it is not known.
    pub(crate) fn password_for(&self, user: &User) -> Result<Vec<u8>, Unknown> {
        let keys = self.keys().ok_or_else(|| Unknown::Token(not_yet()))?;
        keys.password_for(user, now_ms())
    }

    /// What is shown to another DataNode before an operation with this token, where anything is.
    ///
    /// Source: Hadoop 3.5.0 `SaslDataTransferClient#send`.
    pub(crate) fn shown(
        &self,
        policy: &TransferPolicy,
        token: &TokenProto,
        pool: &str,
    ) -> Result<Shown> {
        if !policy.by_key {
            return Ok(Shown::Token(token.clone()));
        }
        let keys =
            self.keys().ok_or_else(|| DataNodeError::peer("there is no key for data yet"))?;
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce)
            .map_err(|error| DataNodeError::peer(format!("no random numbers: {error}")))?;
        Ok(Shown::Key(keys.data_key(pool, nonce, now_ms())))
    }

    /// A token for another DataNode; an empty one where there are none.
    ///
    /// Source: Hadoop 3.5.0 `DataNode#getBlockAccessToken`.
    pub(crate) fn own(&self, block: &Block, mode: AccessMode) -> TokenProto {
        let Some(keys) = self.keys() else { return TokenProto::default() };
        keys.issue_own(OWN_USER, &block.pool, block.id.0, mode, now_ms())
    }
}

fn wanted<'a>(block: &'a ExtendedBlockProto, name: &'a Name<'a>, mode: AccessMode) -> Wanted<'a> {
    let (pool, block) = (block.pool_id.as_str(), block.block_id as i64);
    Wanted { pool, block, name, mode, storage_types: &[], storage_ids: &[] }
}

fn not_yet() -> InvalidToken {
    InvalidToken("This DataNode does not know yet who may read blocks".into())
}
