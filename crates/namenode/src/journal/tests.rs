use super::*;
use crate::disk::Disk as FileSystem;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::store::StoreTxn;
use cairn_namespace::store::conformance::{Records, dump};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{CallId, Entry};
use redb::StorageBackend;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// What is done to the store's file.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

/// What a power cut leaves of the store's file: what was synced, and of later changes those that `stays` says.
fn left(synced: &[u8], later: &[Change], stays: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut file = synced.to_vec();
    for (_, change) in later.iter().enumerate().filter(|(number, _)| stays(*number)) {
        match change {
            Change::SetLen(len) => file.resize(*len as usize, 0),
            Change::Write(at, bytes) => {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                file.resize(file.len().max(end), 0);
                file[at..end].copy_from_slice(bytes);
            }
        }
    }
    file
}

/// The files of a namespace.
type Image = Vec<(String, Vec<u8>)>;

fn image(dir: &Path) -> Image {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

fn with(image: &Image, name: &str, bytes: Vec<u8>) -> Image {
    let other = image.iter().filter(|(other, _)| other != name).cloned();
    other.chain([(name.to_string(), bytes)]).collect()
}

const STORE: &str = "namespace.redb";

/// What is about to be done to the store's file, or was done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    /// A write or another length. Meanwhile the store may not be read.
    Change,
    Sync,
}

/// Called before each change of the store's file, and before and after each sync, with the files that a crash may
/// leave then. An error is that of the disk.
type Watch = Box<dyn Fn(Stop, &dyn Fn() -> Vec<Image>) -> io::Result<()> + Send + Sync>;

