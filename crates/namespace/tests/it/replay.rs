//! Calls that come again, and what need not be in the log.

use crate::support::{Fs, create, root};
use cairn_namespace::encoding::{Decode, Decoder, Encode, Encoder};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::lease::RenewLease;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreRead, StoreTxn, Table};
use cairn_namespace::{CallId, Caller, Command, Entry, Outcome, Retries, Settings, evaluate};
use std::ops::ControlFlow;

fn call(call_id: i32) -> Option<CallId> {
    Some(CallId { client_id: [1; 16], call_id })
}

#[test]
fn a_repeated_call_gets_its_first_outcome() {
    let mut fs = Fs::new();
    fs.write("/f", &[5]);
    let delete = Command::from(Delete { path: "/f".into(), recursive: false });
    let first = fs.submit(root(), call(1), delete.clone()).unwrap();
    assert_eq!(first, Outcome::Removed { done: true, more: false });
    assert_eq!(fs.removed.len(), 1);
    let before = fs.store.clone();
    let again = fs.submit(root(), call(1), delete.clone()).unwrap();
    assert_eq!(again, first);
    // What became of blocks was told the first time.
    assert_eq!(fs.effects, []);
    assert!(fs.store == before);
    let other = fs.submit(root(), call(2), delete).unwrap();
    assert!(matches!(other, Outcome::Removed { done: false, .. }));

    let Outcome::Created { status } = fs.submit(root(), call(3), create("/g").into()).unwrap()
    else {
        panic!()
    };
    let again = fs.submit(root(), call(3), create("/g").into()).unwrap();
    assert_eq!(again, Outcome::Created { status });
}

#[test]
fn a_refused_call_is_tried_anew() {
    let mut fs = Fs::new();
    fs.mkdirs("/g");
    let create = Command::from(create("/g"));
    fs.submit(root(), call(1), create.clone()).unwrap_err();
    fs.delete("/g");
    fs.submit(root(), call(1), create).unwrap();
}

#[test]
fn outcomes_are_forgotten_after_their_time() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    let rename = |src: &str, dst: &str| Command::from(Rename { src: src.into(), dst: dst.into() });
    fs.submit(root(), call(1), rename("/d", "/e")).unwrap();
    fs.now_ms += 599_990;
    let kept = fs.submit(root(), call(1), rename("/d", "/e")).unwrap();
    assert_eq!(kept, Outcome::Flag(true));
    fs.now_ms += 20;
    let anew = fs.submit(root(), call(1), rename("/d", "/e")).unwrap();
    assert_eq!(anew, Outcome::Flag(false));
    // The cache does not grow beyond the calls of its time.
    for id in 0..100 {
        fs.now_ms += 600_000;
        fs.submit(root(), call(id), rename("/e", "/e")).unwrap();
    }
    assert_eq!(fs.retries.len(), 1);
}

#[test]
fn the_oldest_outcomes_go_when_there_are_too_many() {
    let settings = |most| Settings { retry_entries_max: most, ..Settings::default() };
    let mut fs = Fs::with(settings(3));
    let delete = |name: i32| Command::from(Delete { path: format!("/{name}"), recursive: false });
    let run = |fs: &mut Fs, id: i32| {
        let outcome = fs.submit(root(), call(id), delete(id)).unwrap();
        matches!(outcome, Outcome::Removed { done: true, .. })
    };
    for id in 1..=5 {
        fs.mkdirs(&format!("/{id}"));
        assert!(run(&mut fs, id));
        assert_eq!(fs.retries.len(), 3.min(id as u64));
    }
    assert_eq!([3, 4, 5].map(|id| run(&mut fs, id)), [true; 3]);
    // They are carried out anew, and what was oldest makes room.
    assert_eq!([1, 3].map(|id| run(&mut fs, id)), [false; 2]);
    assert_eq!([5, 1, 3].map(|id| run(&mut fs, id)), [true, false, false]);
    assert_eq!(fs.retries.len(), 3);
    // A lower bound is reached with the calls that come.
    fs.ok(Configure { settings: Box::new(settings(0)) });
    for id in 10..30 {
        run(&mut fs, id);
    }
    assert_eq!(fs.retries.len(), 23);
    fs.ok(Configure { settings: Box::new(settings(4)) });
    let lens = (30..38).map(|id| {
        run(&mut fs, id);
        fs.retries.len()
    });
    assert_eq!(lens.collect::<Vec<_>>(), [20, 17, 14, 11, 8, 5, 4, 4]);
    // What expires is not counted any more either.
    fs.now_ms += 600_001;
    for (id, len) in [(40, 1), (41, 2), (42, 3), (43, 4), (44, 4)] {
        run(&mut fs, id);
        assert_eq!(fs.retries.len(), len);
    }
}

