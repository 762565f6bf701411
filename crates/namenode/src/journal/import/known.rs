//! What records of an image refer to: names, policies, and which directory each inode is in.

use cairn_fsimage::{self as fsimage, Child, EcPolicy, Image, ImageError, Names, sections};
use cairn_stripe::{CodecName, Policy, PolicyId, PolicyLayout, PolicyState, Schema};
use std::collections::HashMap;
use std::fs;

/// What records refer to.
pub(super) struct Known {
    pub names: Names,
    pub policies: Vec<(Policy, PolicyState)>,
    /// Each inode with its directory, by the inode.
    pub parents: Vec<(u64, u64)>,
    /// Children of each directory.
    pub children: HashMap<u64, u64>,
}

/// As the image has it.
pub(super) struct Described {
    pub names: Names,
    pub policies: Vec<EcPolicy>,
    pub parents: Vec<(u64, u64)>,
    pub children: HashMap<u64, u64>,
}

impl Described {
    pub fn read(image: &mut Image<fs::File>) -> Result<Described, ImageError> {
        let names = Names::read(image.required(sections::STRING_TABLE)?)?;
        let policies = EcPolicy::read(image.section(sections::ERASURE_CODING)?)?;
        let (mut parents, mut children) = (Vec::new(), HashMap::new());
        if let Some(mut section) = image.section(sections::INODE_DIR)? {
            while let Some(entry) = section.children()? {
                let mut count = 0;
                entry.each(|child| {
                    count += 1;
                    // Where a reference leads to is found with the snapshots.
                    if let Child::Inode(id) = child {
                        parents.push((id, entry.parent));
                    }
                })?;
                *children.entry(entry.parent).or_default() += count;
            }
        }
        parents.sort_unstable();
        Ok(Described { names, policies, parents, children })
    }
}

impl Known {
    /// Lets a directory be one that an inode is, or was, in; [`Known::sort_parents`] must follow.
    pub fn add_parent(&mut self, id: u64, directory: u64) {
        self.parents.push((id, directory));
    }

    /// Puts directories in the order in which they are looked for.
    pub fn sort_parents(&mut self) {
        self.parents.sort_unstable();
    }

    pub fn parent(&self, id: u64) -> Option<u64> {
        let at = self.parents.partition_point(|(child, _)| *child < id);
        self.parents.get(at).filter(|(child, _)| *child == id).map(|(_, parent)| *parent)
    }

    pub fn policy(&self, id: u32) -> Option<PolicyId> {
        let known = self.policies.iter().map(|(policy, _)| policy.id);
        known.into_iter().find(|of| u32::from(of.0) == id)
    }
}

/// A policy of an image with its state; none if its code is not known, or it is not what is called so.
pub(super) fn policy(of: &EcPolicy) -> Option<(Policy, PolicyState)> {
    let state = match of.state {
        fsimage::PolicyState::Disabled => PolicyState::Disabled,
        fsimage::PolicyState::Enabled => PolicyState::Enabled,
        fsimage::PolicyState::Removed => PolicyState::Removed,
    };
    let id = PolicyId(u8::try_from(of.id).ok()?);
    if id < PolicyId::FIRST_USER_DEFINED {
        // Hadoop's own ones are known by their numbers; what else has such a number went from here to Hadoop.
        let own = Policy::built_in().into_iter().find(|own| own.id == id)?;
        let is_own = id.0 <= 5 || own.layout == PolicyLayout::Striped && own.name == of.name;
        return is_own.then_some((own, state));
    }
    let codec = CodecName::parse(&of.codec)?;
    let (k, m) = (u8::try_from(of.data_units).ok()?, u8::try_from(of.parity_units).ok()?);
    let policy = Policy::new(id, Schema { codec, k, m }, of.cell_len).ok()?;
    Some((Policy { name: of.name.clone(), ..policy }, state))
}
