//! Renewing, taking over and ending leases.

use crate::block::{self, Block, BlockState};
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, InodeId};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::{counter, lease, tree};
use cairn_stripe::{BlockId, GenerationStamp};

/// What the redundancy manager knows of the replicas of a file's last two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastBlocks {
    /// The block before the last one has its minimum of replicas.
    pub penultimate_min_replicated: bool,
    /// The last block has its minimum of replicas.
    pub last_min_replicated: bool,
    /// Enough DataNodes are known or expected to have the last block for a recovery to find something: one
    /// replica, or as many units of a group as decoding needs.
    pub last_has_locations: bool,
    /// Which block was the last one then, at which stamp, if there was any; not told by older builds.
    pub seen: Option<Option<(BlockId, GenerationStamp)>>,
}

impl LastBlocks {
    /// What of it is sure of a file whose last block is `last`. The file may have gone on since it was looked at, and
    /// then nothing may be dropped that a DataNode may have, nor taken for written.
    pub(crate) fn of(self, last: Option<&Block>) -> LastBlocks {
        let now = last.map(|last| (last.id, last.gs));
        if self.seen.is_none_or(|seen| seen == now) {
            return self;
        }
        LastBlocks {
            penultimate_min_replicated: false,
            last_min_replicated: false,
            last_has_locations: true,
            ..self
        }
    }
}

/// In the first byte, which has been a flag: `seen` is at the end.
const HAS_SEEN: u8 = 2;

impl Encode for LastBlocks {
    fn encode(&self, out: &mut Encoder) {
        let has_seen = if self.seen.is_some() { HAS_SEEN } else { 0 };
        out.byte(u8::from(self.penultimate_min_replicated) | has_seen);
        self.last_min_replicated.encode(out);
        self.last_has_locations.encode(out);
        if let Some(seen) = &self.seen {
            seen.encode(out);
        }
    }
}

impl Decode for LastBlocks {
    fn decode(input: &mut Decoder<'_>) -> Result<LastBlocks, DecodeError> {
        let first = input.byte()?;
        if first > HAS_SEEN | 1 {
            return Err(DecodeError::Invalid { what: "flag", value: first.into() });
        }
        Ok(LastBlocks {
            penultimate_min_replicated: first & 1 != 0,
            last_min_replicated: Decode::decode(input)?,
            last_has_locations: Decode::decode(input)?,
            seen: match first & HAS_SEEN {
                0 => None,
                _ => Some(Decode::decode(input)?),
            },
        })
    }
}

/// The holder lives.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `LeaseManager#renewLease`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewLease {
    /// The lease holder.
    pub holder: String,
}

encode_struct!(RenewLease { holder });

impl RenewLease {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        lease::renew(cx.store, &self.holder, cx.times.elapsed_ms)?;
        Ok(Outcome::Done)
    }
}

/// Every holder gets the full time again; sent when a NameNode begins to serve.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `LeaseManager#renewAllLeases`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewAllLeases {}

encode_struct!(RenewAllLeases {});

impl RenewAllLeases {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        lease::renew_all(cx.store, cx.times.elapsed_ms)?;
        Ok(Outcome::Done)
    }
}

/// Another client wants the file closed.
///
/// Answer: `Outcome::Recovery`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#recoverLease`, `#recoverLeaseInternal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoverLease {
    /// The file.
    pub path: String,
    /// The client that asks.
    pub holder: String,
    /// What is known of its last blocks' replicas.
    pub replicas: LastBlocks,
}

encode_struct!(RecoverLease { path, holder, replicas });

impl RecoverLease {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        let inode = ops::existing_file(&at)?;
        if inode.file().is_some_and(|file| file.writer.is_none()) {
            return Ok(Outcome::Recovery { closed: true });
        }
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        release(cx, &at, &self.holder, self.replicas)
    }
}

/// The NameNode closes a file whose lease has passed the hard limit.
///
/// Answer: `Outcome::Recovery`.
///
/// Source: Hadoop 3.5.0 `LeaseManager#checkLeases`, `FSNamesystem#internalReleaseLease`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseLease {
    /// The file.
    pub file: InodeId,
    /// What is known of its last blocks' replicas.
    pub replicas: LastBlocks,
}

encode_struct!(ReleaseLease { file, replicas });

impl ReleaseLease {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let closed = Outcome::Recovery { closed: true };
        let Some(at) = path::of_inode(cx.store, self.file)? else {
            // Deleted while it was open; the rest of it is still to be purged.
            if let Some(inode) = inode::get(cx.store, self.file)?
                && let Some(writer) = inode.file().and_then(|file| file.writer.as_ref())
            {
                lease::remove(cx.store, &writer.holder, self.file)?;
            }
            return Ok(closed);
        };
        if ops::existing_file(&at)?.file().is_some_and(|file| file.writer.is_none()) {
            return Ok(closed);
        }
        let holder = lease::namenode_holder(cx.settings, cx.times.elapsed_ms);
        release(cx, &at, &holder, self.replicas)
    }
}

