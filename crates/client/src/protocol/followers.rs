//! Reads that are asked of NameNodes that follow, where the configuration says so.
//!
//! Each call says the last entry that this client has seen, so that whoever answers has it: what the client has done or seen
//! is there for it, whomever it asks. What others were told since it sees after an `msync` at the leader: one before the
//! first read, and then as often as it is told to. What nobody who follows answers the leader does.
//!
//! Source: Hadoop 3.5.0 `ObserverReadProxyProvider`. Deviation: reads go around among all who follow; those are looked for
//! again every 10 seconds, and a read waits for one of them no longer than that.

use cairn_net::rpc_client::{LastSeen, RpcClient, RpcError};
use cairn_wire::exception::class;
use cairn_wire::proto::common::HAServiceStateProto;
use cairn_wire::proto::hdfs::{HAServiceStateRequestProto, HAServiceStateResponseProto};
use cairn_wire::reads;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often it is looked who follows.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long a NameNode may take to say that.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// How long one that follows may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads that may take longer: they walk over trees.
const WALKS: [&str; 3] =
    ["getContentSummary", "getSnapshotDiffReport", "getSnapshotDiffReportListing"];

/// Whether one that follows may be asked.
pub(super) fn is_read(method: &str) -> bool {
    reads::OF_NAMES.contains(&method) || reads::OF_PLACES.contains(&method)
}

/// See the module.
pub(super) struct Followers {
    last_seen: LastSeen,
    /// After that time the leader is asked again how far it is; never for none.
    msync_period: Option<Duration>,
    known: Mutex<Known>,
    /// Held by whoever looks who follows.
    looking: tokio::sync::Mutex<()>,
    /// Held by whoever asks the leader how far it is.
    syncing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// Those who follow, and whose turn it is.
    who: Vec<usize>,
    turn: usize,
    looked: Option<Instant>,
    synced: Option<Instant>,
}

/// What has come of a read.
pub(super) enum Asked<T> {
    Answered(T),
    /// The leader is to answer it.
    Left,
}

impl Followers {
    pub fn new(last_seen: LastSeen, msync_period: Option<Duration>) -> Followers {
        Followers {
            last_seen,
            msync_period,
            known: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            syncing: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one that follows, if there is any.
    pub async fn ask<Req: prost::Message, Resp: prost::Message + Default>(
        &self,
        rpcs: &[RpcClient],
        method: &str,
        request: &Req,
    ) -> Asked<Result<Resp, (usize, RpcError)>> {
        let Some(at) = self.choose(rpcs).await else { return Asked::Left };
        let rpc = &rpcs[at];
        let asked = rpc.call(method, request);
        let answer = match WALKS.contains(&method) {
            true => Ok(asked.await),
            false => tokio::time::timeout(PATIENCE, asked).await,
        };
        match answer {
            Ok(Ok(answer)) => Asked::Answered(Ok(answer)),
            Ok(Err(error)) if error.is_remote(class::OBSERVER_RETRY_ON_ACTIVE) => Asked::Left,
            Ok(Err(error))
                if error.remote().is_some_and(|remote| {
                    !remote.is(class::STANDBY) && !remote.is(class::RETRIABLE)
                }) =>
            {
                Asked::Answered(Err((at, error)))
            }
            other => {
                let why = match other {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("it has not answered in {PATIENCE:?}"),
                };
                tracing::debug!(method, addr = rpc.addr(), why, "the leader is asked");
                self.known().who.retain(|known| *known != at);
                Asked::Left
            }
        }
    }

    /// One that follows.
    async fn choose(&self, rpcs: &[RpcClient]) -> Option<usize> {
        let looked = self.known().looked;
        if looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.look(rpcs, looked).await;
        }
        let mut known = self.known();
        known.turn = known.turn.wrapping_add(1);
        let turn = known.turn.checked_rem(known.who.len())?;
        known.who.get(turn).copied()
    }

    /// Looks who follows, unless somebody does that; for the first time all wait for it.
    async fn look(&self, rpcs: &[RpcClient], looked: Option<Instant>) {
        let _one_at_a_time = match looked {
            None => self.looking.lock().await,
            Some(_) => match self.looking.try_lock() {
                Ok(held) => held,
                Err(_) => return,
            },
        };
        if self.known().looked != looked {
            return;
        }
        let mut asking = JoinSet::new();
        for (at, rpc) in rpcs.iter().cloned().enumerate() {
            asking.spawn(async move {
                let request = HAServiceStateRequestProto {};
                let asked =
                    rpc.call::<_, HAServiceStateResponseProto>("getHAServiceState", &request);
                let told = tokio::time::timeout(LOOK_PATIENCE, asked).await.ok()?.ok()?;
                (told.state == HAServiceStateProto::Observer as i32).then_some(at)
            });
        }
        let mut who: Vec<usize> = asking.join_all().await.into_iter().flatten().collect();
        who.sort_unstable();
        let mut random = [0; 4];
        // Without it the first one is asked first.
        let _ = getrandom::fill(&mut random);
        let mut known = self.known();
        if looked.is_none() {
            known.turn = u32::from_le_bytes(random) as usize;
        }
        (known.who, known.looked) = (who, Some(Instant::now()));
    }

    /// Whether the leader must be asked how far it is before the next read.
    fn is_to_sync(&self) -> bool {
        match (self.known().synced, self.msync_period) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(at), Some(period)) => at.elapsed() >= period,
        }
    }

    /// Has this client know how far the leader is, which `msync` asks, if that is to be; says whether it does.
    pub async fn sync(&self, msync: impl Future<Output = bool>) -> bool {
        if !self.is_to_sync() {
            return true;
        }
        // Who syncs each time needs one of its own.
        let turn = match self.msync_period {
            Some(Duration::ZERO) => None,
            _ => Some(self.syncing.lock().await),
        };
        if turn.is_some() && !self.is_to_sync() {
            return true;
        }
        let is_known = msync.await && self.last_seen.get() != i64::MIN;
        let mut known = self.known();
        if is_known {
            known.synced = Some(Instant::now());
        } else {
            // It is asked again when it is looked again who follows.
            (known.who, known.looked) = (Vec::new(), Some(Instant::now()));
        }
        is_known
    }

    /// Whether nobody follows, as far as is known.
    pub fn is_nobody(&self) -> bool {
        let known = self.known();
        known.who.is_empty() && known.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY)
    }
}
