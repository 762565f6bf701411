//! Calls that come again, and what need not be in the log.

use crate::support::{Fs, create, root};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::lease::RenewLease;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::store::{StoreRead, StoreTxn, Table};
use cairn_namespace::{CallId, Caller, Command, Entry, Outcome, Settings, evaluate};

fn call(call_id: i32) -> Option<CallId> {
    Some(CallId { client_id: [1; 16], call_id })
}

#[test]
fn a_repeated_call_gets_its_first_outcome() {
    let mut fs = Fs::new();
    fs.write("/f", &[5]);
    let delete = Command::from(Delete { path: "/f".into(), recursive: false });
    let first = fs.submit(root(), call(1), delete.clone()).unwrap();
    assert!(matches!(&first, Outcome::Removed { done: true, blocks, .. } if blocks.len() == 1));
    let before = fs.store.clone();
    let again = fs.submit(root(), call(1), delete.clone()).unwrap();
    // The blocks were handed out the first time.
    assert_eq!(again, Outcome::Removed { done: true, blocks: vec![], more: false });
    assert!(fs.store == before);
    let other = fs.submit(root(), call(2), delete).unwrap();
    assert!(matches!(other, Outcome::Removed { done: false, .. }));

    let Outcome::Created { status, .. } = fs.submit(root(), call(3), create("/g").into()).unwrap()
    else {
        panic!()
    };
    let again = fs.submit(root(), call(3), create("/g").into()).unwrap();
    assert_eq!(again, Outcome::Created { status, removed: vec![] });
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
    let kept = |fs: &Fs| format!("{:?}", fs.store).matches("RetryAge").count();
    for id in 0..100 {
        fs.now_ms += 600_000;
        fs.submit(root(), call(id), rename("/e", "/e")).unwrap();
    }
    assert_eq!(kept(&fs), 1);
    assert_eq!(cache_len(&fs), 1);
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
        assert_eq!(cache_len(&fs), 3.min(id as usize));
    }
    assert_eq!([3, 4, 5].map(|id| run(&mut fs, id)), [true; 3]);
    // They are carried out anew, and what was oldest makes room.
    assert_eq!([1, 3].map(|id| run(&mut fs, id)), [false; 2]);
    assert_eq!([5, 1, 3].map(|id| run(&mut fs, id)), [true, false, false]);
    assert_eq!(cache_len(&fs), 3);
    // A lower bound is reached with the calls that come.
    fs.ok(Configure { settings: Box::new(settings(0)) });
    for id in 10..30 {
        run(&mut fs, id);
    }
    assert_eq!(cache_len(&fs), 23);
    fs.ok(Configure { settings: Box::new(settings(4)) });
    let lens = (30..38).map(|id| {
        run(&mut fs, id);
        cache_len(&fs)
    });
    assert_eq!(lens.collect::<Vec<_>>(), [20, 17, 14, 11, 8, 5, 4, 4]);
    // What expires is not counted any more either.
    fs.now_ms += 600_001;
    for (id, len) in [(40, 1), (41, 2), (42, 3), (43, 4), (44, 4)] {
        run(&mut fs, id);
        assert_eq!(cache_len(&fs), len);
    }
}

/// Stores of before have outcomes that nobody counted.
#[test]
fn outcomes_that_are_not_counted_go_first() {
    let mut fs = Fs::with(Settings { retry_entries_max: 2, ..Settings::default() });
    for id in 1..=3_u8 {
        let key = [&[9; 16][..], &[0, 0, 0, id]].concat();
        let age = [&(1000 + u64::from(id)).to_be_bytes()[..], &key].concat();
        fs.store.put(Table::Retry, &key, b"").unwrap();
        fs.store.put(Table::RetryAge, &age, b"").unwrap();
    }
    fs.now_ms = 0;
    for (id, len) in [(1, 4), (2, 5), (3, 2), (4, 2), (5, 2)] {
        let nothing = Delete { path: "/none".into(), recursive: false };
        fs.submit(root(), call(id), nothing.into()).unwrap();
        assert_eq!(cache_len(&fs), len, "{id}");
    }
}

fn cache_len(fs: &Fs) -> usize {
    let mut count = 0;
    fs.store
        .scan(Table::Retry, &[], &[], &mut |_, _| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    count
}

#[test]
fn what_changes_nothing_need_not_be_logged() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    let nothing = |command: Command| {
        let entry = Entry { now_ms: fs.now_ms, caller: Caller::system(), call: None, command };
        evaluate(&fs.store, &entry).unwrap().1.is_empty()
    };
    assert!(nothing(Mkdirs { path: "/d".into(), mode: 0o700.into(), create_parent: true }.into()));
    assert!(nothing(RenewLease { holder: "nobody".into() }.into()));
    assert!(nothing(SetPermission { path: "/d".into(), mode: 0o755 }.into()));
    assert!(!nothing(SetPermission { path: "/d".into(), mode: 0o700 }.into()));
}
