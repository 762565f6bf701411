//! Mending a pipeline: without the failed DataNode, perhaps with another, under a new stamp.
//!
//! Source: Hadoop 3.5.0 `DataStreamer#setupPipelineForAppendOrRecovery`,
//! `ReplaceDatanodeOnFailure`.

use super::{OpenBlock, Pipeline};
use crate::config::ReplaceDataNode;
use crate::datanode::write_block::{Stage, Target, transfer};
use crate::error::{ClientError, Result};
use crate::types::Block;

/// Tries to add a DataNode to a pipeline.
const ADD_TRIES: usize = 3;

impl Pipeline {
    /// Opens the pipeline of a block that is appended to.
    pub(super) async fn reopen_appended(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.targets.is_empty() {
            let reason = "no DataNode that holds it is alive".to_string();
            return Err(ClientError::Pipeline { block: block.block.to_string(), reason });
        }
        match open_restamped(&mut self.file, block, Stage::PipelineSetupAppend).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let bad = block.bad_target(&error);
                self.recover(bad, error).await
            }
        }
    }

    /// Goes on without the DataNode at `bad`: until a pipeline works, or none can.
    pub(super) async fn recover(&mut self, mut bad: usize, mut cause: ClientError) -> Result<()> {
        let retries = self.file.session.config.pipeline_recovery_retries;
        loop {
            let Some(block) = &mut self.block else { return Err(cause) };
            block.connection = None;
            block.recoveries += 1;
            tracing::warn!(block = %block.block, error = %cause, bad, "mending the pipeline");
            if block.recoveries > retries {
                let reason = format!("{retries} recoveries without progress; {cause}");
                return Err(ClientError::Pipeline { block: block.block.to_string(), reason });
            }
            let failed = block.targets.remove(bad.min(block.targets.len() - 1));
            self.file.exclude(failed.clone());
            block.failed.push(failed);
            if block.targets.is_empty() {
                let reason = format!("all DataNodes failed; {cause}");
                return Err(ClientError::Pipeline { block: block.block.to_string(), reason });
            }
            self.replace_if_wanted().await?;
            match self.resume().await {
                Ok(()) => return Ok(()),
                Err(error @ (ClientError::Remote { .. } | ClientError::NameNode { .. })) => {
                    return Err(error);
                }
                Err(error) => {
                    bad = self.block.as_ref().map_or(0, |block| block.bad_target(&error));
                    cause = error;
                }
            }
        }
    }

    /// Opens the mended pipeline and sends again what was not acknowledged.
    async fn resume(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let only_the_end = block.unacked.len() == 1 && block.unacked[0].header.last_packet;
        let stage = match (only_the_end, block.appended && block.next_seqno == 0) {
            (true, _) => Stage::PipelineCloseRecovery,
            (false, true) => Stage::PipelineSetupAppendRecovery,
            (false, false) => Stage::PipelineSetupStreamingRecovery,
        };
        open_restamped(&mut self.file, block, stage).await?;
        if only_the_end {
            // The DataNodes finalize the replica when they are asked so: no packet is sent.
            block.connection = None;
            block.unacked.clear();
            return Ok(());
        }
        if let Some(connection) = &mut block.connection {
            for unacked in &block.unacked {
                connection.send(&unacked.header, &unacked.packet).await?;
            }
        }
        Ok(())
    }

    async fn replace_if_wanted(&mut self) -> Result<()> {
        let config = &self.file.session.config;
        let best_effort = config.replace_datanode_best_effort;
        let replication = usize::from(self.file.status.replication);
        let Some(block) = &self.block else { return Ok(()) };
        let flushed = block.appended || block.flushed;
        let left = block.targets.len();
        if !wants_replacement(config.replace_datanode, replication, left, flushed) {
            return Ok(());
        }
        match self.add_datanode().await {
            Err(error) if best_effort => {
                tracing::warn!(%error, "no DataNode could be added to the pipeline; going on");
                Ok(())
            }
            done => done,
        }
    }

    /// Adds a DataNode to the pipeline and copies to it what the others have.
    async fn add_datanode(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let file = &self.file;
        let mut left_out: Vec<Target> = block.failed.clone();
        for attempt in 0.. {
            let (new, located) = file.additional(&block.block, &block.targets, &left_out).await?;
            let source = &block.targets[attempt % block.targets.len()];
            let token = located.token(0);
            let (config, name) = (&file.session.config, file.client_name());
            match transfer(config, &block.block, &token, name, source, &new).await {
                Ok(()) => {
                    block.targets.push(new);
                    return Ok(());
                }
                Err(error) if attempt + 1 == ADD_TRIES => return Err(error),
                Err(error) => {
                    tracing::warn!(block = %block.block, %error, "could not copy to a new DataNode");
                    left_out.push(new);
                }
            }
        }
        Ok(())
    }
}

/// Opens the pipeline under a new stamp and tells the NameNode.
async fn open_restamped(
    file: &mut crate::write::open_file::OpenFile,
    block: &mut OpenBlock,
    stage: Stage,
) -> Result<()> {
    let located = file.new_stamp(&block.block).await?;
    let stamp = located.block.block.stamp;
    block.token = located.token(0);
    block.open(file, stage, stamp).await?;
    let new = Block { stamp, ..block.block.clone() };
    let targets: Vec<Option<&Target>> = block.targets.iter().map(Some).collect();
    file.update_pipeline(&block.block, &new, &targets).await?;
    block.block = new;
    Ok(())
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
