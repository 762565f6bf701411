//! Files and directories of an fsimage, in a few passes over its sections.
//!
//! First which directory has which children, in two passes; then all inodes, once. Of an inode eight bytes are kept for its
//! directory, and eight of a file for what it leaves over for contiguous groups; of a directory sixteen.

use crate::census::{Asked, Census, FileFacts, Kept, RowId, TooManyRows};
use crate::parents::{Counting, Filling, Parents};
use cairn_fsimage::{
    Child, EcPolicy, File, Image, ImageError, InodeKind, ROOT, Reference, Tree, sections,
};
use cairn_stripe::Policy;
use cairn_stripe::geometry::Geometry;
use std::collections::HashMap;
use std::io::{Read, Seek};

/// Why an image cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// There are too many rows.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// No namespace numbers inodes like that.
    #[error("the image has inodes whose numbers are too large, or too many of them")]
    Numbers,
    /// A striped file without a policy.
    #[error("the image has files of erasure coding policy {0}, which it does not describe")]
    Policy(u32),
}

/// Numbers that say how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes.
    pub inodes: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
}

/// Reads an image.
pub fn read<F: Read + Seek>(image: &mut Image<F>, asked: Asked) -> Result<(Census, Counts), Error> {
    let policies = policies(image)?;
    let (last, count) = {
        let tree = Tree::read(image.required(sections::INODE)?)?;
        (tree.last_id, tree.count)
    };
    // An inode has some twenty bytes at least, so that a wrong count cannot make anybody allocate much.
    let count =
        count.min(image.file_len().saturating_mul(if image.is_compressed() { 50 } else { 1 }) / 20);
    let references = Reference::read(image.section(sections::INODE_REFERENCE)?)?;
    let (parents, directories) = parents(image, &references, count, last)?;
    let files = usize::try_from(count).map_err(|_| Error::Numbers)?;
    let mut census = Census::new(asked, "/", files);
    let rows = rows(&mut census, &parents, &directories)?;
    drop(directories);
    let outside = census.snapshots();
    let detached = census.directory(outside);
    let mut counts = Counts::default();
    let mut tree = Tree::read(image.required(sections::INODE)?)?;
    while let Some(inode) = tree.inode()? {
        counts.inodes += 1;
        match inode.kind {
            InodeKind::File(file) => {
                let directory = parents.get(inode.id).unwrap_or(detached);
                census.add(directory, &facts(&file, &policies)?);
            }
            InodeKind::Directory(_) => {
                counts.directories += 1;
                if let Some(row) = rows.get(&inode.id) {
                    census.rename(*row, &String::from_utf8_lossy(inode.name));
                }
            }
            InodeKind::Symlink(_) => counts.links += 1,
        }
    }
    Ok((census, counts))
}

/// The shapes of policies by number.
fn policies<F: Read + Seek>(image: &mut Image<F>) -> Result<HashMap<u32, Geometry>, Error> {
    let own = Policy::built_in().into_iter();
    let mut found: HashMap<u32, Geometry> =
        own.map(|policy| (u32::from(policy.id.0), Geometry::from(&policy))).collect();
    for EcPolicy { id, data_units, parity_units, cell_len, .. } in
        EcPolicy::read(image.section(sections::ERASURE_CODING)?)?
    {
        // Of Hadoop's own policies it has the number only.
        if data_units > 0 && cell_len > 0 && data_units + parity_units <= 255 {
            let (k, m) = (data_units as usize, parity_units as usize);
            found.insert(id, Geometry::new(k, m, u64::from(cell_len)));
        }
    }
    Ok(found)
}

fn facts(file: &File<'_>, policies: &HashMap<u32, Geometry>) -> Result<FileFacts, Error> {
    let kept = match file.ec_policy {
        None => Kept::Copies(u16::try_from(file.replication).unwrap_or(u16::MAX)),
        Some(id) => Kept::Striped(*policies.get(&id).ok_or(Error::Policy(id))?),
    };
    Ok(FileFacts {
        len: file.len(),
        block_len: file.block_len,
        blocks: file.blocks.len() as u64,
        kept,
        written_ms: file.modified_ms,
        read_ms: file.accessed_ms,
        is_open: file.writer.is_some(),
    })
}

/// Which directory each inode is in, and the numbers of the directories.
fn parents<F: Read + Seek>(
    image: &mut Image<F>,
    references: &[Reference],
    count: u64,
    last: u64,
) -> Result<(Parents, Vec<u64>), Error> {
    let child = |child: Child| match child {
        Child::Inode(id) => Some(id),
        Child::Reference(number) => references.get(number as usize).map(|of| of.inode),
    };
    let mut counting = Counting::new(count, last.max(ROOT)).ok_or(Error::Numbers)?;
    let mut directories = Vec::new();
    each_directory(image, |parent, children| {
        directories.push(parent);
        let mut fits = true;
        children.each(|one| fits &= child(one).is_some_and(|id| counting.add(id)))?;
        Ok(fits)
    })?;
    let mut filling: Filling = counting.fill().ok_or(Error::Numbers)?;
    let mut directory = 0;
    each_directory(image, |_, children| {
        let mut fits = true;
        children.each(|one| fits &= child(one).is_some_and(|id| filling.add(id, directory)))?;
        directory += 1;
        Ok(fits)
    })?;
    Ok((filling.end(), directories))
}

fn each_directory<F: Read + Seek>(
    image: &mut Image<F>,
    mut take: impl FnMut(u64, &cairn_fsimage::DirEntry<'_>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let Some(mut section) = image.section(sections::INODE_DIR)? else { return Ok(()) };
    while let Some(entry) = section.children()? {
        if !take(entry.parent, &entry)? {
            return Err(Error::Numbers);
        }
    }
    Ok(())
}

/// Where a directory is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    /// On the way that is being gone.
    OnTheWay,
    /// So deep, in this row.
    In(u16, RowId),
}

/// Gives each directory its row, in the order of `directories`; the rows that have one, by its number.
fn rows(
    census: &mut Census,
    parents: &Parents,
    directories: &[u64],
) -> Result<HashMap<u64, RowId>, Error> {
    let (root, outside) = (census.root(), census.snapshots());
    let depth_max = u16::try_from(census.asked().depth).unwrap_or(u16::MAX - 1);
    let mut places = vec![Place::Unknown; directories.len()];
    let mut named = HashMap::new();
    let mut way = Vec::new();
    for start in 0..directories.len() {
        let mut at = start;
        // Up to what is known, then down again.
        let (mut depth, mut row) = loop {
            match places[at] {
                Place::In(depth, row) => break (depth, row),
                Place::OnTheWay => break (u16::MAX, outside),
                Place::Unknown if directories[at] == ROOT => {
                    places[at] = Place::In(0, root);
                    break (0, root);
                }
                Place::Unknown => {}
            }
            places[at] = Place::OnTheWay;
            way.push(at);
            match parents.get(directories[at]) {
                Some(parent) => at = parent as usize,
                None => break (u16::MAX, outside),
            }
        };
        while let Some(at) = way.pop() {
            depth = depth.saturating_add(1);
            if depth <= depth_max {
                row = census.add_row(row)?;
                named.insert(directories[at], row);
            }
            places[at] = Place::In(depth, row);
        }
    }
    for place in places {
        let row = match place {
            Place::In(_, row) => row,
            Place::Unknown | Place::OnTheWay => outside,
        };
        census.directory(row);
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
