//! Leases: expiry, take-over, recovery.

use crate::support::{Fs, add_block, complete, create, root, said};
use cairn_namespace::Settings;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::{
    LastBlocks, RecoverLease, ReleaseLease, RenewAllLeases, RenewLease,
};
use cairn_namespace::query;
use cairn_namespace::{BlockRef, BlockState, CallId, Effect, NamespaceError, Outcome};

const LOCATED: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: false,
    last_has_locations: true,
    seen: None,
};
const SOFT_MS: u64 = 60_000;
const HARD_MS: u64 = 20 * 60_000;

fn recover(path: &str, replicas: LastBlocks) -> RecoverLease {
    RecoverLease { path: path.into(), holder: "other".into(), replicas }
}

/// An append to `/f` by its holder, at the end of its last block.
fn append_to_f() -> Append {
    Append {
        path: "/f".into(),
        holder: "client".into(),
        client_machine: String::new(),
        new_block: false,
        replicas: LastBlocks { last_min_replicated: true, ..LOCATED },
    }
}

#[test]
fn silent_holders_expire_the_oldest_first() {
    let mut fs = Fs::new();
    let first = fs.create("/a");
    fs.ok(Create { holder: "second".into(), ..create("/b") });
    fs.now_ms += HARD_MS;
    fs.ok(RenewLease { holder: "nobody".into() });
    let expired = query::expired_leases(&fs.store, fs.now_ms + 10, None, 10).unwrap();
    let holders: Vec<&str> = expired.iter().map(|lease| lease.holder.as_str()).collect();
    assert_eq!((holders, expired[0].file), (vec!["client", "second"], first));
    fs.ok(RenewLease { holder: "client".into() });
    let expired = query::expired_leases(&fs.store, fs.now_ms + 10, None, 10).unwrap();
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].holder, "second");
    fs.ok(RenewAllLeases {});
    assert!(query::expired_leases(&fs.store, fs.now_ms + 10, None, 10).unwrap().is_empty());
    let later = fs.now_ms + HARD_MS + 10;
    assert_eq!(query::expired_leases(&fs.store, later, None, 10).unwrap().len(), 2);
    fs.complete("/a", None);
    assert_eq!(query::expired_leases(&fs.store, later, None, 10).unwrap().len(), 1);
}

/// However far the clock is set, in which direction, and however often.
#[test]
fn a_wall_clock_that_is_set_ends_no_lease_and_keeps_none_and_forgets_no_answer() {
    const DAY_MS: i64 = 86_400_000;
    let mut fs = Fs::new();
    fs.now_ms += 10 * DAY_MS as u64;
    let call = Some(CallId { client_id: [1; 16], call_id: 1 });
    let created = fs.submit(root(), call, create("/a").into()).unwrap();
    for ahead_ms in [DAY_MS, -DAY_MS, 0, 5 * DAY_MS] {
        fs.ahead_ms = ahead_ms;
        fs.now_ms += SOFT_MS / 2;
        let expired = |fs: &Fs, ms| query::expired_leases(&fs.store, fs.now_ms + ms, None, 9);
        assert_eq!(expired(&fs, 0).unwrap(), []);
        let refused = fs.err(Append {
            path: "/a".into(),
            holder: "other".into(),
            client_machine: "there".into(),
            new_block: false,
            replicas: LOCATED,
        });
        assert!(matches!(refused, NamespaceError::AlreadyBeingCreated(_)), "{refused}");
        assert_eq!(fs.submit(root(), call, create("/a").into()).unwrap(), created);
        fs.ok(RenewLease { holder: "client".into() });
        assert_eq!(expired(&fs, HARD_MS).unwrap(), []);
        assert_eq!(expired(&fs, HARD_MS + 1).unwrap().len(), 1);
    }
    fs.now_ms += SOFT_MS + 1;
    fs.ok(recover("/a", LOCATED));
    fs.ahead_ms = -DAY_MS;
    let again = fs.create("/b");
    let made = query::get_file_info(&fs.store, &root(), "/b").unwrap().unwrap();
    assert_eq!((made.inode.id, made.inode.mtime), (again, fs.now_ms - DAY_MS as u64));
}