/// Closes an open file now, or orders the recovery of its last block and gives the file to
/// `new_holder` meanwhile.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#internalReleaseLease`.
fn release(
    cx: &mut Context<'_, '_>,
    at: &Resolved,
    new_holder: &str,
    replicas: LastBlocks,
) -> Result<Outcome> {
    let mut inode = at.existing()?.clone();
    let closed = Outcome::Recovery { closed: true };
    let last = block::last(cx.store, &inode)?;
    let replicas = replicas.of(last.as_ref());
    let Some(mut last) = last.filter(|block| block.state != BlockState::Complete) else {
        tree::close(cx.store, cx.settings, &mut inode, cx.times)?;
        return Ok(closed);
    };
    let penultimate_ready = replicas.penultimate_min_replicated
        || block::penultimate(cx.store, &inode)?
            .is_none_or(|block| block.state == BlockState::Complete);
    if last.state == BlockState::Committed {
        if penultimate_ready && replicas.last_min_replicated {
            tree::close(cx.store, cx.settings, &mut inode, cx.times)?;
            return Ok(closed);
        }
        if !penultimate_ready {
            return Err(NamespaceError::AlreadyBeingCreated(format!(
                "DIR* NameSystem.internalReleaseLease: Failed to release lease for file {}. \
                 Committed blocks are waiting to be minimally replicated.",
                at.path
            )));
        }
    }
    if !replicas.last_has_locations && last.len == 0 {
        tree::remove_last_block(cx.store, &mut inode)?;
        tree::close(cx.store, cx.settings, &mut inode, cx.times)?;
        return Ok(closed);
    }
    give_to(cx, &mut inode, new_holder)?;
    // The order of a NameNode that has ended went with its memory.
    let serves_since = lease::renewed_all(cx.store)?;
    let timeout_ms = cx.settings.block_recovery_timeout_ms;
    let is_under_way = |(_, started_ms): (_, u64)| {
        started_ms >= serves_since && cx.times.elapsed_ms.saturating_sub(started_ms) < timeout_ms
    };
    if last.recovery().is_some_and(is_under_way) {
        return Ok(Outcome::Recovery { closed: false });
    }
    let recovery_gs = counter::next_stamp(cx.store)?;
    last.begin_recovery(recovery_gs, cx.times.elapsed_ms);
    block::put(cx.store, &last)?;
    Ok(Outcome::Recovery { closed: false })
}

fn give_to(cx: &mut Context<'_, '_>, inode: &mut inode::Inode, holder: &str) -> Result<()> {
    let id = inode.id;
    if let Some(writer) = inode.file_mut().and_then(|file| file.writer.as_mut()) {
        if writer.holder != holder {
            lease::remove(cx.store, &writer.holder, id)?;
            writer.holder = holder.to_string();
        }
        lease::add(cx.store, holder, id, cx.times.elapsed_ms)?;
    }
    inode::put(cx.store, inode)
}

pub(crate) fn refusal(
    operation: &str,
    at: &Resolved,
    holder: &str,
    client_machine: &str,
    reason: &str,
) -> String {
    format!("Failed to {operation} {} for {holder} on {client_machine} because {reason}", at.path)
}

/// Who has a file open that another client wants.
enum Holder {
    /// Nobody.
    None,
    /// One that has been silent beyond the soft limit.
    Silent,
}

/// Fails if a live holder has the file open, with the reason that Hadoop gives for `operation`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#recoverLeaseInternal`.
fn check_holder(
    cx: &Context<'_, '_>,
    operation: &str,
    at: &Resolved,
    holder: &str,
    client_machine: &str,
) -> Result<Holder> {
    let Some(inode) = at.target() else { return Ok(Holder::None) };
    let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) else {
        return Ok(Holder::None);
    };
    let text = |reason: String| refusal(operation, at, holder, client_machine, &reason);
    if writer.holder == holder {
        return Err(NamespaceError::AlreadyBeingCreated(text(format!(
            "{holder} is already the current lease holder."
        ))));
    }
    if lease::is_soft_expired(cx.store, cx.settings, &writer.holder, cx.times.elapsed_ms)? {
        return Ok(Holder::Silent);
    }
    let owner = format!("{} on {}", writer.holder, writer.client_machine);
    let recovering = block::last(cx.store, inode)?.is_some_and(|block| block.recovery().is_some());
    Err(if recovering {
        NamespaceError::RecoveryInProgress(text(format!(
            "another recovery is in progress by {owner}"
        )))
    } else {
        NamespaceError::AlreadyBeingCreated(text(format!(
            "this file lease is currently owned by {owner}"
        )))
    })
}

/// Fails if anyone has the file open.
pub(crate) fn refuse_if_open(
    cx: &Context<'_, '_>,
    operation: &str,
    at: &Resolved,
    holder: &str,
    client_machine: &str,
) -> Result<()> {
    match check_holder(cx, operation, at, holder, client_machine)? {
        Holder::None => Ok(()),
        Holder::Silent => {
            let reason = "lease recovery is in progress. Try again later.";
            let text = refusal(operation, at, holder, client_machine, reason);
            Err(NamespaceError::RecoveryInProgress(text))
        }
    }
}

/// A file that was open, or not, and is closed now or will be.
pub(crate) enum TakeOver {
    /// It is closed.
    Closed,
    /// Its last block must be recovered first.
    Waiting(Outcome),
}

/// As [`refuse_if_open`], but takes the file over from a holder that was silent beyond the soft limit.
pub(crate) fn take_over(
    cx: &mut Context<'_, '_>,
    operation: &str,
    at: &Resolved,
    holder: &str,
    client_machine: &str,
    replicas: LastBlocks,
) -> Result<TakeOver> {
    match check_holder(cx, operation, at, holder, client_machine)? {
        Holder::None => return Ok(TakeOver::Closed),
        Holder::Silent => {}
    }
    let namenode = lease::namenode_holder(cx.settings, cx.times.elapsed_ms);
    match release(cx, at, &namenode, replicas)? {
        Outcome::Recovery { closed: true } => Ok(TakeOver::Closed),
        outcome => Ok(TakeOver::Waiting(outcome)),
    }
}
