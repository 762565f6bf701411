//! File systems of a test's own: one with little room, and a disk whose operations fail, or hang, on demand.
//!
//! Who may mount (CAP_SYS_ADMIN) gets them or fails; others are told that the test did not run.

use fuser::{
    BackgroundSession, FileAttr, FileType, Filesystem, MountOption, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow,
};
use rustix::mount::{MountFlags, UnmountFlags};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// Whether this process may mount. Says so if not.
pub fn may_mount() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    let may = u64::from_str_radix(effective, 16).unwrap() >> SYS_ADMIN & 1 == 1;
    if !may {
        eprintln!("NOT RUN: the test mounts file systems, for which CAP_SYS_ADMIN is missing");
    }
    may
}

/// A file system in memory with so much room, until it is dropped.
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    pub fn mount(at: &Path, bytes: usize) -> SmallDisk {
        std::fs::create_dir_all(at).unwrap();
        let size = CString::new(format!("size={bytes}")).unwrap();
        rustix::mount::mount("small", at, "tmpfs", MountFlags::empty(), Some(size.as_c_str()))
            .unwrap();
        SmallDisk { at: at.to_path_buf() }
    }

    /// The file of somebody else that takes all the room there is.
    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }

    pub fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let mut len = 64 << 10;
        while len > 0 {
            // Less and less, so that not a page is left.
            if file.write_all(&vec![1; len]).is_err() {
                len /= 2;
            }
        }
    }

    pub fn empty(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A test that fails must not fail here again.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// What a disk does not do any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Read,
    Write,
    Sync,
    /// Opening what is there, and making files.
    Open,
    Rename,
    /// Everything, down to the names in a folder.
    All,
    /// It answers nothing at all, until it is mended.
    Hangs,
}

/// A disk in memory that can break.
pub struct BadDisk {
    at: PathBuf,
    state: Arc<Shared>,
    _session: BackgroundSession,
}

impl BadDisk {
    pub fn mount(at: &Path) -> BadDisk {
        std::fs::create_dir_all(at).unwrap();
        let state = Arc::<Shared>::default();
        state.state.lock().unwrap().nodes.insert(ROOT, Node::Dir(BTreeMap::new()));
        let options = [MountOption::FSName("bad".to_string())];
        let session = fuser::spawn_mount2(Disk(state.clone()), at, &options).unwrap();
        BadDisk { at: at.to_path_buf(), state, _session: session }
    }

    /// From now on the disk answers that with EIO, or hangs.
    pub fn breaks(&self, how: Broken) {
        self.state.state.lock().unwrap().broken = Some(how);
    }

    /// Says from now on that it has no room, or has all.
    pub fn is_full(&self, is_full: bool) {
        self.state.state.lock().unwrap().is_full = is_full;
    }

    /// Does so much more of what it is asked for, then hangs.
    pub fn hangs_after(&self, count: u32) {
        self.state.state.lock().unwrap().until_it_hangs = Some(count);
    }

    /// Whether it hangs, and somebody waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.state.state.lock().unwrap().is_waited_for
    }

    /// From now on the disk does all again, also what it was asked for meanwhile.
    pub fn is_mended(&self) {
        let mut state = self.state.state.lock().unwrap();
        (state.broken, state.until_it_hangs, state.is_waited_for) = (None, None, false);
        drop(state);
        self.state.mended.notify_all();
    }
}