#[test]
fn a_refusal_tells_what_its_holder_has_open() {
    let mut fs = Fs::new();
    let file = fs.create("/a");
    fs.create("/b");
    fs.ok(Create { holder: "second".into(), ..create("/c") });
    fs.complete("/b", None);
    let mut refused = |path: &str, holder: &str| {
        said(&fs.err(Complete { holder: holder.into(), ..complete(path, None) })).1
    };
    let second = "[Lease.  Holder: second, pending creates: 1]";
    assert_eq!(
        refused("/a", "second"),
        format!("Client (=second) is not the lease owner (=client: /a (inode {file}) {second}")
    );
    assert_eq!(
        refused("/a", "idle"),
        format!(
            "Client (=idle) is not the lease owner (=client: /a (inode {file}) Holder idle does not \
             have any open files."
        )
    );
    assert_eq!(
        refused("/none", "second"),
        format!("File does not exist: /none (inode 0) {second}")
    );
}

#[test]
fn an_open_file_is_taken_over_after_the_soft_limit() {
    let mut fs = Fs::new();
    fs.create("/f");
    let append = Append {
        path: "/f".into(),
        holder: "other".into(),
        client_machine: "there".into(),
        new_block: false,
        replicas: LOCATED,
    };
    assert_eq!(
        said(&fs.err(append.clone())),
        (
            "AlreadyBeingCreatedException".into(),
            "Failed to APPEND_FILE /f for other on there because this file lease is currently owned \
             by client on host"
                .into()
        )
    );
    fs.now_ms += SOFT_MS;
    assert!(matches!(fs.ok(append.clone()), Outcome::Appended { .. }));
    let mut block = add_block("/f", None);
    assert_eq!(said(&fs.err(block.clone())).0, "LeaseExpiredException");
    block.holder = "other".into();
    fs.ok(block);
    fs.now_ms += SOFT_MS + 1;
    let mut third = append;
    third.holder = "third".into();
    assert_eq!(fs.ok(third.clone()), Outcome::Recovery { closed: false });
    let work = fs.ordered().unwrap();
    assert!(work.recovery_gs > work.block.gs);
    assert_eq!(said(&fs.err(third)).0, "RecoveryInProgressException");
}

#[test]
fn recovery_closes_the_file_at_the_recovered_length() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    let work = fs.ordered().unwrap();
    // Asking again does not disturb the recovery that runs, until it has taken too long.
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    assert_eq!(fs.effects, []);
    let commit = CommitBlockSynchronization {
        block: block.reference(),
        new_gs: work.recovery_gs,
        new_len: 4321,
        close_file: true,
        delete_block: DropBlock::No,
    };
    let stale = CommitBlockSynchronization { new_gs: work.recovery_gs.next(), ..commit.clone() };
    assert!(said(&fs.err(stale)).1.contains("does not match current recovery id"));
    fs.ok(commit.clone());
    fs.ok(commit);
    let status = fs.status("/f").unwrap();
    assert_eq!((status.len(), status.is_under_construction()), (4321, false));
    let found = query::get_block(&fs.store, block.id).unwrap().unwrap().block;
    let want = BlockRef { gs: work.recovery_gs, len: 4321, ..block.reference() };
    assert_eq!((found.reference(), found.state), (want, BlockState::Complete));
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: true });
    assert_eq!(fs.effects, []);
}

#[test]
fn recovery_is_ordered_again_when_it_takes_too_long() {
    let mut fs = Fs::with(Settings { block_recovery_timeout_ms: 30_000, ..Settings::default() });
    let file = fs.create("/f");
    fs.add_block("/f", None);
    let release = ReleaseLease { file, replicas: LOCATED };
    let still = Outcome::Recovery { closed: false };
    assert_eq!(fs.ok(release.clone()), still);
    let first = fs.ordered().unwrap();
    fs.now_ms += 29_000;
    assert_eq!(fs.ok(release.clone()), still);
    assert_eq!(fs.effects, []);
    fs.now_ms += 1_000;
    assert_eq!(fs.ok(release), still);
    assert!(fs.ordered().unwrap().recovery_gs > first.recovery_gs);
}

#[test]
fn recovery_is_ordered_again_by_a_namenode_that_has_started_since() {
    let mut fs = Fs::new();
    fs.create("/f");
    fs.add_block("/f", None);
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    let first = fs.ordered().unwrap();
    fs.now_ms += 1;
    fs.ok(RenewAllLeases {});
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    assert!(fs.ordered().unwrap().recovery_gs > first.recovery_gs);
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    assert_eq!(fs.effects, []);
}

