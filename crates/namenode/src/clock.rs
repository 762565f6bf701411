//! The system's clocks.

use cairn_namespace::clock::{Clock, Reading, Times};
use cairn_process::held::held;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The shortest time between two looks at it.
pub(crate) const TICK_MIN: Duration = Duration::from_millis(20);

/// So far apart are the machine's clock and that of the file system when it is said, in ms, and so near when they agree
/// again.
const JUMP_MS: u64 = 10_000;
const AGREE_MS: u64 = 1_000;

/// Milliseconds since 1970, as the machine has it.
pub(crate) fn wall_ms() -> u64 {
    wall().as_millis() as u64
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Time that nobody can set, which runs on while the process, or the machine, stands still.
pub(crate) fn since_boot() -> Duration {
    let since_boot = clock_gettime(ClockId::Boottime);
    Duration::new(since_boot.tv_sec as u64, since_boot.tv_nsec as u32)
}

/// What the machine's clocks show.
fn reading() -> Reading {
    Reading { monotonic: since_boot(), wall: wall() }
}

/// The clock of the file system.
#[derive(Debug)]
pub struct FileSystemClock(Mutex<Told>);

#[derive(Debug)]
struct Told {
    clock: Clock,
    /// It was said that the machine's clock is elsewhere.
    has_jumped: bool,
}

impl FileSystemClock {
    /// One that goes on where the last entry of the log was, with one time for both where `is_one`.
    pub(crate) fn begin(last: Times, is_one: bool) -> FileSystemClock {
        let clock = Clock::begin(last, reading(), is_one);
        FileSystemClock(Mutex::new(Told { clock, has_jumped: false }))
    }

    /// The time.
    pub fn now(&self) -> Times {
        let mut told = held(&self.0);
        let times = told.clock.at(reading());
        told.tell();
        times
    }

    /// From now on there are two times.
    pub(crate) fn part(&self) {
        held(&self.0).clock.part();
    }

    /// How far the machine's clock is ahead of the file system's, in ms; less than 0 if it is behind. None if they agree,
    /// or nearly.
    pub(crate) fn jump_ms(&self) -> Option<i64> {
        let told = held(&self.0);
        told.has_jumped.then(|| told.clock.ahead_ms())
    }
}

impl Told {
    /// Says once that the machine's clock has jumped, and once that it agrees again.
    fn tell(&mut self) {
        let ahead_ms = self.clock.ahead_ms();
        let (apart_ms, seconds) = (ahead_ms.unsigned_abs(), ahead_ms.unsigned_abs() / 1000);
        if !self.has_jumped && apart_ms >= JUMP_MS {
            self.has_jumped = true;
            let direction = if ahead_ms > 0 { "ahead" } else { "back" };
            tracing::warn!(
                seconds,
                "the clock of this machine has jumped {direction}: times of files follow it slowly, leases and all that \
                 expires not at all; is it kept in time by NTP?"
            );
        } else if self.has_jumped && apart_ms <= AGREE_MS {
            self.has_jumped = false;
            tracing::info!("times of files agree with the clock of this machine again");
        }
    }
}
