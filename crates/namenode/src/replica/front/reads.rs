//! Reads that a member answers while it follows: of clients that say what they have seen, from a state that has it.
//!
//! Where blocks are it tells as soon as it has heard enough of DataNodes to lead. What it does not find, and what only a leader
//! knows, it leaves to the leader, call by call.
//!
//! Such a client gets what it has seen and perhaps more, but perhaps not what others have been told since: for that it asks
//! the leader how far it is (`msync`) and says so with its next read. A client that says nothing is answered by the leader.
//! A member that lacks what a client has seen waits for it for a moment, and then leaves the call to the leader, as it does
//! while it does not hear of one, and while it does not know that the leader tells clients how far it is: an earlier build
//! does not.
//!
//! Source: Hadoop 3.5.0 `GlobalStateIdContext`, `Server.Handler#run`, `ObserverRetryOnActiveException`. Deviation: Hadoop's
//! observers refuse what they do not answer.

use crate::kept_reports::KeptReports;
use crate::protocol::{self, Protocols, reads};
use crate::standing::Standing;
use cairn_net::rpc_server::{Call, Service};
use cairn_process::held::{held_read, held_write};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// How long a read waits until what its client has seen has come here.
const PATIENCE: Duration = Duration::from_millis(500);

/// Entries that may come in that time. Who lacks more leaves the call to the leader at once.
const LAG_MAX: i64 = 5_000;

type Answered = Result<Vec<u8>, RemoteException>;

/// See the module.
pub(in crate::replica) struct Reads {
    /// What reads, while this member follows and has a namespace.
    names: RwLock<Option<Arc<Protocols>>>,
    /// The last entry that is there to be read.
    applied: watch::Sender<u64>,
    /// The last term whose leader is known to tell clients how far it is.
    tells_in: AtomicU64,
    /// Reads that were answered here since the start.
    answered: AtomicU64,
    /// What DataNodes tell.
    kept: Arc<KeptReports>,
}

