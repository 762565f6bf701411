//! Logs that a crash, a disk or a user has put something wrong into, and those of earlier builds.

use crate::journal::{
    SEGMENT_HEADER_LEN, copy, entry, frames, mkdir, names, numbered, open, open_error, segments,
};
use cairn_codec::crc::crc32c;
use cairn_namenode::journal::{LogError, OpenError};
use cairn_namespace::ops::xattr::{SetXAttr, XAttrName, XAttrSpace};
use std::fs;
use std::path::Path;

const FRAME_HEADER_LEN: usize = 25;

/// A segment as builds without salts wrote it.
fn without_salt(segment: &[u8]) -> Vec<u8> {
    let mut old = segment[..24].to_vec();
    old[8..12].copy_from_slice(&1u32.to_le_bytes());
    old.extend_from_slice(&crc32c(0, &old).to_le_bytes());
    for range in frames(segment) {
        let frame = &segment[range];
        old.extend_from_slice(&frame[..4]);
        old.extend_from_slice(&crc32c(0, &frame[8..]).to_le_bytes());
        old.extend_from_slice(&frame[8..]);
    }
    old
}

/// A whole frame of a later entry, as a user can make it up. Greater bytes would not stand in the log as they are.
fn forged() -> Vec<u8> {
    let made_up = (0..128).map(|byte| {
        let payload = [&1u32.to_le_bytes()[..], &[byte]].concat();
        let mut behind_crc = (payload.len() as u32).to_le_bytes().to_vec();
        behind_crc.extend_from_slice(&100u64.to_le_bytes());
        behind_crc.extend_from_slice(&1u32.to_le_bytes());
        behind_crc.push(1);
        behind_crc.extend_from_slice(&payload);
        [b"CRNF".to_vec(), crc32c(0, &behind_crc).to_le_bytes().to_vec(), behind_crc].concat()
    });
    made_up.into_iter().find(|frame| frame.iter().all(|byte| *byte < 128)).unwrap()
}

fn change_segment(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = &segments(dir)[0];
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// An end of the log that is torn is cut off, whatever users have stored there.
#[test]
fn what_looks_like_a_frame_in_a_users_bytes_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    let name = XAttrName { space: XAttrSpace::User, name: "a".into() };
    let (path, value) = ("/0000".into(), forged());
    let set = SetXAttr { path, name, value, create: true, replace: false };
    namesystem.submit_blocking(entry(set)).unwrap();
    let image = copy(dir.path());
    change_segment(image.path(), |bytes| {
        let last = frames(bytes).pop().unwrap();
        let is_stored = bytes[last.clone()].windows(forged().len()).any(|part| part == forged());
        assert!(is_stored, "the value is in the last frame as it is");
        bytes[last.start] ^= 1;
    });
    assert_eq!(names(&open(image.path())), numbered(1));
}

/// Four entries are in the store and in the log, and four more in the log alone.
fn half_stored() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    (0..4).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    namesystem.close();
    let stored = copy(dir.path());
    let namesystem = open(dir.path());
    (4..8).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    let [log, _open] = [&segments(dir.path())[0], &segments(stored.path())[0]];
    fs::copy(log, &segments(stored.path())[0]).unwrap();
    stored
}

#[test]
fn damage_to_what_the_store_has_is_passed_over() {
    let image = half_stored();
    let whole = fs::read(&segments(image.path())[0]).unwrap();
    let frames = frames(&whole);
    assert!(frames.len() >= 9, "one puts the settings in force");
    let needed = frames.len() - 4;
    for (number, frame) in frames.iter().enumerate() {
        for at in [frame.start, frame.start + 9, frame.start + 13, frame.end - 1] {
            let damaged = copy(image.path());
            change_segment(damaged.path(), |bytes| bytes[at] ^= 0x10);
            if number < needed {
                // And again, behind a start that has found it.
                for _ in 0..2 {
                    assert_eq!(names(&open(damaged.path())), numbered(8), "byte {at}");
                }
            } else if number + 1 < frames.len() {
                let error = open_error(damaged.path());
                assert!(matches!(error, OpenError::Log(LogError::Damaged { .. })), "{at}: {error}");
            }
        }
    }
    // All that the store has, and nothing of it can be read.
    let damaged = copy(image.path());
    change_segment(damaged.path(), |bytes| {
        bytes[SEGMENT_HEADER_LEN..frames[needed].start].fill(0xa5);
    });
    assert_eq!(names(&open(damaged.path())), numbered(8));
}

#[test]
fn a_log_of_an_earlier_build_is_read_and_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    (0..3).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    let image = copy(dir.path());
    change_segment(image.path(), |bytes| *bytes = without_salt(bytes));
    let again = open(image.path());
    assert_eq!(names(&again), numbered(3));
    again.submit_blocking(mkdir(3)).unwrap();
    let killed = copy(image.path());
    let log = fs::read(&segments(killed.path())[0]).unwrap();
    assert_eq!(log[8], 1, "a segment stays what it is");
    assert_eq!(names(&open(killed.path())), numbered(4));
    drop(again);
    assert_eq!(names(&open(image.path())), numbered(4));
    // There damage is no more passed over than before: a user may have stored the frame that is found.
    let image = half_stored();
    change_segment(image.path(), |bytes| {
        let damaged = frames(bytes)[1].start;
        *bytes = without_salt(bytes);
        bytes[damaged - 4 + FRAME_HEADER_LEN] ^= 1;
    });
    let error = open_error(image.path());
    assert!(matches!(error, OpenError::Log(LogError::Damaged { .. })), "{error}");
}

/// A first start that ends before the store is whole leaves a folder that the next one can use.
#[test]
fn a_store_that_was_not_made_to_its_end_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    assert!(!dir.path().join("new-store").exists());
    let image = copy(dir.path());
    for name in ["namespace.redb", "namespace.crc-0", "namespace.crc-1"] {
        let _ = fs::remove_file(image.path().join(name));
    }
    let unfinished = image.path().join("new-store");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("store"), b"redb").unwrap();
    assert_eq!(names(&open(image.path())), numbered(1));
    assert!(!unfinished.exists());
}
