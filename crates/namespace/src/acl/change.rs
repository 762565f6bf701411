//! Changes of access control lists: what a client asks for and a list make another list, or none.
//!
//! Source: Hadoop 3.5.0 `AclTransformation`.

use super::entry::{AclEntry, AclKind, AclScope, access, defaults};
use crate::error::{NamespaceError, Result};
use std::cmp::Ordering;

/// Most entries of each scope.
const ENTRIES_MAX: usize = 32;

/// The kinds that every list has, without names.
const REQUIRED: [AclKind; 3] = [AclKind::User, AclKind::Group, AclKind::Other];

const SCOPES: [AclScope; 2] = [AclScope::Access, AclScope::Default];

/// What a client asks for, in order and of a bearable length.
struct Spec(Vec<AclEntry>);

impl Spec {
    fn new(entries: &[AclEntry]) -> Result<Spec> {
        let mut entries = entries.to_vec();
        entries.sort_by(AclEntry::order);
        check_count(&entries)?;
        Ok(Spec(entries))
    }

    fn find(&self, like: &AclEntry) -> Option<&AclEntry> {
        find(&self.0, like)
    }
}

/// A binary search; of several equal entries the one that Java's finds.
fn find<'a>(entries: &'a [AclEntry], like: &AclEntry) -> Option<&'a AclEntry> {
    let (mut low, mut high) = (0, entries.len());
    while low < high {
        // Java's upper end is inclusive.
        let middle = (low + high - 1) / 2;
        match entries[middle].order(like) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Some(&entries[middle]),
        }
    }
    None
}

/// A list in the making; masks stand apart, since they follow from the rest.
#[derive(Default)]
struct Builder {
    entries: Vec<AclEntry>,
    masks: [Option<AclEntry>; 2],
    /// Scopes whose mask the client names.
    mask_named: [bool; 2],
    /// Scopes that the client names.
    scope_named: [bool; 2],
}

impl Builder {
    fn name(&mut self, entry: &AclEntry) {
        self.scope_named[entry.scope as usize] = true;
        self.mask_named[entry.scope as usize] |= entry.kind == AclKind::Mask;
    }

    fn add(&mut self, entry: &AclEntry) {
        if entry.kind == AclKind::Mask {
            self.masks[entry.scope as usize] = Some(entry.clone());
        } else {
            self.entries.push(entry.clone());
        }
    }

    fn finish(mut self) -> Result<Vec<AclEntry>> {
        self.entries.sort_by(AclEntry::order);
        self.copy_to_defaults();
        self.add_masks()?;
        validated(self.entries)
    }

    /// A default list takes what it lacks of owner, group and other from the access list.
    fn copy_to_defaults(&mut self) {
        let defaults = defaults(&self.entries);
        if defaults.is_empty() {
            return;
        }
        let mut copied = Vec::new();
        for kind in REQUIRED {
            let like = AclEntry::unnamed(AclScope::Default, kind, 0);
            let source = AclEntry::unnamed(AclScope::Access, kind, 0);
            if find(defaults, &like).is_none()
                && let Some(source) = find(access(&self.entries), &source)
            {
                copied.push(AclEntry { permission: source.permission, ..like });
            }
        }
        self.entries.extend(copied);
    }

    /// Each scope with named entries gets a mask: the one that was given, or the union of what it masks.
    fn add_masks(&mut self) -> Result<()> {
        for scope in SCOPES {
            let of_scope = || self.entries.iter().filter(move |entry| entry.scope == scope);
            if of_scope().next().is_none() {
                continue;
            }
            let is_needed = of_scope().any(|entry| entry.name.is_some());
            let masked = of_scope().filter(|e| e.kind == AclKind::Group || e.name.is_some());
            let union = masked.fold(0, |union, entry| union | entry.permission);
            let index = scope as usize;
            let given = self.masks[index].take();
            let mask = match given {
                None if is_needed && self.mask_named[index] => {
                    return Err(NamespaceError::Acl(
                        "Invalid ACL: mask is required and cannot be deleted.".to_string(),
                    ));
                }
                Some(mask) if !self.scope_named[index] || self.mask_named[index] => mask,
                None if !is_needed => continue,
                _ => AclEntry::unnamed(scope, AclKind::Mask, union),
            };
            self.entries.push(mask);
        }
        Ok(())
    }
}

fn check_count(entries: &[AclEntry]) -> Result<()> {
    for (what, part) in [("access", access(entries)), ("default", defaults(entries))] {
        if part.len() > ENTRIES_MAX {
            return Err(NamespaceError::Acl(format!(
                "Invalid ACL: ACL has {} {what} entries, which exceeds maximum of {ENTRIES_MAX}.",
                part.len()
            )));
        }
    }
    Ok(())
}

fn validated(mut entries: Vec<AclEntry>) -> Result<Vec<AclEntry>> {
    let invalid = |text: String| Err(NamespaceError::Acl(text));
    entries.sort_by(AclEntry::order);
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 && entries[index - 1].order(entry) == Ordering::Equal {
            return invalid(
                "Invalid ACL: multiple entries with same scope, type and name.".to_string(),
            );
        }
        if entry.name.is_some() && matches!(entry.kind, AclKind::Mask | AclKind::Other) {
            return invalid(format!("Invalid ACL: this entry type must not have a name: {entry}."));
        }
    }
    check_count(&entries)?;
    for kind in REQUIRED {
        let is_missing = |scope| find(&entries, &AclEntry::unnamed(scope, kind, 0)).is_none();
        if is_missing(AclScope::Access) {
            return invalid(
                "Invalid ACL: the user, group and other entries are required.".to_string(),
            );
        }
        if !defaults(&entries).is_empty() && is_missing(AclScope::Default) {
            return invalid(
                "Invalid default ACL: the user, group and other entries are required.".to_string(),
            );
        }
    }
    Ok(entries)
}

/// `existing` with the entries of `spec` added or in the place of their like.
pub(crate) fn merged(existing: &[AclEntry], spec: &[AclEntry]) -> Result<Vec<AclEntry>> {
    let spec = Spec::new(spec)?;
    let mut builder = Builder::default();
    let mut found = Vec::new();
    for entry in existing {
        if let Some(new) = spec.find(entry) {
            builder.name(new);
            builder.add(new);
            found.push(new.clone());
        } else {
            builder.add(entry);
        }
    }
    for new in &spec.0 {
        if find(&found, new).is_none() {
            builder.name(new);
            builder.add(new);
        }
    }
    builder.finish()
}

/// `existing` without the entries that `spec` names, whatever its permissions.
pub(crate) fn without(existing: &[AclEntry], spec: &[AclEntry]) -> Result<Vec<AclEntry>> {
    let spec = Spec::new(spec)?;
    let mut builder = Builder::default();
    for entry in existing {
        if spec.find(entry).is_some() {
            builder.name(entry);
        } else {
            builder.add(entry);
        }
    }
    builder.finish()
}

/// `existing` without its default list.
pub(crate) fn without_defaults(existing: &[AclEntry]) -> Result<Vec<AclEntry>> {
    validated(access(existing).to_vec())
}

/// `spec`; a scope that it does not name stays as it is in `existing`.
pub(crate) fn replaced(existing: &[AclEntry], spec: &[AclEntry]) -> Result<Vec<AclEntry>> {
    let spec = Spec::new(spec)?;
    let mut builder = Builder::default();
    for entry in &spec.0 {
        builder.name(entry);
        builder.add(entry);
    }
    for entry in existing {
        if !builder.scope_named[entry.scope as usize] {
            builder.add(entry);
        }
    }
    builder.finish()
}
