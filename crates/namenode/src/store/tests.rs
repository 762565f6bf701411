use super::tables::former;
use super::*;
use cairn_namespace::encoding::{Encode, Encoder};
use cairn_namespace::ops::cache_pool::RemoveCachePool;
use cairn_namespace::store::conformance;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{CallId, Caller, Entry, Outcome, Retries, inode};
use redb::{ReadableDatabase, TableError};
use std::ops::ControlFlow;

#[test]
fn conforms() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    conformance::check(&mut store.begin(1));
}

#[test]
fn snapshots_see_commits_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path, 1 << 20).unwrap();
    let before = store.snapshot();
    store.begin(1).put(Table::Meta, b"k", b"v").unwrap();
    assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap(), None);
    // The next group sees what is not shown yet.
    assert_eq!(store.begin(2).get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    store.commit(1, 7);
    assert_eq!(before.get(Table::Meta, b"k").unwrap(), None);
    let between = store.snapshot();
    assert_eq!(between.get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(store.applied(), 7);
    assert_eq!(store.waiting(), 1);
    store.begin(2).put(Table::Meta, b"k", b"w").unwrap();
    assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    store.commit(2, 7);
    store.write_out().unwrap();
    assert_eq!(store.waiting(), 0);
    assert_eq!(before.get(Table::Meta, b"k").unwrap(), None);
    assert_eq!(between.get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    drop((before, between, store));
    let store = Store::open(&path, 1 << 20).unwrap();
    assert_eq!(store.snapshot().get(Table::Meta, b"k").unwrap().as_deref(), Some(&b"w"[..]));
    assert_eq!(store.applied(), 7);
}

/// Work that can wait is told to when much came in while a checkpoint is written, and not before.
#[test]
fn a_store_falls_behind_while_it_is_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    store.set_aside();
    let mut batch = store.begin(1);
    for key in 0..200_000_u32 {
        assert!(!crate::journal::is_behind(&store), "{key}");
        batch.put(Table::Meta, &key.to_be_bytes(), b"").unwrap();
    }
    store.commit(1, 1);
    assert!(crate::journal::is_behind(&store));
    store.write_aside().unwrap();
    assert!(!crate::journal::is_behind(&store));
}

/// Directories and files that are kept decoded are those of the state that is read.
#[test]
fn what_is_kept_is_never_old() {
    check_kept(&inode::Kind::Directory(inode::Directory::default()));
    check_kept(&inode::Kind::File(inode::File {
        redundancy: inode::FileRedundancy::Replicated(3),
        block_size: 1 << 20,
        block_count: 0,
        len: 0,
        writer: None,
        short_appends: 0,
    }));
}

fn check_kept(kind: &inode::Kind) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    let make = |group: u64, id: u64, name: &str, mtime: u64| {
        let directory = Inode {
            id: InodeId(id),
            parent: InodeId::ROOT,
            name: name.to_string(),
            owner: String::new(),
            group: String::new(),
            mode: 0o755,
            acl: Vec::new(),
            mtime,
            atime: 0,
            storage_policy: 0,
            kind: kind.clone(),
        };
        let mut batch = store.begin(group);
        inode::put(&mut batch, &directory).unwrap();
        inode::link(&mut batch, &directory).unwrap();
        store.commit(group, group);
    };
    let mtime = |at: &Snapshot, name: &str| {
        // Once to look it up, once as it is kept.
        let found = [(); 2].map(|()| at.child(InodeId::ROOT, name).unwrap().map(|i| i.mtime));
        assert_eq!(found[0], found[1]);
        found[0]
    };
    make(1, 20, "a", 1);
    store.write_out().unwrap();
    let first = store.snapshot();
    assert_eq!(mtime(&first, "a"), Some(1));
    make(2, 20, "a", 2);
    let second = store.snapshot();
    assert_eq!((mtime(&first, "a"), mtime(&second, "a")), (Some(1), Some(2)));
    store.set_aside();
    make(3, 21, "b", 3);
    let third = store.snapshot();
    assert_eq!((mtime(&third, "a"), mtime(&third, "b")), (Some(2), Some(3)));
    assert_eq!(mtime(&second, "b"), None);
    assert!(store.write_aside().unwrap().is_some());
    let fourth = store.snapshot();
    assert_eq!((mtime(&fourth, "a"), mtime(&fourth, "b")), (Some(2), Some(3)));
    store.write_out().unwrap();
    inode::unlink(&mut store.begin(4), InodeId::ROOT, "a").unwrap();
    make(4, 22, "b", 4);
    let last = store.snapshot();
    assert_eq!((mtime(&last, "a"), mtime(&last, "b")), (None, Some(4)));
    store.write_out().unwrap();
    assert_eq!((mtime(&store.snapshot(), "a"), mtime(&fourth, "a")), (None, Some(2)));
    let all = [&first, &second, &third, &fourth, &last].map(|at| mtime(at, "b"));
    assert_eq!(all, [None, None, Some(3), Some(3), Some(4)]);
}

