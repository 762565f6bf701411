//! Logs that a crash, a disk or a user has put something wrong into, and those of earlier builds.

use crate::journal::{
    SEGMENT_HEADER_LEN, copy, entry, frames, mkdir, names, numbered, open, open_error, open_with,
    options, segments,
};
use cairn_codec::crc::crc32c;
use cairn_master::Submission;
use cairn_namenode::journal::offline::check_folder;
use cairn_namenode::journal::{LogError, Namesystem, NamesystemOptions, OpenError};
use cairn_namespace::Entry;
use cairn_namespace::ops::xattr::{SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::store::conformance::dump;
use std::fs;
use std::path::Path;

const FRAME_HEADER_LEN: usize = 25;
/// Of a segment without a salt.
const FIRST_HEADER_LEN: usize = 28;

/// The command of an entry of the log, which is all that earlier builds wrote.
fn command(entry: &[u8]) -> &[u8] {
    let (version, rest) = (entry[0], &entry[1..]);
    if version == 1 {
        return entry;
    }
    let (mut len, mut at) = (0, 4);
    for shift in (0..).step_by(7) {
        len |= usize::from(rest[at] & 0x7f) << shift;
        at += 1;
        if rest[at - 1] < 0x80 {
            break;
        }
    }
    &rest[at..at + len]
}

/// The entries of a frame.
fn entries(frame: &[u8]) -> Vec<Vec<u8>> {
    let (head, payload) = frame.split_at(FRAME_HEADER_LEN);
    let whole = match head[24] & 2 {
        0 => payload.to_vec(),
        _ => lz4_flex::block::decompress_size_prepended(payload).unwrap(),
    };
    let (mut rest, mut found) = (&whole[..], Vec::new());
    while let Some((len, entries)) = rest.split_first_chunk() {
        let (entry, others) = entries.split_at(u32::from_le_bytes(*len) as usize);
        found.push(entry.to_vec());
        rest = others;
    }
    found
}

/// Says that a segment is of another version.
fn set_version(segment: &mut [u8], version: u32) {
    segment[8..12].copy_from_slice(&version.to_le_bytes());
    let crc = crc32c(0, &segment[..28]).to_le_bytes();
    segment[28..32].copy_from_slice(&crc);
}

/// A segment as builds wrote it that had commands only; the first of these had no salt.
fn of_version(version: u32, segment: &[u8]) -> Vec<u8> {
    let has_salt = version > 1;
    let mut old = segment[..if has_salt { 28 } else { 24 }].to_vec();
    let salt = has_salt.then(|| u32::from_le_bytes(*segment[24..].first_chunk().unwrap()));
    old[8..12].copy_from_slice(&version.to_le_bytes());
    old.extend_from_slice(&crc32c(0, &old).to_le_bytes());
    for range in frames(segment) {
        let (mut head, mut payload) = (segment[range.start..][..FRAME_HEADER_LEN].to_vec(), vec![]);
        for entry in entries(&segment[range]) {
            let command = command(&entry);
            payload.extend_from_slice(&(command.len() as u32).to_le_bytes());
            payload.extend_from_slice(command);
        }
        head[24] &= 1;
        head[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        let frame = [head, payload].concat();
        old.extend_from_slice(&frame[..4]);
        old.extend_from_slice(&crc32c(salt.unwrap_or_default(), &frame[8..]).to_le_bytes());
        old.extend_from_slice(&frame[8..]);
    }
    old
}

/// A whole frame of a later entry, as a user can make it up. Greater bytes would not stand in the log as they are, nor
/// would what can be compressed.
fn forged() -> Vec<u8> {
    let made_up = (0..128).map(|byte| {
        let payload = [&7u32.to_le_bytes()[..], &[byte, 3, 1, 4, 15, 92, 65]].concat();
        let mut behind_crc = (payload.len() as u32).to_le_bytes().to_vec();
        behind_crc.extend_from_slice(&[35, 89, 79, 32, 38, 46, 26, 43]);
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
    for version in [1, 2] {
        let image = copy(dir.path());
        change_segment(image.path(), |bytes| *bytes = of_version(version, bytes));
        let former = segments(image.path()).pop().unwrap();
        assert_eq!(check_folder(image.path(), 1 << 20).unwrap().problems, [""; 0]);
        let again = open(image.path());
        assert_eq!(names(&again), numbered(3));
        let all = |of: &Namesystem| of.read(|now| dump(now));
        assert_eq!(all(&again), all(&namesystem));
        again.submit_blocking(mkdir(3)).unwrap();
        let killed = copy(image.path());
        let log = fs::read(segments(killed.path()).pop().unwrap()).unwrap();
        assert_eq!(log[8], 4, "what is written now is of this build");
        assert_eq!(check_folder(killed.path(), 1 << 20).unwrap().problems, [""; 0]);
        assert_eq!(names(&open(killed.path())), numbered(4));
        drop(again);
        assert!(!former.exists(), "the next checkpoint has done with it");
        assert_eq!(names(&open(image.path())), numbered(4));
    }
    // Without a salt damage is no more passed over than before: a user may have stored the frame that is found.
    let image = half_stored();
    change_segment(image.path(), |bytes| {
        *bytes = of_version(1, bytes);
        let first = FIRST_HEADER_LEN;
        let payload_len = u32::from_le_bytes(*bytes[first + 8..].first_chunk().unwrap());
        let damaged = first + FRAME_HEADER_LEN + payload_len as usize;
        bytes[damaged + FRAME_HEADER_LEN] ^= 1;
    });
    let error = open_error(image.path());
    assert!(matches!(error, OpenError::Log(LogError::Damaged { .. })), "{error}");
}

/// The build that has begun it can be started again until then.
#[test]
fn a_log_of_version_3_stays_at_it_until_it_is_finalized() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    (0..3).for_each(|number| drop(namesystem.submit_blocking(mkdir(number)).unwrap()));
    assert!(namesystem.is_finalized(), "a new one has nothing to go back to");
    let image = copy(dir.path());
    change_segment(image.path(), |bytes| set_version(bytes, 3));
    let submit = |to: &Namesystem, number| {
        let Entry { command, .. } = mkdir(number);
        to.submit_blocking(Submission::own(command)).unwrap();
    };
    let versions = |dir: &Path| -> Vec<u8> {
        segments(dir).iter().map(|segment| fs::read(segment).unwrap()[8]).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in 3..6 {
        let again = open(image.path());
        assert!(!again.is_finalized());
        let now = again.clock().now();
        assert_eq!(now.wall_ms, now.elapsed_ms);
        runtime.block_on(again.roll_log()).unwrap();
        submit(&again, number);
        assert!(versions(image.path()).iter().all(|version| *version == 3));
        let last = fs::read(segments(image.path()).pop().unwrap()).unwrap();
        for entry in frames(&last).into_iter().flat_map(|frame| entries(&last[frame])) {
            assert_eq!((entry[0], command(&entry)[0]), (2, 1), "as that build writes it");
        }
    }
    let again = open(image.path());
    runtime.block_on(again.finalize()).unwrap();
    assert!(again.is_finalized());
    submit(&again, 6);
    let killed = copy(image.path());
    assert_eq!(versions(killed.path()).pop(), Some(4));
    assert_eq!(check_folder(killed.path(), 1 << 20).unwrap().problems, [""; 0]);
    let later = open(killed.path());
    assert!(later.is_finalized());
    assert_eq!(names(&later), numbered(7));
}

/// An empty segment of an earlier build is not mistaken for one of this build.
#[test]
fn an_empty_log_of_an_earlier_build_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    // The checkpoint at the end begins a new segment.
    let namesystem = open_with(dir.path(), NamesystemOptions { segment_len: 0, ..options() });
    namesystem.submit_blocking(mkdir(0)).unwrap();
    namesystem.close();
    let [log] = &segments(dir.path())[..] else { panic!("one is left") };
    let bytes = of_version(2, &fs::read(log).unwrap());
    assert_eq!(bytes.len(), SEGMENT_HEADER_LEN);
    fs::write(log, bytes).unwrap();
    let again = open(dir.path());
    again.submit_blocking(mkdir(1)).unwrap();
    let killed = copy(dir.path());
    let log = fs::read(segments(killed.path()).pop().unwrap()).unwrap();
    assert_eq!(log[8], 4);
    assert_eq!(names(&open(killed.path())), numbered(2));
}

#[test]
fn a_log_of_a_newer_build_is_refused_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    for is_empty in [false, true] {
        let image = copy(dir.path());
        change_segment(image.path(), |bytes| {
            set_version(bytes, 5);
            if is_empty {
                bytes.truncate(SEGMENT_HEADER_LEN);
            }
        });
        let log = &segments(image.path())[0];
        let before = fs::read(log).unwrap();
        let said = format!(
            "{}: a newer version of Cairn has written this log (format 5, this version knows up to 4); start that \
             version",
            log.display()
        );
        assert_eq!(open_error(image.path()).to_string(), said);
        assert_eq!(check_folder(image.path(), 1 << 20).unwrap().problems, [said]);
        assert_eq!(fs::read(log).unwrap(), before);
    }
}

fn remove_store(dir: &Path) {
    for name in ["namespace.redb", "namespace.crc-0", "namespace.crc-1"] {
        let _ = fs::remove_file(dir.join(name));
    }
}

/// A first start that ends before the store is whole leaves a folder that the next one can use.
#[test]
fn a_store_that_was_not_made_to_its_end_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open(dir.path());
    namesystem.submit_blocking(mkdir(0)).unwrap();
    assert!(!dir.path().join("new-store").exists());
    let image = copy(dir.path());
    remove_store(image.path());
    let unfinished = image.path().join("new-store");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("store"), b"redb").unwrap();
    let [problem] = &check_folder(image.path(), 1 << 20).unwrap().problems[..] else {
        panic!("that is all that is wrong")
    };
    assert!(problem.contains("a first start was cut short"), "{problem}");
    assert!(problem.contains("start the NameNode"), "{problem}");
    assert_eq!(names(&open(image.path())), numbered(1));
    assert!(!unfinished.exists());
    assert_eq!(check_folder(image.path(), 1 << 20).unwrap().problems, [""; 0]);
}

/// Where the log does not have everything, a start makes nothing of it.
#[test]
fn a_store_that_is_gone_and_has_what_the_log_has_not_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let namesystem = open_with(dir.path(), NamesystemOptions { segment_len: 0, ..options() });
    namesystem.submit_blocking(mkdir(0)).unwrap();
    namesystem.close();
    remove_store(dir.path());
    let problems = check_folder(dir.path(), 1 << 20).unwrap().problems;
    assert!(problems[0].ends_with("restore the namespace from backups"), "{problems:?}");
    let error = open_error(dir.path());
    assert!(matches!(error, OpenError::Log(LogError::Gap { .. })), "{error}");
}
