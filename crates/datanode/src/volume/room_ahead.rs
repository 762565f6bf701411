//! Room on the disk ahead of a replica that grows.
//!
//! ext4 reserves and maps every 4 KiB of a file that is written behind its end by themselves. Where a few MiB are
//! allocated at once, it only finds them: a quarter less of a write's processor time. What is left of it goes back when
//! the replica is complete.

use crate::sys;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Shorter replicas get none: it is two system calls more.
const LEAST: u64 = 1 << 20;

/// What a replica that is being written has of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomAhead {
    /// Bytes allocated at once, 0 for none.
    step: u64,
    /// Where what is allocated ends.
    end: u64,
}

impl RoomAhead {
    /// Of a file whose bytes are all its own.
    pub(crate) fn new(step: u64) -> RoomAhead {
        RoomAhead { step, end: 0 }
    }

    /// Of a file that an earlier writer may have left some.
    pub(crate) fn unknown() -> RoomAhead {
        RoomAhead { step: 0, end: u64::MAX }
    }

    /// Allocates what is due before a file of `len` bytes grows to `end`; it will not grow beyond `most`. Only a hint:
    /// what the disk does not do now it does with the write.
    pub(crate) fn reach(&mut self, file: &File, len: u64, end: u64, most: u64) {
        let Some(due) = self.due(len, end, most) else { return };
        match sys::allocate(file, due.clone()) {
            Ok(()) => self.end = due.end,
            Err(_) => self.step = 0,
        }
    }

    /// Gives back what is behind the end of the file, which has `len` bytes.
    pub(crate) fn give_back(self, file: &File, len: u64) -> io::Result<()> {
        if self.end <= len {
            return Ok(());
        }
        // Also where the length stays, the kernel frees what is behind it.
        file.set_len(len)
    }

    fn due(&self, len: u64, end: u64, most: u64) -> Option<Range<u64>> {
        let reach = len.saturating_add(self.step).min(most);
        (self.step > 0 && len >= LEAST && end > self.end && reach > end).then_some(len..reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 4 << 20;
    const PACKET: u64 = 256 << 10;

    /// What a file gets that is written in packets.
    fn grown(step: u64, len: u64) -> Vec<Range<u64>> {
        let (mut room, mut got, mut at) = (RoomAhead::new(step), Vec::new(), 0);
        while at < len {
            let end = (at + PACKET).min(len);
            if let Some(due) = room.due(at, end, len) {
                room.end = due.end;
                got.push(due);
            }
            at = end;
        }
        got
    }

    #[test]
    fn a_step_at_a_time_and_no_more_than_the_file_will_have() {
        assert_eq!(grown(STEP, 1 << 20), []);
        assert_eq!(grown(STEP, (1 << 20) + 1), [], "one packet is left");
        let steps = [1 << 20..5 << 20, 5 << 20..9 << 20, 9 << 20..10 << 20];
        assert_eq!(grown(STEP, 10 << 20), steps);
        assert_eq!(grown(0, 10 << 20), []);
    }

    #[test]
    fn what_is_left_goes_back_and_the_bytes_stay() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let file = tempfile::tempfile().unwrap();
        let len = (2 << 20) + 100;
        file.write_all_at(&vec![1; len as usize], 0).unwrap();
        file.sync_all().unwrap();
        let before = file.metadata().unwrap().blocks();
        let mut room = RoomAhead::new(STEP);
        room.reach(&file, len, len + PACKET, u64::MAX);
        let is_done = room.step > 0;
        assert_eq!(file.metadata().unwrap().blocks() > before, is_done, "not every disk can");
        assert_eq!(file.metadata().unwrap().len(), len);
        room.give_back(&file, len).unwrap();
        // Less where the file system had set room aside by itself.
        assert!(file.metadata().unwrap().blocks() <= before);
        assert_eq!(file.metadata().unwrap().len(), len);
        RoomAhead::unknown().give_back(&file, len).unwrap();
        assert_eq!(file.metadata().unwrap().len(), len);
    }
}