/// What the writer knows of the front of a queue stays right when something comes there.
#[test]
fn the_front_of_a_queue_is_not_looked_at_again_in_vain() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    let mut batch = store.begin(1);
    let front = |batch: &Batch, to: &[u8]| {
        scanned(batch, b"", to, 9).into_iter().map(|r| r.0).collect::<Vec<_>>()
    };
    batch.put(Table::Child, b"7", b"").unwrap();
    for to in [b"4", b"5", b"5", b"3"] {
        assert_eq!(front(&batch, to), Vec::<Vec<u8>>::new());
    }
    batch.put(Table::Child, b"2", b"").unwrap();
    batch.put(Table::Child, b"4", b"").unwrap();
    assert_eq!(front(&batch, b"3"), [b"2"]);
    assert_eq!(front(&batch, b"9"), [b"2", b"4", b"7"]);
    batch.delete(Table::Child, b"2").unwrap();
    assert_eq!(front(&batch, b"4"), Vec::<Vec<u8>>::new());
    assert_eq!(front(&batch, b"5"), [b"4"]);
    store.commit(1, 1);
    store.write_out().unwrap();
    let mut batch = store.begin(2);
    assert_eq!(front(&batch, b"5"), [b"4"]);
    batch.put(Table::Child, b"1", b"").unwrap();
    assert_eq!(front(&batch, b"5"), [b"1", b"4"]);
}

fn scanned(store: &dyn StoreRead, from: &[u8], to: &[u8], count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        if found.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.scan(Table::Child, from, to, &mut visit).unwrap();
    found
}

/// Changes, commits, snapshots and checkpoints in any order: everybody sees what a plain map would show.
#[test]
fn layer_and_file_are_one_store() {
    // All of it packed in memory, hardly any, and none; from the first record on, or as a start finds it.
    for cache_len in [1 << 20, 4 << 10, 0] {
        check_layer_and_file(cache_len, false);
        check_layer_and_file(cache_len, true);
    }
}

