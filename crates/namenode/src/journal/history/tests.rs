use super::*;
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::events::{Event, MetadataChange};
use cairn_namespace::inode::{Directory, Kind};
use cairn_namespace::ops::xattr::{XAttrName, XAttrSpace};
use cairn_namespace::{Inode, InodeId};

const ID: u32 = 7;

fn unlink(sequence: u64, path_len: usize) -> Arc<EventBatch> {
    let event = Event::Unlink { path: "a".repeat(path_len), time_ms: sequence };
    Arc::new(EventBatch { sequence, events: vec![event] })
}

/// One event of each kind.
fn all_kinds(sequence: u64) -> Arc<EventBatch> {
    let path = || "/a".to_string();
    let acl = AclEntry { scope: AclScope::Access, kind: AclKind::User, name: None, permission: 7 };
    let inode = Inode {
        id: InodeId(16386),
        parent: InodeId::ROOT,
        name: "a".into(),
        owner: "o".into(),
        group: "g".into(),
        mode: 0o755,
        acl: vec![acl.clone()],
        mtime: 1,
        atime: 2,
        storage_policy: 0,
        kind: Kind::Directory(Directory::default()),
    };
    let name = XAttrName { space: XAttrSpace::User, name: "n".into() };
    let changes = [
        MetadataChange::Times { mtime: Some(1), atime: None },
        MetadataChange::Replication(3),
        MetadataChange::Owner { owner: Some("o".into()), group: None },
        MetadataChange::Mode(0o644),
        MetadataChange::Acl(vec![acl]),
        MetadataChange::XAttr { name, value: Some(vec![0, 200]), removed: true },
    ];
    let mut events = vec![
        Event::Create { path: path(), inode: Box::new(inode), overwrite: true },
        Event::Close { path: path(), len: Some(5), time_ms: 6 },
        Event::Append { path: path(), new_block: true },
        Event::Rename { from: path(), to: "/b".into(), time_ms: 7 },
        Event::Unlink { path: path(), time_ms: 8 },
        Event::Truncate { path: path(), len: 9, time_ms: 10 },
    ];
    events.extend(changes.map(|change| Event::Metadata { path: path(), change }));
    Arc::new(EventBatch { sequence, events })
}

fn read(history: &mut History, sequence: u64) -> Vec<u64> {
    let mut out = Vec::new();
    history.read(sequence, usize::MAX, &mut out).unwrap();
    out.iter().map(|batch| batch.sequence).collect()
}

#[test]
fn events_of_all_kinds_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::none(dir.path(), ID, 0);
    history.append(3, 9, &[all_kinds(4), unlink(9, 3)]).unwrap();
    history.append(10, 10, &[]).unwrap();
    let mut again = History::open(dir.path(), ID, 0, 10);
    for history in [&mut history, &mut again] {
        assert_eq!(history.covers(), Some((3, 11)));
        let mut out = Vec::new();
        assert_eq!(history.read(3, usize::MAX, &mut out).unwrap(), 10);
        assert!(out.iter().eq([&*all_kinds(4), &*unlink(9, 3)]));
        assert_eq!(history.read(3, 1, &mut out).unwrap(), 4, "one event is enough");
        assert!(history.read(2, 1, &mut out).is_err());
        assert!(history.read(11, 1, &mut out).is_err());
    }
    // Another file system's.
    assert_eq!(History::open(dir.path(), ID + 1, 0, 10).covers(), None);
    assert!(list(dir.path()).unwrap().is_empty());
}