impl Drop for BadDisk {
    fn drop(&mut self) {
        // Nobody can unmount a disk that hangs.
        self.is_mended();
        // Also while somebody has files open.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}

const ROOT: u64 = 1;
/// More than any other disk of a test has, so that it is preferred.
const BYTES: u64 = 1 << 42;
const BLOCK: u32 = 4096;
/// Every read and write comes here, and none stays in the page cache.
const DIRECT_IO: u32 = 1;
/// The kernel asks anew each time.
const TTL: Duration = Duration::ZERO;

enum Node {
    Dir(BTreeMap<OsString, u64>),
    File(Vec<u8>),
}

#[derive(Default)]
struct State {
    nodes: HashMap<u64, Node>,
    last: u64,
    broken: Option<Broken>,
    until_it_hangs: Option<u32>,
    is_waited_for: bool,
    is_full: bool,
}

type Errno = libc::c_int;

impl State {
    fn dir(&mut self, ino: u64) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node::Dir(names)) => Ok(names),
            Some(Node::File(_)) => Err(libc::ENOTDIR),
            None => Err(libc::ENOENT),
        }
    }

    fn file(&mut self, ino: u64) -> Result<&mut Vec<u8>, Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(bytes)) => Ok(bytes),
            Some(Node::Dir(_)) => Err(libc::EISDIR),
            None => Err(libc::ENOENT),
        }
    }

    fn find(&mut self, parent: u64, name: &OsStr) -> Result<u64, Errno> {
        self.dir(parent)?.get(name).copied().ok_or(libc::ENOENT)
    }

    fn make(&mut self, parent: u64, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        if self.dir(parent)?.contains_key(name) {
            return Err(libc::EEXIST);
        }
        self.last += 1;
        let ino = ROOT + self.last;
        self.dir(parent)?.insert(name.to_os_string(), ino);
        self.nodes.insert(ino, node);
        self.attr(ino)
    }

    fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        let ino = self.find(parent, name)?;
        if let Some(Node::Dir(names)) = self.nodes.get(&ino)
            && !names.is_empty()
        {
            return Err(libc::ENOTEMPTY);
        }
        // The bytes stay for those who have the file open.
        self.dir(parent)?.remove(name);
        Ok(())
    }

    fn attr(&self, ino: u64) -> Result<FileAttr, Errno> {
        let (kind, size, perm) = match self.nodes.get(&ino).ok_or(libc::ENOENT)? {
            Node::Dir(_) => (FileType::Directory, 0, 0o755),
            Node::File(bytes) => (FileType::RegularFile, bytes.len() as u64, 0o644),
        };
        let time = SystemTime::UNIX_EPOCH;
        Ok(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        })
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    mended: Condvar,
}

struct Disk(Arc<Shared>);

impl Disk {
    /// The state, unless the disk does not do `what` any more.
    fn work(&self, what: &[Broken]) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.0.state.lock().unwrap();
        match &mut state.until_it_hangs {
            Some(0) => state.broken = Some(Broken::Hangs),
            Some(left) => *left -= 1,
            None => {}
        }
        let hangs = |state: &mut State| {
            let hangs = state.broken == Some(Broken::Hangs);
            state.is_waited_for |= hangs;
            hangs
        };
        let state = self.0.mended.wait_while(state, hangs).unwrap();
        match state.broken {
            Some(broken) if broken == Broken::All || what.contains(&broken) => Err(libc::EIO),
            _ => Ok(state),
        }
    }
}