fn check_layer_and_file(cache_len: usize, is_there_before: bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut model = MemoryStore::new();
    if is_there_before {
        let store = Store::open(&path, cache_len).unwrap();
        let mut batch = store.begin(0);
        for key in (0..300_u16).filter(|key| key % 3 > 0) {
            batch.put(Table::Child, &key.to_be_bytes(), b"before").unwrap();
            model.put(Table::Child, &key.to_be_bytes(), b"before").unwrap();
        }
        store.commit(0, 0);
        store.write_out().unwrap();
    }
    let store = Store::open(&path, cache_len).unwrap();
    let mut seen: Vec<(Snapshot, MemoryStore)> = Vec::new();
    let mut state = 5_u64;
    let mut dice = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..300_u64 {
        let mut batch = store.begin(round + 1);
        for _ in 0..dice(40) {
            let key = (dice(300) as u16).to_be_bytes();
            if dice(3) == 0 {
                batch.delete(Table::Child, &key).unwrap();
                model.delete(Table::Child, &key).unwrap();
            } else {
                batch.put(Table::Child, &key, &round.to_be_bytes()).unwrap();
                model.put(Table::Child, &key, &round.to_be_bytes()).unwrap();
            }
        }
        assert_eq!(scanned(&batch, b"", b"", 0), scanned(&model, b"", b"", 0));
        // Most of a range goes, as from the front of a queue, and some comes back.
        if dice(4) == 0 {
            let (from, len) = (dice(300) as u16, dice(200) as u16);
            for key in from..from + len {
                batch.delete(Table::Child, &key.to_be_bytes()).unwrap();
                model.delete(Table::Child, &key.to_be_bytes()).unwrap();
            }
        }
        for _ in 0..4 {
            let (from, to) = ((dice(300) as u16).to_be_bytes(), (dice(300) as u16).to_be_bytes());
            assert_eq!(scanned(&batch, &from, &to, 1), scanned(&model, &from, &to, 1));
            let key = (dice(300) as u16).to_be_bytes();
            batch.put(Table::Child, &key, b"back").unwrap();
            model.put(Table::Child, &key, b"back").unwrap();
            assert_eq!(scanned(&batch, &from, b"", 2), scanned(&model, &from, b"", 2));
            batch.delete(Table::Child, &key).unwrap();
            model.delete(Table::Child, &key).unwrap();
        }
        store.commit(round + 1, round);
        match dice(40) {
            0 => store.write_out().unwrap(),
            1 | 2 => store.set_aside(),
            3 => assert!(store.write_aside().is_ok()),
            _ => {}
        }
        seen.push((store.snapshot(), model.clone()));
        if seen.len() > 8 {
            seen.remove(dice(8) as usize);
        }
        for (snapshot, model) in &seen {
            let (a, b) = (dice(300) as u16, dice(300) as u16);
            let (from, to, count) = (a.to_be_bytes(), b.to_be_bytes(), dice(30) as usize);
            assert_eq!(scanned(snapshot, &from, &to, count), scanned(model, &from, &to, count));
            assert_eq!(scanned(snapshot, &from, b"", count), scanned(model, &from, b"", count));
            let (found, known) =
                (snapshot.get(Table::Child, &from), model.get(Table::Child, &from));
            assert_eq!(found.unwrap(), known.unwrap());
        }
    }
}

