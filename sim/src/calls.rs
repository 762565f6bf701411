//! Calls to the NameNode that end with an operation of its: between its steps other things happen.

use crate::data_node::FullReport;
use crate::name_node::{Answer, CallError, Carrier, LocatedBlock, NameNode, Named, Target};
use crate::world::World;
use cairn_master::add_block::{self, AddBlock, Added};
use cairn_master::append::{self, Append, Appended};
use cairn_master::complete::{self, Complete};
use cairn_master::reports::Begun;
use cairn_master::{Op, OpError, Submission, lease, pipeline, synchronize, truncate};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::{BlockRef, CallId, Caller, Command, InodeId, Outcome};
use cairn_redundancy::NodeClaim;
use cairn_stripe::{GenerationStamp, UnitIndex};
use std::future::Future;

impl World<'_> {
    /// Has an operation carried out, while other things happen. What has become of one that was under way when the
    /// NameNode fell is not known.
    fn carry_out<T: 'static, F: Future<Output = Result<T, OpError>> + 'static>(
        &mut self,
        operation: impl FnOnce(Carrier) -> F,
    ) -> Result<T, CallError> {
        if !self.name_node.up {
            return Err(CallError::Lost);
        }
        let life = self.name_node.life;
        let answer: Answer<T> = self.name_node.begin(operation);
        self.follow_namespace();
        loop {
            if let Some(answer) = answer.borrow_mut().take() {
                return Ok(answer?);
            }
            if self.name_node.life != life || !self.happens_meanwhile() {
                return Err(CallError::Lost);
            }
        }
    }

    /// Submits a command.
    pub(crate) fn call(
        &mut self,
        call: Option<CallId>,
        command: impl Into<Command>,
    ) -> Result<Outcome, CallError> {
        self.name_node.check_safe_mode()?;
        let command = command.into();
        match command {
            Command::Truncate(command) => self.carry_out(|op| async move {
                let caller = Caller::system();
                truncate::truncate(&op, &caller, call, command).await
            }),
            command => {
                let submission = Submission::of(Caller::system(), call, command);
                self.carry_out(|op| async move { op.submit(submission).await })
            }
        }
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#getAdditionalBlock`.
    pub(crate) fn call_add_block(
        &mut self,
        file: InodeId,
        holder: &str,
        previous: Option<BlockRef>,
        excluded: &[usize],
    ) -> Result<LocatedBlock, CallError> {
        self.name_node.check_safe_mode()?;
        let wanted = AddBlock {
            file: Some(file),
            holder: holder.to_string(),
            previous,
            excluded: excluded.iter().map(|node| self.name_node.uuid_of(*node)).collect(),
            ..AddBlock::default()
        };
        let Added { offset, block, redundancy } = self.carry_out(|op| async move {
            add_block::add_block(&op, &Caller::system(), None, &wanted).await
        })?;
        Ok(self.name_node.locate(offset, block, redundancy))
    }

    pub(crate) fn call_new_stamp(
        &mut self,
        holder: &str,
        block: BlockRef,
    ) -> Result<GenerationStamp, CallError> {
        self.name_node.check_safe_mode()?;
        let command = UpdateBlockForPipeline { holder: holder.to_string(), block };
        let answer = self.carry_out(|op| async move {
            pipeline::new_stamp(&op, &Caller::system(), None, command).await
        });
        match answer? {
            Outcome::Stamp(gs) => Ok(gs),
            _ => Err(CallError::NotNow),
        }
    }

    /// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`.
    pub(crate) fn call_update_pipeline(
        &mut self,
        call: CallId,
        holder: &str,
        old: BlockRef,
        new: BlockRef,
        targets: &[Option<Target>],
    ) -> Result<(), CallError> {
        self.name_node.check_safe_mode()?;
        let command = UpdatePipeline { holder: holder.to_string(), old, new };
        let place = |(at, to): (usize, &Option<Target>)| {
            let unit = UnitIndex(if new.id.is_striped() { at as u8 } else { 0 });
            Some((to.as_ref()?.node, unit))
        };
        let parts = targets.iter().enumerate().filter_map(place).collect();
        self.pipelines.insert((new.id, new.gs), parts);
        let storages = named(&self.name_node, targets);
        self.carry_out(|op| async move {
            let pairs = pairs(&storages);
            pipeline::update(&op, &Caller::system(), Some(call), command, &pairs).await
        })
    }

    pub(crate) fn call_abandon(
        &mut self,
        file: InodeId,
        holder: &str,
        block: BlockRef,
    ) -> Result<(), CallError> {
        let (path, file, holder) = (String::new(), Some(file), holder.to_string());
        self.call(None, AbandonBlock { path, file, holder, block }).map(|_| ())
    }

    /// Closes a file once its blocks have enough replicas.
    pub(crate) fn call_complete(
        &mut self,
        file: InodeId,
        holder: &str,
        last: Option<BlockRef>,
    ) -> Result<bool, CallError> {
        self.name_node.check_safe_mode()?;
        let (path, holder) = (String::new(), holder.to_string());
        let wanted = Complete { path, file: Some(file), holder, last };
        self.carry_out(|op| async move {
            complete::complete(&op, &Caller::system(), None, &wanted).await
        })
    }

    /// Opens a replicated file at its end. `None`: there is no block to go on in.
    pub(crate) fn call_append(
        &mut self,
        call: CallId,
        path: &str,
        holder: &str,
        new_block: bool,
    ) -> Result<Option<LocatedBlock>, CallError> {
        self.name_node.check_safe_mode()?;
        let wanted = Append {
            path: path.to_string(),
            holder: holder.to_string(),
            client_machine: String::new(),
            new_block,
        };
        let Appended { last, .. } = self.carry_out(|op| async move {
            append::append(&op, &Caller::system(), Some(call), &wanted).await
        })?;
        let Some((offset, block)) = last else { return Ok(None) };
        let Some(info) = self.name_node.block(block.id) else { return Err(CallError::NotNow) };
        Ok(Some(self.name_node.locate(offset, block, info.redundancy.clone())))
    }

    /// Has a file closed. Returns whether it is.
    pub(crate) fn call_recover_lease(
        &mut self,
        path: &str,
        holder: &str,
    ) -> Result<bool, CallError> {
        self.name_node.check_safe_mode()?;
        let (path, holder) = (path.to_string(), holder.to_string());
        self.carry_out(|op| async move {
            lease::recover(&op, &Caller::system(), None, &path, &holder).await
        })
    }

    /// The end of a block's recovery.
    pub(crate) fn call_synchronize(
        &mut self,
        command: CommitBlockSynchronization,
        targets: &[Option<Target>],
    ) -> Result<(), CallError> {
        self.name_node.check_safe_mode()?;
        let storages = named(&self.name_node, targets);
        self.carry_out(
            |op| async move { synchronize::commit(&op, command, &pairs(&storages)).await },
        )
    }

    /// Takes a full report of all storages, under its lease. Between its steps other things happen.
    pub(crate) fn call_full_report(
        &mut self,
        node: usize,
        lease: u64,
        storages: &FullReport,
    ) -> bool {
        let life = self.name_node.life;
        let Some(call) = self.name_node.begin_report(node, lease) else { return false };
        for (storage, kind, replicas) in storages {
            match self.name_node.begin_storage(call, (storage, *kind), replicas) {
                Begun::Overtaken => break,
                Begun::Refused(_) => continue,
                Begun::Report(mut report) => loop {
                    let more = self.name_node.report_step(&mut report);
                    self.follow_namespace();
                    let goes_on = !self.rng.one_in(3) || self.happens_meanwhile();
                    if !goes_on || !self.name_node.up || self.name_node.life != life {
                        return false;
                    }
                    if !more {
                        break;
                    }
                },
            }
        }
        self.name_node.end_report(call)
    }
}

/// Who has storages, and their UUIDs; what nobody has is named by none.
fn named(name_node: &NameNode, targets: &[Option<Target>]) -> Vec<(Named, String)> {
    let name = |target: &Option<Target>| match target {
        Some(target) => (name_node.named(target.node), target.storage.clone()),
        None => (Named::none(), String::new()),
    };
    targets.iter().map(name).collect()
}

fn pairs(named: &[(Named, String)]) -> Vec<(NodeClaim<'_>, &str)> {
    named.iter().map(|(node, storage)| (node.claim(), storage.as_str())).collect()
}