impl Filesystem for Disk {
    fn lookup(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let found = self.work(&[]).and_then(|mut state| {
            let ino = state.find(parent, name)?;
            state.attr(ino)
        });
        match found {
            Ok(attr) => reply.entry(&TTL, &attr, 0),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&mut self, _: &Request<'_>, ino: u64, _: Option<u64>, reply: ReplyAttr) {
        match self.work(&[]).and_then(|state| state.attr(ino)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<u64>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<u32>,
        reply: ReplyAttr,
    ) {
        let set = self.work(&[]).and_then(|mut state| {
            if let Some(size) = size {
                state.file(ino)?.resize(size as usize, 0);
            }
            state.attr(ino)
        });
        match set {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let dir = Node::Dir(BTreeMap::new());
        match self.work(&[]).and_then(|mut state| state.make(parent, name, dir)) {
            Ok(attr) => reply.entry(&TTL, &attr, 0),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        done(self.work(&[]).and_then(|mut state| state.remove(parent, name)), reply);
    }

    fn rmdir(&mut self, _: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        done(self.work(&[]).and_then(|mut state| state.remove(parent, name)), reply);
    }

    fn rename(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        to: u64,
        new_name: &OsStr,
        _flags: u32,
        reply: ReplyEmpty,
    ) {
        let renamed = self.work(&[Broken::Rename]).and_then(|mut state| {
            let ino = state.find(parent, name)?;
            state.dir(parent)?.remove(name);
            state.dir(to)?.insert(new_name.to_os_string(), ino);
            Ok(())
        });
        done(renamed, reply);
    }

    fn open(&mut self, _: &Request<'_>, _ino: u64, _flags: i32, reply: ReplyOpen) {
        match self.work(&[Broken::Open]) {
            Ok(_) => reply.opened(0, DIRECT_IO),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &mut self,
        _: &Request<'_>,
        parent: u64,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let file = Node::File(Vec::new());
        match self.work(&[Broken::Open]).and_then(|mut state| state.make(parent, name, file)) {
            Ok(attr) => reply.created(&TTL, &attr, 0, 0, DIRECT_IO),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        let read = self.work(&[Broken::Read]).and_then(|mut state| {
            let bytes = state.file(ino)?;
            let start = bytes.len().min(offset as usize);
            let end = bytes.len().min(start + size as usize);
            Ok(bytes[start..end].to_vec())
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        data: &[u8],
        _write_flags: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let written = self.work(&[Broken::Write]).and_then(|mut state| {
            let (bytes, start) = (state.file(ino)?, offset as usize);
            bytes.resize(bytes.len().max(start + data.len()), 0);
            bytes[start..start + data.len()].copy_from_slice(data);
            Ok(data.len() as u32)
        });
        match written {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(&mut self, _: &Request<'_>, _: u64, _: u64, _datasync: bool, reply: ReplyEmpty) {
        done(self.work(&[Broken::Sync]).map(drop), reply);
    }

    fn fsyncdir(&mut self, _: &Request<'_>, _: u64, _: u64, _datasync: bool, reply: ReplyEmpty) {
        done(self.work(&[Broken::Sync]).map(drop), reply);
    }

    fn readdir(
        &mut self,
        _: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.work(&[]).and_then(|mut state| Ok(state.dir(ino)?.clone()));
        match listed {
            Ok(names) => {
                let inodes = self.0.state.lock().unwrap();
                for (i, (name, child)) in names.iter().enumerate().skip(offset as usize) {
                    let Ok(attr) = inodes.attr(*child) else { continue };
                    if reply.add(*child, i as i64 + 1, attr.kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn statfs(&mut self, _: &Request<'_>, _ino: u64, reply: ReplyStatfs) {
        let blocks = BYTES / u64::from(BLOCK);
        match self.work(&[]) {
            Ok(state) => {
                let free = if state.is_full { 0 } else { blocks };
                reply.statfs(blocks, free, free, 1000, 1000, BLOCK, 255, BLOCK);
            }
            Err(errno) => reply.error(errno),
        }
    }
}

fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// What the tests rely on: files are kept as on any disk, and break on demand only.
#[test]
fn a_bad_disk_is_a_good_one_until_it_breaks() {
    if !may_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let disk = BadDisk::mount(dir.path());
    let path = dir.path().join("a/b");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, vec![7; 100_000]).unwrap();
    std::fs::write(&path, vec![8; 50_000]).unwrap();
    let other = dir.path().join("a/c");
    std::fs::rename(&path, &other).unwrap();
    let file = std::fs::File::open(&other).unwrap();
    file.sync_all().unwrap();
    std::fs::File::open(dir.path()).unwrap().sync_all().unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let locked = std::fs::File::options().write(true).open(&other).unwrap();
    rustix::fs::fcntl_lock(&locked, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(std::fs::read(&other).unwrap(), vec![8; 50_000]);
    let names = std::fs::read_dir(dir.path().join("a")).unwrap();
    assert_eq!(names.map(|name| name.unwrap().file_name()).collect::<Vec<_>>(), ["c"]);
    let eio = |result: std::io::Result<()>| result.unwrap_err().raw_os_error() == Some(libc::EIO);
    disk.breaks(Broken::Read);
    assert!(eio(std::fs::read(&other).map(drop)));
    disk.breaks(Broken::Sync);
    assert!(eio(file.sync_all()));
    disk.breaks(Broken::Rename);
    assert!(eio(std::fs::rename(&other, &path)));
    disk.breaks(Broken::Open);
    assert!(eio(std::fs::File::open(&other).map(drop)));
    assert!(eio(std::fs::write(&path, b"new")));
    disk.breaks(Broken::All);
    assert!(eio(std::fs::read_dir(dir.path()).map(drop)));
}
