//! A disk from which a power cut takes what was not synced.
//!
//! Files and names are in a real folder, where they are read, and here: as they are durable, and each change since. A cut
//! leaves any of the changes, in no order, of a write each sector by itself, of a rename within one folder both names or
//! none. What others have put into the folder by themselves is taken to be durable.

use super::{Disk, DiskFile, Folders};
use cairn_process::held::held;
use redb::{DatabaseError, StorageBackend};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;

/// Numbers that follow from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
    /// Files or folders that names are given to, or that they are taken from, together.
    Names(Vec<(OsString, Option<usize>)>),
}

/// A file or folder, whatever its names are.
#[derive(Clone, Debug, Default)]
struct Node {
    is_folder: bool,
    bytes: Vec<u8>,
    names: BTreeMap<OsString, usize>,
    later: Vec<Change>,
}

impl Node {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Write(at, new) => {
                let end = at as usize + new.len();
                self.bytes.resize(self.bytes.len().max(end), 0);
                self.bytes[at as usize..end].copy_from_slice(&new);
            }
            Change::SetLen(len) => self.bytes.resize(len as usize, 0),
            Change::Names(changes) => {
                for (name, node) in changes {
                    match node {
                        Some(node) => drop(self.names.insert(name, node)),
                        None => drop(self.names.remove(&name)),
                    }
                }
            }
        }
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.later) {
            self.apply(change);
        }
    }

    /// What is left of it if of the changes those stay that the dice choose.
    fn left(&self, dice: &mut Dice) -> Node {
        let mut left = Node { later: Vec::new(), ..self.clone() };
        // So that all, nothing and what comes first are seen as well.
        let (share, is_prefix) = ([0, 1, 5, 9, 10][dice.below(5) as usize], dice.once_in(3));
        for change in &self.later {
            if dice.below(10) >= share {
                if is_prefix {
                    break;
                }
                continue;
            }
            match change {
                Change::Write(at, bytes) if dice.once_in(5) => {
                    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                        if dice.once_in(2) {
                            let at = at + (number * SECTOR) as u64;
                            left.apply(Change::Write(at, sector.to_vec()));
                        }
                    }
                }
                change => left.apply(change.clone()),
            }
        }
        left
    }
}

/// A disk that does not what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Files are not synced whose paths have this in them.
    Files(&'static str),
}

#[derive(Debug)]
struct State {
    root: PathBuf,
    nodes: Vec<Node>,
    /// So many changes and syncs are done before the power fails.
    steps_left: Option<u64>,
    is_off: bool,
    lie: Option<Lie>,
    cuts: u64,
}

const ROOT: usize = 0;

impl State {
    fn find(&mut self, path: &Path) -> io::Result<usize> {
        let inner = path.strip_prefix(&self.root).map_err(io::Error::other)?.to_owned();
        let (mut at, mut real) = (ROOT, self.root.clone());
        for name in inner.iter() {
            real.push(name);
            let mut folder = self.nodes[at].clone();
            folder.sync();
            at = match folder.names.get(name) {
                Some(node) => *node,
                None => {
                    // Somebody else has put it there.
                    let node = self.read(&real)?;
                    self.nodes[at].names.insert(name.to_owned(), node);
                    node
                }
            };
        }
        Ok(at)
    }

