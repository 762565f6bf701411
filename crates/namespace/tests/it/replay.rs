//! Calls that come again, and what need not be in the log.

use crate::support::{Fs, create, root};
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::lease::RenewLease;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::{CallId, Caller, Command, Entry, Outcome, evaluate};

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

fn cache_len(fs: &Fs) -> usize {
    use cairn_namespace::store::{StoreRead, Table};
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
