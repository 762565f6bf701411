//! Calls that wait at a NameNode that stands still, while another one leads.
//!
//! A process that is stopped, or a machine that is cut off, closes no connection: a call would wait for its whole timeout. So
//! while one waits longer than a moment, its NameNode is asked for a sign of life, and where none comes the others whether
//! they lead. A call that is only slow stays where it is. However many calls wait, one of them looks.
//!
//! Hadoop's client has nothing like it; its `RequestHedgingProxyProvider` asks all of them for its first call only.

use cairn_net::rpc_client::{RpcClient, RpcError};
use cairn_wire::proto::common::HAServiceStateProto;
use cairn_wire::proto::hdfs::{HAServiceStateRequestProto, HAServiceStateResponseProto};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a call waits before its NameNode is asked for a sign of life the first time, and at most before it is again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How long a sign of life, or the word that somebody leads, may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// The pause before the others are asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Held by the call that looks.
    looking: tokio::sync::Mutex<()>,
}

impl Watch {
    /// Ends when `asked` gives no sign of life, and another one says that it leads, or `active` is another one already.
    /// Returns who that is.
    pub async fn another(&self, rpcs: &[RpcClient], active: &AtomicUsize, asked: usize) -> usize {
        tokio::time::sleep(FIRST_PAUSE).await;
        let _looks = self.looking.lock().await;
        let mut pause = FIRST_PAUSE;
        loop {
            let is_at = active.load(Ordering::Relaxed);
            if is_at != asked {
                return is_at;
            }
            if state(&rpcs[asked]).await.is_some() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_PAUSE);
                continue;
            }
            let mut asking = JoinSet::new();
            for at in (0..rpcs.len()).filter(|at| *at != asked) {
                let rpc = rpcs[at].clone();
                asking.spawn(async move { (at, state(&rpc).await) });
            }
            while let Some(told) = asking.join_next().await {
                if let Ok((at, Some(Some(HAServiceStateProto::Active)))) = told {
                    return at;
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// What a NameNode says that it is, if it says anything in time; nothing of that if it does not know the question.
async fn state(rpc: &RpcClient) -> Option<Option<HAServiceStateProto>> {
    let request = HAServiceStateRequestProto {};
    let asked = rpc.call::<_, HAServiceStateResponseProto>("getHAServiceState", &request);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(told)) => Some(HAServiceStateProto::try_from(told.state).ok()),
        Ok(Err(RpcError::Remote(_) | RpcError::Answer { .. })) => Some(None),
        // A connection that fails fails the call that waits, too.
        Ok(Err(_)) | Err(_) => None,
    }
}