struct Disk {
    file: Box<dyn StorageBackend>,
    dir: PathBuf,
    synced: Mutex<Vec<u8>>,
    later: Mutex<Vec<Change>>,
    watch: Watch,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl Disk {
    fn images(&self) -> Vec<Image> {
        let all = image(&self.dir);
        let (synced, later) = (self.synced.lock().unwrap(), self.later.lock().unwrap());
        let mut images = vec![with(&all, STORE, left(&synced, &later, |_| false))];
        if !later.is_empty() {
            images.push(with(&all, STORE, left(&synced, &later, |_| true)));
        }
        if later.len() > 1 {
            images.push(with(&all, STORE, left(&synced, &later, |number| number % 2 == 0)));
            images.push(with(&all, STORE, left(&synced, &later, |number| number % 2 == 1)));
        }
        images
    }

    fn stop(&self, at: Stop) -> io::Result<()> {
        (self.watch)(at, &|| self.images())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.stop(Stop::Change)?;
        self.file.set_len(len)?;
        self.later.lock().unwrap().push(Change::SetLen(len));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.stop(Stop::Change)?;
        self.file.write(offset, data)?;
        self.later.lock().unwrap().push(Change::Write(offset, data.to_vec()));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.stop(Stop::Sync)?;
        self.file.sync_data()?;
        // The CRCs are there by now; of the store all that was not synced may still be lost.
        self.stop(Stop::Sync)?;
        *self.synced.lock().unwrap() = fs::read(self.dir.join(STORE)).unwrap();
        self.later.lock().unwrap().clear();
        self.stop(Stop::Sync)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

pub(super) fn options() -> NamesystemOptions {
    NamesystemOptions {
        cache_len: 1 << 20,
        segment_len: 1,
        checkpoint_entries: 4,
        checkpoint_interval: Duration::from_secs(3600),
        ..NamesystemOptions::default()
    }
}

/// Something that changes or removes what others have made.
pub(super) fn entry(number: u64) -> Entry {
    let path = format!("/{}/{}", number % 5, number % 7);
    let command: Command = match number % 4 {
        0 | 1 => Mkdirs { path, mode: 0o755.into(), create_parent: true }.into(),
        2 => SetPermission { path: "/".into(), mode: (number % 512) as u16 }.into(),
        _ => Delete { path: format!("/{}", (number + 2) % 5), recursive: true }.into(),
    };
    let call = Some(CallId { client_id: [1; 16], call_id: number as i32 });
    Entry {
        now_ms: 1000 + number,
        elapsed_ms: 1000 + number,
        caller: Caller::system(),
        call,
        command,
    }
}

/// A namespace whose store and log can be watched or broken.
struct Watched {
    dir: PathBuf,
    sender: mpsc::Sender<Input>,
    store: Arc<Store>,
    thread: JoinHandle<Result<(), Fatal>>,
}

impl Watched {
    fn start(dir: &Path, options: &NamesystemOptions, watch: Watch, pipe: Option<File>) -> Watched {
        let identity = Identity::read(&dir.join("VERSION")).unwrap().unwrap();
        let path = dir.join(STORE);
        let wrap = |file| Disk {
            file: Box::new(file),
            dir: dir.to_owned(),
            synced: Mutex::new(fs::read(&path).unwrap()),
            later: Mutex::default(),
            watch,
        };
        let store = Arc::new(Store::open_through(&FileSystem, &path, 1 << 20, wrap).unwrap());
        let recent = Recent::open(dir, identity.namespace_id, 1 << 20, Stored::of(&store).unwrap());
        let recent = Arc::new(recent);
        let (log, retries) =
            replay(&FileSystem::shared(), dir, &identity, &store, &recent, 0).unwrap();
        let log = match pipe {
            Some(pipe) => log.onto(Box::new(pipe)),
            None => log,
        };
        let (sender, receiver) = mpsc::channel();
        let ends = (sender.clone(), receiver);
        let retries = Arc::new(Mutex::new(retries));
        let writer = Writer::new(
            Arc::clone(&store),
            log,
            ends,
            recent,
            retries,
            (Listeners::default(), Arc::default()),
            options,
        );
        let thread = std::thread::spawn(move || writer.run());
        Watched { dir: dir.to_owned(), sender, store, thread }
    }

    fn submit(&self, entry: Entry) -> Option<Result<Outcome, SubmitError>> {
        submit(&self.sender, entry)
    }

    /// Stops it, if it still runs, and returns what it has ended with.
    fn end(self) -> Result<(), Fatal> {
        let _ = self.sender.send(Input::Close);
        self.thread.join().unwrap()
    }
}

/// None if no answer comes any more.
fn submit(sender: &mpsc::Sender<Input>, entry: Entry) -> Option<Result<Outcome, SubmitError>> {
    let (reply, answer) = oneshot::channel();
    sender.send(Input::Request(Request { wanted: entry.into(), reply })).ok()?;
    answer.blocking_recv().ok()
}

/// A namespace with some entries, closed, and the same in memory.
fn some(dir: &Path) -> MemoryStore {
    let namesystem = Namesystem::open(dir, options()).unwrap();
    for number in 0..6 {
        namesystem.submit_blocking(entry(number)).unwrap();
    }
    let mut model = MemoryStore::new();
    for (table, key, value) in namesystem.read(|now| dump(now)) {
        model.put(table, &key, &value).unwrap();
    }
    model
}

/// Whoever brings something waits for a place first, whichever way it comes.
#[test]
fn no_more_wait_for_the_writer_than_there_are_places() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = Namesystem::open(dir.path(), options()).unwrap();
    let all = parked(namesystem.places.acquire_many(WAITING_MAX as u32)).unwrap();
    let (told, done) = mpsc::channel();
    std::thread::scope(|scope| {
        let ways: [fn(&Namesystem) -> bool; 4] = [
            |namesystem| parked(namesystem.submit(entry(0))).is_ok(),
            |namesystem| namesystem.submit_blocking(entry(1)).is_ok(),
            |namesystem| parked(namesystem.roll_log()).is_ok(),
            |namesystem| parked(namesystem.checkpoint()).is_ok(),
        ];
        for way in ways {
            let (namesystem, told) = (&namesystem, told.clone());
            scope.spawn(move || told.send(way(namesystem)));
        }
        drop(told);
        assert!(done.recv_timeout(Duration::from_millis(100)).is_err());
        drop(all);
        assert_eq!(done.iter().collect::<Vec<_>>(), [true; 4]);
    });
}

/// The namespace that opens from these files, which knows the outcomes of the first so many entries.
fn found(image: Image, answered: u64) -> Records {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in image {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let namesystem = Namesystem::open(dir.path(), options()).unwrap();
    for entry in (0..answered).map(entry) {
        let Some(call) = entry.once() else { continue };
        assert!(namesystem.is_answered(call, entry.now_ms).unwrap(), "{call:?} of {answered}");
    }
    namesystem.read(|now| dump(now))
}

/// Calls one after the other.
struct Calls {
    number: u64,
    model: MemoryStore,
    progress: Arc<Mutex<Progress>>,
}

/// What is known at one moment.
#[derive(Default)]
struct Progress {
    /// The states after so many calls.
    states: Vec<Arc<Records>>,
    /// Calls that were answered; one more may be under way.
    answered: usize,
    /// What a crash would leave, which of the states must be found in it, and the entries that were answered.
    images: Vec<(Image, Vec<Arc<Records>>, u64)>,
}

impl Calls {
    fn call(&mut self, sender: &mpsc::Sender<Input>) {
        let entry = entry(self.number);
        self.number += 1;
        let wanted = cairn_namespace::apply(&mut self.model, &entry);
        self.progress.lock().unwrap().states.push(Arc::new(dump(&self.model)));
        let outcome = submit(sender, entry).unwrap();
        let wanted = wanted.map(|(answer, _)| answer);
        assert_eq!(outcome.map_err(|e| e.to_string()), wanted.map_err(|e| e.to_string()));
        self.progress.lock().unwrap().answered += 1;
    }
}

/// While a checkpoint goes on, calls are answered; wherever a power cut comes then, and whatever it leaves of what was
/// not synced, all that was answered is there.
#[test]
fn a_power_cut_at_any_step_of_a_checkpoint_leaves_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let model = some(dir.path());
    let progress = Arc::new(Mutex::new(Progress {
        states: vec![Arc::new(dump(&model))],
        ..Progress::default()
    }));
    let calls = Calls { number: 6, model, progress: Arc::clone(&progress) };
    let calls = Arc::new(Mutex::new(calls));
    let sender: Arc<Mutex<Option<mpsc::Sender<Input>>>> = Arc::default();
    let (told, asked, known) = (Arc::clone(&calls), Arc::clone(&sender), Arc::clone(&progress));
    let watch: Watch = Box::new(move |stop, images| {
        let Some(sender) = asked.lock().unwrap().clone() else { return Ok(()) };
        if stop == Stop::Sync {
            told.lock().unwrap().call(&sender);
        }
        let answered = known.lock().unwrap().answered;
        let images = images();
        let mut known = known.lock().unwrap();
        let wanted = known.states[answered..].to_vec();
        known
            .images
            .extend(images.into_iter().map(|image| (image, wanted.clone(), 6 + answered as u64)));
        Ok(())
    });
    let watched = Watched::start(dir.path(), &options(), watch, None);
    *sender.lock().unwrap() = Some(watched.sender.clone());
    while progress.lock().unwrap().images.len() < 150 {
        let mut calls = calls.lock().unwrap();
        calls.call(&watched.sender);
        assert!(calls.number < 5000, "there is no checkpoint");
    }
    *sender.lock().unwrap() = None;
    watched.end().unwrap();
    let images = std::mem::take(&mut progress.lock().unwrap().images);
    for (number, (mut image, wanted, answered)) in images.into_iter().enumerate() {
        // What nobody was told of is torn.
        if number % 2 == 0 {
            let log = image.iter_mut().filter(|(name, _)| name.starts_with("log-")).max();
            log.unwrap().1.extend_from_slice(b"CRNF and no more");
        }
        let found = found(image, answered);
        assert!(wanted.iter().any(|wanted| found == **wanted), "image {number}");
    }
}

/// Each change and sync of the store's file fails once. Nothing is answered any more, and nothing is lost.
#[test]
fn a_checkpoint_that_fails_at_any_step_loses_nothing() {
    let (mut steps, mut noticed) = (0, 0);
    loop {
        let dir = tempfile::tempdir().unwrap();
        let mut model = some(dir.path());
        let (count, left) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
        let (counted, kept) = (Arc::clone(&count), Arc::clone(&left));
        let watch: Watch = Box::new(move |_, images| {
            let mut count = counted.lock().unwrap();
            let Some(before) = count.as_mut() else { return Ok(()) };
            *before += 1;
            if *before == steps + 1 {
                *kept.lock().unwrap() = images();
                return Err(io::Error::other("the disk is broken"));
            }
            Ok(())
        });
        let watched = Watched::start(dir.path(), &options(), watch, None);
        *count.lock().unwrap() = Some(0);
        for number in 6..10 {
            let entry = entry(number);
            // The checkpoint may have failed before the last of them is answered.
            if watched.submit(entry.clone()).is_some() {
                cairn_namespace::apply(&mut model, &entry).unwrap();
            }
        }
        let ended = watched.end();
        let wanted = dump(&model);
        assert!(found(image(dir.path()), 6) == wanted, "step {steps}");
        let images = std::mem::take(&mut *left.lock().unwrap());
        if images.is_empty() {
            assert!(noticed > 5, "{noticed} of {steps}");
            return ended.unwrap();
        }
        match ended {
            Err(Fatal::Store(_)) => noticed += 1,
            // The file is closed behind the last checkpoint.
            Ok(()) => assert!(noticed > 5, "step {steps} has failed"),
            Err(other) => panic!("step {steps}: {other}"),
        }
        // Writes that were not synced may be lost now, though the file shows them.
        let log = image(dir.path()).into_iter().filter(|(name, _)| name.starts_with("log-"));
        let log: Image = log.collect();
        for image in images {
            let image =
                log.iter().fold(image, |image, (name, bytes)| with(&image, name, bytes.clone()));
            assert!(found(image, 6) == wanted, "step {steps}");
        }
        steps += 1;
    }
}

/// Wherever a power cut comes in a checkpoint, watchers are told of every entry once, or that they have missed some;
/// the latter only where the history itself is damaged.
#[test]
fn a_power_cut_at_any_step_of_a_checkpoint_hides_no_event() {
    let dir = tempfile::tempdir().unwrap();
    some(dir.path());
    fs::write(dir.path().join("watched"), b"").unwrap();
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let left = Arc::clone(&images);
    let watch: Watch = Box::new(move |_, images| {
        left.lock().unwrap().extend(images());
        Ok(())
    });
    let first = Namesystem::open(dir.path(), options()).unwrap().last_sequence() + 1;
    let watched = Watched::start(dir.path(), &options(), watch, None);
    for number in 6..40 {
        watched.submit(entry(number)).unwrap().unwrap();
    }
    watched.end().unwrap();
    let told = |image: &Image| {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in image {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let namesystem = Namesystem::open(dir.path(), options()).unwrap();
        let since = namesystem.events_since(first, usize::MAX);
        (since.seen, since.batches, namesystem.last_sequence())
    };
    let (seen, all, last) = told(&image(dir.path()));
    assert_eq!(seen, Some((first, last)));
    assert!(all.len() > 20, "{}", all.len());
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 100, "{}", images.len());
    for (number, image) in images.iter().enumerate() {
        let (seen, batches, last) = told(image);
        if last >= first {
            assert_eq!(seen, Some((first, last)), "image {number}");
        }
        let wanted = all.iter().take_while(|batch| batch.sequence <= last);
        assert!(batches.iter().eq(wanted), "image {number}");
        // What was not synced when the power went may be lost.
        let Some((name, bytes)) = image.iter().find(|(name, _)| name.starts_with("events-")) else {
            continue;
        };
        let cut = bytes[..number * 31 % bytes.len()].to_vec();
        let (seen, batches, last) = told(&with(image, name, cut));
        let from = seen.map_or(last + 1, |(from, _)| from);
        assert!(from >= first);
        let wanted = all.iter().filter(|batch| (from..=last).contains(&batch.sequence));
        assert!(batches.iter().eq(wanted), "image {number}");
    }
}

/// What is written comes nowhere, and can't be synced.
#[test]
fn a_log_that_cannot_be_synced_acknowledges_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let before = dump(&some(dir.path()));
    let (_reader, pipe) = io::pipe().unwrap();
    let pipe = File::from(OwnedFd::from(pipe));
    let watched = Watched::start(dir.path(), &options(), Box::new(|_, _| Ok(())), Some(pipe));
    assert_eq!(watched.submit(entry(6)), None);
    assert!(dump(&watched.store.snapshot()) == before, "a reader sees it");
    let dir = watched.dir.clone();
    assert!(matches!(watched.end(), Err(Fatal::Append(_))));
    assert!(found(image(&dir), 6) == before);
}

#[test]
fn two_cannot_have_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    let first = Namesystem::open(dir.path(), options()).unwrap();
    first.submit_blocking(entry(0)).unwrap();
    let log = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let name = format!("log-{:020}", 1);
    let before = log(&name);
    let error = Namesystem::open(dir.path(), options()).err().unwrap();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert!(log(&name) == before, "nothing of the log is touched");
    drop(first);
    Namesystem::open(dir.path(), options()).unwrap();
}

#[test]
fn others_cannot_read_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("name");
    let mode = || fs::metadata(&dir).unwrap().permissions().mode() & 0o7777;
    drop(Namesystem::open(&dir, options()).unwrap());
    assert_eq!(mode(), 0o700);
    drop(Namesystem::open(&dir, NamesystemOptions { dir_mode: 0o750, ..options() }).unwrap());
    assert_eq!(mode(), 0o750);
}
