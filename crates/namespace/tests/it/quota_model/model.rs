//! A tree with whole copies of it as snapshots, which counts what is in it.

use cairn_stripe::StorageType;
use std::collections::{BTreeMap, BTreeSet};

pub type Id = u32;

pub const TOP: Id = 0;

/// How a file's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    Copies(u64),
    Stripes {
        data: u64,
        parity: u64,
    },
    /// Copies of what is in no group.
    Groups {
        copies: u64,
        data: u64,
        parity: u64,
    },
}

impl Layout {
    pub fn named(policy: &str) -> Layout {
        match policy {
            "RS-3-2-1024k" => Layout::Stripes { data: 3, parity: 2 },
            "XOR-2-1-1024k" => Layout::Stripes { data: 2, parity: 1 },
            "RS-3-2-contiguous" => Layout::Groups { copies: 3, data: 3, parity: 2 },
            _ => Layout::Copies(3),
        }
    }

    /// The same with other copies.
    pub fn with_copies(self, wanted: u64) -> Layout {
        match self {
            Layout::Copies(_) => Layout::Copies(wanted),
            Layout::Groups { data, parity, .. } => Layout::Groups { copies: wanted, data, parity },
            stripes => stripes,
        }
    }

    pub fn copies(self) -> u64 {
        match self {
            Layout::Copies(copies) | Layout::Groups { copies, .. } => copies,
            Layout::Stripes { .. } => 0,
        }
    }

    /// Bytes on disk of a block with so many bytes.
    pub fn raw(self, len: u64, is_grouped: bool) -> u64 {
        const CELL: u64 = 1 << 20;
        match self {
            Layout::Groups { data, parity, .. } if is_grouped => len + len * parity / data,
            Layout::Copies(copies) | Layout::Groups { copies, .. } => copies * len,
            // A parity unit is as long as the first data unit.
            Layout::Stripes { data, parity } => {
                let stripes = len / (data * CELL);
                let rest = len - stripes * data * CELL;
                len + parity * (stripes * CELL + rest.min(CELL))
            }
        }
    }

    /// Bytes of a block by type under a storage policy.
    pub fn on_types(
        self,
        len: u64,
        is_grouped: bool,
        policy: Option<&str>,
    ) -> Vec<(StorageType, u64)> {
        use StorageType::{Archive, Disk, Ssd};
        let (first, others) = match policy {
            Some("HOT") => (Disk, Disk),
            Some("COLD") => (Archive, Archive),
            Some("WARM") => (Disk, Archive),
            Some("ONE_SSD") => (Ssd, Disk),
            Some("ALL_SSD") => (Ssd, Ssd),
            _ => return Vec::new(),
        };
        match self {
            Layout::Groups { .. } if is_grouped => {
                vec![(first, len), (others, self.raw(len, true) - len)]
            }
            Layout::Copies(copies) | Layout::Groups { copies, .. } => {
                vec![(first, len), (others, (copies - 1) * len)]
            }
            // Units of a group are all on one type, or heed no policy.
            Layout::Stripes { .. } if first == others => vec![(first, self.raw(len, false))],
            Layout::Stripes { .. } => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub parent: Id,
    pub name: String,
    pub storage: Option<&'static str>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Directory { layout: Option<Layout>, has_quota: bool },
    File { layout: Layout, blocks: Vec<i64>, is_open: bool },
}

/// A whole copy of a tree. An open file in it goes on as the file does, until something else than writing happens
/// to that.
pub struct Shot {
    pub top: &'static str,
    pub name: String,
    pub nodes: BTreeMap<Id, Node>,
}

/// What counts against a quota.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Count {
    pub names: u64,
    pub space: u64,
    pub types: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
pub struct Model {
    pub nodes: BTreeMap<Id, Node>,
    /// In the order of taking.
    pub shots: Vec<Shot>,
    /// Bytes of blocks.
    pub lens: BTreeMap<i64, u64>,
    /// Blocks in contiguous groups.
    pub grouped: BTreeSet<i64>,
    pub next: Id,
}

impl Model {
    pub fn add(&mut self, parent: Id, name: &str, kind: Kind) -> Id {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, Node { parent, name: name.into(), storage: None, kind });
        id
    }

    pub fn child(&self, parent: Id, name: &str) -> Option<Id> {
        let mut all = self.nodes.iter();
        let is_it = |id: &Id, node: &Node| *id != TOP && node.parent == parent && node.name == name;
        all.find(|(id, node)| is_it(id, node)).map(|(id, _)| *id)
    }

    pub fn find(&self, path: &str) -> Option<Id> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(TOP, |at, name| self.child(at, name))
    }

    pub fn path(&self, id: Id) -> String {
        match id {
            TOP => "/".into(),
            id => format!("{}/{}", self.path(self.nodes[&id].parent), self.nodes[&id].name)
                .replace("//", "/"),
        }
    }