    fn read(&mut self, path: &Path) -> io::Result<usize> {
        let is_folder = fs::metadata(path)?.is_dir();
        let bytes = if is_folder { Vec::new() } else { fs::read(path)? };
        self.nodes.push(Node { is_folder, bytes, ..Node::default() });
        let node = self.nodes.len() - 1;
        if is_folder {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let inner = self.read(&entry.path())?;
                self.nodes[node].names.insert(entry.file_name(), inner);
            }
        }
        Ok(node)
    }

    /// Comes before each change and sync.
    fn step(&mut self) -> io::Result<()> {
        match self.steps_left {
            _ if self.is_off => {}
            Some(0) => (self.is_off, self.steps_left, self.cuts) = (true, None, self.cuts + 1),
            Some(steps) => {
                self.steps_left = Some(steps - 1);
                return Ok(());
            }
            None => return Ok(()),
        }
        Err(io::Error::other("the power has failed"))
    }

    fn change(&mut self, node: usize, change: Change) {
        self.nodes[node].later.push(change);
    }

    /// The folder of a path, and the name there.
    fn place(&mut self, path: &Path) -> io::Result<(usize, OsString)> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("the path has no name"));
        };
        Ok((self.find(folder)?, name.to_owned()))
    }

    fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.place(path)?;
        self.change(folder, Change::Names(vec![(name, None)]));
        Ok(())
    }

    /// A new file or folder; what was written to it is not durable, nor its name.
    fn link(&mut self, path: &Path, is_folder: bool) -> io::Result<usize> {
        let (folder, name) = self.place(path)?;
        self.nodes.push(Node { is_folder, ..Node::default() });
        let node = self.nodes.len() - 1;
        self.change(folder, Change::Names(vec![(name, Some(node))]));
        Ok(node)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PowerDisk(Arc<Mutex<State>>);

impl PowerDisk {
    /// Of what is in a folder, all of which is durable.
    pub fn new(root: &Path) -> PowerDisk {
        let (nodes, root) = (Vec::new(), root.to_owned());
        let mut state = State {
            root: root.clone(),
            nodes,
            steps_left: None,
            is_off: false,
            lie: None,
            cuts: 0,
        };
        state.read(&root).expect("the folder can be read");
        PowerDisk(Arc::new(Mutex::new(state)))
    }

    /// It does not do what it is told.
    pub fn lie(&self, lie: Lie) {
        held(&self.0).lie = Some(lie);
    }

    /// The power fails after so many changes and syncs, if it has not before.
    pub fn fail_after(&self, steps: u64) {
        held(&self.0).steps_left.get_or_insert(steps);
    }

    /// The power does not fail.
    pub fn stay_on(&self) {
        held(&self.0).steps_left = None;
    }

    /// Whether the power has failed.
    pub fn is_off(&self) -> bool {
        held(&self.0).is_off
    }

    /// How often it has.
    pub fn cuts(&self) -> u64 {
        held(&self.0).cuts
    }

    /// The power is there again: the folder has what the cut has left, all of it durable by now. Nobody has a file open.
    pub fn come_back(&self, dice: &mut Dice) {
        let mut state = held(&self.0);
        let root = state.root.clone();
        let mut top = state.nodes[ROOT].clone();
        let mut names: Vec<OsString> = top.names.keys().cloned().collect();
        top.sync();
        names.extend(top.names.into_keys());
        for name in names {
            let path = root.join(name);
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            drop(removed);
        }
        write(&state.nodes, ROOT, &root, dice);
        state.nodes.clear();
        (state.is_off, state.steps_left) = (false, None);
        state.read(&root).expect("the folder can be read");
    }
}

/// Writes to a folder what is left of one.
fn write(nodes: &[Node], node: usize, path: &Path, dice: &mut Dice) {
    let left = nodes[node].left(dice);
    if !left.is_folder {
        return fs::write(path, left.bytes).expect("a file can be written");
    }
    fs::create_dir_all(path).expect("a folder can be made");
    for (name, inner) in left.names {
        write(nodes, inner, &path.join(name), dice);
    }
}

impl Folders for PowerDisk {
    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.create_file(to)?;
        file.write(0, &fs::read(from)?)?;
        file.sync()
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let file = self.create_file(path)?;
        file.write(0, text.as_bytes())?;
        file.sync()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        let node = state.find(from)?;
        let ((old, was), (new, name)) = (state.place(from)?, state.place(to)?);
        if old == new {
            state.change(old, Change::Names(vec![(name, Some(node)), (was, None)]));
        } else {
            state.change(new, Change::Names(vec![(name, Some(node))]));
            state.change(old, Change::Names(vec![(was, None)]));
        }
        Disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        state.unlink(path)?;
        Disk.remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        if path.exists() {
            state.unlink(path)?;
        }
        Disk.remove_folder(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        Disk.create_folder(path)?;
        state.link(path, true).map(|_| ())
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        let node = state.find(folder)?;
        state.nodes[node].sync();
        Ok(())
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = held(&self.0);
        state.step()?;
        let node = if path.exists() {
            let node = state.find(path)?;
            state.change(node, Change::SetLen(0));
            node
        } else {
            state.link(path, false)?
        };
        drop(state);
        self.file(node, path, Disk.create_file(path)?)
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let node = held(&self.0).find(path)?;
        self.file(node, path, Disk.open_file(path)?)
    }

    fn open_database(&self, path: &Path) -> Result<Box<dyn StorageBackend>, DatabaseError> {
        let node = {
            let mut state = held(&self.0);
            state.step()?;
            if path.exists() { state.find(path)? } else { state.link(path, false)? }
        };
        let inner = Disk.open_database(path)?;
        Ok(Box::new(Database { inner, node, path: path.to_owned(), disk: self.clone() }))
    }
}

impl PowerDisk {
    fn file(
        &self,
        node: usize,
        path: &Path,
        inner: Box<dyn DiskFile>,
    ) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Written { inner, node, path: path.to_owned(), disk: self.clone() }))
    }

    fn note(&self, node: usize, change: Change) -> io::Result<()> {
        let mut state = held(&self.0);
        let was_off = state.is_off;
        let on = state.step();
        // What is under way when the power fails may be there all the same.
        if !was_off {
            state.change(node, change);
        }
        on
    }

    fn note_sync(&self, node: usize, path: &Path) -> io::Result<()> {
        let mut state = held(&self.0);
        state.step()?;
        let is_left_out =
            state.lie.is_some_and(|Lie::Files(word)| path.to_string_lossy().contains(word));
        if !is_left_out {
            state.nodes[node].sync();
        }
        Ok(())
    }
}

/// A file that is open for writing.
#[derive(Debug)]
struct Written {
    inner: Box<dyn DiskFile>,
    node: usize,
    path: PathBuf,
    disk: PowerDisk,
}

impl DiskFile for Written {
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.note(self.node, Change::Write(at, bytes.to_vec()))?;
        self.inner.write(at, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.note(self.node, Change::SetLen(len))?;
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.note_sync(self.node, &self.path)
    }
}

/// One that redb has open.
#[derive(Debug)]
struct Database {
    inner: Box<dyn StorageBackend>,
    node: usize,
    path: PathBuf,
    disk: PowerDisk,
}

impl StorageBackend for Database {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.note(self.node, Change::SetLen(len))?;
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.note_sync(self.node, &self.path)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.note(self.node, Change::Write(offset, data.to_vec()))?;
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}