/// The outcomes as a restart finds them in the store.
fn reopened(retries: &mut Retries, store: &mut MemoryStore) -> Retries {
    for (key, record) in retries.save() {
        match record {
            Some(record) => store.put(Table::Outcome, &key, &record).unwrap(),
            None => store.delete(Table::Outcome, &key).unwrap(),
        }
    }
    Retries::load(store).unwrap()
}

fn deletion(id: i32) -> Entry {
    let path = format!("/{}", "n".repeat(id as usize % 50 + 1));
    let command = Delete { path, recursive: false }.into();
    Entry {
        now_ms: 1000 + id as u64,
        elapsed_ms: 1000 + id as u64,
        caller: root(),
        call: call(id),
        command,
    }
}

/// Outcomes come and go; whenever the store is brought up to date, a restart finds those that are left.
#[test]
fn a_restart_finds_the_outcomes_that_are_kept() {
    for most in [1, 7, 3000] {
        let settings = Settings { retry_entries_max: most, ..Settings::default() };
        let mut fs = Fs::with(settings.clone());
        let mut retries = Retries::default();
        for id in 0..7000 {
            let outcome = Outcome::Removed { done: id % 3 == 0, more: false };
            retries.remember(&deletion(id), &settings, &outcome).unwrap();
            if id % 997 != 0 && id != 6999 {
                continue;
            }
            let found = reopened(&mut retries, &mut fs.store);
            assert_eq!(found.len(), retries.len());
            for id in 0..=id {
                let wanted = retries.find(&deletion(id)).unwrap();
                assert_eq!(found.find(&deletion(id)).unwrap(), wanted, "{id} of {most}");
            }
            if id % 2 == 0 {
                retries = found;
            }
        }
        // As many are known as there may be, and the store has little more than those.
        let known = (0..7000).filter(|id| retries.find(&deletion(*id)).unwrap().is_some());
        assert_eq!(known.count() as u64, most.min(7000));
        let mut len = 0;
        let visit = &mut |_: &[u8], value: &[u8]| {
            len += value.len();
            ControlFlow::Continue(())
        };
        fs.store.scan(Table::Outcome, &[], &[], visit).unwrap();
        assert!(len < 80_000 + 40 * most as usize, "{len} bytes for {most}");
    }
}

/// Older builds had a record for each.
#[test]
fn outcomes_of_older_builds_are_found() {
    let key = |id: u8| [&[1; 16][..], &[0, 0, 0, id]].concat();
    // Version, time of expiry, outcome: a flag.
    let records = [2, 1].map(|id| (key(id), vec![1, 100 + id, 2, id - 1]));
    let mut retries = Retries::from_former(&records).unwrap();
    let found = reopened(&mut retries, &mut MemoryStore::new());
    let at =
        |id, now_ms| found.find(&Entry { now_ms, elapsed_ms: now_ms, ..deletion(id) }).unwrap();
    assert_eq!(at(1, 100), Some(Outcome::Flag(false)));
    assert_eq!(at(2, 101), Some(Outcome::Flag(true)));
    assert_eq!(at(1, 101), None);
    assert!(Retries::from_former(&[(vec![1; 19], vec![1, 9, 1])]).is_err());
}

/// What older builds kept of a call: outcomes named blocks as well.
fn former_outcomes() -> Vec<(Vec<u8>, Outcome)> {
    let mut fs = Fs::new();
    let created = fs.ok(create("/f"));
    let mut bytes = Encoder::new();
    created.encode(&mut bytes);
    let [_tag, status @ ..] = &bytes.into_bytes()[..] else { panic!() };
    // The block at stamp 1001 with 5 bytes, third of file 16386, under recovery since 300 ms for stamp 1002, a CRC of
    // its first unit only; in 3 copies; for stamp 1002.
    let block = [14, 0xe9, 0x07, 5, 0x82, 0x80, 0x01, 2, 2, 0xea, 0x07, 0xac, 0x02, 2, 1, 9, 0];
    let work = [&block[..], &[1, 3, 0xea, 0x07]].concat();
    let removed = |done, more| Outcome::Removed { done, more };
    vec![
        ([&[3], status, &[0]].concat(), created),
        (vec![6, 1, 0, 0], removed(true, false)),
        (vec![6, 0, 0, 0], removed(false, false)),
        (vec![6, 1, 0, 1], removed(true, true)),
        (vec![8, 1, 0, 0], Outcome::Recovery { closed: true }),
        (vec![8, 0, 0, 0], Outcome::Recovery { closed: false }),
        ([&[8, 0, 1], &work[..], &[0]].concat(), Outcome::Recovery { closed: false }),
    ]
}

