//! Reading several replicas or units side by side, step by step, all of each step.

use super::buffers::Buffers;
use super::source::{self, Answer, Ask, Piece, Wanted};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_stripe::UnitIndex;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A reader of each place. They end with this.
pub(super) struct Readers {
    asks: Vec<Option<mpsc::Sender<Ask>>>,
    answers: mpsc::Receiver<Answer>,
    steps: u64,
    _tasks: JoinSet<()>,
}

impl Readers {
    /// `wanted` are told apart by their place in that list.
    pub(super) fn start(node: &Arc<Node>, wanted: Vec<Wanted>, buffers: &Arc<Buffers>) -> Readers {
        let (answer_to, answers) = mpsc::channel(wanted.len().max(1));
        let mut tasks = JoinSet::new();
        let start = |(at, wanted): (usize, Wanted)| {
            let wanted = Wanted { unit: UnitIndex(at as u8), ..wanted };
            Some(source::start(&mut tasks, node, wanted, buffers.clone(), answer_to.clone()))
        };
        let asks = wanted.into_iter().enumerate().map(start).collect();
        Readers { asks, answers, steps: 0, _tasks: tasks }
    }

    /// Reads a range of each. `None` where the range is empty or the reader has failed before; why it fails is
    /// told where it does.
    pub(super) async fn step(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>>,
    ) -> Result<Vec<Option<Result<Piece>>>> {
        self.steps += 1;
        let mut pieces: Vec<Option<Result<Piece>>> = self.asks.iter().map(|_| None).collect();
        let mut waiting = 0;
        for (asks, range) in self.asks.iter().zip(ranges) {
            let Some(asks) = asks.as_ref().filter(|_| !range.is_empty()) else { continue };
            match asks.send(Ask { step: self.steps, range }).await {
                Ok(()) => waiting += 1,
                Err(_) => return Err(DataNodeError::Stopped),
            }
        }
        while waiting > 0 {
            let answer = self.answers.recv().await.ok_or(DataNodeError::Stopped)?;
            let at = answer.unit.as_usize();
            waiting -= 1;
            if answer.result.is_err() {
                self.asks[at] = None;
            }
            pieces[at] = Some(answer.result);
        }
        Ok(pieces)
    }
}
