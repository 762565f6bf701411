//! Who a DataNode is: where it is reached, and which process speaks for it.
//!
//! A machine that was cloned, or a disk that was copied, makes two DataNodes of one UUID. The one that registered
//! last is taken for it, and what the other says counts for nothing. A caller is known by the transfer address that
//! it claims, not by the one that it calls from, of which a node may have several. Cairn's DataNodes tell a random
//! number of their process as well: two processes are told apart wherever they are, and the older one is sent away
//! rather than asked to register, so that they do not take the place from each other for ever.
//!
//! Source: Hadoop 3.5.0 `DatanodeManager#getDatanode`, which compares addresses.

use crate::clock::Now;
use std::fmt;

/// How to reach a DataNode. Source: Hadoop 3.5.0 `DatanodeID`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAddress {
    /// Where the NameNode saw it register from.
    pub ip: String,
    /// What it calls its host.
    pub host: String,
    /// Data transfer.
    pub xfer_port: u16,
    /// HTTP.
    pub info_port: u16,
    /// HTTPS; 0 if it has none.
    pub info_secure_port: u16,
    /// RPC of clients to it.
    pub ipc_port: u16,
}

impl NodeAddress {
    /// Whether both are the same place for data transfer.
    fn is_at(&self, other: &NodeAddress) -> bool {
        (&self.ip, self.xfer_port) == (&other.ip, other.xfer_port)
    }
}

impl fmt::Display for NodeAddress {
    /// `ip:xferPort`, as Hadoop writes a DataNode.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.xfer_port)
    }
}

/// Whom a message says that it is from, or whom it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClaim<'a> {
    /// The id that a DataNode keeps over restarts.
    pub uuid: &'a str,
    /// Its address, as the answer to its registration had it.
    pub ip: &'a str,
    /// Its port for data transfer, as any number that a message may have.
    pub xfer_port: u32,
    /// The number of its process; none from Hadoop's DataNodes, and in what is said of others.
    pub process: Option<u64>,
}

impl fmt::Display for NodeClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.xfer_port)
    }
}

/// Processes that had the registration before and are still known.
const FORMER_MAX: usize = 8;
/// Two that take the registration from each other within this time are both alive; and for so long after the last
/// sign of it people are told.
const TWIN_MS: u64 = 10 * 60 * 1000;

/// The processes that have spoken for a DataNode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Whose registration holds; `None` if it tells no number.
    process: Option<u64>,
    /// Monotonic milliseconds at which that registration was asked for.
    asked_mono_ms: u64,
    /// Those before it, the latest last.
    former: Vec<Former>,
    twin: Option<Twin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Former {
    process: Option<u64>,
    address: NodeAddress,
    replaced_mono_ms: u64,
}

/// Another one that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Twin {
    address: NodeAddress,
    seen_mono_ms: u64,
}

impl Identity {
    /// Whether a claim is of the process that has registered at `address`.
    pub(crate) fn is_of(&self, address: &NodeAddress, claim: &NodeClaim<'_>) -> bool {
        match (self.process, claim.process) {
            (Some(own), Some(claimed)) => own == claimed,
            _ => address.ip == claim.ip && u32::from(address.xfer_port) == claim.xfer_port,
        }
    }

    /// Whether a claim is of a process in whose place another one is.
    pub(crate) fn is_former(&self, claim: &NodeClaim<'_>) -> bool {
        self.former_of(claim).is_some()
    }

    fn former_of(&self, claim: &NodeClaim<'_>) -> Option<&Former> {
        let process = claim.process.filter(|process| self.process != Some(*process))?;
        self.former.iter().find(|former| former.process == Some(process))
    }

    /// Whether a registration was asked for before the one that holds was, by another process: what it asked was
    /// overtaken, and nobody may wait for the answer any more.
    pub(crate) fn has_overtaken(&self, process: Option<u64>, asked: Now) -> bool {
        let are_numbered = self.process.is_some() && process.is_some();
        are_numbered && self.process != process && asked.mono_ms < self.asked_mono_ms
    }

    /// Hands the registration to a process at `new`. The one at `old` had it, if any had, and `was_alive` if it is not
    /// known to be dead.
    pub(crate) fn take_over(
        &mut self,
        (old, was_alive): (Option<NodeAddress>, bool),
        (new, process): (&NodeAddress, Option<u64>),
        (asked, now): (Now, Now),
    ) {
        let own = self.process;
        let is_same = |old: &NodeAddress| match (own, process) {
            (Some(own), Some(new)) => own == new,
            _ => old.is_at(new),
        };
        if let Some(old) = old.filter(|old| !is_same(old)) {
            let was_here = |former: &Former| {
                former.address.is_at(new) && is_recent(former.replaced_mono_ms, now)
            };
            if was_alive && !old.is_at(new) && self.former.iter().any(was_here) {
                self.twin = Some(Twin { address: old.clone(), seen_mono_ms: now.mono_ms });
            }
            let replaced_mono_ms = now.mono_ms;
            self.former.push(Former { process: own, address: old, replaced_mono_ms });
        }
        self.former.retain(|former| former.process.is_none() || former.process != process);
        let surplus = self.former.len().saturating_sub(FORMER_MAX);
        self.former.drain(..surplus);
        (self.process, self.asked_mono_ms) = (process, asked.mono_ms);
    }

    /// Notes that a process calls in whose place the one at `address` is.
    pub(crate) fn heard_of_former(
        &mut self,
        claim: &NodeClaim<'_>,
        address: &NodeAddress,
        now: Now,
    ) {
        let former = self.former_of(claim).filter(|former| !former.address.is_at(address));
        if let Some(former) = former {
            self.twin = Some(Twin { address: former.address.clone(), seen_mono_ms: now.mono_ms });
        }
    }

    /// Where another process with the same UUID was alive of late.
    pub(crate) fn twin(&self, now: Now) -> Option<&NodeAddress> {
        let twin = self.twin.as_ref().filter(|twin| is_recent(twin.seen_mono_ms, now));
        twin.map(|twin| &twin.address)
    }
}

fn is_recent(mono_ms: u64, now: Now) -> bool {
    now.mono_ms.saturating_sub(mono_ms) < TWIN_MS
}

#[cfg(test)]
mod tests;