/// What one group has changed is seen together, by whoever reads while others bring it to the file and into memory.
#[test]
fn readers_see_whole_groups_while_the_file_is_written() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    const KEYS: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    // A part of it has room in memory, which is taken by one after the other.
    for cache_len in [1 << 20, 24 << 10] {
        let store = Store::open(&path, cache_len).unwrap();
        let other = |key: u64| key + 100_000;
        let write = |group: u64, keys: std::ops::Range<u64>, step: usize| {
            let mut batch = store.begin(group);
            for key in keys.step_by(step) {
                for key in [key, other(key)] {
                    batch.put(Table::Inode, &key.to_be_bytes(), &group.to_be_bytes()).unwrap();
                }
            }
            store.commit(group, group);
        };
        write(1, 0..KEYS, 1);
        store.write_out().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..2_u64 {
                let (store, is_over) = (&store, &is_over);
                scope.spawn(move || {
                    let mut key = reader;
                    let end = Instant::now() + Duration::from_secs(60);
                    while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
                        key = (key * 7 + 11) % KEYS;
                        let seen = store.snapshot();
                        let get = |key: u64| seen.get(Table::Inode, &key.to_be_bytes()).unwrap();
                        assert!(get(key).is_some());
                        assert_eq!(get(key), get(other(key)), "{key}");
                        let values = |from: u64| {
                            let (mut values, to) = (Vec::new(), (from + 40).to_be_bytes());
                            let mut visit = |_: &[u8], value: &[u8]| {
                                values.push(value.to_vec());
                                ControlFlow::Continue(())
                            };
                            seen.scan(Table::Inode, &from.to_be_bytes(), &to, &mut visit).unwrap();
                            values
                        };
                        assert_eq!(values(key), values(other(key)), "from {key}");
                    }
                });
            }
            for group in 2..200_u64 {
                let from = (group * 37) % (KEYS - 300);
                write(group, from..from + 300, group as usize % 20 + 1);
                store.write_out().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// Records of files, their blocks and pages of directories that are kept, and blocks that were read ahead, are those of
/// the state that is read, whatever is changed, moved or removed, and whenever the file is written.
#[test]
fn records_and_pages_are_those_of_the_state_that_is_read() {
    use crate::ahead::Ahead;
    use cairn_master::Lookup;
    use cairn_namespace::block::{self, Block, BlockState, Position};
    use cairn_redundancy::BlockLookup;
    use cairn_stripe::{BlockId, GenerationStamp};

    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    let mut model = MemoryStore::new();
    let mut seen: Vec<(Snapshot, MemoryStore)> = Vec::new();
    let mut state = 9_u64;
    let mut dice = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let directories = [InodeId(20), InodeId(21)];
    let name = |number: u64| format!("name-{number}-{}", "x".repeat(number as usize * 3));
    fn find(store: &dyn StoreRead, parent: InodeId, name: &str) -> Option<Inode> {
        inode::child(store, parent, name).unwrap().map(|id| inode::expect(store, id).unwrap())
    }
    fn page(store: &dyn StoreRead, parent: InodeId) -> Option<(Vec<u8>, [InodeId; 2])> {
        let ids = inode::children(store, parent, None, 100).unwrap();
        let shown = ids.iter().map(|id| inode::expect(store, *id).unwrap());
        let bytes = shown.flat_map(|i| [i.id.0.to_be_bytes(), i.mtime.to_be_bytes()].concat());
        Some((bytes.collect(), [*ids.iter().min()?, *ids.iter().max()?]))
    }
    let (mut hits, mut next_id) = (0, 1000);
    for round in 1..1500_u64 {
        let mut batch = store.begin(round);
        for _ in 0..dice(4) {
            let (parent, number) = (directories[dice(2) as usize], name(dice(12)));
            let found = find(&model, parent, &number);
            let both: [&mut dyn StoreTxn; 2] = [&mut batch, &mut model];
            let (what, to) = (dice(5), (directories[dice(2) as usize], name(20 + dice(12))));
            for txn in both {
                match (&found, what) {
                    (None, _) => {
                        let id = InodeId(next_id);
                        let file = inode::File {
                            redundancy: inode::FileRedundancy::Replicated(3),
                            block_size: 1 << 20,
                            block_count: 1,
                            len: 0,
                            writer: None,
                            short_appends: 0,
                        };
                        let new = Inode {
                            id,
                            parent,
                            name: number.clone(),
                            owner: "o".to_string(),
                            group: "g".to_string(),
                            mode: 0o644,
                            acl: Vec::new(),
                            mtime: round,
                            atime: 0,
                            storage_policy: 0,
                            kind: inode::Kind::File(file),
                        };
                        let block = Block {
                            id: BlockId(id.0 as i64),
                            gs: GenerationStamp(1),
                            len: round,
                            file: id,
                            index: 0,
                            state: BlockState::Complete,
                            unit_crcs: vec![Some(7)],
                            group: None,
                            packed: None,
                            reopened_gs: None,
                        };
                        inode::put(txn, &new).unwrap();
                        inode::link(txn, &new).unwrap();
                        block::put(txn, &block).unwrap();
                        let position = Position { offset: 0, id: block.id };
                        block::put_position(txn, id, 0, position).unwrap();
                    }
                    (Some(file), 0) => {
                        inode::unlink(txn, parent, &number).unwrap();
                        inode::delete(txn, file.id).unwrap();
                        block::delete_position(txn, file.id, 0).unwrap();
                        block::delete(txn, BlockId(file.id.0 as i64)).unwrap();
                    }
                    (Some(file), 1) => {
                        let mut file = Inode { mtime: round, ..file.clone() };
                        if let inode::Kind::File(file) = &mut file.kind {
                            file.redundancy = inode::FileRedundancy::Replicated(1 + round as u16);
                        }
                        inode::put(txn, &file).unwrap();
                    }
                    (Some(file), 2) => {
                        let (_, block) = block::at(txn, file.id, 0).unwrap();
                        block::put(txn, &Block { len: round, ..block }).unwrap();
                    }
                    (Some(file), _) => {
                        if find(txn, to.0, &to.1).is_none() {
                            inode::unlink(txn, parent, &number).unwrap();
                            let (parent, name) = to.clone();
                            let moved = Inode { parent, name, ..file.clone() };
                            inode::put(txn, &moved).unwrap();
                            inode::link(txn, &moved).unwrap();
                        }
                    }
                }
            }
            next_id += 1;
        }
        store.commit(round, round);
        match dice(12) {
            0 => store.write_out().unwrap(),
            1 | 2 => store.set_aside(),
            3 | 4 => assert!(store.write_aside().is_ok()),
            _ => {}
        }
        seen.push((store.snapshot(), model.clone()));
        if seen.len() > 6 {
            seen.remove(dice(6) as usize);
        }
        let ids: Vec<BlockId> =
            (next_id.saturating_sub(40)..next_id).map(|id| BlockId(id as i64)).collect();
        for (before, _) in &seen {
            let ahead = Ahead::read(before, &ids).unwrap();
            let (now, model) = seen.last().unwrap();
            for id in &ids {
                let held = ahead.in_state(now);
                let (told, known) = (Lookup::with(now, &held), Lookup::new(model));
                assert_eq!(told.block(*id), known.block(*id));
            }
        }
        for (snapshot, model) in &seen {
            let (parent, name) = (directories[dice(2) as usize], name(dice(32)));
            let known = find(model, parent, &name);
            for _ in 0..2 {
                let mut shown = None;
                let is_there = snapshot
                    .look_up(parent, &name, &mut |inode| shown = Some((inode.id, inode.mtime)))
                    .unwrap();
                assert_eq!(is_there, shown.is_some());
                assert_eq!(shown, known.as_ref().map(|file| (file.id, file.mtime)));
                assert_eq!(snapshot.child(parent, &name).unwrap().as_deref(), known.as_ref());
                if let Some(file) = &known {
                    let told = snapshot.first_block(file.id).unwrap();
                    assert_eq!(told, block::at(model, file.id, 0).unwrap());
                }
            }
            let Some((bytes, [first, last])) = page(model, parent) else { continue };
            let key = parent.key().to_vec();
            match snapshot.listing(&key) {
                Some(kept) => {
                    assert_eq!(*kept, bytes);
                    hits += 1;
                }
                None => snapshot.keep_listing(key, (parent, first..=last), &bytes),
            }
        }
    }
    assert!(hits > 100, "{hits}");
}

/// What is kept has a bound, and what is asked for again and again stays.
#[test]
fn records_are_kept_within_their_bound() {
    let records = Records::new(64 << 10, 1);
    let key = |number: u64| [&20_u64.to_be_bytes()[..], format!("f{number}").as_bytes()].concat();
    let is_kept = |number: u64| records.file(0, &key(number), <[u8]>::len).is_some();
    for number in 0..10_000 {
        records.keep_file(0, &key(number), &[7; 80]);
        // The part of each has room for more than these.
        assert!((0..8.min(number)).all(is_kept), "{number}");
    }
    let kept = (0..10_000).filter(|number| is_kept(*number)).count();
    assert!((64..(64 << 10) / 80).contains(&kept), "{kept}");
    records.keep_file(0, b"a directory's id and a name", &[7; 60 << 10]);
    assert_eq!(records.file(0, b"a directory's id and a name", |_| ()), None);
}

/// Whoever an inode is shown to may wait for others, who in turn wait for a change.
#[test]
fn the_store_can_be_changed_while_an_inode_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
    let directory = Inode {
        id: InodeId(20),
        parent: InodeId::ROOT,
        name: "a".to_string(),
        owner: String::new(),
        group: String::new(),
        mode: 0o755,
        acl: Vec::new(),
        mtime: 0,
        atime: 0,
        storage_policy: 0,
        kind: inode::Kind::Directory(inode::Directory::default()),
    };
    let mut batch = store.begin(1);
    inode::put(&mut batch, &directory).unwrap();
    inode::link(&mut batch, &directory).unwrap();
    store.commit(1, 1);
    for state in ["in the layer", "in the file"] {
        let (changed, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut look = |_: &InodeRef<'_>| {
                let (store, changed) = (&store, changed.clone());
                scope.spawn(move || {
                    store.begin(2).put(Table::Inode, b"other", b"").unwrap();
                    changed.send(()).unwrap();
                });
                let done = wait.recv_timeout(std::time::Duration::from_secs(20));
                assert!(done.is_ok(), "{state}");
            };
            assert!(store.snapshot().look_up(InodeId::ROOT, "a", &mut look).unwrap());
        });
        store.commit(2, 2);
        store.write_out().unwrap();
    }
}

