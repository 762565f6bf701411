//! One file: its line, and what its blocks lack.

use super::block::{Look, View, finding};
use super::check::Check;
use super::stop::Stop;
use super::totals::Totals;
use cairn_namespace::query::{self, FileBlocks};
use cairn_namespace::{Block, BlockState, NamespaceError};
use cairn_redundancy::BlockLookup;
use cairn_stripe::{BlockId, Redundancy};
use serde_json::json;
use std::fmt::Write as _;

/// Blocks that are looked at under one hold of the cluster's lock.
const BATCH: usize = 200;
/// Files for which a point shows that the check goes on. Source: Hadoop 3.5.0
/// `NamenodeFsck#collectFileSummary`.
const POINT_EVERY: u64 = 100;

/// What was found of a file so far.
#[derive(Default)]
struct Findings {
    missing: u64,
    missing_bytes: u64,
    corrupt: u64,
    corrupt_bytes: u64,
    under: bool,
    misplaced: Vec<Block>,
    any_misplaced: bool,
    /// A line for each block, for `-blocks`.
    report: String,
}

impl Check {
    /// Source: Hadoop 3.5.0 `NamenodeFsck#collectFileSummary`, `#collectBlocksSummary`.
    pub(super) async fn check_file(&mut self, path: &str) -> Result<(), Stop> {
        let now_ms = self.node.now().wall_ms;
        let found = self
            .node
            .ns
            .read(|store| query::get_blocks(store, &self.caller, path, 0, u64::MAX, now_ms));
        let found = match found {
            Ok(found) => found,
            // Deleted since its directory was listed.
            Err(NamespaceError::FileNotFound(_)) => return Ok(()),
            // Not even a superuser may look at it.
            //
            // Deviation: Hadoop's check ends there, and tells nothing of what comes after.
            Err(NamespaceError::AccessControl(why)) if self.caller.superuser => {
                self.pass_over(path, &why);
                return Ok(());
            }
            Err(other) => return Err(other.into()),
        };
        let is_open = found.status.is_under_construction();
        if is_open && !self.options.open_files {
            let totals = self.totals_of(&found);
            totals.open_files += 1;
            totals.open_bytes += found.status.len();
            totals.open_blocks += found.blocks.len() as u64;
            return Ok(());
        }
        // Looked at first: of a file that is deleted meanwhile nothing is to be told.
        let Some(looks) = self.look_at_blocks(path, &found) else { return Ok(()) };
        self.file_line(path, &found, is_open);
        let mut findings = Findings::default();
        for (number, (block, look)) in looks.iter().enumerate() {
            self.check_one(path, &found, number, block, look, &mut findings);
        }
        self.open_block(&found, looks.len(), &mut findings);
        self.settle_damage(path, &found, is_open, &findings).await;
        self.file_end(&findings);
        self.queue_misplaced(&found, &findings);
        Ok(())
    }

    /// Counts and names a file that cannot be looked at.
    fn pass_over(&mut self, path: &str, why: &str) {
        self.passed_over += 1;
        self.out.print(&format!("\n{path}: NOT LOOKED AT: {why}\n"));
        self.out.finding(&json!({"path": path, "not_looked_at": why}));
    }

    fn totals_of(&mut self, found: &FileBlocks) -> &mut Totals {
        match found.redundancy {
            Redundancy::Striped(_) => &mut self.striped,
            Redundancy::Replicated(_) => &mut self.replicated,
        }
    }