#[test]
fn files_without_bytes_are_closed_at_once() {
    let mut fs = Fs::new();
    fs.create("/empty");
    let closed = Outcome::Recovery { closed: true };
    assert_eq!(fs.ok(recover("/empty", LastBlocks::default())), closed);
    assert_eq!(fs.effects, []);
    let file = fs.create("/lost");
    let block = fs.add_block("/lost", None);
    let release = ReleaseLease { file, replicas: LastBlocks::default() };
    assert_eq!(fs.ok(release.clone()), closed);
    assert_eq!(fs.effects, [Effect::Removed { id: block.id, gs: block.gs }]);
    assert_eq!(fs.removed, [block]);
    assert_eq!(fs.ok(release), closed);
    assert_eq!(fs.effects, []);
    assert!(query::expired_leases(&fs.store, u64::MAX, None, 10).unwrap().is_empty());
}

#[test]
fn a_block_without_bytes_is_dropped_when_its_recovery_says_so() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    let commit = CommitBlockSynchronization {
        block: block.reference(),
        new_gs: fs.ordered().unwrap().recovery_gs,
        new_len: 0,
        close_file: true,
        delete_block: DropBlock::Unacknowledged,
    };
    assert_eq!(fs.ok(commit.clone()), Outcome::Removed { done: true, more: false });
    assert_eq!(fs.removed_ids(), [block.id]);
    assert_eq!(fs.status("/f").unwrap().inode.file().unwrap().block_count, 0);
    fs.ok(commit.clone());
    let unknown = CommitBlockSynchronization { delete_block: DropBlock::No, ..commit };
    assert!(said(&fs.err(unknown)).1.ends_with("not found"));
}

#[test]
fn a_recovery_that_finds_nothing_drops_no_byte_that_was_acknowledged() {
    let dropping = |(block, new_gs), delete_block| CommitBlockSynchronization {
        block,
        new_gs,
        new_len: 0,
        close_file: true,
        delete_block,
    };
    let flushed = |fs: &mut Fs| {
        let file = fs.create("/f");
        fs.add_block("/f", None);
        let (path, holder) = (String::new(), "client".to_string());
        fs.ok(Fsync { path, file: Some(file), holder, last_len: Some(700) });
    };
    let appended = |fs: &mut Fs| {
        fs.create("/f");
        let block = fs.add_block("/f", None);
        fs.complete("/f", Some(BlockRef { len: 700, ..block.reference() }));
        fs.ok(append_to_f());
    };
    let ways: [&dyn Fn(&mut Fs); 2] = [&flushed, &appended];
    for way in ways {
        let mut fs = Fs::new();
        way(&mut fs);
        assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
        let work = fs.ordered().map(|it| (it.block.reference(), it.recovery_gs)).unwrap();
        let refused = fs.err(dropping(work, DropBlock::Unacknowledged));
        assert!(said(&refused).1.contains("700 bytes of it were acknowledged"), "{refused:?}");
        let status = fs.status("/f").unwrap();
        assert_eq!((status.len(), status.is_under_construction()), (700, true));
        // The log of an older build has what it did.
        fs.ok(dropping(work, DropBlock::Always));
        assert_eq!(fs.removed_ids(), [work.0.id]);
    }
}

#[test]
fn a_recovery_that_does_not_end_is_taken_up_again_whatever_else_is_recovered() {
    let mut fs = Fs::new();
    let stuck = fs.create("/stuck");
    fs.add_block("/stuck", None);
    fs.ok(ReleaseLease { file: stuck, replicas: LOCATED });
    // Other files come to the NameNode all the time.
    for number in 0..4 {
        fs.now_ms += HARD_MS / 2;
        let path = format!("/{number}");
        let file = fs.create(&path);
        fs.add_block(&path, None);
        fs.ok(ReleaseLease { file, replicas: LOCATED });
    }
    let expired = query::expired_leases(&fs.store, fs.now_ms, None, 10).unwrap();
    assert!(expired.iter().any(|lease| lease.file == stuck), "{expired:?}");
}

/// Between the look at a file's replicas and its release the writer may go on.
#[test]
fn what_came_after_a_look_at_the_replicas_is_not_dropped() {
    let recovering = |fs: &mut Fs, seen| {
        let replicas = LastBlocks { seen: Some(seen), ..LastBlocks::default() };
        let Outcome::Recovery { closed } = fs.ok(recover("/f", replicas)) else { panic!() };
        (closed, fs.ordered().is_some(), fs.removed.len())
    };
    let mut fs = Fs::new();
    fs.create("/f");
    let first = fs.add_block("/f", None);
    // No block was there yet.
    assert_eq!(recovering(&mut fs, None), (false, true, 0));

    let mut fs = Fs::new();
    fs.create("/f");
    fs.add_block("/f", None);
    let written = BlockRef { len: 9, ..first.reference() };
    let second = fs.add_block("/f", Some(written));
    let older = Some((first.id, first.gs));
    assert_eq!(recovering(&mut fs, older), (false, true, 0));

    let mut fs = Fs::new();
    fs.create("/f");
    fs.add_block("/f", None);
    fs.add_block("/f", Some(written));
    assert_eq!(recovering(&mut fs, Some((second.id, second.gs.next()))), (false, true, 0));
    // As it is, nobody has any of it.
    let mut fs = Fs::new();
    fs.create("/f");
    fs.add_block("/f", None);
    fs.add_block("/f", Some(written));
    assert_eq!(recovering(&mut fs, Some((second.id, second.gs))), (true, false, 1));
}