/// A store of an older build, which had each outcome in a record of its own, is taken over: once, and for good.
#[test]
fn outcomes_in_the_form_of_older_builds_are_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let outcomes = [
        (CallId { client_id: [7; 16], call_id: 3 }, 9000_u64, Outcome::Flag(true)),
        (CallId { client_id: [7; 16], call_id: -2 }, 8000, Outcome::SnapshotCreated("/s".into())),
    ];
    let store = Store::open(&path, 1 << 20).unwrap();
    let mut batch = store.begin(1);
    batch.put(Table::Inode, b"before", b"1").unwrap();
    store.commit(1, 5);
    store.write_out().unwrap();
    let mut txn = store.database.lock().unwrap().as_ref().unwrap().begin_write().unwrap();
    // As the file itself is written: a start then needs no look at all of it.
    txn.set_quick_repair(true);
    for (call, expires_ms, outcome) in &outcomes {
        let key = [&call.client_id[..], &call.call_id.to_be_bytes()].concat();
        let mut record = Encoder::new();
        record.byte(1);
        expires_ms.encode(&mut record);
        outcome.encode(&mut record);
        let age = [&expires_ms.to_be_bytes()[..], &key].concat();
        let mut table = txn.open_table(former("retry")).unwrap();
        table.insert(&key[..], &record.into_bytes()[..]).unwrap();
        let mut ages = txn.open_table(former("retry-age")).unwrap();
        ages.insert(&age[..], &[][..]).unwrap();
    }
    txn.commit().unwrap();
    drop(store);
    for start in 0..2 {
        let store = Store::open(&path, 1 << 20).unwrap();
        let retries = Retries::load(&store.snapshot()).unwrap();
        assert_eq!(retries.len(), 2, "start {start}");
        for (call, expires_ms, outcome) in &outcomes {
            let again = Entry {
                now_ms: expires_ms - 1,
                elapsed_ms: expires_ms - 1,
                caller: Caller::system(),
                call: Some(*call),
                command: RemoveCachePool { name: "p".into() }.into(),
            };
            assert_eq!(retries.find(&again).unwrap().as_ref(), Some(outcome));
            assert!(!retries.knows(*call, *expires_ms).unwrap());
        }
        let value = store.snapshot().get(Table::Inode, b"before").unwrap();
        assert_eq!((value.as_deref(), store.applied()), (Some(&b"1"[..]), 5));
        let tables = store.database.lock().unwrap().as_ref().unwrap().begin_read().unwrap();
        assert!(matches!(
            tables.open_table(former("retry")),
            Err(TableError::TableDoesNotExist(_))
        ));
    }
}
