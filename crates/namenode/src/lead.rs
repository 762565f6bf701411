//! The lead of a quorum in one term: what makes a NameNode's entries agreed on, and its answers true.

use crate::clock::wall_ms;
use crate::config::quorum::QuorumConfig;
use crate::journal::agree::{self, Agree, NotAgreed};
use crate::members::{self, Row};
use crate::quorum::{Member, Place, Status};
use cairn_process::held::held;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// See the module. Once it is lost it never comes back: who leads again has another one.
pub(crate) struct Lead {
    member: Arc<Member>,
    config: QuorumConfig,
    term: u64,
    /// Since when, ms since the epoch.
    since_ms: u64,
    /// What was agreed on and is not shown yet: the last entry of each group, and its place.
    unshown: Mutex<VecDeque<(u64, Place)>>,
    logged: AtomicU64,
    stored: AtomicU64,
    is_lost: watch::Sender<bool>,
}

impl Lead {
    /// Of a member that leads in that term, and has the entries up to `last`.
    pub fn new(member: Arc<Member>, config: QuorumConfig, term: u64, last: u64) -> Lead {
        Lead {
            member,
            config,
            term,
            since_ms: wall_ms(),
            unshown: Mutex::default(),
            logged: last.into(),
            stored: AtomicU64::default(),
            is_lost: watch::Sender::new(false),
        }
    }

    /// Since when it lasts, ms since the epoch.
    pub fn since_ms(&self) -> u64 {
        self.since_ms
    }

    /// What is known of all members.
    pub fn members(&self) -> (Status, Vec<Row>) {
        let status = self.member.status();
        let rows = members::rows(&status, &self.config.id, &self.config.members);
        (status, rows)
    }

    /// Whether nobody else can lead at this moment: what is answered now is so.
    pub fn may_answer(&self) -> bool {
        !*self.is_lost.borrow() && self.member.may_answer(self.term)
    }

    /// Names of the members that are configured otherwise than this one.
    pub fn configured_otherwise(&self) -> BTreeSet<String> {
        self.member.status().differ
    }

    /// Whether it is over.
    pub fn is_lost(&self) -> bool {
        *self.is_lost.borrow()
    }

    /// Completes when it is over.
    pub async fn lost(&self) {
        let mut is_lost = self.is_lost.subscribe();
        // The sender lives as long as `self`.
        let _ = is_lost.wait_for(|is_lost| *is_lost).await;
    }

    /// Ends it where the member does not lead in its term any more.
    pub fn look(&self) {
        let status = self.member.status();
        if !status.leads || status.term != self.term {
            self.lose();
        }
    }

    /// Ends it.
    pub fn lose(&self) {
        self.is_lost.send_if_modified(|is_lost| !std::mem::replace(is_lost, true));
    }

    /// The last entry that the log of this machine has.
    pub fn last_logged(&self) -> u64 {
        self.logged.load(Ordering::SeqCst)
    }

    /// The last entry that the store's file has.
    pub fn last_stored(&self) -> u64 {
        self.stored.load(Ordering::SeqCst)
    }
}

impl Agree for Lead {
    fn agree(&self, group: Vec<u8>) -> Result<(), NotAgreed> {
        if self.is_lost() {
            return Err(NotAgreed("this member has lost the lead".to_string()));
        }
        let last = agree::last_entry(&group);
        let place = self.member.propose(self.term, group).map_err(|error| {
            self.lose();
            NotAgreed(error.to_string())
        })?;
        held(&self.unshown).extend(last.map(|last| (last, place)));
        Ok(())
    }

    fn shown(&self, last: u64) {
        let mut unshown = held(&self.unshown);
        let count = unshown.partition_point(|(of, _)| *of <= last);
        if let Some((_, place)) = unshown.drain(..count).next_back() {
            self.member.shown(place);
        }
    }

    fn logged(&self, last: u64) {
        self.logged.fetch_max(last, Ordering::SeqCst);
    }

    fn stored(&self, last: u64) {
        self.stored.fetch_max(last, Ordering::SeqCst);
    }
}