/// Whatever is cut off or damaged, and wherever the store ends: what is told is what was written, up to there, or
/// nothing.
#[test]
fn damage_to_any_byte_and_every_cut_shorten_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::none(dir.path(), ID, 0);
    let path = segment_path(dir.path(), 1);
    let mut ends = Vec::new();
    for (first, last, batch) in [(1, 2, unlink(2, 3)), (3, 3, all_kinds(3)), (4, 6, unlink(4, 1))] {
        history.append(first, last, &[batch]).unwrap();
        ends.push((last, fs::metadata(&path).unwrap().len() as usize));
    }
    let whole = fs::read(&path).unwrap();
    let check = |bytes: &[u8], damage: usize, what: &str| {
        for (applied, end) in &ends {
            fs::write(&path, bytes).unwrap();
            let mut history = History::open(dir.path(), ID, 0, *applied);
            if damage < *end {
                assert_eq!(history.covers(), None, "{what} {damage}, store at {applied}");
                assert!(!path.exists());
                continue;
            }
            assert_eq!(history.covers(), Some((1, applied + 1)), "{what} {damage}");
            let wanted = [2, 3, 4].into_iter().filter(|sequence| sequence <= applied);
            assert!(read(&mut history, 1).into_iter().eq(wanted), "{what} {damage}");
            // It goes on there.
            history.append(applied + 1, applied + 1, &[unlink(applied + 1, 2)]).unwrap();
            let mut again = History::open(dir.path(), ID, 0, applied + 1);
            assert_eq!(read(&mut again, applied + 1), [applied + 1]);
        }
    };
    check(&whole, usize::MAX, "none");
    for len in 0..whole.len() {
        check(&whole[..len], len, "cut");
    }
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        check(&bad, at, "byte");
    }
    // A store that ends within a frame is not one that this history is of.
    fs::write(&path, &whole).unwrap();
    assert_eq!(History::open(dir.path(), ID, 0, 5).covers(), None);
}

/// Entries one by one, of a KiB each.
fn long(dir: &Path, count: u64) -> History {
    let mut history = History::none(dir, ID, 0);
    for sequence in 1..=count {
        history.append(sequence, sequence, &[unlink(sequence, 1 << 10)]).unwrap();
    }
    history
}

#[test]
fn the_oldest_segments_go_and_the_rest_is_read_from_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let history = long(dir.path(), 3000);
    let (first, next) = history.covers().unwrap();
    assert_eq!(next, 3001);
    assert!((1900..2200).contains(&first), "{first}");
    let len = |first| fs::metadata(segment_path(dir.path(), first)).unwrap().len();
    let segments = list(dir.path()).unwrap();
    assert!(segments.iter().map(|first| len(*first)).sum::<u64>() <= LIMIT_MIN);
    assert_eq!(segments[0], first);
    let again = History::open(dir.path(), ID, 0, 3000);
    assert_eq!(again.covers(), Some((first, 3001)));
    for mut history in [history, again] {
        for begin in (first..3001).step_by(61) {
            let (mut next, mut told) = (begin, Vec::new());
            while next < 3001 {
                let mut out = Vec::new();
                next = history.read(next, 40, &mut out).unwrap() + 1;
                told.extend(out.iter().map(|batch| batch.sequence));
                assert!(out.len() <= 40);
            }
            assert!(told.into_iter().eq(begin..3001), "from {begin}");
        }
    }
}

/// Damage that comes later is found by who reads it.
#[test]
fn damage_in_the_middle_is_never_told() {
    let dir = tempfile::tempdir().unwrap();
    drop(long(dir.path(), 300));
    let files = list(dir.path()).unwrap();
    assert!(files.len() > 3);
    for (index, first) in files.iter().enumerate() {
        for at in [0, 20, 28, 40, 60, 2000, 30_000] {
            let copy = tempfile::tempdir().unwrap();
            for first in &files {
                fs::copy(segment_path(dir.path(), *first), segment_path(copy.path(), *first))
                    .unwrap();
            }
            let mut history = History::open(copy.path(), ID, 0, 300);
            let path = segment_path(copy.path(), *first);
            let mut bytes = fs::read(&path).unwrap();
            let Some(byte) = bytes.get_mut(at) else { continue };
            *byte ^= 0x10;
            fs::write(&path, bytes).unwrap();
            let (mut next, mut told) = (1, Vec::new());
            while let Some((earliest, behind)) = history.covers() {
                next = next.max(earliest);
                if next == behind {
                    break;
                }
                let mut out = Vec::new();
                if let Ok(last) = history.read(next, 10, &mut out) {
                    next = last + 1;
                }
                told.extend(out.iter().map(|batch| batch.sequence));
            }
            let hit = 1 + (at.saturating_sub(28) / 1059) as u64 + first - 1;
            let behind = files.get(index + 1).copied().unwrap_or(301);
            let wanted = (1..hit).chain(behind..301);
            assert!(told.iter().copied().eq(wanted), "byte {at} from {first}: {told:?}");
        }
    }
}
