//! What Hadoop's NameNode has done since the image: segments of its edit log, one behind the other.
//!
//! Source: Hadoop 3.5.0 `FileJournalManager`, `FSImage#loadEdits`.

use super::applied::Applier;
use super::edits::{names, part_numbers};
use super::error::ImportError;
use super::out::Out;
use cairn_fsimage::edits::Segment;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file of the log, by its name.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    first: u64,
    /// None if it was still written.
    last: Option<u64>,
}

/// What was applied.
#[derive(Debug)]
pub(super) struct Applied {
    /// The last transaction.
    pub last: u64,
    /// The file that ends within an operation, if one does.
    pub torn: Option<PathBuf>,
    /// Whether there was anything of delegation tokens.
    pub has_tokens: bool,
}

/// The files of a folder that go beyond transaction `after`, in their order.
fn parts(folder: &Path, after: u64) -> Result<Vec<Part>, ImportError> {
    let current = folder.join("current");
    let folder = if current.is_dir() { current } else { folder.to_owned() };
    let mut found = Vec::new();
    for name in names(&folder)? {
        if let Some((first, last)) = part_numbers(&name)
            && last.is_none_or(|last| last > after)
        {
            found.push(Part { path: folder.join(name), first, last });
        }
    }
    // Of two that begin alike, the one that was ended comes first.
    found.sort_by_key(|part| (part.first, part.last.is_none()));
    Ok(found)
}

/// Applies all that the folder has behind transaction `after`.
pub(super) fn apply(folder: &Path, after: u64, out: &mut Out<'_>) -> Result<Applied, ImportError> {
    let mut applier = Applier::default();
    let (mut last, mut torn) = (after, None);
    for part in parts(folder, after)? {
        if part.last.is_some_and(|of| of <= last) {
            continue;
        }
        // The part whose writer died is the end of the log.
        if torn.is_some() {
            return Err(ImportError::Gap { path: part.path, wanted: last + 1, found: part.first });
        }
        let (reached, is_torn) = apply_part(&part, last, out, &mut applier)?;
        last = reached;
        torn = is_torn.then_some(part.path);
    }
    applier.end(out)?;
    Ok(Applied { last, torn, has_tokens: applier.has_tokens })
}

/// Applies a file from transaction `before + 1` on. Returns its last transaction, and whether it ends within an operation.
fn apply_part(
    part: &Part,
    before: u64,
    out: &mut Out<'_>,
    applier: &mut Applier,
) -> Result<(u64, bool), ImportError> {
    let path = &part.path;
    let io = |source| ImportError::Io { path: path.clone(), source };
    let failed = |source| ImportError::Edits { path: path.clone(), source };
    let gap = |wanted, found| ImportError::Gap { path: path.clone(), wanted, found };
    let Some(mut segment) = Segment::open(File::open(path).map_err(io)?).map_err(failed)? else {
        return match part.last {
            None => Ok((before, false)),
            Some(_) => Err(ImportError::Short { path: path.clone(), last: before }),
        };
    };
    if part.first > before + 1 {
        return Err(gap(before + 1, part.first));
    }
    let (mut last, mut expected) = (before, part.first);
    loop {
        if part.last == Some(expected.saturating_sub(1)) {
            // What stands behind the end of a segment that was ended after its writer died is not read.
            return Ok((last, false));
        }
        let Some(transaction) = segment.transaction().map_err(failed)? else { break };
        if transaction.id != expected {
            return Err(gap(expected, transaction.id));
        }
        expected += 1;
        if transaction.id <= before {
            continue;
        }
        applier.apply(out, &transaction.operation).map_err(|what| ImportError::Operation {
            path: path.clone(),
            transaction: transaction.id,
            what,
        })?;
        last = transaction.id;
    }
    match part.last {
        Some(_) => Err(ImportError::Short { path: path.clone(), last }),
        None => Ok((last, segment.is_torn())),
    }
}
