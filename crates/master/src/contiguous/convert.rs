//! Conversion of files between copies and contiguous groups, and what it comes to.
//!
//! What is done to a file is one command; who walks over a tree gives it some files at a time, and begins again where it
//! likes: what is done already stays so. Grouping and copying follow by themselves.

use crate::complete::unexpected;
use crate::contiguous::choose::Rules;
use crate::op::{Op, OpError, Submission};
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::swap_blocks::SwapBlocks;
use cairn_namespace::query::{self, FileLayout};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Caller, Conversion, FileRedundancy, InodeId, Outcome, Result, inode};
use cairn_stripe::{Policy, PolicyId};
use std::cmp::Reverse;

/// Blocks of the files of one command, unless one file alone has more.
const BLOCKS_MAX: u64 = 10_000;

/// Has files converted, as `policy` says. Answers for each file in their order.
///
/// Rests on nothing that the command does not compare itself.
pub async fn convert(
    op: &impl Op,
    caller: &Caller,
    files: &[InodeId],
    policy: &str,
) -> std::result::Result<Vec<Conversion>, OpError> {
    let mut converted = Vec::with_capacity(files.len());
    for files in op.look(|look| bounded(look.store, files))? {
        let command = Convert { files, policy: policy.to_string() };
        match op.submit(Submission::of(caller.clone(), None, command)).await? {
            Outcome::Converted(some) => converted.extend(some),
            other => return Err(unexpected(&other)),
        }
    }
    Ok(converted)
}

/// Gives a striped file the blocks of a copy of it, if it is as it was when it was copied.
///
/// Rests on nothing that the command does not compare itself.
pub async fn swap_blocks(
    op: &impl Op,
    caller: &Caller,
    swap: SwapBlocks,
) -> std::result::Result<Conversion, OpError> {
    match op.submit(Submission::of(caller.clone(), None, swap)).await? {
        Outcome::Converted(mut one) if one.len() == 1 => Ok(one.remove(0)),
        other => Err(unexpected(&other)),
    }
}

/// Files in parts that one command each can take.
fn bounded(store: &dyn StoreRead, files: &[InodeId]) -> Result<Vec<Vec<InodeId>>> {
    let (mut parts, mut blocks) = (vec![Vec::new()], 0_u64);
    for id in files {
        let inode = inode::get(store, *id)?;
        let more = 1 + inode.and_then(|inode| Some(inode.file()?.block_count)).unwrap_or(0);
        if blocks.saturating_add(more) > BLOCKS_MAX && blocks > 0 {
            parts.push(Vec::new());
            blocks = 0;
        }
        blocks = blocks.saturating_add(more);
        if let Some(part) = parts.last_mut() {
            part.push(*id);
        }
    }
    Ok(parts)
}

/// How some files are kept, and how they would be if they were converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files that are not striped.
    pub files: u64,
    /// Those of them that are to be kept as is wanted.
    pub as_wanted: u64,
    /// Files that are striped, which are converted by copies.
    pub striped: u64,
    /// Bytes of these.
    pub striped_bytes: u64,
    /// Bytes of those that are not striped.
    pub bytes: u64,
    /// What these take on disk, as quotas count it.
    pub space: u64,
    /// Bytes in groups of the policy that is wanted.
    pub grouped: u64,
    /// Bytes in groups that are, or would be, dissolved.
    pub leaving: u64,
    /// Bytes in no group that would be in one, as far as that does not depend on where replicas are.
    pub to_group: u64,
    /// What all of it would take on disk then.
    pub space_then: u64,
}

/// Looks at some files, those of one directory together; `target` is the policy of the groups in which they are to be,
/// if in any.
pub fn survey(
    store: &dyn StoreRead,
    files: &[InodeId],
    target: Option<&Policy>,
    rules: &Rules,
) -> Result<Survey> {
    let mut found = Survey::default();
    let mut layouts = Vec::new();
    for id in files {
        layouts.extend(query::file_layout(store, *id)?);
    }
    layouts.sort_by_key(|layout| layout.parent);
    for directory in layouts.chunk_by(|one, next| one.parent == next.parent) {
        found.add(directory, target, rules);
    }
    Ok(found)
}

impl Survey {
    /// Adds the files of a directory.
    fn add(&mut self, files: &[FileLayout], target: Option<&Policy>, rules: &Rules) {
        let mut left = Vec::new();
        for file in files {
            let Some(copies) = file.redundancy.copies().map(u64::from) else {
                self.striped += 1;
                self.striped_bytes = self.striped_bytes.saturating_add(file.len);
                continue;
            };
            let wanted = match target {
                Some(policy) => FileRedundancy::Contiguous {
                    copies: file.redundancy.copies().unwrap_or(0),
                    policy: policy.id,
                },
                None => FileRedundancy::Replicated(file.redundancy.copies().unwrap_or(0)),
            };
            let in_groups_of = |id: PolicyId| file.grouped.get(&id).copied().unwrap_or(0);
            let grouped = target.map_or(0, |policy| in_groups_of(policy.id));
            let in_groups: u64 = file.grouped.values().sum();
            let parity = |policy: &Policy| {
                let (k, m) = (u64::from(policy.schema.k), u64::from(policy.schema.m));
                grouped.saturating_mul(m) / k.max(1)
            };
            let then = file.len.saturating_sub(grouped).saturating_mul(copies);
            let then = then.saturating_add(grouped).saturating_add(target.map_or(0, parity));
            self.files += 1;
            self.as_wanted += u64::from(file.redundancy == wanted);
            for (sum, more) in [
                (&mut self.bytes, file.len),
                (&mut self.space, file.space),
                (&mut self.grouped, grouped),
                (&mut self.leaving, in_groups - grouped + file.leaving),
                (&mut self.space_then, then),
            ] {
                *sum = sum.saturating_add(more);
            }
            if let Some(policy) = target {
                let k = policy.schema.data_units().max(1);
                let whole = file.groupable.chunks_exact(k);
                left.extend(whole.remainder().iter().map(|len| (*len, copies)));
                for lens in whole {
                    let members: Vec<_> = lens.iter().map(|len| (*len, copies)).collect();
                    if !self.add_group(&members, policy, rules) {
                        left.extend(members);
                    }
                }
            }
        }
        if let Some(policy) = target {
            self.add_left(left, policy, rules);
        }
    }