#[test]
fn outcomes_of_older_builds_that_named_blocks_are_read() {
    for (bytes, want) in former_outcomes() {
        let mut input = Decoder::new(&bytes);
        assert_eq!(Outcome::decode(&mut input), Ok(want.clone()), "{bytes:?}");
        input.finish().unwrap();
        // They are written in the new form only.
        let mut again = Encoder::new();
        want.encode(&mut again);
        assert_ne!(again.into_bytes()[0], bytes[0]);
        for len in 0..bytes.len() {
            assert!(
                Outcome::decode(&mut Decoder::new(&bytes[..len])).is_err(),
                "{len} of {bytes:?}"
            );
        }
    }
    // None were left when an outcome was kept.
    Outcome::decode(&mut Decoder::new(&[6, 1, 1, 14, 0xe9, 0x07, 5, 1, 3, 0])).unwrap_err();
    Outcome::decode(&mut Decoder::new(&[8, 1, 0, 1, 14, 0xe9, 0x07, 5, 1, 3])).unwrap_err();
}

/// Both where each had a record of its own, and where they were in batches.
#[test]
fn kept_outcomes_of_older_builds_that_named_blocks_are_found() {
    let former = former_outcomes();
    let key = |at: usize| [&[1; 16][..], &(at as i32).to_be_bytes()].concat();
    let records: Vec<_> = (0..)
        .zip(&former)
        .map(|(at, (bytes, _))| (key(at), [&[1, 100][..], &bytes[..]].concat()))
        .collect();
    let mut batch = vec![1];
    for (at, (bytes, _)) in former.iter().enumerate() {
        let mut kept = Encoder::new();
        kept.raw(&key(at));
        kept.unsigned(100);
        kept.bytes(bytes);
        batch.extend(kept.into_bytes());
    }
    let mut store = MemoryStore::new();
    store.put(Table::Outcome, &7_u64.to_be_bytes(), &batch).unwrap();
    let of_records = Retries::from_former(&records).unwrap();
    let of_batches = Retries::load(&store).unwrap();
    for (mut retries, mut store) in [(of_records, MemoryStore::new()), (of_batches, store)] {
        assert_eq!(retries.len(), former.len() as u64);
        let found = reopened(&mut retries, &mut store);
        for (at, (_, want)) in (0..).zip(&former) {
            let entry = Entry { now_ms: 99, elapsed_ms: 99, call: call(at), ..deletion(1) };
            assert_eq!(retries.find(&entry).unwrap().as_ref(), Some(want));
            assert_eq!(found.find(&entry).unwrap().as_ref(), Some(want), "after a restart");
        }
    }
}

#[test]
fn damaged_outcomes_are_told() {
    let mut retries = Retries::default();
    retries.remember(&deletion(1), &Settings::default(), &Outcome::Done).unwrap();
    let (key, record) = retries.save().pop().unwrap();
    let record = record.unwrap();
    let load = |key: &[u8], record: &[u8]| {
        let mut store = MemoryStore::new();
        store.put(Table::Outcome, key, record).unwrap();
        Retries::load(&store)
    };
    assert_eq!(load(&key, &record).unwrap().len(), 1);
    for len in (0..record.len()).filter(|len| *len != 1) {
        load(&key, &record[..len]).unwrap_err();
    }
    load(&key[1..], &record).unwrap_err();
    load(&key, &[&[9], &record[1..]].concat()).unwrap_err();
}

#[test]
fn what_changes_nothing_need_not_be_logged() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    let nothing = |command: Command| {
        let entry = Entry {
            now_ms: fs.now_ms,
            elapsed_ms: fs.now_ms,
            caller: Caller::system(),
            call: None,
            command,
        };
        evaluate(&fs.store, &entry).unwrap().changes.is_empty()
    };
    assert!(nothing(Mkdirs { path: "/d".into(), mode: 0o700.into(), create_parent: true }.into()));
    assert!(nothing(RenewLease { holder: "nobody".into() }.into()));
    assert!(nothing(SetPermission { path: "/d".into(), mode: 0o755 }.into()));
    assert!(!nothing(SetPermission { path: "/d".into(), mode: 0o700 }.into()));
}
