//! Runs the two halves of a write in one task, and hands packets from one to the other.
//!
//! A channel would wake the task that is running, which has the runtime wake another thread for it. Here nobody is
//! woken: whenever the task runs, the receiving half is polled first, and the acknowledging half after it.

use crate::dataset::ReplicaWriter;
use crate::error::Result;
use cairn_process::held::held;
use cairn_wire::proto::hdfs::Status;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

/// Packets received and not yet acknowledged; more wait in the sockets.
const MAX_PENDING: usize = 1024;
/// Packets that may be received in a row before those so far are acknowledged.
const MAX_IN_A_ROW: usize = 8;
/// Turns of both halves before other tasks may have the thread.
const MAX_TURNS: usize = 8;

/// A packet that was received here.
pub(super) struct Pending {
    pub(super) seqno: i64,
    /// Where its bytes end in the block.
    pub(super) end: u64,
    pub(super) status: Status,
    /// The mirror did not get it.
    pub(super) mirror_failed: bool,
    /// The writer, with the last packet of the block.
    pub(super) last: Option<ReplicaWriter>,
}

/// What is between the halves.
#[derive(Default)]
pub(super) struct Handover(Mutex<State>);

#[derive(Default)]
struct State {
    packets: VecDeque<Pending>,
    /// Packets handed over since the acknowledging half was polled.
    in_a_row: usize,
    /// The receiving half waits for the other one.
    waits: bool,
}

impl Handover {
    /// Hands a packet over; waits where the acknowledging half is to go on first.
    pub(super) async fn pass(&self, packet: Pending) {
        {
            let mut state = self.lock();
            state.packets.push_back(packet);
            state.in_a_row += 1;
        }
        poll_fn(|_| {
            let mut state = self.lock();
            state.waits = state.in_a_row >= MAX_IN_A_ROW || state.packets.len() >= MAX_PENDING;
            if state.waits { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// The next packet, if there is one.
    pub(super) fn try_next(&self) -> Option<Pending> {
        self.lock().packets.pop_front()
    }

    /// The next packet.
    pub(super) async fn next(&self) -> Pending {
        poll_fn(|_| self.try_next().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Runs both halves, which share this, until the acknowledging one is done or either has failed.
    pub(super) async fn run(
        &self,
        receiving: impl Future<Output = Result<()>>,
        acknowledging: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let (mut receiving, mut acknowledging) = (pin!(receiving), pin!(acknowledging));
        let mut receives = true;
        poll_fn(|context| {
            for _ in 0..MAX_TURNS {
                if receives && let Poll::Ready(received) = receiving.as_mut().poll(context) {
                    receives = false;
                    if received.is_err() {
                        return Poll::Ready(received);
                    }
                }
                if let Poll::Ready(done) = acknowledging.as_mut().poll(context) {
                    return Poll::Ready(done);
                }
                let mut state = self.lock();
                state.in_a_row = 0;
                if !state.waits || state.packets.len() >= MAX_PENDING {
                    return Poll::Pending;
                }
                state.waits = false;
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        held(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_wire::proto::hdfs::Status;
    use std::cell::Cell;
    use std::time::Duration;

    fn packet(seqno: i64) -> Pending {
        let status = Status::Success;
        Pending { seqno, end: 0, status, mirror_failed: false, last: None }
    }

    #[tokio::test]
    async fn the_halves_take_turns() {
        let (handover, received, ahead) = (Handover::default(), Cell::new(0), Cell::new(0));
        let receiving = async {
            for seqno in 0..200 {
                received.set(seqno);
                handover.pass(packet(seqno)).await;
            }
            Ok(())
        };
        let acknowledging = async {
            for seqno in 0..200 {
                assert_eq!(handover.next().await.seqno, seqno);
                ahead.set(ahead.get().max(received.get() - seqno));
            }
            Ok(())
        };
        let both = handover.run(receiving, acknowledging);
        tokio::time::timeout(Duration::from_secs(10), both).await.unwrap().unwrap();
        assert!(ahead.get() < MAX_IN_A_ROW as i64, "{} packets", ahead.get());
    }

    #[tokio::test]
    async fn packets_that_nobody_acknowledges_hold_the_next_ones_up() {
        let (handover, received) = (Handover::default(), Cell::new(0));
        let receiving = async {
            for seqno in 0..5000 {
                received.set(seqno + 1);
                handover.pass(packet(seqno)).await;
            }
            Ok(())
        };
        let (go_on, gone_on) = tokio::sync::oneshot::channel();
        let acknowledging = async {
            gone_on.await.unwrap();
            for _ in 0..5000 {
                handover.next().await;
            }
            Ok(())
        };
        let both = handover.run(receiving, acknowledging);
        let mut both = pin!(both);
        let waiting = tokio::time::timeout(Duration::from_millis(50), both.as_mut()).await;
        assert!(waiting.is_err());
        assert_eq!(received.get(), MAX_PENDING as i64);
        go_on.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(10), both).await.unwrap().unwrap();
    }

    async fn failed() -> Result<()> {
        Err(crate::error::DataNodeError::Stopped)
    }

    #[tokio::test]
    async fn what_fails_first_ends_both() {
        let handover = Handover::default();
        let received = async {
            handover.pass(packet(0)).await;
            Ok(())
        };
        assert!(handover.run(failed(), std::future::pending()).await.is_err());
        assert!(handover.run(received, failed()).await.is_err());
    }
}