    /// Adds what the files of a directory leave over, as groups of it are chosen.
    fn add_left(&mut self, mut left: Vec<(u64, u64)>, policy: &Policy, rules: &Rules) {
        let shape = (policy.schema.data_units().max(1), policy.schema.parity_units());
        left.sort_by_key(|(len, _)| Reverse(*len));
        let mut left = &left[..];
        while let Some(first) = rules.first_that_pays(left, |(len, _)| *len, shape) {
            let (members, others) = left[first..].split_at(shape.0.min(left.len() - first));
            self.add_group(members, policy, rules);
            left = others;
        }
    }

    /// Adds a group of blocks with so many bytes and copies, if it pays.
    fn add_group(&mut self, members: &[(u64, u64)], policy: &Policy, rules: &Rules) -> bool {
        let lens: Vec<u64> = members.iter().map(|(len, _)| *len).collect();
        let pays = rules.pays(&lens, policy.schema.parity_units());
        if pays {
            let (k, m) = (u64::from(policy.schema.k), u64::from(policy.schema.m));
            for (len, copies) in members {
                let cost = len.saturating_add(len.saturating_mul(m) / k.max(1));
                self.to_group = self.to_group.saturating_add(*len);
                self.space_then = self.space_then.saturating_sub(len.saturating_mul(*copies));
                self.space_then = self.space_then.saturating_add(cost);
            }
        }
        pays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { pays: 0.6, proposals_max: 1 };

    fn contiguous() -> Policy {
        let name = "RS-3-2-contiguous";
        Policy::built_in().into_iter().find(|policy| policy.name == name).unwrap()
    }

    fn file(redundancy: FileRedundancy, groupable: &[u64]) -> FileLayout {
        let len = groupable.iter().sum();
        FileLayout {
            redundancy,
            parent: InodeId(5),
            len,
            space: redundancy.copies().map_or(len, u64::from) * len,
            grouped: Default::default(),
            packed: 0,
            leaving: 0,
            groupable: groupable.to_vec(),
        }
    }

    #[test]
    fn what_is_left_of_files_goes_together_if_that_pays() {
        let copies = FileRedundancy::Replicated(3);
        let policy = contiguous();
        let mut survey = Survey::default();
        let files = [file(copies, &[30, 30, 30, 30]), file(copies, &[30]), file(copies, &[3, 30])];
        survey.add(&files, Some(&policy), &RULES);
        // Three of the first; what is left of each, but for the short one.
        assert_eq!((survey.files, survey.as_wanted, survey.bytes), (3, 0, 183));
        assert_eq!(survey.to_group, 180);
        assert_eq!((survey.space, survey.space_then), (549, 300 + 3 * 3));
        let mut survey = Survey::default();
        survey.add(&[file(copies, &[30, 30]), file(copies, &[30])], Some(&policy), &RULES);
        assert_eq!((survey.to_group, survey.space_then), (90, 150));
    }

    #[test]
    fn what_is_in_groups_already_counts_as_it_is() {
        let policy = contiguous();
        let redundancy = FileRedundancy::Contiguous { copies: 3, policy: policy.id };
        let grouped = FileLayout {
            len: 60,
            space: 50 + 90,
            grouped: [(policy.id, 30)].into(),
            ..file(redundancy, &[30])
        };
        let mut survey = Survey::default();
        survey.add(std::slice::from_ref(&grouped), Some(&policy), &RULES);
        let found = (survey.as_wanted, survey.grouped, survey.leaving, survey.to_group);
        assert_eq!(found, (1, 30, 0, 0), "one block does not pay");
        assert_eq!(survey.space_then, 140);
        let mut survey = Survey::default();
        survey.add(&[grouped], None, &RULES);
        assert_eq!((survey.as_wanted, survey.grouped, survey.leaving), (0, 0, 30));
        assert_eq!(survey.space_then, 180);
        let mut survey = Survey::default();
        let striped = FileLayout { len: 60, ..file(FileRedundancy::Striped(PolicyId(1)), &[]) };
        survey.add(&[striped], Some(&policy), &RULES);
        assert_eq!(survey, Survey { striped: 1, striped_bytes: 60, ..Survey::default() });
    }
}
