//! Gathers the bytes of one step from enough units, from other ones where some fail or are slow.

use super::buffers::Buffers;
use super::plan::Plan;
use super::source::{self, Answer, Ask, Piece, Wanted};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_stripe::UnitIndex;
use cairn_stripe::read::{Decode, Progress, StripeRead, UnitHealth};
use cairn_stripe::rebuild::Rebuild;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Reads a group's units step by step. Dropping it ends all reads.
pub(super) struct Gather<'a> {
    node: &'a Arc<Node>,
    plan: &'a Plan,
    rebuild: &'a mut Rebuild,
    readers: Vec<Option<mpsc::Sender<Ask>>>,
    answers: mpsc::Receiver<Answer>,
    answer_to: mpsc::Sender<Answer>,
    tasks: JoinSet<()>,
    buffers: Arc<Buffers>,
    steps_begun: u64,
    /// CRC32C of what was read of each unit, if it was read from its start on, and its end.
    sums: Vec<Option<(u32, u64)>>,
    used: Vec<bool>,
    /// Where the last step ends, if it is known.
    until: u64,
}

/// A step whose bytes are on their way.
pub(super) struct Step {
    number: u64,
    range: Range<u64>,
    read: StripeRead,
    pieces: Vec<Option<Piece>>,
    waiting: Vec<bool>,
    deadline: Instant,
}

/// A step whose bytes are there.
pub(super) struct Gathered {
    /// Which units to decode from which, and how many bytes.
    pub(super) decode: Decode,
    /// The sources' bytes, by unit; those of a unit that has ended are missing or short.
    pub(super) pieces: Vec<Option<Piece>>,
}

impl<'a> Gather<'a> {
    /// Units that are found to be bad or slow are noted in `rebuild`.
    pub(super) fn new(node: &'a Arc<Node>, plan: &'a Plan, rebuild: &'a mut Rebuild) -> Gather<'a> {
        let units = plan.geometry.units();
        let (answer_to, answers) = mpsc::channel(units);
        Gather {
            node,
            plan,
            rebuild,
            readers: vec![None; units],
            answers,
            answer_to,
            tasks: JoinSet::new(),
            // Of a step that is decoded and of the one that travels.
            buffers: Buffers::new(2 * units),
            steps_begun: 0,
            sums: vec![None; units],
            used: vec![false; units],
            until: u64::MAX,
        }
    }

    /// Of each unit nothing is read from `until` on.
    pub(super) fn until(self, until: u64) -> Gather<'a> {
        Gather { until, ..self }
    }

    /// Asks for what decoding `range` of the `lost` units takes.
    pub(super) fn begin(&mut self, range: Range<u64>, lost: &[UnitIndex]) -> Result<Step> {
        let read = self.rebuild.read(range.clone(), lost);
        self.begin_read(range, read)
    }

    /// Asks for what the `wanted` units have in `range`, or for what decoding it takes.
    pub(super) fn begin_units(&mut self, range: Range<u64>, wanted: &[UnitIndex]) -> Result<Step> {
        let read = self.rebuild.read_units(range.clone(), wanted);
        self.begin_read(range, read)
    }

    fn begin_read(&mut self, range: Range<u64>, read: StripeRead) -> Result<Step> {
        self.steps_begun += 1;
        let mut step = Step {
            number: self.steps_begun,
            range,
            read,
            pieces: self.readers.iter().map(|_| None).collect(),
            waiting: vec![false; self.readers.len()],
            deadline: Instant::now(),
        };
        self.ask(&mut step)?;
        Ok(step)
    }

    /// Waits for a step's bytes. Steps are finished in the order in which they were begun.
    pub(super) async fn finish(&mut self, mut step: Step) -> Result<Gathered> {
        step.deadline = self.next_deadline();
        loop {
            let decode = match step.read.progress() {
                Progress::Decode(decode) => Some(decode),
                // Nothing to decode: what is wanted is there, or the targets that are left have ended before.
                Progress::Ready => {
                    Some(Decode { sources: Vec::new(), lost: Vec::new(), range_in_cell: 0..0 })
                }
                Progress::Waiting => None,
            };
            if let Some(decode) = decode {
                decode.sources.iter().for_each(|unit| self.used[unit.as_usize()] = true);
                return Ok(Gathered { decode, pieces: step.pieces });
            }
            tokio::select! {
                answer = self.answers.recv() => {
                    // `self` keeps a sender.
                    let Some(answer) = answer else { return Err(DataNodeError::Stopped) };
                    self.take(&mut step, answer)?;
                }
                () = tokio::time::sleep_until(step.deadline) => self.pass_over_late(&mut step)?,
            }
        }
    }

