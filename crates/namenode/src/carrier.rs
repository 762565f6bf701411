//! Carries the operations of `cairn_master` on this NameNode: each is noted while it is under way, and what it waits for.

use cairn_master::{FollowUp, Look, Op, OpError, Submission, follow_up};
use cairn_namespace::Outcome;
use cairn_net::rpc_server::Call;
use cairn_redundancy::{DisprovedCrc, Ticket};

use crate::journal::SubmitError;
use crate::node::NameNode;
use crate::operations::{UnderWay, WaitsFor};
use crate::refusal::Refusal;

/// An operation that is under way.
pub(crate) struct Operation<'a> {
    node: &'a NameNode,
    under_way: UnderWay<'a>,
}

impl NameNode {
    /// Begins an operation for a call, when it is its turn. One that comes again while it is carried out waits for that.
    pub(crate) async fn operation(&self, name: &'static str, call: &Call) -> Operation<'_> {
        let under_way = self.operations.begin(name, self.call_id(call)).await;
        Operation { node: self, under_way }
    }

    /// Begins an operation of the NameNode's own.
    pub(crate) fn own_operation(&self, name: &'static str) -> Operation<'_> {
        Operation { node: self, under_way: self.operations.begin_own(name) }
    }

    /// Has what follows from reports submitted: blocks that are complete now, and CRCs to record.
    pub(crate) async fn follow_up(&self, follow_up: FollowUp) -> Result<(), Refusal> {
        Ok(follow_up::submit(&self.own_operation("followUp"), follow_up).await?)
    }

    /// Replaces records of CRCs that replicas have proven wrong.
    pub(crate) async fn replace_disproved_crcs(&self) {
        let disproved = self.cluster().take_disproved();
        for disproved in disproved {
            let DisprovedCrc { id, recorded, crc32c, .. } = disproved;
            tracing::warn!(block = %id, recorded, crc32c, "most replicas, or all units of the group, prove the recorded CRC wrong: it is replaced");
            let operation = self.own_operation("replaceCrc");
            if let Err(error) = follow_up::replace_crc(&operation, disproved).await {
                tracing::error!(%error, "the record stays");
            }
        }
    }
}

impl Op for Operation<'_> {
    fn look<R>(&self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        self.node.look(look)
    }

    async fn submit(&self, submission: Submission) -> Result<Outcome, OpError> {
        let _waits = self.under_way.wait_for(WaitsFor::Log);
        self.node.log(submission).await.map_err(|error| match error {
            SubmitError::Refused(error) => OpError::Refused(error),
            SubmitError::Moved => OpError::Moved,
            error @ (SubmitError::Stopped | SubmitError::RollbackPoint(_)) => {
                OpError::Stopped(error.to_string())
            }
        })
    }

    async fn wait(&self, ticket: Ticket, until_ms: u64) -> bool {
        let _waits = self.under_way.wait_for(WaitsFor::Blocks);
        let keeper = &self.node.keeper;
        keeper.wait(ticket, keeper.instant(until_ms)).await
    }

    fn rack_of(&self, client: &str) -> Option<String> {
        self.node.topology.rack_of_client(client)
    }

    fn committed_allowed(&self) -> usize {
        self.node.config.committed_allowed
    }
}