impl Reads {
    /// Nothing is read yet.
    pub fn new(kept: Arc<KeptReports>) -> Reads {
        Reads {
            kept,
            names: RwLock::default(),
            applied: watch::Sender::new(0),
            tells_in: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// From now on that is read, which has the entries up to `last`; none while this member does not follow.
    pub fn read_from(&self, names: Option<Arc<Protocols>>, last: u64) {
        self.applied.send_replace(last);
        *held_write(&self.names) = names;
    }

    /// The entries up to that one are there to be read.
    pub fn has(&self, last: u64) {
        self.applied.send_if_modified(|applied| std::mem::replace(applied, last) != last);
    }

    /// Reads that were answered here since the start.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// The leader has answered a call.
    pub fn heard(&self, standing: &Standing, call: &Call) {
        let told = call.state.as_ref().and_then(|state| state.told());
        if let (Standing::Follows { term, .. }, Some(_)) = (standing, told) {
            self.tells_in.fetch_max(*term, Ordering::Relaxed);
        }
    }

    /// What may answer a call, and the entry that it needs.
    fn of(&self, call: &Call, standing: &Standing) -> Option<(Arc<Protocols>, i64)> {
        let seen = call.state.as_ref()?.seen();
        let Standing::Follows { term, .. } = standing else { return None };
        if *term != self.tells_in.load(Ordering::Relaxed) {
            return None;
        }
        let knows_enough = reads(call)? == protocol::Reads::Names || self.kept.tells_places();
        let names = held_read(&self.names).clone().filter(|_| knows_enough)?;
        Some((names, seen))
    }

    fn lacks(&self, seen: i64) -> i64 {
        let applied = i64::try_from(*self.applied.borrow()).unwrap_or(i64::MAX);
        seen.saturating_sub(applied)
    }

    /// Answers a call if that takes no wait.
    pub fn answer_now(&self, call: &Call, standing: &Standing) -> Option<Answered> {
        let (names, seen) = self.of(call, standing)?;
        if self.lacks(seen) > 0 {
            return None;
        }
        let answer = names.call_now(call)?;
        self.if_it_holds(&names, answer)
    }

    /// Answers a call, unless it is for the leader to answer.
    pub async fn answer(&self, call: &Call, standing: &Standing) -> Option<Answered> {
        let (names, seen) = self.of(call, standing)?;
        if self.lacks(seen) > LAG_MAX {
            return None;
        }
        let mut applied = self.applied.subscribe();
        let has_seen = applied.wait_for(|_| self.lacks(seen) <= 0);
        // The sender lives as long as `self`.
        let _ = tokio::time::timeout(PATIENCE, has_seen).await.ok()?;
        let answer = match names.call_now(call) {
            Some(answer) => answer,
            None => names.call(call.clone()).await,
        };
        self.if_it_holds(&names, answer)
    }

    /// An answer, unless it is that the leader is to be asked, or what it was read from has been closed since, so that it may
    /// be a failure to read.
    fn if_it_holds(&self, names: &Arc<Protocols>, answer: Answered) -> Option<Answered> {
        let is_open = held_read(&self.names).as_ref().is_some_and(|now| Arc::ptr_eq(now, names));
        let is_left =
            |refusal: &RemoteException| !is_open || refusal.is(class::OBSERVER_RETRY_ON_ACTIVE);
        if answer.as_ref().is_err_and(is_left) {
            return None;
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NameNodeConfig;
    use crate::node::NameNode;
    use crate::protocol::CLIENT;
    use crate::standing::Leader;
    use cairn_net::rpc_server::{StateId, UserInfo};
    use cairn_wire::proto::hdfs::GetFileInfoRequestProto;
    use prost::Message;

    fn look(seen: i64) -> Call {
        let request = GetFileInfoRequestProto { src: "/".to_string() };
        Call {
            protocol: CLIENT.to_string().into(),
            method: "getFileInfo".to_string().into(),
            version: 1,
            user: UserInfo::simple("hdfs").into(),
            client_id: [7; 16],
            call_id: 3,
            retry_count: 0,
            peer: "127.0.0.1:1".parse().unwrap(),
            body: request.encode_to_vec().into(),
            connection_protocol: CLIENT.into(),
            caller_context: None,
            carrier: "rpc",
            state: Some(Arc::new(StateId::new(seen))),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_read_waits_for_what_its_client_has_seen_and_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let config = NameNodeConfig::of_test(dir.path());
        let kept = Arc::new(KeptReports::new(&config));
        let running = NameNode::start(config).await.unwrap();
        let names = Arc::new(Protocols(Arc::clone(running.node())));
        let last = running.node().ns.last_sequence();
        let leader = Leader { name: "b".into(), rpc: "nowhere:1".into() };
        let follows = Standing::Follows { term: 5, leader };
        let reads = Arc::new(Reads::new(kept));
        reads.read_from(Some(Arc::clone(&names)), last - 1);
        let seen = last as i64;
        let earlier = look(seen - 1);
        assert!(reads.answer_now(&earlier, &follows).is_none(), "the leader may not tell");
        reads.heard(&follows, &earlier);
        assert!(reads.answer_now(&earlier, &follows).is_none(), "it has not told");
        earlier.tell_state(last);
        reads.heard(&follows, &earlier);
        assert!(reads.answer(&earlier, &follows).await.unwrap().is_ok());
        assert!(reads.answer_now(&earlier, &Standing::Nobody { term: 5 }).is_none());
        let silent = Call { state: None, ..look(0) };
        assert!(reads.answer_now(&silent, &follows).is_none());
        // What it has seen comes while it waits.
        let later = look(seen);
        assert!(reads.answer_now(&later, &follows).is_none());
        let waits = {
            let (reads, later, follows) = (Arc::clone(&reads), later.clone(), follows.clone());
            tokio::spawn(async move { reads.answer(&later, &follows).await })
        };
        tokio::time::sleep(PATIENCE / 10).await;
        assert!(!waits.is_finished());
        reads.has(last);
        waits.await.unwrap().unwrap().unwrap();
        assert_eq!((reads.answered(), later.state.unwrap().told()), (2, Some(seen)));
        // What does not come, or is far away, is left to the leader.
        let begun = std::time::Instant::now();
        assert!(reads.answer(&look(seen + LAG_MAX + 1), &follows).await.is_none());
        assert!(begun.elapsed() < PATIENCE);
        assert!(reads.answer(&look(seen + 1), &follows).await.is_none());
        assert!(begun.elapsed() >= PATIENCE);
        // So is everything once it is closed.
        reads.read_from(None, 0);
        assert!(reads.answer(&earlier, &follows).await.is_none());
        running.shutdown().await;
    }
}
