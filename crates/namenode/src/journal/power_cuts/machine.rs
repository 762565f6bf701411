//! A machine: a folder with a namespace on a disk of its own, clocks of its own, and what runs there.

use crate::disk::SharedDisk;
use crate::disk::power::{Dice, PowerDisk};
use crate::journal::agree::Agreement;
use crate::journal::backup::write_snapshot;
use crate::journal::follower::Follower;
use crate::journal::install::install_on;
use crate::journal::options::NamesystemOptions;
use crate::journal::recent::{Recent, Stored};
use crate::journal::replay::replay;
use crate::journal::tests::options;
use crate::journal::writer::Writer;
use crate::journal::{Fatal, Listeners, SubmitError, entering};
use crate::store::{Identity, Store};
use cairn_namespace::clock::{Clock, Reading, Times};
use cairn_namespace::store::conformance::{Records, dump};
use cairn_namespace::{Entry, Outcome, Retries};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tempfile::TempDir;

const CACHE_LEN: usize = 256 << 10;

/// What leads.
pub struct Leader {
    writer: Writer,
    store: Arc<Store>,
    clock: Clock,
    kept: Arc<Mutex<Retries>>,
    _lock: File,
}

pub enum Runs {
    Nothing,
    Follows(Box<Follower>),
    Leads(Box<Leader>),
}

pub struct Machine {
    dir: TempDir,
    pub disk: PowerDisk,
    identity: Identity,
    pub runs: Runs,
    /// How far its clocks are from the world's, in ms.
    booted_ms: u64,
    pub wall_ahead_ms: i64,
    /// What a leader has kept that had to go.
    pub kept: Option<Arc<Mutex<Retries>>>,
}

/// How a machine's namespace is opened.
pub fn namespace_options() -> NamesystemOptions {
    NamesystemOptions { cache_len: CACHE_LEN, ..options() }
}

impl Machine {
    /// With a copy of the namespace in a folder.
    pub fn new(from: &Path, dice: &mut Dice) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
        let disk = PowerDisk::new(dir.path());
        let identity = Identity::read(&dir.path().join("VERSION")).unwrap().unwrap();
        let (booted_ms, wall_ahead_ms) =
            (dice.below(1 << 30), dice.below(1 << 20) as i64 - (1 << 19));
        let (runs, kept) = (Runs::Nothing, None);
        Machine { dir, disk, identity, runs, booted_ms, wall_ahead_ms, kept }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn shared(&self) -> SharedDisk {
        Arc::new(self.disk.clone())
    }

    /// What its clocks show.
    fn reading(&self, now_ms: u64) -> Reading {
        let wall_ms = now_ms.saturating_add_signed(self.wall_ahead_ms);
        let time = Duration::from_millis;
        Reading { monotonic: time(now_ms + self.booted_ms), wall: time(wall_ms) }
    }

    /// Begins to follow.
    pub fn follow(&mut self) -> Result<(), String> {
        self.runs = Runs::Nothing;
        let found = Follower::open_on(&self.shared(), self.dir(), &namespace_options());
        let found = found.map_err(|error| error.to_string())?.ok_or("there is no namespace")?;
        self.runs = Runs::Follows(Box::new(found));
        Ok(())
    }

