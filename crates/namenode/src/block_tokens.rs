//! Who issues block tokens: this NameNode, or nobody.
//!
//! Keys are made anew at each start of the process, and are no part of the log: DataNodes keep those of before until these
//! end. Each member of a quorum has keys of its own, and gives them to DataNodes while it follows too, so that they take its
//! tokens from the moment that it leads. Tokens of who led before stay good: DataNodes have the keys of all members. While it
//! follows it issues tokens to those who read at it, for DataNodes that are known to have its keys (`given`).
//!
//! Source: Hadoop 3.5.0 `BlockTokenSecretManager`, `BPOfferService#processCommandFromStandby`.

mod given;

use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use cairn_operate::workers::Worker;
use cairn_process::held::{held, held_read, held_write};
use cairn_security::block_keys::{BlockKeys, Lives, Random, SECRET_LEN};
use cairn_security::block_token::{AccessMode, BlockTokenId, Form};
use cairn_stripe::BlockId;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs as pb;

use crate::clock::wall_ms;
use given::Given;

/// What block tokens are like.
#[derive(Clone, Debug)]
pub struct BlockTokenConfig {
    /// How long a key proves new tokens. Key `dfs.block.access.key.update.interval`.
    pub key_interval: Duration,
    /// How long a token lasts. Key `dfs.block.access.token.lifetime`.
    pub lifetime: Duration,
    /// How they are written. Key `dfs.block.access.token.protobuf.enable`.
    pub form: Form,
}

/// How soon it is tried again to make a key where that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// What issues block tokens: one in a process, whatever it is among the members of a quorum.
pub(crate) struct BlockTokens(Option<Keyed>);

struct Keyed {
    keys: RwLock<Arc<BlockKeys>>,
    key_interval: Duration,
    /// What DataNodes were sent of them.
    given: Mutex<Given>,
    /// Held while the keys are changed, so that they are never those of a later round.
    round: Mutex<Round>,
}

/// For how long the keys are these.
#[derive(Clone, Copy)]
struct Round {
    number: u64,
    since: Instant,
}

/// Random numbers for a key.
fn random() -> Result<Random, getrandom::Error> {
    let (mut number, mut secret) = ([0; 4], [0; SECRET_LEN]);
    getrandom::fill(&mut number)?;
    getrandom::fill(&mut secret)?;
    Ok(Random { number: u32::from_ne_bytes(number), secret })
}

