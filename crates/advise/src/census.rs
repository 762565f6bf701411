//! All files, by rows: one for each directory down to some depth, which has what is below it and in no row of its own.

use crate::layout::{Cost, Layout};
use crate::packing::{Leftovers, Shape};
use crate::tally::Tally;
use cairn_master::contiguous::choose::Rules;
use cairn_stripe::Policy;
use cairn_stripe::geometry::Geometry;
use std::collections::HashMap;

/// How a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// So many copies.
    Copies(u16),
    /// Groups of this shape.
    Striped(Geometry),
    /// Members of contiguous groups of that many data and parity units, with whole copies where they are in none yet.
    Contiguous(u8, u8),
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its bytes.
    pub len: u64,
    /// Bytes of a full block.
    pub block_len: u64,
    /// Blocks that it has.
    pub blocks: u64,
    /// How it is kept.
    pub kept: Kept,
    /// When it was written, in milliseconds since 1970.
    pub written_ms: u64,
    /// When it was read, if that is kept.
    pub read_ms: u64,
    /// Whether it is open.
    pub is_open: bool,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The directory.
    pub path: String,
    /// Directories that were too small for rows of their own, and are in this one.
    pub merged: u64,
    /// What is known of its files.
    pub tally: Tally,
}

/// What is asked of a census.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// How deep directories have rows; the root is at 0.
    pub depth: usize,
    /// Directories with fewer bytes on disk go to the row above.
    pub bytes_min: u64,
    /// When it is, in milliseconds since 1970.
    pub now_ms: u64,
    /// The part of the bytes of three copies that a contiguous group may take at most.
    pub pays: f64,
    /// Fewest bytes of a block that may be in a contiguous group.
    pub group_len_min: u64,
}

impl Asked {
    /// What Cairn's own defaults are (`cairn.ec.contiguous.pays`, `cairn.ec.contiguous.min-length`).
    pub fn new(now_ms: u64) -> Asked {
        Asked { depth: 2, bytes_min: 0, now_ms, pays: 0.6, group_len_min: 1 << 20 }
    }
}

/// Most rows: each has some five hundred bytes.
pub const ROWS_MAX: usize = 100_000;
/// The name of the row of what only snapshots have.
pub const SNAPSHOTS: &str = "(only in snapshots)";

/// The number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(u32);

/// More directories at that depth than rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {ROWS_MAX} directories are so deep; choose a smaller depth")]
pub struct TooManyRows;

/// All files.
#[derive(Debug)]
pub struct Census {
    asked: Asked,
    rules: Rules,
    layouts: Vec<Layout>,
    /// The shapes of those that stripe, with their numbers.
    striped: Vec<(usize, Geometry)>,
    /// Data and parity units of those that are contiguous, with their numbers.
    contiguous: Vec<(usize, (u64, u64))>,
    /// The row above, the name, what is known.
    rows: Vec<(Option<RowId>, String, Tally)>,
    children: HashMap<(RowId, String), RowId>,
    leftovers: Leftovers,
    /// The row of each directory.
    directories: Vec<RowId>,
}

impl Census {
    /// With a row for `root`, and one for what only snapshots have; room for so many files.
    pub fn new(asked: Asked, root: &str, files: usize) -> Census {
        let layouts = Layout::compared();
        let shapes = layouts.iter().enumerate();
        let (mut striped, mut contiguous) = (Vec::new(), Vec::new());
        for (number, layout) in shapes {
            match layout {
                Layout::Copies(_) => {}
                Layout::Striped(policy) => striped.push((number, Geometry::from(policy))),
                Layout::Contiguous(Policy { schema, .. }) => {
                    contiguous.push((number, (u64::from(schema.k), u64::from(schema.m))));
                }
            }
        }
        let tally = Tally::new(layouts.len());
        let rows =
            vec![(None, root.to_string(), tally.clone()), (None, SNAPSHOTS.to_string(), tally)];
        let rules = Rules { pays: asked.pays, proposals_max: 0 };
        let (children, directories) = (HashMap::new(), Vec::new());
        let leftovers = Leftovers::with_capacity(files);
        Census {
            asked,
            rules,
            layouts,
            striped,
            contiguous,
            rows,
            children,
            leftovers,
            directories,
        }
    }

    /// The row of the root.
    pub fn root(&self) -> RowId {
        RowId(0)
    }

    /// The row of what only snapshots have.
    pub fn snapshots(&self) -> RowId {
        RowId(1)
    }