    /// Begins to lead, if `agreement` has somebody agree; its clock begins anew where `forgets`.
    pub fn lead(
        &mut self,
        agreement: Option<Agreement>,
        now_ms: u64,
        forgets: bool,
    ) -> Result<(), String> {
        self.runs = Runs::Nothing;
        let dir = self.dir().to_owned();
        let (disk, text) = (self.shared(), |error: &dyn std::fmt::Display| error.to_string());
        let (lock, _) = entering::enter(&*disk, &dir, 0o700).map_err(|error| text(&error))?;
        let store = Store::open_on(&*disk, &dir.join("namespace.redb"), CACHE_LEN);
        let store = Arc::new(store.map_err(|error| text(&error))?);
        let stored = Stored::of(&store).map_err(|error| text(&error))?;
        let recent = Arc::new(Recent::open(&dir, self.identity.namespace_id, 1 << 20, stored));
        let (log, retries) = replay(&disk, &dir, &self.identity, &store, &recent, 0)
            .map_err(|error| text(&error))?;
        let kept = self.kept.take().unwrap_or_else(|| Arc::new(Mutex::new(retries)));
        let (sender, receiver) = mpsc::channel();
        let writer = Writer::new(
            Arc::clone(&store),
            log,
            (sender, receiver),
            recent,
            Arc::clone(&kept),
            (Listeners::default(), Arc::default()),
            &NamesystemOptions { agreement, ..namespace_options() },
        );
        let last = if forgets { Times::default() } else { store.position().times };
        let clock = Clock::begin(last, self.reading(now_ms), false);
        self.runs = Runs::Leads(Box::new(Leader { writer, store, clock, kept, _lock: lock }));
        Ok(())
    }

    fn leader(&mut self) -> &mut Leader {
        match &mut self.runs {
            Runs::Leads(leader) => leader,
            _ => panic!("it does not lead"),
        }
    }

    /// Has the leader evaluate an entry, and returns the answer when it is agreed on.
    pub fn submit(
        &mut self,
        mut entry: Entry,
        now_ms: u64,
    ) -> Result<Result<Outcome, SubmitError>, Fatal> {
        let reading = self.reading(now_ms);
        let leader = self.leader();
        let Times { wall_ms, elapsed_ms } = leader.clock.at(reading);
        (entry.now_ms, entry.elapsed_ms) = (wall_ms, elapsed_ms);
        leader.writer.apply_now(entry)
    }

    /// The same of an entry that has times.
    pub fn submit_timed(&mut self, entry: Entry) -> Result<Result<Outcome, SubmitError>, Fatal> {
        self.leader().writer.apply_now(entry)
    }

    pub fn checkpoint(&mut self) -> Result<(), Fatal> {
        self.leader().writer.checkpoint()
    }

    /// Stops whatever runs. A leader leaves what it has kept of answers if `keeps`.
    pub fn stop(&mut self, keeps: bool) {
        if let Runs::Leads(leader) = std::mem::replace(&mut self.runs, Runs::Nothing) {
            self.kept = keeps.then(|| Arc::clone(&leader.kept));
            leader.store.close();
        }
    }

    /// The last entry that it has, and the state there.
    pub fn state(&self) -> Option<(u64, Records)> {
        let store = match &self.runs {
            Runs::Nothing => return None,
            Runs::Follows(follower) => follower.store(),
            Runs::Leads(leader) => &leader.store,
        };
        let now = store.snapshot();
        Some((now.applied(), dump(&now)))
    }

    /// A snapshot of what the leader has, in a file.
    pub fn snapshot(&mut self, file: &Path) -> Result<(), Fatal> {
        let now = self.leader().writer.snapshot()?;
        let mut bytes = Vec::new();
        let mut take = |piece: Vec<u8>| {
            bytes.extend(piece);
            true
        };
        write_snapshot(&now, &self.identity, 0, &mut take).unwrap();
        std::fs::write(file, bytes).unwrap();
        Ok(())
    }

    /// Puts a snapshot in the place of what it has.
    pub fn install(&mut self, file: &Path) -> Result<(), String> {
        self.runs = Runs::Nothing;
        let installed = install_on(&self.shared(), self.dir(), file, CACHE_LEN);
        installed.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// A namespace in a folder, with which machines begin.
pub fn founded() -> (TempDir, PathBuf, u64, Records) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("name");
    let namesystem = crate::journal::Namesystem::open(&path, namespace_options()).unwrap();
    let (last, records) = (namesystem.last_sequence(), namesystem.read(|now| dump(now)));
    namesystem.close();
    (dir, path, last, records)
}