    /// What is known of every block but a last one that is not complete; `None` if one is gone.
    fn look_at_blocks(&mut self, path: &str, found: &FileBlocks) -> Option<Vec<(Block, Look)>> {
        let open = found.last.as_ref().filter(|(_, last)| last.state != BlockState::Complete);
        let open = open.map(|(_, last)| last.id);
        let blocks: Vec<&Block> =
            found.blocks.iter().map(|(_, block)| block).filter(|b| Some(b.id) != open).collect();
        let path = self.options.json.then_some(path);
        let (now, replication_min) = (self.node.now(), self.node.config.min_replication);
        let mut looks = Vec::with_capacity(blocks.len());
        for batch in blocks.chunks(BATCH) {
            let options = &self.options;
            let (some, told) = self.node.with_cluster(|cluster, lookup| {
                let ids: Vec<BlockId> = batch.iter().map(|block| block.id).collect();
                cluster.settle(lookup, &ids);
                let view = View { options, cluster, replication_min, now };
                let mut looks = Vec::with_capacity(batch.len());
                let mut told = Vec::new();
                for block in batch {
                    let facts = lookup.block(block.id)?;
                    let look = view.look(lookup, block.id, &facts);
                    let verdict = &look.verdict;
                    let whole = verdict.lacking() == 0
                        && !look.disagrees
                        && !verdict.corrupt
                        && !verdict.is_missing()
                        && look.spread.is_satisfied();
                    if let Some(path) = path.filter(|_| !whole || options.blocks) {
                        told.push(finding(&view, lookup, (block.id, &facts), path));
                    }
                    looks.push(((*block).clone(), look));
                }
                Some((looks, told))
            })?;
            looks.extend(some);
            told.iter().for_each(|told| self.out.finding(told));
        }
        Some(looks)
    }

    fn file_line(&mut self, path: &str, found: &FileBlocks, is_open: bool) {
        let (len, count) = (found.status.len(), found.blocks.len());
        let policy = match (&found.redundancy, &found.status.policy) {
            (Redundancy::Striped(policy), _) => format!("erasure-coded: policy={},", policy.name),
            (Redundancy::Replicated(copies), Some(policy)) => {
                format!("contiguous: policy={}, replication={copies},", policy.name)
            }
            (Redundancy::Replicated(copies), None) => format!("replicated: replication={copies},"),
        };
        let totals = self.totals_of(found);
        totals.files += 1;
        totals.bytes += len;
        totals.blocks += count as u64;
        let point = totals.files.is_multiple_of(POINT_EVERY);
        if is_open {
            self.out
                .print(&format!("{path} {len} bytes, {policy} {count} block(s), OPENFORWRITE: "));
        } else if self.options.files {
            self.out.print(&format!("{path} {len} bytes, {policy} {count} block(s): "));
        } else if point {
            self.out.print(".");
        }
    }

    fn check_one(
        &mut self,
        path: &str,
        found: &FileBlocks,
        number: usize,
        block: &Block,
        look: &Look,
        findings: &mut Findings,
    ) {
        let (verdict, counts) = (&look.verdict, &look.verdict.counts);
        let misplaced = !look.spread.is_satisfied();
        let totals = self.totals_of(found);
        totals.add(verdict, block.len);
        totals.misplaced += u64::from(misplaced);
        let pool = &self.node.ns.identity().block_pool_id.clone();
        let name = format!("{pool}:blk_{}_{}", block.id.0, block.gs.0);
        if verdict.corrupt {
            findings.corrupt += 1;
            findings.corrupt_bytes += block.len;
            self.out
                .print(&format!("\n{path}: CORRUPT blockpool {pool} block blk_{}\n", block.id.0));
        }
        if look.is_record_doubtful {
            self.out.print(&format!(
                "\n{path}: DOUBTFUL CRC record of {name}: replicas agree against it. Nothing of the block is deleted.\n"
            ));
        }
        if look.disagrees {
            let what = if verdict.striped { "units" } else { "replicas" };
            self.out.print(&format!(
                "\n{path}: DISAGREEING {what} of {name}: which one is wrong is not known.\n"
            ));
        }
        if verdict.lacking() > 0 {
            findings.under = true;
            if !self.options.files {
                self.out.print(&format!("\n{path}: "));
            }
            let (expected, live) = (verdict.expected, counts.live);
            let mut line = format!(
                " Under replicated {name}. Target Replicas is {expected} but found {live} live \
                 replica(s), {} decommissioned replica(s), {} decommissioning replica(s)",
                counts.decommissioned, counts.decommissioning
            );
            if self.options.maintenance {
                let (entering, away) = (counts.entering_maintenance, counts.in_maintenance);
                let _ = write!(
                    line,
                    "{entering}, entering maintenance replica(s) and {away} in maintenance \
                     replica(s)"
                );
            }
            self.out.print(&format!("{line}.\n"));
        }
        if misplaced {
            findings.any_misplaced = true;
            if !self.options.files {
                let begin = if findings.under { "" } else { "\n" };
                self.out.print(&format!("{begin}{path}: "));
            }
            let spread = &look.spread;
            self.out
                .print(&format!(" Replica placement policy is violated for {name}. {spread}\n"));
            if self.options.replicate {
                findings.misplaced.push(block.clone());
            }
        }
        if self.options.storage_policies {
            let policy = self.node.config.storage_policy(found.status.storage_policy);
            self.storage.add(policy, look.types.iter().copied());
        }
        let missing = verdict.is_missing() && !verdict.corrupt;
        let _ = write!(findings.report, "{number}. {name} len={}", block.len);
        if missing {
            findings.missing += 1;
            findings.missing_bytes += block.len;
            findings.report.push_str(" MISSING!");
        }
        if !missing || verdict.striped {
            let _ = write!(findings.report, " Live_repl={}", counts.live);
            if !look.places.is_empty() {
                let _ = write!(findings.report, " {}", look.places);
            }
        }
        findings.report.push('\n');
    }