    /// What was asked.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The layouts that are compared.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// A row below another one.
    pub fn row(&mut self, above: RowId, name: &str) -> Result<RowId, TooManyRows> {
        if let Some(found) = self.children.get(&(above, name.to_string())) {
            return Ok(*found);
        }
        let id = self.add_row(above)?;
        self.children.insert((above, name.to_string()), id);
        self.rename(id, name);
        Ok(id)
    }

    /// A row below another one, whose name comes later.
    pub(crate) fn add_row(&mut self, above: RowId) -> Result<RowId, TooManyRows> {
        if self.rows.len() >= ROWS_MAX {
            return Err(TooManyRows);
        }
        let id = RowId(self.rows.len() as u32);
        self.rows.push((Some(above), String::new(), Tally::new(self.layouts.len())));
        Ok(id)
    }

    pub(crate) fn rename(&mut self, row: RowId, name: &str) {
        self.rows[row.0 as usize].1 = name.to_string();
    }

    /// A directory whose files are in a row. Files of one directory can be in groups together.
    pub fn directory(&mut self, row: RowId) -> u32 {
        self.directories.push(row);
        self.directories.len() as u32 - 1
    }

    /// Adds a file of a directory.
    pub fn add(&mut self, directory: u32, file: &FileFacts) {
        let row = self.directories[directory as usize];
        let tally = &mut self.rows[row.0 as usize].2;
        let FileFacts { len, block_len, blocks, .. } = *file;
        tally.note(len, (file.written_ms, file.read_ms), self.asked.now_ms);
        tally.open += u64::from(file.is_open);
        tally.now += match file.kept {
            Kept::Copies(copies) => Cost::of_copies(len, blocks, u64::from(copies)),
            Kept::Striped(geometry) => Cost::of_stripes(len, block_len, &geometry),
            Kept::Contiguous(k, m) => {
                let shape = Shape {
                    k: u64::from(k.max(1)),
                    m: u64::from(m),
                    rules: &self.rules,
                    len_min: self.asked.group_len_min,
                };
                // What it shares with others is not known here; its share of full groups is.
                let own = shape.of_file(len, block_len);
                let share = len.saturating_mul(u64::from(k) + u64::from(m)) / u64::from(k.max(1));
                Cost { bytes: own.bytes.max(share), ..own }
            }
        };
        match file.kept {
            Kept::Striped(_) => tally.striped += 1,
            Kept::Copies(0 | 1) => tally.unsafe_bytes = tally.unsafe_bytes.saturating_add(len),
            _ => {}
        }
        if len == 0 {
            return;
        }
        let plain = len.div_ceil(block_len.max(1));
        for (layout, then) in self.layouts.iter().zip(&mut tally.then) {
            if let Layout::Copies(copies) = layout {
                *then += Cost::of_copies(len, plain, u64::from(*copies));
            }
        }
        for (number, geometry) in &self.striped {
            tally.then[*number] += Cost::of_stripes(len, block_len, geometry);
        }
        for (number, (k, m)) in &self.contiguous {
            let len_min = self.asked.group_len_min;
            let shape = Shape { k: *k, m: *m, rules: &self.rules, len_min };
            tally.then[*number] += shape.of_file(len, block_len);
        }
        self.leftovers.add(directory, len, block_len, self.asked.group_len_min);
    }

    /// What was found: rows with files, and what is in groups that files of one directory make together.
    pub fn end(mut self) -> Found {
        let len_min = self.asked.group_len_min;
        let rules = &self.rules;
        let shapes: Vec<Shape<'_>> = self
            .contiguous
            .iter()
            .map(|(_, (k, m))| Shape { k: *k, m: *m, rules, len_min })
            .collect();
        std::mem::take(&mut self.leftovers).pack(&shapes, |directory, shape, cost| {
            let row = self.directories[directory as usize];
            self.rows[row.0 as usize].2.then[self.contiguous[shape].0] += cost;
        });
        let mut merged = vec![0u64; self.rows.len()];
        // Rows come behind those above them.
        for at in (2..self.rows.len()).rev() {
            let is_small = self.rows[at].2.now.bytes < self.asked.bytes_min;
            let Some(above) = self.rows[at].0.filter(|_| is_small) else { continue };
            let tally = std::mem::take(&mut self.rows[at].2);
            let above = above.0 as usize;
            self.rows[above].2.merge(&tally);
            merged[above] += merged[at] + u64::from(tally.files > 0);
        }
        let mut total = Tally::new(self.layouts.len());
        let mut rows = Vec::new();
        for (at, (_, _, tally)) in self.rows.iter().enumerate() {
            total.merge(tally);
            if tally.files > 0 {
                let (path, tally) = (self.path(at), tally.clone());
                rows.push(Row { path, merged: merged[at], tally });
            }
        }
        rows.sort_by(|one, other| {
            let by_size = other.tally.now.bytes.cmp(&one.tally.now.bytes);
            by_size.then_with(|| one.path.cmp(&other.path))
        });
        Found { layouts: self.layouts, rows, total }
    }