    pub fn directory(&mut self, path: &str) -> Id {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let mut at = TOP;
        for name in names {
            at = match self.child(at, name) {
                Some(child) => child,
                None => self.add(at, name, Kind::Directory { layout: None, has_quota: false }),
            };
        }
        at
    }

    pub fn split(path: &str) -> (&str, &str) {
        path.rsplit_once('/').unwrap()
    }

    pub fn is_below(&self, id: Id, top: Id) -> bool {
        id == top || id != TOP && self.is_below(self.nodes[&id].parent, top)
    }

    /// What files made in a directory get.
    pub fn layout_in(&self, at: Id) -> Layout {
        match &self.nodes[&at].kind {
            Kind::Directory { layout: Some(layout), .. } => *layout,
            _ if at == TOP => Layout::Copies(3),
            _ => self.layout_in(self.nodes[&at].parent),
        }
    }

    pub fn file(&mut self, id: Id) -> (&mut Layout, &mut Vec<i64>, &mut bool) {
        match &mut self.nodes.get_mut(&id).unwrap().kind {
            Kind::File { layout, blocks, is_open } => (layout, blocks, is_open),
            Kind::Directory { .. } => panic!("a directory"),
        }
    }

    /// Something else than writing is about to happen to a file: snapshots have it as it is now.
    pub fn freeze(&mut self, id: Id) {
        let now = self.nodes[&id].clone();
        for shot in &mut self.shots {
            if let Some(was) = shot.nodes.get_mut(&id)
                && let Kind::File { is_open: true, .. } = was.kind
            {
                *was = now.clone();
                if let Kind::File { is_open, .. } = &mut was.kind {
                    *is_open = false;
                }
            }
        }
    }

    pub fn remove(&mut self, top: Id) {
        let all: Vec<Id> = self.nodes.keys().copied().collect();
        let gone: Vec<Id> = all.into_iter().filter(|id| self.is_below(*id, top)).collect();
        for id in gone {
            self.freeze(id);
            self.nodes.remove(&id);
        }
    }

    pub fn carry(&mut self, src: Id, dst: &str) {
        self.freeze(src);
        let (parent, name) = Model::split(dst);
        let parent = self.find(parent).unwrap();
        let node = self.nodes.get_mut(&src).unwrap();
        (node.parent, node.name) = (parent, name.to_string());
    }

    /// An inode as it is now or, if it is gone, as the newest snapshot has it.
    pub fn state(&self, id: Id) -> &Node {
        let kept = || self.shots.iter().rev().find_map(|shot| shot.nodes.get(&id));
        self.nodes.get(&id).or_else(kept).unwrap()
    }

    /// An inode and what is above it: of what is gone, where the newest snapshot has it.
    pub fn way(&self, id: Id) -> Vec<Id> {
        let mut way = vec![id];
        while way[way.len() - 1] != TOP {
            way.push(self.state(way[way.len() - 1]).parent);
        }
        way
    }

    /// The file as it is, and as snapshots have it where that is something else.
    pub fn forms(&self, id: Id) -> Vec<&Node> {
        let goes_on = |node: &&Node| matches!(node.kind, Kind::File { is_open: true, .. });
        let kept = self.shots.iter().filter_map(|shot| shot.nodes.get(&id));
        let kept = kept.filter(|node| !goes_on(node));
        self.nodes.get(&id).into_iter().chain(kept).collect()
    }

    /// What counts in a directory that is there.
    pub fn count(&self, of: Id) -> Count {
        let held = self.shots.iter().flat_map(|shot| shot.nodes.keys());
        let all: BTreeSet<Id> = self.nodes.keys().chain(held).copied().collect();
        let mut sum = Count::default();
        for id in all {
            let way = self.way(id);
            if !way.contains(&of) {
                continue;
            }
            sum.names += 1;
            let Kind::File { layout, .. } = self.state(id).kind else { continue };
            let storage = way.iter().find_map(|id| self.state(*id).storage);
            let (mut copies, mut blocks) = (0, BTreeSet::new());
            for form in self.forms(id) {
                let Kind::File { layout, blocks: has, .. } = &form.kind else { continue };
                copies = copies.max(layout.copies());
                blocks.extend(has);
            }
            let counted = layout.with_copies(copies);
            for block in &blocks {
                let (len, is_grouped) = (self.lens[block], self.grouped.contains(block));
                sum.space += counted.raw(len, is_grouped);
                for (kind, bytes) in counted.on_types(len, is_grouped, storage) {
                    *sum.types.entry(kind.name()).or_default() += bytes;
                }
            }
        }
        sum.types.retain(|_, bytes| *bytes > 0);
        sum
    }
}