    /// The last block of an open file.
    fn open_block(&mut self, found: &FileBlocks, number: usize, findings: &mut Findings) {
        let last = found.last.as_ref().map(|(_, last)| last);
        let Some(last) = last.filter(|last| last.state != BlockState::Complete) else { return };
        let (count, places) = {
            let cluster = self.node.cluster();
            let view = View {
                options: &self.options,
                cluster: &cluster,
                replication_min: self.node.config.min_replication,
                now: self.node.now(),
            };
            view.pipeline(last.id)
        };
        let pool = &self.node.ns.identity().block_pool_id;
        let _ = write!(
            findings.report,
            "\nUnder Construction Block:\n{number}. {pool}:blk_{}_{} len={} Expected_repl={count}",
            last.id.0, last.gs.0, last.len
        );
        if !places.is_empty() {
            let _ = write!(findings.report, " {places}");
        }
    }

    async fn settle_damage(
        &mut self,
        path: &str,
        found: &FileBlocks,
        is_open: bool,
        findings: &Findings,
    ) {
        if findings.missing == 0 && findings.corrupt == 0 {
            return;
        }
        if !self.options.files {
            for line in damage_lines(findings) {
                self.out.print(&format!("\n{path}: {line}."));
            }
        }
        self.totals_of(found).corrupt_files += 1;
        if is_open {
            tracing::info!(path, "fsck leaves a damaged file alone that is open");
            return;
        }
        if self.options.move_damaged {
            self.move_to_lost_found(path, found).await;
        }
        if self.options.delete_damaged {
            self.delete_damaged(path, found).await;
        }
    }

    fn file_end(&mut self, findings: &Findings) {
        if !self.options.files {
            return;
        }
        for line in damage_lines(findings) {
            self.out.print(&format!(" {line}\n"));
        }
        let damaged = findings.missing > 0 || findings.corrupt > 0;
        if !damaged && !findings.under && !findings.any_misplaced {
            self.out.print(" OK\n");
        }
        if self.options.blocks {
            self.out.print(&findings.report);
            self.out.print("\n");
        }
    }

    /// Source: Hadoop 3.5.0 `BlockManager#processMisReplicatedBlocks`.
    fn queue_misplaced(&mut self, found: &FileBlocks, findings: &Findings) {
        let mut queued = 0;
        for batch in findings.misplaced.chunks(BATCH) {
            queued += self.node.with_cluster(|cluster, lookup| {
                if !cluster.safe_mode().is_queueing() {
                    return 0;
                }
                batch.iter().for_each(|block| cluster.block_changed(lookup, block.id));
                batch.len() as u64
            });
        }
        self.totals_of(found).queued += queued;
    }
}

/// `MISSING n blocks of total size s B`, and the same for corrupt ones.
fn damage_lines(findings: &Findings) -> impl Iterator<Item = String> {
    let missing = ("MISSING", findings.missing, findings.missing_bytes);
    let corrupt = ("CORRUPT", findings.corrupt, findings.corrupt_bytes);
    [missing, corrupt]
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(what, count, bytes)| format!("{what} {count} blocks of total size {bytes} B"))
}