    fn path(&self, row: usize) -> String {
        let (mut names, mut at) = (Vec::new(), row);
        while let (Some(above), name, _) = &self.rows[at] {
            names.push(name.as_str());
            at = above.0 as usize;
        }
        let root = self.rows[at].1.trim_end_matches('/');
        match names.is_empty() {
            true => self.rows[at].1.clone(),
            false => {
                names.iter().rev().fold(root.to_string(), |path, name| format!("{path}/{name}"))
            }
        }
    }
}

/// What a census has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The layouts that were compared.
    pub layouts: Vec<Layout>,
    /// Rows, the largest first.
    pub rows: Vec<Row>,
    /// All of them together.
    pub total: Tally,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const DAY: u64 = 24 * 60 * 60 * 1000;

    fn file(len: u64) -> FileFacts {
        let kept = Kept::Copies(3);
        let blocks = len.div_ceil(128 * MIB);
        let (written_ms, read_ms) = (0, 50 * DAY);
        FileFacts { len, block_len: 128 * MIB, blocks, kept, written_ms, read_ms, is_open: false }
    }

    fn bytes_of(found: &Found, tally: &Tally, layout: &str) -> u64 {
        let number = found.layouts.iter().position(|of| of.name() == layout).unwrap();
        tally.then[number].bytes
    }

    #[test]
    fn rows_add_up_and_small_ones_go_to_the_row_above() {
        let asked = Asked { bytes_min: 100 * MIB, ..Asked::new(100 * DAY) };
        let mut census = Census::new(asked, "/", 10);
        let user = census.row(census.root(), "user").unwrap();
        let rows: Vec<RowId> = ["a", "b", "c"].map(|name| census.row(user, name).unwrap()).into();
        assert_eq!(census.row(user, "b"), Ok(rows[1]));
        for (row, len) in rows.iter().zip([MIB, 768 * MIB, 10]) {
            let directory = census.directory(*row);
            census.add(directory, &file(len));
        }
        let found = census.end();
        let paths: Vec<(&str, u64)> =
            found.rows.iter().map(|row| (row.path.as_str(), row.merged)).collect();
        // "user" itself is too small as well, with what it got from those below.
        assert_eq!(paths, [("/user/b", 0), ("/", 3)]);
        assert_eq!(found.total.files, 3);
        assert_eq!(found.total.bytes, 769 * MIB + 10);
        let b = &found.rows[0].tally;
        assert_eq!(b.now.bytes, 3 * 768 * MIB);
        assert_eq!(bytes_of(&found, b, "RS-6-3-1024k"), 1152 * MIB);
        assert_eq!(bytes_of(&found, b, "RS-6-3-contiguous"), 1152 * MIB);
        assert_eq!(bytes_of(&found, &found.total, "3x"), 3 * (769 * MIB + 10));
        // Read fifty days ago.
        assert_eq!(b.read_ago, [0, 768 * MIB, 0, 0]);
        assert_eq!(found.rows[1].tally.short, [1, 2, 2]);
    }

    #[test]
    fn what_is_striped_counts_as_it_is_kept() {
        let mut census = Census::new(Asked::new(0), "/cold", 1);
        let directory = census.directory(census.root());
        let striped = Kept::Striped(Geometry::new(6, 3, MIB));
        census.add(directory, &FileFacts { kept: striped, is_open: true, ..file(10_000) });
        census.add(directory, &FileFacts { kept: Kept::Copies(1), ..file(MIB) });
        let found = census.end();
        let row = &found.rows[0];
        assert_eq!((row.path.as_str(), row.tally.striped, row.tally.open), ("/cold", 1, 1));
        assert_eq!((row.tally.now.bytes, row.tally.unsafe_bytes), (40_000 + MIB, MIB));
    }

    #[test]
    fn there_are_only_so_many_rows() {
        let mut census = Census::new(Asked::new(0), "/", 0);
        let root = census.root();
        while census.rows.len() < ROWS_MAX {
            census.add_row(root).unwrap();
        }
        assert_eq!(census.row(root, "more"), Err(TooManyRows));
    }
}
