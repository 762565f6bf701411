//! Mending a pipeline: without the failed DataNode, perhaps with another, under a new stamp.
//!
//! Source: Hadoop 3.5.0 `DataStreamer#setupPipelineForAppendOrRecovery`, `ReplaceDatanodeOnFailure`.

use super::replace::ReplaceDataNode;
use super::{Done, Event, Failure, Opening, Peers, Pipeline, PipelineError, Stage, bad};
use crate::Block;

/// Tries to add a DataNode to a pipeline.
const ADD_TRIES: usize = 3;

impl<P: Peers> Pipeline<P> {
    /// Goes on without the DataNode that failed: until a pipeline works, or none can.
    pub(super) async fn recover(&mut self, mut failure: Failure<P::Error>) -> Done<(), P::Error> {
        loop {
            failure.place = failure.place.or_else(|| self.named_meanwhile());
            self.peers.close(false).await;
            let Failure { place, cause } = failure;
            let Some(open) = &mut self.block else { return Err(cause.into()) };
            let (block, recoveries) = (open.block, self.rules.recovery_retries);
            open.recoveries += 1;
            if open.recoveries > recoveries {
                return Err(PipelineError::NoProgress { block, recoveries, cause });
            }
            let failed = open.places.remove(bad(place, &open.places));
            self.peers.leave_out(&failed, &cause);
            open.failed.push(failed);
            if open.places.is_empty() {
                return Err(PipelineError::AllFailed { block, cause });
            }
            self.replace_if_wanted().await?;
            match self.resume().await? {
                None => return Ok(()),
                Some(again) => failure = again,
            }
        }
    }

    /// After sending has failed, what has arrived may tell which DataNode it was.
    fn named_meanwhile(&mut self) -> Option<usize> {
        while let Some(event) = self.peers.arrived() {
            match event {
                // What comes out of turn now is of a pipeline that is given up.
                Event::Acknowledged(seqno) => _ = self.acknowledged(seqno),
                Event::Failed(failure) => return failure.place,
            }
        }
        None
    }

    /// Opens the mended pipeline and sends again what was not acknowledged. Tells who has not gone along.
    async fn resume(&mut self) -> Done<Option<Failure<P::Error>>, P::Error> {
        let Some(open) = &self.block else { return Ok(None) };
        let only_the_end = open.unacked.len() == 1 && open.unacked[0].0.is_last;
        let stage = match (only_the_end, open.appended && open.next_seqno == 0) {
            (true, _) => Stage::CloseRecovery,
            (false, true) => Stage::AppendRecovery,
            (false, false) => Stage::StreamingRecovery,
        };
        if let Some(failure) = self.open_restamped(stage).await? {
            return Ok(Some(failure));
        }
        let Some(open) = &mut self.block else { return Ok(None) };
        if only_the_end {
            // The DataNodes finalize the replica when they are asked so: no packet is sent.
            open.unacked.clear();
            self.peers.close(false).await;
            return Ok(None);
        }
        for (header, packet) in &open.unacked {
            if let Err(cause) = self.peers.send(*header, packet).await {
                return Ok(Some(Failure { place: None, cause }));
            }
        }
        Ok(None)
    }

    /// Opens the pipeline under a new stamp and tells the NameNode. Tells who has not gone along.
    pub(super) async fn open_restamped(
        &mut self,
        stage: Stage,
    ) -> Done<Option<Failure<P::Error>>, P::Error> {
        let Some(open) = &mut self.block else { return Ok(None) };
        let (block, sent_len, places) = (open.block, open.sent_len, &open.places[..]);
        let stamp = self.peers.new_stamp(block).await?;
        let opening = Opening { block, sent_len, stamp, stage, places };
        if let Err(failure) = self.peers.open(opening).await {
            return Ok(Some(failure));
        }
        let new = Block { stamp, ..block };
        self.peers.update_pipeline(block, new, places).await?;
        open.block = new;
        Ok(None)
    }

    async fn replace_if_wanted(&mut self) -> Done<(), P::Error> {
        let Some(open) = &self.block else { return Ok(()) };
        let (flushed, left) = (open.appended || open.flushed, open.places.len());
        if !wants_replacement(self.rules.replace, self.rules.replication, left, flushed) {
            return Ok(());
        }
        match self.add_place().await {
            Err(error) if self.rules.replace_best_effort => self.peers.not_replaced(error),
            done => done?,
        }
        Ok(())
    }

    /// Adds a DataNode to the pipeline and has what the others have copied to it.
    async fn add_place(&mut self) -> Result<(), P::Error> {
        let Some(open) = &mut self.block else { return Ok(()) };
        let (block, mut left_out, mut tries) = (open.block, open.failed.clone(), 0);
        loop {
            let new = self.peers.additional_place(block, &open.places, &left_out).await?;
            let source = &open.places[tries % open.places.len()];
            tries += 1;
            match self.peers.copy(block, source, &new).await {
                Ok(()) => {
                    open.places.push(new);
                    return Ok(());
                }
                Err(error) if tries == ADD_TRIES => return Err(error),
                Err(_) => left_out.push(new),
            }
        }
    }
}

/// Whether a pipeline of `left` DataNodes should get another.
fn wants_replacement(
    policy: ReplaceDataNode,
    replication: usize,
    left: usize,
    flushed: bool,
) -> bool {
    match policy {
        _ if left == 0 || left >= replication => false,
        ReplaceDataNode::Never => false,
        ReplaceDataNode::Always => true,
        ReplaceDataNode::Default => replication >= 3 && (left <= replication / 2 || flushed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datanodes_are_replaced_by_hadoops_rule() {
        use ReplaceDataNode::{Always, Default, Never};
        for (policy, replication, left, flushed, want) in [
            (Default, 3, 2, false, false),
            (Default, 3, 1, false, true),
            (Default, 3, 2, true, true),
            (Default, 2, 1, true, false),
            (Default, 5, 2, false, true),
            (Always, 2, 1, false, true),
            (Always, 2, 2, true, false),
            (Never, 3, 1, true, false),
        ] {
            let got = wants_replacement(policy, replication, left, flushed);
            assert_eq!(got, want, "{policy:?} {replication} {left} {flushed}");
        }
    }
}