    /// Units that have served as sources so far.
    pub(super) fn used(&self) -> Vec<UnitIndex> {
        let units = (0u8..).map(UnitIndex).zip(&self.used);
        units.filter(|(_, is_used)| **is_used).map(|(unit, _)| unit).collect()
    }

    /// What is rebuilt.
    pub(super) fn rebuild(&self) -> &Rebuild {
        self.rebuild
    }

    /// Checks the sources that were read from start to end. Those that are bad are reported.
    pub(super) fn check_sources(&mut self) -> Result<(), String> {
        let mut wrong = Vec::new();
        for unit in (0u8..self.sums.len() as u8).map(UnitIndex) {
            let Some((crc, end)) = self.sums[unit.as_usize()] else { continue };
            if end != self.plan.len(unit) || self.rebuild.check_source(unit, crc) {
                continue;
            }
            wrong.push(unit.to_string());
            // With two holders it is not known which one it was.
            if let [holder] = &self.plan.holders[unit.as_usize()][..] {
                self.node.report_bad_block(&self.plan.block(unit), holder.clone());
            }
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!("source units {} are not as they were written", wrong.join(", "))),
        }
    }

    fn next_deadline(&self) -> Instant {
        let shared = &self.node.reconstructions;
        // What waits for bandwidth is not slow.
        let throttled = shared.budgets(self.plan.is_urgent).read.backlog();
        Instant::now()
            + throttled
            + shared.paces.bound(self.node.config.reconstruction_read_timeout)
    }

    fn take(&mut self, step: &mut Step, answer: Answer) -> Result<()> {
        let (unit, at) = (answer.unit, answer.unit.as_usize());
        match answer.result {
            Ok(piece) => {
                let end = step.range.start + piece.data.len() as u64;
                if answer.step == step.number {
                    self.sums[at] = piece.crc32c.map(|crc| (crc, end));
                    step.read.arrived(unit, 0..piece.data.len() as u64);
                    step.pieces[at] = Some(piece);
                    step.waiting[at] = false;
                }
                // Else it is too late: it was decoded from others.
                Ok(())
            }
            Err(_) => {
                // The reader has ended, and has said why.
                self.readers[at] = None;
                self.rebuild.note(unit, UnitHealth::Lost);
                self.sums[at] = None;
                step.pieces[at] = None;
                step.waiting[at] = false;
                step.read.failed(unit);
                self.ask(step)
            }
        }
    }

    /// Asks others in place of those that take their time; these are asked last from now on.
    fn pass_over_late(&mut self, step: &mut Step) -> Result<()> {
        for unit in (0u8..step.waiting.len() as u8).map(UnitIndex) {
            if step.waiting[unit.as_usize()] {
                // It is told once: where no other is left, its time runs out again and again.
                if self.rebuild.health(unit) != UnitHealth::Slow {
                    let group = self.plan.group.id;
                    tracing::warn!(%group, %unit, "a source is slow, asking another");
                    self.rebuild.note(unit, UnitHealth::Slow);
                }
                if let Some(holder) = self.plan.holders[unit.as_usize()].first() {
                    let paces = &self.node.reconstructions.paces;
                    paces.overran(&holder.id.datanode_uuid, std::time::Instant::now());
                }
                step.read.late(unit);
            }
        }
        step.deadline = self.next_deadline();
        self.ask(step)
    }

    fn ask(&mut self, step: &mut Step) -> Result<()> {
        let asks = step.read.next_asks().map_err(|error| DataNodeError::peer(error.to_string()))?;
        for ask in asks {
            let at = ask.unit.as_usize();
            let start = step.range.start;
            debug_assert_eq!(ask.range_in_cell.start, 0, "a step asks for a unit's bytes once");
            let range = start + ask.range_in_cell.start..start + ask.range_in_cell.end;
            step.waiting[at] = true;
            let reader = self.readers[at].get_or_insert_with(|| {
                let answers = self.answer_to.clone();
                let buffers = self.buffers.clone();
                let wanted = Wanted::of_plan(self.plan, ask.unit).until(self.until);
                source::start(&mut self.tasks, self.node, wanted, buffers, answers)
            });
            // A reader that has ended has left a failure among the answers; one with a full queue is slow.
            if reader.try_send(Ask { step: step.number, range }).is_err() {
                tracing::debug!(unit = %ask.unit, "a reader takes no more");
            }
        }
        Ok(())
    }
}