#[test]
fn replicas_that_were_counted_are_those_of_the_last_block() {
    let closed = |seen_last: bool| {
        let mut fs = Fs::new();
        fs.create("/f");
        let first = fs.add_block("/f", None);
        let previous = BlockRef { len: 9, ..first.reference() };
        let previous = Some(previous);
        let command = AddBlock { previous_min_replicated: false, ..add_block("/f", previous) };
        let Outcome::BlockAdded { block: last, .. } = fs.ok(command) else { panic!() };
        let last = BlockRef { len: 9, ..last.reference() };
        fs.ok(Complete { min_replicated: false, ..complete("/f", Some(last)) });
        let seen = if seen_last { (last.id, last.gs) } else { (first.id, first.gs) };
        let replicas = LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: true,
            last_has_locations: true,
            seen: Some(Some(seen)),
        };
        fs.run(crate::support::root(), recover("/f", replicas))
    };
    assert!(matches!(closed(true), Ok(Outcome::Recovery { closed: true, .. })));
    assert_eq!(said(&closed(false).unwrap_err()).0, "AlreadyBeingCreatedException");
}

/// Those that cannot be released stay at the front.
#[test]
fn expired_files_are_told_page_by_page() {
    let mut fs = Fs::new();
    let mut want = Vec::new();
    for (holder, count) in [("one", 3), ("two", 1), ("three", 4)] {
        for number in 0..count {
            let path = format!("/{holder}/{number}");
            let created = fs.ok(Create { holder: holder.into(), ..create(&path) });
            let Outcome::Created { status, .. } = created else { panic!() };
            want.push((holder.to_string(), status.inode.id));
        }
    }
    let now_ms = fs.now_ms + HARD_MS + 10;
    for limit in 1..10 {
        let mut told = Vec::new();
        let mut last = None;
        loop {
            let page = query::expired_leases(&fs.store, now_ms, last.as_ref(), limit).unwrap();
            assert!(page.len() == limit || told.len() + page.len() == want.len());
            told.extend(page.iter().map(|lease| (lease.holder.clone(), lease.file)));
            match page.last() {
                Some(end) => last = Some(end.clone()),
                None => break,
            }
        }
        assert_eq!(told, want, "{limit} at a time");
    }
}

#[test]
fn an_append_to_a_silent_holders_file_tells_what_was_dropped() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    fs.now_ms += SOFT_MS + 1;
    let append = Append {
        path: "/f".into(),
        holder: "other".into(),
        client_machine: "there".into(),
        new_block: false,
        replicas: LastBlocks::default(),
    };
    let call = Some(CallId { client_id: [1; 16], call_id: 1 });
    let caller = crate::support::root();
    let Outcome::Appended { status, last: None } =
        fs.submit(caller.clone(), call, append.clone().into()).unwrap()
    else {
        panic!()
    };
    assert_eq!(fs.removed, [block]);
    // Who asks again has nothing to drop.
    let again = fs.submit(caller, call, append.into()).unwrap();
    assert_eq!(fs.effects, []);
    assert_eq!(again, Outcome::Appended { status, last: None });
}

/// DataNodes that were left before may have other bytes of it.
#[test]
fn a_block_that_is_opened_again_tells_at_which_stamp() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    let reopened =
        |fs: &Fs| query::get_block(&fs.store, block.id).unwrap().unwrap().block.reopened_gs;
    assert_eq!(reopened(&fs), None, "one writer has written all of it");
    assert_eq!(fs.ok(recover("/f", LOCATED)), Outcome::Recovery { closed: false });
    assert_eq!(reopened(&fs), None);
    let (work, new_gs) = fs.ordered().map(|it| (it.block.reference(), it.recovery_gs)).unwrap();
    fs.ok(CommitBlockSynchronization {
        block: work,
        new_gs,
        new_len: 700,
        close_file: true,
        delete_block: DropBlock::No,
    });
    assert_eq!(reopened(&fs), None, "it is closed");
    fs.ok(append_to_f());
    assert_eq!(reopened(&fs), Some(new_gs));
}