/// The time by which DataNodes see whether tokens have ended: that of the machine, as theirs is, and not the file
/// system's, which may be behind for long.
fn now_ms() -> i64 {
    i64::try_from(wall_ms()).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl BlockTokens {
    /// Nobody without a configuration. Fails where there is no randomness.
    pub(crate) fn new(config: Option<&BlockTokenConfig>) -> Result<BlockTokens, getrandom::Error> {
        let Some(config) = config else { return Ok(BlockTokens(None)) };
        let lives =
            Lives { key_ms: millis(config.key_interval), token_ms: millis(config.lifetime) };
        let keys = BlockKeys::begin(lives, config.form, now_ms(), [random()?, random()?]);
        Ok(BlockTokens(Some(Keyed {
            keys: RwLock::new(Arc::new(keys)),
            key_interval: config.key_interval,
            given: Mutex::default(),
            round: Mutex::new(Round { number: 0, since: Instant::now() }),
        })))
    }

    /// What issues tokens to a user now, to blocks of a pool.
    pub(crate) fn issuer<'a>(&self, pool: &'a str, user: &'a str) -> Issuer<'a> {
        let keyed = self.0.as_ref();
        let signer = |keyed: &Keyed| Signer {
            keys: held_read(&keyed.keys).clone(),
            pool,
            user,
            now_ms: now_ms(),
        };
        Issuer(keyed.map(signer))
    }

    /// A key for all data, where there are keys.
    pub(crate) fn data_key(
        &self,
        pool: &str,
    ) -> Result<Option<pb::DataEncryptionKeyProto>, getrandom::Error> {
        let Some(keyed) = &self.0 else { return Ok(None) };
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce)?;
        Ok(Some(held_read(&keyed.keys).data_key(pool, nonce, now_ms())))
    }

    /// The keys, as balancers get them.
    pub(crate) fn exported(&self) -> pb::ExportedBlockKeysProto {
        let keys = self.0.as_ref().map(|keyed| held_read(&keyed.keys).exported());
        keys.unwrap_or_default()
    }

    /// The keys for a DataNode that registers.
    pub(crate) fn for_new(&self, uuid: &str) -> pb::ExportedBlockKeysProto {
        if let Some(keyed) = &self.0 {
            let round = held(&keyed.round).number;
            held(&keyed.given).registered(uuid, round, Instant::now());
        }
        self.exported()
    }

    /// The keys for a DataNode that has sent a heartbeat, if it has none of the newest or may not have got them: it does not
    /// say what it has.
    pub(crate) fn due_for(&self, uuid: &str) -> Option<pb::ExportedBlockKeysProto> {
        let keyed = self.0.as_ref()?;
        let round = held(&keyed.round).number;
        let again = keyed.key_interval / 4;
        let is_due = held(&keyed.given).heard(uuid, round, Instant::now(), again);
        is_due.then(|| self.exported())
    }

    /// Whether a DataNode is known to take the tokens that were issued before this was asked; where there are none it takes
    /// whoever comes.
    pub(crate) fn are_taken_by(&self, uuid: &str) -> bool {
        self.0.as_ref().is_none_or(|keyed| {
            let round = held(&keyed.round).number;
            held(&keyed.given).takes(uuid, round)
        })
    }

    /// Rolls the keys from time to time.
    pub(crate) async fn look_after_keys(&self, worker: &Worker) {
        while let Some(rest) = self.rest() {
            worker.rest(tokio::time::sleep(rest)).await;
            if let Err(error) = self.roll_if_due() {
                tracing::warn!(%error, "the keys of block tokens are not changed");
                worker.failed(error);
                worker.rest(tokio::time::sleep(AGAIN)).await;
            }
        }
    }

    /// The same while no NameNode of this process leads, whose work it is otherwise.
    pub(crate) async fn roll_unasked(&self) {
        while let Some(rest) = self.rest() {
            tokio::time::sleep(rest).await;
            if let Err(error) = self.roll_if_due() {
                tracing::warn!(%error, "the keys of block tokens are not changed");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// How long it is until the next key is due; `None` where there are none.
    fn rest(&self) -> Option<Duration> {
        let keyed = self.0.as_ref()?;
        Some(keyed.key_interval.saturating_sub(held(&keyed.round).since.elapsed()))
    }

    /// Has the next key prove tokens from now on, if the present one has for as long as it may.
    fn roll_if_due(&self) -> Result<(), getrandom::Error> {
        let Some(keyed) = &self.0 else { return Ok(()) };
        let mut round = held(&keyed.round);
        if round.since.elapsed() < keyed.key_interval {
            return Ok(());
        }
        let random = random()?;
        let mut keys = held_write(&keyed.keys);
        *keys = Arc::new(keys.rolled(now_ms(), random));
        drop(keys);
        *round = Round { number: round.number.saturating_add(1), since: Instant::now() };
        tracing::info!("a new key proves block tokens");
        Ok(())
    }
}

/// Issues tokens to one user, or none.
pub(crate) struct Issuer<'a>(Option<Signer<'a>>);

struct Signer<'a> {
    keys: Arc<BlockKeys>,
    pool: &'a str,
    user: &'a str,
    now_ms: i64,
}

impl Issuer<'_> {
    /// Whether there are tokens.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A token for any storage.
    pub(crate) fn token(&self, block: BlockId, mode: AccessMode) -> TokenProto {
        self.issue(block, mode, &[], &[])
    }

    fn issue(&self, block: BlockId, mode: AccessMode, types: &[i32], ids: &[String]) -> TokenProto {
        let Some(signer) = &self.0 else { return TokenProto::default() };
        let id = BlockTokenId {
            user: Some(signer.user.to_owned()),
            pool: Some(signer.pool.to_owned()),
            block: block.0,
            modes: mode.into(),
            storage_types: types.to_vec(),
            storage_ids: ids.to_vec(),
            ..BlockTokenId::default()
        };
        signer.keys.issue(id, signer.now_ms)
    }

    /// Puts tokens to a block with its places: one for the whole, and one for each unit of a group.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#setBlockToken`. Deviation: those for reading name no storages. Nobody compares
    /// them, and they would be most of the answer.
    pub(crate) fn sign(&self, located: &mut pb::LocatedBlockProto, mode: AccessMode) {
        if !self.is_on() {
            return;
        }
        let (types, ids) = match mode {
            AccessMode::Read => (&[][..], &[][..]),
            _ => (&located.storage_types[..], &located.storage_i_ds[..]),
        };
        let block = located.b.block_id as i64;
        let issue = |id| self.issue(BlockId(id), mode, types, ids);
        let units = located.block_indices.as_deref().unwrap_or_default();
        located.block_tokens = units.iter().map(|unit| issue(block + i64::from(*unit))).collect();
        located.block_token = issue(block);
    }

    /// Puts tokens to the blocks of a file that is to be read.
    pub(crate) fn sign_file(&self, located: &mut pb::LocatedBlocksProto) {
        for block in located.blocks.iter_mut().chain(&mut located.last_block) {
            self.sign(block, AccessMode::Read);
        }
    }
}
