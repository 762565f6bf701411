//! The thread that writes a member's file.

use super::disk::Disk;
use cairn_quorum::{Ballot, Base, Entry, MemberId};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What is to be written.
pub(super) enum Job {
    Write {
        number: u64,
        ballot: Option<Ballot>,
        entries: Vec<Entry>,
        sync: bool,
        send_later: Vec<(MemberId, Vec<u8>)>,
    },
    Compact(Base, Vec<Entry>),
}

/// What has become of it.
pub(super) enum Done {
    /// Everything up to that number is on the disk, and those messages may go.
    Persisted { number: u64, send_later: Vec<(MemberId, Vec<u8>)> },
    /// The disk fails; nothing is written any more.
    Failed(String),
}

/// The thread; dropping it waits until all that it was given is written.
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts it. `tells` says whether anybody listens yet.
    pub fn start(disk: Disk, tells: impl Fn(Done) -> bool + Send + 'static) -> io::Result<Writer> {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new().name("quorum-log".to_string());
        let thread = thread.spawn(move || write(disk, &queue, tells))?;
        Ok(Writer { jobs: Some(jobs), thread: Some(thread) })
    }

    pub fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Whoever has ended has said why.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes a quorum's log has panicked");
        }
    }
}

/// Does jobs as they come, one sync for all that wait, until there are no more or the disk fails.
fn write(mut disk: Disk, jobs: &Receiver<Job>, tells: impl Fn(Done) -> bool) {
    while let Ok(first) = jobs.recv() {
        let (mut next, mut written, mut syncs, mut later) = (Some(first), None, false, Vec::new());
        let mut failed = None;
        while let Some(job) = next {
            let done = match job {
                Job::Write { number, ballot, entries, sync, send_later } => {
                    written = Some(number);
                    syncs |= sync;
                    later.extend(send_later);
                    disk.append(ballot, &entries, false).map_err(|error| error.to_string())
                }
                Job::Compact(base, entries) => {
                    disk.compact(base, entries).map_err(|error| error.to_string())
                }
            };
            failed = failed.or(done.err());
            next = jobs.try_recv().ok();
        }
        if syncs {
            failed = failed.or(disk.append(None, &[], true).err().map(|error| error.to_string()));
        }
        if let Some(why) = failed {
            tells(Done::Failed(format!("its log can't be written: {why}")));
            return;
        }
        let told = written.map(|number| tells(Done::Persisted { number, send_later: later }));
        if told == Some(false) {
            return;
        }
    }
}
